"""The states that two tables have in common, a piece at a time, and what each says of them; and
which can come up at all.

The states of the table with fewer are looked up in the other; files whose rows are the same states
in the same order are read side by side, several pieces at once on several cores. Nothing is in
memory but some pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.format import start_row
from luckbase.cluster.table.ledger import FileEntry
from luckbase.cluster.table.lookup import Lookup, policy_of
from luckbase.cluster.table.parquet import labelled, number_rows, numbers_of
from luckbase.cluster.table.parts import Part, Rows
from luckbase.cluster.table.tiers import TierPart
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.keys import unpack_all

R = TypeVar("R")

PIECE = 20_000
"""States that are expanded at a time."""
LEAST_CHANCE = 1e-9
"""With which a strategy takes an action, or it does not."""

PIECE_GROUPS = 4
"""Row groups that are read side by side at a time."""
LISTED = 200_000
"""Of listed states, that are looked up at a time."""


@dataclass(frozen=True)
class Pair:
    """n states that both tables hold.

    rows: that were looked at, in the one with fewer. only: of these, that the first and that the
    second table alone holds. states: gives the states (k, fields) at
    numbers (k,) below n, as the first and as the second game has them. values: float (n, players)
    of each table; best: int64 (n,) of each, into `names`, -1 for none. margins: float (n,), the
    first table's, where it has them. tier: all that belongs to one tier of the table with fewer
    comes together; None where there are no tiers.
    """

    rows: int
    only: tuple[int, int]
    states: tuple[Callable[[Ints], Ints], Callable[[Ints], Ints]]
    values: tuple[Floats, Floats]
    best: tuple[Ints, Ints]
    names: Sequence[str]
    margins: Floats | None = None
    tier: int | None = None


@dataclass(frozen=True)
class Piece:
    """Makes a pair when it is called; alone: not beside others."""

    make: Callable[[], Pair]
    alone: bool


def parts_of(table: Lookup) -> list[Part]:
    """The parts that stand for a table: the full table, or what there is without one."""
    return [table.full] if table.full is not None else table.parts


def rows_of(table: Lookup) -> int:
    """The rows of these."""
    return sum(part.rows for part in parts_of(table))


def in_order(pieces: Iterable[Piece], work: Callable[[Pair], R], threads: int) -> Iterator[R]:
    """`work` on every piece, in their order, a few of them at once."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for piece in pieces:
                if piece.alone:
                    while waiting:
                        yield waiting.popleft().result()
                    yield work(piece.make())
                    continue
                waiting.append(pool.submit(_made, piece, work))
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _made(piece: Piece, work: Callable[[Pair], R]) -> R:
    return work(piece.make())


def all_pieces(first: Lookup, second: Lookup) -> Iterator[Piece]:
    """Every state of the table with fewer (of equal ones the first)."""
    swapped = rows_of(second) < rows_of(first)
    small, large = (second, first) if swapped else (first, second)
    for part in parts_of(small):
        other = large.full
        if not isinstance(part, TierPart):
            for rows in part.scan():
                yield _asked(rows, (first, second), swapped)
            continue
        theirs = {} if not isinstance(other, TierPart) else {
            (e.tier, e.first_key, e.rows, e.row_group_rows): e for e in other.entries
        }  # fmt: skip
        for entry in part.entries:
            same = theirs.get((entry.tier, entry.first_key, entry.rows, entry.row_group_rows))
            if same is not None and isinstance(other, TierPart) and part.stands_alike(entry, other):
                one, two = (part, entry), (other, same)
                yield from _beside(*((two, one) if swapped else (one, two)))
            else:
                for rows in part.scan([entry]):
                    yield _asked(rows, (first, second), swapped, entry.tier)


def drawn_pieces(first: Lookup, second: Lookup, sample: int, seed: int) -> Iterator[Piece]:
    """States of the table with fewer, drawn evenly."""
    swapped = rows_of(second) < rows_of(first)
    small = second if swapped else first
    for states in small.draw(sample, seed):
        stored = small.stored_best(states)
        labels = tuple(dict.fromkeys(name for name in stored if name is not None))
        codes = np.array([-1 if n is None else labels.index(n) for n in stored], np.int16)
        rows = Rows(states.__getitem__, small.probe(states), codes, labels)
        yield _asked(rows, (first, second), swapped)


def listed_pieces(first: Lookup, second: Lookup, states: Ints) -> Iterator[Piece]:
    """Of canonical states (n, fields) of the first table those that either holds."""
    for at in range(0, len(states), LISTED):
        yield Piece(partial(_listed, first, second, states[at : at + LISTED]), alone=True)


# --- side by side --------------------------------------------------------------------------------

In = tuple[TierPart, FileEntry]


def _beside(one: In, two: In) -> Iterator[Piece]:
    groups = -(-one[1].rows // one[1].row_group_rows)
    for part, entry in (one, two):
        part.groups.file(part.entries.index(entry))  # opened by one thread
    for start in range(0, groups, PIECE_GROUPS):
        span = range(start, min(start + PIECE_GROUPS, groups))
        yield Piece(partial(_read_beside, one, two, span), alone=False)


def _read_beside(one: In, two: In, span: range) -> Pair:
    values, bests, names, margins = [], [], [], None
    for i, (part, entry) in enumerate((one, two)):
        file = part.groups.reopen(part.entries.index(entry))
        wanted = [*part.columns, "best"]
        if i == 0 and "margin" in file.names:
            wanted.append("margin")
        read = file.read_all(list(span), wanted)
        file.close()
        values.append(number_rows(read, part.columns))
        codes, labels = labelled(read.column("best").unify_dictionaries())
        bests.append(codes)
        names.append(labels)
        if "margin" in read.column_names:
            margins = numbers_of(read.column("margin"))
    together = list(dict.fromkeys([*names[0], *names[1]]))
    first = [start_row(entry) + span[0] * entry.row_group_rows for _, entry in (one, two)]
    tier = one[0].tier_of_number[one[1].tier], two[0].tier_of_number[two[1].tier]
    return Pair(
        len(values[0]), (0, 0),
        (
            lambda x: one[0].layout.states_at(tier[0], first[0] + x),
            lambda x: two[0].layout.states_at(tier[1], first[1] + x),
        ),
        (values[0], values[1]),
        (_recoded(bests[0], names[0], together), _recoded(bests[1], names[1], together)),
        together, margins, one[1].tier,
    )  # fmt: skip


def _recoded(codes: NDArray[np.int16], labels: Sequence[str], names: Sequence[str]) -> Ints:
    """Best actions as numbers in `names`."""
    place = np.array([*(names.index(label) for label in labels), -1], np.int64)
    found: Ints = place[codes]
    return found


# --- looked up -----------------------------------------------------------------------------------


def _asked(
    rows: Rows, tables: tuple[Lookup, Lookup], swapped: bool, tier: int | None = None
) -> Piece:
    return Piece(partial(_look_up, rows, tables, swapped, tier), alone=True)


def _look_up(rows: Rows, tables: tuple[Lookup, Lookup], swapped: bool, tier: int | None) -> Pair:
    """The pair of stored rows, the other table asked state by state."""
    small, large = reversed(tables) if swapped else tables
    n, players = len(rows.values), small.game.players
    mine = rows.states(np.arange(n))
    theirs, known = large.game.known_states(small.game.fields.values(mine))
    held = np.zeros(n, bool)
    if known.any():
        values, there = large.lookup(theirs)
        held[known] = there
        theirs, values = theirs[there], values[there]
    else:
        values = np.zeros((0, players))
    at = np.flatnonzero(held)
    names = list(rows.labels)
    best = coded(large.stored_best(theirs) if len(at) else [], names)
    own = _recoded(rows.best, rows.labels, names)[at]
    ours = mine[at]
    sides = (
        (ours.__getitem__, rows.values[at, :players], own),
        (theirs.__getitem__, values, best),
    )
    one, two = reversed(sides) if swapped else sides
    only = (0, n - len(at)) if swapped else (n - len(at), 0)
    return Pair(n, only, (one[0], two[0]), (one[1], two[1]), (one[2], two[2]), names, None, tier)


def _listed(first: Lookup, second: Lookup, states: Ints) -> Pair:
    """The pair of those of the first table's states that both hold."""
    theirs, known = second.game.known_states(first.game.fields.values(states))
    holds = first.holds(states), np.zeros(len(states), bool)
    holds[1][known] = second.holds(theirs)
    both = holds[0] & holds[1]
    mine, theirs = states[both], theirs[both[known]]
    names: list[str] = []
    best = [coded(table.stored_best(held), names) if len(held) else np.empty(0, np.int64)
            for table, held in ((first, mine), (second, theirs))]  # fmt: skip
    only = int((holds[0] & ~holds[1]).sum()), int((holds[1] & ~holds[0]).sum())
    return Pair(
        len(mine) + sum(only), only, (mine.__getitem__, theirs.__getitem__),
        (first.lookup(mine)[0], second.lookup(theirs)[0]), (best[0], best[1]), names,
    )  # fmt: skip


def coded(best: Sequence[str | None], names: list[str]) -> Ints:
    """Best actions as numbers in `names`, which grows by those that are new; -1 for none."""
    places: dict[str | None, int] = {name: i for i, name in enumerate(names)} | {None: -1}
    for name in best:
        if name not in places:
            places[name] = len(names)
            names.append(str(name))
    return np.array([places[name] for name in best], np.int64)


# --- what can come up ----------------------------------------------------------------------------


def reachable_states(table: Lookup, starts: Ints) -> Ints:
    """The canonical states (n, fields) that can come up from `starts` (m, fields) under a table's
    best play, those that are over left out, by key; 8 bytes of memory for each field of each. Of
    tied actions the stored one is taken.

    Raises MissingTableError for a start, or a state below it, that the table neither holds nor
    reaches by one step.
    """
    from luckbase.solver.policy.chain import walk_profile

    policy = policy_of(table)

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        chances = policy.decide(game, player, states, actions)
        return [np.where(each > LEAST_CHANCE, each, 0.0) for each in chances]

    game = table.game
    walk = walk_profile(game, starts, [decide] * game.players, np.iinfo(np.int32).max)
    alive = [keys[counts > 0] for keys, (counts, *_) in walk]  # who is over leads nowhere
    found: Ints = unpack_all(game.bits, np.sort(np.concatenate(alive)))
    return found
