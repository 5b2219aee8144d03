"""Columns of texts as codes and labels: sets of cards or tiles, in the words of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Coded:
    """A column of texts: row i says labels[codes[i]]. codes: int32 (n,)."""

    codes: NDArray[np.int32]
    labels: list[str]


def set_text(mask: int) -> str:
    """A set of numbers from 1, kept as bits, as a table says it: ``1 2 5``."""
    return " ".join(str(k + 1) for k in range(int(mask).bit_length()) if mask >> k & 1)


def coded_sets(masks: NDArray[np.integer[Any]]) -> Coded:
    """A column of sets (n,), kept as bits, as texts."""
    distinct, codes = np.unique(masks, return_inverse=True)
    return Coded(codes.astype(np.int32), [set_text(int(mask)) for mask in distinct])
