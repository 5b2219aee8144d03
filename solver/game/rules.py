"""The contract between a game and everything else.

A game is the rules, as code, bound to one board. It is immutable and picklable, and it knows
nothing of Ray, Parquet or the terminal. Everything else (search, simulation, verification, the
tables) goes through the members of `Game`; no other room knows a game by name.

A **state** is a row of int64 numbers, one a field column (`Game.columns`), always canonical.

**Transition.** One compiled function a game gives the edges of a state, with their weights and
rewards: the rules, written once (`solver.game.transition`).

**Agents.** An agent is asked ``choose(game, player, state, actions)`` at a state with more than one
action and answers with an index into `actions`, or with a chance for each of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board.model import Board
from luckbase.solver.charts.model import Heatmap, Kind, Listing, Look, Wanted
from luckbase.solver.errors import OptionError
from luckbase.solver.game.coded import Coded, coded_sets
from luckbase.solver.game.transition import Numbers, Transition


class Stopped(Exception):
    """A solve was asked to stop; what it had done of its shard is thrown away."""


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Agent = Callable[["Game", int, Ints, list[int]], int | Sequence[float]]
"""choose(game, player from 0, state (fields,), actions) -> index into actions, or their chances."""


class Game(ABC):
    """The rules of a game on one board: all that search, simulation and evaluation need."""

    rules_version: ClassVar[int]
    """Raised when the same board gets other values or another row order; old tables are stale."""
    players: ClassVar[int]
    max_edges: int
    """The most edges a state can have."""
    fields: ClassVar[tuple[tuple[str, int], ...]]
    """(name, length) of the fields in state order; a length above 1 is a list over players."""
    bits: Ints
    """int64 (fields,): bits that hold each number of every state that a search can meet; at most 64
    in all (`solver.graph.keys`)."""
    sets: ClassVar[frozenset[str]] = frozenset()
    """The fields, of one column each, that are sets of numbers from 1, number k being bit k - 1."""
    tie_tolerance: ClassVar[float]
    """Actions closer than this are tied; the earlier one is taken."""
    payoff_range: tuple[float, float] = (0.0, 1.0)
    """The least and the most that a payoff can be; what a state that was cut lies between."""
    simultaneous: ClassVar[bool] = False
    """Whether there are states in which both players choose at once."""
    cyclic: ClassVar[bool] = False
    """Whether nearly every state can come back to nearly every other: then below any two of them
    lies the same, and a search is one shard unless a depth is asked for."""
    pays: ClassVar[bool] = False
    """Whether an edge can pay anything; where not, `rewards` are written at the end only."""
    equally_likely: int = 0
    """So many equally likely outcomes has every chance event (36 rolls); 0 where it is not so."""

    def __init__(self, board: Board) -> None:
        self.board = board

    # --- rules: required -------------------------------------------------------------------

    @property
    @abstractmethod
    def transition(self) -> Transition:
        """The compiled transition (`solver.game.transition`)."""

    @property
    @abstractmethod
    def numbers(self) -> Numbers:
        """The board as numbers, for `transition`."""

    @abstractmethod
    def parse(self, words: Mapping[str, str]) -> Ints:
        """The canonical state, int64 (fields,), of fields as text (``scores=0,2000,3500``).

        Raises StateError in one sentence: the field, the value and what would be right.
        """

    @abstractmethod
    def canonical_states(self, values: Ints) -> Ints:
        """Canonical states (n, fields) from columns in people's units, as `columns` names them.

        Raises StateError as `parse` does, naming the row (from 1) where there are several.
        """

    @abstractmethod
    def describe(self, state: Ints) -> dict[str, Any]:
        """The fields of a state as JSON values, in people's units (dollars)."""

    @abstractmethod
    def action_name(self, action: int) -> str:
        """What a person calls the action."""

    # --- rules: optional ---------------------------------------------------------------------

    def start(self) -> Ints | None:
        """The canonical state (fields,) in which a play begins; None if a person must say."""
        return None

    def needed_start(self) -> Ints:
        """`start`; raises OptionError where there is none."""
        found = self.start()
        if found is None:
            raise OptionError(
                f"board {self.board.name}: {self.board.game} has no state that every play starts "
                "in; say where to start, as --from FIELD=VALUE"
            )
        return found

    def agents(self) -> Mapping[str, Any]:
        """The game's own agents by name: an `Agent`, or a `solver.policy.evaluate.Policy`, which is
        asked about many states at once. (`optimal`, `best-response`, `random` need none.)"""
        return {}

    def choice_names(self, words: Mapping[str, str], player: int, count: int) -> list[str]:
        """What a person calls the `count` actions, ascending, of a player (from 0) at a
        simultaneous state that he gave as fields; in his own words, not the canonical ones."""
        return [str(k) for k in range(count)]

    def positions(self) -> Ints | None:
        """States (n, fields) that a drawing of everything shows, though no play may come to them;
        None where there is no such list."""
        return None

    def charts(self) -> Sequence[Kind]:
        """The charts of the full table that `chart` makes, the usual one first; none where the
        game has none."""
        return ()

    def chart(self, name: str, look: Look, wanted: Wanted) -> Listing | Heatmap:
        """The chart of this name, one of `charts`: a Heatmap where its kind is a picture.

        `look` gives the payoffs (n, players) of canonical states (n, fields) that the full table
        holds. Raises OptionError for what is wanted and this chart does not do, StateError for
        fields that are none of its own.
        """
        raise OptionError(f"{self.board.game} has no charts")

    def quick_value(self, agents: Sequence[str]) -> tuple[float, ...] | None:
        """The exact payoffs from the start of a profile of agents by name, one a player, by a way
        of the game's own that needs no graph; None where it has none for these."""
        return None

    def facts(self, agents: Sequence[str]) -> list[tuple[str, str, float]]:
        """(agent, what it is, number) of agents by name, where the game has more to say of them
        than a payoff: what a turn brings, what a fault costs."""
        return []

    def exact_value(self, agent: Agent | None) -> Fraction:
        """The payoff of the start in fractions, of an agent or (None) of the best play.

        Raises OptionError where the game has none.
        """
        raise OptionError(f"--exact: no exact fractions for {self.board.game}; leave it out")

    def choices(self, state: Ints, actions: list[int]) -> list[int]:
        """What an agent is asked to choose from, given the state's actions; these if no more.

        A game whose players see one thing twice (two equal dice) lists it twice.
        """
        return actions

    def plain(self) -> Game:
        """The game with the same payoffs whose states leave out what changes no value (what agents
        look at), as its `simplify` does; this game where there is nothing such."""
        return self

    def detailed(self) -> Game:
        """The game, with this one for its `plain`, whose states say all that a person at the table
        sees; this game where nothing is left out."""
        return self

    def simplify(self, states: Ints) -> Ints:
        """The states (n, fields) of this game with the payoffs of states of one it is `plain` of:
        the first fields."""
        return np.ascontiguousarray(states[:, : self.field_count])

    def as_seen_by(self, player: int, state: Ints) -> Ints:
        """A state (fields,) in the words of a player, from 0, of two who choose at once: with
        himself as the first; the way back as well."""
        return state

    def states_below(self, state: Ints) -> float | None:
        """About how many states a search from a state (fields,) meets; None if that is unknown."""
        return None

    def shard_keys(self, states: Ints) -> Ints:
        """int64 (n,): states (n, fields) with the same number go to one shard of a search.

        Best are parts that what lies below a state can not change, so that shards overlap little.
        """
        weights = np.array([0x9E3779B1 * (2 * i + 1) for i in range(self.field_count)])
        mixed: Ints = (states * weights).sum(axis=1) >> 7
        return mixed

    def opening_questions(self) -> Iterator[tuple[str, dict[str, str]]]:
        """(what it shows, fields) of a few instructive states that the full table answers."""
        return iter(())

    def state_columns(self, states: Ints) -> dict[str, NDArray[np.int32]]:
        """Columns of states (n, fields) in people's units, named as `columns`; the states' numbers
        if they are that. The inverse of `canonical_states`."""
        return {name: states[:, i].astype(np.int32) for i, name in enumerate(self.columns)}

    # --- what follows from the above ---------------------------------------------------------

    def table_columns(self, states: Ints) -> dict[str, NDArray[np.int32] | Coded]:
        """The columns of states (n, fields) as a table has them: `state_columns`, sets as text."""
        return {
            name: coded_sets(column) if name in self.sets else column
            for name, column in self.state_columns(states).items()
        }

    @cached_property
    def payoff_name(self) -> str:
        """What a payoff is, for people; a game may set its own."""
        chance = self.payoff_range == (0.0, 1.0) and not self.pays
        return "chance to win" if chance else "payoff"

    @property
    def field_count(self) -> int:
        """Numbers in a state."""
        return sum(length for _, length in self.fields)

    @property
    def columns(self) -> tuple[str, ...]:
        """A name for each number of a state: ``scores_1``; players count from 1 in turn order."""
        return tuple(
            name if length == 1 else f"{name}_{i + 1}"
            for name, length in self.fields
            for i in range(length)
        )
