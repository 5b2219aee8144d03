"""``luckbase report``: a table in one HTML file, for somebody who has nothing installed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.solver.errors import OptionError


def report(
    table: options.TableName,
    out: Annotated[str, typer.Option(metavar="FILE.html", help="Where it is written.")],
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help=f"Rows to verify ({options.SAMPLE}); 0: do not verify."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Verify every row.")] = False,
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
) -> int:
    """Write a page in one file: board, summary, charts, verdict (exit code 1 if that is bad).

    It needs no network and nothing installed, is below 2 MB, and says how to get the same."""
    rows = options.read_sample(sample, every)
    where = Path(out)
    if where.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"--out: {out}: end it in .html")
    if not where.parent.is_dir():
        raise OptionError(f"--out: {where.parent} is no folder; make it first")
    with options.open_found(table, results, settings, strict) as opened:
        made = luckbase.report(opened, rows)
    size = made.save(where)
    charts = render.many(len(made.charts), "chart")
    render.say(f"{out}: {render.size(size)}, {charts}, {_verdict(made)}")
    print(out)
    return 0 if made.ok else 1


def _verdict(made: luckbase.Report) -> str:
    if made.verdict is None:
        return "not verified"
    if made.verdict.ok:
        checked = made.verdict.residuals
        return f"{checked.rows if checked else 0:,} rows agree with the rules"
    return f"faults were found: {made.verdict.faults[0]}"
