"""Agents as users name them, and their payoffs: exact or by Monte Carlo, and every agent against
every other.

A user names one agent for all players or one for each. A name is an agent of the game, ``optimal``,
``best-response``, ``random``, or a table's folder or board file (docs/how-to/agents.md). In Python
an agent may also be a function (`solver.game.game.Agent`), a `Policy`, or an open table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field, PlainSerializer

from luckbase.cluster.store.provenance import Origin, origin_of
from luckbase.solver.board.model import rules_identity
from luckbase.solver.errors import OptionError, SearchLimitError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Agents, Fact, plain
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.policies.agents import (
    BEST_RESPONSE,
    OPTIMAL,
    RANDOM,
    Decider,
    Policy,
    asking,
    named_agent,
    random_player,
)
from luckbase.solver.policies.chain import MAX_STATES
from luckbase.solver.policies.evaluate import (
    Count,
    Starts,
    evaluate_profile,
    fixed_deciders,
    simulate,
    starts_at,
)
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.sentences import many, option, shorten

if TYPE_CHECKING:
    from luckbase.cluster.answers.lookup import Lookup

AgentLike = Any
"""An agent as a user gives it: a name, an `Agent`, a `Policy`, or an open table."""
Opener = Callable[[str], "Lookup | None"]
"""opener(name) returns the open table of a folder or board file, or None for another name."""


def no_tables(name: str) -> Lookup | None:
    """Return None: an opener that finds no tables."""
    return None


def split(agents: str | Sequence[AgentLike], argument: str = "agents") -> list[AgentLike]:
    """Split ``A,B`` into a list of agents. Raises OptionError for an empty name."""
    if not isinstance(agents, str):
        return list(agents) if isinstance(agents, Sequence) else [agents]
    names = [name.strip() for name in agents.split(",")]
    if not all(names):
        raise OptionError(
            f"{option(argument)}: '{shorten(agents, 80)}' has an empty name; write A, or one a "
            "player: A,B"
        )
    return names


def name_of(agent: AgentLike) -> str:
    if isinstance(agent, str):
        return agent
    origin = getattr(agent, "origin", None)
    return str(origin) if origin is not None else getattr(agent, "__name__", type(agent).__name__)


def _one_each(
    agents: str | Sequence[AgentLike], count: int, argument: str, who: str
) -> list[AgentLike]:
    """Return `count` agents, from one for all or one for each. Raises OptionError."""
    items = split(agents, argument)
    if len(items) not in (1, count):
        raise OptionError(
            f"{option(argument)}: {many(len(items), 'name')}, and {who}; give one for all or one "
            "for each"
        )
    return items * count if len(items) == 1 else items


def seats_of(game: Game, agents: str | Sequence[AgentLike]) -> list[AgentLike]:
    """Return an agent for each player. Raises OptionError for a wrong number of agents."""
    who = f"{game.board.game} has {many(game.players, 'player')}"
    return _one_each(agents, game.players, "agents", who)


def players_of(
    game: Game, seats: Sequence[AgentLike], opener: Opener
) -> list[str | Agent | Policy]:
    """Return the agents as `solver.policies.evaluate` takes them. Raises OptionError for an unknown
    agent or a table of another board."""
    return [_player(game, agent, opener, "agents") for agent in seats]


@dataclass(frozen=True)
class Seat:
    """A player's name and the function that decides for them; None plays the best action."""

    name: str
    decide: Decider | None = None


def opponents(
    game: Game, against: str | Sequence[AgentLike] | None, opener: Opener = no_tables
) -> list[Seat]:
    """Return the opponents of a person.

    against: one agent for all opponents or one for each.

    Raises OptionError for an agent that is unknown or belongs to another board.
    """
    argument, others = "against", game.players - 1
    if not others and against is not None:
        raise OptionError(f"{option(argument)}: {game.board.game} has one player; leave it out")
    agents = OPTIMAL if against is None else against
    seats = list[Seat]()
    for agent in _one_each(agents, others, argument, f"you have {many(others, 'opponent')}"):
        if agent == BEST_RESPONSE:
            raise OptionError(
                f"{option(argument)}: {agent} has to know beforehand how you will play; {OPTIMAL} "
                "does not"
            )
        plays = _player(game, agent, opener, argument)
        decide: Decider | None = None
        if isinstance(plays, Policy):
            decide = plays.decide
        elif plays != OPTIMAL:
            decide = asking(random_player if isinstance(plays, str) else plays)
        seats.append(Seat(name_of(agent), decide))
    return seats


def _player(game: Game, agent: AgentLike, opener: Opener, argument: str) -> str | Agent | Policy:
    """Return the agent of a table, an agent of the game, or the name of a built-in agent."""
    if isinstance(agent, Policy):
        return agent
    table: Any = opener(agent) if isinstance(agent, str) else agent
    if hasattr(table, "agent"):
        if table.identity not in map(rules_identity, (game, plain(game))):
            raise OptionError(
                f"{option(argument)}: {name_of(agent)} is a table of {table.origin}, not of this "
                "board with these options"
            )
        return table.agent()
    if isinstance(agent, str):
        named = agent in (OPTIMAL, BEST_RESPONSE, RANDOM)
        return agent if named else named_agent(game, agent, argument)
    if not callable(agent):
        raise OptionError(
            f"{option(argument)}: {agent!r} is not an agent; give a name, a function or a table"
        )
    return agent


# --- payoffs -------------------------------------------------------------------------------------

Facts = Annotated[
    tuple[Fact, ...],
    PlainSerializer(
        lambda facts: [dict(zip(("agent", "what", "number"), fact, strict=True)) for fact in facts]
    ),
]


@dataclass(frozen=True)
class Evaluated(Result):
    """The payoffs of a profile, one for each player: exact, or means of simulated games.

    states: number of states that the agents can reach, including the alternatives of a best
        response.
    gain: how much each player could gain by a best response.
    facts: statistics of the agents from the game, if it does not follow every state.
    games: number of simulated games.
    stderr: standard error of each payoff, if games were simulated.
    counts: statistics that the game counts in simulated games.
    starts: if the agents' tables do not have decisions for all starts, the probability of the
        starts that they have; only those were simulated.
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
    game: Game, root: Ints | Starts, agents: str | Sequence[AgentLike], opener: Opener, gain: bool,
    games: int | None, seed: int, max_states: int,
) -> Evaluated:  # fmt: skip
    """Return the payoffs of a profile from a canonical state (fields,), or expected over starts.

    In a game of three or more players, ``A,best-response`` returns how much each player gains by a
    best response if all others play A. The options are as in `luckbase.evaluate`.

    Raises OptionError for an unknown agent, SearchLimitError, StateError.
    """
    items = split(agents)
    if len(items) == 2 < game.players and items[1] == BEST_RESPONSE:
        agents, gain = items[:1], True
    root, seats = starts_at(root), seats_of(game, agents)
    if games is not None:
        if gain:
            raise OptionError(f"{option('gain')}: is exact; leave {option('games')} out")
        return _simulated(
            game, root, seats, players_of(game, seats, opener), games, seed, max_states
        )
    exact = _exact_payoffs(game, root, opener, max_states)
    result, gains = exact(seats), list[float]()
    for player in range(game.players) if gain else ():
        best = exact([*seats[:player], BEST_RESPONSE, *seats[player + 1 :]])
        error = game.float64_error + game.cut_error + best.error + result.error
        gains.append(gain_of(best.value[player], result.value[player], error))
    return Evaluated(
        origin_of(game), tuple(map(name_of, seats)), result.value, result.states,
        tuple(gains) if gain else None,
        tuple(game.own(Agents).facts(game, seats)) or None if result.states is None else None,
    )  # fmt: skip


class _Exact(NamedTuple):
    """Exact payoffs of a profile."""

    value: tuple[float, ...]
    error: float  # a bound on their error
    states: int | None  # number of states that can be reached; None if they were not followed


def _exact_payoffs(
    game: Game, root: Starts, opener: Opener, max_states: int
) -> Callable[[list[AgentLike]], _Exact]:
    """Return a function from an agent for each player to their exact payoffs.

    They come from the game's formula for its start; otherwise every state is followed.
    """

    @cache
    def solved() -> Graph:
        graph = Graph(game, max_states=max_states)
        graph.solve(root.states)
        return graph

    def exact(seats: list[AgentLike]) -> _Exact:
        if _is_start(game, root) and all(isinstance(seat, str) for seat in seats):
            known = game.own(Agents).from_start(game, seats)
            if known is not None:
                return _Exact(known, 0.0, None)
        profile = players_of(game, seats, opener)
        optimal = solved() if OPTIMAL in profile else None
        found = evaluate_profile(game, root, profile, max_states=max_states, optimal=optimal)
        return _Exact(tuple(found.value.tolist()), found.error, len(found.chain.keys))

    return exact


def _is_start(game: Game, root: Starts) -> bool:
    start = game.start()
    return start is not None and len(root.states) == 1 and bool((start == root.states[0]).all())


def gain_of(best: float, value: float, error: float) -> float:
    """Return how much a best response gains, which cannot be negative. A value below 0 within
    `error` becomes 0; a more negative value is returned unchanged, because it shows a bug."""
    gain = float(best - value)
    return 0.0 if -error <= gain < 0 else gain


@dataclass(frozen=True)
class Matrix(Result):
    """Every agent against every agent: values[i][j] is player 1's payoff if i plays j."""

    origin: Flat[Origin]
    agents: tuple[str, ...]
    values: Annotated[tuple[tuple[float, ...], ...], Field(serialization_alias="matrix")]

    @property
    def array(self) -> Floats:
        """float64 (agents, agents)."""
        return np.array(self.values)


def matrix_of(
    game: Game, root: Ints | Starts, agents: str | Sequence[AgentLike], opener: Opener
) -> Matrix:
    """Compute the payoff of each agent as player 1 (rows) against each as player 2 (columns).
    Raises OptionError if the game does not have two players."""
    if game.players != 2:
        why = f"for games of two, and {game.board.game} has {game.players}"
        raise OptionError(f"{option('matrix')}: {why}")
    rivals, exact = split(agents), _exact_payoffs(game, starts_at(root), opener, MAX_STATES)
    players_of(game, rivals, opener)  # an unknown one is refused before the work
    values = [[exact([first, second]).value[0] for second in rivals] for first in rivals]
    return Matrix(origin_of(game), tuple(map(name_of, rivals)), tuple(map(tuple, values)))


# --- by Monte Carlo ------------------------------------------------------------------------------


def _simulated(
    game: Game, root: Starts, seats: list[AgentLike], profile: Sequence[Any], games: int, seed: int,
    max_states: int,
) -> Evaluated:  # fmt: skip
    """Simulate games of a profile. Each begins at a start drawn by its probability.

    Raises OptionError if the game is too large to solve for the agents, StateError if a game may
    never end.
    """
    root, share = _known_starts(root, profile)
    try:
        deciders = fixed_deciders(game, profile, root.states, max_states)
    except SearchLimitError:
        raise OptionError(
            f"{option('agents')}: {game.board.name} is too large to solve on the way; "
            "solve a table and name its folder as the agent"
        ) from None
    started = time.perf_counter()
    (played,) = simulate(game, [root], deciders, games, seed)
    return Evaluated(
        origin_of(game), tuple(map(name_of, seats)), tuple(played.mean.tolist()), games=games,
        stderr=tuple(played.error.tolist()), counts=played.counts or None, starts=share,
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def _known_starts(root: Starts, profile: Sequence[Any]) -> tuple[Starts, float | None]:
    """Return the starts for which all tables of a profile have decisions, and their total
    probability. If these are all starts or none, return all starts and None."""
    known = np.ones(len(root.states), bool)
    for agent in profile if len(known) > 1 else ():
        if isinstance(agent, Policy) and agent.holds is not None:
            known &= agent.holds(root.states)
    share = float(root.chances[known].sum())
    if known.all() or not share:
        return root, None
    return Starts(root.states[known], root.chances[known] / share), share
