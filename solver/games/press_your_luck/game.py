"""The rules of Press Your Luck, round 2, once: the transition, the fields, the rules on a board.

A state is twelve numbers: scores (in units of the board's `score_unit`), earned spins, passed
spins, whammies, each for the three players in turn order. `max_whammies` whammies: out, with
nothing. The player **up** is the first in turn order who has a spin. On boards where a spin may
leave them something to choose there is a thirteenth, `offer`: 0, or which of the board's lists of
slides they have spun and take one of.

* Up with passed spins, they must spin one. Otherwise they may play an earned one or pass **all** of
  those to the highest-scoring opponent still in; these become that opponent's passed spins. Two
  opponents level: the passer picks (``tied_pass = "passer"``), or the next in turn order gets them.
* A spin pays money (the spin is used), or money plus a spin (one spin is earned in its place), or
  it is a whammy: the spin is used, the score is 0, the passed spins left become earned. The last
  whammy (`max_whammies`) puts the player out. It may also double the score, bring several spins (of
  all players together never more than `spin_cap`), or take a whammy away.
* Of an offer they take what is best for them; of those that are tied the first as the board has
  them, which is clockwise, and money before a whammy less.
* `third_place_spins`: strictly behind both others, with all three in, a player must play.
* At the cap a player passes whenever they may, to the next in turn order if the others are level;
  scores saturate there.
* Over when nobody has a spin or one player is left in. The highest score among the players in wins,
  ties share. The payoff is each player's chance to win; or the dollars that they take home, all of
  the score for everybody who has won, else 0; or these and `win_value` times their share of the win
  (`objective`).
* `house`: the last one in plays on. They must spin what was passed to them; when they have earned
  spins alone they may stop, and at the cap they do. With the last whammy nobody has won.

Ties between actions: playing comes before passing, passing to the next in turn order before passing
to the other; a later one must be better by more than the tolerance.

Merging: with T spins left in all, a player with w whammies and w + T < max_whammies can not be put
out any more; w is written as 0. Not so where a player may choose to lose a whammy, for they may do
so to stay level, nor where a slide brings several spins.

People group decisions by spins left, place and lead (`groups`), and ask at what lead the leader
passes, and how far behind the second. Agents are how people play; they are asked only where there
is a choice between playing and passing.

Sources: docs/sources.md#pressorpass, docs/sources.md#fan-pages-of-press-your-luck.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numba as nb
import numpy as np
from numba import types

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
    Unavailable,
)
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard, outcome_distribution
from luckbase.solver.games.press_your_luck.outcomes import (
    DOUBLES,
    LOSES,
    MAY_LOSE,
    PAYS,
    WHAMMY,
    Effect,
)
from luckbase.solver.njit import njit
from luckbase.solver.sentences import many

PLAYERS = 3
SCORE, EARNED, PASSED, WHAMMIES = 0, 3, 6, 9
"""Where the fields start in a state."""
FIELDS, OFFER = 12, 12
"""Columns of a state without an offer, and where the offer stands."""

PLAY, TAKE = 0, 4
"""The actions of spinning and, from TAKE on, of taking what a slide does, and of stopping behind
these; passing to player i (from 0) is the action i + 1."""

TIE_TOLERANCE = 1e-12
"""Two actions closer than this share of the largest payoff are tied: far above float64 noise
(1e-15), far below a real gap."""

CAP, MAX_WHAMMIES, THIRD_PLACE_SPINS, PASSER_PICKS, MONEY, OUTCOMES, UNITS = 0, 1, 2, 3, 4, 5, 10
MERGES, SPIN_CAP, OFFERS, STOP = 6, 7, 8, 9
"""Where the board's whole numbers stand: MONEY how many outcomes are money, OUTCOMES how many are
money or money plus a spin, MERGES whether whammies that can put nobody out are 0, SPIN_CAP that or
-1, OFFERS how many other outcomes there are, STOP the action of stopping against the house, 0 if
nobody plays against it. From UNITS on, the units of the outcomes, money first;
then where each of the others begins and the last one ends; there, kind, units and spins of each
effect (`outcomes.Effect`), and the action of taking it."""
ROW = 4
"""Numbers that stand there of an effect."""


@njit(nb.int64(nb.int64[::1]))
def player_up(state):
    """The first in turn order who has a spin; -1 if nobody has."""
    for i in range(PLAYERS):
        if state[EARNED + i] + state[PASSED + i] > 0:
            return i
    return -1


@njit(nb.void(nb.int64[::1], nb.int64, nb.float64, nb.float64, nb.float64[::1]))
def pay_winners(state, max_whammies, win, dollars, payoff):
    """The payoff of a game that is over: the highest score among the players in wins. Ties share
    what a win counts, and each has all the dollars of their units."""
    best, winners = -1, 0
    for i in range(PLAYERS):
        if state[WHAMMIES + i] < max_whammies:
            if state[SCORE + i] > best:
                best, winners = state[SCORE + i], 0
            if state[SCORE + i] == best:
                winners += 1
    for i in range(PLAYERS):
        wins = state[WHAMMIES + i] < max_whammies and state[SCORE + i] == best
        payoff[i] = win / winners + dollars * state[SCORE + i] if wins else 0.0


@njit(nb.void(nb.int64[::1], nb.int64[::1], nb.int64, types.UniTuple(nb.int64, 3), nb.int64[::1]))
def spin(ints, state, up, effect, child):  # noqa: C901  # the rules, in the order in which they are told
    """Write the state after a spin of `up` that has come to an effect (kind, units, spins)."""
    kind, units, brings = effect
    for i in range(FIELDS):  # to assign a slice would compile what it may raise
        child[i] = state[i]
    if state.size > FIELDS:
        child[OFFER] = 0
    child[(PASSED if state[PASSED + up] > 0 else EARNED) + up] -= 1
    if kind == WHAMMY:
        child[SCORE + up] = 0
        child[EARNED + up] += child[PASSED + up]
        child[PASSED + up] = 0
        child[WHAMMIES + up] += 1
        if child[WHAMMIES + up] == ints[MAX_WHAMMIES]:
            child[EARNED + up] = 0
    elif kind in (LOSES, MAY_LOSE):
        child[WHAMMIES + up] = max(state[WHAMMIES + up] - 1, 0)
    else:
        more = state[SCORE + up] if kind == DOUBLES else units
        child[SCORE + up] = min(state[SCORE + up] + more, ints[CAP])
    spins = 0
    for i in range(EARNED, WHAMMIES):
        spins += child[i]
    if brings and ints[SPIN_CAP] >= 0:
        brings = max(0, min(brings, ints[SPIN_CAP] - spins))
    child[EARNED + up] += brings
    if ints[MERGES]:
        for i in range(WHAMMIES, FIELDS):  # forget whammies that no longer matter
            if child[i] + spins + brings < ints[MAX_WHAMMIES]:
                child[i] = 0


@njit(nb.int64(nb.int64[::1], nb.int64[::1], nb.int64, nb.int64, nb.int64[:, ::1], nb.int64[::1]))
def take(ints, state, up, offer, children, actions):
    """Write the states that `up` may come to of an offer, and the actions; returns how many."""
    starts = UNITS + ints[OUTCOMES] + offer - 1
    n, at = 0, ints[starts]
    while at < ints[starts + 1]:
        if ints[at] != MAY_LOSE or state[WHAMMIES + up] > 0:
            spin(ints, state, up, (ints[at], ints[at + 1], ints[at + 2]), children[n])
            actions[n] = ints[at + 3]
            n += 1
        at += ROW
    return n


@njit(nb.void(nb.int64[::1], nb.int64[::1], nb.int64, nb.int64[::1]))
def stop(ints, state, up, child):
    """Write the state in which `up`, the last one in, has given their earned spins away."""
    for i in range(state.size):
        child[i] = state[i]
    child[EARNED + up] = 0
    if ints[MERGES]:
        child[WHAMMIES + up] = 0


@njit(TRANSITION_TYPE)
def transition(board, state, edges):  # noqa: C901, PLR0915  # the rules, in the order of telling
    """The edges of a state, by the contract in `solver.game.rules`.

    `reals` holds the chance of a whammy, then the outcomes' in the order of their units, then those
    of the others; last what a win counts and what a unit of a winner's score does.
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
    if up < 0 or (others < 1 and ints[STOP] == 0):
        about[0], about[1] = TERMINAL, -1
        pay_winners(state, most, reals[reals.size - 2], reals[reals.size - 1], rewards[0])
        return 0

    if state.size > FIELDS and state[OFFER] > 0:
        n = take(ints, state, up, state[OFFER], children, actions)
        for edge in range(n):
            weights[edge] = 1.0
        about[0], about[1] = (DECISION if n > 1 else CHANCE), up
        return n

    must_spin, own = state[PASSED + up] > 0, state[SCORE + up]
    at_cap, n = own == ints[CAP], 0
    if must_spin or not at_cap:
        spin(ints, state, up, (WHAMMY, 0, 0), children[0])
        weights[0], n = reals[0], 1
        for outcome in range(ints[OUTCOMES]):
            weights[n] = reals[1 + outcome]
            if outcome in (0, ints[MONEY]):
                brings = 1 if outcome >= ints[MONEY] else 0
                spin(ints, state, up, (PAYS, ints[UNITS + outcome], brings), children[n])
            else:  # like the outcome before it but for the score
                for i in range(state.size):
                    children[n, i] = children[n - 1, i]
                children[n, SCORE + up] = min(own + ints[UNITS + outcome], ints[CAP])
            n += 1
        for offer in range(1, ints[OFFERS] + 1):
            weights[n] = reals[ints[OUTCOMES] + offer]
            if take(ints, state, up, offer, children[n:], actions) > 1:
                for i in range(FIELDS):
                    children[n, i] = state[i]
                children[n, OFFER] = offer
            n += 1
        for edge in range(n):
            actions[edge] = PLAY
    choices = 1 if n else 0
    if not must_spin and (ints[THIRD_PLACE_SPINS] == 0 or behind < 2):
        for step in range(1, PLAYERS):
            to = (up + step) % PLAYERS
            if state[WHAMMIES + to] == most or state[SCORE + to] < highest:
                continue
            for i in range(state.size):
                children[n, i] = state[i]
            children[n, PASSED + to] += state[EARNED + up]
            children[n, EARNED + up] = 0
            weights[n], actions[n] = 1.0, to + 1
            n, choices = n + 1, choices + 1
            if at_cap or ints[PASSER_PICKS] == 0:
                break
    if others < 1 and not must_spin:
        stop(ints, state, up, children[n])
        weights[n], actions[n] = 1.0, ints[STOP]
        n, choices = n + 1, choices + 1
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
    options, unit = board.rules, board.solve.score_unit
    outcomes, most = outcome_distribution(board), options.max_whammies
    either, others = outcomes.money + outcomes.spin, outcomes.others
    effects = sorted({effect for each, _ in others for effect in each})
    grows = any(effect.spins > 1 for effect in effects)
    merges = not grows and all(effect.kind != MAY_LOSE for effect in effects)
    ints = [board.cap_units, most, options.third_place_spins, options.tied_pass == "passer",
            len(outcomes.money), len(either), merges,
            -1 if options.spin_cap is None else options.spin_cap, len(others),
            TAKE + len(effects) if options.house else 0,
            *(units for units, _ in either)]  # fmt: skip
    starts = np.cumsum([0, *(len(each) for each, _ in others)]) * ROW
    ints += (len(ints) + len(starts) + starts).tolist()
    ints += [number for each, _ in others for effect in each
             for number in (*effect, TAKE + effects.index(effect))]  # fmt: skip
    chances = [float(chance) for chance in (outcomes.whammy, *(p for _, p in either + others))]
    money = options.objective != "win"
    win = float({"win": 1, "money": 0}.get(options.objective, options.win_value or 0))
    most_paid = win + money * board.solve.score_cap
    beyond = (
        "has slides" if others else f"has an objective ('{options.objective}')" if money else ""
    )
    takes = [*(f"take {effect_name(each, unit)}" for each in effects), "stop"]
    return Rules(
        fields=fields(board, len(others) if any(len(each) > 1 for each, _ in others) else 0),
        players=3,
        transition=transition,
        numbers=Numbers(np.array(ints, np.int64), np.array([*chances, win, money * unit])),
        max_edges=outcomes.distinct + 3 + max((len(each) for each, _ in others), default=0),
        start=None if board.start is None else lambda: list(board.starts()),
        actions=partial(action_name, takes),
        canonical=partial(canonical, most, merges, options.house),
        tie_tolerance=TIE_TOLERANCE * most_paid,
        payoff_range=(0.0, most_paid),
        payoff_name="expected dollars" if money else "",
        capabilities={
            Layout: Unavailable(NO_TIERS.format(beyond)) if beyond else f"{HERE}.layout:Planes",
            Agents: Agents(AGENTS),
            Charts: f"{HERE}.charts:LuckCharts",
            SearchHints: SearchHints(level=None if grows else LEVEL),
            Drawing: f"{HERE}.scene:drawing",
            Groups: groups,
        },
    )


def fields(board: PressYourLuckBoard, offers: int) -> list[Field]:
    """The fields of a state on a board; with so many offers there is a field for them, and as much
    room for spins as a key has left."""
    unit, cap, most = board.solve.score_unit, board.solve.score_cap, board.rules.max_whammies
    sample = ",".join(str(min(dollars, cap) // unit * unit) for dollars in (0, 8000, 3000))
    offer = Field(
        "offer",
        high=offers,
        sample="0",
        help="Which of the board's lists of slides the player up spun and takes one of; 0: none.",
    )
    width, bits = 8, 5  # a game's questions give 20 spins
    if offers:
        width = board.cap_units.bit_length()
        bits = min(bits, (64 - 3 * width - 9 - offer.width) // 6)
    found = [
        Field("scores", 3, high=cap, unit=unit, default=None, bits=width, sample=sample,
              help="Dollars of players 1, 2 and 3, in turn order."),
        Field("earned", 3, bits=bits, sample="0,1,0",
              help="Spins that each player earned and may play or pass."),
        Field("passed", 3, bits=bits, sample="0,0,2",
              help="Spins that were passed to each player, who must play them."),
        Field("whammies", 3, high=most, bits=3, sample=f"0,{most - 1},0",
              help=f"Whammies that each player has had; who has {most} is out."),
    ]  # fmt: skip
    return [*found, offer] if offers else found


def action_name(takes: Sequence[str], action: int) -> str:
    """``play``, ``pass to 3``, ``take $1,750``, ``stop``."""
    if action >= TAKE:
        return takes[action - TAKE]
    return "play" if action == PLAY else f"pass to {action}"


def effect_name(effect: Effect, unit: int, more: str = "") -> str:
    """What a person calls what a slide does; more: behind an amount."""
    names = {
        PAYS: f"${effect.units * unit:,}{more}", WHAMMY: "whammy", DOUBLES: "the score again",
        LOSES: "a whammy less", MAY_LOSE: "a whammy less",
    }  # fmt: skip
    return (
        names[effect.kind]
        + ("", " and a spin", f" and {many(effect.spins, 'spin')}")[min(effect.spins, 2)]
    )


def canonical(most: int, merges: bool, house: bool, states: Ints, refuse: Refuse) -> Ints:
    """Canonical states: whammies that can put nobody out any more are 0, where that `merges`."""
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
        out.all(axis=1, keepdims=True) & (not house),
        lambda x, i: "whammies: all three players are out; somebody must be in",
    )
    spins = earned.sum(axis=1, keepdims=True) + passed.sum(axis=1, keepdims=True)
    refuse(
        spins > MAX_SPINS,
        lambda x, i: f"earned and passed: {spins[x, 0]} spins; expected at most {MAX_SPINS}",
    )
    refuse(
        (states[:, OFFER:] > 0) & (spins == 0),
        lambda x, i: "offer: nobody has a spin that could have come to it; expected 0",
    )
    if merges:
        whammies[~out & (whammies + spins < most)] = 0
    return states


NO_TIERS = (
    "has {} that no full table takes yet; run: luckbase solve with --from, to search what lies "
    "below a state"
)
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
    if state.size > FIELDS and state[OFFER] > 0:
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
    inside = np.flatnonzero(state[WHAMMIES:FIELDS] < game.numbers.ints[MAX_WHAMMIES])
    choose = always_pass if lead_of(player, state, inside) > 0 else never_pass
    return choose(game, player, state, actions)


def play_until_ahead(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Plays until they lead by the least amount that a spin pays, then passes."""
    ints = game.numbers.ints
    least = ints[UNITS : UNITS + ints[OUTCOMES]].min(initial=ints[CAP])
    choose = always_pass if lead_of(player, state, range(PLAYERS)) > least else never_pass
    return choose(game, player, state, actions)


AGENTS: Mapping[str, Agent] = {
    "never-pass": never_pass,
    "always-pass": always_pass,
    "always-pass-ahead": always_pass_ahead,
    "play-until-ahead": play_until_ahead,
}
"""The agents by name."""
