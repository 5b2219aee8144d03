"""A full table in memory: solve its tiers, children first, and look up its states.

It is for boards that have no table on disk: a play, an agent with another objective than the
board's, a measurement. `cluster.answers.table` makes a complete table of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board import registry
from luckbase.solver.errors import GameError
from luckbase.solver.game.arrays import Best, Floats, Ints, no_decisions
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.search.bellman import final_payoffs
from luckbase.solver.sentences import many

T = TypeVar("T")


ROWS_A_CALL = 1 << 20
"""The most rows whose payoffs are converted at once."""


MOST_TIERS = 1 << 24
"""Tier numbers are below this, because they are part of a 64-bit key."""


def check_tiers(layout: FullTable[Any]) -> None:
    """Raise GameError unless each tier has its own number and name and its parts cover its rows."""
    taken: dict[tuple[str, Any], str] = {}
    for tier in layout.tiers():
        name, number = layout.tier_name(tier), layout.tier_number(tier)
        fields = layout.tier_fields(tier)
        if not 0 <= number < MOST_TIERS:
            raise _wrong(layout, name, f"has number {number}; expected 0 to {MOST_TIERS - 1}")
        for function, value in (("tier_number", number), ("tier_fields", fields)):
            if other := taken.get((function, str(value))):
                why = f"and tier {other} have one {function}, {value}; expected one for each tier"
                raise _wrong(layout, name, why)
            taken[function, str(value)] = name
        rows, parts, block = layout.rows(tier), layout.parts(tier), layout.block_rows(tier)
        starts, stops = [start for start, _ in parts], [stop for _, stop in parts]
        if starts != [0, *stops[:-1]] or stops[-1:] != [rows]:
            why = f"has {many(rows, 'row')}, and parts {[*parts]}; expected parts from row 0 to "
            raise _wrong(layout, name, why + "the last, each from where the one before it ends")
        if any(start % block for start in starts):
            why = f"has parts {[*parts]}; expected each to begin at a multiple of {block}"
            raise _wrong(layout, name, f"{why} (block_rows)")


def _wrong(layout: FullTable[Any], tier: str, why: str) -> GameError:
    return GameError(f"{registry.author_name(layout.game.board.game)}: tier {tier} {why}")


def never() -> bool:
    """Return False: never stop."""
    return False


class InMemory(Generic[T]):
    """The payoffs of tiers, float64 of `shape(tier)`, with lookup by state; by tier also the best
    actions (rows,), if requested, and the kernel's error bounds, before any rounding."""

    def __init__(
        self, layout: FullTable[T], tiers: Iterable[T] | None = None, *, best: bool = False
    ) -> None:
        """Solve `tiers`, by default all, children first. best: keep the best actions too."""
        self.layout, self.game = layout, layout.game
        self.payoffs: dict[T, Floats] = {}
        self.best: dict[T, NDArray[np.int8]] = {}
        self.errors: dict[T, float] = {}
        for tier in layout.tiers() if tiers is None else tiers:
            out = np.full(layout.shape(tier), np.nan)
            noted = no_decisions(layout.rows(tier)) if best else None
            fetch = self.payoffs.__getitem__
            parts, errors = layout.parts(tier), []
            for part, (start, last) in enumerate(parts):
                span = slice(start, last) if len(parts) > 1 else slice(None)
                part_best = None if noted is None else noted[span]
                errors.append(layout.solve_tier(tier, out[span], fetch, never, part, part_best))
            self.errors[tier] = max(errors)
            self.payoffs[tier] = out
            if noted is not None:
                self.best[tier] = noted

    @property
    def error(self) -> float:
        return max(self.errors.values(), default=0.0)

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Return payoffs (n, players) of canonical states (n, fields), rounded to `payoff_type` as
        in a stored table, and which states have one (n,)."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        numbers, rows = self.layout.locate(states)
        answered: NDArray[np.bool_] = numbers == -1
        payoffs = np.zeros((len(states), self.game.players))
        payoffs[answered] = final_payoffs(self.game, states[answered])
        tiers = {self.layout.tier_number(tier): tier for tier in self.payoffs}
        in_table = np.isin(numbers, list(tiers))
        for number in np.unique(numbers[in_table]).tolist():
            at = np.flatnonzero(numbers == number)
            payoffs[at] = self._rows(tiers[number], rows[at])
        swapped = in_table & self.layout.swapped(states)
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        return payoffs, answered | in_table

    def _rows(self, tier: T, rows: Ints) -> Floats:
        block, total = self.layout.block_rows(tier), self.layout.rows(tier)
        order = np.argsort(rows, kind="stable")
        of = rows[order] // block
        payoffs = np.zeros((len(rows), self.game.players))
        for first, last in _spans(np.unique(of), max(1, ROWS_A_CALL // block)):
            at = order[slice(*np.searchsorted(of, [first, last]))]
            start, stop = first * block, min(last * block, total)
            columns = self.layout.payoff_rows(tier, self.payoffs[tier], start, stop)
            for player, column in enumerate(columns):
                payoffs[at, player] = column[rows[at] - start]
        return payoffs


def decisions_in_order(
    layout: DecisionLayout[T], tiers: Iterable[T] | None = None
) -> Iterator[tuple[T, Floats, Best]]:
    """Solve tiers (by default all) in the order of a `DecisionLayout`; yield each with its payoffs,
    which are dropped when no later tier reads them, and its decisions."""
    dense, requested = layout.layout, {*layout.tiers()} if tiers is None else {*tiers}
    order = [tier for tier in layout.tiers() if tier in requested]
    reads = {
        tier: ({layout.below(tier)} - {None}, {*layout.boundaries_read(tier)}) for tier in order
    }  # fmt: skip
    last = {child: tier for tier in order for of in reads[tier] for child in of}
    read_as_boundary = {child for _, boundaries in reads.values() for child in boundaries}
    whole: dict[T, Floats] = {}
    boundaries: dict[T, Floats] = {}
    for tier in order:
        out, noted = np.empty(dense.shape(tier)), no_decisions(dense.rows(tier))
        below = layout.below(tier)
        under = None if below is None else whole[below]
        layout.solve_tier(tier, out, under, boundaries, never, noted)
        yield tier, out, noted
        if tier in last:
            whole[tier] = out
        if tier in read_as_boundary:
            boundaries[tier] = np.empty(layout.boundary_size(tier))
            layout.take_boundary(tier, out, boundaries[tier])
        for kept in (whole, boundaries):
            for child in [child for child in kept if last[child] == tier]:
                del kept[child]


def _spans(blocks: Ints, size: int) -> Iterable[tuple[int, int]]:
    """Yield ranges [first, last) of at most `size` consecutive blocks of an ascending list."""
    for run in np.split(blocks, np.flatnonzero(np.diff(blocks) > 1) + 1):
        for start in range(0, len(run), size):
            part = run[start : start + size]
            yield int(part[0]), int(part[-1]) + 1
