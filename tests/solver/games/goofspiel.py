"""Goofspiel boards solved in memory, and their states looked up."""

from functools import cache
from pathlib import Path

import numpy as np

from luckbase.solver.board.file import read_board
from luckbase.solver.dense import InMemory
from luckbase.solver.game.game import load_game
from luckbase.solver.games.goofspiel.charts import first_bids
from luckbase.solver.games.goofspiel.full_table import Layers
from tests.places import BOARDS

POINTS = BOARDS / "goofspiel/points.toml"


def goofspiel(cards, objective="points"):
    """The game of so many cards."""
    return load_game(read_board(POINTS, {"cards": str(cards), "objective": objective}))


def layers(cards, objective="points"):
    """Its tiers and kernels."""
    return Layers(goofspiel(cards, objective))


def in_parts(layers, tier, below, parts):
    """A layer solved in these parts, by pretending that they are its own."""
    out = np.full(layers.shape(tier), np.nan)
    layers.parts = lambda _: parts
    for i, (start, stop) in enumerate(parts):
        layers.solve_tier(tier, out[start:stop], lambda _: below, lambda: False, i)
    del layers.parts
    return out


class Solved(InMemory[int]):
    """A game's layers in memory."""

    def look_up(self, states):
        """The payoffs (n, 2) of canonical states without an upcard; nan where there are none."""
        payoffs, result = self.lookup(states)
        return np.where(result[:, None], payoffs, np.nan)


@cache
def solved(cards, objective="points"):
    """The whole table of so many cards, solved once a session."""
    return Solved(layers(cards, objective))


def published(table):
    """Table 1 or 2 of Rhoads and Bartholdi 2012: (bids, upcards)."""
    path = Path(__file__).parents[2] / "published" / f"goofspiel-table-{table}.csv"
    return np.loadtxt(path, delimiter=",", skiprows=2)[:, 1:]


def first_move(solved, **words):
    """The optimal first bids, or those of a position."""
    return first_bids(solved.game, solved.look_up, words)


def mask(cards):
    """A set of cards as a number."""
    return sum(1 << (card - 1) for card in cards)
