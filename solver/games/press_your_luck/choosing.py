"""What a spin leaves to choose, and all that is not plain money, in the kernel of Press Your Luck.

A spin comes to a list of effects with its chance (`outcomes.Outcomes.others`), and the player up
takes the best for them, the first of those that are tied. So playing is, beside the sum over plain
outcomes that `kernel` streams,

    sum over lists  p  (payoffs of the effect of the list that is best for the slot up)

The payoffs of each different effect are copied once a state, many states at a time, from where it
leads: `SPENT` the tier of T - 1, `BACK` the same tier, `LOST` the face of a whammy, `LESS` the tier
of T - 1 with a whammy less. Then the lists are folded, one option after the other.

Kept are the payoff of the slot up and one other slot's: B's where A is up, else A's. Where C is up,
its payoff stands less 1, as -(A's + B's).

Doubling nothing, plus a spin, comes back to the same score, as plus a spin does at the cap; who has
such a score is **stuck**. One stuck slot that decides leans on itself, two or more lead back to one
another, and what they take hangs on it: those states are iterated until nothing moves
(`kernel.sweep_stuck_row`), in the orders of `tiers.make_caps`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numba as nb
import numpy as np

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.games.press_your_luck.game import TIE_TOLERANCE
from luckbase.solver.games.press_your_luck.outcomes import (
    DOUBLES,
    LOSES,
    MAY_LOSE,
    WHAMMY,
    Effect,
    Outcomes,
)

SPENT, BACK, LOST, LESS = range(4)
"""Where an effect leads."""
BLOCK = 128
"""States whose effects are copied at a time: with a dozen effects they fill the first-level
cache."""


class Choosing(NamedTuple):
    """The lists of effects of a board; e effects, l lists of m options in all."""

    sources: Ints
    """(e,): where each leads."""
    to: Ints
    """(e, cap + 1): the score after it, from each score."""
    starts: Ints
    """(2, l + 1): where the options of a list begin, of a slot without and with a whammy."""
    options: Ints
    """(2, m): effects."""
    chances: Floats
    """(l,)."""
    returns: bool
    """Whether a spin may come back at a score of 0."""


@lru_cache(maxsize=16)
def make_choosing(outcomes: Outcomes, cap: int) -> Choosing:
    """The lists of an outcome distribution, whose effects bring at most one spin."""
    effects = sorted({effect for each, _ in outcomes.others for effect in each})
    scores = np.arange(cap + 1)
    to = np.array([np.minimum(_after(effect, scores), cap) for effect in effects], np.int64)
    starts = np.zeros((2, len(outcomes.others) + 1), np.int64)
    options = np.zeros((2, sum(len(each) for each, _ in outcomes.others)), np.int64)
    for has_whammy in (0, 1):
        n = 0
        for i, (each, _) in enumerate(outcomes.others, start=1):
            for effect in each:
                if has_whammy or effect.kind != MAY_LOSE:
                    options[has_whammy, n], n = effects.index(effect), n + 1
            starts[has_whammy, i] = n
    return Choosing(
        np.array([_source(effect) for effect in effects], np.int64),
        to.reshape(-1, cap + 1), starts, options,
        np.array([float(chance) for _, chance in outcomes.others]),
        any(effect.kind == DOUBLES and effect.spins > 0 for effect in effects),
    )  # fmt: skip


def _after(effect: Effect, scores: Ints) -> Ints:
    more = {DOUBLES: scores, WHAMMY: -scores}.get(effect.kind, effect.units)
    found: Ints = scores + more
    return found


def _source(effect: Effect) -> int:
    if effect.kind in (LOSES, MAY_LOSE):
        return LESS
    return LOST if effect.kind == WHAMMY else (BACK if effect.spins else SPENT)


@nb.njit(nogil=True, cache=True)
def copy(source, at, own, x, n):
    """own[x : x + n] = source[at : at + n]; places are unsigned, as in `kernel.take_if_better`."""
    for k in range(n):
        own[x + k] = source[at + k]


@nb.njit(nogil=True, cache=True)
def add_best(own, other, n, has_whammy, choosing, to_own, to_other, at):
    """Add the best of every list, times its chance, to n elements from `at` on of `to_own` and
    `to_other`.

    own, other: (e + 1) * BLOCK, flat, the payoffs of the slot up and of the other one after each
    effect; those of the last row are scratch.
    """
    last = np.uint64(choosing.sources.size * BLOCK)
    for i in range(choosing.chances.size):
        p = choosing.chances[i]
        first, stop = choosing.starts[has_whammy, i], choosing.starts[has_whammy, i + 1]
        x = np.uint64(choosing.options[has_whammy, first] * BLOCK)
        y = np.uint64(choosing.options[has_whammy, stop - 1] * BLOCK)
        if stop - first > 2:
            copy(own, x, own, last, n)
            copy(other, x, other, last, n)
            x = last
            for j in range(first + 1, stop - 1):
                z = np.uint64(choosing.options[has_whammy, j] * BLOCK)
                for k in range(n):
                    p0, p1, q0, q1 = own[x + k], other[x + k], own[z + k], other[z + k]
                    better = q0 > p0 + TIE_TOLERANCE
                    own[x + k] = q0 if better else p0
                    other[x + k] = q1 if better else p1
        for k in range(n):  # read before it is chosen from, which gives the loop its vectors
            p0, p1, q0, q1 = own[x + k], other[x + k], own[y + k], other[y + k]
            better = q0 > p0 + TIE_TOLERANCE
            to_own[at + k] += p * (q0 if better else p0)
            to_other[at + k] += p * (q1 if better else p1)


@nb.njit(nogil=True, cache=True)
def choose_streams(up, first, last, spend, gain, b, a, arrays, start_b, choices):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Add to playing what slot A (up = 0) or B (1) may choose: row (b, a), as
    `kernel.play_streams`."""
    v, d, wa, wb, _ = arrays
    less, has_whammy, choosing = choices
    n_c = choosing.to.shape[1]
    own, origin, step = (a, b * v.shape[2], 1) if up == 0 else (b, a, v.shape[2])
    faces, of_face = (wa, b) if up == 0 else (wb, a)
    face, face_start = faces.reshape(-1), of_face * faces.shape[2] - (start_b * n_c if up else 0)
    back, spent, fewer = v.reshape(-1), d.reshape(-1), less[up].reshape(-1)
    size = np.uint64((choosing.sources.size + 1) * BLOCK)
    values = np.empty(size), np.empty(size)
    v0, v1 = v[up, b, a], v[1 - up, b, a]
    start = first * n_c
    for x in range(start, last * n_c, BLOCK):
        n = np.uint64(min(BLOCK, last * n_c - x))
        for e in range(choosing.sources.size):
            source, row = choosing.sources[e], origin + choosing.to[e, own] * step
            for p in range(2):
                mine, place = values[p if up == 0 else 1 - p], np.uint64(e * BLOCK)
                if source == LOST:
                    at = p * (face.size // 2) + face_start + x
                    copy(face, np.uint64(at), mine, place, n)
                elif source == BACK:
                    at = p * (v.size // 2) + row * v.shape[3] + gain * n_c + x - start
                    copy(back, np.uint64(at), mine, place, n)
                else:
                    at = p * (d.size // 2) + row * d.shape[3] + spend * n_c + x - start
                    copy(spent if source == SPENT else fewer, np.uint64(at), mine, place, n)
        add_best(values[0], values[1], n, has_whammy[up], choosing, v0, v1, np.uint64(x))


@nb.njit(nogil=True, cache=True)
def choose_row(v0, v1, d0, d1, lost, c, moves, choices):
    """Add to playing what slot C may choose, who must spin: configuration c of one row."""
    less, has_whammy, choosing = choices
    n_c = choosing.to.shape[1]
    size = (choosing.sources.size + 1) * BLOCK
    own, other, best, beside = np.empty(size), np.empty(size), np.empty(BLOCK), np.empty(BLOCK)
    spend, gain, here = moves.spend[c] * n_c, moves.gain[c] * n_c, c * n_c
    for s in range(0, n_c, BLOCK):
        n = min(BLOCK, n_c - s)
        best[:n], beside[:n] = 0.0, 0.0
        for e in range(choosing.sources.size):
            source, x = choosing.sources[e], e * BLOCK
            q0, q1, at = (v0, v1, gain) if source == BACK else (d0, d1, spend)
            if source == LESS:
                q0, q1 = less
            for k in range(n):
                p0, p1 = lost
                if source != LOST:
                    p0, p1 = q0[at + choosing.to[e, s + k]], q1[at + choosing.to[e, s + k]]
                own[x + k], other[x + k] = -(p0 + p1), p0
        add_best(own, other, np.uint64(n), has_whammy, choosing, best, beside, np.uint64(0))
        for k in range(n):
            v0[here + s + k] += beside[k]
            v1[here + s + k] -= best[k] + beside[k]


@nb.njit(nogil=True, cache=True)
def choose_at(up, at, c, lost, arrays, moves, choices, values):
    """What choosing adds to the payoffs of A and B at one state, at = (b, a, s). lost: those after
    a whammy; values: scratch (2, e)."""
    v, d, _, _, _ = arrays
    less, has_whammy, choosing = choices
    n_c = choosing.to.shape[1]
    b, a, s = at
    score = a if up == 0 else (b if up == 1 else s)
    for e in range(choosing.sources.size):
        source, to = choosing.sources[e], choosing.to[e, score]
        bb, aa, ss = (to if up == 1 else b), (to if up == 0 else a), (to if up == 2 else s)
        if source == LOST:
            p0, p1 = lost
        elif source == BACK:
            x = moves.gain[c] * n_c + ss
            p0, p1 = v[0, bb, aa, x], v[1, bb, aa, x]
        else:
            x = moves.spend[c] * n_c + ss
            from_ = d if source == SPENT else less[up]
            p0, p1 = from_[0, bb, aa, x], from_[1, bb, aa, x]
        values[0, e] = p0 if up == 0 else (p1 if up == 1 else -(p0 + p1))
        values[1, e] = p1 if up == 0 else p0
    starts, options = choosing.starts[has_whammy[up]], choosing.options[has_whammy[up]]
    own = other = 0.0
    for i in range(choosing.chances.size):
        p0, p1 = values[0, options[starts[i]]], values[1, options[starts[i]]]
        for j in range(starts[i] + 1, starts[i + 1]):  # no branches: they are not to be foreseen
            q0, q1 = values[0, options[j]], values[1, options[j]]
            better = q0 > p0 + TIE_TOLERANCE
            p0, p1 = (q0 if better else p0), (q1 if better else p1)
        own += choosing.chances[i] * p0
        other += choosing.chances[i] * p1
    if up == 0:
        return own, other
    return other, (own if up == 1 else -(own + other))
