"""``luckbase verify``: the files against the ledger, then the values against the rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render

SAMPLE = 10_000


def verify(
    table: options.TableName,
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help=f"Rows to recompute from the rules ({SAMPLE})."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Recompute every row.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Which rows are drawn.", min=0)] = 0,
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> int:
    """Check every byte against the ledger, then rows against the rules (exit code 1 if it fails).

    A row's residual is the payoff recomputed from the rules, not the kernel, minus the stored one.
    """
    from luckbase.cluster.table.verify import TOLERANCE, check_files, check_residuals
    from luckbase.solver.errors import OptionError

    if every and sample is not None:
        raise OptionError("--sample and --all: give one of them")
    with options.open_found(table, results, settings) as opened:
        faults = check_files(opened)
        found = None
        if not faults and opened.rows:
            rows = None if every else SAMPLE if sample is None else sample
            found = check_residuals(opened, rows, seed)
        ledger, origin = opened.ledger, opened.origin
        where, error = opened.path, opened.error
    if found is not None and found.faults:
        faults.append(
            f"{found.faults} of {found.rows} rows have a residual above {TOLERANCE}; the worst, "
            f"{found.worst:.2e}, is {found.state}"
        )
    if as_json:
        said = {
            **origin.as_json(), "table": str(where), "ok": not faults, "faults": faults,
            "files": len(ledger.files),
            "rows_checked": found.rows if found else 0,
            "worst_residual": found.worst if found else None,
            "mean_residual": found.mean if found else None,
            "worst_state": found.state if found else None,
        }  # fmt: skip
        print(json.dumps(said))
        return 1 if faults else 0
    for fault in faults:
        print(f"fault: {fault}")
    if faults:
        return 1
    files = render.many(len(ledger.files), "file")
    print(f"{origin}: {files} as written, {render.size(ledger.bytes)}")
    if found is not None and found.rows:
        at = render.fields(found.state)
        print(
            f"{found.rows:,} rows agree with the rules: worst residual {found.worst:.2e} at {at}, "
            f"mean {found.mean:.2e}, stored to {error:.1e}"
        )
    if not ledger.complete:
        left = sum(not ledger.is_done(goal) for goal in ledger.goals)
        print(f"the table is partial: {left} of the {len(ledger.goals)} solves asked for")
    return 0
