"""The payoffs of a profile of agents, one policy for each player: exact, and by Monte Carlo.

With chances s(x, a) of the actions at state x::

    V(x) = sum over a of s(x, a) q(x, a)            the profile's payoffs, one a player

A player without a policy (`BEST_RESPONSE`) maximises against the others. V is computed on the
profile's chain (`solver.policies.chain`).

**Monte Carlo**: a play is a path in the chain; each step takes a random number and a binary search
in the cumulated chances. The random number of step t of play i is a hash of (seed, i, t), so the
result depends only on `seed` and the number of games. The chain is expanded as plays reach its
states, and forgotten if it grows too large. mean = sum of the returns / n, standard error =
sqrt(sample variance / n). The numbers that a game names (`Agents.ends` and `events`) are counted
like rewards.

Sources: Puterman, Markov Decision Processes, 4.2 and 5.1; Steele, Lea, Flood, Fast splittable
pseudorandom number generators (2014), for the hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, tuple_type, types
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Agents
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
from luckbase.solver.policies.chain import (
    MAX_STATES,
    PIECE,
    Chain,
    LookUp,
    SolvedChain,
    expand_profile,
    explore_profile,
)
from luckbase.solver.result import IfAny, Result
from luckbase.solver.search.bellman import MIXED, evaluate, strategies_of
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import Keys, Numbering, grown, pack_all, unpack_all


def following(solved: Graph | SolvedChain) -> Decider:
    """Return the optimal player of a solved graph or chain, as a decider."""

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        best = solved.best[solved.look_up(pack_all(game.strides, np.ascontiguousarray(states)))]
        answers = [
            (available == b).astype(np.float64) for available, b in zip(actions, best, strict=True)
        ]
        joint_states = np.flatnonzero(best == MIXED)
        for part in range(0, len(joint_states), PIECE):
            piece = joint_states[part : part + PIECE]
            edges = expand(game, states[piece])
            below = solved.values[solved.look_up(pack_all(game.strides, edges.children))]
            for x, strategy in zip(
                piece, strategies_of(evaluate(edges, below), player), strict=True
            ):
                answers[x] = strategy
        return answers

    return decide


@dataclass(frozen=True)
class Evaluation:
    """The exact payoffs of a profile, one for each player."""

    value: Floats
    error: float  # a bound on their error
    chain: Chain  # with all actions of players who maximise


def deciders_of(
    game: Game, agents: Sequence[str | Agent | Policy], roots: Ints,
    max_states: int = 1 << 30, optimal: Graph | None = None,
) -> list[Decider | None]:  # fmt: skip
    """Return a decider for each player below `roots` (k, fields); None for `best-response`.

    agents: one for each player: a name, of the game's own or `optimal`, `best-response`, `random`;
        an agent; or a `Policy`.
    optimal: the game's graph from the roots, solved, if available.

    Raises OptionError for an unknown name, and the errors of `Graph.solve`.
    """
    if OPTIMAL in agents and optimal is None:
        optimal = Graph(game, max_states=max_states)
        optimal.solve(roots)

    def decider(agent: str | Agent | Policy) -> Decider | None:
        if agent == BEST_RESPONSE:
            return None
        if agent == OPTIMAL and optimal is not None:
            return following(optimal)
        if isinstance(agent, str):
            agent = random_player if agent == RANDOM else named_agent(game, agent)
        return agent.decide if isinstance(agent, Policy) else asking(agent)

    return [decider(agent) for agent in agents]


class Starts(NamedTuple):
    """The starts of plays: canonical states (k, fields), each once, and their chances (k,)."""

    states: Ints
    chances: Floats


def starts_at(root: Ints | Starts) -> Starts:
    """Return the single start at a state (fields,), or the starts unchanged."""
    return root if isinstance(root, Starts) else Starts(root.reshape(1, -1), np.ones(1))


def evaluate_profile(
    game: Game,
    root: Ints | Starts,
    agents: Sequence[str | Agent | Policy],
    *,
    max_states: int = MAX_STATES,
    optimal: Graph | None = None,
) -> Evaluation:
    """Return the exact payoffs of a profile from a root (fields,), or expected over starts.

    Raises the errors of `deciders_of`, `explore_profile` and `Chain.solve`.
    """
    roots, chances = starts_at(root)
    deciders = deciders_of(game, agents, roots, max_states, optimal)
    solved = explore_profile(game, roots, deciders, max_states).solve()
    return Evaluation(chances @ solved.values[: len(roots)], solved.error, solved.chain)


def fixed_deciders(
    game: Game, agents: Sequence[str | Agent | Policy], roots: Ints, max_states: int = MAX_STATES
) -> list[Decider]:
    """Return a decider for each player, as `deciders_of`, after solving for `best-response`.

    Raises the errors of `evaluate_profile`.
    """
    deciders = deciders_of(game, agents, roots, max_states)
    if None not in deciders:
        return [each for each in deciders if each is not None]
    response = following(explore_profile(game, roots, deciders, max_states).solve())
    return [each or response for each in deciders]


# --- Monte Carlo ---------------------------------------------------------------------------------

MAX_STEPS = 1_000_000
"""The number of steps from which a play counts as endless."""

_f1, _f2, _i1, _n1 = types.float64[::1], types.float64[:, ::1], types.int64[::1], types.int32[::1]


@njit(types.uint64(types.uint64))
def mix(x):
    """Return 64 bits that look random for each x: SplitMix64's finaliser."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(types.int64(_f1, types.int64, types.int64, types.uint64, types.int64))
def pick(cumulated, low, high, stream, step):
    """Return the edge, of low .. high by their cumulated chances, that a game takes in a step."""
    draw = mix(stream + np.uint64(step) * np.uint64(0xD1342543DE82EF95))
    u = np.float64(draw >> np.uint64(11)) * 2.0**-53
    while low < high:
        middle = (low + high) // 2
        if u < cumulated[middle]:
            high = middle
        else:
            low = middle + 1
    return low


class _Edges(NamedTuple):
    """A chain's edges for plays."""

    first: Ints  # where the edges of each state begin
    size: NDArray[np.int32]  # their number, -1 if the state is not expanded
    children: NDArray[np.int32]  # of each edge
    cumulated: Floats  # the sum of the chances from the state's first edge on
    rewards: Floats  # (edges, players)


_EDGES = tuple_type(_Edges, _i1, _n1, _n1, _f1, _f2)


@njit(_i1(_f1, types.uint64, _i1))
def _draw_starts(cumulated, seed, numbers):
    """Draw the start of each game, by its number: step 0 of its random numbers."""
    starts = np.empty(numbers.size, np.int64)
    for i in range(numbers.size):
        stream = mix(seed + np.uint64(numbers[i]) * np.uint64(0x9E3779B97F4A7C15))
        starts[i] = pick(cumulated, 0, cumulated.size - 1, stream, 0)
    return starts


@njit(types.void(_EDGES, types.uint64, _i1, _i1, _i1, _f2, types.int64))
def _advance(edges, seed, numbers, states, steps, returns, max_steps):
    """Play each game up to a state that is terminal or not expanded, or for `max_steps` steps.

    numbers: of the games, for their random numbers. states, steps, returns: modified in place.
    """
    first, size, children, cumulated, rewards = edges
    for i in range(states.size):
        stream = mix(seed + np.uint64(numbers[i]) * np.uint64(0x9E3779B97F4A7C15))
        x, step = states[i], steps[i]
        while size[x] > 0 and step < max_steps:
            step += 1
            edge = pick(cumulated, first[x], first[x] + size[x] - 1, stream, step)
            for p in range(rewards.shape[1]):
                returns[i, p] += rewards[edge, p]
            x = children[edge]
        states[i], steps[i] = x, step


@dataclass(frozen=True)
class Count(Result):
    """The mean of a number over simulated games, with its standard error."""

    what: str  # the number's name
    player: IfAny[int]  # whose number it is, from 1, if each player has one
    mean: float
    stderr: float


class _Counters:
    """The numbers that a game counts (`Agents`). names: of each column, with its player."""

    def __init__(self, game: Game, agents: Agents) -> None:
        self.agents, no_states = agents, np.empty((0, game.field_count), np.int64)
        self.names: list[tuple[str, int | None]] = []
        for name, count in agents.ends.items():
            shape = count(no_states).shape
            players = [None] if len(shape) == 1 else range(1, shape[1] + 1)
            self.names += [(name, player) for player in players]
        self.of_ends = len(self.names)
        self.names += [(name, None) for name in agents.events]

    def at_ends(self, states: Ints) -> Floats:
        """Return the numbers of games that end in states (n, fields): float64 (n, of_ends)."""
        columns = [count(states) for count in self.agents.ends.values()]
        return np.column_stack([np.empty((len(states), 0)), *columns]).astype(np.float64)

    def on_steps(self, piece: Chain, below: Ints) -> Floats:
        """Return the events of each edge of a chain: float64 (m, events).

        below: the states (m, fields) to which the edges lead.
        """
        states = piece.states(piece.owners)
        columns = [is_one(states, piece.actions, below)
                   for is_one in self.agents.events.values()]  # fmt: skip
        return np.column_stack([np.empty((len(below), 0)), *columns]).astype(np.float64)


def _cumulated(chain: Chain) -> Floats:
    total: Floats = np.concatenate([[0.0], np.cumsum(chain.chances)])
    return total[1:] - np.repeat(total[chain.first[:-1]], np.diff(chain.first))


@dataclass(frozen=True)
class Simulation:
    """Mean returns and their standard errors over simulated games, (players,) each."""

    games: int
    mean: Floats
    error: Floats
    counts: tuple[Count, ...]  # of the numbers that the game names


def _sums(returns: Floats, first: Floats) -> Floats:
    """Return the sums of returns (n, players), of their differences to the first game, which are 0
    if all are equal, and of the squares of these: (3, players)."""
    above = returns - first
    return np.array([returns.sum(axis=0), above.sum(axis=0), (above * above).sum(axis=0)])


MAX_EDGES = 50_000_000
"""The most edges that are kept during a simulation: 1.5 GB."""
BATCH = 1 << 14
"""Games that are played side by side."""


class _Expanded:
    """The part of a profile's chain that games have reached so far. Rewards and payoffs have one
    more column for each number that is counted."""

    def __init__(
        self, game: Game, deciders: Sequence[Decider | None], counters: _Counters,
        look_up: LookUp | None,
    ) -> None:  # fmt: skip
        self.game, self.deciders, self.look_up = game, deciders, look_up
        self.counters, self.numbering, self.count = counters, Numbering(), 0
        no, none = np.empty(0, np.int64), np.empty(0, np.int32)
        events = len(counters.names) - counters.of_ends
        paid = np.empty((0, game.players + events))
        self.edges = _Edges(no, none, none, np.empty(0), paid)
        self.payoffs = np.empty((0, game.players + counters.of_ends))

    def enter(self, keys: Keys) -> Ints:
        """Return the numbers of states (m,), int64; new ones are not expanded."""
        numbers = self.numbering.enter(keys).astype(np.int64)
        self._make_room()
        return numbers

    def _make_room(self) -> None:
        n, m, old = self.numbering.count, self.count, self.edges
        self.edges = _Edges(
            grown(old.first, n), grown(old.size, n, -1), grown(old.children, m),
            grown(old.cumulated, m), grown(old.rewards, m),
        )  # fmt: skip
        self.payoffs = grown(self.payoffs, n)

    def expand(self, numbers: Ints) -> None:
        """Expand states that are not expanded yet."""
        keys = self.numbering.keys_at(numbers)
        stored = self.look_up and self.look_up(unpack_all(self.game.strides, keys))
        piece = expand_profile(self.game, keys, self.deciders, self.numbering, stored)
        new = slice(self.count, self.count + len(piece.children))
        self.count = new.stop
        self._make_room()
        edges, players = self.edges, self.game.players
        below = unpack_all(self.game.strides, self.numbering.keys_at(piece.children))
        edges.children[new], edges.cumulated[new] = piece.children, _cumulated(piece)
        edges.rewards[new, :players] = piece.rewards
        edges.rewards[new, players:] = self.counters.on_steps(piece, below)
        edges.first[numbers] = new.start + piece.first[:-1]
        edges.size[numbers] = np.diff(piece.first)
        self.payoffs[numbers, :players] = piece.payoffs
        ends = np.flatnonzero(piece.over)
        self.payoffs[numbers[ends], players:] = self.counters.at_ends(piece.states(ends))


def simulate(
    game: Game, roots: Sequence[Ints | Starts], deciders: Sequence[Decider | None],
    games: int | Sequence[int], seed: int = 0, look_up: LookUp | None = None,
) -> list[Simulation]:  # fmt: skip
    """Play `games` games from each of some roots (fields,) or starts, or as many from each as
    `games` says, and count the numbers of the game. Game number i has the same random numbers from
    every root.

    States are expanded when games reach them, all games at once. With `look_up` (see
    `expand_profile`), games end at stored payoffs without counts.

    Raises StateError if a game does not end.
    """
    counters = _Counters(game, game.own(Agents) if look_up is None else Agents())
    players, begins = game.players, [starts_at(root) for root in roots]
    homes: list[Keys] = [
        pack_all(game.strides, np.ascontiguousarray(each.states)) for each in begins
    ]
    visited = _Expanded(game, deciders, counters, look_up)
    width = players + len(counters.names)
    totals, firsts = np.zeros((len(begins), 3, width)), np.zeros((len(begins), width))
    counts = np.broadcast_to(games, len(begins)).tolist()
    stream = np.uint64(mix(np.uint64(seed % 2**64)))
    for begin in range(0, max(counts), BATCH):
        playing = [k for k, count in enumerate(counts) if begin < count]
        of_each = [np.arange(begin, min(begin + BATCH, counts[k])) for k in playing]
        numbers = np.concatenate(of_each)  # the games of all roots, side by side
        states = np.concatenate([
            visited.enter(homes[k])[_draw_starts(np.cumsum(begins[k].chances), stream, of_root)]
            for k, of_root in zip(playing, of_each, strict=True)
        ])  # fmt: skip
        steps = np.zeros(len(numbers), np.int64)
        returns = np.zeros((len(numbers), visited.edges.rewards.shape[1]))
        while True:
            _advance(visited.edges, stream, numbers, states, steps, returns, MAX_STEPS)
            if (steps >= MAX_STEPS).any():
                raise StateError(
                    f"with these agents a play goes on for {MAX_STEPS:,} steps or more"
                )
            new = np.unique(states[visited.edges.size[states] < 0])
            if not len(new):
                break
            if visited.count > MAX_EDGES:  # begin again from the current states
                now = visited.numbering.keys_at(states)
                visited = _Expanded(game, deciders, counters, look_up)
                states = visited.enter(now)
                new = np.unique(states)
            visited.expand(new)
        ends = visited.payoffs[states]
        paid = returns[:, :players] + ends[:, :players]
        paid = np.hstack([paid, ends[:, players:], returns[:, players:]])
        parts = np.split(paid, np.cumsum([*map(len, of_each)])[:-1])
        for k, each in zip(playing, parts, strict=True):
            firsts[k] = firsts[k] if begin else each[0]
            totals[k] += _sums(each, firsts[k])
    return [_simulation(counters, players, *each) for each in zip(counts, totals, strict=True)]


def _simulation(counters: _Counters, players: int, games: int, total: Floats) -> Simulation:
    """Return the means and standard errors of games with these sums (`_sums`)."""
    mean, above, squares = total[0] / games, total[1], total[2]
    variance = np.maximum(squares - above * above / games, 0.0) / max(games - 1, 1)
    error = np.sqrt(variance / games)
    counted = zip(counters.names, mean[players:].tolist(), error[players:].tolist(), strict=True)
    counts = tuple(Count(name, player, each, off) for (name, player), each, off in counted)
    return Simulation(games, mean[:players], error[:players], counts)
