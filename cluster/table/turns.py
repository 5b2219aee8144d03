"""At what number decisions turn, in two tables: line by line, from the data.

A *line* is the states of a turning (`solver.game.groups`) that differ in one number alone. It turns
at the least number from which on, on that line, the best action is always of the turning's kind;
never, where it is not at the greatest one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.differences import TurnDifference
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.groups import Turning

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
