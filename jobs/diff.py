"""``luckbase diff``: where two tables differ, in the best action or in the payoffs."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render


@dataclass(frozen=True)
class Diff:
    """Which tables, and what is told of them."""

    one: options.TableName
    other: Annotated[str, typer.Argument(metavar="TABLE", help="Another table of the game.")]
    tolerance: Annotated[
        float | None,
        typer.Option(metavar="X", min=0, help="Payoffs closer than this agree; the tables' errors"),
    ] = None
    worst: Annotated[
        int, typer.Option(metavar="N", min=0, help="Print the N largest differences.")
    ] = 10
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Compare N states only, drawn evenly.")
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Which states are drawn.")] = 0
    settings: options.Settings = None
    second: Annotated[
        list[str] | None,
        typer.Option(
            "--set-second", metavar="NAME=VALUE", help="As --set, for the second board only."
        ),
    ] = None
    results: options.Results = Path("results")
    as_json: options.Json = False

    def settings_of(self) -> list[list[str]]:
        """The options of each table; none of a directory."""
        both, second = self.settings or [], self.second or []
        mine, theirs = (both if not Path(t).is_dir() else [] for t in (self.one, self.other))
        return [mine, [*(w for w in theirs if _name(w) not in map(_name, second)), *second]]


@options.takes(Diff)
def diff(asked: Diff) -> int:
    """Compare the states that two tables have in common (exit code 1 if they differ)."""
    chosen = asked.settings_of()
    with (
        options.open_found(asked.one, asked.results, chosen[0]) as first,
        options.open_found(asked.other, asked.results, chosen[1]) as last,
        render.progress("diff") as on_progress,
    ):
        names = [table.origin for table in (first, last)]
        found = first.diff(
            last, tolerance=asked.tolerance, worst=asked.worst, sample=asked.sample,
            seed=asked.seed, on_rows=render.rows_progress(on_progress),
        )  # fmt: skip
    if asked.as_json:
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
