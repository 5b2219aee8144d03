"""Monte Carlo: plays of a profile, their mean payoffs and standard errors.

The profile's Markov chain is expanded once (`solver.policy.evaluate`); a play is then a path in it,
a random number and a binary search in the cumulated chances a step. The random number of step t of
play i is a hash of (seed, i, t), so the result depends on `seed` and the number of games, not on
threads.

Where a profile comes to more states than can be expanded, they are expanded as plays come to them
(`simulate_on_the_way`), and forgotten when there are too many; the plays are the same.

mean = sum of the returns / n,  standard error = sqrt(sample variance / n).

Source: Steele, Lea, Flood, Fast splittable pseudorandom number generators (2014), for the hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.njit import njit
from luckbase.solver.policy.chain import Chain, Decider, expand_profile
from luckbase.solver.search.keys import Keys, Numbering, pack_all

BLOCK = 1 << 16
"""Games whose sums are added up together."""
MAX_STEPS = 1_000_000
"""Steps after which a play counts as one that does not end."""

_f1, _f2, _i1, _n1 = types.float64[::1], types.float64[:, ::1], types.int64[::1], types.int32[::1]


@njit(types.uint64(types.uint64), cache=True, nogil=True)
def mix(x):
    """SplitMix64's finaliser: 64 bits that look random for each x."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(types.int64(_f1, types.int64, types.int64, types.uint64, types.int64), cache=True, nogil=True)
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
    """A chain's edges: where those of a state begin int64; the children int32, the chances from the
    state's first edge on, added up, float64, the rewards float64 (edges, players)."""

    first: Ints
    children: NDArray[np.int32]
    cumulated: Floats
    rewards: Floats


_edges = types.NamedTuple((_i1, _n1, _f1, _f2), _Edges)


@njit(
    types.boolean(_edges, _f2, types.uint64, types.int64, types.int64, types.int64, _f2),
    cache=True, nogil=True,
)  # fmt: skip
def _play(edges, payoffs, seed, start, stop, most, sums):
    """Play games start .. stop - 1; adds returns and their squares to sums (2, players). Returns
    False where one does not end."""
    first, children, cumulated, rewards = edges
    players = payoffs.shape[1]
    returns = np.empty(players)
    for game in range(start, stop):
        stream = mix(seed + np.uint64(game) * np.uint64(0x9E3779B97F4A7C15))
        x, step = 0, 0
        returns[:] = 0.0
        while first[x] < first[x + 1]:
            step += 1
            if step > most:
                return False
            edge = pick(cumulated, first[x], first[x + 1] - 1, stream, step)
            for p in range(players):
                returns[p] += rewards[edge, p]
            x = children[edge]
        for p in range(players):
            value = returns[p] + payoffs[x, p]
            sums[0, p] += value
            sums[1, p] += value * value
    return True


@dataclass(frozen=True)
class Simulation:
    """Mean returns and their standard errors, float64 (players,) each, of so many games."""

    games: int
    mean: Floats
    error: Floats


def _summed_up(games: int, total: Floats, squares: Floats) -> Simulation:
    """From the sums of the returns and of their squares, float64 (players,) each."""
    mean = total / games
    variance = np.maximum(squares - games * mean * mean, 0.0) / max(games - 1, 1)
    return Simulation(games, mean, np.sqrt(variance / games))


def simulate(chain: Chain, games: int, seed: int = 0, threads: int = 1) -> Simulation:
    """Play `games` games of a profile. Raises StateError where a play does not end."""
    cumulated = np.cumsum(chain.chances)
    before = np.concatenate([[0.0], cumulated])[chain.first[:-1]]
    cumulated = cumulated - np.repeat(before, np.diff(chain.first))
    first = np.ascontiguousarray(chain.first, np.int64)
    children = np.ascontiguousarray(chain.children, np.int32)
    edges = _Edges(first, children, cumulated, chain.rewards)
    start = np.uint64(mix(np.uint64(seed & (2**64 - 1))))
    blocks = [(i, min(i + BLOCK, games)) for i in range(0, games, BLOCK)]

    def play(block: tuple[int, int]) -> Floats:
        sums = np.zeros((2, chain.payoffs.shape[1]))
        ended = _play(edges, chain.payoffs, start, *block, MAX_STEPS, sums)
        if not ended:
            raise StateError("with these agents a play may never end")
        return sums

    with ThreadPoolExecutor(threads) as pool:
        total, squares = np.sum(list(pool.map(play, blocks)), axis=0)
    return _summed_up(games, total, squares)


MAX_EDGES = 50_000_000
"""Edges that are remembered on the way: 1.5 GB."""
BATCH = 1 << 14
"""Games that are played side by side on the way."""


@njit(
    types.void(_edges, _n1, types.uint64, types.int64, _i1, _i1, _f2, types.int64),
    cache=True, nogil=True,
)  # fmt: skip
def _advance(edges, size, seed, start, at, steps, returns, most):
    """Let each game, numbered from `start`, go on until it comes to a state that is not expanded
    (size -1), is over (size 0) or has made `most` steps. at, steps, returns: in place."""
    first, children, cumulated, rewards = edges
    for i in range(at.size):
        stream = mix(seed + np.uint64(start + i) * np.uint64(0x9E3779B97F4A7C15))
        x, step = at[i], steps[i]
        while size[x] > 0 and step < most:
            step += 1
            edge = pick(cumulated, first[x], first[x] + size[x] - 1, stream, step)
            for p in range(rewards.shape[1]):
                returns[i, p] += rewards[edge, p]
            x = children[edge]
        at[i], steps[i] = x, step


class _Expanded:
    """What has been expanded so far of a profile's chain."""

    def __init__(self, game: Game, deciders: Sequence[Decider]) -> None:
        self.game, self.deciders = game, deciders
        self.clear()

    def clear(self) -> None:
        players = self.game.players
        self.numbering, self.edges = Numbering(), 0
        self.first, self.size = np.zeros(1 << 12, np.int64), np.full(1 << 12, -1, np.int32)
        self.payoffs = np.zeros((1 << 12, players))
        self.children, self.cumulated = np.empty(1 << 14, np.int32), np.empty(1 << 14)
        self.rewards = np.empty((1 << 14, players))

    def enter(self, keys: Keys) -> Ints:
        """The numbers of states (m,), int64; new ones are not expanded."""
        numbers = self.numbering.enter(keys).astype(np.int64)
        self._make_room()
        return numbers

    def _make_room(self) -> None:
        n, old = self.numbering.count, len(self.size)
        self.first, self.payoffs = _longer(self.first, n), _longer(self.payoffs, n)
        self.size = _longer(self.size, n)
        self.size[old:] = -1

    def expand(self, numbers: Ints) -> None:
        """Expand states that are not."""
        keys = self.numbering.keys_at(numbers)
        counts, children, chances, _, rewards, payoffs, *_ = expand_profile(
            self.game, keys, self.deciders, self.numbering
        )
        m = self.edges + len(children)
        self._make_room()
        for name in ("children", "cumulated", "rewards"):
            setattr(self, name, _longer(getattr(self, name), m))
        begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
        total = np.cumsum(chances)
        before = np.concatenate([[0.0], total])[begins]
        here = slice(self.edges, m)
        self.children[here], self.rewards[here] = children, rewards
        self.cumulated[here] = total - np.repeat(before, counts)
        self.first[numbers], self.size[numbers] = self.edges + begins, counts
        self.payoffs[numbers] = payoffs
        self.edges = m


def _longer(array: Any, length: int) -> Any:
    """The array with room for so many, at least twice as long when it has to grow."""
    if length <= len(array):
        return array
    bigger = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    return bigger


def simulate_on_the_way(
    game: Game, root: Ints, deciders: Sequence[Decider], games: int, seed: int = 0
) -> Simulation:
    """Play `games` games from `root` (fields,), expanding states as plays come to them.

    Raises StateError where a play does not end.
    """
    start = np.uint64(mix(np.uint64(seed & (2**64 - 1))))
    home: Keys = pack_all(game.bits, np.ascontiguousarray(root).reshape(1, -1))
    known = _Expanded(game, deciders)
    total, squares = np.zeros(game.players), np.zeros(game.players)
    for begin in range(0, games, BATCH):
        count = min(BATCH, games - begin)
        at = np.repeat(known.enter(home), count)
        steps, returns = np.zeros(count, np.int64), np.zeros((count, game.players))
        while True:
            _advance(
                _Edges(known.first, known.children, known.cumulated, known.rewards), known.size,
                start, begin, at, steps, returns, MAX_STEPS,
            )  # fmt: skip
            if (steps >= MAX_STEPS).any():
                raise StateError("with these agents a play may never end")
            new = np.unique(at)
            new = new[known.size[new] < 0]
            if not len(new):
                break
            if known.edges > MAX_EDGES:
                keys = known.numbering.keys_at(at)
                known.clear()
                at = known.enter(keys)
                new = np.unique(at)
            known.expand(new)
        returns += known.payoffs[at]
        total += returns.sum(axis=0)
        squares += (returns * returns).sum(axis=0)
    return _summed_up(games, total, squares)
