"""The frontier search: a table of all that lies below some roots, for any game, from its rules.

1. **Explore** level by level, merging by key, down to the frontier: level `depth`, or the first
   that gives every worker enough shards.
2. **Shard** the frontier's states by key (`Game.shard_keys`). A worker solves everything below its
   share and writes a payoff table (`worker.solve_subtrees`); it stops at what finished shards, or
   the table given with `using`, already hold.
3. **Merge** the shards' tables by key. Two that solved one state must agree to the last bit.
4. **Back up** from the frontier to the roots, and commit: one Parquet file, one manifest.

A finished shard is in the manifest, so the same call goes on from there after a stop, with any
number of workers: its states are known to whatever shards come next. The table's bytes depend on
the board, the roots and `using` only.

With `max_depth` the first levels only are solved, with bounds (`cluster.cut`).
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cluster import store
from cluster.above import known_below
from cluster.cut import solve_cut
from cluster.driver import Progress, lock, open_ledger
from cluster.frontier import find_frontier, shares
from cluster.keytable import GIVEN, SOLVED
from cluster.manifest import (
    FileEntry,
    Manifest,
    Roots,
    ShardEntry,
    Using,
    new_manifest,
    read_manifest,
    table_directory,
    write_manifest,
)
from cluster.merge import PayoffTable, merge, read_shard, write_shard
from cluster.plan import IN_PROCESS_SECONDS
from cluster.probe import open_table
from cluster.session import Workers, check_address, ray_session, threads
from cluster.worker import SubtreesReceipt, SubtreesTask, peak_memory, solved_rows
from solver import load_game
from solver.backup import expand
from solver.board import Board
from solver.errors import OptionError
from solver.explore import Explorer
from solver.game import Game, Ints
from solver.graph import Graph
from solver.keys import Keys, pack_all, unpack_all

SHARDS_A_WORKER = 4
FLOAT64_ERROR = 1e-12
"""What float64 sums lose, with room to spare."""
GIVEN_NAME = "given"


@dataclass(frozen=True)
class Searched:
    """What a search did; 0 or empty where the table was there.

    states: solved, distinct. solved: over all shards, so that solved / states is the overlap.
    edges: expanded. depth: of the frontier. seconds: of the whole, Ray included. solve_seconds:
    added up over workers. bytes_a_state: of a worker's arrays. peak_memory: bytes, all processes'.
    """

    table: Path
    manifest: Manifest
    states: int = 0
    solved: int = 0
    edges: int = 0
    depth: int = 0
    shards: int = 0
    seconds: float = 0.0
    solve_seconds: float = 0.0
    bytes_a_state: float = 0.0
    peak_memory: int = 0
    workers: int = 0
    ray: bool = False

    @property
    def overlap(self) -> float:
        """States solved over distinct states: 1 where no two shards solved the same one."""
        return self.solved / self.states if self.states else 1.0


def solve_below(
    board: Board,
    roots: Ints | None = None,
    *,
    depth: int | None = None,
    max_depth: int | None = None,
    using: str | os.PathLike[str] | None = None,
    results: str | os.PathLike[str] = "results",
    workers: int | None = None,
    address: str | None = None,
    max_states: int = 200_000_000,
    force: bool = False,
    board_file: str = "",
    settings: dict[str, str] | None = None,
    in_process_seconds: float = IN_PROCESS_SECONDS,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Searched:
    """Solve all that lies below canonical `roots` (m, fields), or below the game's start.

    depth: of the frontier, or picked. max_depth: cut the search there, with bounds. using: a
    table's directory; the search ends at what it holds. max_states: that one worker may meet.
    Other arguments as in `driver.solve`; in the first `in_process_seconds` workers are threads.

    Raises OptionError where a start is missing, RequestError as `Graph.solve`, DisagreementError.
    """
    game = load_game(board)
    if address:
        check_address(address)
    if max_depth is not None and using is not None:
        raise OptionError("--max-depth and --using: give one of them")
    keys = _root_keys(game, roots)
    table_used = None if using is None else Path(using)
    asked = Roots(
        [game.describe(state) for state in unpack_all(game.bits, keys)],
        max_depth,
        None if table_used is None else _using(game, table_used),
    )
    table = table_directory(Path(results).absolute(), game, asked)
    with lock(table):
        warm_up(game)
        fresh = new_manifest(game, board_file, settings or {}, asked)
        manifest = open_ledger(table, force, fresh)
        if manifest.complete:
            return Searched(table, manifest)
        run = _Search(
            game, table, manifest, keys, workers or os.cpu_count() or 1, max_states, on_progress
        )
        if max_depth is not None:
            run.cut(max_depth)
        else:
            run.walk(depth, table_used, address, in_process_seconds)
        shutil.rmtree(table / "scratch", ignore_errors=True)
        return run.report


def warm_up(game: Game) -> None:
    """Compile the search, or load it, before it is timed and before every worker does."""
    state = np.zeros((1, game.field_count), np.int64) if game.start() is None else game.start()
    assert state is not None
    graph = Graph(game)
    graph.know(pack_all(game.bits, np.ascontiguousarray(state).reshape(1, -1)),
               np.zeros((1, game.players)))  # fmt: skip
    graph.solve(np.ascontiguousarray(state).reshape(1, -1))


def _root_keys(game: Game, roots: Ints | None) -> Keys:
    """The keys of the roots, ascending, each once."""
    if roots is None:
        roots = game.needed_start().reshape(1, -1)
    Explorer(game, roots)  # refuses roots that have no key
    return np.unique(pack_all(game.bits, np.ascontiguousarray(roots)))


def _using(game: Game, table: Path) -> Using:
    manifest = read_manifest(table)
    mine = new_manifest(game, "", {}, Roots([]))
    if (manifest.board_hash, manifest.rules_version) != (mine.board_hash, mine.rules_version):
        same = manifest.game == game.board.game and _same_rules(manifest, mine)
        if not same:
            raise OptionError(f"--using: {table} is a table of another board or other rules")
    return Using(str(table.absolute()), manifest.solve_id)


def _same_rules(one: Manifest, other: Manifest) -> bool:
    """Whether two boards differ in nothing but how far their tables go."""
    forms = [dict(m.canonical) | {"solve": {}} for m in (one, other)]
    solves = [dict(m.canonical.get("solve", {})) for m in (one, other)]
    for solve in solves:
        solve.pop("frontier", None)
    return forms[0] == forms[1] and solves[0] == solves[1]


class _Search:
    """One run: the frontier, the shards, the ledger, the counts."""

    def __init__(
        self,
        game: Game,
        table: Path,
        manifest: Manifest,
        roots: Keys,
        workers: int,
        max_states: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.game, self.table, self.manifest, self.roots = game, table, manifest, roots
        self.workers, self.max_states, self.on_progress = workers, max_states, on_progress
        self.started = time.perf_counter()
        self.error = FLOAT64_ERROR
        self.flushed: set[Path] = set()
        self.processes: dict[int, int] = {}
        self.report = Searched(table, manifest, workers=workers)

    @property
    def root_states(self) -> Ints:
        return np.asarray(unpack_all(self.game.bits, self.roots))

    # --- to the end --------------------------------------------------------------------------

    def walk(
        self, depth: int | None, using: Path | None, address: str | None, in_process: float
    ) -> None:
        """Explore, shard, solve, merge, back up, commit."""
        given = self._given(using)
        wanted = SHARDS_A_WORKER * self.workers
        frontier = find_frontier(
            self.game, self.root_states, depth, wanted, given.keys, self.max_states
        )
        shards = shares(self.game, frontier.keys, wanted)
        self.report = replace(self.report, depth=frontier.depth, shards=len(shards))
        self._solve_shards(shards, given, address, in_process)
        tables = [self._read(name) for name in self.manifest.shards]
        merged, _ = merge(self.game, [*tables, given])
        top = Graph(self.game, max_states=self.max_states)
        at = np.flatnonzero(np.isin(merged.keys, frontier.met))
        top.know(merged.keys[at], merged.values[at], merged.best[at])
        known = top.count
        top.solve(self.root_states)
        mine = solved_rows(top, known)
        solved, _ = merge(self.game, [merged, mine])
        distinct = int((solved.status == SOLVED).sum())
        here = sum(len(t) for t in tables) + len(mine)
        self.report = replace(
            self.report, states=distinct, solved=here, edges=self.report.edges + top.edges
        )
        self._commit(solved)

    def _given(self, using: Path | None) -> PayoffTable:
        """What the table `using` holds of the states at which the search ends."""
        none = np.empty(0, np.uint64), np.empty((0, self.game.players))
        keys, values, best = *none, np.empty(0, np.int64)
        if using is not None:
            with open_table(using) as table:
                keys, values = known_below(table, self.root_states, self.max_states)
                self.error += table.error
                order = np.argsort(keys)
                keys, values = keys[order], values[order]
                edges = expand(self.game, unpack_all(self.game.bits, keys))
                look = table.best_actions(edges, values) if len(keys) else None
                best = look.actions[look.best] if look is not None else best
        given = PayoffTable(keys, values, best, np.full(len(keys), GIVEN, np.uint8))
        if len(given):
            path = store.shard_file(self.table, GIVEN_NAME)
            write_shard(given, path)
        return given

    def _solve_shards(
        self,
        shards: Sequence[tuple[str, Keys]],
        given: PayoffTable,
        address: str | None,
        in_process: float,
    ) -> None:
        todo = [i for i, (name, _) in enumerate(shards) if name not in self.manifest.shards]
        self.todo, self.done = len(todo), 0
        began = time.perf_counter()
        if address is None:
            with threads(self.workers) as pool:
                todo = self._hand_out(
                    pool, shards, todo, given,
                    lambda: self.workers > 1 and time.perf_counter() - began > in_process,
                )  # fmt: skip
        if todo:
            self.report = replace(self.report, ray=True)
            with ray_session(self.workers, self.table, address) as pool:
                self._hand_out(pool, shards, todo, given, lambda: False)

    def _hand_out(
        self,
        pool: Workers,
        shards: Sequence[tuple[str, Keys]],
        todo: list[int],
        given: PayoffTable,
        enough: Callable[[], bool],
    ) -> list[int]:
        """Solve shards until none is left or it is `enough`; returns those not begun."""
        todo, running = list(todo), 0
        search = f"{self.manifest.solve_id} {time.time_ns()}"
        while running or (todo and not enough()):
            while todo and running < self.workers and not enough():
                shard = todo.pop(0)
                name, keys = shards[shard]
                known = ((GIVEN_NAME,) if len(given) else ()) + tuple(self.manifest.shards)
                pool.submit(
                    SubtreesTask(
                        self.game.board, self.table, search, shard, name, keys, known,
                        self.max_states,
                    )
                )  # fmt: skip
                running += 1
            receipt: SubtreesReceipt | None = pool.wait_one(0.5)
            if receipt is not None:
                running -= 1
                self._keep(shards[receipt.shard][0], receipt)
            now = time.perf_counter() - self.started
            states = sum(entry.rows for entry in self.manifest.shards.values())
            self.on_progress(Progress(self.done, self.todo, states, 0, now))
        return todo

    def _keep(self, name: str, receipt: SubtreesReceipt) -> None:
        path = store.shard_file(self.table, name)
        store.replace(store.beside(path), path, self.table, self.flushed)
        entry = ShardEntry(receipt.states, receipt.bytes, round(receipt.solve_seconds, 3))
        self.manifest = self.manifest.with_shard(name, entry)
        write_manifest(self.table, self.manifest)
        self.done += 1
        self.processes[receipt.process] = receipt.peak_memory
        self.report = replace(
            self.report,
            edges=self.report.edges + receipt.edges,
            solve_seconds=self.report.solve_seconds + receipt.solve_seconds,
            bytes_a_state=max(self.report.bytes_a_state, receipt.bytes_a_state),
        )

    def _read(self, name: str) -> PayoffTable:
        return read_shard(store.shard_file(self.table, name))

    def cut(self, max_depth: int) -> None:
        """The first levels with bounds, deeper until the roots' decisions are called."""

        def on_level(depth: int, states: int) -> None:
            now = time.perf_counter() - self.started
            self.on_progress(Progress(depth, max_depth, states, 0, now))

        found = solve_cut(self.game, self.root_states, max_depth, self.max_states, on_level)
        self.report = replace(
            self.report, states=found.states, solved=found.states, edges=found.edges,
            depth=found.depth, shards=1, bytes_a_state=found.bytes_a_state,
            solve_seconds=time.perf_counter() - self.started,
        )  # fmt: skip
        self._commit(found.table)

    # --- the ledger --------------------------------------------------------------------------

    def _commit(self, solved: PayoffTable) -> None:
        path = store.tier_file(self.table, "")
        if solved.gap is not None:
            self.error += float(solved.gap.sum()) / 2
        receipt = store.write_states(self.game, solved, self.error, store.beside(path))
        store.replace(store.beside(path), path, self.table, self.flushed)
        first, last = (int(solved.keys[i]) if len(solved) else 0 for i in (0, -1))
        seconds = {"solve": round(self.report.solve_seconds, 3), "write": round(receipt.seconds, 3)}
        entry = FileEntry(
            0, receipt.rows, receipt.row_group_rows, first, last, receipt.bytes, receipt.sha256,
            receipt.error, seconds,
        )  # fmt: skip
        self.manifest = self.manifest.with_file("", entry)
        write_manifest(self.table, self.manifest)
        peak = sum((self.processes | {os.getpid(): peak_memory()}).values())
        self.report = replace(
            self.report, manifest=self.manifest, peak_memory=peak,
            seconds=time.perf_counter() - self.started,
        )  # fmt: skip
