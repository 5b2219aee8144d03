"""A table: the payoffs of many states of one game, open for queries; on disk or in memory.

>>> with luckbase.open("results/press-your-luck/1985-02/ab2edb73e281") as table:
...     table[{"scores": (0, 10000, 7000), "earned": (0, 1, 0)}].best
'pass to 3'

`find.open_table` opens a table in a folder; `tiers_in_memory` and `search_in_memory` solve a board
on one core, without files on disk. A table in memory has the same files that `cluster.solve.driver`
would write, so its answers are identical to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from luckbase.cluster import notebook
from luckbase.cluster.answers.answer import Answer
from luckbase.cluster.answers.lookup import MAX_SEARCHED, Lookup
from luckbase.cluster.answers.part_kinds import KeyPart, TierPart
from luckbase.cluster.answers.parts import Part
from luckbase.cluster.store import FORMAT, OnRows
from luckbase.cluster.store.format import (
    Written,
    solved_rows,
    tier_files,
    write_states,
    write_tier,
)
from luckbase.cluster.store.manifest import SEARCH, TIERS, Goal, Head, Manifest
from luckbase.cluster.store.provenance import solve_command
from luckbase.cluster.store.storage import Memory, place_of, results_of
from luckbase.solver import sentences
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts, FullTable, choose_chart, scene_of
from luckbase.solver.game.fields import Fields, State, typed
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import html_facts

if TYPE_CHECKING:
    from luckbase.cluster.answers.comparison import Comparison
    from luckbase.cluster.answers.export import Exported
    from luckbase.cluster.answers.moves import Moves
    from luckbase.cluster.answers.verify import Verdict
    from luckbase.cluster.play.game import Play, PlayOptions
    from luckbase.cluster.store.publish import Published
    from luckbase.solver.charts import Chart, Kind
    from luckbase.solver.scene import Scene

MEMORY = Path("memory")
"""The location of tables in memory."""
MAX_STATES = 20_000_000
"""Default limit of states of a search in memory."""
PUBLIC = (
    "agent", "ask", "ask_all", "chart", "charts", "close", "diff", "error", "export", "fields",
    "follow", "game", "get", "identity", "moves", "origin", "parquet", "play", "probe", "publish",
    "rows", "scene", "simulate", "to_arrow", "to_pandas", "unfinished", "values", "verify", "where",
    "why",
)  # fmt: skip
"""The names of a table that `dir` returns."""


class Table(Lookup):
    """An open table: queries by state (`Lookup`), and other uses of its payoffs."""

    played_by: ClassVar[str] = ""
    """``module:function`` in a higher room that makes a `Play`; set by `luckbase.open`."""

    def _repr_html_(self) -> str:
        if self._parts is None:
            return html_facts(f"a table of {self.game.board.game}, closed", [])
        rows = [("rules", str(self.origin)), ("states", f"{self.rows:,}"),
                ("payoffs", f"{self.game.payoff_name}, {sentences.within(self.error, 'each ')}"),
                ("parts", ", ".join(f"{part.name} {part.rows:,}" for part in self.parts)),
                ("fields", ", ".join(self.game.fields.names)), ("where", str(self.where)),
                ("stale", "; ".join(self.origin.stale))]  # fmt: skip
        return html_facts(f"a table of {self.game.board.game}", rows)

    def __dir__(self) -> list[str]:
        """Return the public names (docs/reference/python.md). The others are internal."""
        names = [name for name in PUBLIC if name in vars(self) or hasattr(type(self), name)]
        return [name for name in names if self.in_files or name != "parquet"]

    @property
    def fields(self) -> Fields:
        """The fields of its states (`solver.game.fields`), with their ``names``."""
        return self.game.fields

    @property
    def parquet(self) -> list[str]:
        """The Parquet files of its payoffs, for DuckDB, polars and pandas: of the full table, or of
        its searches if there is none. Other files in the folder do not belong to the table. Empty
        for a table in memory.

        >>> duckdb.read_parquet(t.parquet)
        """
        paid = [part.name for part in self.parts if part.paid] if self.in_files else []
        entries = self.manifest.of_part(*([TIERS] if TIERS in paid else paid))
        return [str(self.where / entry.place) for entry in entries]

    @property
    def charts(self) -> tuple[Kind, ...]:
        """The charts that `chart` can draw from this table, default first: their ``name``, and what
        each ``shows`` (`solver.charts.Kind`)."""
        self.check_open()
        charts, kinds = self.game.get(Charts), []
        for kind in () if charts is None else charts.kinds:
            with suppress(OptionError, MissingTableError):
                self.check_chart(kind)
                kinds.append(kind)
        return tuple(kinds)

    def moves(self, state: State, max_states: int = MAX_SEARCHED) -> Moves:
        """Return every action and outcome at a state, in words and with payoffs
        (`cluster.answers.moves`).

        max_states: limit of the search for a state above the table; 0 for no search.

        Raises StateError, SearchLimitError; MissingTableError if a search would be needed and is
        not allowed.
        """
        from luckbase.cluster.answers.moves import moves

        return moves(self.for_state(state), state, max_states)

    def why(self, state: State, max_states: int = MAX_SEARCHED) -> list[str]:
        """Return sentences that explain the best action at a state: the effect of chance, the
        payoff of a sure action, and the threshold (`cluster.answers.why`). Raises as `moves`
        does."""
        from luckbase.cluster.answers.moves import moves
        from luckbase.cluster.answers.why import why

        table = self.for_state(state)
        return why(table, moves(table, state, max_states))

    def follow(
        self, state: State, max_states: int = MAX_SEARCHED,
        on_states: Callable[[int], None] = lambda states: None,
    ) -> Answer:  # fmt: skip
        """Return the exact answer for a state if all players follow the stored decisions down to
        stored payoffs (`moves.follow_decisions`).

        Raises StateError, SearchLimitError.
        """
        from luckbase.cluster.answers.moves import follow_decisions

        table = self.for_state(state)
        states, inputs = table.read(state)
        (answer,) = follow_decisions(table, states, max_states, on_states)
        return table.as_given(answer, states[0], inputs[0])

    def simulate(self, state: State, games: int = 100_000, seed: int = 0) -> Answer:
        """Estimate the same by simulating games of each action; `error` is the standard error
        (`cluster.answers.moves.play_games`). Raises StateError."""
        from luckbase.cluster.answers.moves import play_games

        return play_games(self.for_state(state), [state], [games], seed)[0]

    def values(
        self, frame: Any, *, best: bool = False, margin: bool = False, toss_up: bool = False,
        solve_id: bool = False, actions: bool = False,
    ) -> Any:  # fmt: skip
        """Return a frame with the payoffs of its states: columns ``payoff_1``, … after its own.

        frame: a pandas, polars or Arrow table, or a list of mappings; the result is of the same
            kind. States are in the table's columns (``scores_1``, …) or in one column for each
            field (`cluster.answers.frames`).
        best, margin, toss_up, solve_id: add these columns.
        actions: add all of these, ``to_act``, and the payoffs of every action, ``play_payoff_1``, …
            (`cluster.answers.columns`).

        Raises StateError, with the row, for an invalid state or a state that is not in the table;
        OptionError for another kind of frame.
        """
        from luckbase.cluster.answers import frames

        more = {"best": best, "margin": margin, "toss_up": toss_up, "solve_id": solve_id,
                "actions": actions}  # fmt: skip
        return frames.answered(self, frame, [name for name, yes in more.items() if yes])

    def ask_all(self, frame: Any) -> Iterator[Answer]:
        """Yield the `Answer` to each state of a frame, in order, as `ask` returns it. Takes the
        same frames as `values`, and never searches. Raises as `values` does, before the first
        answer."""
        from luckbase.cluster.answers import frames

        return frames.all_answers(self, frame)

    def to_arrow(
        self, where: Any = None, columns: Sequence[str] | None = None, *, actions: bool = False,
        on_rows: OnRows = notebook.on_rows,
    ) -> Any:  # fmt: skip
        """Return all rows of all parts as a pyarrow.RecordBatchReader, one row group at a time.

        where: select rows, by text (``"scores_1>=8000 spins=2"``, `cluster.answers.columns`), which
            skips row groups, or by a pyarrow.compute expression.
        columns: only these.
        actions: add the margin, whether it is a toss-up, and the payoffs of every action, named as
            in `values`. `where` may then use these columns (``"margin<0.001"``).
        on_rows: called with the number of rows done and the total.

        Raises OptionError for an unknown column, CorruptTableError.
        """
        from luckbase.cluster.answers.export import reader

        return reader(self, where, columns, actions, on_rows)

    def to_pandas(
        self, where: Any = None, columns: Sequence[str] | None = None, *, actions: bool = False
    ) -> Any:
        """Return rows as a pandas.DataFrame, selected as in `to_arrow`. The column ``part`` is
        included only if there are several parts. Its rows are valid states for queries.

        Raises as `to_arrow` does; MemoryLimitError for more rows than fit in the free memory;
        OptionError if pandas is not installed.
        """
        from luckbase.cluster.answers.export import data_frame

        return data_frame(self, where, columns, actions)

    def export(
        self, out: str | os.PathLike[str], where: Any = None, *,
        columns: Sequence[str] | None = None, format: str | None = None,
        on_rows: OnRows = notebook.on_rows,
    ) -> Exported:  # fmt: skip
        """Write the rows of `to_arrow` to a CSV, JSON-lines or Parquet file. The file is complete
        or does not appear. Rows include every action if the table has payoffs.

        out: a file, or ``-`` for stdout.
        format: csv, jsonl or parquet; by default the suffix of the file, or csv for stdout.

        Raises as `to_arrow` does; OptionError for another suffix; OSError if the disk is full.
        """
        from luckbase.cluster.answers.export import export

        return export(self, os.fspath(out), where, columns, format, on_rows)

    def verify(
        self, sample: int | None = 10_000, seed: int = 0,
        on_rows: OnRows = notebook.on_rows,
    ) -> Verdict:  # fmt: skip
        """Check all bytes against the manifest, then the payoffs of `sample` rows (None: all)
        against the rules, and solve small searches again. Faults are part of the verdict.

        on_rows: called with the number of rows done and the total; (0, …) when either check begins.
        """
        from luckbase.cluster.answers.verify import verify

        return verify(self, sample, seed, on_rows)

    def diff(
        self, other: Table, *, worst: int = 10, sample: int | None = None,
        out: str | os.PathLike[str] | None = None, on_rows: OnRows = notebook.on_rows,
    ) -> Comparison:  # fmt: skip
        """Compare with another table of the game: which decisions differ, and the cost of keeping
        this table's (`cluster.answers.diff.compare`).

        worst: number of the most expensive decisions to list.
        sample: compare only this many states, drawn uniformly with a fixed seed.
        out: a .csv or .parquet file for all moved decisions.
        on_rows: called with the number of rows compared and the total.
        """
        from luckbase.cluster.answers.diff import compare

        return compare(self, other, worst, sample, out, on_rows)

    def chart(self, name: str | None = None, fields: State = {}) -> Chart:
        """Return one of the game's charts, by default its first: lines and rows, or a picture.

        fields: select the states with these values.

        Raises OptionError for a chart that the game does not have, and for a table without a full
        table; MissingTableError if the full table is incomplete.
        """
        from luckbase.solver.charts import ChartRequest

        kind = choose_chart(self.game, name)
        self.check_chart(kind)

        def payoffs_of(states: Ints) -> Floats:
            payoffs, known = self.backup(states)
            self.require(states, known)
            return payoffs

        def best_of(states: Ints) -> list[str | None]:
            self.require(states, self.holds(states))
            return self.stored_best(states)

        best = best_of if self.decided is not None else None
        request = ChartRequest(typed(fields), self.error, best)
        return self.game.need(Charts).make(kind.name, payoffs_of, request)

    def check_chart(self, kind: Kind) -> None:
        """Raise OptionError if the table lacks a full table and the states that a chart needs;
        MissingTableError if the full table is incomplete."""
        from luckbase.solver.charts import FULL

        again, goal = "", self.manifest.furthest
        if self.in_files:
            origin = self.manifest.origin or Goal(TIERS, {}, None, 0, "", {})
            results = results_of(self.where)
            again = f": {solve_command(replace(origin, roots=None), self.game, results)}"
        if self.full is None and kind.needs == FULL:
            self.game.need(FullTable)  # raises the reason if it has none
            raise OptionError(
                f"{self.where}: holds what lies below some states, and a chart needs the full "
                f"table{again}"
            )
        if self.full is None:
            self.probe(self.game.needed_starts())
        if goal is not None and not self.manifest.is_done(goal):
            raise MissingTableError(
                f"{self.where}: {self.unfinished(TIERS)[0]}, and a chart needs them all{again}"
            )

    def scene(self, state: State) -> Scene:
        """Return a drawing of a state as data (`solver.scene`), which a notebook displays.

        state: as in `ask`; it need not be in the table.

        Raises StateError.
        """
        self.check_open()
        return scene_of(self.game, state)

    def play(self, start: State | None = None, **how: Unpack[PlayOptions]) -> Play:
        """Begin a person's game from a state, or from the game's start, with payoffs from this
        table (`cluster.play.game.play_on`)."""
        self.check_open()
        return resolve_name(self.played_by)(self, start, **how)

    def publish(self, to: str | os.PathLike[str], on_rows: OnRows = notebook.on_rows) -> Published:
        """Copy the finished table to a URI, or to the folder of a web server, where others can
        query it (`cluster.store.publish`).

        on_rows: called with the number of rows copied and the total.

        Raises RequestError if the table is not finished, ForeignTableError if another table is
        there, CorruptTableError, StoreError; OptionError for a table in memory.
        """
        from luckbase.cluster.store.publish import publish

        self.check_open()
        if not self.in_files:
            raise OptionError("publish: this table is in memory; solve its board first")
        return publish(self.where, place_of(to), on_rows)


# --- in memory -----------------------------------------------------------------------------------


def _in_memory(
    game: Game, kind: type[Part], name: str, source: str,
    write: Callable[[Memory], Iterator[Written]],
) -> Table:  # fmt: skip
    """Return a table with a single part. write(storage) yields its files."""
    storage = Memory()
    head = Head(FORMAT, game.board.game, game.board.name, "", {}, game.rules_version)
    manifest = Manifest(head)
    for entry, path in write(storage):
        storage.put(entry.name, path)
        storage.close()
        manifest.add(entry)
    return Table(game, [kind(storage, MEMORY, manifest, name, game)], MEMORY, manifest, source)


def tiers_in_memory(layout: FullTable[Any]) -> Table:
    """Solve a full table in memory. It needs up to 8 bytes for each state and player while it is
    solved, and the size of its files afterwards.

    Raises OptionError if the board has no full table, GameError as `check_tiers` does.
    """
    from luckbase.solver.dense import InMemory, check_tiers

    check_tiers(layout)
    tiers = InMemory(layout, best=True)

    def write(storage: Memory) -> Iterator[Written]:
        for tier in list(tiers.payoffs):
            payoffs, best = tiers.payoffs.pop(tier), tiers.best.pop(tier)
            parts, error = layout.parts(tier), tiers.errors[tier]
            for file in tier_files(layout, tier):
                first, last = parts[file.part]
                rows = payoffs if len(parts) == 1 else payoffs[first:last]
                yield write_tier(storage, layout, tier, file, rows, best[first:last], error)

    return _in_memory(layout.game, TierPart, TIERS, "all tiers, solved just now", write)


def search_in_memory(game: Game, roots: Ints, max_states: int = MAX_STATES) -> Table:
    """Solve all states below canonical roots (m, fields) in memory: 60 bytes a state. States inside
    turns are not kept.

    Raises SearchLimitError beyond `max_states`, StateError as `Graph.solve` does.
    """
    from luckbase.solver.search.game_graph import Graph

    graph = Graph(game, max_states=max_states, keeps_turns=False)
    graph.solve(np.ascontiguousarray(roots).reshape(-1, game.field_count))
    rows = solved_rows(graph)
    error = max(game.float64_error, graph.error) + game.cut_error

    def write(storage: Memory) -> Iterator[Written]:
        yield write_states(storage, f"{SEARCH}/all.parquet", game, rows, error)

    return _in_memory(game, KeyPart, SEARCH, "a search of all that lies below", write)
