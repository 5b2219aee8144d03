"""Searches: solve all states below given roots, for any game, from its rules.

A small search is solved in one piece, in this process (`solver.search.game_graph`). A larger one
goes by stages (`cluster.search.stages`) if the game declares a level (`rules.Level`): workers solve
each state once, and memory does not limit the size. Games without a level are always solved in one
piece, and so are games that name the fields of a turn, because states inside turns are not kept.
Each search is a separate part of the table. Its rows and payoffs depend only on the board and the
roots.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np

from luckbase.cluster.machine import memory_to_use
from luckbase.cluster.solve.driver import Work, is_new, peak_memory, solve_table
from luckbase.cluster.solve.options import Options, SolveOptions
from luckbase.cluster.solve.progress import Progress, Solved, Watch
from luckbase.cluster.store.format import put_file, solved_rows, write_states
from luckbase.cluster.store.manifest import (
    Done,
    FileEntry,
    LevelEntry,
    Manifest,
    Roots,
    search_part,
)
from luckbase.cluster.store.storage import storage_at
from luckbase.solver.board.model import Board
from luckbase.solver.errors import MemoryLimitError, SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.search.expand import root_keys, some_state
from luckbase.solver.search.game_graph import Graph, edge_memory
from luckbase.solver.search.keys import Keys, pack_all, unpack_all
from luckbase.solver.sentences import many, option, size

PIECE_BYTES, MAX_NUMBERED = 150, 1 << 30
"""For a search in one piece: bytes of memory for each state, and maximum number of states."""


def solve_below(
    board: Board, roots: Ints | None = None, **options: Unpack[SolveOptions]
) -> Solved:  # fmt: skip
    """Solve all states below canonical `roots` (m, fields), or below the game's start.

    Raises OptionError if a start is missing, RequestError as `Graph.solve` does; and as
    `driver.solve_table` does.
    """
    game = load_game(board)
    return solve_table(_Search(game, root_keys(game, roots), Options.read(options)))


def roots_at(game: Game, keys: Keys) -> Roots:
    return Roots([game.describe(state) for state in unpack_all(game.strides, keys)])


class _Search(Work):
    def __init__(self, game: Game, keys: Keys, options: Options) -> None:
        """keys: of the roots."""
        super().__init__(game, options)
        self.keys, self.roots = keys, roots_at(game, keys)
        self.part, self.memory = search_part(self.roots), options.memory or memory_to_use()

    def starts(self) -> Ints:
        return np.asarray(unpack_all(self.game.strides, self.keys))

    def entries(self, manifest: Manifest) -> list[FileEntry]:
        return manifest.of_part(self.part)

    def check_room(self, table: Path, manifest: Manifest | None) -> None:
        needed = edge_memory(self.game)
        if needed > self.memory:
            raise MemoryLimitError(
                f"max_edges: {many(self.game.max_edges, 'edge')} a state need buffers of "
                f"{size(needed)}, and the search may use {size(self.memory)}; write in Rules how "
                f"many edges a state really has at most, or allow more with {option('memory')}"
            )

    def compile(self) -> None:
        graph, state = Graph(self.game), some_state(self.game)
        graph.know(pack_all(self.game.strides, state), np.zeros((1, self.game.players)))
        graph.solve(state)

    def solve(self, report: Solved) -> Solved:
        manifest, level = report.manifest, self.game.level
        stored = manifest.levels.get(self.part)
        if stored is not None and (level is None or level.as_json() != stored.level):
            manifest.levels.pop(self.part)
            self.writer.drop([entry.name for entry in manifest.of_part(self.part)], self.part)
        if self.part not in manifest.levels:
            started = time.perf_counter()
            graph = self._in_one_piece(report.table, started)
            if graph is not None:
                return self._committed(report, graph, started)
        assert level is not None  # otherwise it was solved in one piece
        from luckbase.cluster.search.stages import StageSearch

        self._commit_goal(report)
        if self.part not in manifest.levels:
            self.writer.commit(LevelEntry(self.part, level.as_json()))
        solved = StageSearch(self, level, self.keys, report).run()
        entries = manifest.of_part(self.part)
        self.writer.add(Done(report.goal.ask, len(entries), sum(e.rows for e in entries)))
        return solved

    def _commit_goal(self, report: Solved) -> None:
        if is_new(report.goal, report.manifest):
            self.writer.commit(report.goal)

    def _in_one_piece(self, table: Path, started: float) -> Graph | None:
        """Solve the search here if it is small or the game has no level. Return the graph."""
        options, has_level = self.options, self.game.level is not None
        if options.one_piece < 1 and has_level:
            return None
        if not has_level and options.slots > 1 and (options.workers or options.address):
            options.on_note(
                "one process solves this game, because it has no level or names the fields of a "
                f"turn; {option('workers')} and {option('address')} have no effect"
            )
        most = min(MAX_NUMBERED, options.max_states or MAX_NUMBERED)
        states = max(1, (self.memory - edge_memory(self.game)) // PIECE_BYTES)
        limit = min(most, options.one_piece if has_level else states)
        graph = Graph(self.game, max_states=limit, keeps_turns=False)
        with Watch(table, options.on_progress, options.on_note) as watch:

            def show() -> bool:
                now = time.perf_counter() - started
                progress = Progress(0, 1, graph.count, 0, now, finding="in one piece")
                watch.show(progress, [{"node": "this process", "slots": 1, "shards": [0]}])
                return False

            show()
            graph.stop = show
            try:
                graph.solve(self.starts())
            except SearchLimitError:
                if limit == most:
                    raise
                if has_level:
                    return None
                raise self._too_large(graph) from None
        return graph

    def _too_large(self, graph: Graph) -> MemoryLimitError:
        begins = graph.largest_turn
        count = many(max(graph.count, graph.max_states), "state")  # a first turn is not counted
        if begins is not None:
            names = ", ".join(self.game.rules.within_turn)
            return MemoryLimitError(
                f"memory: the turn that begins at {self.game.say(begins)} has more than {count}, "
                f"and {size(self.memory)} hold no more; does each turn end in a state in which "
                f"{names} have their defaults?"
            )
        helps = ", or write Rules(level=…), by which it goes in stages on the disk"
        return MemoryLimitError(
            f"memory: the search has found {count} and is not finished, and {size(self.memory)} "
            "hold no more of a game without a level; allow more with "
            f"{option('memory')}{helps * (not self.game.turn.size)}"
        )

    def _committed(self, report: Solved, graph: Graph, started: float) -> Solved:
        solved, seconds = solved_rows(graph), time.perf_counter() - started
        self._commit_goal(report)
        entries: list[Done | FileEntry] = [Done(report.goal.ask, 1, len(solved))]
        if len(solved):
            error = max(self.game.float64_error, graph.error) + self.game.cut_error
            error = min(error, float(np.ptp(self.game.payoff_range)))
            storage = storage_at(report.table)
            file = write_states(storage, f"{self.part}/all.parquet", self.game, solved, error)
            path = self.writer.place(file.entry.name, file.entry.sha256)
            entries.insert(0, put_file(storage, file, path).solved_in(seconds))
        self.writer.add(*entries)
        return replace(
            report, states=len(solved), edges=graph.edges, shards=1, workers=1,
            bytes_a_state=graph.bytes_a_state, solve_seconds=seconds, peak_memory=peak_memory(),
            seconds=time.perf_counter() - started,
        )  # fmt: skip
