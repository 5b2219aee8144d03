"""A state of the n-round Pig as the game looks: the rounds above what a race shows (Skunk's)."""

from __future__ import annotations

from functools import partial

from luckbase.solver.charts.scene import Scene
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Scenes
from luckbase.solver.game.game import Game
from luckbase.solver.games.pig.board import PigRoundsBoard, RoundsRules
from luckbase.solver.games.skunk.scene import Race, draw, rounds

LEAST = 50
"""Points that the tracks show, however few there are."""


def scenes(game: Game) -> Scenes:
    """The drawing of a board's states."""
    assert isinstance(game.board, PigRoundsBoard)
    return Scenes(partial(_draw, game.board.rules))


def _draw(options: RoundsRules, values: Ints) -> Scene:
    mine, yours, turn, round_, player, *rolls = values.tolist()
    banked = (mine, yours) if player == 1 else (yours, mine)
    over = round_ > options.rounds
    winner = None
    if over and mine != yours:
        winner = 0 if banked[0] > banked[1] else 1
    end = max(LEAST, -(-(max(banked) + turn) // LEAST) * LEAST)
    race = Race(banked, turn, player - 1, end, False, rolls[0] if rolls else None, winner, over)
    above, top = rounds(options.rounds, round_)
    scene = draw(race, options.dice, options.sides, above, top)
    said = f"Round {min(round_, options.rounds)} of {options.rounds}. "
    return Scene(scene.title, said + scene.about, scene.wide, scene.high, scene.shapes)
