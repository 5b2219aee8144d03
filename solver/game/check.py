"""Does a game keep its contract? One call in its author's test.

    >>> check_game(load_board("climb.toml"))

It follows the rules from the game's start (or from states that are given) and holds them to what
`solver.game.rules` says; where the game has a `Layout`, it solves the whole table in memory and
holds it to the rules, state by state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from luckbase.solver.board.model import Board
from luckbase.solver.errors import GameError, LuckbaseError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Layout, hints
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.game.in_memory import InMemory, rounding
from luckbase.solver.game.transition import CHANCE, DECISION, JOINT, SIMULTANEOUS, TERMINAL
from luckbase.solver.graph import keys
from luckbase.solver.graph.bellman import Expanded, evaluate, expand, most_residual, payoffs_of
from luckbase.solver.graph.stage import Stages

WEIGHT = 1e-12
"""How far the weights of an action may be from 1."""


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
    _check_words(game)
    rng = np.random.default_rng(seed)
    looked, declared = 0, hints(game).level
    stages = None if declared is None else Stages(game, declared)
    for level in _levels(game, states, most, rng):
        edges = expand(game, level)
        for x in range(len(level)):
            _check_state(game, level[x], edges, x)
        _check_children(game, level, edges)
        _check_round_trip(game, level)
        if stages is not None:
            _check_level(stages, level, edges)
        looked += len(level)
    layout = game.get(Layout)
    if layout is not None and sum(map(layout.rows, layout.tiers())) <= rows:
        _check_layout(game, layout)
    return looked


def _wrong(game: Game, state: Ints, why: str) -> GameError:
    return GameError(f"game {game.board.game}, board {game.board.name}, at {_said(game, state)}: "
                     f"{why}")  # fmt: skip


def _said(game: Game, state: Ints) -> str:
    return " ".join(f"{name}={value}".replace(" ", "") for name, value in
                    game.describe(state).items())  # fmt: skip


def _check_words(game: Game) -> None:
    names = game.columns
    if len(set(names)) < len(names):
        raise GameError(f"game {game.board.game}: two columns of its fields have one name")
    if int(game.bits.sum()) > 64:
        raise GameError(
            f"game {game.board.game}, board {game.board.name}: a state takes {game.bits.sum()} "
            "bits; the most is 64: lower a field's `high`, or its bits"
        )


def _levels(
    game: Game, given: Sequence[Mapping[str, object]], most: int, rng: np.random.Generator
) -> Iterator[Ints]:
    """States that play comes to, level by level, a part of each level where it is wide."""
    start = game.start()
    roots = [*([] if start is None else [start]), *(game.parse(words) for words in given)]
    if not roots:
        raise GameError(f"game {game.board.game} has no start; name states to check it from")
    seen: set[int] = set()
    level = np.unique(np.array(roots), axis=0)
    while len(level) and len(seen) < most:
        level = level[[key not in seen for key in keys.pack_all(game.bits, level).tolist()]]
        if len(level) > most // 10:
            level = level[np.sort(rng.choice(len(level), most // 10, replace=False))]
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
        raise _wrong(game, state, f"about[0] is {kind}, and no kind of state")
    if not -1 <= actor < game.players:
        raise _wrong(game, state, f"about[1] is {actor}, and there are {game.players} players")
    if kind == TERMINAL:
        _check_payoff(game, state, edges.rewards[here.start])
        return
    if not 1 <= count <= game.max_edges:
        raise _wrong(game, state, f"has {count} edges; it must have 1 to {game.max_edges}")
    _check_actions(game, state, edges, here, kind, actor)
    if not game.pays and edges.rewards[here].any():
        raise _wrong(game, state, "an edge pays, and the rules say that none does (`pays`)")


def _check_payoff(game: Game, state: Ints, payoff: Floats) -> None:
    low, high = game.payoff_range
    if not game.pays and not ((payoff >= low) & (payoff <= high)).all():
        raise _wrong(game, state, f"pays {payoff.tolist()}; payoffs lie from {low} to {high}")
    if not np.isfinite(payoff).all():
        raise _wrong(game, state, f"pays {payoff.tolist()}")


def _check_actions(
    game: Game, state: Ints, edges: Expanded, here: slice, kind: int, actor: int
) -> None:
    weights, actions = edges.weights[here], edges.actions[here]
    starts = np.flatnonzero(np.diff(actions, prepend=actions[0] - 1))
    groups = actions[starts]
    if len(np.unique(groups)) < len(groups):
        raise _wrong(game, state, "edges of one action do not stand together")
    if not (weights > 0).all():
        raise _wrong(game, state, "an edge has a weight that is not above 0; leave it out")
    sums = np.add.reduceat(weights, starts)
    if (np.abs(sums - 1.0) > WEIGHT).any():
        k = int(np.argmax(np.abs(sums - 1.0)))
        name = _name(game, state, int(groups[k]), kind)
        raise _wrong(game, state, f"the weights of '{name}' sum to {float(sums[k])!r}, not 1")
    _check_kind(game, state, groups, kind, actor)


def _check_kind(game: Game, state: Ints, groups: Ints, kind: int, actor: int) -> None:
    if kind == DECISION and actor < 0:
        raise _wrong(game, state, "is a decision, and about[1] says that nobody acts")
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
    try:
        return game.action_name(action)
    except Exception as error:
        if kind != DECISION:
            return str(action)
        raise _wrong(game, state, f"action {action} has no name: {error!r}") from None


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
    fits = keys.fits(game.bits, edges.children)
    if not fits.all():
        k = int(np.flatnonzero(~fits)[0])
        raise _wrong(
            game, states[owner[k]],
            f"leads to numbers that its fields have no room for: {edges.children[k].tolist()}",
        )  # fmt: skip
    again = _canonical(game, edges.children)
    if again is None:
        for k, child in enumerate(edges.children):
            if _canonical(game, child[None]) is None:
                raise _wrong(game, states[owner[k]], "leads to a state that its own fields refuse: "
                             f"{_said(game, child)}")  # fmt: skip
    elif (again != edges.children).any():
        k = int(np.flatnonzero((again != edges.children).any(axis=1))[0])
        raise _wrong(
            game, states[owner[k]],
            f"leads to {_said(game, edges.children[k])}, which is not canonical; that would be "
            f"{_said(game, again[k])}",
        )  # fmt: skip


def _canonical(game: Game, states: Ints) -> Ints | None:
    try:
        return game.canonical_states(game.fields.values(states))
    except LuckbaseError:
        return None


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
