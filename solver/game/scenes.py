"""The scene of a state: the game's own, or a plain one of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from luckbase.solver.game.capabilities import drawing
from luckbase.solver.game.fields import Field
from luckbase.solver.game.game import Game
from luckbase.solver.scene import GONE, Box, Scene, Shape, Words, fitting

ROW, LABEL, CELL, GAP, HIGH = 44.0, 130.0, 76.0, 6.0, 36.0
TILE, ACROSS = 30.0, 12
"""Units: between rows, for a field's name, a number's box, between boxes, of a box; of one of a
set. How many of a set stand in a row."""


def scene_of(game: Game, words: Mapping[str, object]) -> Scene:
    """The state in a person's words, drawn: with the cards that were named, not the canonical ones.

    Raises StateError as `Game.parse` does.
    """
    game.parse(words)
    values = game.fields.read(words)
    own = drawing(game).scene
    if own is None:
        return plain_scene(game.fields, values.tolist(), game.board.game)
    return own(values)


def plain_scene(fields: Sequence[Field], values: Sequence[int], name: str) -> Scene:
    """The fields of a state, a row each; values (columns,) in people's units."""
    shapes: list[Shape] = []
    said, at, y, wide = [], 0, GAP, 0.0
    for field in fields:
        held = list(values[at : at + field.length])
        at += field.length
        shown = field.say(held)
        text = "none" if shown in (None, []) else str(shown).strip("[]")
        said.append(f"{field.name}: {text}")
        label = field.name.replace("_", " ")
        shapes.append(Words(label, LABEL - 10, y + HIGH / 2, 17, "end"))
        boxes = list(_set(field, held[0], y) if field.is_set else _numbers(field, held, y))
        shapes += boxes
        wide = max([wide, *(box.x + box.wide for box in boxes)])
        y = max([y + ROW, *(box.y + box.high + GAP for box in boxes)])
    return Scene(f"a state of {name}", "; ".join(said) + ".", wide + GAP, y, tuple(shapes))


def _numbers(field: Field, held: Sequence[int], y: float) -> Iterator[Box]:
    for i, (column, value) in enumerate(zip(field.columns, held, strict=True)):
        nothing = value == field.blank
        text = "–" if nothing else f"{value:,}"
        x = LABEL + (i % ACROSS) * (CELL + GAP)
        yield Box(
            "plate", x, y + i // ACROSS * ROW, CELL, HIGH, (text,), GONE if nothing else "",
            fitting(text, CELL, 18),
            column, column, str(value),
        )  # fmt: skip


def _set(field: Field, bits: int, y: float) -> Iterator[Box]:
    for k in range(field.high.bit_length()):
        there = bits >> k & 1
        x = LABEL + (k % ACROSS) * (TILE + GAP)
        about = f"{k + 1} is {'' if there else 'not '}in {field.name}"
        yield Box(
            "tile", x, y + k // ACROSS * ROW, TILE, HIGH, (str(k + 1),), "" if there else GONE, 16,
            about, field.name, str(k + 1),
        )  # fmt: skip
