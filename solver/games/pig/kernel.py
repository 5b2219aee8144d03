"""The tiers of Pig by rounds, one player's turn in a round each, and the kernel that fills them.

Every tier (round, player) is solved after the next one. With d = mine - yours and V' the payoff of
player 1 at the next turn start, v(t) is the best of V'(-(d + t)) and (B V'(-d) + sum of c(s) v(t +
s)) / N. Player 1 maximises, player 2 minimises. The kernel loops over t downwards for each d; there
are no cycles. A lead of `cut` counts as won; the table's error bound includes the effect
(`solver.games.pig.rules`).

Rows of a tier: (d, t) ascending, -cut < d < cut, 0 <= t < cut - d.

**Agents.** The chances of any two agents to win, to draw and to lose are exact too: ``hold-at-k``
and ``computer`` (`solver.games.skunk.rules`), ``optimal`` (plays as in the table, even if the
opponent does not) and ``best-response`` (to the other agent). Turn by turn from the last, each
sticks by a policy, or by a guide: the table's values, or these same chances (`follow`).

>>> win, draw, loss = chances(game, "optimal", "computer")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, types
from luckbase.solver.errors import Stopped
from luckbase.solver.game.arrays import NO_BEST, Best, Floats, Ints
from luckbase.solver.game.capabilities import Agents, Fact, FullTable, agents_of, plain
from luckbase.solver.game.game import Game, under
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
from luckbase.solver.games.skunk.rules import EVENTS, Computer, DiceRules, HoldAt, TurnAgents
from luckbase.solver.policies.agents import BEST_RESPONSE, OPTIMAL

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


# --- any two agents ------------------------------------------------------------------------------

Sticks = Callable[[int, int], float]
"""(points of the turn, its rolls) -> the chance to stick, for an agent who ignores the scores."""


def visits(sticks: Sticks, rules: DiceRules, limit: int) -> tuple[Floats, Floats]:
    """Return the chances that a turn reaches each number of points up to `limit`, and that it holds
    there, (limit + 1,) each. The end of the game does not end the turn."""
    chances = np.zeros((limit + 1, limit + 2))  # turn, rolls: each roll is worth at least a point
    chances[0, 0] = 1.0
    reached, holds = np.zeros(limit + 1), np.zeros(limit + 1)
    tables = rules.rolls(False), rules.rolls(True)
    for turn in range(limit + 1):
        counts = np.flatnonzero(chances[turn])
        if not len(counts):
            continue
        low, high = int(counts[0]), int(counts[-1]) + 1
        stick = np.array([sticks(turn, count) for count in range(low, high)])
        chance = chances[turn, low:high]
        reached[turn], holds[turn] = chance.sum(), chance @ stick
        rolls = tables[turn == 0]
        going = chance * (1 - stick) / rolls.total
        for points, ways in enumerate(rolls.points):
            if ways and turn + points <= limit:
                chances[turn + points, low + 1 : high + 1] += ways * going
    return reached, holds


def payoffs(game: Game, agent_1: str, agent_2: str) -> tuple[float, float]:
    """Return both players' payoffs by the board's objective, for the profile of `chances`."""
    first, second = game.numbers.reals.reshape(2, 3) @ chances(game, agent_1, agent_2)
    return float(first), float(second)


def points_of_turns(game: Game, name: str) -> Floats:
    """Return the chance that a turn of an agent who ignores the scores brings 0, 1, … points.

    A turn lost to a roll brings 0, and so do turns of more points than the cut.
    """
    rounds = _rounds(game)
    points = visits(_stationary(game, name).sticks, rounds.options, rounds.cut)[1]
    points[0] = 1.0 - points[1:].sum()
    return points


def chances(game: Game, agent_1: str, agent_2: str) -> Floats:
    """Return the chances, (3,), that `agent_1`, as player 1, wins, draws and loses."""
    names, rounds = (agent_1, agent_2), _rounds(game)
    policies = {name: _policy(rounds, name) for name in names}
    cut, ints, reals = rounds.cut, game.numbers.ints, game.numbers.reals
    leads, by_guide = np.arange(1 - cut, cut), np.empty(0)
    total = reals[0] + reals[3]
    # By the lead of the player who acts next: their chances to win and to draw, and the table's
    # payoff of player 1. After the last turn player 1 would act.
    real, ideal = np.array([leads > 0, leads == 0], float), rounds.turn_starts()
    for player in (2, 1) * rounds.rounds:  # the last turn first
        won, drawn = 1 - real[0] - real[1], real[1]  # by the lead of the next player
        payoffs = reals[:3] if player == 1 else reals[:2:-1]  # of a win, a draw, a loss
        expected = payoffs[0] * won + payoffs[1] * drawn + payoffs[2] * (1 - won - drawn)
        guide = ideal if player == 1 else total - ideal
        name = names[player - 1]
        starts = np.vstack([expected if name == BEST_RESPONSE else guide, won, drawn])
        tolerance = game.tie_tolerance if name == OPTIMAL else 0.0
        real = follow(ints, starts, policies[name], payoffs[0], tolerance)[1:]
        if OPTIMAL in names:
            by_rules = follow(ints, np.vstack([guide, won, drawn]), by_guide, payoffs[0], 0.0)[0]
            ideal = by_rules if player == 1 else total - by_rules
    win, draw = real[:, cut - 1]
    return np.array([win, draw, 1 - win - draw])


def _rounds(game: Game) -> Rounds:
    layout = game.need(FullTable)
    assert isinstance(layout, Rounds)
    return layout


def _stationary(game: Game, name: str) -> HoldAt | Computer:
    """Return a game's agent of this name, who ignores the scores."""
    agent = agents_of(game)[name]
    assert isinstance(agent, HoldAt | Computer)
    return agent


def _policy(rounds: Rounds, name: str) -> Floats:
    """Return the chance to stick by the turn's points, as `follow` expects it."""
    if name in (OPTIMAL, BEST_RESPONSE):
        return np.empty(0)
    sticks = _stationary(rounds.game, name).sticks
    reached, holds = visits(sticks, rounds.options, 2 * rounds.cut - 1)
    return np.divide(holds, reached, out=np.ones(2 * rounds.cut), where=reached > 0)


def rounds_agents(game: Game) -> Agents:
    board = game.board
    assert isinstance(board, PigRoundsBoard)
    return Agents(
        TurnAgents(100, board.rules.sides), from_start=from_start, facts=facts, events=EVENTS,
        plain=partial(under, game, count_rolls=False),
    )  # fmt: skip


def from_start(game: Game, names: Sequence[str]) -> tuple[float, float] | None:
    """Return the payoffs of two agents from the start; None unless this module knows both."""
    named, (agent_1, agent_2) = agents_of(game), names
    if not all(name in (OPTIMAL, BEST_RESPONSE) or name in named for name in names):
        return None
    return payoffs(plain(game), agent_1, agent_2)


def facts(game: Game, names: Sequence[str]) -> list[Fact]:
    """Return how often player 1 wins, draws and loses, and facts about the agents' turns: the mean
    points, and the chance that a turn brings 0."""
    game = plain(game)
    named, (agent_1, agent_2) = agents_of(game), names
    three = chances(game, agent_1, agent_2).tolist()
    results = [
        (agent_1, f"{does} as player 1", number)
        for does, number in zip(("wins", "draws", "loses"), three, strict=True)
    ]
    for name in dict.fromkeys(names):
        if name in named:
            points = points_of_turns(game, name)
            results.append((name, "points a turn", float(points @ np.arange(len(points)))))
            results.append((name, "chance of a turn worth nothing", float(points[0])))
    return results
