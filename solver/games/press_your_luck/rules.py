"""The rules of Press Your Luck, round 2: the transition, the fields, the rules on a board.

docs/games/press-your-luck.md explains them to people.

A state has four numbers for each player: scores (in units of the board's `score_unit`), earned
spins, passed spins and whammies, each for the two or three players in turn order (`by_field`). A
player with `max_whammies` whammies is out, with nothing left. The player **up** is the first in
turn order who has a spin. On boards where a spin can offer a choice there is one more number,
`offer`: 0, or the index of the list of slides that was spun.

* The player up takes the best effect of an offer; if several are tied, the first in the order of
  the board, which is clockwise, and money before a whammy less.
* At the cap a player passes whenever they may, to the next in turn order if the others are level;
  scores stay at the cap.
* The game is over when no player has a spin or one player is left in. The payoff is each player's
  chance to win, which ties share; or the dollars that they take home, which are the full score for
  every player who has won and 0 for the others; or these plus `win_value` times their share of the
  win (`objective`).

Ties between actions: playing comes before passing, and passing to the next in turn order before
passing to a later player. A later action must be better by more than the tolerance.

Merging: with T spins left in all, a player with w whammies and w + T < max_whammies cannot be put
out any more, so w is written as 0. This does not hold if a player may choose to lose a whammy,
because they may do so to stay level, or if a slide brings several spins.

Sources: docs/numbers.md#pressorpass, docs/numbers.md#fan-pages-of-press-your-luck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import borrowed, njit, types
from luckbase.solver.errors import OptionError
from luckbase.solver.game import rules
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import (
    Agents,
    Charts,
    DecisionLayout,
    Drawing,
    Follow,
    FullTable,
)
from luckbase.solver.game.fields import MAX_VALUE, Field, Refuse
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups, Threshold, TurningPoint
from luckbase.solver.game.rules import Level, Numbers, Rules, Unavailable
from luckbase.solver.games.press_your_luck.board import (
    MAX_CAP_UNITS,
    PressYourLuckBoard,
    outcome_distribution,
)
from luckbase.solver.games.press_your_luck.outcomes import (
    DOUBLES,
    LOSES,
    MAY_LOSE,
    PAYS,
    WHAMMY,
    Effect,
)
from luckbase.solver.sentences import NUMBERS, many

_i, _i1 = types.int64, types.int64[::1]
SCORES, EARNED, PASSED, WHAMMIES = range(4)
"""The fields of n players in a state: field f of player i is number f * n + i."""
FIELDS = 4  # the number of the players' fields; the offer comes after them

PLAY = 0
"""The action of spinning. Passing to player i (from 0) is action i + 1. After those come taking
each effect of a slide, and last stopping."""

TIE_TOLERANCE = 1e-12
"""Two actions closer than this share of the largest payoff are tied: far above float64 noise
(1e-15), far below a real difference."""

CAP, MAX_WHAMMIES, THIRD_PLACE_SPINS, PASSER_PICKS, MONEY, OUTCOMES, UNITS = 0, 1, 2, 3, 4, 5, 10
MERGES, SPIN_CAP, OFFERS, STOP = 6, 7, 8, 9
"""Positions in `Numbers.ints`.

MONEY: how many outcomes are money.
OUTCOMES: how many are money or money plus a spin.
MERGES: whether harmless whammies become 0.
SPIN_CAP: the cap or -1.
OFFERS: how many other outcomes there are.
STOP: the action of stopping against the house, or 0.
UNITS: from here on the units of the outcomes, money first; then where each of the other outcomes
begins, and the end; then for each of their effects kind, units, spins (`outcomes.Effect`) and the
action of taking it.
"""
ROW = 4  # the numbers for each effect


def by_field(states: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return views of scores, earned, passed and whammies (…, players) of states (…, columns)."""
    p = states.shape[-1] // FIELDS
    return (
        states[..., :p], states[..., p : 2 * p], states[..., 2 * p : 3 * p],
        states[..., 3 * p : 4 * p],
    )  # fmt: skip


@njit(_i(_i1))
def player_up(state):
    """Return the first player in turn order who has a spin, or -1."""
    players = state.size // FIELDS
    for i in range(players):
        if state[EARNED * players + i] + state[PASSED * players + i] > 0:
            return i
    return -1


@njit(types.void(_i1, _i, types.float64, types.float64, types.float64[::1]))
def pay_winners(state, max_whammies, win, dollars, payoff):
    """Write the payoff of a terminal state: the highest score of the players still in wins.

    Tied winners share `win`, and each gets the dollars of their units.
    """
    best, winners, players = -1, 0, payoff.size
    for i in range(players):
        if state[WHAMMIES * players + i] < max_whammies:
            if state[i] > best:
                best, winners = state[i], 0
            if state[i] == best:
                winners += 1
    for i in range(players):
        wins = state[WHAMMIES * players + i] < max_whammies and state[i] == best
        payoff[i] = win / winners + dollars * state[i] if wins else 0.0


@njit(types.void(_i1, _i1, _i, types.UniTuple(_i, 3), _i1))
def spin(ints, state, up, effect, child):  # noqa: C901  # the rules, step by step
    """Write the state after a spin of `up` with an effect (kind, units, spins)."""
    kind, units, brings = effect
    players = state.size // FIELDS
    earned, passed, whammies = EARNED * players, PASSED * players, WHAMMIES * players
    last = FIELDS * players
    for i in range(last):  # by element: a slice would compile its errors too
        child[i] = state[i]
    if state.size > last:
        child[last] = 0
    child[(passed if state[passed + up] > 0 else earned) + up] -= 1
    if kind == WHAMMY:
        child[up] = 0
        child[earned + up] += child[passed + up]
        child[passed + up] = 0
        child[whammies + up] += 1
        if child[whammies + up] == ints[MAX_WHAMMIES]:
            child[earned + up] = 0
    elif kind in (LOSES, MAY_LOSE):
        child[whammies + up] = max(state[whammies + up] - 1, 0)
    else:
        more = state[up] if kind == DOUBLES else units
        child[up] = min(state[up] + more, ints[CAP])
    spins = 0
    for i in range(earned, whammies):
        spins += child[i]
    if brings and ints[SPIN_CAP] >= 0:
        brings = max(0, min(brings, ints[SPIN_CAP] - spins))
    child[earned + up] += brings
    if ints[MERGES]:
        for i in range(whammies, last):  # forget whammies that no longer matter
            if child[i] + spins + brings < ints[MAX_WHAMMIES]:
                child[i] = 0


@njit(_i(_i1, _i1, _i, _i, types.int64[:, ::1], _i1))
def take(ints, state, up, offer, children, actions):
    """Write the states that `up` can choose from an offer, and the actions; return their number."""
    starts = UNITS + ints[OUTCOMES] + offer - 1
    n, k = 0, ints[starts]
    while k < ints[starts + 1]:
        if ints[k] != MAY_LOSE or state[WHAMMIES * (state.size // FIELDS) + up] > 0:
            spin(ints, state, up, (ints[k], ints[k + 1], ints[k + 2]), children[n])
            actions[n] = ints[k + 3]
            n += 1
        k += ROW
    return n


@njit(types.void(_i1, _i1, _i, _i1))
def stop(ints, state, up, child):
    """Write the state in which `up`, the last player in, has given up their earned spins."""
    for i in range(state.size):
        child[i] = state[i]
    players = state.size // FIELDS
    child[EARNED * players + up] = 0
    if ints[MERGES]:
        child[WHAMMIES * players + up] = 0


@njit(rules.TRANSITION_TYPE)
def transition(board, state, edges):  # noqa: C901, PLR0915  # the rules, step by step
    """Write the edges of a state, by the contract in `solver.game.rules`.

    `reals` holds the chances of a whammy, of the outcomes in the order of their units, and of the
    others; then the value of a win, and of a unit of a winner's score.
    """
    ints, reals, state = borrowed(board[0]), borrowed(board[1]), borrowed(state)
    children, weights = borrowed(edges.children), borrowed(edges.weights)
    actions, rewards, about = borrowed(edges.actions), borrowed(edges.rewards), edges.about
    limit, players = ints[MAX_WHAMMIES], state.size // FIELDS
    whammies, last = WHAMMIES * players, FIELDS * players
    up, others, highest, behind = player_up(state), 0, -1, 0
    score = state[max(up, 0)]
    for i in range(players):
        if i != up and state[whammies + i] < limit:
            others += 1
            highest = max(highest, state[i])
            behind += score < state[i]
    if up < 0 or (others < 1 and ints[STOP] == 0):
        about[0], about[1] = rules.TERMINAL, -1
        pay_winners(state, limit, reals[reals.size - 2], reals[reals.size - 1], rewards[0])
        return 0

    if state.size > last and state[last] > 0:
        n = take(ints, state, up, state[last], children, actions)
        for edge in range(n):
            weights[edge] = 1.0
        about[0], about[1] = (rules.DECISION if n > 1 else rules.CHANCE), up
        return n

    must_spin, at_cap, n = state[PASSED * players + up] > 0, score == ints[CAP], 0
    if must_spin or not at_cap:
        spin(ints, state, up, (WHAMMY, 0, 0), children[0])
        weights[0], n = reals[0], 1
        for outcome in range(ints[OUTCOMES]):
            weights[n] = reals[1 + outcome]
            if outcome in (0, ints[MONEY]):
                brings = 1 if outcome >= ints[MONEY] else 0
                spin(ints, state, up, (PAYS, ints[UNITS + outcome], brings), children[n])
            else:  # as the outcome before it, except for the score
                for i in range(state.size):
                    children[n, i] = children[n - 1, i]
                children[n, up] = min(score + ints[UNITS + outcome], ints[CAP])
            n += 1
        for offer in range(1, ints[OFFERS] + 1):
            weights[n] = reals[ints[OUTCOMES] + offer]
            if take(ints, state, up, offer, children[n:], actions) > 1:
                for i in range(last):
                    children[n, i] = state[i]
                children[n, last] = offer
            n += 1
        for edge in range(n):
            actions[edge] = PLAY
    choices = 1 if n else 0
    bound = ints[THIRD_PLACE_SPINS] != 0 and others > 1 and behind == others
    if not (must_spin or bound):
        for step in range(1, players):
            to = up + step - (players if up + step >= players else 0)
            if state[whammies + to] == limit or state[to] < highest:
                continue
            for i in range(state.size):
                children[n, i] = state[i]
            children[n, PASSED * players + to] += state[EARNED * players + up]
            children[n, EARNED * players + up] = 0
            weights[n], actions[n] = 1.0, to + 1
            n, choices = n + 1, choices + 1
            if at_cap or ints[PASSER_PICKS] == 0:
                break
    if others < 1 and not must_spin:
        stop(ints, state, up, children[n])
        weights[n], actions[n] = 1.0, ints[STOP]
        n, choices = n + 1, choices + 1
    about[0], about[1] = (rules.DECISION if choices > 1 else rules.CHANCE), up
    return n


# --- bound to a board ----------------------------------------------------------------------------

HERE = __package__


def board_of(game: Game) -> PressYourLuckBoard:
    assert isinstance(game.board, PressYourLuckBoard)
    return game.board


WHOLE = "has slides that take whammies away, so its tiers read others whole"
MAX_SPINS = 31  # the most spins of a state; a game's questions bring at most 20


def press_your_luck(board: PressYourLuckBoard) -> Rules:
    """Return the rules of round 2 on a board."""
    options, unit, players = board.rules, board.solve.score_unit, board.rules.players
    start = None
    if board.start is not None and len(board.start.scores) != players:
        of_start = many(len(board.start.scores), "player")
        start = Unavailable(f"[start] has scores of {of_start}, and players is {players}")
    outcomes, limit = outcome_distribution(board), options.max_whammies
    either, others = outcomes.money + outcomes.spin, outcomes.others
    effects = sorted({effect for offer, _ in others for effect in offer})
    grows = any(effect.spins > 1 for effect in effects)
    merges = not grows and all(effect.kind != MAY_LOSE for effect in effects)
    ints = [board.cap_units, limit, options.third_place_spins, options.tied_pass == "passer",
            len(outcomes.money), len(either), merges,
            -1 if options.spin_cap is None else options.spin_cap, len(others),
            players + 1 + len(effects) if options.house else 0,
            *(units for units, _ in either)]  # fmt: skip
    starts = np.cumsum([0, *(len(offer) for offer, _ in others)]) * ROW
    ints += (len(ints) + len(starts) + starts).tolist()
    ints += [number for offer, _ in others for effect in offer
             for number in (*effect, players + 1 + effects.index(effect))]  # fmt: skip
    chances = [float(chance) for chance in (outcomes.whammy, *(p for _, p in either + others))]
    money = options.objective != "win"
    win = float({"win": 1, "money": 0}.get(options.objective, options.win_value or 0))
    most_paid = win + money * board.solve.score_cap
    refused = no_tiers(board, grows)
    by_face = not (refused or any(effect.kind in (LOSES, MAY_LOSE) for effect in effects))
    takes = [*(f"take {effect_name(offer, unit)}" for offer in effects), "stop"]
    offers = len(others) if any(len(offer) > 1 for offer, _ in others) else 0
    spins_left = Level(  # at equal spins, whammies stay and no score falls
        falls={"earned": 1, "passed": 1},
        apart=tuple({f"whammies_{i + 1}": 1} for i in range(players)),
        inside=tuple({f"scores_{i + 1}": -1} for i in range(players)),
    )
    return Rules(
        fields=fields(board, offers),
        players=players,
        transition=transition,
        numbers=Numbers(np.array(ints, np.int64), np.array([*chances, win, money * unit])),
        max_edges=outcomes.distinct + players + max((len(offer) for offer, _ in others), default=0),
        start=start or (lambda: list(board.starts()) or None),
        actions=partial(action_name, players, takes),
        canonical=partial(canonical, limit, merges, options.house, room_for_spins(board, offers)),
        version=2 if offers else 1,
        tie_tolerance=TIE_TOLERANCE * most_paid,
        payoff_range=(0.0, most_paid),
        payoff_name="expected dollars" if money else "",
        level=None if grows else spins_left,
        capabilities={
            FullTable: refused or f"{HERE}.full_table:Planes",
            DecisionLayout: f"{HERE}.full_table:PlaneDecisions" if by_face else Unavailable(WHOLE),
            Agents: partial(agents, limit, unit),
            Charts: refused or f"{HERE}.charts:LuckCharts",
            Drawing: f"{HERE}.drawing:drawing",
            Follow: f"{HERE}.follow:LuckWords",
            Groups: groups,
        },
    )


def agents(limit: int, unit: int, game: Game) -> Agents:
    """Return the agents, with the numbers that are counted in their games; limit: the whammies that
    put a player out; unit: of a score, in dollars."""

    def won(states: Ints) -> NDArray[np.bool_]:
        scores, _, _, whammies = by_field(states)
        inside = whammies < limit
        best = np.where(inside, scores, -1).max(axis=1, keepdims=True)
        return inside & (scores == best)

    def wins(states: Ints) -> Floats:
        winners = won(states)
        return winners / np.maximum(winners.sum(axis=1, keepdims=True), 1)

    def dollars(states: Ints) -> Ints:
        return by_field(states)[SCORES] * won(states) * unit

    return Agents(
        AGENTS,
        ends={
            "wins": wins,
            "dollars": dollars,
            "put out": lambda states: by_field(states)[WHAMMIES] == limit,
            "winner's dollars": lambda states: dollars(states).max(axis=1),
        },
        events={
            "spins": lambda states, actions, children: actions == PLAY,
            "passes": lambda states, actions, children: (
                (actions > PLAY) & (actions <= game.players)
            ),
        },
    )


def fields(board: PressYourLuckBoard, offers: int) -> list[Field]:
    """Return the fields of a state on a board, with one for offers if it has them."""
    unit, cap, whammies = board.solve.score_unit, board.solve.score_cap, board.rules.max_whammies
    players = board.rules.players

    def sample(*each: int) -> str:
        return ",".join(map(str, (0, *each)[:players]))

    offer = Field(
        "offer",
        high=offers,
        sample="0",
        help="Number of the list of slides from which the player up takes one; 0 for none.",
    )
    room = room_for_spins(board, offers)
    max_spins = MAX_VALUE if room == MAX_SPINS else room
    scores = (min(dollars, cap) // unit * unit for dollars in (8000, 3000, 5000))
    columns = [
        Field("scores", players, high=cap, unit=unit, default=None,
              bits=max(8, board.cap_units.bit_length()), sample=sample(*scores),
              help=f"Dollars of players {spoken(players)}, in turn order."),
        Field("earned", players, high=max_spins, bits=5, sample=sample(1, 0, 0),
              help="Spins that each player earned and may play or pass."),
        Field("passed", players, high=max_spins, bits=5, sample=sample(*(0,) * (players > 2), 2, 0),
              help="Spins that were passed to each player, who must play them."),
        Field("whammies", players, high=whammies, bits=3, sample=sample(whammies - 1, 0, 0),
              help=f"Whammies of each player; a player with {whammies} is out."),
    ]  # fmt: skip
    return [*columns, offer] if offers else columns


def room_for_spins(board: PressYourLuckBoard, offers: int) -> int:
    """Return the most spins for which each field of spins has room in the key. Raises OptionError
    if there is no room, or not for as many as slides may bring."""
    players, units = board.rules.players, board.cap_units
    states = ((units + 1) * (board.rules.max_whammies + 1)) ** players * (offers + 1)
    room = MAX_SPINS
    while room and states * (room + 1) ** (2 * players) > 1 << 64:
        room -= 1
    if room >= (board.rules.spin_cap or 1):
        return room
    reserve = f"leave room for {many(room, 'spin')} in" if room else "do not fit in"
    raise OptionError(
        f"board {board.name}: {units:,} units of score_unit {board.solve.score_unit} for "
        f"{many(players, 'player')} {reserve} a key of 64 bits; write a larger score_unit"
        + (f", or a smaller spin_cap than {board.rules.spin_cap}" if room else "")
    )


def spoken(players: int, last: str = "and") -> str:
    """Return ``1, 2 and 3``."""
    return f"{', '.join(map(str, range(1, players)))} {last} {players}"


def action_name(players: int, takes: Sequence[str], action: int) -> str:
    """Return ``play``, ``pass to 3``, ``take $1,750`` or ``stop``."""
    if action > players:
        return takes[action - players - 1]
    return "play" if action == PLAY else f"pass to {action}"


def effect_name(effect: Effect, unit: int, more: str = "") -> str:
    """Return a person's name for the effect of a slide; more: written after an amount."""
    names = {
        PAYS: f"${effect.units * unit:,}{more}", WHAMMY: "whammy", DOUBLES: "the score again",
        LOSES: "a whammy less", MAY_LOSE: "a whammy less",
    }  # fmt: skip
    return (
        names[effect.kind]
        + ("", " and a spin", f" and {many(effect.spins, 'spin')}")[min(effect.spins, 2)]
    )


def canonical(
    limit: int, merges: bool, house: bool, room: int, states: Ints, refuse: Refuse
) -> Ints:
    """Return canonical states, without harmless whammies if the board `merges`.

    room: the most spins of a state.
    """
    scores, earned, passed, whammies = by_field(states)
    players = scores.shape[1]
    out = whammies == limit
    for name, column in (("scores", scores), ("earned", earned), ("passed", passed)):
        refuse(
            out & (column > 0),
            lambda x, i, name=name: (
                f"{name}: player {i + 1} is out ({many(limit, 'whammy', 'whammies')}); expected 0 "
                f"{name} for them"
            ),
        )
    refuse(
        out.all(axis=1, keepdims=True) & (not house),
        lambda x, i: f"whammies: all {NUMBERS[players]} players are out; somebody must be in",
    )
    spins = earned.sum(axis=1, keepdims=True) + passed.sum(axis=1, keepdims=True)
    refuse(
        spins > room,
        lambda x, i: f"earned and passed: {spins[x, 0]} spins; expected at most {room} in all",
    )
    refuse(
        (states[:, FIELDS * players :] > 0) & (spins == 0),
        lambda x, i: "offer: nobody has a spin that could have come to it; expected 0",
    )
    if merges:
        whammies[~out & (whammies + spins < limit)] = 0
    return states


def no_tiers(board: PressYourLuckBoard, grows: bool) -> Unavailable | None:
    """Return why the board has no full table, and so no charts; None if it has one.

    grows: whether a slide brings several spins.
    """
    players, objective = board.rules.players, board.rules.objective
    scores, spins = ",".join("0" * players), ",".join("1" * players)
    if grows:
        beyond = "slides that bring several spins"
    elif objective != "win":
        beyond = f"an objective ('{objective}')"
    elif board.cap_units > MAX_CAP_UNITS:
        beyond = f"{board.cap_units} units of score_unit, above {MAX_CAP_UNITS},"
    else:
        return None
    return Unavailable(
        f"has {beyond} that no full table takes yet; run: luckbase solve with --from and a state, "
        f"to search what lies below, as in --from scores={scores} earned={spins}"
    )


SPINS = 20  # numbers of spins left with a group each; more form one group
STEPS = 4  # steps of a lead, and of a deficit; the last has no bound
PLACES = ("leader", "second", "third")
UNIT, STEP = 3, 4
"""Positions in the numbers of `group`, after CAP, MAX_WHAMMIES and THIRD_PLACE_SPINS; STEP: the
step of a lead in dollars."""


@njit(GROUP_TYPE)
def group(board, state, actor, out, rest):
    """Return the group of a state, by the contract in `solver.game.groups`. The player up decides
    with earned spins, below the cap, unless they must play in last place."""
    ints, players = board.ints, state.size // FIELDS
    earned, passed, whammies = EARNED * players, PASSED * players, WHAMMIES * players
    up = player_up(state)
    if up < 0 or state[passed + up] > 0 or state[up] == ints[CAP]:
        return -1
    if state.size > FIELDS * players and state[FIELDS * players] > 0:
        return -1
    score, highest, above, others, spins = state[up], -1, 0, 0, 0
    for i in range(players):
        spins += state[earned + i] + state[passed + i]
        if i != up and state[whammies + i] < ints[MAX_WHAMMIES]:
            others += 1
            highest = max(highest, state[i])
            above += score < state[i]
    if others == 0 or (ints[THIRD_PLACE_SPINS] != 0 and others > 1 and above == others):
        return -1
    lead = (score - highest) * ints[UNIT]
    step = min((abs(lead) + ints[STEP] - 1) // ints[STEP], STEPS)
    out[2], out[3] = score, highest
    if state[earned + up] == spins and (lead > 0 or (lead < 0 and above == 1)):
        out[0], out[1] = min(spins, SPINS) - 1 + (SPINS if lead < 0 else 0), lead
        rest[up] = 0
    if lead < 0:
        step = -step
    return ((min(spins, SPINS) - 1) * players + above) * (2 * STEPS + 1) + STEPS + step


def groups(game: Game) -> Groups:
    """Return the groups of a board."""
    board = board_of(game)
    unit, cap = board.solve.score_unit, board.solve.score_cap
    step = -(-cap // 8 // unit) * unit or unit
    ints = [board.cap_units, board.rules.max_whammies, board.rules.third_place_spins, unit, step]
    ends = [((k - 1) * step + unit, k * step) for k in range(1, STEPS)]
    ahead = [f"${a:,} to ${b:,}" if a < b else f"${a:,}" for a, b in ends]
    ahead.append(f"above ${(STEPS - 1) * step:,}")
    leads = [f"behind {x}" for x in reversed(ahead)] + ["level"] + [f"ahead {x}" for x in ahead]
    several = [*NUMBERS[2:], *range(len(NUMBERS), SPINS + 1)]  # all held by the player up
    score = {"low": 0, "step": unit, "cells": board.cap_units + 1}
    return Groups(
        columns=(
            Grouped("spins left", [str(k + 1) for k in range(SPINS)]),
            Grouped("who is up", PLACES[: game.players]),
            Grouped("lead", leads),
        ),
        group=group,
        numbers=Numbers(np.array(ints, np.int64), np.zeros(1)),
        axes=(
            Axis("score", "score of the player up, $", **score),
            Axis("highest_other", "highest score of the others in, $", **score),
        ),
        thresholds=[
            Threshold(f"with {spins} {who}", "passes", is_pass, "${:,}", relation, limit)
            for who, relation, limit in (
                ("the leader", "ahead", "from"),
                ("the second", "behind", "up to"),
            )
            for spins in ("one spin left", *(f"{n} spins left, all theirs," for n in several))
        ],
        decides=True,
        turning=TurningPoint(
            "scores", is_pass, "passing", lambda states, up: leads_in(states, up) * unit, say_lead
        ),
    )


def leads_in(states: Ints, up: int) -> Ints:
    """Return the lead of the player up over the best other player, in units, (n,)."""
    scores = by_field(states)[SCORES]
    others = np.where(np.arange(scores.shape[1]) == up, 0, scores)
    lead: Ints = scores[:, up] - others.max(axis=1)
    return lead


def say_lead(lead: int) -> str:
    """Return ``$5,500 ahead``."""
    return f"${abs(lead):,} {'ahead' if lead > 0 else 'behind'}" if lead else "level"


def is_pass(action: str) -> bool:
    return action.startswith("pass")


def never_pass(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Play every spin, as long as the rules allow."""
    return actions.index(PLAY) if PLAY in actions else 0


def always_pass(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Pass whenever allowed."""
    return next(i for i, action in enumerate(actions) if action != PLAY)


def always_pass_ahead(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Pass if ahead of every opponent still in, else play."""
    choose = always_pass if leads_in(state[None], player)[0] > 0 else never_pass
    return choose(game, player, state, actions)


def play_until_ahead(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Play until ahead by more than the least amount that a spin pays, then pass."""
    ints = game.numbers.ints
    smallest = ints[UNITS : UNITS + ints[OUTCOMES]].min(initial=ints[CAP])
    choose = always_pass if leads_in(state[None], player)[0] > smallest else never_pass
    return choose(game, player, state, actions)


AGENTS: Mapping[str, Agent] = {
    "never-pass": never_pass,
    "always-pass": always_pass,
    "always-pass-ahead": always_pass_ahead,
    "play-until-ahead": play_until_ahead,
}
