"""What a comparison of two tables found, as data, as a small table and in sentences.

`cluster.table.diff` makes a `Comparison`. "The first" and "the second" are the tables. What a
decision of the first costs is counted in the payoffs of the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Annotated, Any

import numpy as np
from pydantic import Field, PlainSerializer

from luckbase.solver import sentences
from luckbase.solver.charts import Heatmap
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.groups import Axis, Threshold
from luckbase.solver.result import Number, Result
from luckbase.solver.sentences import html_facts, html_table, many

MAX_CASES, MAX_MOVES = 6, 3
"""Rows of the small table: thresholds that moved, and moves from one action to another."""
Cost = Annotated[
    float,
    PlainSerializer(lambda cost: None if isnan(cost) else cost, return_type=float | None),
]
"""What decisions cost; NaN, null in the JSON, where the second table has no payoffs of them."""


@dataclass(frozen=True)
class Difference(Result):
    """A decision that moved."""

    state: dict[str, Any]
    """As the second table has it."""
    size: float
    """How far the tables' payoffs of the state are apart."""
    best: tuple[str | None, str | None]
    """In the first and in the second table."""
    cost: Cost
    """What the first one's costs the one who decides, in the second table's payoffs."""
    to_act: int
    """From 1."""


@dataclass(frozen=True)
class Quiet(Result):
    """Payoffs that differ where no decision moved: of how many states, by how much at most, and
    where (the first such state; None if there is none)."""

    states: int = 0
    largest: float = 0.0
    state: dict[str, Any] | None = None


@dataclass(frozen=True)
class ActionMoves(Result):
    """How many decisions moved from an action of the first table to one of the second."""

    first: str | None
    second: str | None
    decisions: int
    mean: Cost = 0.0
    """What they cost."""


@dataclass(frozen=True)
class Case(Result):
    """A line of the small table: which decisions; what is best in the first table and in the
    second, in words; which share of those decisions moved, and what that costs on average."""

    case: str
    before: str
    now: str
    share: float
    cost: Cost


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
        visited = self.decisions > 0
        share = np.where(visited, 100.0 * self.changed / np.maximum(self.decisions, 1), np.nan)
        names = (self.axes[0].name, self.axes[1].name, "percent_changed")
        top = float(np.nanmax(share)) if visited.any() else 0.0
        return Heatmap(
            "Where decisions moved", about, names, x, y, share, self.axes[0].label,
            self.axes[1].label, "decisions that moved, % of all there",
            limits=(0.0, top or 1.0),
        )  # fmt: skip

    def cells(self) -> list[dict[str, Number]]:
        """The cells in which anybody decides."""
        first, second = self.axes
        return [
            {
                first.name: first.low + first.step * i, second.name: second.low + second.step * j,
                "decisions": int(self.decisions[i, j]), "changed": int(self.changed[i, j]),
                "cost": float(self.cost[i, j]),
            }
            for i, j in np.argwhere(self.decisions > 0).tolist()
        ]  # fmt: skip


Cells = Annotated[Moved, PlainSerializer(Moved.cells, return_type=list[dict[str, Number]])]


NEVER = np.iinfo(np.int64).max
Span = tuple[int, int | None, int]
"""The least, the median and the greatest number; no median where that is never."""


@dataclass(frozen=True)
class ThresholdDifference(Result):
    """From what number on a kind of decision is best (`solver.game.groups.Threshold`), in both
    tables."""

    who: str
    does: str
    lines: int
    """Of states that differ in that number alone."""
    sooner: int
    """Lines with a lower number now; never is above all."""
    later: int
    first: Span | None
    """Of the first table: the ends of those lines that have a number, the median of all, None where
    that is never; None where no line has one."""
    second: Span | None
    never: tuple[int, int]
    """Lines that have no number, in each table."""
    before: str = ""
    """From what number, in words: of the line in the middle, or where that did not move, of those
    that moved most often."""
    now: str = ""
    sentence: str = ""
    decisions: int = 0
    """On these lines."""
    changed: int = 0
    """Of these, without toss-ups."""
    mean: Cost = 0.0
    """What the changed ones cost; 0 where there is none."""

    @property
    def moved(self) -> int:
        """On how many lines it moved."""
        return self.sooner + self.later


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """What differs between two tables of one game."""

    sentences: Annotated[list[str], Field(serialization_alias="says")] = field(
        init=False, default_factory=list
    )
    """What changed, plainly: thresholds first, then how many decisions moved and what that
    costs."""
    payoff_name: str
    chance: bool
    """Whether payoffs are chances, whose differences are written in points."""
    states: int
    """Compared."""
    missing: int
    """Of the table `missing_of` and not in the other."""
    missing_of: str
    payoffs: int
    """States whose payoffs differ by more than `tolerance`; largest: by how much at most."""
    largest: float
    tolerance: float
    thresholds_left_out: Annotated[bool, Field(serialization_alias="turns_left_out")]
    """They were not looked for, as not all states of a line were looked at."""
    decisions: int
    """States at which somebody decides."""
    actions: int
    """Of these, with another best action in the second, toss-ups apart."""
    toss_ups: int
    """With another best action, where some action is best in both as far as they can tell."""
    toss_ups_worst: float
    """The most that the old one of these costs."""
    one_sided: int
    """Decisions that only one of the tables has, or whose old action is not allowed in the
    second."""
    unpriced: int
    """Whose cost can not be told, for a table ends there."""
    mean: Cost
    """What an old action costs, over `actions`; worst_cost: at most."""
    worst_cost: Cost
    only: tuple[int | None, int | None]
    """Of the states looked at, those that the first and that the second table alone holds; None
    where they were not counted, in the larger one of a sample."""
    unfinished: tuple[list[str], list[str]]
    """What of each table is still to be solved."""
    quiet: Quiet
    moves: list[ActionMoves]
    """Most first."""
    worst: list[Difference]
    """Those that cost most, first."""
    thresholds: Annotated[list[ThresholdDifference], Field(serialization_alias="turns")]
    picture: Annotated[Cells, Field(serialization_alias="cells")]
    """Where decisions moved."""

    def __post_init__(self) -> None:
        counts = [each.sentence for each in self._turned()] + [self._count(), *self._apart()]
        object.__setattr__(self, "sentences", self._not_solved() + counts)

    def _turned(self) -> list[ThresholdDifference]:
        """The thresholds that moved, on the largest share of their lines first."""
        moved = [threshold for threshold in self.thresholds if threshold.moved]
        moved.sort(key=lambda each: -each.moved / each.lines)  # stable: else the game's order
        return moved[:MAX_CASES]

    @property
    def cases(self) -> list[Case]:
        """The small table: thresholds that moved, the most frequent moves, and all of it."""
        total = max(self.decisions, 1)
        rows = [
            Case(
                f"{each.who} {each.does}", each.before, each.now,
                each.changed / max(each.decisions, 1), each.mean,
            )
            for each in self._turned()
        ]  # fmt: skip
        rows += [
            Case("any decision", str(each.first), str(each.second), each.decisions / total,
                 each.mean)
            for each in self.moves[:MAX_MOVES]
        ]  # fmt: skip
        return [*rows, Case("all decisions", "", "", self.actions / total, self.mean)]

    @property
    def notes(self) -> list[str]:
        """What the small table does not say, in sentences."""
        counts = [] if self.actions else [self._count()]
        return self._not_solved() + counts + self._apart()

    def amount(self, difference: float) -> str:
        """A difference of payoffs as people read it: ``4.1 points``; – where it is not known."""
        from luckbase.cluster.table.why import Payoffs

        if isnan(difference):
            return "–"
        return Payoffs(self.payoff_name, self.chance).change(difference)

    def case_rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The heads and the cells of the small table."""
        heads = ("case", "before", "now", "moved", "cost")
        return heads, [
            (each.case, each.before, each.now, _percent(each.share), self.amount(each.cost))
            for each in self.cases
        ]

    @property
    def differs(self) -> bool:
        """Whether there is any difference at all. States of one whole table that another whole one
        does not reach are none; those that are not solved yet in one of them are."""
        differ = self.payoffs or self.actions or self.toss_ups or self.one_sided
        return bool(differ or self._not_solved())

    def _not_solved(self) -> list[str]:
        """A sentence of each table that lacks states of the other for it is not whole."""
        notes = []
        for name, other_name, why, count in zip(
            ("first", "second"), ("second", "first"), self.unfinished, self.only[::-1], strict=True
        ):
            if why and count != 0:
                lacks = "states" if count is None else many(count, "state")
                verb = "may lack" if count is None else "lacks"
                notes.append(
                    f"the {name} table is not whole ({', '.join(why)}) and {verb} {lacks} of the "
                    f"{other_name}"
                )
        return notes

    def _count(self) -> str:
        if not self.actions:
            return f"no decision moved, of {self.decisions:,}"
        share = _percent(self.actions / max(self.decisions, 1))
        summary = f"{self.actions:,} of {many(self.decisions, 'decision')} moved ({share})"
        if isnan(self.mean):
            return summary
        return (
            f"{summary}; deciding as in the first table costs {self.amount(self.mean)} on average "
            f"there, {self.amount(self.worst_cost)} at most"
        )

    def _apart(self) -> list[str]:
        apart = [f"{many(self.toss_ups, 'toss-up')} went another way"] if self.toss_ups else []
        if self.toss_ups_worst > self.tolerance:
            apart[-1] += f" (deciding as before costs {self.amount(self.toss_ups_worst)} at most)"
        if self.one_sided:
            apart.append(f"{many(self.one_sided, 'decision')} in one table only")
        if self.unpriced:
            apart.append(f"{self.unpriced:,} moved where payoffs are not stored and have no cost")
        if self.quiet.states:
            where = sentences.fields(self.quiet.state or {})
            apart.append(
                f"in {many(self.quiet.states, 'state')} payoffs changed and the best action did "
                f"not, by {self.amount(self.quiet.largest)} at most ({where})"
            )
        if self.thresholds_left_out:
            apart.append("where decisions turn is known only when all states are compared")
        return apart

    def _repr_html_(self) -> str:
        missing = ", ".join(
            f"{count:,} of the {name} table"
            for name, count in zip(("first", "second"), self.only, strict=True) if count
        )  # fmt: skip
        rows = [("states", f"{self.states:,}"), ("missing in the other", missing)]
        rows += [("", sentence) for sentence in self.notes]
        worst = [
            (sentences.fields(each.state), self.amount(each.cost), *map(str, each.best))
            for each in self.worst
        ]
        html = html_table(*self.case_rows()) * bool(self.actions)
        html += html_facts("two tables compared", rows)
        return html + html_table(("state", "cost", "first", "second"), worst) * bool(worst)


def _percent(share: float) -> str:
    """In two digits; all of it in three."""
    return f"{float(f'{100 * share:.2g}'):g} %"


# --- thresholds ----------------------------------------------------------------------------------


def threshold_difference(
    threshold: Threshold, counts: Mapping[tuple[int, int], int]
) -> ThresholdDifference:
    """What differs, from how many lines have which number, in each table: (first, second)."""
    each: list[Counter[int]] = [Counter(), Counter()]
    for pair, n in counts.items():
        for i in (0, 1):
            each[i][pair[i]] += n
    lines, first, second = sum(counts.values()), _span(each[0]), _span(each[1])
    sooner = sum(n for (old, new), n in counts.items() if new < old)
    later = sum(n for (old, new), n in counts.items() if new > old)
    middle = tuple(
        NEVER if span is None or span[1] is None else span[1] for span in (first, second)
    )
    if (sooner or later) and middle[0] == middle[1]:  # what moved most often
        _, middle = min((-n, pair) for pair, n in counts.items() if pair[0] != pair[1])
    before, now = (
        "never" if number == NEVER else f"{threshold.at} {threshold.say(number)}"
        for number in middle
    )
    text = f"now {now}, before {before}" if before != now else f"{now}, as before"
    if sooner or later:
        text += f"; moved in {sooner + later:,} of {many(lines, 'case')}"
    sentence = f"{threshold.who} {threshold.does}: {text}"
    return ThresholdDifference(
        threshold.who, threshold.does, lines, sooner, later, first, second,
        (each[0][NEVER], each[1][NEVER]), before, now, sentence,
    )  # fmt: skip


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
