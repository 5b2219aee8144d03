"""Skunk bound to a board, and what it shares with the Pig that is a race: its rules.

The fields are `mine` and `yours`, the banked points of the player to act and of the other, `turn`,
the points of the turn, and `player`, who acts: 1 (if not said) or 2::

    mine=0 yours=87 turn=32

Payoffs are the two players' chances to win, player 1's first, whoever acts. A board with
`count_rolls` has one more field, `rolls`, the rolls of the turn, and no table.

People group decisions by how the scores stand and the points of the turn, and ask from how many
points of a turn one holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from luckbase.solver.board.model import Board
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    Agents,
    Charts,
    ClosedForms,
    Drawing,
    Layout,
    View,
)
from luckbase.solver.game.fields import Field, Refuse
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups, Threshold
from luckbase.solver.game.rules import Numbers, Unavailable
from luckbase.solver.game.rules import Rules as GameRules
from luckbase.solver.games.skunk import rules
from luckbase.solver.games.skunk.agents import TurnAgents
from luckbase.solver.games.skunk.board import Rules, SkunkBoard
from luckbase.solver.games.skunk.layout import Question, Race
from luckbase.solver.games.skunk.rules import MINE, TURN, YOURS
from luckbase.solver.games.skunk.scene import drawing
from luckbase.solver.njit import njit

HERE = __package__
QUESTIONS: tuple[Question, ...] = (
    ("the start", (0.0, 0.0, 0.0)),
    ("level, at the usual hold", (0.0, 0.0, 0.21)),
    ("far ahead", (0.67, 0.0, 0.0)),
    ("the other is nearly there", (0.0, 0.87, 0.32)),
    ("a great turn, the other nearly there", (0.0, 0.87, 0.44)),
)


def skunk(board: SkunkBoard) -> GameRules:
    """The rules of Skunk on a board."""
    return race(board, board.rules, QUESTIONS)


def race(board: Board, options: Rules, questions: Sequence[Question]) -> GameRules:
    """The rules of a race on a board, whose options are `options` in Skunk's words."""
    goal, counted = options.goal, options.count_rolls
    fields = [
        Field("mine", high=goal, default=None),
        Field("yours", high=goal, default=None),
        Field("turn", high=goal),
        Field("player", low=1, high=2, default=1),
    ]
    return GameRules(
        fields=[*fields, Field("rolls", high=goal)] if counted else fields,
        players=2,
        transition=rules.transition,
        numbers=Numbers(*rules.numbers(options)),
        max_edges=options.dice * options.sides + 4,
        actions=("hold", "roll"),
        start={"mine": 0, "yours": 0},
        canonical=partial(canonical, goal),
        version=2,  # 2: the one tier has no folder of its own
        tie_tolerance=1e-11,
        capabilities={
            Layout: why_no_table(options) or partial(Race, options=options, questions=questions),
            Agents: Agents(TurnAgents(goal, options.sides)),
            Charts: f"{HERE}.charts:RaceCharts",
            ClosedForms: f"{HERE}.agents:RaceForms",
            View: two_forms,
            Drawing: partial(drawing, options),
            Groups: lambda game: groups_of_scores(goal, goal, "hold", "holds"),
        },
    )


NO_ROLLS = Unavailable(
    "count_rolls: a table does not hold the rolls of a turn, which change no value; write false"
)


def why_no_table(options: Rules) -> Unavailable | None:
    """Why a board has no full table; None where it has one."""
    if options.count_rolls:
        return NO_ROLLS
    if not options.must_roll:
        return Unavailable(
            "at mine=0 yours=0 turn=0 both players could pass for ever, and the rules do not say "
            "what such a play pays; a turn must begin with a roll"
        )
    return None


def two_forms(game: Game) -> View:
    """With the rolls of the turn in its states, and without."""
    return View(lambda: counting(game, False), lambda: game)


def counting(game: Game, rolls: bool) -> Game:
    """The game on the same board, with or without the rolls of the turn in its states."""
    form: dict[str, Any] = game.board.model_dump()
    if form["rules"]["count_rolls"] == rolls:
        return game
    form["rules"]["count_rolls"] = rolls
    return load_game(type(game.board).model_validate(form))


def canonical(goal: int, states: Ints, refuse: Refuse) -> Ints:
    """Canonical states: all that are won by one player are one."""
    mine, yours, turn, player = (states[:, i] for i in range(4))
    refuse(
        (mine >= goal) & (yours >= goal),
        lambda x: f"mine and yours: {mine[x]} and {yours[x]}, and {goal} wins at once; only one of "
        "them can have it",
    )  # fmt: skip
    refuse(
        (yours >= goal) & (turn > 0),
        lambda x: f"turn: {turn[x]}, and with yours={yours[x]} the game is over; leave it out",
    )
    if states.shape[1] > rules.ROLLED:
        refuse_rolls(states[:, rules.ROLLED], turn, refuse)
    lost = yours >= goal
    over = lost | (mine + turn >= goal)
    winner = np.where(lost, 3 - player, player)
    states[over] = 0
    states[over, rules.MINE] = goal
    states[over, rules.PLAYER] = winner[over]
    return states


def refuse_rolls(rolls: Ints, turn: Ints, refuse: Refuse) -> None:
    """Refuse rolls (n,) that can not have made the points of the turn (n,)."""
    refuse(
        (turn > 0) != (rolls > 0),
        lambda x: f"rolls: {rolls[x]} rolls and {turn[x]} points in the turn; both are 0 before "
        "the first roll and above it after",
    )  # fmt: skip
    refuse(rolls > turn, lambda x: f"rolls: {rolls[x]} rolls are worth {rolls[x]} or more")


STEPS, TURNS = 3, 6
"""Steps of a lead, and as many of a deficit, the last one open; spans of a turn, the last open."""
STEP, SPAN = 0, 1
"""Where the numbers stand: the points of a step of the lead, and of a span of the turn."""


@njit(GROUP_TYPE, cache=True, nogil=True)
def group(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """The group of a state, by the contract in `solver.game.groups`."""
    ints = board.ints
    lead, turn = state[MINE] - state[YOURS], state[TURN]
    step = min((abs(lead) + ints[STEP] - 1) // ints[STEP], STEPS)
    side = STEPS + (step if lead > 0 else -step)
    span = min((turn + ints[SPAN] - 1) // ints[SPAN], TURNS)
    out[2], out[3] = state[MINE], state[YOURS]
    if turn > 0:
        out[0], out[1] = side, turn
        rest[TURN] = 0
    return side * (TURNS + 1) + span


def groups_of_scores(goal: int, high: int, hold: str, name: str) -> Groups:
    """Groups of a game to about `goal` points, with scores up to `high` and the action `hold`,
    which a sentence calls `name`."""
    step, span = max(1, goal // 10), max(1, goal // 10)
    ahead = spans(step, STEPS)
    leads = [f"behind by {x}" for x in reversed(ahead)] + ["level"] + [
        f"ahead by {x}" for x in ahead
    ]  # fmt: skip
    turns = ["before the first roll", *spans(span, TURNS)]
    score = {"low": 0, "step": 1, "cells": high + 1}
    return Groups(
        columns=(Grouped("scores", leads), Grouped("points of the turn", turns)),
        group=group,
        numbers=Numbers(np.array([step, span], np.int64), np.zeros(1)),
        axes=(
            Axis("mine", "points of the player up", **score),
            Axis("yours", "points of the other", **score),
        ),
        thresholds=[
            Threshold(f"{lead} one", name, lambda action: action == hold, "{:,}", "points")
            for lead in leads
        ],
    )


def spans(step: int, count: int) -> Sequence[str]:
    """``1 to 10``, …, and an open one."""
    ends = [((k - 1) * step + 1, k * step) for k in range(1, count)]
    return [*(f"{a} to {b}" if a < b else f"{a}" for a, b in ends), f"above {(count - 1) * step}"]
