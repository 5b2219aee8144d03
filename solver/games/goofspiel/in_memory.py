"""A small Goofspiel solved in memory: its layers, and the payoffs of any of its states.

For whoever needs the values of a board that has no table at hand, as the agents who play for
another objective than the board's do.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import load_game
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.layout import Layers
from luckbase.solver.graph.bellman import final_payoffs

MOST_GAMES = 400_000_000
"""Matrix games that are solved without a word: half a minute of work and half a gigabyte."""


class Solved:
    """The payoffs of a game's layers, looked up by state."""

    def __init__(self, layers: Layers, most: int = 16) -> None:
        """Solves the layers of at most so many cards."""
        self.layers, self.game = layers, layers.game
        self.payoffs: dict[int, Floats] = {}
        self.error = 0.0
        for tier in layers.tiers()[:most]:
            out = np.full(layers.shape(tier), np.nan)
            for i, (start, stop) in enumerate(layers.parts(tier)):
                bound = layers.solve_tier(
                    tier, out[start:stop], self.payoffs.__getitem__, lambda: False, i
                )
                self.error = max(self.error, bound)
            self.payoffs[tier] = out

    def look_up(self, states: Ints) -> Floats:
        """The payoffs (n, 2) of canonical states (n, fields) without an upcard; nan for a state of
        a layer that was not solved."""
        tiers, rows = self.layers.locate(states)
        found = np.full((len(states), 2), np.nan)
        if (tiers < 0).any():
            found[tiers < 0] = final_payoffs(self.game, states[tiers < 0])
        for tier, payoffs in self.payoffs.items():
            at = np.flatnonzero(tiers == tier)
            columns = self.layers.payoff_rows(tier, payoffs[rows[at]], 0, len(at))
            found[at] = np.stack(columns, axis=1)
        other = self.layers.swapped(states) & (tiers >= 0)
        found[other] = found[other, ::-1]
        return found


@lru_cache(maxsize=4)
def solved(cards: int, objective: str) -> Solved:
    """The whole game of so many cards for "points" or "win", solved once a process.

    Raises OptionError where it is too large for that.
    """
    rules = {"cards": cards, "objective": objective}
    board = GoofspielBoard.model_validate({"game": "goofspiel", "name": objective, "rules": rules})
    layers = Layers(load_game(board))
    games = sum(layers.layer(tier).games for tier in layers.tiers())
    if games > MOST_GAMES:
        raise OptionError(
            f"cards: {cards} is too many for a player who solves the game for {objective} in "
            f"memory, with {games:.1e} matrix games; write a number for which they are at most "
            f"{MOST_GAMES:.0e}, 12 for points and 10 for win"
        )
    return Solved(layers)
