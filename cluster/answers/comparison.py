"""The result of comparing two tables: as data, as a small table and as sentences.

`cluster.answers.diff` creates a `Comparison` of "the first" and "the second" table. The cost of a
decision of the first table is computed from the payoffs of the second.
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
"""Rows of the small table: moved thresholds, and moves from one action to another."""
Cost = Annotated[
    float,
    PlainSerializer(lambda cost: None if isnan(cost) else cost, return_type=float | None),
]
"""Cost of decisions; NaN (null in JSON) if the second table does not have their payoffs."""


@dataclass(frozen=True)
class Difference(Result):
    """A decision that moved."""

    state: dict[str, Any]
    """The state in the second table."""
    size: float
    """Difference between the two tables' payoffs of the state."""
    best: tuple[str | None, str | None]
    """The best actions in the first and the second table."""
    cost: Cost
    """Cost of the first table's decision to the player who decides."""
    to_act: int
    """The player who decides, from 1."""


@dataclass(frozen=True)
class Quiet(Result):
    """States whose payoffs differ but whose decision did not move."""

    states: int = 0  # how many
    largest: float = 0.0  # the largest difference
    state: dict[str, Any] | None = None  # where it occurs; the first such state


@dataclass(frozen=True)
class ActionMoves(Result):
    """Number of decisions that moved from one action to another."""

    first: str | None
    second: str | None
    decisions: int
    mean: Cost = 0.0
    """Mean cost."""


@dataclass(frozen=True, eq=False)
class Moved:
    """Moved decisions by cell (x, y) of a picture."""

    axes: tuple[Axis, Axis]
    decisions: Ints  # int64, number of decisions
    changed: Ints  # int64, number of moved decisions
    cost: Floats  # float64, sum of their costs

    def heatmap(self, about: str) -> Heatmap:
        """Return a picture of the percentage of decisions that moved; blank without decisions."""
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
        """Return the cells with decisions."""
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
"""Minimum, median and maximum; the median is None if it is "never"."""


@dataclass(frozen=True)
class ThresholdDifference(Result):
    """The threshold for a kind of decision (`solver.game.groups.Threshold`), in both tables."""

    who: str
    does: str
    lines: int
    """Number of lines of states that differ only in that number."""
    sooner: int
    """Number of lines on which the threshold is now lower; "never" is the highest."""
    later: int
    first: Span | None
    """Thresholds in the first table: minimum and maximum of lines with a threshold, median of all
    lines; None if no line has one."""
    second: Span | None
    never: tuple[int, int]
    """Number of lines without a threshold, in each table."""
    before: str = ""
    """The threshold in words: the median's, or if that did not move, the most frequent move's."""
    now: str = ""
    sentence: str = ""
    decisions: int = 0
    """Number of decisions on these lines."""
    changed: int = 0
    """Number of them that moved, without toss-ups."""
    mean: Cost = 0.0
    """Mean cost of those that moved; 0 if there are none."""

    @property
    def moved(self) -> int:
        """Number of lines on which it moved."""
        return self.sooner + self.later


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """The differences between two tables of the same game."""

    sentences: Annotated[list[str], Field(serialization_alias="says")] = field(
        init=False, default_factory=list
    )
    """The changes in words: thresholds, then the number and cost of moved decisions."""
    payoff_name: str
    chance: bool
    """True if payoffs are chances, whose differences are written in points."""
    states: int
    """Number of compared states."""
    missing: int
    """Number of states of the table `missing_of` that are missing in the other."""
    missing_of: str
    payoffs: int
    """Number of states whose payoffs differ by more than `tolerance`; `largest` is the maximum."""
    largest: float
    tolerance: float
    thresholds_left_out: Annotated[bool, Field(serialization_alias="turns_left_out")]
    """True if thresholds were not computed because not all states of a line were compared."""
    decisions: int
    """Number of states with a decision."""
    actions: int
    """Number of decisions that moved, without toss-ups."""
    toss_ups: int
    """Number of decisions with another best action, for which some action is best in both tables
    within their precision."""
    toss_ups_worst: float
    """Maximum cost of keeping the first table's action at these."""
    one_sided: int
    """Number of decisions in one table only, or whose first action the second does not allow."""
    unpriced: int
    """Number of moved decisions with unknown cost, because a table ends there."""
    mean: Cost
    """Mean cost of keeping the first table's action, over `actions`; `worst_cost`: maximum."""
    worst_cost: Cost
    only: tuple[int | None, int | None]
    """Number of compared states that only the first and only the second table has; None if not
    counted, which is the larger table of a sample."""
    unfinished: tuple[list[str], list[str]]
    """For each table, the parts that are not solved yet."""
    quiet: Quiet
    moves: list[ActionMoves]
    """Most frequent first."""
    worst: list[Difference]
    """The most expensive ones, first."""
    thresholds: Annotated[list[ThresholdDifference], Field(serialization_alias="turns")]
    picture: Annotated[Cells, Field(serialization_alias="cells")]
    """Where decisions moved."""

    def __post_init__(self) -> None:
        counts = [each.sentence for each in self._turned()] + [self._count(), *self._apart()]
        object.__setattr__(self, "sentences", self._not_solved() + counts)

    def _turned(self) -> list[ThresholdDifference]:
        """Return the moved thresholds, by the share of lines on which they moved."""
        moved = [threshold for threshold in self.thresholds if threshold.moved]
        moved.sort(key=lambda each: -each.moved / each.lines)  # stable: ties keep the game's order
        return moved[:MAX_CASES]

    @property
    def notes(self) -> list[str]:
        """Sentences for facts that are not in the small table."""
        counts = [] if self.actions else [self._count()]
        return self._not_solved() + counts + self._apart()

    def amount(self, difference: float) -> str:
        """Return a difference of payoffs as text: ``4.1 points``; – if unknown."""
        if isnan(difference):
            return "–"
        return sentences.Payoffs(self.payoff_name, self.chance).change(difference)

    def case_rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the headings and the cells of the small table: moved thresholds, frequent moves,
        and the total, each with the share of its decisions that moved and their mean cost."""
        total = max(self.decisions, 1)
        rows = [
            (f"{each.who} {each.does}", each.before, each.now,
             each.changed / max(each.decisions, 1), each.mean)
            for each in self._turned()
        ] + [
            ("any decision", str(each.first), str(each.second), each.decisions / total, each.mean)
            for each in self.moves[:MAX_MOVES]
        ]  # fmt: skip
        rows.append(("all decisions", "", "", self.actions / total, self.mean))
        return ("case", "before", "now", "moved", "cost"), [
            (*words, _percent(share), self.amount(cost)) for *words, share, cost in rows
        ]

    def worst_rows(self) -> list[tuple[str, ...]]:
        """Return the most expensive decisions: the state, the cost, and both best actions."""
        return [
            (sentences.fields(each.state), self.amount(each.cost), *map(str, each.best))
            for each in self.worst
        ]

    @property
    def differs(self) -> bool:
        """True if the tables differ. States that one complete table has and another complete table
        does not reach are not a difference; states that a table has not solved yet are."""
        differ = self.payoffs or self.actions or self.toss_ups or self.one_sided
        return bool(differ or self._not_solved())

    def _not_solved(self) -> list[str]:
        """Return a sentence for each incomplete table that lacks states of the other."""
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
        html = html_table(*self.case_rows()) * bool(self.actions)
        html += html_facts("two tables compared", rows)
        heads = ("state", "cost", "first", "second")
        return html + html_table(heads, self.worst_rows()) * bool(self.worst)


def _percent(share: float) -> str:
    """Return a percentage with two digits; 100 % with three."""
    return f"{float(f'{100 * share:.2g}'):g} %"


# --- thresholds ----------------------------------------------------------------------------------


def threshold_difference(
    threshold: Threshold, counts: Mapping[tuple[int, int], int]
) -> ThresholdDifference:
    """Compare a threshold in two tables. counts: number of lines by (first, second) threshold."""
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
    if (sooner or later) and middle[0] == middle[1]:  # the most frequent move
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
    """Return (minimum, median, maximum) of thresholds, with the lower of two medians. "Never"
    counts as the highest number for the median, but not for the minimum and maximum."""
    values = sorted(value for value, n in counts.items() if n)
    numbers = [value for value in values if value != NEVER]
    if not numbers:
        return None
    ends = np.cumsum([counts[value] for value in values])
    middle = values[int(np.searchsorted(ends, (int(ends[-1]) + 1) // 2))]
    return numbers[0], None if middle == NEVER else middle, numbers[-1]
