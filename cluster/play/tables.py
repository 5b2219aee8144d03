"""The tables of a play: those that play in it, and one that prices every action.

The latter comes from wherever it can be had soonest:

1. a complete table of this very board that holds the state where play begins;
2. the game's tiers, solved here and kept in memory, where they are few rows of float64;
3. a search of all that lies below that state, up to a limit.

Each holds every state that a play can come to, for it holds all children of what it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from luckbase.cluster import words
from luckbase.cluster.play.agents import Opener, TableAgent
from luckbase.cluster.play.game import Play, PlayOptions, begin
from luckbase.cluster.table.find import table_of, table_used
from luckbase.cluster.table.ledger import SEARCH, TIERS
from luckbase.cluster.table.parts import lookup_or_backup
from luckbase.cluster.table.table import (
    StoredTable,
    Table,
    open_table,
    search_in_memory,
    tiers_in_memory,
)
from luckbase.solver.board.model import Board
from luckbase.solver.errors import SearchLimitError, TableError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Layout, hints, plain, simplify
from luckbase.solver.game.game import Game
from luckbase.solver.search.expand import expand

MAX_ROWS = 20_000_000
"""Rows of all tiers that are solved in memory: seconds, and 8 bytes each."""
ROUGHLY = 4
"""How many times the states that a search meets a game may guess beforehand."""
A_WHILE = 2.0
"""Predicted seconds of a solve in memory that a person is told of."""


def soonest(
    game: Game, root: Ints, results: Path, max_states: int, file: str = "BOARD",
    on_note: Callable[[str], None] = lambda text: None,
) -> Table:  # fmt: skip
    """A table, of the `plain` game, that prices what can happen from `root` (fields,) on.

    Raises SearchLimitError where neither a table nor the memory has room, before any long work
    where the game knows that, and names the command that makes a table of the board, `file` and
    options. on_note: told where it takes a while.
    """
    bare = plain(game)
    root = simplify(bare, root.reshape(1, -1))[0]
    stored = _stored(bare, root, results)
    if stored is not None:
        return stored
    # A layout that this board can not have says why; without it the search would end in a cycle.
    layout = bare.need(Layout) if Layout in bare.rules.capabilities else None
    few = layout is not None and sum(map(layout.rows, layout.tiers())) <= MAX_ROWS
    if layout and few and layout.payoff_type is np.float64 and _inside(layout, root):
        seconds = sum(map(layout.tier_seconds, layout.tiers()))
        if seconds > A_WHILE:
            said = words.duration(seconds)
            on_note(f"{bare.board.name}: solving it first, in memory: {said}")
        return tiers_in_memory(layout)
    return searched(bare, root, max_states, file)


def _stored(game: Game, root: Ints, results: Path) -> StoredTable | None:
    """A complete table on disk of exactly this board, with all that lies below the root."""
    try:
        path = table_of(game.board, results)
        if path is None:
            return None
        table = open_table(path, named_by_board=True)
    except TableError:  # `status` says so
        return None
    # A part that ends at another table does not hold all that lies below.
    for part in table.parts:
        if (
            part.name in (TIERS, SEARCH)
            and lookup_or_backup(game, part.lookup, root.reshape(1, -1), game.tie_tolerance)[1][0]
        ):
            return table
    table.close()
    return None


def _inside(layout: Layout[Any], root: Ints) -> bool:
    """Whether the full table holds the root, or else all that it leads to."""
    if layout.why_outside(root) is None:
        return True
    children = expand(layout.game, root.reshape(1, -1)).children
    return all(layout.why_outside(child) is None for child in children)


def searched(game: Game, root: Ints, max_states: int, file: str = "BOARD") -> Table:
    """All that lies below a state (fields,), in memory. Raises SearchLimitError."""
    layout = game.get(Layout)
    tiered = layout if layout is not None and _inside(layout, root) else None
    below = "" if tiered else f" --from {words.fields(game.describe(root))}"
    table = f"solve a table first: luckbase solve {file}{below}"
    below_root = hints(game).states_below
    guess = 0.0 if below_root is None else below_root(root)
    if guess > ROUGHLY * max_states:
        smaller = f"; take {tiered.smaller} or " if tiered else "; give a state nearer the end, or "
        raise SearchLimitError(
            f"board {game.board.name}: some {words.count(guess)} states are too many to solve "
            f"before a play{smaller}{table}"
        )
    try:
        return search_in_memory(game, root, max_states)
    except SearchLimitError as error:
        raise SearchLimitError(f"{error}; give a state nearer the end, or {table}") from None


def new_play(game: Game, start: Any, results: Path, max_states: int, how: PlayOptions) -> Play:
    """A person's game on a board, priced by what can be had soonest; the play closes what is opened
    for it. Raises as `soonest` and `cluster.play.game.begin`."""
    with ExitStack() as tables:
        opener = how.get("opener", tables_by_name(tables, game.board, results))
        named, on_note = how.get("named", "BOARD"), how.get("on_note", lambda text: None)

        def table_of(game: Game, root: Ints) -> Table:
            return tables.enter_context(soonest(game, root, results, max_states, named, on_note))

        play = begin(game, start, table_of, {**how, "opener": opener})
        play.tables = tables.pop_all()
        return play


def tables_by_name(open_tables: ExitStack, board: Board, results: Path) -> Opener:
    """Opens the table that an agent's name means on a board, once: a directory whose name has a
    slash, or a board file, whose table under `results` it is; `open_tables` closes it."""

    @cache
    def opener(name: str) -> TableAgent | None:
        path = Path(name)
        if ("/" in name and path.is_dir()) or (path.suffix == ".toml" and path.is_file()):
            return open_tables.enter_context(open_table(table_used(name, board, results)))
        return None

    return opener
