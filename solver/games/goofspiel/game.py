"""Goofspiel bound to a board: what `solver.game.rules` asks of every game.

The fields are ``mine=1,2,5 theirs=2,3,4 deck=1,4,5 upcard=4 lead=0``: no `upcard` before it is
turned; the upcard stands in `deck`; `lead`, my points minus theirs, only where the objective is
winning. As a column (`canonical_states`) a hand or a deck is one number, card k counting
2 ** (k - 1), and no upcard is 0.

Hands are canonical on their lowest ranks, so a state does not say which cards were asked for; an
answer in the cards of the person comes from `strategies`. On a board with `keep_cards` they keep
their cards, for agents who look at them, and there is no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board.model import Board, nearest
from luckbase.solver.charts.model import Heatmap, Kind, Listing, Look, Wanted
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.coded import Coded, coded_sets, set_text
from luckbase.solver.game.decisions import Decisions
from luckbase.solver.game.rules import Floats, Ints, Stopped
from luckbase.solver.game.tiered import TieredGame
from luckbase.solver.game.transition import JOINT, Numbers, Transition
from luckbase.solver.games.goofspiel import patterns, rules, tiers
from luckbase.solver.games.goofspiel.batches import COUNTS, GAP, tally_of
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.kernel import solve_for_points, solve_for_winning
from luckbase.solver.games.goofspiel.words import cards_of, mask_of, no_card, no_set, unequal, whole
from luckbase.solver.matrix_game.simplex import solve_game

GAMES_A_CALL = 5_000_000
"""Matrix games solved between two looks at `stop`: about a second."""
CLOSED_POINTS, CLOSED_WINNING = 1e-12, 2e-14
"""The gap at which a game is solved; one that keeps a larger one is tried in other ways."""
GAME_NS = (50, 60, 70, 60, 90, 120, 140, 210, 310, 570, 960, 1750, 2500, 3500, 5000, 7000)
"""Nanoseconds a matrix game, by the hands' size, one core of a Zen 3; above 13 extrapolated."""
ERROR_A_LAYER = 10
"""How many times that a gap can be at most: `solve_tier` fails where one is larger. The value of a
game moves by no more than its entries, so errors add up over the layers and no faster."""


class Goofspiel(TieredGame[int]):
    """Two players; see `rules` for the game, `tiers` for the order of the states."""

    rules_version: ClassVar[int] = 1
    players: ClassVar[int] = 2
    fields: ClassVar[tuple[tuple[str, int], ...]] = tuple(
        (name, 1) for name in ("mine", "theirs", "deck", "upcard", "lead")
    )
    sets: ClassVar[frozenset[str]] = frozenset({"mine", "theirs", "deck"})
    tie_tolerance: ClassVar[float] = 1e-9
    payoff_type: ClassVar[type[np.floating[Any]]] = np.float64
    simultaneous: ClassVar[bool] = True
    pays: ClassVar[bool] = True  # for points; for winning the lead says all
    best_names: ClassVar[tuple[str, ...]] = ()
    smaller: ClassVar[str] = "fewer cards, such as --set cards=7,"

    def __init__(self, board: Board) -> None:
        assert isinstance(board, GoofspielBoard)
        super().__init__(board)
        self.board: GoofspielBoard = board
        self.cards = board.rules.cards
        self.win = board.rules.objective == "win"
        self.points = self.cards * (self.cards + 1) // 2
        self.max_edges = self.cards**2
        bits = [self.cards] * 3 + [5]
        if self.win:
            self.payoff_name = "chance to finish ahead"
            self.pays = False  # type: ignore[misc]
            bits.append(9)
        else:  # without a lead
            self.fields = type(self).fields[:-1]  # type: ignore[misc]
            self.payoff_range = (-float(self.points), float(self.points))
            self.payoff_name = "expected points ahead"
        self.bits = np.array(bits)
        self.layer_error = ERROR_A_LAYER * (CLOSED_WINNING if self.win else CLOSED_POINTS)
        self.tallies: dict[tuple[Any, int], dict[str, float]] = {}
        self._paths = patterns.path_counts()

    # --- rules -------------------------------------------------------------------------------

    @property
    def transition(self) -> Transition:
        return rules.transition

    @cached_property
    def numbers(self) -> Numbers:
        return Numbers(*rules.numbers(self.board.rules))

    def start(self) -> Ints:
        every = (1 << self.cards) - 1
        return np.array([every] * 3 + [0] + [self.points] * self.win, np.int64)

    def parse(self, words: Mapping[str, str]) -> Ints:
        names = [name for name, _ in self.fields]
        for name in words:
            if name == "lead" and not self.win:
                raise StateError("lead is for boards with objective = 'win'; leave it out")
            if name not in names:
                raise StateError(f"unknown field '{name}'; {nearest(name, names)}")
        for name in ("mine", "theirs", "deck"):
            if name not in words:
                raise StateError(f"{name} is missing; write its cards as {name}=1,2,5")
        values = [mask_of(name, words[name], self.cards) for name in ("mine", "theirs", "deck")]
        values.append(whole("upcard", words.get("upcard", "0")))
        if "upcard" in words and not 1 <= values[3] <= self.cards:
            raise StateError(f"upcard: {no_card(values[3], self.cards)}")
        if self.win:
            values.append(whole("lead", words.get("lead", "0")))
        found: Ints = self.canonical_states(np.array([values], np.int64))[0]
        return found

    def canonical_states(self, values: Ints) -> Ints:
        states = np.array(values, np.int64, order="C").reshape(-1, self.field_count)
        every = (1 << self.cards) - 1

        def refuse(wrong: NDArray[np.bool_], sentence: Callable[[int], str]) -> None:
            if wrong.any():
                x = int(np.flatnonzero(wrong)[0])
                raise StateError((f"row {x + 1}: " if len(states) > 1 else "") + sentence(x))

        for i, name in enumerate(("mine", "theirs", "deck")):
            refuse((states[:, i] < 0) | (states[:, i] > every), no_set(name, states[:, i], every))
        sizes = tiers.sizes_of(np.ascontiguousarray(states[:, : rules.UPCARD]))
        for i, name in ((rules.THEIRS, "theirs"), (rules.DECK, "deck")):
            refuse(sizes[:, i] != sizes[:, 0], unequal(name, sizes[:, i], sizes[:, 0]))
        deck, upcard = states[:, rules.DECK], states[:, rules.UPCARD]
        off = (upcard < 0) | (upcard > self.cards)
        refuse(off, lambda x: f"upcard: {no_card(int(upcard[x]), self.cards)}")
        absent = (upcard > 0) & (deck >> np.maximum(upcard - 1, 0) & 1 == 0)
        refuse(absent, lambda x: f"upcard: {upcard[x]} is not in the deck; it still stands in deck")
        if self.win:
            gone = self.points - np.array([rules.points_of(each) for each in deck], np.int64)
            lead = states[:, rules.LEAD]
            over = (sizes[:, 0] == 0) & (np.abs(lead) <= self.points)
            refuse(
                (np.abs(lead) > gone) & ~over,
                lambda x: f"lead: {lead[x]} is more than the {gone[x]} points that are gone",
            )
            states[:, rules.LEAD] += self.points
        rules.make_all_canonical(self.numbers.ints, states)
        return states

    def describe(self, state: Ints) -> dict[str, Any]:
        hands = zip(("mine", "theirs", "deck"), state.tolist(), strict=False)
        said: dict[str, Any] = {name: cards_of(mask) for name, mask in hands}
        if state[rules.UPCARD]:
            said["upcard"] = int(state[rules.UPCARD])
        if self.win:
            said["lead"] = int(state[rules.LEAD]) - self.points
        return said

    def action_name(self, action: int) -> str:
        """``3 against 5`` for a joint action, in the ranks of the canonical hands."""
        return f"{action // JOINT + 1} against {action % JOINT + 1}"

    def charts(self) -> Sequence[Kind]:
        from luckbase.solver.games.goofspiel.pictures import KINDS

        return KINDS

    def chart(self, name: str, look: Look, wanted: Wanted) -> Listing | Heatmap:
        from luckbase.solver.games.goofspiel.pictures import make

        return make(self, name, look, wanted)

    def choice_names(self, words: Mapping[str, str], player: int, count: int) -> list[str]:
        name = ("mine", "theirs")[player]
        return [f"bid {card}" for card in cards_of(mask_of(name, words[name], self.cards))]

    def agents(self) -> Mapping[str, Any]:
        from luckbase.solver.games.goofspiel.agents import AGENTS

        return AGENTS

    def plain(self) -> Goofspiel:
        return self._keeping(False)

    def detailed(self) -> Goofspiel:
        return self._keeping(True)

    def _keeping(self, keep: bool) -> Goofspiel:
        """The same board with or without `keep_cards`."""
        if self.board.rules.keep_cards == keep:
            return self
        kept = self.board.rules.model_copy(update={"keep_cards": keep})
        return Goofspiel(self.board.model_copy(update={"rules": kept}))

    def simplify(self, states: Ints) -> Ints:
        found = np.array(states, np.int64, order="C")
        rules.make_all_canonical(self.numbers.ints, found)
        return found

    def as_seen_by(self, player: int, state: Ints) -> Ints:
        seen = np.array(state, np.int64)
        if player == 1:
            seen[[rules.MINE, rules.THEIRS]] = seen[[rules.THEIRS, rules.MINE]]
            if self.win:
                seen[rules.LEAD] = 2 * self.points - seen[rules.LEAD]
        return seen

    def states_below(self, state: Ints) -> float:
        left = int(patterns.size_of(int(state[rules.MINE])))
        return tiers.states_below(self.cards, self.win, left)

    # --- tiers -------------------------------------------------------------------------------

    def layer(self, size: int) -> tiers.Layer:
        """The layer of hands of `size` cards."""
        return tiers.layer(self.cards, self.win, size)

    def tiers(self) -> Sequence[int]:
        if self.board.rules.keep_cards:
            raise OptionError(
                f"board {self.board.name}: keep_cards: a table holds who beats whom and not the "
                "cards, which change no value; write false"
            )
        return range(1, self.cards + 1)

    def children(self, tier: int) -> Sequence[int]:
        return [tier - 1] if tier > 1 else []

    def tier_number(self, tier: int) -> int:
        return tier

    def tier_fields(self, tier: int) -> dict[str, int]:
        return {"cards": tier, "upcard": 0}

    def tier_name(self, tier: int) -> str:
        return f"{tier} cards"

    def shape(self, tier: int) -> tuple[int, ...]:
        return (self.rows(tier),)

    def rows(self, tier: int) -> int:
        return self.layer(tier).rows

    def block_rows(self, tier: int) -> int:
        return self.layer(tier).width

    def parts(self, tier: int) -> Sequence[tuple[int, int]]:
        return self.layer(tier).parts()

    def tier_seconds(self, tier: int) -> float:
        return self.layer(tier).games * GAME_NS[min(tier, len(GAME_NS)) - 1] * 1e-9

    def compile(self) -> None:
        small = self.board.model_copy(
            update={"rules": self.board.rules.model_copy(update={"cards": 2})}
        )
        game = Goofspiel(small)
        below: Floats = np.zeros(0)
        for tier in game.tiers():
            out = np.empty(game.shape(tier))
            game.solve_tier(tier, out, lambda _, below=below: below, lambda: False)  # type: ignore[misc]
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
        states = np.ascontiguousarray(states, np.int64).reshape(-1, self.field_count)
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
        states = np.ascontiguousarray(states, np.int64).reshape(-1, self.field_count)
        mine, theirs = (np.ascontiguousarray(states[:, i]) for i in (rules.MINE, rules.THEIRS))
        found: NDArray[np.bool_] = tiers.pattern_numbers(self._paths, self.cards, mine, theirs) < 0
        return found

    def states_at(self, tier: int, rows: Ints) -> Ints:
        layer = self.layer(tier)
        number, column = np.divmod(np.asarray(rows, np.int64), layer.width)
        of = np.searchsorted(layer.first, column, side="right") - 1
        states = np.zeros((len(number), self.field_count), np.int64)
        states[:, : rules.DECK] = patterns_of(self._paths, layer, number)
        states[:, rules.DECK] = layer.decks[of]
        if self.win:
            states[:, rules.LEAD] = column - layer.first[of] - layer.reach[of] + self.points
        return states

    def why_outside(self, state: Ints) -> str | None:
        if self.board.rules.keep_cards:
            return "not in a table, which holds who beats whom and not the cards (keep_cards)"
        if not state[rules.UPCARD]:
            return None
        return "not a row of the table, whose states have no upcard; a query works it out"

    def opening_questions(self) -> Iterator[tuple[str, dict[str, str]]]:
        every = ",".join(map(str, range(1, self.cards + 1)))
        for card in {self.cards, max(1, self.cards - 2), 1}:
            words = {"mine": every, "theirs": every, "deck": every, "upcard": str(card)}
            yield f"the first bid on the {card}", words


def patterns_of(paths: NDArray[np.int64], layer: tiers.Layer, numbers: Ints) -> Ints:
    """int64 (n, 2): the hands of canonical patterns (n,) of a layer."""
    found: Ints = tiers.hands_of(paths, layer.cards, layer.size, np.ascontiguousarray(numbers))
    return found
