"""The agents of Skunk and Pig: when to hold, as a function of the turn.

`hold-at-k`, for any k: hold once the turn has k points or more. `computer`: the opponent in Pig
by rounds, who after each roll sticks with the chance min(1, rolls ** (4 v) / 50), where
v = (turn / rolls) / sides; they always roll first, and have to see the rolls of the turn.

An agent is asked ``choose(game, player, state, actions)`` (`solver.game.rules`) with the actions
HOLD and ROLL. Neither looks at the scores, so what a turn of theirs brings has one distribution
(`turn_points`). And whoever looks at the rolls too can be replaced, for any value of the game, by
one who looks at the turn alone and holds with the same chance on average over the rolls that took
them there (`holds_by_turn`): the next roll does not depend on how many there were.

Source: docs/sources.md#pig-blog.

Skunk and the Pig that is a race between any two agents: the exact chance to win.

Agents by name: ``hold-at-k``, ``computer`` (`solver.games.skunk.agents`), ``optimal`` (as in the
table, also against somebody who is not) and ``best-response`` (to the other agent).

A policy is a chance h(m, y, t) to hold, or the best of both. With A(m, y) the chance of the first
agent at the start of their turn, m their banked points, and B(y, m) the second's likewise::

    v(t) = h (1 - B(y, m + t)) + (1 - h) (b (1 - B(y, m)) + z (1 - B(y, 0)) + sum c(s) v(t + s)) / N
    A(m, y) = v(0)

and the same for B with A. As in `solver.games.skunk.kernel`, A(m, y) and B(y, m) are solved as a
block, by descending m + y, with Newton's method where one of them picks the best, and sweeps are
repeated until both stand still, which is within 1e-12 of the values.

    >>> chance_to_win(game, "hold-at-20", "hold-at-20")
    0.5346983261...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numba import types

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import ClosedForms, agents_of, plain
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.games.skunk.board import Rules
from luckbase.solver.games.skunk.kernel import roll_value, row_of
from luckbase.solver.games.skunk.layout import Race, race_of
from luckbase.solver.games.skunk.rules import GOAL, MAX_POINTS, TABLES, TOTAL
from luckbase.solver.njit import njit
from luckbase.solver.sentences import setting

HOLD, ROLL = 0, 1
"""The actions of both games."""
TURN = 2
"""Where the turn's points stand in the states of both; the rolls stand last."""


def chance_to_stick(turn: int, rolls: int, sides: int) -> float:
    """The chance with which the blog's computer sticks after `rolls` rolls worth `turn`."""
    v = turn / rolls / sides
    return float(min(1.0, rolls ** (4 * v) / 50))


@dataclass(frozen=True)
class HoldAt:
    """Hold at k points or more."""

    k: int

    def sticks(self, turn: int, rolls: int) -> float:
        """The chance to hold after so many rolls worth `turn`."""
        return float(turn >= self.k)

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> int:
        return actions.index(HOLD if state[TURN] >= self.k else ROLL)


@dataclass(frozen=True)
class Computer:
    """The blog's computer, with dice of this many sides."""

    sides: int

    def sticks(self, turn: int, rolls: int) -> float:
        """The chance to hold after so many rolls worth `turn`."""
        return chance_to_stick(turn, rolls, self.sides) if rolls else 0.0

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> list[float]:
        if "rolls" not in game.columns:
            raise OptionError(
                "agent 'computer' looks at the rolls of the turn; play it with "
                + setting("count_rolls", "true")
            )
        stick = self.sticks(int(state[TURN]), int(state[-1]))
        return [stick if action == HOLD else 1.0 - stick for action in actions]


@dataclass(frozen=True)
class NotBehind:
    """As another agent, but it never holds below so many points."""

    agent: HoldAt | Computer
    behind: int

    def sticks(self, turn: int, rolls: int) -> float:
        """The chance to hold after so many rolls worth `turn`."""
        return self.agent.sticks(turn, rolls) if turn >= self.behind else 0.0


Stationary = HoldAt | Computer | NotBehind
"""An agent whose turn does not depend on the scores."""


def visits(agent: Stationary, rules: Rules, most: int) -> tuple[Floats, Floats]:
    """float64 (most + 1,) each: the chance that a turn without end of the game comes to so many
    points, and to hold there. `most` is as far as it is followed."""
    here = np.zeros((most + 1, most + 2))  # turn, rolls: each roll is worth a point or more
    here[0, 0] = 1.0
    reached, holds = np.zeros(most + 1), np.zeros(most + 1)
    tables = rules.rolls(False), rules.rolls(True)
    for turn in range(most + 1):
        counts = np.flatnonzero(here[turn])
        if not len(counts):
            continue
        low, high = int(counts[0]), int(counts[-1]) + 1
        stick = np.array([agent.sticks(turn, count) for count in range(low, high)])
        chance = here[turn, low:high]
        reached[turn], holds[turn] = chance.sum(), chance @ stick
        rolls = tables[turn == 0]
        going = chance * (1 - stick) / rolls.total
        for points, ways in enumerate(rolls.points):
            if ways and turn + points <= most:
                here[turn + points, low + 1 : high + 1] += ways * going
    return reached, holds


def holds_by_turn(agent: Stationary, rules: Rules, most: int) -> Floats:
    """float64 (most + 1,): the chance to hold at each turn's points, averaged over the rolls; 1
    where the agent never comes."""
    reached, holds = visits(agent, rules, most)
    return np.divide(holds, reached, out=np.ones(most + 1), where=reached > 0)


def turn_points(agent: Stationary, rules: Rules, most: int) -> Floats:
    """float64 (most + 1,): the chance that a turn brings so many points, 0 when a roll takes them.

    Turns are followed up to `most` points; what goes on above counts as 0.
    """
    points = visits(agent, rules, most)[1]
    points[0] = 1.0 - points[1:].sum()
    return points


def crossings(agent: Stationary, rules: Rules, most: int) -> tuple[Floats, Floats]:
    """(held, crossed), float64 (most + 1,) each: the chance to hold at so many points, and that a
    turn which is over at once at x points gets there; crossed[0] is 1."""
    reached, holds = visits(agent, rules, most)
    going, crossed = reached - holds, np.zeros(most + 1)
    later, first = (
        np.cumsum(table.points[::-1])[::-1] / table.total
        for table in (rules.rolls(False), rules.rolls(True))
    )
    for points in range(1, min(len(first), most + 1)):  # or more, rolled when so far below x
        crossed[points] += going[0] * first[points]
        crossed[points + 1 :] += going[1 : most + 1 - points] * later[points]
    crossed[0] = 1.0
    return holds, crossed


class TurnAgents(Mapping[str, Agent]):
    """The agents by name; ``hold-at-k`` is found for any k >= 1 and listed up to `most`."""

    def __init__(self, most: int, sides: int) -> None:
        self.most, self.sides = most, sides

    def __getitem__(self, name: str) -> Agent:
        if name == "computer":
            return Computer(self.sides)
        found = re.fullmatch(r"hold-at-([1-9][0-9]{0,5})", name)
        if found is None:
            raise KeyError(name)
        return HoldAt(int(found[1]))

    def __iter__(self) -> Iterator[str]:
        yield "computer"
        for k in range(1, self.most + 1):
            yield f"hold-at-{k}"

    def __len__(self) -> int:
        return self.most + 1


def stationary(game: Game, name: str) -> HoldAt | Computer:
    """A game's agent of this name. Raises OptionError for a name that is none."""
    try:
        agent = agents_of(game)[name]
    except KeyError:
        raise OptionError(
            f"agent '{name[:30]}' is not known here; expected 'optimal', 'best-response', "
            "'computer' or 'hold-at-k' with a number for k"
        ) from None
    assert isinstance(agent, HoldAt | Computer)
    return agent


OPTIMAL, BEST_RESPONSE = "optimal", "best-response"
MAX_SWEEPS = 1000
_STILL = 1e-14
_BEST = -1.0  # in the place of a chance to hold: the better of both

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_f2 = types.float64[:, ::1]


@njit(types.UniTuple(_f, 2)(_i1, _f2, _f1, _i, _i, _f, _f1, _f1), cache=True, nogil=True)
def _turn(ints, other, holds, m, y, x, v, slope):
    """v(0) and its slope in x = 1 - other[y, m]; v and slope are room for goal + MAX_POINTS + 1."""
    goal, most, total = ints[GOAL], ints[MAX_POINTS], ints[TOTAL]
    left, at = goal - m, row_of(goal, m, y, 0)
    z, z_slope = (x, 1.0) if m == 0 else (1.0 - other[y, 0], 0.0)
    v[left : left + most + 1] = 1.0
    slope[left : left + most + 1] = 0.0
    for t in range(left - 1, -1, -1):
        table = TABLES + (most + 3 if t > 0 else 0)
        roll = ints[table] * x + ints[table + 1] * z
        roll_slope = ints[table] + ints[table + 1] * z_slope
        for s in range(1, most + 1):
            roll += ints[table + 2 + s] * v[t + s]
            roll_slope += ints[table + 2 + s] * slope[t + s]
        roll, roll_slope = roll / total, roll_slope / total
        h, hold = 0.0, 0.0
        if t > 0:
            h, hold = holds[at + t], 1.0 - other[y, m + t]
            if h == _BEST:
                h = 1.0 if hold >= roll else 0.0
        v[t], slope[t] = h * hold + (1.0 - h) * roll, (1.0 - h) * roll_slope
    return v[0], slope[0]


@njit(types.float64(_i1, _f2, _f2, _f1, _f1), cache=True, nogil=True)
def _sweep(ints, A, B, holds_a, holds_b):
    """One sweep over the blocks, A and B (goal, goal) in place; returns the largest change."""
    goal, most = ints[GOAL], ints[MAX_POINTS]
    v, slope = np.empty(goal + most + 1), np.empty(goal + most + 1)
    change = 0.0
    for both in range(2 * goal - 2, -1, -1):
        for m in range(max(0, both - goal + 1), min(both, goal - 1) + 1):
            y = both - m
            old_a, old_b = A[m, y], B[y, m]
            for _ in range(4):
                a, b = A[m, y], B[y, m]
                new_a, alpha = _turn(ints, B, holds_a, m, y, 1.0 - b, v, slope)
                new_b, beta = _turn(ints, A, holds_b, y, m, 1.0 - a, v, slope)
                da = ((new_a - a) - alpha * (new_b - b)) / (1.0 - alpha * beta)
                db = (new_b - b) - beta * da
                A[m, y] = a + da
                B[y, m] = b + db
                if abs(da) + abs(db) <= 1e-7:
                    break
            change = max(change, abs(A[m, y] - old_a), abs(B[y, m] - old_b))
    return change


@njit(types.void(_i1, _f1, _f, _f1), cache=True, nogil=True)
def _best_holds(ints, out, tolerance, holds):
    """Where the table holds: 1, else 0; by player 1's rows. Holding comes first among ties."""
    goal = ints[GOAL]
    for m in range(goal):
        for y in range(goal):
            for t in range(1, goal - m):
                row = row_of(goal, m, y, t)
                hold = 1.0 - out[row_of(goal, y, m + t, 0)]
                roll = roll_value(ints, out, m, y, t)
                holds[row] = 0.0 if roll > hold + tolerance else 1.0


def _holds(race: Race, name: str, payoffs: Floats | None) -> Floats:
    """The chance to hold at each row of player 1's half, or `_BEST`."""
    half = race.rows(0) // 2
    if name == BEST_RESPONSE:
        return np.full(half, _BEST)
    if name == OPTIMAL:
        if payoffs is None:
            payoffs = np.empty(race.shape(0))
            race.solve_tier(0, payoffs, lambda _: np.empty(0), lambda: False)
        holds = np.zeros(half)
        _best_holds(race.ints, payoffs, race.tie_tolerance, holds)
        return holds
    agent = stationary(race.game, name)
    by_turn = holds_by_turn(agent, race.options, race.goal)
    turns = race.states_at(0, np.arange(half))[:, 2]
    return np.ascontiguousarray(by_turn[turns])


def _play(race: Race, one: Floats, two: Floats) -> float:
    A, B = (np.full((race.goal, race.goal), 0.5) for _ in range(2))
    for _ in range(MAX_SWEEPS):
        if _sweep(race.ints, A, B, one, two) <= _STILL:
            break
    return float(A[0, 0])


def chance_to_win(game: Game, one: str, two: str, payoffs: Floats | None = None) -> float:
    """The chance of agent `one`, who begins, against agent `two`, from the start.

    payoffs: float64 (rows,), the table as `solve_tier` leaves it, if at hand; `optimal` needs it.
    Raises OptionError for a name that is none, and for a board whose plays may not end.
    """
    race = race_of(game)
    return _play(race, _holds(race, one, payoffs), _holds(race, two, payoffs))


class RaceForms(ClosedForms):
    """The chances to win of any two agents who are known here, by the sweeps above."""

    def __init__(self, game: Game) -> None:
        self.game = plain(game)

    def value(self, agents: Sequence[str]) -> tuple[float, ...] | None:
        own = agents_of(self.game)
        if not all(name in (OPTIMAL, BEST_RESPONSE) or name in own for name in agents):
            return None
        one, two = agents
        won = chance_to_win(self.game, one, two)
        return won, 1.0 - won
