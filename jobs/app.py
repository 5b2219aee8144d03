"""The command ``luckbase``: its commands, its exit codes, and where our errors become a sentence.

Exit codes: 0 done; 1 the answer is no (stale, differs, verification failed); 2 the request is
wrong; 130 interrupted. Data goes to stdout, text for people to stderr.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from jobs import (
    bench,
    chart,
    diff,
    evaluate,
    graph,
    plan,
    play,
    query,
    render,
    simulate,
    solve,
    status,
    verify,
)
from solver.errors import LuckbaseError

app = typer.Typer(
    name="luckbase",
    help="The exact payoff of every state of a game, solved overnight and asked in the morning.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class _Interrupted(Exception):
    """Ctrl+C in a command; Typer would swallow a KeyboardInterrupt."""


def _interruptible(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            raise _Interrupted from None

    return call


for module in (
    solve, plan, query, status, verify, diff, evaluate, simulate, play, chart, graph, bench
):  # fmt: skip
    name = module.__name__.rpartition(".")[2]
    app.command(name)(_interruptible(getattr(module, name)))


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code. Errors of ours end as one sentence on stderr."""
    try:
        result = app(arguments, prog_name="luckbase", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except LuckbaseError as error:
        print(f"luckbase: {error}", file=sys.stderr)
        return error.exit_code
    except (KeyboardInterrupt, _Interrupted):
        again = f"{render.program()} {shlex.join(arguments)}"
        print(f"\nluckbase: interrupted; nothing solved is lost: {again}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:
        return _usage(error)


def _usage(error: Exception) -> int:
    """Exit code 2 and a sentence for what click says of the arguments; anything else is a bug."""
    show = getattr(error, "format_message", None)
    if type(error).__name__ == "NoArgsIsHelpError" and show is not None:
        print(show(), file=sys.stderr)
        return 2
    if show is None:
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else ""
            said = " ".join((error.strerror or str(error)).split())
            print(f"luckbase: {where}{said}", file=sys.stderr)
            return 2
        if type(error).__name__ == "Abort":
            return 130
        raise error
    print(f"luckbase: {' '.join(show().split())}", file=sys.stderr)
    return int(getattr(error, "exit_code", 2)) or 2
