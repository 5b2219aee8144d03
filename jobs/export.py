"""``luckbase export``: rows of a table with every action's payoff, in a file that others read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render


@dataclass(frozen=True)
class Export:
    """Which rows and columns, and where they go."""

    table: options.TableName
    where: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHERE...]",
            help="Only these rows: COLUMN OP VALUE, as spins=2 'scores_1>=8000' 'margin<0.001'",
        ),
    ] = None
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Ends in .csv, .xlsx, .parquet, .arrow or .jsonl; - is stdout.",
        ),
    ] = "-"
    kind: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="csv, parquet, arrow or jsonl; into a pipe csv."
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only these columns, in this order."),
    ] = None
    no_actions: Annotated[
        bool,
        typer.Option("--no-actions", help="Only what is stored, nothing worked out: far faster."),
    ] = False
    settings: options.Settings = None
    strict: options.Strict = False
    results: options.Results = Path("results")
    as_json: options.Json = False


@options.takes(Export)
def export(args: Export) -> None:
    """Write rows with every action's payoff, best, margin and who acts: CSV, Excel, Parquet, Arrow.

    WHERE is what must hold of a row, in the words of its columns or of the fields of a query."""
    from luckbase.solver.errors import OptionError

    if args.as_json and args.out == "-":
        raise OptionError("--json: says what was written to a file; give --out FILE")
    chosen = None
    if args.columns is not None:
        chosen = [name.strip() for name in args.columns.split(",") if name.strip()]
    with (
        options.open_found(args.table, args.results, args.settings, args.strict) as opened,
        render.progress("export") as on_progress,
    ):
        options.say_unfinished(args.table, opened)
        done = opened.export(
            args.out, args.where or None, columns=chosen, actions=not args.no_actions,
            format=args.kind, on_rows=render.rows_progress(on_progress),
        )  # fmt: skip
        origin, left = opened.origin, opened.unfinished()
    if args.as_json:
        said = {"out": done.out, "rows": done.rows, "columns": done.columns, "bytes": done.bytes}
        print(json.dumps({**origin.as_json(), "unfinished": left, **said}))
        return
    written = "" if args.out == "-" else f"{args.out}: "
    size = "" if args.out == "-" else f", {render.size(done.bytes)}"
    render.say(
        f"{written}{render.many(done.rows, 'row')}, {render.many(len(done.columns), 'column')}"
        f"{size}, of {origin}"
    )
