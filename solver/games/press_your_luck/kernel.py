"""The dense kernel of Press Your Luck: fills one tier, plane by plane, from its child tiers.

Symbols (see `tiers` for slots, regions and the row order):

* V[x, b, a, c * nC + s]: the payoff of slot A (x = 0) and slot B (x = 1) in the tier being solved,
  at scores a, b, s (units) of A, B, C and configuration c; slot C has 1 - V[0] - V[1].
* D: the same for the tier of T - 1 spins and the same whammies.
* WA[x, b, k * nC + s], WB[x, a, k * nC + s], WC[x, b, a]: the payoff after a whammy of the slot up,
  their score now 0, for the k-th configuration in which A (B) is up; with C up every configuration
  leads to the same one.
* pw; (m, pm); (m, pp): the chance of a whammy, of money m, of m plus a spin.

With A up (the others alike, each along its own axis, scores saturating at the cap)::

    play(b, a, c, s) = pw WA(b, c, s) + sum_m pm D(b, a + m, spend c, s)
                                      + sum_m pp V(b, a + m, gain c, s)
    V = play                               where A must spin,
        the better of play and V(pass c)   where A decides (ties: the earlier action).

Every plus-a-spin raises a score and every pass turns earned spins into passed ones, so the order
b down, a down, and inside a row (b, a): A and B forced, C, B decides, A decides, is a topological
order — except with a player at the cap, where plus a spin raises nothing. Those rows are swept
state by state in an order of their own (`cap_orders`), and the loops that two or three players at
the cap make are opened at a pivot: its value is linear in itself with the known factor (chance of
plus a spin) ** (players at the cap * spins in the loop), because at the cap nothing is chosen.

Work: with t outcomes about 2 t multiply-adds a state, streamed from rows that were just written:
b outermost and a next keeps the rows a + m of one b in the second-level cache. No gathers, no
``fastmath``: every sum has one order, so the bits do not depend on the processor's vectors. Noting
the best actions takes 4 % more, with their margins 11 % ($500, three spins).
"""

from __future__ import annotations

import numba as nb
import numpy as np

from luckbase.solver.games.press_your_luck.rules import (
    PLAY,
    TIE_TOLERANCE,
    decide_region,
    pass_targets,
    payoff_of,
)

CHUNK = 512
"""Elements summed at a time: the sum stays in the first-level cache while the taps stream by."""


@nb.njit(nogil=True, cache=True)
def add_taps(out, source, start, stride, rows, weights, first, last):
    """out[i] += sum of weights[k] * source[start + rows[k] * stride + i] over first <= k < last."""
    n = out.size
    k = first
    while k + 4 <= last:
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        i0 = start + rows[k] * stride
        i1 = start + rows[k + 1] * stride
        i2 = start + rows[k + 2] * stride
        i3 = start + rows[k + 3] * stride
        s0, s1 = source[i0 : i0 + n], source[i1 : i1 + n]
        s2, s3 = source[i2 : i2 + n], source[i3 : i3 + n]
        for i in range(n):
            out[i] = (((out[i] + w0 * s0[i]) + w1 * s1[i]) + w2 * s2[i]) + w3 * s3[i]
        k += 4
    while k < last:
        w = weights[k]
        j = start + rows[k] * stride
        s = source[j : j + n]
        for i in range(n):
            out[i] += w * s[i]
        k += 1


@nb.njit(nogil=True, cache=True)
def play_run(out, face, pw, d, d_start, v, v_start, stride_d, stride_v, rows, weights, nm, nt):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """One payoff of `out.size` states that stream together: whammy, money taps, plus taps.

    `d`, `v` are flat; tap k of the `nt` (the first `nm` are money) starts `rows[k]` strides after
    `d_start` or `v_start`. Summed in chunks, so that `out` stays in the first-level cache.
    """
    none = np.int64(0)  # not a literal, for each of which numba compiles the callee again
    x = 0
    while x < out.size:
        y = min(x + CHUNK, out.size)
        part = out[x:y]
        w = face[x:y]
        for i in range(y - x):
            part[i] = pw * w[i]
        add_taps(part, d, d_start + x, stride_d, rows, weights, none, nm)
        add_taps(part, v, v_start + x, stride_v, rows, weights, nm, nt)
        x = y


@nb.njit(nogil=True, cache=True)
def play_streams(up, first, last, spend, gain, b, a, arrays, pw, regions, taps):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Playing, slot A (up = 0) or B (1): row (b, a), configurations first .. last - 1, into V.

    They map to `spend`, `spend` + 1, … of T - 1 and to `gain`, `gain` + 1, … of T.
    """
    v, d, wa, wb, _ = arrays
    rows, weights, n_money, n_taps = taps
    n_a, n_c = v.shape[2], rows.shape[0]
    width, width_d = v.shape[3], d.shape[3]
    x, y = first * n_c, last * n_c
    z = regions[2] * n_c
    own = a if up == 0 else b
    origin, step = (b * n_a, 1) if up == 0 else (a, n_a)  # of the rows along the slot's axis
    for p in range(2):
        face = wa[p, b, x:y] if up == 0 else wb[p, a, x - z : y - z]
        play_run(
            v[p, b, a, x:y], face, pw,
            d[p].reshape(-1), origin * width_d + spend * n_c,
            v[p].reshape(-1), origin * width + gain * n_c,
            step * width_d, step * width, rows[own], weights[own], n_money[own], n_taps[own],
        )  # fmt: skip


@nb.njit(nogil=True, cache=True)
def sweep(order, pivot_of, constant, b, a, s_last, s_first, arrays, pw, rules, lay, taps, notes):  # noqa: C901, PLR0913, PLR0915  # a kernel: in tuples its arrays count references
    """Fill the states of row (b, a) one by one: s from s_last down to s_first, each in `order`.

    The scalar twin of the streams, for the rows where somebody is at the cap and for the one
    configuration that leans on itself. A pivot's payoff goes to ``constant[:, pivot_of[c]]``, not
    to V; `pivot_of` is -1 elsewhere. One call does a whole row: calls are dear, their arguments
    being twenty arrays.

    `notes`: the row of `Decisions.best` and of its margins, of size 0 where not wanted, and for
    each slot the action of passing to it.
    """
    v, d, wa, wb, wc = arrays
    best, margin, codes = notes
    three, third, passer = rules
    regions, spend, gain, passes = lay
    rows, weights, n_money, n_taps = taps
    n_c = rows.shape[0]
    cap = n_c - 1
    for s in range(s_last, s_first - 1, -1):
        for c in order:
            up = 0
            while c >= regions[2 * up + 2]:
                up += 1
            forced = c < regions[2 * up + 1]
            own = a if up == 0 else (b if up == 1 else s)
            best0, best1 = 0.0, 0.0
            plays = forced or own < cap
            if plays:
                if up == 0:
                    best0, best1 = pw * wa[0, b, c * n_c + s], pw * wa[1, b, c * n_c + s]
                elif up == 1:
                    k = (c - regions[2]) * n_c + s
                    best0, best1 = pw * wb[0, a, k], pw * wb[1, a, k]
                else:
                    best0, best1 = pw * wc[0, b, a], pw * wc[1, b, a]
                for k in range(n_taps[own]):
                    to, w = rows[own, k], weights[own, k]
                    bb = to if up == 1 else b
                    aa = to if up == 0 else a
                    ss = to if up == 2 else s
                    if k < n_money[own]:
                        x = spend[c] * n_c + ss
                        best0 += w * d[0, bb, aa, x]
                        best1 += w * d[1, bb, aa, x]
                    else:
                        x = gain[c] * n_c + ss
                        best0 += w * v[0, bb, aa, x]
                        best1 += w * v[1, bb, aa, x]
            if not forced:
                score_b = b if three else -1
                one, two = pass_targets(up, a, score_b, s, three, third, passer, cap)
                taken, second = PLAY, -np.inf
                own_best = payoff_of(up, best0, best1) if plays else -np.inf
                for to in (one, two):
                    if to >= 0:
                        x = passes[c, to] * n_c + s
                        q0, q1 = v[0, b, a, x], v[1, b, a, x]
                        q = payoff_of(up, q0, q1)
                        if q - own_best > TIE_TOLERANCE or not plays:
                            second = own_best
                            own_best, taken = q, codes[to]
                            best0, best1, plays = q0, q1, True
                        else:
                            second = max(second, q)
                if best.size:
                    best[c * n_c + s] = taken
                if margin.size and second > -np.inf:
                    margin[c * n_c + s] = max(own_best - second, 0.0)
            if pivot_of[c] >= 0:
                constant[0, pivot_of[c]], constant[1, pivot_of[c]] = best0, best1
            else:
                v[0, b, a, c * n_c + s], v[1, b, a, c * n_c + s] = best0, best1


@nb.njit(nogil=True, cache=True)
def sweep_cap_row(b, a, arrays, pw, again, rules, lay, taps, caps, notes):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Fill row (b, a), A or B at the cap (A's configurations only with A at the cap).

    With all pivots taken as 0, sweeping a loop once gives its constant k; the value of the pivot is
    k / (1 - again ** power), the sum of the geometric series of going round for ever.
    """
    orders, counts, pivot_of, powers = caps
    v = arrays[0]
    n_c = taps[0].shape[0]
    cap = n_c - 1
    constant = np.zeros((2, powers.shape[1]))
    mask = (1 if a == cap else 0) + (2 if b == cap and rules[0] else 0)
    for m, last, first in ((mask + 4, cap, cap), (mask, cap - 1, 0)):
        order = orders[m, : counts[m]]
        if powers[m, 0] < 0:
            sweep(
                order, pivot_of[m], constant, b, a, last, first, arrays, pw, rules, lay, taps, notes
            )  # fmt: skip
            continue
        for s in range(last, first - 1, -1):
            for turn in range(2):
                for c in order:
                    k = pivot_of[m, c]
                    if k >= 0:
                        scale = 1.0 - again ** powers[m, k]
                        for p in range(2):
                            v[p, b, a, c * n_c + s] = turn * constant[p, k] / scale
                sweep(order, pivot_of[m], constant, b, a, s, s, arrays, pw, rules, lay, taps, notes)


@nb.njit(nogil=True, cache=True)
def play_c(v0, v1, d0, d1, n_c, w0, w1, first, stop, spend, gain, moves, chances, n_money):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Slot C must spin, configurations stop - 1 down to first of one row: shifts along s.

    `moves`, `chances`: the board's outcomes (units, chance), money first; scores saturate.
    """
    for c in range(stop - 1, first - 1, -1):
        p0, p1 = v0[c * n_c : (c + 1) * n_c], v1[c * n_c : (c + 1) * n_c]
        for i in range(n_c):
            p0[i] = w0
            p1[i] = w1
        for k in range(moves.size):
            m = min(moves[k], n_c - 1)
            w = chances[k]
            if k < n_money:
                x = spend[c] * n_c
                q0, q1 = d0[x : x + n_c], d1[x : x + n_c]
            else:
                x = gain[c] * n_c
                q0, q1 = v0[x : x + n_c], v1[x : x + n_c]
            r0, r1 = q0[m:], q1[m:]
            for i in range(n_c - m):
                p0[i] += w * r0[i]
                p1[i] += w * r1[i]
            e0, e1 = q0[n_c - 1], q1[n_c - 1]
            for i in range(n_c - m, n_c):
                p0[i] += w * e0
                p1[i] += w * e1


@nb.njit(nogil=True, cache=True)
def solve_plane(b, span, v, d, wa, wb, wc, pw, again, rules, lay, runs, taps, moves, caps, notes):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Fill V[:, b, first:stop], span = (first, stop): every state with score b of slot B and such
    scores of A. Filled must be the rows of b with an a from `stop` on, and of each a those above b.

    Shapes: v (2, nB, nA, K nC), d (2, nB, nA, K' nC), wa (2, nB, K_A nC), wb (2, nA, K_B nC),
    wc (2, nB, nA), all float64, C order; `v` is modified in place. `taps` = (rows, weights, money
    counts, counts) for each score, `moves` = (units, chances, how many are money) unmerged; `caps`
    as in `tables.Caps`. `notes` as in `sweep`, of all rows of the tier.
    """
    arrays = (v, d, wa, wb, wc)
    three, third, passer = rules
    regions, spend, gain, passes = lay
    n_c = taps[0].shape[0]
    cap = n_c - 1
    score_b = b if three else -1
    only_c = regions[5:6]
    nowhere = np.full(regions[6], -1)
    none = np.zeros((2, 1))
    slot_a, slot_b, lowest = np.int64(0), np.int64(1), np.int64(0)  # not literals, as in `play_run`
    for a in range(span[1] - 1, span[0] - 1, -1):
        v0, v1 = v[0, b, a], v[1, b, a]
        start = (b * v.shape[2] + a) * v0.size
        best = notes[0][start : start + v0.size]  # of size 0 where not wanted
        for i in range(best.size):
            best[i] = PLAY
        here = (best, notes[1][start : start + v0.size], notes[2])
        for r in range(runs.shape[0]):  # A and B must spin; with B at the cap, B is swept
            up = slot_a if runs[r, 0] < regions[1] else slot_b
            if a < cap and (up == 0 or b < cap):
                first, last, spent, gained = runs[r]
                play_streams(up, first, last, spent, gained, b, a, arrays, pw, regions, taps)
        if a == cap or score_b == cap:  # somebody at the cap: state by state
            sweep_cap_row(b, a, arrays, pw, again, rules, lay, taps, caps, here)
        else:
            # C decides: one configuration, which leans on itself along s; then C must spin.
            sweep(only_c, nowhere, none, b, a, cap, lowest, arrays, pw, rules, lay, taps, here)
            play_c(
                v0, v1, d[0, b, a], d[1, b, a], n_c, pw * wc[0, b, a], pw * wc[1, b, a],
                regions[4], regions[5], spend, gain, moves[0], moves[1], moves[2],
            )  # fmt: skip
            first, last = regions[3], regions[4]
            if last > first:  # B decides
                play_streams(
                    slot_b, first, last, spend[first], first, b, a, arrays, pw, regions, taps
                )  # fmt: skip
                decide_region(
                    slot_b, first, last, v0, v1, n_c, a, score_b, three, third, passer, passes,
                    here,
                )  # fmt: skip
        if a < cap:  # A decides
            first, last = regions[1], regions[2]
            play_streams(
                slot_a, first, last, spend[first], first, b, a, arrays, pw, regions, taps
            )  # fmt: skip
            decide_region(
                slot_a, first, last, v0, v1, n_c, a, score_b, three, third, passer, passes, here,
            )  # fmt: skip
