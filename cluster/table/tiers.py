"""The full table, in files or in memory: the row of a state is its key.

What follows from the payoffs and the best actions that a kind of part looks up stands in
`DensePart`: every action of a state, answers, margins, residuals, samples of the rows. In files
(`TierPart`) one state decodes one row group, which is remembered; many are sorted by key, so each
row group is decoded once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.table.actions import EveryAction, Lookahead, from_rules, look_ahead
from luckbase.cluster.table.format import (
    KEY_SHIFT,
    as_table,
    row_group_rows,
    start_row,
    tier_columns,
)
from luckbase.cluster.table.ledger import TIERS, FileEntry
from luckbase.cluster.table.parquet import SealedFile, number_rows, numbers_of
from luckbase.cluster.table.part import (
    MEMORY,
    PIECE,
    Batch,
    FilePart,
    MayHold,
    Part,
    Rows,
    drawn_rows,
    labelled,
    lookup_or_backup,
    once,
)
from luckbase.solver.errors import CorruptTableError, MissingTableError
from luckbase.solver.game.arrays import Coded, Decisions, Floats, Ints
from luckbase.solver.game.capabilities import Layout, layout_of
from luckbase.solver.search.bellman import Expanded, evaluate, expand, final_payoffs
from luckbase.solver.search.in_memory import InMemory, rounding


class DensePart(Part):
    """The full table, or as much of it as is solved."""

    dense = True

    @cached_property
    def layout(self) -> Layout[Any]:
        """The game's tiers."""
        return layout_of(self.game)

    @property
    @abstractmethod
    def spans(self) -> list[tuple[Any, int, int]]:
        """(tier, first row, rows) of each piece of a tier that is there, in the order of keys."""

    @property
    def rows(self) -> int:
        return sum(rows for _, _, rows in self.spans)

    # --- decisions ---------------------------------------------------------------------------

    def _best_numbers(self, best: NDArray[np.int16], actions: Ints) -> Ints:
        """(n,) the numbers of the stored best actions (n,) of states that have these actions (k,)
        in all; -1 where nobody decides, -2 for one that is none of theirs."""
        there = np.unique(actions).tolist()
        known = {self.game.action_name(action): action for action in there if action >= 0}
        numbers = [known.get(name, -2) for name in self.action_names]
        return np.array([*numbers, -1], np.int64)[best]

    def _all_values(self, states: Ints, edges: Expanded) -> tuple[Floats, Floats]:
        """The payoffs of expanded states, and of their children, looked up together."""
        n = len(states)
        every = np.concatenate([states, edges.children])
        payoffs, there = once(self.game, self.lookup, every)
        return payoffs[:n], self._all_there(edges, payoffs[n:], there[n:])

    def _all_there(self, edges: Expanded, below: Floats, there: NDArray[np.bool_]) -> Floats:
        """The payoffs of all children, from those that were found."""
        if not there.all():  # one step of the rules, where both choose below
            below, there = lookup_or_backup(self.game, self.lookup, edges.children, self.tolerance)
        if not there.all():
            lost = self.game.describe(edges.children[np.flatnonzero(~there)[0]])
            raise MissingTableError(f"{self.where}: {lost} is not there, and a parent of it is")
        return below

    def look_ahead(
        self, states: Ints, edges: Expanded, below: Floats, codes: NDArray[np.int16]
    ) -> Lookahead:
        """Every action of expanded states, from the payoffs of their children, and the stored best
        ones (n,)."""
        q = evaluate(edges, below)
        best = self._best_numbers(codes, q.actions)
        allowed = np.logical_or.reduceat(q.actions == best[q.states], q.first[:-1])
        wrong = np.flatnonzero((best != -1) & ~allowed)
        if len(wrong):
            state = self.game.describe(states[wrong[0]])
            raise CorruptTableError(f"{self.where}: names an action at {state} that is none there")
        return look_ahead(q, edges.actors, self.tolerance, best)

    def every_action(self, states: Ints, edges: Expanded | None = None) -> EveryAction:
        edges = expand(self.game, states) if edges is None else edges
        values, below = self._all_values(states, edges)
        return self.of_rows(states, edges, values, below, self.best_codes(states))

    def told(self, batch: Batch, at: Ints) -> EveryAction:
        columns = [numbers_of(batch.rows.column(name))[at] for name in self.columns]
        values = np.stack(columns, axis=1).astype(np.float64)
        codes, labels = labelled(batch.rows.column("best"))
        states = np.ascontiguousarray(batch.states(at))
        edges = expand(self.game, states)
        below, there = once(self.game, self.lookup, edges.children)
        below = self._all_there(edges, below, there)
        return self.of_rows(states, edges, values, below, self.codes_of(labels)[codes[at]])

    def of_rows(
        self, states: Ints, edges: Expanded, values: Floats, below: Floats,
        codes: NDArray[np.int16],
    ) -> EveryAction:  # fmt: skip
        """The same from the payoffs (n, players) and the best actions (n,) as they are stored, and
        the payoffs of the children."""
        look = self.look_ahead(states, edges, below, codes)
        return from_rules(self.game, edges, look, values, self.error)

    def best_of(self, states: Ints) -> tuple[NDArray[np.int16], Floats]:
        found = self.every_action(states)
        named = found.named[found.best] if len(found.named) else found.best
        best = self.codes_of(found.names)[np.where(found.best >= 0, named, -1)]
        return best, found.margins

    def residuals(self, states: Ints) -> Floats:
        edges = expand(self.game, states)
        stored, below = self._all_values(states, edges)
        look = self.look_ahead(states, edges, below, self.best_codes(states))
        taken = look.values[look.best]
        found: Floats = np.abs(taken - stored).max(axis=1)
        own = look.values[np.arange(len(look.actions)),
                          np.repeat(np.maximum(edges.actors, 0), np.diff(look.first))]  # fmt: skip
        top = np.maximum.reduceat(own, look.first[:-1])
        short = top - own[look.best] - self.game.tie_tolerance
        found = np.maximum(found, short)  # a best action that is not one shows too
        return found

    def places(self, states: Ints) -> Ints:
        numbers, rows = self.layout.locate(np.ascontiguousarray(states))
        return (numbers << KEY_SHIFT) + rows

    # --- rows --------------------------------------------------------------------------------

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        ends = np.cumsum([rows for _, _, rows in self.spans])
        drawn = drawn_rows(int(ends[-1]) if len(ends) else 0, count, seed)
        # One pass over the table for a sample of any usual size: children lie all over it.
        for share in np.array_split(drawn, max(1, -(-len(drawn) // (4 * PIECE)))):
            owner = np.searchsorted(ends, share, side="right")
            states = [
                self._states(int(i), share[owner == i] - (ends[i] - self.spans[i][2]))
                for i in np.unique(owner)
            ]
            if states:
                yield np.concatenate(states)

    def all_states(self) -> Iterator[Ints]:
        for i, (_, _, rows) in enumerate(self.spans):
            for start in range(0, rows, PIECE):
                yield self._states(i, np.arange(start, min(start + PIECE, rows)))

    def _states(self, i: int, rows: Ints) -> Ints:
        """The states at rows of span i."""
        tier, first, _ = self.spans[i]
        return self.layout.states_at(tier, first + rows)

    @cached_property
    def tier_of_number(self) -> dict[int, Any]:
        """The tiers of the game's full table by number."""
        return self.layout.tier_of_number()


GROUPS_A_JOB, GROUPS_A_READ = 256, 8
"""Row groups that a thread takes of a file, and that it decodes at once."""
FEW = 16
"""States of one question."""


class TierPart(FilePart, DensePart):
    """The full table in files."""

    _last: tuple[bytes, tuple[Ints, Ints, NDArray[np.bool_]]] | None = None

    @cached_property
    def spans(self) -> list[tuple[Any, int, int]]:
        tiers = self.tier_of_number
        return [(tiers[e.tier], start_row(e), e.rows) for e in self.entries]

    def states_in(self, entry: FileEntry, start: int, read: Any, rows: Ints) -> Ints:
        tier = self.tier_of_number[entry.tier]
        return self.layout.states_at(tier, start_row(entry) + start + np.asarray(rows))

    def constants(self, entry: FileEntry) -> dict[str, tuple[Any, Any]]:
        fields = self.layout.tier_fields(self.tier_of_number[entry.tier])
        return {name: (value, value) for name, value in fields.items()}

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        """The first and the last key of each file."""
        keys = [(entry.first_key, entry.last_key) for entry in self.entries]
        first, last = np.array(keys, np.int64).reshape(-1, 2).T
        return first, last

    def decode(self, file: SealedFile, number: int, kind: str) -> Any:
        if kind == "best":
            codes, labels = labelled(file.read(number, ["best"]).column(0))
            return self.codes_of(labels)[codes]
        if kind == "margin":
            return numbers_of(file.read(number, ["margin"]).column(0))
        return number_rows(file.read(number, self.columns), self.columns)

    # --- payoffs -----------------------------------------------------------------------------

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        return self._place(states)[1] >= 0

    def _place(self, states: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """(key, file's index or -1, whether the game is over) of states (n, fields); the last few
        that were asked for are remembered, as one question asks for them again."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        if len(states) > FEW:
            return self._placed(states)
        said = states.tobytes()
        if self._last is None or self._last[0] != said:
            self._last = said, self._placed(states)
        return self._last[1]

    def _placed(self, states: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        numbers, rows = self.layout.locate(states)
        keys = (numbers << KEY_SHIFT) + rows
        first, last = self._bounds
        at = np.searchsorted(first, keys, side="right") - 1
        inside = (at >= 0) & (numbers >= 0)
        if len(last):
            inside &= keys <= last[at]
        return keys, np.where(inside, at, -1), numbers < 0

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        keys, files, over = self._place(states)
        payoffs = np.zeros((len(states), self.game.players))
        if over.any():
            payoffs[over] = final_payoffs(self.game, states[over])
        rows, jobs = self._by_file(keys, files)
        if sum(len(groups) * self._group_bytes(i) for i, groups, _ in jobs) <= self.most_held:
            self.fetch(((i, n) for i, groups, _ in jobs for n in groups.tolist()), "payoffs")
            for i, groups, at in jobs:
                for number, x, row in self._in_groups(i, groups, at, rows):
                    payoffs[x] = self.group(i, number, "payoffs")[row]
        else:
            shares = [
                (i, share, at)
                for i, groups, at in jobs
                for share in np.array_split(groups, -(-len(groups) // GROUPS_A_JOB))
            ]
            with ThreadPoolExecutor(cores()) as pool:
                for done in [pool.submit(self._through, *one, rows, payoffs) for one in shares]:
                    done.result()
        swapped = self.layout.swapped(states) & (files >= 0)
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        return payoffs, over | (files >= 0)

    def _group_bytes(self, i: int) -> int:
        """Bytes of the payoffs of a row group of file i, decoded."""
        size = np.dtype(self.layout.payoff_type).itemsize * self.game.players
        return min(self.entries[i].rows, self.entries[i].row_group_rows) * size

    def _by_file(self, keys: Ints, files: Ints) -> tuple[Ints, list[tuple[int, Ints, Ints]]]:
        """(rows in their files (n,), of each file met: its index, the row groups asked for, and
        which of the n lie there, by row); as `_place` gives the keys and the files."""
        order = np.lexsort((keys, files))
        order = order[files[order] >= 0]
        rows = keys - (self._bounds[0][files] if self.entries else 0)
        jobs = []
        for at in _runs(order, files[order]):
            i = int(files[at[0]])
            jobs.append((i, np.unique(rows[at] // self.entries[i].row_group_rows), at))
        return rows, jobs

    def _in_groups(
        self, i: int, groups: Ints, at: Ints, rows: Ints
    ) -> Iterator[tuple[int, Ints, Ints]]:
        """(row group, those of `at` in it, their rows in it); `at` is sorted by row."""
        size = self.entries[i].row_group_rows
        of = rows[at] // size
        for number in groups.tolist():
            first, last = np.searchsorted(of, [number, number + 1])
            x = at[first:last]
            yield number, x, rows[x] - number * size

    def _through(self, i: int, groups: Ints, at: Ints, rows: Ints, payoffs: Floats) -> None:
        """Fill the payoffs of those in `at` that lie in many row groups of file i: a thread's
        share, with a file of its own, nothing remembered."""
        size = self.entries[i].row_group_rows
        of = rows[at] // size
        file = SealedFile(self.storage, self.folder, self.entries[i], self.file(i).about)
        for span in np.array_split(groups, -(-len(groups) // GROUPS_A_READ)):
            first, last = np.searchsorted(of, [span[0], span[-1] + 1])
            wanted = at[first:last]
            position = np.searchsorted(span, of[first:last]) * size + rows[wanted] % size
            for c, column in enumerate(file.read_all(span.tolist(), self.columns).columns):
                payoffs[wanted, c] = numbers_of(column)[position]
        file.close()

    def told_within(self, states: Ints) -> Floats:
        told = np.array([entry.resolved_error for entry in self.entries])
        return told[self._place(states)[1]]

    # --- decisions ---------------------------------------------------------------------------

    def best_codes(self, states: Ints) -> NDArray[np.int16]:
        found = np.full(len(states), -1, np.int16)
        if not self.layout.best_names or not len(states):
            return found
        keys, files, _ = self._place(states)
        if len(states) <= FEW:  # a question's: without the sorting
            for k in np.flatnonzero(files >= 0).tolist():
                entry = self.entries[files[k]]
                number, row = divmod(int(keys[k]) - entry.first_key, entry.row_group_rows)
                found[k] = self.group(int(files[k]), number, "best")[row]
            return found
        rows, jobs = self._by_file(keys, files)
        self.fetch(((i, n) for i, groups, _ in jobs for n in groups.tolist()), "best")
        for i, groups, at in jobs:
            for number, x, row in self._in_groups(i, groups, at, rows):
                found[x] = self.group(i, number, "best")[row]
        return found

    # --- rows --------------------------------------------------------------------------------

    def scan(self) -> Iterator[Rows]:
        for entry in self.entries:
            yield from self.scan_file(entry)

    def scan_file(self, entry: FileEntry) -> Iterator[Rows]:
        """The rows of one file, a row group at a time."""
        file = SealedFile(self.storage, self.folder, entry)
        tier, first = self.tier_of_number[entry.tier], start_row(entry)
        for number in range(file.groups):
            read = file.read(number, [*self.columns, "best"])
            values = number_rows(read, self.columns)
            codes, labels = labelled(read.column("best"))
            start = first + number * entry.row_group_rows
            at = partial(self._at, tier, start)
            yield Rows(at, values, codes, labels)
        file.close()

    def _at(self, tier: Any, start: int, rows: Ints) -> Ints:
        return self.layout.states_at(tier, start + rows)

    def stands_alike(self, entry: FileEntry, other: TierPart) -> bool:
        """Whether the rows of a file are the same states, in people's units, as those of the same
        number in another full table."""
        block = entry.row_group_rows
        mine, theirs = self.tier_of_number[entry.tier], other.tier_of_number[entry.tier]
        start = start_row(entry)
        for at in range(start, start + entry.rows, block):
            stop = min(at + block, start + entry.rows)
            rows = [part.layout.state_rows(tier, at, stop) for part, tier in
                    ((self, mine), (other, theirs))]  # fmt: skip
            if rows[0].keys() != rows[1].keys() or not all(
                _equal(rows[0][name], rows[1][name]) for name in rows[0]
            ):
                return False
        return self.layout.tier_fields(mine) == other.layout.tier_fields(theirs)


def _equal(one: NDArray[np.int32] | Coded, other: NDArray[np.int32] | Coded) -> bool:
    if isinstance(one, Coded) and isinstance(other, Coded):
        return one.labels == other.labels and np.array_equal(one.codes, other.codes)
    return np.array_equal(np.asarray(one), np.asarray(other))


def _runs(items: Ints, labels: Ints) -> Iterable[Ints]:
    """The runs of `items` over equal neighbours in `labels`."""
    if len(items):
        yield from np.split(items, np.flatnonzero(np.diff(labels)) + 1)


class MemoryTiers(DensePart):
    """A full table in memory."""

    def __init__(self, solved: InMemory[Any]) -> None:
        layout = solved.layout
        self.rounding = rounding(layout.game, layout.payoff_type)
        super().__init__(MEMORY, TIERS, layout.game, solved.error + self.rounding)
        self.solved = solved
        tiers = sorted(solved.payoffs, key=layout.tier_number)
        self._spans = [(tier, 0, layout.rows(tier)) for tier in tiers]

    @property
    def spans(self) -> list[tuple[Any, int, int]]:
        return self._spans

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        return self.solved.lookup(states)

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        found = np.zeros(len(states), bool)
        for _, at, _ in self.solved.locate(np.ascontiguousarray(states)):
            found[at] = True
        return found

    def told_within(self, states: Ints) -> Floats:
        found = np.zeros(len(states))
        for tier, at, _ in self.solved.locate(np.ascontiguousarray(states)):
            found[at] = self.solved.errors[tier] + self.rounding
        return found

    def best_codes(self, states: Ints) -> NDArray[np.int16]:
        found = np.full(len(states), -1, np.int16)
        codes = self.codes_of(tuple(self.layout.best_names))
        for tier, at, rows in self.solved.locate(np.ascontiguousarray(states)):
            found[at] = codes[self.solved.best[tier][rows]]
        return found

    def scan(self) -> Iterator[Rows]:
        for tier, _, rows in self.spans:
            step = row_group_rows(self.layout, tier)
            for start in range(0, rows, step):
                at = np.arange(start, min(start + step, rows))
                best = self.solved.best[tier][at].astype(np.int16)
                states = partial(self._at, tier, start)
                values = self.solved.rows(tier, at)
                yield Rows(states, values, best, tuple(self.layout.best_names))

    def batches(self, columns: Collection[str] | None, may_hold: MayHold) -> Iterator[Batch]:
        before = 0
        for tier, _, rows in self.spans:
            constants = self.layout.tier_fields(tier)
            if may_hold({name: (value, value) for name, value in constants.items()}):
                step = row_group_rows(self.layout, tier)
                for start in range(0, rows, step):
                    made = self._table(tier, (start, min(start + step, rows)), columns)
                    yield Batch(made, before + start, partial(self._at, tier, start))
            before += rows

    def _table(
        self, tier: Any, span: tuple[int, int], columns: Collection[str] | None = None
    ) -> Any:
        same = {
            name: np.full(span[1] - span[0], value, np.int32)
            for name, value in self.layout.tier_fields(tier).items()
        }
        decisions = Decisions(self.solved.best[tier])
        payoffs = self.solved.payoffs[tier]
        made = as_table(same | tier_columns(self.layout, tier, payoffs, decisions, span))
        return (
            made if columns is None else made.select([n for n in made.column_names if n in columns])
        )

    def empty(self) -> Any:
        return self._table(self.spans[0][0], (0, 0)) if self.spans else None

    def _at(self, tier: Any, start: int, rows: Ints) -> Ints:
        return self.layout.states_at(tier, start + rows)
