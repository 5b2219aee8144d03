"""``luckbase diff``: where two tables differ, in the best action or in the payoffs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render


def diff(
    one: options.TableName,
    other: Annotated[str, typer.Argument(metavar="TABLE", help="Another table of the game.")],
    tolerance: Annotated[
        float | None,
        typer.Option(metavar="X", min=0, help="Payoffs closer than this agree; the tables' errors"),
    ] = None,
    worst: Annotated[
        int, typer.Option(metavar="N", min=0, help="Print the N largest differences.")
    ] = 10,
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Compare N states only, drawn evenly.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Which states are drawn.")] = 0,
    settings: options.Settings = None,
    second: Annotated[
        list[str] | None,
        typer.Option(
            "--set-second", metavar="NAME=VALUE", help="As --set, for the second board only."
        ),
    ] = None,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> int:
    """Compare the states that two tables have in common (exit code 1 if they differ)."""
    from luckbase.cluster.table.compare import compare

    both = settings or []
    chosen = [both if not Path(name).is_dir() else [] for name in (one, other)]
    chosen[1] = [*(w for w in chosen[1] if _name(w) not in map(_name, second or [])),
                 *(second or [])]  # fmt: skip
    with (
        options.open_found(one, results, chosen[0]) as first,
        options.open_found(other, results, chosen[1]) as last,
        render.progress("diff") as on_progress,
    ):
        names = [table.origin for table in (first, last)]
        found = compare(
            first, last, tolerance=tolerance, worst=worst, sample=sample, seed=seed,
            on_rows=render.rows_progress(on_progress),
        )  # fmt: skip
    if as_json:
        print(json.dumps({"tables": [name.as_json() for name in names], **found.as_json()}))
        return 1 if found.differs else 0
    print(f"first   {names[0]}\nsecond  {names[1]}")
    print(
        f"{found.states:,} states in both, {found.missing:,} of the {found.missing_of} are not in "
        f"the {'first' if found.missing_of == 'second' else 'second'}; "
        f"payoffs closer than {found.tolerance:.1e} agree"
    )
    print(
        f"payoffs differ at {found.payoffs:,}, by {found.largest:.3e} at most; "
        f"best actions at {found.actions:,}"
    )
    rows = [
        (
            render.fields(difference.state),
            f"{difference.size:.3e}", str(difference.best[0]), str(difference.best[1]),
        )
        for difference in found.worst
    ]  # fmt: skip
    if rows:
        heads = ("state", "payoffs apart", "best in the first", "in the second")
        render.print_table("", heads, rows, sys.stdout)
    return 1 if found.differs else 0


def _name(word: str) -> str:
    return word.partition("=")[0].strip()
