"""The command ``luckbase``: how functions become commands, their shared options, exit codes and
errors.

A parameter whose annotation has a `Help` is an option, with the same name as in the Python API.

Exit codes: 0 done; 1 the answer is no (stale, different, damaged, verification failed); 2 bad
request; 130 interrupted; 143 and 129 ended by SIGTERM and SIGHUP; 141 ended by a closed pipe. Data
goes to stdout, text for people to stderr.
"""

from __future__ import annotations

import errno
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

import luckbase
from luckbase.jobs import terminal
from luckbase.solver import sentences
from luckbase.solver.errors import LuckbaseError, OptionError, StaleTableError, StateError
from luckbase.solver.sentences import FIELD, Help, flag, pairs, program

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table
    from luckbase.solver.board.model import Board

GROUPS = {
    "Solve": {"solve": "solve"},
    "Query": {"info": "query", "query": "query", "export": "query"},
    "Compare": {"diff": "status", "evaluate": "play"},
    "Draw": {"chart": "draw", "graph": "draw", "serve": "serve"},
    "Play": {"play": "play", "advise": "play"},
    "Manage": {"status": "status", "verify": "status", "publish": "status", "clean": "status"},
}
"""Commands in the groups of ``--help``. Each is a function in a module of `jobs`, which is imported
when the command is used. The first line of its docstring is its line in the help."""
COMMANDS = {name: module for group in GROUPS.values() for name, module in group.items()}
DOCS = """\
luckbase COMMAND --help prints the options of a command, and two examples.
docs/tutorial.md takes 15 minutes, from the installation to a first picture.
README.md lists all pages. Each game has its own page."""


FLAGS = {"as_json": "--json", "as_csv": "--csv", "settings": "--set", "listed": "--list"}
"""Options whose names differ from their parameters."""
VARIABLES = {name: f"LUCKBASE_{name.upper()}" for name in ("results", "game", "address")}
"""Environment variables that set options, by parameter."""
PICTURES = (".png", ".svg", ".pdf")
"""Suffixes of picture files."""
SAMPLE = 10_000
"""Number of rows verified by default."""
MIN_MEMORY = 10_000_000
"""Minimum of ``--memory`` in bytes; every useful board needs more."""


class _Interrupted(Exception):
    """Ctrl+C or another signal in a command; Typer would swallow a KeyboardInterrupt."""


class _Command(TyperCommand):
    """A command whose help ends with examples."""

    @property
    def examples(self) -> Sequence[str]:
        return self.callback.examples  # type: ignore[union-attr]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*(name for name, _ in self._arguments()), "[OPTIONS]"]

    def _arguments(self) -> list[tuple[str, str]]:
        arguments: list[Any] = [each for each in self.params if each.param_type_name == "argument"]
        return [(each.metavar, each.help) for each in arguments]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        if self._arguments():
            with formatter.section("Arguments"):
                formatter.write_dl(self._arguments())
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"  {example}\n")


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    options = [each for each in command.get_params(ctx) if each.param_type_name == "option"]
    with formatter.section("Options"):
        formatter.write_dl([each.get_help_record(ctx) for each in options])


class _Commands(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": dict.fromkeys(COMMANDS)})

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["COMMAND", "..."]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for title, names in GROUPS.items():
            with formatter.section(title):
                for name in names:
                    text = self.get_command(ctx, name).help or ""  # none with PYTHONOPTIMIZE=2
                    first, _, _ = text.partition("\n")
                    formatter.write(f"  {name:10}{first}".rstrip() + "\n")
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        formatter.write(f"\n{DOCS}\n")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in COMMANDS:
            right = sentences.nearest(args[0], list(COMMANDS))
            raise OptionError(f"unknown command '{sentences.shorten(args[0], 60)}'; {right}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        alone = typer.Typer(rich_markup_mode=None, add_completion=False)
        module = import_module(f"luckbase.jobs.{COMMANDS[cmd_name]}")
        alone.command(cmd_name, cls=_Command)(getattr(module, cmd_name))
        return typer.main.get_command(alone)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise _Interrupted from stop


app = typer.Typer(
    name="luckbase",
    cls=_Commands,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"luckbase {luckbase.__version__}")
        raise typer.Exit


@app.callback()
def _luckbase(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True,
                     help="Print the version and exit."),
    ] = False,
) -> None:  # fmt: skip
    """Compute the exact payoff of every state of a game of chance, and query it by state.

    \b
    Begin with:
      luckbase solve pig/race
      luckbase query pig/race mine=0 yours=87 turn=12
      luckbase play pig/race --hints
    """


def main() -> None:
    """Run the command line and exit with its exit code."""
    terminal.name_streams()
    code = run(sys.argv[1:])
    if sys.argv[1:2] == ["query"]:
        terminal.leave(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code. Expected errors are one sentence on stderr."""
    try:
        watched = arguments[:1] != ["serve"]  # it has its own handlers, and forks
        with (
            terminal.signals(watched), terminal.watch_compiling(), sentences.command_line(),
        ):  # fmt: skip
            check_current_folder()
            arguments = _meant(arguments)
            result = app(arguments, prog_name="luckbase", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except terminal.ClosedPipe as error:
        return error.exit_code
    except LuckbaseError as error:
        print(f"luckbase: {_by_variable(str(error), arguments)}", file=sys.stderr)
        return error.exit_code
    except (KeyboardInterrupt, _Interrupted) as stop:
        again = f"run again: {shlex.join([program(), *arguments])}"
        with suppress(OSError):  # the terminal may be gone
            print(f"\nluckbase: interrupted; finished files stay; {again}", file=sys.stderr)
        return terminal.exit_code(stop.__cause__ or stop)
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:
        return _usage(error, arguments)


def _meant(arguments: list[str]) -> list[str]:
    """Return the arguments of ``help COMMAND`` and ``version`` as options."""
    if arguments[:1] == ["version"]:
        return ["--version"]
    return [*arguments[1:2], "--help"] if arguments[:1] == ["help"] else arguments


def _by_variable(message: str, arguments: list[str]) -> str:
    """Return a message with the environment variable in place of an option that it has set."""
    for name, variable in VARIABLES.items():
        option = flag(name)
        given = any(word.partition("=")[0] == option for word in arguments)
        if message.startswith(f"{option}: ") and os.environ.get(variable) and not given:
            return variable + message.removeprefix(option)
    return message


def check_current_folder() -> None:
    """Raise OptionError if the current folder was deleted, because relative names then fail."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise OptionError("the current folder no longer exists; change to another folder") from None


def _usage(error: Exception, arguments: list[str]) -> int:
    """Print an error of click, the system or a user's game as one sentence and return its exit
    code. Reraise any other error, which is a bug."""
    show = getattr(error, "format_message", None)
    if type(error).__name__ == "Abort":
        return 130
    if type(error).__name__ == "NoArgsIsHelpError" and show is not None:
        print(show(), file=sys.stderr)
        return 2
    if show is not None:
        code, message = int(getattr(error, "exit_code", 2)) or 2, _sentence(error, arguments)
    else:
        code, message = _failure(error, arguments)
    print(f"luckbase: {message}", file=sys.stderr)
    return code


def _failure(error: Exception, arguments: list[str]) -> tuple[int, str]:
    """Return the exit code and the sentence for an error of the system or of a user's game."""
    cause = getattr(error, "cause", error)  # the original error if a Ray worker raised it
    if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
        return 1, _full(cause, arguments)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return 2, where + " ".join((error.strerror or str(error)).split())
    if isinstance(cause, MemoryError):
        message = f"not enough memory: {cause}".rstrip(": ")
        return 1, f"{message}; the solved parts are kept"
    from luckbase.solver.game.game import own_fault

    if (fault := own_fault(cause)) is None:
        raise error
    return 2, fault


def _sentence(error: Any, arguments: list[str]) -> str:
    """Return a sentence for wrong usage, as found by click: the name, and what would be right."""
    kind, message = type(error).__name__, " ".join(error.format_message().split())
    command = [word for word in arguments[:1] if word in COMMANDS]
    listed = f"{shlex.join([program(), *command, '--help'])} lists the options"
    if kind == "MissingParameter":
        name = (error.param.metavar if error.param.metavar else error.param.opts[0]).split()[0]
        return f"{name.rstrip('.')} is missing; for example: {error.ctx.command.examples[0]}"
    if kind == "NoSuchOption":
        return f"unknown option {error.option_name}; {_right_option(error, arguments) or listed}"
    if kind == "BadOptionUsage":
        return f"{error.option_name}: its value is missing; {listed}"
    if extra := re.fullmatch(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", message):
        return f"unexpected argument '{sentences.shorten(extra[1], 60)}'; {listed}"
    return message


def _right_option(error: Any, arguments: list[str]) -> str:
    """Return a clause for an unknown option: the field or option of the board of this name, or a
    similar option; otherwise ""."""
    name = error.option_name
    word = name.lstrip("-").replace("-", "_")
    value = dict(pairwise(arguments)).get(name, "VALUE")
    with suppress(LuckbaseError, IndexError):
        from luckbase.solver.game.game import load_game

        board = luckbase.load_board(arguments[1])
        if word in type(board).options():
            return f"write --set {word}={value}"
        if word in load_game(board).fields.names:
            return f"write {word}={value}"
    options = [option for each in error.ctx.command.params for option in each.opts]
    similar = get_close_matches(name, options, n=1, cutoff=sentences.CLOSE)
    return f"did you mean {similar[0]}?" if similar else ""


def _full(error: OSError, arguments: list[str]) -> str:
    """Return the sentence for a full disk: the folder, the kept parts, and how to continue."""
    where, again = error.filename, shlex.join([program(), *arguments])
    if arguments[:1] != ["solve"]:
        return f"{where or 'disk'}: the disk is full; free some space and run again: {again}"
    if not where and "--results" in arguments[:-1]:
        where = arguments[arguments.index("--results") + 1]
    where = where or os.environ.get(VARIABLES["results"], "results")
    kept = "the solved parts are kept; free some space and resume with"
    return f"{where}: the disk is full; {kept}: {again}"


# --- how a function becomes a command ------------------------------------------------------------


class Argument(Help):
    """A positional argument."""


GameFiles = Annotated[
    list[Path] | None, Help("A file that registers a game; repeatable.", "FILE.py")
]


def command(
    *examples: str, api: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """Make a function a command.

    Its parameters become options. The parameters of `api` that have a `Help` also become options,
    which the function receives as keywords. The help is the docstring, then `examples`, which are
    complete command lines. Every command takes ``--game``: files to run first.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*, game: list[Path] | None, **inputs: Any) -> Any:
            for file in game or ():
                from luckbase.solver.game.game import load_game_file

                load_game_file(_local_file("--game")(file))
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
    """Yield a function's arguments that have a `Help`, without importing the others' types."""
    for each in signature(api).parameters.values() if api is not None else ():
        if str(each.annotation).startswith("Annotated["):
            scope = vars(sys.modules[api.__module__])
            yield each.replace(annotation=eval(each.annotation, scope))


def _option(parameter: Parameter) -> Parameter:
    """Return a parameter in the form that Typer reads."""
    kind, spec = get_args(parameter.annotation)
    if os.PathLike[str] in get_args(kind):
        kind = str | None
    if isinstance(spec, Argument):
        spec = typer.Argument(metavar=spec.metavar, help=spec.text)
    elif isinstance(spec, Help):
        name = FLAGS.get(parameter.name, flag(parameter.name))
        parser: Callable[[Any], Any] | None = None
        if int in (kind, *get_args(kind)):
            parser = _whole_number(name, spec.min)
        elif parameter.name == "results":
            parser = read_results
        elif spec.metavar == "FILE":
            parser = _local_file(name)
        spec = typer.Option(
            name, help=spec.text, metavar=spec.metavar, envvar=VARIABLES.get(parameter.name),
            parser=parser,
        )  # fmt: skip
    return parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, spec])


def _whole_number(name: str, least: int | None) -> Callable[[Any], int]:
    """Return the parser of an integer option, which also accepts 1e6. least: its minimum."""

    def read(text: Any) -> int:
        word = str(text)
        if re.fullmatch(r"[+-]?\d{1,18}", word):
            number = int(word)
        elif re.fullmatch(r"\d{1,9}(\.\d{1,9})?[eE]\d{1,2}", word) and float(word).is_integer():
            number = int(float(word))
        else:
            raise OptionError(f"{name}: '{sentences.shorten(word, 30)}' is not a whole number")
        if least is not None and number < least:
            raise OptionError(f"{name}: {number} is too small; expected at least {least}")
        return number

    return read


def _local_file(name: str) -> Callable[[Any], str]:
    """Return the parser of an option that names a file on this machine."""

    def read(text: Any) -> str:
        if ":/" in str(text):  # a Path of a URI has one slash
            where = f"{name}: {str(text)[:60]}"
            raise OptionError(f"{where}: expected a file or folder on this machine")
        return str(text)

    return read


# --- tables and boards ---------------------------------------------------------------------------


def read_results(text: str | Path) -> Path:
    """Return the folder or URI given by ``--results``, which need not exist. Raises OptionError if
    it cannot hold tables."""
    if not str(text).strip():
        raise OptionError("--results: '' is not a folder; write one, such as --results results")
    if "://" in str(text):
        from luckbase.cluster.store.storage import is_uri, place_of

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
    """True if a name is a folder or a URI."""
    return "://" in name or Path(name).is_dir()


BoardFile = Annotated[str, Argument("A board file.", "BOARD")]
TableName = Annotated[
    str, Argument("A table's folder or URI, or a board file with its --set options.", "TABLE")
]
Settings = Annotated[
    list[str] | None, Help("Change an option of the board; repeatable.", "NAME=VALUE")
]
Strict = Annotated[bool, Help("Refuse a stale table (exit code 1) instead of warning.")]
Results = Annotated[Path, Help("Folder or URI of the tables.", "DIR")]
ResultsOrJob = Annotated[
    Path | None,
    Help("Folder or URI of the tables (default: from the job file, or results).", "DIR"),
]
Json = Annotated[bool, Help("Print JSON on stdout.")]


def read_settings(words: Iterable[str] | None) -> dict[str, str]:
    """Parse ``["a=1", "b=x"]`` to ``{"a": "1", "b": "x"}``. Raises OptionError."""
    return pairs(words or (), OptionError, "--set: ", "NAME=VALUE, as in --set score_unit=500")


def board_of(name: str | Path, settings: Iterable[str] | None) -> Board:
    """Read a board file with the given ``--set`` options."""
    return luckbase.load_board(name, **read_settings(settings))


def open_named(name: str, results: Path, settings: list[str] | None, strict: bool = False) -> Table:
    """Open the table that a user names. If it is stale, print the reason on stderr, or raise
    StaleTableError if `strict`."""
    from luckbase.cluster.answers.find import open_for

    table = open_for(name, results, read_settings(settings))
    if table.origin.stale:
        warning = f"{name}: this table is stale: {'; '.join(table.origin.stale[:3])}"
        if strict:
            table.close()
            raise StaleTableError(warning)
        terminal.say(f"luckbase: {warning}")
    return table


def say_unfinished(name: str, table: Table) -> None:
    """Print on stderr which parts of a table are not solved yet, if any."""
    if unsolved := table.unfinished():
        terminal.say(f"luckbase: {name}: this table is not whole: {', '.join(unsolved)}")


# --- states --------------------------------------------------------------------------------------

Agents = Annotated[
    str,
    Help("Agents: names, tables' folders or board files; one for all or one for each player.",
         "A[,B...]"),
]  # fmt: skip
From = Annotated[
    list[str] | None,
    Help(
        "Start at this state, or at the states of a CSV, JSON lines or Parquet file.",
        "FIELD=VALUE...",
    ),
]
More = Annotated[
    list[str] | None, Argument("Start at this state, as with --from.", "[FIELD=VALUE...]")
]


def read_fields(words: Iterable[str]) -> dict[str, str]:
    """Parse ``["scores=0,1,2"]`` to ``{"scores": "0,1,2"}``. Raises StateError."""
    return pairs(words, StateError, "", FIELD)


def read_start(start: Sequence[str] | None, more: Sequence[str] | None = None) -> Any:
    """Return the state given by ``--from`` and the fields after it, or the table of states in a
    file, or None. Raises StateError, OptionError."""
    words = [*(start or []), *(more or [])]
    if not words:
        return None
    if len(words) == 1 and "=" not in words[0]:
        from luckbase.cluster.answers.files import read_rows

        return read_rows(words[0])[1]
    return read_fields(words)


# --- others --------------------------------------------------------------------------------------

Memory = Annotated[
    str | None, Help("Maximum memory of all shards, in GB; Python takes 0.3 more.", "GB")
]


def read_memory(text: str | None) -> int | None:
    """Return the bytes of ``--memory GB``; None if it is not given. Raises OptionError."""
    if text is None:
        return None
    try:
        size = float(text) * 1e9
    except ValueError:
        size = math.nan
    if not 0 < size < math.inf:
        raise OptionError(
            f"--memory: '{text[:30]}' is not a number of GB from {MIN_MEMORY / 1e9:g}; write it "
            "as --memory 8"
        )
    if size < MIN_MEMORY:
        least = f"expected at least {MIN_MEMORY / 1e9:g} (GB)"
        raise OptionError(f"--memory: {text[:30]} is too small; {least}")
    return int(size)


def read_sample(sample: int | None, every: bool) -> int | None:
    """Return the rows to verify by ``--sample`` and ``--all``; None for all. Raises OptionError."""
    check_one(sample=sample is not None, every=every)
    return None if every else SAMPLE if sample is None else sample


def check_one(**flags: object) -> None:
    typed = [FLAGS.get(name, flag(name)) for name, value in flags.items() if value]
    if len(typed) > 1:
        raise OptionError(f"{' and '.join(typed)}: write one of them")


def check_ending(option: str, name: str, endings: Sequence[str]) -> str:
    """Return the suffix of a file name. Raises OptionError if it is not one of `endings`."""
    suffix = Path(name).suffix.lower()
    if suffix not in endings:
        raise OptionError(f"{option}: {name}: end it in {', '.join(endings)}")
    return suffix
