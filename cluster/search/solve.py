"""The search: a table of all that lies below some roots, for any game, from its rules.

What is small is solved in one piece (`solver.search.game_graph`), in this process. What is larger
goes by stages (`cluster.search.stages`), if the game has a level, declared or found
(`capabilities.Level`): each state is solved once, on all workers, and memory does not bound it. A
game without a level is one piece, however large. The rows of a table and their values depend on the
board, the roots and `using` only.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.run.driver import Work, is_new, peak_memory, solve_table
from luckbase.cluster.run.options import Options, SolveOptions
from luckbase.cluster.run.progress import Progress, SolvedSearch, Watch
from luckbase.cluster.search import boundary
from luckbase.cluster.search.boundary import UsedEnds, UsedTable
from luckbase.cluster.table.entries import commit, compact, drop_files, entries_of
from luckbase.cluster.table.format import put_file
from luckbase.cluster.table.keyed import (
    SOLVED,
    KeyPart,
    PayoffTable,
    concatenated,
    search_name,
    solved_rows,
    write_states,
)
from luckbase.cluster.table.ledger import (
    SEARCH,
    SHARDS,
    Done,
    Goal,
    Ledger,
    Roots,
    Using,
    made_by,
    marked,
    origin_of,
)
from luckbase.cluster.table.storage import place_of, storage_at
from luckbase.solver.board.model import Board, rules_identity
from luckbase.solver.compiled import ahead
from luckbase.solver.errors import OptionError, SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Level, SearchHints, level_from
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.search.bellman import matrix_game_solver
from luckbase.solver.search.expand import root_keys, some_state
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import Keys, pack_all, unpack_all, unpack_columns
from luckbase.solver.sentences import many, option

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable


def solve_below(
    board: Board, roots: Ints | None = None, **options: Unpack[SolveOptions]
) -> SolvedSearch:  # fmt: skip
    """Solve all that lies below canonical `roots` (m, fields), or below the game's start.

    Raises OptionError where a start is missing, RequestError as `Graph.solve`; as
    `driver.solve_table`.
    """
    game = load_game(board)
    return solve_table(_Search(game, root_keys(game, roots), Options(**options)))


def goal_of(game: Game, keys: Keys, options: Options) -> tuple[Roots, str]:
    """What is wanted, and the part of the table that it belongs to: one for all searches that are
    exact, one of its own for another."""
    target = Roots([game.describe(state) for state in unpack_all(game.strides, keys)])
    if options.using is None:
        return target, SEARCH
    target = replace(target, using=using_table(game, place_of(options.using)))
    return target, f"{SEARCH}-{Goal('', {}, target, 1, '', {}).ask[:12]}"


def using_table(game: Game, table: Path) -> Using:
    """The table that a search is to end at. Raises OptionError where it has other rules."""
    from luckbase.cluster.table.find import open_table

    with open_table(table) as opened:
        head = opened.ledger.head
    if head.identity != rules_identity(game):
        raise OptionError(f"{option('using')}: {table} is a table of another board or other rules")
    return Using(str(table.absolute()), head.identity)


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
        self.keys, self.undone = keys, dict[str, Done]()
        self.roots, self.part = goal_of(game, keys, options)
        self.tolerance, self.started = game.tie_tolerance, time.perf_counter()
        self.error = self.precision = game.float64_error + game.cut_error

    def starts(self) -> Ints:
        return np.asarray(unpack_all(self.game.strides, self.keys))

    def report(self, table: Path, ledger: Ledger, goal: Goal) -> SolvedSearch:
        kept = sum(entry.rows for entry in ledger.of_part(self.part))
        return SolvedSearch(origin_of(self.game), table, ledger, goal, kept=kept, workers=0)

    def forget(self, table: Path, ledger: Ledger) -> None:
        goal = Goal(self.part, {}, self.roots, 1, "", {})
        if goal.ask not in {each.ask for each in ledger.goals}:
            return  # it was never begun, and what others solved stays
        self.undone = dict(ledger.done)
        names = [e.name for e in ledger.of_part(self.part) if made_by(e.name, goal.ask)]
        drop_files(ledger, names, self.part)

    def compile(self) -> None:
        warm_up(self.game)

    def solve(self, report: SolvedSearch) -> SolvedSearch:
        self.table, self.ledger, self.goal = report.table, report.ledger, report.goal
        self.storage, self.started = storage_at(self.table), time.perf_counter()
        self.stored, self.trusted = self._key_part(), self._key_part()
        # What lies below a goal's files is all there once the goal is done, and not before.
        self.trusted.entries = [
            entry for entry in self.stored.entries
            if any(made_by(entry.name, ask) for ask in self.ledger.done)
        ]  # fmt: skip
        if self.options.using is None and self.trusted.entries:
            self.error = max(self.error, self.trusted.error)
            self.precision = max(self.precision, self.trusted.precision)
        self.result = replace(report, kept=self.stored.rows, workers=1)
        try:
            self._solve()
        finally:
            if "_used" in self.__dict__:
                boundary.let_go(self._used)
        for ask, done in self.undone.items():  # what --force undid, and all is there again
            files = sum(made_by(name, ask) for name in self.ledger.files)
            if ask not in self.ledger.done and files == done.files:
                commit(self.ledger, done)
        return self.result

    def _key_part(self) -> KeyPart:
        return KeyPart(self.storage, self.table, self.ledger, self.part, self.game)

    # --- to the end --------------------------------------------------------------------------

    def _solve(self) -> None:
        self._note_stopped()
        limit, small = self.options.most, self.options.one_piece
        using = self.options.using is not None
        grows, known = not using and bool(self.trusted.entries), None
        if not (grows or using) or self.goal.ask not in self.ledger.levels:
            try:
                known = self._known(min(limit, max(1, small)))
            except SearchLimitError:  # many states lie above those that a table has
                if limit <= small:
                    raise
        if known is not None and self._was_small(known):
            return
        level, rows = self._level_of_stages(), known
        stored = grows and level is not None and self.trusted.goes_by(level)
        if stored:  # its stages are read as they are met
            files = [entry for entry in self.trusted.entries if not entry.stages]
            whole = boundary.read_rows(self.storage, self.table, files, self.game)
            rows = boundary.known_rows(*whole)
        elif using and level is not None:  # its states are looked up as they are met
            self._take_table(self._ends.table)
            rows = boundary.nothing_known(self.game)
        elif rows is None:
            rows = self._known(limit)
            if self._was_small(rows):
                return
        assert level is not None
        self._by_stages(level, rows, self.trusted if stored else None)

    def _note_stopped(self) -> None:
        """Say that others that were stopped half-way will not go on from there: of this part, or
        that end at this table."""
        stopped = {shard.ask for shard in self.ledger.shards.values()} - {self.goal.ask}
        for goal in self.ledger.goals:
            using = None if goal.roots is None else goal.roots.using
            at_this_table = using is not None and place_of(using.table) == self.table.absolute()
            if goal.ask not in stopped or not (at_this_table or goal.part == self.part):
                continue
            return self.options.on_note(
                "another search of this table was stopped; solving this one makes that one start "
                "over (to keep what it found, finish it first)"
            )

    def _was_small(self, known: PayoffTable) -> bool:
        """Solve it in one piece, if it is not to go on by stages; whether that was done."""
        self._drop_stopped()
        return self.goal.ask not in self.ledger.levels and self._in_one_piece(known)

    @cached_property
    def _used(self) -> UsedTable:
        """The table that was asked for, without what this search writes into it."""
        assert self.options.using is not None
        path = place_of(self.options.using)
        return boundary.used_table(path, self.part if path.samefile(self.table) else "")

    @property
    def _ends(self) -> UsedEnds:
        ends = boundary.used_ends(self._used)
        assert ends is not None
        return ends

    @property
    def _digest(self) -> str:
        """The SHA-256 of what is known before the search, "" for nothing."""
        if self.options.using is not None:
            return self._used.sha256
        return boundary.digest_of(self.trusted.entries)

    def _is_known(self, keys: Keys) -> NDArray[np.bool_]:
        """(n,) whether the payoffs of states are known before the search."""
        if self.options.using is not None:
            return self._ends.holds(keys)
        return self.trusted.holds(unpack_all(self.game.strides, np.ascontiguousarray(keys)))

    def _drop_stopped(self, by_stages: bool = False) -> None:
        """Take away the files of stages of searches that are not done: other ones', whose states
        this one is to solve, and its own if other states were known when they were solved, or
        stages were cut another way.
        by_stages: also all others that are not done, for it does not look at them."""
        line, digest, is_outdated = self.ledger.levels.get(self.goal.ask), self._digest, False
        if line is not None:
            from luckbase.cluster.search.shards import cutting

            is_outdated = line.given != digest or line.cutting != cutting()
        trusted = {entry.name for entry in self.trusted.entries}
        names = [
            entry.name for entry in self.stored.entries
            if entry.name not in trusted and (entry.stages or by_stages)
            and (is_outdated or not entry.stages or not made_by(entry.name, self.goal.ask))
        ]  # fmt: skip
        places = list[str]()
        if line is not None and is_outdated:
            why = "what is known" if line.given != digest else "how stages are cut"
            self.options.on_note(f"{why} has changed since this search was stopped: it starts over")
            places = self._forget_shards()
            del self.ledger.levels[self.goal.ask]
        places += [self.ledger.files.pop(name).place for name in names]
        if is_outdated or names:
            compact(self.ledger, places)
        self.stored = self._key_part()
        self.result = replace(self.result, kept=self.stored.rows)

    def _known(self, limit: int) -> PayoffTable:
        """What is known of the states at which the search ends: from the part's other files, or
        the table that was asked for. Raises SearchLimitError where more than `most` lie above."""
        if self.options.using is not None:
            known = boundary.known_payoffs(self.starts(), self._ends.table, limit)
            self._take_table(self._ends.table)
            return known
        if not self.trusted.entries:
            return boundary.nothing_known(self.game)
        return boundary.known_payoffs(self.starts(), self.trusted, limit)

    def _take_table(self, used: StoredTable) -> None:
        """Count the errors of the table at which it ends."""
        if used.error <= self.error:  # that is for all sums of a play, whoever makes them
            return
        self.error = min(
            self.game.float64_error + used.error, float(np.ptp(self.game.payoff_range))
        )
        self.precision = self.game.float64_error + used.precision
        # Rounded payoffs must not decide ties.
        self.tolerance = self.game.tie_tolerance + 2 * used.precision

    def _in_one_piece(self, known: PayoffTable) -> bool:
        """Solve it in this process and memory; whether it was small enough. A game without levels
        is, up to `Options.most`."""
        small, limit = self.options.one_piece, self.options.most
        if small < 1 and self._level is not None:
            return False
        graph = Graph(self.game, tolerance=self.tolerance, max_states=min(limit, max(small, 1)))
        graph.know(known.keys, known.values, known.best, known.margin, known.actor)
        start = graph.count
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
                if limit <= small:
                    raise
                if self._level is not None:
                    return False
                graph.max_states = limit
                graph.solve(self.starts())
        solved = solved_rows(graph, start)
        self.result = replace(
            self.result, states=len(solved), edges=graph.edges, shards=1,
            bytes_a_state=graph.bytes_a_state, solve_seconds=time.perf_counter() - self.started,
        )  # fmt: skip
        if self.part != SEARCH:  # else what was given stands in the part's other files
            solved = concatenated([solved, known])
        solved = solved.only(np.argsort(solved.keys))
        if len(self.trusted.entries) < len(self.stored.entries):
            states = unpack_all(self.game.strides, solved.keys)
            solved = solved.only(~self.stored.holds(states))
        self._commit(solved)
        return True

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
        line = self.ledger.levels.get(self.goal.ask)
        return self._level if line is None else level_from(line.level)

    def _by_stages(self, level: Level, known: PayoffTable, stored: KeyPart | None) -> None:
        from luckbase.cluster.search.stages import SearchContext, StageSearch
        from luckbase.solver.search.find_stages import RisingError
        from luckbase.solver.search.stages import NONE_KNOWN

        self._drop_stopped(by_stages=True)
        self._note_goal()
        context = SearchContext(
            goal=self.goal, roots=self.keys, known=(known.keys, known.values), stored=stored,
            used=None if self.options.using is None else self._used,
            is_known=self._is_known if self._digest else NONE_KNOWN, known_sha=self._digest,
            error=self.error, precision=self.precision, tolerance=self.tolerance,
        )  # fmt: skip
        try:
            self.result = StageSearch(self.game, level, context, self.result, self.options).run()
        except RisingError as error:
            if not level.found:
                raise
            self.options.on_note(f"{error}; the search goes on in one piece")
            self._forget_stages()
            self._level = None
            self._in_one_piece(self._known(self.options.most))
            return
        self._finish()

    def _forget_stages(self) -> None:
        places = {*self._forget_shards(), *self.storage.list(SHARDS)}  # some are being written
        del self.ledger.levels[self.goal.ask]
        compact(self.ledger, places)

    def _forget_shards(self) -> list[str]:
        """Take the search's shards out of the ledger; where their files lie: a store has no stage
        files."""
        entries = [e for e in self.ledger.shards.values() if e.ask == self.goal.ask]
        for entry in entries:
            del self.ledger.shards[entry.name]
        stages = [] if self.storage.anywhere else [entry.place for entry in entries]
        return [*stages, *(entry.ask_place for entry in entries)]

    def _note_goal(self) -> None:
        """Say in the ledger what is being solved; not before something of it is there."""
        if is_new(self.goal, self.ledger):
            commit(self.ledger, self.goal)

    # --- the ledger --------------------------------------------------------------------------

    def _commit(self, solved: PayoffTable) -> None:
        """Write a search that was solved in one piece, and commit it."""
        self._note_goal()
        gaps, margins = float(solved.gap.sum()) / 2, solved.margin[solved.status == SOLVED]
        self.precision += gaps
        error = self.error + gaps
        error = boundary.error_with_undecided(self.game, margins, self.tolerance, error)
        if len(solved):
            name = search_name(self.part, self.goal.ask, self.ledger.files)
            file = write_states(self.storage, name, self.game, solved, error, self.precision)
            entry = put_file(self.storage, marked(name, entries_of(self.ledger).mark), file)
            commit(self.ledger, entry.solved_in(self.result.solve_seconds))
        seconds = time.perf_counter() - self.started
        self.result = replace(self.result, peak_memory=peak_memory(), seconds=seconds)
        self._finish()

    def _finish(self) -> None:
        entries = [e for e in self.ledger.of_part(self.part) if made_by(e.name, self.goal.ask)]
        rows = sum(entry.rows for entry in entries)
        if not boundary.can_decide(self.game, self.tolerance):
            count = boundary.undecided(self.storage, self.table, entries, self.tolerance)
            if count:
                where = f"the payoffs of {self.options.using}"
                self.options.on_note(
                    f"{many(count, 'decision')} hang on less than the error of {where} "
                    f"({self.tolerance:.1e}); the first of the close actions is taken, and how far "
                    "off the other players' payoffs are there is unknown; a table solved with "
                    "payoffs=float64 would say"
                )
        ask, named = self.goal.ask, {entry.place for entry in self.ledger.files.values()}
        # Of solves that were stopped and cut otherwise; listed before the line that fences others.
        left = {name for name in self.storage.list(f"{self.part}/") if made_by(name, ask)} - named
        commit(self.ledger, Done(ask, len(entries), rows))
        places = [*self._forget_shards(), *left]  # from here on nobody goes on from them
        compact(self.ledger, places)
