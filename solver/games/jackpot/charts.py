"""The charts of Jackpot and Shut the Box, for `solver.charts`.

``flip`` lists for every roll at a position the best flip, its payoff and the loss of the next best
flip. The position is all tiles open, or ``open=1,2,3,9``. The chart needs only the states below the
game's start.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from luckbase.solver.charts import (
    DECIMALS,
    START,
    Chart,
    ChartField,
    ChartRequest,
    Kind,
    Listing,
    Lookup,
    aligned,
)
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints, set_text
from luckbase.solver.game.capabilities import Charts, Drawing
from luckbase.solver.game.fields import members
from luckbase.solver.game.game import Game
from luckbase.solver.games.jackpot.rules import (
    FACES,
    OPEN,
    ROLL,
    Options,
    options_of,
    outcome_names,
    positions,
)
from luckbase.solver.scene import CHANCE, GONE, Box, Die, Scene, Shape, Words, listed
from luckbase.solver.search.bellman import evaluate
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import capital, nearest

KINDS = (
    Kind(
        "flip", "for every roll the best flip, its payoff and the cost of the next best",
        needs=START, takes=(ChartField("open", "The open tiles, as 1,2,3 (default: all)."),),
        reading="A line for each roll: its chance, the best flip, its payoff, the next best flip "
        "and its cost.",
    ),
)  # fmt: skip
COLUMNS = ("open", "dice", "chance", "best", "value", "next_best", "cost")
Row = tuple[str | float, ...]
NOTE = (
    "for each roll: its chance, the best flip, its payoff, the next best flip and its cost; a dash "
    "means no choice, or no tile to flip"
)


class TileCharts(Charts):
    kinds = KINDS

    def __init__(self, game: Game) -> None:
        self.game, self.options = game, options_of(game)

    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Chart:
        for name in request.fields:
            if name != "open":
                why = "the list is of every roll" if name == "dice" else nearest(name, ["open"])
                raise StateError(f"{name}: {why}; only open= can be chosen")
        fields = request.fields
        before = self.game.parse(fields) if fields else self.game.needed_start()
        if not before[OPEN]:
            raise StateError("open: no tile is open and the game is over")
        rolls = expand(self.game, before.reshape(1, -1))
        edges = expand(self.game, rolls.children)
        q = evaluate(edges, lookup(edges.children))
        tolerance = self.game.tie_tolerance + 2 * request.error
        chances: dict[Row, float] = {}  # the order of the dice does not count
        for x, state in enumerate(rolls.children):
            span = slice(int(q.first[x]), int(q.first[x + 1]))
            tiles = () if edges.terminal[x] else q.actions[span]
            named = ["+".join(map(str, members(a))) for a in tiles]
            roll = (set_text(state[OPEN]), self._faces(state, int(rolls.actions[x])))
            row = (*roll, *_best(named, q.values[span, 0], tolerance))
            chances[row] = chances.get(row, 0.0) + float(rolls.weights[x])
        rows = [(*row[:2], round(chance, DECIMALS), *row[2:]) for row, chance in chances.items()]
        cells = [["roll", "chance", "flip", "worth", "next best", "costs"]]
        for _, dice, chance, best, value, next_, cost in rows:
            costs = f"{cost:.6f}" if isinstance(cost, float) else ""
            cells.append([str(dice), f"{chance:.4f}", str(best), f"{value:.6f}", str(next_), costs])
        return Listing(aligned(cells), COLUMNS, tuple(rows), NOTE)

    def _faces(self, state: Ints, action: int) -> str:
        """Return the roll: its sum if only the sum counts, otherwise the faces, ascending."""
        faces = [int(face) for face in state[FACES:] if face]
        if self.options.allowed != "sum":
            return ",".join(map(str, sorted(faces)))
        fewer = action < self.options.dice * ROLL
        return f"{sum(faces)}{' with 1 die' * fewer}"


def _best(named: list[str], values: Floats, tolerance: float) -> Row:
    """Return the best flip (the first of tied ones), its payoff, the next best and its loss."""
    value = round(float(values.max()), DECIMALS)
    if len(named) < 2:
        return (named[0] if named else "-"), value, "-", ""
    best = int(np.flatnonzero(values >= values.max() - tolerance)[0])
    others = np.delete(np.arange(len(named)), best)
    second = others[values[others].argmax()]
    cost = max(float(values[best] - values[second]), 0.0)
    return named[best], value, named[second], round(cost, DECIMALS)


TILE, HIGH, SHUT, GAP, DIE = 54.0, 84.0, 30.0, 8.0, 58.0
"""In units: the width and height of a tile, its height when shut, the gap between tiles, a die."""
MIN_TILES = 7  # the sheet is wide enough for this many tiles, even if there are fewer


def drawing(game: Game) -> Drawing:
    """Return the drawing: tiles and dice, the names of rolls, and every position before a roll."""
    options = options_of(game)
    return Drawing(
        partial(draw, options), partial(outcome_names, options), partial(positions, game),
        options.rolls,
    )  # fmt: skip


def draw(options: Options, values: Ints) -> Scene:
    """Draw the tiles in a row and the dice below; values (fields,)."""
    open_tiles = members(int(values[OPEN]))
    faces = [face for face in values[FACES:].tolist() if face]
    n = options.tiles
    width = max(n, MIN_TILES) * (TILE + GAP) + GAP
    margin = (width - n * (TILE + GAP) + GAP) / 2
    shapes: list[Shape] = []
    for k in range(1, n + 1):
        is_open = k in open_tiles
        height = HIGH if is_open else SHUT
        shapes.append(Box(
            "tile", margin + (k - 1) * (TILE + GAP), GAP + HIGH - height, TILE, height, (str(k),),
            "" if is_open else GONE, 30 if is_open else 18,
            f"tile {k} is {'open' if is_open else 'shut'}", "open", str(k),
        ))  # fmt: skip
    shapes.append(Box("plate", GAP, GAP + HIGH + 3, width - 2 * GAP, 7))
    y, shown = HIGH + 40.0, faces or ([None] * options.dice if open_tiles else [])
    y -= 0 if shown else DIE
    x = (width - len(shown) * (DIE + 2 * GAP)) / 2 + GAP
    for i, face in enumerate(shown):
        role = CHANCE if face is None else ""
        shapes.append(Die(x + i * (DIE + 2 * GAP), y, DIE, face, options.sides, role))
    title, about = _description(options, open_tiles, faces)
    shapes.append(Words(title, width / 2, y + DIE + 22, 17))
    return Scene(title, about, width, y + DIE + 38, tuple(shapes))


def _description(options: Options, open_tiles: list[int], faces: list[int]) -> tuple[str, str]:
    if not open_tiles:
        return "all tiles are shut", "All tiles are shut: the box is won."
    rolled = f"rolled {listed(list(map(str, faces)))}"
    if not faces:
        rolled = f"before the roll of {options.dice} dice" if options.dice > 1 else "before a roll"
    shut = [str(k) for k in range(1, options.tiles + 1) if k not in open_tiles]
    about = f"Open: {listed(list(map(str, open_tiles)))}. Shut: {listed(shut)}. "
    return rolled, about + f"{capital(rolled)}."
