"""Where two tables of one game differ: which decisions moved, and what the old habit costs.

1. Both tables are read once, a piece at a time, side by side where their rows are the same states
   (`cluster.table.pairs`): payoffs and best actions are compared, and it is counted where the
   states stand among the groups that people care about (`solver.search.tally`).
2. Only where the best actions differ are the actions' payoffs worked out, in batches
   (`cluster.table.prices`).
3. From the same pass: at what number decisions turn (`cluster.table.differences`).

Boards may differ (that is what the question is); states are matched by their fields in people's
units, so a state that is not on the other board's grid counts as missing. Nothing depends on how
large the pieces are. In memory are some pieces, what stands on lines of the tier at hand (without
tiers: of all), and, where only what can come up is compared, all these states.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.table import OnRows, nobody, pairs
from luckbase.cluster.table.differences import (
    Comparison,
    Difference,
    GroupDifference,
    Moved,
    OnLines,
    Quiet,
    Turns,
)
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.pairs import Pair
from luckbase.cluster.table.prices import (
    MOVED,
    ONE_SIDED,
    TOSS_UP,
    UNPRICED,
    Changed,
    ChangesFile,
    Priced,
    Prices,
    changes_file,
)
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.groups import Groups, groups_of
from luckbase.solver.search.tally import standing
from luckbase.solver.sentences import option

BATCH = 100_000
"""Decisions that are priced at a time: 200 bytes each."""


class Comparing(TypedDict, total=False):
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


def compare(one: Lookup, other: Lookup, **how: Unpack[Comparing]) -> Comparison:
    """Compare two tables. Raises OptionError for tables of different games or fields,
    CorruptTableError; with `reachable` MissingTableError for a start that a table does not hold."""
    tolerance, sample = how.get("tolerance"), how.get("sample")
    reachable = how.get("reachable", False) or how.get("start") is not None
    _check(one, other, sample is not None and reachable)
    slack = one.precision + other.precision + 1e-9 if tolerance is None else tolerance
    lost = 0
    if reachable:
        states, lost = _reached(one, other, how.get("start"))
        pieces, total = pairs.listed_pieces(one, other, states), len(states)
    elif sample is not None:
        pieces, total = pairs.drawn_pieces(one, other, sample, how.get("seed", 0)), sample
    else:
        pieces = pairs.all_pieces(one, other)
        total = min(pairs.rows_of(one), pairs.rows_of(other))
    with ExitStack() as files:
        out = how.get("out")
        file = None if out is None else files.enter_context(changes_file(out, other.game))
        whole = not reachable and sample is None
        found = _Found(one, other, how.get("worst", 10), file, whole)
        scan, done, tell = _Scan(other, slack), 0, how.get("on_rows", nobody)
        for seen in pairs.in_order(pieces, scan, cores()):
            done += seen.rows
            found.take(seen)
            tell(done, total)
        found.price()
    found.missing += lost
    found.only[1] += lost
    of = _Asked(slack, pairs.rows_of(other) < pairs.rows_of(one), reachable, sample is not None)
    return found.comparison(of, (one, other))


@dataclass(frozen=True)
class _Asked:
    """How the tables were compared. swapped: the second has fewer rows; sampled: only some of them
    were looked up."""

    slack: float
    swapped: bool
    reachable: bool
    sampled: bool


def _check(one: Lookup, other: Lookup, both: bool) -> None:
    games = [table.game.board.game for table in (one, other)]
    if games[0] != games[1]:
        raise OptionError(f"a table of {games[0]} and one of {games[1]} can not be compared")
    columns = [table.game.columns for table in (one, other)]
    if columns[0] != columns[1]:
        raise OptionError(
            f"tables with the fields {', '.join(columns[0])} and {', '.join(columns[1])} can not "
            "be compared"
        )
    if both:
        others = f"{option('reachable')} or {option('start')}"
        raise OptionError(f"{option('sample')}: is of all states; leave it out with {others}")
    for table in (one, other):
        pairs.parts_of(table)


def _reached(one: Lookup, other: Lookup, start: Any) -> tuple[Ints, int]:
    """The states, as the first game has them, that can come up under best play of either table; and
    how many more the second game alone has."""
    from luckbase.cluster.table.frames import roots_of

    found = []
    for table in (one, other):
        roots = roots_of(table.game, start)
        roots = table.game.needed_start() if roots is None else roots
        found.append(pairs.reachable_states(table, roots.reshape(-1, table.game.field_count)))
    same, known = one.game.known_states(other.game.fields.values(found[1]))
    return np.unique(np.concatenate([found[0], same]), axis=0), int((~known).sum())


# --- one piece -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """What one piece shows. rows: looked at; only: as `Pair`; states: in both; payoffs, largest;
    quiet: (how many payoffs differ where no decision moved, by how much, which state (1, fields)
    first); groups, cells: decisions by code; lines: states on turnings; changed: with these names;
    tier: as `Pair`."""

    rows: int
    only: tuple[int, int]
    states: int
    payoffs: int
    largest: float
    quiet: tuple[int, float, Ints | None]
    groups: Ints
    cells: Ints
    lines: OnLines
    changed: Changed
    names: list[str]
    tier: int | None


class _Scan:
    """Looks at pairs; several threads may."""

    def __init__(self, second: Lookup, slack: float) -> None:
        self.game, self.slack = second.game, slack
        self.groups: Groups = groups_of(second.game)

    def __call__(self, pair: Pair) -> _Seen:
        n = len(pair.best[0])
        gap = _apart(*pair.values)
        acts = pair.best[0] != pair.best[1]
        beyond = gap > self.slack
        still = beyond & ~acts
        quiet: tuple[int, float, Ints | None] = (int(still.sum()), 0.0, None)
        if quiet[0]:
            x = int(np.argmax(np.where(still, gap, -1.0)))
            quiet = quiet[0], float(gap[x]), pair.states[1](np.array([x]))
        at = np.flatnonzero(acts)
        margins = np.full(len(at), np.nan) if pair.margins is None else pair.margins[at]
        changed = Changed(
            (pair.states[0](at), pair.states[1](at)), (pair.best[0][at], pair.best[1][at]),
            gap[at], margins,
        )  # fmt: skip
        groups, cells, lines = self._standing(pair, n)
        largest = float(gap.max()) if n else 0.0
        return _Seen(
            pair.rows, pair.only, n, int(beyond.sum()), largest, quiet, groups, cells, lines,
            changed, list(pair.names), pair.tier,
        )  # fmt: skip

    def _standing(self, pair: Pair, n: int) -> tuple[Ints, Ints, OnLines]:
        said = self.groups
        stand = standing(self.game, pair.states[1](np.arange(n)), said)
        decided = stand.groups >= 0
        groups = np.bincount(stand.groups[decided], minlength=said.count)
        cells = np.bincount(cells_of(said, stand.x, stand.y)[decided] + 1, minlength=said.cells + 1)
        on = np.flatnonzero(stand.turnings >= 0)
        turnings = stand.turnings[on]
        taken = np.zeros((len(on), 2), bool)
        for t in np.unique(turnings).tolist():
            kind = np.array([*(said.turnings[t].takes(name) for name in pair.names), False])
            here = turnings == t
            for i in (0, 1):
                taken[here, i] = kind[pair.best[i][on[here]]]
        return groups, cells[1:], OnLines(turnings, stand.at[on], stand.lines[on], taken)


def cells_of(groups: Groups, x: Ints, y: Ints) -> Ints:
    """Cells of the picture as one number each; -1 outside."""
    inside = (x >= 0) & (y >= 0) & (x < groups.axes[0].cells) & (y < groups.axes[1].cells)
    return np.where(inside, x * groups.axes[1].cells + y, -1)


def _apart(one: Floats, two: Floats) -> Floats:
    """(n,) how far payoffs (n, players) are apart at most."""
    gap = np.zeros(len(one))
    for p in range(one.shape[1]):
        np.maximum(gap, np.abs(np.subtract(one[:, p], two[:, p], dtype=np.float64)), out=gap)
    return gap


# --- all of them ---------------------------------------------------------------------------------


class _Found:
    """What was found so far."""

    def __init__(
        self, one: Lookup, other: Lookup, worst: int, file: ChangesFile | None, whole: bool
    ) -> None:
        """whole: all states are looked at, and so all of every line of a turning."""
        self.game, self.file, self._most = other.game, file, worst
        self.prices, self.said = Prices(one, other), groups_of(other.game)
        self.states = self.missing = self.payoffs = self.priced = 0
        self.only = np.zeros(2, np.int64)
        self.largest, self.tied_worst = 0.0, 0.0
        self.quiet = Quiet()
        self.decisions = np.zeros(self.said.count, np.int64)
        self.cells = np.zeros(self.said.cells, np.int64)
        self.kinds = np.zeros(4, np.int64)
        self.by_group, self.by_cell = (_Costs(n) for n in (self.said.count, self.said.cells))
        self.ties = np.zeros(self.said.count, np.int64)
        self.turns = Turns(self.said.turnings)
        self.whole = whole
        self.names: list[str] = []
        self.moves: Counter[tuple[str | None, str | None]] = Counter()
        self._heap: list[tuple[float, int, Difference]] = []
        self._waiting: list[Changed] = []
        self._count = 0
        self._tier: int | None = None

    def take(self, seen: _Seen) -> None:
        """Take in what a piece shows; prices what has gathered."""
        if seen.tier is not None and seen.tier != self._tier:
            self.turns.close()
            self._tier = seen.tier
        if self.whole:
            self.turns.take(seen.lines)
        self.states += seen.states
        self.missing += seen.rows - seen.states
        self.only += seen.only
        self.payoffs += seen.payoffs
        self.largest = max(self.largest, seen.largest)
        count, largest, state = seen.quiet
        if state is not None and largest > self.quiet.largest:
            self.quiet = Quiet(self.quiet.states, largest, self.game.describe(state[0]))
        self.quiet = Quiet(self.quiet.states + count, self.quiet.largest, self.quiet.state)
        self.decisions += seen.groups
        self.cells += seen.cells
        self._gather(seen)

    def _gather(self, seen: _Seen) -> None:
        if not len(seen.changed):
            return
        for name in seen.names:
            if name not in self.names:
                self.names.append(name)
        place = np.array([*(self.names.index(name) for name in seen.names), -1], np.int64)
        best = place[seen.changed.best[0]], place[seen.changed.best[1]]
        self._waiting.append(
            Changed(seen.changed.states, best, seen.changed.apart, seen.changed.margins)
        )
        self._count += len(seen.changed)
        if self._count >= BATCH:
            self.price()

    def price(self) -> None:
        """Price what waits."""
        if not self._waiting:
            return
        waiting, self._waiting, self._count = self._waiting, [], 0
        changed = _together(waiting)
        priced = self.prices.priced(changed, self.names)
        if self.file is not None:
            self.file.write(changed, priced, self.names)
        stand = standing(self.game, changed.states[1], self.said)
        self.kinds += np.bincount(priced.kind, minlength=4)
        moved = priced.kind == MOVED
        cells = cells_of(self.said, stand.x, stand.y)
        self.by_group.take(stand.groups, priced.cost, moved)
        self.by_cell.take(cells, priced.cost, moved)
        tied = priced.kind == TOSS_UP
        np.add.at(self.ties, stand.groups[tied & (stand.groups >= 0)], 1)
        self.tied_worst = max(self.tied_worst, float(np.max(priced.cost, where=tied, initial=0.0)))
        self._count_moves(changed, moved)
        self._keep(changed, priced, np.flatnonzero(moved))
        self.priced += len(changed)

    def _count_moves(self, changed: Changed, moved: NDArray[np.bool_]) -> None:
        both = np.stack([best[moved] for best in changed.best], axis=1)
        for (old, new), n in zip(*np.unique(both, axis=0, return_counts=True), strict=True):
            self.moves[self._name(old), self._name(new)] += int(n)

    def _name(self, code: int) -> str | None:
        return self.names[code] if code >= 0 else None

    def _keep(self, changed: Changed, priced: Priced, at: Ints) -> None:
        """Keep those that cost most, of equal ones those met first."""
        at = at[np.argsort(-priced.cost[at], kind="stable")][: self._most]
        for x in at.tolist():
            cost = float(priced.cost[x])
            item = Difference(
                self.game.describe(changed.states[1][x]), float(changed.apart[x]),
                (self._name(int(changed.best[0][x])), self._name(int(changed.best[1][x]))), cost,
                int(priced.actors[x]) + 1,
            )  # fmt: skip
            heapq.heappush(self._heap, (cost, -(self.priced + x), item))
            if len(self._heap) > self._most:
                heapq.heappop(self._heap)

    def _only(self, asked: _Asked, tables: tuple[Lookup, Lookup]) -> tuple[int | None, int | None]:
        """The states that each table alone holds; None where they were not counted."""
        counts: list[int | None] = [*self.only.tolist()]
        larger = 0 if asked.swapped else 1
        if asked.sampled:
            counts[larger] = None
        elif not asked.reachable:  # all that were not met from the smaller table
            counts[larger] = max(0, pairs.rows_of(tables[larger]) - self.states)
        return counts[0], counts[1]

    def comparison(self, asked: _Asked, tables: tuple[Lookup, Lookup]) -> Comparison:
        """All of it."""
        moved, costs = int(self.kinds[MOVED]), self.by_group
        ordered = sorted(self._heap, key=lambda entry: entry[:2], reverse=True)
        total = float(costs.total.sum())
        shape = tuple(axis.cells for axis in self.said.axes)
        return Comparison(
            states=self.states, missing=self.missing, payoffs=self.payoffs, actions=moved,
            largest=self.largest, tolerance=asked.slack, worst=[item for _, _, item in ordered],
            missing_of="second" if asked.swapped else "first", decisions=int(self.decisions.sum()),
            toss_ups=int(self.kinds[TOSS_UP]), toss_ups_worst=self.tied_worst,
            one_sided=int(self.kinds[ONE_SIDED]), unpriced=int(self.kinds[UNPRICED]),
            mean=total / moved if moved else 0.0, worst_cost=float(costs.worst.max(initial=0.0)),
            quiet=self.quiet, moves=sorted(self.moves.items(), key=lambda one: (-one[1], str(one))),
            heads=tuple(column.head for column in self.said.columns), groups=self._groups(),
            turns=self.turns.found(), turns_left_out=bool(self.said.turnings) and not self.whole,
            picture=Moved(
                self.said.axes, self.cells.reshape(shape), self.by_cell.count.reshape(shape),
                self.by_cell.total.reshape(shape),
            ),
            reachable=asked.reachable, only=self._only(asked, tables),
            unfinished=(_unfinished(tables[0]), _unfinished(tables[1])),
        )  # fmt: skip

    def _groups(self) -> list[GroupDifference]:
        costs = self.by_group
        there = np.flatnonzero((self.decisions > 0) | (costs.count > 0))
        order = there[np.argsort(-costs.total[there], kind="stable")]
        return [
            GroupDifference(
                self.said.labels(k), int(self.decisions[k]), int(costs.count[k]),
                int(self.ties[k]),
                float(costs.total[k] / costs.count[k]) if costs.count[k] else 0.0,
                float(costs.worst[k]),
            )
            for k in order.tolist()
        ]  # fmt: skip


def _unfinished(table: Lookup) -> list[str]:
    """What is still to be solved of the parts that stand for a table."""
    return table.unfinished(None if table.full is None else table.full.name)


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


def _together(waiting: list[Changed]) -> Changed:
    def each(take: Callable[[Changed], NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([take(one) for one in waiting])

    return Changed(
        (each(lambda c: c.states[0]), each(lambda c: c.states[1])),
        (each(lambda c: c.best[0]), each(lambda c: c.best[1])),
        each(lambda c: c.apart), each(lambda c: c.margins),
    )  # fmt: skip
