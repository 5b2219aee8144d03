"""``luckbase chart``: what a whole table says at a glance, as a list or as a picture.

The chart comes from the game (`solver.charts`); here it is printed, written as CSV or drawn;
pictures too are printed as text.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.solver.errors import OptionError

if TYPE_CHECKING:
    from luckbase.solver.charts import Chart as Made
    from luckbase.solver.charts import Kind


def chart(
    table: options.TableName,
    fields: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIELD=VALUE...]", help="Only these lines, or what the picture is of."
        ),
    ] = None,
    what: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which of the game's charts; the first if not given."),
    ] = None,
    reachable: Annotated[
        bool,
        typer.Option("--reachable", help="Without what no play by the chart comes to."),
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV; of a picture, its numbers.")] = (
        False
    ),
    out: Annotated[
        str, typer.Option(metavar="FILE", help="A .txt, .csv, .png, .svg or .pdf; - is stdout.")
    ] = "-",
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
) -> None:
    """Print or draw what a full table says at a glance: when to pass or hold, the chance to win.

    A game has its charts by name, lists and pictures; a --what that is none of them says which. A
    picture is printed as text, as wide as the terminal, or drawn into a file."""

    from luckbase.cluster.table.files import whole_file
    from luckbase.solver.charts import Listing
    from luckbase.solver.game.capabilities import Charts, choose_chart

    _has_charts(table, settings)
    with options.open_found(table, results, settings, strict) as opened:
        kind = choose_chart(opened.game, what)
        opened.check_chart(kind)
        suffix = _suffix(kind, opened.game.need(Charts).kinds, as_csv, out)
        made = opened.chart(kind.name, options.read_fields(fields or []), reachable=reachable)
        origin = opened.origin
    if isinstance(made, Listing):
        render.say(made.note)
    render.say(f"from {origin}")
    if out == "-":
        sys.stdout.write(_written(made, suffix, sys.stdout).decode())
        return
    content = _written(made, suffix)
    with whole_file(out) as file:
        file.write(content)
    render.say(f"{out}: {kind.shows}, {render.size(len(content))}")


def _written(made: Made, suffix: str, out: Any = None) -> bytes:
    """What stands in a file, or on stdout, `out`: as wide as a terminal, and with colours where it
    has them."""
    from luckbase.jobs.plots import draw, text
    from luckbase.solver.charts import Listing

    if suffix == ".csv":
        said = _csv(made)
    elif isinstance(made, Listing):
        said = "".join(f"{line}\n" for line in made.lines)
        said = said if out is None else render.to_fit(said, out)
    elif suffix == ".txt":
        said = text(made) if out is None else text(made, render.width(out), render.has_colours(out))
    else:
        return draw(made, suffix)
    return said.encode()


def _has_charts(name: str, settings: list[str] | None) -> None:
    """Raises OptionError for a board file of a game that has no charts, solved or not."""
    if Path(name).is_file():
        from luckbase.solver import load_game
        from luckbase.solver.game.capabilities import Charts

        load_game(options.board_of(name, settings)).need(Charts)


def _suffix(kind: Kind, kinds: Sequence[Kind], as_csv: bool, out: str) -> str:
    """How the chart is to be written: .txt, .csv or a picture's ending."""
    if out == "-":
        return ".csv" if as_csv else ".txt"
    suffix = options.check_ending("--out", out, (".txt", ".csv", *options.PICTURES))
    if as_csv and suffix != ".csv":
        raise OptionError(f"--csv: {out} does not end in .csv")
    if suffix in options.PICTURES and not kind.picture:
        pictures = ", ".join(other.name for other in kinds if other.picture)
        raise OptionError(
            f"--out: {out}: the chart '{kind.name}' is a list, for .txt or .csv; pictures by "
            f"--what: {pictures or 'none'}"
        )
    return suffix


def _csv(made: Made) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(made.columns)
    writer.writerows(made.rows)
    return written.getvalue()
