"""The n-round Pig bound to a board: what `solver.game.rules` asks of every game.

The fields are `mine` and `yours`, the totals of the player to act and of the other, `turn`, the
points of the turn, `round`, from 1 (if not said), and `player`, who acts: 1 (if not said) or 2::

    mine=40 yours=55 turn=12 round=9 player=2

Only the difference counts, so a state is shown with the lower total 0. Payoffs are player 1's
first, whoever acts. A tier is a player's turn in a round and reads the next turn's; there are no
cycles. A board with `count_rolls` has one more field, `rolls`, the rolls of the turn, and no table.

Totals have no bound and the table has: a lead of `cut` counts as won. What that can change is in
the bound on the table's error (`rounds_kernel`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board.model import Board, nearest
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.decisions import Decisions, kernel_arrays
from luckbase.solver.game.rules import Agent, Floats, Ints, Stopped
from luckbase.solver.game.tiered import TieredGame
from luckbase.solver.game.transition import Numbers, Transition
from luckbase.solver.games.pig import rounds_kernel as kernel
from luckbase.solver.games.pig.board import PigRoundsBoard
from luckbase.solver.games.skunk.agents import TurnAgents
from luckbase.solver.games.skunk.game import whole

Tier = tuple[int, int]
"""(round, player), from 1."""


class PigRounds(TieredGame[Tier]):
    """Two players; see `rounds_kernel` for the game and how it is solved."""

    rules_version: ClassVar[int] = 1
    players: ClassVar[int] = 2
    fields: ClassVar[tuple[tuple[str, int], ...]] = (
        ("mine", 1),
        ("yours", 1),
        ("turn", 1),
        ("round", 1),
        ("player", 1),
    )
    tie_tolerance: ClassVar[float] = 1e-11
    payoff_type: ClassVar[type[np.floating[Any]]] = np.float64
    best_names: ClassVar[tuple[str, ...]] = ("stick", "roll")
    smaller: ClassVar[str] = "a lower cut or fewer rounds"

    def __init__(self, board: Board) -> None:
        assert isinstance(board, PigRoundsBoard)
        super().__init__(board)
        self.board: PigRoundsBoard = board
        self.rules = board.rules
        self.rounds, self.cut = board.rules.rounds, board.solve.cut
        if self.rules.count_rolls:
            self.fields = (*self.fields, ("rolls", 1))  # type: ignore[misc]
        lead, turn = self.cut.bit_length(), (2 * self.cut).bit_length()
        last = (self.rounds + 1).bit_length()
        self.bits = np.array([lead, lead, turn, last, 2] + [turn] * self.rules.count_rolls)
        self.max_edges = self.rules.dice * self.rules.sides + 3
        if self.rules.objective == "difference":
            self.payoff_range, self.payoff_name = (-1.0, 1.0), "win minus loss"

    @property
    def transition(self) -> Transition:
        return kernel.transition

    @cached_property
    def numbers(self) -> Numbers:
        return Numbers(*kernel.numbers(self.board))

    def start(self) -> Ints:
        return np.array([0, 0, 0, 1, 1] + [0] * self.rules.count_rolls, np.int64)

    def agents(self) -> Mapping[str, Agent]:
        return TurnAgents(100, self.rules.sides)

    def quick_value(self, agents: Sequence[str]) -> tuple[float, ...] | None:
        from luckbase.solver.games.pig.profiles import BEST_RESPONSE, OPTIMAL, chances

        if not all(name in (OPTIMAL, BEST_RESPONSE) or name in self.agents() for name in agents):
            return None
        one, two = agents
        return chances(self.plain(), one, two).payoff(self)

    def facts(self, agents: Sequence[str]) -> list[tuple[str, str, float]]:
        from luckbase.solver.games.pig.profiles import chances, last_turn_cost, turn_statistics

        game, found = self.plain(), []
        one, two = agents
        three = chances(game, one, two)
        for what, number in (("wins", three.win), ("draws", three.draw), ("loses", three.loss)):
            found.append((one, f"{what} as player 1", number))
        for name in dict.fromkeys(agents):
            if name in self.agents():
                turn = turn_statistics(game, name)
                found.append((name, "points a turn", turn.mean))
                found.append((name, "chance of a turn worth nothing", turn.nothing))
        if two in self.agents():
            last = last_turn_cost(game, one, two)
            found.append((two, "loses by sticking while behind in the last turn", last.behind))
            found.append((two, "loses against the best last turn", last.best))
        return found

    def plain(self) -> PigRounds:
        if not self.rules.count_rolls:
            return self
        rules = self.rules.model_copy(update={"count_rolls": False})
        return PigRounds(self.board.model_copy(update={"rules": rules}))

    # --- states in people's words --------------------------------------------------------------

    def parse(self, words: Mapping[str, str]) -> Ints:
        for name in words:
            if name not in self.columns:
                raise StateError(f"unknown field '{name}'; {nearest(name, self.columns)}")
        for name in ("mine", "yours"):
            if name not in words:
                raise StateError(f"{name} is missing; write both totals as mine=0 yours=0")
        absent = {"player": "1", "round": "1"}
        numbers = [whole(name, words.get(name, absent.get(name, "0"))) for name in self.columns]
        found: Ints = self.canonical_states(np.array([numbers], np.int64))[0]
        return found

    def canonical_states(self, values: Ints) -> Ints:
        states = np.array(values, np.int64).reshape(-1, self.field_count)
        mine, yours, turn, round_, player = (states[:, i].copy() for i in range(5))

        def refuse(wrong: NDArray[np.bool_], sentence: Callable[[int], str]) -> None:
            if wrong.any():
                x = int(np.flatnonzero(wrong)[0])
                raise StateError((f"row {x + 1}: " if len(states) > 1 else "") + sentence(x))

        negative: NDArray[np.bool_] = np.any(states < 0, axis=1)
        refuse(negative, lambda x: self._negative(states[x]))
        refuse(
            (player != 1) & (player != 2),
            lambda x: f"player: {player[x]} does not play; write 1 or 2",
        )
        over = round_ == self.rounds + 1
        refuse(
            (round_ < 1) | (round_ > self.rounds + 1),
            lambda x: f"round: {round_[x]} is not played; this board has 1 to {self.rounds}",
        )
        refuse(
            over & ((turn > 0) | (player != 1)),
            lambda x: (
                f"round: {round_[x]} is after the last, and the game is over; leave turn and "
                "player out"
            ),
        )
        lead = mine - yours
        if self.rules.count_rolls:
            rolls = states[:, kernel.ROLLED]
            refuse(
                ((turn > 0) != (rolls > 0)) | (rolls > turn),
                lambda x: (
                    f"rolls: {rolls[x]} rolls and {turn[x]} points in the turn; every roll is "
                    "worth a point or more"
                ),
            )
        states[:, kernel.MINE], states[:, kernel.YOURS] = np.maximum(lead, 0), np.maximum(-lead, 0)
        won, lost = lead + turn >= self.cut, lead <= -self.cut
        ended = over | won | lost
        sign = np.where(won, 1, np.sign(lead)) * np.where(player == 1, 1, -1)
        states[ended] = 0
        states[ended, kernel.MINE] = (sign > 0)[ended]
        states[ended, kernel.YOURS] = (sign < 0)[ended]
        states[ended, kernel.ROUND], states[ended, kernel.PLAYER] = self.rounds + 1, 1
        return states

    def _negative(self, state: Ints) -> str:
        i = int(np.flatnonzero(state < 0)[0])
        return f"{self.columns[i]}: {state[i]} is negative; the least is 0"

    def describe(self, state: Ints) -> dict[str, Any]:
        return dict(zip(self.columns, map(int, state), strict=True))

    def action_name(self, action: int) -> str:
        return "roll" if action == kernel.ROLL else "stick"

    # --- tiers ---------------------------------------------------------------------------------

    def tiers(self) -> Sequence[Tier]:
        if self.rules.count_rolls:
            raise OptionError(
                f"board {self.board.name}: count_rolls: a table does not hold the rolls of a turn, "
                "which change no value; write false"
            )
        return [(r, player) for r in range(self.rounds, 0, -1) for player in (2, 1)]

    def _next(self, tier: Tier) -> Tier | None:
        """The turn after this one; None after the last."""
        round_, player = tier
        if player == 1:
            return round_, 2
        return (round_ + 1, 1) if round_ < self.rounds else None

    def children(self, tier: Tier) -> Sequence[Tier]:
        following = self._next(tier)
        return () if following is None else (following,)

    def tier_number(self, tier: Tier) -> int:
        return 2 * tier[0] + tier[1] - 3

    def tier_fields(self, tier: Tier) -> dict[str, int]:
        return {"round": tier[0], "player": tier[1]}

    def tier_name(self, tier: Tier) -> str:
        return f"round {tier[0]}, player {tier[1]}"

    def shape(self, tier: Tier) -> tuple[int, ...]:
        return (self.rows(tier),)

    def rows(self, tier: Tier) -> int:
        return (2 * self.cut - 1) * self.cut

    def block_rows(self, tier: Tier) -> int:
        return 1

    @cached_property
    def cut_error(self) -> float:
        """The most that the cut can change of any payoff."""
        low, high = self.payoff_range
        return kernel.cut_error(self.numbers.ints) * (high - low)

    @cached_property
    def _rounding(self) -> float:
        """What float64 sums lose from the start of the game to its end: for each of its turns the
        rolls of the longest one, on average, times the terms of a roll and 2 for the quotient."""
        ints = self.numbers.ints
        most = int(ints[kernel.MOST])
        rolls = 2 + ints[kernel.TOTAL] / ints[kernel.TABLES + most + 2]
        return float(2 * self.rounds * rolls * (most + 4) * 2.0**-53)

    def turn_starts(self, payoffs: Floats | None) -> Floats:
        """Player 1's payoffs (2 cut - 1,) at the starts of a turn by the lead of who acts, 1 - cut
        first; payoffs: of its tier, or None after the last turn, when it would be player 1's."""
        leads = np.arange(1 - self.cut, self.cut)
        if payoffs is None:
            won, drawn, lost = self.numbers.reals[:3]
            ended: Floats = np.where(leads > 0, won, np.where(leads == 0, drawn, lost))
            return ended
        starts: Floats = np.ascontiguousarray(payoffs[self._starts])
        return starts

    def solve_tier(
        self,
        tier: Tier,
        out: Floats,
        fetch: Callable[[Tier], Floats],
        stop: Callable[[], bool],
        part: int = 0,
        decisions: Decisions | None = None,
    ) -> float:
        if stop():
            raise Stopped
        following = self._next(tier)
        starts = self.turn_starts(None if following is None else fetch(following))
        self._solve(tier, starts, 0.0, 0.0, out, decisions)
        return self.cut_error + self._rounding

    def _solve(
        self,
        tier: Tier,
        starts: Floats,
        less: float,
        more: float,
        out: Floats,
        decisions: Decisions | None = None,
    ) -> None:
        """Fill a tier; a lead of the cut pays player 1 `less` than a win, or `more` than a loss."""
        won, lost = self.numbers.reals[0] - less, self.numbers.reals[2] + more
        if tier[1] == 2:
            won, lost = lost, won
        kernel.solve(
            self.numbers.ints, starts, tier[1], won, lost, out, self.tie_tolerance,
            *kernel_arrays(decisions),
        )  # fmt: skip

    def start_bounds(self) -> tuple[float, float]:
        """(lower, upper) of player 1's payoff at the start in the game without a cut: every lead of
        the cut is taken at its worst, and then at its best, for player 1."""
        found = []
        for less, more in ((self.cut_error, 0.0), (0.0, self.cut_error)):
            starts, out = self.turn_starts(None), np.empty(self.rows((1, 1)))
            for tier in self.tiers():
                self._solve(tier, starts, less, more, out)
                starts = self.turn_starts(out)
            found.append(float(starts[self.cut - 1]))
        return found[0] - self._rounding, found[1] + self._rounding

    def payoff_rows(
        self, tier: Tier, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        total = self.numbers.reals[0] + self.numbers.reals[3]
        return [payoffs[start:stop], total - payoffs[start:stop]]

    def state_rows(self, tier: Tier, start: int, stop: int) -> dict[str, NDArray[np.int32]]:
        states = self.states_at(tier, np.arange(start, stop))
        return {name: states[:, i].astype(np.int32) for i, name in enumerate(self.columns[:3])}

    def acting_rows(self, tier: Tier, start: int, stop: int) -> NDArray[np.int8]:
        return np.full(stop - start, tier[1], np.int8)

    @cached_property
    def _starts(self) -> Ints:
        """The first row of each lead, 1 - cut first."""
        i = np.arange(2 * self.cut - 1)
        starts: Ints = i * (2 * self.cut - 1) - i * (i - 1) // 2
        return starts

    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        mine, yours, turn, round_, player = np.asarray(states, np.int64).reshape(-1, 5).T
        over = round_ > self.rounds
        rows = self._starts[mine - yours + self.cut - 1] + turn
        return np.where(over, -1, 2 * round_ + player - 3), np.where(over, -1, rows)

    def states_at(self, tier: Tier, rows: Ints) -> Ints:
        rows = np.asarray(rows, np.int64)
        i = np.searchsorted(self._starts, rows, side="right") - 1
        lead, same = i - (self.cut - 1), np.ones(len(rows), np.int64)
        columns = [np.maximum(lead, 0), np.maximum(-lead, 0), rows - self._starts[i]]
        return np.column_stack([*columns, tier[0] * same, tier[1] * same])

    def why_outside(self, state: Ints) -> str | None:
        return None

    def opening_questions(self) -> Iterator[tuple[str, dict[str, str]]]:
        last = str(self.rounds)
        yield "the start", {"mine": "0", "yours": "0"}
        yield (
            "ten behind in the last turn, a 3 rolled",
            {"mine": "0", "yours": "10", "turn": "3", "round": last, "player": "2"},
        )
        yield "level in the last turn", {"mine": "0", "yours": "0", "round": last, "player": "2"}
        yield "player 1's last turn", {"mine": "0", "yours": "5", "turn": "20", "round": last}
