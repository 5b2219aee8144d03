"""Questions to a table: fields → key → row group → payoffs.

    >>> with cluster.open_table("results/press-your-luck/1985-02/0f3c…") as table:
    ...     table.probe(states)                       # (n, fields) -> (n, players) float64
    ...     table.ask({"scores": "0,10000,7000", "earned": "0,1,0"}).best
    'pass to 2'

`probe` raises MissingTableError for a state that the table does not hold, `get` gives a default.
One state decodes one row group, which is remembered; many are sorted by key, so each row group is
decoded once.

A payoff comes from float32, and the payoff of an action is a mean of such: both are within
`Table.error` of float64. The best action is the one that the solve took in float64: of those that
the acting player can not tell apart at this precision, the one whose payoffs are the stored ones.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cluster.manifest import FileEntry, Manifest, read_manifest
from cluster.store import tier_file, tier_folder
from solver import load_tiered_game
from solver.backup import Edges, evaluate, expand, final_payoffs
from solver.board import board_from_canonical
from solver.errors import CorruptTableError, MissingTableError, StateError
from solver.game import TERMINAL, Floats, Ints, TieredGame

CACHED_GROUPS = 256
"""Decoded row groups that a table remembers; 400 kB each. More at once are not remembered."""
GROUPS_A_JOB, GROUPS_A_READ = 256, 8
"""Row groups that a thread takes of a file, and that it decodes at once."""

D = TypeVar("D")


@dataclass(frozen=True)
class Action:
    """An action's name and its payoff, one a player."""

    name: str
    value: tuple[float, ...]


@dataclass(frozen=True)
class Answer:
    """What a table says of a state. Payoffs are lists over players in turn order.

    to_act: the player to act, counted from 1; None where the game is over. actions: best first for
    him. toss_up: another action is worth as much to him as far as `error` can tell.
    """

    board: str
    state: dict[str, Any]
    to_act: int | None
    value: tuple[float, ...]
    actions: tuple[Action, ...]
    best: str | None
    toss_up: bool
    error: float
    source: str = "table"

    def as_json(self) -> dict[str, Any]:
        """The answer with the names and the order of DESIGN 4."""
        return {
            "board": self.board,
            "state": self.state,
            "to_act": self.to_act,
            "value": list(self.value),
            "actions": [{"action": a.name, "value": list(a.value)} for a in self.actions],
            "best": self.best,
            "toss_up": self.toss_up,
            "error": self.error,
            "source": self.source,
        }


class Table:
    """An open table; a context manager. Safe to use from one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: Manifest = read_manifest(path)
        self.game: TieredGame[Any] = load_tiered_game(
            board_from_canonical(self.manifest.board, self.manifest.canonical)
        )
        self._files: dict[int, pq.ParquetFile] = {}
        self._groups: OrderedDict[tuple[int, int], Floats] = OrderedDict()

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and forget what was decoded."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._groups.clear()

    @property
    def error(self) -> float:
        """The bound on the error of every payoff."""
        return self.manifest.payoff_error

    @cached_property
    def _entries(self) -> dict[int, tuple[str, FileEntry]]:
        return {entry.tier: (name, entry) for name, entry in self.manifest.files.items()}

    @cached_property
    def _names(self) -> dict[int, str]:
        tiers = self.game.tiers()
        return {self.game.tier_number(t): tier_folder(self.game, t) for t in tiers}

    # --- payoffs -----------------------------------------------------------------------------

    def probe(self, states: Ints) -> Floats:
        """The payoffs (n, players), float64, of canonical states (n, fields).

        Raises MissingTableError for the first state that is not in the table.
        """
        payoffs, found = self._probe(states)
        if not found.all():
            state = np.asarray(states).reshape(len(found), -1)[np.flatnonzero(~found)[0]]
            raise MissingTableError(self._missing(state))
        return payoffs

    def get(self, state: Ints, default: D) -> Floats | D:
        """The payoffs (players,) of one state, or `default` where the table does not hold it."""
        payoffs, found = self._probe(np.asarray(state).reshape(1, -1))
        return payoffs[0] if found[0] else default

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether the table holds each canonical state (n, fields); not where it is over."""
        numbers, _ = self.game.locate(states)
        held: NDArray[np.bool_] = np.isin(numbers, list(self._entries))
        return held

    def _missing(self, state: Ints) -> str:
        said = " ".join(
            f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in self.game.describe(state).items()
        )
        return f"{said} is {self.game.why_outside(state) or 'not solved yet in this table'}"

    def _probe(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        numbers, rows = self.game.locate(states)
        payoffs = np.zeros((len(states), self.game.players))
        over = numbers < 0
        if over.any():
            payoffs[over] = final_payoffs(self.game, states[over])
        found = over | np.isin(numbers, list(self._entries))
        order = np.lexsort((rows, numbers))
        order = order[found[order] & ~over[order]]
        jobs = [(self._entries[int(numbers[at[0]])][1], at) for at in _runs(order, numbers[order])]
        groups = [np.unique(rows[at] // entry.row_group_rows) for entry, at in jobs]
        if sum(map(len, groups)) <= CACHED_GROUPS:
            for (entry, at), wanted in zip(jobs, groups, strict=True):
                self._look(entry, wanted, at, rows, payoffs)
        else:
            parts = [
                (entry, part, at)
                for (entry, at), wanted in zip(jobs, groups, strict=True)
                for part in np.array_split(wanted, -(-len(wanted) // GROUPS_A_JOB))
            ]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for done in [
                    pool.submit(self._look_through, *part, rows, payoffs) for part in parts
                ]:
                    done.result()
        return payoffs, found

    def _look(self, entry: FileEntry, groups: Ints, at: Ints, rows: Ints, payoffs: Floats) -> None:
        """Fill payoffs[at] from few row groups, which are remembered."""
        for group in groups:
            key = (entry.tier, int(group))
            if key not in self._groups:
                columns = self._decode(self._file(entry), entry, [int(group)])
                self._groups[key] = np.stack(columns, axis=1)
                if len(self._groups) > CACHED_GROUPS:
                    self._groups.popitem(last=False)
            self._groups.move_to_end(key)
            inside = rows[at] // entry.row_group_rows == group
            payoffs[at[inside]] = self._groups[key][rows[at[inside]] % entry.row_group_rows]

    def _look_through(
        self, entry: FileEntry, groups: Ints, at: Ints, rows: Ints, payoffs: Floats
    ) -> None:
        """Fill the payoffs of those in `at` (sorted by row) that lie in many row groups.

        A thread's share: a file handle of its own, several groups a read, nothing remembered.
        """
        size = entry.row_group_rows
        of = rows[at] // size
        with self._open(entry) as file:
            for span in np.array_split(groups, -(-len(groups) // GROUPS_A_READ)):
                first, last = np.searchsorted(of, [span[0], span[-1] + 1])
                wanted = at[first:last]
                position = np.searchsorted(span, of[first:last]) * size + rows[wanted] % size
                for i, column in enumerate(self._decode(file, entry, span.tolist())):
                    payoffs[wanted, i] = column[position]

    def _decode(
        self, file: pq.ParquetFile, entry: FileEntry, groups: list[int]
    ) -> list[NDArray[np.float32]]:
        """The payoffs in some row groups, behind one another: a column a player."""
        try:
            read = file.read_row_groups(groups, columns=self.manifest.payoffs, use_threads=False)
        except (OSError, pa.ArrowException, IndexError) as error:
            raise CorruptTableError(f"{self._path(entry)}: {_line(error)}") from None
        return [column.to_numpy() for column in read.columns]

    def _path(self, entry: FileEntry) -> Path:
        return tier_file(self.path, self._entries[entry.tier][0])

    def _open(self, entry: FileEntry) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._path(entry))
        except (OSError, pa.ArrowException) as error:
            raise CorruptTableError(f"{self._path(entry)}: {_line(error)}") from None

    def _file(self, entry: FileEntry) -> pq.ParquetFile:
        if entry.tier not in self._files:
            self._files[entry.tier] = self._open(entry)
        return self._files[entry.tier]

    # --- answers -----------------------------------------------------------------------------

    def ask(self, words: Mapping[str, str]) -> Answer:
        """The answer to fields as text. Raises StateError, or MissingTableError as `probe`."""
        return self.answers(self.game.parse(words).reshape(1, -1))[0]

    def answers(self, states: Ints) -> list[Answer]:
        """The answers to canonical states (n, fields): one step of the rules over the table.

        Raises StateError for a state that the full table would not hold either.
        """
        values, found = self._probe(states)
        for x in np.flatnonzero(~found):
            outside = self.game.why_outside(states[x]) is not None
            raise (StateError if outside else MissingTableError)(self._missing(states[x]))
        edges = expand(self.game, states)
        outcome = self.best_actions(edges, values)
        return [self._answer(x, states[x], values[x], edges, outcome) for x in range(len(states))]

    def best_actions(self, edges: Edges, values: Floats) -> Lookahead:
        """Every action's payoffs and the one that the solve took, for expanded states.

        `values` (n, players): the stored payoffs of the states themselves.
        """
        # Children of a state that is over are the state itself, whose payoff is not looked at.
        q = evaluate(edges, self.probe(edges.children))
        actor = np.maximum(edges.actors, 0)[q.states]
        own = q.values[np.arange(len(q.states)), actor]
        top = np.maximum.reduceat(own, q.first[:-1])
        slack = 2 * self.error + self.game.tie_tolerance
        level = own >= top[q.states] - slack
        distance = np.abs(q.values - values[q.states]).max(axis=1)
        distance = np.where(level, distance, np.inf)
        near = np.minimum.reduceat(distance, q.first[:-1])
        candidates = np.flatnonzero(level & (distance <= near[q.states] + slack))
        best = candidates[np.searchsorted(q.states[candidates], np.arange(len(values)))]
        ties = np.add.reduceat(level.astype(np.int64), q.first[:-1]) > 1
        return Lookahead(q.first, q.actions, q.values, best, ties)

    def _answer(self, x: int, state: Ints, value: Floats, edges: Edges, look: Lookahead) -> Answer:
        first, last = look.first[x], look.first[x + 1]
        common = (self.manifest.board, self.game.describe(state))
        stored = tuple(map(float, value))
        if edges.kinds[x] == TERMINAL:
            return Answer(*common, None, stored, (), None, False, 0.0)
        actor, best = int(edges.actors[x]), int(look.best[x])
        order = sorted(range(first, last), key=lambda k: (k != best, -look.values[k, actor], k))
        actions = tuple(
            Action(self.game.action_name(int(look.actions[k])), tuple(map(float, look.values[k])))
            for k in order
        )
        return Answer(
            *common, actor + 1, stored, actions, actions[0].name, bool(look.ties[x]), self.error
        )


@dataclass(frozen=True)
class Lookahead:
    """One step ahead of n states with k actions in all.

    first: int64 (n + 1,). actions: int64 (k,). values: float64 (k, players). best: int64 (n,) into
    the k. ties: bool (n,), whether the best has a rival that precision can not tell from it.
    """

    first: Ints
    actions: Ints
    values: Floats
    best: Ints
    ties: NDArray[np.bool_]


def open_table(path: str | os.PathLike[str]) -> Table:
    """Open the table in a directory. Raises MissingTableError, CorruptTableError."""
    return Table(Path(path))


def _runs(items: Ints, labels: Ints) -> Iterable[Ints]:
    """The runs of `items` over equal neighbours in `labels`."""
    if len(items):
        yield from np.split(items, np.flatnonzero(np.diff(labels)) + 1)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:150]
