"""A drawing of a state as it looks on the table, as data and as SVG.

A game with the capability `Drawing` (`solver.game.capabilities`) draws its states as `Scene`s. For
other games `plain_scene` draws the fields. A scene has shapes on a sheet of `wide` by `high` units,
x to the right and y down, and a description for people who cannot see it. A shape has no colour but
a role, one of `ROLES`; a style sheet chooses how each role looks in light, dark and grey. Later
shapes cover earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
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

    def _repr_html_(self) -> str:
        """Return the drawing with its tints, for a notebook."""
        style = f"<style>{STYLE.read_text(encoding='utf-8')}</style>"
        return f'{style}<div style="max-width: 44rem">{svg(self)}</div>'


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


# --- as SVG --------------------------------------------------------------------------------------
#
# An element has no style, script or id, so a page can have any number of them under the strictest
# policy. Lines and text use the page's colour, so they are readable on any background and in grey;
# classes (`s-card`, `s-up`, …) are for tints (`STYLE`).

STYLE = Path(__file__).parent / "static" / "scene.css"
"""The tints for both themes. Pages link to it; a single-file page contains it."""

ROUND = {"card": 7.0, "tile": 3.0, "square": 4.0, "slide": 3.0, "desk": 9.0, "track": 5.0,
         "bar": 4.0, "plate": 5.0, "light": 4.0}  # fmt: skip
"""Corner radius of a box, in units."""
LOOKS = {
    "": 'stroke-width="1.1"',
    "up": 'stroke-width="3"',
    "gone": 'stroke-width="1" stroke-dasharray="3 3" opacity=".65"',
    "good": 'stroke-width="1.6"',
    "bad": 'stroke-width="2.4"',
    "chance": 'stroke-width="1.5" stroke-dasharray="2 2"',
    "quiet": 'stroke-width=".6"',
}
"""The appearance of roles without colours."""
PIPS = {1: "4", 2: "08", 3: "048", 4: "0268", 5: "02468", 6: "023568", 7: "0234568", 8: "01235678",
        9: "012345678"}  # fmt: skip
"""Positions of a face's pips, in three rows of three."""
BASELINE = 0.35
"""Distance from the middle of a letter to its baseline, as a share of its size."""


def svg(scene: Scene, parts: bool = True) -> str:
    """Return the scene as an ``<svg>`` element that is as wide as its container allows. parts: if
    False, draw only the backdrop, for a page with a form in place of the parts."""
    title, text = escape(scene.title), escape(scene.about)
    inner, high = "".join(map(drawn, (scene.backdrop, *scene.parts))), scene.high
    if not parts:
        inner = drawn(scene.backdrop)
        high = scene.high if around(scene) else max(map(_bottom, _boxes([scene.backdrop])))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="scene" role="img" aria-label="{title}. '
        f'{text}" viewBox="0 0 {scene.wide:g} {high:g}" fill="none" stroke="currentColor" '
        f'font-family="system-ui, sans-serif"><title>{title}</title><desc>{text}</desc>'
        f"{inner}</svg>"
    )


def around(scene: Scene) -> bool:
    """True if the backdrop of a scene surrounds its parts, as a board surrounds desks."""
    tops = [box.y for box in _boxes(scene.parts)]
    return max(map(_bottom, _boxes([scene.backdrop])), default=0.0) > min(tops, default=0.0)


def _boxes(parts: Sequence[Shape | Group]) -> Iterator[Box]:
    return (shape for shape in _singly(parts) if isinstance(shape, Box))


def _bottom(box: Box) -> float:
    return box.y + box.high + 2


def drawn(shape: Shape | Group) -> str:
    """Return a shape or group as SVG."""
    match shape:
        case Group():
            return "".join(map(drawn, shape.shapes))
        case Box():
            return _box(shape)
        case Counter():
            circle = f'<circle cx="{shape.x:g}" cy="{shape.y:g}" r="{shape.radius:g}"/>'
            size = shape.radius * (1.25 if len(shape.word) < 2 else 0.9)
            word = _text(shape.word, shape.x, shape.y, size) if shape.word else ""
            return _group("counter", shape.role, shape.about, circle + word)
        case Die():
            kind = "before the roll" if shape.face is None else f"that shows {shape.face}"
            return _group("die", shape.role, f"a die {kind}", _die(shape))
        case Words():
            classes = f"s-words s-{shape.role}" if shape.role else "s-words"
            faint = ' opacity=".7"' if shape.role in ("quiet", "gone") else ""
            return _text(shape.text, shape.x, shape.y, shape.size, shape.at, shape.bold, classes,
                         faint)  # fmt: skip


def _group(kind: str, role: str, description: str, inner: str, data: str = "") -> str:
    classes = f"s-{kind} s-{role}" if role else f"s-{kind}"
    title = f"<title>{escape(description)}</title>" if description else ""
    return f'<g class="{classes}"{data} {LOOKS[role]}>{title}{inner}</g>'


def _box(box: Box) -> str:
    edge = _rectangle(box.x, box.y, max(box.wide, 0), box.high, ROUND[box.kind])
    step, middle = box.size * 1.25, box.x + box.wide / 2
    first = box.y + box.high / 2 - step * (len(box.lines) - 1) / 2
    lines = "".join(
        _text(line, middle, first + i * step, box.size) for i, line in enumerate(box.lines)
    )
    data = ""
    if box.field:
        data = f' data-field="{escape(box.field)}" data-value="{escape(box.value)}"'
    return _group(box.kind, box.role, box.about, edge + lines, data)


def _die(die: Die) -> str:
    middle, step, radius = die.wide / 2, die.wide * 0.26, die.wide * 0.085
    x, y = die.x + middle, die.y + middle
    edge = _rectangle(die.x, die.y, die.wide, die.wide, die.wide / 6)
    if die.face not in PIPS or die.sides > 9:
        return edge + _text("?" if die.face is None else str(die.face), x, y, middle)
    return edge + "".join(
        f'<circle class="s-pip" cx="{x + (int(p) % 3 - 1) * step:g}" '
        f'cy="{y + (int(p) // 3 - 1) * step:g}" r="{radius:g}" fill="currentColor" stroke="none"/>'
        for p in PIPS[die.face]
    )


def _rectangle(x: float, y: float, width: float, height: float, round_: float) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}"/>'


def _text(
    text: str, x: float, y: float, size: float, at: str = "middle", bold: bool = False,
    classes: str = "", more: str = "",
) -> str:  # fmt: skip
    kind = f' class="{classes}"' if classes else ""
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<text{kind} x="{x:g}" y="{y + BASELINE * size:g}" font-size="{size:g}" '
        f'text-anchor="{at}" fill="currentColor" stroke="none"{weight}{more}>{escape(text)}</text>'
    )
