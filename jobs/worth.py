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

from jobs import options, render
from solver.backup import ActionValues, Edges, evaluate, final_payoffs
from solver.errors import SearchLimitError, TableError
from solver.game import Floats, Game, Ints, TieredGame

MOST_ROWS = 20_000_000
"""Rows of all tiers that are solved in memory: seconds, and 8 bytes each."""

Look = Callable[[Ints], Floats]
"""The payoffs (n, players) of canonical states (n, fields)."""


@dataclass(frozen=True)
class Worth:
    """Payoffs under optimal play. error: the bound on that of each; fields: how many of a state's
    numbers `look` asks for; the others change nothing."""

    look: Look
    error: float
    fields: int

    def of(self, edges: Edges) -> ActionValues:
        """The payoffs of every action of expanded states."""
        return evaluate(edges, self.look(np.ascontiguousarray(edges.children[:, : self.fields])))


def find_worth(
    game: Game, file: str, root: Ints, results: Path, max_states: int, tables: ExitStack
) -> Worth:
    """What actions are worth from `root` (fields,) on; `tables` closes what is opened.

    Raises SearchLimitError where neither a table nor the memory has room, and names the command
    that makes a table of the board, `file` and options.
    """
    plain = game.plain()
    root = np.ascontiguousarray(root[: plain.field_count])
    found = _table(plain, root, results, tables)
    if found is None and isinstance(plain, TieredGame) and _few(plain, root):
        found = _tiers(plain)
    if found is None:
        found = _search(plain, file, root, max_states)
    return found


def _table(game: Game, root: Ints, results: Path, tables: ExitStack) -> Worth | None:
    """A complete table on disk of exactly this board, with all that lies below the root."""
    from cluster import open_table
    from cluster.manifest import read_manifest, solve_id

    for path in options.tables_in(results):
        if path.parent.parent.name != game.board.game:
            continue
        try:
            manifest = read_manifest(path)
        except TableError:  # `status` says so
            continue
        roots = manifest.roots
        if not manifest.complete or manifest.solve_id != solve_id(game, roots):
            continue
        if roots is not None and (roots.max_depth is not None or roots.using is not None):
            continue  # it ends somewhere below
        table = tables.enter_context(open_table(path))
        if table.why_outside(root) is None and table.holds(root.reshape(1, -1))[0]:
            return Worth(table.probe, table.error, game.field_count)
    return None


def _few(game: TieredGame[Any], root: Ints) -> bool:
    if game.payoff_type is not np.float64 or game.why_outside(root) is not None:
        return False
    return sum(map(game.rows, game.tiers())) <= MOST_ROWS


def _tiers(game: TieredGame[Any]) -> Worth:
    """Every tier solved as `solve` does, kept in memory."""
    payoffs: dict[Any, Floats] = {}
    error = 0.0
    for tier in game.tiers():
        out, parts = np.empty(game.shape(tier)), game.parts(tier)
        for part, (start, stop) in enumerate(parts):
            rows = out if len(parts) == 1 else out[start:stop]
            error = max(
                error, game.solve_tier(tier, rows, payoffs.__getitem__, lambda: False, part)
            )
        payoffs[tier] = out
    of_number = game.tier_of_number()

    def look(states: Ints) -> Floats:
        numbers, rows = game.locate(states)
        found = np.zeros((len(states), game.players))
        over = numbers < 0
        if over.any():
            found[over] = final_payoffs(game, states[over])
        for x in np.flatnonzero(~over):
            tier, row = of_number[int(numbers[x])], int(rows[x])
            block = game.block_rows(tier)
            start = row // block * block
            columns = game.payoff_rows(tier, payoffs[tier], start, start + block)
            found[x] = [column[row - start] for column in columns]
        return found

    return Worth(look, error, game.field_count)


def _search(game: Game, file: str, root: Ints, max_states: int) -> Worth:
    from solver.graph import Graph
    from solver.keys import pack_all

    graph = Graph(game, max_states=max_states)
    try:
        graph.solve(root.reshape(1, -1))
    except SearchLimitError as error:
        where = render.fields(game.describe(root))
        inside = isinstance(game, TieredGame) and game.why_outside(root) is None
        command = f"luckbase solve {file}" + ("" if inside else f" --from {where}")
        raise SearchLimitError(
            f"{error}; give a state nearer the end, or solve a table first: {command}"
        ) from None

    def look(states: Ints) -> Floats:
        numbers = graph.look_up(pack_all(game.bits, states))
        assert numbers.min() >= 0, "a state that does not lie below the root"
        values: Floats = graph.values[numbers]
        return values

    return Worth(look, 0.0, game.field_count)
