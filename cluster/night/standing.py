"""How many boards stand: the status of their tables, and which have none.

A table of which a board file asks for more than was ever solved is partial: a dry run says so too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from luckbase.cluster import words
from luckbase.cluster.given import has_full_table
from luckbase.cluster.night.asked import Asked, asked_for, board_files, read_asked, short
from luckbase.cluster.night.due import due
from luckbase.cluster.night.job import is_job
from luckbase.cluster.run.options import Options
from luckbase.cluster.table.find import (
    RESULTS,
    command,
    is_table,
    results_of,
    table_of,
    tables_below,
    tables_in,
    tables_of,
)
from luckbase.cluster.table.ledger import LINES, read_ledger, table_directory
from luckbase.cluster.table.lines import TIERS
from luckbase.cluster.table.status import Status, status_of, statuses_of
from luckbase.cluster.table.storage import Folder
from luckbase.solver import load_game
from luckbase.solver.board.toml_file import path_of
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
    for one in _of(names, results, dict(settings)):
        found.setdefault((one.table, str(one.options)), one)
    return list(found.values())


def _of(names: Sequence[str], said: Path | None, settings: dict[str, str]) -> Iterator[Status]:
    results = Path(RESULTS) if said is None else said
    if not names:
        yield from map(_by_its_file, map(status_of, tables_in(results)))
    for name in names:
        path = path_of(name)
        tables = tables_below(path) if path.is_dir() and not is_table(path) else []
        if tables:
            yield from map(_by_its_file, map(status_of, tables))
        elif is_job(path) or (path.is_dir() and not is_table(path) and board_files(path)):
            for one in asked_for([path], settings):
                yield from _of_board(one, said or Path(one.how.get("results", results)))
        elif path.is_dir() and not is_table(path) and not (path / LINES).exists():
            raise MissingTableError(f"{name}: neither a table nor a board file is in it")
        else:
            one = read_asked(path, settings)
            reach = one.board is not None and type(one.board).reach.intersection(settings)
            for found in statuses_of([name], results, settings):
                yield _asked(found, one, results) if reach else _by_its_file(found)


def _of_board(one: Asked, where: Path) -> Iterator[Status]:
    """The tables of a board; with options, the one that these mean."""
    if one.board is None:
        yield Status(one.file, "refused", dict(one.settings), why=(str(one.error),))
        return
    try:
        own = table_of(one.board, where)
    except LuckbaseError as error:
        yield Status(one.name, "refused", dict(one.settings), why=(str(error),))
        return
    others = [] if one.settings else tables_of(one.board, where)
    paths = [*others, *([own] if own is not None and own not in others else [])]
    for path in paths:
        yield _asked(status_of(path), one, where, full=True)
    if not paths:
        makes = command(
            f"{words.program()} solve", one.file, one.settings, one.board.game,
            Path(short(str(where))),
        )  # fmt: skip
        yield Status(one.file, "missing", dict(one.settings), why=(f"solved by: {makes}",))


def _by_its_file(said: Status) -> Status:
    """A table's status; partial where a board file that it was solved from asks for more now."""
    if said.state != "complete":
        return said
    path = Path(said.table)
    results, goals = results_of(path), reversed(read_ledger(Folder(path), path).goals)
    full = [goal for goal in goals if goal.part == TIERS]  # a search asks for no full table
    read = {(goal.board_file, *sorted(goal.settings.items())): goal for goal in full}
    for goal in read.values():
        if results is not None and goal.board_file:
            one = read_asked(Path(goal.board_file), goal.settings)
            said = _asked(said, one, results)
    return said


def _asked(said: Status, one: Asked, results: Path, *, full: bool = False) -> Status:
    """A table's status; partial where the board asks for more than is there. full: its full table
    is asked for even if none of it was ever solved."""
    if said.state != "complete" or one.board is None or not (said.tiers or full):
        return said
    game = load_game(one.board)
    own = table_directory(results, game)
    if not has_full_table(game) or not own.is_dir() or not own.samefile(said.table):
        return said
    (planned,) = due([replace(one, how={})], None, Options(results=results))
    if planned.state == "complete":
        return said
    why = planned.why if planned.error is None else (str(planned.error),)
    return replace(said, state="partial", why=why)
