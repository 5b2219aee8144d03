"""A game: the rules bound to one board, and what follows from them for every game alike.

No other room knows a game by name: search, simulation, verification, tables and commands go through
the members of `Game`, and ask it for the capability that they need.

**Agents.** An agent is asked ``choose(game, player, state, actions)`` at a state with more than one
action and answers with an index into `actions`, or with a chance for each of them.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board import registry
from luckbase.solver.board.model import Board
from luckbase.solver.errors import GameError, LuckbaseError, OptionError, StateError
from luckbase.solver.game.arrays import Coded, Ints
from luckbase.solver.game.fields import Fields, Refuse
from luckbase.solver.game.rules import Capability, Rules, Unavailable
from luckbase.solver.game.transition import Numbers, Transition
from luckbase.solver.sentences import named, on_command_line, option

C = TypeVar("C", bound=Capability)

Agent = Callable[["Game", int, Ints, list[int]], int | Sequence[float]]
"""choose(game, player from 0, state (fields,), actions) -> index into actions, or their chances."""


class Stopped(Exception):
    """A solve was asked to stop; what it had done of its shard is thrown away."""


class Game:
    """A game on one board. Immutable; pickled as its board."""

    def __init__(self, board: Board, rules: Rules) -> None:
        self.board, self.rules = board, rules
        self.fields = Fields(rules.fields, board.game)
        self._made: dict[type[Capability], Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return load_game, (self.board,)

    # --- capabilities ------------------------------------------------------------------------

    def has(self, kind: type[Capability]) -> bool:
        """Whether the game has a capability on this board."""
        given = self.rules.capabilities.get(kind)
        return given is not None and not isinstance(given, Unavailable)

    def get(self, kind: type[C]) -> C | None:
        """The capability; None where the game has none of its kind on this board."""
        return self.need(kind) if self.has(kind) else None

    def need(self, kind: type[C]) -> C:
        """The capability. Raises OptionError, in one sentence, where there is none."""
        where = f"board {self.board.name}"
        given = self.rules.capabilities.get(kind)
        if given is None:
            raise OptionError(f"{where}: {self.board.game} {named(kind.missing)}")
        if isinstance(given, Unavailable):
            raise OptionError(f"{where}: {given.why}")
        if kind not in self._made:
            made = registry.load(given)
            self._made[kind] = made if isinstance(made, kind) else made(self)
        found: C = self._made[kind]
        return found

    # --- rules -------------------------------------------------------------------------------

    @property
    def transition(self) -> Transition:
        """What can happen at a state, compiled (`solver.game.transition`)."""
        return self.rules.transition

    @cached_property
    def numbers(self) -> Numbers:
        """The board as numbers, for the transition."""
        given = self.rules.numbers
        if isinstance(given, Numbers):
            return given
        return Numbers(np.array(given, np.int64), np.zeros(1))

    @property
    def players(self) -> int:
        """How many play."""
        return self.rules.players

    @property
    def max_edges(self) -> int:
        """The most edges a state can have."""
        return self.rules.max_edges

    @property
    def rules_version(self) -> int:
        """Raised when the same board gets other values or another row order."""
        return self.rules.version

    @property
    def tie_tolerance(self) -> float:
        """Actions closer than this are tied; the earlier one is taken."""
        return self.rules.tie_tolerance

    @property
    def payoff_range(self) -> tuple[float, float]:
        """The least and the most that a payoff can be."""
        return self.rules.payoff_range

    @property
    def payoff_name(self) -> str:
        """What a payoff is, for people."""
        if self.rules.payoff_name:
            return self.rules.payoff_name
        chance = self.payoff_range == (0.0, 1.0) and not self.pays
        return "chance to win" if chance else "payoff"

    @property
    def pays(self) -> bool:
        """Whether an edge can pay anything; where not, `rewards` are written at the end only."""
        return self.rules.pays

    @property
    def simultaneous(self) -> bool:
        """Whether there are states in which both players choose at once."""
        return self.rules.simultaneous

    @cached_property
    def cut_error(self) -> float:
        """How far payoffs may be from those of the game without what its rules cut off."""
        return 0.0 if self.rules.cut_error is None else self.rules.cut_error()

    @cached_property
    def is_checked(self) -> bool:
        """Whether every state that is expanded is held to the rules: those of other people's games;
        the ones here are held by tests."""
        return not registry.is_here(self.board.game)

    def action_name(self, action: int) -> str:
        """What a person calls the action: "chance" where it has no name, for who acts has one."""
        names = self.rules.actions
        if callable(names):
            return names(action) if action >= 0 else "chance"
        return names[action] if 0 <= action < len(names) else "chance"

    def start(self) -> Ints | None:
        """The canonical state (fields,) in which a play begins; None if a person must say."""
        return None if self.rules.start is None else self.parse(self.rules.start)

    def needed_start(self) -> Ints:
        """`start`; raises OptionError where there is none."""
        found = self.start()
        if found is None:
            raise OptionError(
                f"board {self.board.name}: {self.board.game} has no state that every play starts "
                f"in; say where to start, as {option('start')}"
                + on_command_line(" FIELD=VALUE", "={'field': value}")
            )
        return found

    # --- states ------------------------------------------------------------------------------

    @property
    def field_count(self) -> int:
        """Numbers in a state."""
        return len(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """A name for each number of a state: ``scores_1``; players count from 1 in turn order."""
        return self.fields.columns

    @property
    def bits(self) -> Ints:
        """int64 (fields,): bits that hold each number of every state that a search can meet; at
        most 64 in all (`solver.search.keys`)."""
        return self.fields.bits

    def parse(self, words: Mapping[str, object]) -> Ints:
        """The canonical state, int64 (fields,), of fields in words (``scores=0,2000,3500``, a tuple
        of numbers, …: `solver.game.fields`).

        Raises StateError in one sentence: the field, the value and what would be right.
        """
        found: Ints = self.canonical_states(self.fields.read(words))[0]
        return found

    def canonical_states(self, values: Ints) -> Ints:
        """Canonical states (n, fields) from values in people's units, as `columns` names them.

        Raises StateError as `parse` does, naming the row (from 1) where there are several.
        """
        states = np.asarray(values, np.int64).reshape(-1, self.field_count)
        refuse = Refuse(len(states))
        numbers = self.fields.numbers(states, refuse)
        return numbers if self.rules.canonical is None else self.rules.canonical(numbers, refuse)

    def known_states(self, values: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Canonical states (m, fields) of those values (n, fields) that are states of this
        board, as `canonical_states`, and which they are (n,)."""
        values = np.asarray(values, np.int64).reshape(-1, self.field_count)
        known = np.ones(len(values), bool)
        while known.any():
            try:
                return self.canonical_states(values[known]), known
            except StateError as error:  # each time one more check of a board's is behind us
                if error.wrong is None:
                    raise
                known[known] = ~error.wrong
        return np.empty((0, self.field_count), np.int64), known

    def describe(self, state: Ints) -> dict[str, Any]:
        """The fields of a state as JSON values, in people's units (dollars)."""
        return self.fields.describe(state)

    def state_columns(self, states: Ints) -> dict[str, NDArray[np.int32]]:
        """Columns of states (n, fields) in people's units, named as `columns`. The inverse of
        `canonical_states`."""
        return self.fields.as_columns(states)

    def table_columns(self, states: Ints) -> dict[str, NDArray[np.int32] | Coded]:
        """The columns of states (n, fields) as a table has them: `state_columns`, sets as text."""
        return self.fields.as_table(states)


_loaded: deque[tuple[registry.Entry, Game]] = deque(maxlen=8)
"""The games of this process, each with the entry that it was made of."""


def load_game(board: Board) -> Game:
    """The rules of the board's game, bound to the board: the same ones in a process, until a game
    of this name is registered again.

    Raises BoardError or OptionError for a board that the file format holds and the solver does
    not take; GameError, with the line, where the game's own code raises an error.
    """
    entry, rules = registry.find(board.game), None
    for made_of, game in tuple(_loaded):
        there = game.board
        if made_of is entry and there.model_copy(update={"title": board.title}) == board:
            if (there.title, there.source) == (board.title, board.source):
                return game
            rules = game.rules
    found = Game(board, rules or _rules(entry, board))
    _loaded.append((entry, found))
    return found


def _rules(entry: registry.Entry, board: Board) -> Rules:
    try:
        rules = entry.rules(board)
        if not isinstance(rules, Rules):
            raise TypeError(f"the function that is registered for {board.game} returns "
                            f"{type(rules).__name__}; expected Rules")  # fmt: skip
    except LuckbaseError:
        raise
    except Exception as error:
        if registry.is_here(board.game):
            raise
        from luckbase.solver.game.plugins import fault_in

        file = entry.file.path if entry.file else inspect.getfile(entry.make)  # type: ignore[arg-type]
        raise GameError(registry.said(board.game) + fault_in(Path(file), error)) from None
    return replace(rules, version=(rules.version << 32) + entry.stamp) if entry.stamp else rules
