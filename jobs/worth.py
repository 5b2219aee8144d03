"""What every action of a state is worth under optimal play, from wherever that can be had soonest:

1. a complete table of this very board that holds the state where play begins;
2. the game's tiers, solved here and kept in memory, where they are few rows of float64;
3. a search of all that lies below that state, up to a limit.

Each holds every state that a play can come to, for it holds all successors of what it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from luckbase.cluster.table.lines import SEARCH, TIERS
from luckbase.jobs.terminal import render
from luckbase.solver.errors import SearchLimitError, TableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Layout, hints, plain, simplify
from luckbase.solver.game.game import Game
from luckbase.solver.graph.bellman import (
    ActionValues,
    Expanded,
    evaluate,
    expand,
    final_payoffs,
    payoffs_of,
)

MOST_ROWS = 20_000_000
"""Rows of all tiers that are solved in memory: seconds, and 8 bytes each."""
ROUGHLY = 4
"""How many times the states that a search meets a game may guess beforehand."""
A_WHILE = 2.0
"""Predicted seconds of a solve in memory that a person is told of."""

Look = Callable[[Ints], Floats]
"""The payoffs (n, players) of canonical states (n, fields)."""


@dataclass(frozen=True)
class Worth:
    """Payoffs under optimal play. error: the bound on that of each; game: the one whose states
    `look` takes, the `plain` one of what is played; source: where they come from, for people."""

    look: Look
    error: float
    game: Game
    source: str

    def of(self, edges: Expanded) -> ActionValues:
        """The payoffs of every action of expanded states."""
        return evaluate(edges, self.look(simplify(self.game, edges.children)))


def find_worth(
    game: Game, file: str, root: Ints, results: Path, max_states: int, tables: ExitStack
) -> Worth:
    """What actions are worth from `root` (fields,) on; `tables` closes what is opened.

    Raises SearchLimitError where neither a table nor the memory has room, before any long work
    where the game knows that, and names the command that makes a table of the board, `file` and
    options.
    """
    bare = plain(game)
    root = simplify(bare, root.reshape(1, -1))[0]
    found = _table(bare, root, results, tables)
    # A board that its own rules keep from having tiers (plays that never end) is refused here.
    layout = bare.need(Layout) if Layout in bare.rules.capabilities else None
    if found is None and layout is not None and _few(layout, root):
        found = _tiers(layout)
    if found is None:
        found = _search(bare, file, root, max_states)
    return found


def _table(game: Game, root: Ints, results: Path, tables: ExitStack) -> Worth | None:
    """A complete table on disk of exactly this board, with all that lies below the root."""
    from luckbase.cluster.table.find import table_of
    from luckbase.cluster.table.part import worth
    from luckbase.cluster.table.table import open_table

    try:
        path = table_of(game.board, results)
        if path is None:
            return None
        table = tables.enter_context(open_table(path, named_by_board=True))
    except TableError:  # `status` says so
        return None
    # A part that ends at another table, or was cut, does not hold all that lies below.
    for part in table.parts:
        if (
            part.name in (TIERS, SEARCH)
            and worth(game, part.look, root.reshape(1, -1), game.tie_tolerance)[1][0]
        ):
            return Worth(table.worth, part.error, game, f"the table of {table.origin}")
    return None


def _few(layout: Layout[Any], root: Ints) -> bool:
    """Whether the tiers are few rows of float64 and hold all that the root leads to."""
    if layout.payoff_type is not np.float64 or sum(map(layout.rows, layout.tiers())) > MOST_ROWS:
        return False
    return _inside(layout, root)


def _inside(layout: Layout[Any], root: Ints) -> bool:
    """Whether the full table holds the root, or else all that it leads to."""
    if layout.why_outside(root) is None:
        return True
    children = expand(layout.game, root.reshape(1, -1)).children
    return all(layout.why_outside(child) is None for child in children)


def _tiers(layout: Layout[Any]) -> Worth:
    """Every tier solved as `solve` does, kept in memory."""
    payoffs: dict[Any, Floats] = {}
    error = 0.0
    seconds = sum(map(layout.tier_seconds, layout.tiers()))
    if seconds > A_WHILE:
        render.say(
            f"{layout.game.board.name}: solving it first, in memory: {render.duration(seconds)}"
        )
    for tier in layout.tiers():
        out, parts = np.empty(layout.shape(tier)), layout.parts(tier)
        for part, (start, stop) in enumerate(parts):
            rows = out if len(parts) == 1 else out[start:stop]
            error = max(
                error, layout.solve_tier(tier, rows, payoffs.__getitem__, lambda: False, part)
            )
        payoffs[tier] = out
    of_number = layout.tier_of_number()

    def look(states: Ints) -> Floats:
        numbers, rows = layout.locate(states)
        found = np.zeros((len(states), layout.game.players))
        over = numbers < 0
        if over.any():
            found[over] = final_payoffs(layout.game, states[over])
        held = np.isin(numbers, list(of_number))
        for x in np.flatnonzero(held):
            tier, row = of_number[int(numbers[x])], int(rows[x])
            block = layout.block_rows(tier)
            start = row // block * block
            columns = layout.payoff_rows(tier, payoffs[tier], start, start + block)
            found[x] = [column[row - start] for column in columns]
        swapped = held & layout.swapped(states)
        found[swapped] = found[swapped][:, ::-1]
        between = ~(over | held)  # in no tier, one step above what is
        if between.any():
            edges = expand(layout.game, np.ascontiguousarray(states[between]))
            q = evaluate(edges, look(edges.children))
            found[between] = payoffs_of(edges.kinds, edges.actors, q, layout.game.tie_tolerance)
        return found

    return Worth(look, error, layout.game, "all tiers, solved just now")


def _search(game: Game, file: str, root: Ints, max_states: int) -> Worth:
    from luckbase.solver.graph.game_graph import Graph
    from luckbase.solver.graph.keys import pack_all

    layout = game.get(Layout)
    tiered = layout if layout is not None and _inside(layout, root) else None
    below = "" if tiered else f" --from {render.fields(game.describe(root))}"
    table = f"solve a table first: luckbase solve {file}{below}"
    below_root = hints(game).states_below
    guess = 0.0 if below_root is None else below_root(root)
    if guess > ROUGHLY * max_states:
        smaller = f"; take {tiered.smaller} or " if tiered else "; give a state nearer the end, or "
        raise SearchLimitError(
            f"board {game.board.name}: some {render.count(guess)} states are too many to solve "
            f"before a play{smaller}{table}"
        )
    graph = Graph(game, max_states=max_states)
    try:
        graph.solve(root.reshape(1, -1))
    except SearchLimitError as error:
        raise SearchLimitError(f"{error}; give a state nearer the end, or {table}") from None

    def look(states: Ints) -> Floats:
        numbers = graph.look_up(pack_all(game.bits, states))
        assert numbers.min() >= 0, "a state that does not lie below the root"
        values: Floats = graph.values[numbers]
        return values

    return Worth(look, graph.error, game, "a search of all that lies below")
