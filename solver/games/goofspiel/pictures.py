"""The charts of Goofspiel, as `solver.charts.model` has them: a move (`tables`), and the lead.

``bids`` is the table of docs/sources.md#rhoads-and-bartholdi-2012, an optimal lottery over the bids
for each upcard; ``parity`` what they saw in it: bids have the upcard's parity, and some cards are
never bid; ``upcard`` the picture. They are of the first move, or of any position before a card is
turned up, in the fields of a state. Where the game is to finish ahead, ``lead`` is the chance of it
over the lead.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luckbase.solver.charts.model import (
    DECIMALS,
    Chart,
    Curve,
    Curves,
    Heatmap,
    Kind,
    Listing,
    Look,
    Wanted,
)
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.fields import members
from luckbase.solver.game.game import Game
from luckbase.solver.games.goofspiel import rules
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.tables import FirstBids, first_bids, parity_lines, table_lines
from luckbase.solver.sentences import option

KINDS = (
    Kind("bids", "the first move: an optimal lottery over the bids for each upcard"),
    Kind(
        "parity", "the first move: how often the bid has the upcard's parity, and never bid cards"
    ),
    Kind("upcard", "the first move: the chance of each bid by upcard", picture=True),
)
LEAD = Kind("lead", "the chance to finish ahead over the lead", picture=True)
"""Only where the lead counts."""
HANDS = ("mine", "theirs", "deck")
PRINTED = 6
"""Decimals of a chance for people; the published tables have 3 or 4."""


class MoveCharts(Charts):
    """The charts of a board (module docstring)."""

    def __init__(self, game: Game) -> None:
        assert isinstance(game.board, GoofspielBoard)
        self.game, self.options = game, game.board.rules
        self.win = self.options.objective == "win"
        self.kinds = (*KINDS, LEAD) if self.win else KINDS

    def make(self, name: str, look: Look, wanted: Wanted) -> Chart:
        if wanted.reachable:
            raise OptionError(
                f"{option('reachable')}: charts of Goofspiel are of one move; leave it out"
            )
        if name == "lead":
            return self._lead(look, wanted.fields)
        found = first_bids(self.game, look, wanted.fields)
        if name == "upcard":
            return self._picture(found, wanted.fields)
        return _parity(found) if name == "parity" else _bids(found)

    def _about(self, more: str = "") -> str:
        goal = "to finish ahead" if self.win else "for points"
        return (
            f"Goofspiel with {self.options.cards} cards a hand, {goal}, both play optimally{more}"
        )

    def _picture(self, found: FirstBids, fields: Mapping[str, str]) -> Heatmap:
        """The chance of each bid as colour, by upcard; blank where a card is not there."""
        cards = self.options.cards
        chances = np.full((cards, cards), np.nan)
        at = np.ix_(np.array(found.deck) - 1, np.array(found.hand) - 1)
        chances[at] = found.chances.T
        same, first = float(found.same_parity.mean()), "first " * (not fields)
        return Heatmap(
            title=f"{same:.0%} of the {first}bids have the upcard's parity",
            about=self._about() if not fields else f"Goofspiel: {_position(fields)}",
            names=("upcard", "bid", "chance"),
            xs=np.arange(1, cards + 1),
            ys=np.arange(1, cards + 1),
            values=chances,
            x_label="the card that is turned up",
            y_label="my bid",
            colour_label="chance of the bid",
            blank=~(chances > 1e-6),
            limits=(0.0, float(found.chances.max())),
        )

    def _lead(self, look: Look, fields: Mapping[str, str]) -> Curves:
        """The chance to finish ahead over the lead, of a position or of three stages."""
        if "lead" in fields or "upcard" in fields:
            name = "lead" if "lead" in fields else "upcard"
            raise StateError(f"{name}: the picture is before a card is turned, over every lead")
        stages = [self._read(fields)] if fields else self._stages()
        most = max(self._most_lead(stage) for stage in stages)
        leads = np.arange(-most, most + 1)
        curves = []
        for stage in stages:
            there = leads[np.abs(leads) <= self._most_lead(stage)]
            values = np.tile(stage, (len(there), 1))
            values[:, rules.LEAD] = there
            chances = np.full(len(leads), np.nan)
            chances[np.abs(leads) <= self._most_lead(stage)] = look(
                self.game.canonical_states(values)
            )[:, 0]
            cards = members(int(stage[rules.DECK]))
            count = f"{len(cards)} card{'s' * (len(cards) != 1)}"
            label = f"{count} left: {','.join(map(str, cards))}"
            curves.append(Curve(label, f"cards_{len(cards)}", chances))
        equal = " equal hands" if not fields else ""
        return Curves(
            _lead_title(leads, curves[len(curves) // 2]),
            self._about("," + equal) if equal else f"Goofspiel: {_position(fields)}",
            "lead", leads, tuple(curves), "my lead (points)",
            "my chance to finish ahead (a draw is a half)", limits=(0.0, 1.0),
        )  # fmt: skip

    def _read(self, fields: Mapping[str, str]) -> Ints:
        self.game.parse(fields)  # or its sentence
        return self.game.fields.read(fields)

    def _stages(self) -> list[Ints]:
        """Equal hands and an evenly spread deck: early, midway, and late in the game."""
        cards = self.options.cards
        found = []
        for left in sorted({max(1, cards - 2), max(1, (cards + 1) // 2), min(2, cards)})[::-1]:
            deck = sorted({round(x) for x in np.linspace(cards / left / 2 + 0.5, cards, left)})
            words = dict.fromkeys(HANDS, ",".join(map(str, deck)))
            found.append(self.game.fields.read(words))
        return found

    def _most_lead(self, position: Ints) -> int:
        """The points of all cards that are not in the deck."""
        cards = self.options.cards
        return cards * (cards + 1) // 2 - sum(members(int(position[rules.DECK])))


def _lead_title(leads: Ints, curve: Curve) -> str:
    """How far ahead one wins three times of four."""
    sure = leads[curve.values >= 0.75]
    if not len(sure):
        return "No lead is safe yet"
    return f"A lead of {sure[0]} wins three of four games with {curve.label.split(':')[0]}"


def _position(fields: Mapping[str, str]) -> str:
    return "  ".join(f"{name}={value}" for name, value in fields.items())


def _bids(found: FirstBids) -> Listing:
    star = "" if found.unique.all() else " A star: other lotteries are optimal too."
    note = f"bids in rows, upcards in columns; every game's gap is at most {found.gap:.1e}.{star}"
    columns = ("upcard", "bid", "chance", "least", "most")
    table = tuple(
        (upcard, bid, *(round(max(float(part[i, k]), 0.0), places) for part, places in
                        ((found.chances, DECIMALS), (found.least, 5), (found.most, 5))))
        for k, upcard in enumerate(found.deck)
        for i, bid in enumerate(found.hand)
    )  # fmt: skip
    return Listing(tuple(table_lines(found, PRINTED)), columns, table, note)


def _parity(found: FirstBids) -> Listing:
    note = "by upcard: the chance that the bid has its parity, the bids, the cards never bid"
    columns = ("upcard", "same_parity", "bids", "never")
    rows = tuple(
        (upcard, round(float(found.same_parity[k]), DECIMALS), _words(found.supports[k]),
         _words(found.never[k]))
        for k, upcard in enumerate(found.deck)
    )  # fmt: skip
    return Listing(tuple(parity_lines(found)), columns, rows, note)


def _words(cards: tuple[int, ...]) -> str:
    return " ".join(map(str, cards))
