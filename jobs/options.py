"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import typer

import luckbase
from luckbase.cluster.words import check_folder
from luckbase.jobs.terminal import render
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.sentences import flag

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable
    from luckbase.solver.board.model import Board

D = TypeVar("D")
R = TypeVar("R")

PICTURES = (".png", ".svg", ".pdf")
"""Endings of files that a picture is drawn into."""


def read_results(text: str | Path) -> Path:
    """The folder that ``--results`` names, there or not yet. Raises OptionError where it can be
    none."""
    if not str(text).strip():
        raise OptionError("--results: '' is no folder; write one, such as --results results")
    check_folder(text, "--results")
    path = existing = Path(text)
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise OptionError(f"--results: {existing} is a file; write a folder, such as results")
    return path


def check_ending(option: str, name: str, endings: Sequence[str]) -> str:
    """The ending of a file's name, one of `endings`. Raises OptionError."""
    suffix = Path(name).suffix.lower()
    if suffix not in endings:
        raise OptionError(f"{option}: {name}: end it in {', '.join(endings)}")
    return suffix


SAMPLE = 10_000


def read_sample(sample: int | None, every: bool) -> int | None:
    """The rows that are verified, None for all, of ``--sample`` and ``--all``. Raises
    OptionError."""
    if every and sample is not None:
        raise OptionError("--sample and --all: give one of them")
    return None if every else SAMPLE if sample is None else sample


Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change an option of the board; repeatable."),
]
Results = Annotated[
    Path, typer.Option(help="Where tables are kept.", metavar="DIR", parser=read_results)
]
ResultsOrJob = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        parser=read_results,
        help="Where tables are kept: results, if no job file says where.",
    ),
]
BoardFile = Annotated[str, typer.Argument(metavar="BOARD", help="A board file.")]
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


Agents = Annotated[
    str,
    typer.Option(
        metavar="A[,B...]",
        help="Agents by name, tables' directories or board files; one for all, or one each.",
    ),
]
More = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FIELD=VALUE...]", help="Start here, as with --from."),
]


def with_options_of(api: Callable[..., Any]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A command with an option more for every argument of a function of luckbase's that has a
    `Help`; it gets them as keywords."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        own = [
            parameter
            for parameter in signature(command, eval_str=True).parameters.values()
            if parameter.kind is not Parameter.VAR_KEYWORD
        ]
        names = [parameter.name for parameter in own]
        every = [*own, *(more for more in _keywords(api) if more.name not in names)]
        every = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in every]
        every.sort(key=lambda parameter: parameter.name == "as_json")
        command.__signature__ = Signature(every)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
        return command

    return decorate


def _keywords(api: Callable[..., Any]) -> Iterator[Parameter]:
    """The arguments of a function that have a `Help`, as options of a command."""
    scope = vars(sys.modules[api.__module__])
    for parameter in signature(api).parameters.values():
        if not str(parameter.annotation).startswith("Annotated["):
            continue
        holder = SimpleNamespace(__annotations__={"kind": parameter.annotation})
        kind, about = get_args(get_type_hints(holder, scope, include_extras=True)["kind"])
        if os.PathLike[str] in get_args(kind):
            kind = str | None
        option = typer.Option(
            flag(parameter.name), help=about.text, metavar=about.metavar, min=about.min
        )
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option])


Memory = Annotated[str | None, typer.Option(help="GB that shards in flight may use.", metavar="GB")]

MIN_MEMORY = 10_000_000
"""Bytes; less than any board of use needs."""


def read_memory(text: str | None) -> int | None:
    """The bytes of ``--memory GB``; None where it is not given. Raises OptionError."""
    if text is None:
        return None
    try:
        size = float(text) * 1e9
    except ValueError:
        size = math.nan
    if not MIN_MEMORY <= size < math.inf:
        raise OptionError(
            f"--memory: '{text[:30]}' is not a number of GB from {MIN_MEMORY / 1e9:g}; write it "
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
            raise StateError(f"'{word}' is not FIELD=VALUE: a field's name, = and what it is")
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


def read_start(start: Sequence[str] | None, more: Sequence[str] | None = None) -> Any:
    """What ``--from`` names, with the fields that stand without it: a state as fields, a table of
    the states in a file, or None. Raises StateError, OptionError."""
    words = [*(start or []), *(more or [])]
    if not words:
        return None
    if len(words) == 1 and "=" not in words[0]:
        from luckbase.cluster.table.files import read_rows

        return read_rows(words[0])[1]
    return read_fields(words)


def board_of(name: str | Path, settings: Iterable[str] | None) -> Board:
    """The board in a file, with ``--set`` as it was typed."""
    return luckbase.load_board(name, **read_settings(settings))


def open_found(
    name: str, results: Path, settings: list[str] | None, strict: bool = False
) -> StoredTable:
    """The table that a person means, open; says on stderr why it is stale, if it is.

    Raises StaleTableError instead where `strict`.
    """
    from luckbase.cluster.inputs import opened as open_table
    from luckbase.solver.errors import StaleTableError

    opened = open_table(name, results, read_settings(settings))
    if opened.origin.stale:
        said = f"{name}: this table is stale: {'; '.join(opened.origin.stale[:3])}"
        if strict:
            opened.close()
            raise StaleTableError(said)
        render.say(f"luckbase: {said}")
    return opened


def say_unfinished(name: str, table: StoredTable) -> None:
    """Say on stderr what of a table is still to be solved, if anything is."""
    if left := table.unfinished():
        render.say(f"luckbase: {name}: this table is not whole: {', '.join(left)}")
