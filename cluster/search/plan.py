"""Plan a search: the number of states below its roots, and the memory, disk space and time they
take.

States are counted for at most ten seconds. Bytes and seconds follow from the constants below, which
were measured on the games.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from luckbase.cluster.machine import PROCESS_BYTES, cores
from luckbase.cluster.search.shards import FIND_BYTES, SHARD_STATES, SWEEP_BYTES
from luckbase.cluster.search.solve import PIECE_BYTES
from luckbase.cluster.solve.options import ONE_PIECE
from luckbase.cluster.solve.plan import Planned
from luckbase.cluster.store.manifest import table_directory
from luckbase.cluster.store.storage import is_uri
from luckbase.solver.compiled import compiling_seconds
from luckbase.solver.errors import SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import Level
from luckbase.solver.search.expand import OVER, Explorer, expand
from luckbase.solver.search.game_graph import edge_memory
from luckbase.solver.search.keys import Keys, pack_all, unpack_all
from luckbase.solver.search.stages import Stages

PAYOFF_BYTES, OTHER_BYTES = 5, 7
"""Bytes of a row on disk for each player's payoff, and for everything else including fields.
Measured: 17 to 21 in Press Your Luck (three players), 11 to 13 in Goofspiel (8 and 7 cards), 16 to
19 in Skunk and Pig, 13 in Jackpot (one player)."""
RUN_BYTES, EDGE_BYTES = 6, 0.65
"""Bytes on disk between the two passes: for each state if states are found in runs (Press Your
Luck: 3.5 to 5.2), otherwise for each of the `max_edges` of a state (Goofspiel, 8 and 9 cards: 0.54
to 0.63)."""
STAGE_SECONDS, PIECE_SECONDS, AT_ONCE_SECONDS, CIRCLES_SECONDS = 1e-6, 1.6e-6, 8e-6, 35e-6
"""Core seconds for each state, including the table: by stages; in one piece; for games with
simultaneous moves (Goofspiel: 4.9e-6 with 9 cards, 10e-6 with 11); for games with cycles (Pig:
17e-6; Pig with two dice, and Skunk: 70e-6)."""
SAMPLED, STEPS, MAX_MET = 32, 6, 2000
"""Cycles are looked for from this many sampled states, this many steps deep, while no more than
this many states are visited."""
WORKERS_SHARE = 0.85
"""The efficiency of each worker if there are two or more."""
COUNTED_STATES, COUNTED_SECONDS = 3_000_000, 10.0
"""The most states, and the most seconds without compiling, that a plan spends on counting."""


@dataclass(frozen=True)
class Count:
    states: int  # that a table stores; if not `is_exact`, those met so far
    is_exact: bool
    keys: Keys  # (k,), the states that were met


def count_below(game: Game, roots: Ints) -> Count:
    """Count the states at and below canonical roots (m, fields), up to the limits of a plan.

    Raises the errors of `Explorer` except SearchLimitError.
    """
    started = time.perf_counter() - compiling_seconds()
    explorer = Explorer(game, roots, max_states=COUNTED_STATES)
    try:
        while explorer.deeper():
            if time.perf_counter() - compiling_seconds() - started > COUNTED_SECONDS:
                return Count(_stored(game, explorer.keys), False, explorer.keys)
    except SearchLimitError:
        met = _stored(game, explorer.keys) if game.turn.size else COUNTED_STATES
        return Count(met, False, explorer.keys)
    return Count(_stored(game, explorer.keys[explorer.kinds != OVER]), True, explorer.keys)


def _stored(game: Game, keys: Keys) -> int:
    """Return how many of these states a table stores: those between turns if the game has turns."""
    if not game.turn.size:
        return len(keys)
    return int(np.count_nonzero(~game.within_turn(unpack_all(game.strides, keys))))


def planned_search(game: Game, keys: Keys, results: Path, workers: int | None = None) -> Planned:
    """Plan a search below the states with these keys. Raises as `count_below` does."""
    roots = unpack_all(game.strides, keys)
    slots, count = workers or cores(), count_below(game, roots)
    states = count.states
    level = game.level if states > ONE_PIECE or not count.is_exact else None
    if level is None:
        levels: int | None = 0
        between, used, memory = 0, 1, PROCESS_BYTES + edge_memory(game) + PIECE_BYTES * states
    else:
        numbers = np.unique(Stages(game, level).of(count.keys) >> np.uint64(32))
        levels = len(numbers) if count.is_exact else None
        between_bytes = RUN_BYTES if level.inside else EDGE_BYTES * game.max_edges
        between, used = round(between_bytes * states), slots
        shard = max(FIND_BYTES, SWEEP_BYTES) * min(states, SHARD_STATES) + edge_memory(game)
        memory = PROCESS_BYTES + used * shard
    seconds = (len(count.keys) if game.turn.size else states) * _state_seconds(
        game, level, count.keys
    )
    seconds /= 1.0 if used == 1 else WORKERS_SHARE * used
    table = table_directory(results.absolute(), game)
    table_bytes = states * (PAYOFF_BYTES * game.players + OTHER_BYTES)
    # Stage files are on this machine's disk. In a folder, the table grows while they shrink.
    needed = between if is_uri(table) else table_bytes + between // 2
    return Planned(
        game.board.name, states, count.is_exact, levels, table_bytes, between, memory, seconds,
        used, table, "states nearer the end", disk_bytes=needed,
    )  # fmt: skip


def _state_seconds(game: Game, level: Level | None, keys: Keys) -> float:
    if game.simultaneous:
        return AT_ONCE_SECONDS
    strict = level is not None and level.strict
    if not strict and goes_in_circles(game, keys):
        return CIRCLES_SECONDS
    return PIECE_SECONDS if level is None else STAGE_SECONDS


def goes_in_circles(game: Game, keys: Keys) -> bool:
    """True if at least a quarter of a sample of states can return to themselves through other
    states within `STEPS` moves."""
    sample = keys[:: max(1, len(keys) // SAMPLED)]
    return 4 * sum(_comes_back(game, key) for key in sample) >= len(sample)


def _comes_back(game: Game, key: np.uint64) -> bool:
    visited = last = np.array([key], np.uint64)
    for step in range(STEPS):
        below = expand(game, unpack_all(game.strides, last)).below
        after = np.unique(pack_all(game.strides, below))
        if step and key in after:
            return True
        last = np.setdiff1d(after, visited, assume_unique=True)
        visited = np.union1d(visited, last)
        if not len(last) or len(visited) > MAX_MET:
            break
    return False
