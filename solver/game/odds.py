"""The capability `Odds`: what one spin of a board brings, in exact numbers.

`luckbase coarsen` shows which of them a coarser board keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from luckbase.solver.game.rules import Capability

SIGNED = "by luckbase coarsen."
"""The first line of a board file that is made of outcomes ends so: it may be written again."""


@dataclass(frozen=True)
class Fact:
    """A number about a board. unit: "" for a chance, else what it counts (``$``)."""

    name: str
    value: Fraction
    unit: str = ""

    def __str__(self) -> str:
        if self.unit:
            return f"{self.unit}{float(self.value):,.2f}"
        return f"{float(self.value):.5f}"


@dataclass(frozen=True)
class Odds(Capability):
    """What one spin brings.

    written: facts of the board as its file has it. solved: the same facts, in the same order, of
    the spin that is solved, its amounts rounded or coarsened. outcomes: of the latter, (what, as a
    board file has it, its chance). moved: the mean distance that amounts moved from one to the
    other, at the least. file: the text of a board file that lists these outcomes, its
    first line a comment that ends in `SIGNED`; raises OptionError where a file can not hold them.
    """

    missing: ClassVar[str] = "has no outcomes of a spin to make fewer, or to show"

    written: tuple[Fact, ...]
    solved: tuple[Fact, ...]
    outcomes: tuple[tuple[str, Fraction], ...]
    moved: Fact
    file: Callable[[], str]
