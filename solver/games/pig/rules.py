"""Pig by rounds, and as a race: their rules on a board.

**By rounds**, a state is ``mine=40 yours=55 turn=12 round=9 player=2``: the totals of the player
who acts and of the other, the turn's points, the round, from 1 (the default), and the player who
acts, 1 (the default) or 2. With `count_rolls` the rolls of this turn come last, and there is no
table. Only the difference of the totals matters, so the lower total is always 0. Payoffs are in the
order player 1, player 2.

* Stick (with `first_roll_forced` not before the first roll): the turn is banked and the other
  player acts. After player 2's turn the next round begins; after the last round the game is over.
* Roll: the sum is added to the turn, or a 1 ends the turn without points (with `first_roll_safe`
  not on the first roll, the roll at turn = 0).
* The game is over after the last round, or when a lead, including the points of the turn, reaches
  the **cut**. All terminal states with the same result are one: (1, 0), (0, 0) or (0, 1), round n +
  1, player 1.

Ties between actions: sticking comes first; rolling must be better by more than the tolerance.

**The cut.** Totals have no bound, but a table does. Let q_k(x) be the largest chance, over all
policies, to make at least x points in k turns (`chance_to_gain`). A player whose lead, including
the turn's points, is the cut D can bank it. They are caught only if the other player makes at least
D points in their remaining turns, at most n. So their payoff differs from a win by at most q_n(D)
times the range of payoffs. Backing up does not increase errors, so every state of the cut game is
within that bound of the game without a cut. With n = 10 and D = 600 it is 2e-9; at the start of the
game, from where the cut is hardly ever reached, the error is much smaller.

**The race** has Skunk's rules with other dice (`solver.games.skunk`). A lost turn leaves both
scores unchanged, so cycles involve only {(m, y), (y, m)}: the pair of banked scores and who acts.
The kernel solves each such pair after those with a higher sum, and one sweep is enough.

Source: docs/numbers.md#pig-blog.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from luckbase.solver.board.model import Board, Section, mistake, option
from luckbase.solver.compiled import njit, types
from luckbase.solver.game import rules
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Agents, Drawing, FullTable
from luckbase.solver.game.fields import Field, Refuse
from luckbase.solver.game.groups import Groups
from luckbase.solver.game.rules import Numbers, Rules
from luckbase.solver.games.skunk.rules import (
    HELP,
    NO_ROLLS,
    RULE_HELP,
    DiceRules,
    Penalty,
    groups_of_scores,
    race,
    refuse_rolls,
)

HERE = __package__
MINE, YOURS, TURN, ROUND, PLAYER, ROLLED = 0, 1, 2, 3, 4, 5
"""The positions of the fields in a state."""

HOLD, ROLL = 0, 1  # the actions; HOLD is to stick

ROUNDS, CUT, FORCED, TOTAL, MAX_POINTS, TABLES = 0, 1, 2, 3, 4, 5
"""Positions in `Numbers.ints`. From TABLES on, first for the first roll of a turn, then for the
others: how many of the TOTAL rolls end the turn, and are worth 0 to MAX_POINTS."""

_i, _i1 = types.int64, types.int64[::1]


class PigRules(DiceRules):
    """The rule options of the race, as Skunk's.

    Two-dice Pig has ``dice = 2`` and ``all_ones = "score"`` and is Skunk. Piglet is a coin: ``sides
    = 2``, ``goal = 10``, ``count = "rolls"``.
    """

    goal: int = option(100, 1, 200, RULE_HELP["goal"])
    dice: int = option(1, 1, 4, RULE_HELP["dice"])
    sides: int = option(6, 2, 20, RULE_HELP["sides"])
    some_ones: Penalty = option("turn", help=RULE_HELP["some_ones"])
    all_ones: Penalty = option("turn", help=RULE_HELP["all_ones"])
    first_roll_safe: bool = option(False, help=RULE_HELP["first_roll_safe"])
    first_roll_forced: bool = option(True, help="A turn begins with a roll (Skunk's must_roll).")
    count: Literal["faces", "rolls"] = option("faces", help=RULE_HELP["count"])
    count_rolls: bool = option(False, help=RULE_HELP["count_rolls"])

    @property
    def must_roll(self) -> bool:
        """Skunk's name for `first_roll_forced`."""
        return self.first_roll_forced


class PigBoard(Board):
    """A board of the race: only [rules]."""

    game: Literal["pig"]
    rules: PigRules = PigRules()


class RoundsRules(DiceRules):
    """The rule options of Pig by rounds."""

    goal: ClassVar[int] = 0
    some_ones: ClassVar[Penalty] = "turn"
    all_ones: ClassVar[Penalty] = "turn"
    count: ClassVar[str] = "faces"

    rounds: int = option(10, 1, 50, "Rounds; in each, player 1 takes a turn and then player 2.")
    dice: int = option(
        1, 1, 4, "Number of dice in a roll; a roll with any 1 takes the turn's points."
    )
    sides: int = option(6, 2, 20, RULE_HELP["sides"])
    first_roll_safe: bool = option(True, help=RULE_HELP["first_roll_safe"])
    first_roll_forced: bool = option(False, help="A turn begins with a roll.")
    draw: Literal["half", "first", "second"] = option(
        "half",
        help="The result of equal totals: half a win for each player, or a win for player 1 or 2.",
    )
    objective: Literal["win", "difference"] = option(
        "win", help="The payoff: the chance to win, or this minus the chance to lose."
    )
    count_rolls: bool = option(False, help=RULE_HELP["count_rolls"])

    def payoffs(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """Return each player's payoff if player 1 wins, if it is a draw, and if player 2 wins."""
        drawn = {"half": 0.5, "first": 1.0, "second": 0.0}[self.draw]
        first = (1.0, drawn, 0.0)
        if self.objective == "difference":
            first = (1.0, 2 * drawn - 1, -1.0)
            return first, (-first[0], -first[1], -first[2])
        return first, (0.0, 1 - drawn, 1.0)


class RoundsSolve(Section):
    """The solve options of Pig by rounds."""

    cut: int = option(
        600, 10, 2000,
        "A lead, in points, that counts as a won game. The table's error includes the effect.",
    )  # fmt: skip


class PigRoundsBoard(Board):
    """A board of Pig by rounds: [rules] and [solve]."""

    game: Literal["pig-rounds"]
    rules: RoundsRules = RoundsRules()
    solve: RoundsSolve = RoundsSolve()

    @model_validator(mode="after")
    def _cut_is_above_a_roll(self) -> Self:
        top = self.rules.dice * self.rules.sides
        if self.solve.cut <= top:
            problem = f"{self.solve.cut} is too small; expected more than {top}, the most of a roll"
            raise mistake(problem, "solve", "cut")
        return self


@njit(types.void(_i1, _i, _i1))
def _over(ints, lead, child):
    """Write the terminal state with this lead of player 1."""
    child[:] = 0
    child[MINE], child[YOURS] = 1 if lead > 0 else 0, 1 if lead < 0 else 0
    child[ROUND], child[PLAYER] = ints[ROUNDS] + 1, 1


@njit(types.void(_i1, _i, _i, _i, _i1))
def _pass_on(ints, lead, round_, player, child):
    """Write the state after a turn that leaves `player` with this lead."""
    last = player == 2 and round_ == ints[ROUNDS]
    if last or abs(lead) >= ints[CUT]:
        _over(ints, lead if player == 1 else -lead, child)
        return
    child[:] = 0
    child[MINE], child[YOURS] = max(-lead, 0), max(lead, 0)
    child[ROUND], child[PLAYER] = round_ + (player == 2), 3 - player


@njit(rules.TRANSITION_TYPE)
def transition(board, state, edges):
    """Write the edges of a state, by the contract in `solver.game.rules`.

    `reals` holds the payoffs of player 1, then of player 2, if player 1 wins, for a draw, and if
    player 2 wins.
    """
    ints, reals = board
    children, weights, actions, rewards, about = edges
    lead, turn = state[MINE] - state[YOURS], state[TURN]
    round_, player = state[ROUND], state[PLAYER]
    if round_ > ints[ROUNDS]:
        about[0], about[1] = rules.TERMINAL, -1
        result = 0 if lead > 0 else (1 if lead == 0 else 2)
        rewards[0, 0], rewards[0, 1] = reals[result], reals[3 + result]
        return 0
    about[0], about[1] = rules.CHANCE, player - 1
    n = 0
    if turn > 0 or not ints[FORCED]:
        about[0] = rules.DECISION
        _pass_on(ints, lead + turn, round_, player, children[0])
        weights[0], actions[0] = 1.0, HOLD
        n = 1
    max_points = ints[MAX_POINTS]
    table = TABLES + (max_points + 2 if turn > 0 else 0)
    for k in range(max_points + 2):
        ways = ints[table + k]
        if ways == 0:
            continue
        after = turn + k - 1
        if k == 0:
            _pass_on(ints, lead, round_, player, children[n])
        elif lead + after >= ints[CUT]:
            _over(ints, 1 if player == 1 else -1, children[n])
        else:
            for i in range(state.size):
                children[n, i] = state[i]
            children[n, TURN] = after
            if state.size > ROLLED:
                children[n, ROLLED] += 1
        weights[n], actions[n] = ways / ints[TOTAL], ROLL
        n += 1
    for edge in range(n):
        rewards[edge, 0] = rewards[edge, 1] = 0.0
    return n


@njit(types.float64[::1](_i1, _i, _i))
def chance_to_gain(ints, turns, most_points):
    """Return q_turns(x), the largest chance to make x points, for x = 0 .. most_points."""
    max_points, total = ints[MAX_POINTS], ints[TOTAL]
    q = np.zeros(most_points + 1)
    q[0] = 1.0
    v = np.empty(most_points + max_points + 2)
    for _ in range(turns):
        before = q.copy()
        for x in range(1, most_points + 1):
            v[x : x + max_points + 1] = 1.0
            for t in range(x - 1, -1, -1):
                table = TABLES + (max_points + 2 if t > 0 else 0)
                roll = ints[table] * before[x]
                for s in range(1, max_points + 1):
                    roll += ints[table + 1 + s] * v[t + s]
                v[t] = max(before[x - t], roll / total)
            q[x] = v[0]
    return q


def numbers(board: PigRoundsBoard) -> Numbers:
    """Return the board as `transition` reads it."""
    options = board.rules
    first, later = options.rolls(True), options.rolls(False)
    ints = [options.rounds, board.solve.cut, options.first_roll_forced, first.total]
    ints.append(len(first.points) - 1)
    for table in (first, later):
        ints += [table.turn, *table.points]
    return Numbers(np.array(ints, np.int64), np.array(sum(options.payoffs(), ())))


def cut_error(ints: Ints, spread: float = 1.0) -> float:
    """Return a bound on the effect of the cut on any payoff; spread: between a win and a loss."""
    return float(chance_to_gain(ints, int(ints[ROUNDS]), int(ints[CUT]))[-1]) * (1 + 1e-9) * spread


def pig(board: PigBoard) -> Rules:
    """Return the rules of the race on a board."""
    return race(board.rules, f"{HERE}.kernel:PigRace")


def pig_rounds(board: PigRoundsBoard) -> Rules:
    """Return the rules of Pig by rounds on a board."""
    options, cut = board.rules, board.solve.cut
    lead, points = cut.bit_length(), (2 * cut).bit_length()
    fields = [
        Field("mine", default=None, bits=lead, help=HELP["mine"], sample="80"),
        Field("yours", default=None, bits=lead, help=HELP["yours"], sample="85"),
        Field("turn", bits=points, help=HELP["turn"], sample="6"),
        Field(
            "round", low=1, high=options.rounds + 1, default=1, help="The round, from 1.",
            sample=str(options.rounds),
        ),
        Field("player", low=1, high=2, default=1, help=HELP["player"], sample="1"),
    ]  # fmt: skip
    if options.count_rolls:
        fields.append(Field("rolls", bits=points, help=HELP["rolls"], sample="1"))
    difference, board_numbers = options.objective == "difference", numbers(board)
    return Rules(
        fields=fields,
        players=2,
        transition=transition,
        numbers=board_numbers,
        cut_error=partial(cut_error, board_numbers.ints, 2.0 if difference else 1.0),
        max_edges=options.dice * options.sides + 3,
        actions=("stick", "roll"),
        start={"mine": 0, "yours": 0},
        canonical=partial(canonical, options.rounds, cut),
        tie_tolerance=1e-11,
        payoff_range=(-1.0, 1.0) if difference else (0.0, 1.0),
        payoff_name="win minus loss" if difference else "",
        level={"round": -2, "player": -1},
        capabilities={
            FullTable: NO_ROLLS if options.count_rolls else f"{HERE}.kernel:Rounds",
            Agents: f"{HERE}.kernel:rounds_agents",
            Drawing: "luckbase.solver.games.skunk.charts:drawing",
            Groups: lambda game: groups_of_scores(100, cut, "stick", "sticks", "sticking"),
        },
    )


def canonical(rounds: int, cut: int, states: Ints, refuse: Refuse) -> Ints:
    """Return canonical states: the lower total is 0; terminal states with one winner are equal."""
    mine, yours, turn, round_, player = (states[:, i].copy() for i in range(5))
    over = round_ == rounds + 1
    refuse(
        over & ((turn > 0) | (player != 1)),
        lambda x: f"round: {round_[x]} is after the last, and the game is over; leave turn and "
        "player out",
    )  # fmt: skip
    lead = mine - yours
    if states.shape[1] > ROLLED:
        refuse_rolls(states[:, ROLLED], turn, refuse)
    states[:, MINE], states[:, YOURS] = np.maximum(lead, 0), np.maximum(-lead, 0)
    won, lost = lead + turn >= cut, lead <= -cut
    ended = over | won | lost
    sign = np.where(won, 1, np.sign(lead)) * np.where(player == 1, 1, -1)
    states[ended] = 0
    states[ended, MINE] = (sign > 0)[ended]
    states[ended, YOURS] = (sign < 0)[ended]
    states[ended, ROUND], states[ended, PLAYER] = rounds + 1, 1
    return states
