"""The tiers of Pig by rounds, one player's turn in a round each, and the kernel that fills them.

Every tier (round, player) is solved after the next one. With d = mine - yours and V' the payoff of
player 1 at the next turn start, v(t) is the best of V'(-(d + t)) and (B V'(-d) + sum of c(s) v(t +
s)) / N. Player 1 maximises, player 2 minimises. The kernel loops over t downwards for each d; there
are no cycles. A lead of `cut` counts as won; the table's error bound includes the effect
(`solver.games.pig.rules`).

Rows of a tier: (d, t) ascending, -cut < d < cut, 0 <= t < cut - d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, types
from luckbase.solver.game.arrays import NO_BEST, Best, Floats, Ints
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import Game, Stopped
from luckbase.solver.games.pig.rules import (
    CUT,
    FORCED,
    HOLD,
    MAX_POINTS,
    ROLL,
    TABLES,
    TOTAL,
    PigRoundsBoard,
)
from luckbase.solver.games.skunk.kernel import Race

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_f2 = types.float64[:, ::1]


@njit(_i(_i, _i, _i))
def row_of(cut, lead, turn):
    """Return the row of a state in its tier."""
    i = lead + cut - 1
    return i * (2 * cut - 1) - i * (i - 1) // 2 + turn


@njit(types.void(_i1, _f1, _i, _f, _f1, _f, types.int8[::1]))
def solve(ints, starts, player, won, out, tolerance, best):
    """Fill a tier with the payoffs of player 1.

    starts: float64 (2 cut - 1,), their payoffs at the next turn start, by the lead of the player
        who then acts, from 1 - cut on.
    player: who acts in this tier.
    won: player 1's payoff if the player who acts has won for good.
    best: as in `Best`, or of size 0 if not wanted. Sticking is best unless rolling is better
        by more than the tolerance.
    """
    sign = 1.0 if player == 1 else -1.0
    cut, max_points, total = ints[CUT], ints[MAX_POINTS], ints[TOTAL]
    v = np.empty(2 * cut + max_points)
    for lead in range(1 - cut, cut):
        end, row = cut - lead, row_of(cut, lead, 0)
        v[end : end + max_points + 1] = won
        nothing = starts[-lead + cut - 1]
        table = TABLES + max_points + 2
        for t in range(end - 1, -1, -1):
            if t == 0:
                table = TABLES
            q = ints[table] * nothing
            for s in range(1, max_points + 1):
                q += ints[table + 1 + s] * v[t + s]
            q /= total
            if t > 0 or not ints[FORCED]:
                stick = starts[-(lead + t) + cut - 1]
                if best.size:
                    more = sign * (q - stick)  # gain of rolling for the player who acts
                    best[row + t] = ROLL if more > tolerance else HOLD
                q = max(q, stick) if player == 1 else min(q, stick)
            elif best.size:
                best[row] = ROLL
            v[t] = q
            out[row + t] = q


@njit(_f2(_i1, _f2, _f1, _f, _f))
def follow(ints, starts, policy, won, tolerance):
    """Return the result of a turn, for all leads, of a player with a policy or a guide's values.

    starts: float64 (3, 2 cut - 1), at the next turn start by the lead of the player who then acts:
        the guide's payoff to the player of this turn, the chance that they win, and the chance of a
        draw.
    policy: float64 (2 cut,), the chance to stick by the turn's points; empty to stick unless, by
        the guide, rolling is better by more than the tolerance.
    won: the guide's payoff of a win (a roll never loses the game at once).

    Returns the same three numbers as `starts`, at this turn's start by the player's lead.
    """
    cut, max_points, total = ints[CUT], ints[MAX_POINTS], ints[TOTAL]
    v, out = np.zeros((2 * cut + max_points, 3)), np.empty_like(starts)
    for i in range(2 * cut - 1):  # the player's lead is i + 1 - cut
        end, nothing = 2 * cut - 1 - i, 2 * cut - 2 - i
        for t in range(end, end + max_points + 1):
            v[t, 0], v[t, 1], v[t, 2] = won, 1.0, 0.0
        table = TABLES + max_points + 2
        for t in range(end - 1, -1, -1):
            if t == 0:
                table = TABLES
            free = t > 0 or not ints[FORCED]
            h = policy[t] if free and policy.size else 0.0
            if h < 1.0:
                lost = ints[table]
                guide, win = lost * starts[0, nothing], lost * starts[1, nothing]
                draw = lost * starts[2, nothing]
                for s in range(1, max_points + 1):
                    ways = ints[table + 1 + s]
                    guide += ways * v[t + s, 0]
                    win += ways * v[t + s, 1]
                    draw += ways * v[t + s, 2]
                v[t, 0], v[t, 1], v[t, 2] = guide / total, win / total, draw / total
                if free and not policy.size and starts[0, nothing - t] >= v[t, 0] - tolerance:
                    h = 1.0
            for c in range(3):
                v[t, c] = h * starts[c, nothing - t] + (1.0 - h) * v[t, c]
        out[:, i] = v[0]
    return out


Tier = tuple[int, int]  # (round, player), from 1


class Rounds(FullTable[Tier]):
    """One tier for each turn (module docstring)."""

    payoff_type: type[np.floating[Any]] = np.float64
    best_names: ClassVar[tuple[str, ...]] = ("stick", "roll")
    smaller: ClassVar[str] = "a lower cut or fewer rounds"

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        assert isinstance(game.board, PigRoundsBoard)
        self.options, self.ints = game.board.rules, game.numbers.ints
        self.rounds, self.cut = game.board.rules.rounds, game.board.solve.cut

    def tiers(self) -> Sequence[Tier]:
        return [(r, player) for r in range(self.rounds, 0, -1) for player in (2, 1)]

    def children(self, tier: Tier) -> Sequence[Tier]:
        round_, player = tier
        if player == 1:
            return [(round_, 2)]
        return [(round_ + 1, 1)] if round_ < self.rounds else []

    def tier_number(self, tier: Tier) -> int:
        return 2 * tier[0] + tier[1] - 3

    def tier_fields(self, tier: Tier) -> dict[str, int]:
        return {"round": tier[0], "player": tier[1]}

    def tier_name(self, tier: Tier) -> str:
        return f"round {tier[0]}, player {tier[1]}"

    def rows(self, tier: Tier) -> int:
        return (2 * self.cut - 1) * self.cut

    @cached_property
    def rounding(self) -> float:
        """Bound on the rounding of float64 sums from the start of the game to its end.

        For each turn it counts the average rolls of the longest turn, times the terms of a roll
        plus 2 for the quotient.
        """
        max_points = int(self.ints[MAX_POINTS])
        rolls = 2 + self.ints[TOTAL] / self.ints[TABLES + max_points + 2]
        return float(2 * self.rounds * rolls * (max_points + 4) * 2.0**-53)

    def turn_starts(self, payoffs: Floats | None = None) -> Floats:
        """Return player 1's payoffs (2 cut - 1,) at turn starts, by the acting player's lead.

        payoffs: of the tier; None for the end of the game, where player 1 would act next. Leads
            begin at 1 - cut.
        """
        leads = np.arange(1 - self.cut, self.cut)
        if payoffs is None:
            won, drawn, lost = self.game.numbers.reals[:3]
            return np.where(leads > 0, won, np.where(leads == 0, drawn, lost))
        return np.ascontiguousarray(payoffs[self._starts])

    def solve_tier(
        self,
        tier: Tier,
        out: Floats,
        fetch: Callable[[Tier], Floats],
        stop: Callable[[], bool],
        part: int = 0,
        best: Best | None = None,
    ) -> float:
        if stop():
            raise Stopped
        starts = self.turn_starts(*map(fetch, self.children(tier)))
        won = self.game.numbers.reals[0 if tier[1] == 1 else 2]
        best, tolerance = NO_BEST if best is None else best, self.game.tie_tolerance
        solve(self.ints, starts, tier[1], won, out, tolerance, best)
        return self.most_error(tier)

    def most_error(self, tier: Tier) -> float:
        return self.game.cut_error + self.rounding

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
        return i * (2 * self.cut - 1) - i * (i - 1) // 2

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


class PigRace(Race):
    """The single tier of Pig as a race."""

    questions = (
        ("the start", (0.0, 0.0, 0.0)),
        ("level, at the usual hold", (0.0, 0.0, 0.2)),
        ("far behind", (0.2, 0.8, 0.2)),
        ("both nearly there", (0.9, 0.9, 0.05)),
    )
