"""``luckbase graph``: the game graph as DOT, and as a picture where GraphViz is installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import luckbase
from luckbase.cluster.words import LABELS
from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    import graphviz


@dataclass(frozen=True)
class Graph:
    """Who plays, and what is drawn of it."""

    board: Annotated[str, typer.Argument(metavar="BOARD", help="A board file.")]
    more: options.More = None
    agents: options.Agents = "optimal"
    start: options.From = None
    settings: options.Settings = None
    results: options.Results = Path("results")
    every: Annotated[
        bool, typer.Option("--all", help="Every position, those that no play comes to as well.")
    ] = False
    layers: Annotated[bool, typer.Option("--layers", help="Positions in a box a layer.")] = False
    labels: Annotated[
        str, typer.Option(metavar="KIND", help=f"What edges say: {', '.join(LABELS)}.")
    ] = "chances"
    ends: Annotated[
        bool, typer.Option("--ends", help="In a one-player game, lost games as well.")
    ] = False
    max_nodes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Positions that a drawing may have.")
    ] = 2000
    out: Annotated[
        str, typer.Option(metavar="FILE", help="A .dot, .svg, .png or .pdf; - is DOT on stdout.")
    ] = "-"


@options.takes(Graph)
def graph(asked: Graph) -> None:
    """Draw how agents play: the positions they come to and their moves, as GraphViz DOT.

    A position has the chance that a play comes to it and its payoffs."""
    from luckbase.cluster.play.draw import check_labels
    from luckbase.solver.errors import OptionError

    check_labels(asked.labels)
    suffix = Path(asked.out).suffix.lower()
    if asked.out != "-" and suffix not in (".dot", *options.PICTURES):
        raise OptionError(f"--out: {asked.out}: end it in .dot, {', '.join(options.PICTURES)}")
    drawn = luckbase.graph(
        options.board_of(asked.board, asked.settings), asked.agents,
        options.read_start(asked.start, asked.more), every=asked.every, labels=asked.labels,
        layers=asked.layers, ends=asked.ends, max_nodes=asked.max_nodes, results=asked.results,
    )  # fmt: skip
    _write(drawn.dot, asked.out, suffix)
    if asked.out != "-":
        nodes = render.many(len(drawn.diagram.nodes), "position")
        render.say(f"{nodes}, {render.many(len(drawn.diagram.edges), 'edge')}: {asked.out}")


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
