"""A drawing of a state as it looks on the table, as data.

A game with the capability `Drawing` (`solver.game.capabilities`) draws its states as `Scene`s. For
other games `plain_scene` draws the fields. A scene has shapes on a sheet of `wide` by `high` units,
x to the right and y down, and a description for people who cannot see it. A shape has no colour but
a role, one of `ROLES`; the renderer chooses how each role looks in light, dark and grey. Later
shapes cover earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luckbase.solver.game.fields import Field

UP, GONE, GOOD, BAD, CHANCE, QUIET = "up", "gone", "good", "bad", "chance", "quiet"
ROLES = ("", UP, GONE, GOOD, BAD, CHANCE, QUIET)
"""UP: whose turn it is, or the subject of the question; GONE: played, shut or out; GOOD, BAD: helps
or hurts a player; CHANCE: came from dice or the deck, or is still uncertain; QUIET: unimportant
here; "": everything else."""

KINDS = ("card", "tile", "square", "slide", "light", "desk", "track", "bar", "plate")
"""Kinds of boxes: the things on the table. A bar fills part of a track; a light frames a square of
a board; a plate is for anything else."""


@dataclass(frozen=True)
class Box:
    """A box with its top left corner at (x, y).

    kind: one of `KINDS`.
    lines: words in it, centred, in letters of `size` units.
    about: a description for people who point at it.
    field, value: the column of the state that it shows, if any, and the value shown.
    """

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
    """A round piece with its centre at (x, y) and a word of at most three letters."""

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
    """A line of words.

    x, y: the left end, middle or right end of its centre line if `at` is "start", "middle" or
        "end".
    bold: to be read first.
    """

    text: str
    x: float
    y: float
    size: float = 16
    at: str = "middle"
    bold: bool = False
    role: str = ""


Shape = Box | Counter | Die | Words


@dataclass(frozen=True, eq=False)
class Group:
    """Shapes shared by many scenes: made once and drawn once."""

    shapes: tuple[Shape | Group, ...] = ()


def _singly(parts: Sequence[Shape | Group]) -> Iterator[Shape]:
    for part in parts:
        yield from _singly(part.shapes) if isinstance(part, Group) else (part,)


NO_BACKDROP = Group()


@dataclass(frozen=True)
class Scene:
    """A drawing of a state.

    title: a few words.
    about: a description in sentences.
    wide, high: size of the sheet in units.
    parts: the shapes of this state, above its board's backdrop.
    """

    title: str
    about: str
    wide: float
    high: float
    parts: tuple[Shape | Group, ...] = field(repr=False)
    backdrop: Group = field(default=NO_BACKDROP, repr=False, compare=False)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of this state, without groups."""
        return tuple(_singly(self.parts))

    def __str__(self) -> str:
        return f"{self.title}. {self.about}"

    def _repr_html_(self) -> str | None:
        """Return the drawing for a notebook; None if no renderer is registered."""
        from luckbase.solver.charts import drawn

        return drawn("html", self)


LETTER = 0.62  # the largest average width of a letter, relative to its size


def fitting(text: str, wide: float, size: float) -> float:
    """Return the letter size, at most `size`, in which a text is at most `wide` units wide."""
    return min(size, wide / (LETTER * max(len(text), 1)))


def listed(parts: list[str]) -> str:
    """Return ``1``, ``1 and 2``, or ``1, 2 and 5``; "none" for an empty list."""
    if len(parts) < 2:
        return parts[0] if parts else "none"
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


ROW, LABEL, CELL, GAP, HIGH = 44.0, 130.0, 76.0, 6.0, 36.0
TILE, ACROSS = 30.0, 12
"""In units: the distance between rows, the width of a field's name and of a number's box, the gap
between boxes, the height of a box; the width of a tile of a set. ACROSS: tiles in a row."""


def plain_scene(fields: Sequence[Field], values: Sequence[int], name: str) -> Scene:
    """Draw the fields of a state, one row each; values (columns,) in people's units."""
    shapes: list[Shape] = []
    sentences, start, y, width = [], 0, GAP, 0.0
    for item in fields:
        numbers = list(values[start : start + item.length])
        start += item.length
        value = item.say(numbers)
        text = "none" if value in (None, []) else str(value).strip("[]")
        sentences.append(f"{item.name}: {text}")
        label = item.name.replace("_", " ")
        shapes.append(Words(label, LABEL - 10, y + HIGH / 2, 17, "end"))
        boxes = list(_set(item, numbers[0], y) if item.is_set else _numbers(item, numbers, y))
        shapes += boxes
        width = max([width, *(box.x + box.wide for box in boxes)])
        y = max([y + ROW, *(box.y + box.high + GAP for box in boxes)])
    return Scene(f"a state of {name}", "; ".join(sentences) + ".", width + GAP, y, tuple(shapes))


def _numbers(item: Field, numbers: Sequence[int], y: float) -> Iterator[Box]:
    for i, (column, value) in enumerate(zip(item.columns, numbers, strict=True)):
        nothing = value == item.blank
        text = item.text(value) if item.names else "–" if nothing else f"{value:,}"
        x = LABEL + (i % ACROSS) * (CELL + GAP)
        yield Box(
            "plate", x, y + i // ACROSS * ROW, CELL, HIGH, (text,), GONE if nothing else "",
            fitting(text, CELL - 10, 18),
            column, column, str(value),
        )  # fmt: skip


def _set(item: Field, bits: int, y: float) -> Iterator[Box]:
    for k in range(item.high.bit_length()):
        is_in = bits >> k & 1
        x = LABEL + (k % ACROSS) * (TILE + GAP)
        title = f"{k + 1} is {'' if is_in else 'not '}in {item.name}"
        yield Box(
            "tile", x, y + k // ACROSS * ROW, TILE, HIGH, (str(k + 1),), "" if is_in else GONE, 16,
            title, item.name, str(k + 1),
        )  # fmt: skip
