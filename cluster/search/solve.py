"""The search: a table of all that lies below some roots, for any game, from its rules.

A small one is solved in one piece (`solver.search.game_graph`), in this process. A larger one goes
by stages (`cluster.search.stages`), if the game has a level, declared or found
(`capabilities.Level`): each state is solved once, on all workers, and memory does not bound it. A
game without a level is one piece, however large. Each search is a part of the table of its own; its
rows and their values depend on the board and the roots only.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Unpack

import numpy as np

from luckbase.cluster.run.driver import Work, is_new, peak_memory, solve_table
from luckbase.cluster.run.options import Options, SolveOptions
from luckbase.cluster.run.progress import Progress, SolvedSearch, Watch
from luckbase.cluster.table.entries import commit, compact, drop_files, entries_of
from luckbase.cluster.table.format import put_file
from luckbase.cluster.table.keyed import solved_rows, write_states
from luckbase.cluster.table.ledger import (
    Done,
    FileEntry,
    Goal,
    Ledger,
    LevelEntry,
    Roots,
    marked,
    origin_of,
    search_part,
)
from luckbase.cluster.table.storage import storage_at
from luckbase.solver.board.model import Board
from luckbase.solver.compiled import ahead
from luckbase.solver.errors import SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Level, SearchHints, level_from
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.search.bellman import matrix_game_solver
from luckbase.solver.search.expand import root_keys, some_state
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import Keys, pack_all, unpack_all, unpack_columns


def solve_below(
    board: Board, roots: Ints | None = None, **options: Unpack[SolveOptions]
) -> SolvedSearch:  # fmt: skip
    """Solve all that lies below canonical `roots` (m, fields), or below the game's start.

    Raises OptionError where a start is missing, RequestError as `Graph.solve`; as
    `driver.solve_table`.
    """
    game = load_game(board)
    return solve_table(_Search(game, root_keys(game, roots), Options(**options)))


def roots_at(game: Game, keys: Keys) -> Roots:
    """The roots of a search, by their keys."""
    return Roots([game.describe(state) for state in unpack_all(game.strides, keys)])


def warm_up(game: Game) -> None:
    """Compile the search, or load it, before it is timed and before every worker does."""
    ahead(game.transition, matrix_game_solver(game), unpack_columns)
    graph, state = Graph(game), some_state(game)
    graph.know(pack_all(game.strides, state), np.zeros((1, game.players)))
    graph.solve(state)


class _Search(Work[SolvedSearch]):
    """In one piece while it is small, else by stages; the ledger, the counts."""

    def __init__(self, game: Game, keys: Keys, options: Options) -> None:
        """keys: of its roots."""
        super().__init__(game, options)
        self.keys, self.roots = keys, roots_at(game, keys)
        self.part, self.started = search_part(self.roots), time.perf_counter()

    def starts(self) -> Ints:
        return np.asarray(unpack_all(self.game.strides, self.keys))

    def report(self, table: Path, ledger: Ledger, goal: Goal) -> SolvedSearch:
        kept = sum(entry.rows for entry in ledger.of_part(self.part))
        return SolvedSearch(origin_of(self.game), table, ledger, goal, kept=kept, workers=0)

    def forget(self, table: Path, ledger: Ledger) -> None:
        ledger.levels.pop(self.part, None)
        drop_files(ledger, [entry.name for entry in ledger.of_part(self.part)], self.part)

    def compile(self) -> None:
        warm_up(self.game)

    def solve(self, report: SolvedSearch) -> SolvedSearch:
        self.table, self.ledger, self.goal = report.table, report.ledger, report.goal
        self.storage, self.started = storage_at(self.table), time.perf_counter()
        self.result = replace(report, workers=1)
        if self.part not in self.ledger.levels and self._in_one_piece():
            return self.result
        level = self._level_of_stages()
        assert level is not None  # else it was solved in one piece
        return self._by_stages(level)

    def _in_one_piece(self, limit: int = 0) -> bool:
        """Solve it in this process and memory, if it has no more than `limit` states, or a small
        number of states if that is 0; whether it was so small. A game without levels is solved so
        up to `Options.most` states."""
        small, most = self.options.one_piece, self.options.most
        if not limit and small < 1 and self._level is not None:
            return False
        graph = Graph(self.game, max_states=limit or min(most, max(small, 1)))
        with Watch(self.table, self.options.on_progress, self.options.on_note) as watch:

            def show() -> bool:
                now = time.perf_counter() - self.started
                progress = Progress(0, 1, graph.count, 0, now, finding="in one piece")
                watch.show(progress, [{"node": "this process", "slots": 1, "shards": [0]}])
                return False

            show()
            graph.stop = show
            try:
                graph.solve(self.starts())
            except SearchLimitError:
                if limit or most <= small:
                    raise
                if self._level is not None:
                    return False
                graph.max_states = most
                graph.solve(self.starts())
        self._commit(graph)
        return True

    def _commit(self, graph: Graph) -> None:
        """Write a search that was solved in one piece, and commit it."""
        solved, done_in = solved_rows(graph), time.perf_counter() - self.started
        self._note_goal()
        lines: list[Done | FileEntry] = [Done(self.goal.ask, 1, len(solved))]
        if len(solved):
            error = max(self.game.float64_error, graph.error) + self.game.cut_error
            error = min(error, float(np.ptp(self.game.payoff_range)))
            name = f"{self.part}/all.parquet"
            file = write_states(self.storage, name, self.game, solved, error)
            entry = put_file(self.storage, marked(name, entries_of(self.ledger).mark), file)
            lines.insert(0, entry.solved_in(done_in))
        commit(self.ledger, *lines)
        self.result = replace(
            self.result, states=len(solved), edges=graph.edges, shards=1,
            bytes_a_state=graph.bytes_a_state, solve_seconds=done_in, peak_memory=peak_memory(),
            seconds=time.perf_counter() - self.started,
        )  # fmt: skip

    @cached_property
    def _level(self) -> Level | None:
        """The game's own level, or one that is looked for, which is said; None where there is
        none."""
        level = self.game.own(SearchHints).level
        if level is None:
            from luckbase.solver.search.explore import find_level

            level = find_level(self.game, self.starts())
            if level is not None:
                self.options.on_note(f"a level was found: {level}")
        return level

    def _level_of_stages(self) -> Level | None:
        """The level by which this search goes if it goes by stages: that with which it began."""
        line = self.ledger.levels.get(self.part)
        return self._level if line is None else level_from(line.level)

    def _by_stages(self, level: Level) -> SolvedSearch:
        from luckbase.cluster.search.stages import StageSearch
        from luckbase.solver.search.find_stages import RisingError

        self._note_goal()
        if self.part not in self.ledger.levels:
            commit(self.ledger, LevelEntry(self.part, level.as_json()))
        search = StageSearch(self.game, level, self.keys, self.result, self.options)
        try:
            result = search.run()
        except RisingError as error:
            if not level.found:
                raise
            self.options.on_note(f"{error}; the search goes on in one piece")
            self.forget(self.table, self.ledger)
            self._in_one_piece(self.options.most)
            return self.result
        entries = self.ledger.of_part(self.part)
        # Of solves that were stopped and cut otherwise; listed before the line that fences others.
        named = {entry.place for entry in entries}
        left = self.storage.list(f"{self.part}/").keys() - named
        commit(self.ledger, Done(self.goal.ask, len(entries), sum(e.rows for e in entries)))
        compact(self.ledger, left)
        return result

    def _note_goal(self) -> None:
        """Say in the ledger what is being solved; not before something of it is there."""
        if is_new(self.goal, self.ledger):
            commit(self.ledger, self.goal)
