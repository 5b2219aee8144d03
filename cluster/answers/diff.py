"""Compare two tables of the same game: which decisions moved, and the cost of keeping the old ones.

The smaller table is read once, a row group at a time, and its states are looked up in the other
one. Payoffs and best actions are compared, decisions are counted by cells of a picture and by
thresholds (`solver.search.expand.classify`), and the cost of every moved decision is computed. Sums
are taken state by state at the end, so they do not depend on the row groups. Memory holds 22 bytes
for each moved decision, and 26 for each state on a threshold's line in the current tier (without
tiers: of all).

At a state x whose best action is a in the first table and b in the second, with the payoffs q of
the second to the player who decides::

    cost(x) = q(x, b) - q(x, a)  >= 0

If some action is best in both tables, within their errors, the decision is a toss-up. Otherwise it
moved.

The boards may differ. States are matched by their fields in users' units, so a state that is not on
the other board's grid counts as missing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster import notebook
from luckbase.cluster.answers.actions import every_action
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
from luckbase.cluster.answers.files import WRITERS, whole_file
from luckbase.cluster.answers.lookup import Lookup
from luckbase.cluster.answers.part_kinds import TierPart
from luckbase.cluster.answers.parts import Part
from luckbase.cluster.store import OnRows
from luckbase.cluster.store.format import as_table, nullable
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import Groups, groups_of
from luckbase.solver.search.expand import classify
from luckbase.solver.sentences import option


def compare(
    first: Lookup, second: Lookup, worst: int = 10, sample: int | None = None,
    out: str | os.PathLike[str] | None = None, on_rows: OnRows = notebook.on_rows,
) -> Comparison:  # fmt: skip
    """Compare two tables (`cluster.answers.table.Table.diff`). Payoffs are equal if they differ by
    less than the sum of both tables' errors.

    Raises OptionError for tables of different games or fields, CorruptTableError.
    """
    tables, game = (first, second), second.game
    _check_comparable(first.game, game)
    rows = [sum(part.rows for part in parts_of(table)) for table in tables]
    swapped, complete = rows[1] < rows[0], sample is None
    slack = first.error + second.error + 1e-9
    with ExitStack() as files:
        write = None if out is None else files.enter_context(changes_file(out, game))
        tally = _Tally(tables, worst, write, complete, slack)
        for pair in _pairs(tables, swapped, sample):
            tally.take(*pair)
            on_rows(tally.states + tally.missing, min(rows) if sample is None else sample)
    # In the larger table: all states that were not found from the smaller one.
    unmatched = max(0, max(rows) - tally.states) if complete else None
    unfinished = [
        table.unfinished(None if table.full is None else table.full.name) for table in tables
    ]
    return Comparison(
        payoff_name=game.payoff_name, chance=game.pays_chances,
        states=tally.states, missing=tally.missing, missing_of="second" if swapped else "first",
        tolerance=slack, only=(unmatched, tally.missing) if swapped else (tally.missing, unmatched),
        unfinished=(unfinished[0], unfinished[1]), **tally.comparison(),
    )  # fmt: skip


def _check_comparable(first: Game, second: Game) -> None:
    games = first.board.game, second.board.game
    if games[0] != games[1]:
        raise OptionError(f"a table of {games[0]} and one of {games[1]} cannot be compared")
    if first.columns != second.columns:
        raise OptionError(
            f"tables with the fields {', '.join(first.columns)} and {', '.join(second.columns)} "
            "cannot be compared"
        )


# --- the states of both --------------------------------------------------------------------------


class Side(NamedTuple):
    """The rows of canonical states (n, fields) in a table; NaN for payoffs that it lacks. best:
    indices into `labels`, -1 for none."""

    states: Ints
    values: Floats
    best: NDArray[np.int16]
    labels: list[str]


Pair = tuple[int, Side, Side, int | None]
"""Number of states of the smaller table that were looked at; the rows, in the first and the second
table, of those that both have; the number of their tier, or None without tiers. All pairs of a tier
follow each other."""


def parts_of(table: Lookup) -> list[Part]:
    """Return the parts that are compared: the full table, or all parts if there is none."""
    if table.full is None:
        return table.parts
    return [part for part in table.parts if part is table.full or part is table.decided]


def _pairs(tables: tuple[Lookup, Lookup], swapped: bool, sample: int | None) -> Iterator[Pair]:
    """Yield every state of the smaller table, or a sample, always the same. swapped: the second is
    smaller."""
    small, large = tables[::-1] if swapped else tables
    for states, tier in _states(small, sample):
        there, both = large.game.known_states(small.game.fields.values(states))
        stored = large.holds(there) if len(there) else np.zeros(0, bool)
        both[both] = stored
        sides = _side(small, states[both]), _side(large, there[stored])
        yield len(states), *(sides[::-1] if swapped else sides), tier


AT_ONCE = 1 << 16
"""Maximum number of states compared at once."""


def _states(table: Lookup, sample: int | None) -> Iterator[tuple[Ints, int | None]]:
    """Yield the states of all rows, or of a sample, with the number of their tier."""
    if sample is not None:
        yield from ((states, None) for states in table.draw(sample, 0))
        return
    for part in parts_of(table):
        for i, entry in enumerate(part.entries):
            tier = entry.tier if isinstance(part, TierPart) else None
            step = min(entry.row_group_rows, AT_ONCE)
            for start in range(0, entry.rows, step):
                yield part.states_at(i, np.arange(start, min(start + step, entry.rows))), tier


def _side(table: Lookup, states: Ints) -> Side:
    values, paid = table.get_many(states)
    values[~paid] = np.nan
    return Side(states, values, *table.best_codes(states))


# --- what a decision costs -----------------------------------------------------------------------

MOVED, TOSS_UP, ONE_SIDED = range(3)
"""Kinds of decisions that differ: moved, with a cost if payoffs are stored; a toss-up; a decision
in one table only, or whose old action the second table does not allow."""


class Changed(NamedTuple):
    """n states whose best actions differ, priced by the payoffs of the second table."""

    states: Ints  # int64 (n, fields), in the second game
    best: Ints  # int64 (n, 2), numbers of the best actions in each table, -1 for none
    apart: Floats  # float64 (n,), the difference of the tables' payoffs
    kind: NDArray[np.int8]  # int8 (n,), `MOVED` and so on
    to_act: Ints  # int64 (n,), the player who decides in the second table, from 1; 0 for none
    old: Floats
    new: Floats
    """float64 (n,), payoffs to that player of the two best actions; NaN if unknown."""

    @property
    def cost(self) -> Floats:
        """The costs (n,) of the first table's decisions; NaN if unknown."""
        return np.maximum(self.new - self.old, 0.0)


Names = dict[str, int]
"""The names of actions, numbered from 0 in the order of their first use."""


def _codes(numbers: Names, names: Iterable[str]) -> Ints:
    """Return the numbers of names; new names are added."""
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)


def priced(
    tables: tuple[Lookup, Lookup], states: tuple[Ints, Ints], best: Ints, apart: Floats,
    names: Names,
) -> Changed:  # fmt: skip
    """Price the first table's decisions. states: in each game; best, apart: as in `Changed`."""
    second = _Actions(tables[1], states[1], names)
    old, new = (second.payoffs(best[:, i]) for i in (0, 1))
    good = second.pairs(np.arange(len(old)))[second.good]
    kind = np.full(len(old), MOVED, np.int8)
    kind[np.isin(_with_action(np.arange(len(old)), best[:, 0]), good)] = TOSS_UP
    unsure = np.flatnonzero(kind == MOVED)
    if len(unsure):
        first = _Actions(tables[0], states[0][unsure], names)
        both = first.good & np.isin(first.pairs(unsure), good)
        kind[unsure[first.owner[both]]] = TOSS_UP
    beyond = np.isnan(second.values)  # only the best action is stored
    kind[(best < 0).any(axis=1) | (np.isnan(old) & ~beyond)] = ONE_SIDED
    old[beyond | (kind == ONE_SIDED)] = np.nan
    return Changed(states[1], best, apart, kind, second.to_act, old, new)


def _with_action(states: Ints, actions: Ints) -> Ints:
    """Return (state, action) as one number each; an action is below 2^40."""
    return states * (1 << 40) + actions


class _Actions:
    """Every action of n states of a table, k in all.

    values: float64 (n,), payoffs of the states to player 1; NaN if not stored.
    to_act: int64 (n,), from 1; 0 for none.
    owner: int64 (k,), the state of each action.
    named: int64 (k,), the number of its name.
    to_actor: float64 (k,), its payoff to the player who acts.
    good: bool (k,), whether that is as good as the best of its state, within the error.
    """

    def __init__(self, table: Lookup, states: Ints, names: Names) -> None:
        """names: new names are added."""
        actions, _ = every_action(table, states)
        self.values, self.to_act = actions.values[:, 0], actions.to_act
        self.owner = np.repeat(np.arange(len(states)), np.diff(actions.first))
        self.named = _codes(names, actions.names)[actions.named]
        seats = np.maximum(actions.to_act - 1, 0)[self.owner]
        self.to_actor = actions.q[np.arange(len(seats)), seats]
        top = np.full(len(states), -np.inf)
        np.maximum.at(top, self.owner, self.to_actor)
        self.good = self.to_actor >= top[self.owner] - table.tolerance

    def pairs(self, numbers: Ints) -> Ints:
        """Return each action (k,) with the number (n,) of its state."""
        return _with_action(numbers[self.owner], self.named)

    def payoffs(self, actions: Ints) -> Floats:
        """Return the payoffs (n,) of an action of each state to the actor; NaN if not allowed."""
        payoffs = np.full(len(actions), np.nan)
        rows = np.flatnonzero(self.named == actions[self.owner])
        payoffs[self.owner[rows]] = self.to_actor[rows]
        return payoffs


# --- counting ------------------------------------------------------------------------------------


class _Tally:
    """The results of all pairs.

    worst: number of decisions to keep.
    complete: all states are compared, so lines are complete.
    slack: payoffs closer than this are equal.
    """

    def __init__(
        self, tables: tuple[Lookup, Lookup], worst: int, write: Write | None, complete: bool,
        slack: float,
    ) -> None:  # fmt: skip
        self.tables, self.write, self.complete, self.slack = tables, write, complete, slack
        self.game = tables[1].game
        self.groups: Groups = groups_of(self.game)
        self.names: Names = {}
        self.states = self.missing = self.payoffs = self.decisions = 0
        self.largest, self.quiet = 0.0, Quiet()
        self.cells = np.zeros(self.groups.cells, np.int64)
        self.on_lines = np.zeros(len(self.groups.thresholds), np.int64)
        self.waiting = list[tuple[NDArray[Any], ...]]()
        self.lines: Counter[tuple[int, int, int]] = Counter()
        # Of each decision that differs: kind; cell and threshold, -1 for none; best; cost.
        self.differing: list[tuple[NDArray[Any], ...]] = [(
            np.empty(0, np.int8), np.empty(0, np.int32), np.empty(0, np.int16),
            np.empty((0, 2), np.int16), np.empty(0),
        )]  # fmt: skip
        self.worst, self._max_worst = list[Difference](), worst
        self._tier: int | None = None

    def take(self, rows: int, first: Side, second: Side, tier: int | None) -> None:
        """Compare the rows of a `Pair`."""
        if tier is not None and tier != self._tier:
            self._close_lines()
            self._tier = tier
        n = len(first.best)
        self.states += n
        self.missing += rows - n
        codes = [np.append(_codes(self.names, s.labels), -1)[s.best] for s in (first, second)]
        best, gap = np.stack(codes, axis=1), np.zeros(n)
        for values in zip(first.values.T, second.values.T, strict=True):
            np.fmax(gap, np.abs(np.subtract(*values, dtype=np.float64)), out=gap)
        beyond, moved = gap > self.slack, best[:, 0] != best[:, 1]
        self.payoffs += int(beyond.sum())
        self.largest = max(self.largest, float(gap.max(initial=0.0)))
        self._take_quiet(second.states, np.where(beyond & ~moved, gap, -1.0))
        stand = classify(self.game, second.states, self.groups)
        width, height = (axis.cells for axis in self.groups.axes)
        inside = (stand.x >= 0) & (stand.y >= 0) & (stand.x < width) & (stand.y < height)
        cells = np.where(inside, stand.x * height + stand.y, -1)
        decided = stand.groups >= 0
        self.decisions += int(decided.sum())
        self.cells += np.bincount(cells[decided] + 1, minlength=self.groups.cells + 1)[1:]
        if self.complete:
            self._take_lines(stand, best)
        at = np.flatnonzero(moved)
        if len(at):
            states = first.states[at], second.states[at]
            changed = priced(self.tables, states, best[at], gap[at], self.names)
            self._take_changed(changed, cells[at], stand.thresholds[at])

    def _take_quiet(self, states: Ints, gap: Floats) -> None:
        """Record payoffs that differ, by `gap` (n,), with the same best action; -1 if they do
        not."""
        count, worst = int((gap >= 0).sum()), self.quiet
        if count and gap.max() > worst.largest:
            x = int(np.argmax(gap))
            worst = Quiet(0, float(gap[x]), self.game.describe(states[x]))
        self.quiet = replace(worst, states=self.quiet.states + count)

    def _take_lines(self, stand: Any, best: Ints) -> None:
        """Collect the states on lines of thresholds: threshold, number, line, and whether the best
        action is of the threshold's kind, in each table."""
        on = np.flatnonzero(stand.thresholds >= 0)
        which, takes = stand.thresholds[on], np.zeros((len(on), 2), bool)
        self.on_lines += np.bincount(which, minlength=len(self.on_lines))
        for t in np.unique(which).tolist():
            kinds = np.array([*map(self.groups.thresholds[t].takes, self.names), False])
            takes[which == t] = kinds[best[on[which == t]]]
        if len(on):
            self.waiting.append((which, stand.at[on], stand.lines[on], takes))

    def _close_lines(self) -> None:
        """Count the collected lines, which are complete, by their thresholds in each table.

        A *line* is the set of a threshold's states (`solver.game.groups`) that differ in only one
        number. Its threshold is the smallest number from which the best action is always of the
        threshold's kind; "never" if it is not so at the largest number.
        """
        if not self.waiting:
            return
        columns = [np.concatenate(column) for column in zip(*self.waiting, strict=True)]
        self.waiting = []
        order = np.lexsort((columns[1], columns[2], columns[0]))
        which, at, lines, takes = (column[order] for column in columns)
        new = np.ones(len(at), bool)
        new[1:] = (lines[1:] != lines[:-1]) | (which[1:] != which[:-1])
        starts = np.flatnonzero(new)
        each = [which[starts], *(_least(at, takes[:, i], starts) for i in (0, 1))]
        rows, counts = np.unique(np.stack(each, axis=1), axis=0, return_counts=True)
        for row, count in zip(map(tuple, rows.tolist()), counts.tolist(), strict=True):
            self.lines[row] += count

    def _take_changed(self, changed: Changed, cells: Ints, thresholds: Ints) -> None:
        cost = changed.cost
        if self.write is not None:
            self.write(changed, self.names)
        self.differing.append((
            changed.kind, cells.astype(np.int32), thresholds.astype(np.int16),
            changed.best.astype(np.int16), cost,
        ))  # fmt: skip
        at = np.flatnonzero(changed.kind == MOVED)
        at = at[np.argsort(-cost[at], kind="stable")][: self._max_worst]
        self.worst += [
            Difference(
                self.game.describe(changed.states[x]), float(changed.apart[x]),
                self._pair(changed.best[x]), float(cost[x]), int(changed.to_act[x]),
            )
            for x in at.tolist()
        ]  # fmt: skip
        # Of equal ones the earliest; those without a cost last.
        self.worst.sort(key=lambda each: (each.cost != each.cost, -each.cost))
        del self.worst[self._max_worst :]

    def _pair(self, codes: Ints) -> tuple[str | None, str | None]:
        """Return two actions by their numbers; None for -1."""
        names = [*self.names, None]
        return names[codes[0]], names[codes[1]]

    def comparison(self) -> dict[str, Any]:
        """Return the fields of `Comparison` that come from pairs."""
        kind, *columns = map(np.concatenate, zip(*self.differing, strict=True))
        tied = columns[-1][kind == TOSS_UP]
        cell, threshold, best, cost = (column[kind == MOVED] for column in columns)
        on, size = cell >= 0, self.groups.cells
        shape = [axis.cells for axis in self.groups.axes]
        count = np.bincount(cell[on], minlength=size)
        total = np.bincount(cell[on], np.nan_to_num(cost[on]), size).astype(np.float64)
        moves = []
        for pair in np.unique(best, axis=0):
            same = cost[(best == pair).all(axis=1)]
            moves.append(ActionMoves(*self._pair(pair), len(same), _known(np.mean, same)))
        self._close_lines()
        thresholds = list[ThresholdDifference]()
        for k in sorted({which for which, *_ in self.lines}):
            counts = {row[1:]: n for row, n in self.lines.items() if row[0] == k}
            costs = cost[threshold == k]
            thresholds.append(replace(
                threshold_difference(self.groups.thresholds[k], counts), changed=len(costs),
                decisions=int(self.on_lines[k]), mean=_known(np.mean, costs),
            ))  # fmt: skip
        return {
            "payoffs": self.payoffs, "largest": self.largest, "actions": len(cost),
            "decisions": self.decisions, "toss_ups": len(tied),
            "toss_ups_worst": float(np.nanmax(tied, initial=0.0)),
            "one_sided": int((kind == ONE_SIDED).sum()), "unpriced": int(np.isnan(cost).sum()),
            "quiet": self.quiet, "mean": _known(np.mean, cost),
            "worst_cost": _known(np.max, cost), "worst": self.worst,
            "moves": sorted(moves, key=lambda m: (-m.decisions, str((m.first, m.second)))),
            "thresholds": thresholds,
            "thresholds_left_out": bool(self.groups.thresholds) and not self.complete,
            "picture": Moved(
                self.groups.axes, self.cells.reshape(shape), count.reshape(shape),
                total.reshape(shape),
            ),
        }  # fmt: skip


def _known(aggregate: Callable[[Floats], Any], costs: Floats) -> float:
    """Return an aggregate of the known costs: NaN if none is known, 0 if there are none."""
    known = costs[~np.isnan(costs)]
    return float(aggregate(known)) if len(known) else np.nan if len(costs) else 0.0


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

Write = Callable[[Changed, Names], None]
"""write(changed, names of actions): writes more decisions."""
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
    none, no = np.empty(0), np.empty(0, np.int64)
    nothing = Changed(
        no.reshape(0, game.field_count), no.reshape(0, 2), none, no.astype(np.int8), no, none, none
    )
    schema = _change_rows(game, nothing, {}).schema
    with whole_file(os.fspath(out)) as file, WRITERS[ending[1:]](file, schema) as write:

        def write_rows(changed: Changed, names: Names) -> None:
            for batch in _change_rows(game, changed, names).to_batches():
                write(batch)

        yield write_rows


def _change_rows(game: Game, changed: Changed, names: Names) -> pa.Table:
    state, labels = as_table(dict(game.table_columns(changed.states))), [*names, None]
    columns = {
        name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(state.column_names, state.columns, strict=True)
    }
    best_first, best_second = (
        pa.array([labels[code] for code in codes], pa.string()) for codes in changed.best.T.tolist()
    )
    return pa.table(columns | {
        "to_act": pa.array(changed.to_act.astype(np.int8)),
        "best_first": best_first, "best_second": best_second, "old": nullable(changed.old),
        "new": nullable(changed.new), "cost": nullable(changed.cost),
        "toss_up": pa.array(changed.kind == TOSS_UP), "payoffs_apart": pa.array(changed.apart),
    })  # fmt: skip
