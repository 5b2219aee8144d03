"""Options that several commands share, and how their text is read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from solver.errors import MissingTableError, OptionError, StateError

if TYPE_CHECKING:
    from cluster.manifest import Manifest
    from solver.game import Game, Ints

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change an option of the board; repeatable."),
]
Results = Annotated[Path, typer.Option(help="Where tables are kept.", metavar="DIR")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A table's directory, or a board file: its newest complete table."
    ),
]


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
        from jobs.batch import read_rows, state_columns

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


def tables_in(results: Path) -> list[Path]:
    """Every table's directory under `results`: results/<game>/<board>/<solve id>."""
    return sorted(path.parent for path in results.glob("*/*/*/manifest.json"))


def tables_of(board: Path, results: Path) -> list[Path]:
    """Those of the board in a file: of its game, and called as it is. A file that can not be read
    any more has the tables of its name."""
    import tomllib

    try:
        game = tomllib.loads(board.read_text(encoding="utf-8")).get("game")
    except (OSError, ValueError, RecursionError):
        game = None
    return [
        table
        for table in tables_in(results)
        if table.parent.name == board.stem and game in (None, table.parent.parent.name)
    ]


def find_table(name: str, results: Path, full: bool = False) -> tuple[Path, Manifest]:
    """The table that a person means, and its manifest.

    A directory is the table itself. A board file is its newest complete table under `results`: one
    of the board as it stands now before one of an older version of the file; if `full`, no table of
    what lies below some states.

    Raises MissingTableError.
    """
    from cluster.manifest import read_manifest
    from cluster.staleness import why_stale

    path = Path(name)
    if path.is_dir():
        return path, read_manifest(path)
    if not path.exists():
        raise OptionError(f"{name}: no such table or board file")
    complete = []
    for table in tables_of(path, results):
        manifest = read_manifest(table)
        if manifest.complete and not (full and manifest.roots is not None):
            complete.append((table, manifest))
    if not complete:
        kind = "full table" if full else "table"
        raise MissingTableError(
            f"{name}: no complete {kind} of this board under {results}; luckbase solve {name}"
        )

    def rank(found: tuple[Path, Manifest]) -> tuple[bool, float]:
        table, manifest = found
        return not why_stale(manifest), (table / "manifest.json").stat().st_mtime

    return max(complete, key=rank)
