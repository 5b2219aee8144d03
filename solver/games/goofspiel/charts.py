"""The charts of Goofspiel, and the drawing of a state.

``bids`` is the paper's table, an optimal lottery over the bids for each upcard; ``upcard`` is the
picture. They show the first move, or any position before a card is turned up, given by the fields
of a state (`FirstBids`).

Source: docs/numbers.md#rhoads-and-bartholdi-2012, section 4.
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
    ChartField,
    ChartRequest,
    Heatmap,
    Kind,
    Listing,
    Lookup,
    Search,
    aligned,
)
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts, Drawing, detailed, simplify
from luckbase.solver.game.fields import members
from luckbase.solver.game.game import Game
from luckbase.solver.games.goofspiel.rules import DECK, LEAD, MINE, UPCARD, Options, options_of
from luckbase.solver.matrix_games import simplex as matrix_game
from luckbase.solver.scene import CHANCE, GONE, QUIET, UP, Box, Scene, Shape, Words, listed
from luckbase.solver.search.bellman import evaluate, solved_games
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import bound, many

POSITION = (
    ChartField("mine", "My cards, as 1,2,5 (default: the whole hand)."),
    ChartField("theirs", "The opponent's cards."),
    ChartField("deck", "The remaining prizes."),
)
KINDS = (
    Kind(
        "bids", "the first move: an optimal lottery over the bids for each upcard",
        takes=POSITION,
        reading="A line for each upcard, with the chance of each bid; the chances add up to 1.",
    ),
    Kind(
        "upcard", "the first move: the chance of each bid by upcard", picture=True,
        takes=POSITION,
        reading="A column for each upcard; the brighter a cell, the likelier the bid; a bid "
        "without colour is never made.",
    ),
)  # fmt: skip
SEEN = 1e-6  # the chance above which a card counts as bid
UNIQUE = 1e-4  # if the weight of a card can change by more, another strategy is optimal too


class MoveCharts(Charts):
    kinds = KINDS

    def __init__(self, game: Game) -> None:
        self.game, self.options = game, options_of(game)
        self.win = self.options.objective == "win"
        search = Search("ahead by more than three points to come", "payoff_1>3")
        if self.win:
            search = Search("behind, and likely to finish ahead", "lead<0 payoff_1>0.5")
        self.searches = search, Search("four cards left, none turned up", "cards=4 upcard=0")

    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Chart:
        first = first_bids(self.game, lookup, request.fields)
        if name == "upcard":
            return self._picture(first, request.fields)
        return bids_of(first)

    def _about(self, fields: Mapping[str, str]) -> str:
        if fields:
            return "Goofspiel: " + "  ".join(f"{name}={value}" for name, value in fields.items())
        goal = "to finish ahead" if self.win else "for points"
        return f"Goofspiel with {self.options.cards} cards a hand, {goal}, both play optimally"

    def _picture(self, first: FirstBids, fields: Mapping[str, str]) -> Heatmap:
        """Return the chance of each bid as colour, by upcard; blank for missing cards."""
        cards = np.arange(1, self.options.cards + 1)
        chances = np.full((len(cards), len(cards)), np.nan)
        cells = np.ix_(np.array(first.deck) - 1, np.array(first.hand) - 1)
        chances[cells] = first.chances.T
        which = "first " * (not fields)
        return Heatmap(
            title=f"{first.same_parity.mean():.0%} of the {which}bids have the upcard's parity",
            about=self._about(fields),
            names=("upcard", "bid", "chance"),
            xs=cards,
            ys=cards,
            values=chances,
            x_label="the card that is turned up",
            y_label="my bid",
            colour_label="chance of the bid",
            blank=~(chances > SEEN),
            limits=(0.0, float(first.chances.max())),
        )


@dataclass(frozen=True, eq=False)
class FirstBids:
    """Optimal lotteries over the bids of a position, one for each upcard: the chance to bid hand[i]
    when deck[k] is turned up, and its bounds over all optimal lotteries (other things equal)."""

    hand: tuple[int, ...]
    deck: tuple[int, ...]
    chances: Floats  # (bids, upcards)
    least: Floats  # (bids, upcards)
    most: Floats  # (bids, upcards)
    values: Floats  # (upcards,): player one's payoff
    gaps: Floats  # (upcards,): between the bounds proved by the two players' lotteries
    unique: NDArray[np.bool_]  # (upcards,): whether no other lottery is optimal

    @property
    def same_parity(self) -> Floats:
        """(upcards,): the chance that the bid is odd exactly if the upcard is."""
        same = np.subtract.outer(np.array(self.hand), np.array(self.deck)) % 2 == 0
        return np.where(same, self.chances, 0.0).sum(axis=0)


def first_bids(game: Game, lookup: Lookup, words: Mapping[str, object] | None = None) -> FirstBids:
    """Return the bids of the first move, or of a position in words, from the next states' payoffs.
    Raises StateError for an invalid position, an upcard, or hands without cards."""
    plain = detailed(game)  # in the cards that were named
    values = plain.fields.read(words or game.describe(game.needed_start()))
    if values[UPCARD]:
        raise StateError("upcard: a chart is of every card of the deck; leave it out")
    if words:
        game.parse(words)  # raises for an invalid position
    hand, deck = (members(int(values[field])) for field in (MINE, DECK))
    if not deck:
        raise StateError("deck: no card is left to turn up")
    states = np.repeat(plain.fields.numbers(values), len(deck), axis=0)
    states[:, UPCARD] = deck
    edges = expand(plain, states)
    q = evaluate(edges, lookup(simplify(game, edges.children)))
    ((_, solved),) = solved_games(q, np.arange(len(deck)))  # all of one shape
    games = q.values[:, 0].reshape(len(deck), len(hand), -1)
    lower, upper = matrix_game.all_ranges(games).T
    chances = solved.row_strategies.T
    return FirstBids(
        tuple(hand), tuple(deck), chances, np.minimum(lower, chances), np.maximum(upper, chances),
        solved.values, solved.gaps, unique=np.max(upper - lower, axis=0) < UNIQUE,
    )  # fmt: skip


def bids_of(first: FirstBids) -> Listing:
    """Return the table as the paper prints it: a line of upcards, then one line for each bid.

    0 is a bid that is not made. A star after an upcard means that another lottery is optimal too.
    """
    stars = ["" if unique else "*" for unique in first.unique]
    lines = [["", *(f"{upcard}{star}" for upcard, star in zip(first.deck, stars, strict=True))]]
    for bid, chances in zip(first.hand, first.chances, strict=True):
        lines.append([f"{bid}", *(f"{x:.6f}" if x > SEEN else "0" for x in chances)])
    parts = ((first.chances, DECIMALS), (first.least, 5), (first.most, 5))
    rows = tuple(
        (upcard, bid, *(round(max(float(part[i, k]), 0.0), places) for part, places in parts))
        for k, upcard in enumerate(first.deck)
        for i, bid in enumerate(first.hand)
    )
    gap = bound(first.gaps.max())
    note = f"bids in rows, upcards in columns; every game's gap is at most {gap}."
    note += " A star: other lotteries are optimal too." if any(stars) else ""
    return Listing(aligned(lines), ("upcard", "bid", "chance", "least", "most"), rows, note)


CARD, HIGH, GAP, HEAD, ROW = 42.0, 60.0, 8.0, 34.0, 116.0
"""In units: the width and height of a card, the gap between cards, the height of the words above a
row, the distance between rows."""
MIN_CARDS = 9  # the sheet is wide enough for this many cards, even if there are fewer


def drawing(game: Game) -> Drawing:
    """Return the drawing of a board's states."""
    return Drawing(partial(draw, options_of(game)))


def draw(options: Options, values: Ints) -> Scene:
    """Draw the opponent's hand on top and mine below; values (fields,)."""
    mine, theirs, deck = (members(int(values[i])) for i in range(UPCARD))
    upcard, card_count = int(values[UPCARD]), options.cards
    width = max(card_count, MIN_CARDS) * (CARD + GAP) + GAP
    margin = (width - card_count * (CARD + GAP) + GAP) / 2
    shapes: list[Shape] = []
    rows = (("player 2", "theirs", theirs), ("the deck", "deck", deck), ("player 1", "mine", mine))
    for i, (name, field, cards) in enumerate(rows):
        y = 4 + i * ROW
        role = UP if upcard and field != "deck" else ""
        head = f"{name}: {many(sum(cards), 'point')} left" if field == "deck" else name
        shapes.append(Words(head, GAP, y + 11, 16, "start", bold=role == UP))
        shapes += _cards(
            field, cards, card_count, margin, y + HEAD, upcard if field == "deck" else 0
        )
    about = [
        f"{who} {listed(list(map(str, cards)))}."
        for who, cards in (
            ("Player 1 holds", mine), ("Player 2 holds", theirs), ("In the deck:", deck),
        )
    ]  # fmt: skip
    title = "before the next prize is turned up" if deck else "the game is over"
    if upcard:
        title = f"the {upcard} is turned up; both bid"
        about.append(f"The {upcard} is turned up.")
    if options.objective == "win":
        lead = int(values[LEAD])
        leads = f"player {1 if lead > 0 else 2} leads by {abs(lead)}"
        shapes.append(Words(leads if lead else "level", width - GAP, 15 + ROW, 16, "end"))
        about.append(f"{leads.capitalize()}." if lead else "Both are level.")
    return Scene(title, " ".join(about), width, 3 * ROW - 12, tuple(shapes))


def _cards(
    field: str, cards: Sequence[int], count: int, margin: float, y: float, upcard: int
) -> Iterator[Shape]:
    for k in range(1, count + 1):
        is_in, up = k in cards, k == upcard
        role = UP if up else CHANCE if is_in and field == "deck" else "" if is_in else GONE
        about = f"the {k} {'is turned up' if up else 'is there' if is_in else 'is gone'}"
        yield Box("card", margin + (k - 1) * (CARD + GAP), y - 9 * up, CARD, HIGH, (str(k),), role,
                  24, about, field, str(k))  # fmt: skip
    if not cards:
        yield Words("no cards", margin, y + HIGH / 2, 16, "start", role=QUIET)
