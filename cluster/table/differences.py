"""What a comparison of two tables found, as data, and said in plain sentences.

`cluster.table.diff` makes a `Comparison`. "The first" and "the second" are the tables; the old
habit is what the first one says, and what it costs is counted in the payoffs of the second.

At what number decisions turn is found line by line, from the data. A *line* is the states of a
turning (`solver.game.groups`) that differ in one number alone. It turns at the least number from
which on, on that line, the best action is always of the turning's kind; never, where it is not at
the greatest one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster import words
from luckbase.cluster.words import many
from luckbase.solver.charts import Heatmap
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.groups import Axis, Turning
from luckbase.solver.sentences import html_facts, html_table

MOST_SENTENCES = 6
"""Of those on where decisions turn."""


@dataclass(frozen=True)
class Difference:
    """A decision that moved. state: as the second table has it. to_act: from 1. best: of the first
    and of the second table. cost: what the first one's costs the one who decides, in the second
    table's payoffs, at least 0. size: how far the tables' payoffs of the state are apart."""

    state: dict[str, Any]
    size: float
    best: tuple[str | None, str | None]
    cost: float = 0.0
    to_act: int | None = None


@dataclass(frozen=True)
class Quiet:
    """Payoffs that differ where no decision moved: of how many states, by how much at most, and
    where (the first such state; None if there is none)."""

    states: int = 0
    largest: float = 0.0
    state: dict[str, Any] | None = None


@dataclass(frozen=True)
class GroupDifference:
    """A group of decisions. group: in words, one a column. decisions: in all; changed: of these,
    without toss-ups; mean, worst: what the changed ones cost, 0 where there is none."""

    group: tuple[str, ...]
    decisions: int
    changed: int
    toss_ups: int
    mean: float
    worst: float


@dataclass(frozen=True)
class TurnDifference:
    """Where a kind of decision turns (`solver.game.groups.Turning`), in both tables.

    lines: so many lines of states that differ in that number alone; sooner, later: on how many it
    turns at a lower or a higher number now (never is later than all). first, second: of each table,
    (least, median, greatest): the ends of those lines on which it turns, the median of all, None
    where that is never; None where it turns on no line. never: on how many it does not.
    """

    who: str
    does: str
    lines: int
    sooner: int
    later: int
    first: tuple[int, int | None, int] | None
    second: tuple[int, int | None, int] | None
    never: tuple[int, int]
    sentence: str = ""

    @property
    def moved(self) -> int:
        """On how many lines it moved."""
        return self.sooner + self.later


@dataclass(frozen=True, eq=False)
class Moved:
    """Where decisions moved, on a picture: of each cell (x, y), int64 and float64: decisions,
    changed ones, the sum of their costs."""

    axes: tuple[Axis, Axis]
    decisions: Ints
    changed: Ints
    cost: Floats

    def heatmap(self, about: str) -> Heatmap:
        """The share of decisions that moved, in percent, as a picture; blank where nobody
        decides."""
        x, y = (axis.low + axis.step * np.arange(axis.cells, dtype=np.int64) for axis in self.axes)
        there = self.decisions > 0
        share = np.where(there, 100.0 * self.changed / np.maximum(self.decisions, 1), np.nan)
        names = (self.axes[0].name, self.axes[1].name, "percent_changed")
        top = float(np.nanmax(share)) if there.any() else 0.0
        return Heatmap(
            "Where decisions moved", about, names, x, y, share, self.axes[0].label,
            self.axes[1].label, "decisions that moved, % of all there",
            limits=(0.0, top or 1.0),
        )  # fmt: skip

    @property
    def rows(self) -> list[dict[str, float]]:
        """The cells in which anybody decides."""
        return [
            {
                self.axes[0].name: self.axes[0].low + self.axes[0].step * int(i),
                self.axes[1].name: self.axes[1].low + self.axes[1].step * int(j),
                "decisions": int(self.decisions[i, j]), "changed": int(self.changed[i, j]),
                "cost": float(self.cost[i, j]),
            }
            for i, j in np.argwhere(self.decisions > 0)
        ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Comparison:
    """What differs between two tables of one game.

    states: compared. missing: of the table `missing_of` and not in the other. payoffs: states whose
    payoffs differ by more than `tolerance`; largest: by how much at most. decisions: states at
    which somebody decides. actions: of these, with another best action in the second, toss-ups
    apart. toss_ups: with another best action, where some action is best in both as far as they can
    tell; toss_ups_worst: the most that the old one of these costs. one_sided: decisions that only
    one of the tables has, or whose old action is not allowed in the second. unpriced: whose cost
    can not be told, for a table ends there. mean, worst_cost: what an old action costs, over
    `actions`. worst: those that cost most, first. quiet: payoffs that differ where no decision
    moved. moves: ((old, new), how many), most first. heads, groups: the decisions by groups, those
    that cost most in all first. turns: where decisions turn; turns_left_out: it was not
    looked for, as not all states of a line were looked at. picture: where they moved.
    reachable: whether only states that can come up were looked at. only: of the states looked at,
    those that the first and that the second table alone holds; None where they were not counted, in
    the larger one of a sample. unfinished: what of each table is still to be solved.
    """

    states: int
    missing: int
    payoffs: int
    actions: int
    largest: float
    tolerance: float
    worst: list[Difference]
    missing_of: str
    decisions: int
    toss_ups: int
    toss_ups_worst: float
    one_sided: int
    unpriced: int
    mean: float
    worst_cost: float
    quiet: Quiet
    moves: list[tuple[tuple[str | None, str | None], int]]
    heads: tuple[str, ...]
    groups: list[GroupDifference]
    turns: list[TurnDifference]
    picture: Moved
    reachable: bool = False
    turns_left_out: bool = False
    only: tuple[int | None, int | None] = (0, 0)
    unfinished: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))

    @property
    def differs(self) -> bool:
        """Whether there is any difference at all. States of one whole table that another whole one
        does not reach are none; those that are not solved yet in one of them are."""
        differ = self.payoffs or self.actions or self.toss_ups or self.one_sided
        return bool(differ or self._not_solved())

    def _not_solved(self) -> list[str]:
        """A sentence of each table that lacks states of the other for it is not whole."""
        said = []
        for name, other, why, count in zip(
            ("first", "second"), ("second", "first"), self.unfinished, self.only[::-1], strict=True
        ):
            if why and count != 0:
                lacks = "states" if count is None else many(count, "state")
                known = "may lack" if count is None else "lacks"
                said.append(
                    f"the {name} table is not whole ({', '.join(why)}) and {known} {lacks} of the "
                    f"{other}"
                )
        return said

    @cached_property
    def sentences(self) -> list[str]:
        """What changed, plainly: where decisions turn now, then how many moved and what that
        costs."""
        told = [turn for turn in self.turns if turn.moved]
        told.sort(key=lambda turn: -turn.moved / turn.lines)  # stable: else the game's order
        said = [turn.sentence for turn in told[:MOST_SENTENCES]]
        if self.turns_left_out:
            said = ["where decisions turn is told only when all states are compared"]
            return self._not_solved() + self._counts() + self._apart() + said
        return self._not_solved() + said + self._counts() + self._apart()

    def _counts(self) -> list[str]:
        if not self.actions:
            return [f"no decision moved, of {self.decisions:,}"]
        share = 100 * self.actions / self.decisions if self.decisions else 0.0
        often = ", ".join(f"{new} in place of {old} ({n:,})" for (old, new), n in self.moves[:3])
        return [
            f"{self.actions:,} of {many(self.decisions, 'decision')} moved ({share:.2g} %); to "
            f"keep the old habit costs {self.mean:.2g} on average where it moved, "
            f"{self.worst_cost:.2g} at most",
            f"most often now {often}",
        ]

    def _apart(self) -> list[str]:
        """What is counted apart."""
        apart = [f"{self.toss_ups:,} toss-ups went another way"] if self.toss_ups else []
        if self.toss_ups_worst > self.tolerance:
            apart[-1] += f" (to keep the old one costs {self.toss_ups_worst:.2g} at most)"
        if self.one_sided:
            apart.append(f"{many(self.one_sided, 'decision')} stand in one table only")
        if self.unpriced:
            apart.append(f"{self.unpriced:,} moved where a table ends and have no cost")
        if self.quiet.states:
            where = words.fields(self.quiet.state or {})
            apart.append(
                f"payoffs of {many(self.quiet.states, 'state')} changed and no best action there, "
                f"by {self.quiet.largest:.2g} at most ({where})"
            )
        return apart

    def _repr_html_(self) -> str:
        """The comparison in a notebook."""
        missing = ", ".join(
            f"{count:,} of the {name} table"
            for name, count in zip(("first", "second"), self.only, strict=True) if count
        )  # fmt: skip
        rows = [("states", f"{self.states:,}"), ("missing in the other", missing)]
        rows += [("", sentence) for sentence in self.sentences]
        worst = [(words.fields(d.state), f"{d.cost:.7f}", *map(str, d.best)) for d in self.worst]
        found = html_facts("two tables compared", rows)
        return found + html_table(("state", "cost", "first", "second"), worst) * bool(worst)

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        plain = (
            "states", "missing", "missing_of", "payoffs", "largest", "tolerance", "reachable",
            "turns_left_out",
            "decisions", "actions", "toss_ups", "toss_ups_worst", "one_sided", "unpriced", "mean",
            "worst_cost",
        )  # fmt: skip
        own: dict[str, Any] = {"says": self.sentences} | {k: getattr(self, k) for k in plain}
        own |= {"only": list(self.only), "unfinished": list(self.unfinished)}
        return own | {
            "quiet": asdict(self.quiet),
            "moves": [{"first": old, "second": new, "decisions": n}
                      for (old, new), n in self.moves],
            "worst": [_listed(asdict(one), "best") for one in self.worst],
            "turns": [_listed(asdict(one), "first", "second", "never") for one in self.turns],
            "groups": [_in_words(self.heads, one) for one in self.groups],
            "cells": self.picture.rows,
        }  # fmt: skip


def _in_words(heads: Sequence[str], group: GroupDifference) -> dict[str, Any]:
    said = asdict(group)
    return {"group": dict(zip(heads, said.pop("group"), strict=True)), **said}


def _listed(form: dict[str, Any], *names: str) -> dict[str, Any]:
    """JSON has no tuples: equal to what is read back."""
    return form | {name: None if form[name] is None else list(form[name]) for name in names}


NEVER = np.iinfo(np.int64).max
Span = tuple[int, int | None, int]
"""The least, the median and the greatest number; no median where that is never."""


@dataclass(frozen=True)
class OnLines:
    """States that stand on turnings, n of them. turnings, at: int64 (n,); lines: uint64 (n,);
    taken: bool (n, 2), whether the best action is of the turning's kind, in each table."""

    turnings: Ints
    at: Ints
    lines: NDArray[np.uint64]
    taken: NDArray[np.bool_]


class Turns:
    """Gathers states of lines, 26 bytes each; `close` what is whole, `found` in the end."""

    def __init__(self, turnings: Sequence[Turning]) -> None:
        self.turnings = turnings
        self._held: list[OnLines] = []
        self._counts: Counter[tuple[int, int, int]] = Counter()

    def take(self, states: OnLines) -> None:
        """Take in states; those of a line may come in any order."""
        if len(states.at):
            self._held.append(states)

    def close(self) -> None:
        """All lines that were begun are whole."""
        if not self._held:
            return
        turning, at = (
            np.concatenate([getattr(one, name) for one in self._held])
            for name in ("turnings", "at")
        )
        lines = np.concatenate([one.lines for one in self._held])
        taken = np.concatenate([one.taken for one in self._held])
        self._held = []
        order = np.lexsort((at, lines, turning))
        turning, at, lines, taken = turning[order], at[order], lines[order], taken[order]
        new = np.ones(len(at), bool)
        new[1:] = (lines[1:] != lines[:-1]) | (turning[1:] != turning[:-1])
        starts = np.flatnonzero(new)
        each = [_turn_at(at, taken[:, i], starts) for i in (0, 1)]
        rows, counts = np.unique(
            np.stack([turning[starts], *each], axis=1), axis=0, return_counts=True
        )
        for (t, one, two), count in zip(rows.tolist(), counts.tolist(), strict=True):
            self._counts[t, one, two] += count

    def found(self) -> list[TurnDifference]:
        """What was found, by the game's order of turnings."""
        self.close()
        there = sorted({turning for turning, _, _ in self._counts})
        return [self._of(turning) for turning in there]

    def _of(self, number: int) -> TurnDifference:
        counts = {(one, two): n for (t, one, two), n in self._counts.items() if t == number}
        each: list[Counter[int]] = [Counter(), Counter()]
        sooner = later = 0
        for pair, n in counts.items():
            each[0][pair[0]] += n
            each[1][pair[1]] += n
            sooner += n * (pair[1] < pair[0])
            later += n * (pair[1] > pair[0])
        never = each[0][NEVER], each[1][NEVER]
        first, second = _span(each[0]), _span(each[1])
        turning, lines = self.turnings[number], sum(counts.values())
        ordered = sorted(((-n, pair) for pair, n in counts.items() if pair[0] != pair[1]))
        often = (*ordered[0][1], -ordered[0][0]) if ordered else (NEVER, NEVER, 0)
        said = _sentence(turning, (first, second), (lines, sooner, later), often, never)
        return TurnDifference(
            turning.who, turning.does, lines, sooner, later, first, second, never, said
        )


def _turn_at(at: Ints, taken: NDArray[np.bool_], starts: Ints) -> Ints:
    """Where each line turns; `at` ascends on each of the lines that begin at `starts`."""
    n = len(at)
    line = np.repeat(np.arange(len(starts)), np.diff([*starts, n]))
    last = np.full(len(starts), -1, np.int64)  # the last of a line that is of another kind
    others = np.flatnonzero(~taken)
    last[line[others]] = others  # of several the last is written last
    turns = np.where(last < 0, starts, last + 1)
    ends = np.append(starts[1:], n)
    return np.where(turns < ends, at[np.minimum(turns, n - 1)], NEVER)


def _span(counts: Counter[int]) -> Span | None:
    """(least, median, greatest); of two in the middle the lower. Never is more than all numbers,
    and none of the ends."""
    values = sorted(value for value, n in counts.items() if n)
    numbers = [value for value in values if value != NEVER]
    if not numbers:
        return None
    ends = np.cumsum([counts[value] for value in values])
    middle = values[int(np.searchsorted(ends, (int(ends[-1]) + 1) // 2))]
    return numbers[0], None if middle == NEVER else middle, numbers[-1]


def _middle(span: Span | None) -> int:
    """The median, also where it is never."""
    return NEVER if span is None or span[1] is None else span[1]


def _sentence(
    turning: Turning, both: tuple[Span | None, Span | None], counts: tuple[int, int, int],
    often: tuple[int, int, int], never: tuple[int, int],
) -> str:  # fmt: skip
    """both: spans of the two tables; often: where it moved most often: (from, to, on how many
    lines)."""
    (first, second), (lines, sooner, later) = both, counts
    one, two = _middle(first), _middle(second)
    if one == two and often[2]:  # in the middle nothing moved
        said = f"{_turned(turning, *often[:2])} in {_cases(often[2])}"
        usual = "never," if two == NEVER else turning.say(two)
        middle = "" if second is None else f"; in the middle {usual} as before"
    else:
        said, middle = _turned(turning, one, two), ""
    spans = [
        turning.say_span(span[0], span[2]) if span and span[0] != span[2] else ""
        for span in (second, first)
    ]
    if any(spans):
        middle = middle or "; in the middle"
        now, was = (
            each or (turning.say(span[0]) if span else "never")
            for each, span in zip(spans, (second, first), strict=True)
        )
        rest = f"{now}, as before" if now == was else f"{now}, was {was}"
        middle += f", with the rest of the state {rest}"
    middle += _never(never, lines)
    return f"{said}{middle}; sooner in {sooner:,} and later in {later:,} of {_cases(lines)}"


def _never(counts: tuple[int, int], lines: int) -> str:
    """On how many lines it turns nowhere, where there are any."""
    one, two = counts
    if not one + two:
        return ""
    was = "as before" if one == two else f"was {one:,}"
    return f"; never in {two:,} of {_cases(lines)}, {was}"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count:,} cases"


def _turned(turning: Turning, one: int, two: int) -> str:
    if two == NEVER:
        was = "" if one == NEVER else f", was {turning.at} {turning.say(one)}"
        return f"{turning.who} now never {turning.does}{was}"
    now = f"{turning.does} {turning.at} {turning.say(two)}"
    if one == two:
        return f"{turning.who} {now}, as before"
    was = "never" if one == NEVER else turning.plain(one)
    return f"{turning.who} now {now}, was {was}"
