"""What breaks the rules at one state, in a sentence: the game, the state, what would be right.

The engines hold every state that they expand to `solver.game.rules`
(`solver.search.expand`) and say no more than which state it was; `check_game` looks at more, and
at the edges one by one.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np

from luckbase.solver.board import registry
from luckbase.solver.errors import GameError, LuckbaseError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game, line_of
from luckbase.solver.game.rules import (
    CHANCE,
    DECISION,
    JOINT,
    SIMULTANEOUS,
    TERMINAL,
    room_for,
)

WEIGHT = 1e-12
"""How far the chances of an action may be from 1 in all."""
_PLAIN = str.maketrans("", "", "[] ")


class StateEdges(NamedTuple):
    """One state, expanded: its kind and who acts; of its m edges children (m, fields), weights,
    actions (m,), rewards (m, players): of a state that is over, its payoff in row 0."""

    kind: int
    actor: int
    children: Ints
    weights: Floats
    actions: Ints
    rewards: Floats


def fault_at(game: Game, state: Ints, error: Exception | None = None) -> GameError:
    """What breaks the rules at a state (fields,) whose edges an engine refused, or the error that
    the game's own code raised there."""
    room = room_for(game.max_edges, game.field_count, game.players)
    room.about[0] = -1
    if error is not None:
        line = _line_at(game, state)
        why = f"at {state_text(game, state)}: {type(error).__name__}: {error}"
        return GameError(f"{registry.said(game.board.game)}{line}: {why}")
    given = state.copy()
    n = int(game.transition(game.numbers, given, room))
    if (given != state).any():
        return broken(game, state, "the transition changes the state that it is given; change the "
                      "row that `lead` returns")  # fmt: skip
    kind, actor, m = int(room.about[0]), int(room.about[1]), max(min(n, game.max_edges), 0)
    rewards = room.rewards[: max(m, 1)]
    edges = StateEdges(kind, actor, room.children[:m], room.weights[:m], room.actions[:m], rewards)
    try:
        check_edges(game, state, edges, n)
    except GameError as found:
        return found
    return broken(game, state, "its edges break what solver.game.rules says")


def worth_at(game: Game, state: Ints, value: Floats) -> GameError:
    """The error of a state (fields,) that is worth more, or less, than a payoff can be."""
    return broken(game, state, f"is worth {value.tolist()}; {_range(game)}")


def within_range(game: Game, values: Floats) -> bool:
    """Whether payoffs (…) may be; not a number is none."""
    low, high = span_of(game)
    return bool(((values >= low) & (values <= high)).all())


def span_of(game: Game) -> Floats:
    """float64 (2,): the least and the greatest payoff, with slack for rounding."""
    low, high = game.payoff_range
    slack = WEIGHT * max(1.0, abs(low), abs(high))
    return np.array([low - slack, high + slack])


def check_edges(game: Game, state: Ints, edges: StateEdges, count: int) -> None:
    """Raise GameError for what is wrong with a state's edges, `count` of them as it says."""
    kind, actor = edges.kind, edges.actor
    if kind not in (TERMINAL, CHANCE, DECISION, SIMULTANEOUS):
        raise broken(game, state, f"is of kind {kind}; expected 0 to 3 (end in over, chance, "
                     "decision or simultaneous)")  # fmt: skip
    if kind == TERMINAL and not count:
        _check_payoff(game, state, edges.rewards[0])
        return
    if not 1 <= count <= game.max_edges:
        raise broken(game, state, f"has {count} edges; expected 1 to {game.max_edges} (max_edges)")
    least = 0 if kind == DECISION else -1
    if not least <= actor < game.players:
        raise broken(game, state, f"player {actor} acts; expected {least} to {game.players - 1} "
                     "(players count from 0)")  # fmt: skip
    _check_actions(game, state, edges)
    if not game.pays and edges.rewards.any():
        raise broken(game, state, "an edge pays; expected Rules(pays=True)")
    if not np.isfinite(edges.rewards).all():
        raise broken(game, state, "an edge pays what is no number")
    for child in edges.children:
        _check_child(game, state, child)


def _check_payoff(game: Game, state: Ints, payoff: Floats) -> None:
    if not within_range(game, payoff):
        raise broken(game, state, f"pays {payoff.tolist()}; {_range(game)}")


def _check_actions(game: Game, state: Ints, edges: StateEdges) -> None:
    kind, weights, actions = edges.kind, edges.weights, edges.actions
    starts = np.flatnonzero(np.diff(actions, prepend=actions[0] - 1))
    groups = actions[starts]
    if len(np.unique(groups)) < len(groups):
        raise broken(game, state, "edges of one action do not stand together")
    for action, own in zip(groups.tolist(), np.split(weights, starts[1:]), strict=True):
        name, total = _name(game, state, action, kind), sum(own.tolist())
        if not (own > 0).all():
            low = float(own[~(own > 0)][0])
            why = f"an edge has chance {low!r}; expected above 0 (leave out what can not happen)"
            raise broken(game, state, why, name)
        if not abs(total - 1.0) <= WEIGHT + len(weights) * 2.0**-53:
            raise broken(game, state, f"chances add up to {total:.13g}; expected 1", name)
    _check_kind(game, state, groups, kind)


def _check_kind(game: Game, state: Ints, groups: Ints, kind: int) -> None:
    if kind == CHANCE and len(groups) > 1:
        raise broken(game, state, f"is chance, and has {len(groups)} actions")
    if kind == SIMULTANEOUS:
        rows, columns = len(np.unique(groups // JOINT)), len(np.unique(groups % JOINT))
        if not game.simultaneous or game.players != 2 or rows * columns != len(groups):
            raise broken(game, state, "both choose at once: the rules must say `simultaneous`, for "
                         "two players, and every pair of their choices must be there")  # fmt: skip
        if (np.diff(groups) <= 0).any():
            raise broken(game, state, "the pairs of choices do not ascend")
    elif kind == DECISION:
        names = [_name(game, state, int(action), kind) for action in groups]
        if len(set(names)) < len(names):
            raise broken(game, state, f"two actions are called the same: {', '.join(names)}")


def _name(game: Game, state: Ints, action: int, kind: int) -> str:
    if kind != DECISION:
        return "" if kind == CHANCE else f"{action // JOINT}, {action % JOINT}"
    names, why = game.rules.actions, ""
    if not 0 <= action < (JOINT**2 if callable(names) else len(names)):
        why = f"; expected 0 to {'…' if callable(names) else len(names) - 1}"
    else:
        try:
            return game.action_name(action)
        except Exception as error:
            why = f": {type(error).__name__}: {error}"
    raise broken(game, state, f"action {action} has no name in Rules(actions=…){why}")


def _check_child(game: Game, state: Ints, child: Ints) -> None:
    again = _canonical(game, child)
    if isinstance(again, LuckbaseError):
        why = f"leads to {state_text(game, child)}, which its own fields refuse: {again}"
        raise broken(game, state, why)
    if (child >> np.minimum(game.bits, 63) != 0).any():  # a negative number too
        why = f"leads to {state_text(game, child)}, for which its fields' bits have no room"
        raise broken(game, state, why)
    if (again != child).any():
        why = f"leads to {state_text(game, child)}, which is not canonical; that would be "
        raise broken(game, state, why + state_text(game, again))


def _canonical(game: Game, state: Ints) -> Ints | LuckbaseError:
    try:
        found: Ints = game.canonical_states(game.fields.values(state[None]))[0]
        return found
    except StateError as error:
        return error


def _line_at(game: Game, state: Ints) -> str:
    """The line of the transition that raises an error at a state, when Python runs it."""
    rules: Any = getattr(game.transition, "py_func", game.transition)
    room = room_for(game.max_edges, game.field_count, game.players)
    try:
        with np.errstate(all="raise"):
            rules(game.numbers, state.copy(), room)
    except Exception as error:
        return line_of(error, inspect.getfile(rules))
    return ""


def _range(game: Game) -> str:
    low, high = game.payoff_range
    return f"expected {low:g} to {high:g}; say what it can be as Rules(payoff_range=(least, most))"


def broken(game: Game, state: Ints, why: str, action: str = "") -> GameError:
    at = state_text(game, state) + (f", action '{action}'" if action else "")
    return GameError(f"{registry.said(game.board.game)}: at {at}: {why}")


def state_text(game: Game, state: Ints) -> str:
    """A state as it can be typed."""
    fields = game.describe(state).items()
    return " ".join(f"{name}={value}".translate(_PLAIN) for name, value in fields)
