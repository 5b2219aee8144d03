"""The tiers of Press Your Luck, the order of the states in them, and the kernel's inputs.

A tier is (total spins T, whammy vector). A whammy vector has one entry for each player;
``max_whammies`` means that the player is out, so the vector also tells who is in. Whammies never
change inside a tier. A tier needs

* the tier (T - 1, same whammies) after a money spin,
* the boundary ``score = 0`` of (T - 1, one whammy more) after a whammy,
* a two-player tier of at most T - 1 spins if that whammy was the last one,
* the tier (T - 1, one whammy less) if a slide takes whammies away.

**Merging.** With T spins left, a player with w whammies and w + T < max_whammies cannot be put out
any more. All such w are the class 0 (`Whammies.tier`), except on boards where a player may choose
to lose a whammy.

**Slots.** The players who are in take the slots A, B, C in turn order. If two players are in, they
are A and C, and slot B is empty (its axis has length 1). Kernels use only slots.

**Row order.** The states of a tier are laid out as ``[score B][score A][configuration][score C]``,
C order. A configuration is the distribution of spins: (earned, passed) of A, B and C, with sum T.
Configurations are sorted descending by (passed A, earned A, passed B, earned B, passed C), which
gives six regions: A must spin, A decides, B must spin, B decides, C must spin, C decides. In that
order "spend a spin" maps each region onto a contiguous piece of the configurations of T - 1, and
"gain a spin" maps each block of equal passed spins onto a contiguous piece of the next block: so a
kernel streams and never gathers. The row number is the state's key inside its tier.

Source: docs/numbers.md#gamescrafters (the word tier).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.games.press_your_luck.outcomes import Outcomes, merged

T = TypeVar("T")

A, B, C = 0, 1, 2  # the slots

Configuration = tuple[int, ...]
"""(earned A, passed A, earned B, passed B, earned C, passed C)."""


@dataclass(frozen=True, order=True)
class Tier:
    """All states with `spins` spins in all and one whammy class for each player; a player with
    `max_whammies` is out (score 0, no spins)."""

    spins: int
    whammies: tuple[int, ...]

    def slots(self, max_whammies: int) -> tuple[int, int, int]:
        """Return the player, from 0, in slot A, B, C; -1 for the empty slot B of two players."""
        a, *b, c = (i for i, w in enumerate(self.whammies) if w < max_whammies)
        return a, b[0] if b else -1, c


# --- the graph of tiers --------------------------------------------------------------------------


class Whammies(NamedTuple):
    """The whammies of a board."""

    players: int
    most: int  # the number that puts a player out
    merge: bool  # whether harmless whammies become 0
    less: bool  # whether a slide takes one away

    def tier(self, spins: int, whammies: Sequence[int]) -> Tier:
        """Return the tier with these whammies; those of players who are out are kept."""
        merged = (w if w + spins >= self.most or not self.merge else 0 for w in whammies)
        return Tier(spins, tuple(merged))

    def after(self, tier: Tier, player: int, more: int) -> tuple[int, ...]:
        """Return the whammies of a tier's players after `more` of a player, from 0."""
        return tuple(w + more * (i == player) for i, w in enumerate(tier.whammies))

    def tier_with_less(self, tier: Tier, player: int) -> Tier:
        """Return the tier of one spin fewer in which a player has lost a whammy, if possible."""
        less = self.less and tier.whammies[player] > 0
        return self.tier(tier.spins - 1, self.after(tier, player, -less))


def tiers_with(spins: int, whammies: Whammies) -> list[Tier]:
    """Return every tier of `spins` spins: two players in first, then three. High whammies come
    first, so that a depth-first sweep needs few tiers at once."""
    out = whammies.most
    classes = [w for w in reversed(range(out)) if whammies.tier(spins, [w]).whammies[0] == w]
    pairs = [*product(classes, repeat=2)]
    if whammies.players == 2:
        return [Tier(spins, pair) for pair in pairs]
    two = [(*pair[:i], out, *pair[i:]) for i in range(3) for pair in pairs]
    return [Tier(spins, vector) for vector in (*two, *product(classes, repeat=3))]


@lru_cache(maxsize=4096)
def children(tier: Tier, whammies: Whammies) -> tuple[Tier, ...]:
    """Return every tier that `tier` reads, except tiers of 0 spins (`terminal`)."""
    tiers = {whammies.tier(tier.spins - 1, tier.whammies)}
    inside = [player for player in tier.slots(whammies.most) if player >= 0]
    for player in inside:
        after = whammies.after(tier, player, 1)
        tiers.add(whammies.tier_with_less(tier, player))
        if after[player] < whammies.most:
            tiers.add(whammies.tier(tier.spins - 1, after))
        elif len(inside) == 3:
            tiers |= {whammies.tier(t, after) for t in range(1, tier.spins)}
    return tuple(sorted(child for child in tiers if child.spins > 0))


def below_first(roots: Iterable[T], below: Callable[[T], Iterable[T]]) -> list[T]:
    """Return all nodes at and below roots, each soon after everything below it, if there are no
    cycles."""
    ordered: dict[T, None] = {}
    visited: set[T] = set()

    def visit(tier: T) -> None:
        if tier not in visited:
            visited.add(tier)
            for each in below(tier):
                visit(each)
            ordered[tier] = None

    for root in roots:
        visit(root)
    return [*ordered]


@lru_cache(maxsize=8)
def depth_first(frontier: int, whammies: Whammies) -> tuple[Tier, ...]:
    """Return all tiers, children first and parents soon after: few are needed at any time."""
    spins = (frontier, *range(1, frontier))
    roots = (tier for n in spins for tier in tiers_with(n, whammies))
    return tuple(below_first(roots, lambda tier: children(tier, whammies)))


@lru_cache(maxsize=8)
def by_whammies(frontier: int, whammies: Whammies) -> tuple[Tier, ...]:
    """Return all tiers, children first, one whammy vector after another through all spins, so that
    only the tier of one spin more reads more of a tier than a boundary (`boundary_of`)."""

    def after_one(vector: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for player, had in enumerate(vector):
            after = (*vector[:player], had + 1, *vector[player + 1 :])
            if had < whammies.most and sum(w < whammies.most for w in after) > 1:
                yield after

    vectors = below_first([(0,) * whammies.players], after_one)
    spins = range(1, frontier + 1)
    return tuple(dict.fromkeys(whammies.tier(t, vector) for vector in vectors for t in spins))


# --- configurations ------------------------------------------------------------------------------


class Moves(NamedTuple):
    """The K configurations of T spins, and the target of each move; all int64."""

    configurations: Ints  # (K, 6): as `Configuration`, in row order
    regions: Ints
    """(7,): region i = 2 * slot + (whether it decides) is [regions[i], regions[i + 1])."""
    spend: Ints  # (K,): the configuration of T - 1 spins after the slot up has used a spin
    whammy: Ints
    """(K,): the same after a whammy, which turns the remaining passed spins into earned ones."""
    gain: Ints  # (K,): the configuration after money plus a spin
    passes: Ints
    """(K, 3): the configuration after passing all spins to a slot; -1 if that is impossible."""
    runs: Ints
    """(R, 4): the forced configurations of A and B in pieces (start, stop, start of spend, start of
    gain), contiguous in all three."""


@cache
def configurations(spins: int, three: bool) -> dict[Configuration, int]:
    """Return the configurations of spins over three players in (or two), in row order, numbered."""
    rows: list[Configuration] = []
    for pa in range(spins, -1, -1):
        for ea in range(spins - pa, -1, -1):
            rest = spins - pa - ea
            for pb in range(rest if three else 0, -1, -1):
                for eb in range(rest - pb if three else 0, -1, -1):
                    free = rest - pb - eb
                    rows.extend((ea, pa, eb, pb, free - pc, pc) for pc in range(free, -1, -1))
    return {configuration: i for i, configuration in enumerate(rows)}


def _with_spins(configuration: Configuration, slot: int, earned: int, passed: int) -> Configuration:
    return (*configuration[: 2 * slot], earned, passed, *configuration[2 * slot + 2 :])


@cache
def moves_of(spins: int, three: bool) -> Moves:
    """Return the moves of T = `spins` >= 1 spins over three players in (or two)."""
    numbers, below = configurations(spins, three), configurations(spins - 1, three)
    spend, whammy, gain, region = np.empty((4, len(numbers)), np.int64)
    passes = np.full((len(numbers), 3), -1, np.int64)
    for spins_of, i in numbers.items():
        up = next(slot for slot in (A, B, C) if any(spins_of[2 * slot : 2 * slot + 2]))
        earned, passed = spins_of[2 * up : 2 * up + 2]
        region[i] = 2 * up + (not passed)
        whammy[i] = below[_with_spins(spins_of, up, earned + passed - 1, 0)]
        if passed:
            spend[i] = below[_with_spins(spins_of, up, earned, passed - 1)]
            gain[i] = numbers[_with_spins(spins_of, up, earned + 1, passed - 1)]
            continue
        spend[i], gain[i] = whammy[i], i
        for to in (A, B, C) if three else (A, C):
            if to != up:
                e, p = spins_of[2 * to : 2 * to + 2]
                without = _with_spins(spins_of, up, 0, 0)
                passes[i, to] = numbers[_with_spins(without, to, e, p + earned)]
    forced = np.flatnonzero((region == 2 * A) | (region == 2 * B))
    runs = np.stack([forced, forced + 1, spend[forced], gain[forced]], axis=1)
    first = np.flatnonzero((np.diff(runs, axis=0, prepend=-2) != 1).any(axis=1))
    runs[first, 1] = np.append(runs[first[1:] - 1, 1], runs[-1, 1])
    regions = np.searchsorted(region, np.arange(7))
    table = np.array([*numbers], np.int64)
    return Moves(table, regions, spend, whammy, gain, passes, runs[first])


@lru_cache(maxsize=8)
def block_columns(spins: int, three: bool, size: int, unit: int, blocks: int) -> NDArray[np.int32]:
    """Return int32 (8, blocks * K * size): earned, passed of A, B, C; the dollars of C; zeros."""
    table = moves_of(spins, three).configurations.astype(np.int32)
    columns = [np.repeat(table[:, i], size) for i in range(6)]
    columns.append(np.tile(np.arange(size, dtype=np.int32) * np.int32(unit), len(table)))
    columns.append(np.zeros_like(columns[0]))
    result = np.stack([np.tile(column, blocks) for column in columns])
    result.setflags(write=False)
    return result


@lru_cache(maxsize=8)
def acting_column(
    spins: int, slots: tuple[int, int, int], size: int, blocks: int
) -> NDArray[np.int8]:
    """Return the player up, from 1: int8 (blocks * K * size), read-only; slots as `Tier.slots`."""
    up = np.repeat((A, B, C), np.diff(moves_of(spins, slots[B] >= 0).regions[::2]))
    column = np.tile(np.repeat(np.array(slots, np.int8)[up] + np.int8(1), size), blocks)
    column.setflags(write=False)
    return column


# --- inputs of the kernel ------------------------------------------------------------------------


class Taps(NamedTuple):
    """The outcomes of a spin from each score v in 0..cap, with those that reach the cap merged."""

    whammy: float  # the chance of a whammy
    again: float  # the chance of plus a spin
    rows: Ints  # (cap + 1, k): the new score; money first, then plus a spin
    weights: Floats  # (cap + 1, k): its chance
    money: Ints  # (cap + 1,): the number of money outcomes in a row
    outcomes: Ints  # (cap + 1,): the number of outcomes in a row
    moves: Ints  # (k,): the same unmerged, as units won, for shifts along a row
    chances: Floats  # (k,): the chances of the moves
    plain_money: int  # the number of moves that are money


@lru_cache(maxsize=4)
def make_taps(outcomes: Outcomes, cap: int) -> Taps:
    """Return the taps of an outcome distribution; chances are first summed as exact fractions."""
    plain = outcomes.money + outcomes.spin
    rows, weights = np.zeros((cap + 1, len(plain)), np.int64), np.zeros((cap + 1, len(plain)))
    money, count = np.zeros((2, cap + 1), np.int64)
    for v in range(cap + 1):
        taps: list[tuple[int, Fraction]] = []
        for kind, ends in ((outcomes.money, money), (outcomes.spin, count)):
            taps += merged((min(v + m, cap), chance) for m, chance in kind)
            ends[v] = len(taps)
        for k, (to, chance) in enumerate(taps):
            rows[v, k], weights[v, k] = to, float(chance)
    moves = np.array([m for m, _ in plain], np.int64)
    chances = np.array([float(chance) for _, chance in plain])
    again = float(sum(chance for _, chance in outcomes.spin))
    whammy = float(outcomes.whammy)
    return Taps(whammy, again, rows, weights, money, count, moves, chances, len(outcomes.money))


class Caps(NamedTuple):
    """How to sweep scores with a stuck slot (`choosing`); all int64.

    States of stuck slots depend on each other in loops; a pivot is the state at which a loop is
    opened (`kernel`). The first index is the mask of the stuck slots (A 1, B 2, C 4).
    """

    orders: Ints
    """(8, K): the configurations to fill, each after those that it depends on. If A is not stuck,
    its configurations are left out: the streams fill them."""
    counts: Ints  # (8,): their number
    pivot_of: Ints  # (8, K): the pivot at which a configuration's loop is opened, or -1
    powers: Ints
    """(8, K): by pivot, the power of the chance of plus a spin by which one round of its loop
    multiplies; padded with -1."""


@lru_cache(maxsize=64)
def make_caps(spins: int, three: bool, chooses: bool = False) -> Caps:
    """Return orders and pivots for T = `spins`; no pivots if the board offers choices: then loops
    are swept until they converge."""
    moves = moves_of(spins, three)
    orders, pivot_of, powers = np.full((3, 8, len(moves.spend)), -1, np.int64)
    counts = np.zeros(8, np.int64)
    for mask in range(1, 8) if chooses else (1, 2, 3, 5, 6, 7):
        if not three and mask >> B & 1:
            continue
        pivots = {} if chooses else _pivots(moves, mask)
        for k, (c, power) in enumerate(pivots.items()):
            pivot_of[mask, c], powers[mask, k] = k, power
        graph = {
            c: sorted(_leans_on(moves, mask, c, chooses) - pivots.keys())
            for c in range(len(moves.spend))
        }
        start = 0 if mask >> A & 1 else moves.regions[2 * B]
        order = [c for c in below_first(graph, graph.__getitem__) if c >= start]
        orders[mask, : len(order)], counts[mask] = order, len(order)
    return Caps(orders, counts, pivot_of, powers)


def _pivots(moves: Moves, mask: int) -> dict[int, int]:
    """Return configuration -> power, if the first slot at the cap must spin the K spins left.

    Playing plus a spin K times and passing hands all K to the next slot at the cap, and so on
    around: one round multiplies by (chance of plus a spin) ** (slots at the cap * K). A slot below
    the cap takes no part; but if it holds spins and comes before one of the others, it interrupts
    the loop.
    """
    first, *others = (slot for slot in (A, B, C) if mask >> slot & 1)
    pivots = {}
    for c, row in enumerate(moves.configurations):
        spins = row.reshape(3, 2).sum(axis=1)
        earned, passed = row[2 * first : 2 * first + 2]
        outside = [slot for slot in (A, B, C) if not mask >> slot & 1 and spins[slot]]
        alone = passed and not earned and not spins[others].any()
        if others and alone and all(slot > others[-1] for slot in outside):
            pivots[c] = (1 + len(others)) * int(passed)
    return pivots


def _leans_on(moves: Moves, mask: int, c: int, chooses: bool) -> set[int]:
    """Return the configurations at the same scores that configuration c may need first: all
    possible ones if the board offers choices, because slots can also be stuck at 0."""
    up, decides = divmod(int(np.searchsorted(moves.regions, c, side="right")) - 1, 2)
    if not decides:
        return {int(moves.gain[c])} if mask >> up & 1 else set()
    others = [slot for slot in ((up + 1) % 3, (up + 2) % 3) if moves.passes[c, slot] >= 0]
    at_cap = [slot for slot in others if mask >> slot & 1]
    if chooses:
        at_cap = others
    elif mask >> up & 1:
        at_cap = at_cap[:1]  # two level at the cap: the passer takes the next
    return {int(moves.passes[c, slot]) for slot in at_cap or others}


def terminal(three: bool, size: int) -> Floats:
    """Return the payoffs with no spins left: (2, nB, nA, nC); the highest wins, ties share."""
    a = np.arange(size)[None, :, None]
    s = np.arange(size)[None, None, :]
    b = np.arange(size)[:, None, None] if three else np.full((1, 1, 1), -1)
    best = np.maximum(np.maximum(a, b), s)
    winners = (a == best).astype(float) + (b == best) + (s == best)
    return np.stack([(a == best) / winners, (b == best) / winners])


PAIR = 3
"""In place of a slot: the part of a two-player tier that is read when a third player goes out."""


@cache
def lost_configurations(spins: int, three: bool) -> tuple[tuple[Ints, Ints], ...]:
    """Return, for each slot up, the targets of a whammy, and each configuration's index among them.

    The targets are configurations of `spins` - 1 spins, ascending; the indices are for the
    configurations of `spins`.
    """
    moves = moves_of(spins, three)
    ends = moves.regions[::2]
    ups = (moves.whammy[ends[slot] : ends[slot + 1]] for slot in (A, B, C))
    return tuple(np.unique(up, return_inverse=True) for up in ups)


def boundary_of(slot: int, payoffs: Floats, spins: int, three: bool, size: int) -> Floats:
    """Return the part of a tier of `spins` spins that tiers of other whammies read.

    A slot's score is 0, and f indexes `lost_configurations`. A: (2, nB, f, nC), B: (2, nA, f, nC),
    C: (2, nB, nA); PAIR: all payoffs of slot A, (nA, K, nC).
    """
    if slot == PAIR:
        return payoffs.reshape(2, size, -1, size)[0]
    rows = payoffs.reshape(2, size if three else 1, size, -1, size)
    lost = lost_configurations(spins + 1, three)[slot][0]
    if slot == C:
        return rows[:, :, :, lost[0], 0]
    return (rows[:, :, 0] if slot == A else rows[:, 0])[:, :, lost]


def whammy_boundaries(
    tier: Tier, whammies: Whammies, size: int, boundary: Callable[[Tier, int], Floats]
) -> tuple[Floats, Floats, Floats]:
    """Return WA, WB, WC of the kernel: the payoffs after a whammy of the slot up, by configuration.

    boundary: ``boundary(tier, slot)`` returns a child's, as `boundary_of`, also for 0 spins.
    size: cap + 1.
    """
    slots = tier.slots(whammies.most)
    three = slots[B] >= 0
    moves, n_b = moves_of(tier.spins, three), size if three else 1
    starts = moves.regions[::2]
    wa = np.zeros((2, n_b, starts[B], size))
    wb = np.zeros((2, size, starts[C] - starts[B], size))
    wc = np.zeros((2, n_b, size))
    for slot, boundaries in ((A, wa), (B, wb), (C, wc)) if three else ((A, wa), (C, wc)):
        after = whammies.after(tier, slots[slot], 1)
        first, last = starts[slot : slot + 2]
        if after[slots[slot]] < whammies.most:
            payoffs = boundary(whammies.tier(tier.spins - 1, after), slot)
            lost = lost_configurations(tier.spins, three)[slot][1]
            boundaries[:] = payoffs if slot == C else payoffs[:, :, lost]
        elif not three:
            wc[0] = 1.0  # C out: A is the last one in; A out: wa stays 0
        elif slot == C:
            wc[0] = boundary(whammies.tier(0, after), PAIR)[:, 0].T
            wc[1] = 1.0 - wc[0]
        else:
            two = [boundary(whammies.tier(spins, after), PAIR) for spins in range(tier.spins)]
            for k, spins in enumerate(moves.configurations[first:last].tolist()):
                kept = [n for i, n in enumerate(spins) if i // 2 != slot]
                pair, spins_kept = (*kept[:2], 0, 0, *kept[2:]), sum(kept)
                row = configurations(spins_kept, False)[pair]
                boundaries[int(slot == A), :, k] = two[spins_kept][:, row]
    return wa.reshape(2, n_b, -1), wb.reshape(2, size, -1), wc
