"""How many boards stand: the status of their tables, and which have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from luckbase.cluster import words
from luckbase.cluster.night.asked import Asked, asked_for, board_files
from luckbase.cluster.night.job import is_job
from luckbase.cluster.table.find import command, is_table, table_of, tables_in, tables_of
from luckbase.cluster.table.status import Status, status_of, statuses_of
from luckbase.solver.errors import LuckbaseError


def statuses(names: Sequence[str], results: Path, settings: Mapping[str, str] = {}) -> list[Status]:
    """The status of what is named: tables by directory or board file; the boards of a folder or a
    job file, "missing" where there is no table, "refused" where the board can not be read; the
    tables of another folder of results. Of all tables if nothing is named, each once.

    Raises OptionError, MissingTableError for what is not there.
    """
    found: dict[tuple[str, str], Status] = {}
    for one in _of(names, results, dict(settings)):
        found.setdefault((one.table, str(one.options)), one)
    return list(found.values())


def _of(names: Sequence[str], results: Path, settings: dict[str, str]) -> Iterator[Status]:
    if not names:
        yield from map(status_of, tables_in(results))
    for name in names:
        path = Path(name)
        tables = tables_in(path) if path.is_dir() and not is_table(path) else []
        if tables:
            yield from map(status_of, tables)
        elif is_job(path) or (path.is_dir() and not is_table(path) and board_files(path)):
            for one in asked_for([path], settings):
                yield from _of_board(one, results)
        else:
            yield from statuses_of([name], results, settings)


def _of_board(one: Asked, results: Path) -> Iterator[Status]:
    """The tables of a board; with options, the one that these mean."""
    where = Path(one.how.get("results", results))
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
    yield from map(status_of, paths)
    if not paths:
        makes = command(f"{words.program()} solve", one.file, one.settings, one.board.game)
        yield Status(one.file, "missing", dict(one.settings), why=(f"solved by: {makes}",))
