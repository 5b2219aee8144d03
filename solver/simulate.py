"""Monte Carlo: plays of a profile, their mean payoffs and standard errors.

The profile's Markov chain is expanded once (`solver.policy`); a play is then a walk on it, a random
number and a binary search in the cumulated chances a step. The random number of step t of play i is
a hash of (seed, i, t), so the result depends on the seed and the number of games, not on threads.

mean = sum of the returns / n,  standard error = sqrt(sample variance / n).

Source: Steele, Lea, Flood, Fast splittable pseudorandom number generators (2014), for the hash.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numba as nb
import numpy as np
from numba import types

from solver.errors import StateError
from solver.game import Floats
from solver.policy import Chain

BLOCK = 1 << 16
"""Games whose sums are added up together."""
MOST_STEPS = 1_000_000
"""Steps after which a play counts as one that does not end."""

_f1, _f2, _i1, _n1 = types.float64[::1], types.float64[:, ::1], types.int64[::1], types.int32[::1]


@nb.njit(types.uint64(types.uint64), cache=True, nogil=True)
def mix(x):
    """SplitMix64's finaliser: 64 bits that look random for each x."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@nb.njit(
    types.boolean(
        _i1, _n1, _f1, _f2, _f2, types.uint64, types.int64, types.int64, types.int64, _f2
    ),
    cache=True, nogil=True,
)  # fmt: skip
def _play(first, children, cumulated, rewards, payoffs, seed, start, stop, most, sums):
    """Play games start .. stop - 1; adds returns and their squares to sums (2, players). Returns
    False where one does not end."""
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
            draw = mix(stream + np.uint64(step) * np.uint64(0xD1342543DE82EF95))
            u = np.float64(draw >> np.uint64(11)) * 2.0**-53
            low, high = first[x], first[x + 1] - 1
            while low < high:
                middle = (low + high) // 2
                if u < cumulated[middle]:
                    high = middle
                else:
                    low = middle + 1
            for p in range(players):
                returns[p] += rewards[low, p]
            x = children[low]
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


def simulate(chain: Chain, games: int, seed: int = 0, threads: int | None = None) -> Simulation:
    """Play `games` games of a profile. Raises StateError where a play does not end."""
    cumulated = np.cumsum(chain.chances)
    before = np.concatenate([[0.0], cumulated])[chain.first[:-1]]
    cumulated = cumulated - np.repeat(before, np.diff(chain.first))
    first = np.ascontiguousarray(chain.first, np.int64)
    children = np.ascontiguousarray(chain.children, np.int32)
    start = np.uint64(mix(np.uint64(seed & (2**64 - 1))))
    blocks = [(i, min(i + BLOCK, games)) for i in range(0, games, BLOCK)]

    def play(block: tuple[int, int]) -> Floats:
        sums = np.zeros((2, chain.payoffs.shape[1]))
        ended = _play(
            first,
            children,
            cumulated,
            chain.rewards,
            chain.payoffs,
            start,
            *block,
            MOST_STEPS,
            sums,
        )
        if not ended:
            raise StateError("with these agents a play may never end")
        return sums

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        total, squares = np.sum(list(pool.map(play, blocks)), axis=0)
    mean = total / games
    variance = np.maximum(squares - games * mean * mean, 0.0) / max(games - 1, 1)
    return Simulation(games, mean, np.sqrt(variance / games))
