"""A table over two of its columns, the others fixed: payoffs, margins and best actions at once.

>>> with luckbase.open("boards/pig/tiny.toml") as table:
...     made = grid(table, Wish("mine", "turn", {"mine": "0", "yours": "10"}, "best"))
...     made.values.shape, made.actions
((20, 20), ('hold', 'roll'))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.part import worth
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import nearest

if TYPE_CHECKING:
    from luckbase.cluster.table.table import Table

MOST_CELLS = 40_000
PIECE = 4_000
"""States that are looked at together: some 60 children each."""
DRAWN = 2_000
"""Rows that are drawn to see between which values the columns lie."""
COLOURS = ("margin", "best")
"""What a cell may say beside the payoff of a player, value_1, …"""


@dataclass(frozen=True)
class Axis:
    """The values of one column, ascending, in people's units."""

    name: str
    values: Ints


@dataclass(frozen=True)
class Wish:
    """What is asked for. x, y: columns. base: a state in words, for the other fields. colour: what
    the numbers are: value_1, … (a player's payoff), margin or best. spans: the least value, the
    greatest and the step of a column, where they are not those of the table."""

    x: str
    y: str
    base: Mapping[str, str]
    colour: str
    spans: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Grid:
    """x, y: the axes. values: float64 (len(x), len(y)): the numbers; NaN where there is no state,
    the table does not hold it, or there is no such number. best: int16, the same shape, into
    `actions`; -1 where nobody decides. to_act: int8, the same shape: who decides, from 1; 0
    nobody. full: int64 (columns,), the state of all other cells' fields, in people's units."""

    x: Axis
    y: Axis
    values: Floats
    best: NDArray[np.int16]
    to_act: NDArray[np.int8]
    actions: tuple[str, ...]
    full: Ints


def column_spans(table: Table) -> dict[str, tuple[int, int, int]]:
    """Of each column that is a number: the least and the greatest value among some thousand rows
    of the table, drawn evenly, and the step between values."""
    game, found = table.game, {}
    drawn = list(table.draw(DRAWN, 0))
    if not drawn:
        return {}
    columns = game.state_columns(np.concatenate(drawn))
    for each in game.fields:
        for name in () if each.is_set else each.columns:
            values = columns[name]
            found[name] = int(values.min()), int(values.max()), each.unit
    return found


def grid(table: Table, wish: Wish) -> Grid:
    """The table over two columns.

    Raises OptionError for columns or colours that are none, and for more than `MOST_CELLS` cells;
    StateError for a base that is no state.
    """
    game = table.game
    spans = column_spans(table) | dict(wish.spans)
    xs, ys = (_axis(name, value, spans) for name, value in (("x", wish.x), ("y", wish.y)))
    if wish.x == wish.y:
        raise OptionError(f"y: {wish.y} is the column of x too; take another one")
    cells = len(xs.values) * len(ys.values)
    if cells > MOST_CELLS:
        raise OptionError(
            f"x and y: {len(xs.values)} by {len(ys.values)} are {cells:,} cells; the most is "
            f"{MOST_CELLS:,}: take {wish.x}_from, {wish.x}_to, {wish.x}_step closer"
        )
    known = [f"value_{i + 1}" for i in range(game.players)] + list(COLOURS)
    if wish.colour not in known:
        raise OptionError(f"colour: '{wish.colour[:30]}' is none; {nearest(wish.colour, known)}")
    base = game.fields.read(wish.base)
    values = np.repeat(base[None], cells, axis=0)
    at = [game.columns.index(each.name) for each in (xs, ys)]
    values[:, at[0]] = np.repeat(xs.values, len(ys.values))
    values[:, at[1]] = np.tile(ys.values, len(xs.values))
    numbers, best, acts, actions = _cells(table, values, wish.colour)
    shape = len(xs.values), len(ys.values)
    return Grid(
        xs, ys, numbers.reshape(shape), best.reshape(shape), acts.reshape(shape), actions, base
    )


def _axis(which: str, name: str, spans: Mapping[str, tuple[int, int, int]]) -> Axis:
    if name not in spans:
        known = list(spans)
        raise OptionError(
            f"{which}: '{name[:30]}' is no column of numbers of this table; {nearest(name, known)}"
        )
    low, high, step = spans[name]
    if step < 1 or high < low or (high - low) // step >= MOST_CELLS:
        raise OptionError(f"{which}: {name} from {low} to {high} by {step} is no row of values")
    return Axis(name, np.arange(low, high + 1, step))


def _cells(
    table: Table, values: Ints, colour: str
) -> tuple[Floats, NDArray[np.int16], NDArray[np.int8], tuple[str, ...]]:
    """Of states as a person gives them, values (n, columns): the numbers (n,), the best actions
    (n,) by their names, and who decides (n,)."""
    game = table.game
    states, sound = game.known_states(values)
    numbers, best = np.full(len(values), np.nan), np.full(len(values), -1, np.int16)
    acts = np.zeros(len(values), np.int8)
    names: dict[str, int] = {}
    for start in range(0, len(states), PIECE):
        here = states[start : start + PIECE]
        at = np.flatnonzero(sound)[start : start + PIECE]
        payoffs, there = worth(game, table.look, here, table.tolerance)
        held = there & (table.owners(here) >= 0)
        said: list[str | None] = [None] * len(here)
        margins = np.full(len(here), np.nan)
        if held.any():
            own = np.flatnonzero(held)
            if colour == "margin":
                found, margins[own], _ = table.best_of(here[own])
            else:
                found = table.stored_best(here[own])
            for x, name in zip(own.tolist(), found, strict=True):
                said[x] = name
        codes = [-1 if name is None else names.setdefault(name, len(names)) for name in said]
        best[at] = codes
        acts[at] = np.where(best[at] >= 0, _actors(game, here), 0)
        if colour == "margin":
            numbers[at] = margins
        elif colour == "best":
            numbers[at] = np.where(best[at] >= 0, best[at], np.nan)
        else:
            numbers[at] = np.where(
                there, payoffs[:, int(colour.removeprefix("value_")) - 1], np.nan
            )
    return numbers, best, acts, tuple(names)


def _actors(game: Game, states: Ints) -> Ints:
    """(n,) who decides, from 1; 0 nobody, or both at once."""
    from luckbase.solver.graph.bellman import expand

    return np.asarray(expand(game, states).actors + 1)
