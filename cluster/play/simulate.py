"""What a profile of agents is worth by Monte Carlo, beside the exact payoff where it is known."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from luckbase.cluster.machine import cores
from luckbase.cluster.play.agents import AgentLike, Opener, for_players, no_tables, split
from luckbase.cluster.table.answer import Origin, origin_of
from luckbase.solver.errors import OptionError, SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import ClosedForms
from luckbase.solver.game.game import Game
from luckbase.solver.policy.evaluate import BEST_RESPONSE, OPTIMAL, deciders_of, evaluate_profile
from luckbase.solver.policy.simulate import simulate, simulate_on_the_way
from luckbase.solver.result import Flat, PythonOnly, Result
from luckbase.solver.sentences import option

SAME = 1e-9
"""Where every play pays the same, how far from it the exact payoff may be computed."""


@dataclass(frozen=True)
class Plays:
    """How many plays, from which seed, and how many states may be expanded beforehand."""

    games: int = 1_000_000
    seed: int = 0
    max_states: int = 1_000_000


@dataclass(frozen=True)
class Simulated(Result):
    """Mean payoffs and their standard errors, one a player. exact: the exact payoffs where they are
    known. seconds: of the plays."""

    origin: Flat[Origin]
    agents: tuple[str, ...]
    games: int
    mean: Annotated[tuple[float, ...], Field(serialization_alias="value")]
    error: Annotated[tuple[float, ...], Field(serialization_alias="stderr")]
    exact: PythonOnly[tuple[float, ...] | None]
    seconds: PythonOnly[float]


def simulated(
    game: Game, start: Ints | None, agents: str | Sequence[AgentLike], plays: Plays,
    opener: Opener = no_tables,
) -> Simulated:  # fmt: skip
    """Play games of a profile from a canonical state (fields,), or the game's start.

    Raises OptionError where a game is too large to solve on the way, StateError where a play may
    never end.
    """
    root = game.needed_start() if start is None else start
    names, profile = for_players(game, agents, opener)
    known = start is None and all(isinstance(agent, str) for agent in split(agents))
    forms = game.get(ClosedForms) if known else None
    exact = None if forms is None else forms.value(names)
    try:
        found = evaluate_profile(game, root, profile, max_states=plays.max_states)
        exact = tuple(found.value.tolist())
        started = time.perf_counter()
        played = simulate(found.chain, plays.games, plays.seed, cores())
    except SearchLimitError:
        if OPTIMAL in names or BEST_RESPONSE in names:
            raise OptionError(
                f"{option('agents')}: {game.board.name} is too large to solve on the way; "
                "solve a table and name its directory as the agent"
            ) from None
        deciders = [d for d in deciders_of(game, profile, root[None]) if d is not None]
        started = time.perf_counter()
        played = simulate_on_the_way(game, root, deciders, plays.games, plays.seed)
    return Simulated(
        origin_of(game), tuple(names), plays.games, tuple(played.mean.tolist()),
        tuple(played.error.tolist()), exact, time.perf_counter() - started,
    )  # fmt: skip


def errors_off(mean: float, exact: float, error: float) -> str:
    """How many standard errors a mean lies above (+) or below (-) the exact payoff."""
    off = mean - exact
    if error == 0:  # every play paid the same
        return (
            "0" if abs(off) <= SAME * max(1.0, abs(exact)) else f"{math.copysign(math.inf, off):+}"
        )
    return f"{off / error:+.2f}"
