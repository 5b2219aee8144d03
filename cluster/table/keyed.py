"""What lies below some roots, in files or in memory: the row of a state is found by its key.

What follows from the rows that a kind of part looks up stands in `SparsePart`: payoffs, answers,
residuals, samples. In files (`KeyPart`) rows stand by ascending key, and no two files hold one key.
Files of a search by stages have stages of its level (`capabilities.Level`), which say which file a
key is in; the first keys of the row groups, and a binary search in one of them, find its row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.actions import EveryAction, joined, numbered, of_some
from luckbase.cluster.table.format import (
    ROW_GROUP,
    STATUS,
    PayoffTable,
    as_table,
    decided,
    made_by,
    search_columns,
)
from luckbase.cluster.table.ledger import SEARCH, FileEntry
from luckbase.cluster.table.parquet import SealedFile, number_rows, numbers_of
from luckbase.cluster.table.part import (
    MEMORY,
    Batch,
    FilePart,
    MayHold,
    Part,
    Rows,
    drawn_rows,
    labelled,
    once,
)
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import FLOAT64_ERROR, Floats, Ints
from luckbase.solver.game.capabilities import level_from
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import SIMULTANEOUS
from luckbase.solver.search import keys as hashing
from luckbase.solver.search.bellman import Expanded, evaluate, expand, payoffs_of
from luckbase.solver.search.stage import WHOLE, Box, Stages

SOLVED, GIVEN = range(len(STATUS))


class SparsePart(Part):
    """What lies below some roots, by key.

    A group is some rows of ascending keys, as a mapping of columns: key, values (n, columns), best
    (int16, into labels, -1 for none), labels, margin, status.
    """

    @abstractmethod
    def sizes(self) -> list[int]:
        """The rows of each group."""

    @abstractmethod
    def group_at(self, number: int, remember: bool = True) -> dict[str, Any]:
        """A group; remember: it may be asked for again soon."""

    @abstractmethod
    def find(self, states: Ints) -> tuple[Floats, NDArray[np.int16], Floats, Ints]:
        """Of canonical states: payoffs (n, players), best actions (n,) into `action_names`, -1 for
        none, margins (n,), status (n,), -1 where there is no row."""

    # --- payoffs -----------------------------------------------------------------------------

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        states = np.asarray(states, np.int64)
        values, _, _, status = self.find(states)
        found = status >= 0
        missing = np.flatnonzero(~found)
        if len(missing):
            edges = expand(self.game, states[missing])
            at = missing[edges.terminal]
            values[at] = edges.rewards[edges.first[:-1][edges.terminal]]
            found[at] = True
        return values, found

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = self.find(states)[3] >= 0
        return held

    # --- answers -----------------------------------------------------------------------------

    def every_action(self, states: Ints, edges: Expanded | None = None) -> EveryAction:
        values, codes, margins, status = self.find(states)
        edges = expand(self.game, states) if edges is None else edges
        over, q = edges.terminal, evaluate(edges, self._children(edges, status))
        values[over] = q.values[q.first[:-1][over]]
        acts = (edges.actors >= 0) & ~over
        first, at = of_some(q.first, acts & (status == SOLVED))
        names, named = numbered(self.game, q.actions[at])
        owner = q.states[at]
        best = self._stored(codes, owner, named, names)
        found = EveryAction(
            values, np.where(acts, edges.actors + 1, 0), first, names, named, q.values[at], best,
            np.where(acts, margins, np.nan), np.zeros(len(states), bool),
            np.where(over, 0.0, self.error),
        )  # fmt: skip
        found.ties[:] = self._ties(found, owner, np.maximum(edges.actors, 0))
        given = acts & (status == GIVEN)
        if given.any():
            found = self._with_given(found, codes, given)
        return found

    def told(self, batch: Batch, at: Ints) -> EveryAction:
        return self.every_action(batch.states(at))

    def _stored(
        self, codes: NDArray[np.int16], owner: Ints, named: Ints, names: tuple[str, ...]
    ) -> Ints:
        """(n,) the stored best actions (n,) among those of the states; -1 where there is none."""
        mine = self.codes_of(names)[named] == codes[owner]
        best = np.full(len(codes), -1, np.int64)
        best[owner[mine]] = np.flatnonzero(mine)
        return best

    def _ties(self, found: EveryAction, owner: Ints, actors: Ints) -> NDArray[np.bool_]:
        """(n,) whether an action other than the best may be as good."""
        n, at = len(found), np.arange(len(owner))
        most = np.full(n, -np.inf)
        own = found.q[at, actors[owner]]
        np.maximum.at(most, owner, own)
        level = own >= most[owner] - self.tolerance
        ties: NDArray[np.bool_] = np.bincount(owner[level], minlength=n) > 1
        return ties & (found.best >= 0)

    def _with_given(
        self, found: EveryAction, codes: NDArray[np.int16], given: NDArray[np.bool_]
    ) -> EveryAction:
        """With the best action alone, as the table had it where the search ended, of rows that were
        taken from there (n,)."""
        at = np.flatnonzero(given & (codes >= 0))
        if not len(at):
            return found
        n, m = len(found), len(at)
        alone = EveryAction(
            found.values[at], found.to_act[at], np.arange(m + 1), tuple(self.action_names),
            codes[at].astype(np.int64), found.values[at], np.arange(m), found.margins[at],
            np.zeros(m, bool), found.errors[at],
        )  # fmt: skip
        others = np.setdiff1d(np.arange(n), at)
        rest = found.only(others)
        return joined([(others, rest), (at, alone)], n, self.game.players)

    def _children(self, edges: Expanded, status: Ints) -> Floats:
        """Payoffs of the edges' children; 0 for those of rows that were not solved from them."""
        owner = np.repeat(np.arange(len(edges.kinds)), np.diff(edges.first))
        asked = (status[owner] == SOLVED) & ~edges.terminal[owner]
        found = np.zeros((len(edges.children), self.game.players))
        found[asked], there = once(self.game, self.lookup, edges.children[asked])
        if not there.all():
            lost = self.game.describe(edges.children[asked][np.flatnonzero(~there)[0]])
            raise CorruptTableError(
                f"{self.where}: {lost} is not there, and a parent of it is; luckbase solve --check "
                "of its board makes it again"
            )
        return found

    def best_of(self, states: Ints) -> tuple[NDArray[np.int16], Floats]:
        _, best, margin, _ = self.find(states)
        return best, margin

    def best_codes(self, states: Ints) -> NDArray[np.int16]:
        return self.find(states)[1]

    def places(self, states: Ints) -> Ints:
        return np.asarray(hashing.pack_all(self.game.bits, np.ascontiguousarray(states)))

    # --- rows --------------------------------------------------------------------------------

    def scan(self) -> Iterator[Rows]:
        for number in range(len(self.sizes())):
            group = self.group_at(number, remember=False)
            at = partial(self._at, group["key"])
            yield Rows(at, group["values"], group["best"], group["labels"])

    def _at(self, keys: NDArray[np.uint64], rows: Ints) -> Ints:
        return np.asarray(hashing.unpack_all(self.game.bits, np.ascontiguousarray(keys[rows])))

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        sizes = self.sizes()
        ends = np.cumsum(sizes)
        if not len(ends) or not ends[-1]:
            return
        drawn = drawn_rows(int(ends[-1]), count, seed)
        owner = np.searchsorted(ends, drawn, side="right")
        for which in np.unique(owner).tolist():
            rows = drawn[owner == which] - (ends[which] - sizes[which])
            yield from self._solved(self.group_at(which), rows)

    def all_states(self) -> Iterator[Ints]:
        for number in range(len(self.sizes())):
            group = self.group_at(number)
            yield from self._solved(group, np.arange(len(group["key"])))

    def _solved(self, group: dict[str, Any], rows: Ints) -> Iterator[Ints]:
        rows = rows[group["status"][rows] == SOLVED]
        if len(rows):
            yield self._at(group["key"], rows)

    def residuals(self, states: Ints) -> Floats:
        stored, _, _, status = self.find(states)
        edges = expand(self.game, states)
        q = evaluate(edges, self._children(edges, status))
        found: Floats = np.empty(len(states))
        tolerance = self.tolerance  # a search above rounded payoffs could not tell more either
        if (edges.kinds == SIMULTANEOUS).any():
            exact = payoffs_of(edges.kinds, edges.actors, q, tolerance)
            found = np.abs(exact - stored).max(axis=1)
            return found
        for x in range(len(states)):
            here = q.values[q.first[x] : q.first[x + 1]]
            found[x] = _residual(here, int(edges.actors[x]), stored[x], tolerance)
        return found


def _residual(q: Floats, actor: int, stored: Floats, tolerance: float) -> float:
    """How far the stored payoffs are from those that the actions' (k, players) give; of tied
    actions any will do."""
    own = q[:, actor]
    level = own >= own.max() - tolerance - 1e-11
    return float(np.abs(q[level] - stored).max(axis=1).min())


class KeyPart(FilePart, SparsePart):
    """What lies below some roots, in files."""

    needed = ("key",)

    def states_in(self, entry: FileEntry, start: int, read: Any, rows: Ints) -> Ints:
        return self._at(numbers_of(read.column("key")), rows)

    @cached_property
    def precision(self) -> float:
        return self.ledger.precision(self.name)

    @cached_property
    def _places(self) -> list[tuple[int, int, int]]:
        """(file, row group, rows) of each group."""
        return [
            (i, number, self.file(i).about.row_group(number).num_rows)
            for i in range(len(self.entries))
            for number in range(self.file(i).groups)
        ]

    def sizes(self) -> list[int]:
        return [rows for _, _, rows in self._places]

    def group_at(self, number: int, remember: bool = True) -> dict[str, Any]:
        i, group, _ = self._places[number]
        found: dict[str, Any] = (
            self.group(i, group, "rows") if remember else self.decode(self.file(i), group, "rows")
        )
        return found

    def _first_keys(self, i: int) -> NDArray[np.uint64]:
        """The first key of each row group of file number i."""
        if i not in self._firsts:
            about = self.file(i).about
            groups = [about.row_group(k).column(0).statistics for k in range(about.num_row_groups)]
            self._firsts[i] = np.array([0 if s is None else s.min for s in groups], np.uint64)
        return self._firsts[i]

    @cached_property
    def _firsts(self) -> dict[int, NDArray[np.uint64]]:
        return {}

    @cached_property
    def _whole(self) -> list[int]:
        """The files of searches in one piece."""
        return [i for i, entry in enumerate(self.entries) if not entry.stages]

    @cached_property
    def _levels(self) -> list[tuple[Stages, dict[int, tuple[list[int], list[Box]]]]]:
        """Of each search by stages: its level, and the files that hold states of each stage, with
        the boxes that they hold: a file once for each of its boxes."""
        found = []
        for ask, line in self.ledger.levels.items():
            files: dict[int, tuple[list[int], list[Box]]] = {}
            for i, entry in enumerate(self.entries):
                boxes = [Box(*ends) for ends in entry.boxes] or [WHOLE]
                for stage in entry.stages if made_by(entry.name, ask) else ():
                    there, held = files.setdefault(stage, ([], []))
                    there += [i] * len(boxes)
                    held += boxes
            if files:
                found.append((Stages(self.game, level_from(line.level)), files))
        return found

    def _files_of(self, keys: NDArray[np.uint64]) -> Iterator[tuple[int, Ints]]:
        """Files by number, and which of the keys (n,) each may hold."""
        for i in self._whole:
            entry = self.entries[i]
            span = np.uint64(entry.first_key), np.uint64(entry.last_key)
            yield i, np.flatnonzero((keys >= span[0]) & (keys <= span[1]))
        for level, files in self._levels:
            stages = level.of(keys)
            for stage in np.unique(stages).tolist():
                here = np.flatnonzero(stages == stage)
                there, boxes = files.get(stage, ([], []))
                of = np.array([*there, -1])[level.boxes_of(keys[here], boxes)]
                for i in np.unique(of[of >= 0]).tolist():
                    yield i, here[of == i]

    def decode(self, file: SealedFile, number: int, kind: str) -> Any:
        """The columns of a row group that are not the state's."""
        read = file.read(number, ["key", *self.columns, "best", "margin", "status"])
        codes, labels = labelled(read.column("best"))
        return {
            "key": numbers_of(read.column("key")), "values": number_rows(read, self.columns),
            "best": codes, "labels": labels, "margin": numbers_of(read.column("margin")),
            "status": numbers_of(read.column("status")),
        }  # fmt: skip

    def _located(self, states: Ints) -> Iterator[tuple[int, dict[str, Any], Ints, Ints]]:
        """Of states (n, fields) that have a row: the file, the row group, which of the n, rows."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        fine = np.flatnonzero(hashing.fits(self.game.bits, states))
        keys = hashing.pack_all(self.game.bits, np.ascontiguousarray(states[fine]))
        for i, here in self._files_of(keys):
            groups = np.searchsorted(self._first_keys(i), keys[here], side="right") - 1
            groups[keys[here] > np.uint64(self.entries[i].last_key)] = -1
            for number in np.unique(groups[groups >= 0]).tolist():
                group = self.group(i, number, "rows")
                at = here[groups == number]
                place = np.searchsorted(group["key"], keys[at])
                place = np.minimum(place, len(group["key"]) - 1)
                there = group["key"][place] == keys[at] if len(group["key"]) else np.zeros(0, bool)
                yield i, group, fine[at[there]], place[there]

    def find(self, states: Ints) -> tuple[Floats, NDArray[np.int16], Floats, Ints]:
        values = np.zeros((len(states), len(self.columns)))
        best = np.full(len(states), -1, np.int16)
        margin = np.full(len(states), np.nan)
        status = np.full(len(states), -1, np.int64)
        for _, group, x, row in self._located(states):
            values[x], status[x] = group["values"][row], group["status"][row]
            margin[x] = group["margin"][row]
            best[x] = self.codes_of(group["labels"])[group["best"][row]]
        return values, best, margin, status

    def told_within(self, states: Ints) -> Floats:
        found = super().told_within(states)
        if len({entry.resolved_error for entry in self.entries}) == 1:
            return found
        for i, _, x, _ in self._located(states):
            found[x] = self.entries[i].resolved_error
        return found


class MemorySearch(SparsePart):
    """What lies below some roots, solved in memory; rows by ascending key."""

    def __init__(self, game: Game, solved: PayoffTable) -> None:
        error = FLOAT64_ERROR + game.cut_error + float(solved.gap.sum()) / 2
        super().__init__(MEMORY, SEARCH, game, error)
        self.solved = solved.only(np.argsort(solved.keys))
        self.codes, self.labels = decided(game, self.solved)

    @property
    def rows(self) -> int:
        return len(self.solved)

    def sizes(self) -> list[int]:
        return [min(ROW_GROUP, self.rows - i) for i in range(0, self.rows, ROW_GROUP)]

    def group_at(self, number: int, remember: bool = True) -> dict[str, Any]:
        here = slice(number * ROW_GROUP, (number + 1) * ROW_GROUP)
        held = self.solved
        return {
            "key": held.keys[here], "values": held.values[here], "best": self.codes[here],
            "labels": self.labels, "margin": held.margin[here], "status": held.status[here],
        }  # fmt: skip

    def batches(self, columns: Collection[str] | None, may_hold: MayHold) -> Iterator[Batch]:
        for start in range(0, self.rows, ROW_GROUP):
            made = self._table(slice(start, start + ROW_GROUP))
            keys = self.solved.keys[start : start + ROW_GROUP]
            names = [name for name in made.column_names if columns is None or name in columns]
            yield Batch(made.select(names), start, partial(self._at, keys))

    def _table(self, rows: slice) -> Any:
        return as_table(search_columns(self.game, self.solved, self.codes, self.labels, rows))

    def empty(self) -> Any:
        return self._table(slice(0, 0))

    def find(self, states: Ints) -> tuple[Floats, NDArray[np.int16], Floats, Ints]:
        states, held = np.ascontiguousarray(np.asarray(states, np.int64)), self.solved
        values = np.zeros((len(states), len(self.columns)))
        best = np.full(len(states), -1, np.int16)
        margin, status = np.full(len(states), np.nan), np.full(len(states), -1, np.int64)
        fine = np.flatnonzero(hashing.fits(self.game.bits, states))
        keys = hashing.pack_all(self.game.bits, np.ascontiguousarray(states[fine]))
        rows = np.minimum(np.searchsorted(held.keys, keys), max(0, len(held) - 1))
        there = held.keys[rows] == keys if len(held) else np.zeros(len(keys), bool)
        x, rows = fine[there], rows[there]
        values[x], margin[x], status[x] = held.values[rows], held.margin[rows], held.status[rows]
        best[x] = self.codes_of(self.labels)[self.codes[rows]]
        return values, best, margin, status
