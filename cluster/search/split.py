"""Where a search is split into shards: which states, and who gets which. No Ray, no disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import shard_keys
from luckbase.solver.game.game import Game
from luckbase.solver.graph.explore import INNER, Explorer
from luckbase.solver.graph.keys import Keys, pack_all, unpack_all

SPLIT_STATES = 20_000
"""At this many states a level is deep enough, however few shards they make."""


@dataclass(frozen=True)
class Split:
    """keys: of the states of the level, ascending. met: of all states down to it. depth: how
    many levels below the roots it lies."""

    keys: Keys
    met: Keys
    depth: int


def find_split(
    game: Game, roots: Ints, depth: int | None, wanted: int, given: Keys, max_states: int
) -> Split:
    """Level `depth` below canonical roots (m, fields), or the last level if there are fewer; None:
    the first level that makes `wanted` shards. States with `given` keys are not expanded.

    Raises SearchLimitError beyond `max_states`.
    """
    ask = None if not len(given) else lambda s: np.isin(pack_all(game.bits, s), given)
    explorer = Explorer(game, roots, held=ask, max_states=max_states)
    while depth is None or len(explorer.first) - 2 < depth:
        if depth is None:
            level = explorer.levels
            keys = level.keys[level.level(level.depth)]
            groups = np.unique(shard_keys(game, unpack_all(game.bits, keys)))
            if len(groups) >= wanted or len(keys) >= SPLIT_STATES:
                break
        if not explorer.deeper():
            break
    levels = explorer.levels
    at = levels.level(levels.depth)
    keys = levels.keys[at][levels.kinds[at] == INNER]
    return Split(np.sort(keys), levels.keys, levels.depth)


def shares(game: Game, level: Keys, wanted: int) -> list[tuple[str, Keys]]:
    """The level's keys in at most `wanted` shards, by `shard_keys`; each with a name that
    says which states it has."""
    groups = shard_keys(game, unpack_all(game.bits, level))
    distinct, which = np.unique(groups, return_inverse=True)
    count = max(1, min(len(distinct), wanted))
    number = which * count // max(1, len(distinct))
    found = [np.ascontiguousarray(level[number == i]) for i in range(count)]
    return [
        ("shard-" + hashlib.sha256(share.tobytes()).hexdigest()[:12], share)
        for share in found
        if len(share)
    ]
