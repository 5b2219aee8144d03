"""What a profile of agents, one policy a player, is worth: exactly, and by Monte Carlo.

With chances s(x, a) of the actions at state x::

    V(x)      = sum over a of s(x, a) q(x, a)            the profile's payoffs, one a player
    R(y)      = [y is the root] + sum over x of R(x) P(x, y)     how often a play comes to y
    regret(x) = max over a of q*(x, a)_p - sum over a of s(x, a) q*(x, a)_p

with P(x, y) the chance of going from x to y, p the player who acts at x and q* under optimal play
from there on. A player without a policy (`BEST_RESPONSE`) maximises against the others. For one
player, value lost = sum of R(x) regret(x). V and R are those of the profile's chain
(`solver.policy.chain`).

**Monte Carlo**: a play is a path in the chain, a random number and a binary search in the cumulated
chances a step. The random number of step t of play i is a hash of (seed, i, t), so the result
depends on `seed` and the number of games, not on threads, nor on whether the chain was expanded
beforehand (`simulate`) or is as plays come to its states, and forgotten where they are too many
(`simulate_on_the_way`). mean = sum of the returns / n, standard error = sqrt(sample variance / n).

Sources: Puterman, Markov Decision Processes, 4.2 and 5.1; Kakade and Langford (2002), lemma 6.1;
Steele, Lea, Flood, Fast splittable pseudorandom number generators (2014), for the hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, tuple_type, types
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Counted
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.game.rules import JOINT
from luckbase.solver.policy.agents import (
    BEST_RESPONSE,
    OPTIMAL,
    RANDOM,
    Decider,
    Policy,
    asking,
    named_agent,
    random_player,
)
from luckbase.solver.policy.chain import (
    MAX_STATES,
    PIECE,
    Chain,
    Known,
    SolvedChain,
    expand_profile,
    explore_profile,
)
from luckbase.solver.policy.distribution import Tally, events_of
from luckbase.solver.search.bellman import JOINTLY, MIXED, evaluate, solved_games, strategies_of
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import Keys, Numbering, grown, pack_all, unpack_all


def following(solved: Graph | SolvedChain) -> Decider:
    """What is best in a solved graph or chain as a decider: its optimal player."""

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        best = solved.best[solved.look_up(pack_all(game.strides, np.ascontiguousarray(states)))]
        answers = [(own == b).astype(np.float64) for own, b in zip(actions, best, strict=True)]
        joint_states = np.flatnonzero(best == MIXED)
        for part in range(0, len(joint_states), PIECE):
            at = joint_states[part : part + PIECE]
            edges = expand(game, states[at])
            below = solved.values[solved.look_up(pack_all(game.strides, edges.children))]
            for x, strategy in zip(at, strategies_of(evaluate(edges, below), player), strict=True):
                answers[x] = strategy
        return answers

    return decide


@dataclass(frozen=True)
class Evaluation:
    """A profile's exact payoffs (players,) from where plays begin, a bound on what the gaps of
    cycles change of them, its chain, in which the players who maximised are fixed too, and the
    chances of beginning in its first states (k,)."""

    value: Floats
    error: float
    chain: Chain
    starts: Floats


def deciders_of(
    game: Game, agents: Sequence[str | Agent | Policy], roots: Ints,
    max_states: int = 1 << 30, optimal: Graph | None = None,
) -> list[Decider | None]:  # fmt: skip
    """What decides for each player below `roots` (k, fields), one agent a player: a name, of the
    game's own or `optimal`, `best-response`, `random`, an agent, or a `Policy`. None for
    `best-response`.

    optimal: the game's graph from the roots, solved, if it is there. Raises OptionError for a name
    that is none, and as `Graph.solve`.
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
    """Where plays begin: canonical states (k, fields), each once, and their chances (k,)."""

    states: Ints
    chances: Floats


def starts_at(root: Ints | Starts) -> Starts:
    """The one start at a state (fields,), or the starts as they are."""
    return root if isinstance(root, Starts) else Starts(root.reshape(1, -1), np.ones(1))


def evaluate_profile(
    game: Game,
    root: Ints | Starts,
    agents: Sequence[str | Agent | Policy],
    *,
    max_states: int = MAX_STATES,
    optimal: Graph | None = None,
) -> Evaluation:
    """The exact payoffs of a profile from a root (fields,), or expected over starts. Raises as
    `deciders_of`, `explore_profile`, `Chain.solve`."""
    roots, chances = starts_at(root)
    deciders = deciders_of(game, agents, roots, max_states, optimal)
    chain = explore_profile(game, roots, deciders, max_states)
    solved = chain.solve()
    if None in deciders:
        everybody = [following(solved) if d is None else d for d in deciders]
        chain = explore_profile(game, roots, everybody, max_states)
    value = chances @ solved.values[: len(roots)]
    return Evaluation(value, solved.error, chain, chances)


@dataclass(frozen=True)
class Moves:
    """Decisions that cost something: states (k, fields), who decided, how often a play comes there,
    what one costs them under optimal play afterwards; worst first by reach times regret."""

    states: Ints
    players: Ints
    reach: Floats
    regret: Floats


def costly_moves(evaluation: Evaluation, optimal: Graph) -> Moves:
    """Where the profile's agents do not take a best action; where both choose at once, of each what
    their lottery pays less than an optimal one, against an optimal one of the other. `optimal`: the
    solved graph of the same root; what its tie tolerance can not tell apart costs nothing."""
    chain, game = evaluation.chain, evaluation.chain.game
    reach = chain.reach(evaluation.starts)
    deciding = np.flatnonzero(chain.actors >= 0)
    regret = np.zeros(len(chain.keys))
    for part in range(0, len(deciding), PIECE):
        numbers = deciding[part : part + PIECE]
        edges = expand(game, chain.states(numbers))
        below = optimal.values[optimal.look_up(pack_all(game.strides, edges.children))]
        q = evaluate(edges, below)
        regret[numbers] = np.maximum.reduceat(q.of_actors(edges.actors), q.first[:-1])
    actor = chain.actors[chain.owners]
    below = optimal.values[optimal.look_up(chain.keys)]
    payoffs = chain.rewards[np.arange(len(actor)), actor] + below[chain.children, actor]
    regret -= np.where(
        chain.actors >= 0, np.bincount(chain.owners, chain.chances * payoffs, len(regret)), 0.0
    )
    both, of_both = _regrets_at_once(chain, optimal)
    at = np.concatenate([np.arange(len(regret)), both, both])
    players = np.concatenate([chain.actors, np.repeat([0, 1], len(both))])
    regret = np.concatenate([regret, *of_both])
    costly = np.flatnonzero(regret > game.tie_tolerance)
    order = costly[np.argsort(-(reach[at] * regret)[costly], kind="stable")]
    return Moves(chain.states(at[order]), players[order], reach[at[order]], regret[order])


def _regrets_at_once(chain: Chain, optimal: Graph) -> tuple[Ints, Floats]:
    """The states (k,) where both choose at once, and what either's lottery costs them: (2, k); what
    the gap of the game can be costs nothing."""
    both, game = np.flatnonzero(chain.actors == JOINTLY), chain.game
    regrets, place = np.zeros((2, len(both))), np.full(len(chain.keys), -1)
    for part in range(0, len(both), PIECE):
        numbers = both[part : part + PIECE]
        edges = expand(game, chain.states(numbers))
        q = evaluate(edges, optimal.values[optimal.look_up(pack_all(game.strides, edges.children))])
        place[numbers] = np.arange(len(numbers))
        on = np.flatnonzero(place[chain.owners] >= 0)
        owners = np.repeat(np.arange(len(numbers)), np.diff(q.first))
        pairs = place[chain.owners[on]] * JOINT * JOINT + chain.actions[on]
        rows = np.searchsorted(owners * JOINT * JOINT + q.actions, pairs)
        chances = np.bincount(rows, chain.chances[on], len(q.actions))
        place[numbers] = -1
        for at, solved in solved_games(q, np.arange(len(numbers))):
            x, y = solved.row_strategies, solved.column_strategies
            cells = q.first[at][:, None] + np.arange(x.shape[1] * y.shape[1])
            shape = len(at), x.shape[1], y.shape[1]
            pays, taken = q.values[cells, 0].reshape(shape), chances[cells].reshape(shape)
            against_y = np.einsum("nr,nrc,nc->n", taken.sum(axis=2), pays, y)
            against_x = np.einsum("nr,nrc,nc->n", x, pays, taken.sum(axis=1))
            found = np.stack([solved.values - against_y, against_x - solved.values])
            least = game.tie_tolerance + solved.gaps
            regrets[:, part + at] = np.where(found > least, found, 0.0)
    return both, regrets


# --- Monte Carlo ---------------------------------------------------------------------------------

BLOCK = 1 << 16
"""Games whose sums are added up together."""
MAX_STEPS = 1_000_000
"""Steps after which a play counts as one that does not end."""

_f1, _f2, _i1, _n1 = types.float64[::1], types.float64[:, ::1], types.int64[::1], types.int32[::1]


@njit(types.uint64(types.uint64))
def mix(x):
    """SplitMix64's finaliser: 64 bits that look random for each x."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(types.int64(_f1, types.int64, types.int64, types.uint64, types.int64))
def pick(cumulated, low, high, stream, step):
    """The edge, of low .. high by their cumulated chances, that a game takes in this step."""
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
    """A chain's edges as plays need them: where those of a state begin, how many (-1: it is not
    expanded); of each edge the child, the chances from the state's first edge on, added up, the
    rewards (edges, players)."""

    first: Ints
    size: NDArray[np.int32]
    children: NDArray[np.int32]
    cumulated: Floats
    rewards: Floats


_EDGES = tuple_type(_Edges, _i1, _n1, _n1, _f1, _f2)


@njit(types.void(_f1, types.uint64, types.int64, _i1))
def _draw_starts(cumulated, seed, start, at):
    """Draw where each game begins, numbered from `start`: step 0 of its random numbers."""
    for i in range(at.size):
        stream = mix(seed + np.uint64(start + i) * np.uint64(0x9E3779B97F4A7C15))
        at[i] = pick(cumulated, 0, cumulated.size - 1, stream, 0)


@njit(types.void(_EDGES, types.uint64, types.int64, _i1, _i1, _f2, types.int64))
def _advance(edges, seed, start, at, steps, returns, max_steps):
    """Let each game, numbered from `start`, go on until it comes to a state that is not expanded,
    is over (no edges) or has made `max_steps` steps. at, steps, returns: in place."""
    first, size, children, cumulated, rewards = edges
    for i in range(at.size):
        stream = mix(seed + np.uint64(start + i) * np.uint64(0x9E3779B97F4A7C15))
        x, step = at[i], steps[i]
        while size[x] > 0 and step < max_steps:
            step += 1
            edge = pick(cumulated, first[x], first[x] + size[x] - 1, stream, step)
            for p in range(rewards.shape[1]):
                returns[i, p] += rewards[edge, p]
            x = children[edge]
        at[i], steps[i] = x, step


def _with_events(chain: Chain, below: Ints) -> Floats:
    """What edges pay, and behind it 1 for each event that happens there, else 0: float64 (edges,
    players + events). below: the states (edges, fields) that they lead to."""
    events = events_of(chain.game.need(Counted), chain, below)
    return np.column_stack([chain.rewards, *events])


def _cumulated(chain: Chain) -> Floats:
    """The chances of each state's edges, added up from its first edge on."""
    total: Floats = np.concatenate([[0.0], np.cumsum(chain.chances)])
    return total[1:] - np.repeat(total[chain.first[:-1]], np.diff(chain.first))


@dataclass(frozen=True)
class Simulation:
    """Mean returns and their standard errors, float64 (players,) each, of so many games."""

    games: int
    mean: Floats
    error: Floats


def _summed_up(games: int, total: Floats, above: Floats, squares: Floats) -> Simulation:
    """From the sums of `_sums`, float64 (players,) each."""
    variance = np.maximum(squares - above * above / games, 0.0) / max(games - 1, 1)
    return Simulation(games, total / games, np.sqrt(variance / games))


class _Plays:
    """Games number start .. stop - 1, side by side, each from one of the states `roots` (k,) of a
    chain, drawn with chances (k,)."""

    def __init__(
        self, width: int, seed: int, start: int, stop: int, roots: Ints, chances: Floats
    ) -> None:
        n = stop - start
        self.seed, self.start = np.uint64(mix(np.uint64(seed & (2**64 - 1)))), start
        self.at, self.steps = np.full(n, roots[0], np.int64), np.zeros(n, np.int64)
        if len(roots) > 1:
            _draw_starts(np.cumsum(chances), self.seed, start, self.at)
            self.at = roots[self.at]
        self.returns = np.zeros((n, width))

    def advance(self, edges: _Edges) -> None:
        """As far as the chain is expanded. Raises StateError where a play does not end."""
        _advance(edges, self.seed, self.start, self.at, self.steps, self.returns, MAX_STEPS)
        if (self.steps >= MAX_STEPS).any():
            raise StateError(f"with these agents a play goes on for {MAX_STEPS:,} steps or more")

    def paid(self, payoffs: Floats) -> Floats:
        """The returns (n, players), at the end."""
        return self.returns[:, : payoffs.shape[1]] + payoffs[self.at]


def _sums(returns: Floats, first: Floats) -> Floats:
    """Of returns (n, players), of how far they are above the first of all games, and of the squares
    of that, which is 0 where all are the same: (3, players)."""
    above = returns - first
    return np.array([returns.sum(axis=0), above.sum(axis=0), (above * above).sum(axis=0)])


def simulate(
    chain: Chain, games: int, seed: int = 0, threads: int = 1, starts: Floats | None = None,
    tally: Tally | None = None,
) -> Simulation:  # fmt: skip
    """Play `games` games of a profile from the first states of its chain, drawn with chances
    `starts` (k,), and count them in `tally`. Raises StateError where a play does not end."""
    chances = np.ones(1) if starts is None else starts
    roots = np.arange(len(chances))
    size = np.diff(chain.first).astype(np.int32)
    paid = chain.rewards if tally is None else _with_events(chain, chain.states(chain.children))
    edges = _Edges(chain.first, size, chain.children, _cumulated(chain), paid)

    alone = _Plays(paid.shape[1], seed, 0, 1, roots, chances)
    alone.advance(edges)
    first = alone.paid(chain.payoffs)[0]

    def play(start: int) -> Floats:
        stop = min(start + BLOCK, games)
        plays = _Plays(paid.shape[1], seed, start, stop, roots, chances)
        plays.advance(edges)
        if tally is not None:
            tally.add(start, chain.states(plays.at), plays.returns[:, chain.game.players :])
        return _sums(plays.paid(chain.payoffs), first)

    with ThreadPoolExecutor(threads) as pool:
        total = np.sum(list(pool.map(play, range(0, games, BLOCK))), axis=0)
    return _summed_up(games, *total)


MAX_EDGES = 50_000_000
"""Edges that are remembered on the way: 1.5 GB."""
BATCH = 1 << 14
"""Games that are played side by side on the way."""


class _Expanded:
    """What has been expanded so far of a profile's chain."""

    def __init__(
        self, game: Game, deciders: Sequence[Decider], width: int, known: Known | None = None
    ) -> None:
        self.game, self.deciders, self.known = game, deciders, known
        self.numbering, self.count = Numbering(), 0
        no, none, paid = np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, width))
        self.edges = _Edges(no, none, none, np.empty(0), paid)
        self.payoffs = np.empty((0, game.players))

    def enter(self, keys: Keys) -> Ints:
        """The numbers of states (m,), int64; new ones are not expanded."""
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
        """Expand states that are not."""
        keys = self.numbering.keys_at(numbers)
        piece = expand_profile(self.game, keys, self.deciders, self.numbering, self.known)
        new = slice(self.count, self.count + len(piece.children))
        self.count = new.stop
        self._make_room()
        edges = self.edges
        edges.children[new], paid = piece.children, piece.rewards
        if edges.rewards.shape[1] > self.game.players:
            below = unpack_all(self.game.strides, self.numbering.keys_at(piece.children))
            paid = _with_events(piece, below)
        edges.rewards[new] = paid
        edges.cumulated[new] = _cumulated(piece)
        edges.first[numbers] = new.start + piece.first[:-1]
        edges.size[numbers], self.payoffs[numbers] = np.diff(piece.first), piece.payoffs


def simulate_on_the_way(
    game: Game, root: Ints | Starts, deciders: Sequence[Decider], games: int, seed: int = 0,
    tally: Tally | None = None, known: Known | None = None,
) -> Simulation:  # fmt: skip
    """Play `games` games from `root` (fields,), or from starts, expanding states as plays come to
    them, and count them in `tally`; a play ends where payoffs are `known`.

    Raises StateError where a play does not end.
    """
    width = game.players + (0 if tally is None else len(tally.counted.events))
    begins = starts_at(root)
    home: Keys = pack_all(game.strides, np.ascontiguousarray(begins.states))
    visited = _Expanded(game, deciders, width, known)
    total, first = np.zeros((3, game.players)), np.zeros(game.players)
    for begin in range(0, games, BATCH):
        stop = min(begin + BATCH, games)
        plays = _Plays(width, seed, begin, stop, visited.enter(home), begins.chances)
        while True:
            plays.advance(visited.edges)
            new = np.unique(plays.at)
            new = new[visited.edges.size[new] < 0]
            if not len(new):
                break
            if visited.count > MAX_EDGES:  # begin again with where the plays are
                keys = visited.numbering.keys_at(plays.at)
                visited = _Expanded(game, deciders, width, known)
                plays.at = visited.enter(keys)
                new = np.unique(plays.at)
            visited.expand(new)
        if tally is not None:
            ends = unpack_all(game.strides, visited.numbering.keys_at(plays.at))
            tally.add(begin, ends, plays.returns[:, game.players :])
        returns = plays.paid(visited.payoffs)
        first = first if begin else returns[0]
        total += _sums(returns, first)
    return _summed_up(games, *total)
