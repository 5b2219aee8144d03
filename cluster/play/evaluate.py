"""What a profile of agents is worth, exactly, and what it costs them; each agent against each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field, PlainSerializer

from luckbase.cluster.play.agents import AgentLike, Opener, for_players, name_of, no_tables, split
from luckbase.cluster.table.answer import Origin, origin_of
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import FLOAT64_ERROR, Floats, Ints
from luckbase.solver.game.capabilities import ClosedForms
from luckbase.solver.game.game import Game
from luckbase.solver.policy.evaluate import (
    BEST_RESPONSE,
    OPTIMAL,
    Moves,
    Policy,
    costly_moves,
    evaluate_profile,
    named_agent,
)
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.sentences import option

MAX_STATES = 20_000_000


@dataclass(frozen=True)
class Costly:
    """A decision that costs something: where, who decided (from 1), how often a play comes there,
    what it costs them under optimal play afterwards."""

    state: dict[str, Any]
    player: int
    reach: float
    regret: float


@dataclass(frozen=True)
class EvaluateOptions:
    """What is wanted beside the payoffs. gain: what each player could gain by a best response.
    moves: how many of the costliest decisions. exact: the value as a fraction. facts: what else the
    game says of its agents."""

    gain: bool = False
    moves: int = 0
    exact: bool = False
    facts: bool = False
    max_states: int = MAX_STATES

    @property
    def more(self) -> bool:
        """Whether anything needs the graph of the profile."""
        return self.gain or self.exact or self.moves > 0


Facts = Annotated[
    tuple[tuple[str, str, float], ...],
    PlainSerializer(
        lambda facts: [dict(zip(("agent", "what", "number"), one, strict=True)) for one in facts]
    ),
]


@dataclass(frozen=True)
class Evaluated(Result):
    """The exact payoffs of a profile, one a player; None where it was not asked for, or not needed.

    states: that can come up. gain: by player. exact: a fraction, as text. loss: what all costly
    decisions cost a play; costly: how many there are; moves: the worst. facts: (agent, what it is,
    number).
    """

    origin: Flat[Origin]
    agents: tuple[str, ...]
    value: tuple[float, ...]
    states: PythonOnly[int | None] = None
    exact: IfAny[str] = None
    gain: IfAny[tuple[float, ...]] = None
    loss: IfAny[float] = None
    costly: Annotated[IfAny[int], Field(serialization_alias="costly_moves")] = None
    moves: IfAny[tuple[Costly, ...]] = None
    facts: IfAny[Facts] = None


def evaluated(
    game: Game, root: Ints, agents: str | Sequence[AgentLike], options: EvaluateOptions,
    opener: Opener = no_tables,
) -> Evaluated:  # fmt: skip
    """The exact payoffs of a profile from a canonical state (fields,).

    Raises OptionError for what is no agent, or not known of these; SearchLimitError.
    """
    if _is_start(game, root) and not options.more:
        quick = _quick(game, split(agents), options.facts)
        if quick is not None:
            return quick
    names, profile = for_players(game, agents, opener)
    exact = _fraction(game, names[0], root) if options.exact else None
    optimal = None
    if options.moves or OPTIMAL in names:
        optimal = Graph(game, max_states=options.max_states)
        optimal.solve(root.reshape(1, -1))
    most = options.max_states
    found = evaluate_profile(game, root, profile, max_states=most, optimal=optimal)
    gains: list[float] = []
    for player in range(game.players) if options.gain else ():
        other = [*profile[:player], BEST_RESPONSE, *profile[player + 1 :]]
        best = evaluate_profile(game, root, other, max_states=most, optimal=optimal)
        error = FLOAT64_ERROR + best.graph.error + found.graph.error
        gains.append(gain_of(best.value[player], found.value[player], error))
    report = Evaluated(
        origin_of(game), tuple(names), tuple(found.value.tolist()), len(found.chain.keys), exact,
        tuple(gains) if options.gain else None,
    )  # fmt: skip
    if not options.moves or optimal is None:
        return report
    return _with_moves(report, game, costly_moves(found, optimal), options.moves)


def _with_moves(report: Evaluated, game: Game, costly: Moves, most: int) -> Evaluated:
    moves = tuple(
        Costly(
            game.describe(costly.states[i]), int(costly.players[i]) + 1, float(costly.reach[i]),
            float(costly.regret[i]),
        )
        for i in range(min(most, len(costly.regret)))
    )  # fmt: skip
    loss = float((costly.reach * costly.regret).sum())
    return replace(report, loss=loss, costly=len(costly.regret), moves=moves)


def _is_start(game: Game, root: Ints) -> bool:
    own = game.start()
    return own is not None and bool((own == root).all())


def gain_of(best: float, own: float, error: float) -> float:
    """What a best response gains. It can not lose: what is below 0 by no more than `error` is 0,
    and what is by more is said, as something is wrong then."""
    gain = float(best - own)
    return 0.0 if -error <= gain < 0 else gain


def _quick(game: Game, given: list[AgentLike], facts: bool) -> Evaluated | None:
    """The answer by the game's own way, where it has one."""
    names = given * game.players if len(given) == 1 else given
    if len(names) != game.players or not all(isinstance(name, str) for name in names):
        return None  # refused further on, or no agent of the game's
    forms = game.get(ClosedForms)
    value = None if forms is None else forms.value(names)
    if forms is None or value is None:
        if facts:
            said = f"{option('facts')}: {game.board.game} has none of these agents; leave it out"
            raise OptionError(said)
        return None
    listed = tuple(forms.facts(names)) if facts else None
    return Evaluated(origin_of(game), tuple(names), tuple(value), facts=listed)


def _fraction(game: Game, name: str, root: Ints) -> str:
    if not _is_start(game, root):
        raise OptionError(
            f"{option('exact')}: fractions are of the game's start; leave {option('start')} out"
        )
    forms = game.get(ClosedForms)
    if forms is None or forms.exact is None:
        raise OptionError(
            f"board {game.board.name}: {game.board.game} has no exact fractions; leave "
            f"{option('exact')} out"
        )
    agent = None if name in (OPTIMAL, BEST_RESPONSE) else named_agent(game, name)
    return str(forms.exact(None if isinstance(agent, Policy) else agent))


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
    game: Game, root: Ints, agents: str | Sequence[AgentLike], opener: Opener = no_tables
) -> Matrix:
    """Each agent as player 1 (rows) against each as player 2 (columns). Raises OptionError where
    the game is not one of two."""
    if game.players != 2:
        said = f"for games of two, and {game.board.game} has {game.players}"
        raise OptionError(f"{option('matrix')}: {said}")
    given, at_start = split(agents), _is_start(game, root)
    forms = game.get(ClosedForms)
    values = []
    for one in given:
        row = []
        for two in given:
            names = [one, two]
            known = at_start and all(isinstance(name, str) for name in names)
            quick = forms.value(names) if known and forms is not None else None
            if quick is None:
                found = evaluate_profile(game, root, for_players(game, names, opener)[1])
                quick = tuple(found.value.tolist())
            row.append(quick[0])
        values.append(tuple(row))
    return Matrix(origin_of(game), tuple(map(name_of, given)), tuple(values))
