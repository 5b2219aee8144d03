"""The payoffs of a profile of agents, exactly or by Monte Carlo; each agent against each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, PlainSerializer

from luckbase.cluster.play.agents import (
    AgentLike,
    Opener,
    name_of,
    no_tables,
    players_of,
    seats_of,
    split,
)
from luckbase.cluster.table.manifest import Origin, origin_of
from luckbase.solver.errors import OptionError, SearchLimitError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Agents, Fact
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.policy.agents import BEST_RESPONSE, OPTIMAL, Policy
from luckbase.solver.policy.chain import MAX_STATES
from luckbase.solver.policy.evaluate import (
    Count,
    Starts,
    evaluate_profile,
    fixed_deciders,
    simulate,
    starts_at,
)
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.sentences import option


@dataclass(frozen=True)
class EvaluateOptions:
    """How to compute payoffs, and what to compute besides."""

    gain: bool = False
    """What each player could gain by a best response."""
    games: int | None = None
    """Simulate this many games, in place of exact payoffs."""
    seed: int = 0
    """Of the simulated games."""
    max_states: int = MAX_STATES


Facts = Annotated[
    tuple[Fact, ...],
    PlainSerializer(
        lambda facts: [dict(zip(("agent", "what", "number"), one, strict=True)) for one in facts]
    ),
]


@dataclass(frozen=True)
class Evaluated(Result):
    """The payoffs of a profile, one a player: exact, or the means of simulated games.

    states: how many the agents can come to, the alternatives of a best response included.
    gain: what each player could gain by a best response.
    facts: what the game says about its agents, if it does not follow every state.
    games: how many were simulated, with the standard error of each payoff (`stderr`) and the
        numbers that the game counts (`counts`).
    starts: the share of all games that begin where the agents' tables have decisions, if some do
        not; only those were simulated.
    """

    origin: Flat[Origin]
    agents: tuple[str, ...]
    value: tuple[float, ...]
    states: PythonOnly[int | None] = None
    gain: IfAny[tuple[float, ...]] = None
    facts: IfAny[Facts] = None
    games: IfAny[int] = None
    stderr: IfAny[tuple[float, ...]] = None
    counts: IfAny[tuple[Count, ...]] = None
    starts: IfAny[float] = None
    seconds: PythonOnly[float] = 0.0


def evaluate_agents(
    game: Game, root: Ints | Starts, agents: str | Sequence[AgentLike], options: EvaluateOptions,
    opener: Opener = no_tables,
) -> Evaluated:  # fmt: skip
    """Return the payoffs of a profile from a canonical state (fields,), or expected over starts.

    In a game of three or more ``A,best-response`` is what each player gains by the best response to
    the others, who are A. Raises OptionError for an unknown agent, SearchLimitError, StateError.
    """
    items = split(agents)
    if len(items) == 2 < game.players and items[1] == BEST_RESPONSE:
        agents, options = items[:1], replace(options, gain=True)
    root, seats = starts_at(root), seats_of(game, agents)
    if options.games is not None:
        if options.gain:
            raise OptionError(f"{option('gain')}: is exact; leave {option('games')} out")
        return _simulated(game, root, seats, options.games, options, opener)
    exact = partial(_exact, game, root, opener, _Optimal(game, root, options.max_states))
    result, gains = exact(seats), list[float]()
    for player in range(game.players) if options.gain else ():
        best = exact([*seats[:player], BEST_RESPONSE, *seats[player + 1 :]])
        error = game.float64_error + game.cut_error + best.error + result.error
        gains.append(gain_of(best.value[player], result.value[player], error))
    return Evaluated(
        origin_of(game), tuple(map(name_of, seats)), result.value, result.states,
        tuple(gains) if options.gain else None,
        tuple(game.own(Agents).facts(game, seats)) or None if result.states is None else None,
    )  # fmt: skip


class _Exact(NamedTuple):
    """The exact payoffs of a profile, a bound on their error, and the number of states that it can
    come to, if they were followed."""

    value: tuple[float, ...]
    error: float
    states: int | None


@dataclass
class _Optimal:
    """The game below some roots, solved once, when an agent plays `optimal`."""

    game: Game
    root: Starts
    max_states: int

    @cached_property
    def graph(self) -> Graph:
        graph = Graph(self.game, max_states=self.max_states)
        graph.solve(self.root.states)
        return graph

    def for_profile(self, profile: Sequence[str | Agent | Policy]) -> Graph | None:
        return self.graph if OPTIMAL in profile else None


def _exact(
    game: Game, root: Starts, opener: Opener, optimal: _Optimal, seats: list[AgentLike]
) -> _Exact:
    """Return the payoffs by the game's own way from its start, or by following every state."""
    if _is_start(game, root) and all(isinstance(seat, str) for seat in seats):
        known = game.own(Agents).from_start(game, seats)
        if known is not None:
            return _Exact(known, 0.0, None)
    profile = players_of(game, seats, opener)
    found = evaluate_profile(
        game, root, profile, max_states=optimal.max_states, optimal=optimal.for_profile(profile)
    )
    return _Exact(tuple(found.value.tolist()), found.error, len(found.chain.keys))


def _is_start(game: Game, root: Starts) -> bool:
    start = game.start()
    return start is not None and len(root.states) == 1 and bool((start == root.states[0]).all())


def gain_of(best: float, value: float, error: float) -> float:
    """What a best response gains. It can not lose: a number below 0 by at most `error` is 0, and
    one that is by more stays as it is, to show that something is wrong."""
    gain = float(best - value)
    return 0.0 if -error <= gain < 0 else gain


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
    root, rivals = starts_at(root), split(agents)
    exact = partial(_exact, game, root, opener, _Optimal(game, root, MAX_STATES))
    values = [[exact([one, two]).value[0] for two in rivals] for one in rivals]
    return Matrix(origin_of(game), tuple(map(name_of, rivals)), tuple(map(tuple, values)))


# --- by Monte Carlo ------------------------------------------------------------------------------


def _simulated(
    game: Game, root: Starts, seats: list[AgentLike], games: int, options: EvaluateOptions,
    opener: Opener,
) -> Evaluated:  # fmt: skip
    """Simulate games of a profile, each from one of the starts, drawn by its chance.

    Raises OptionError if the game is too large to solve for the agents, StateError if a game may
    never end.
    """
    profile = players_of(game, seats, opener)
    root, share = _known_starts(root, profile)
    try:
        deciders = fixed_deciders(game, profile, root.states, options.max_states)
    except SearchLimitError:
        raise OptionError(
            f"{option('agents')}: {game.board.name} is too large to solve on the way; "
            "solve a table and name its folder as the agent"
        ) from None
    started = time.perf_counter()
    played = simulate(game, root, deciders, games, options.seed)
    return Evaluated(
        origin_of(game), tuple(map(name_of, seats)), tuple(played.mean.tolist()), games=games,
        stderr=tuple(played.error.tolist()), counts=played.counts or None, starts=share,
        seconds=time.perf_counter() - started,
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
