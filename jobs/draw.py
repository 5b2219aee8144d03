"""``luckbase chart``, ``graph``, ``report``: a table at a glance, play as a graph, a page to send.

Charts come from the game (`solver.charts`); here they are printed, or drawn into files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import luckbase
from luckbase.cluster import words
from luckbase.cluster.words import Help
from luckbase.jobs import options, terminal
from luckbase.solver.errors import OptionError, need

if TYPE_CHECKING:
    import graphviz

    from luckbase.solver.charts import Chart, Kind


@options.command(
    "luckbase chart pig/race",
    "luckbase chart pig/race --what hold --out hold.png",
)
def chart(
    table: options.TableName,
    fields: Annotated[
        list[str] | None,
        options.Argument("Only the lines with these values, or what to draw.", "[FIELD=VALUE...]"),
    ] = None,
    what: Annotated[
        str | None, Help("Which of the game's charts; the first if not given.", "NAME")
    ] = None,
    reachable: Annotated[bool, Help("Leave out what never comes up in play by the chart.")] = False,
    as_csv: Annotated[bool, Help("Print CSV; of a picture, its numbers.")] = False,
    out: Annotated[str, Help("A .txt, .csv, .png, .svg or .pdf; - is stdout.", "FILE")] = "-",
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
) -> None:
    """Print or draw a table at a glance: when to hold, chances to win.

    A game has its charts by name, lists and pictures; a wrong name for --what lists them. A
    picture is printed as text, as wide as the terminal, or drawn into a file."""
    from luckbase.solver.charts import Listing
    from luckbase.solver.game.capabilities import Charts, choose_chart

    if Path(table).is_file():  # a game that has no charts says so, solved or not
        from luckbase.solver import load_game

        load_game(options.board_of(table, settings)).need(Charts)
    with options.open_found(table, results, settings, strict) as opened:
        kind = choose_chart(opened.game, what)
        opened.check_chart(kind)
        suffix = _suffix(kind, opened.game.need(Charts).kinds, as_csv, out)
        made = opened.chart(kind.name, options.read_fields(fields or []), reachable=reachable)
        origin = opened.origin
    if isinstance(made, Listing):
        terminal.say(made.note)
    terminal.say(f"from {origin}")
    if out == "-":
        sys.stdout.write(_written(made, suffix, sys.stdout).decode())
    else:
        size = terminal.write_file(out, _written(made, suffix))
        terminal.say(f"{out}: {kind.shows}, {size}")


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
    if suffix in options.PICTURES:
        need("chart --out", "matplotlib", extra="report")
    return suffix


def _written(made: Chart, suffix: str, out: Any = None) -> bytes:
    """What stands in a file, or on stdout, `out`: as wide as a terminal, and with colours where it
    has them."""
    from luckbase.jobs.plots import as_file, text
    from luckbase.solver.charts import Listing

    if out is None or suffix == ".csv":
        return as_file(made, suffix)
    if isinstance(made, Listing):
        return terminal.to_fit(as_file(made, suffix).decode(), out).encode()
    return text(made, terminal.width(out), terminal.has_colours(out)).encode()


@options.command(
    "luckbase graph jackpot/tiny --out tiny.dot",
    "luckbase graph pig/tiny --agents hold-at-4 --labels actions --out tiny.dot",
    api=luckbase.graph,
)
def graph(
    board: options.BoardFile,
    more: options.More = None,
    agents: options.Agents = "optimal",
    start: options.From = None,
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    out: Annotated[str, Help("A .dot, .svg, .png or .pdf; - is DOT on stdout.", "FILE")] = "-",
    **how: Any,
) -> None:
    """Draw how agents play as a graph (DOT): positions and moves.

    A position has the chance that a play comes to it and its payoffs."""
    from luckbase.cluster.play.draw import check_labels

    need("graph", "graphviz", extra="report")
    check_labels(how["labels"])
    endings = (".dot", *options.PICTURES)
    suffix = ".dot" if out == "-" else options.check_ending("--out", out, endings)
    read, root = options.board_of(board, settings), options.read_start(start, more)
    drawn = luckbase.graph(read, agents, root, results=results, **how)
    if out == "-":
        print(drawn.dot.source, end="")
        return
    terminal.write_file(out, _rendered(drawn.dot, suffix, out))
    nodes = words.many(len(drawn.diagram.nodes), "position")
    terminal.say(f"{nodes}, {words.many(len(drawn.diagram.edges), 'edge')}: {out}")


def _rendered(picture: graphviz.Digraph, suffix: str, out: str) -> bytes:
    """A graph as a file of the ending has it. Raises OptionError where GraphViz can not."""
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


@options.command(
    "luckbase report pig/tiny --out tiny.html",
    "luckbase report pig/tiny --all --out tiny.html",
)
def report(
    table: options.TableName,
    out: Annotated[str, Help("The file to write.", "FILE.html")],
    sample: Annotated[
        int | None, Help(f"Rows to verify ({options.SAMPLE}); 0: do not verify.", "N", 0)
    ] = None,
    every: Annotated[bool, Help("Verify every row.")] = False,
    settings: options.Settings = None,
    strict: options.Strict = False,
    results: options.Results = Path("results"),
) -> int:
    """Write a page in one file to send: board, summary, charts, verdict.

    It needs no network and nothing installed, is below 2 MB, and says how to get the same. Exit
    code 1 if the verdict is bad."""
    rows = options.read_sample(sample, every)
    where = Path(out)
    if where.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"--out: {out}: end it in .html")
    if not where.parent.is_dir():
        raise OptionError(f"--out: {where.parent} is not a folder; make it first")
    with options.open_found(table, results, settings, strict) as opened:
        made = luckbase.report(opened, rows)
    verdict = "not verified"
    if made.verdict is not None and made.verdict.ok:
        checked = made.verdict.residuals
        verdict = words.agree(checked.rows if checked else 0)
    elif made.verdict is not None:
        verdict = f"faults were found: {made.verdict.faults[0]}"
    size, charts = words.size(made.save(where)), words.many(len(made.charts), "chart")
    terminal.say(f"{out}: {size}, {charts}, {verdict}")
    print(out)
    return 0 if made.ok else 1
