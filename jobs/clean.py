"""``luckbase clean``: what no board file asks for any more, and taking it away."""

from __future__ import annotations

import shlex
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
    spares = luckbase.clean(*(names or []), results=results, yes=yes)
    for spare in spares:
        if as_json:
            render.print_json(spare)
        else:
            _say(spare)
    if not as_json:
        _sum_up(spares, results)
    return 1 if yes and any(_stays(spare) for spare in spares) else 0


def _stays(spare: Spare) -> bool:
    """Whether a table is still there that was to go."""
    return bool(spare.error) or (spare.named and spare.state != "removed")


def _say(spare: Spare) -> None:
    states = f", {render.counted(spare.states, 'state')}" if spare.states else ""
    print(f"{WORDS[spare.state]:13s} {spare.table}  {render.size(spare.bytes)}{states}")
    for reason in spare.why:
        print(f"              {reason}")
    if spare.state == "protected" and not spare.table.is_symlink():
        command = f"{render.program()} clean {shlex.quote(str(spare.table))} --yes"
        print(f"              it goes where it is named: {command}")
    if spare.left:
        print(f"              not luckbase's, and stays: {', '.join(spare.left[:5])}")
    if spare.error:
        print(f"              {spare.error}")


def _sum_up(spares: list[Spare], results: Path) -> None:
    """What --yes would do, or did."""
    gone = [spare for spare in spares if spare.state == "removed"]
    unasked = [spare for spare in spares if spare.state == "unasked"]
    if gone:
        size = render.size(sum(spare.bytes for spare in gone))
        render.say(f"removed {render.many(len(gone), 'table')}, {size}")
    elif unasked:
        size = render.size(sum(spare.bytes for spare in unasked))
        they = "them" if len(unasked) > 1 else "it"
        render.say(f"{render.many(len(unasked), 'table')}, {size}; --yes removes {they}")
    elif not spares:
        render.say(f"nothing to remove: every table under {results} is asked for")
