"""Tables in memory: a board solved at once, on one core, without files on disk.

A table in memory has the same files that `cluster.solve.driver` would write, so its answers are
identical to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from luckbase.cluster.answers.keyed import KeyPart
from luckbase.cluster.answers.parts import Part
from luckbase.cluster.answers.table import Table
from luckbase.cluster.answers.tier_part import TierPart
from luckbase.cluster.store import FORMAT
from luckbase.cluster.store.format import Written, tier_files, write_tier
from luckbase.cluster.store.manifest import SEARCH, TIERS, Head, Manifest
from luckbase.cluster.store.payoff_table import solved_rows, write_states
from luckbase.cluster.store.storage import Memory
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import Game

MEMORY = Path("memory")
"""The location of tables in memory."""
MAX_STATES = 20_000_000
"""Default limit of states of a search in memory."""


def _in_memory(
    game: Game, kind: type[Part], name: str, source: str,
    write: Callable[[Memory], Iterator[Written]],
) -> Table:  # fmt: skip
    """Return a table with a single part. write(storage) yields its files."""
    storage = Memory()
    head = Head(FORMAT, game.board.game, game.board.name, "", {}, game.rules_version)
    manifest = Manifest(head)
    for entry, path in write(storage):
        storage.put(entry.name, path)
        storage.close()
        manifest.add(entry)
    return Table(game, [kind(storage, MEMORY, manifest, name, game)], MEMORY, manifest, source)


def tiers_in_memory(layout: FullTable[Any]) -> Table:
    """Solve a full table in memory. It needs up to 8 bytes for each state and player while it is
    solved, and the size of its files afterwards.

    Raises OptionError if the board has no full table, GameError as `check_tiers` does.
    """
    from luckbase.solver.dense import InMemory, check_tiers

    check_tiers(layout)
    tiers = InMemory(layout, best=True)

    def write(storage: Memory) -> Iterator[Written]:
        for tier in list(tiers.payoffs):
            payoffs, best = tiers.payoffs.pop(tier), tiers.best.pop(tier)
            parts, error = layout.parts(tier), tiers.errors[tier]
            for file in tier_files(layout, tier):
                first, last = parts[file.part]
                rows = payoffs if len(parts) == 1 else payoffs[first:last]
                yield write_tier(storage, layout, tier, file, rows, best[first:last], error)

    return _in_memory(layout.game, TierPart, TIERS, "all tiers, solved just now", write)


def search_in_memory(game: Game, roots: Ints, max_states: int = MAX_STATES) -> Table:
    """Solve all states below canonical roots (m, fields) in memory: 60 bytes a state. States inside
    turns are not kept.

    Raises SearchLimitError beyond `max_states`, StateError as `Graph.solve` does.
    """
    from luckbase.solver.search.game_graph import Graph

    graph = Graph(game, max_states=max_states, keeps_turns=False)
    graph.solve(np.ascontiguousarray(roots).reshape(-1, game.field_count))
    rows = solved_rows(graph)
    error = max(game.float64_error, graph.error) + game.cut_error

    def write(storage: Memory) -> Iterator[Written]:
        yield write_states(storage, f"{SEARCH}/all.parquet", game, rows, error)

    return _in_memory(game, KeyPart, SEARCH, "a search of all that lies below", write)
