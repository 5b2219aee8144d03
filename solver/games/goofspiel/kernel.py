"""The kernels of Goofspiel: they fill patterns of a layer from the layer below.

With f the value of a state for player one, j cards, upcard k, and the bids r, c that differ
(`patterns.bids`), for points and, with the lead d, for winning::

    A[r, c] = k wins[r, c] + f(children[r, c], P - k)           f of the swapped: -f
    A[r, c] = f(children[r, c], P - k, d + k wins[r, c])        f of the swapped: 1 - f(.., -d)
    f(pattern, P) = 1/j sum over k in P of the value of A

A lead beyond the deck's points counts 1, or 0 on the other side.

**Eights.** For points a lane is a deck: of eight neighbouring decks Q = P - k the values of the
children stand side by side; they are gathered once and serve every card that Q does not have, the
i-th of each Q from above at a time. For winning a lane is a lead, of one Q and one k; the values of
Q's children are copied once with enough ones and zeros on both sides, and a card shifts them.

**What it takes.** Foreseen, by counting vector instructions: 25 ns a game for a support that is
tried, 200 for the simplex in lanes. Measured (one core of an AMD EPYC, Zen 3, shared with others,
AVX2, every gap checked): 13 to 40 ns for a support of 2 to 6 rows, 140 to 330 for the simplex of 5
to 8 rows. All of 13 cards for points: .23 microseconds a game, 307 s for 1.34e9 games; by layer, 6
cards .12, 7 .13, 8 .20, 9 .31, 10 .57. All of 11 cards for winning: .16, 310 s for 1.96e9 games.
One game at a time took .6 at 10 cards. What limits it are the supports tried in vain: 2.7 are tried
an eight at 6 cards and 4.2 at 10, and still 4 and 21 games in a hundred are left to the simplex.
More supports a place gained nothing, nor did giving up when one or two of eight were left.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from luckbase.solver.games.goofspiel.batches import (
    ALONE_TYPE,
    finish,
    forget,
    new_workspace,
    solve_eight,
)
from luckbase.solver.games.goofspiel.patterns import MOST, bids, unrank_pattern
from luckbase.solver.matrix_game.eight_games import GAMES
from luckbase.solver.matrix_game.lanes import load, splat, store
from luckbase.solver.matrix_game.simplex import typed

_n, _f, _f1 = nb.int64, nb.float64, nb.float64[::1]
_f2, _i2, _i3 = nb.float64[:, ::1], nb.int64[:, ::1], nb.int64[:, :, ::1]


@typed(nb.void(ALONE_TYPE, _i3, _n, _n, _n, _f2, _f2, _i2, _f2, _f, _f1))
def solve_for_points(alone, d, cards, size, first, below, upcards, targets, out, tolerance, stats):  # noqa: C901, PLR0913  # a kernel: in tuples its arrays count references
    """Write the values of patterns first, first + 1, … of the layer of `size` cards into `out`.

    below: (patterns, decks) of the layer below. upcards, targets: `tiers.upcards`. out: (patterns,
    decks), written. stats: (6,), the counts of `batches`, raised.
    """
    children, wins = np.empty((MOST, MOST), np.int64), np.empty((MOST, MOST), np.int64)
    base, points = np.zeros(MOST * MOST * 8), np.zeros(24)
    sign, start = np.empty(MOST * MOST, np.int64), np.empty(MOST * MOST, np.int64)
    places, padded = upcards.shape
    flat_upcards, flat_below, width = upcards.reshape(-1), below.reshape(-1), below.shape[1]
    f, z = new_workspace(places)
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
                    alone, f, z, rows, columns, i, missing, flat_targets, at, to, tolerance,
                    flat_out, stats,
                )  # fmt: skip
        finish(alone, f, z, rows, columns, tolerance, flat_out, stats)
        for deck in range(to, to + decks):
            flat_out[deck] /= size


@typed(nb.void(ALONE_TYPE, _i3, _n, _n, _n, _f2, _f2, _i2, _i2, _i2, _f2, _f, _f1))
def solve_for_winning(  # noqa: C901, PLR0913  # a kernel: in tuples its arrays count references
    alone, d, cards, size, first, below, upcards, targets, under, layer, out, tolerance, stats
):  # fmt: skip
    """The same for winning: below and out have a column for each deck and lead.

    under, layer: int64 (decks, 2) of the layer below and this one, first column and reach, as in
    `tiers`.
    """
    children, wins = np.empty((MOST, MOST), np.int64), np.empty((MOST, MOST), np.int64)
    places = upcards.shape[0]
    half = np.max(under[:, 1]) + 2 * cards + 8
    length = 2 * half + 1
    leads = np.zeros((MOST * MOST, length))
    flat_leads = leads.reshape(-1)
    shift, to = np.zeros(MOST * MOST, np.int64), np.zeros(8, np.int64)
    f, z = new_workspace(places * 32)
    flat_out, width = out.reshape(-1), out.shape[1]
    for p in range(out.shape[0]):
        start = p * width
        flat_out[start : start + width] = 0.0
        mine, theirs = unrank_pattern(d, cards, size, first + p)
        rows, columns = bids(d, cards, size, mine, theirs, children, wins)
        cells = rows * columns
        for r in range(rows):
            for c in range(columns):
                shift[r * columns + c] = wins[r, c]
        forget(z)
        for q in range(under.shape[0]):
            reach = under[q, 1]
            for cell in range(cells):
                child, middle = children[cell // columns, cell % columns], under[q, 0] + reach
                for lead in range(-half, half + 1):
                    if lead > reach:
                        v = 1.0
                    elif lead < -reach:
                        v = 0.0
                    elif child >= 0:
                        v = below[child, middle + lead]
                    else:
                        v = 1.0 - below[~child, middle - lead]
                    leads[cell, half + lead] = v
            for i in range(places):
                k, deck = int(upcards[i, q]), targets[i, q]
                most, column = layer[deck, 1], layer[deck, 0] + layer[deck, 1]
                for lead in range(-most, most + 1, 8):
                    for cell in range(cells):
                        at = cell * length + half + lead + k * shift[cell]
                        store(f, GAMES + cell * 8, load(flat_leads, at))
                    missing = 0
                    for lane in range(8):
                        to[lane] = column + lead + lane
                        missing |= (lead + lane <= most) << lane
                    solve_eight(
                        alone, f, z, rows, columns, i * 32 + ((lead + 128) >> 3), missing, to,
                        0, start, tolerance, flat_out, stats,
                    )  # fmt: skip
        finish(alone, f, z, rows, columns, tolerance, flat_out, stats)
        for at in range(start, start + width):
            flat_out[at] /= size
