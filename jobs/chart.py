"""``luckbase chart``: what a whole table says at a glance, as a list or as a picture.

The chart comes from the game (`solver.charts.model`); here it is printed, written as CSV or drawn.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.jobs.terminal.pictures import SUFFIXES, draw

if TYPE_CHECKING:
    from luckbase.cluster.table.table import Table
    from luckbase.solver.charts.model import Heatmap, Kind, Listing


def chart(
    table: options.TableName,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELD=VALUE...]", help="Only these lines: mine=0 yours=86,87,88"),
    ] = None,
    what: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which of the game's charts; the first if not given."),
    ] = None,
    reachable: Annotated[
        bool,
        typer.Option("--reachable", help="Without what nobody meets who plays as the chart says."),
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV; of a picture, its numbers.")
    ] = False,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="A .txt, .csv, .png, .svg or .pdf; - is stdout.")
    ] = "-",
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
) -> None:
    """Print or draw what a full table says at a glance: where to roll and hold, the chance to win.

    A game has its charts by name, lists and pictures; a --what that is none of them says which."""
    from luckbase.solver.charts.model import Heatmap, Wanted
    from luckbase.solver.game.capabilities import Charts

    _has_charts(table, settings)
    with options.open_found(table, results, settings, strict) as opened:
        _check_full(opened)
        charts = opened.game.need(Charts)
        kind = _choose(charts.kinds, opened.game.board.game, what)
        suffix = _suffix(kind, charts.kinds, as_csv, out)
        wanted = Wanted(options.read_fields(fields or []), reachable, opened.error)
        made = charts.make(kind.name, opened.probe, wanted)
    if suffix == ".csv":
        content = _csv(made).encode()
    elif isinstance(made, Heatmap):
        content = draw(made, suffix)
    else:
        content = "".join(f"{line}\n" for line in made.lines).encode()
        render.say(made.note)
    render.say(f"from {opened.origin}")
    if out == "-":
        said = content.decode()
        sys.stdout.write(said if suffix == ".csv" else render.to_fit(said, sys.stdout))
    else:
        Path(out).write_bytes(content)
        render.say(f"{out}: {kind.shows}, {render.size(len(content))}")


def _has_charts(name: str, settings: list[str] | None) -> None:
    """Raises OptionError for a board file of a game that has no charts, solved or not."""
    if Path(name).is_file():
        from luckbase.solver import load_game
        from luckbase.solver.board.file import read_board
        from luckbase.solver.game.capabilities import Charts

        game = load_game(read_board(Path(name), options.read_settings(settings)))
        game.need(Charts)


def _check_full(opened: Table) -> None:
    """Raises OptionError where the table has no full table in it or its game no charts,
    MissingTableError for one that is not complete."""
    from luckbase.cluster.table.find import command
    from luckbase.cluster.table.table import furthest
    from luckbase.solver.errors import MissingTableError, OptionError
    from luckbase.solver.game.capabilities import Charts

    ledger = opened.ledger
    opened.game.need(Charts)
    goal = furthest(ledger)
    latest = goal or ledger.latest
    said = ("BOARD", {}) if latest is None else (latest.board_file or "BOARD", latest.settings)
    again = command(f"{render.program()} solve", *said, opened.game.board.game)
    if goal is None or opened.full is None:
        raise OptionError(
            f"{opened.path}: holds what lies below some states, and a chart needs the full table: "
            f"{again}"
        )
    if not ledger.is_done(goal):
        raise MissingTableError(
            f"{opened.path}: {len(opened.full.entries)} of its {goal.files} tiers are solved, and "
            f"a chart needs them all: {again}"
        )


def _choose(kinds: Sequence[Kind], game: str, what: str | None) -> Kind:
    from luckbase.solver.errors import OptionError

    for kind in kinds:
        if what in (None, kind.name):
            return kind
    known = "; ".join(f"{kind.name}, {kind.shows}" for kind in kinds)
    raise OptionError(f"--what: '{what}' is no chart of {game}; right would be: {known}")


def _suffix(kind: Kind, kinds: Sequence[Kind], as_csv: bool, out: str) -> str:
    """How the chart is to be written: .txt, .csv or a picture's ending."""
    from luckbase.solver.errors import OptionError

    suffix = Path(out).suffix.lower()
    if out == "-":
        suffix = ".csv" if as_csv else ".txt"
    elif suffix not in (".txt", ".csv", *SUFFIXES):
        raise OptionError(f"--out: {out}: end it in .txt, .csv, {', '.join(SUFFIXES)}")
    if as_csv and suffix != ".csv":
        raise OptionError(f"--csv: {out} does not end in .csv")
    if suffix == ".txt" and kind.picture:
        raise OptionError(
            f"--what: '{kind.name}' is a picture; write it with --out FILE.png (or "
            f"{', '.join(SUFFIXES[1:])}), or its numbers with --csv"
        )
    if suffix in SUFFIXES and not kind.picture:
        pictures = ", ".join(other.name for other in kinds if other.picture)
        raise OptionError(
            f"--out: {out}: the chart '{kind.name}' is a list, for .txt or .csv; pictures by "
            f"--what: {pictures or 'none'}"
        )
    return suffix


def _csv(made: Listing | Heatmap) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(made.columns)
    writer.writerows(made.rows)
    return written.getvalue()
