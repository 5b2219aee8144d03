"""A state drawn as the game looks, as data: what a person would see on the table.

A game with the capability `Drawing` (`solver.game.capabilities`) makes a `Scene` of a state; of any
other a plain one is made of its fields (`solver.game.scenes`)::

    scene_of(game, {"open": "1,2,5", "dice": "3,4"}).title
    'rolled 3 and 4'

A scene is shapes on a sheet of `wide` by `high` units, x to the right and y down, and the same in
words for those who do not see it. A shape has no colour but a role, one of `ROLES`: whoever draws
it says how roles look, in the light, in the dark and in grey. What later shapes cover is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from luckbase.solver.charts import drawn

UP, GONE, GOOD, BAD, CHANCE, QUIET = "up", "gone", "good", "bad", "chance", "quiet"
ROLES = ("", UP, GONE, GOOD, BAD, CHANCE, QUIET)
"""Whose turn it is, or what is asked about; played, shut, out; what helps, what hurts a player;
what dice or the deck gave, and what is not sure yet; of no weight here; "" for all else."""

KINDS = ("card", "tile", "square", "slide", "desk", "track", "bar", "plate")
"""Of boxes: what on the table it is. A bar lies on a track; a plate is for anything else."""


@dataclass(frozen=True)
class Box:
    """A box with its top left corner at (x, y). kind: one of `KINDS`. lines: words in it, centred,
    in letters of `size` units; about: what it is, for a person who points at it. field, value: the
    column of the state that it shows, if it shows one, and what it says of it."""

    kind: str
    x: float
    y: float
    wide: float
    high: float
    lines: tuple[str, ...] = ()
    role: str = ""
    size: float = 16
    about: str = ""
    field: str = ""
    value: str = ""


@dataclass(frozen=True)
class Counter:
    """A round piece with its centre at (x, y), with a word of at most three letters on it."""

    x: float
    y: float
    radius: float
    word: str = ""
    role: str = ""
    about: str = ""


@dataclass(frozen=True)
class Die:
    """A die with its top left corner at (x, y). face: None before it is rolled."""

    x: float
    y: float
    wide: float
    face: int | None
    sides: int = 6
    role: str = ""


@dataclass(frozen=True)
class Words:
    """A line of words. (x, y): the left end, the middle or the right end of its middle line, as
    `at` is "start", "middle" or "end"; bold: what is read first."""

    text: str
    x: float
    y: float
    size: float = 16
    at: str = "middle"
    bold: bool = False
    role: str = ""


Shape = Box | Counter | Die | Words


@dataclass(frozen=True)
class Scene:
    """A state as it looks. title: it in a few words; about: in sentences; wide, high: of the sheet,
    in units."""

    title: str
    about: str
    wide: float
    high: float
    shapes: tuple[Shape, ...] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.title}. {self.about}"

    def _repr_html_(self) -> str | None:
        """The drawing in a notebook; None where nobody draws."""
        html: str | None = drawn("html", self)
        return html


LETTER = 0.62
"""Of a letter's size: how wide one is at most, on average over a word."""


def fitting(text: str, wide: float, size: float) -> float:
    """The size of letters, `size` at most, in which a text is at most `wide` units."""
    return min(size, wide / (LETTER * max(len(text), 1)))


def listed(parts: list[str]) -> str:
    """``1``, ``1 and 2``, ``1, 2 and 5``; "none" of nothing."""
    if len(parts) < 2:
        return parts[0] if parts else "none"
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
