"""Compare two tables of the same game: which decisions moved, and the cost of keeping the old ones.

Both tables are read once, a row group at a time (`cluster.answers.pairs`). Payoffs and best actions
are compared, decisions are counted by cells of a picture and by thresholds
(`solver.search.expand.classify`), and the cost of every moved decision is computed. Sums are taken
state by state at the end, so they do not depend on the row groups. Memory holds 22 bytes for each
moved decision, and 26 for each state on a threshold's line in the current tier (without tiers: of
all).

The boards may differ. States are matched by their fields in users' units, so a state that is not on
the other board's grid counts as missing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster import notebook
from luckbase.cluster.answers import pairs
from luckbase.cluster.answers.comparison import (
    NEVER,
    ActionMoves,
    Comparison,
    Difference,
    Moved,
    Quiet,
    ThresholdDifference,
    threshold_difference,
)
from luckbase.cluster.answers.export import WRITERS
from luckbase.cluster.answers.frames import whole_file
from luckbase.cluster.answers.lookup import Lookup
from luckbase.cluster.answers.pairs import (
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
from luckbase.cluster.store import OnRows
from luckbase.cluster.store.format import as_table, nullable
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
    errors.

    Raises OptionError for tables of different games or fields, CorruptTableError.
    """
    sample = options.get("sample")
    out, tell = options.get("out"), options.get("on_rows", notebook.on_rows)
    _check(first, second)
    game, slack = second.game, first.error + second.error + 1e-9
    rows = [pairs.rows_of(table) for table in (first, second)]
    if sample is not None:
        stream, total = pairs.drawn_pairs(first, second, sample), sample
    else:
        stream, total = pairs.all_pairs(first, second), min(rows)
    whole = sample is None
    with ExitStack() as files:
        write = None if out is None else files.enter_context(changes_file(out, game))
        tally = _Tally(Prices(first, second), options.get("worst", 10), write, whole, slack)
        for pair in stream:
            tally.take(pair)
            tell(tally.states + tally.missing, total)
    only: list[int | None] = [int(tally.only[0]), int(tally.only[1])]
    larger = 0 if rows[1] < rows[0] else 1
    # In the larger table: all states that were not found from the smaller one.
    only[larger] = max(0, rows[larger] - tally.states) if whole else None
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


# --- counting ------------------------------------------------------------------------------------


class OnLines(NamedTuple):
    """n states on lines of thresholds (`Thresholds`).

    thresholds: int64 (n,), index of the game's threshold.
    at: int64 (n,), the number that varies on the line.
    lines: uint64 (n,), the line.
    taken: bool (n, 2), whether the best action is of the threshold's kind, in each table.
    """

    thresholds: Ints
    at: Ints
    lines: NDArray[np.uint64]
    taken: NDArray[np.bool_]


class _Differing(NamedTuple):
    """n decisions whose best actions differ.

    kind: int8 (n,), `MOVED` and so on. cell, threshold: int32 and int16 (n,), -1 for none.
    best: int16 (n, 2), numbers of actions. cost: float64 (n,), NaN if unknown.
    """

    kind: NDArray[np.int8]
    cell: NDArray[np.int32]
    threshold: NDArray[np.int16]
    best: NDArray[np.int16]
    cost: Floats


_NOTHING = _Differing(
    np.empty(0, np.int8), np.empty(0, np.int32), np.empty(0, np.int16), np.empty((0, 2), np.int16),
    np.empty(0),
)  # fmt: skip


class _Tally:
    """The results of all pairs."""

    def __init__(
        self, prices: Prices, worst: int, write: Write | None, whole: bool, slack: float
    ) -> None:
        """worst: number of decisions to keep. whole: all states are compared, so lines are
        complete. slack: payoffs closer than this are equal."""
        self.prices, self.write, self.whole, self.slack = prices, write, whole, slack
        self.game = prices.second.game
        self.groups: Groups = groups_of(self.game)
        self.names = numbered(())
        self.states = self.missing = self.payoffs = self.decisions = 0
        self.only, self.largest, self.quiet = np.zeros(2, np.int64), 0.0, Quiet()
        self.cells = np.zeros(self.groups.cells, np.int64)
        self.on_lines = np.zeros(len(self.groups.thresholds), np.int64)
        self.thresholds = Thresholds(self.groups.thresholds)
        self.differing = [_NOTHING]
        self.worst, self._max_worst = list[Difference](), worst
        self._tier: int | None = None

    def take(self, pair: Pair) -> None:
        """Compare the rows of a pair."""
        if pair.tier is not None and pair.tier != self._tier:
            self.thresholds.close()
            self._tier = pair.tier
        first, second = pair.sides
        n = len(first.best)
        self.states += n
        self.missing += pair.rows - n
        self.only += pair.only
        best = [np.append(coded(side.labels, self.names), -1)[side.best] for side in pair.sides]
        gap = np.zeros(n)
        for values in zip(first.values.T, second.values.T, strict=True):
            np.fmax(gap, np.abs(np.subtract(*values, dtype=np.float64)), out=gap)
        beyond, moved = gap > self.slack, best[0] != best[1]
        self.payoffs += int(beyond.sum())
        self.largest = max(self.largest, float(gap.max(initial=0.0)))
        self._take_quiet(pair, np.where(beyond & ~moved, gap, -1.0))
        stand = classify(self.game, second.states(np.arange(n)), self.groups)
        columns, rows = (axis.cells for axis in self.groups.axes)
        inside = (stand.x >= 0) & (stand.y >= 0) & (stand.x < columns) & (stand.y < rows)
        cells = np.where(inside, stand.x * rows + stand.y, -1)
        decided = stand.groups >= 0
        self.decisions += int(decided.sum())
        self.cells += np.bincount(cells[decided] + 1, minlength=self.groups.cells + 1)[1:]
        if self.whole:
            self._take_lines(stand, best)
        at = np.flatnonzero(moved)
        if len(at):
            changed = Changed(first.states(at), second.states(at), best[0][at], best[1][at],
                              gap[at])  # fmt: skip
            self._take_changed(changed, cells[at], stand.thresholds[at])

    def _take_quiet(self, pair: Pair, gap: Floats) -> None:
        """Record payoffs that differ, by `gap` (n,), with the same best action; -1 if they do
        not."""
        count = int((gap >= 0).sum())
        worst = self.quiet
        if count and gap.max() > worst.largest:
            x = int(np.argmax(gap))
            state = self.game.describe(pair.sides[1].states(np.array([x]))[0])
            worst = Quiet(0, float(gap[x]), state)
        self.quiet = replace(worst, states=self.quiet.states + count)

    def _take_lines(self, stand: Any, best: Sequence[Ints]) -> None:
        on = np.flatnonzero(stand.thresholds >= 0)
        which, takes = stand.thresholds[on], np.zeros((len(on), 2), bool)
        self.on_lines += np.bincount(which, minlength=len(self.on_lines))
        for t in np.unique(which).tolist():
            kinds = [*map(self.groups.thresholds[t].takes, names_of(self.names)), False]
            on_line = which == t
            for i in (0, 1):
                takes[on_line, i] = np.array(kinds)[best[i][on[on_line]]]
        self.thresholds.take(OnLines(which, stand.at[on], stand.lines[on], takes))

    def _take_changed(self, changed: Changed, cells: Ints, thresholds: Ints) -> None:
        names = names_of(self.names)
        priced = self.prices.priced(changed, names)
        if self.write is not None:
            self.write(changed, priced, names)
        best = np.stack([changed.best_first, changed.best_second], axis=1)
        self.differing.append(_Differing(
            priced.kind, cells.astype(np.int32), thresholds.astype(np.int16),
            best.astype(np.int16), priced.cost,
        ))  # fmt: skip
        at = np.flatnonzero(priced.kind == MOVED)
        at = at[np.argsort(-priced.cost[at], kind="stable")][: self._max_worst]
        self.worst += [
            Difference(
                self.game.describe(changed.second[x]), float(changed.apart[x]),
                self._named(best[x]), float(priced.cost[x]), int(priced.actors[x]) + 1,
            )
            for x in at.tolist()
        ]  # fmt: skip
        # Of equal ones the earliest; those without a cost last.
        self.worst.sort(key=lambda each: (each.cost != each.cost, -each.cost))
        del self.worst[self._max_worst :]

    def _named(self, best: Ints) -> tuple[str | None, str | None]:
        names = [*names_of(self.names), None]
        return names[best[0]], names[best[1]]

    def comparison(self) -> dict[str, Any]:
        """Return the fields of `Comparison` that come from pairs."""
        groups = self.groups
        kind, *columns = map(np.concatenate, zip(*self.differing, strict=True))
        kinds, tied = np.bincount(kind, minlength=4), columns[-1][kind == TOSS_UP]
        cell, threshold, best, cost = (column[kind == MOVED] for column in columns)
        on = cell >= 0
        shape = [axis.cells for axis in groups.axes]
        count = np.bincount(cell[on], minlength=groups.cells)
        total = np.bincount(cell[on], np.nan_to_num(cost[on]), groups.cells)
        moves = []
        for pair in np.unique(best, axis=0):
            same = cost[(best == pair).all(axis=1)]
            moves.append(ActionMoves(*self._named(pair), len(same), _known(np.mean, same)))
        return {
            "payoffs": self.payoffs, "largest": self.largest, "actions": len(cost),
            "decisions": self.decisions, "toss_ups": len(tied),
            "toss_ups_worst": float(np.nanmax(tied, initial=0.0)),
            "one_sided": int(kinds[ONE_SIDED]),
            "unpriced": int(kinds[UNPRICED]) + int(np.isnan(cost).sum()), "quiet": self.quiet,
            "mean": _known(np.mean, cost), "worst_cost": _known(np.max, cost), "worst": self.worst,
            "moves": sorted(moves, key=lambda m: (-m.decisions, str((m.first, m.second)))),
            "thresholds": [
                replace(each, decisions=int(self.on_lines[k]), changed=int((threshold == k).sum()),
                        mean=_known(np.mean, cost[threshold == k]))
                for k, each in self.thresholds.differences()
            ],
            "thresholds_left_out": bool(groups.thresholds) and not self.whole,
            "picture": Moved(
                groups.axes, self.cells.reshape(shape), count.reshape(shape),
                total.reshape(shape).astype(np.float64),
            ),
        }  # fmt: skip


def _known(aggregate: Callable[[Floats], Any], costs: Floats) -> float:
    """Return an aggregate of the known costs: NaN if none is known, 0 if there are none."""
    known = costs[~np.isnan(costs)]
    return float(aggregate(known)) if len(known) else np.nan if len(costs) else 0.0


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
        """Add states; the states of a line may come in any order."""
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
    last = np.full(len(starts), -1, np.int64)  # the last of a line that is of another kind
    others = np.flatnonzero(~takes)
    last[line[others]] = others  # of several the last is written last
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
