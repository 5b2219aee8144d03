"""About how many states lie below some roots, in some seconds.

Up to `EXACT_STATES` they are counted. A game may know a formula (`SearchHints.states_below`). Else
states are put into **groups**, and of each group it is estimated how many it has:

* Columns with more than `NARROW` values, scores say, are **wide**. A group is what all other
  columns are (its skeleton), and where each wide one lies among the **cuts**: 0 and what the
  column, or its field, held at the roots. A score that nobody has touched yet is one value, and not
  any; who may pass to whom hangs on who is ahead. Of a wide set it is how many it holds.
* A search keeps only states that bring something new to their group: a value of a wide column, or a
  wide column, or a sum or difference of two of them, that is greater or smaller than any before. It
  ends after some thousandth of the states, and has met the groups, the values and the ends.
* Within a group wide columns vary nearly independently but for inequalities between two of them
  (a turn's points and those banked are below the goal; who passes is behind). So its states are the
  product of how many values each column has, times the share of points at random between the ends
  of the columns that lie between the ends of the sums and differences as well.
* The more states, the coarser: cut at what the field held and with more states for a value, cut at
  what the column held, not cut, and last thinned out, twice, with what that loses made good. Not
  cut, there seem far too many where most players have nothing left to do: then it is thinned out
  with the cuts.

Measured against exact counts, the same that its constants were chosen by (Press Your Luck
1985-02 with 20 roots, 0.1 to 35 million states, in units of 250, 500 and 1000; Pig, two-dice
Pig, Skunk, Pig by rounds): 0.75 to 1.15 times as many, Pig by rounds from its seventh round
0.55. Without the cuts up to 18 times as many, without sums and differences twice. Not within
two: three columns that hang together (Skunk with `count_rolls`: 2.9), sets that do (Goofspiel,
which has its own formula: 2 to 15). Only one player with spins (8 to 12 of them, $250 to $1,000,
2.9 to 39 million states): 0.8 to 1.0. Thinned out and not cut: 0.9 to 1.2 times what is found
unthinned, up to 330 million states; beyond, nothing was compared but one search of 10^9: 1.8.

Sources: the search by novelty is that of Lipovetzky and Geffner, Width and Serialization of
Classical Planning Problems, ECAI 2012; bounds on columns, sums and differences are the octagons of
Miné, The Octagon Abstract Domain, Higher-Order and Symbolic Computation 19, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import SearchLimitError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import hints
from luckbase.solver.game.faults import fault_at
from luckbase.solver.game.game import Game
from luckbase.solver.graph import keys as hashing
from luckbase.solver.graph.estimate_kernels import (
    DONE,
    FAR,
    GROUPS,
    MARKS,
    MET,
    Tables,
    Wide,
    expand_kept,
    meet_all,
)
from luckbase.solver.graph.expansion import expanding, room_of
from luckbase.solver.graph.explore import Explorer
from luckbase.solver.graph.keys import Keys, unpack_all

EXACT_STATES = 3_000_000
"""States up to which they are counted: two seconds."""
EXACT_EDGES = 60_000_000
"""Edges that they may have by `Game.max_edges`: no clock decides what is found."""
SAMPLE_STATES = 100_000
"""States that are met first where there are too many to count."""
NARROW = 16
"""Values of a column that is not wide, at most."""
KINDS = 4
"""Values of a wide column that are kinds of their own, at most: 0 and those of the roots."""
MOST_SIDED = 6
"""Wide columns that are looked at by pairs, at most: their pairs get many."""
NONE, OWN, FIELDS = 0, 1, 2
"""Where wide numbers are cut (`Look`)."""
OWN_KEPT, NONE_KEPT, MOST_KEPT = 300_000, 400_000, 600_000
"""States that a search for novelty keeps at most, cut or not, and a thin one: some seconds."""
CLOSER_KEPT, CLOSEST_KEPT = 100_000, 400_000
"""Up to so many a closer look follows; states that that one keeps at most."""
FULL = 0.5
"""Share of the values between its ends that a column was seen to have, if it has them all."""
FIRST_KEPT = 50_000
"""States after which it is looked whether other columns are wide than seemed at first."""
LOTS = 4
"""States kept for one value, where there is time."""
THIN = ((8, 32), (32, 128))
"""Where it keeps too many: of so many values it keeps one, and fewer for comparison: what the step
between the two loses is what each step before it has lost."""
LIKELY, CUT_THIN, CUT_KEPT = 0.5, (8, 16), 1_000_000
"""If of the states kept, when they are too many, such a share was expanded, the search seems near
its end, and is tried again with its cuts, thinned out, keeping at most so many, and compared with
one thinned more: what the step between the two loses is what the first has lost."""
TIMES_AS_MANY = 2.0
"""It counts where without the cuts there seem to be more than so many times as many."""
POINTS = 400
"""Points at random in each group."""
PIECE = 20_000
"""States expanded before arrays may have to grow."""


@dataclass(frozen=True)
class Estimate:
    """About how many states lie below some roots, those that are over and the roots included.

    states: how many. how: "counted", "formula" or "estimated". at_least: the search for them did
    not end, and there may be many times as many. keys: uint64 (k,), some of them, of all levels
    unless they are from a formula.
    """

    states: int
    how: str
    at_least: bool
    keys: Keys

    @property
    def exact(self) -> bool:
        """Whether they were counted."""
        return self.how == "counted"


def estimate(game: Game, roots: Ints, *, at_least: int = 0) -> Estimate:
    """About how many states lie below canonical roots (m, fields); the same for the same roots.

    at_least: so many are known to be there: what is too many to count is not counted.

    Raises StateError for a root that has no key, GameError for a state whose edges break the rules.
    """
    roots = np.unique(np.asarray(roots, np.int64).reshape(-1, game.field_count), axis=0)
    most = max(1, min(EXACT_STATES, EXACT_EDGES // game.max_edges))
    ended, keys = _count(game, roots, most if at_least <= most else min(most, SAMPLE_STATES))
    if ended:
        return Estimate(len(keys), "counted", False, keys)
    formula = hints(game).states_below
    if formula is not None:
        found = max(formula(root) for root in roots)
        return Estimate(max(len(keys), round(found)), "formula", False, keys)
    about = _estimated(game, roots, keys)
    return replace(about, states=max(len(keys), about.states))


def _count(game: Game, roots: Ints, most: int) -> tuple[bool, Keys]:
    """Whether there are no more than so many states, and their keys, or of those met."""
    explorer = Explorer(game, roots, max_states=most)
    try:
        while explorer.deeper():
            pass
    except SearchLimitError:
        return False, explorer.levels.keys
    return True, explorer.levels.keys


def _estimated(game: Game, roots: Ints, keys: Keys) -> Estimate:
    """Searches for novelty, closer and closer while they are small, coarser if they are large."""
    wide = _wide(game, [keys])
    while True:
        search = _Novelty(game, roots, wide, Look())
        search.run(FIRST_KEPT)
        wider = _wide(game, [keys, search.keys])
        if len(wider) == len(wide):
            break
        wide = wider
    if search.run(OWN_KEPT):
        return _result(_closer(game, roots, wide, search))
    likely_ends = search.counts[DONE] >= LIKELY * search.counts[MET]
    cut = _thinned_out(game, roots, wide) if likely_ends else None
    uncut = _uncut(game, roots, wide)
    return uncut if cut is None or uncut.states <= TIMES_AS_MANY * cut.states else cut


def _thinned_out(game: Game, roots: Ints, wide: list[tuple[int, bool]]) -> Estimate | None:
    """With all its cuts, thinned out; None where it keeps too many."""
    search, less = (_Novelty(game, roots, wide, Look(thin=thin)) for thin in CUT_THIN)
    return _made_good(search, less, CUT_KEPT, 1) if search.run(CUT_KEPT) else None


def _uncut(game: Game, roots: Ints, wide: list[tuple[int, bool]]) -> Estimate:
    """Not cut, and thinned out where it keeps too many."""
    search = _Novelty(game, roots, wide, Look(cuts=NONE))
    if search.run(NONE_KEPT):
        return _result(search)
    for steps, thins in enumerate(THIN, 1):
        search, less = (_Novelty(game, roots, wide, Look(cuts=NONE, thin=t)) for t in thins)
        if search.run(MOST_KEPT):
            return _made_good(search, less, MOST_KEPT, steps)
    return _result(search)


def _made_good(search: _Novelty, less: _Novelty, most: int, steps: int) -> Estimate:
    """Of a search that was thinned out: each of so many steps lost what the one to `less`, which is
    thinned more and keeps at most so many, does."""
    less.run(most)
    states = search.states()
    return _result(search, states * (states / less.states()) ** steps)


def _result(search: _Novelty, states: float | None = None) -> Estimate:
    """states: about how many there are, if not as many as it saw."""
    found = search.states() if states is None else states
    states = max(round(found), int(search.counts[MET]))
    return Estimate(states, "estimated", not search.ended, search.keys)


def _closer(game: Game, roots: Ints, wide: list[tuple[int, bool]], search: _Novelty) -> _Novelty:
    """A closer search, if that is not too much."""
    if search.counts[MET] > CLOSER_KEPT:
        return search
    closer = _Novelty(game, roots, wide, Look(cuts=FIELDS))
    return _closest(game, roots, wide, closer) if closer.run(CLOSEST_KEPT) else search


def _closest(game: Game, roots: Ints, wide: list[tuple[int, bool]], closer: _Novelty) -> _Novelty:
    """The same once more, with more states for every value, if that is not too much."""
    if closer.counts[MET] > CLOSER_KEPT:
        return closer
    closest = _Novelty(game, roots, wide, Look(cuts=FIELDS, lots=LOTS))
    return closest if closest.run(CLOSEST_KEPT) else closer


@dataclass(frozen=True)
class Look:
    """How close a search for novelty looks. cuts: where wide numbers are cut: nowhere, at 0 and
    what they were themselves at the roots, or at all that their field held there. lots: how many
    states may be kept for one value. thin: they are kept for one of so many values."""

    cuts: int = OWN
    lots: int = 1
    thin: int = 1


def _wide(game: Game, samples: list[Keys]) -> list[tuple[int, bool]]:
    """The wide columns of the states of some keys, and whether they are sets."""
    sets = [field.is_set for field in game.fields for _ in field.columns]
    states = unpack_all(game.bits, np.concatenate(samples))
    return [
        (column, is_set) for column, is_set in enumerate(sets)
        if len(np.unique(states[:, column])) > NARROW
    ]  # fmt: skip


class _Novelty:
    """A search that keeps what is new: the arrays of `estimate_kernels`, which grow.

    wide: columns, and whether each is a set. lots: how many states it may keep for one value. thin:
    it keeps them for one of so many values.
    """

    def __init__(self, game: Game, roots: Ints, wide: list[tuple[int, bool]], look: Look) -> None:
        self.game = game
        self.numbers = [column for column, is_set in wide if not is_set]
        sides = [(a, a, 0) for a in self.numbers]
        if len(self.numbers) <= MOST_SIDED:
            sides += [(a, b, sign) for i, a in enumerate(self.numbers)
                      for b in self.numbers[i + 1 :] for sign in (1, -1)]  # fmt: skip
        fields = [i for i, field in enumerate(game.fields) for _ in field.columns]
        columns = np.full((len(wide), 2 + KINDS), FAR, np.int64)
        for j, (column, is_set) in enumerate(wide):
            alike = [c for c, of in enumerate(fields) if of == fields[column]]
            own = alike if look.cuts == FIELDS else [column]
            held = np.append(roots[:, own], 0) if look.cuts else np.empty(0, np.int64)
            cuts = _spread(np.unique(held), KINDS)
            columns[j, :2] = column, is_set
            columns[j, 2 : 2 + len(cuts)] = cuts
        self.wide = Wide(
            columns, np.array(sides, np.int64).reshape(-1, 3), look.lots, look.thin, game.bits
        )
        self.counts = np.zeros(5, np.int64)
        room = 1 << 12
        while room < 2 * max(1, len(wide)) * max(len(roots), game.max_edges):
            room *= 2
        self.tables = Tables(
            *_hash_table(room), *_hash_table(room), np.empty((room, len(wide)), np.int32),
            np.empty((room, len(sides), 2), np.int64), np.empty((room, 1), np.uint64),
        )  # fmt: skip
        meet_all(self.wide, self.tables, self.counts, np.ascontiguousarray(roots))

    @property
    def ended(self) -> bool:
        """Whether all that it kept was expanded."""
        return bool(self.counts[DONE] == self.counts[MET])

    @property
    def keys(self) -> Keys:
        """The keys (k,) of the states kept."""
        return self.tables.kept[: self.counts[MET], 0].copy()

    def run(self, most: int) -> bool:
        """Go on until it ends, or keeps more than `most`; whether it ended."""
        game = self.game
        room = room_of(game)
        while not self.ended and self.counts[MET] < most:
            self._make_room()
            with expanding(game, room):
                wrong = expand_kept(
                    game.transition, game.numbers, room, self.wide, self.tables, self.counts, PIECE
                )
            if wrong:
                raise fault_at(game, room.at)
        return self.ended

    def _make_room(self) -> None:
        t, most = self.tables, self.game.max_edges
        groups, marks, kept = (int(self.counts[i]) for i in (GROUPS, MARKS, MET))
        if groups + most > len(t.group_rows):
            slots, rows = _doubled(t.group_rows, groups)
            t = t._replace(
                group_slots=slots, group_rows=rows, values=_longer(t.values, groups),
                ends=_longer(t.ends, groups),
            )  # fmt: skip
        if marks + 2 * len(self.wide.columns) * most > len(t.mark_rows):
            slots, rows = _doubled(t.mark_rows, marks)
            t = t._replace(mark_slots=slots, mark_rows=rows)
        if kept + most > len(t.kept):
            t = t._replace(kept=_longer(t.kept, kept))
        self.tables = t

    def states(self) -> float:
        """About how many states the groups have that it met."""
        groups = int(self.counts[GROUPS])
        values = self.tables.values[:groups].astype(float)
        for j, column in enumerate(self.wide.columns[:, 0].tolist()):
            if column in self.numbers:
                ends = self.tables.ends[:groups, self.numbers.index(column)]
                between = ends[:, 1] - ends[:, 0] + 1
                values[:, j] = np.where(FULL * between <= values[:, j], between, values[:, j])
        boxes = np.prod(values, axis=1)
        return float((boxes * self._shares(groups)).sum())

    def _shares(self, groups: int) -> Floats:
        """Of points between the ends of the columns, the share (groups,) between all ends."""
        ends, columns = self.tables.ends[:groups], len(self.numbers)
        if columns < 2:
            return np.ones(groups)
        place = {column: i for i, column in enumerate(self.numbers)}
        random, inside = np.random.default_rng(1), np.zeros(groups)
        low, high = ends[:, :columns, 0], ends[:, :columns, 1]
        for _ in range(POINTS):
            points = np.floor(low + random.random(low.shape) * (high - low + 1))
            fits = np.ones(groups, bool)
            for j in range(columns, len(self.wide.sides)):
                a, b, sign = self.wide.sides[j].tolist()
                at = points[:, place[a]] + sign * points[:, place[b]]
                fits &= (at >= ends[:, j, 0]) & (at <= ends[:, j, 1])
            inside += fits
        return np.maximum(inside, 1) / POINTS


def _spread(values: Ints, most: int) -> Ints:
    """At most so many of values (n,), ascending, the first and the last among them."""
    at = np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int)
    found: Ints = values[at]
    return found


def _hash_table(room: int) -> tuple[NDArray[np.int32], Keys]:
    return np.full(2 * room, -1, np.int32), np.empty((room, 1), np.uint64)


def _doubled(rows: Keys, count: int) -> tuple[NDArray[np.int32], Keys]:
    """The slots and rows of a hash table with twice the room."""
    slots, longer = np.full(4 * len(rows), -1, np.int32), _longer(rows, count)
    hashing.rehash(slots, longer, count)
    return slots, longer


def _longer(array: NDArray[np.generic], count: int) -> NDArray[Any]:
    """An array with twice the rows, the first `count` of which are kept."""
    found = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    found[:count] = array[:count]
    return found
