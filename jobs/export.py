"""``luckbase export``: rows of a table with every action's payoff, in a file that others read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.solver.errors import OptionError


def export(
    table: options.TableName,
    where: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHERE...]",
            help="Only these rows: COLUMN OP VALUE, as spins=2 'scores_1>=8000' 'margin<0.001'",
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Ends in .csv, .xlsx, .parquet, .arrow or .jsonl; - is stdout.",
        ),
    ] = "-",
    kind: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="csv, parquet, arrow or jsonl; into a pipe csv."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only these columns, in this order."),
    ] = None,
    no_actions: Annotated[
        bool,
        typer.Option("--no-actions", help="Only what is stored, nothing worked out: far faster."),
    ] = False,
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> None:
    """Write rows with every action's payoff, best, margin and who acts: CSV, Excel, Parquet, Arrow.

    WHERE is what must hold of a row, in the words of its columns or of the fields of a query."""
    if as_json and out == "-":
        raise OptionError("--json: says what was written to a file; give --out FILE")
    chosen = None
    if columns is not None:
        chosen = [name.strip() for name in columns.split(",") if name.strip()]
    with (
        options.open_found(table, results, settings, strict) as opened,
        render.progress("export") as on_progress,
    ):
        options.say_unfinished(table, opened)
        done = opened.export(
            out, where or None, columns=chosen, actions=not no_actions, format=kind,
            on_rows=render.rows_progress(on_progress),
        )  # fmt: skip
        origin, left = opened.origin, opened.unfinished()
    if as_json:
        print(json.dumps({**origin.as_json(), "unfinished": left, **done.as_json()}))
        return
    counts = f"{render.many(done.rows, 'row')}, {render.many(len(done.columns), 'column')}"
    if out != "-":
        counts = f"{out}: {counts}, {render.size(done.bytes)}"
    render.say(f"{counts}, of {origin}")
