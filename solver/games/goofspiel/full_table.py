"""The full table of Goofspiel: layers of hands of one size, filled by the kernels.

A tier is a layer: all states with hands and deck of j cards and no upcard, j = 1 .. n. It reads
only the layer j - 1. Its rows are::

    row = canonical pattern * width + column,    column = first column of the deck + lead + reach

There is a column for each deck (points), or for each deck P and each lead d, |d| <= reach(P)
(winning). Undecided leads are at most the points of P, and possible leads at most the points gone,
so reach(P) = min(points of P, points of all cards - points of P).

Only canonical patterns have rows: swapping the players turns the payoffs (f, g) of a state into (g,
f) and negates its lead. The pattern of j ties, which is its own swap, is number 0. It keeps all its
rows, which costs very little (for points their value is 0).

Decks are innermost, because sixteen neighbouring decks of one pattern are solved at once. Patterns
are outermost, because ranges of patterns are the parts: for any parts, a row is summed in the same
order and has the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import compile_all
from luckbase.solver.errors import Stopped
from luckbase.solver.game.arrays import Best, Coded, Floats, Ints, coded, set_text
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.games.goofspiel.kernel import (
    hands_of,
    pattern_numbers,
    solve_for_points,
    solve_for_winning,
)
from luckbase.solver.games.goofspiel.rules import (
    DECK,
    LEAD,
    UPCARD,
    GoofspielBoard,
    path_counts,
    pattern_count,
    points_of,
    sizes_of,
)
from luckbase.solver.matrix_games.simplex import solve_game
from luckbase.solver.matrix_games.sixteen_games import LANES, try_support
from luckbase.solver.sentences import many

GAMES_A_CALL = 5_000_000  # matrix games solved between two calls of `stop`: about a second
CLOSED_POINTS, CLOSED_WINNING = 1e-12, 2e-14
"""The gap at which a game is solved; with a larger gap other methods are tried."""
GAME_NS = (75, 90, 90, 55, 60, 75, 110, 150, 290, 620, 1300, 2600, 3800, 5300, 7500, 10500)
"""Nanoseconds for each matrix game, by the hands' size, on a Zen 3 core; guessed from 14 on."""
ERROR_A_LAYER = 10
"""The largest gap allowed, as a multiple of CLOSED_…; `solve_tier` fails if a gap is larger.

The value of a game changes by no more than its entries, so errors at most add up over the layers.
"""


class Layers(FullTable[int]):
    """Two players; a tier is the layer of hands of one size."""

    payoff_type: type[np.floating[Any]] = np.float64
    best_names: ClassVar[tuple[str, ...]] = ()
    smaller: ClassVar[str] = "fewer cards, such as cards=7,"

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        assert isinstance(game.board, GoofspielBoard)
        options = game.board.rules
        self.cards, self.points = options.cards, options.points
        self.win = options.objective == "win"
        self.layer_error = ERROR_A_LAYER * (CLOSED_WINNING if self.win else CLOSED_POINTS)

    def layer(self, tier: int) -> Layer:
        return layer_of(self.cards, self.win, tier)

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

    def rows(self, tier: int) -> int:
        return self.layer(tier).rows

    def block_rows(self, tier: int) -> int:
        return self.layer(tier).width

    def parts(self, tier: int) -> Sequence[tuple[int, int]]:
        return self.layer(tier).parts

    def tier_seconds(self, tier: int) -> float:
        return self.layer(tier).work * 1e-9

    def compile(self) -> None:
        layers = layers_of(2, "win" if self.win else "points")
        payoffs: dict[int, Floats] = {}
        for tier in layers.tiers():
            payoffs[tier] = np.empty(layers.shape(tier))
            layers.solve_tier(tier, payoffs[tier], payoffs.__getitem__, lambda: False)
        compile_all(hands_of)

    def solve_tier(
        self,
        tier: int,
        out: Floats,
        fetch: Callable[[int], Floats],
        stop: Callable[[], bool],
        part: int = 0,
        best: Best | None = None,  # chance acts first in every row
    ) -> float:
        layer, under = self.layer(tier), self.layer(tier - 1)
        below = fetch(tier - 1).reshape(-1) if tier > 1 else np.array([0.5 if self.win else 0.0])
        starts = np.arange(under.patterns) * under.width
        upcards, targets = upcards_of(self.cards, tier - 1)
        slots = targets if self.win else slots_of(targets, layer.width)
        values = out.reshape(-1, layer.width)
        values[:] = 0.0
        first, worst = self.parts(tier)[part][0] // layer.width, 0.0
        step = max(1, GAMES_A_CALL // (layer.width * tier))
        for start in range(0, len(values), step):
            if stop():
                raise Stopped
            piece = values[start : start + step]
            solvers = solve_game, try_support
            pattern = (*solvers, path_counts(), self.cards, tier, first + start, below, starts)
            if self.win:
                columns, how = (under.columns, layer.columns), (piece, CLOSED_WINNING, LANES)
                gap = solve_for_winning(*pattern, upcards, slots, *columns, *how)
            else:
                how = piece, CLOSED_POINTS, LANES
                gap = solve_for_points(*pattern, under.width, upcards, slots, *how)
            worst = max(worst, gap)
        bound = self.layer_error
        if not worst <= bound:
            raise ArithmeticError(f"layer {tier}: a game could not be solved: its gap is {worst:g}")
        return worst + (tier - 1) * bound

    def most_error(self, tier: int) -> float:
        return tier * self.layer_error

    def payoff_rows(
        self, tier: int, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        first = payoffs[start:stop]
        return [first, 1.0 - first if self.win else -first]

    def state_rows(self, tier: int, start: int, stop: int) -> dict[str, NDArray[np.int32] | Coded]:
        layer = self.layer(tier)
        width = layer.width
        assert start % width == 0 and stop % width == 0
        numbers = np.arange(start // width, stop // width)
        columns: dict[str, NDArray[np.int32] | Coded] = {}
        for name, hands in zip(("mine", "theirs"), self._hands(tier, numbers).T, strict=True):
            words = coded(hands, set_text)
            columns[name] = Coded(np.repeat(words.codes, width), words.labels)
        leads = np.diff(layer.first)
        decks = np.repeat(np.arange(len(layer.decks), dtype=np.int32), leads)
        labels = [set_text(deck) for deck in layer.decks.tolist()]
        columns["deck"] = Coded(np.tile(decks, len(numbers)), labels)
        if self.win:
            lead = np.arange(width) - np.repeat(layer.first[:-1] + layer.reach, leads)
            columns["lead"] = np.tile(lead.astype(np.int32), len(numbers))
        return columns

    def acting_rows(self, tier: int, start: int, stop: int) -> NDArray[np.int8]:
        return np.zeros(stop - start, np.int8)

    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        """Return (tier number, row); the tier is -1 at the end, 0 if the upcard is turned. A state
        and its swap (`swapped`) share a row, which holds the payoffs of the canonical one."""
        states, sizes, pattern = self._patterns(states)
        deck, upcard = states[:, DECK], states[:, UPCARD]
        tier = np.where(sizes == 0, -1, np.where(upcard > 0, 0, sizes))
        row = np.full(len(states), -1, np.int64)
        ranks = deck_ranks(self.cards)
        for tier_number in np.unique(tier[tier > 0]).tolist():
            layer, here = self.layer(tier_number), np.flatnonzero(tier == tier_number)
            rank = ranks[deck[here]]
            column = layer.first[rank] + layer.reach[rank]
            if self.win:
                lead = states[here, LEAD] - self.points
                column = column + np.where(pattern[here] < 0, -lead, lead)
            row[here] = np.maximum(pattern[here], ~pattern[here]) * layer.width + column
        return tier, row

    def swapped(self, states: Ints) -> NDArray[np.bool_]:
        return self._patterns(states)[2] < 0

    def _patterns(self, states: Ints) -> tuple[Ints, Ints, Ints]:
        """Return states (n, fields), the sizes of their hands, and their signed patterns (n,)."""
        states = np.ascontiguousarray(states, np.int64).reshape(-1, self.game.field_count)
        return states, *pattern_numbers(path_counts(), self.cards, states)

    def _hands(self, tier: int, numbers: Ints) -> Ints:
        numbers = np.ascontiguousarray(numbers)
        return hands_of(path_counts(), self.cards, tier, numbers)

    def states_at(self, tier: int, rows: Ints) -> Ints:
        layer = self.layer(tier)
        number, column = np.divmod(np.asarray(rows, np.int64), layer.width)
        deck = np.searchsorted(layer.first, column, side="right") - 1
        states = np.zeros((len(number), self.game.field_count), np.int64)
        states[:, :DECK] = self._hands(tier, number)
        states[:, DECK] = layer.decks[deck]
        if self.win:
            states[:, LEAD] = column - layer.first[deck] - layer.reach[deck] + self.points
        return states

    def why_outside(self, state: Ints) -> str | None:
        if not state[UPCARD]:
            return None
        return "not a row of the table, which keeps no upcards; luckbase query works it out"

    def opening_questions(self) -> Iterator[tuple[str, dict[str, object]]]:
        hand = tuple(range(1, self.cards + 1))
        for card in {self.cards, max(1, self.cards - 2), 1}:
            words = {"mine": hand, "theirs": hand, "deck": hand, "upcard": card}
            yield f"the first bid on the {card}", words


def layers_of(cards: int, objective: str) -> Layers:
    """Return the layers of the game with this many cards, for "points" or "win"."""
    rules = {"cards": cards, "objective": objective}
    board = GoofspielBoard.model_validate({"game": "goofspiel", "name": objective, "rules": rules})
    return Layers(load_game(board))


GAMES_A_PART = 40_000_000
PART_NS = 24e9
"""The most matrix games of a part, and the most core time by `GAME_NS`. Up to 13 cards the number
of games determines the number of parts."""
ROWS_A_PART = 32 << 20  # the most rows of a part: 256 MB of payoffs


@dataclass(frozen=True)
class Layer:
    """The layer of `size` cards (module docstring)."""

    size: int
    patterns: int
    decks: Ints  # (decks,): masks, ascending
    reach: Ints  # (decks,): 0 for points
    first: Ints  # (decks + 1,): the first column of each deck; the last entry is the width

    @property
    def columns(self) -> Ints:
        """int64 (decks, 2): first column and reach of each deck."""
        return np.stack([self.first[:-1], self.reach], axis=1)

    @property
    def width(self) -> int:
        """The number of columns: rows of each pattern."""
        return int(self.first[-1])

    @property
    def rows(self) -> int:
        """The number of states."""
        return self.patterns * self.width

    @property
    def games(self) -> int:
        """The number of matrix games to solve, without swapped patterns."""
        return self.rows * self.size

    @property
    def work(self) -> float:
        """Estimated nanoseconds on one core."""
        return self.games * GAME_NS[min(self.size, len(GAME_NS)) - 1]

    @cached_property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """Rows [start, stop) of each part: whole patterns, divided as evenly as possible."""
        fewest = max(
            -(-self.games // GAMES_A_PART),
            -(-self.rows // ROWS_A_PART),
            math.ceil(self.work / PART_NS),
        )
        count = min(self.patterns, fewest)
        return tuple(pairwise(self.patterns * i // count * self.width for i in range(count + 1)))


@lru_cache(maxsize=64)
def layer_of(cards: int, win: bool, size: int) -> Layer:
    """Return the layer of hands and decks of `size` out of `cards` cards; the size may be 0."""
    decks = decks_of(cards, size)
    points = np.array([points_of(deck) for deck in decks], np.int64)
    reach = np.minimum(points, cards * (cards + 1) // 2 - points) * win
    first = np.concatenate([[0], np.cumsum(2 * reach + 1)])
    return Layer(size, pattern_count(cards, size), decks, reach, first)


def decks_of(cards: int, size: int) -> Ints:
    """Return the masks of all decks of `size` cards, ascending."""
    return np.flatnonzero(sizes_of(np.arange(1 << cards)) == size)


@lru_cache(maxsize=4)
def deck_ranks(cards: int) -> Ints:
    """Return the number of each deck among the decks of its size: int64 (2 ** cards,)."""
    ranks = np.empty(1 << cards, np.int64)
    for size in range(cards + 1):
        decks = decks_of(cards, size)
        ranks[decks] = np.arange(len(decks))
    return ranks


@lru_cache(maxsize=32)
def upcards_of(cards: int, size: int) -> tuple[Floats, Ints]:
    """Return the cards missing from each deck of `size` cards, float64 (cards a deck, decks padded
    to sixteens), from the highest down, so that neighbouring decks mostly have the same one; and
    the deck with that card, -1 in padding."""
    decks = decks_of(cards, size)
    turned = np.ascontiguousarray(np.array([
        [k for k in range(cards, 0, -1) if not deck >> (k - 1) & 1] for deck in decks.tolist()
    ]).T)  # fmt: skip
    padded = -len(decks) % LANES
    targets = deck_ranks(cards)[decks | 1 << (turned - 1)]
    return (
        np.pad(turned.astype(np.float64), ((0, 0), (0, padded))),
        np.pad(targets, ((0, 0), (0, padded)), constant_values=-1),
    )


def slots_of(targets: Ints, decks: int) -> Ints:
    """Return the places of each deck in flat `targets`, ascending: int64 (decks, cards of each)."""
    order: Ints = np.argsort(targets, axis=None, kind="stable")
    return np.ascontiguousarray(order[np.count_nonzero(targets < 0) :].reshape(decks, -1))
