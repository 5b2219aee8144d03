"""Array types that all packages share, and the columns and decisions made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FLOAT64_ERROR = 1e-12
"""Bound on the rounding error of the sums of a payoff in float64, with room to spare."""


@dataclass(frozen=True)
class Coded:
    """A column of texts: row i is labels[codes[i]]. codes: int32 (n,)."""

    codes: NDArray[np.int32]
    labels: list[str]


@dataclass(frozen=True)
class Runs:
    """A column of numbers that repeats each of `values` (k,) `times` times in a row."""

    values: NDArray[Any]
    times: int


def set_text(mask: int) -> str:
    """Return a set of numbers from 1, kept as bits, as a table writes it: ``1 2 5``."""
    return " ".join(str(k + 1) for k in range(int(mask).bit_length()) if mask >> k & 1)


def coded(values: NDArray[np.integer[Any]], text: Callable[[int], str]) -> Coded:
    """Return the column of the texts of values (n,)."""
    distinct, codes = np.unique(values, return_inverse=True)
    return Coded(codes.astype(np.int32), [text(value) for value in distinct.tolist()])


Best = NDArray[np.int8]
"""The decisions in consecutive rows of a tier (rows,), modified in place: the action taken, as an
index into the game's `best_names`, even if it is the player's only action. -1 on entry; it stays -1
if no player acts or both choose at once."""
NO_BEST = np.empty(0, np.int8)
"""Passed to kernels in place of decisions that nobody wants."""


def no_decisions(rows: int) -> Best:
    """Return the decisions of a tier before it is solved."""
    return np.full(rows, -1, np.int8)
