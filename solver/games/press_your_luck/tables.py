"""What the kernel is given beside arrays of payoffs: taps, orders at the cap, whammy faces.

Everything here is small and made once a tier in numpy; the kernel itself only streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.games.press_your_luck.outcomes import Outcomes
from luckbase.solver.games.press_your_luck.tiers import (
    A,
    B,
    C,
    Layout,
    Tier,
    canonical_tier,
    configuration_index,
    layout,
    slots_of,
    tiers_with,
)

Payoffs = NDArray[np.float64]
"""(2, nB, nA, K nC): the payoffs of slots A and B in row order (see `tiers`)."""


@dataclass(frozen=True)
class Taps:
    """The outcomes of a spin from each score v in 0..cap, those that reach the cap merged.

    rows, weights: (cap + 1, k): the new score and its chance; money first, then plus a spin.
    money, count: (cap + 1,): how many of a row are money, and how many there are.
    moves, chances, plain_money: the same unmerged, as units won, for shifts along a row.
    """

    whammy: float
    again: float
    rows: NDArray[np.int64]
    weights: NDArray[np.float64]
    money: NDArray[np.int64]
    count: NDArray[np.int64]
    moves: NDArray[np.int64]
    chances: NDArray[np.float64]
    plain_money: int


@lru_cache(maxsize=4)
def make_taps(outcomes: Outcomes, cap: int) -> Taps:
    """The taps of an outcome distribution; chances are summed as exact fractions first."""
    width = max(1, len(outcomes.money) + len(outcomes.spin))
    rows = np.zeros((cap + 1, width), np.int64)
    weights = np.zeros((cap + 1, width))
    money, count = np.zeros(cap + 1, np.int64), np.zeros(cap + 1, np.int64)
    for v in range(cap + 1):
        k = 0
        for kind in (outcomes.money, outcomes.spin):
            merged: dict[int, object] = {}
            for m, chance in kind:
                to = min(v + m, cap)
                merged[to] = merged.get(to, 0) + chance  # type: ignore[operator]
            for to in sorted(merged):
                rows[v, k], weights[v, k] = to, float(merged[to])  # type: ignore[arg-type]
                k += 1
            if kind is outcomes.money:
                money[v] = k
        count[v] = k
    plain = outcomes.money + outcomes.spin
    return Taps(
        float(outcomes.whammy),
        float(sum(chance for _, chance in outcomes.spin)),
        rows,
        weights,
        money,
        count,
        np.array([m for m, _ in plain], np.int64),
        np.array([float(chance) for _, chance in plain]),
        len(outcomes.money),
    )


@dataclass(frozen=True)
class Caps:
    """How to sweep a score triple with somebody at the cap.

    The first index is the mask of the slots at the cap (A 1, B 2, C 4).

    orders, counts: int64 (8, K), (8,): the configurations to fill, each after those that it leans
    on. With A below the cap their configurations are left out: the streams fill them.
    pivot_of: int64 (8, K): of a configuration, the pivot where a loop is opened, or -1.
    powers: int64 (8, P): by pivot, the power of the chance of plus a spin that one round of its
    loop multiplies; padded with -1.
    """

    orders: NDArray[np.int64]
    counts: NDArray[np.int64]
    pivot_of: NDArray[np.int64]
    powers: NDArray[np.int64]


@lru_cache(maxsize=64)
def make_caps(spins: int, three: bool) -> Caps:
    """Orders and pivots for T = `spins`; the dependencies come from the layout's moves."""
    lay = layout(spins, three)
    orders = np.full((8, len(lay)), -1, np.int64)
    counts = np.zeros(8, np.int64)
    pivot_of = np.full((8, len(lay)), -1, np.int64)
    powers = np.full((8, len(lay)), -1, np.int64)
    for mask in (1, 2, 3, 5, 6, 7):
        if not three and mask >> B & 1:
            continue
        cuts = _pivots(lay, mask)
        for k, (c, power) in enumerate(cuts):
            pivot_of[mask, c], powers[mask, k] = k, power
        graph = {c: _leans_on(lay, mask, c) - dict(cuts).keys() for c in range(len(lay))}
        start = 0 if mask >> A & 1 else lay.regions[2 * B]
        order = [c for c in TopologicalSorter(graph).static_order() if c >= start]
        orders[mask, : len(order)], counts[mask] = order, len(order)
    return Caps(orders, counts, pivot_of, powers)


def _pivots(lay: Layout, mask: int) -> list[tuple[int, int]]:
    """(configuration, power): the first slot at the cap must spin all K spins of the capped slots.

    Playing plus a spin K times and passing hands all K to the next slot at the cap, and so on
    round: one round multiplies by (chance of plus a spin) ** (slots at the cap * K). A slot below
    the cap takes no part; where it holds spins and comes before one of the others, it breaks in.
    """
    at_cap = [slot for slot in (A, B, C) if mask >> slot & 1]
    if len(at_cap) < 2:
        return []
    first, last = at_cap[0], at_cap[-1]
    cuts = []
    for c, row in enumerate(lay.configurations):
        spins = [int(row[2 * slot] + row[2 * slot + 1]) for slot in (A, B, C)]
        alone = all(spins[slot] == 0 for slot in at_cap[1:])
        outside = [slot for slot in (A, B, C) if slot not in at_cap and spins[slot]]
        if (
            alone
            and row[2 * first] == 0
            and row[2 * first + 1] > 0
            and all(slot > last for slot in outside)
        ):
            cuts.append((c, len(at_cap) * spins[first]))
    return cuts


def _leans_on(lay: Layout, mask: int, c: int) -> set[int]:
    """The configurations at the same scores that configuration c may need first."""
    region = int(np.searchsorted(lay.regions, c, side="right")) - 1
    up, forced = region // 2, region % 2 == 0
    if forced:
        return {int(lay.gain[c])} if mask >> up & 1 else set()
    others = [slot for slot in ((up + 1) % 3, (up + 2) % 3) if lay.passes[c, slot] >= 0]
    at_cap = [slot for slot in others if mask >> slot & 1]
    if mask >> up & 1 and len(at_cap) == 2:
        at_cap = at_cap[:1]  # level at the cap: a passer at the cap passes to the next
    return {int(lay.passes[c, slot]) for slot in at_cap or others}


def terminal(three: bool, size: int) -> Payoffs:
    """The game is over with no spins left: (2, nB, nA, nC); the highest wins, ties share."""
    a = np.arange(size)[None, :, None]
    s = np.arange(size)[None, None, :]
    b = np.arange(size)[:, None, None] if three else np.full((1, 1, 1), -1)
    best = np.maximum(np.maximum(a, b), s)
    winners = (a == best).astype(float) + (b == best) + (s == best)
    return np.stack([(a == best) / winners, (b == best) / winners])


@lru_cache(maxsize=4096)
def children(tier: Tier, max_whammies: int) -> tuple[Tier, ...]:
    """Every tier that `tier` reads, none with 0 spins (those are `terminal`)."""
    found = {canonical_tier(tier.spins - 1, tier.whammies, max_whammies)}
    inside = tier.players_in(max_whammies)
    for player in inside:
        after = tuple(w + (i == player) for i, w in enumerate(tier.whammies))
        if after[player] < max_whammies:
            found.add(canonical_tier(tier.spins - 1, after, max_whammies))
        elif len(inside) == 3:
            found |= {canonical_tier(t, after, max_whammies) for t in range(1, tier.spins)}
    return tuple(sorted(t for t in found if t.spins > 0))


@lru_cache(maxsize=8)
def depth_first(frontier: int, max_whammies: int) -> tuple[Tier, ...]:
    """All tiers, each after its children, parents soon after: few are needed at any time."""
    order: dict[Tier, None] = {}

    def visit(tier: Tier) -> None:
        if tier not in order:
            for child in children(tier, max_whammies):
                visit(child)
            order[tier] = None

    for tier in tiers_with(frontier, max_whammies):
        visit(tier)
    for spins in range(1, frontier):
        for tier in tiers_with(spins, max_whammies):
            visit(tier)
    return tuple(order)


def whammy_faces(
    tier: Tier, max_whammies: int, size: int, fetch: Callable[[Tier], Payoffs]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """WA, WB, WC of the kernel: the payoffs after a whammy of the slot up, by configuration.

    `fetch(tier)` gives a child's payoffs, also for 0 spins; `size` is cap + 1.
    """
    inside = tier.players_in(max_whammies)
    three = len(inside) == 3
    slots = slots_of(inside)
    lay = layout(tier.spins, three)
    n_b = size if three else 1
    r = lay.regions
    wa = np.zeros((2, n_b, int(r[2]), size))
    wb = np.zeros((2, size, int(r[4] - r[2]), size))
    wc = np.zeros((2, n_b, size))
    for slot in (A, B, C) if three else (A, C):
        after = tuple(w + (i == slots[slot]) for i, w in enumerate(tier.whammies))
        stay = after[slots[slot]] < max_whammies
        first, last = int(r[2 * slot]), int(r[2 * slot + 2])
        if stay:
            below = fetch(canonical_tier(tier.spins - 1, after, max_whammies))
            rows = below.reshape(2, n_b, size, -1, size)
            if slot == A:
                wa[:] = rows[:, :, 0][:, :, lay.whammy[first:last]]
            elif slot == B:
                wb[:] = rows[:, 0][:, :, lay.whammy[first:last]]
            else:
                wc[:] = rows[:, :, :, lay.whammy[first], 0]
        elif not three:
            wc[0] = 1.0  # C out: A is the last one in; A out leaves wa = 0
        elif slot == C:
            wc[0] = fetch(canonical_tier(0, after, max_whammies))[0, 0].T
            wc[1] = 1.0 - wc[0]
        else:
            for k in range(last - first):
                spins = lay.configurations[first + k]
                rest = tuple(int(x) for i, x in enumerate(spins) if i // 2 != slot)
                pair = (rest[0], rest[1], 0, 0, rest[2], rest[3])
                left = sum(rest)
                at = configuration_index(left, False)[pair]
                two = fetch(canonical_tier(left, after, max_whammies))
                face = two.reshape(2, size, -1, size)[0, :, at]
                if slot == A:
                    wa[1, :, k] = face
                else:
                    wb[0, :, k] = face
    return wa.reshape(2, n_b, -1), wb.reshape(2, size, -1), wc
