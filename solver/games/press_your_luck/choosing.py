"""Whom a player of Press Your Luck may pass to, and when he does: the choices of the kernel.

Playing comes first, then passing to the next in turn order, then to the other; a later action must
be better by more than `TIE_TOLERANCE`. Symbols as in `kernel`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

TIE_TOLERANCE = 1e-12
"""Two actions closer than this are tied: far above float64 noise (1e-15), far below a real gap."""


@nb.njit(nogil=True, cache=True)
def pass_targets(up, a, b, s, three, third_place_spins, passer_picks, cap):
    """The slots that `up` may pass to, in the order in which ties fall; -1 where there is none.

    (-1, -1): he must play (third place). `b` counts only with three players in. The next after a
    slot is the next in turn order, so the slots are cyclic.
    """
    if not three:
        return 2 - up, -1
    if up == 0:
        own, after, other = a, b, s
    elif up == 1:
        own, after, other = b, s, a
    else:
        own, after, other = s, a, b
    if third_place_spins and own < after and own < other:
        return -1, -1
    if after > other:
        return (up + 1) % 3, -1
    if other > after:
        return (up + 2) % 3, -1
    if passer_picks and own < cap:
        return (up + 1) % 3, (up + 2) % 3
    return (up + 1) % 3, -1


@nb.njit(nogil=True, cache=True, inline="always")
def is_better(q, own):
    """The rule for ties: a later action is taken if better by more than the tolerance."""
    return q > own + TIE_TOLERANCE


@nb.njit(nogil=True, cache=True)
def take_if_better(up, v0, v1, x, y, n):
    """Replace n payoffs of the row v from x on by those from y on where they are better for the
    slot up by more than the tolerance. Places are unsigned: signed ones might count from the end,
    which costs the loop its vectors, and slices cost atomic counts."""
    if up == 0:
        for i in range(n):
            better = is_better(v0[y + i], v0[x + i])
            v1[x + i] = v1[y + i] if better else v1[x + i]
            v0[x + i] = v0[y + i] if better else v0[x + i]
    else:
        for i in range(n):
            better = is_better(v1[y + i], v1[x + i])
            v0[x + i] = v0[y + i] if better else v0[x + i]
            v1[x + i] = v1[y + i] if better else v1[x + i]


@nb.njit(nogil=True, cache=True)
def note_if_better(own, x, y, n, code, best):
    """Before `take_if_better`: write the action's `code` to `best` where it is taken; `own`: the
    payoffs of the slot up."""
    for i in range(n):
        best[x + i] = code if is_better(own[y + i], own[x + i]) else best[x + i]


@nb.njit(nogil=True, cache=True)
def note_second(own, x, y, n, second):
    """Before `take_if_better`: keep up the greatest payoff of an action not taken."""
    for i in range(n):
        lost = own[x + i] if is_better(own[y + i], own[x + i]) else own[y + i]
        second[x + i] = max(second[x + i], lost)


@nb.njit(nogil=True, cache=True)
def decide_region(up, first, last, v0, v1, n_c, a, b, three, third, passer, passes, notes):  # noqa: C901, PLR0913  # a kernel: in tuples its arrays count references
    """Slot A or B, below the cap, decides: in row (b, a), configurations first .. last - 1.

    `v0`, `v1` hold the row with the payoffs of playing in it; `notes` as in `sweep`, playing noted
    as best; modified in place.
    """
    best, margin, codes = notes
    own = v0 if up == 0 else v1
    cap = n_c - 1
    s = np.int64(0)  # not a literal: `pass_targets` would be compiled twice
    while s < n_c:
        one, two = pass_targets(up, a, b, s, three, third, passer, cap)
        e = s + 1
        while e < n_c and (one, two) == pass_targets(up, a, b, e, three, third, passer, cap):
            e += 1
        n = np.uint64(e - s)
        if one >= 0:
            for c in range(first, last):
                x = np.uint64(c * n_c + s)
                if margin.size:
                    for i in range(n):
                        margin[x + i] = -np.inf
                for to in (one, two):
                    if to >= 0:
                        y = np.uint64(passes[c, to] * n_c + s)
                        if best.size:
                            note_if_better(own, x, y, n, codes[to], best)
                        if margin.size:
                            note_second(own, x, y, n, margin)
                        take_if_better(up, v0, v1, x, y, n)
                if margin.size:
                    for i in range(n):
                        margin[x + i] = max(own[x + i] - margin[x + i], 0.0)
        s = e


@nb.njit(nogil=True, cache=True)
def worth(up, p0, p1):
    """The payoff to the slot up, for C less 1, from those of A and B."""
    return p0 if up == 0 else (p1 if up == 1 else -(p0 + p1))
