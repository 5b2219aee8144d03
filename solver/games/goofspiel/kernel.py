"""The kernel of Goofspiel for points: fills patterns of a layer from the layer below.

With f the value of a state for player one, j cards, upcard k, and the bids r, c that differ::

    A_k[r, c] = k wins[r, c] + f(children[r, c], P - k)
    f(pattern, P) = 1/j sum over k in P of the value of A_k

"""

from __future__ import annotations

import numba as nb
import numpy as np

from solver.eight_games import GAMES
from solver.games.goofspiel.batches import finish, forget, new_workspace, solve_eight
from solver.games.goofspiel.patterns import MOST, bids, unrank_pattern
from solver.lanes import load, splat, store
from solver.simplex import typed

_n, _f, _f1 = nb.int64, nb.float64, nb.float64[::1]
_f2, _i2, _i3 = nb.float64[:, ::1], nb.int64[:, ::1], nb.int64[:, :, ::1]


@typed(nb.void(_i3, _n, _n, _n, _f2, _f2, _i2, _f2, _f, _f1))
def solve_patterns(d, cards, size, first, below, upcards, targets, out, tolerance, stats):
    """Write the values of patterns first, first + 1, … of the layer of `size` cards into `out`.

    below: (patterns, decks) of the layer below. upcards, targets: `tiers.upcards`. out: (patterns,
    decks), written. stats: (6,), the counts of `batches`, raised.
    """
    children, wins = np.empty((MOST, MOST), np.int64), np.empty((MOST, MOST), np.int64)
    base, points = np.zeros(MOST * MOST * 8), np.zeros(24)
    sign, start = np.empty(MOST * MOST, np.int64), np.empty(MOST * MOST, np.int64)
    places, padded = upcards.shape
    flat_upcards, flat_below, width = upcards.reshape(-1), below.reshape(-1), below.shape[1]
    f, z = new_workspace()
    flat_targets, flat_out, decks = targets.reshape(-1), out.reshape(-1), out.shape[1]
    for p in range(out.shape[0]):
        to = p * decks
        flat_out[to : to + decks] = 0.0
        if first + p == 0:
            continue
        mine, theirs = unrank_pattern(d, cards, size, first + p)
        rows, columns = bids(d, cards, size, mine, theirs, children, wins)
        cells = rows * columns
        for r in range(rows):
            for c in range(columns):
                child = children[r, c]
                start[r * columns + c] = max(child, ~child) * width
                sign[r * columns + c] = 8 * (wins[r, c] + 1) + (0 if child >= 0 else 64)
        forget(z)
        for q in range(0, width, 8):
            for cell in range(cells):
                if q + 8 <= width:
                    v = load(flat_below, start[cell] + q)
                    store(base, cell * 8, splat(0.0) - v if sign[cell] >= 64 else v)
                else:
                    for lane in range(8):
                        v = flat_below[start[cell] + min(q + lane, width - 1)]
                        base[cell * 8 + lane] = -v if sign[cell] >= 64 else v
            for i in range(places):
                k = load(flat_upcards, i * padded + q)
                store(points, 0, splat(0.0) - k)
                store(points, 16, k)
                for cell in range(cells):
                    won = load(points, sign[cell] & 63)
                    store(f, GAMES + cell * 8, load(base, cell * 8) + won)
                at, missing = i * padded + q, 0
                for lane in range(8):
                    missing |= (flat_targets[at + lane] >= 0) << lane
                solve_eight(
                    f, z, rows, columns, i, missing, flat_targets, at, to, tolerance, flat_out,
                    stats,
                )  # fmt: skip
        finish(f, z, rows, columns, tolerance, flat_out, stats)
        for deck in range(to, to + decks):
            flat_out[deck] /= size
