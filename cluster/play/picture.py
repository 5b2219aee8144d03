"""How agents play, drawn: the positions they come to and their moves, as GraphViz DOT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from luckbase.cluster import words
from luckbase.cluster.play.agents import Given, Opener, for_players, no_tables
from luckbase.solver.charts.diagram import Diagram, Node, draw
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Drawing
from luckbase.solver.game.game import Game
from luckbase.solver.policy.chain import explore_profile
from luckbase.solver.policy.evaluate import chain_graph, deciders_of
from luckbase.solver.sentences import option

if TYPE_CHECKING:
    import graphviz


@dataclass(frozen=True)
class Drawn:
    """What a drawing shows. every: every position, those that no play comes to as well. labels:
    what edges say, one of `LABELS`. layers: positions in a box a layer. ends: in a one-player game,
    lost games as well. max_nodes: positions that it may have."""

    every: bool = False
    labels: str = "chances"
    layers: bool = False
    ends: bool = False
    max_nodes: int = 2000


@dataclass(frozen=True)
class Picture:
    """A drawing: its positions and edges as data, and as DOT."""

    game: Game
    agents: tuple[str, ...]
    diagram: Diagram
    how: Drawn

    @cached_property
    def dot(self) -> graphviz.Digraph:
        """The drawing as a `graphviz.Digraph`, which a notebook shows."""
        title = f"{self.game.board.name}, {', '.join(dict.fromkeys(self.agents))}"
        return _dot(self.game, self.diagram, title, self.how)

    def __str__(self) -> str:
        return str(self.dot.source)


def check_labels(labels: str) -> None:
    """Raises OptionError for what edges can not say."""
    if labels not in words.LABELS:
        raise OptionError(f"{option('labels')}: '{labels}' is none of {', '.join(words.LABELS)}")


def pictured(
    game: Game, root: Ints, agents: str | Sequence[Given], how: Drawn,
    opener: Opener = no_tables,
) -> Picture:  # fmt: skip
    """How a profile of agents plays from a canonical state (fields,).

    Raises OptionError for labels that are none, for what is no agent, and for a drawing of every
    position of a game that has no list of them.
    """
    check_labels(how.labels)
    drawing = game.get(Drawing)
    if how.labels == "counts" and not (drawing and drawing.equally_likely):
        said = f"{option('labels')}: chances of {game.board.game} are not counts; write chances"
        raise OptionError(said)
    names, profile = for_players(game, agents, opener)
    roots = root.reshape(1, -1)
    if how.every:
        roots = np.concatenate([roots, game.need(Drawing).positions()])
        roots = roots[np.sort(np.unique(roots, axis=0, return_index=True)[1])]
    deciders = deciders_of(game, profile, roots)
    if None in deciders:
        raise OptionError(f"{option('agents')}: best-response is not drawn; name what it comes to")
    chain = explore_profile(game, roots, deciders)
    solved = chain_graph(chain, roots)
    values = solved.values[solved.look_up(chain.keys)]
    ends = how.ends or game.players > 1
    diagram = draw(chain, values, all_ends=ends, max_nodes=how.max_nodes)
    return Picture(game, tuple(names), diagram, how)


def _dot(game: Game, diagram: Diagram, title: str, how: Drawn) -> graphviz.Digraph:
    import graphviz

    picture = graphviz.Digraph("luckbase", comment=title)
    picture.attr(rankdir="TB", label=title, labelloc="t", fontname="Helvetica")
    picture.attr("node", shape="box", style="rounded", fontname="Helvetica", fontsize="10")
    picture.attr("edge", fontname="Helvetica", fontsize="8", color="gray40")
    by_layer: dict[int, list[int]] = {}
    for i, node in enumerate(diagram.nodes):
        by_layer.setdefault(node.layer, []).append(i)
    for layer, members in sorted(by_layer.items()):
        with picture.subgraph(name=f"cluster_{layer}" if how.layers else f"layer_{layer}") as box:
            if how.layers:
                box.attr(label=f"layer {layer}", color="gray70")
            else:
                box.attr(rank="same")
            for i in members:
                node = diagram.nodes[i]
                shape = {"shape": "ellipse", "style": "bold"} if node.end else {}
                box.node(str(i), graphviz.escape(_node_text(node)).replace("\n", "\\n"), **shape)
    drawing = game.get(Drawing)
    rolls = drawing.equally_likely if drawing else 0
    for edge in diagram.edges:
        text = {
            "none": "",
            "actions": edge.action,
            "counts": f"{edge.action}\n{edge.chance * rolls:.0f}",
            "chances": f"{edge.action}\n{edge.chance:.4g}",
        }[how.labels]
        said = {"label": graphviz.escape(text).replace("\n", "\\n")} if text else {}
        picture.edge(str(edge.source), str(edge.target), **said)
    return picture


def _node_text(node: Node) -> str:
    worth = ", ".join(f"{x:.4g}" for x in node.payoffs)
    if node.end:
        return f"over: {worth}\nreached {node.reach:.4g}"
    said = "  ".join(f"{name} {words.listed(value)}" for name, value in node.fields.items())
    return f"{said}\nreached {node.reach:.4g}, worth {worth}"
