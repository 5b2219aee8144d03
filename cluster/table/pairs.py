"""The states that two tables have in common, a piece at a time, and what each says of them; and
which can come up at all.

The states of the table with fewer are looked up in the other; files whose rows are the same states
in the same order are read side by side, several pieces at once on several cores. Nothing is in
memory but some pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from luckbase.cluster.table.frames import roots_of
from luckbase.cluster.table.ledger import FileEntry
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.parquet import labelled, number_rows, numbers_of
from luckbase.cluster.table.parts import Part, Rows
from luckbase.cluster.table.tiers import TierPart
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.keys import unpack_all

R = TypeVar("R")

MIN_CHANCE = 1e-9
"""With which a strategy takes an action, or it does not."""
PIECE_GROUPS = 4
"""Row groups that are read side by side at a time."""
LISTED = 200_000
"""Of listed states, that are looked up at a time."""


@dataclass(frozen=True)
class Pair:
    """n states that both tables hold."""

    rows: int
    """That were looked at, in the table with fewer."""
    only: tuple[int, int]
    """Of these, that the first and that the second table alone holds."""
    states: tuple[Callable[[Ints], Ints], Callable[[Ints], Ints]]
    """Give the states (k, fields) at numbers (k,) below n, as the first and the second game has
    them."""
    values: tuple[Floats, Floats]
    """float (n, players) of each table."""
    best: tuple[Ints, Ints]
    """int64 (n,) of each, into `names`, -1 for none."""
    names: Sequence[str]
    margins: Floats | None = None
    """float (n,), the first table's, where it has them."""
    tier: int | None = None
    """All that belongs to one tier of the table with fewer comes together; None without tiers."""


Pairs = Iterator[Pair | Callable[[], Pair]]
"""Pairs, and what makes one, at any time and beside others."""


def in_order(pairs: Pairs, work: Callable[[Pair], R], threads: int) -> Iterator[R]:
    """`work` on every pair, in their order, a few of them at once."""

    def run(pair: Pair | Callable[[], Pair]) -> R:
        return work(pair if isinstance(pair, Pair) else pair())

    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for pair in pairs:
                waiting.append(pool.submit(run, pair))
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def parts_of(table: Lookup) -> list[Part]:
    """The parts that stand for a table: the full table, or what there is without one."""
    return [table.full] if table.full is not None else table.parts


def rows_of(table: Lookup) -> int:
    """The rows of these."""
    return sum(part.rows for part in parts_of(table))


def all_pairs(first: Lookup, second: Lookup) -> Pairs:
    """Every state of the table with fewer (of equal ones the first)."""
    swapped = rows_of(second) < rows_of(first)
    small, large = (second, first) if swapped else (first, second)
    other = large.full
    entries = other.entries if isinstance(other, TierPart) else []
    alike = {(e.tier, e.first_key, e.rows, e.row_group_rows): e for e in entries}
    for part in parts_of(small):
        if not isinstance(part, TierPart):
            for rows in part.scan():
                yield _look_up((first, second), swapped, rows)
            continue
        for entry in part.entries:
            same = alike.get((entry.tier, entry.first_key, entry.rows, entry.row_group_rows))
            if same is not None and isinstance(other, TierPart) and part.stands_alike(entry, other):
                sides = (part, entry), (other, same)
                yield from _side_by_side(sides[::-1] if swapped else sides)
            else:
                for rows in part.scan([entry]):
                    yield _look_up((first, second), swapped, rows, entry.tier)


def drawn_pairs(first: Lookup, second: Lookup, sample: int, seed: int) -> Pairs:
    """States of the table with fewer, drawn evenly."""
    swapped = rows_of(second) < rows_of(first)
    small = second if swapped else first
    for states in small.draw(sample, seed):
        yield _look_up((first, second), swapped, _rows_at(small, states))


def listed_pairs(first: Lookup, second: Lookup, states: Ints) -> Pairs:
    """Of canonical states (n, fields) of the first table those that either holds."""
    for start in range(0, len(states), LISTED):
        here = states[start : start + LISTED]
        theirs, known = second.game.known_states(first.game.fields.values(here))
        held = first.holds(here), np.zeros(len(here), bool)
        held[1][known] = second.holds(theirs)
        only = int((held[0] & ~held[1]).sum()), int((held[1] & ~held[0]).sum())
        pair = _look_up((first, second), False, _rows_at(first, here[held[0] & held[1]]))
        yield replace(pair, rows=pair.rows + sum(only), only=only)


# --- side by side --------------------------------------------------------------------------------

File = tuple[TierPart, FileEntry]


def _side_by_side(files: tuple[File, File]) -> Pairs:
    entry = files[0][1]
    groups = -(-entry.rows // entry.row_group_rows)
    for part, same in files:
        part.groups.file(part.entries.index(same))  # opened by one thread
    for start in range(0, groups, PIECE_GROUPS):
        span = range(start, min(start + PIECE_GROUPS, groups))
        yield partial(_read_side_by_side, files, span)


def _read_side_by_side(files: tuple[File, File], span: range) -> Pair:
    names: list[str] = []
    values, best, states, margins = [], [], [], None
    for i, (part, entry) in enumerate(files):
        file = part.groups.reopen(part.entries.index(entry))
        wanted = [*part.columns, "best"]
        if i == 0 and "margin" in file.names:
            wanted.append("margin")
        read = file.read_all(list(span), wanted)
        file.close()
        values.append(number_rows(read, part.columns))
        codes, labels = labelled(read.column("best").unify_dictionaries())
        best.append(np.append(coded(labels, names), -1)[codes])
        if "margin" in read.column_names:
            margins = numbers_of(read.column("margin"))
        first = entry.first_row + span[0] * entry.row_group_rows
        states.append(partial(_states_from, part, part.tier_of_number[entry.tier], first))
    tier = files[0][1].tier
    return Pair(
        len(values[0]), (0, 0), (states[0], states[1]), (values[0], values[1]), (best[0], best[1]),
        names, margins, tier,
    )  # fmt: skip


def _states_from(part: TierPart, tier: Any, first: int, at: Ints) -> Ints:
    return part.layout.states_at(tier, first + at)


# --- looked up -----------------------------------------------------------------------------------


def _rows_at(table: Lookup, states: Ints) -> Rows:
    """The rows of canonical states (n, fields) that a table holds."""
    names: list[str] = []
    best = coded(table.stored_best(states), names).astype(np.int16)
    return Rows(states.__getitem__, table.probe(states), best, tuple(names))


def _look_up(
    tables: tuple[Lookup, Lookup], swapped: bool, rows: Rows, tier: int | None = None
) -> Pair:
    """The pair of stored rows: the other table is looked up state by state."""
    small, large = tables[::-1] if swapped else tables
    n, players = len(rows.values), small.game.players
    mine, names = rows.states(np.arange(n)), list(rows.labels)
    theirs, held = large.game.known_states(small.game.fields.values(mine))
    values, found = np.empty((0, players)), np.zeros(0, bool)
    if held.any():
        values, found = large.lookup(theirs)
    held[held] = found
    mine, theirs = mine[held], theirs[found]
    best = coded(large.stored_best(theirs) if len(theirs) else (), names)
    sides = (
        (mine.__getitem__, rows.values[held, :players], rows.best[held].astype(np.int64)),
        (theirs.__getitem__, values[found], best),
    )
    one, two = sides[::-1] if swapped else sides
    only = (0, n - len(mine)) if swapped else (n - len(mine), 0)
    return Pair(n, only, (one[0], two[0]), (one[1], two[1]), (one[2], two[2]), names, None, tier)


def coded(best: Sequence[str | None], names: list[str]) -> Ints:
    """Best actions as numbers in `names`, which grows by those that are new; -1 for none."""
    places: dict[str | None, int] = {name: i for i, name in enumerate(names)} | {None: -1}
    for name in best:
        if name not in places:
            places[name] = len(names)
            names.append(str(name))
    return np.array([places[name] for name in best], np.int64)


# --- what can come up ----------------------------------------------------------------------------


def reachable(first: Lookup, second: Lookup, start: Any) -> tuple[Ints, int]:
    """The states, as the first game has them, that can come up from `start` (or the game's own)
    under best play of either table, those that are over left out; and how many more the second
    game alone has. In memory are 8 bytes for each field of each.

    Raises MissingTableError for a start, or a state below it, that a table neither holds nor
    reaches by one step.
    """
    met, more = _reached(first, start), _reached(second, start)
    same, known = first.game.known_states(second.game.fields.values(more))
    return np.unique(np.concatenate([met, same]), axis=0), int((~known).sum())


def _reached(table: Lookup, start: Any) -> Ints:
    """Of tied actions the stored one is taken."""
    from luckbase.solver.policy.chain import walk_profile

    game, policy, roots = table.game, table.agent(), roots_of(table.game, start)
    roots = game.needed_start() if roots is None else roots

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        chances = policy.decide(game, player, states, actions)
        return [np.where(each > MIN_CHANCE, each, 0.0) for each in chances]

    everybody = [decide] * game.players
    walk = walk_profile(
        game, roots.reshape(-1, game.field_count), everybody, np.iinfo(np.int32).max
    )
    alive = [keys[counts > 0] for keys, (counts, *_) in walk]  # who is over leads nowhere
    found: Ints = unpack_all(game.bits, np.sort(np.concatenate(alive)))
    return found
