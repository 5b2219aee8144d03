"""What a drawing of a game shows: the positions that agents come to, and how they get there.

The chain of a profile (`solver.policy.evaluate`) has a state for every roll and every decision.
With the agents fixed a state with one way on is passed through, so what is left are the positions
before something happens by chance, the root, and the ends of the game; an edge is labelled by the
last action taken on the way. Ends with the same payoffs are one node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats
from luckbase.solver.policy.chain import Chain
from luckbase.solver.sentences import many, option


@dataclass(frozen=True)
class Node:
    """A position: its fields (none for an end of the game), how often plays come there, the payoffs
    of what follows, its layer: the fewest edges from a root; and whether it is an end."""

    fields: dict[str, Any]
    reach: float
    payoffs: tuple[float, ...]
    layer: int
    end: bool


@dataclass(frozen=True)
class Edge:
    """From node to node, by what action, with what chance."""

    source: int
    target: int
    action: str
    chance: float


@dataclass(frozen=True)
class Diagram:
    """Nodes by layer, the root first; edges by source, then target."""

    nodes: list[Node]
    edges: list[Edge]


def draw(chain: Chain, values: Floats, *, all_ends: bool = True, max_nodes: int = 2000) -> Diagram:
    """The diagram of a chain with no choice left, whose states are worth `values` (n, players).

    all_ends: draw every end of the game, or only the one with the highest first payoff.

    Raises OptionError for more than `max_nodes` positions.
    """
    game, over, count = chain.game, chain.over, np.diff(chain.first)
    fields = list(game.fields.names)
    kept = (count > 1) | (np.arange(len(count)) == 0)
    ends: dict[tuple[float, ...], int] = {}
    if int(kept.sum()) > max_nodes:
        raise OptionError(
            f"a drawing of {many(int(kept.sum()), 'position')} can not be read; the most is "
            f"{max_nodes}, as {option('max_nodes')}"
        )
    best = chain.payoffs[over][:, 0].max() if over.any() else 0.0
    reach = chain.reach()
    inner = {int(x): i for i, x in enumerate(np.flatnonzero(kept & ~over))}
    end_reach: dict[tuple[float, ...], float] = {}
    found: dict[tuple[int, int, str], float] = {}
    for x, source in inner.items():
        for k in range(chain.first[x], chain.first[x + 1]):
            y, action = int(chain.children[k]), int(chain.actions[k])
            while not over[y] and y not in inner:
                k_on = int(chain.first[y])
                y, action = int(chain.children[k_on]), int(chain.actions[k_on])
            if over[y]:
                payoffs = tuple(chain.payoffs[y].tolist())
                if not all_ends and payoffs[0] < best:
                    continue
                target = ends.setdefault(payoffs, len(inner) + len(ends))
                share = float(reach[x] * chain.chances[k])
                end_reach[payoffs] = end_reach.get(payoffs, 0.0) + share
            else:
                target = inner[y]
            key = (source, target, game.action_name(action))
            found[key] = found.get(key, 0.0) + float(chain.chances[k])
    total = len(inner) + len(ends)
    layers = _layers(total, set(found))
    nodes = []
    for x, i in inner.items():
        said = game.describe(chain.states(np.array([x]))[0])
        said = {name: said[name] for name in fields if name in said}
        nodes.append(Node(said, float(reach[x]), tuple(values[x].tolist()), layers[i], False))
    for payoffs, i in ends.items():
        nodes.append(Node({}, end_reach[payoffs], payoffs, layers[i], True))
    edges = [Edge(*key, chance) for key, chance in sorted(found.items())]
    return Diagram(nodes, edges)


def _layers(count: int, edges: set[tuple[int, int, str]]) -> list[int]:
    """The fewest edges to each node from one that nothing leads to (or from the first)."""
    below: dict[int, set[int]] = {}
    for source, target, _ in edges:
        below.setdefault(source, set()).add(target)
    led_to = {target for targets in below.values() for target in targets}
    layer = {0: 0}
    now = [0]
    while now:
        now = sorted({t for s in now for t in below.get(s, ()) if t not in layer})
        layer |= dict.fromkeys(now, max(layer.values()) + 1)
    rest = [node for node in range(count) if node not in layer]
    # What no play comes to stands one above the highest that it leads to.
    for _ in range(len(rest) + 1):
        for node in rest:
            known = [layer[t] for t in below.get(node, ()) if t in layer]
            if node not in layer and known:
                layer[node] = max(0, min(known) - 1)
            elif node not in layer and node not in led_to and node not in below:
                layer[node] = 0
    return [layer.get(node, 0) for node in range(count)]
