"""The tiers of Press Your Luck and the order of the states in them.

A tier is (total spins T, whammy vector). A whammy vector has one entry a player; ``max_whammies``
means that the player is out, so the vector also says who is in. Inside a tier the whammies never
change; the tier needs

* the tier (T - 1, same whammies) after a money spin,
* the face ``score = 0`` of (T - 1, one whammy more) after a whammy,
* a two-player tier of at most T - 1 spins where that whammy was the last one.

**Merging.** With T spins left a player with w whammies and w + T < max_whammies can not whammy
out any more; all such w are the class 0 (`whammy_classes`).

**Slots.** The players in, in turn order, take the slots A, B, C; with two players in they are A
and C and slot B is empty (its axis has length 1). Kernels know slots only.

**Row order.** The states of a tier are laid out as ``[score B][score A][configuration][score C]``,
C order. A configuration is who holds which spins: (earned, passed) of A, B and C, with sum T. The
configurations are sorted descending by (passed A, earned A, passed B, earned B, passed C), which
puts them in six regions: A must spin, A decides, B must spin, B decides, C must spin, C decides.
In that order "spend a spin" maps each region onto a contiguous piece of the configurations of
T - 1, and "gain a spin" maps each block of equal passed spins onto a contiguous piece of the next
block: a kernel streams, and gathers nothing. The row number is the state's key inside its tier.

Source: docs/sources.md#gamescrafters (the word tier); the order is this project's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

A, B, C = 0, 1, 2
"""Slots."""

FORCED, DECIDES = 0, 1


@dataclass(frozen=True, order=True)
class Tier:
    """All states with `spins` spins in all and one whammy class a player.

    `whammies[i] == max_whammies` says that player i is out (score 0, no spins).
    """

    spins: int
    whammies: tuple[int, ...]

    def players_in(self, max_whammies: int) -> tuple[int, ...]:
        """The players still in, in turn order (0, 1, 2)."""
        return tuple(i for i, w in enumerate(self.whammies) if w < max_whammies)

    @property
    def name(self) -> str:
        """A short name for people: ``spins 2, whammies 0,0,3``."""
        return f"spins {self.spins}, whammies {','.join(map(str, self.whammies))}"


def merge_whammies(whammies: int, spins: int, max_whammies: int) -> int:
    """The class of a player who is in: 0 where `spins` more whammies could not put them out."""
    return 0 if whammies + spins < max_whammies else whammies


def canonical_tier(spins: int, whammies: tuple[int, ...], max_whammies: int) -> Tier:
    """The tier that holds the states with these whammies; those of a player out are kept."""
    merged = (w if w >= max_whammies else merge_whammies(w, spins, max_whammies) for w in whammies)
    return Tier(spins, tuple(merged))


def whammy_classes(spins: int, max_whammies: int) -> tuple[int, ...]:
    """The whammy classes of a player in, with `spins` spins left in all; descending."""
    return tuple(
        sorted({merge_whammies(w, spins, max_whammies) for w in range(max_whammies)}, reverse=True)
    )


def tiers_with(spins: int, max_whammies: int) -> tuple[Tier, ...]:
    """Every tier of `spins` spins: two players in first, then three; high whammies first.

    Children of a tier that have as many spins do not exist; with high whammies first a depth-first
    sweep needs few tiers at once.
    """
    classes = whammy_classes(spins, max_whammies)
    out = max_whammies
    two = [
        Tier(spins, tuple(out if i == gone else pair[i - (i > gone)] for i in range(3)))
        for gone in range(3)
        for pair in ((x, y) for x in classes for y in classes)
    ]
    three = [Tier(spins, (x, y, z)) for x in classes for y in classes for z in classes]
    return tuple(two + three)


def tier_number(tier: Tier, max_whammies: int) -> int:
    """The tier as a number: mixed radix of spins and whammies, the same for every frontier."""
    number = tier.spins
    for w in tier.whammies:
        number = number * (max_whammies + 1) + w
    return number


def tier_from_number(number: int, max_whammies: int) -> Tier:
    """The inverse of `tier_number`."""
    whammies = []
    for _ in range(3):
        number, w = divmod(number, max_whammies + 1)
        whammies.append(w)
    return Tier(number, tuple(reversed(whammies)))


def slots_of(players_in: tuple[int, ...]) -> tuple[int, int, int]:
    """The player in slot A, B, C; -1 for the empty slot B of two players."""
    if len(players_in) == 3:
        return players_in[0], players_in[1], players_in[2]
    return players_in[0], -1, players_in[1]


@dataclass(frozen=True)
class Layout:
    """The configurations of T spins over two or three players, and where a move leads.

    With K configurations:

    configurations
        int64 (K, 6): earned A, passed A, earned B, passed B, earned C, passed C.
    regions
        int64 (7,): the six regions are ``[regions[i], regions[i + 1])``; region 2 * slot + kind
        (`FORCED`, `DECIDES`).
    spend
        int64 (K,): the configuration of T - 1 spins after the slot up has used a spin.
    whammy
        int64 (K,): the same, after a whammy: the passed spins left are earned.
    gain
        int64 (K,): the configuration after money plus a spin.
    passes
        int64 (K, 3): the configuration after passing all to a slot; -1 where that can not be.
    runs
        int64 (R, 4): the forced configurations of A and B in pieces
        (start, stop, start of spend, start of gain), contiguous in all three.
    """

    spins: int
    three: bool
    configurations: NDArray[np.int64]
    regions: NDArray[np.int64]
    spend: NDArray[np.int64]
    whammy: NDArray[np.int64]
    gain: NDArray[np.int64]
    passes: NDArray[np.int64]
    runs: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.configurations)


@cache
def configurations(spins: int, three: bool) -> tuple[tuple[int, ...], ...]:
    """The configurations in row order, each (earned A, passed A, …, earned C, passed C)."""
    found: list[tuple[int, ...]] = []
    for pa in range(spins, -1, -1):
        for ea in range(spins - pa, -1, -1):
            left = spins - pa - ea
            for pb in range(left if three else 0, -1, -1):
                for eb in range(left - pb if three else 0, -1, -1):
                    rest = left - pb - eb
                    found.extend((ea, pa, eb, pb, rest - pc, pc) for pc in range(rest, -1, -1))
    return tuple(found)


@cache
def configuration_index(spins: int, three: bool) -> dict[tuple[int, ...], int]:
    """The row of each configuration."""
    return {c: i for i, c in enumerate(configurations(spins, three))}


@cache
def layout(spins: int, three: bool) -> Layout:
    """The layout of T = `spins` >= 1 spins over three players in (or two)."""
    table = configurations(spins, three)
    here = configuration_index(spins, three)
    below = configuration_index(spins - 1, three)
    count = len(table)
    spend, whammy, gain = (np.full(count, -1, np.int64) for _ in range(3))
    passes = np.full((count, 3), -1, np.int64)
    region = np.empty(count, np.int64)
    for i, spins_of in enumerate(table):
        up = next(s for s in (A, B, C) if spins_of[2 * s] + spins_of[2 * s + 1])
        earned, passed = spins_of[2 * up], spins_of[2 * up + 1]
        forced = passed > 0

        def holding(slot: int, e: int, p: int, base: tuple[int, ...]) -> tuple[int, ...]:
            return (*base[: 2 * slot], e, p, *base[2 * slot + 2 :])

        region[i] = 2 * up + (FORCED if forced else DECIDES)
        if forced:
            spend[i] = below[holding(up, earned, passed - 1, spins_of)]
            gain[i] = here[holding(up, earned + 1, passed - 1, spins_of)]
        else:
            spend[i] = below[holding(up, earned - 1, 0, spins_of)]
            gain[i] = i
            for to in (A, B, C):
                if to != up and (three or to != B):
                    passed_on = holding(up, 0, 0, spins_of)
                    e, p = passed_on[2 * to], passed_on[2 * to + 1]
                    passes[i, to] = here[holding(to, e, p + earned, passed_on)]
        whammy[i] = below[holding(up, earned + passed - 1, 0, spins_of)]
    regions = np.searchsorted(region, np.arange(7))
    forced_ab = [i for i in range(count) if region[i] in (2 * A, 2 * B)]
    runs: list[list[int]] = []
    for i in forced_ab:
        last = runs[-1] if runs else None
        if (
            last is not None
            and last[1] == i
            and region[i] == region[last[0]]
            and spend[i] - last[2] == i - last[0] == gain[i] - last[3]
        ):
            last[1] = i + 1
        else:
            runs.append([i, i + 1, int(spend[i]), int(gain[i])])
    return Layout(
        spins,
        three,
        np.array(table, np.int64).reshape(count, 6),
        regions.astype(np.int64),
        spend,
        whammy,
        gain,
        passes,
        np.array(runs, np.int64).reshape(-1, 4),
    )


@lru_cache(maxsize=32)
def configuration_lookup(spins: int, three: bool) -> NDArray[np.int64]:
    """[passed A, earned A, passed B, earned B, passed C] -> configuration."""
    side = spins + 1
    found = np.full((side,) * 5 if three else (side, side, 1, 1, side), -1, np.int64)
    for (ea, pa, eb, pb, _, pc), i in configuration_index(spins, three).items():
        found[pa, ea, pb, eb, pc] = i
    return found


@lru_cache(maxsize=8)
def block_columns(spins: int, three: bool, size: int, unit: int, blocks: int) -> NDArray[np.int32]:
    """int32 (8, blocks * K * size): earned, passed of A, B, C; the dollars of C; zeros."""
    table = layout(spins, three).configurations.astype(np.int32)
    columns = [np.repeat(table[:, i], size) for i in range(6)]
    columns.append(np.tile(np.arange(size, dtype=np.int32) * np.int32(unit), len(table)))
    columns.append(np.zeros_like(columns[0]))
    return np.stack([np.tile(column, blocks) for column in columns])


@lru_cache(maxsize=8)
def acting_column(
    spins: int, slots: tuple[int, int, int], size: int, blocks: int
) -> NDArray[np.int8]:
    """int8 (blocks * K * size): the player who is up, from 1; slots as `slots_of`."""
    lay = layout(spins, slots[B] >= 0)
    up = (np.searchsorted(lay.regions, np.arange(len(lay)), side="right") - 1) // 2
    players = np.array(slots, np.int8)[up] + np.int8(1)
    return np.tile(np.repeat(players, size), blocks)
