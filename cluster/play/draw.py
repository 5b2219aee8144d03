"""A drawing of how agents play: the positions they reach and their moves, as data and as GraphViz
DOT.

The chain of a profile (`solver.policies.chain`) has a state for every roll and every decision.
Agents are fixed, so states with a single successor are skipped. The nodes are the root, the
positions before a chance event, and the ends of the game; ends with the same payoffs are one node.
An edge is labelled with the last action taken along it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from luckbase.cluster.play.agents import AgentLike, Opener, name_of, players_of, seats_of
from luckbase.solver import sentences
from luckbase.solver.errors import OptionError, need
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import Agents, Drawing, choice_names, first_state
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import JOINT
from luckbase.solver.policies.chain import Chain, explore_profile
from luckbase.solver.policies.evaluate import Starts, deciders_of
from luckbase.solver.result import OrNull, Result
from luckbase.solver.search.bellman import JOINTLY
from luckbase.solver.sentences import many, option

if TYPE_CHECKING:
    import graphviz


@dataclass(frozen=True)
class Node(Result):
    """A position or an end of the game."""

    fields: Annotated[OrNull[dict[str, Any]], Field(serialization_alias="state")]
    """Empty for an end."""
    reach: float  # average number of visits in a game
    payoffs: Annotated[tuple[float, ...], Field(serialization_alias="value")]
    """Expected payoffs from here."""
    layer: int  # smallest number of edges from a root
    end: bool


@dataclass(frozen=True)
class Edge(Result):
    """An edge between two nodes, given by their indices, with its action and probability."""

    source: int
    target: int
    action: str
    chance: float


@dataclass(frozen=True)
class Diagram(Result):
    """Nodes by layer, root first; edges by source, then target."""

    nodes: list[Node]
    edges: list[Edge]


MAX_NODES = 2000  # maximum number of positions in a drawing; larger drawings are unreadable


@dataclass(frozen=True)
class Picture:
    """A drawing: its positions and edges, and their DOT form."""

    game: Game
    agents: tuple[str, ...]
    diagram: Diagram
    labels: str  # the labels of edges, one of `sentences.LABELS`
    layers: bool  # whether each layer gets a box

    @cached_property
    def dot(self) -> graphviz.Digraph:
        """The drawing as a `graphviz.Digraph`, which a notebook displays. Raises OptionError if
        graphviz is not installed."""
        need("graph", "graphviz", extra="report")
        return _dot(self)

    def __str__(self) -> str:
        return str(self.dot.source)


def draw_play(
    game: Game, root: Starts, agents: str | Sequence[AgentLike], opener: Opener, every: bool,
    layers: bool, labels: str, ends: bool,
) -> Picture:  # fmt: skip
    """Draw how a profile of agents plays from one canonical state; options as in `luckbase.graph`.

    Raises OptionError for unknown labels or agents, and for a drawing of every position if the game
    does not list its positions.
    """
    if labels not in sentences.LABELS:
        raise OptionError(f"{option('labels')}: '{labels}'; expected {', '.join(sentences.LABELS)}")
    drawing = game.own(Drawing)
    if labels == "counts" and not drawing.equally_likely:
        why = f"chances of {game.board.game} are not counts; write chances"
        raise OptionError(f"{option('labels')}: {why}")
    seats = seats_of(game, agents)
    profile = players_of(game, seats, opener)
    roots = root.states if len(root.states) == 1 else first_state(game)[None]  # refuses several
    if every:
        if drawing.positions is None:
            raise OptionError(
                f"board {game.board.name}: {game.board.game} has no list of all its positions; "
                f"leave {option('every')} out"
            )
        roots = np.concatenate([roots, drawing.positions()])
        roots = roots[np.sort(np.unique(roots, axis=0, return_index=True)[1])]
    deciders = deciders_of(game, profile, roots)
    if None in deciders:
        raise OptionError(f"{option('agents')}: best-response is not drawn; name what it comes to")
    chain = explore_profile(game, roots, deciders)
    diagram = diagram_of(chain, chain.solve().values, all_ends=ends or game.players > 1)
    return Picture(game, tuple(map(name_of, seats)), diagram, labels, layers)


def _dot(drawn: Picture) -> graphviz.Digraph:
    import graphviz

    game, diagram = drawn.game, drawn.diagram
    title = f"{game.board.name}, {', '.join(dict.fromkeys(drawn.agents))}"
    picture = graphviz.Digraph("luckbase", comment=title)
    picture.attr(rankdir="TB", label=title, labelloc="t", fontname="Helvetica")
    picture.attr("node", shape="box", style="rounded", fontname="Helvetica", fontsize="10")
    picture.attr("edge", fontname="Helvetica", fontsize="8", color="gray40")
    by_layer: dict[int, list[int]] = {}
    for i, node in enumerate(diagram.nodes):
        by_layer.setdefault(node.layer, []).append(i)
    for layer, members in sorted(by_layer.items()):
        with picture.subgraph(name=f"cluster_{layer}" if drawn.layers else f"layer_{layer}") as box:
            if drawn.layers:
                box.attr(label=f"layer {layer}", color="gray70")
            else:
                box.attr(rank="same")
            for i in members:
                node = diagram.nodes[i]
                shape = {"shape": "ellipse", "style": "bold"} if node.end else {}
                box.node(str(i), graphviz.escape(_node_text(node)).replace("\n", "\\n"), **shape)
    rolls = game.own(Drawing).equally_likely
    for edge in diagram.edges:
        text = {
            "none": "",
            "actions": edge.action,
            "counts": f"{edge.action}\n{edge.chance * rolls:.0f}",
            "chances": f"{edge.action}\n{edge.chance:.4g}",
        }[drawn.labels]
        label = {"label": graphviz.escape(text).replace("\n", "\\n")} if text else {}
        picture.edge(str(edge.source), str(edge.target), **label)
    return picture


def _node_text(node: Node) -> str:
    payoffs = ", ".join(sentences.figures(payoff, 4) for payoff in node.payoffs)
    if node.end:
        return f"over: {payoffs}\nreached {node.reach:.4g}"
    state = "  ".join(f"{name} {sentences.listed(value)}" for name, value in node.fields.items())
    return f"{state}\nreached {node.reach:.4g}, worth {payoffs}"


def diagram_of(chain: Chain, values: Floats, *, all_ends: bool = True) -> Diagram:
    """Return the diagram of a chain in which all decisions are fixed.

    values: payoffs of its states, (n, players).
    all_ends: draw every end of the game, not only the end with the highest first payoff.

    Raises OptionError for more than `MAX_NODES` positions.
    """
    game, over, count = chain.game, chain.over, np.diff(chain.first)
    drawn = (count > 1) | (np.arange(len(count)) == 0)
    ends: dict[tuple[float, ...], int] = {}
    if int(drawn.sum()) > MAX_NODES:
        raise OptionError(
            f"a drawing of {many(int(drawn.sum()), 'position')} cannot be read; expected at most "
            f"{MAX_NODES:,}; start nearer the end"
        )
    best = chain.payoffs[over][:, 0].max() if over.any() else 0.0
    inner = {int(x): i for i, x in enumerate(np.flatnonzero(drawn & ~over))}
    chances: dict[tuple[int, int, str], float] = {}
    for x, source in inner.items():
        for k in range(chain.first[x], chain.first[x + 1]):
            y, action = int(chain.children[k]), int(chain.actions[k])
            actor = chain.actors[x]
            while not over[y] and y not in inner:
                k_on, actor = int(chain.first[y]), chain.actors[y]
                y, action = int(chain.children[k_on]), int(chain.actions[k_on])
            if over[y]:
                payoffs = tuple(chain.payoffs[y].tolist())
                if not all_ends and payoffs[0] < best:
                    continue
                target = ends.setdefault(payoffs, len(inner) + len(ends))
            else:
                target = inner[y]
            key = (source, target, _called(game, action, at_once=actor == JOINTLY))
            chances[key] = chances.get(key, 0.0) + float(chain.chances[k])
    reach, layers = _placed(len(inner) + len(ends), chances)
    nodes = []
    for x, i in inner.items():
        state = game.describe(chain.states(np.array([x]))[0])
        nodes.append(Node(state, reach[i], tuple(values[x].tolist()), layers[i], False))
    for payoffs, i in ends.items():
        nodes.append(Node({}, reach[i], payoffs, layers[i], True))
    edges = [Edge(*key, chance) for key, chance in sorted(chances.items())]
    return Diagram(nodes, edges)


def _called(game: Game, action: int, *, at_once: bool) -> str:
    """Return an action's name. For simultaneous moves, combine the names of both choices, unless
    the game names its pairs."""
    if not at_once or game.own(Agents).choice_names is not None:
        return game.action_name(action)
    pair = enumerate(divmod(action, JOINT))
    return " against ".join(choice_names(game, {}, player, [number])[0] for player, number in pair)


def _placed(
    count: int, chances: Mapping[tuple[int, int, str], float]
) -> tuple[list[float], list[int]]:
    """Return for each node the average number of visits, if the game starts at node 0, and its
    layer: the smallest number of edges from node 0. A node that cannot be reached is put one layer
    above the highest of its children. The visits solve x(y) = [y is 0] + sum of x(z) P(z, y)."""
    steps, start = np.zeros((count, count)), np.eye(count)[0]
    for (source, target, _), chance in chances.items():
        steps[source, target] += chance
    reach = np.linalg.solve(np.eye(count) - steps.T, start)
    edges, layer, now, depth = steps > 0, np.full(count, count), start > 0, 0
    while now.any():
        layer[now] = depth
        now, depth = edges[now].any(axis=0) & (layer == count), depth + 1
    while True:
        highest = np.where(edges, layer, count).min(axis=1)
        now = (layer == count) & (highest < count)
        if not now.any():
            break
        layer[now] = np.maximum(highest[now] - 1, 0)
    return reach.tolist(), np.where(layer < count, layer, 0).tolist()
