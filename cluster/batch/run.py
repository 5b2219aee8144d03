"""Plan and solve many boards in one call, and show the status of their tables.

Planning writes and compiles nothing. The number of states of a full table is exact; for a search,
the states are counted or estimated. Boards that share a table are planned one after another, so
that the second plan counts the files that the first will have made. A table is partial if its board
file requires more than was ever solved.

A board that fails does not stop the others.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import PlainSerializer

from luckbase.cluster.answers import find
from luckbase.cluster.answers.find import Status, status_of
from luckbase.cluster.batch.requests import (
    BoardName,
    BoardRequest,
    board_files,
    is_job,
    read_requests,
    requests_for,
)
from luckbase.cluster.inputs import has_full_table, roots_of, solve_board, solves_full_table
from luckbase.cluster.machine import Disk, disk_of
from luckbase.cluster.solve.driver import complete_manifest
from luckbase.cluster.solve.options import Options, SolveOptions
from luckbase.cluster.solve.plan import Planned, fitting, plan_table
from luckbase.cluster.solve.progress import Progress, Solved
from luckbase.cluster.store import Condition
from luckbase.cluster.store.manifest import DECISIONS, NAME, TIERS, search_part, table_directory
from luckbase.cluster.store.provenance import RESULTS, board_command
from luckbase.cluster.store.storage import place_of, results_of, storage_at
from luckbase.cluster.store.writer import damaged_files, read_manifest
from luckbase.solver import sentences
from luckbase.solver.board.file import read_board
from luckbase.solver.errors import (
    DiskLimitError,
    LuckbaseError,
    MemoryLimitError,
    MissingTableError,
    OptionError,
    TableError,
)
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.result import AsText, Flat, IfAny, PythonOnly, Result, Rounded
from luckbase.solver.sentences import option


def _request_json(request: BoardRequest) -> dict[str, Any]:
    board = None if request.board is None else request.board.name
    return {"file": request.file, "options": request.settings, "board": board}


@dataclass(frozen=True)
class Due(Result):
    """A board of a batch: the work that remains, or the result of its solve.

    why: reasons, as sentences; after a solve, the changes in the board file since the one before.
    table: the table's folder.
    states: number of states to solve, or solved.
    bytes: size of these on disk (estimated), or of the table.
    seconds: wall time; before the solve, estimated.
    more: True if `states` is a lower bound.
    plan: the plan of the whole solve; None if the table is complete.
    solved: the result of the solve.
    """

    request: Flat[Annotated[BoardRequest, PlainSerializer(_request_json)]]
    state: Condition
    why: tuple[str, ...] = ()
    table: Path | None = None
    states: int = 0
    bytes: int = 0
    seconds: Rounded = 0.0
    more: PythonOnly[bool] = False
    error: AsText[LuckbaseError | None] = None
    plan: IfAny[Planned] = None
    solved: PythonOnly[Solved | None] = None


def plan_boards(requests: Sequence[BoardRequest], start: Any, options: Options) -> list[Due]:
    """Plan each board and return the plans in the order in which the boards are solved.

    The boards of a job file with `order = "shortest"` are sorted by estimated time; other boards
    keep their order. start: as in `luckbase.solve`.
    """
    files: dict[Path, set[str]] = {}
    planned = [_plan(request, start, options_for(request, options), files) for request in requests]

    def place(due: Due) -> tuple[int, float]:
        return due.request.group, due.seconds if due.request.order == "shortest" else 0.0

    return sorted(planned, key=place)


def disk_shortages(dues: Sequence[Due]) -> list[str]:
    """Return a sentence for each disk with room for each board alone but not for all of them."""
    needed: dict[int, int] = {}
    disks: dict[int, Disk] = {}
    for due in dues:
        if due.table is not None and due.error is None:
            disk = disk_of(due.table)
            device = disk.folder.stat().st_dev
            needed[device] = needed.get(device, 0) + due.bytes
            disks.setdefault(device, disk)
    return [
        f"disk: all of them need about {sentences.size(needed[device])} under {disk.room}; each of "
        "them fits alone, and one that does not fit when its turn comes is left out"
        for device, disk in disks.items()
        if needed[device] > max(disk.usable, 0)
    ]


def options_for(request: BoardRequest, options: Options) -> Options:
    """Return the options for a board: options of the call first, then those of its job file."""
    default = Options()
    overrides = {
        name: value for name, value in request.solve_options.items()
        if getattr(options, name) == getattr(default, name)
    }  # fmt: skip
    return replace(options, **overrides)


def _plan(
    request: BoardRequest, start: Any, options: Options, planned: dict[Path, set[str]]
) -> Due:
    """Plan one board. planned: file names that earlier boards of this batch will have written, by
    table; updated here."""
    if request.board is None:
        return Due(request, "refused", error=request.error)
    try:
        game = load_game(request.board)
        if solves_full_table(game, start, options):
            game = load_game(fitting(request.board, options))
            return _plan_full_table(request, game, options, planned)
        return _plan_search(request, game, start, options)
    except LuckbaseError as error:
        return Due(request, "refused", error=error)


def _plan_full_table(
    request: BoardRequest, game: Game, options: Options, planned: dict[Path, set[str]]
) -> Due:
    table = table_directory(options.folder, game)
    first = table not in planned  # otherwise an earlier board solves it
    files = planned.setdefault(table, set())
    if first and not options.force:
        manifest = complete_manifest(game, table, TIERS)
        if manifest is not None:
            files |= {entry.name for entry in manifest.of_part(TIERS, DECISIONS)}
            return Due(request, "complete", (), table)
    plan = plan_table(game, options)
    state, why, intact = _state(game, table, options, plan.plan.files)
    todo = plan.plan.missing(files | intact)
    files |= plan.plan.files | intact
    if not todo and not (first and state == "damaged"):  # this board's files are all included
        why = () if first else ("as another board of this night",)
        return Due(request, "complete", why, table)
    due = Due(
        request, state, why, table, sum(shard.rows for shard in todo),
        sum(shard.bytes for shard in todo), sum(shard.seconds for shard in todo) / options.slots,
        plan=plan,
    )  # fmt: skip
    try:
        plan.check(todo)
    except (MemoryLimitError, DiskLimitError) as error:
        return replace(due, state="refused", error=error)
    return due


def _state(
    game: Game, table: Path, options: Options, files: set[str]
) -> tuple[Condition, tuple[str, ...], set[str]]:
    """Return the state, the reasons, and the files that need not be solved."""
    storage = storage_at(table)
    try:
        manifest = read_manifest(storage, table)
    except MissingTableError:
        changed = sentences.some(4, find.changed_since(game.board, options.folder))
        return ("stale", changed, set()) if changed else ("missing", ("no table yet",), set())
    except TableError as error:
        return "damaged", (str(error),), set()
    damaged = damaged_files(storage, table, manifest.files)
    intact = {entry.name for entry in manifest.of_part(TIERS, DECISIONS)} - damaged.keys()
    if options.force:
        resumed = {entry.name for entry in manifest.next.files} if manifest.next else set()
        return "again", (f"{option('force')}: all of it again",), resumed
    if damaged:
        return "damaged", sentences.some(4, list(damaged.values())), intact
    count = len(intact.intersection(files))
    if not count:
        return "partial", ("only a search was solved; its full table is missing",), intact
    so_far = "reaches further than its table" if manifest.complete else "stopped before its end"
    are = "is" if len(files) == 1 else "are"
    why = f"{so_far}: {count} of {sentences.many(len(files), 'file')} {are} there"
    return "partial", (why,), intact


def _plan_search(request: BoardRequest, game: Game, start: Any, options: Options) -> Due:
    from luckbase.cluster.search.plan import planned_search
    from luckbase.cluster.search.solve import roots_at
    from luckbase.solver.search.expand import root_keys

    keys = root_keys(game, roots_of(game, start))
    roots, table = roots_at(game, keys), table_directory(options.folder, game)
    complete = complete_manifest(game, table, search_part(roots), roots)
    if not options.force and complete is not None:
        return Due(request, "complete", (), table)
    plan = planned_search(game, keys, options.folder, options.workers)
    below = "its start" if start is None else "the given states"
    state: Condition = "missing"
    why = [f"nothing below {below} is solved yet"]
    if options.force:
        state, why = "again", [f"{option('force')}: all of it again"]
    elif changed := find.changed_since(game.board, options.folder):
        state, why = "stale", [*sentences.some(4, changed)]
    if not plan.exact:
        why.append("maybe many times as many states")
    due = Due(
        request, state, tuple(why), table, plan.states, plan.table_bytes, plan.seconds,
        more=not plan.exact, plan=plan,
    )  # fmt: skip
    try:
        plan.check()
    except DiskLimitError as error:
        return replace(due, state="refused", error=error)
    return due


# --- solving them --------------------------------------------------------------------------------

ShowProgress = Callable[
    [BoardRequest, int, int], AbstractContextManager[Callable[[Progress], None]]
]
"""show(board, its number from 1, number of boards) returns a context with a progress callback."""


class BatchOptions(SolveOptions, total=False):
    """The options of a batch of solves; all are optional."""

    on_solved: Callable[[Due], None]
    """Called with the result of each board as soon as it is known."""
    shown: ShowProgress
    """Returns a context with the progress callback of each board; replaces `on_progress`."""


def solve_boards(
    names: Sequence[BoardName], start: Any, settings: Mapping[str, object], options: BatchOptions
) -> list[Due]:
    """Solve every board in `names` as `luckbase.solve_all` does; continue after failures."""
    kwargs: dict[str, Any] = dict(options)
    on_solved, show = kwargs.pop("on_solved", None), kwargs.pop("shown", None)
    shared = Options.read(kwargs)
    requests = requests_for(names, settings, finest=start is not None)
    if any(request.order != "listed" for request in requests):
        requests = [due.request for due in plan_boards(requests, start, shared)]
    results = []
    for number, request in enumerate(requests, start=1):
        began, board_options = time.perf_counter(), options_for(request, shared)
        progress = nullcontext(shared.on_progress)
        try:
            with progress if show is None else show(request, number, len(requests)) as on_progress:
                due = _solve(request, start, replace(board_options, on_progress=on_progress))
        except BrokenPipeError:
            raise
        except LuckbaseError as error:
            due = Due(request, "failed", error=error)
        except Exception as error:
            due = Due(request, "failed", error=LuckbaseError(_sentence(error)))
        results.append(replace(due, seconds=time.perf_counter() - began))
        if on_solved is not None:
            on_solved(results[-1])
    return results


def _solve(request: BoardRequest, start: Any, options: Options) -> Due:
    if request.board is None:
        raise request.error or AssertionError("neither a board nor what is wrong with it")
    changed = tuple(find.changed_since(request.board, options.folder))
    solved = solve_board(request.board, start, cast(SolveOptions, dict(vars(options))))
    return Due(
        request, "solved" if solved.states or solved.shards else "complete", changed,
        solved.table, solved.states, solved.manifest.bytes, solved=solved,
    )  # fmt: skip


def _sentence(error: Exception) -> str:
    cause = getattr(error, "cause", error)  # the original error if a Ray worker raised it
    if not isinstance(cause, OSError):
        message = " ".join(str(error).split())[:200]
        return f"{type(error).__name__}: {message}; solve it alone to see where"
    where = cause.filename or "results"
    if cause.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{where}: the disk is full; free some space, and the same command resumes"
    return f"{where}: {' '.join((cause.strerror or str(cause)).split())}"


# --- the status of their tables ------------------------------------------------------------------


def statuses(
    names: Sequence[str], results: Path | None, settings: Mapping[str, str] = {}
) -> list[Status]:
    """Return the status of tables, each table once.

    names: tables by folder or board file; folders of boards or job files, whose boards get the
        status "missing" if they have no table and "refused" if they cannot be read; folders of
        results. If empty, all tables in the results folder.
    results: the results folder; by default the folder given in the job file, or ``results``.

    Raises OptionError or MissingTableError for a name that does not exist.
    """
    by_table: dict[tuple[str, str], Status] = {}
    for status in _statuses(names, results, dict(settings)):
        by_table.setdefault((status.table, str(status.options)), status)
    return list(by_table.values())


def _statuses(
    names: Sequence[str], folder: Path | None, settings: dict[str, str]
) -> Iterator[Status]:
    results = Path(RESULTS) if folder is None else folder
    if not names:
        yield from map(_for_own_file, map(status_of, find.tables_in(results)))
    for name in names:
        path = place_of(name)
        is_folder = path.is_dir() and not find.is_table(path)
        tables = find.tables_below(path) if is_folder else []
        if tables:
            yield from map(_for_own_file, map(status_of, tables))
        elif is_job(path) or (is_folder and board_files(path)):
            for request in requests_for([path], settings):
                job_results = request.solve_options.get("results", results)
                yield from statuses_of_board(request, folder or place_of(job_results))
        elif is_folder and not (path / NAME).exists():
            raise MissingTableError(f"{name}: has neither a table nor a board file")
        else:
            (request,) = read_requests(path, settings, finest=True)
            board, paths = request.board, [path] if path.is_dir() else list[Path]()
            reach = board is not None and type(board).reach.intersection(settings)
            if not paths and path.exists() and not settings:
                paths = find.tables_of(read_board(path), results)
            for status in map(status_of, paths or [find.find_table(name, results, settings)]):
                yield _for_request(status, request, results) if reach else _for_own_file(status)


def statuses_of_board(request: BoardRequest, results: Path) -> Iterator[Status]:
    """Yield the status of a board's tables, or only of the table with the request's options."""
    file, settings = request.file, dict(request.settings)
    if request.board is None:
        yield Status(file, "refused", settings, why=(str(request.error),))
        return
    try:
        exact = find.table_of(request.board, results)
    except LuckbaseError as error:
        yield Status(request.name, "refused", settings, why=(str(error),))
        return
    paths = [] if settings else find.tables_of(request.board, results)
    paths += [exact] if exact is not None and exact not in paths else []
    for path in paths:
        yield _for_request(status_of(path), request, results, full=True)
    if not paths:
        folder = Path(sentences.shown(results))
        solve = board_command(file, settings, request.board.game, folder)
        yield Status(file, "missing", settings, why=(f"solved by: {solve}",))


def _for_own_file(status: Status) -> Status:
    """Return a table's status: partial if a board file that it was solved from requires more."""
    if status.state != "complete":
        return status
    path = place_of(status.table)
    results, goals = results_of(path), reversed(read_manifest(storage_at(path), path).goals)
    full = [goal for goal in goals if goal.part == TIERS]  # a search does not require a full table
    by_file = {(goal.board_file, *sorted(goal.settings.items())): goal for goal in full}
    for goal in by_file.values():
        if results is not None and goal.board_file:
            (request,) = read_requests(Path(goal.board_file), goal.settings, finest=True)
            status = _for_request(status, request, results)
    return status


def _for_request(
    status: Status, request: BoardRequest, results: Path, *, full: bool = False
) -> Status:
    """Return a table's status: partial if the board requires more than the table holds.

    full: require the full table even if no part of it was ever solved.
    """
    if status.state != "complete" or request.board is None or not (status.tiers or full):
        return status
    game = load_game(request.board)
    path = table_directory(results, game)
    try:
        has_table = has_full_table(game)
    except OptionError:  # this board can only be solved below given states
        return status
    if not has_table or not path.is_dir() or not path.samefile(status.table):
        return status
    (due,) = plan_boards([replace(request, solve_options={})], None, Options(results=results))
    if due.state == "complete":
        return status
    return replace(status, state="partial", why=due.why if due.error is None else (str(due.error),))
