"""What people group decisions by, and at what number a decision turns: the capability `Groups`.

A game says it in one compiled function of one signature, so that one engine
(`solver.search.expand.classify`) serves every game::

    code = group(board, state, actor, out, rest)

    board   `Groups.numbers`: whatever of the board the function wants to know, in people's units
    state   int64 (fields,), canonical; only read
    actor   who decides, from 0; -1 where both choose at once. Not said where `Groups.decides`
    out     int64 (4,), written: WHICH, which of `Groups.thresholds` the state stands on, or -1; AT,
            where on it, in people's units; X and Y, its cell on the two `axes`, -1 for none
    rest    int64 (fields,), a copy of the state. Where it stands on a threshold, made the same for
            all states of the threshold that differ in AT alone
    code    the group: the columns' codes as one number, the last column fastest; -1 where nobody
            decides, which only a function whose `decides` is true may say

A **threshold** asks from which number on one kind of action is best: the lead from which one
passes, the points from which one holds. The states of one threshold that differ in that number
alone are a *line*; those of a game laid out in tiers stand in one tier. Games that say nothing are
grouped by their first columns (`groups_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from luckbase.solver.compiled import njit, types
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.fields import Field
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import NUMBERS_TYPE, Capability, Numbers

_i, _i1 = types.int64, types.int64[::1]
GROUP_TYPE = types.int64(NUMBERS_TYPE, _i1, _i, _i1, _i1)
GROUP = types.FunctionType(GROUP_TYPE)
"""The type of a group function that is an argument of the engine."""

WHICH, AT, X, Y = 0, 1, 2, 3
"""Where the numbers of `out` stand."""


@dataclass(frozen=True)
class Grouped:
    """A column of the groups. head: what it is, for people; labels: of each code, counted from
    0."""

    head: str
    labels: Sequence[str]


@dataclass(frozen=True)
class Axis:
    """An axis of the picture of where decisions moved: cell i stands for ``low + i * step``."""

    name: str
    label: str
    low: int
    step: int
    cells: int


@dataclass(frozen=True)
class Threshold:
    """From which number on one kind of action is best.

    who: whose decision, as a sentence about it begins: "with one spin left the leader". does: what
    they do from there on: "passes". takes: whether an action, by its name, is of that kind. number:
    how the number is written without its sign, `{:,}` in its place; of: what stands behind it:
    "ahead", "points", an s left out after 1. at: what stands before it.
    """

    who: str
    does: str
    takes: Callable[[str], bool]
    number: str = "{:,}"
    of: str = ""
    at: str = "from"

    def say(self, number: int) -> str:
        """The number in words: "$5,500 ahead"."""
        of = self.of.removesuffix("s") if abs(number) == 1 else self.of
        return f"{self.number.format(abs(number))} {of}".rstrip()


@dataclass(frozen=True)
class TurningPoint:
    """What number of a state a decision turns on, for an answer to say where.

    field: whose number; of a field of the players, that of who decides. takes: whether an action,
    by its name, is of the kind that is told: `doing` it, "passing". number: of states (n, fields)
    and who decides, from 0, the numbers (n,) as people count them, rising with the field's. say:
    one in words: "$5,500 ahead". at: what stands behind it: " in this turn".
    """

    field: str
    takes: Callable[[str], bool]
    doing: str
    number: Callable[[Ints, int], Ints]
    say: Callable[[int], str]
    at: str = ""


@dataclass(frozen=True)
class Groups(Capability):
    """What people group the decisions of a game by (module docstring).

    columns: of a group. group: the compiled function. numbers: what it is given as `board`. axes: x
    and y of the picture. decides: whether the function itself says where nobody decides; else the
    transition is asked first.
    """

    missing: ClassVar[str] = "says no groups of its own; its columns are used"

    columns: Sequence[Grouped]
    group: Any
    numbers: Numbers
    axes: tuple[Axis, Axis]
    thresholds: Sequence[Threshold] = ()
    decides: bool = False
    turning: TurningPoint | None = None

    @property
    def count(self) -> int:
        """How many codes there are."""
        return int(np.prod([len(column.labels) for column in self.columns]))

    @property
    def cells(self) -> int:
        """How many cells the picture has."""
        return self.axes[0].cells * self.axes[1].cells

    def labels(self, code: int) -> tuple[str, ...]:
        """A group in words, a label a column."""
        sizes = [len(column.labels) for column in self.columns]
        numbers = np.unravel_index(code, sizes)
        return tuple(column.labels[int(k)] for column, k in zip(self.columns, numbers, strict=True))


def groups_of(game: Game) -> Groups:
    """What people group the game's decisions by: as it says, or by its first columns."""
    return game.get(Groups) or by_columns(game)


# --- for games that say nothing ------------------------------------------------------------------

MAX_VALUES = 64
"""Values of a column that are told apart one by one; of a wider one, sizes that double."""
DOUBLING = 32
COLUMNS = 2
PLAIN, DOUBLED, MEMBERS = 0, 1, 2


@njit(GROUP_TYPE)
def _by_columns(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """By the columns in board.ints: (its place, how it is counted, how many codes) of each."""
    code = 0
    for k in range(board.ints.size // 3):
        at, how, size = board.ints[3 * k], board.ints[3 * k + 1], board.ints[3 * k + 2]
        value = state[at]
        place = value
        if how != 0:
            place = 0
            while value > 0:
                place += 1 if how == 1 else value & 1
                value >>= 1
        place = min(place, size - 1)
        code = code * size + place
        out[2 + min(k, 1)] = place
    if board.ints.size == 3:
        out[3] = 0
    out[0] = -1
    return code


def by_columns(game: Game) -> Groups:
    """Groups by the values of a game's first columns; sets by how many they hold."""
    fields = [(field, name) for field in game.fields for name in field.columns][:COLUMNS]
    columns, ints, axes = [], [], []
    for at, (field, name) in enumerate(fields):
        how, labels = _counted(field)
        columns.append(Grouped(name, labels))
        ints += [at, how, len(labels)]
        label = f"{name}{('', ', bits', ', members')[how]}"
        low, step = (field.shift, field.unit) if how == PLAIN else (0, 1)
        axes.append(Axis(name, label, low, step, len(labels)))
    if len(axes) == 1:
        axes.append(Axis("all", "", 0, 1, 1))
    numbers = Numbers(np.array(ints, np.int64), np.zeros(1))
    return Groups(columns, _by_columns, numbers, (axes[0], axes[1]))


def _counted(field: Field) -> tuple[int, list[str]]:
    """How the values of a field are told apart, and the labels."""
    if field.is_set:
        return MEMBERS, [f"{k} of them" for k in range(field.high.bit_length() + 1)]
    values = (field.high - field.shift) // field.unit + 1
    if values <= MAX_VALUES:
        return PLAIN, [str(field.shift + k * field.unit) for k in range(values)]

    def said(number: int) -> str:
        return str(field.shift + number * field.unit)

    spans = [(1 << k, (2 << k) - 1) for k in range(min(values.bit_length(), DOUBLING))]
    ends = [said(a) if a == b else f"{said(a)} to {said(min(b, values - 1))}" for a, b in spans]
    return DOUBLED, [said(0), *ends]
