"""The dense kernel of Press Your Luck: fills one tier, plane by plane, from its child tiers.

Symbols (see `tiers` for slots, regions and the row order):

* V[x, b, a, c * nC + s]: the payoff of slot A (x = 0) and slot B (x = 1) in the tier being solved,
  at scores a, b, s (units) of A, B, C and configuration c; slot C has 1 - V[0] - V[1].
* D: the same for the tier of T - 1 spins and the same whammies.
* WA[x, b, k * nC + s], WB[x, a, k * nC + s], WC[x, b, a]: the payoff after a whammy of the slot up,
  whose score is now 0, for the k-th configuration in which A (B) is up; with C up every
  configuration leads to the same one.
* pw; (m, pm); (m, pp): the chance of a whammy, of money m, of m plus a spin.

With A up (the others are alike, each along its own axis, with scores saturating at the cap)::

    play(b, a, c, s) = pw WA(b, c, s) + sum_m pm D(b, a + m, spend c, s)
                                      + sum_m pp V(b, a + m, gain c, s)
    V = play                               where A must spin,
        the better of play and V(pass c)   where A decides (ties: the earlier action).

Every plus-a-spin raises a score and every pass turns earned spins into passed ones. So this order
is topological: b down, a down, and inside a row (b, a): A and B forced, C, B decides, A decides.
The exception is a player at the cap, where plus a spin raises nothing. Those rows are swept state
by state in their own order (`tiers.Caps`). Two or three players at the cap form loops. A loop is
opened at a pivot. Because at the cap there is no choice, the pivot's value is a linear function of
itself, with the known factor (chance of plus a spin) ** (players at the cap * spins in the loop).

With t outcomes a state takes about 2 t multiply-adds, streamed from rows that were just written and
stay in the second-level cache. There are no gathers and no ``fastmath``: every sum has a fixed
order, so the bits do not depend on the processor's vectors.
"""

from __future__ import annotations

import numpy as np

from luckbase.solver.compiled import jitable, njit
from luckbase.solver.games.press_your_luck.choosing import choose_at, choose_streams
from luckbase.solver.games.press_your_luck.rules import PLAY, TIE_TOLERANCE

STILL = 1e-15  # payoffs that change by less have converged
REPLIES = 20_000  # the most sweeps to find best replies
CHUNK = 512
"""Elements summed at a time: the sum stays in the first-level cache while the taps stream by."""


@jitable()
def pass_targets(up, a, b, s, options, cap):
    """Return the slots that `up` may pass to, in the order of ties; -1 for none, twice if they must
    play (third place). `b` counts only with three players in."""
    three, third_place_spins, passer_picks = options
    if not three:
        return 2 - up, -1
    if up == 0:
        up_score, next_score, third_score = a, b, s
    elif up == 1:
        up_score, next_score, third_score = b, s, a
    else:
        up_score, next_score, third_score = s, a, b
    if third_place_spins and up_score < next_score and up_score < third_score:
        return -1, -1
    if next_score > third_score:
        return (up + 1) % 3, -1
    if third_score > next_score:
        return (up + 2) % 3, -1
    if passer_picks and up_score < cap:
        return (up + 1) % 3, (up + 2) % 3
    return (up + 1) % 3, -1


@jitable()
def take_if_better(up_values, kept_values, x, y, n, code, best):
    """Replace each of n payoffs from x on by that from y on, of a later action, if it is better for
    the slot up by more than the tolerance.

    up_values, kept_values: the payoffs of the slot up and of the other slot that is kept.
    best: gets `code` for replaced payoffs, unless its size is 0.

    Unsigned indices vectorise, as they cannot count from the end; slices would count references.
    """
    if best.size:
        for i in range(n):
            better = up_values[y + i] > up_values[x + i] + TIE_TOLERANCE
            best[x + i] = code if better else best[x + i]
    for i in range(n):
        better = up_values[y + i] > up_values[x + i] + TIE_TOLERANCE
        kept_values[x + i] = kept_values[y + i] if better else kept_values[x + i]
        up_values[x + i] = up_values[y + i] if better else up_values[x + i]


@jitable()
def decide_region(up, first, last, v0, v1, n_c, a, b, options, passes, notes):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Let slot A or B, below the cap, decide: row (b, a), configurations first .. last - 1.

    v0, v1: the row with the payoffs of playing in it; modified in place.
    notes: as in `sweep`, with playing already recorded as best.
    """
    best, codes = notes
    up_values, kept_values = (v0, v1) if up == 0 else (v1, v0)
    cap = n_c - 1
    s = np.int64(0)  # a literal would compile `pass_targets` twice
    while s < n_c:
        targets = pass_targets(up, a, b, s, options, cap)
        e = s + 1
        while e < n_c and targets == pass_targets(up, a, b, e, options, cap):
            e += 1
        n = np.uint64(e - s)
        if targets[0] >= 0:
            for c in range(first, last):
                x = np.uint64(c * n_c + s)
                for to in targets:
                    if to >= 0:
                        y = np.uint64(passes[c, to] * n_c + s)
                        take_if_better(up_values, kept_values, x, y, n, codes[to], best)
        s = e


@jitable()
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


@jitable()
def add_up(out, lost, d, v, from_d, from_v, outcomes):
    """Write the payoffs of playing to out (n,).

    lost: (n,), the payoffs after a whammy.
    from_d, from_v: where payoffs with unchanged score begin in d and v, and the step of a unit.
    outcomes: the chance of a whammy, rows and chances of the others, how many are money, and how
        many there are.
    """
    whammy, rows, weights, money, chances = outcomes
    for k in range(out.size):
        out[k] = whammy * lost[k]
    none = np.int64(0)  # a literal would compile the callee again
    add_taps(out, d, from_d[0], from_d[1], rows, weights, none, money)
    add_taps(out, v, from_v[0], from_v[1], rows, weights, money, chances)


@jitable()
def play_streams(up, first, last, spend, gain, b, a, arrays, start_b, taps, choices):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Write playing by slot A (up = 0) or B (1) to V: row (b, a), configurations first .. last - 1.

    They map to `spend`, `spend` + 1, … of T - 1 and to `gain`, `gain` + 1, … of T. B is up from
    configuration `start_b` on.
    """
    v, d, wa, wb, _ = arrays
    n_a, n_c = v.shape[2], taps.rows.shape[0]
    width, width_d = v.shape[3], d.shape[3]
    x, y, z = first * n_c, last * n_c, start_b * n_c
    up_score = a if up == 0 else b
    origin, step = (b * n_a, 1) if up == 0 else (a, n_a)  # of the rows along the slot's axis
    outcomes = (
        taps.whammy,
        taps.rows[up_score],
        taps.weights[up_score],
        taps.money[up_score],
        taps.outcomes[up_score],
    )
    for p in range(2):
        boundary = wa[p, b, x:y] if up == 0 else wb[p, a, x - z : y - z]
        flat_d, flat_v = d[p].reshape(-1), v[p].reshape(-1)
        d_start, v_start = origin * width_d + spend * n_c, origin * width + gain * n_c
        for i in range(0, y - x, CHUNK):
            lost, row = boundary[i : i + CHUNK], v[p, b, a, x + i : min(x + i + CHUNK, y)]
            from_d, from_v = (d_start + i, step * width_d), (v_start + i, step * width)
            add_up(row, lost, flat_d, flat_v, from_d, from_v, outcomes)
    if choices is not None:
        choose_streams(up, first, last, spend, gain, b, a, arrays, start_b, choices)


@jitable()
def payoff_of(up, p0, p1):
    """Return the payoff to the slot up, for C minus 1, from the payoffs of A and B."""
    return p0 if up == 0 else (p1 if up == 1 else -(p0 + p1))


@jitable()
def plain_at(up, scores, c, lost, arrays, moves, taps):
    """Return the payoffs of A and B from a whammy, `lost`, and the plain outcomes of a spin at one
    state, with scores b, a and s."""
    v, d, _, _, _ = arrays
    b, a, s = scores
    n_c, up_score = taps.rows.shape[0], (a if up == 0 else (b if up == 1 else s))
    plain0, plain1 = taps.whammy * lost[0], taps.whammy * lost[1]
    for k in range(taps.outcomes[up_score]):
        to, w = taps.rows[up_score, k], taps.weights[up_score, k]
        bb, aa, ss = (to if up == 1 else b), (to if up == 0 else a), (to if up == 2 else s)
        if k < taps.money[up_score]:
            x = moves.spend[c] * n_c + ss
            plain0 += w * d[0, bb, aa, x]
            plain1 += w * d[1, bb, aa, x]
        else:
            x = moves.gain[c] * n_c + ss
            plain0 += w * v[0, bb, aa, x]
            plain1 += w * v[1, bb, aa, x]
    return plain0, plain1


@njit(cache=False)  # compiled once for both callers, and cached with them
def sweep(  # noqa: C901, PLR0913, PLR0915  # a kernel: in tuples its arrays count references
    order, pivot_of, constant, b, a, s_last, s_first, arrays, options, moves, taps, choices, notes
):
    """Fill the states of row (b, a) one by one: s from s_last down to s_first, each in `order`.

    It is for rows in which a slot is stuck and for the configuration that depends on itself. One
    call does a whole row, because a call with twenty arrays is expensive.

    pivot_of: configuration -> pivot, or -1. A pivot's payoff goes to ``constant[:, pivot_of[c]]``,
        not to V.
    notes: the row of `Best`, of size 0 if not wanted; for each slot the action of passing to it.

    Returns the largest change of a payoff, if V was filled before; -1 if the best reply of a state
    that depends on itself did not converge.
    """
    v, _, wa, wb, wc = arrays
    best, codes = notes
    regions, passes, n_c = moves.regions, moves.passes, taps.rows.shape[0]
    cap, moved, failed = n_c - 1, 0.0, False
    returns, scratch = False, np.empty((2, 0))
    if choices is not None:
        returns, scratch = choices[2].returns, np.empty((2, choices[2].rows))
    for s in range(s_last, s_first - 1, -1):
        for c in order:
            up = 0
            while c >= regions[2 * up + 2]:
                up += 1
            forced = c < regions[2 * up + 1]
            up_score = a if up == 0 else (b if up == 1 else s)
            plain0, plain1, lost0, lost1 = 0.0, 0.0, 0.0, 0.0
            may_play = forced or up_score < cap
            if may_play:
                if up == 0:
                    lost0, lost1 = wa[0, b, c * n_c + s], wa[1, b, c * n_c + s]
                elif up == 1:
                    k = (c - regions[2]) * n_c + s
                    lost0, lost1 = wb[0, a, k], wb[1, a, k]
                else:
                    lost0, lost1 = wc[0, b, a], wc[1, b, a]
                lost = lost0, lost1
                plain0, plain1 = plain_at(up, (b, a, s), c, lost, arrays, moves, taps)
            place = c * n_c + s
            leans = returns and not forced and up_score == 0  # the state depends on itself
            old0, old1, change = v[0, b, a, place], v[1, b, a, place], 1.0
            if leans:
                v[0, b, a, place], v[1, b, a, place] = 0.0, 0.0
            for _ in range(REPLIES if leans else 1):
                best0, best1, plays = plain0, plain1, may_play
                if choices is not None and plays:
                    scores, lost = (b, a, s), (lost0, lost1)
                    more = choose_at(up, scores, c, lost, arrays, moves, choices, scratch)
                    best0, best1 = best0 + more[0], best1 + more[1]
                if not forced:
                    taken = PLAY
                    own_best = payoff_of(up, best0, best1) if plays else -np.inf
                    for to in pass_targets(up, a, b, s, options, cap):
                        if to >= 0:
                            x = passes[c, to] * n_c + s
                            q0, q1 = v[0, b, a, x], v[1, b, a, x]
                            q = payoff_of(up, q0, q1)
                            if q - own_best > TIE_TOLERANCE or not plays:
                                own_best, taken = q, codes[to]
                                best0, best1, plays = q0, q1, True
                    if best.size:
                        best[place] = taken
                if pivot_of[c] >= 0:
                    constant[0, pivot_of[c]], constant[1, pivot_of[c]] = best0, best1
                    break
                change = max(abs(v[0, b, a, place] - best0), abs(v[1, b, a, place] - best1))
                v[0, b, a, place], v[1, b, a, place] = best0, best1
                if change < STILL:
                    break
            failed = failed or (leans and change >= STILL)
            moved = max(moved, abs(v[0, b, a, place] - old0), abs(v[1, b, a, place] - old1))
    return -1.0 if failed else moved


@jitable()
def settle(order, pivot_of, none, b, a, s, kernel):
    """Sweep the states of row (b, a) with score s of C from two guesses; return whether both
    converged to the same payoffs."""
    v, n_c = kernel[0][0], kernel[3].rows.shape[0]
    rests = np.zeros((2, order.size))
    apart = 0.0
    for turn in range(2):
        for c in order:
            v[0, b, a, c * n_c + s] = v[1, b, a, c * n_c + s] = 1.0 - turn
        moved, sweeps = 1.0, 0
        while moved >= STILL and sweeps < REPLIES:
            moved = sweep(order, pivot_of, none, b, a, s, s, *kernel)
            sweeps += 1
        for k in range(order.size):
            for p in range(2):
                x = v[p, b, a, order[k] * n_c + s]
                apart = max(apart, abs(x - rests[p, k]) * turn)
                rests[p, k] = x
        if not 0.0 <= moved < STILL:
            return False
    return apart <= TIE_TOLERANCE


@jitable()
def sweep_stuck_row(b, a, arrays, options, moves, taps, choices, caps, notes):  # noqa: C901, PLR0913  # a kernel: in tuples its arrays count references
    """Fill row (b, a) with A or B stuck (A's configurations only if A is stuck).

    With all pivots taken as 0, sweeping a loop once gives its constant k. The value of the pivot is
    k / (1 - again ** power), the sum of the geometric series of going around for ever. This holds
    if there is no choice; otherwise a loop is swept until it converges, from two initial guesses.

    Returns whether best replies converged.
    """
    v, kernel = arrays[0], (arrays, options, moves, taps, choices, notes)
    n_c = taps.rows.shape[0]
    cap = n_c - 1
    constant = np.zeros((2, caps.powers.shape[1]))
    at_zero = 0
    if choices is not None and choices[2].returns:
        at_zero = 1
    mask = (1 if a == cap or a < at_zero else 0) + (
        2 if options[0] and (b == cap or b < at_zero) else 0
    )
    settled = True
    for m, last, first in (
        (mask + 4, cap, cap), (mask, cap - 1, at_zero), (mask + 4, at_zero - 1, 0)
    ):  # fmt: skip
        order, pivot_of, powers = caps.orders[m, : caps.counts[m]], caps.pivot_of[m], caps.powers[m]
        if choices is not None and m & (m - 1):
            for s in range(last, first - 1, -1):
                settled = settle(order, pivot_of, constant, b, a, s, kernel) and settled
            continue
        if powers[0] < 0:
            moved = sweep(order, pivot_of, constant, b, a, last, first, *kernel)
            settled = settled and not moved < 0.0
            continue
        for s in range(last, first - 1, -1):
            for turn in range(2):
                for c in order:
                    k = pivot_of[c]
                    if k >= 0:
                        scale = 1.0 - taps.again ** powers[k]
                        for p in range(2):
                            v[p, b, a, c * n_c + s] = turn * constant[p, k] / scale
                sweep(order, pivot_of, constant, b, a, s, s, *kernel)
    return settled


@jitable()
def shift(p0, p1, v, d, lost, c, moves, taps):
    """Write the payoffs of playing, if C must spin, to p0, p1 (nC,): configuration c of one row."""
    n_c = taps.rows.shape[0]
    for i in range(n_c):
        p0[i] = taps.whammy * lost[0]
        p1[i] = taps.whammy * lost[1]
    for k in range(taps.moves.size):
        m = min(taps.moves[k], n_c - 1)
        w = taps.chances[k]
        if k < taps.plain_money:
            x = moves.spend[c] * n_c
            q0, q1 = d[0][x : x + n_c], d[1][x : x + n_c]
        else:
            x = moves.gain[c] * n_c
            q0, q1 = v[0][x : x + n_c], v[1][x : x + n_c]
        r0, r1 = q0[m:], q1[m:]
        for i in range(n_c - m):
            p0[i] += w * r0[i]
            p1[i] += w * r1[i]
        e0, e1 = q0[n_c - 1], q1[n_c - 1]
        for i in range(n_c - m, n_c):
            p0[i] += w * e0
            p1[i] += w * e1


@jitable()
def play_c(b, a, arrays, moves, taps, choices):
    """Let slot C spin, from the last configuration down to the first of one row: shifts along s."""
    v, d, _, _, wc = arrays
    n_c = taps.rows.shape[0]
    rows, below, lost = (
        (v[0, b, a], v[1, b, a]),
        (d[0, b, a], d[1, b, a]),
        (wc[0, b, a], wc[1, b, a]),
    )
    scratch = np.empty((2, 0))
    if choices is not None:
        scratch = np.empty((2, choices[2].rows))
    for c in range(moves.regions[5] - 1, moves.regions[4] - 1, -1):
        row0, row1 = rows[0][c * n_c : (c + 1) * n_c], rows[1][c * n_c : (c + 1) * n_c]
        shift(row0, row1, rows, below, lost, c, moves, taps)
        if choices is not None:
            for s in range(n_c):
                more = choose_at(2, (b, a, s), c, lost, arrays, moves, choices, scratch)
                row0[s] += more[0]
                row1[s] += more[1]


@njit()
def solve_plane(b, span, v, d, boundaries, options, moves, taps, choices, caps, notes):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Fill V[:, b, first:stop], span = (first, stop): the states with these scores of A and b of B.

    The rows of b with an a from `stop` on must be filled, and so must those above b for each a.

    v: (2, nB, nA, K nC), modified in place.
    d: (2, nB, nA, K' nC). v and d are float64, C order.
    boundaries: wa (2, nB, K_A nC), wb (2, nA, K_B nC), wc (2, nB, nA), float64.
    options: whether three are in, `third_place_spins`, whether the passer picks.
    moves, taps, caps: as in `tiers`.
    choices: by slot the tier with a whammy less (as d), whether it has one, and the `choosing`;
        None if there are no choices, which compiles separately and in half the time.
    notes: as in `sweep`, for all rows of the tier.

    Returns whether best replies converged.
    """
    wa, wb, wc = boundaries
    arrays = (v, d, wa, wb, wc)
    regions, runs = moves.regions, moves.runs
    n_c = taps.rows.shape[0]
    cap = n_c - 1
    score_b = b if options[0] else -1
    at_zero = -2  # the score, other than the cap, at which slots are stuck
    if choices is not None and choices[2].returns:
        at_zero = 0
    b_stuck, settled = score_b in (cap, at_zero), True
    only_c = regions[5:6]
    nowhere, none = np.empty(regions[6], np.int64), np.zeros((2, 1))
    for i in range(nowhere.size):  # `np.full` adds a twentieth to the compile time
        nowhere[i] = -1
    slot_a, slot_b, lowest = np.int64(0), np.int64(1), np.int64(0)  # no literals (`play_streams`)
    for a in range(span[1] - 1, span[0] - 1, -1):
        v0, v1 = v[0, b, a], v[1, b, a]
        a_stuck = a in (cap, at_zero)
        start = (b * v.shape[2] + a) * v0.size
        best = notes[0][start : start + v0.size]  # of size 0 if not wanted
        for i in range(best.size):
            best[i] = PLAY
        note = (best, notes[1])
        streams = (b, a, arrays, regions[2], taps, choices)
        for r in range(runs.shape[0]):  # A and B must spin; a stuck B is swept
            up = slot_a if runs[r, 0] < regions[1] else slot_b
            if not a_stuck and (up == 0 or not b_stuck):
                first, last, spent, gained = runs[r]
                play_streams(up, first, last, spent, gained, *streams)
        if a_stuck or b_stuck:  # state by state
            row = (b, a, arrays, options, moves, taps, choices, caps, note)
            settled = sweep_stuck_row(*row) and settled
        else:
            # C decides: one configuration, which depends on itself along s; then C must spin.
            kernel = (arrays, options, moves, taps, choices, note)
            moved = sweep(only_c, nowhere, none, b, a, cap, lowest, *kernel)
            settled = settled and not moved < 0.0
            play_c(b, a, arrays, moves, taps, choices)
        for up in (slot_b, slot_a):  # B decides, then A
            first, last = regions[2 * up + 1], regions[2 * up + 2]
            if last > first and not a_stuck and (up == 0 or not b_stuck):
                play_streams(up, first, last, moves.spend[first], first, *streams)
                decide_region(up, first, last, v0, v1, n_c, a, score_b, options, moves.passes, note)
    return settled
