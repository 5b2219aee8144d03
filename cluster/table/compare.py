"""Where two tables of one game differ: in a payoff beyond their errors, or in the best action.

The states of the table with fewer are looked up in the other, row group by row group, so neither
has to fit in memory; files whose rows are the same states in the same order are read side by side.
Boards may differ (that is what the question is); states are matched by their fields in people's
units, so a state that is not on the other board's grid counts as missing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster import shown, words
from luckbase.cluster.table.lines import FileEntry
from luckbase.cluster.table.part import Part, Rows
from luckbase.cluster.table.tiers import TierPart
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup


@dataclass(frozen=True)
class Difference:
    """A state at which the tables differ: how far the payoffs are apart, the best actions."""

    state: dict[str, Any]
    size: float
    best: tuple[str | None, str | None]


@dataclass(frozen=True)
class Comparison:
    """states: compared. missing: of the smaller table, `missing_of`, and not in the other.
    payoffs, actions: at how many they differ. largest: the largest difference of a payoff. worst:
    the worst, first."""

    states: int
    missing: int
    payoffs: int
    actions: int
    largest: float
    tolerance: float
    worst: list[Difference]
    missing_of: str = "first"

    @property
    def differs(self) -> bool:
        """Whether there is any difference at all."""
        return bool(self.payoffs or self.actions)

    def _repr_html_(self) -> str:
        """The comparison in a notebook."""
        missing = f"{self.missing:,} of the {self.missing_of} table" if self.missing else ""
        rows = [("states", f"{self.states:,}"), ("missing in the other", missing),
                ("payoffs differ at", f"{self.payoffs:,}, by up to {self.largest:.7f}"),
                ("best actions differ at", f"{self.actions:,}")]  # fmt: skip
        worst = [(words.fields(d.state), f"{d.size:.7f}", *map(str, d.best)) for d in self.worst]
        found = shown.facts("two tables compared", rows)
        return found + shown.listing(("state", "apart", "first", "second"), worst) * bool(worst)

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        worst = [{"state": d.state, "size": d.size, "best": list(d.best)} for d in self.worst]
        own: dict[str, Any] = {
            k: getattr(self, k) for k in ("states", "missing", "payoffs", "actions")
        }
        own["missing_of"] = self.missing_of
        return {**own, "largest": self.largest, "tolerance": self.tolerance, "worst": worst}


class Comparing(TypedDict, total=False):
    """How two tables are compared.

    tolerance: how far payoffs may be apart (both tables' errors). worst: how many differences are
    kept (10). sample, seed: only so many states, drawn evenly. on_rows: told how many rows were
    compared, and of how many.
    """

    tolerance: float | None
    worst: int
    sample: int | None
    seed: int
    on_rows: Callable[[int, int], None]


def compare(one: Lookup, other: Lookup, **how: Unpack[Comparing]) -> Comparison:
    """Compare two tables. Raises OptionError for tables of different games, CorruptTableError."""
    tolerance, worst = how.get("tolerance"), how.get("worst", 10)
    sample, seed = how.get("sample"), how.get("seed", 0)
    on_rows = how.get("on_rows", _quietly)
    games = [table.game.board.game for table in (one, other)]
    if games[0] != games[1]:
        raise OptionError(f"a table of {games[0]} and one of {games[1]} can not be compared")
    slack = one.error + other.error + 1e-9 if tolerance is None else tolerance
    swapped = sum(p.rows for p in _parts(other)) < sum(p.rows for p in _parts(one))
    small, large = (other, one) if swapped else (one, other)
    total = sum(part.rows for part in _parts(small)) if sample is None else sample
    found = _Found(worst, swapped)
    done = 0
    for pair in _drawn(small, large, sample, seed) if sample is not None else _all(small, large):
        done += pair.rows
        found.take(pair, slack, small)
        on_rows(done, total)
    return Comparison(
        found.states, found.missing, found.payoffs, found.actions, found.largest, slack,
        found.worst_first(), "second" if swapped else "first",
    )  # fmt: skip


def _quietly(done: int, total: int) -> None:
    """Nobody is told."""


def _parts(table: Lookup) -> list[Part]:
    """The parts that stand for a table: the full table, or what there is without one."""
    if table.full is None and not table.exact:
        raise OptionError(f"{table.where}: holds bounds only, of a search that was cut")
    return [table.full] if table.full is not None else table.exact


@dataclass(frozen=True)
class _Pair:
    """Rows of the smaller table and what the larger one says of those n that it holds.

    rows: that were looked at. states: the smaller table's, of the n. values: float64
    (n, players) of each; best: int64 (n,) of each, into `names`, -1 for none.
    """

    rows: int
    states: Callable[[Ints], Ints]
    values: tuple[Floats, Floats]
    best: tuple[Ints, Ints]
    names: list[str]


class _Found:
    """What was found so far."""

    def __init__(self, worst: int, swapped: bool) -> None:
        self.states = self.missing = self.payoffs = self.actions = 0
        self.largest = 0.0
        self._most, self._swapped = worst, swapped
        self._heap: list[tuple[float, int, Difference]] = []

    def take(self, pair: _Pair, slack: float, small: Lookup) -> None:
        """Take in a pair."""
        n = len(pair.best[0])
        self.missing += pair.rows - n
        if n:
            gap = np.abs(pair.values[0] - pair.values[1]).max(axis=1)
            acts = pair.best[0] != pair.best[1]
            at = np.flatnonzero(acts)
            if len(at):  # a toss-up is no difference
                acts[at] = ~small.best_of(pair.states(at))[2]
            self.payoffs += int((gap > slack).sum())
            self.actions += int(acts.sum())
            self.largest = max(self.largest, float(gap.max()))
            self._keep(pair, gap, np.flatnonzero((gap > slack) | acts), small)
        self.states += n

    def _keep(self, pair: _Pair, gap: Floats, at: Ints, small: Lookup) -> None:
        """Keep the largest differences, of equal ones those met first."""
        at = at[np.argsort(-gap[at], kind="stable")][: self._most]
        for x, state in zip(at.tolist(), pair.states(at), strict=True):
            names = [pair.names[code] if code >= 0 else None for code in
                     (int(pair.best[0][x]), int(pair.best[1][x]))]  # fmt: skip
            first, second = reversed(names) if self._swapped else names
            size = float(gap[x])
            item = Difference(small.game.describe(state), size, (first, second))
            heapq.heappush(self._heap, (size, -(self.states + x), item))
            if len(self._heap) > self._most:
                heapq.heappop(self._heap)

    def worst_first(self) -> list[Difference]:
        """The largest differences, the largest first."""
        ordered = sorted(self._heap, key=lambda entry: entry[:2], reverse=True)
        return [item for _, _, item in ordered]


def _all(small: Lookup, large: Lookup) -> Iterator[_Pair]:
    """Every row of the smaller table; files whose rows stand alike in both side by side."""
    for part in _parts(small):
        other = large.full
        if isinstance(part, TierPart) and isinstance(other, TierPart):
            theirs = {(e.tier, e.first_key, e.rows, e.row_group_rows): e for e in other.entries}
            for entry in part.entries:
                same = theirs.get((entry.tier, entry.first_key, entry.rows, entry.row_group_rows))
                if same is not None and part.stands_alike(entry, other):
                    yield from _side_by_side(part, entry, other, same)
                else:
                    yield from (_looked_up(rows, small, large) for rows in part.scan_file(entry))
        else:
            yield from (_looked_up(rows, small, large) for rows in part.scan())


def _side_by_side(
    part: TierPart, entry: FileEntry, other: TierPart, same: FileEntry
) -> Iterator[_Pair]:
    for one, two in zip(part.scan_file(entry), other.scan_file(same), strict=True):
        names = list(dict.fromkeys([*one.labels, *two.labels]))
        best = _codes(one, names), _codes(two, names)
        yield _Pair(len(one.values), one.states, (one.values, two.values), best, names)


def _looked_up(rows: Rows, small: Lookup, large: Lookup) -> _Pair:
    """The pair of stored rows, the larger table asked state by state."""
    n, players = len(rows.values), small.game.players
    mine = rows.states(np.arange(n))
    theirs, known = _translated(small, large, mine)
    held = np.zeros(n, bool)
    values = np.zeros((n, players))
    names = list(rows.labels)
    best = np.full(n, -1, np.int64)
    if known.any():
        values[known], held[known] = large.look(theirs)
        here = np.flatnonzero(held)
        asked = theirs[held[known]]
        for x, name in zip(here.tolist(), large.stored_best(asked), strict=True):
            if name is not None:
                if name not in names:
                    names.append(name)
                best[x] = names.index(name)
    at = np.flatnonzero(held)
    both = rows.values[at, :players], values[at]
    return _Pair(n, lambda x: mine[at[x]], both, (_codes(rows, names)[at], best[at]), names)


def _drawn(small: Lookup, large: Lookup, sample: int, seed: int) -> Iterator[_Pair]:
    """States drawn evenly."""
    for piece in small.draw(sample, seed):
        stored = small.stored_best(piece)
        labels = tuple(dict.fromkeys(name for name in stored if name is not None))
        codes = np.array([-1 if n is None else labels.index(n) for n in stored], np.int16)
        rows = Rows(piece.__getitem__, small.probe(piece), codes, labels)
        yield _looked_up(rows, small, large)


def _codes(rows: Rows, names: list[str]) -> Ints:
    """The best actions of rows as numbers in `names`."""
    place = np.array([*(names.index(label) for label in rows.labels), -1], np.int64)
    return np.asarray(place[rows.best])


def _translated(small: Lookup, large: Lookup, states: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The states as the other board has them, and which of them it has (n,)."""
    return large.game.known_states(small.game.fields.values(states))
