"""``luckbase verify``: the files against the ledger, then the values against the rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render


def verify(
    table: options.TableName,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help=f"Rows to recompute from the rules ({options.SAMPLE})."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Recompute every row.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Which rows are drawn.", min=0)] = 0,
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> int:
    """Check every byte against the ledger, then rows against the rules (exit code 1 if it fails).

    A row's residual is the payoff recomputed from the rules, not the kernel, minus the stored one.
    Twice the error that its file promises is allowed.
    """
    rows = options.read_sample(sample, every)
    with (
        options.open_found(table, results, settings) as opened,
        render.progress("verify") as on_progress,
    ):
        found = opened.verify(rows, seed, render.rows_progress(on_progress))
        ledger = opened.ledger
        origin, where, precision = opened.origin, opened.where, opened.precision
    if as_json:
        print(json.dumps({**origin.as_json(), "table": str(where), **found.as_json()}))
        return 0 if found.ok else 1
    for fault in found.faults:
        print(f"fault: {fault}")
    if found.faults:
        return 1
    print(f"{origin}: {render.many(found.files, 'file')} as written, {render.size(ledger.bytes)}")
    checked = found.residuals
    if checked is not None and checked.rows:
        at = render.fields(checked.state)
        print(
            f"{checked.rows:,} rows agree with the rules: worst residual {checked.worst:.2e} at "
            f"{at}, where {checked.bound:.2e} is allowed, mean {checked.mean:.2e}, stored to "
            f"{precision:.1e}"
        )
    if not ledger.complete:
        left = sum(not ledger.is_done(goal) for goal in ledger.goals)
        print(f"the table is partial: {left} of the {len(ledger.goals)} solves asked for")
    return 0
