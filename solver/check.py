"""Check that a game keeps its contract; one call in its author's test.

    >>> check_game(load_board("climb.toml"))

It follows the rules from the game's start, or from given states, and checks them against
`solver.game.rules`. If the game has a `FullTable`, it also solves the full table in memory and
compares every row with the rules: payoffs, who acts, best actions, columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board.model import Board
from luckbase.solver.dense import InMemory, check_tiers
from luckbase.solver.errors import GameError
from luckbase.solver.game.arrays import Best, Coded, Ints, Runs
from luckbase.solver.game.capabilities import FullTable, rounding
from luckbase.solver.game.faults import broken, check_edges
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.game.rules import SIMULTANEOUS, TERMINAL, Edges
from luckbase.solver.search import keys
from luckbase.solver.search.bellman import (
    ActionValues,
    chosen,
    evaluate,
    most_residual,
    payoffs_of,
)
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.search.stages import Stages


def check_game(
    game: Game | Board,
    states: Sequence[Mapping[str, object]] = (),
    *,
    most: int = 5000,
    rows: int = 200_000,
    seed: int = 0,
) -> int:
    """Check a game's contract on `most` states reached from its start and from `states`, in words,
    and its full table if that has at most `rows` rows.

    Returns the number of states checked. Raises GameError for the first fault, with the state.
    """
    game = load_game(game) if isinstance(game, Board) else game
    roots = [*(start for _, start in game.starts()), *(game.parse(words) for words in states)]
    if not roots:
        raise GameError(f"game {game.board.game} has no start; name states to check it from")
    looked = check_below(game, np.array(roots), max_states=most, max_width=most // 10, seed=seed)
    layout = game.get(FullTable)
    if layout is not None and sum(map(layout.rows, layout.tiers())) <= rows:
        _check_layout(game, layout)
    return looked


def check_below(game: Game, roots: Ints, *, max_states: int, max_width: int, seed: int = 0) -> int:
    """Check roots (m, fields) and states below them, at most `max_width` of each level."""
    looked, level_of = 0, game.level
    stages = None if level_of is None else Stages(game, level_of)
    for level in _levels(game, roots, max_states, max_width, np.random.default_rng(seed)):
        edges, again = expand(game, level), expand(game, level)
        for x, state in enumerate(level):
            _check_state(game, state, _edges_of(edges, x), _edges_of(again, x))
        if stages is not None:
            _check_level(stages, level, edges)
        looked += len(level)
    return looked


def check_sample(game: Game, roots: Ints) -> None:
    """Check a few hundred states of a user's game before a solve, for faults that the engines do
    not check for in each state."""
    if len(roots):
        check_below(game, roots[:16], max_states=400, max_width=16)


def _edges_of(edges: Expanded, x: int) -> Edges:
    span, about = slice(*edges.first[x : x + 2]), np.array([edges.kinds[x], edges.actors[x]])
    return Edges(
        edges.children[span], edges.weights[span], edges.actions[span], edges.rewards[span], about
    )


def _check_state(game: Game, state: Ints, edges: Edges, again: Edges) -> None:
    """Check a state's edges, that two expansions agree, and that its description reads back."""
    is_over = edges.about[0] == TERMINAL
    count = 0 if is_over else len(edges.actions)  # a terminal state's row holds its payoff
    check_edges(game, state, edges, count)
    pairs: Any = zip(edges, again, strict=True)
    if not all(np.array_equal(*pair) for pair in pairs):
        why = "expected the same each time: for what is random write an edge with its chance"
        raise broken(game, state, f"its edges change from one call to the next; {why}")
    read = game.parse(game.describe(state))
    if (read != state).any():
        raise broken(game, state, f"reads back as {game.say(read)}")


def _levels(
    game: Game, roots: Ints, max_states: int, max_width: int, rng: np.random.Generator
) -> Iterator[Ints]:
    """Yield states reached in play, level by level, sampling wide levels."""
    seen: set[int] = set()
    level = np.unique(roots, axis=0)
    while len(level) and len(seen) < max_states:
        level = level[[key not in seen for key in keys.pack_all(game.strides, level).tolist()]]
        if not len(level):
            return
        if len(level) > max_width:
            level = level[np.sort(rng.choice(len(level), max_width, replace=False))]
        seen.update(keys.pack_all(game.strides, level).tolist())
        yield level
        below = expand(game, level).below
        level = np.unique(below[keys.fits(game.strides, below)], axis=0)


def _check_level(stages: Stages, states: Ints, edges: Expanded) -> None:
    game = stages.game
    owner = np.repeat(np.arange(len(states)), np.diff(edges.first))
    real = ~edges.terminal[owner]
    above = keys.pack_all(game.strides, np.ascontiguousarray(states[owner[real]]))
    below = keys.pack_all(game.strides, np.ascontiguousarray(edges.children[real]))
    wrong = np.flatnonzero(stages.forbidden(above, below))
    if len(wrong):
        child = game.say(edges.children[real][wrong[0]])
        why = f"an edge leads to {child}, and the level says that none does: {stages.level}"
        raise broken(game, states[owner[real][wrong[0]]], why)


# --- the full table ----------------------------------------------------------------------------

NOTHING = "nothing"  # what messages call a value that is missing


def _check_layout(game: Game, layout: FullTable[Any]) -> None:
    """Check every row of the full table, solved in memory, against one step of the rules."""
    check_tiers(layout)
    done: set[Any] = set()
    for tier in layout.tiers():
        late = next((child for child in layout.children(tier) if child not in done), None)
        if late is not None:
            raise GameError(
                f"game {game.board.game}: tier {layout.tier_name(tier)} reads "
                f"{layout.tier_name(late)}, which does not come before it"
            )
        done.add(tier)
    solved = InMemory(layout, best=True)
    exact = InMemory(Game(game.board, game.rules).need(FullTable), ())
    exact.payoffs = solved.payoffs
    if exact.layout is not layout:  # best actions follow from payoffs that are not rounded
        exact.layout.payoff_type = np.float64
    for tier in layout.tiers():
        if not solved.errors[tier] <= layout.most_error(tier):
            raise GameError(
                f"game {game.board.game}: tier {layout.tier_name(tier)}: solve_tier returns the "
                f"bound {solved.errors[tier]:g}, and most_error says {layout.most_error(tier):g}"
            )
        rows = np.arange(layout.rows(tier))
        states = layout.states_at(tier, rows)
        _check_rows(layout, tier, states)
        edges = expand(game, states)
        kernel_error = solved.errors[tier] - game.cut_error
        # If `payoff_rows` itself rounds, one step is taken from rounded payoffs.
        for held, bound in (exact, kernel_error), (solved, kernel_error + rounding(layout)):
            stored, q = held.lookup(states)[0], _values(held, edges)
            by_rules = payoffs_of(edges.kinds, edges.actors, q, game.tie_tolerance)
            residuals = np.abs(by_rules - stored).max(axis=1)
            wrong = np.flatnonzero(~(residuals <= most_residual(game, bound)))
            if not len(wrong):
                break
        else:
            x = int(wrong[0])
            raise broken(game, states[x], f"the kernel says {stored[x].tolist()}, one step of the "
                         f"rules says {by_rules[x].tolist()}")  # fmt: skip
        acts = (edges.actors >= 0) & (edges.kinds != SIMULTANEOUS)
        actors = np.where(acts, edges.actors, -1)
        acting = layout.acting_rows(tier, 0, len(rows))
        _check_column(game, states, "acting_rows", acting, actors + 1)
        if held is exact and kernel_error <= game.float64_error:  # otherwise ties are not certain
            _check_best(layout, states, q, actors, solved.best[tier])
        columns, right = (
            each(tier, 0, len(rows))
            for each in (layout.state_rows, partial(FullTable.state_rows, layout))
        )
        missing = np.full(len(rows), NOTHING, object)
        for name in {**columns, **right}:
            both = (_in_full(each.get(name, missing)) for each in (columns, right))
            _check_column(game, states, name, *both)


def _check_rows(layout: FullTable[Any], tier: Any, states: Ints) -> None:
    """Check that the states of a tier's rows are canonical, and that `locate` finds them."""
    game, name = layout.game, layout.tier_name(tier)
    canonical, known = game.known_states(game.fields.values(states))
    known[known] = (canonical == states[known]).all(axis=1)
    numbers, places = layout.locate(states)
    off = (numbers != layout.tier_number(tier)) | (places != np.arange(len(states)))
    for x in np.flatnonzero(~known | off)[:1].tolist():
        why = f"`locate` says row {places[x]} of tier {numbers[x]}" if known[x] else "not canonical"
        raise broken(game, states[x], f"is row {x} of {name}, and {why}")


def _check_best(
    layout: FullTable[Any], states: Ints, q: ActionValues, actors: Ints, stored: Best
) -> None:
    """Raise GameError for the first state with another best action than the rules. actors: the
    player (n,) who decides alone in each state, from 0; -1 for none."""
    game, acts = layout.game, actors >= 0
    taken = q.actions[chosen(q, actors, game.tie_tolerance)]
    right = np.full(len(states), NOTHING, object)
    for action in np.unique(taken[acts]).tolist():
        right[acts & (taken == action)] = game.action_name(action)
    names = np.array([NOTHING, *layout.best_names, "an unknown action"], object)
    noted = names.take(stored.astype(np.int64) + 1, mode="clip")
    _check_column(game, states, "best", noted, right)


def _in_full(column: Any) -> NDArray[Any]:
    """Return the values of a column of a table, one for each row."""
    if isinstance(column, Runs):
        return np.repeat(column.values, column.times)
    if isinstance(column, Coded):
        return np.array(column.labels)[column.codes]
    return np.asarray(column)


def _check_column(
    game: Game, states: Ints, name: str, stored: NDArray[Any], right: NDArray[Any]
) -> None:
    """Raise GameError for the first row in which a column of a full table differs."""
    wrong = np.flatnonzero(stored != right)
    if len(wrong):
        x = int(wrong[0])
        raise broken(game, states[x], f"the full table has {name} {stored[x]}; expected {right[x]}")


def _values(solved: InMemory[Any], edges: Expanded) -> ActionValues:
    """Return the values of the actions of expanded states from their children's payoffs, with
    another step for children without a row."""
    below, in_table = solved.lookup(edges.children)
    if not in_table.all():
        deeper = expand(solved.game, edges.children[~in_table])
        below[~in_table] = payoffs_of(
            deeper.kinds, deeper.actors, _values(solved, deeper), solved.game.tie_tolerance
        )
    return evaluate(edges, below)
