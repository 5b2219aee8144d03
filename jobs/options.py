"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luckbase.jobs.folder import read_results
from luckbase.jobs.terminal import render
from luckbase.solver.errors import OptionError, StateError

if TYPE_CHECKING:
    from luckbase.cluster.table.find import Found
    from luckbase.cluster.table.table import Table
    from luckbase.solver.game.arrays import Ints
    from luckbase.solver.game.game import Game

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change an option of the board; repeatable."),
]
Results = Annotated[
    Path, typer.Option(help="Where tables are kept.", metavar="DIR", parser=read_results)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A table's directory, or a board file (with --set: its rules)."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a stale table (exit code 1), not only say so.")
]


Memory = Annotated[str | None, typer.Option(help="GB that shards in flight may use.", metavar="GB")]

LEAST_MEMORY = 10_000_000
"""Bytes; less than any board of use needs."""


def read_memory(text: str | None) -> int | None:
    """The bytes of ``--memory GB``; None where it is not given. Raises OptionError."""
    if text is None:
        return None
    try:
        size = float(text) * 1e9
    except ValueError:
        size = math.nan
    if not LEAST_MEMORY <= size < math.inf:
        raise OptionError(
            f"--memory: '{text[:30]}' is not a number of GB from {LEAST_MEMORY / 1e9:g}; write it "
            "as --memory 8"
        )
    return int(size)


def read_settings(words: Iterable[str] | None) -> dict[str, str]:
    """``["a=1", "b=x"]`` -> ``{"a": "1", "b": "x"}``. Raises OptionError."""
    found: dict[str, str] = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise OptionError(f"--set: '{word}' is not NAME=VALUE, as in --set score_unit=500")
        if name.strip() in found:
            raise OptionError(f"--set: {name.strip()} is given twice")
        found[name.strip()] = value.strip()
    return found


def read_fields(words: Iterable[str]) -> dict[str, str]:
    """``["scores=0,1,2"]`` -> ``{"scores": "0,1,2"}``. Raises StateError."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise StateError(f"'{word}' is not FIELD=VALUE, as in scores=0,2000,3500")
        if name in found:
            raise StateError(f"{name} is given twice")
        found[name] = value
    return found


From = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="FIELD=VALUE...",
        help="Start here: fields, or a file of states (CSV, JSON lines, Parquet).",
    ),
]


def split_from(words: Iterable[str], start: list[str] | None) -> tuple[list[str], list[str] | None]:
    """What stands after ``--from a=1`` ends up among the arguments: (arguments, all of --from)."""
    mine = [word for word in words if start is None or "=" not in word]
    return mine, None if start is None else start + [w for w in words if w not in mine]


def read_roots(game: Game, start: list[str] | None) -> Ints | None:
    """The canonical states (m, fields) that ``--from`` names; None where it is not given.

    Raises StateError, OptionError.
    """
    if not start:
        return None
    if len(start) == 1 and "=" not in start[0]:
        from luckbase.jobs.batch import read_rows, state_columns

        return game.canonical_states(state_columns(game, read_rows(start[0])[1]))
    return game.parse(read_fields(start)).reshape(1, -1)


def read_start(game: Game, start: list[str] | None) -> Ints:
    """The one state (fields,) where plays begin: ``--from``'s, or the game's own start.

    Raises OptionError where there is none, or more than one.
    """
    roots = read_roots(game, start)
    if roots is None:
        return game.needed_start()
    if len(roots) != 1:
        raise OptionError(f"--from: {len(roots)} states given; this command starts from one")
    found: Ints = roots[0]
    return found


def find_table(name: str, results: Path, settings: list[str] | None) -> Found:
    """The table that a person means (`cluster.table.find`), with ``--set`` as it was typed."""
    from luckbase.cluster.table.find import find_table as find

    return find(name, results, read_settings(settings))


def open_found(name: str, results: Path, settings: list[str] | None, strict: bool = False) -> Table:
    """That table, open; says on stderr why it is stale, if it is.

    Raises StaleTableError instead where `strict`.
    """
    from luckbase.cluster.table.table import open_table
    from luckbase.solver.errors import StaleTableError

    found = find_table(name, results, settings)
    opened = open_table(found.path, named_by_board=found.by_board)
    if opened.origin.stale:
        said = f"{name}: this table is stale: {'; '.join(opened.origin.stale[:3])}"
        if strict:
            opened.close()
            raise StaleTableError(said)
        render.say(f"luckbase: {said}")
    return opened
