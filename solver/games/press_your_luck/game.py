"""The rules of Press Your Luck, round 2, once: the transition, the fields, the rules on a board.

A state is twelve numbers: scores (in units of the board's `score_unit`), earned spins, passed
spins, whammies, each for the three players in turn order. `max_whammies` whammies: out, with
nothing. The player **up** is the first in turn order who has a spin.

* Up with passed spins, they must spin one. Otherwise they may play an earned one or pass **all** of
  those to the highest-scoring opponent still in; these become that opponent's passed spins. Two
  opponents level: the passer picks (``tied_pass = "passer"``), or the next in turn order gets them.
* A spin pays money (the spin is used), or money plus a spin (one spin is earned in its place), or
  it is a whammy: the spin is used, the score is 0, the passed spins left become earned. The last
  whammy (`max_whammies`) puts the player out.
* `third_place_spins`: strictly behind both others, with all three in, a player must play.
* At the cap a player passes whenever they may, to the next in turn order if the others are level;
  scores saturate there.
* Over when nobody has a spin or one player is left in. The highest score among the players in wins,
  ties share. The payoff is each player's chance to win.

Ties between actions: playing comes before passing, passing to the next in turn order before passing
to the other; a later one must be better by more than the tolerance.

Merging: with T spins left in all, a player with w whammies and w + T < max_whammies can not be put
out any more; w is written as 0.

People group decisions by spins left, place and lead (`groups`), and ask at what lead the leader
passes, and how far behind the second. Agents are how people play; they are asked only where there
is a choice between playing and passing.

Sources: docs/sources.md#pressorpass, docs/sources.md#fan-pages-of-press-your-luck.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numba as nb
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
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups, Threshold, TurningPoint
from luckbase.solver.game.rules import (
    CHANCE,
    DECISION,
    TERMINAL,
    TRANSITION_TYPE,
    Numbers,
    Rules,
)
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard, outcome_distribution
from luckbase.solver.njit import njit
from luckbase.solver.sentences import many

PLAYERS = 3
SCORE, EARNED, PASSED, WHAMMIES = 0, 3, 6, 9
"""Where the fields start in a state."""
FIELDS = 12

PLAY = 0
"""The action of spinning; passing to player i (from 0) is the action i + 1."""

TIE_TOLERANCE = 1e-12
"""Two actions closer than this are tied: far above float64 noise (1e-15), far below a real gap."""

CAP, MAX_WHAMMIES, THIRD_PLACE_SPINS, PASSER_PICKS, MONEY, OUTCOMES, UNITS = 0, 1, 2, 3, 4, 5, 6
"""Where the board's whole numbers stand: money how many outcomes are money, OUTCOMES how many there
are; their units come last, money first."""


@njit(nb.int64(nb.int64[::1]))
def player_up(state):
    """The first in turn order who has a spin; -1 if nobody has."""
    for i in range(PLAYERS):
        if state[EARNED + i] + state[PASSED + i] > 0:
            return i
    return -1


@njit(nb.void(nb.int64[::1], nb.int64, nb.float64[::1]))
def share_the_win(state, max_whammies, payoff):
    """The payoff of a game that is over: the highest score among the players in, ties share."""
    best, winners = -1, 0
    for i in range(PLAYERS):
        if state[WHAMMIES + i] < max_whammies:
            if state[SCORE + i] > best:
                best, winners = state[SCORE + i], 0
            if state[SCORE + i] == best:
                winners += 1
    for i in range(PLAYERS):
        wins = state[WHAMMIES + i] < max_whammies and state[SCORE + i] == best
        payoff[i] = 1.0 / winners if wins else 0.0


@njit(nb.void(nb.int64[::1], nb.int64[::1], nb.int64, nb.int64, nb.int64[::1]))
def spin(ints, state, up, outcome, child):
    """Write the state after `up` spins: outcome -1 is a whammy, else the board's (money first)."""
    for i in range(state.size):  # to assign a slice would compile what it may raise
        child[i] = state[i]
    child[(PASSED if state[PASSED + up] > 0 else EARNED) + up] -= 1
    if outcome < 0:
        child[SCORE + up] = 0
        child[EARNED + up] += child[PASSED + up]
        child[PASSED + up] = 0
        child[WHAMMIES + up] += 1
        if child[WHAMMIES + up] == ints[MAX_WHAMMIES]:
            child[EARNED + up] = 0
    else:
        child[SCORE + up] = min(state[SCORE + up] + ints[UNITS + outcome], ints[CAP])
        if outcome >= ints[MONEY]:
            child[EARNED + up] += 1
    spins = 0
    for i in range(EARNED, WHAMMIES):
        spins += child[i]
    for i in range(WHAMMIES, FIELDS):  # forget whammies that no longer matter
        if child[i] + spins < ints[MAX_WHAMMIES]:
            child[i] = 0


@njit(TRANSITION_TYPE)
def transition(board, state, edges):  # noqa: C901  # the rules, in the order in which they are told
    """The edges of a state, by the contract in `solver.game.rules`.

    `reals` holds the chance of a whammy, then the outcomes' in the order of their units.
    """
    ints, reals = board
    children, weights, actions, rewards, about = edges
    most = ints[MAX_WHAMMIES]
    up, others, highest, behind = player_up(state), 0, -1, 0
    for i in range(PLAYERS):
        if i != up and state[WHAMMIES + i] < most:
            others += 1
            highest = max(highest, state[SCORE + i])
            behind += state[SCORE + up] < state[SCORE + i]  # in third place: behind two
    if up < 0 or others < 1:
        about[0], about[1] = TERMINAL, -1
        share_the_win(state, most, rewards[0])
        return 0

    must_spin, own = state[PASSED + up] > 0, state[SCORE + up]
    at_cap, n = own == ints[CAP], 0
    if must_spin or not at_cap:
        spin(ints, state, up, -1, children[0])
        weights[0] = reals[0]
        for outcome in range(ints[OUTCOMES]):
            n = outcome + 1
            weights[n] = reals[n]
            if outcome in (0, ints[MONEY]):
                spin(ints, state, up, outcome, children[n])
            else:  # like the outcome before it but for the score
                for i in range(FIELDS):
                    children[n, i] = children[n - 1, i]
                children[n, SCORE + up] = min(own + ints[UNITS + outcome], ints[CAP])
        n += 1
        for edge in range(n):
            actions[edge] = PLAY
    choices = 1 if n else 0
    if not must_spin and (ints[THIRD_PLACE_SPINS] == 0 or behind < 2):
        for step in range(1, PLAYERS):
            to = (up + step) % PLAYERS
            if state[WHAMMIES + to] == most or state[SCORE + to] < highest:
                continue
            for i in range(FIELDS):
                children[n, i] = state[i]
            children[n, PASSED + to] += state[EARNED + up]
            children[n, EARNED + up] = 0
            weights[n], actions[n] = 1.0, to + 1
            n, choices = n + 1, choices + 1
            if at_cap or ints[PASSER_PICKS] == 0:
                break
    about[0], about[1] = (DECISION if choices > 1 else CHANCE), up
    return n


# --- bound to a board ----------------------------------------------------------------------------

HERE = __package__
LEVEL = Level(
    falls={f"{spins}_{i}": 1 for spins in ("earned", "passed") for i in (1, 2, 3)},
    apart=tuple({f"whammies_{i}": 1} for i in (1, 2, 3)),
    inside=tuple({f"scores_{i}": -1} for i in (1, 2, 3)),
)
"""The spins left; while they stay the same, so do the whammies, and no score falls."""
MAX_SPINS = 1000
"""Spins that a state may hold; beyond any game, and small enough to count with."""


def press_your_luck(board: PressYourLuckBoard) -> Rules:
    """The rules of three players, round 2, on a board."""
    options = board.rules
    outcomes, most = outcome_distribution(board), options.max_whammies
    either = outcomes.money + outcomes.spin
    ints = [board.cap_units, most, options.third_place_spins, options.tied_pass == "passer",
            len(outcomes.money), len(either), *(units for units, _ in either)]  # fmt: skip
    chances = [float(outcomes.whammy), *(float(chance) for _, chance in either)]
    return Rules(
        fields=fields(board),
        players=3,
        transition=transition,
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


def fields(board: PressYourLuckBoard) -> list[Field]:
    """The fields of a state on a board."""
    unit, cap, most = board.solve.score_unit, board.solve.score_cap, board.rules.max_whammies
    scores = ",".join(str(min(dollars, cap) // unit * unit) for dollars in (0, 8000, 3000))
    return [
        Field("scores", 3, high=cap, unit=unit, default=None, bits=8, sample=scores,
              help="Dollars of players 1, 2 and 3, in turn order."),
        Field("earned", 3, bits=5, sample="0,1,0",  # a game's questions give 20 spins
              help="Spins that each player earned and may play or pass."),
        Field("passed", 3, bits=5, sample="0,0,2",
              help="Spins that were passed to each player, who must play them."),
        Field("whammies", 3, high=most, bits=3, sample=f"0,{most - 1},0",
              help=f"Whammies that each player has had; who has {most} is out."),
    ]  # fmt: skip


def action_name(action: int) -> str:
    """``play``, ``pass to 3``."""
    return "play" if action == PLAY else f"pass to {action}"


def canonical(most: int, states: Ints, refuse: Refuse) -> Ints:
    """Canonical states: whammies that can put nobody out any more are 0."""
    scores, earned, passed, whammies = (states[:, i : i + 3] for i in range(0, 12, 3))
    out = whammies == most
    for name, column in (("scores", scores), ("earned", earned), ("passed", passed)):
        refuse(
            out & (column > 0),
            lambda x, i, name=name: (
                f"{name}: player {i + 1} is out ({many(most, 'whammy', 'whammies')}); expected 0"
            ),
        )
    refuse(
        out.all(axis=1, keepdims=True),
        lambda x, i: "whammies: all three players are out; somebody must be in",
    )
    spins = earned.sum(axis=1, keepdims=True) + passed.sum(axis=1, keepdims=True)
    refuse(
        spins > MAX_SPINS,
        lambda x, i: f"earned and passed: {spins[x, 0]} spins; expected at most {MAX_SPINS}",
    )
    whammies[~out & (whammies + spins < most)] = 0
    return states


SPINS = 20
"""Spins left that are told apart; beyond, they are one group."""
STEPS = 4
"""Steps of a lead, and as many of a deficit; the last is open."""
PLACES = ("leader", "second", "third")
UNIT, STEP = 3, 4
"""Where the numbers of `group` stand, after CAP, MAX_WHAMMIES and THIRD_PLACE_SPINS; the step of a
lead in dollars."""
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@njit(GROUP_TYPE)
def group(board, state, actor, out, rest):
    """The group of a state, by the contract in `solver.game.groups`; who decides follows from the
    rules: who is up with earned spins, below the cap, not bound to play in third place."""
    ints = board.ints
    up = player_up(state)
    if up < 0 or state[PASSED + up] > 0 or state[SCORE + up] == ints[CAP]:
        return -1
    own, highest, above, others, spins = state[SCORE + up], -1, 0, 0, 0
    for i in range(3):
        spins += state[EARNED + i] + state[PASSED + i]
        if i != up and state[WHAMMIES + i] < ints[MAX_WHAMMIES]:
            others += 1
            highest = max(highest, state[SCORE + i])
            above += own < state[SCORE + i]
    if others == 0 or (ints[THIRD_PLACE_SPINS] != 0 and above == 2):
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
    ints = [board.cap_units, board.rules.max_whammies, board.rules.third_place_spins, unit, step]
    ends = [((k - 1) * step + unit, k * step) for k in range(1, STEPS)]
    ahead = [f"${a:,} to ${b:,}" if a < b else f"${a:,}" for a, b in ends]
    ahead.append(f"above ${(STEPS - 1) * step:,}")
    leads = [f"behind {x}" for x in reversed(ahead)] + ["level"] + [f"ahead {x}" for x in ahead]
    several = [*NUMBERS, *range(len(NUMBERS) + 2, SPINS + 1)]  # all theirs who is up
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
            Threshold(f"with {spins} {who}", "passes", is_pass, "${:,}", of, at)
            for who, of, at in (("the leader", "ahead", "from"), ("the second", "behind", "up to"))
            for spins in ("one spin left", *(f"{n} spins left, all theirs," for n in several))
        ],
        decides=True,
        turning=TurningPoint(
            "scores", is_pass, "passing", lambda states, up: leads_in(states, up) * unit, say_lead
        ),
    )


def leads_in(states: Ints, up: int) -> Ints:
    """(n,) how far the player up is ahead of the best other one, in units; who is out has 0."""
    others = [SCORE + i for i in range(PLAYERS) if i != up]
    found: Ints = states[:, SCORE + up] - states[:, others].max(axis=1)
    return found


def say_lead(lead: int) -> str:
    """``$5,500 ahead``."""
    return f"${abs(lead):,} {'ahead' if lead > 0 else 'behind'}" if lead else "level"


def is_pass(action: str) -> bool:
    return action.startswith("pass")


def lead_of(player: int, state: Ints, others: Iterable[int]) -> int:
    """How far the player is ahead of the best of others, in units."""
    return int(state[SCORE + player] - max(state[SCORE + i] for i in others if i != player))


def never_pass(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Plays every spin, as long as the rules let them."""
    return actions.index(PLAY) if PLAY in actions else 0


def always_pass(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Passes whenever they may."""
    return next(i for i, action in enumerate(actions) if action != PLAY)


def always_pass_ahead(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Passes whenever they are ahead of every opponent still in, else plays."""
    inside = np.flatnonzero(state[WHAMMIES:] < game.numbers.ints[MAX_WHAMMIES])
    choose = always_pass if lead_of(player, state, inside) > 0 else never_pass
    return choose(game, player, state, actions)


def play_until_ahead(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Plays until they lead by the least amount that a spin pays, then passes."""
    least = game.numbers.ints[UNITS:].min()
    choose = always_pass if lead_of(player, state, range(PLAYERS)) > least else never_pass
    return choose(game, player, state, actions)


AGENTS: Mapping[str, Agent] = {
    "never-pass": never_pass,
    "always-pass": always_pass,
    "always-pass-ahead": always_pass_ahead,
    "play-until-ahead": play_until_ahead,
}
"""The agents by name."""
