"""Agents' exact payoffs: a profile of policies turns a game into a Markov chain.

For a profile, one policy a player, with chances s(x, a) of the actions at state x::

    V(x)      = sum over a of s(x, a) q(x, a)            the profile's payoffs, one a player
    R(y)      = [y is the root] + sum over x of R(x) P(x, y)     how often a play comes to y
    regret(x) = max over a of q*(x, a)_p - sum over a of s(x, a) q*(x, a)_p

with P(x, y) the chance of going from x to y, p the player who acts at x and q* under optimal play
from there on. A player without a policy (`BEST_RESPONSE`) maximises against the others: backward
induction with their states averaged. For one player, value lost = sum of R(x) regret(x).

Only what the profile can come to is expanded. Values are exact as `solver.graph` is; R is summed
play by play, to a rest of `REST` where a game has cycles.

Source: Puterman, Markov Decision Processes, 4.2 and 5.1; Kakade and Langford (2002), lemma 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver import matrix_game
from solver.backup import action_starts, evaluate, expand, joint
from solver.board import nearest
from solver.errors import OptionError, SearchLimitError, StateError
from solver.game import DECISION, JOINT, SIMULTANEOUS, Agent, Floats, Game, Ints
from solver.graph import Fixed, Graph
from solver.keys import Keys, Numbering, pack_all, unpack_all
from solver.walk import JOINTLY, MIXED

Decider = Callable[[Game, int, Ints, list[Ints]], list[Floats]]
"""decide(game, player, states (k, fields), actions of each) -> chances of each."""


@dataclass(frozen=True)
class Policy:
    """A way of playing that is asked about many states at once, as a table's."""

    decide: Decider


OPTIMAL, BEST_RESPONSE, RANDOM = "optimal", "best-response", "random"
PIECE = 20_000
"""States expanded at a time."""
REST = 1e-14
"""Plays that are left out of `Chain.reach`: their chance."""
MOST_STATES = 20_000_000


def asking(agent: Agent) -> Decider:
    """An agent, who is asked about one state at a time, as a decider.

    Raises OptionError, naming the state, where he answers what is no choice.
    """

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        found = []
        for state, own in zip(states, actions, strict=True):
            listed = game.choices(state, own.tolist())
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
                    f"an agent answered {answer!r} at {game.describe(state)}, where right is an "
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
    q = evaluate(edges, graph.values[graph.look_up(pack_all(game.bits, edges.children))])
    found: list[Floats] = [np.empty(0)] * len(states)
    games = []
    for x in range(len(states)):
        here = slice(int(q.first[x]), int(q.first[x + 1]))
        games.append(joint(q.actions[here], q.values[here]).games)
    shapes = [matrix.shape for matrix in games]
    for shape in sorted(set(shapes)):
        at = [x for x in range(len(states)) if shapes[x] == shape]
        solved = matrix_game.solve(np.stack([games[x] for x in at]))
        sides = solved.row_strategies if player == 0 else solved.column_strategies
        for x, strategy in zip(at, sides, strict=True):
            found[x] = strategy
    return found


def random_player(game: Game, player: int, state: Ints, actions: list[int]) -> Sequence[float]:
    """The agent who takes any of his choices, all equally likely."""
    return [1 / len(actions)] * len(actions)


@dataclass(frozen=True)
class Chain:
    """What a profile can come to from a root: n states, the root first, m edges.

    keys: uint64 (n,). first: int64 (n + 1,), state x has edges first[x] .. first[x + 1], none where
    the game is over. children: int32 (m,). chances: float64 (m,), positive, summing to 1 a state
    (where a player has no policy, to 1 an action). actions: int64 (m,). rewards: float64
    (m, players). payoffs: float64 (n, players), of states that are over, else 0. actors: int64
    (n,), who decides, -1 where nobody does, JOINTLY where both do.
    fixed: the chances of the states' actions where they are fixed (`solver.graph.Fixed`).
    """

    game: Game
    keys: Keys
    first: Ints
    children: NDArray[np.int32]
    chances: Floats
    actions: Ints
    rewards: Floats
    payoffs: Floats
    actors: Ints
    fixed: Fixed

    @property
    def over(self) -> NDArray[np.bool_]:
        """bool (n,): the states that are over."""
        return np.equal(np.diff(self.first), 0)

    @cached_property
    def owners(self) -> Ints:
        """int64 (m,): the state of each edge."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.first))

    def states(self, numbers: Ints) -> Ints:
        """The states (k, fields) of numbers (k,)."""
        found: Ints = unpack_all(self.game.bits, np.ascontiguousarray(self.keys[numbers]))
        return found

    def reach(self) -> Floats:
        """float64 (n,): how often a play from state 0 comes to each state; a chance where there are
        no cycles.

        Raises StateError where plays do not end.
        """
        total = np.zeros(len(self.keys))
        mass: Floats = np.zeros(len(self.keys))
        mass[0] = 1.0
        for _ in range(100_000):
            total += mass
            flow = mass[self.owners] * self.chances
            mass = np.bincount(self.children, flow, len(self.keys)).astype(np.float64)
            if mass.sum() <= REST:
                return total
        raise StateError("with these agents a play may never end")


def explore_profile(
    game: Game, roots: Ints, deciders: Sequence[Decider | None], max_states: int = MOST_STATES
) -> Chain:
    """What a profile can come to from one root (fields,) or several (k, fields), which are the
    first states of the chain; None for a player who maximises.

    Raises SearchLimitError, OptionError as `asking`.
    """
    numbering, done = Numbering(), 0
    roots = np.ascontiguousarray(roots).reshape(-1, game.field_count)
    numbering.enter(pack_all(game.bits, roots))
    parts: list[tuple[Any, ...]] = []
    while done < numbering.count:
        if numbering.count > max_states:
            raise SearchLimitError(
                f"these agents can come to more than {max_states} states; give fewer, or a state "
                "nearer the end"
            )
        keys = numbering.keys[done : done + PIECE]
        done += len(keys)
        states = unpack_all(game.bits, keys)
        edges = expand(game, states)
        owner, at = action_starts(edges)
        group = np.searchsorted(at, np.arange(len(owner)), side="right") - 1
        chosen = np.ones(len(at))
        fixed = np.zeros(len(states), bool)
        bounds = np.searchsorted(owner[at], np.arange(len(states) + 1))
        several = np.diff(bounds) > 1
        actors = np.where(edges.kinds == DECISION, edges.actors, -1)
        for player, decide in enumerate(deciders):
            mine = np.flatnonzero(several & (actors == player))
            if decide is None or not len(mine):
                continue
            listed = [edges.actions[at[bounds[x] : bounds[x + 1]]] for x in mine]
            for x, taken in zip(mine, decide(game, player, states[mine], listed), strict=True):
                chosen[bounds[x] : bounds[x + 1]] = taken
            fixed[mine] = True
        acts, takers = np.full(len(at), MIXED), np.full(len(states), -1)
        both = np.flatnonzero(edges.kinds == SIMULTANEOUS)
        if len(both):
            groups = [slice(bounds[x], bounds[x + 1]) for x in both]
            _meet(game, deciders, states, both, groups, edges.actions[at], chosen, acts, takers)
            fixed[both] = [d is not None for d in deciders[:2]].count(True) > 0
        over = edges.terminal
        weights: Floats = edges.weights * chosen[group]
        kept = (weights > 0) & ~over[owner]
        payoffs = np.zeros((len(states), game.players))
        payoffs[over] = edges.rewards[edges.first[:-1][over]]
        children = numbering.enter(pack_all(game.bits, np.ascontiguousarray(edges.children[kept])))
        counts = np.bincount(owner[kept], minlength=len(states))
        part_of = fixed[owner[at]]
        deciding = np.where(edges.kinds == SIMULTANEOUS, JOINTLY, actors)
        parts.append(
            (counts, children, weights[kept], edges.actions[kept], edges.rewards[kept], payoffs,
             np.where(several, deciding, -1), np.where(fixed, np.diff(bounds), 0),
             chosen[part_of], acts[part_of], takers)
        )  # fmt: skip
    counts, children, chances, actions, rewards, payoffs, actors, sizes, policy, acts, takers = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    first, policy_first = (np.concatenate([[0], np.cumsum(c)]) for c in (counts, sizes))
    keys = numbering.keys
    return Chain(
        game, keys, first, children, chances, actions, rewards, payoffs, actors,
        Fixed(keys, policy_first, policy, acts, takers),
    )  # fmt: skip


def _meet(
    game: Game, deciders: Sequence[Decider | None], states: Ints, both: Ints,
    groups: list[slice], actions: Ints, chosen: Floats, acts: Ints, takers: Ints,
) -> None:  # fmt: skip
    """Write the chances of the joint actions at simultaneous states `both`: products of the two
    players', or one's where the other maximises; and then to which of his actions each belongs."""
    sides = [
        [np.unique(part) for part in (actions[g] // JOINT, actions[g] % JOINT)] for g in groups
    ]
    fixed = [
        None if decide is None else decide(game, player, states[both], [s[player] for s in sides])
        for player, decide in enumerate(deciders[:2])
    ]
    for i, (x, g) in enumerate(zip(both, groups, strict=True)):
        rows, columns = (np.ones(len(side)) for side in sides[i])
        if fixed[0] is not None:
            rows = fixed[0][i]
        if fixed[1] is not None:
            columns = fixed[1][i]
        chosen[g] = np.outer(rows, columns).ravel()
        if (fixed[0] is None) != (fixed[1] is None):
            taker = 0 if fixed[0] is None else 1
            takers[x] = taker
            acts[g] = actions[g] // JOINT if taker == 0 else actions[g] % JOINT


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
    max_states: int = MOST_STATES,
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


def named_agent(game: Game, name: str, option: str = "--agents") -> Agent | Policy:
    """One of the game's agents. Raises OptionError, naming the option, for a name that is none."""
    known = game.agents()
    if name not in known:
        names = [OPTIMAL, BEST_RESPONSE, RANDOM, *known]
        raise OptionError(f"{option}: no agent '{name}'; {nearest(name, names)}")
    found: Agent | Policy = known[name]
    return found


@dataclass(frozen=True)
class Moves:
    """Decisions that cost something: states (k, fields), who decided, how often a play comes there,
    what one costs him under optimal play afterwards; worst first by reach times regret."""

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
