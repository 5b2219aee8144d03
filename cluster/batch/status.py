"""The status of many boards: of their tables, and which have none.

A table of which a board file asks for more than was ever solved is partial: a dry run says so too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from luckbase.cluster.batch.plan import plan_boards
from luckbase.cluster.batch.requests import (
    BoardRequest,
    board_files,
    is_job,
    read_request,
    relative_path,
    requests_for,
)
from luckbase.cluster.inputs import has_full_table
from luckbase.cluster.run.options import Options
from luckbase.cluster.table.find import (
    is_table,
    results_of,
    table_of,
    tables_below,
    tables_in,
    tables_of,
)
from luckbase.cluster.table.folder import LINES, read_ledger
from luckbase.cluster.table.ledger import RESULTS, TIERS, board_command, table_directory
from luckbase.cluster.table.status import Status, status_of, statuses_of
from luckbase.cluster.table.storage import Folder
from luckbase.solver import load_game
from luckbase.solver.board.file import path_of
from luckbase.solver.errors import LuckbaseError, MissingTableError


def statuses(
    names: Sequence[str], results: Path | None, settings: Mapping[str, str] = {}
) -> list[Status]:
    """The status of what is named: tables by directory or board file; the boards of a folder or a
    job file, "missing" where there is no table, "refused" where the board can not be read; the
    tables of another folder of results. Of all tables if nothing is named, each once. results: if
    nothing is said, where a job file says, or ``results``.

    Raises OptionError, MissingTableError for what is not there.
    """
    found: dict[tuple[str, str], Status] = {}
    for status in _statuses(names, results, dict(settings)):
        found.setdefault((status.table, str(status.options)), status)
    return list(found.values())


def _statuses(
    names: Sequence[str], folder: Path | None, settings: dict[str, str]
) -> Iterator[Status]:
    results = Path(RESULTS) if folder is None else folder
    if not names:
        yield from map(_for_own_file, map(status_of, tables_in(results)))
    for name in names:
        path = path_of(name)
        is_folder = path.is_dir() and not is_table(path)
        tables = tables_below(path) if is_folder else []
        if tables:
            yield from map(_for_own_file, map(status_of, tables))
        elif is_job(path) or (is_folder and board_files(path)):
            for request in requests_for([path], settings):
                job_results = request.solve_options.get("results", results)
                yield from _of_board(request, folder or Path(job_results))
        elif is_folder and not (path / LINES).exists():
            raise MissingTableError(f"{name}: neither a table nor a board file is in it")
        else:
            request = read_request(path, settings)
            board = request.board
            reach = board is not None and type(board).reach.intersection(settings)
            for status in statuses_of([name], results, settings):
                yield _for_request(status, request, results) if reach else _for_own_file(status)


def _of_board(request: BoardRequest, results: Path) -> Iterator[Status]:
    """The tables of a board; with options, the one that these mean."""
    file, settings = request.file, dict(request.settings)
    if request.board is None:
        yield Status(file, "refused", settings, why=(str(request.error),))
        return
    try:
        own = table_of(request.board, results)
    except LuckbaseError as error:
        yield Status(request.name, "refused", settings, why=(str(error),))
        return
    others = [] if settings else tables_of(request.board, results)
    paths = [*others, *([own] if own is not None and own not in others else [])]
    for path in paths:
        yield _for_request(status_of(path), request, results, full=True)
    if not paths:
        folder = Path(relative_path(str(results)))
        solve = board_command(file, settings, request.board.game, folder)
        yield Status(file, "missing", settings, why=(f"solved by: {solve}",))


def _for_own_file(status: Status) -> Status:
    """A table's status; partial where a board file that it was solved from asks for more now."""
    if status.state != "complete":
        return status
    path = Path(status.table)
    results, goals = results_of(path), reversed(read_ledger(Folder(path), path).goals)
    full = [goal for goal in goals if goal.part == TIERS]  # a search asks for no full table
    by_file = {(goal.board_file, *sorted(goal.settings.items())): goal for goal in full}
    for goal in by_file.values():
        if results is not None and goal.board_file:
            request = read_request(Path(goal.board_file), goal.settings)
            status = _for_request(status, request, results)
    return status


def _for_request(
    status: Status, request: BoardRequest, results: Path, *, full: bool = False
) -> Status:
    """A table's status; partial where the board asks for more than is there. full: its full table
    is asked for even if none of it was ever solved."""
    if status.state != "complete" or request.board is None or not (status.tiers or full):
        return status
    game = load_game(request.board)
    own = table_directory(results, game)
    if not has_full_table(game) or not own.is_dir() or not own.samefile(status.table):
        return status
    (due,) = plan_boards([replace(request, solve_options={})], None, Options(results=results))
    if due.state == "complete":
        return status
    return replace(status, state="partial", why=due.why if due.error is None else (str(due.error),))
