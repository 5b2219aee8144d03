"""How a function becomes a command, the options that several commands share, and how they are read.

A parameter whose annotation has a `Help` is an option, here as in Python's API, and has its name.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

import luckbase
from luckbase.jobs import terminal
from luckbase.solver.errors import OptionError, StaleTableError, StateError
from luckbase.solver.sentences import FIELD, Help, flag, pairs

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable
    from luckbase.solver.board.model import Board

FLAGS = {"as_json": "--json", "as_csv": "--csv", "settings": "--set", "listed": "--list"}
"""Options that are not named as their parameters."""
PICTURES = (".png", ".svg", ".pdf")
"""Endings of files that a picture is drawn into."""
SAMPLE = 10_000
"""Rows that are verified, if nothing is said."""
MIN_MEMORY = 10_000_000
"""Bytes; less than any board of use needs."""


class Argument(Help):
    """What stands in a command without a name."""


GameFiles = Annotated[
    list[str] | None, Help("A file that registers a game; repeatable.", "FILE.py")
]


def command(
    *examples: str, api: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function a command: its parameters are options, and so are those arguments of `api`,
    a function of luckbase's, that have a `Help`; it gets them as keywords. Its help is the
    docstring, then `examples`, lines that can be typed.

    Every command takes ``--game``: files that are run before anything is read.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*, game: list[str] | None, **inputs: Any) -> Any:
            for file in game or ():
                from luckbase.solver.game.game import load_game_file

                load_game_file(file)
            return function(**inputs)

        named = signature(function, eval_str=True).parameters
        params = [each for each in named.values() if each.kind is not Parameter.VAR_KEYWORD]
        params += [each for each in _with_help(api) if each.name not in named]
        params.sort(key=lambda each: each.name == "as_json")
        params.append(Parameter("game", Parameter.KEYWORD_ONLY, default=None, annotation=GameFiles))
        params = [_option(each) for each in params]
        call.__signature__ = Signature(params)  # type: ignore[attr-defined]
        call.examples = examples  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in params}
        return call

    return decorate


def _with_help(api: Callable[..., Any] | None) -> Iterator[Parameter]:
    """The arguments of a function that have a `Help`; the types of others are not imported here."""
    for each in signature(api).parameters.values() if api is not None else ():
        if str(each.annotation).startswith("Annotated["):
            scope = vars(sys.modules[api.__module__])
            yield each.replace(annotation=eval(each.annotation, scope))


def _option(parameter: Parameter) -> Parameter:
    """A parameter as Typer reads it."""
    kind, spec = get_args(parameter.annotation)
    if os.PathLike[str] in get_args(kind):
        kind = str | None
    if isinstance(spec, Argument):
        spec = typer.Argument(metavar=spec.metavar, help=spec.text)
    elif isinstance(spec, Help):
        name = FLAGS.get(parameter.name, flag(parameter.name))
        spec = typer.Option(name, help=spec.text, metavar=spec.metavar, min=spec.min)
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, spec])


# --- tables and boards ---------------------------------------------------------------------------


def read_results(text: str | Path) -> Path:
    """The folder, or place of a URI, that ``--results`` names, there or not yet. Raises OptionError
    where it can be none."""
    if not str(text).strip():
        raise OptionError("--results: '' is not a folder; write one, such as --results results")
    if "://" in str(text):
        from luckbase.cluster.table.place import is_uri, place_of

        try:
            path = place_of(text)
        except OptionError as error:
            raise OptionError(f"--results: {error}") from None
        if is_uri(path):
            return path
    path = existing = Path(text)
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise OptionError(f"--results: {existing} is a file; write a folder, such as results")
    if not os.statvfs(existing).f_blocks:  # /proc, /sys
        raise OptionError(f"--results: {existing} keeps no files; write a folder, such as results")
    return path


def is_folder(name: str) -> bool:
    """Whether a name is that of a folder, or of a place that a URI names."""
    return "://" in name or Path(name).is_dir()


BoardFile = Annotated[str, Argument("A board file.", "BOARD")]
TableName = Annotated[
    str, Argument("A table's directory or URI, or a board file (with --set: its rules).", "TABLE")
]
Settings = Annotated[
    list[str] | None, Help("Change an option of the board; repeatable.", "NAME=VALUE")
]
Strict = Annotated[bool, Help("Refuse a stale table (exit code 1), not only say so.")]
Results = Annotated[
    Path, typer.Option(help="Where tables are kept.", metavar="DIR", parser=read_results)
]
ResultsOrJob = Annotated[
    Path | None,
    typer.Option(
        help="Where tables are kept: results, if no job file says where.", metavar="DIR",
        parser=read_results,
    ),
]  # fmt: skip
Json = Annotated[bool, Help("Print JSON on stdout.")]


def read_settings(words: Iterable[str] | None) -> dict[str, str]:
    """``["a=1", "b=x"]`` -> ``{"a": "1", "b": "x"}``. Raises OptionError."""
    return pairs(words or (), OptionError, "--set: ", "NAME=VALUE, as in --set score_unit=500")


def board_of(name: str | Path, settings: Iterable[str] | None) -> Board:
    """The board in a file, with ``--set`` as it was typed."""
    return luckbase.load_board(name, **read_settings(settings))


def open_found(
    name: str, results: Path, settings: list[str] | None, strict: bool = False
) -> StoredTable:
    """The table that a person means, open; says on stderr why it is stale, if it is.

    Raises StaleTableError instead where `strict`.
    """
    from luckbase.cluster.inputs import open_by_name as open_table

    table = open_table(name, results, read_settings(settings))
    if table.origin.stale:
        warning = f"{name}: this table is stale: {'; '.join(table.origin.stale[:3])}"
        if strict:
            table.close()
            raise StaleTableError(warning)
        terminal.say(f"luckbase: {warning}")
    return table


def say_unfinished(name: str, table: StoredTable) -> None:
    """Say on stderr what of a table is still to be solved, if anything is."""
    if left := table.unfinished():
        terminal.say(f"luckbase: {name}: this table is not whole: {', '.join(left)}")


# --- states --------------------------------------------------------------------------------------

Agents = Annotated[
    str,
    Help("Agents by name, tables' directories, board files, or files of frequencies (CSV); one for "
         "all, or one each.",
         "A[,B...]"),
]  # fmt: skip
From = Annotated[
    list[str] | None,
    Help("Start here: fields, or a file of states (CSV, JSON lines, Parquet).", "FIELD=VALUE..."),
]
More = Annotated[list[str] | None, Argument("Start here, as with --from.", "[FIELD=VALUE...]")]


def read_fields(words: Iterable[str]) -> dict[str, str]:
    """``["scores=0,1,2"]`` -> ``{"scores": "0,1,2"}``. Raises StateError."""
    return pairs(words, StateError, "", FIELD)


def read_start(start: Sequence[str] | None, more: Sequence[str] | None = None) -> Any:
    """What ``--from`` names, with the fields that stand without it: a state as fields, a table of
    the states in a file, or None. Raises StateError, OptionError."""
    words = [*(start or []), *(more or [])]
    if not words:
        return None
    if len(words) == 1 and "=" not in words[0]:
        from luckbase.cluster.table.frames import read_rows

        return read_rows(words[0])[1]
    return read_fields(words)


# --- others --------------------------------------------------------------------------------------

Memory = Annotated[str | None, Help("GB of memory that all shards together may use.", "GB")]


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


def read_sample(sample: int | None, every: bool) -> int | None:
    """The rows that are verified, None for all, of ``--sample`` and ``--all``. Raises
    OptionError."""
    check_one(sample=sample is not None, every=every)
    return None if every else SAMPLE if sample is None else sample


def check_one(**flags: object) -> None:
    """Raises OptionError where more than one of these options is there."""
    typed = [FLAGS.get(name, flag(name)) for name, value in flags.items() if value]
    if len(typed) > 1:
        raise OptionError(f"{' and '.join(typed)}: write one of them")


def check_ending(option: str, name: str, endings: Sequence[str]) -> str:
    """The ending of a file's name, one of `endings`. Raises OptionError."""
    suffix = Path(name).suffix.lower()
    if suffix not in endings:
        raise OptionError(f"{option}: {name}: end it in {', '.join(endings)}")
    return suffix
