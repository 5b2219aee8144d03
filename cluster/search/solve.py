"""The search: a table of all that lies below some roots, for any game, from its rules.

1. **Explore** level by level, merging by key, down to level `depth`, or the first
   that gives every worker enough shards.
2. **Shard** the states of that level by key (`shard_keys`). A worker solves everything below its
   share and writes a payoff table (`worker.solve_subtrees`); it stops at what finished shards, what
   an earlier search of the same rules, or the table given with `using`, already hold.
3. **Merge** the shards' tables by key. Two that solved one state must agree to the last bit.
4. **Back up** from there to the roots, and commit: one Parquet file of what is new.

A finished shard is in the ledger, so the same call goes on from there after a stop, with any number
of workers: its states are known to whatever shards come next. The rows of a table and their values
depend on the board, the roots and `using` only; which file holds them on the order of the searches.

With `max_depth` the first levels only are solved, with bounds (`cluster.search.cut`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np

from luckbase.cluster.run.driver import file_entry
from luckbase.cluster.run.opening import (
    complete_ledger,
    is_new,
    lock,
    make_goal,
    marked,
    open_ledger,
)
from luckbase.cluster.run.options import Options, Progress, Solved, SolveOptions
from luckbase.cluster.run.session import Workers, threads
from luckbase.cluster.run.watch import Watch
from luckbase.cluster.run.worker import (
    Home,
    Known,
    SubtreesReceipt,
    SubtreesTask,
    peak_memory,
    process_name,
)
from luckbase.cluster.search.cut import solve_cut
from luckbase.cluster.search.given import known_payoffs
from luckbase.cluster.search.merge import (
    PayoffTable,
    merge,
    read_shard,
    shard_name,
    solved_rows,
    write_shard,
)
from luckbase.cluster.search.roots import root_keys, using_table, warm_up
from luckbase.cluster.search.split import find_split, shares
from luckbase.cluster.table.health import drop_files
from luckbase.cluster.table.keyed import KeyPart
from luckbase.cluster.table.ledger import Ledger, commit, compact, table_directory
from luckbase.cluster.table.lines import SEARCH, Done, Goal, Roots, ShardEntry
from luckbase.cluster.table.sparse import SOLVED
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.write import made_by, search_name, search_part, write_states
from luckbase.solver import load_game
from luckbase.solver.board.model import Board
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import FLOAT64_ERROR, Ints
from luckbase.solver.game.capabilities import hints
from luckbase.solver.game.game import Game
from luckbase.solver.graph.game_graph import Graph
from luckbase.solver.graph.keys import Keys, unpack_all

SHARDS_A_WORKER = 4
GIVEN_NAME = "given"


def solve_below(
    board: Board, roots: Ints | None = None, **options: Unpack[SolveOptions]
) -> Solved:  # fmt: skip
    """Solve all that lies below canonical `roots` (m, fields), or below the game's start.

    Raises OptionError where a start is missing, RequestError as `Graph.solve`, DisagreementError.
    """
    asked = Options(**options)
    game = load_game(board)
    if asked.address:
        from luckbase.cluster.run.ray_workers import check_address  # Ray itself comes later

        check_address(asked.address)
    keys = root_keys(game, roots)
    wanted, part = _goal_of(game, keys, asked)
    table = table_directory(asked.folder, game)
    if not (asked.force or asked.check):
        ledger = complete_ledger(game, table, part, wanted)
        if ledger is not None:
            goal = make_goal(game, ledger, part, 1, roots=wanted)
            kept = sum(entry.rows for entry in ledger.of_part(part))
            return Solved(table, ledger, goal, kept=kept, workers=0)
    with lock(table):
        return _solve_locked(game, table, keys, part, wanted, asked)


def _goal_of(game: Game, keys: Keys, asked: Options) -> tuple[Roots, str]:
    """What is asked for, and the part of the table that it belongs to."""
    used = None if asked.using is None else Path(asked.using)
    wanted = Roots(
        [game.describe(state) for state in unpack_all(game.bits, keys)],
        asked.max_depth,
        None if used is None else using_table(game, used),
    )
    if asked.max_depth is not None and used is not None:
        raise OptionError("--max-depth and --using: a search is cut or ends at a table; give one")
    alone = asked.max_depth is not None or used is not None
    return wanted, search_part(Goal("", {}, wanted, 1, "", {}).ask if alone else None)


def _solve_locked(
    game: Game, table: Path, keys: Keys, part: str, wanted: Roots, asked: Options
) -> Solved:
    ledger, damaged = open_ledger(game, table, part, check=asked.check)
    goal = make_goal(game, ledger, part, 1, roots=wanted)
    others = dict(ledger.done)
    if asked.force:
        mine = [e.name for e in ledger.of_part(part) if made_by(e.name, goal.ask)]
        drop_files(Folder(table), ledger, mine, goal)
    report = Solved(table, ledger, goal, damaged=tuple(damaged), workers=1)
    if goal.ask not in ledger.done:
        asked.on_progress(Progress(0, 0, 0, 0, 0.0, compiling=True))
        warm_up(game)
        run = _Search(game, table, ledger, goal, keys, asked)
        if asked.max_depth is not None:
            run.cut(asked.max_depth)
        else:
            run.solve()
        report = replace(run.report, damaged=tuple(damaged))
        if asked.force:  # what this goal's files held is there again, and what others need of it
            for ask, done in others.items():
                if ask not in ledger.done:
                    commit(Folder(table), ledger, done)
    elif is_new(goal, ledger):
        commit(Folder(table), ledger, goal)
    return report


class _Search:
    """One run: the split, the shards, the ledger, the counts."""

    def __init__(
        self,
        game: Game,
        table: Path,
        ledger: Ledger,
        goal: Goal,
        roots: Keys,
        asked: Options,
    ) -> None:
        self.game, self.table, self.ledger, self.goal, self.roots = game, table, ledger, goal, roots
        self.asked, self.workers, self.max_states = asked, asked.slots, asked.most
        self.on_progress = asked.on_progress
        self.storage, self.tolerance = Folder(table), game.tie_tolerance
        self.held = KeyPart(self.storage, table, ledger, goal.part, game)
        # What lies below a goal's files is all there once the goal is done, and not before.
        self.trusted = KeyPart(self.storage, table, ledger, goal.part, game)
        self.trusted.entries = [
            entry for entry in self.held.entries
            if any(made_by(entry.name, ask) for ask in ledger.done)
        ]  # fmt: skip
        self.started = time.perf_counter()
        self.error = FLOAT64_ERROR
        self.processes: dict[str, int] = {}
        self.report = Solved(table, ledger, goal, kept=self.held.rows, workers=self.workers)

    @property
    def root_states(self) -> Ints:
        return np.asarray(unpack_all(self.game.bits, self.roots))

    # --- to the end --------------------------------------------------------------------------

    def solve(self) -> None:
        """Explore, shard, solve, merge, back up, commit."""
        depth = self.asked.depth
        given = self._given(None if self.asked.using is None else Path(self.asked.using))
        wanted = SHARDS_A_WORKER * self.workers
        if depth is None and hints(self.game).cyclic:
            depth = 0
        split = find_split(self.game, self.root_states, depth, wanted, given.keys, self.max_states)
        shards = shares(self.game, split.keys, wanted)
        self.report = replace(self.report, depth=split.depth, shards=len(shards))
        self._solve_shards(shards)
        tables = [self._read(one) for one in self._finished()]
        merged, _ = merge(self.game, [*tables, given])
        top = Graph(self.game, tolerance=self.tolerance, max_states=self.max_states)
        at = np.flatnonzero(np.isin(merged.keys, split.met))
        top.know(
            merged.keys[at], merged.values[at], merged.best[at], merged.margin[at], merged.actor[at]
        )
        known = top.count
        top.solve(self.root_states)
        mine = solved_rows(top, known)
        solved, _ = merge(self.game, [merged, mine])
        distinct = int((solved.status == SOLVED).sum())
        here = sum(len(t) for t in tables) + len(mine)
        self.report = replace(
            self.report, states=distinct, solved=here, edges=self.report.edges + top.edges
        )
        if self.goal.part == SEARCH:  # what was given stands in the part's other files
            solved = solved.only(solved.status == SOLVED)
        if len(self.trusted.entries) < len(self.held.entries):
            states = unpack_all(self.game.bits, solved.keys)
            solved = solved.only(~self.held.holds(states))
        self._commit(solved)

    def _given(self, using: Path | None) -> PayoffTable:
        """What is known of the states at which the search ends: from the part's other files, or
        the table `using`."""
        held = self.trusted if self.trusted.entries else None
        given, error = known_payoffs(self.game, self.root_states, using, held, self.max_states)
        if using is not None:
            self.error += error
            self.tolerance += 2 * error  # rounded payoffs must not decide ties
        else:  # FLOAT64_ERROR is for all sums of a play, whichever search makes them
            self.error += max(0.0, error - FLOAT64_ERROR)
        self.given: tuple[Known, ...] = ()
        self.given_sha = ""
        if len(given):
            path, _, sha256 = write_shard(self.storage, GIVEN_NAME, given)
            self.storage.put(shard_name(GIVEN_NAME), path)
            self.given, self.given_sha = (Known(GIVEN_NAME, sha256),), sha256
        return given

    def _solve_shards(self, shards: Sequence[tuple[str, Keys]]) -> None:
        done = {one.name for one in self._finished()}
        todo = [i for i, (name, _) in enumerate(shards) if name not in done]
        self.todo, self.done = len(todo), 0
        began = time.perf_counter()
        with Watch(self.table, self.asked) as watch, marked(self.table) as home:
            if self.asked.address is None:
                with threads(self.workers) as pool:
                    todo = self._hand_out(
                        pool, (home, watch), shards, todo,
                        lambda: self.workers > 1
                        and time.perf_counter() - began > self.asked.in_process_seconds,
                    )  # fmt: skip
            if todo:
                self.report = replace(self.report, ray=True)
                with self._ray(home, watch) as pool:
                    self._hand_out(pool, (home, watch), shards, todo, lambda: False)

    def _ray(self, home: Home, watch: Watch) -> AbstractContextManager[Workers]:
        from luckbase.cluster.run.ray_workers import ray_cluster, ray_here

        if self.asked.address is None:
            return ray_here(self.workers, home, 0, watch.note)
        return ray_cluster(self.asked.address, home, watch.note, self.asked.workers)

    def _hand_out(
        self,
        pool: Workers,
        where: tuple[Home, Watch],
        shards: Sequence[tuple[str, Keys]],
        todo: list[int],
        enough: Callable[[], bool],
    ) -> list[int]:
        """Solve shards until none is left or it is `enough`; returns those not begun."""
        todo, running = list(todo), 0
        home, watch = where
        search = f"{self.goal.ask} {time.time_ns()}"
        while running or (todo and not enough()):
            while todo and running < pool.slots and not enough():
                shard = todo.pop(0)
                name, keys = shards[shard]
                known = self.given + tuple(self._finished())
                pool.submit(
                    SubtreesTask(
                        self.game.board, home, search, shard, name, keys, known,
                        self.max_states, self.tolerance,
                    )
                )  # fmt: skip
                running += 1
            receipt: SubtreesReceipt | None = pool.wait_one(0.5)
            if receipt is not None:
                running -= 1
                self._keep(shards[receipt.shard][0], receipt)
            now = time.perf_counter() - self.started
            states = sum(entry.rows for entry in self.ledger.shards.values())
            watch.show(Progress(self.done, self.todo, states, 0, now), pool.doing())
        return todo

    def _finished(self) -> list[Known]:
        """The shards of this search that are there, solved from what is given now."""
        mine = (s for s in self.ledger.shards.values() if s.ask == self.goal.ask)
        return [Known(entry.name, entry.sha256) for entry in mine if entry.given == self.given_sha]

    def _note_goal(self) -> None:
        """Say in the ledger what is being solved; not before something of it is there."""
        if is_new(self.goal, self.ledger):
            commit(self.storage, self.ledger, self.goal)

    def _keep(self, name: str, receipt: SubtreesReceipt) -> None:
        self._note_goal()
        self.storage.put(shard_name(name), receipt.path)
        seconds = round(receipt.solve_seconds, 3)
        entry = ShardEntry(
            name, self.goal.ask, receipt.states, receipt.bytes, receipt.sha256, seconds,
            self.given_sha,
        )  # fmt: skip
        self.ledger.shards.pop(name, None)  # one that was solved from something else
        commit(self.storage, self.ledger, entry)
        self.done += 1
        self.processes[receipt.process] = receipt.peak_memory
        self.report = replace(
            self.report,
            edges=self.report.edges + receipt.edges,
            solve_seconds=self.report.solve_seconds + receipt.solve_seconds,
            bytes_a_state=max(self.report.bytes_a_state, receipt.bytes_a_state),
        )

    def _read(self, one: Known) -> PayoffTable:
        return read_shard(self.storage, one.name, one.sha256)

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
        self._note_goal()
        self.error += float(solved.gap.sum()) / 2
        if len(solved):
            name = search_name(self.goal.part, self.goal.ask, self.ledger.files)
            file = write_states(self.storage, name, self.game, solved, self.error)
            keys = int(solved.keys[0]), int(solved.keys[-1])
            self.storage.put(name, file.path)
            entry = file_entry(name, self.goal.part, 0, keys, file, self.report.solve_seconds)
            commit(self.storage, self.ledger, entry)
        commit(self.storage, self.ledger, Done(self.goal.ask, int(len(solved) > 0), len(solved)))
        mine = [s.name for s in self.ledger.shards.values() if s.ask == self.goal.ask]
        finished = [GIVEN_NAME, *mine]
        for name in finished:
            self.ledger.shards.pop(name, None)
        compact(self.storage, self.ledger)
        for name in finished:
            self.storage.delete(shard_name(name))
        peak = sum((self.processes | {process_name(): peak_memory()}).values())
        self.report = replace(
            self.report, peak_memory=peak, seconds=time.perf_counter() - self.started
        )
