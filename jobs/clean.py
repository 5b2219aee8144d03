"""``luckbase clean``: what no board file asks for any more, and taking it away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.cluster.batch.clean import Spare

WORDS = {"unasked": "not asked for", "protected": "kept", "asked": "asked for",
         "running": "being solved", "removed": "removed"}  # fmt: skip


def clean(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BOARD...", help="Board files or folders of them: their tables only; or tables."
        ),
    ] = None,
    results: options.Results = Path("results"),
    yes: Annotated[bool, typer.Option("--yes", help="Remove what is listed.")] = False,
    as_json: options.Json = False,
) -> int:
    """List the tables that no board file asks for any more, and remove them with --yes (exit code 1
    if a table that was named, or one of those, stays).

    What was solved with --set, from some states or from Python goes only where its directory is
    named; what a board file asks for and what somebody solves stays.
    """
    found = luckbase.clean(*(names or []), results=results, yes=yes)
    for one in found:
        if as_json:
            print(json.dumps(one.as_json()))
        else:
            _say(one)
    if not as_json:
        _sum_up(found, results)
    return 1 if yes and any(_stays(one) for one in found) else 0


def _stays(one: Spare) -> bool:
    """Whether a table is still there that was to go."""
    return bool(one.error) or (one.named and one.state != "removed")


def _say(one: Spare) -> None:
    states = f", {render.counted(one.states, 'state')}" if one.states else ""
    print(f"{WORDS[one.state]:13s} {one.table}  {render.size(one.bytes)}{states}")
    for reason in one.why:
        print(f"              {reason}")
    if one.state == "protected" and not one.table.is_symlink():
        print(f"              it goes where it is named: {_command([str(one.table)])}")
    if one.left:
        print(f"              not luckbase's, and stays: {', '.join(one.left[:5])}")
    if one.error:
        print(f"              {one.error}")


def _sum_up(found: list[Spare], results: Path) -> None:
    """What --yes would do, or did."""
    gone = [one for one in found if one.state == "removed"]
    spare = [one for one in found if one.state == "unasked"]
    if gone:
        size = render.size(sum(one.bytes for one in gone))
        render.say(f"removed {render.many(len(gone), 'table')}, {size}")
    elif spare:
        size = render.size(sum(one.bytes for one in spare))
        they = "them" if len(spare) > 1 else "it"
        render.say(f"{render.many(len(spare), 'table')}, {size}; --yes removes {they}")
    elif not found:
        render.say(f"nothing to remove: every table under {results} is asked for")


def _command(words: list[str]) -> str:
    import shlex

    return f"{render.program()} clean {shlex.join(words)} --yes"
