"""The command ``luckbase``: its commands, its exit codes, and where our errors become a sentence.

Exit codes: 0 done; 1 the answer is no (stale, differs, verification failed); 2 the request is
wrong; 130 interrupted, 143 and 129 ended by SIGTERM and SIGHUP, 141 by a pipe that nobody reads.
Data goes to stdout, text for people to stderr.
"""

from __future__ import annotations

import errno
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import luckbase
from luckbase.jobs import terminal
from luckbase.solver import sentences
from luckbase.solver.errors import LuckbaseError, OptionError
from luckbase.solver.sentences import program

GROUPS = {
    "Solve": {"boards": "query", "plan": "solve", "solve": "solve"},
    "Ask": {"info": "query", "query": "query", "export": "query"},
    "Compare": {"diff": "compare", "evaluate": "compare", "simulate": "compare"},
    "Draw": {"chart": "draw", "graph": "draw", "report": "draw", "serve": "serve"},
    "Play": {"play": "play", "advise": "play"},
    "Keep": {"status": "status", "verify": "status", "publish": "status", "clean": "status"},
}
"""Commands as ``--help`` groups them; each is a function in a module of `jobs`, which is imported
where it is typed, and the first line of its docstring is its line in the help."""
COMMANDS = {name: module for group in GROUPS.values() for name, module in group.items()}
DOCS = """\
luckbase COMMAND --help prints the options of a command, and two examples.
docs/tutorial.md leads from the installation to a first picture, in ten minutes;
docs/README.md lists all pages, and every game has one of its own."""


class _Interrupted(Exception):
    """Ctrl+C or another signal in a command; Typer would swallow a KeyboardInterrupt."""


class _Command(TyperCommand):
    """A command whose help ends with its examples."""

    @property
    def examples(self) -> Sequence[str]:
        return self.callback.examples  # type: ignore[union-attr]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*(name for name, _ in self._arguments()), "[OPTIONS]"]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest: list[str] = super().parse_args(ctx, args)
        for each in self.params:
            value = ctx.params.get(each.name or "")
            of_file = str(each.metavar).startswith(("FILE", "DIR")) and each.name != "results"
            if of_file and "://" in str(value):
                value_text = f"{each.opts[0]}: {str(value)[:60]}"
                raise OptionError(f"{value_text}: expected a file or folder on this machine")
        return rest

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
            helps = [self.get_command(ctx, name).help for name in names]
            with formatter.section(title):
                for name, text in zip(names, helps, strict=True):
                    formatter.write(f"  {name:10}{text.splitlines()[0]}\n")
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        formatter.write(f"\n{DOCS}\n")

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
        typer.Option(
            "--version",
            "-V",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """The exact payoff of every state of a game of chance: solved once, asked by state.

    \b
    Begin with:
      luckbase solve pig/race
      luckbase query pig/race mine=0 yours=87 turn=12
      luckbase play pig/race --hints
    """


def main() -> None:
    """Run the command line and leave with its exit code."""
    terminal.name_streams()
    code = run(sys.argv[1:])
    if sys.argv[1:2] == ["query"]:
        terminal.leave(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code. Errors of ours end as one sentence on stderr."""
    try:
        watched = arguments[:1] != ["serve"]  # which ends by its own handlers, and forks
        with (
            terminal.signals(watched), terminal.watch_compiling(), sentences.command_line(),
        ):  # fmt: skip
            if arguments[:1] == ["query"] and "://" in "".join(arguments[1:2]):
                from luckbase.cluster.table.place import read_ahead

                read_ahead(arguments[1])  # before anything heavy is imported
            result = app(arguments, prog_name="luckbase", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except terminal.ClosedPipe as error:
        return error.exit_code
    except LuckbaseError as error:
        print(f"luckbase: {error}", file=sys.stderr)
        return error.exit_code
    except (KeyboardInterrupt, _Interrupted) as stop:
        interrupted = f"interrupted; nothing solved is lost: {_again(arguments)}"
        with suppress(OSError):  # the terminal that hung up is gone
            print(f"\nluckbase: {interrupted}", file=sys.stderr)
        return terminal.exit_code(stop.__cause__ or stop)
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:
        return _usage(error, arguments)


def _usage(error: Exception, arguments: list[str]) -> int:
    """Exit code 2 and a sentence for what click says of the arguments; anything else is a bug."""
    show = getattr(error, "format_message", None)
    if type(error).__name__ == "NoArgsIsHelpError" and show is not None:
        print(show(), file=sys.stderr)
        return 2
    if show is None:
        cause = getattr(error, "cause", error)  # of an error that a Ray worker sent
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            print(f"luckbase: {_full(cause, arguments)}", file=sys.stderr)
            return 1
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else ""
            message = " ".join((error.strerror or str(error)).split())
            print(f"luckbase: {where}{message}", file=sys.stderr)
            return 2
        if isinstance(cause, MemoryError):
            message = f"the memory does not reach: {cause}".rstrip(": ")
            print(f"luckbase: {message}; what was solved stays", file=sys.stderr)
            return 1
        if type(error).__name__ == "Abort":
            return 130
        raise error
    if hasattr(error, "possibilities"):  # click names what is not near at all
        name, possible = str(getattr(error, "option_name", "")), error.possibilities or ()
        error.possibilities = get_close_matches(name, possible, cutoff=sentences.CLOSE)
    least = r"Invalid value for '(-[\w-]+)': Input should be greater than or equal to"
    message = re.sub(least, r"\1: expected at least", " ".join(show().split()))
    print(f"luckbase: {message}", file=sys.stderr)
    return int(getattr(error, "exit_code", 2)) or 2


def _again(arguments: list[str]) -> str:
    """The command that goes on: the same one, but for what would make it begin anew."""
    return f"{program()} {shlex.join(word for word in arguments if word != '--force')}"


def _full(error: OSError, arguments: list[str]) -> str:
    """The sentence for a disk that filled up: where, what stays, what goes on."""
    where = error.filename
    again = _again(arguments)
    if arguments[:1] != ["solve"]:
        return f"{where or 'disk'}: the disk is full; make room, then again: {again}"
    if not where and "--results" in arguments[:-1]:
        where = arguments[arguments.index("--results") + 1]
    stays = "what was solved stays, and with more room the same command goes on"
    return f"{where or 'results'}: the disk is full; {stays}: {again}"
