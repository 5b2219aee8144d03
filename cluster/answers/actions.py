"""The actions of many states, with their payoffs, as arrays: `EveryAction`.

`every_action` computes it for any states of a table, part by part: from stored rows
(`_actions_of_part`), from stored best actions alone, or, for states of which only the children are
known, by one step of the rules (`stepped`). An `Answer` (`answer_at`) and the columns of a batch or
an export (`cluster.answers.columns`) are derived from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.answers.answer import Action, Answer, Bid, Source, is_sure
from luckbase.cluster.answers.parts import Part, named, once
from luckbase.cluster.store.provenance import Origin
from luckbase.solver.errors import CorruptTableError, MissingTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import choice_names, simplify
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import JOINT, SIMULTANEOUS
from luckbase.solver.policies.agents import Policy
from luckbase.solver.search.bellman import (
    EVEN,
    ActionValues,
    chosen,
    error_of_actions,
    evaluate,
    limits_of,
    refuse_sums,
    solved_games,
    strategies_of,
    sums_differ,
    undecided,
)
from luckbase.solver.search.expand import Expanded, expand

MAX_EDGES = 400_000
"""Number of edges looked up at a time: 100 bytes each, and as much again for sorting."""
PER_ACTION = ("named", "q", "choosers", "mixed")
PER_STATE = ("values", "to_act", "best", "margins", "ties", "errors")


@dataclass(frozen=True)
class EveryAction:
    """The answers for n states with k actions in total; p players."""

    first: Ints
    """int64 (n + 1,). State x has the actions first[x] to first[x + 1]; in simultaneous moves,
    these are the choices of both players, player 1's first."""
    names: tuple[str, ...]  # names of actions
    named: Ints  # int64 (k,), indices into `names`
    q: Floats  # float64 (k, p), payoffs of actions; of a choice, against the other's strategy
    choosers: Ints  # int64 (k,), the player of a choice in simultaneous moves, from 0; -1 otherwise
    mixed: Floats
    """float64 (k, 3), the probability of a choice in an optimal mixed strategy, its minimum and its
    maximum in any; NaN otherwise."""
    values: Floats  # float64 (n, p), payoffs of states
    to_act: Ints  # int64 (n,), from 1; 0 for none or both
    best: Ints
    """int64 (n,), index among the state's actions; -1 if no player decides. In simultaneous moves,
    of player 1's certain choice, if there is one."""
    margins: Floats  # float64 (n,), NaN without a choice
    ties: NDArray[np.bool_]  # bool (n,)
    errors: Floats  # float64 (n,)

    def __len__(self) -> int:
        return len(self.values)

    def only(self, at: Ints) -> Self:
        """Select states by indices (m,), in this order."""
        counts = np.diff(self.first)[at]
        first = np.concatenate([[0], np.cumsum(counts)])
        rows = np.repeat(self.first[at] - first[:-1], counts) + np.arange(first[-1])
        columns = {name: getattr(self, name)[rows] for name in PER_ACTION}
        columns |= {name: getattr(self, name)[at] for name in PER_STATE}
        return replace(self, first=first, **columns)

    def best_names(self) -> list[str | None]:
        """Return the best action of each state; None if there is none."""
        codes, decided = np.full(len(self), -1), np.flatnonzero(self.best >= 0)
        codes[decided] = self.named[self.first[decided] + self.best[decided]]
        return named(codes, self.names)


def joined(pieces: Sequence[tuple[Ints, EveryAction]]) -> EveryAction:
    """Combine pieces (indices of states, answers) of n states, which are disjoint."""
    at = np.concatenate([at for at, _ in pieces])
    answers = [answer for _, answer in pieces]
    together = answers[0]
    if len(answers) > 1:
        distinct = dict.fromkeys(name for each in answers for name in each.names)
        numbers = {name: i for i, name in enumerate(distinct)}
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(each, name) for each in answers])
            for name in (*PER_ACTION, *PER_STATE)
        }
        codes = [np.array([numbers[name] for name in each.names], np.int64) for each in answers]
        named = [each.named for each in answers]
        columns["named"] = np.concatenate([c[n] for c, n in zip(codes, named, strict=True)])
        counts = np.concatenate([np.diff(each.first) for each in answers])
        first = np.concatenate([[0], np.cumsum(counts)])
        together = EveryAction(first, tuple(distinct), **columns)
    return together if (np.diff(at) == 1).all() else together.only(np.argsort(at))


def without_choices(actions: int) -> dict[str, Any]:
    """Return the columns of simultaneous moves for actions of one player each."""
    return {"choosers": np.full(actions, -1), "mixed": np.full((actions, 3), np.nan)}


def nothing_known(n: int, players: int) -> EveryAction:
    """Return answers for n unknown states in which no player acts."""
    none = np.full(n, -1)
    return best_alone(none, none < 0, np.zeros((n, players)), none, (), 0.0)


def best_alone(
    actors: Ints, over: NDArray[np.bool_], values: Floats, best: NDArray[Any],
    labels: Sequence[str], error: float,
) -> EveryAction:  # fmt: skip
    """Return answers for n states whose children's payoffs are unknown: only the best action, with
    the payoff of the state (NaN if not stored).

    actors: as in `Expanded`.
    best: (n,), indices into `labels`; -1 for none.
    """
    acts = (actors >= 0) & ~over
    decided = acts & (best >= 0)
    n = len(acts)
    return EveryAction(
        np.concatenate([[0], np.cumsum(decided)]), tuple(labels), best[decided].astype(np.int64),
        values[decided], **without_choices(int(decided.sum())), values=values,
        to_act=np.where(acts, actors + 1, 0), best=np.where(decided, 0, -1),
        margins=np.full(n, np.nan), ties=np.zeros(n, bool),
        errors=np.where(over | np.isnan(values[:, 0]), 0.0, error),
    )  # fmt: skip


def answer_at(
    states: EveryAction, x: int, origin: Origin, state: dict[str, Any], source: Source = "table"
) -> Answer:
    """Return the answer for state x. state: its fields."""
    span = slice(int(states.first[x]), int(states.first[x + 1]))
    names = [states.names[code] for code in states.named[span].tolist()]
    q, choosers = states.q[span].tolist(), states.choosers[span].tolist()
    actor, best, margin = int(states.to_act[x]) - 1, int(states.best[x]), float(states.margins[x])
    strategies = None
    if choosers and choosers[0] >= 0:  # actions are player 1's
        mixed = states.mixed[span].tolist()
        strategies = tuple(
            tuple(Bid(names[k], *mixed[k]) for k, who in enumerate(choosers) if who == player)
            for player in (0, 1)
        )
        shown = range(len(strategies[0]))
        order = sorted(shown, key=lambda k: (-mixed[k][0], -q[k][0], k))
    else:
        order = sorted(range(len(q)), key=lambda k: (k != best, -q[k][actor], k))
    actions = tuple(Action(names[k], _paid(q[k])) for k in order)
    return Answer(
        origin, state, actor + 1 or None, _paid(states.values[x].tolist()), actions,
        names[best] if best >= 0 else None, None if isnan(margin) else margin,
        bool(states.ties[x]), float(states.errors[x]), source, strategies,
    )  # fmt: skip


def _paid(payoffs: Sequence[float]) -> tuple[float, ...]:
    """Return payoffs over players; empty if unknown."""
    return () if any(map(isnan, payoffs)) else tuple(payoffs)


# --- from a step of the rules --------------------------------------------------------------------


def from_rules(
    game: Game, edges: Expanded, q: ActionValues, chosen_rows: Ints, tolerance: float,
    values: Floats, error: float | Floats,
) -> EveryAction:  # fmt: skip
    """Compute answers for n expanded states, without simultaneous moves, from the payoffs of
    actions.

    chosen_rows: rows (n,) of `q` of the best actions.
    tolerance: payoffs closer than this are tied.
    values: float64 (n, p), payoffs of the states, within `error`.
    """
    own, starts = q.of_actors(edges.actors), q.first[:-1]
    level = own >= np.maximum.reduceat(own, starts)[q.states] - tolerance
    others = own.copy()
    others[chosen_rows] = -np.inf
    margins = np.maximum(own[chosen_rows] - np.maximum.reduceat(others, starts), 0.0)
    acts = (edges.actors >= 0) & ~edges.terminal
    counts = np.diff(q.first)
    rows = np.flatnonzero(np.repeat(acts, counts))
    distinct, named = np.unique(q.actions[rows], return_inverse=True)
    return EveryAction(
        np.concatenate([[0], np.cumsum(counts * acts)]),
        tuple(game.action_name(int(action)) for action in distinct), named, q.values[rows],
        **without_choices(len(rows)), values=values,
        to_act=np.where(acts, edges.actors + 1, 0), best=np.where(acts, chosen_rows - starts, -1),
        margins=np.where(acts & (counts > 1), margins, np.nan),
        ties=acts & (np.add.reduceat(level.astype(np.int64), starts) > 1),
        errors=np.where(edges.terminal, 0.0, error),
    )  # fmt: skip


def stepped(
    game: Game, edges: Expanded, q: ActionValues, near: tuple[float, float], errors: Floats,
    inputs: Ints,
) -> EveryAction:  # fmt: skip
    """Compute answers for n expanded states that are not stored, from the payoffs of actions.

    near: (tolerance, error bound). Payoffs closer than `tolerance` cannot be distinguished if no
        error exceeds the bound.
    errors: (m,), error bounds of the children's payoffs, in the order of edges.
    inputs: the states as the user gave them, values (n, fields), for the names of choices.
    """
    tolerance, error_bound = near
    chosen_rows, apart = chosen(q, edges.actors, tolerance), error_of_actions(edges, errors)
    error = np.maximum(np.maximum.reduceat(apart, q.first[:-1]), error_bound)
    result = from_rules(game, edges, q, chosen_rows, tolerance, q.values[chosen_rows], error)
    if (apart > error_bound).any():
        unclear = undecided(q, edges.actors, apart, chosen_rows, game.tie_tolerance)
        result.ties[:] |= unclear & (result.best >= 0)
    both = np.flatnonzero(edges.kinds == SIMULTANEOUS)
    if not len(both):
        return result
    even = limits_of(game, tolerance)[EVEN]
    uneven = sums_differ(q, both) > np.maximum(even, 4 * error[both])
    if uneven.any():
        x = both[uneven.argmax()]
        refuse_sums(game, game.canonical_states(inputs[x : x + 1])[0], q, x)
    others = np.setdiff1d(np.arange(len(error)), both)
    pieces = [
        (at, _choices(game, q, at, solution, error[at], inputs[at]))
        for at, solution in solved_games(q, both)
    ]
    return joined([(others, result.only(others)), *pieces])


def _choices(
    game: Game, q: ActionValues, at: Ints, solution: Any, errors: Floats, inputs: Ints
) -> EveryAction:
    """Return the answers for states `at` (n,) whose matrix games have the same shape.

    solution: of the matrix games (`solver.matrix_games.simplex.Solutions`).
    errors: (n,), error bounds of the payoffs in the matrix games.
    """
    from luckbase.solver.matrix_games import simplex as matrix_game

    x, y = solution.row_strategies, solution.column_strategies
    n, rows, columns = len(at), x.shape[1], y.shape[1]
    chooser = np.repeat([0, 1], [rows, columns])
    cells = q.first[at][:, None] + np.arange(rows * columns)
    games = np.ascontiguousarray(q.values[cells, 0].reshape(n, rows, columns))
    totals = q.values[q.first[at]].sum(axis=1)
    values = np.stack([solution.values, totals - solution.values], axis=1)
    own = [
        (games * y[:, None, :]).sum(axis=2), totals[:, None] - (games * x[:, :, None]).sum(axis=1)
    ]  # fmt: skip
    payoffs = np.concatenate(own, axis=1)
    rest = values.sum(axis=1)[:, None] - payoffs
    turned = np.ascontiguousarray(-games.transpose(0, 2, 1))
    chances = np.concatenate([x, y], axis=1)
    ranges = np.concatenate([matrix_game.all_ranges(side) for side in (games, turned)], axis=1)
    least, most = np.minimum(ranges[..., 0], chances), np.maximum(ranges[..., 1], chances)
    pairs = q.actions[cells].reshape(n, rows, columns)
    numbers = (pairs[:, :, 0] // JOINT).tolist(), (pairs[:, 0] % JOINT).tolist()
    names = [
        name
        for k, state in enumerate(game.fields.describe_all(game.fields.numbers(inputs)))
        for player in (0, 1)
        for name in choice_names(game, state, player, numbers[player][k])
    ]
    codes = {name: i for i, name in enumerate(dict.fromkeys(names))}
    named = np.array([codes[name] for name in names])
    return EveryAction(
        np.arange(n + 1) * (rows + columns), tuple(codes), named,
        q=np.stack(
            [np.where(chooser == 0, payoffs, rest), np.where(chooser == 0, rest, payoffs)], axis=2
        ).reshape(-1, 2),
        choosers=np.tile(chooser, n), mixed=np.stack([chances, least, most], axis=2).reshape(-1, 3),
        values=values, to_act=np.zeros(n, np.int64),
        best=np.where(x.max(axis=1) > 1 - 1e-9, x.argmax(axis=1), -1),
        margins=np.full(n, np.nan), ties=(~is_sure(least, most)).any(axis=1),
        errors=errors + solution.gaps,
    )  # fmt: skip


# --- of a table ----------------------------------------------------------------------------------


class Payoffs(Protocol):
    """The payoffs of a table (`cluster.answers.lookup.Lookup`)."""

    game: Game
    where: Path

    @property
    def parts(self) -> list[Part]: ...
    @property
    def error(self) -> float: ...
    @property
    def tolerance(self) -> float: ...
    def owners(self, states: Ints) -> Ints: ...
    def holds(self, states: Ints) -> NDArray[np.bool_]: ...
    def get_many(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]: ...
    def backup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]: ...
    def errors(self, states: Ints) -> Floats: ...
    def stored_best(self, states: Ints) -> list[str | None]: ...
    def action_values(self, edges: Expanded) -> ActionValues: ...
    def require(self, states: Ints, known: NDArray[np.bool_]) -> None: ...


def every_action(
    table: Payoffs, states: Ints, inputs: Ints | None = None
) -> tuple[EveryAction, NDArray[np.bool_]]:
    """Return the answers of `Lookup.ask`, without searches, to canonical states (n, fields); and a
    mask (n,) of those that have one: stored and terminal states, and states whose children are all
    stored.

    inputs: the states as the user gave them, values (n, fields), for the names of choices.
    """
    states = np.ascontiguousarray(np.asarray(states, np.int64))
    inputs = table.game.fields.values(states) if inputs is None else inputs
    owners, known = table.owners(states), np.ones(len(states), bool)
    pieces: list[tuple[Ints, EveryAction]] = []
    for at in _shares(table, states, np.flatnonzero(owners < 0)):
        actions, known[at] = _one_step(table, states[at], inputs[at])
        pieces.append((at, actions))
    for i, part in enumerate(table.parts):
        for at in _shares(table, states, np.flatnonzero(owners == i), part):
            pieces.append((at, actions_at(table, part, states[at], inputs[at])))
    return joined(pieces or [(owners, nothing_known(0, table.game.players))]), known


def states_at_once(game: Game) -> int:
    """Return the number of states that fit in memory with their edges."""
    return max(1, MAX_EDGES // game.max_edges)


def _shares(table: Payoffs, states: Ints, at: Ints, part: Part | None = None) -> Iterator[Ints]:
    """Yield the states `at` in groups that fit in memory with their edges, in their part's
    order."""
    most = states_at_once(table.game)
    if part is not None and len(at) > most // 8:
        at = at[np.argsort(part.keys(states[at]), kind="stable")]
    for start in range(0, len(at), most):
        yield at[start : start + most]


def actions_at(table: Payoffs, part: Part, states: Ints, inputs: Ints) -> EveryAction:
    """Return the answers to states of one part. Payoffs of actions and strategies are included if
    the children are stored."""
    edges = expand(table.game, states)
    if part.paid:
        result = _actions_of_part(part, states, edges)
        better = np.flatnonzero(edges.kinds == SIMULTANEOUS)
    else:
        rows = part.stored(states)
        values = np.where(rows.known[:, None], rows.values, np.nan)
        names, over = part.action_names, edges.terminal
        result = best_alone(edges.actors, over, values, rows.best, names, part.error)
        known = table.get_many(edges.children)[1]
        better = np.flatnonzero(np.logical_and.reduceat(known, edges.first[:-1]))
    if not len(better):
        return result
    from_rules, known = _one_step(table, states[better], inputs[better])
    kept = np.flatnonzero(known)
    others = np.setdiff1d(np.arange(len(states)), better[kept])
    return joined([(others, result.only(others)), (better[kept], from_rules.only(kept))])


def _actions_of_part(part: Part, states: Ints, edges: Expanded) -> EveryAction:
    """Compute the answers of a part for stored or terminal canonical states (n, fields). For
    simultaneous moves, only payoffs. Raises CorruptTableError."""
    part.fetch(np.concatenate([states, edges.children]))
    rows = part.stored(states)
    q = evaluate(edges, part.children(edges))
    values = np.asarray(rows.values, np.float64)
    chosen_rows = part.taken(rows, q, edges.actors, states)
    result = from_rules(part.game, edges, q, chosen_rows, part.tolerance, values, part.error)
    if "margin" in part.has:  # then decisions and ties are stored, too
        decided = rows.best >= 0
        best, ties = np.where(decided, result.best, -1), result.ties & decided
        margins = np.where(result.to_act > 0, rows.margin, np.nan)
        result = replace(result, best=best, ties=ties, margins=margins)
    return result


def _one_step(table: Payoffs, states: Ints, inputs: Ints) -> tuple[EveryAction, NDArray[np.bool_]]:
    """Compute canonical states (n, fields) by one step of the rules; also return a mask (n,) of
    those whose children are all stored or terminal."""
    edges = expand(table.game, states)
    payoffs, known = once(table.game, table.backup, edges.children)
    complete = np.logical_and.reduceat(known, edges.first[:-1])
    q = evaluate(edges, payoffs)
    near, errors = (table.tolerance, table.error), table.errors(edges.children)
    return stepped(table.game, edges, q, near, errors, inputs), complete


def policy_of(table: Payoffs) -> Policy:
    """Return the table's best actions as an agent (`Lookup.agent`)."""
    game = table.game

    def decide(full_game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        plain = simplify(game, states)
        at_once = game.simultaneous and len(plain)
        if at_once and expand(game, plain[:1]).kinds[0] == SIMULTANEOUS:
            return strategies_of(table.action_values(expand(game, plain)), player)
        best = table.stored_best(plain)
        if above := [x for x, name in enumerate(best) if name is None]:
            stepped_on, known = every_action(table, plain[above])
            table.require(plain[above], known)
            for x, name in zip(above, stepped_on.best_names(), strict=True):
                best[x] = name
        chances, sure = list[Floats](), dict[tuple[str | None, bytes], Floats]()
        for state, name, choices in zip(plain, best, actions, strict=True):
            key = name, choices.tobytes()  # many states have the same choices
            if key not in sure:
                sure[key] = _certain(table, full_game, state, name, choices)
            chances.append(sure[key])
        return chances

    def holds(states: Ints) -> NDArray[np.bool_]:
        plain = simplify(game, states)
        return table.backup(plain)[1] | table.holds(plain)

    return Policy(decide, holds)


def _certain(table: Payoffs, game: Game, state: Ints, best: str | None, actions: Ints) -> Floats:
    """Return the chance of each action (k,) of a state: 1 of the best."""
    names = [game.action_name(int(action)) for action in actions]
    if best not in names:
        where = table.game.say(state)
        if best is None:
            raise MissingTableError(f"{table.where}: says no best action at {where}")
        raise CorruptTableError(f"{table.where}: names an action at {where} that it does not allow")
    return np.array([float(each == best) for each in names])
