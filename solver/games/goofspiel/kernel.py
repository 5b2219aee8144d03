"""The kernel of Goofspiel for points: fills patterns of a layer from the layer below.

With f the value of a state for player one, j cards, upcard k, and the bids r, c that differ::

    A_k[r, c] = k wins[r, c] + f(children[r, c], P - k)
    f(pattern, P) = 1/j sum over k in P of the value of A_k

"""

from __future__ import annotations

import numba as nb
import numpy as np

from solver import simplex
from solver.games.goofspiel.patterns import MOST, bids, unrank_pattern

_n, _f2, _i2 = nb.int64, nb.float64[:, ::1], nb.int64[:, ::1]


@nb.njit(
    nb.void(
        nb.int64[:, :, ::1], _n, _n, _n, _f2, nb.float64[:, ::1], _i2, _f2, nb.float64[::1]
    ),
    cache=True, nogil=True, error_model="numpy",
)  # fmt: skip
def solve_patterns(d, cards, size, first, below, upcards, targets, out, worst):
    """Write the values of patterns first, first + 1, … of the layer of `size` cards into `out`.

    below: (patterns, decks) of the layer below. upcards: (decks below, cards not in the deck), the
    cards; targets: the deck with that card. out: (patterns, decks), written. worst: (2,), raised to
    the largest gap, and the fallbacks added.
    """
    children, wins = np.empty((MOST, MOST), np.int64), np.empty((MOST, MOST), np.int64)
    a, b = np.empty((MOST, MOST)), np.empty((MOST, MOST))
    x, y, work = np.empty(MOST), np.empty(MOST), np.empty((3, MOST + 2, MOST + 2))
    for p in range(out.shape[0]):
        for deck in range(out.shape[1]):
            out[p, deck] = 0.0
        if first + p == 0:
            continue
        mine, theirs = unrank_pattern(d, cards, size, first + p)
        rows, columns = bids(d, cards, size, mine, theirs, children, wins)
        for q in range(below.shape[1]):
            for r in range(rows):
                for c in range(columns):
                    child = children[r, c]
                    b[r, c] = below[child, q] if child >= 0 else -below[~child, q]
            for i in range(upcards.shape[1]):
                for r in range(rows):
                    for c in range(columns):
                        a[r, c] = b[r, c] + upcards[q, i] * wins[r, c]
                value, gap, _, fallbacks = simplex.solve_game(a, rows, columns, False, x, y, work)
                out[p, targets[q, i]] += value
                worst[0] = max(worst[0], gap)
                worst[1] += fallbacks
        for deck in range(out.shape[1]):
            out[p, deck] /= size
