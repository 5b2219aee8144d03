"""Where two tables of one game differ: which decisions moved, and what keeping the old ones costs.

1. Both tables are read once, a piece at a time, side by side where their rows are the same states
   (`cluster.table.pairs`): payoffs and best actions are compared, and it is counted where the
   states stand among the groups that people care about (`solver.search.expand.classify`).
2. Only where the best actions differ are the actions' payoffs worked out, in batches
   (`cluster.table.prices`).
3. From the same pass: at what number decisions turn (`cluster.table.comparison`).

Boards may differ (that is what the question is); states are matched by their fields in people's
units, so a state that is not on the other board's grid counts as missing. Nothing depends on how
large the pieces are. In memory are some pieces, what stands on lines of the tier at hand (without
tiers: of all), and, where only what can come up is compared, all these states.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.table import OnRows, nobody, pairs
from luckbase.cluster.table.comparison import (
    ActionMoves,
    Comparison,
    Difference,
    GroupDifference,
    Moved,
    OnLines,
    Quiet,
    Thresholds,
)
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.pairs import Pair
from luckbase.cluster.table.prices import (
    MOVED,
    ONE_SIDED,
    TOSS_UP,
    UNPRICED,
    Changed,
    Priced,
    Prices,
    Write,
    changes_file,
)
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import Groups, groups_of
from luckbase.solver.search.expand import classify
from luckbase.solver.sentences import option

BATCH = 100_000
"""Decisions that are priced at a time: 200 bytes each."""


class DiffOptions(TypedDict, total=False):
    """How two tables are compared.

    tolerance: how far payoffs may be apart (both tables' precisions). worst: how many decisions are
    kept (10). sample, seed: only so many states, drawn evenly. reachable: only states that can come
    up under best play of either table, from `start` (the game's own): a state, several, or a frame.
    out: a .csv or .parquet file of every decision that moved. on_rows: told how many rows were
    compared, and of how many.
    """

    tolerance: float | None
    worst: int
    sample: int | None
    seed: int
    reachable: bool
    start: Any
    out: str | os.PathLike[str] | None
    on_rows: OnRows


def compare(first: Lookup, second: Lookup, **options: Unpack[DiffOptions]) -> Comparison:
    """Compare two tables. Raises OptionError for tables of different games or fields,
    CorruptTableError; with `reachable` MissingTableError for a start that a table does not hold."""
    start, sample, tolerance = options.get("start"), options.get("sample"), options.get("tolerance")
    out, tell = options.get("out"), options.get("on_rows", nobody)
    some = options.get("reachable", False) or start is not None
    _check(first, second, sample is not None and some)
    slack = first.precision + second.precision + 1e-9 if tolerance is None else tolerance
    rows, unknown = [pairs.rows_of(table) for table in (first, second)], 0
    if some:
        states, unknown = pairs.reachable(first, second, start)
        every, total = pairs.listed_pairs(first, second, states), len(states)
    elif sample is not None:
        every, total = pairs.drawn_pairs(first, second, sample, options.get("seed", 0)), sample
    else:
        every, total = pairs.all_pairs(first, second), min(rows)
    whole = not some and sample is None
    with ExitStack() as files:
        write = None if out is None else files.enter_context(changes_file(out, second.game))
        tally = _Tally(first, second, options.get("worst", 10), write, whole)
        look, done = partial(_look, second.game, tally.groups, slack), 0
        for seen in pairs.in_order(every, look, cores()):
            done += seen.pair.rows
            tally.take(seen)
            tell(done, total)
        tally.price()
    only: list[int | None] = [tally.only[0], tally.only[1] + unknown]
    larger = 0 if rows[1] < rows[0] else 1
    if sample is not None:
        only[larger] = None
    elif whole:  # all that were not met from the smaller table
        only[larger] = max(0, rows[larger] - tally.states)
    return Comparison(
        states=tally.states, missing=tally.missing + unknown,
        missing_of="first" if larger else "second", tolerance=slack, reachable=some,
        only=(only[0], only[1]), unfinished=(_unfinished(first), _unfinished(second)),
        **tally.comparison(),
    )  # fmt: skip


def _check(first: Lookup, second: Lookup, both: bool) -> None:
    games = [table.game.board.game for table in (first, second)]
    if games[0] != games[1]:
        raise OptionError(f"a table of {games[0]} and one of {games[1]} can not be compared")
    columns = [table.game.columns for table in (first, second)]
    if columns[0] != columns[1]:
        raise OptionError(
            f"tables with the fields {', '.join(columns[0])} and {', '.join(columns[1])} can not "
            "be compared"
        )
    if both:
        others = f"{option('reachable')} or {option('start')}"
        raise OptionError(f"{option('sample')}: is of all states; leave it out with {others}")


def _unfinished(table: Lookup) -> list[str]:
    """What is still to be solved of the parts that stand for a table."""
    return table.unfinished(None if table.full is None else table.full.name)


# --- one piece -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """What one pair shows. payoffs: how many differ; largest: by how much; quiet: (how many payoffs
    differ where no decision moved, by how much, which state (1, fields) first); groups, cells:
    decisions by code; lines: states on thresholds."""

    pair: Pair
    payoffs: int
    largest: float
    quiet: tuple[int, float, Ints | None]
    groups: Ints
    cells: Ints
    lines: OnLines
    changed: Changed


def _look(game: Game, groups: Groups, slack: float, pair: Pair) -> _Seen:
    """Look at a pair; several threads may."""
    n, gap = len(pair.best[0]), np.zeros(len(pair.best[0]))
    for mine, theirs in zip(*(values.T for values in pair.values), strict=True):
        np.maximum(gap, np.abs(np.subtract(mine, theirs, dtype=np.float64)), out=gap)
    beyond, moved = gap > slack, pair.best[0] != pair.best[1]
    still = beyond & ~moved
    quiet: tuple[int, float, Ints | None] = (int(still.sum()), 0.0, None)
    if quiet[0]:
        x = int(np.argmax(np.where(still, gap, -1.0)))
        quiet = quiet[0], float(gap[x]), pair.states[1](np.array([x]))
    at = np.flatnonzero(moved)
    margins = np.full(len(at), np.nan) if pair.margins is None else pair.margins[at]
    changed = Changed(
        pair.states[0](at), pair.states[1](at), pair.best[0][at], pair.best[1][at], gap[at], margins
    )
    stand = classify(game, pair.states[1](np.arange(n)), groups)
    decided, cells = stand.groups >= 0, cells_of(groups, stand.x, stand.y)
    on = np.flatnonzero(stand.thresholds >= 0)
    which, taken = stand.thresholds[on], np.zeros((len(on), 2), bool)
    for t in np.unique(which).tolist():
        kind = np.array([*(groups.thresholds[t].takes(name) for name in pair.names), False])
        here = which == t
        for i in (0, 1):
            taken[here, i] = kind[pair.best[i][on[here]]]
    return _Seen(
        pair, int(beyond.sum()), float(gap.max(initial=0.0)), quiet,
        np.bincount(stand.groups[decided], minlength=groups.count),
        np.bincount(cells[decided] + 1, minlength=groups.cells + 1)[1:],
        OnLines(which, stand.at[on], stand.lines[on], taken), changed,
    )  # fmt: skip


def cells_of(groups: Groups, x: Ints, y: Ints) -> Ints:
    """Cells of the picture as one number each; -1 outside."""
    inside = (x >= 0) & (y >= 0) & (x < groups.axes[0].cells) & (y < groups.axes[1].cells)
    return np.where(inside, x * groups.axes[1].cells + y, -1)


# --- all of them ---------------------------------------------------------------------------------


class _Tally:
    """What was found so far."""

    def __init__(
        self, first: Lookup, second: Lookup, worst: int, write: Write | None, whole: bool
    ) -> None:
        """whole: all states are looked at, and so all of every line of a threshold."""
        self.game, self.write, self.whole = second.game, write, whole
        self.prices, self.groups = Prices(first, second), groups_of(second.game)
        self.states = self.missing = self.payoffs = self.priced = 0
        self.only = [0, 0]
        self.largest, self.toss_ups_worst = 0.0, 0.0
        self.quiet = Quiet()
        self.decisions = np.zeros(self.groups.count, np.int64)
        self.cells = np.zeros(self.groups.cells, np.int64)
        self.kinds = np.zeros(4, np.int64)
        self.by_group, self.by_cell = _Costs(self.groups.count), _Costs(self.groups.cells)
        self.toss_ups = np.zeros(self.groups.count, np.int64)
        self.thresholds = Thresholds(self.groups.thresholds)
        self.names: list[str] = []
        self.moves: Counter[tuple[str | None, str | None]] = Counter()
        self._worst, self._max_worst = list[tuple[float, int, Difference]](), worst
        self._waiting, self._count = list[Changed](), 0
        self._tier: int | None = None

    def take(self, seen: _Seen) -> None:
        """Take in what a pair shows; prices what has gathered."""
        pair, changed = seen.pair, seen.changed
        if pair.tier is not None and pair.tier != self._tier:
            self.thresholds.close()
            self._tier = pair.tier
        if self.whole:
            self.thresholds.take(seen.lines)
        states = len(pair.best[0])
        self.states += states
        self.missing += pair.rows - states
        self.only = [self.only[i] + pair.only[i] for i in (0, 1)]
        self.payoffs += seen.payoffs
        self.largest = max(self.largest, seen.largest)
        count, largest, state = seen.quiet
        shown = self.quiet.state
        if state is not None and largest > self.quiet.largest:
            shown = self.game.describe(state[0])
        largest = max(largest, self.quiet.largest)
        self.quiet = Quiet(self.quiet.states + count, largest, shown)
        self.decisions += seen.groups
        self.cells += seen.cells
        if not len(changed.apart):
            return
        place = np.append(pairs.coded(pair.names, self.names), -1)
        best = [place[codes] for codes in (changed.best_first, changed.best_second)]
        self._waiting.append(changed._replace(best_first=best[0], best_second=best[1]))
        self._count += len(changed.apart)
        if self._count >= BATCH:
            self.price()

    def price(self) -> None:
        """Price what waits."""
        if not self._waiting:
            return
        changed = Changed(*map(np.concatenate, zip(*self._waiting, strict=True)))
        self._waiting, self._count = [], 0
        priced = self.prices.priced(changed, self.names)
        if self.write is not None:
            self.write(changed, priced, self.names)
        stand = classify(self.game, changed.second, self.groups)
        moved, tied = priced.kind == MOVED, priced.kind == TOSS_UP
        self.kinds += np.bincount(priced.kind, minlength=4)
        self.by_group.take(stand.groups, priced.cost, moved)
        self.by_cell.take(cells_of(self.groups, stand.x, stand.y), priced.cost, moved)
        np.add.at(self.toss_ups, stand.groups[tied & (stand.groups >= 0)], 1)
        worst = float(np.max(priced.cost, where=tied, initial=0.0))
        self.toss_ups_worst = max(self.toss_ups_worst, worst)
        best = np.stack([changed.best_first, changed.best_second], axis=1)
        for pair, n in zip(*np.unique(best[moved], axis=0, return_counts=True), strict=True):
            self.moves[self._named(pair)] += int(n)
        self._keep_worst(changed, priced, best, np.flatnonzero(moved))
        self.priced += len(changed.apart)

    def _named(self, best: Ints) -> tuple[str | None, str | None]:
        first, second = (self.names[code] if code >= 0 else None for code in best.tolist())
        return first, second

    def _keep_worst(self, changed: Changed, priced: Priced, best: Ints, at: Ints) -> None:
        """Keep those that cost most, of equal ones those met first."""
        at = at[np.argsort(-priced.cost[at], kind="stable")][: self._max_worst]
        for x in at.tolist():
            cost = float(priced.cost[x])
            item = Difference(
                self.game.describe(changed.second[x]), float(changed.apart[x]),
                self._named(best[x]), cost, int(priced.actors[x]) + 1,
            )  # fmt: skip
            heapq.heappush(self._worst, (cost, -(self.priced + x), item))
            if len(self._worst) > self._max_worst:
                heapq.heappop(self._worst)

    def comparison(self) -> dict[str, Any]:
        """What it says, by the fields of `Comparison`."""
        moved, costs, groups = int(self.kinds[MOVED]), self.by_group, self.groups
        worst = sorted(self._worst, key=lambda entry: entry[:2], reverse=True)
        moves = sorted(self.moves.items(), key=lambda each: (-each[1], str(each)))
        there = np.flatnonzero((self.decisions > 0) | (costs.count > 0))
        order = there[np.argsort(-costs.total[there], kind="stable")]
        heads, shape = [column.head for column in groups.columns], [a.cells for a in groups.axes]
        return {
            "payoffs": self.payoffs, "largest": self.largest, "actions": moved,
            "decisions": int(self.decisions.sum()), "toss_ups": int(self.kinds[TOSS_UP]),
            "toss_ups_worst": self.toss_ups_worst, "one_sided": int(self.kinds[ONE_SIDED]),
            "unpriced": int(self.kinds[UNPRICED]), "quiet": self.quiet,
            "mean": float(costs.total.sum()) / moved if moved else 0.0,
            "worst_cost": float(costs.worst.max(initial=0.0)),
            "worst": [item for _, _, item in worst],
            "moves": [ActionMoves(*names, count) for names, count in moves],
            "thresholds": self.thresholds.differences(),
            "thresholds_left_out": bool(groups.thresholds) and not self.whole,
            "groups": [
                GroupDifference(
                    dict(zip(heads, groups.labels(k), strict=True)), int(self.decisions[k]),
                    int(costs.count[k]), int(self.toss_ups[k]),
                    float(costs.total[k] / costs.count[k]) if costs.count[k] else 0.0,
                    float(costs.worst[k]),
                )
                for k in order.tolist()
            ],
            "picture": Moved(
                groups.axes, self.cells.reshape(shape), self.by_cell.count.reshape(shape),
                self.by_cell.total.reshape(shape),
            ),
        }  # fmt: skip


class _Costs:
    """How many, the sum and the greatest of costs, by code; a sum is taken state by state, so it
    does not depend on the batches."""

    def __init__(self, codes: int) -> None:
        self.count = np.zeros(codes, np.int64)
        self.total, self.worst = np.zeros(codes), np.zeros(codes)

    def take(self, codes: Ints, costs: Floats, which: NDArray[np.bool_]) -> None:
        """Take in the costs (n,) of those with a code (n,)."""
        which = which & (codes >= 0)
        at = codes[which]
        np.add.at(self.count, at, 1)
        np.add.at(self.total, at, costs[which])
        np.maximum.at(self.worst, at, costs[which])
