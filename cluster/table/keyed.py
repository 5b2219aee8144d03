"""What lies below some roots: the row of a state is found by its key.

Rows stand by ascending key, and no two files hold one key. Files of a search by stages have stages
of its level (`capabilities.Level`), which say which file a key is in; the first keys of the row
groups, and a binary search in one of them, find its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.answer import EveryAction, joined, no_bids, numbered, of_some
from luckbase.cluster.table.ledger import FileEntry, made_by
from luckbase.cluster.table.parquet import SealedFile, labelled, number_rows, numbers_of
from luckbase.cluster.table.parts import Part, once
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import level_from
from luckbase.solver.game.rules import SIMULTANEOUS
from luckbase.solver.search import keys as hashing
from luckbase.solver.search.bellman import evaluate, payoffs_of
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.search.stages import WHOLE, Box, Stages

STATUS = ("solved", "given")
"""Of a row of a search: solved from its children; taken from the table named with --using."""
SOLVED, GIVEN = range(len(STATUS))


class KeyPart(Part):
    """What lies below some roots, by key.

    A row group is decoded as a mapping of columns: key, values (n, columns), best (int16, into
    `action_names`, -1 for none), margin, status.
    """

    needed = ("key",)

    # --- rows --------------------------------------------------------------------------------

    def decode(self, file: SealedFile, number: int, kind: str) -> dict[str, NDArray[Any]]:
        read = file.read(number, ["key", *self.columns, "best", "margin", "status"])
        codes, labels = labelled(read.column("best"))
        return {
            "key": numbers_of(read.column("key")), "values": number_rows(read, self.columns),
            "best": self.codes_of(labels)[codes], "margin": numbers_of(read.column("margin")),
            "status": numbers_of(read.column("status")),
        }  # fmt: skip

    def states_in(self, entry: FileEntry, start: int, read: Any, rows: Ints) -> Ints:
        return self._states(numbers_of(read.column("key"))[rows])

    def _states(self, keys: NDArray[np.uint64]) -> Ints:
        return np.asarray(hashing.unpack_all(self.game.bits, np.ascontiguousarray(keys)))

    @cached_property
    def _row_groups(self) -> list[tuple[int, int, int]]:
        """(file, row group, rows) of each."""
        files = [(i, self.groups.file(i)) for i in range(len(self.entries))]
        return [
            (i, number, file.about.row_group(number).num_rows)
            for i, file in files
            for number in range(file.groups)
        ]

    @property
    def sizes(self) -> list[int]:
        return [rows for _, _, rows in self._row_groups]

    def solved_states(self, i: int, rows: Ints) -> Ints:
        file, number, _ = self._row_groups[i]
        group = self.groups.get(file, number, "rows")
        return self._states(group["key"][rows[group["status"][rows] == SOLVED]])

    # --- places of states --------------------------------------------------------------------

    def places(self, states: Ints) -> Ints:
        return np.asarray(hashing.pack_all(self.game.bits, np.ascontiguousarray(states)))

    @cached_property
    def _firsts(self) -> dict[int, NDArray[np.uint64]]:
        return {}

    def _first_keys(self, i: int) -> NDArray[np.uint64]:
        """The first key of each row group of file number i."""
        if i not in self._firsts:
            about = self.groups.file(i).about
            groups = [about.row_group(k).column(0).statistics for k in range(about.num_row_groups)]
            self._firsts[i] = np.array([0 if s is None else s.min for s in groups], np.uint64)
        return self._firsts[i]

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

    def _located(self, states: Ints) -> Iterator[tuple[int, dict[str, Any], Ints, Ints]]:
        """Of states (n, fields) that have a row: the file, the row group, which of the n, rows."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        fine = np.flatnonzero(hashing.fits(self.game.bits, states))
        keys = hashing.pack_all(self.game.bits, np.ascontiguousarray(states[fine]))
        for i, here in self._files_of(keys):
            groups = np.searchsorted(self._first_keys(i), keys[here], side="right") - 1
            groups[keys[here] > np.uint64(self.entries[i].last_key)] = -1
            for number in np.unique(groups[groups >= 0]).tolist():
                group = self.groups.get(i, number, "rows")
                at = here[groups == number]
                place = np.searchsorted(group["key"], keys[at])
                place = np.minimum(place, len(group["key"]) - 1)
                there = group["key"][place] == keys[at] if len(group["key"]) else np.zeros(0, bool)
                yield i, group, fine[at[there]], place[there]

    def find(self, states: Ints) -> tuple[Floats, NDArray[np.int16], Floats, Ints]:
        """Of canonical states: payoffs (n, players), best actions (n,) into `action_names`, -1 for
        none, margins (n,), status (n,), -1 where there is no row."""
        values = np.zeros((len(states), len(self.columns)))
        best = np.full(len(states), -1, np.int16)
        margin = np.full(len(states), np.nan)
        status = np.full(len(states), -1, np.int64)
        for _, group, x, row in self._located(states):
            values[x], status[x] = group["values"][row], group["status"][row]
            best[x], margin[x] = group["best"][row], group["margin"][row]
        return values, best, margin, status

    def resolved_errors(self, states: Ints) -> Floats:
        found = np.full(len(states), self.precision)
        if len({entry.resolved_error for entry in self.entries}) > 1:
            for i, _, x, _ in self._located(states):
                found[x] = self.entries[i].resolved_error
        return found

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
        best[best >= 0] -= first[:-1][best >= 0]
        found = EveryAction(
            first, names, named, q=q.values[at], values=values,
            to_act=np.where(acts, edges.actors + 1, 0), best=best,
            margins=np.where(acts, margins, np.nan), ties=np.zeros(len(states), bool),
            errors=np.where(over, 0.0, self.error), bids=no_bids(len(states)),
        )  # fmt: skip
        found.ties[:] = self._ties(found, owner, np.maximum(edges.actors, 0))
        given = acts & (status == GIVEN)
        if given.any():
            found = self._with_given(found, codes, given)
        return found

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
            np.arange(m + 1), tuple(self.action_names), codes[at].astype(np.int64),
            q=found.values[at], values=found.values[at], to_act=found.to_act[at],
            best=np.zeros(m, np.int64), margins=found.margins[at], ties=np.zeros(m, bool),
            errors=found.errors[at], bids=no_bids(m),
        )  # fmt: skip
        others = np.setdiff1d(np.arange(n), at)
        return joined([(others, found.only(others)), (at, alone)])

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
