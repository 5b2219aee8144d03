"""Errors about states that break the contract of games; each names game, state and fault.

The engines check every state that they expand against `solver.game.rules` (`solver.search.expand`),
but report only which state failed. These functions find out why. `check_game` checks more, and each
edge.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.solver.board import registry
from luckbase.solver.errors import GameError, StateError, line_of
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.rules import (
    CHANCE,
    DECISION,
    JOINT,
    SIMULTANEOUS,
    TERMINAL,
    WEIGHT,
    Edges,
    Numbers,
    room_for,
)
from luckbase.solver.sentences import many

if TYPE_CHECKING:
    from luckbase.solver.game.game import Game


def fault_at(game: Game, state: Ints, error: Exception | None = None) -> GameError:
    """Return an error for a state (fields,) whose edges an engine refused.

    error: the exception that the game's own code raised there, if any.
    """
    room = room_for(game.max_edges, game.field_count, game.players)
    room.about[0] = -1
    if error is not None:
        line = _line_at(game, state)
        why = f"at {game.say(state)}: {type(error).__name__}: {str(error) or _counts(game)}"
        return GameError(f"{registry.author_name(game.board.game)}{line}: {why}")
    copied = state.copy()
    n = int(game.transition(game.numbers, copied, room))
    if (copied != state).any():
        return broken(game, state, "the transition changes the state that it is given; change the "
                      "row that `lead` returns")  # fmt: skip
    m = max(min(n, game.max_edges), 0)
    edges = Edges(
        room.children[:m], room.weights[:m], room.actions[:m], room.rewards[: max(m, 1)], room.about
    )
    unknown = "its edges break what solver.game.rules says", ""
    return broken(game, state, *next(_faults(game, edges, n), unknown))


def _counts(game: Game) -> str:
    """Explain a ValueError without text: the transition unpacks too many or too few numbers."""
    ints, reals = map(len, game.numbers)
    has_reals = isinstance(game.rules.numbers, Numbers)  # otherwise only whole numbers
    fractions = f", {many(reals, 'fraction')} (board.reals)" * has_reals
    return (
        "the line reads more or fewer numbers than there are: `numbers` has "
        f"{many(ints, 'whole number')} (board.ints){fractions}, and a state "
        f"{many(game.field_count, 'number')}"
    )


def worth_at(game: Game, state: Ints, value: Floats) -> GameError:
    """Return an error for a state (fields,) whose payoff is out of range."""
    return broken(game, state, f"has payoff {value.tolist()}; {_range(game)}")


def check_edges(game: Game, state: Ints, edges: Edges, count: int) -> None:
    """Raise GameError if a state's edges, of which the transition returned `count`, are wrong."""
    fault = next(_faults(game, edges, count), None)
    if fault is not None:
        raise broken(game, state, *fault)


Fault = tuple[str, str]
"""A sentence about the fault, and the action that it concerns, or ""."""


def _faults(game: Game, edges: Edges, count: int) -> Iterator[Fault]:
    """Yield the faults of a state's edges; each check assumes that the earlier ones passed."""
    (kind, actor), rewards = edges.about[:2].tolist(), edges.rewards
    if kind not in (TERMINAL, CHANCE, DECISION, SIMULTANEOUS):
        expected = "expected 0 to 3 (end in over, chance, decision or simultaneous)"
        yield f"is of kind {kind}; {expected}", ""
    if kind == TERMINAL and not count:
        low, high = game.payoff_span
        if not ((rewards[0] >= low) & (rewards[0] <= high)).all():  # NaN fails too
            yield f"pays {rewards[0].tolist()}; {_range(game)}", ""
        return
    if not 1 <= count <= game.max_edges:
        yield f"has {many(count, 'edge')}; expected 1 to {game.max_edges} (max_edges)", ""
    lowest = 0 if kind == DECISION else -1
    if not lowest <= actor < game.players:
        expected = f"expected {lowest} to {game.players - 1} (players count from 0)"
        yield f"player {actor} acts; {expected}", ""
    yield from _action_faults(game, edges)
    if not game.pays and rewards.any():
        yield "an edge pays; expected Rules(pays=True)", ""
    if not np.isfinite(rewards).all():
        yield "an edge pays something that is not a number", ""
    for child in edges.children:
        yield from _child_faults(game, child)


def _action_faults(game: Game, edges: Edges) -> Iterator[Fault]:
    kind, weights, actions = int(edges.about[0]), edges.weights, edges.actions
    starts = np.flatnonzero(np.diff(actions, prepend=actions[0] - 1))
    groups, names = actions[starts], list[str]()
    if len(np.unique(groups)) < len(groups):
        yield "edges of one action do not stand together", ""
    for action, part in zip(groups.tolist(), np.split(weights, starts[1:]), strict=True):
        name, why = _name(game, action, kind)
        names.append(name)
        if why:
            yield f"action {action} has no name in Rules(actions=…){why}", ""
        if not (part > 0).all():
            low = float(part[~(part > 0)][0])
            expected = "expected above 0 (leave out what cannot happen)"
            yield f"an edge has chance {low!r}; {expected}", name
        total = sum(part.tolist())
        if not abs(total - 1.0) <= WEIGHT + len(weights) * 2.0**-53:
            yield f"chances add up to {total:.13g}; expected 1", name
    yield from _kind_faults(game, kind, groups, names)


def _kind_faults(game: Game, kind: int, groups: Ints, names: list[str]) -> Iterator[Fault]:
    if kind == CHANCE and len(groups) > 1:
        yield f"is chance, and has {len(groups)} actions", ""
    if (groups < 0).any():
        yield f"an edge has action {groups.min()}; expected 0 or more", ""
    if kind == SIMULTANEOUS:
        rows, columns = len(np.unique(groups // JOINT)), len(np.unique(groups % JOINT))
        if not game.simultaneous:
            yield "both choose at once; expected Rules(simultaneous=True)", ""
        if rows * columns != len(groups):
            pairs = f"{many(len(groups), 'pair')} of choices; expected {rows} x {columns}"
            yield f"both choose at once, and there are {pairs}: every row with every column", ""
        if (np.diff(groups) <= 0).any():
            yield "the pairs of choices are not in ascending order", ""
    if kind == DECISION and len(set(names)) < len(names):
        yield f"two actions are called the same: {', '.join(names)}", ""


def _name(game: Game, action: int, kind: int) -> tuple[str, str]:
    """Return the name of an action, and why it has none."""
    if kind != DECISION:
        return "" if kind == CHANCE else f"{action // JOINT}, {action % JOINT}", ""
    names = game.rules.actions
    if not 0 <= action < (JOINT**2 if callable(names) else len(names)):
        return "", f"; expected 0 to {'…' if callable(names) else len(names) - 1}"
    try:
        if isinstance(name := game.action_name(action), str) and name.strip():
            return name, ""
    except Exception as error:
        return "", f": {type(error).__name__}: {error}"
    return "", f": {name!r:.40}; expected text"


def _child_faults(game: Game, child: Ints) -> Iterator[Fault]:
    leads = f"leads to {game.say(child)}"
    try:
        again = game.canonical_states(game.fields.values(child[None]))[0]
    except StateError as error:
        yield f"{leads}, which its own fields refuse: {error}", ""
        return
    if ((child < 0) | (child > game.fields.most)).any():
        yield f"{leads}, which does not fit into the bits of its fields", ""
    if (again != child).any():
        yield f"{leads}, which is not canonical; that would be {game.say(again)}", ""


def _line_at(game: Game, state: Ints) -> str:
    """Return the line of the transition that raises an error at a state when Python runs it."""
    rules: Any = getattr(game.transition, "py_func", game.transition)
    room = room_for(game.max_edges, game.field_count, game.players)
    try:
        with np.errstate(all="raise"):
            rules(game.numbers, state.copy(), room)
    except Exception as error:
        return line_of(error, inspect.getfile(rules))
    return ""


def _range(game: Game) -> str:
    if game.known_range is None:
        return "expected numbers"
    low, high = game.known_range
    return f"expected {low:g} to {high:g}; say what it can be as Rules(payoff_range=(least, most))"


def broken(game: Game, state: Ints, why: str, action: str = "") -> GameError:
    place = game.say(state) + (f", action '{action}'" if action else "")
    return GameError(f"{registry.author_name(game.board.game)}: at {place}: {why}")
