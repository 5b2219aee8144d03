"""The moves at a state: every action and every chance outcome, in words and with its payoffs.

One step of the rules (`solver.search.expand.expand`) gives the children of a state, and one lookup
their payoffs. The answer for the state itself comes from the table (`cluster.answers.table`), or
from a limited search if the state is above the table.

>>> with luckbase.open("boards/pig/tiny.toml") as table:
...     there = table.moves({"mine": 0, "yours": 10, "turn": 4})
...     [(move.action.name, round(move.cost, 4), len(move.outcomes)) for move in there.moves]
[('roll', 0.0, 6), ('hold', 0.3256, 1)]

Where a table stores only decisions, the payoffs under these decisions are computed exactly, down to
stored payoffs or the end of the game (`follow_decisions`), or estimated by simulated games
(`play_games`). Neither searches for better actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainSerializer

from luckbase.cluster.answers.actions import answer_at, stepped
from luckbase.cluster.answers.answer import Action, Answer
from luckbase.cluster.answers.lookup import MAX_SEARCHED, Lookup, OnLevel
from luckbase.cluster.machine import free_memory
from luckbase.solver import sentences
from luckbase.solver.compiled import compile_on
from luckbase.solver.errors import MissingTableError, SearchLimitError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Drawing
from luckbase.solver.game.fields import State
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import JOINT, TERMINAL
from luckbase.solver.result import Flat, IfAny, Number, PythonOnly, Result
from luckbase.solver.search.bellman import action_starts, evaluate
from luckbase.solver.search.expand import Expanded, expand, who_acts
from luckbase.solver.sentences import option

if TYPE_CHECKING:
    from luckbase.solver.policies.chain import SolvedChain, Stored
    from luckbase.solver.policies.evaluate import Simulation

MAX_CASES = 1296
"""Maximum number of equally likely cases for writing probabilities as counts: four dice."""


def address(state: Mapping[str, Any]) -> str:
    """Return a state as the query of a page's URL: ``scores=0,500,0&earned=1,0,0``."""
    return sentences.fields(state, "&")


def _texts(state: Mapping[str, Any]) -> dict[str, str]:
    return {"query": address(state), "text": sentences.fields(state)}


Addressed = Flat[Annotated[Mapping[str, Any], PlainSerializer(_texts, return_type=dict[str, str])]]
"""A state's fields; in JSON `query`, for a URL, and `text`, as a person types it."""


@dataclass(slots=True)  # not frozen: five times faster to make; an answer has a dozen
class Outcome(Result):
    """A chance outcome of an action, or of both players' choices."""

    name: str  # describes it in words
    weight: Number
    cases: int | None
    """Its probability as `weight` of `cases` equally likely cases. If there are too many, `weight`
    is the probability and `cases` is None; for a pair of choices, it is the probability given
    these."""
    chance: float
    """Its probability given the action; for a pair of choices, under optimal strategies."""
    reward: tuple[float, ...]  # of each player
    state: Addressed  # the resulting state; in JSON as `query` and `text`
    value: tuple[float, ...] | None
    """Payoff of each player at that state; None if the table does not have it."""
    over: bool  # True if the game ends there
    pair: IfAny[tuple[int, int]]  # for simultaneous moves, the index of each player's choice
    actor: PythonOnly[int]
    """The player who acts at the resulting state, from 0; -1 for none or both."""


def _next(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    each = [outcome.as_json() for outcome in outcomes]
    return {"next": each[0]} if len(each) == 1 else {"outcomes": each}


@dataclass(frozen=True)
class Move(Result):
    """An action with its outcomes."""

    action: Flat[Action]
    best: bool  # True if it is the table's best action
    toss_up: bool  # True if it equals the best within the table's error
    cost: float | None
    """Cost to the player who decides, compared with the best; 0 if they cannot be distinguished;
    None if unknown."""
    outcomes: Flat[Annotated[tuple[Outcome, ...], PlainSerializer(
        _next, return_type=dict[str, Any]
    )]]  # fmt: skip
    """Most likely first. In JSON `next` if there is only one."""


@dataclass(frozen=True)
class Moves(Result):
    """The moves at a state."""

    numbers: PythonOnly[Ints]  # the canonical state, int64 (fields,)
    answer: Flat[Answer]  # of the table
    state: Addressed = field(init=False, repr=False, default_factory=dict)
    over: bool  # True if the game is over
    in_table: bool  # True if the table has a row for the state
    moves: Annotated[tuple[Move, ...], Field(serialization_alias="actions")] = ()  # best first
    outcomes: tuple[Outcome, ...] = ()  # most likely first, if no player chooses or both do

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", self.answer.state)


def moves(
    table: Lookup, state: State, max_states: int = 0, on_level: OnLevel | None = None
) -> Moves:
    """Return the moves at a state, given as in `Table.ask`.

    max_states: limit of the search if the table does not contain the state.
    on_level: called with the search's progress.

    Raises StateError; MissingTableError if the table does not contain the state and `max_states` is
    0; SearchLimitError.
    """
    game, (canonical, inputs) = table.game, table.read(state)
    edges = expand(game, canonical)
    (answer,) = table.known_answers(canonical, inputs)
    payoffs, known = table.backup(edges.children)
    if answer is None:
        if not max_states:
            raise MissingTableError(table.missing(canonical[0]))
        answer, payoffs = table.search(canonical, inputs, max_states, on_level)
        known = np.ones(len(payoffs), bool)
    there = Moves(canonical[0], answer, bool(edges.terminal[0]), bool(table.holds(canonical)[0]))
    if there.over:
        return replace(there, in_table=True)
    outcomes = _outcomes(game, edges, payoffs, known)
    if answer.strategies is not None:  # the outcome of a choice depends on both players
        bids = [Move(each, each.name == answer.best, False, None, ()) for each in answer.actions]
        return replace(there, moves=tuple(bids), outcomes=_of_pairs(game, answer, edges, outcomes))
    starts = [*action_starts(edges)[1].tolist(), len(edges.actions)]
    by_action = {
        game.action_name(int(edges.actions[a])): _of_action(there, game, edges, outcomes, a, b)
        for a, b in pairwise(starts)
    }
    if answer.to_act is None:
        return replace(there, outcomes=next(iter(by_action.values())))
    return replace(there, moves=tuple(_moves(answer, by_action, table.tolerance)))


def _outcomes(
    game: Game, edges: Expanded, payoffs: Floats, known: NDArray[np.bool_]
) -> list[Outcome]:
    """Return each edge of a state as an outcome without a name. payoffs: of the children, float64
    (m, players); `known` tells which are known."""
    kinds, actors = who_acts(game, edges.children)
    columns = (
        edges.weights.tolist(), edges.rewards.tolist(), game.fields.describe_all(edges.children),
        payoffs.tolist(), known.tolist(), (kinds == TERMINAL).tolist(), actors.tolist(),
    )  # fmt: skip
    return [
        Outcome("", weight, None, weight, tuple(reward), state, tuple(value) if is_known else None,
                over, None, actor)
        for weight, reward, state, value, is_known, over, actor in zip(*columns, strict=True)
    ]  # fmt: skip


def _of_action(
    there: Moves, game: Game, edges: Expanded, outcomes: Sequence[Outcome], first: int, last: int
) -> tuple[Outcome, ...]:
    """Return the outcomes of an action's edges, most likely first. Edges with equal results are
    merged."""
    cases, same = equal_cases(tuple(edges.weights[first:last].tolist())), dict[Any, int]()
    for k in range(first, last):
        result = edges.children[k].tobytes(), outcomes[k].reward
        if same.setdefault(result, k) < k:
            outcomes[same[result]].chance += outcomes[k].chance
    order = sorted(same.values(), key=lambda k: -outcomes[k].chance)
    action, names_of = int(edges.actions[first]), game.own(Drawing).outcome_names
    names = names_of(there.numbers, action, edges.children[order])
    for each, name in zip((outcomes[k] for k in order), names, strict=True):
        each.name = name or happened(game, there.state, each.state)
        each.cases, each.weight = cases, each.chance
        if cases is not None:
            each.weight = round(each.chance * cases)
    return tuple(outcomes[k] for k in order)


def _moves(
    answer: Answer, outcomes: Mapping[str, tuple[Outcome, ...]], slack: float
) -> Iterator[Move]:
    """Yield the actions of the player who decides, best first. slack: closer payoffs cannot be
    distinguished."""
    actor, decided = (answer.to_act or 1) - 1, len(answer.actions) == len(outcomes)
    top = max((each.value[actor] for each in answer.actions if each.value), default=0.0)
    for action in answer.actions:
        cost = top - action.value[actor] if action.value else 0.0
        best, level = action.name == answer.best, cost <= slack
        yield Move(
            action, best, decided and answer.toss_up and level,
            (0.0 if level or best else cost) if decided else None, outcomes[action.name],
        )  # fmt: skip


def _of_pairs(
    game: Game, answer: Answer, edges: Expanded, outcomes: Sequence[Outcome]
) -> tuple[Outcome, ...]:
    """Return the outcomes of every pair of simultaneous choices, with their probabilities under the
    answer's strategies."""
    first, second = answer.strategies or ((), ())
    row, column = (
        np.unique(choices, return_inverse=True)[1].tolist()
        for choices in np.divmod(edges.actions, JOINT)
    )
    for each, i, j in zip(outcomes, row, column, strict=True):
        each.name, each.pair = f"{first[i].name} against {second[j].name}", (i, j)
        if each.chance < 1:
            each.name += f"; {happened(game, answer.state, each.state)}"
        each.chance *= first[i].chance * second[j].chance
    return tuple(sorted(outcomes, key=lambda each: -each.chance))


def happened(game: Game, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe a change of state for which the game has no name
    (`solver.game.capabilities.Drawing`): ``turn 4 -> 0; player 2 is up``."""
    turns = before.get("player") != after.get("player")
    parts = [changed(game, before, after), f"player {after['player']} is up" if turns else ""]
    return "; ".join(filter(None, parts)) or "nothing changes"


def changed(game: Game, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the fields that differ, from the mover's point of view: ``player 2: scores 1500 ->
    2000``, ``turn 0 -> 4``; "" if none."""
    if before.get("player") != after.get("player") and "mine" in before:
        after = {**after, "mine": after["yours"], "yours": after["mine"]}
    plain: list[str] = []
    by_player: dict[int, list[str]] = {}
    for each in game.fields:
        name, old, new = each.name, before.get(each.name), after.get(each.name)
        if name == "player" or old == new:
            continue
        by_seat = each.length == game.players > 1
        if by_seat and isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for i, (was, is_) in enumerate(zip(old, new, strict=True)):
                if was != is_:
                    by_player.setdefault(i + 1, []).append(f"{name} {was} -> {is_}")
        elif each.is_set and new is not None and old is not None and set(new) < set(old):
            plain.append(f"{name} without {sentences.listed([x for x in old if x not in new])}")
        elif new is not None:  # a value that is used up is not mentioned
            came_from = "" if old is None else f"{sentences.listed(old)} -> "
            plain.append(f"{name} {came_from}{sentences.listed(new)}")
    parts = [f"player {i}: {', '.join(each)}" for i, each in sorted(by_player.items())]
    parts = [", ".join(plain)] * bool(plain) + parts
    return "; ".join(parts)


@lru_cache(maxsize=256)
def equal_cases(weights: Sequence[float]) -> int | None:
    """Return the smallest number of equally likely cases of which every weight is a multiple; None
    if it exceeds `MAX_CASES`."""
    cases = np.arange(1, MAX_CASES + 1)
    counts = np.multiply.outer(cases, np.array(weights))
    fits = (np.abs(counts - np.round(counts)) < 1e-9).all(axis=1)
    return int(cases[int(np.argmax(fits))]) if fits.any() else None


GAMES = 2_500
"""Default number of games of each action: standard errors of at most one point of a chance."""
FOLLOWED = 20_000
"""Maximum number of states through which decisions are followed before games are played instead."""
NEAR, SMALL = 3, 10**8
"""In tables of more than `SMALL` rows, decisions are followed up to `NEAR` levels beyond the
frontier. Farther from the end the states lie in so many row groups that decoding them takes longer
than playing games."""
BYTES_AN_EDGE = 130
"""Bytes of memory while decisions are followed: 71 for each edge, and as much temporarily."""


def stored(table: Lookup, states: Ints) -> Stored:
    """Return the stored payoffs of canonical states (n, fields), and the stored best actions of
    the others."""
    from luckbase.solver.policies.chain import Stored

    payoffs, paid = table.get_many(states)
    best = np.full(len(states), -1, np.int16)
    best[~paid], names = table.best_codes(states[~paid])
    return Stored(payoffs, paid, best, names)


def follow(
    table: Lookup, states: Ints, max_states: int = MAX_SEARCHED
) -> tuple[Floats, SolvedChain]:
    """Return the payoffs (k, players) of canonical states (k, fields) if all players follow the
    stored decisions down to stored payoffs or the end of the game; and the chain of all states on
    the way, solved.

    Raises SearchLimitError for more than `max_states` states, or more than fit in memory.
    """
    from luckbase.solver.policies.chain import explore_profile

    compile_on()
    game = table.game
    roots, at = np.unique(states, axis=0, return_inverse=True)
    most = min(max_states, free_memory() // (BYTES_AN_EDGE * game.max_edges))
    deciders = [table.agent().decide] * game.players  # where no best action is stored
    try:
        chain = explore_profile(game, roots, deciders, most, partial(stored, table))
    except SearchLimitError:
        raise SearchLimitError(
            f"the stored decisions lead to more than {sentences.many(most, 'state')}; write "
            f"{option('games')} with how many games to play instead"
        ) from None
    solved = chain.solve()
    return solved.values[at.reshape(-1)], solved


def follow_decisions(
    table: Lookup, states: Ints, max_states: int, on_states: Callable[[int], None]
) -> list[Answer]:
    """Compute the exact payoffs of every action at stored canonical states (k, fields) if all
    players follow the stored decisions afterwards.

    on_states: called with the number of states.

    Raises SearchLimitError as `follow` does.
    """
    game, edges = table.game, expand(table.game, states)
    values, solved = follow(table, edges.children, max_states)
    on_states(len(solved.chain.keys))
    q = evaluate(edges, values)
    error = solved.error + max(table.error, game.float64_error + game.cut_error)
    off, inputs = np.full(len(edges.children), error), game.fields.values(states)
    actions = stepped(game, edges, q, (game.tie_tolerance, 0.0), off, inputs)
    described = enumerate(game.fields.describe_all(states))
    return [answer_at(actions, x, table.origin, state, "decisions") for x, state in described]


def chances(
    table: Lookup, states: Ints, weights: Sequence[float], games: int | None, max_states: int,
    on_states: Callable[[int], None],
) -> list[Answer]:  # fmt: skip
    """Compute the payoffs of every action at canonical states (k, fields) of which only the best
    action is stored: exactly, if the stored decisions lead to at most `max_states` and `FOLLOWED`
    states and these are not spread over too many row groups, otherwise from `GAMES` games of each
    action, shared by the states in proportion to `weights`; or from `games` games."""
    if games is None and _near(table, states):
        with suppress(SearchLimitError):
            return follow_decisions(table, states, min(max_states, FOLLOWED), on_states)
    shares = [max(2, round((games or GAMES) * weight)) for weight in weights]
    return play_games(table, list(map(table.game.describe, states)), shares, seed=0)


def _near(table: Lookup, states: Ints) -> bool:
    """True if all states are `NEAR` the frontier, or the table is `SMALL`."""
    if table.full is None or table.decided is None or table.decided.rows <= SMALL:
        return True
    frontier = max(map(table.full.level_of, table.full.entries), default=0)
    entries = [table.decided.entries[i] for i in table.decided.files_of(states) if i >= 0]
    return max(map(table.decided.level_of, entries), default=0) <= frontier + NEAR


def play_games(
    table: Lookup, states: Sequence[State], games: Sequence[int], seed: int
) -> list[Answer]:
    """Estimate the payoffs of every action at each state by so many simulated games of each action,
    in which all players follow the stored decisions. `error` is the largest standard error. The
    best action is the stored one. Game number i has the same random numbers after every action. All
    games advance together, so that each row group is read once a step."""
    from luckbase.solver.policies.evaluate import Starts, simulate

    compile_on()
    game, starts, counts = table.game, list[Starts](), list[int]()
    answers = [table.ask(state) for state in states]
    expanded = [expand(game, game.parse(state).reshape(1, -1)) for state in states]
    spans = list[list[tuple[int, int]]]()
    for state, answer, edges, count in zip(states, answers, expanded, games, strict=True):
        spans.append([])
        if edges.terminal[0]:
            continue
        if answer.to_act is None:
            raise StateError(f"{game.say(game.parse(state))}: no single player decides here; "
                             "expected a state in which one does")  # fmt: skip
        spans[-1] += pairwise([*action_starts(edges)[1].tolist(), len(edges.actions)])
        for a, b in spans[-1]:
            children, at = np.unique(edges.children[a:b], axis=0, return_inverse=True)
            chances = np.bincount(at.reshape(-1), edges.weights[a:b]).astype(np.float64)
            starts.append(Starts(children, chances))
            counts.append(count)
    deciders = [table.agent().decide] * game.players  # where no best action is stored
    played = iter(simulate(game, starts, deciders, counts, seed, partial(stored, table)))
    return [
        _estimated(table, state, answer, edges, [(a, b, next(played)) for a, b in each])
        if each else answer
        for state, answer, edges, each in zip(states, answers, expanded, spans, strict=True)
    ]  # fmt: skip


def _estimated(
    table: Lookup, state: State, answer: Answer, edges: Expanded,
    played: Sequence[tuple[int, int, Simulation]],
) -> Answer:  # fmt: skip
    """Return an answer with the mean returns of games after each action, of edges a .. b - 1."""
    game, by_name = table.game, dict[str, Action]()
    for a, b, games in played:
        name = game.action_name(int(edges.actions[a]))
        value = games.mean + edges.weights[a:b] @ edges.rewards[a:b]
        by_name[name] = Action(name, tuple(value.tolist()))
    best = by_name.pop(str(answer.best), None)
    if best is None or answer.to_act is None:
        raise StateError(table.missing(game.parse(state)))
    actor = answer.to_act - 1
    others = sorted(by_name.values(), key=lambda action: -action.value[actor])
    error = max(float(games.error.max()) for _, _, games in played)
    return replace(answer, value=best.value, actions=(best, *others), error=error, source="games")
