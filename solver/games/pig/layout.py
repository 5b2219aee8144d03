"""The tiers of the n-round Pig: a player's turn in a round, which reads the next turn's.

Totals have no bound and the table has: a lead of `cut` counts as won. What that can change is in
the bound on the table's error (`kernel`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Decisions, Floats, Ints, kernel_arrays
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.game.game import Game, Stopped
from luckbase.solver.games.pig import kernel
from luckbase.solver.games.pig.board import PigRoundsBoard

Tier = tuple[int, int]
"""(round, player), from 1."""


class Rounds(Layout[Tier]):
    """A turn a tier; see `kernel` for the game and how it is solved."""

    payoff_type: type[np.floating[Any]] = np.float64
    best_names: ClassVar[tuple[str, ...]] = ("stick", "roll")
    smaller: ClassVar[str] = "a lower cut or fewer rounds"

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        assert isinstance(game.board, PigRoundsBoard)
        self.options = game.board.rules
        self.rounds, self.cut = game.board.rules.rounds, game.board.solve.cut

    def tiers(self) -> Sequence[Tier]:
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
    def rounding(self) -> float:
        """What float64 sums lose from the start of the game to its end: for each of its turns the
        rolls of the longest one, on average, times the terms of a roll and 2 for the quotient."""
        ints = self.game.numbers.ints
        most = int(ints[kernel.MAX_POINTS])
        rolls = 2 + ints[kernel.TOTAL] / ints[kernel.TABLES + most + 2]
        return float(2 * self.rounds * rolls * (most + 4) * 2.0**-53)

    def turn_starts(self, payoffs: Floats | None) -> Floats:
        """Player 1's payoffs (2 cut - 1,) at the starts of a turn by the lead of who acts, 1 - cut
        first; payoffs: of its tier, or None after the last turn, when it would be player 1's."""
        leads = np.arange(1 - self.cut, self.cut)
        if payoffs is None:
            won, drawn, lost = self.game.numbers.reals[:3]
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
        return self.game.cut_error + self.rounding

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
        won, lost = self.game.numbers.reals[0] - less, self.game.numbers.reals[2] + more
        if tier[1] == 2:
            won, lost = lost, won
        kernel.solve(
            self.game.numbers.ints, starts, tier[1], won, lost, out, self.game.tie_tolerance,
            *kernel_arrays(decisions),
        )  # fmt: skip

    def start_bounds(self) -> tuple[float, float]:
        """(lower, upper) of player 1's payoff at the start in the game without a cut: every lead of
        the cut is taken at its worst, and then at its best, for player 1."""
        found = []
        for less, more in ((self.game.cut_error, 0.0), (0.0, self.game.cut_error)):
            starts, out = self.turn_starts(None), np.empty(self.rows((1, 1)))
            for tier in self.tiers():
                self._solve(tier, starts, less, more, out)
                starts = self.turn_starts(out)
            found.append(float(starts[self.cut - 1]))
        return found[0] - self.rounding, found[1] + self.rounding

    def payoff_rows(
        self, tier: Tier, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        total = self.game.numbers.reals[0] + self.game.numbers.reals[3]
        return [payoffs[start:stop], total - payoffs[start:stop]]

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

    def opening_questions(self) -> Iterator[tuple[str, dict[str, object]]]:
        yield "the start", {"mine": 0, "yours": 0}
        last: dict[str, object] = {"mine": 0, "yours": 0, "round": self.rounds}
        behind = {"yours": 10, "turn": 3, "player": 2}
        yield "ten behind in the last turn, a 3 rolled", last | behind
        yield "level in the last turn", last | {"player": 2}
        yield "player 1's last turn", last | {"yours": 5, "turn": 20}
