"""A table: the payoffs of many states of one game, open for questions; on disk or in memory.

    >>> with luckbase.open("results/press-your-luck/1985-02/ab2edb73e281") as table:
    ...     table[{"scores": (0, 10000, 7000), "earned": (0, 1, 0)}].best
    'pass to 3'

`find.open_table` opens one in a folder; `tiers_in_memory` and `search_in_memory` solve one from
nothing but a board. One in memory has the files that `cluster.run.driver` would write, in memory:
they answer alike to the last bit.
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

from luckbase.cluster.table import FORMAT, OnRows, nobody
from luckbase.cluster.table.answer import Answer
from luckbase.cluster.table.format import Written, tier_files, write_tier
from luckbase.cluster.table.lookup import MAX_SEARCHED, Lookup
from luckbase.cluster.table.manifest import (
    SEARCH,
    TIERS,
    Goal,
    Head,
    Manifest,
    solve_command,
)
from luckbase.cluster.table.parts import Part, TierPart
from luckbase.cluster.table.storage import Memory, place_of, results_of
from luckbase.solver import sentences
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.game.arrays import Decisions, Ints
from luckbase.solver.game.capabilities import Charts, Layout, choose_chart, scene_of
from luckbase.solver.game.fields import Fields, State, typed
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import html_facts

if TYPE_CHECKING:
    from luckbase.cluster.play.game import Play, PlayOptions
    from luckbase.cluster.table.comparison import Comparison
    from luckbase.cluster.table.diff import DiffOptions
    from luckbase.cluster.table.export import Exported, ExportOptions
    from luckbase.cluster.table.folder import Published
    from luckbase.cluster.table.moves import Moves
    from luckbase.cluster.table.verify import Verdict
    from luckbase.solver.charts import Chart, Kind
    from luckbase.solver.scene import Scene


class Table(Lookup):
    """An open table: it answers by state (`Lookup`), and more is made of it here.

    played_by: ``module:function`` of the room above that makes a `Play`, as `luckbase.open` says.
    """

    played_by: ClassVar[str] = ""

    def _repr_html_(self) -> str:
        if self._parts is None:
            return html_facts(f"a table of {self.game.board.game}, closed", [])
        rows = [("rules", str(self.origin)), ("states", f"{self.rows:,}"),
                ("payoffs", f"{self.game.payoff_name}, {sentences.within(self.error, 'each ')}"),
                ("parts", ", ".join(f"{part.name} {part.rows:,}" for part in self.parts)),
                ("fields", ", ".join(self.game.fields.names)), ("where", str(self.where)),
                ("stale", "; ".join(self.origin.stale))]  # fmt: skip
        return html_facts(f"a table of {self.game.board.game}", rows)

    @property
    def fields(self) -> Fields:
        """The fields of its states (`solver.game.fields`); ``t.fields.names``, their names."""
        return self.game.fields

    @property
    def charts(self) -> tuple[Kind, ...]:
        """The charts that `chart` makes of it, the usual one first: their ``name``, and what each
        ``shows`` (`solver.charts.Kind`)."""
        self.check_open()
        charts, kinds = self.game.get(Charts), []
        for kind in () if charts is None else charts.kinds:
            with suppress(OptionError, MissingTableError):
                self.check_chart(kind)
                kinds.append(kind)
        return tuple(kinds)

    def moves(self, state: State, max_states: int = MAX_SEARCHED) -> Moves:
        """All that can happen at a state: every action and every outcome, in words and with its
        payoffs (`cluster.table.moves`); a state above the table by a search of so many states.

        Raises StateError, SearchLimitError; MissingTableError where nothing may be searched.
        """
        from luckbase.cluster.table.moves import moves

        return moves(self, state, max_states)

    def why(self, state: State, max_states: int = MAX_SEARCHED) -> list[str]:
        """Why the best action at a state is the best, a sentence each: what chance brings, what the
        sure thing pays, where the decision turns (`cluster.table.why`). Raises as `moves`."""
        from luckbase.cluster.table.why import explain

        return list(map(str, explain(self, state, max_states)[1]))

    def follow(
        self, state: State, max_states: int = MAX_SEARCHED,
        on_states: Callable[[int], None] = lambda states: None,
    ) -> Answer:  # fmt: skip
        """The answer to a state from what the stored decisions lead to, exactly, down to payoffs
        that are stored (`moves.follow_decisions`). Raises StateError, SearchLimitError."""
        from luckbase.cluster.table.moves import follow_decisions

        return follow_decisions(self, state, max_states, on_states)

    def simulate(self, state: State, games: int = 100_000, seed: int = 0) -> Answer:
        """The same by so many games of each action, its `error` the standard error
        (`cluster.table.moves.play_games`). Raises StateError."""
        from luckbase.cluster.table.moves import play_games

        return play_games(self, state, games, seed)

    def values(
        self, frame: Any, *, best: bool = False, margin: bool = False, toss_up: bool = False,
        solve_id: bool = False, actions: bool = False,
    ) -> Any:  # fmt: skip
        """The payoffs of many states: a pandas, polars or Arrow table, or a list of mappings, with
        the columns ``payoff_1``, … behind its own; the same kind is given back.

        States are in columns as tables have them (``scores_1``, …) or one a field
        (`cluster.table.frames`). best, margin, toss_up, solve_id: more columns. actions: all of
        these, ``to_act``, and the payoffs of every action, ``play_payoff_1``, …
        (`cluster.table.columns`). Raises StateError, with the row, for what is no state or
        not in the table; OptionError for another kind.
        """
        from luckbase.cluster.table import frames

        more = {"best": best, "margin": margin, "toss_up": toss_up, "solve_id": solve_id,
                "actions": actions}  # fmt: skip
        return frames.answered(self, frame, [name for name, yes in more.items() if yes])

    def ask_all(self, frame: Any) -> Iterator[Answer]:
        """The `Answer` to each state of a frame, in its order, as `ask` gives it and as `values`
        takes the frame; nothing is searched. Raises as `values`, before the first answer."""
        from luckbase.cluster.table import frames

        return frames.all_answers(self, frame)

    def to_arrow(
        self, where: Any = None, columns: Sequence[str] | None = None, *, actions: bool = False,
        on_rows: OnRows = nobody,
    ) -> Any:  # fmt: skip
        """Every row of every part as a pyarrow.RecordBatchReader, a row group at a time.

        where: only these rows: words (``"scores_1>=8000 spins=2"``, `cluster.table.columns`), by
        which row groups are skipped, or a pyarrow.compute expression. actions: with the margin,
        whether it is a toss-up, and the payoffs of every action, as `values` names them; words may
        say these too (``"margin<0.001"``). columns: only these. on_rows: told how many rows were
        gone through, and of how many. Raises OptionError for words that say no column,
        CorruptTableError.
        """
        from luckbase.cluster.table.export import reader

        return reader(self, where, columns, actions, on_rows)

    def to_pandas(
        self, where: Any = None, columns: Sequence[str] | None = None, *, actions: bool = False
    ) -> Any:
        """The rows that are wanted as a pandas.DataFrame, as `to_arrow` takes them; the column
        ``part`` only where there are several. A row of it is a state that the table takes.

        Raises as `to_arrow`; MemoryLimitError for more rows than the memory that is free holds;
        OptionError where there is no pandas.
        """
        from luckbase.cluster.table.export import data_frame

        return data_frame(self, where, columns, actions)

    def export(
        self, out: str | os.PathLike[str], where: Any = None, **how: Unpack[ExportOptions]
    ) -> Exported:
        """Write the rows of `to_arrow` to a file as CSV, JSON lines or Parquet, by its ending; the
        whole file or none. They have every action, if the table has payoffs.

        how: `cluster.table.export.ExportOptions`. Raises as `to_arrow`; OptionError for another
        ending; OSError if the disk is full.
        """
        from luckbase.cluster.table.export import export

        return export(self, os.fspath(out), where, **how)

    def verify(
        self, sample: int | None = 10_000, seed: int = 0,
        on_rows: OnRows = nobody,
    ) -> Verdict:  # fmt: skip
        """Check every byte against the manifest, then the payoffs of `sample` rows (None: all)
        against the rules. on_rows: told how many rows were gone through, and of how many; (0, …)
        when either begins. Raises CorruptTableError where a child of a row is not there."""
        from luckbase.cluster.table.verify import verify

        return verify(self, sample, seed, on_rows)

    def diff(self, other: Table, **how: Unpack[DiffOptions]) -> Comparison:
        """Which decisions another table of the game moves, and what it costs to keep those of this
        one (`cluster.table.diff.compare`)."""
        from luckbase.cluster.table.diff import compare

        return compare(self, other, **how)

    def chart(self, name: str | None = None, fields: State = {}) -> Chart:
        """One of the game's charts, the usual one if not named: lines and rows, or a picture.

        fields: only what has these values. Raises OptionError for a chart that the game does not
        have, and for a table without the full one; MissingTableError if that is not complete.
        """
        from luckbase.solver.charts import ChartRequest

        kind = choose_chart(self.game, name)
        self.check_chart(kind)
        best = self.known_best if self.decided is not None else None
        request = ChartRequest(typed(fields), self.error, best)
        return self.game.need(Charts).make(kind.name, self.probe_or_backup, request)

    def check_chart(self, kind: Kind) -> None:
        """Raises OptionError where there is no full table in it, nor all that a chart needs;
        MissingTableError for one that is not complete."""
        from luckbase.solver.charts import FULL

        again, goal = "", None if self.manifest is None else self.manifest.furthest
        if self.manifest is not None:
            origin = self.manifest.origin or Goal(TIERS, {}, None, 0, "", {})
            results = results_of(self.where)
            again = f": {solve_command(replace(origin, roots=None), self.game, results)}"
        whole = self.full is not None
        if not whole and kind.needs == FULL:
            self.game.need(Layout)  # where there is none, it says why
            raise OptionError(
                f"{self.where}: holds what lies below some states, and a chart needs the full "
                f"table{again}"
            )
        if not whole:
            self.probe(self.game.needed_starts())
        if self.manifest is not None and goal is not None and not self.manifest.is_done(goal):
            raise MissingTableError(
                f"{self.where}: {self.unfinished(TIERS)[0]}, and a chart needs them all{again}"
            )

    def scene(self, state: State) -> Scene:
        """A state as the game looks, which a notebook shows; as data (`solver.scene`).

        state: as `ask` takes it, held by the table or not. Raises StateError."""
        self.check_open()
        return scene_of(self.game, state)

    def play(self, start: State | None = None, **how: Unpack[PlayOptions]) -> Play:
        """A person's game from a state, or the game's start, priced by this table
        (`cluster.play.game.play_on`)."""
        self.check_open()
        return resolve_name(self.played_by)(self, start, **how)


class StoredTable(Table):
    """A table in a folder, or where a URI says (`find.open_table`)."""

    manifest: Manifest

    @property
    def path(self) -> Path:
        """Its folder, or the place that the URI names."""
        return self.where

    @property
    def identity(self) -> str:
        return self.manifest.head.identity

    def files(self, part: str = TIERS) -> list[str]:
        """Return the places of the files of a part, for other programs. Other files in its folder
        are not in the table."""
        return [str(self.where / entry.place) for entry in self.manifest.of_part(part)]

    def publish(self, to: str | os.PathLike[str], on_rows: OnRows = nobody) -> Published:
        """Copy the table, which is finished, to a URI or the folder of a web server, where others
        ask it (`cluster.table.folder`). on_rows: told how many rows are there, and of how many.

        Raises RequestError where it is not finished, ForeignTableError where another table stands
        there, CorruptTableError, StoreError."""
        from luckbase.cluster.table.folder import publish

        self.check_open()
        return publish(self.path, place_of(to), on_rows)


MEMORY = Path("memory")
"""Where tables stand that are in no folder."""
MAX_STATES = 20_000_000
"""States that a search in memory may meet unless told otherwise."""


def _in_memory(
    game: Game, kind: type[Part], name: str, source: str,
    write: Callable[[Memory], Iterator[Written]],
) -> Table:  # fmt: skip
    """A table of one part: write(storage) makes its files."""
    storage = Memory()
    head = Head(FORMAT, game.board.game, game.board.name, "", {}, game.rules_version)
    manifest = Manifest(head)
    for entry, path in write(storage):
        storage.put(entry.name, path)
        storage.close()
        manifest.add(entry)
    return Table(game, [kind(storage, MEMORY, manifest, name, game)], MEMORY, source)


def tiers_in_memory(layout: Layout[Any]) -> Table:
    """The full table, solved in memory: while that goes on 8 bytes a state and player or less, then
    as much as its files would take.

    Raises OptionError where the board has none, GameError as `check_tiers`.
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
                decisions = Decisions(best[first:last])
                yield write_tier(storage, layout, tier, file, rows, decisions, error)

    return _in_memory(layout.game, TierPart, TIERS, "all tiers, solved just now", write)


def search_in_memory(game: Game, roots: Ints, max_states: int = MAX_STATES) -> Table:
    """All that lies below canonical roots (m, fields), solved in memory: 60 bytes a state, without
    those inside turns.

    Raises SearchLimitError beyond `max_states`, StateError as `Graph.solve`.
    """
    from luckbase.cluster.table.keyed import KeyPart, solved_rows, write_states
    from luckbase.solver.search.game_graph import Graph

    graph = Graph(game, max_states=max_states, keeps_turns=False)
    graph.solve(np.ascontiguousarray(roots).reshape(-1, game.field_count))
    rows = solved_rows(graph)
    error = max(game.float64_error, graph.error) + game.cut_error

    def write(storage: Memory) -> Iterator[Written]:
        yield write_states(storage, f"{SEARCH}/all.parquet", game, rows, error)

    return _in_memory(game, KeyPart, SEARCH, "a search of all that lies below", write)
