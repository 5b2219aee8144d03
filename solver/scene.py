"""A state drawn as the game looks, as data: what a person would see on the table.

A game with the capability `Drawing` (`solver.game.capabilities`) makes a `Scene` of a state; of any
other a plain one is made of its fields (`plain_scene`). A scene is shapes on a sheet of `wide` by
`high` units, x to the right and y down, and the same in words for those who do not see it. A shape
has no colour but a role, one of `ROLES`: whoever draws it says how roles look, in the light, in the
dark and in grey. What later shapes cover is hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luckbase.solver.game.fields import Field

UP, GONE, GOOD, BAD, CHANCE, QUIET = "up", "gone", "good", "bad", "chance", "quiet"
ROLES = ("", UP, GONE, GOOD, BAD, CHANCE, QUIET)
"""Whose turn it is, or what is asked about; played, shut, out; what helps, what hurts a player;
what dice or the deck gave, and what is not sure yet; of no weight here; "" for all else."""

KINDS = ("card", "tile", "square", "slide", "light", "desk", "track", "bar", "plate")
"""Of boxes: what on the table it is. A bar lies on a track; a light frames one of a board's
squares; a plate is for anything else."""


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


@dataclass(frozen=True, eq=False)
class Group:
    """Shapes that are in many scenes: made once, and drawn once."""

    shapes: tuple[Shape | Group, ...] = ()


def _singly(parts: Sequence[Shape | Group]) -> Iterator[Shape]:
    for part in parts:
        yield from _singly(part.shapes) if isinstance(part, Group) else (part,)


NO_BACKDROP = Group()


@dataclass(frozen=True)
class Scene:
    """A state as it looks. title: it in a few words; about: in sentences; wide, high: of the sheet,
    in units. parts: what is of this state, above its board's backdrop."""

    title: str
    about: str
    wide: float
    high: float
    parts: tuple[Shape | Group, ...] = field(repr=False)
    backdrop: Group = field(default=NO_BACKDROP, repr=False, compare=False)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of this state, one by one."""
        return tuple(_singly(self.parts))

    def __str__(self) -> str:
        return f"{self.title}. {self.about}"

    def _repr_html_(self) -> str | None:
        """The drawing in a notebook; None where nobody draws."""
        from luckbase.solver.charts import drawn

        return drawn("html", self)


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


ROW, LABEL, CELL, GAP, HIGH = 44.0, 130.0, 76.0, 6.0, 36.0
TILE, ACROSS = 30.0, 12
"""Units: between rows, for a field's name, a number's box, between boxes, of a box; of one of a
set. How many of a set stand in a row."""


def plain_scene(fields: Sequence[Field], values: Sequence[int], name: str) -> Scene:
    """The fields of a state, a row each; values (columns,) in people's units."""
    shapes: list[Shape] = []
    said, at, y, width = [], 0, GAP, 0.0
    for item in fields:
        numbers = list(values[at : at + item.length])
        at += item.length
        value = item.say(numbers)
        text = "none" if value in (None, []) else str(value).strip("[]")
        said.append(f"{item.name}: {text}")
        label = item.name.replace("_", " ")
        shapes.append(Words(label, LABEL - 10, y + HIGH / 2, 17, "end"))
        boxes = list(_set(item, numbers[0], y) if item.is_set else _numbers(item, numbers, y))
        shapes += boxes
        width = max([width, *(box.x + box.wide for box in boxes)])
        y = max([y + ROW, *(box.y + box.high + GAP for box in boxes)])
    return Scene(f"a state of {name}", "; ".join(said) + ".", width + GAP, y, tuple(shapes))


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
