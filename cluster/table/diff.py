"""Compare two tables of the same game: which decisions moved, and the cost of keeping the old ones.

Both tables are read once, in pieces (`cluster.table.pairs`), several at a time on several cores.
For each piece, payoffs and best actions are compared, decisions are counted by cells of a picture
and by thresholds (`solver.search.expand.classify`), and the cost of every moved decision is
computed. Results are added in the order of the pieces, so they do not depend on the size of the
pieces. In memory are some pieces, and the states on the lines of the current tier (without tiers:
of all).

The boards may differ. States are matched by their fields in users' units, so a state that is not on
the other board's grid counts as missing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.table import OnRows, nobody, pairs
from luckbase.cluster.table.comparison import (
    NEVER,
    ActionMoves,
    Comparison,
    Difference,
    Moved,
    Quiet,
    ThresholdDifference,
    threshold_difference,
)
from luckbase.cluster.table.export import WRITERS
from luckbase.cluster.table.format import as_table, nullable
from luckbase.cluster.table.frames import whole_file
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.pairs import (
    MOVED,
    NOTHING_PRICED,
    ONE_SIDED,
    TOSS_UP,
    UNPRICED,
    Changed,
    Pair,
    Priced,
    Prices,
    coded,
    names_of,
    numbered,
)
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import Groups, Threshold, groups_of
from luckbase.solver.search.expand import classify
from luckbase.solver.sentences import option


class DiffOptions(TypedDict, total=False):
    """Options of a comparison.

    worst: number of the most expensive decisions to list (10).
    sample: compare only this many states, drawn uniformly with a fixed seed.
    out: a .csv or .parquet file for all moved decisions.
    on_rows: called with the number of rows compared and the total.
    """

    worst: int
    sample: int | None
    out: str | os.PathLike[str] | None
    on_rows: OnRows


def compare(first: Lookup, second: Lookup, **options: Unpack[DiffOptions]) -> Comparison:
    """Compare two tables. Payoffs are equal if they differ by less than the sum of both tables'
    errors. Raises OptionError for tables of different games or fields, CorruptTableError."""
    sample = options.get("sample")
    out, tell = options.get("out"), options.get("on_rows", nobody)
    _check(first, second)
    slack = first.error + second.error + 1e-9
    rows = [pairs.rows_of(table) for table in (first, second)]
    if sample is not None:
        stream, total = pairs.drawn_pairs(first, second, sample), sample
    else:
        stream, total = pairs.all_pairs(first, second), min(rows)
    whole = sample is None
    groups, prices = groups_of(second.game), Prices(first, second)
    with ExitStack() as files:
        write = None if out is None else files.enter_context(changes_file(out, second.game))
        tally = _Tally(second, groups, options.get("worst", 10), write, whole)
        done = 0
        examine = partial(_examine, prices, groups, slack)
        for result in pairs.in_order(stream, examine, cores(), prices.reading):
            done += result.pair.rows
            tally.take(result)
            tell(done, total)
    only: list[int | None] = [int(tally.only[0]), int(tally.only[1])]
    larger = 0 if rows[1] < rows[0] else 1
    # For the larger table: all states that were not matched from the smaller one.
    only[larger] = max(0, rows[larger] - tally.states) if whole else None
    game = second.game
    return Comparison(
        payoff_name=game.payoff_name, chance=game.pays_chances,
        states=tally.states, missing=tally.missing, missing_of="first" if larger else "second",
        tolerance=slack,
        only=(only[0], only[1]), unfinished=(_unfinished(first), _unfinished(second)),
        **tally.comparison(),
    )  # fmt: skip


def _check(first: Lookup, second: Lookup) -> None:
    games = [table.game.board.game for table in (first, second)]
    if games[0] != games[1]:
        raise OptionError(f"a table of {games[0]} and one of {games[1]} cannot be compared")
    columns = [table.game.columns for table in (first, second)]
    if columns[0] != columns[1]:
        raise OptionError(
            f"tables with the fields {', '.join(columns[0])} and {', '.join(columns[1])} cannot "
            "be compared"
        )


def _unfinished(table: Lookup) -> list[str]:
    """Return what remains to be solved of a table, for the parts that are compared."""
    return table.unfinished(None if table.full is None else table.full.name)


# --- one piece -----------------------------------------------------------------------------------


class OnLines(NamedTuple):
    """n states on lines (`Thresholds`).

    thresholds: int64 (n,), index of the game's threshold.
    at: int64 (n,), the number that varies on the line.
    lines: uint64 (n,), the line.
    taken: bool (n, 2), whether the best action is of the threshold's kind, in each table.
    """

    thresholds: Ints
    at: Ints
    lines: NDArray[np.uint64]
    taken: NDArray[np.bool_]


class _PairResult(NamedTuple):
    """The result of comparing a pair.

    payoffs: number of states whose payoffs differ.
    largest: the largest difference.
    decisions: number of decisions.
    cells: number of decisions by cell.
    at: cell and threshold of each changed decision, int64 (n,); -1 for none.
    names: names of best actions.
    """

    pair: Pair
    payoffs: int
    largest: float
    quiet: Quiet
    decisions: int
    cells: Ints
    lines: OnLines
    changed: Changed
    priced: Priced
    at: tuple[Ints, Ints]
    names: Sequence[str]


def _examine(prices: Prices, groups: Groups, slack: float, pair: Pair) -> _PairResult:
    """Compare the rows of a pair. Thread-safe."""
    (first, second), game = pair.sides, prices.second.table.game
    n, names = len(first.best), numbered(())
    best = [np.append(coded(side.labels, names), -1)[side.best] for side in pair.sides]
    gap = np.zeros(n)
    for first_values, second_values in zip(first.values.T, second.values.T, strict=True):
        np.fmax(gap, np.abs(np.subtract(first_values, second_values, dtype=np.float64)), out=gap)
    beyond, moved = gap > slack, best[0] != best[1]
    still, quiet = beyond & ~moved, Quiet()
    if still.any():
        x = int(np.argmax(np.where(still, gap, -1.0)))
        state = game.describe(second.states(np.array([x]))[0])
        quiet = Quiet(int(still.sum()), float(gap[x]), state)
    at = np.flatnonzero(moved)
    changed = Changed(first.states(at), second.states(at), best[0][at], best[1][at], gap[at])
    stand = classify(game, second.states(np.arange(n)), groups)
    columns, rows = (axis.cells for axis in groups.axes)
    inside = (stand.x >= 0) & (stand.y >= 0) & (stand.x < columns) & (stand.y < rows)
    cells = np.where(inside, stand.x * rows + stand.y, -1)
    decided = stand.groups >= 0
    on = np.flatnonzero(stand.thresholds >= 0)
    which, takes = stand.thresholds[on], np.zeros((len(on), 2), bool)
    for t in np.unique(which).tolist():
        kind = np.array([*map(groups.thresholds[t].takes, names_of(names)), False])
        on_line = which == t
        for i in (0, 1):
            takes[on_line, i] = kind[best[i][on[on_line]]]
    return _PairResult(
        pair, int(beyond.sum()), float(gap.max(initial=0.0)), quiet,
        int(decided.sum()),
        np.bincount(cells[decided] + 1, minlength=groups.cells + 1)[1:],
        OnLines(which, stand.at[on], stand.lines[on], takes), changed,
        prices.priced(changed, names_of(names)),
        (cells[at], stand.thresholds[at]), names_of(names),
    )  # fmt: skip


# --- all of them ---------------------------------------------------------------------------------


class _Tally:
    def __init__(
        self, second: Lookup, groups: Groups, worst: int, write: Write | None, whole: bool
    ) -> None:
        """worst: number of the most expensive decisions to keep. whole: all states are compared, so
        lines of thresholds are complete."""
        self.game, self.groups, self.write, self.whole = second.game, groups, write, whole
        self.states = self.missing = self.payoffs = self.unpriced = 0
        self.only = np.zeros(2, np.int64)
        self.largest, self.toss_ups_worst = 0.0, 0.0
        self.quiet = Quiet()
        self.decisions = 0
        self.cells = np.zeros(groups.cells, np.int64)
        self.kinds = np.zeros(4, np.int64)
        self.costs, self.by_cell = _Costs(1), _Costs(groups.cells)
        self.by_threshold = _Costs(len(groups.thresholds))
        self.on_lines = np.zeros(len(groups.thresholds), np.int64)
        self.thresholds = Thresholds(groups.thresholds)
        self.moves: Counter[tuple[str | None, str | None]] = Counter()
        self.move_costs: dict[tuple[str | None, str | None], tuple[float, int]] = {}
        self.worst, self._max_worst = list[Difference](), worst
        self._tier: int | None = None

    def take(self, result: _PairResult) -> None:
        pair, states = result.pair, len(result.pair.sides[0].best)
        if pair.tier is not None and pair.tier != self._tier:
            self.thresholds.close()
            self._tier = pair.tier
        if self.whole:
            self.thresholds.take(result.lines)
            self.on_lines += np.bincount(result.lines.thresholds, minlength=len(self.on_lines))
        self.states += states
        self.missing += pair.rows - states
        self.only += pair.only
        self.payoffs += result.payoffs
        self.largest = max(self.largest, result.largest)
        worse = max(self.quiet, result.quiet, key=lambda quiet: quiet.largest)
        self.quiet = replace(worse, states=self.quiet.states + result.quiet.states)
        self.decisions += result.decisions
        self.cells += result.cells
        if len(result.changed.apart):
            self._take_changed(result)

    def _take_changed(self, result: _PairResult) -> None:
        changed, priced, (cells, thresholds) = result.changed, result.priced, result.at
        free = (priced.kind == MOVED) & np.isnan(priced.cost)
        self.unpriced += int(free.sum())
        if self.write is not None:
            self.write(changed, priced, result.names)
        moved, tied = priced.kind == MOVED, priced.kind == TOSS_UP
        self.kinds += np.bincount(priced.kind, minlength=4)
        self.costs.take(np.zeros(len(moved), np.int64), priced.cost, moved)
        self.by_cell.take(cells, priced.cost, moved)
        self.by_threshold.take(thresholds, priced.cost, moved)
        worst = float(np.max(priced.cost, where=tied, initial=0.0))
        self.toss_ups_worst = max(self.toss_ups_worst, worst)
        best, names = np.stack([changed.best_first, changed.best_second], axis=1), result.names

        def named(codes: Ints) -> tuple[str | None, str | None]:
            first, second = (names[code] if code >= 0 else None for code in codes.tolist())
            return first, second

        pairs, which = np.unique(best[moved], axis=0, return_inverse=True)
        for k, move in enumerate(map(named, pairs)):
            costs = priced.cost[moved][which.reshape(-1) == k]
            self.moves[move] += len(costs)
            costs = costs[~np.isnan(costs)]
            total, count = self.move_costs.get(move, (0.0, 0))
            self.move_costs[move] = float(np.cumsum([total, *costs])[-1]), count + len(costs)
        at = np.flatnonzero(moved)
        at = at[np.argsort(-priced.cost[at], kind="stable")][: self._max_worst]
        self.worst += [
            Difference(
                self.game.describe(changed.second[x]), float(changed.apart[x]), named(best[x]),
                float(priced.cost[x]), int(priced.actors[x]) + 1,
            )
            for x in at.tolist()
        ]  # fmt: skip
        # Ties stay in order of occurrence; unknown costs come last.
        self.worst.sort(key=lambda each: (each.cost != each.cost, -each.cost))
        del self.worst[self._max_worst :]

    def comparison(self) -> dict[str, Any]:
        moved, groups = int(self.kinds[MOVED]), self.groups
        moves = sorted(self.moves.items(), key=lambda each: (-each[1], str(each)))
        shape = [axis.cells for axis in groups.axes]
        return {
            "payoffs": self.payoffs, "largest": self.largest, "actions": moved,
            "decisions": self.decisions, "toss_ups": int(self.kinds[TOSS_UP]),
            "toss_ups_worst": self.toss_ups_worst, "one_sided": int(self.kinds[ONE_SIDED]),
            "unpriced": int(self.kinds[UNPRICED]) + self.unpriced, "quiet": self.quiet,
            "mean": self.costs.mean(0),
            "worst_cost": _mean(
                float(self.costs.worst[0]), min(1, moved - self.unpriced), moved
            ),
            "worst": self.worst,
            "moves": [
                ActionMoves(*names, count, _mean(*self.move_costs[names], count))
                for names, count in moves
            ],
            "thresholds": [
                replace(
                    each, decisions=int(self.on_lines[k]), changed=int(self.by_threshold.count[k]),
                    mean=self.by_threshold.mean(k),
                )
                for k, each in self.thresholds.differences()
            ],
            "thresholds_left_out": bool(groups.thresholds) and not self.whole,
            "picture": Moved(
                groups.axes, self.cells.reshape(shape), self.by_cell.count.reshape(shape),
                self.by_cell.total.reshape(shape),
            ),
        }  # fmt: skip


class _Costs:
    """Number, sum and maximum of costs, by code. Sums are taken state by state, so they do not
    depend on the size of pieces."""

    def __init__(self, codes: int) -> None:
        self.count, self.priced = np.zeros(codes, np.int64), np.zeros(codes, np.int64)
        self.total, self.worst = np.zeros(codes), np.zeros(codes)

    def take(self, codes: Ints, costs: Floats, which: NDArray[np.bool_]) -> None:
        """Add the costs (n,) of the selected states (n,) with a code (n,)."""
        which = which & (codes >= 0)
        np.add.at(self.count, codes[which], 1)
        which &= ~np.isnan(costs)  # payoffs are not stored there
        at = codes[which]
        np.add.at(self.priced, at, 1)
        np.add.at(self.total, at, costs[which])
        np.maximum.at(self.worst, at, costs[which])

    def mean(self, code: int) -> float:
        return _mean(float(self.total[code]), int(self.priced[code]), int(self.count[code]))


def _mean(total: float, priced: int, count: int) -> float:
    """Return the mean known cost of `count` decisions; NaN if none is known, 0 without
    decisions."""
    if not count:
        return 0.0
    return total / priced if priced else np.nan


class Thresholds:
    """Thresholds of decisions, computed line by line from data.

    A *line* is the set of a threshold's states (`solver.game.groups`) that differ in only one
    number. Its threshold is the smallest number from which the best action is always of the
    threshold's kind; "never" if it is not so at the largest number. States are collected, 26 bytes
    each, until their lines are complete.
    """

    def __init__(self, thresholds: Sequence[Threshold]) -> None:
        self.thresholds = thresholds
        self._waiting: list[OnLines] = []
        self._counts: Counter[tuple[int, int, int]] = Counter()

    def take(self, states: OnLines) -> None:
        """Add states; those of a line may come in any order."""
        if len(states.at):
            self._waiting.append(states)

    def close(self) -> None:
        """Process the collected states: all their lines are complete."""
        if not self._waiting:
            return
        columns = [np.concatenate(column) for column in zip(*self._waiting, strict=True)]
        self._waiting = []
        order = np.lexsort((columns[1], columns[2], columns[0]))
        which, at, lines, takes = (column[order] for column in columns)
        new = np.ones(len(at), bool)
        new[1:] = (lines[1:] != lines[:-1]) | (which[1:] != which[:-1])
        starts = np.flatnonzero(new)
        each = [_least(at, takes[:, i], starts) for i in (0, 1)]
        rows, counts = np.unique(
            np.stack([which[starts], *each], axis=1), axis=0, return_counts=True
        )
        for row, count in zip(map(tuple, rows.tolist()), counts.tolist(), strict=True):
            self._counts[row] += count

    def differences(self) -> Iterator[tuple[int, ThresholdDifference]]:
        """Yield (index of the threshold, its difference), in the game's order."""
        self.close()
        for which in sorted({row[0] for row in self._counts}):
            counts = {row[1:]: n for row, n in self._counts.items() if row[0] == which}
            yield which, threshold_difference(self.thresholds[which], counts)


def _least(at: Ints, takes: NDArray[np.bool_], starts: Ints) -> Ints:
    """Return each line's threshold; `at` ascends on the lines, which begin at `starts`."""
    n = len(at)
    line = np.repeat(np.arange(len(starts)), np.diff([*starts, n]))
    last = np.full(len(starts), -1, np.int64)  # last state of each line that is not of the kind
    others = np.flatnonzero(~takes)
    last[line[others]] = others  # with several, the last write wins
    first = np.where(last < 0, starts, last + 1)
    return np.where(first < np.append(starts[1:], n), at[np.minimum(first, n - 1)], NEVER)


# --- the decisions that moved, in a file ---------------------------------------------------------

Write = Callable[[Changed, Priced, Sequence[str]], None]
"""write(changed, priced, names of actions): writes more decisions."""
ENDINGS = (".csv", ".parquet")


@contextmanager
def changes_file(out: str | os.PathLike[str], game: Game) -> Iterator[Write]:
    """Yield a function that writes moved decisions to a file. The file appears when the context
    ends without an error.

    Columns: the state as in the second table; ``to_act``; ``best_first``, ``best_second``; ``old``
    and ``new``, the payoffs of the two actions to the player who acts, in the second table;
    ``cost``, null if unknown; ``toss_up``; ``payoffs_apart``.

    Raises OptionError for another suffix or a file that cannot be written; OSError, naming the
    file, if the disk is full.
    """
    ending = Path(out).suffix.lower()
    if ending not in ENDINGS:
        raise OptionError(f"{option('out')}: {out}: end it in {' or '.join(ENDINGS)}")
    codes, no = np.empty(0, np.int64), np.empty(0)
    states = np.empty((0, game.field_count), np.int64)
    nothing = Changed(states, states, codes, codes, no)
    schema = _change_rows(game, nothing, NOTHING_PRICED, ()).schema
    with whole_file(os.fspath(out)) as file, WRITERS[ending[1:]](file, schema) as write:

        def write_rows(*rows: Any) -> None:
            for batch in _change_rows(game, *rows).to_batches():
                write(batch)

        yield write_rows


def _change_rows(game: Game, changed: Changed, priced: Priced, names: Sequence[str]) -> pa.Table:
    state, labels = as_table(dict(game.table_columns(changed.second))), pa.array([*names, None])
    columns = {
        name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(state.column_names, state.columns, strict=True)
    }
    best_first, best_second = (
        labels.cast(pa.string()).take(pa.array(np.where(best < 0, len(names), best)))
        for best in (changed.best_first, changed.best_second)
    )
    return pa.table(columns | {
        "to_act": pa.array((priced.actors + 1).astype(np.int8)),
        "best_first": best_first, "best_second": best_second,
        "old": nullable(priced.old), "new": nullable(priced.new), "cost": nullable(priced.cost),
        "toss_up": pa.array(priced.kind == TOSS_UP), "payoffs_apart": pa.array(changed.apart),
    })  # fmt: skip
