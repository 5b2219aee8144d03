"""Does a game keep its contract? One call in its author's test.

    >>> check_game(load_board("climb.toml"))

It follows the rules from the game's start (or from states that are given) and holds them to what
`solver.game.rules` says; where the game has a `Layout`, it solves the whole table in memory and
holds it to the rules, state by state.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from luckbase.solver.board.model import Board
from luckbase.solver.errors import GameError, LuckbaseError, StateError
from luckbase.solver.game import registry
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Layout, hints
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.game.in_memory import InMemory, rounding
from luckbase.solver.game.plugins import line_of
from luckbase.solver.game.transition import (
    CHANCE,
    DECISION,
    JOINT,
    SIMULTANEOUS,
    TERMINAL,
    room_for,
)
from luckbase.solver.graph import keys
from luckbase.solver.graph.bellman import Expanded, evaluate, expand, most_residual, payoffs_of
from luckbase.solver.graph.expansion import WEIGHT, within_range
from luckbase.solver.graph.stage import Stages

_PLAIN = str.maketrans("", "", "[] ")


def check_game(
    game: Game | Board,
    states: Sequence[Mapping[str, object]] = (),
    *,
    most: int = 5000,
    rows: int = 200_000,
    seed: int = 0,
) -> int:
    """Hold a game to its contract on `most` states that play comes to from its start and from
    `states`, in words; returns how many were looked at.

    rows: a full table of at most so many rows is solved whole, where the game has one.

    Raises GameError, in one sentence with the state: the first thing that is not as it must be.
    """
    game = load_game(game) if isinstance(game, Board) else game
    start = game.start()
    roots = [*([] if start is None else [start]), *(game.parse(words) for words in states)]
    if not roots:
        raise GameError(f"game {game.board.game} has no start; name states to check it from")
    looked = check_below(game, np.array(roots), most=most, wide=most // 10, seed=seed)
    layout = game.get(Layout)
    if layout is not None and sum(map(layout.rows, layout.tiers())) <= rows:
        _check_layout(game, layout)
    return looked


def check_below(game: Game, roots: Ints, *, most: int, wide: int, seed: int = 0) -> int:
    """`check_game` of canonical roots (m, fields) and what lies below them, at most `wide` states
    of a level."""
    looked, declared = 0, hints(game).level
    stages = None if declared is None else Stages(game, declared)
    for level in _levels(game, roots, most, wide, np.random.default_rng(seed)):
        edges = expand(game, level)
        for x in range(len(level)):
            _check_state(game, level[x], edges, x)
        _check_children(game, level, edges)
        _check_round_trip(game, level)
        if stages is not None:
            _check_level(stages, level, edges)
        looked += len(level)
    return looked


def check_sample(game: Game, roots: Ints) -> None:
    """`check_below` of a few hundred states, a game's whole depth if it can be, before a solve of
    somebody else's game: what the engines do not hold each state to.
    """
    if game.is_checked and len(roots):
        check_below(game, roots[:16], most=400, wide=16)


def fault_at(game: Game, state: Ints, error: Exception | None) -> GameError:
    """What breaks the rules at a state (fields,) whose edges an engine refused, or the error that
    the game's own code raised there."""
    room = room_for(game.max_edges, game.field_count, game.players)
    room.about[0] = -1
    if error is not None:
        line = _line_at(game, state)
        said = f"at {_said(game, state)}: {type(error).__name__}: {error}"
        return GameError(f"{registry.said(game.board.game)}{line}: {said}")
    given = state.copy()
    n = int(game.transition(game.numbers, given, room))
    if (given != state).any():
        return _wrong(game, state, "the transition changes the state that it is given; change the "
                      "row that `lead` returns")  # fmt: skip
    over = room.about[0] == TERMINAL and n == 0
    if not over and not 1 <= n <= game.max_edges:
        return _wrong(game, state, f"has {n} edges; expected 1 to {game.max_edges} (max_edges)")
    m = max(n, 1)
    edges = Expanded(
        room.about[:1], room.about[1:2], np.array([0, m]), room.children[:m], room.weights[:m],
        room.actions[:m], room.rewards[:m],
    )  # fmt: skip
    try:
        if over:
            _check_payoff(game, state, edges.rewards[0])
        else:
            _check_state(game, state, edges, 0)
            _check_children(game, state.reshape(1, -1), edges)
    except GameError as found:
        return found
    return _wrong(game, state, "its edges break what solver.game.transition says")


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


def worth_at(game: Game, state: Ints, value: Floats) -> GameError:
    """The error of a state (fields,) that is worth more, or less, than a payoff can be."""
    return _wrong(game, state, f"is worth {value.tolist()}; {_range(game)}")


def _range(game: Game) -> str:
    low, high = game.payoff_range
    return f"expected {low:g} to {high:g}; say what it can be as Rules(payoff_range=(least, most))"


def _wrong(game: Game, state: Ints, why: str, action: str = "") -> GameError:
    at = _said(game, state) + (f", action '{action}'" if action else "")
    return GameError(f"{registry.said(game.board.game)}: at {at}: {why}")


def _said(game: Game, state: Ints) -> str:
    said = game.describe(state).items()
    return " ".join(f"{name}={value}".translate(_PLAIN) for name, value in said)


def _levels(
    game: Game, roots: Ints, most: int, wide: int, rng: np.random.Generator
) -> Iterator[Ints]:
    """States that play comes to, level by level, a part of each level where it is wide."""
    seen: set[int] = set()
    level = np.unique(roots, axis=0)
    while len(level) and len(seen) < most:
        level = level[[key not in seen for key in keys.pack_all(game.bits, level).tolist()]]
        if len(level) > wide:
            level = level[np.sort(rng.choice(len(level), wide, replace=False))]
        if not len(level):
            return
        seen.update(keys.pack_all(game.bits, level).tolist())
        yield level
        edges = expand(game, level)
        below = edges.children[~np.repeat(edges.terminal, np.diff(edges.first))]
        level = np.unique(below[keys.fits(game.bits, below)], axis=0)


def _check_state(game: Game, state: Ints, edges: Expanded, x: int) -> None:
    here = slice(int(edges.first[x]), int(edges.first[x + 1]))
    kind, actor, count = int(edges.kinds[x]), int(edges.actors[x]), here.stop - here.start
    if kind not in (TERMINAL, CHANCE, DECISION, SIMULTANEOUS):
        raise _wrong(game, state, f"is of kind {kind}; expected 0 to 3 (end in over, chance, "
                     "decision or simultaneous)")  # fmt: skip
    if kind == TERMINAL:
        _check_payoff(game, state, edges.rewards[here.start])
        return
    if not 1 <= count <= game.max_edges:
        raise _wrong(game, state, f"has {count} edges; expected 1 to {game.max_edges} (max_edges)")
    least = 0 if kind == DECISION else -1
    if not least <= actor < game.players:
        raise _wrong(game, state, f"player {actor} acts; expected {least} to {game.players - 1} "
                     "(players count from 0)")  # fmt: skip
    _check_actions(game, state, edges, here, kind, actor)
    if not game.pays and edges.rewards[here].any():
        raise _wrong(game, state, "an edge pays; expected Rules(pays=True)")
    if not np.isfinite(edges.rewards[here]).all():
        raise _wrong(game, state, "an edge pays what is no number")


def _check_payoff(game: Game, state: Ints, payoff: Floats) -> None:
    if not within_range(game, payoff):
        raise _wrong(game, state, f"pays {payoff.tolist()}; {_range(game)}")


def _check_actions(
    game: Game, state: Ints, edges: Expanded, here: slice, kind: int, actor: int
) -> None:
    weights, actions = edges.weights[here], edges.actions[here]
    starts = np.flatnonzero(np.diff(actions, prepend=actions[0] - 1))
    groups = actions[starts]
    if len(np.unique(groups)) < len(groups):
        raise _wrong(game, state, "edges of one action do not stand together")
    for action, own in zip(groups.tolist(), np.split(weights, starts[1:]), strict=True):
        name, total = _name(game, state, action, kind), sum(own.tolist())
        if not (own > 0).all():
            low = float(own[~(own > 0)][0])
            why = f"an edge has chance {low!r}; expected above 0 (leave out what can not happen)"
            raise _wrong(game, state, why, name)
        if not abs(total - 1.0) <= WEIGHT + len(weights) * 2.0**-53:
            raise _wrong(game, state, f"chances add up to {total:.13g}; expected 1", name)
    _check_kind(game, state, groups, kind)


def _check_kind(game: Game, state: Ints, groups: Ints, kind: int) -> None:
    if kind == CHANCE and len(groups) > 1:
        raise _wrong(game, state, f"is chance, and has {len(groups)} actions")
    if kind == SIMULTANEOUS:
        rows, columns = len(np.unique(groups // JOINT)), len(np.unique(groups % JOINT))
        if not game.simultaneous or game.players != 2 or rows * columns != len(groups):
            raise _wrong(game, state, "both choose at once: the rules must say `simultaneous`, for "
                         "two players, and every pair of their choices must be there")  # fmt: skip
        if (np.diff(groups) <= 0).any():
            raise _wrong(game, state, "the pairs of choices do not ascend")
    elif kind == DECISION:
        names = [_name(game, state, int(action), kind) for action in groups]
        if len(set(names)) < len(names):
            raise _wrong(game, state, f"two actions are called the same: {', '.join(names)}")


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
    raise _wrong(game, state, f"action {action} has no name in Rules(actions=…){why}")


def _check_level(stages: Stages, states: Ints, edges: Expanded) -> None:
    """Whether every edge keeps to the level that the game declares."""
    game = stages.game
    owner = np.repeat(np.arange(len(states)), np.diff(edges.first))
    real = ~edges.terminal[owner]
    above = keys.pack_all(game.bits, np.ascontiguousarray(states[owner[real]]))
    below = keys.pack_all(game.bits, np.ascontiguousarray(edges.children[real]))
    wrong = np.flatnonzero(stages.forbidden(above, below))
    if len(wrong):
        child = _said(game, edges.children[real][wrong[0]])
        why = f"an edge leads to {child}, and the level says that none does: {stages.level}"
        raise _wrong(game, states[owner[real][wrong[0]]], why)


def _check_children(game: Game, states: Ints, edges: Expanded) -> None:
    owner = np.repeat(np.arange(len(states)), np.diff(edges.first))
    again = _canonical(game, edges.children)
    if isinstance(again, LuckbaseError) or not keys.fits(game.bits, edges.children).all():
        for k, child in enumerate(edges.children):
            refused = _canonical(game, child[None])
            if isinstance(refused, LuckbaseError):
                why = f"leads to {_said(game, child)}, which its own fields refuse: {refused}"
                raise _wrong(game, states[owner[k]], why)
            if not keys.fits(game.bits, child[None]).all():
                why = f"leads to {_said(game, child)}, for which its fields' bits have no room"
                raise _wrong(game, states[owner[k]], why)
    elif (again != edges.children).any():
        k = int(np.flatnonzero((again != edges.children).any(axis=1))[0])
        raise _wrong(
            game, states[owner[k]],
            f"leads to {_said(game, edges.children[k])}, which is not canonical; that would be "
            f"{_said(game, again[k])}",
        )  # fmt: skip


def _canonical(game: Game, states: Ints) -> Ints | LuckbaseError:
    try:
        return game.canonical_states(game.fields.values(states))
    except StateError as error:
        return error


def _check_round_trip(game: Game, states: Ints) -> None:
    for state in states:
        said = game.describe(state)
        again = game.parse(said)
        if (again != state).any():
            raise _wrong(game, state, f"reads back as {_said(game, again)}")


# --- the full table ----------------------------------------------------------------------------


def _check_layout(game: Game, layout: Layout[Any]) -> None:
    """Every row of the full table, solved in memory, against one step of the rules."""
    done: set[Any] = set()
    for tier in layout.tiers():
        for child in layout.children(tier):
            if child not in done:
                raise GameError(
                    f"game {game.board.game}: tier {layout.tier_name(tier)} reads "
                    f"{layout.tier_name(child)}, which does not come before it"
                )
        done.add(tier)
    solved = InMemory(layout)
    for tier in layout.tiers():
        _check_tier(game, solved, tier)


def _check_tier(game: Game, solved: InMemory[Any], tier: Any) -> None:
    layout = solved.layout
    rows = np.arange(layout.rows(tier))
    states = layout.states_at(tier, rows)
    numbers, places = layout.locate(states)
    off = np.flatnonzero((numbers != layout.tier_number(tier)) | (places != rows))
    if len(off):
        raise _wrong(game, states[off[0]], f"is row {off[0]} of {layout.tier_name(tier)}, and "
                     f"`locate` says row {places[off[0]]} of tier {numbers[off[0]]}")  # fmt: skip
    own, by_rules = solved.look(states)[0], _one_step(solved, states)
    residuals = np.abs(by_rules - own).max(axis=1)
    own_bound = solved.errors[tier] - layout.cut_error + rounding(game, layout.payoff_type)
    wrong = np.flatnonzero(~(residuals <= most_residual(game, own_bound)))
    if len(wrong):
        x = int(wrong[0])
        raise _wrong(game, states[x], f"the kernel says {own[x].tolist()}, one step of the rules "
                     f"says {by_rules[x].tolist()}")  # fmt: skip


def _one_step(solved: InMemory[Any], states: Ints) -> Floats:
    """The payoffs (n, players) of states by the rules, from those of their children, and where
    these have no row from those of theirs."""
    edges = expand(solved.game, states)
    below, found = solved.look(edges.children)
    if not found.all():
        below[~found] = _one_step(solved, edges.children[~found])
    q = evaluate(edges, below)
    return payoffs_of(edges.kinds, edges.actors, q, solved.game.tie_tolerance)
