"""Skunk, and Pig as a race: the boards, the transition, the fields, the rules on a board.

A state is ``mine=0 yours=87 turn=32``: the banked points of the player who acts and of the other,
the points of the turn, and `player`, who acts: 1 (the default) or 2. A board with `count_rolls` has
one more field, `rolls`, the rolls of the turn, and no table. Payoffs are the players' chances to
win, in the order player 1, player 2. The game is over as soon as mine + turn >= goal. All such
states of a player are one, (goal, 0, 0, player), in which they have 1 and the other 0.

A player who has rolled has at least a point, so turn = 0 is before the first roll:
`first_roll_safe` and `must_roll` need no field of their own. The board holds the effects of the
dice as whole numbers of rolls. Ties between actions: holding comes first; rolling must be better by
more than the tolerance.

**Agents of Skunk and Pig.** `hold-at-k`, for any k: hold once the turn has at least k points.
`computer`: the opponent in Pig by rounds. After each roll they stick with the chance min(1, rolls
** (4 v) / 50), where v = (turn / rolls) / sides. They always roll first, and need the rolls of the
turn. ``optimal`` plays as in the table, even if the opponent does not; ``best-response`` plays best
against the opponent.

Sources: docs/numbers.md#gottahack-1998, docs/numbers.md#neller-and-presser-2004,
docs/numbers.md#pig-blog.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import model_validator

from luckbase.solver.board.model import Board, Section, mistake, option
from luckbase.solver.compiled import njit
from luckbase.solver.errors import OptionError
from luckbase.solver.game import rules
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Agents, Charts, Drawing, FullTable
from luckbase.solver.game.fields import Field, Refuse
from luckbase.solver.game.game import Agent, Game, under
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups, Threshold, TurningPoint
from luckbase.solver.game.outcomes import rolls_in_order
from luckbase.solver.game.rules import Numbers, Rules
from luckbase.solver.sentences import many, setting

HERE = __package__
MINE, YOURS, TURN, PLAYER, ROLLED = 0, 1, 2, 3, 4  # the positions of the fields in a state
HOLD, ROLL = 0, 1  # the actions
GOAL, MUST_ROLL, TOTAL, MAX_POINTS, TABLES = 0, 1, 2, 3, 4
"""Positions in `Numbers.ints`; MAX_POINTS is the most of a roll. From TABLES on, first for the
first roll of a turn and then for the others: how many of the TOTAL rolls lose the turn, lose the
score, and are worth 0, 1, …, MAX_POINTS points."""


HELP = {
    "mine": "Points banked by the player up.",
    "yours": "Points banked by the other player.",
    "turn": "Points rolled in this turn so far, not banked yet; 0 before the first roll.",
    "player": "The player up, 1 or 2.",
    "rolls": "Rolls made in this turn so far.",
}


MAX_ROLLS = 10_000  # the most ordered rolls: four dice of ten sides

Penalty = Literal["turn", "score", "points"]

RULE_HELP = {
    "goal": "A player wins as soon as banked points and points of the turn reach this number.",
    "dice": "Number of dice in a roll.",
    "sides": "Faces of each die, all equally likely; 2 is a coin.",
    "some_ones": "The loss if some dice show a 1: the points of the turn (turn), also the banked "
    "points (score), or nothing, and the faces count (points).",
    "all_ones": "The loss if every die shows a 1, with the same choices.",
    "first_roll_safe": "The first roll of a turn costs nothing, and its faces count.",
    "count": "The points of a roll without a loss: the sum of its faces, or one point (rolls).",
    "count_rolls": "States keep the number of rolls in the turn, for agents that need it. The "
    "payoffs are the same. Such a board has no full table.",
}
"""Help for the options, here and in Pig."""


class DiceRules(Section):
    """What follows from the rule options of Skunk and both forms of Pig."""

    if TYPE_CHECKING:

        def __getattr__(self, option: str) -> Any: ...

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        if self.sides**self.dice > MAX_ROLLS:
            problem = f"{self.dice} dice of {self.sides} sides roll in {self.sides**self.dice} ways"
            raise mistake(f"{problem}; expected at most {MAX_ROLLS}", "rules", "dice")
        return self

    def every_roll(self, first: bool) -> Iterator[tuple[tuple[int, ...], Penalty, int]]:
        """Yield (faces, effect, points) of every ordered roll; first: of a turn's first roll."""
        for faces in map(tuple, rolls_in_order(self.dice, self.sides).tolist()):
            ones = faces.count(1)
            penalty: Penalty = "points"
            if ones and not (first and self.first_roll_safe):
                penalty = self.all_ones if ones == self.dice else self.some_ones
            points = sum(faces) if self.count == "faces" else 1
            yield faces, penalty, points if penalty == "points" else 0

    def rolls(self, first: bool) -> Rolls:
        """Return the ordered rolls by effect; first: for a turn's first roll."""
        counts = Counter((penalty, points) for _, penalty, points in self.every_roll(first))
        points = [counts["points", k] for k in range(self.dice * self.sides + 1)]
        return Rolls(counts["turn", 0], counts["score", 0], points, counts.total())


class Options(DiceRules):
    """The rule options. Without `must_roll` there is no full table; passing never helps."""

    goal: int = option(100, 1, 200, RULE_HELP["goal"])
    dice: int = option(2, 1, 4, RULE_HELP["dice"])
    sides: int = option(6, 2, 20, RULE_HELP["sides"])
    some_ones: Penalty = option("turn", help=RULE_HELP["some_ones"])
    all_ones: Penalty = option("score", help=RULE_HELP["all_ones"])
    first_roll_safe: bool = option(False, help=RULE_HELP["first_roll_safe"])
    count: Literal["faces", "rolls"] = option("faces", help=RULE_HELP["count"])
    must_roll: bool = option(
        True,
        help="A turn begins with a roll. Without this rule two players could pass for ever, so "
        "there is no full table and the board is searched.",
    )
    count_rolls: bool = option(False, help=RULE_HELP["count_rolls"])


@dataclass(frozen=True)
class Rolls:
    """How many rolls lose the turn, lose the score, are worth each number of points; all."""

    turn: int
    score: int
    points: list[int]
    total: int


class SkunkBoard(Board):
    """A board of Skunk: only [rules]."""

    game: Literal["skunk"]
    rules: Options = Options()


@njit(rules.TRANSITION_TYPE)
def transition(board, state, edges):
    """Write the edges of a state, by the contract in `solver.game.rules`."""
    ints = board.ints
    children, weights, actions, rewards, about = edges
    mine, yours, turn, player = state[MINE], state[YOURS], state[TURN], state[PLAYER]
    if mine + turn >= ints[GOAL]:
        about[0], about[1] = rules.TERMINAL, -1
        rewards[0, 0] = 1.0 if player == 1 else 0.0
        rewards[0, 1] = 1.0 - rewards[0, 0]
        return 0
    about[0], about[1] = rules.CHANCE, player - 1
    n = 0
    if turn > 0 or not ints[MUST_ROLL]:
        about[0] = rules.DECISION
        children[0] = 0
        children[0, MINE], children[0, YOURS] = yours, mine + turn
        children[0, PLAYER] = 3 - player
        weights[0], actions[0] = 1.0, HOLD
        n = 1
    max_points = ints[MAX_POINTS]
    table = TABLES + (max_points + 3 if turn > 0 else 0)
    for k in range(max_points + 3):
        ways = ints[table + k]
        if ways == 0:
            continue
        children[n] = 0
        if k < 2:
            children[n, MINE], children[n, YOURS] = yours, 0 if k == 1 else mine
            children[n, PLAYER] = 3 - player
        elif mine + turn + k - 2 >= ints[GOAL]:
            children[n, MINE], children[n, PLAYER] = ints[GOAL], player
        else:
            children[n, MINE], children[n, YOURS], children[n, TURN] = mine, yours, turn + k - 2
            children[n, PLAYER] = player
            if state.size > ROLLED:
                children[n, ROLLED] = state[ROLLED] + 1
        weights[n], actions[n] = ways / ints[TOTAL], ROLL
        n += 1
    for edge in range(n):
        rewards[edge, 0] = rewards[edge, 1] = 0.0
    return n


EVENTS: Mapping[str, Any] = {
    "rolls": lambda states, actions, children: actions == ROLL,
    "turns": lambda states, actions, children: states[:, TURN] == 0,
}
"""The events that are counted. A turn begins without points. Terminal states do not show the margin
of the win."""


def numbers(options: DiceRules) -> Numbers:
    """Return the board as `transition` reads it."""
    first, later = options.rolls(True), options.rolls(False)
    ints = [options.goal, options.must_roll, first.total, len(first.points) - 1]
    for table in (first, later):
        ints += [table.turn, table.score, *table.points]
    return Numbers(np.array(ints, np.int64), np.zeros(1))


def skunk(board: SkunkBoard) -> Rules:
    """Return the rules of Skunk on a board."""
    return race(board.rules, f"{HERE}.kernel:Race")


def race(options: DiceRules, layout: str) -> Rules:
    """Return the rules of a race; layout: names its `FullTable`."""
    goal, counted = options.goal, options.count_rolls
    table = NO_ROLLS if counted else layout if options.must_roll else NO_END
    turn = goal // 5
    fields = [
        Field("mine", high=goal, default=None, help=HELP["mine"], sample=str(goal * 3 // 10)),
        Field("yours", high=goal, default=None, help=HELP["yours"], sample=str(goal * 2 // 5)),
        Field("turn", high=goal, help=HELP["turn"], sample=str(turn)),
        Field("player", low=1, high=2, default=1, help=HELP["player"], sample="1"),
    ]
    if counted:
        rolls = str(max(turn // (options.dice * options.sides), 1))
        fields.append(Field("rolls", high=goal, help=HELP["rolls"], sample=rolls))
    return Rules(
        fields=fields,
        players=2,
        transition=transition,
        numbers=numbers(options),
        max_edges=options.dice * options.sides + 4,
        actions=("hold", "roll"),
        start={"mine": 0, "yours": 0},
        canonical=partial(canonical, goal),
        version=2,  # 2: the one tier has no folder of its own
        tie_tolerance=1e-11,
        capabilities={
            FullTable: table,
            Agents: race_agents,
            Charts: f"{HERE}.charts:RaceCharts",
            Drawing: f"{HERE}.charts:drawing",
            Groups: lambda game: groups_of_scores(goal, goal, "hold", "holds", "holding"),
        },
    )


def options_of(game: Game) -> DiceRules:
    """Return the rule options of a board of Skunk or Pig."""
    board: Any = game.board
    return board.rules


def rounds_of(game: Game) -> int:
    """Return the number of rounds; 0 for a race."""
    board: Any = game.board
    return getattr(board.rules, "rounds", 0)


NO_ROLLS = rules.Unavailable(
    "count_rolls: tables leave the rolls out, because they change no payoff; expected false"
)
NO_END = rules.Unavailable(
    "at mine=0 yours=0 turn=0 both players could pass for ever, and the rules do not say what such "
    "a play pays; a turn must begin with a roll"
)


def canonical(goal: int, states: Ints, refuse: Refuse) -> Ints:
    """Return canonical states: all states won by one player are one."""
    mine, yours, turn, player = (states[:, i] for i in range(4))
    refuse(
        (mine >= goal) & (yours >= goal),
        lambda x: f"mine and yours: {mine[x]} and {yours[x]}, and {goal} wins at once, so only "
        "one of them can have it",
    )  # fmt: skip
    refuse(
        (yours >= goal) & (turn > 0),
        lambda x: f"turn: {turn[x]}, and with yours={yours[x]} the game is over; leave it out",
    )
    if states.shape[1] > ROLLED:
        refuse_rolls(states[:, ROLLED], turn, refuse)
    lost = yours >= goal
    over = lost | (mine + turn >= goal)
    winner = np.where(lost, 3 - player, player)
    states[over] = 0
    states[over, MINE] = goal
    states[over, PLAYER] = winner[over]
    return states


def refuse_rolls(rolls: Ints, turn: Ints, refuse: Refuse) -> None:
    """Refuse rolls (n,) that cannot have made the points of the turn (n,)."""
    refuse(
        (turn > 0) != (rolls > 0),
        lambda x: f"rolls: {rolls[x]}, and turn: {turn[x]}; both are 0 before "
        "the first roll and above 0 after it",
    )  # fmt: skip
    refuse(rolls > turn, lambda x: f"rolls: {rolls[x]} is more than turn={turn[x]}")


# --- agents --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HoldAt:
    """Hold at k points or more."""

    k: int

    def sticks(self, turn: int, rolls: int) -> float:
        """Return the chance to hold after this many rolls worth `turn`."""
        return float(turn >= self.k)

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> int:
        return actions.index(HOLD if state[TURN] >= self.k else ROLL)


@dataclass(frozen=True)
class Computer:
    """The blog's computer, with dice of this many sides."""

    sides: int

    def sticks(self, turn: int, rolls: int) -> float:
        """Return the chance to hold after this many rolls worth `turn`."""
        v = turn / max(rolls, 1) / self.sides
        return float(min(1.0, rolls ** (4 * v) / 50)) if rolls else 0.0

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> list[float]:
        stick = self.sticks(int(state[TURN]), int(state[-1]))
        return [stick if action == HOLD else 1.0 - stick for action in actions]


class TurnAgents(Mapping[str, Agent]):
    """The agents by name; ``hold-at-k`` exists for any k >= 1 and is listed up to `most`."""

    def __init__(self, most: int, sides: int) -> None:
        self.most, self.sides = most, sides

    def __getitem__(self, name: str) -> Agent:
        if name == "computer":
            return Computer(self.sides)
        match = re.fullmatch(r"hold-at-([1-9][0-9]{0,5})", name)
        if match is None:
            raise KeyError(name)
        return HoldAt(int(match[1]))

    def __iter__(self) -> Iterator[str]:
        yield "computer"
        for k in range(1, self.most + 1):
            yield f"hold-at-{k}"

    def __len__(self) -> int:
        return self.most + 1


def race_agents(game: Game) -> Agents:
    options = options_of(game)
    return Agents(
        TurnAgents(options.goal, options.sides), check=check_rolls, events=EVENTS,
        plain=partial(under, game, count_rolls=False),
    )  # fmt: skip


def check_rolls(game: Game, name: str) -> None:
    """Raise OptionError if an agent needs the rolls of a turn and the board does not count them."""
    if name == "computer" and "rolls" not in game.columns:
        count_rolls = setting("count_rolls", "true")
        raise OptionError(
            f"agent 'computer' needs the rolls of the turn; play it with {count_rolls}"
        )


# --- groups of decisions -------------------------------------------------------------------------

STEPS, TURNS = 3, 6
"""The number of steps of a lead, and of a deficit; of spans of a turn. The last has no bound."""


@njit(GROUP_TYPE)
def group(board, state, actor, out, rest):
    """Return the group of a state, by the contract in `solver.game.groups`."""
    points = board.ints[0]  # of a step of the lead, and of a span of the turn
    lead, turn = state[MINE] - state[YOURS], state[TURN]
    step = min((abs(lead) + points - 1) // points, STEPS)
    side = STEPS + (step if lead > 0 else -step)
    span = min((turn + points - 1) // points, TURNS)
    out[2], out[3] = state[MINE], state[YOURS]
    if turn > 0:
        out[0], out[1] = side, turn
        rest[TURN] = 0
    return side * (TURNS + 1) + span


def groups_of_scores(goal: int, max_score: int, hold: str, name: str, holding: str) -> Groups:
    """Return groups of a game to about `goal` points, with scores up to `max_score`.

    hold: the name of the action. name, holding: the action in column titles and in sentences.
    """
    points = max(1, goal // 10)
    ahead, turns = spans(points, STEPS), ["before the first roll", *spans(points, TURNS)]
    leads = [f"behind by {x}" for x in reversed(ahead)] + ["level"]
    leads += [f"ahead by {x}" for x in ahead]
    score = {"low": 0, "step": 1, "cells": max_score + 1}
    return Groups(
        columns=(Grouped("scores", leads), Grouped("points of the turn", turns)),
        group=group,
        numbers=Numbers(np.array([points], np.int64), np.zeros(1)),
        axes=(
            Axis("mine", "points of the player up", **score),
            Axis("yours", "points of the other", **score),
        ),
        thresholds=[
            Threshold(f"{lead}, the player", name, lambda action: action == hold, "{:,}", "points")
            for lead in leads
        ],
        turning=TurningPoint(
            "turn", lambda action: action == hold, holding, lambda states, up: states[:, TURN],
            lambda turn: many(turn, "point"), " in this turn",
        ),
    )  # fmt: skip


def spans(step: int, count: int) -> Sequence[str]:
    """Return ``1 to 10``, …, and a last one without an upper bound."""
    ends = [((k - 1) * step + 1, k * step) for k in range(1, count)]
    return [*(f"{a} to {b}" if a < b else f"{a}" for a, b in ends), f"above {(count - 1) * step}"]
