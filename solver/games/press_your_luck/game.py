"""Press Your Luck bound to a board: its rules.

* People group decisions by spins left, place and lead (`groups`), and ask at what lead the leader
  passes, and how far behind the second.
* Agents are how people play, each one short function. They are asked only where there is a choice
  between playing and passing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    Agents,
    Charts,
    Drawing,
    Layout,
    Level,
    SearchHints,
)
from luckbase.solver.game.fields import Field, Refuse
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups, Threshold
from luckbase.solver.game.rules import Numbers, Rules
from luckbase.solver.games.press_your_luck import rules
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard, outcome_distribution
from luckbase.solver.games.press_your_luck.rules import (
    EARNED,
    PASSED,
    SCORE,
    TIE_TOLERANCE,
    WHAMMIES,
    player_up,
)
from luckbase.solver.njit import njit

PLAYERS = range(1, rules.PLAYERS + 1)
HERE = __package__
LEVEL = Level(
    falls={f"{spins}_{i}": 1 for spins in ("earned", "passed") for i in PLAYERS},
    apart=tuple({f"whammies_{i}": 1} for i in PLAYERS),
    inside=tuple({f"scores_{i}": -1} for i in PLAYERS),
)
"""The spins left; while they stay the same, so do the whammies, and no score falls."""
MAX_SPINS = 1000
"""Spins that a state may hold; beyond any game, and small enough to count with."""


def press_your_luck(board: PressYourLuckBoard) -> Rules:
    """The rules of three players, round 2, on a board; see `rules` for the game."""
    options, solve = board.rules, board.solve
    outcomes, most = outcome_distribution(board), options.max_whammies
    either = outcomes.money + outcomes.spin
    ints = [board.cap_units, most, options.third_place_spins, options.tied_pass == "passer",
            len(outcomes.money), len(either), *(units for units, _ in either)]  # fmt: skip
    chances = [float(outcomes.whammy), *(float(chance) for _, chance in either)]
    return Rules(
        fields=[
            Field("scores", 3, high=solve.score_cap, unit=solve.score_unit, default=None, bits=8),
            Field("earned", 3, bits=5),  # a game's questions give 20 spins
            Field("passed", 3, bits=5),
            Field("whammies", 3, high=most, bits=3),
        ],
        players=3,
        transition=rules.transition,
        numbers=Numbers(np.array(ints, np.int64), np.array(chances)),
        max_edges=outcomes.distinct + 3,
        actions=action_name,
        canonical=partial(canonical, most),
        tie_tolerance=TIE_TOLERANCE,
        capabilities={
            Layout: f"{HERE}.layout:Planes",
            Agents: Agents(AGENTS),
            Charts: f"{HERE}.charts:LuckCharts",
            SearchHints: SearchHints(level=LEVEL),
            Drawing: f"{HERE}.scene:drawing",
            Groups: groups,
        },
    )


def action_name(action: int) -> str:
    """``play``, ``pass to 3``."""
    return "play" if action == rules.PLAY else f"pass to {action}"


def canonical(most: int, states: Ints, refuse: Refuse) -> Ints:
    """Canonical states: whammies that can put nobody out any more are 0."""
    scores, earned, passed, whammies = (states[:, i : i + 3] for i in range(0, 12, 3))
    out = whammies == most
    for name, column in (("scores", scores), ("earned", earned), ("passed", passed)):
        refuse(out & (column > 0), _out_with(name, most))
    refuse(
        out.all(axis=1, keepdims=True),
        lambda x, i: "whammies: all three players are out; somebody must be in",
    )
    spins = earned.sum(axis=1, keepdims=True) + passed.sum(axis=1, keepdims=True)
    refuse(
        spins > MAX_SPINS,
        lambda x, i: f"earned and passed: {spins[x, 0]} spins; the most is {MAX_SPINS}",
    )
    whammies[~out & (whammies + spins < most)] = 0
    return states


def _out_with(name: str, most: int) -> Callable[[int, int], str]:
    return lambda x, i: f"{name}: player {i + 1} is out ({most} whammies) and must have 0"


SPINS = 20
"""Spins left that are told apart; beyond, they are one group."""
STEPS = 4
"""Steps of a lead, and as many of a deficit; the last is open."""
PLACES = ("leader", "second", "third")
MAX_WHAMMIES_AT, THIRD, CAP, UNIT, STEP = 0, 1, 2, 3, 4
"""Where the numbers stand; the cap in units, the step of a lead in dollars."""
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@njit(GROUP_TYPE, cache=True, nogil=True)
def group(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """The group of a state, by the contract in `solver.game.groups`; who decides follows from the
    rules: who is up with earned spins, below the cap, not bound to play in third place."""
    ints = board.ints
    up = player_up(state)
    if up < 0 or state[PASSED + up] > 0 or state[SCORE + up] == ints[CAP]:
        return -1
    own, highest, above, others, spins = state[SCORE + up], -1, 0, 0, 0
    for i in range(3):
        spins += state[EARNED + i] + state[PASSED + i]
        if i != up and state[WHAMMIES + i] < ints[MAX_WHAMMIES_AT]:
            others += 1
            highest = max(highest, state[SCORE + i])
            above += own < state[SCORE + i]
    if others == 0 or (ints[THIRD] != 0 and above == 2):
        return -1
    lead = (own - highest) * ints[UNIT]
    step = min((abs(lead) + ints[STEP] - 1) // ints[STEP], STEPS)
    out[2], out[3] = own, highest
    if state[EARNED + up] == spins and (lead > 0 or (lead < 0 and above == 1)):
        out[0], out[1] = min(spins, SPINS) - 1 + (SPINS if lead < 0 else 0), lead
        rest[SCORE + up] = 0
    place = min(above, 2)
    if lead < 0:
        step = -step
    return ((min(spins, SPINS) - 1) * 3 + place) * (2 * STEPS + 1) + STEPS + step


def groups(game: Game) -> Groups:
    """The groups of a board."""
    board = game.board
    assert isinstance(board, PressYourLuckBoard)
    unit, cap = board.solve.score_unit, board.solve.score_cap
    step = -(-cap // 8 // unit) * unit or unit
    ints = [board.rules.max_whammies, board.rules.third_place_spins, board.cap_units, unit, step]
    ends = [((k - 1) * step + unit, k * step) for k in range(1, STEPS)]
    ahead = [f"${a:,} to ${b:,}" if a < b else f"${a:,}" for a, b in ends]
    ahead.append(f"above ${(STEPS - 1) * step:,}")
    leads = [f"behind {x}" for x in reversed(ahead)] + ["level"] + [f"ahead {x}" for x in ahead]
    score = {"low": 0, "step": unit, "cells": board.cap_units + 1}
    return Groups(
        columns=(
            Grouped("spins left", [str(k + 1) for k in range(SPINS)]),
            Grouped("who is up", PLACES),
            Grouped("lead", leads),
        ),
        group=group,
        numbers=Numbers(np.array(ints, np.int64), np.zeros(1)),
        axes=(
            Axis("score", "score of the player up, $", **score),
            Axis("highest_other", "highest score of the others in, $", **score),
        ),
        thresholds=[
            Threshold(f"{spins_said(k + 1)} {who}", "passes", _is_pass, "${:,}", of, at)
            for who, of, at in (("the leader", "ahead", "from"), ("the second", "behind", "up to"))
            for k in range(SPINS)
        ],
        decides=True,
    )


def spins_said(count: int) -> str:
    """How a sentence begins; from the second spin on, all are theirs who is up."""
    word = WORDS[count - 1] if count <= len(WORDS) else str(count)
    return f"with {word} {'spin left' if count == 1 else 'spins left, all theirs,'}"


def _is_pass(action: str) -> bool:
    return action.startswith("pass")


def ahead(game: Game, player: int, state: Ints) -> bool:
    """Whether the player's score is above that of every opponent still in."""
    numbers = game.numbers.ints
    return all(
        state[rules.SCORE + player] > state[rules.SCORE + i]
        for i in range(rules.PLAYERS)
        if i != player and state[rules.WHAMMIES + i] < numbers[rules.MAX_WHAMMIES]
    )


def never_pass(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Plays every spin, as long as the rules let them."""
    return actions.index(rules.PLAY) if rules.PLAY in actions else 0


def always_pass(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Passes whenever they may."""
    return next(i for i, action in enumerate(actions) if action != rules.PLAY)


def always_pass_ahead(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Passes whenever they are ahead, else plays."""
    choose = always_pass if ahead(game, player, state) else never_pass
    return choose(game, player, state, actions)


def play_until_ahead(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Plays until they lead by the least amount that a spin pays, then passes."""
    units = game.numbers.ints[rules.UNITS :]
    lead = state[rules.SCORE + player] - max(
        state[rules.SCORE + i] for i in range(rules.PLAYERS) if i != player
    )
    choose = always_pass if lead > units.min() else never_pass
    return choose(game, player, state, actions)


AGENTS: Mapping[str, Agent] = {
    "never-pass": never_pass,
    "always-pass": always_pass,
    "always-pass-ahead": always_pass_ahead,
    "play-until-ahead": play_until_ahead,
}
"""The agents by name."""
