"""The full table: the row of a state is its key.

From the payoffs and the best actions that it looks up follow every action of a state, answers,
margins, residuals. One state decodes one row group, which is remembered; many are sorted by key, so
each row group is decoded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.table.answer import EveryAction, from_rules, own_payoffs
from luckbase.cluster.table.ledger import KEY_SHIFT, FileEntry
from luckbase.cluster.table.parquet import SealedFile, labelled, number_rows, numbers_of
from luckbase.cluster.table.parts import Batch, Part, lookup_or_backup, once
from luckbase.solver.errors import CorruptTableError, MissingTableError
from luckbase.solver.game.arrays import Coded, Floats, Ints
from luckbase.solver.game.capabilities import Layout, layout_of
from luckbase.solver.search.bellman import ActionValues, chosen, evaluate, final_payoffs
from luckbase.solver.search.expand import Expanded, expand

GROUPS_A_JOB, GROUPS_A_READ = 256, 8
"""Row groups that a thread takes of a file, and that it decodes at once."""
FEW = 16
"""States of one question."""


class TierPart(Part):
    """The full table, or as much of it as is solved."""

    dense = True
    _last: tuple[bytes, tuple[Ints, Ints, NDArray[np.bool_]]] | None = None

    @cached_property
    def layout(self) -> Layout[Any]:
        """The game's tiers."""
        return layout_of(self.game)

    @cached_property
    def tier_of_number(self) -> dict[int, Any]:
        """The tiers of the game's full table by number."""
        return self.layout.tier_of_number()

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        """The first and the last key of each file."""
        keys = [(entry.first_key, entry.last_key) for entry in self.entries]
        first, last = np.array(keys, np.int64).reshape(-1, 2).T
        return first, last

    # --- rows --------------------------------------------------------------------------------

    def decode(self, file: SealedFile, number: int, kind: str) -> NDArray[Any]:
        if kind == "best":
            codes, labels = labelled(file.read(number, ["best"]).column(0))
            return self.codes_of(labels)[codes]
        return number_rows(file.read(number, self.columns), self.columns)

    def states_in(self, entry: FileEntry, start: int, read: Any, rows: Ints) -> Ints:
        tier = self.tier_of_number[entry.tier]
        return self.layout.states_at(tier, entry.first_row + start + np.asarray(rows))

    def constants(self, entry: FileEntry) -> dict[str, tuple[Any, Any]]:
        fields = self.layout.tier_fields(self.tier_of_number[entry.tier])
        return {name: (value, value) for name, value in fields.items()}

    @property
    def sizes(self) -> list[int]:
        return [entry.rows for entry in self.entries]

    def solved_states(self, i: int, rows: Ints) -> Ints:
        return self.states_in(self.entries[i], 0, None, rows)

    # --- places of states --------------------------------------------------------------------

    def places(self, states: Ints) -> Ints:
        return self._place(states)[0]

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        return self._place(states)[1] >= 0

    def resolved_errors(self, states: Ints) -> Floats:
        bounds = np.array([entry.resolved_error for entry in self.entries])
        return bounds[self._place(states)[1]]

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

    # --- payoffs -----------------------------------------------------------------------------

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        keys, files, over = self._place(states)
        payoffs = np.zeros((len(states), self.game.players))
        if over.any():
            payoffs[over] = final_payoffs(self.game, states[over])
        rows, jobs = self._by_file(keys, files)
        size = sum(len(groups) * self._group_bytes(i) for i, groups, _ in jobs)
        if size <= self.groups.max_bytes:
            self._gather("payoffs", rows, jobs, payoffs)
        else:
            shares = [
                (i, share, at)
                for i, groups, at in jobs
                for share in np.array_split(groups, -(-len(groups) // GROUPS_A_JOB))
            ]
            for i, _, _ in jobs:
                self.groups.file(i)  # opened by one thread
            with ThreadPoolExecutor(cores()) as pool:
                for done in [pool.submit(self._through, *one, rows, payoffs) for one in shares]:
                    done.result()
        swapped = self.layout.swapped(states) & (files >= 0)
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        return payoffs, over | (files >= 0)

    def _gather(
        self, kind: str, rows: Ints, jobs: list[tuple[int, Ints, Ints]], out: NDArray[Any]
    ) -> None:
        """Fill `out` (n, …) from row groups of a kind; rows, jobs: as `_by_file`."""
        self.groups.fetch(((i, n) for i, groups, _ in jobs for n in groups.tolist()), kind)
        for i, groups, at in jobs:
            for number, x, row in self._in_groups(i, groups, at, rows):
                out[x] = self.groups.get(i, number, kind)[row]

    def _group_bytes(self, i: int) -> int:
        """Bytes of the payoffs of a row group of file i, decoded."""
        size = np.dtype(self.layout.payoff_type).itemsize * self.game.players
        return min(self.entries[i].rows, self.entries[i].row_group_rows) * size

    def _through(self, i: int, groups: Ints, at: Ints, rows: Ints, payoffs: Floats) -> None:
        """Fill the payoffs of those in `at` that lie in many row groups of file i: a thread's
        share, with a file of its own, nothing remembered."""
        size = self.entries[i].row_group_rows
        of = rows[at] // size
        file = self.groups.reopen(i)
        for span in np.array_split(groups, -(-len(groups) // GROUPS_A_READ)):
            first, last = np.searchsorted(of, [span[0], span[-1] + 1])
            wanted = at[first:last]
            position = np.searchsorted(span, of[first:last]) * size + rows[wanted] % size
            for c, column in enumerate(file.read_all(span.tolist(), self.columns).columns):
                payoffs[wanted, c] = numbers_of(column)[position]
        file.close()

    # --- decisions ---------------------------------------------------------------------------

    def best_codes(self, states: Ints) -> NDArray[np.int16]:
        found = np.full(len(states), -1, np.int16)
        if self.layout.best_names and len(states):
            keys, files, _ = self._place(states)
            self._gather("best", *self._by_file(keys, files), found)
        return found

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

    def _taken(self, states: Ints, actors: Ints, q: ActionValues, codes: NDArray[np.int16]) -> Ints:
        """The rows (n,) of `q` that are the stored best actions (n,) of expanded states; where
        nobody decides any one."""
        best = self._best_numbers(codes, q.actions)
        rows, stored = (
            chosen(q, actors, self.tolerance),
            np.flatnonzero(q.actions == best[q.states]),
        )
        rows[q.states[stored]] = stored
        wrong = np.flatnonzero((best != -1) & (q.actions[rows] != best))
        if len(wrong):
            state = self.game.describe(states[wrong[0]])
            raise CorruptTableError(f"{self.where}: names an action at {state} that is none there")
        return rows

    def every_action(self, states: Ints, edges: Expanded | None = None) -> EveryAction:
        edges = expand(self.game, states) if edges is None else edges
        values, below = self._all_values(states, edges)
        return self.of_rows(states, edges, values, below, self.best_codes(states))

    def actions_of_rows(self, batch: Batch, at: Ints) -> EveryAction:
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
        q = evaluate(edges, below)
        taken = self._taken(states, edges.actors, q, codes)
        return from_rules(self.game, edges, q, taken, self.tolerance, values, self.error)

    def residuals(self, states: Ints) -> Floats:
        edges = expand(self.game, states)
        stored, below = self._all_values(states, edges)
        q = evaluate(edges, below)
        taken = self._taken(states, edges.actors, q, self.best_codes(states))
        found: Floats = np.abs(q.values[taken] - stored).max(axis=1)
        own = own_payoffs(q, edges.actors)
        top = np.maximum.reduceat(own, q.first[:-1])
        short = top - own[taken] - self.game.tie_tolerance
        found = np.maximum(found, short)  # a best action that is not one shows too
        return found

    def stands_alike(self, entry: FileEntry, other: TierPart) -> bool:
        """Whether the rows of a file are the same states, in people's units, as those of the same
        number in another full table."""
        block = entry.row_group_rows
        mine, theirs = self.tier_of_number[entry.tier], other.tier_of_number[entry.tier]
        start = entry.first_row
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
