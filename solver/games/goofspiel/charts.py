"""The charts of Goofspiel, as `solver.charts` has them: a move and the lead, and a
state as the game looks.

``bids`` is the table of docs/sources.md#rhoads-and-bartholdi-2012, an optimal lottery over the bids
for each upcard; ``parity`` what they saw in it: bids have the upcard's parity, and some cards are
never bid; ``upcard`` the picture. They are of the first move, or of any position before a card is
turned up, in the fields of a state. Where the game is to finish ahead, ``lead`` is the chance of it
over the lead.

A move in numbers: the tables of the paper, and the parity that it found in them.

`first_bids` solves the games of the first move, or of any other position before a card is turned
up, an upcard each, from the payoffs of the states below, which `lookup` gives. `table_lines` writes
them as the paper prints them, bids as rows and upcards as columns; `parity_lines` says for each
upcard what it saw:

* one should in general bid a card of the upcard's parity: `FirstBids.same_parity` is the chance of
  it;
* on the highest card N never N - 1 nor N - 2, and with even N never the 1: `FirstBids.supports` are
  the bids with a chance above `SEEN`, and `never` says of which cards no optimal lottery has more,
  whatever lottery was found.

At the start both hands are equal, so the value of every upcard is that of a draw.

Source: docs/sources.md#rhoads-and-bartholdi-2012, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts import (
    DECIMALS,
    Chart,
    ChartRequest,
    Curve,
    Curves,
    Heatmap,
    Kind,
    Listing,
    Lookup,
    aligned,
)
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts, Drawing, detailed, simplify
from luckbase.solver.game.fields import members
from luckbase.solver.game.game import Game
from luckbase.solver.games.goofspiel import rules
from luckbase.solver.games.goofspiel.board import Rules as Options
from luckbase.solver.games.goofspiel.game import options_of
from luckbase.solver.matrix_game import certified as matrix_game
from luckbase.solver.scene import CHANCE, GONE, QUIET, UP, Box, Scene, Shape, Words, listed
from luckbase.solver.search.bellman import evaluate, solved_games
from luckbase.solver.search.expand import expand

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
        self.game, self.options = game, options_of(game)
        self.win = self.options.objective == "win"
        self.kinds = (*KINDS, LEAD) if self.win else KINDS

    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Chart:
        request.refuse_reachable("charts of Goofspiel are of one move")
        if name == "lead":
            return self._lead(lookup, request.fields)
        found = first_bids(self.game, lookup, request.fields)
        if name == "upcard":
            return self._picture(found, request.fields)
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

    def _lead(self, lookup: Lookup, fields: Mapping[str, str]) -> Curves:
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
            chances[np.abs(leads) <= self._most_lead(stage)] = lookup(
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
    return Listing(table_lines(found, PRINTED), columns, table, note)


def _parity(found: FirstBids) -> Listing:
    note = "by upcard: the chance that the bid has its parity, the bids, the cards never bid"
    columns = ("upcard", "same_parity", "bids", "never")
    rows = tuple(
        (upcard, round(float(found.same_parity[k]), DECIMALS), _joined(found.supports[k]),
         _joined(found.never[k]))
        for k, upcard in enumerate(found.deck)
    )  # fmt: skip
    return Listing(parity_lines(found), columns, rows, note)


def _joined(cards: tuple[int, ...]) -> str:
    return " ".join(map(str, cards))


SEEN = 1e-6
"""The chance above which a card is bid."""
UNIQUE = 1e-4
"""A card whose weight can change by more leaves room for another optimal strategy."""
NEVER = 1e-5
"""`matrix_game.ranges` is good to 1e-6: a card that can have no more than this is never bid."""


@dataclass(frozen=True, eq=False)
class FirstBids:
    """The first move with N cards, or a later one with N cards left; arrays by upcard, or (bids,
    upcards), both ascending.

    hand, deck: the cards (N,) that can be bid and turned up. chances: float64 (N, N), an optimal
    lottery over the bids (rows) on each upcard (columns). least, most: float64 (N, N), how small
    and how large each of them can be in an optimal lottery. values: float64 (N,), player one's
    payoff. gaps: float64 (N,), how far the bounds lie apart that the two players' lotteries prove.
    unique: bool (N,), whether no other lottery is optimal.
    """

    hand: tuple[int, ...]
    deck: tuple[int, ...]
    chances: Floats
    least: Floats
    most: Floats
    values: Floats
    gaps: Floats
    unique: NDArray[np.bool_]

    @property
    def cards(self) -> int:
        """N."""
        return len(self.values)

    @property
    def gap(self) -> float:
        """The worst of the gaps."""
        return float(self.gaps.max())

    @property
    def supports(self) -> tuple[tuple[int, ...], ...]:
        """By upcard: the cards that are bid with a chance above `SEEN`, ascending."""
        return self._cards(self.chances > SEEN)

    @property
    def never(self) -> tuple[tuple[int, ...], ...]:
        """By upcard: the cards that no optimal lottery bids, ascending."""
        return self._cards(self.most <= NEVER)

    def _cards(self, chosen: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
        """The cards of each column of (bids, upcards)."""
        hand = np.array(self.hand)
        return tuple(tuple(hand[column].tolist()) for column in chosen.T)

    @property
    def same_parity(self) -> Floats:
        """float64 (N,), by upcard: the chance to bid an odd card on an odd one, an even one on an
        even one."""
        same = np.subtract.outer(np.array(self.hand), np.array(self.deck)) % 2 == 0
        chances: Floats = np.where(same, self.chances, 0.0).sum(axis=0)
        return chances


def first_bids(game: Game, lookup: Lookup, words: Mapping[str, object] | None = None) -> FirstBids:
    """The first move of a game, or that of the position in words (``mine``, ``theirs``, ``deck``,
    ``lead``), from the payoffs of the states that it leads to.

    Raises StateError for no position, for one with an upcard and for one without any card.
    """
    own = detailed(game)  # in the cards that were named
    values = own.fields.read(words or game.describe(game.needed_start()))
    if values[rules.UPCARD]:
        raise StateError("upcard: a chart is of every card of the deck; leave it out")
    if words:
        game.parse(words)  # or its sentence
    hand, deck = (members(int(values[at])) for at in (rules.MINE, rules.DECK))
    if not deck:
        raise StateError("deck: no card is left to turn up")
    states = np.repeat(own.fields.numbers(values), len(deck), axis=0)
    states[:, rules.UPCARD] = deck
    edges = expand(own, states)
    q = evaluate(edges, lookup(simplify(game, edges.children)))
    ((_, solved),) = solved_games(q, np.arange(len(deck)))  # all of one shape
    games = q.values[:, 0].reshape(len(deck), len(hand), -1)
    least, most = matrix_game.all_ranges(games).T
    return FirstBids(
        hand=tuple(hand), deck=tuple(deck), chances=solved.row_strategies.T, least=least,
        most=most, values=solved.values, gaps=solved.gaps,
        unique=np.max(most - least, axis=0) < UNIQUE,
    )  # fmt: skip


def table_lines(found: FirstBids, decimals: int = 4) -> tuple[str, ...]:
    """The table as the paper prints it: a line of upcards, then one a bid; 0 is a bid not made. A
    star behind an upcard says that another lottery is optimal too."""
    unique = zip(found.deck, found.unique.tolist(), strict=True)
    heads = [f"{upcard}" + ("" if one else "*") for upcard, one in unique]
    lines = [["", *heads]]
    for bid, row in zip(found.hand, found.chances.tolist(), strict=True):
        cells = [f"{chance:.{decimals}f}" if chance > SEEN else "0" for chance in row]
        lines.append([f"{bid}", *cells])
    return aligned(lines)


def parity_lines(found: FirstBids) -> tuple[str, ...]:
    """For each upcard the cards that are bid, the chance that the bid has the upcard's parity, and
    the cards that no optimal lottery bids."""
    lines = [["upcard", "same parity", "bids", "never"]]
    seen = zip(found.deck, found.same_parity.tolist(), found.supports, found.never, strict=True)
    for upcard, same, support, never in seen:
        lines.append([f"{upcard}", f"{same:.4f}", _words(support), _words(never)])
    return aligned(lines, words=2)


def _words(cards: tuple[int, ...]) -> str:
    return " ".join(map(str, cards)) or "-"


CARD, HIGH, GAP, HEAD, ROW = 42.0, 60.0, 8.0, 34.0, 116.0
"""A card, between cards, the words above a row, and from row to row, in units."""
MIN_CARDS = 9
"""Cards that the sheet is wide enough for, however few there are."""


def drawing(game: Game) -> Drawing:
    """The drawing of a board's states."""
    return Drawing(partial(draw, options_of(game)))


def draw(options: Options, values: Ints) -> Scene:
    """The other's hand on top, mine below; values (fields,)."""
    mine, theirs, deck = (members(int(values[i])) for i in range(rules.UPCARD))
    upcard, most = int(values[rules.UPCARD]), options.cards
    lead = int(values[rules.LEAD]) if options.objective == "win" else None
    wide = max(most, MIN_CARDS) * (CARD + GAP) + GAP
    left = (wide - most * (CARD + GAP) + GAP) / 2
    shapes: list[Shape] = []
    rows = (("player 2", "theirs", theirs), ("the deck", "deck", deck), ("player 1", "mine", mine))
    for i, (name, field, cards) in enumerate(rows):
        y = 4 + i * ROW
        role = UP if upcard and field != "deck" else ""
        head = f"{name}: {sum(cards)} points left" if field == "deck" else name
        shapes.append(Words(head, GAP, y + 11, 16, "start", bold=role == UP))
        shapes += _cards(field, cards, most, left, y + HEAD, upcard if field == "deck" else 0)
    if lead is not None:
        said = f"player 1 leads by {lead}" if lead > 0 else f"player 2 leads by {-lead}"
        shapes.append(Words(said if lead else "level", wide - GAP, 15 + ROW, 16, "end"))
    title, about = _said(mine, theirs, deck, upcard, lead)
    return Scene(title, about, wide, 3 * ROW - 12, tuple(shapes))


def _cards(
    field: str, cards: Sequence[int], most: int, left: float, y: float, upcard: int
) -> Iterator[Shape]:
    """The cards 1 to `most`, the one that is turned up raised."""
    for k in range(1, most + 1):
        there, up = k in cards, k == upcard
        role = UP if up else CHANCE if there and field == "deck" else "" if there else GONE
        about = f"the {k} {'is turned up' if up else 'is there' if there else 'is gone'}"
        yield Box("card", left + (k - 1) * (CARD + GAP), y - 9 * up, CARD, HIGH, (str(k),), role,
                  24, about, field, str(k))  # fmt: skip
    if not cards:
        yield Words("no cards", left, y + HIGH / 2, 16, "start", role=QUIET)


def _said(
    mine: list[int], theirs: list[int], deck: list[int], upcard: int, lead: int | None
) -> tuple[str, str]:
    """The title and the sentences."""
    title = "before the next prize is turned up"
    if upcard:
        title = f"the {upcard} is turned up; both bid"
    elif not deck:
        title = "the game is over"
    hands = [
        f"{who} {listed(list(map(str, cards)))}."
        for who, cards in (
            ("Player 1 holds", mine), ("Player 2 holds", theirs), ("In the deck:", deck),
        )
    ]  # fmt: skip
    if upcard:
        hands.append(f"The {upcard} is turned up.")
    if lead is not None:
        ahead = 1 if lead > 0 else 2
        hands.append(f"Player {ahead} leads by {abs(lead)}." if lead else "Both are level.")
    return title, " ".join(hands)
