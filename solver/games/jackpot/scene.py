"""A state of Jackpot or Shut the Box as the game looks: tiles, open or shut, and the dice."""

from __future__ import annotations

from functools import partial

from luckbase.solver.charts.scene import CHANCE, GONE, Box, Die, Scene, Shape, Words, listed
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Scenes
from luckbase.solver.game.fields import members
from luckbase.solver.game.game import Game
from luckbase.solver.games.jackpot import rules
from luckbase.solver.games.jackpot.board import JackpotBoard
from luckbase.solver.games.jackpot.board import Rules as Options

TILE, HIGH, SHUT, GAP, DIE = 54.0, 84.0, 30.0, 8.0, 58.0
"""A tile, how much of it is left where it is shut, between tiles, and a die, in units."""
LEAST = 7
"""Tiles that the sheet is wide enough for, however few there are."""


def scenes(game: Game) -> Scenes:
    """The drawing of a board's states."""
    assert isinstance(game.board, JackpotBoard)
    return Scenes(partial(draw, game.board.rules))


def draw(options: Options, values: Ints) -> Scene:
    """The tiles in a row, the dice below; values (fields,)."""
    open_tiles = members(int(values[rules.OPEN]))
    faces = [face for face in values[rules.FACES :].tolist() if face]
    n = options.tiles
    wide = max(n, LEAST) * (TILE + GAP) + GAP
    left = (wide - n * (TILE + GAP) + GAP) / 2
    shapes: list[Shape] = []
    for k in range(1, n + 1):
        there = k in open_tiles
        high = HIGH if there else SHUT
        shapes.append(Box(
            "tile", left + (k - 1) * (TILE + GAP), GAP + HIGH - high, TILE, high, (str(k),),
            "" if there else GONE, 30 if there else 18,
            f"tile {k} is {'open' if there else 'shut'}", "open", str(k),
        ))  # fmt: skip
    shapes.append(Box("plate", GAP, GAP + HIGH + 3, wide - 2 * GAP, 7))
    y, shown = HIGH + 40.0, faces or ([None] * options.dice if open_tiles else [])
    y -= 0 if shown else DIE
    x = (wide - len(shown) * (DIE + 2 * GAP)) / 2 + GAP
    for i, face in enumerate(shown):
        role = CHANCE if face is None else ""
        shapes.append(Die(x + i * (DIE + 2 * GAP), y, DIE, face, options.sides, role))
    title, about = _said(options, open_tiles, faces)
    shapes.append(Words(title, wide / 2, y + DIE + 22, 17))
    return Scene(title, about, wide, y + DIE + 38, tuple(shapes))


def _said(options: Options, open_tiles: list[int], faces: list[int]) -> tuple[str, str]:
    """The title and the sentences."""
    if not open_tiles:
        return "all tiles are shut", "All tiles are shut: the box is won."
    rolled = f"rolled {listed(list(map(str, faces)))}"
    if not faces:
        rolled = f"before the roll of {options.dice} dice" if options.dice > 1 else "before a roll"
    shut = [str(k) for k in range(1, options.tiles + 1) if k not in open_tiles]
    about = f"Open: {listed(list(map(str, open_tiles)))}. Shut: {listed(shut)}. "
    return rolled, about + f"{rolled[0].upper()}{rolled[1:]}."
