"""``luckbase chart`` and ``graph``: charts of a table, and agents' play as a graph.

The game makes the charts (`solver.charts`). The commands print them or draw them into files
(`cluster.answers.charts`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import luckbase
from luckbase.jobs import app, terminal
from luckbase.solver import sentences
from luckbase.solver.errors import OptionError, need
from luckbase.solver.sentences import Help

if TYPE_CHECKING:
    import graphviz

    from luckbase.solver.charts import Chart, Curves, Heatmap, Kind
    from luckbase.solver.game.game import Game

PRINTED_ROWS = 25
"""Rows of a picture's numbers printed on a terminal."""


@app.command(
    "luckbase chart pig/race --list",
    "luckbase chart pig/race --what hold --out hold.png",
)
def chart(
    table: app.TableName,
    fields: Annotated[
        list[str] | None,
        app.Argument("Only the rows with these values.", "[FIELD=VALUE...]"),
    ] = None,
    what: Annotated[
        str | None, Help("Name of the chart (default: the game's first).", "NAME")
    ] = None,
    as_csv: Annotated[bool, Help("Print the numbers as CSV.")] = False,
    out: Annotated[
        str, Help("Write a .png, .svg, .pdf, .html, .csv or .txt file; - is stdout.", "FILE")
    ] = "-",
    listed: Annotated[bool, Help("List the charts, with an explanation of each.")] = False,
    settings: app.Settings = None,
    strict: app.Strict = False,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
) -> None:
    """Print or draw a chart of a table, such as when to hold.

    Each game has its own charts, which are lists or pictures; --list shows them. The terminal shows
    a sample of a picture's numbers; --out draws the picture."""
    from luckbase.cluster.answers.charts import as_file
    from luckbase.solver.board.file import packaged
    from luckbase.solver.charts import Listing
    from luckbase.solver.game.capabilities import Charts, choose_chart

    app.check_one(as_csv=as_csv, as_json=as_json)
    board = table in packaged() or Path(table).is_file()
    if listed or board:  # a game without charts raises an error first
        game = _game_of(table, settings)
        kinds = game.need(Charts).kinds
    if listed:
        _print_kinds(game.board.name, kinds, as_json)
        return
    with app.open_named(table, results, settings, strict) as source:
        kind = choose_chart(source.game, what)
        source.check_chart(kind)
        suffix = _suffix(kind, source.game.need(Charts).kinds, as_csv, out)
        drawn = source.chart(kind.name, app.read_fields(fields or []))
        origin = source.origin
    if not as_json:
        note = drawn.note if isinstance(drawn, Listing) else ""
        terminal.say("\n".join(filter(None, [note, f"from {origin}"])))
    if out != "-":
        written = terminal.write_file(out, as_file(drawn, suffix))
        _say_written(as_json, f"{out}: {kind.shows}", out, written, origin, kind)
    elif as_json:
        terminal.print_json(origin, {"name": kind.name, "shows": kind.shows}, drawn)
    elif as_csv:
        sys.stdout.write(as_file(drawn, ".csv").decode())
    elif isinstance(drawn, Listing):
        text = as_file(drawn, ".txt").decode()
        sys.stdout.write(terminal.to_fit(text, sys.stdout))
    else:
        _print_numbers(drawn)


def _game_of(table: str, settings: list[str] | None) -> Game:
    from luckbase.solver.game.game import load_game

    if not app.is_folder(table):
        return load_game(app.board_of(table, settings))
    with luckbase.open(table) as source:
        return source.game


def _print_kinds(board: str, kinds: Sequence[Kind], as_json: bool) -> None:
    if as_json:
        terminal.print_json({"board": board, "charts": [kind.as_json() for kind in kinds]})
        return
    for kind in kinds:
        more = " (a picture)" if kind.picture else ""
        terminal.print_entry(kind.name, f"{kind.shows}{more}")
        terminal.print_entry("", kind.reading)


def _say_written(as_json: bool, text: str, out: str, size: int, *more: Any) -> None:
    """Report that a file was written, as a sentence or as JSON."""
    if as_json:
        terminal.print_json(*more, {"file": out, "bytes": size})
    else:
        terminal.say(f"{text}, {sentences.size(size)}")


def _suffix(kind: Kind, kinds: Sequence[Kind], as_csv: bool, out: str) -> str:
    """Return the suffix of the file, or "" for stdout. Raises OptionError for a suffix that the
    chart does not support."""
    from luckbase.cluster.answers.charts import PICTURES

    if out == "-":
        return ""
    suffix = app.check_ending("--out", out, (*PICTURES, ".csv", ".txt"))
    if as_csv and suffix != ".csv":
        raise OptionError(f"--csv: {out} does not end in .csv")
    if suffix == ".txt" and kind.picture:
        endings = ", ".join(PICTURES)
        raise OptionError(f"--out: {out}: '{kind.name}' is a picture, for {endings} or .csv")
    if suffix in PICTURES and not kind.picture:
        pictures = ", ".join(each.name for each in kinds if each.picture)
        raise OptionError(
            f"--out: {out}: the chart '{kind.name}' is a list, for .txt or .csv; pictures by "
            f"--what: {pictures or 'none'}"
        )
    if suffix in PICTURES:
        need("chart --out", "vl_convert", extra="report")
    return suffix


def _print_numbers(picture: Heatmap | Curves) -> None:
    """Print the title of a picture and a sample of its numbers."""
    from luckbase.solver.charts import Heatmap

    across = min(12, len(picture.xs)) if isinstance(picture, Heatmap) else len(picture.columns)
    heads, rows, step = picture.sample(PRINTED_ROWS * across)
    print(picture.title)
    terminal.print_to_fit(picture.about)
    if isinstance(picture, Heatmap):
        terminal.print_to_fit(
            f"{picture.colour_label}: {picture.x_label} across, {picture.y_label} down"
        )
    else:
        terminal.print_to_fit(picture.y_label)
    terminal.print_table("", heads, rows, sys.stdout)
    if step > 1:
        terminal.say(
            f"shown: one number in {step} along each axis; --csv prints all, --out draws them"
        )


def save(chart: Chart, path: str) -> int:
    """Write a chart to a file for `Chart.save` of `solver.charts`. Return its number of bytes."""
    from luckbase.cluster.answers.charts import PICTURES, as_file
    from luckbase.solver.charts import Listing

    suffix, listing = Path(path).suffix.lower(), isinstance(chart, Listing)
    endings = (".txt", ".csv") if listing else (*PICTURES, ".csv")
    if suffix not in endings:
        kind = "list" if listing else "picture"
        raise OptionError(f"{path}: a {kind} is saved in a file that ends in {', '.join(endings)}")
    return terminal.write_file(path, as_file(chart, suffix))


@app.command(
    "luckbase graph jackpot/tiny --out tiny.dot",
    "luckbase graph pig/tiny --agents hold-at-4 --labels actions --out tiny.dot",
    api=luckbase.graph,
)
def graph(
    board: app.BoardFile,
    more: app.More = None,
    agents: app.Agents = "optimal",
    start: app.From = None,
    settings: app.Settings = None,
    results: app.Results = Path("results"),
    out: Annotated[
        str, Help("Write a .dot, .svg, .png or .pdf file; - is DOT on stdout.", "FILE")
    ] = "-",
    as_json: app.Json = False,
    **how: Any,
) -> None:
    """Draw how agents play as a graph (DOT): positions and moves.

    A position shows its payoffs and its average number of visits in a game, which can be more than
    1 if the game returns to it."""
    need("graph", "graphviz", extra="report")
    endings = (".dot", *app.PICTURES)
    suffix = ".dot" if out == "-" else app.check_ending("--out", out, endings)
    read, root = app.board_of(board, settings), app.read_start(start, more)
    drawn = luckbase.graph(read, agents, root, results=results, **how)
    heading = {"board": drawn.game.board.name, "agents": drawn.agents}
    if out != "-":
        written = terminal.write_file(out, _rendered(drawn.dot, suffix, out))
        counts = {"nodes": len(drawn.diagram.nodes), "edges": len(drawn.diagram.edges)}
        text = f"{out}: {sentences.many(counts['nodes'], 'position')}, "
        text += sentences.many(counts["edges"], "edge")
        _say_written(as_json, text, out, written, heading, counts)
    elif as_json:
        terminal.print_json(heading, drawn.diagram)
    else:
        print(drawn.dot.source, end="")


def _rendered(picture: graphviz.Digraph, suffix: str, out: str) -> bytes:
    """Return a graph as a file with this suffix. Raises OptionError if GraphViz fails."""
    import graphviz

    if suffix == ".dot":
        return bytes(picture.source.encode())
    try:
        return bytes(picture.pipe(format=suffix[1:]))
    except graphviz.ExecutableNotFound:
        raise OptionError(
            f"--out: {out}: GraphViz (its command dot) is not installed, so there is no picture; "
            "install it, or write DOT with --out FILE.dot"
        ) from None
    except graphviz.CalledProcessError as error:
        raise OptionError(f"--out: {out}: GraphViz: {str(error)[:150]}") from None
