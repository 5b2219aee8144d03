"""The effect of a table's grid on decisions and payoffs, measured against finer tables of the
board.

`measure_grids` draws states from the coarser table, equally many at each level (the first field of
the table's tiers, such as the spins left), and looks each up in the finest table that reaches as
far. Payoffs are compared with the finest table that stores them at that level. If there is none,
both tables' decisions are followed from some of the states. The result is ``grid.json`` in the
folder of the coarser table. The file names the compared tables and is valid only for these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.cluster.answers.moves import follow
from luckbase.cluster.answers.part_kinds import TierPart
from luckbase.cluster.store import GRID
from luckbase.cluster.store.manifest import adapter
from luckbase.cluster.store.storage import storage_at
from luckbase.solver.board.model import Board, options_of
from luckbase.solver.errors import LuckbaseError, SearchLimitError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.result import Result
from luckbase.solver.search.bellman import action_starts
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import many

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table

SAMPLE = 4_000
"""Number of states drawn at each level."""
FOLLOWED, AT_ONCE = 1_000, 25
"""Maximum numbers of states from which decisions are followed at each level, and at a time."""
MAX_STATES = 2_000_000
"""At each level, decisions are followed from more states until they lead to this many."""


@dataclass(frozen=True)
class PayoffError(Result):
    """The effect of a grid on payoffs, in a sample of states."""

    finer: int  # the unit of the finer grid
    states: int  # number of compared states
    mean: float
    largest: float
    """The mean and the largest difference, of the player with the largest."""
    stderr: float  # standard error of `mean`
    followed: bool
    """True if decisions were followed to stored payoffs, False if the payoffs are stored."""


@dataclass(frozen=True)
class LevelError(Result):
    """The effect of a grid at a level, in a sample of states."""

    level: int  # such as 8 spins left
    finer: int  # the unit of the finer grid
    decisions: int  # number of compared decisions
    differ: float  # share of these that differ
    payoffs: PayoffError | None  # None if no state could be compared


def measure_grids(tables: Sequence[Table], on_note: Callable[[str], None]) -> None:
    """Compare each finished table of a board with the finer ones and store the results with the
    coarser table, unless they were compared before. The finest is first.

    on_note: called with a sentence before a comparison, which can take minutes.
    """
    finer: list[Table] = []
    for table in tables:
        if not table.manifest.complete or table.full is None:
            continue
        compared = [[each.identity, each.manifest.rows] for each in (table, *finer)]
        if finer and not grid_errors(table.where, table.identity, compared):
            unit, value = unit_of(table.game.board)
            on_note(f"comparing the table of {unit}={value} with those of finer grids")
            levels = [each.as_json() for each in _compared(table, finer)]
            content = {"tables": compared, "sample": SAMPLE, "levels": levels}
            storage_at(table.where).put(GRID, json.dumps(content).encode())
        finer.append(table)


def grid_errors(
    path: Path, identity: str, compared: list[list[Any]] | None = None
) -> list[LevelError]:
    """Return the measured errors of the table in a folder, by level; empty if not measured, or not
    with the tables `compared`: the identity and rows of each."""
    try:
        content = json.loads(storage_at(path).read_tagged(GRID)[0])
        tables = content["tables"]
        if tables[0][0] != identity or compared not in (None, tables):
            return []
        return adapter(list[LevelError]).validate_python(content["levels"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError, LuckbaseError):
        return []


def unit_of(board: Board) -> tuple[str, int]:
    """Return the option that rounds a board's amounts, and its value."""
    unit = type(board).grid[0]
    return unit, options_of(board)[unit][0]


def levels_of(table: Table) -> dict[int, list[tuple[TierPart, int]]]:
    """Return the files of each level of a full table: the part, and the file's number in it."""
    by_level: dict[int, list[tuple[TierPart, int]]] = {}
    for part in filter(None, (table.full, table.decided)):
        for i, entry in enumerate(part.entries):
            by_level.setdefault(part.level_of(entry), []).append((part, i))
    return by_level


def _compared(coarse: Table, finer: list[Table]) -> list[LevelError]:
    """Return the effect of a grid at each level that a finer table also has. finer: finest
    first."""
    rng, errors = np.random.default_rng(0), list[LevelError]()
    levels = [levels_of(table) for table in finer]
    for level, files in sorted(levels_of(coarse).items()):
        having = [(t, has[level]) for t, has in zip(finer, levels, strict=True) if level in has]
        if not having:
            continue
        states, (fine, _) = with_choice(coarse, draw_at(files, rng)), having[0]
        paid = next((t for t, has in having if _paid(has) and _paid(files)), None)
        ours, others = _shared(coarse, fine, states)
        pairs = zip(coarse.stored_best(ours), fine.stored_best(others), strict=True)
        both = [(one, other) for one, other in pairs if one is not None and other is not None]
        differ = sum(one != other for one, other in both) / max(len(both), 1)
        payoffs = _payoff_error(coarse, paid or fine, states, rng, followed=paid is None)
        errors.append(LevelError(level, unit_of(fine.game.board)[1], len(both), differ, payoffs))
    return errors


def _paid(files: list[tuple[TierPart, int]]) -> bool:
    return any(part.paid for part, _ in files)


def _shared(coarse: Table, fine: Table, states: Ints) -> tuple[Ints, Ints]:
    """Return the states (n, fields) of the coarser table that the finer one has too, as states of
    each."""
    others, shared = fine.game.known_states(coarse.game.fields.values(states))
    return states[shared], others


def _payoff_error(
    coarse: Table, fine: Table, states: Ints, rng: np.random.Generator, followed: bool
) -> PayoffError | None:
    """Return how the payoffs of two tables differ at states (n, fields) of the coarser one. If
    `followed`, decisions of both are followed, from `FOLLOWED` of the states or fewer: near the
    start of a round, one state can lead to more than there is memory for."""
    ours, others = _shared(coarse, fine, states)
    apart = list[Floats]()
    if not followed:
        (first, known), (second, known_too) = coarse.get_many(ours), fine.get_many(others)
        apart = [(first - second)[known & known_too]]
    else:
        drawn, met, count = rng.permutation(len(ours))[:FOLLOWED], 0, 1
        with suppress(SearchLimitError):
            while len(drawn) and met < MAX_STATES:
                at, drawn, count = drawn[:count], drawn[count:], min(2 * count, AT_ONCE)
                (first, one), (second, other) = (
                    follow(coarse, ours[at], 2 * MAX_STATES),
                    follow(fine, others[at], 2 * MAX_STATES),
                )
                met += max(len(one.chain.keys), len(other.chain.keys))
                apart.append(first - second)
    off = np.abs(np.concatenate([np.empty((0, coarse.game.players)), *apart])).max(axis=1)
    if len(off) < 2:
        return None
    mean, largest, error = float(off.mean()), float(off.max()), off.std(ddof=1)
    error = float(error) / math.sqrt(len(off))
    return PayoffError(unit_of(fine.game.board)[1], len(off), mean, largest, error, followed)


def draw_at(files: list[tuple[TierPart, int]], rng: np.random.Generator) -> Ints:
    """Return states (k, fields) drawn uniformly from the rows of files."""
    rows = np.array([part.entries[i].rows for part, i in files])
    counts = rng.multinomial(SAMPLE, rows / rows.sum())
    drawn = [
        part.states_at(i, np.unique(rng.integers(0, size, count)))
        for (part, i), size, count in zip(files, rows.tolist(), counts.tolist(), strict=True)
        if count
    ]
    return np.concatenate(drawn)


def with_choice(table: Table, states: Ints) -> Ints:
    """Select the states (n, fields) with a choice."""
    owner, at = action_starts(expand(table.game, states))
    chosen: Ints = states[np.bincount(owner[at], minlength=len(states)) > 1]
    return chosen


# --- in words ------------------------------------------------------------------------------------


def level_text(error: LevelError, unit: str, option: str) -> str:
    """Return a grid's effect at a level: ``9.1% of decisions with 1 spin left (of 1,331), payoffs
    by 0.015 …``. unit: the level's name in the plural. option: it sets the grid."""
    left = many(error.level, unit.removesuffix("s"))
    text = f"{100 * error.differ:.1f}% of decisions with {left} left (of {error.decisions:,})"
    if (by := error.payoffs) is not None:
        how = f"by following decisions from {by.states:,} states" if by.followed else "as stored"
        against = f" against {option}={by.finer}" * (by.finer != error.finer)
        text += f", payoffs{against} by {by.mean:.2g} (± {by.stderr:.1g}) on average "
        text += f"and {by.largest:.2g} at most ({how})"
    return text


def grid_lines(path: Path, identity: str, board: Board) -> list[str]:
    """Return a line for each finer grid that a table was compared with, or that it was not
    compared; none for a board without grids."""
    if not type(board).grid:
        return []
    unit, value = unit_of(board)
    errors = grid_errors(path, identity)
    if not errors:
        return [f"{unit}={value}: grid error not measured"]
    return [
        f"{unit}={value} against {unit}={each.finer}: it changes {level_text(each, 'spins', unit)}"
        for each in errors
    ]


def grid_notes(table: Table) -> Callable[[Ints], str]:
    """Return a function that describes how far the answer to a canonical state (fields,) is from
    the board's own; "" without grids."""
    board, full = table.game.board, table.decided or table.full
    if not type(board).grid:
        return lambda state: ""
    unit, value = unit_of(board)
    rounded = f"of the board as rounded, {unit}={value}"
    if full is None or not table.in_files:
        return lambda state: f"{rounded}; grid error not measured"
    layout, tiers = full.layout, full.tier_of_number
    errors = {each.level: each for each in grid_errors(table.where, table.identity)}

    def note(state: Ints) -> str:
        tier = tiers.get(int(layout.locate(state.reshape(1, -1))[0][0])) if errors else None
        if tier is not None:
            name, level = next(iter(layout.tier_fields(tier).items()))
            if (error := errors.get(level)) is not None:
                changes = level_text(error, name, unit)
                return f"{rounded}; against {unit}={error.finer} this grid changes {changes}"
        return f"{rounded}; grid error not measured"

    return note
