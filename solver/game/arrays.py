"""The arrays that every room hands to every other, and the columns and decisions made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import inlined

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FLOAT64_ERROR = 1e-12
"""What the sums of a payoff lose in float64, with room to spare."""


@inlined
def bits_in(bits: Any) -> Any:
    """Return how many of the 64 bits of a number are set; LLVM makes one instruction of it."""
    all_bits, low_two = np.uint64(bits), np.uint64(0x3333333333333333)
    twos = all_bits - ((all_bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    fours = (twos & low_two) + ((twos >> np.uint64(2)) & low_two)
    eights = (fours + (fours >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((eights * np.uint64(0x0101010101010101)) >> np.uint64(56))


@dataclass(frozen=True)
class Coded:
    """A column of texts: row i says labels[codes[i]]. codes: int32 (n,)."""

    codes: NDArray[np.int32]
    labels: list[str]


@dataclass(frozen=True)
class Runs:
    """A column of numbers, each of `values` so many times, one after the other. values: (k,)."""

    values: NDArray[Any]
    times: int


def set_text(mask: int) -> str:
    """A set of numbers from 1, kept as bits, as a table says it: ``1 2 5``."""
    return " ".join(str(k + 1) for k in range(int(mask).bit_length()) if mask >> k & 1)


def coded(values: NDArray[np.integer[Any]], text: Callable[[int], str]) -> Coded:
    """A column of values (n,) as the text of each."""
    distinct, codes = np.unique(values, return_inverse=True)
    return Coded(codes.astype(np.int32), [text(value) for value in distinct.tolist()])


@dataclass(frozen=True)
class Decisions:
    """What to do in the rows of a part of a tier, in row order; C-contiguous, modified in place.

    best: int8 (rows,), an index into the game's `best_names`: the action taken, also where it is
    the only one of the player who acts; -1 on entry, and left so where nobody acts or both players
    choose at once.
    """

    best: NDArray[np.int8]

    def between(self, start: int, stop: int) -> Decisions:
        """Those of some of the rows."""
        return Decisions(self.best[start:stop])

    @staticmethod
    def blank(rows: int) -> Decisions:
        """As `solve_tier` takes them on entry."""
        return Decisions(np.full(rows, -1, np.int8))
