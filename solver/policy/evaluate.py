"""Agents' exact payoffs: a profile of policies turns a game into a Markov chain.

For a profile, one policy a player, with chances s(x, a) of the actions at state x::

    V(x)      = sum over a of s(x, a) q(x, a)            the profile's payoffs, one a player
    R(y)      = [y is the root] + sum over x of R(x) P(x, y)     how often a play comes to y
    regret(x) = max over a of q*(x, a)_p - sum over a of s(x, a) q*(x, a)_p

with P(x, y) the chance of going from x to y, p the player who acts at x and q* under optimal play
from there on. A player without a policy (`BEST_RESPONSE`) maximises against the others: backward
induction with their states averaged. For one player, value lost = sum of R(x) regret(x).

Only what the profile can come to is expanded. Values are exact as `solver.search.game_graph` is, R
as `solver.policy.chain`.

Source: Puterman, Markov Decision Processes, 4.2 and 5.1; Kakade and Langford (2002), lemma 6.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import agents_of, choices
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.policy.chain import MAX_STATES, PIECE, Chain, Decider, explore_profile
from luckbase.solver.search.bellman import MIXED, evaluate, strategies_of
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import pack_all
from luckbase.solver.sentences import nearest, option, shorten


@dataclass(frozen=True)
class Policy:
    """A way of playing that is asked about many states at once, as a table's."""

    decide: Decider


OPTIMAL, BEST_RESPONSE, RANDOM = "optimal", "best-response", "random"


def asking(agent: Agent) -> Decider:
    """An agent, who is asked about one state at a time, as a decider.

    Raises OptionError, naming the state, where they answer what is no choice.
    """

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        found = []
        for state, own in zip(states, actions, strict=True):
            listed = choices(game, state, own.tolist())
            answer = agent(game, player, state, list(listed))
            if isinstance(answer, int | np.integer):
                weights = np.zeros(len(listed))
                if 0 <= answer < len(listed):
                    weights[answer] = 1.0
            else:
                weights = np.asarray(answer, np.float64)
            if (
                weights.shape != (len(listed),)
                or weights.min() < 0
                or abs(weights.sum() - 1) > 1e-9
            ):
                raise OptionError(
                    f"an agent answered {answer!r} at {game.describe(state)}; expected an "
                    f"index below {len(listed)} or as many chances that sum to 1"
                )
            chances = np.zeros(len(own))
            for action, weight in zip(listed, weights, strict=True):
                chances[np.flatnonzero(own == action)[0]] += weight
            found.append(chances)
        return found

    return decide


def following(graph: Graph) -> Decider:
    """The best actions of a solved graph as a decider: its optimal player."""

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        best = graph.best[graph.look_up(pack_all(game.bits, np.ascontiguousarray(states)))]
        found = [(own == b).astype(np.float64) for own, b in zip(actions, best, strict=True)]
        joint_states = np.flatnonzero(best == MIXED)
        for part in range(0, len(joint_states), PIECE):
            at = joint_states[part : part + PIECE]
            for x, strategy in zip(at, _strategies(graph, player, states[at]), strict=True):
                found[x] = strategy
        return found

    return decide


def _strategies(graph: Graph, player: int, states: Ints) -> list[Floats]:
    """An optimal strategy of a player (0 or 1) at each simultaneous state of a solved graph."""
    game = graph.game
    edges = expand(game, states)
    below = graph.values[graph.look_up(pack_all(game.bits, edges.children))]
    return strategies_of(evaluate(edges, below), player)


def random_player(game: Game, player: int, state: Ints, actions: list[int]) -> Sequence[float]:
    """The agent who takes any of their choices, all equally likely."""
    return [1 / len(actions)] * len(actions)


@dataclass(frozen=True)
class Evaluation:
    """A profile's exact payoffs from a root. graph: solved, with every state the profile can come
    to; chain: the same states with the players who maximised fixed too."""

    value: Floats
    graph: Graph
    chain: Chain


def chain_graph(chain: Chain, roots: Ints) -> Graph:
    """The solved graph of a chain with no choice left: every state's payoffs under its policies."""
    graph = Graph(chain.game, policy=chain.fixed)
    graph.solve(np.ascontiguousarray(roots).reshape(-1, chain.game.field_count))
    return graph


def deciders_of(
    game: Game, agents: Sequence[str | Agent | Policy], roots: Ints
) -> list[Decider | None]:
    """What decides for each player below `roots` (k, fields); None for `best-response`."""
    optimal = None
    if OPTIMAL in agents:
        optimal = Graph(game)
        optimal.solve(roots)
    return [_decider(game, agent, optimal) for agent in agents]


def evaluate_profile(
    game: Game,
    root: Ints,
    agents: Sequence[str | Agent | Policy],
    *,
    max_states: int = MAX_STATES,
    optimal: Graph | None = None,
) -> Evaluation:
    """The exact payoffs of a profile from `root` (fields,), one agent a player: a name, of the
    game's own or `optimal`, `best-response`, `random`, an agent, or a `Policy`.

    optimal: the game's graph from the root, solved, if it is there. Raises OptionError for a name
    that is none, and as `explore_profile`, `Graph.solve`.
    """
    if OPTIMAL in agents and optimal is None:
        optimal = Graph(game, max_states=max_states)
        optimal.solve(root.reshape(1, -1))
    deciders = [_decider(game, agent, optimal) for agent in agents]
    chain = explore_profile(game, root, deciders, max_states)
    graph = Graph(game, max_states=max_states, policy=chain.fixed)
    number = graph.solve(root.reshape(1, -1))[0]
    if None in deciders:
        best = following(graph)
        chain = explore_profile(
            game, root, [best if d is None else d for d in deciders], max_states
        )
    return Evaluation(graph.values[number].copy(), graph, chain)


def _decider(game: Game, agent: str | Agent | Policy, optimal: Graph | None) -> Decider | None:
    if not isinstance(agent, str):
        return agent.decide if isinstance(agent, Policy) else asking(agent)
    if agent == BEST_RESPONSE:
        return None
    if agent == OPTIMAL:
        assert optimal is not None
        return following(optimal)
    if agent == RANDOM:
        return asking(random_player)
    found = named_agent(game, agent)
    return found.decide if isinstance(found, Policy) else asking(found)


def named_agent(game: Game, name: str, argument: str = "agents") -> Agent | Policy:
    """One of the game's agents. Raises OptionError, by the argument, for a name that is none."""
    known = agents_of(game)
    if name not in known:
        names = [OPTIMAL, BEST_RESPONSE, RANDOM, *known]
        raise OptionError(
            f"{option(argument)}: no agent '{shorten(name, 80)}'; {nearest(name, names)}"
        )
    found: Agent | Policy = known[name]
    return found


@dataclass(frozen=True)
class Moves:
    """Decisions that cost something: states (k, fields), who decided, how often a play comes there,
    what one costs them under optimal play afterwards; worst first by reach times regret."""

    states: Ints
    players: Ints
    reach: Floats
    regret: Floats


def costly_moves(evaluation: Evaluation, optimal: Graph) -> Moves:
    """Where the profile's agents do not take a best action. `optimal`: the solved graph of the same
    root; what its tie tolerance can not tell apart costs nothing."""
    chain, game = evaluation.chain, evaluation.chain.game
    reach = chain.reach()
    deciding = np.flatnonzero(chain.actors >= 0)
    regret = np.zeros(len(chain.keys))
    for part in range(0, len(deciding), PIECE):
        numbers = deciding[part : part + PIECE]
        edges = expand(game, chain.states(numbers))
        below = optimal.values[optimal.look_up(pack_all(game.bits, edges.children))]
        q = evaluate(edges, below)
        own = q.values[np.arange(len(q.states)), edges.actors[q.states]]
        best = np.maximum.reduceat(own, q.first[:-1])
        for i, x in enumerate(numbers):
            fixed = chain.fixed
            chances = fixed.chances[fixed.first[x] : fixed.first[x + 1]]
            regret[x] = best[i] - own[q.first[i] : q.first[i + 1]] @ chances
    costly = np.flatnonzero(regret > game.tie_tolerance)
    order = np.argsort(-(reach[costly] * regret[costly]), kind="stable")
    at = costly[order]
    return Moves(chain.states(at), chain.actors[at], reach[at], regret[at])
