"""Choices after a spin, and all outcomes except plain money, in the kernel of Press Your Luck.

With its chance, a spin leads to a list of effects (`outcomes.Outcomes.others`). The player up takes
the best effect for them; if several are tied, the first. So playing is the sum over plain outcomes
that `kernel` streams, plus

    sum over lists  p  (payoffs of the list's effect that is best for the slot up)

For many states at a time, the payoffs of each different effect are copied once from its source:
`SPENT`, the tier of T - 1; `BACK`, the same tier; `LOST`, the boundary of a whammy; `LESS`, the
tier of T - 1 with a whammy less. Then the lists are folded, one option after another. A beginning
shared by two lists is folded once.

Two payoffs are kept: the payoff of the slot up, and the payoff of B if A is up, otherwise of A. If
C is up, its payoff minus 1 is stored, which is -(payoff of A + payoff of B).

Doubling a score of 0 plus a spin returns to the same score, as plus a spin does at the cap. A slot
at such a score is **stuck**. If a stuck slot decides, its state depends on itself. The states of
two or more stuck slots depend on each other. Such states are iterated until they converge
(`kernel.sweep_stuck_row`), in the orders of `tiers.make_caps`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import jitable
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.games.press_your_luck.outcomes import (
    DOUBLES,
    LOSES,
    MAY_LOSE,
    WHAMMY,
    Effect,
    Outcomes,
)
from luckbase.solver.games.press_your_luck.rules import TIE_TOLERANCE

SPENT, BACK, LOST, LESS = range(4)  # the sources of effects
BLOCK = 128  # states copied at a time: with a dozen effects they fill the first-level cache


class Folds(NamedTuple):
    """f folds: each replaces the payoffs of a row wherever another row has better ones."""

    first: NDArray[np.uint64]  # (f,): a row
    second: NDArray[np.uint64]  # (f,): a row
    into: NDArray[np.uint64]  # (f,): the row for the outcome
    chances: Floats  # (f,): the chance of the list that ends here, or 0


class Choosing(NamedTuple):
    """A board's lists of e effects, and folds of two payoffs: the best of a, b, c is folded from
    the best of a, b."""

    sources: Ints  # (e,): the source of each effect
    to: Ints  # (e, cap + 1): the score after it, from each score
    folds: tuple[Folds, Folds]  # for a slot without and with a whammy
    rows: int
    """The number of rows of payoffs: effects, the best of list beginnings, and a spare row."""
    returns: bool
    """Whether a spin at a score of 0 can lead back to it, by doubling plus a spin."""


@lru_cache(maxsize=16)
def make_choosing(outcomes: Outcomes, cap: int) -> Choosing:
    """Return the lists of an outcome distribution whose effects bring at most one spin."""
    effects = sorted({effect for listed, _ in outcomes.others for effect in listed})
    scores = np.arange(cap + 1)
    to = np.array([np.minimum(_after(effect, scores), cap) for effect in effects], np.int64)
    rows = len(effects) + 1 + sum(len(listed) for listed, _ in outcomes.others)
    folds = []
    for has_whammy in (False, True):
        chances: dict[tuple[int, ...], Fraction] = {}
        for listed, chance in outcomes.others:
            options = [e for e in listed if has_whammy or e.kind != MAY_LOSE]
            key = tuple(effects.index(e) for e in options)
            key = key if len(key) > 1 else key * 2  # fold the best of one from itself twice
            chances[key] = chances.get(key, Fraction(0)) + chance
        folds.append(_make_folds(chances, len(effects), rows - 1))
    return Choosing(
        np.array([_source(effect) for effect in effects], np.int64), to.reshape(-1, cap + 1),
        (folds[0], folds[1]), rows,
        any(effect.kind == DOUBLES and effect.spins > 0 for effect in effects),
    )  # fmt: skip


def _make_folds(chances: dict[tuple[int, ...], Fraction], effects: int, spare: int) -> Folds:
    """Return the folds of lists of at least two effects, with their chances."""
    begun = {each[:n] for each in chances for n in range(2, len(each))}
    rows = {each: i + effects for i, each in enumerate(sorted(begun))}  # rows
    rows |= {each[:1]: each[0] for each in chances}
    order = sorted(
        {*chances, *begun}, key=lambda each: (len(each), each[:-1], each not in begun, each)
    )
    folds = [
        (rows[each[:-1]], each[-1], rows.get(each, spare), float(chances.get(each, 0)))
        for each in order
    ]
    columns = np.array(folds).reshape(-1, 4).T
    first, second, into = columns[:3].astype(np.uint64)
    return Folds(first, second, into, columns[3].copy())


def _after(effect: Effect, scores: Ints) -> Ints:
    more = {DOUBLES: scores, WHAMMY: -scores}.get(effect.kind, effect.units)
    return scores + more


def _source(effect: Effect) -> int:
    if effect.kind in (LOSES, MAY_LOSE):
        return LESS
    return LOST if effect.kind == WHAMMY else (BACK if effect.spins else SPENT)


@jitable()
def copy(source, start, out, x, n):
    """out[x : x + n] = source[start : start + n], unsigned (see `kernel.take_if_better`)."""
    for k in range(n):
        out[x + k] = source[start + k]


@jitable()
def add_best(up_values, kept_values, n, folds, up_sum, kept_sum, start):
    """Add the best of every list, times its chance, to n elements of both sums, from `start` on.

    up_values, kept_values: rows of BLOCK, flat: payoffs of the slot up and of the other slot that
        is kept; the rows of the effects are filled.

    Indices are unsigned and all operands are read before the choice, so that the loops vectorise.
    """
    size = np.uint64(BLOCK)
    for i in range(folds.chances.size):
        p, x, y = folds.chances[i], folds.first[i] * size, folds.second[i] * size
        z = folds.into[i] * size
        for k in range(n):
            p0, p1 = up_values[x + k], kept_values[x + k]
            q0, q1 = up_values[y + k], kept_values[y + k]
            better = q0 > p0 + TIE_TOLERANCE
            r0, r1 = q0 if better else p0, q1 if better else p1
            up_values[z + k], kept_values[z + k] = r0, r1
            up_sum[start + k] += p * r0
            kept_sum[start + k] += p * r1


@jitable()
def choose_streams(up, first, last, spend, gain, b, a, arrays, start_b, choices):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Add to playing the choices of slot A or B in row (b, a), as `kernel.play_streams`."""
    v, d, wa, wb, _ = arrays
    less, has_whammy, choosing = choices
    n_c = choosing.to.shape[1]
    up_score, origin, step = (a, b * v.shape[2], 1) if up == 0 else (b, a, v.shape[2])
    boundaries, of_boundary = (wa, b) if up == 0 else (wb, a)
    boundary = boundaries.reshape(-1)
    boundary_start = of_boundary * boundaries.shape[2] - (start_b * n_c if up else 0)
    back, spent, fewer = v.reshape(-1), d.reshape(-1), less[up].reshape(-1)
    size = np.uint64(choosing.rows * BLOCK)
    values, folds = (np.empty(size), np.empty(size)), choosing.folds[has_whammy[up]]
    v0, v1 = v[up, b, a], v[1 - up, b, a]
    start = first * n_c
    for x in range(start, last * n_c, BLOCK):
        n = np.uint64(min(BLOCK, last * n_c - x))
        for e in range(choosing.sources.size):
            source, row = choosing.sources[e], origin + choosing.to[e, up_score] * step
            for p in range(2):
                chosen, place = values[p if up == 0 else 1 - p], np.uint64(e * BLOCK)
                if source == LOST:
                    begin = p * (boundary.size // 2) + boundary_start + x
                    copy(boundary, np.uint64(begin), chosen, place, n)
                elif source == BACK:
                    begin = p * (v.size // 2) + row * v.shape[3] + gain * n_c + x - start
                    copy(back, np.uint64(begin), chosen, place, n)
                else:
                    begin = p * (d.size // 2) + row * d.shape[3] + spend * n_c + x - start
                    copy(spent if source == SPENT else fewer, np.uint64(begin), chosen, place, n)
        add_best(values[0], values[1], n, folds, v0, v1, np.uint64(x))


@jitable()
def choose_at(up, scores, c, lost, arrays, moves, choices, values):
    """Return the contribution of choices to the payoffs of A and B at one state.

    scores: b, a and s. lost: the payoffs after a whammy. values: scratch (2, rows).
    """
    v, d, _, _, _ = arrays
    less, has_whammy, choosing = choices
    n_c = choosing.to.shape[1]
    b, a, s = scores
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
    folds, up_sum, kept_sum = choosing.folds[has_whammy[up]], 0.0, 0.0
    for i in range(folds.chances.size):  # no branches: they are unpredictable
        p0, p1 = values[0, folds.first[i]], values[1, folds.first[i]]
        q0, q1 = values[0, folds.second[i]], values[1, folds.second[i]]
        better = q0 > p0 + TIE_TOLERANCE
        p0, p1 = (q0 if better else p0), (q1 if better else p1)
        values[0, folds.into[i]], values[1, folds.into[i]] = p0, p1
        up_sum += folds.chances[i] * p0
        kept_sum += folds.chances[i] * p1
    if up == 0:
        return up_sum, kept_sum
    return kept_sum, (up_sum if up == 1 else -(up_sum + kept_sum))
