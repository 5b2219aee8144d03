"""``luckbase graph``: the game graph as DOT, and as a picture where GraphViz is installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    import graphviz


@dataclass(frozen=True)
class Graph:
    """Who plays, and what is drawn of it."""

    board: options.BoardFile
    more: options.More = None
    agents: options.Agents = "optimal"
    start: options.From = None
    settings: options.Settings = None
    results: options.Results = Path("results")
    out: Annotated[
        str, typer.Option(metavar="FILE", help="A .dot, .svg, .png or .pdf; - is DOT on stdout.")
    ] = "-"


@options.takes(Graph, luckbase.graph)
def graph(args: Graph, **how: Any) -> None:
    """Draw how agents play: the positions they come to and their moves, as GraphViz DOT.

    A position has the chance that a play comes to it and its payoffs."""
    from luckbase.cluster.play.draw import check_labels
    from luckbase.solver.errors import OptionError

    check_labels(how["labels"])
    suffix = Path(args.out).suffix.lower()
    if args.out != "-" and suffix not in (".dot", *options.PICTURES):
        raise OptionError(f"--out: {args.out}: end it in .dot, {', '.join(options.PICTURES)}")
    drawn = luckbase.graph(
        options.board_of(args.board, args.settings), args.agents,
        options.read_start(args.start, args.more), results=args.results, **how,
    )  # fmt: skip
    _write(drawn.dot, args.out, suffix)
    if args.out != "-":
        nodes = render.many(len(drawn.diagram.nodes), "position")
        render.say(f"{nodes}, {render.many(len(drawn.diagram.edges), 'edge')}: {args.out}")


def _write(picture: graphviz.Digraph, out: str, suffix: str) -> None:
    import graphviz

    from luckbase.cluster.table.files import whole_file
    from luckbase.solver.errors import OptionError

    if out == "-":
        print(picture.source, end="")
        return
    try:
        content = picture.source.encode()
        if suffix != ".dot":
            content = picture.pipe(format=suffix[1:])
    except graphviz.ExecutableNotFound:
        raise OptionError(
            f"--out: {out}: GraphViz (its command dot) is not installed, so there is no picture; "
            "install it, or write DOT with --out FILE.dot"
        ) from None
    except graphviz.CalledProcessError as error:
        raise OptionError(f"--out: {out}: GraphViz: {str(error)[:150]}") from None
    with whole_file(out) as file:
        file.write(content)
