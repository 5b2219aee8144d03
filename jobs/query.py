"""``luckbase query``: ask a table about one state, or about a file of states."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.solver.errors import OptionError

if TYPE_CHECKING:
    from luckbase.cluster.table.answer import Answer
    from luckbase.cluster.table.table import Table


def query(
    table: options.TableName,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD=VALUE...", help="The state: scores=0,2000,3500 earned=0,1,0"),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="States as CSV, JSON lines or Parquet; - is stdin."),
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="Where a batch's answers go; - is stdout.")
    ] = "-",
    best: Annotated[
        bool, typer.Option("--best", help="In a batch, the best action too, not the payoffs only.")
    ] = False,
    actions: Annotated[
        bool,
        typer.Option("--actions", help="In a batch, every action's payoffs, the margin, who acts."),
    ] = False,
    max_states: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="States that a search above the frontier may meet."),
    ] = 20_000_000,
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> None:
    """Answer by state: the payoff of the state and of every action, best first.

    A state above the table's frontier is answered by a search down to it."""
    if (batch is None) == (not fields):
        raise OptionError("query: give a state as FIELD=VALUE, or states with --batch FILE")
    with options.open_found(table, results, settings, strict) as opened:
        if batch is not None:
            columns = {"best": best, "toss_up": best, "actions": actions}
            _answer_batch(opened, batch, out, None if as_json else columns)
            render.say(f"answered by {opened.origin}")
            return
        state = options.read_fields(fields or [])
        progress = render.search_progress(opened, state, max_states)
        answer = opened.ask(state, max_states, progress)
        name = opened.game.payoff_name
    if as_json:
        render.print_json(answer)
    else:
        _print(answer, name)


def _answer_batch(table: Table, batch: str, out: str, columns: dict[str, bool] | None) -> None:
    """Answer every state in a file; write when all of them are answered. columns: which there are
    beside the payoffs; None for JSON lines with all."""
    from luckbase.cluster.table.files import format_of, read_rows, write_lines, write_rows

    target = None if out == "-" else format_of(out)
    if columns is None and target not in (None, "jsonl"):
        raise OptionError(f"--json: writes JSON lines, and --out {out} says another format")
    kind, read = read_rows(batch)
    if columns is None:
        write_lines((json.dumps(answer.as_json()) for answer in table.ask_all(read)), out)
    else:
        write_rows(table.values(read, solve_id=True, **columns), out, target or kind)


def _print(answer: Answer, payoff_name: str) -> None:
    said = f"{answer.board}  {render.fields(answer.state, '  ')}"
    print(render.to_fit(said, sys.stdout))
    if answer.note:
        print(render.to_fit(answer.note, sys.stdout))
    if answer.headline:
        print(answer.headline)
    heads, rows = answer.table()
    if answer.strategies is not None:
        render.print_table("", heads, rows, sys.stdout)
        heads, rows = replace(answer, strategies=None).table()
    render.print_table("", [payoff_name, *heads[1:]], rows, sys.stdout)
    print(f"each within {answer.error:.1e}, from the {answer.source}")
    print(f"answered by {answer.origin}")
