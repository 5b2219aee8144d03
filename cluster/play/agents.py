"""Agents as users name them: one for all players or one for each.

A name is an agent of the game, ``optimal``, ``best-response``, ``random``, or a table's folder or
board file (docs/how-to/agents.md). In Python an agent may also be a function
(`solver.game.game.Agent`), a `Policy`, or an open table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from luckbase.solver.board.model import rules_identity
from luckbase.solver.errors import OptionError
from luckbase.solver.game.capabilities import plain
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


def check(game: Game, agents: str | Sequence[AgentLike], opener: Opener) -> None:
    """Raise OptionError for an unknown agent. A wrong number of agents is not reported here."""
    items = split(agents)
    for agent in items if len(items) in (1, game.players) else ():
        _player(game, agent, opener, "agents")


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


def opponents(
    game: Game, against: str | Sequence[AgentLike] | None, opener: Opener = no_tables
) -> list[tuple[str, Decider | None]]:
    """Return the name of each opponent and the function that decides for them; None for `optimal`.

    against: one agent for all opponents or one for each.

    Raises OptionError for an agent that is unknown or belongs to another board.
    """
    argument, others = "against", game.players - 1
    if not others and against is not None:
        raise OptionError(f"{option(argument)}: {game.board.game} has one player; leave it out")
    agents = OPTIMAL if against is None else against
    seats = _one_each(agents, others, argument, f"you have {many(others, 'opponent')}")
    players: list[tuple[str, Decider | None]] = []
    for agent in seats:
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
        players.append((name_of(agent), decide))
    return players


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
