"""How far something is that goes through the rows of a table."""

from __future__ import annotations

from collections.abc import Callable

OnRows = Callable[[int, int], None]
"""Told how many rows were gone through, and of how many; (0, …) when that begins."""


def nobody(done: int, total: int) -> None:
    """Nobody is told."""
