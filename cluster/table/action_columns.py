"""Every action's payoffs as columns, the same in an export, in a batch and in a frame.

::

    to_act  best  margin  toss_up  play_payoff_1 play_payoff_2 …  pass_to_3_payoff_1 …

An action's payoff to player i is ``<action>_payoff_<i>``. Where both players choose at once,
``<choice>_chance_<i>`` is the chance of player i's choice in an optimal strategy of his, and
``<choice>_payoff_<i>`` what it pays him against the other's. ``<action>`` is the action's name in
small letters, with ``_`` for all that is neither letter nor digit, so that neither SQL nor
``frame.play_payoff_1`` need quotes. A column is empty (null) where the state has no such action.

Columns, and not a list of actions in each row: what people ask is how two actions compare, and CSV
and Excel have no lists. Their order is that of the rules where the game lists its actions, else
numbers by size and letters by the alphabet.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from luckbase.cluster.table.every_action import EveryAction
from luckbase.cluster.table.format import nullable
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.game.game import Game

DECISION_COLUMNS = {
    "to_act": pa.int8(), "best": pa.string(), "margin": pa.float64(), "toss_up": pa.bool_(),
}  # fmt: skip
"""What is said of a decision beside its actions."""
MOST_COLUMNS = 2_000
"""Columns of actions that are made; more would be read by nobody."""


@dataclass(frozen=True)
class ActionNames:
    """The actions that states have, and the choices of those who choose at once."""

    game: Game
    actions: tuple[str, ...]
    choices: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> list[str]:
        """The names of all columns of actions. Raises OptionError where they are too many."""
        pairs = [(name, "payoff") for name in self.actions]
        pairs += [(name, kind) for name in self.choices for kind in ("chance", "payoff")]
        players = range(1, self.game.players + 1)
        every = (f"{self.words[name]}_{kind}_{i}" for name, kind in pairs for i in players)
        found = list(dict.fromkeys(every))
        if len(found) > MOST_COLUMNS:
            raise OptionError(
                f"actions: {len(self.actions) + len(self.choices):,} of them make {len(found):,} "
                f"columns, and the most is {MOST_COLUMNS:,}; ask for fewer states, or without "
                "actions"
            )
        return found

    @cached_property
    def words(self) -> dict[str, str]:
        """The word of each action and choice in a column's name; no two have the same."""
        found: dict[str, str] = {}
        for name in dict.fromkeys([*self.actions, *self.choices]):
            word, number = word_of(name), 1
            while word in found.values():
                number += 1
                word = f"{word_of(name)}_{number}th"
            found[name] = word
        return found

    def of(self, told: EveryAction, wanted: Collection[str] | None = None) -> dict[str, pa.Array]:
        """The columns of n states, those wanted: `DECISION_COLUMNS` and of actions."""
        made: dict[str, Any] = {
            "to_act": lambda: pa.array(told.to_act.astype(np.int8)),
            "best": lambda: pa.array(told.best_names(), pa.string()),
            "margin": lambda: nullable(told.margins),
            "toss_up": lambda: pa.array(told.ties),
        }
        made |= self._payoffs(told)
        names = [*DECISION_COLUMNS, *self.columns]
        shown = [name for name in names if wanted is None or name in wanted]
        none = np.full(len(told), np.nan)
        return {name: made[name]() if name in made else nullable(none) for name in shown}

    def _payoffs(self, told: EveryAction) -> dict[str, Any]:
        """How to make each column of those of these states."""
        found: dict[str, Any] = {}
        owners = np.repeat(np.arange(len(told)), np.diff(told.first))
        for name, rows in _rows_of(told.names, told.named):
            for i in range(self.game.players):
                column = _Column(len(told), owners, told.q[:, i], rows)
                found[f"{self.words[name]}_payoff_{i + 1}"] = column
        bids = told.bids
        if bids is None:
            return found
        owners = np.repeat(np.arange(len(told)), np.diff(bids.first))
        for name, rows in _rows_of(bids.names, bids.named):
            for kind, values in (("chance", bids.chances), ("payoff", bids.payoffs)):
                for player in range(2):
                    own = rows[bids.players[rows] == player]
                    column = _Column(len(told), owners, values, own)
                    found[f"{self.words[name]}_{kind}_{player + 1}"] = column
        return found


@dataclass(frozen=True)
class _Column:
    """A column of n states that is made when it is called for: of some rows of what the actions
    have, each at its owner's place."""

    n: int
    owners: Ints
    values: Floats
    rows: Ints

    def __call__(self) -> pa.Array:
        found = np.full(self.n, np.nan)
        found[self.owners[self.rows]] = self.values[self.rows]
        return nullable(found)


def _rows_of(names: Sequence[str], named: Ints) -> Iterable[tuple[str, Ints]]:
    """(name, which of the k have it) of each name."""
    order = np.argsort(named, kind="stable")
    ends = np.searchsorted(named[order], np.arange(len(names) + 1))
    for code, name in enumerate(names):
        yield name, order[ends[code] : ends[code + 1]]


def word_of(name: str) -> str:
    """The name of an action as a part of a column's name: ``pass to 3`` is ``pass_to_3``."""
    word = re.sub(r"\W+", "_", name.lower()).strip("_")
    return word if word and not word[0].isdigit() else f"action_{word}".rstrip("_")


def names_of(game: Game, told: EveryAction) -> ActionNames:
    """The actions that n states have."""
    actions = [told.names[code] for code in np.unique(told.named).tolist()]
    bids = told.bids
    choices = [] if bids is None else [bids.names[c] for c in np.unique(bids.named).tolist()]
    return ActionNames(game, in_order(game, actions), in_order(game, choices))


def listed_actions(game: Game) -> tuple[str, ...]:
    """All actions of a game, in the order of its rules; none where it lists none."""
    if not callable(game.rules.actions):
        return tuple(game.rules.actions)
    layout = game.get(Layout)
    return () if layout is None else tuple(layout.best_names)


def in_order(game: Game, names: Iterable[str]) -> tuple[str, ...]:
    """Names of actions in the order of their columns."""
    known = {name: k for k, name in enumerate(listed_actions(game))}
    return tuple(sorted(names, key=lambda name: (known.get(name, len(known)), _natural(name))))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """What sorts numbers by their size."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
