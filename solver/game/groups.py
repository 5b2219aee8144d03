"""The groups that people sort decisions into, and thresholds: the capability `Groups`.

A game writes one compiled function of one signature, so one engine
(`solver.search.expand.classify`) serves every game::

    code = group(board, state, actor, out, rest)

    board   `Groups.numbers`: whatever the function needs from the board, in people's units
    state   int64 (fields,), canonical; read only
    actor   the player who decides, from 0; -1 if both choose at once. Undefined if `Groups.decides`
    out     int64 (4,), written: WHICH, the index in `Groups.thresholds` of the state's threshold,
            or -1; AT, its number on that threshold, in people's units; X and Y, its cell on the two
            `axes`, or -1
    rest    int64 (fields,), a copy of the state. If the state is on a threshold, make this equal
            for all its states that differ only in AT
    code    the group: the columns' codes as one number, the last column fastest; -1 if no player
            decides, allowed only if `decides` is true

A **threshold** is the number from which one kind of action is best: the lead from which you pass,
the points from which you hold. The states of a threshold that differ only in that number form a
*line*; in a game laid out in tiers they must be in one tier. Games without `Groups` are grouped by
their first columns (`groups_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.solver.compiled import njit, types
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.fields import Field
from luckbase.solver.game.rules import NUMBERS_TYPE, Capability, Numbers

if TYPE_CHECKING:
    from luckbase.solver.game.game import Game

_i, _i1 = types.int64, types.int64[::1]
GROUP_TYPE = types.int64(NUMBERS_TYPE, _i1, _i, _i1, _i1)
GROUP = types.FunctionType(GROUP_TYPE)
"""The type of a group function that is passed to the engine."""

WHICH, AT, X, Y = 0, 1, 2, 3
"""The positions of the numbers in `out`."""


@dataclass(frozen=True)
class Grouped:
    """A column of the groups. head: its name for people; labels: of each code, from 0."""

    head: str
    labels: Sequence[str]


@dataclass(frozen=True)
class Axis:
    """An axis of the picture of changed decisions: cell i is the value ``low + i * step``."""

    name: str
    label: str
    low: int
    step: int
    cells: int


@dataclass(frozen=True)
class Threshold:
    """The number from which one kind of action is best.

    who: the player who decides, to begin a sentence: "with one spin left the leader".
    does: their action from that number on: "passes".
    takes: whether an action, by its name, is of that kind.
    number: format of the number without its sign, with `{:,}` in its place.
    of: the words after the number: "ahead", "points"; a final s is dropped after 1.
    at: the word before the number.
    """

    who: str
    does: str
    takes: Callable[[str], bool]
    number: str = "{:,}"
    of: str = ""
    at: str = "from"

    def say(self, number: int) -> str:
        """Return the number in words: "$5,500 ahead"."""
        of = self.of.removesuffix("s") if abs(number) == 1 else self.of
        return f"{self.number.format(abs(number))} {of}".rstrip()


@dataclass(frozen=True)
class TurningPoint:
    """The number of a state on which a decision turns, so that an answer can name it.

    field: the field of the number; of a field over players, the number of the player who decides.
    takes: whether an action, by its name, is of the kind described by `doing`.
    doing: that kind of action: "passing".
    number: function (states (n, fields), player from 0) -> numbers (n,) as people count them,
        rising with the field.
    say: function from a number to words: "$5,500 ahead".
    at: the words after it: " in this turn".
    """

    field: str
    takes: Callable[[str], bool]
    doing: str
    number: Callable[[Ints, int], Ints]
    say: Callable[[int], str]
    at: str = ""


@dataclass(frozen=True)
class Groups(Capability):
    """The groups of a game's decisions (module docstring).

    columns: the columns of a group.
    group: the compiled function.
    numbers: its argument `board`.
    axes: x and y of the picture.
    decides: whether `group` itself returns -1 if no player decides; otherwise the transition is
        called first to find out.
    """

    columns: Sequence[Grouped]
    group: Any
    numbers: Numbers
    axes: tuple[Axis, Axis]
    thresholds: Sequence[Threshold] = ()
    decides: bool = False
    turning: TurningPoint | None = None

    @property
    def count(self) -> int:
        """The number of codes."""
        return int(np.prod([len(column.labels) for column in self.columns]))

    @property
    def cells(self) -> int:
        """The number of cells of the picture."""
        return self.axes[0].cells * self.axes[1].cells

    def labels(self, code: int) -> tuple[str, ...]:
        """Return a group in words, one label a column."""
        sizes = [len(column.labels) for column in self.columns]
        numbers = np.unravel_index(code, sizes)
        return tuple(column.labels[int(k)] for column, k in zip(self.columns, numbers, strict=True))


def groups_of(game: Game) -> Groups:
    """Return the game's groups, or groups by its first columns if it has none."""
    return game.get(Groups) or by_columns(game)


# --- for games without Groups --------------------------------------------------------------------

MAX_VALUES = 64
"""The most values of a column with one group each; a wider column gets ranges that double."""
DOUBLING = 32
COLUMNS = 2
PLAIN, DOUBLED, MEMBERS = 0, 1, 2


@njit(GROUP_TYPE)
def _by_columns(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """Group by the columns in board.ints: (position, how to count it, number of codes) of each."""
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
    """Group by the values of a game's first columns, and sets by their size."""
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
