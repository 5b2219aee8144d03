"""``luckbase graph``: the game graph as DOT, and as a picture where GraphViz is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.solver.errors import OptionError

if TYPE_CHECKING:
    import graphviz


@options.with_options_of(luckbase.graph)
def graph(
    board: options.BoardFile,
    more: options.More = None,
    agents: options.Agents = "optimal",
    start: options.From = None,
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    out: Annotated[
        str, typer.Option(metavar="FILE", help="A .dot, .svg, .png or .pdf; - is DOT on stdout.")
    ] = "-",
    **how: Any,
) -> None:
    """Draw how agents play: the positions they come to and their moves, as GraphViz DOT.

    A position has the chance that a play comes to it and its payoffs."""
    from luckbase.cluster.play.draw import check_labels

    check_labels(how["labels"])
    endings = (".dot", *options.PICTURES)
    suffix = ".dot" if out == "-" else options.check_ending("--out", out, endings)
    drawn = luckbase.graph(
        options.board_of(board, settings), agents,
        options.read_start(start, more), results=results, **how,
    )  # fmt: skip
    _write(drawn.dot, out, suffix)
    if out != "-":
        nodes = render.many(len(drawn.diagram.nodes), "position")
        render.say(f"{nodes}, {render.many(len(drawn.diagram.edges), 'edge')}: {out}")


def _write(picture: graphviz.Digraph, out: str, suffix: str) -> None:
    import graphviz

    from luckbase.cluster.table.files import whole_file

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
