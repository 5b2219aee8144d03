"""The full table of Goofspiel: layers of hands of one size, filled by the kernels.

See `tiers` for the order of the states in a layer, `kernel` for how one is filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.game.coded import Coded, coded_sets, set_text
from luckbase.solver.game.decisions import Decisions
from luckbase.solver.game.game import Game, Stopped, load_game
from luckbase.solver.games.goofspiel import patterns, rules, tiers
from luckbase.solver.games.goofspiel.batches import COUNTS, GAP, tally_of
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.kernel import solve_for_points, solve_for_winning
from luckbase.solver.matrix_game.simplex import solve_game
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
        self._paths = patterns.path_counts()

    def layer(self, size: int) -> tiers.Layer:
        """The layer of hands of `size` cards."""
        return tiers.layer(self.cards, self.win, size)

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
        upcards, targets = tiers.upcards(self.cards, tier)
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
        sizes = tiers.sizes_of(mine.reshape(-1, 1))[:, 0]
        tier = np.where(sizes == 0, -1, np.where(upcard > 0, 0, sizes))
        number = tiers.pattern_numbers(self._paths, self.cards, mine, theirs)
        row = np.full(len(states), -1, np.int64)
        ranks = tiers.deck_ranks(self.cards)
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
        found: NDArray[np.bool_] = tiers.pattern_numbers(self._paths, self.cards, mine, theirs) < 0
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


def patterns_of(paths: NDArray[np.int64], layer: tiers.Layer, numbers: Ints) -> Ints:
    """int64 (n, 2): the hands of canonical patterns (n,) of a layer."""
    found: Ints = tiers.hands_of(paths, layer.cards, layer.size, np.ascontiguousarray(numbers))
    return found
