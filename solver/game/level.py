"""Levels of a game: linear functions of a state's fields that no edge raises.

They cut what lies below some roots into **stages**, sets of states that are closed under every
cycle: where the functions of two states differ, one of them can not lead to the other and back. A
game may declare them (`SearchHints.level`), else they are looked for (`solver.graph.find_level`).
Every edge is held to them as it is met.

A function is coefficients by column: of a number the coefficient times the number, of a set (cards,
tiles) times how many it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Function = Mapping[str, int]


@dataclass(frozen=True)
class Level:
    """stages: functions that tell stages apart. inside: functions that no edge between two states
    of one stage raises: they cut a stage that is too large into boxes. strict: every edge leaves
    its stage, so that any cut will do. width: so many values of a single function in `stages` are
    one stage. found: whether it was looked for, on a sample.
    """

    stages: tuple[Function, ...]
    inside: tuple[Function, ...] = ()
    strict: bool = False
    width: int = 1
    found: bool = False

    def as_json(self) -> dict[str, Any]:
        """The level as JSON values."""
        return {
            "stages": [dict(one) for one in self.stages],
            "inside": [dict(one) for one in self.inside],
            "strict": self.strict, "width": self.width, "found": self.found,
        }  # fmt: skip

    def __str__(self) -> str:
        """The functions as a person would write them."""
        said = " and ".join(_formula(one) for one in self.stages)
        return said if self.width == 1 else f"{said}, {self.width} values a stage"


def level_from(form: Mapping[str, Any]) -> Level:
    """The level that `as_json` said."""
    return Level(
        tuple(form["stages"]), tuple(form["inside"]), form["strict"], form["width"], form["found"]
    )  # fmt: skip


def _formula(function: Function) -> str:
    said = ""
    for name, factor in function.items():
        sign = "-" if factor < 0 else "+"
        times = "" if abs(factor) == 1 else f"{abs(factor)} "
        said += f" {sign} {times}{name}"
    return said.replace(" + ", "", 1) if said.startswith(" +") else said.replace(" - ", "-", 1)
