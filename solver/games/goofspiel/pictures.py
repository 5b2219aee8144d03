"""The charts of Goofspiel, as `solver.charts.model` has them: the first move (`tables`).

``bids`` is the table of docs/sources.md#rhoads-and-bartholdi-2012, an optimal lottery over the bids
for each upcard; ``parity`` what they saw in it: bids have the upcard's parity, and some cards are
never bid; ``upcard`` the picture.
"""

from __future__ import annotations

import numpy as np

from luckbase.solver.charts.model import DECIMALS, Heatmap, Kind, Listing, Look, Wanted
from luckbase.solver.errors import OptionError
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.tables import FirstBids, first_bids, parity_lines, table_lines

KINDS = (
    Kind("bids", "the first move: an optimal lottery over the bids for each upcard"),
    Kind(
        "parity", "the first move: how often the bid has the upcard's parity, and never bid cards"
    ),
    Kind("upcard", "the first move: the chance of each bid by upcard", picture=True),
)
PRINTED = 6
"""Decimals of a chance for people; the published tables have 3 or 4."""


class FirstMove(Charts):
    """The charts of the first move (module docstring)."""

    kinds = KINDS

    def __init__(self, game: Game) -> None:
        self.game = game

    def make(self, name: str, look: Look, wanted: Wanted) -> Listing | Heatmap:
        return _make(self.game, name, look, wanted)


def _make(game: Game, name: str, look: Look, wanted: Wanted) -> Listing | Heatmap:
    if wanted.fields or wanted.reachable:
        what = "FIELD=VALUE" if wanted.fields else "--reachable"
        raise OptionError(f"{what}: charts of Goofspiel are of the first move; leave it out")
    found = first_bids(game, look)
    if name == "upcard":
        return _picture(game, found)
    lines = table_lines(found, PRINTED) if name == "bids" else parity_lines(found)
    star = "" if found.unique.all() else " A star: other lotteries are optimal too."
    note = (
        f"bids in rows, upcards in columns; every game's gap is at most {found.gap:.1e}.{star}"
        if name == "bids"
        else "by upcard: the chance that the bid has its parity, the bids, the cards never bid"
    )
    if name == "parity":
        columns: tuple[str, ...] = ("upcard", "same_parity", "bids", "never")
        rows = tuple(
            (k + 1, round(float(found.same_parity[k]), DECIMALS), _words(found.supports[k]),
             _words(found.never[k]))
            for k in range(found.cards)
        )  # fmt: skip
        return Listing(tuple(lines), columns, rows, note)
    columns = ("upcard", "bid", "chance", "least", "most")
    table = tuple(
        (k + 1, bid + 1, *(round(max(float(part[bid, k]), 0.0), places) for part, places in
                           ((found.chances, DECIMALS), (found.least, 5), (found.most, 5))))
        for k in range(found.cards)
        for bid in range(found.cards)
    )  # fmt: skip
    return Listing(tuple(lines), columns, table, note)


def _words(cards: tuple[int, ...]) -> str:
    return " ".join(map(str, cards))


def _picture(game: Game, found: FirstBids) -> Heatmap:
    """The chance of each bid as colour, by upcard."""
    same = float(found.same_parity.mean())
    assert isinstance(game.board, GoofspielBoard)
    cards, win = game.board.rules.cards, game.board.rules.objective == "win"
    goal = "to finish ahead" if win else "for points"
    return Heatmap(
        title=f"{same:.0%} of the first bids have the upcard's parity",
        about=f"Goofspiel with {cards} cards a hand, {goal}, both play optimally",
        names=("upcard", "bid", "chance"),
        xs=np.arange(1, cards + 1),
        ys=np.arange(1, cards + 1),
        values=np.ascontiguousarray(found.chances.T),
        x_label="the card that is turned up",
        y_label="my bid",
        colour_label="chance of the bid",
        blank=np.ascontiguousarray(found.chances.T <= 1e-6),
        limits=(0.0, float(found.chances.max())),
    )
