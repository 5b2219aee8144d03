"""The full table of Goofspiel: layers of hands of one size, filled by the kernels.

A tier is a layer: all states with hands and deck of j cards and no upcard, j = 1 .. n. It reads the
layer j - 1 only. Its rows are::

    row = canonical pattern * width + column,    column = first column of the deck + lead + reach

with a column for each deck (points), or for each deck P and each lead d, |d| <= reach(P)
(winning). Leads are undecided up to the points of P and can be reached up to the points gone, so
reach(P) = min(points of P, points of all cards - points of P).

Only canonical patterns have rows: swapping the players turns the payoffs (f, g) of a state into
(g, f) and its lead into its negative. The pattern of j ties, its own swap, is number 0; its rows
are all there (for points their value is 0), which costs next to nothing.

Decks stand innermost, because eight neighbouring decks of one pattern are solved at once and lie in
one cache line; patterns outermost, because ranges of patterns are the parts: whatever the parts, a
row is summed in the same order and has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import comb
from typing import Any, ClassVar

import numba as nb
import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Coded, Decisions, Floats, Ints, coded_sets, set_text
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.game.game import Game, Stopped, load_game
from luckbase.solver.games.goofspiel import rules
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.kernel import (
    COUNTS,
    GAP,
    solve_for_points,
    solve_for_winning,
    tally_of,
)
from luckbase.solver.games.goofspiel.rules import points_of
from luckbase.solver.matrix_game.simplex import solve_game
from luckbase.solver.njit import njit
from luckbase.solver.sentences import many

GAMES_A_CALL = 5_000_000
"""Matrix games solved between two looks at `stop`: about a second."""
CLOSED_POINTS, CLOSED_WINNING = 1e-12, 2e-14
"""The gap at which a game is solved; one that keeps a larger one is tried in other ways."""
GAME_NS = (50, 60, 70, 60, 90, 120, 140, 210, 310, 570, 960, 1750, 2500, 3500, 5000, 7000)
"""Nanoseconds a matrix game, by the hands' size, one core of a Zen 3; above 13 extrapolated."""
ERROR_A_LAYER = 10
"""How many times that a gap can be at most: `solve_tier` fails where one is larger. The value of a
game moves by no more than its entries, so errors add up over the layers and no faster."""


class Layers(Layout[int]):
    """Two players; a tier is the layer of hands of so many cards."""

    payoff_type: type[np.floating[Any]] = np.float64
    best_names: ClassVar[tuple[str, ...]] = ()
    smaller: ClassVar[str] = "fewer cards, such as cards=7,"

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        assert isinstance(game.board, GoofspielBoard)
        self.board: GoofspielBoard = game.board
        self.cards, self.points = self.board.rules.cards, self.board.rules.points
        self.win = self.board.rules.objective == "win"
        self.layer_error = ERROR_A_LAYER * (CLOSED_WINNING if self.win else CLOSED_POINTS)
        self.tallies: dict[tuple[Any, int], dict[str, float]] = {}
        self._paths = rules.path_counts()

    def layer(self, size: int) -> Layer:
        """The layer of hands of `size` cards."""
        return layer_of(self.cards, self.win, size)

    def tiers(self) -> Sequence[int]:
        return range(1, self.cards + 1)

    def children(self, tier: int) -> Sequence[int]:
        return [tier - 1] if tier > 1 else []

    def tier_number(self, tier: int) -> int:
        return tier

    def tier_fields(self, tier: int) -> dict[str, int]:
        return {"cards": tier, "upcard": 0}

    def tier_name(self, tier: int) -> str:
        return many(tier, "card")

    def shape(self, tier: int) -> tuple[int, ...]:
        return (self.rows(tier),)

    def rows(self, tier: int) -> int:
        return self.layer(tier).rows

    def block_rows(self, tier: int) -> int:
        return self.layer(tier).width

    def parts(self, tier: int) -> Sequence[tuple[int, int]]:
        return self.layer(tier).parts

    def tier_seconds(self, tier: int) -> float:
        return self.layer(tier).games * GAME_NS[min(tier, len(GAME_NS)) - 1] * 1e-9

    def compile(self) -> None:
        small = self.board.model_copy(
            update={"rules": self.board.rules.model_copy(update={"cards": 2})}
        )
        layers = Layers(load_game(small))
        below: Floats = np.zeros(0)
        for tier in layers.tiers():
            out = np.empty(layers.shape(tier))
            layers.solve_tier(tier, out, lambda _, below=below: below, lambda: False)  # type: ignore[misc]
            below = out

    def solve_tier(
        self,
        tier: int,
        out: Floats,
        fetch: Callable[[int], Floats],
        stop: Callable[[], bool],
        part: int = 0,
        decisions: Decisions | None = None,  # chance acts first in every row
    ) -> float:
        layer, under = self.layer(tier), self.layer(tier - 1)
        below = fetch(tier - 1) if tier > 1 else np.array([0.5 if self.win else 0.0])
        below = below.reshape(under.patterns, under.width)
        start, _ = self.parts(tier)[part]
        values = out.reshape(-1, layer.width)
        first, stats = start // layer.width, np.zeros(COUNTS)
        upcards, targets = upcards_of(self.cards, tier)
        step = max(1, GAMES_A_CALL // (layer.width * tier))
        for at in range(0, len(values), step):
            if stop():
                raise Stopped
            piece = values[at : at + step]
            if self.win:
                solve_for_winning(
                    solve_game, self._paths, self.cards, tier, first + at, below, upcards, targets,
                    under.columns, layer.columns, piece, CLOSED_WINNING, stats,
                )  # fmt: skip
            else:
                solve_for_points(
                    solve_game, self._paths, self.cards, tier, first + at, below, upcards,
                    targets, piece, CLOSED_POINTS, stats,
                )  # fmt: skip
        worst, most = float(stats[GAP]), self.layer_error
        if not worst <= most:
            raise ArithmeticError(f"layer {tier}: a game could not be solved: its gap is {worst:g}")
        self.tallies[tier, part] = tally_of(stats)
        return worst + (tier - 1) * most

    def take_tally(self, tier: int, part: int) -> dict[str, float]:
        return self.tallies.pop((tier, part), {})

    def payoff_rows(
        self, tier: int, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        mine = payoffs[start:stop]
        return [mine, 1.0 - mine if self.win else -mine]

    def state_rows(self, tier: int, start: int, stop: int) -> dict[str, NDArray[np.int32] | Coded]:
        layer = self.layer(tier)
        width = layer.width
        assert start % width == 0 and stop % width == 0
        numbers = np.arange(start // width, stop // width)
        hands = patterns_of(self._paths, layer, numbers).astype(np.int32)
        leads = np.diff(layer.first)
        decks = np.repeat(np.arange(len(layer.decks), dtype=np.int32), leads)
        columns: dict[str, NDArray[np.int32] | Coded] = {
            name: Coded(np.repeat(found.codes, width), found.labels)
            for name, found in (
                ("mine", coded_sets(hands[:, 0])),
                ("theirs", coded_sets(hands[:, 1])),
            )
        }
        labels = [set_text(deck) for deck in layer.decks.tolist()]
        columns["deck"] = Coded(np.tile(decks, len(numbers)), labels)
        if self.win:
            lead = np.arange(width) - np.repeat(layer.first[:-1] + layer.reach, leads)
            columns["lead"] = np.tile(lead.astype(np.int32), len(numbers))
        return columns

    def acting_rows(self, tier: int, start: int, stop: int) -> NDArray[np.int8]:
        return np.zeros(stop - start, np.int8)

    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        """(tier number, row): -1 where a state is over, 0 where its upcard is turned.

        A state and its swap have one row, which holds the payoffs of the canonical one: those of
        the other are the same two in the other order (`swapped`).
        """
        states = np.ascontiguousarray(states, np.int64).reshape(-1, self.game.field_count)
        mine, theirs, deck, upcard = (np.ascontiguousarray(states[:, i]) for i in range(4))
        sizes = rules.sizes_of(mine.reshape(-1, 1))[:, 0]
        tier = np.where(sizes == 0, -1, np.where(upcard > 0, 0, sizes))
        number = pattern_numbers(self._paths, self.cards, mine, theirs)
        row = np.full(len(states), -1, np.int64)
        ranks = deck_ranks(self.cards)
        for size in np.unique(tier[tier > 0]).tolist():
            layer, at = self.layer(size), np.flatnonzero(tier == size)
            of = ranks[deck[at]]
            column = layer.first[of] + layer.reach[of]
            if self.win:
                lead = states[at, rules.LEAD] - self.points
                column = column + np.where(number[at] < 0, -lead, lead)
            row[at] = np.where(number[at] < 0, ~number[at], number[at]) * layer.width + column
        return tier, row

    def swapped(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether the row of a state (`locate`) holds the payoffs of its players swapped."""
        states = np.ascontiguousarray(states, np.int64).reshape(-1, self.game.field_count)
        mine, theirs = (np.ascontiguousarray(states[:, i]) for i in (rules.MINE, rules.THEIRS))
        found: NDArray[np.bool_] = pattern_numbers(self._paths, self.cards, mine, theirs) < 0
        return found

    def states_at(self, tier: int, rows: Ints) -> Ints:
        layer = self.layer(tier)
        number, column = np.divmod(np.asarray(rows, np.int64), layer.width)
        of = np.searchsorted(layer.first, column, side="right") - 1
        states = np.zeros((len(number), self.game.field_count), np.int64)
        states[:, : rules.DECK] = patterns_of(self._paths, layer, number)
        states[:, rules.DECK] = layer.decks[of]
        if self.win:
            states[:, rules.LEAD] = column - layer.first[of] - layer.reach[of] + self.points
        return states

    def why_outside(self, state: Ints) -> str | None:
        if not state[rules.UPCARD]:
            return None
        return "not a row of the table, whose states have no upcard; a query works it out"

    def opening_questions(self) -> Iterator[tuple[str, dict[str, object]]]:
        every = tuple(range(1, self.cards + 1))
        for card in {self.cards, max(1, self.cards - 2), 1}:
            words = {"mine": every, "theirs": every, "deck": every, "upcard": card}
            yield f"the first bid on the {card}", words


def patterns_of(paths: NDArray[np.int64], layer: Layer, numbers: Ints) -> Ints:
    """int64 (n, 2): the hands of canonical patterns (n,) of a layer."""
    found: Ints = hands_of(paths, layer.cards, layer.size, np.ascontiguousarray(numbers))
    return found


GAMES_A_PART = 40_000_000
"""Matrix games that a part has at most: some seconds of work."""
ROWS_A_PART = 32 << 20
"""Rows that a part has at most: 256 MB of payoffs."""


@dataclass(frozen=True)
class Layer:
    """The layer of `size` cards: see the module docstring.

    decks: int64 (decks,), masks ascending. reach: int64 (decks,), 0 for points. first: int64
    (decks + 1,), the first column of each deck; its last entry is the width.
    """

    cards: int
    size: int
    patterns: int
    decks: Ints
    reach: Ints
    first: Ints

    @property
    def columns(self) -> Ints:
        """int64 (decks, 2): first column and reach of each deck."""
        return np.stack([self.first[:-1], self.reach], axis=1)

    @property
    def width(self) -> int:
        """Columns: rows a pattern."""
        return int(self.first[-1])

    @property
    def rows(self) -> int:
        """States."""
        return self.patterns * self.width

    @property
    def games(self) -> int:
        """Matrix games to be solved, those of swapped patterns left out."""
        return self.rows * self.size

    @cached_property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """Rows [start, stop) of each part: whole patterns, as equal as they can be."""
        least = max(-(-self.games // GAMES_A_PART), -(-self.rows // ROWS_A_PART))
        count = min(self.patterns, least)
        width = self.width
        bounds = [self.patterns * i // count * width for i in range(count + 1)]
        return tuple(pairwise(bounds))


@lru_cache(maxsize=64)
def layer_of(cards: int, win: bool, size: int) -> Layer:
    """The layer of hands and decks of `size` out of `cards` cards, 0 included."""
    decks = rules.decks(cards, size)
    reach = np.zeros(len(decks), np.int64)
    if win:
        points = np.array([points_of(deck) for deck in decks], np.int64)
        reach = np.minimum(points, cards * (cards + 1) // 2 - points)
    first = np.concatenate([[0], np.cumsum(2 * reach + 1)]).astype(np.int64)
    count = rules.pattern_count(rules.path_counts(), cards, size) if size else 1
    return Layer(cards, size, count, decks, reach, first)


def states_below(cards: int, win: bool, left: int) -> float:
    """About how many states can follow one with hands of `left` cards, mostly some times too many.

    With s cards left: the decks times the pairs of hands, which merge into patterns, times the
    leads (winning), each without an upcard and with each of s.
    """
    total = 0.0
    for size in range(left + 1):
        chosen = comb(left, size)
        hands = min(chosen**2, 2 * layer_of(cards, False, size).patterns)
        leads = 1.0
        if win:  # three ways a round but for the first, which the hands tell, and no more than the
            # mean deck or what is gone can be worth
            reach = min(size, left - size) * (cards + 1) / 2
            leads = min(3.0 ** max(0, left - size - 1), 2 * reach + 1)
        total += chosen * hands * leads * (1 + size)
    return total


@lru_cache(maxsize=4)
def deck_ranks(cards: int) -> Ints:
    """int64 (2 ** cards,): the number of each deck among those of its size."""
    ranks: Ints = rules.deck_ranks(cards)
    return ranks


@njit(nb.int64[::1](nb.int64[:, :, ::1], nb.int64, nb.int64[::1], nb.int64[::1]), cache=True)
def pattern_numbers(d, cards, mine, theirs):
    """int64 (n,): the pattern of each pair of hands (n,), with its sign bit."""
    found = np.empty(mine.size, np.int64)
    for i in range(mine.size):
        found[i] = rules.rank_pattern(d, cards, rules.size_of(mine[i]), mine[i], theirs[i])
    return found


@njit(nb.int64[:, ::1](nb.int64[:, :, ::1], nb.int64, nb.int64, nb.int64[::1]), cache=True)
def hands_of(d, cards, size, numbers):
    """int64 (n, 2): my hand and theirs of canonical patterns (n,)."""
    found = np.empty((numbers.size, 2), np.int64)
    for i in range(numbers.size):
        found[i] = rules.unrank_pattern(d, cards, size, numbers[i])
    return found


@lru_cache(maxsize=32)
def upcards_of(cards: int, size: int) -> tuple[Floats, Ints]:
    """What may be turned up above each deck of `size` - 1 cards: the cards that it does not have.

    The cards, float64 (cards - size + 1, decks padded to eights), from the highest down, so that
    neighbouring decks mostly have the same one; and the deck with that card, int64, -1 in padding.
    """
    under = layer_of(cards, False, size - 1)
    count = len(under.decks)
    found = np.zeros((cards - size + 1, -(-count // 8) * 8))
    targets = np.full(found.shape, -1, np.int64)
    ranks = deck_ranks(cards)
    for q, deck in enumerate(under.decks.tolist()):
        free = [k for k in range(cards, 0, -1) if not deck >> (k - 1) & 1]
        found[:, q] = free
        targets[:, q] = [ranks[deck | 1 << (k - 1)] for k in free]
    return found, targets
