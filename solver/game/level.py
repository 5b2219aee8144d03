"""Levels of a game: a linear function of a state's fields that no edge raises.

It cuts what lies below some roots into stages, each closed under every cycle: a state can not lead
to one of a higher level, nor to one of a lower level and back. A game may declare its level
(`SearchHints.level`), else one is looked for (`solver.graph.find_level`). Every edge is held to it
as it is met.

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
    """falls: the function that no edge raises. apart: functions that an edge changes only if it
    lowers the level: states of one level in which they differ have nothing to do with one another.
    inside: functions that no edge raises which leaves the level and `apart` as they are: they cut
    large stages into boxes. strict: every edge lowers the level. width: so many values of `falls`
    are one level. found: whether it was looked for, on a sample of edges.
    """

    falls: Function
    apart: tuple[Function, ...] = ()
    inside: tuple[Function, ...] = ()
    strict: bool = False
    width: int = 1
    found: bool = False

    def as_json(self) -> dict[str, Any]:
        """The level as JSON values."""
        return {
            "falls": dict(self.falls), "apart": [dict(one) for one in self.apart],
            "inside": [dict(one) for one in self.inside], "strict": self.strict,
            "width": self.width, "found": self.found,
        }  # fmt: skip

    def __str__(self) -> str:
        """The function as a person would write it."""
        said = "".join(_term(name, factor) for name, factor in self.falls.items())
        said = said.removeprefix(" + ") if said.startswith(" +") else said.replace(" - ", "-", 1)
        return said if self.width == 1 else f"{said}, {self.width} values a level"


def level_from(form: Mapping[str, Any]) -> Level:
    """The level that `as_json` said."""
    return Level(**{**form, "apart": tuple(form["apart"]), "inside": tuple(form["inside"])})


def _term(name: str, factor: int) -> str:
    sign, times = ("-" if factor < 0 else "+"), ("" if abs(factor) == 1 else f"{abs(factor)} ")
    return f" {sign} {times}{name}"
