"""``luckbase graph``: the game graph as DOT, and as a picture where GraphViz is installed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from luckbase.jobs import agents as names_of
from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.solver.game.capabilities import Drawing

if TYPE_CHECKING:
    import graphviz

    from luckbase.solver.charts.diagram import Diagram, Node
    from luckbase.solver.game.game import Game

LABELS = ("none", "actions", "counts", "chances")
PICTURES = (".svg", ".png", ".pdf")


def graph(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A board file.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELD=VALUE...]", help="Start here, as with --from."),
    ] = None,
    agents: names_of.Agents = "optimal",
    start: options.From = None,
    settings: options.Settings = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every position, those that no play comes to as well.")
    ] = False,
    layers: Annotated[bool, typer.Option("--layers", help="Positions in a box a layer.")] = False,
    labels: Annotated[
        str, typer.Option(metavar="KIND", help=f"What edges say: {', '.join(LABELS)}.")
    ] = "chances",
    ends: Annotated[
        bool, typer.Option("--ends", help="In a one-player game, lost games as well.")
    ] = False,
    max_nodes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Positions that a drawing may have.")
    ] = 2000,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="A .dot, .svg, .png or .pdf; - is DOT on stdout.")
    ] = "-",
) -> None:
    """Draw how agents play: the positions they come to and their moves, as GraphViz DOT.

    A position has the chance that a play comes to it and its payoffs."""
    import numpy as np

    from luckbase.solver import load_game
    from luckbase.solver.board.file import read_board
    from luckbase.solver.charts.diagram import draw
    from luckbase.solver.errors import OptionError
    from luckbase.solver.policy.chain import explore_profile
    from luckbase.solver.policy.evaluate import chain_graph, deciders_of

    if labels not in LABELS:
        raise OptionError(f"--labels: '{labels}' is none of {', '.join(LABELS)}")
    suffix = Path(out).suffix.lower()
    if out != "-" and suffix not in (".dot", *PICTURES):
        raise OptionError(f"--out: {out}: end it in .dot, {', '.join(PICTURES)}")
    game = load_game(read_board(Path(board), options.read_settings(settings)))
    drawing = game.get(Drawing)
    if labels == "counts" and not (drawing and drawing.equally_likely):
        raise OptionError(f"--labels counts: chances of {game.board.game} are not counts; chances")
    root = options.read_start(game, [*(start or []), *(more or [])])
    with ExitStack() as tables:
        names, profile = names_of.for_players(game, agents, tables)
        roots = root.reshape(1, -1)
        if every:
            roots = np.concatenate([roots, game.need(Drawing).positions()])
            roots = roots[np.sort(np.unique(roots, axis=0, return_index=True)[1])]
        deciders = deciders_of(game, profile, roots)
        if None in deciders:
            raise OptionError("--agents: best-response is not drawn; name what it comes to")
        chain = explore_profile(game, roots, deciders)
    solved = chain_graph(chain, roots)
    values = solved.values[solved.look_up(chain.keys)]
    diagram = draw(chain, values, all_ends=ends or game.players > 1, max_nodes=max_nodes)
    title = f"{game.board.name}, {', '.join(dict.fromkeys(names))}"
    picture = _dot(game, diagram, title, layers, labels)
    _write(picture, out, suffix)
    if out != "-":
        render.say(f"{len(diagram.nodes)} positions, {len(diagram.edges)} edges: {out}")


def _dot(game: Game, diagram: Diagram, title: str, layers: bool, labels: str) -> graphviz.Digraph:
    import graphviz

    picture = graphviz.Digraph("luckbase", comment=title)
    picture.attr(rankdir="TB", label=title, labelloc="t", fontname="Helvetica")
    picture.attr("node", shape="box", style="rounded", fontname="Helvetica", fontsize="10")
    picture.attr("edge", fontname="Helvetica", fontsize="8", color="gray40")
    by_layer: dict[int, list[int]] = {}
    for i, node in enumerate(diagram.nodes):
        by_layer.setdefault(node.layer, []).append(i)
    for layer, members in sorted(by_layer.items()):
        with picture.subgraph(name=f"cluster_{layer}" if layers else f"layer_{layer}") as box:
            if layers:
                box.attr(label=f"layer {layer}", color="gray70")
            else:
                box.attr(rank="same")
            for i in members:
                node = diagram.nodes[i]
                shape = {"shape": "ellipse", "style": "bold"} if node.end else {}
                box.node(str(i), graphviz.escape(_node_text(node)).replace("\n", "\\n"), **shape)
    drawing = game.get(Drawing)
    for edge in diagram.edges:
        text = {
            "none": "",
            "actions": edge.action,
            "counts": f"{edge.action}\n{edge.chance * (drawing.equally_likely if drawing else 0):.0f}",
            "chances": f"{edge.action}\n{edge.chance:.4g}",
        }[labels]
        said = {"label": graphviz.escape(text).replace("\n", "\\n")} if text else {}
        picture.edge(str(edge.source), str(edge.target), **said)
    return picture


def _node_text(node: Node) -> str:
    worth = ", ".join(f"{x:.4g}" for x in node.payoffs)
    if node.end:
        return f"over: {worth}\nreached {node.reach:.4g}"
    said = "  ".join(f"{name} {render.listed(value)}" for name, value in node.fields.items())
    return f"{said}\nreached {node.reach:.4g}, worth {worth}"


def _write(picture: graphviz.Digraph, out: str, suffix: str) -> None:
    import graphviz

    from luckbase.solver.errors import OptionError

    if out == "-":
        print(picture.source, end="")
        return
    path = Path(out)
    try:
        if suffix == ".dot":
            path.write_text(picture.source, encoding="utf-8")
        else:
            path.write_bytes(picture.pipe(format=suffix[1:]))
    except graphviz.ExecutableNotFound:
        raise OptionError(
            f"--out: {out}: GraphViz (its command dot) is not installed, so there is no picture; "
            "install it, or write DOT with --out FILE.dot"
        ) from None
    except graphviz.CalledProcessError as error:
        raise OptionError(f"--out: {out}: GraphViz: {str(error)[:150]}") from None
