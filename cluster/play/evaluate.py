"""What a profile of agents is worth, exactly and by Monte Carlo, and what it costs them; each agent
against each."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field, PlainSerializer

from luckbase.cluster.machine import cores
from luckbase.cluster.play.agents import AgentLike, Opener, for_players, name_of, no_tables, split
from luckbase.cluster.table.ledger import Origin, origin_of
from luckbase.solver import sentences
from luckbase.solver.errors import OptionError, SearchLimitError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import ClosedForms, states_to_copy
from luckbase.solver.game.game import Game
from luckbase.solver.policy.agents import BEST_RESPONSE, OPTIMAL, Policy
from luckbase.solver.policy.distribution import Spread, Tally, distribution
from luckbase.solver.policy.evaluate import (
    Starts,
    costly_moves,
    deciders_of,
    evaluate_profile,
    simulate,
    simulate_on_the_way,
    starts_at,
)
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.search.explore import far_more_than
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.sentences import on_command_line, option

MAX_STATES = 20_000_000
SAME = 1e-9
"""Where every play pays the same, how far from it the exact payoff may be computed."""


@dataclass(frozen=True)
class Costly:
    """A decision that costs something: where, who decided (from 1), how often a play comes there,
    what it costs them under optimal play afterwards."""

    state: dict[str, Any]
    player: int
    reach: float
    regret: float


@dataclass(frozen=True)
class Count(Result):
    """How what is counted of a play is spread. what: its name; player: whose, from 1, where each
    has their own. mean: the chance where it is true or not. stderr: the mean's standard error where
    plays were played. quantiles: by share, the least number that so many plays do not go beyond.
    values, chances: every number that there is, ascending, and how likely."""

    what: str
    player: IfAny[int]
    mean: float
    stderr: IfAny[float]
    quantiles: dict[str, float]
    values: tuple[float, ...]
    chances: tuple[float, ...]


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def counts_of(spreads: Sequence[Spread]) -> tuple[Count, ...]:
    """The same as results."""
    return tuple(
        Count(
            each.name, each.player, each.mean, each.error or None,
            {} if each.is_chance else {f"{q:g}": each.quantile(q) for q in QUANTILES},
            tuple(each.values.tolist()), tuple(each.chances.tolist()),
        )
        for each in spreads
    )  # fmt: skip


@dataclass(frozen=True)
class EvaluateOptions:
    """What to compute beside the payoffs."""

    gain: bool = False
    """What each player could gain by a best response."""
    moves: int = 0
    """How many of the costliest decisions."""
    facts: bool = False
    """What else the game says of its agents."""
    max_states: int = MAX_STATES
    distribution: bool = False
    """How what the game counts of a play is spread."""


Facts = Annotated[
    tuple[tuple[str, str, float], ...],
    PlainSerializer(
        lambda facts: [dict(zip(("agent", "what", "number"), one, strict=True)) for one in facts]
    ),
]


@dataclass(frozen=True)
class Evaluated(Result):
    """The exact payoffs of a profile, one a player; None where it was not asked for, or not needed.

    states: that can come up. gain: by player. loss: what all costly decisions cost a play; costly:
    how many there are; moves: the worst. distribution: of what is counted of a play. facts:
    (agent, what it is, number).
    """

    origin: Flat[Origin]
    agents: tuple[str, ...]
    value: tuple[float, ...]
    states: PythonOnly[int | None] = None
    gain: IfAny[tuple[float, ...]] = None
    loss: IfAny[float] = None
    costly: Annotated[IfAny[int], Field(serialization_alias="costly_moves")] = None
    moves: IfAny[tuple[Costly, ...]] = None
    distribution: IfAny[tuple[Count, ...]] = None
    facts: IfAny[Facts] = None


def evaluate_agents(
    game: Game, root: Ints | Starts, agents: str | Sequence[AgentLike], options: EvaluateOptions,
    opener: Opener = no_tables,
) -> Evaluated:  # fmt: skip
    """The exact payoffs of a profile from a canonical state (fields,), or expected over starts.

    In a game of three or more ``A,best-response`` is what each player gains by the best response to
    the others, who are A. Raises OptionError for what is no agent, or not known of these;
    SearchLimitError.
    """
    items = split(agents)
    if len(items) == 2 < game.players and items[1] == BEST_RESPONSE:
        agents, options = items[:1], replace(options, gain=True)
    root = starts_at(root)
    more = options.gain or options.moves or options.distribution
    if _is_start(game, root) and not more:
        quick = _quick(game, split(agents), options.facts)
        if quick is not None:
            return quick
    names, profile = for_players(game, agents, opener)
    optimal, max_states = None, options.max_states
    if len(root.states) > 1:
        _refuse_far_too_many(game, root, max_states)
    if options.moves or OPTIMAL in names:
        optimal = Graph(game, max_states=max_states)
        optimal.solve(root.states)
    result = evaluate_profile(game, root, profile, max_states=max_states, optimal=optimal)
    gains: list[float] = []
    for player in range(game.players) if options.gain else ():
        deviation = [*profile[:player], BEST_RESPONSE, *profile[player + 1 :]]
        best = evaluate_profile(game, root, deviation, max_states=max_states, optimal=optimal)
        error = game.float64_error + best.error + result.error
        gains.append(gain_of(best.value[player], result.value[player], error))
    loss, count, moves = None, None, None
    if options.moves and optimal is not None:
        costly = costly_moves(result, optimal)
        loss, count = float((costly.reach * costly.regret).sum()), len(costly.regret)
        moves = tuple(
            Costly(
                game.describe(costly.states[i]), int(costly.players[i]) + 1,
                float(costly.reach[i]), float(costly.regret[i]),
            )
            for i in range(min(options.moves, count))
        )  # fmt: skip
    return Evaluated(
        origin_of(game), tuple(names), tuple(result.value.tolist()), len(result.chain.keys),
        tuple(gains) if options.gain else None, loss, count, moves,
        counts_of(distribution(result.chain, result.starts)) if options.distribution else None,
    )  # fmt: skip


def _is_start(game: Game, root: Starts) -> bool:
    start = game.start()
    return start is not None and len(root.states) == 1 and bool((start == root.states[0]).all())


def _refuse_far_too_many(game: Game, root: Starts, max_states: int) -> None:
    """Raises SearchLimitError where it is soon clear that far more than `max_states` lie below
    the likeliest of many starts."""
    below = far_more_than(game, root.states[np.argmax(root.chances)], max_states)
    if below:
        lower = states_to_copy(game)
        raise SearchLimitError(
            f"board {game.board.name}: more than {sentences.counted(below, 'state')} lie below one "
            f"of the {len(root.states):,} in which a play may begin, and "
            f"{option('max_states')} is {max_states:,}; {on_command_line('run: luckbase ')}simulate"
            + (f", or begin lower, as {lower}" if lower else "")
        )


def gain_of(best: float, value: float, error: float) -> float:
    """What a best response gains. It can not lose: a number below 0 by at most `error` is 0, and
    one that is by more stays as it is, to show that something is wrong."""
    gain = float(best - value)
    return 0.0 if -error <= gain < 0 else gain


def _quick(game: Game, agents: list[AgentLike], facts: bool) -> Evaluated | None:
    """The answer by the game's own way, where it has one."""
    names = agents * game.players if len(agents) == 1 else agents
    if len(names) != game.players or not all(isinstance(name, str) for name in names):
        return None  # refused further on, or no agent of the game's
    forms = game.get(ClosedForms)
    value = None if forms is None else forms.value(names)
    if forms is None or value is None:
        if facts:
            error = f"{option('facts')}: {game.board.game} has none on these agents; leave it out"
            raise OptionError(error)
        return None
    facts_of = tuple(forms.facts(names)) if facts else None
    return Evaluated(origin_of(game), tuple(names), tuple(value), facts=facts_of)


@dataclass(frozen=True)
class Matrix(Result):
    """Each agent against each: values[i][j] is player 1's payoff with agent i against agent j."""

    origin: Flat[Origin]
    agents: tuple[str, ...]
    values: Annotated[tuple[tuple[float, ...], ...], Field(serialization_alias="matrix")]

    @property
    def array(self) -> Floats:
        """float64 (agents, agents)."""
        return np.array(self.values)


def matrix_of(
    game: Game, root: Ints | Starts, agents: str | Sequence[AgentLike], opener: Opener = no_tables
) -> Matrix:
    """Each agent as player 1 (rows) against each as player 2 (columns). Raises OptionError where
    the game is not one of two."""
    if game.players != 2:
        why = f"for games of two, and {game.board.game} has {game.players}"
        raise OptionError(f"{option('matrix')}: {why}")
    root = starts_at(root)
    rivals, at_start, values = split(agents), _is_start(game, root), []
    for first in rivals:
        row = []
        for second in rivals:
            names = [first, second]
            result: Any = _quick(game, names, facts=False) if at_start else None
            result = result or evaluate_profile(game, root, for_players(game, names, opener)[1])
            row.append(float(result.value[0]))
        values.append(tuple(row))
    return Matrix(origin_of(game), tuple(map(name_of, rivals)), tuple(values))


# --- by Monte Carlo ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Simulated(Result):
    """Mean payoffs and their standard errors, one a player. exact: the exact payoffs where they are
    known. seconds: of the plays. starts: the share of all plays that begin where the agents' tables
    have decisions, where that is not all: those were played."""

    origin: Flat[Origin]
    agents: tuple[str, ...]
    games: int
    mean: Annotated[tuple[float, ...], Field(serialization_alias="value")]
    error: Annotated[tuple[float, ...], Field(serialization_alias="stderr")]
    exact: PythonOnly[tuple[float, ...] | None]
    seconds: PythonOnly[float]
    distribution: IfAny[tuple[Count, ...]] = None
    starts: IfAny[float] = None


def simulate_agents(
    game: Game, root: Ints | Starts, agents: str | Sequence[AgentLike], games: int, seed: int = 0,
    max_states: int = MAX_STATES, opener: Opener = no_tables, spread: bool = False,
) -> Simulated:  # fmt: skip
    """Play games of a profile from a canonical state (fields,), or from starts, one drawn a game;
    so many states may be expanded beforehand. spread: count what the game counts of a play.

    Raises OptionError where a game is too large to solve on the way, StateError where a play may
    never end.
    """
    names, profile = for_players(game, agents, opener)
    root, tally = starts_at(root), Tally(game) if spread else None
    root, share = _known_starts(root, profile)
    quick = _quick(game, split(agents), facts=False) if _is_start(game, root) else None
    exact = None if quick is None else quick.value
    try:
        result = evaluate_profile(game, root, profile, max_states=max_states)
        exact = tuple(result.value.tolist())
        started = time.perf_counter()
        played = simulate(result.chain, games, seed, cores(), result.starts, tally)
    except SearchLimitError:
        if OPTIMAL in names or BEST_RESPONSE in names:
            raise OptionError(
                f"{option('agents')}: {game.board.name} is too large to solve on the way; "
                "solve a table and name its directory as the agent"
            ) from None
        deciders = [d for d in deciders_of(game, profile, root.states) if d is not None]
        started = time.perf_counter()
        played = simulate_on_the_way(game, root, deciders, games, seed, tally)
    return Simulated(
        origin_of(game), tuple(names), games, tuple(played.mean.tolist()),
        tuple(played.error.tolist()), exact, time.perf_counter() - started,
        None if tally is None else counts_of(tally.spreads()), share,
    )  # fmt: skip


def _known_starts(root: Starts, profile: Sequence[Any]) -> tuple[Starts, float | None]:
    """Of several starts those at which all tables of a profile have decisions, and how likely these
    are; None where that is all of them, or none."""
    known = np.ones(len(root.states), bool)
    for agent in profile if len(known) > 1 else ():
        if isinstance(agent, Policy) and agent.holds is not None:
            known &= agent.holds(root.states)
    share = float(root.chances[known].sum())
    if known.all() or not share:
        return root, None
    return Starts(root.states[known], root.chances[known] / share), share


def errors_off(mean: float, exact: float, error: float) -> str:
    """How many standard errors a mean lies above (+) or below (-) the exact payoff."""
    off = mean - exact
    if error == 0:  # every play paid the same
        return (
            "0" if abs(off) <= SAME * max(1.0, abs(exact)) else f"{math.copysign(math.inf, off):+}"
        )
    return f"{off / error:+.2f}"
