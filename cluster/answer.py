"""Answers to questions, and what every table does: payoffs looked up, one step of the rules.

A payoff comes from float32, and the payoff of an action is a mean of such: both are within
`Table.error` of float64. The best action is the one that the solve took in float64: of those that
the acting player can not tell apart at this precision, the one whose payoffs are the stored ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from cluster.manifest import Manifest
from solver.backup import Edges, evaluate, expand, joint, payoffs_of
from solver.errors import MissingTableError, StateError
from solver.game import SIMULTANEOUS, TERMINAL, Floats, Game, Ints

if TYPE_CHECKING:
    from solver.policy import Policy

D = TypeVar("D")


@dataclass(frozen=True)
class Action:
    """An action's name and its payoff, one a player; `upper` where a search was cut."""

    name: str
    value: tuple[float, ...]
    upper: tuple[float, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """The action with the names of DESIGN 4."""
        said = {"action": self.name, "value": list(self.value)}
        return said if self.upper is None else said | {"upper": list(self.upper)}


@dataclass(frozen=True)
class Bid:
    """A choice of one player where both choose at once: its chance in an optimal strategy, and the
    least and the most that it can have in one."""

    name: str
    chance: float
    least: float
    most: float

    @property
    def sure(self) -> bool:
        """Whether every optimal strategy gives it this chance (to the precision of `ranges`)."""
        return self.most - self.least < 1e-4


@dataclass(frozen=True)
class Answer:
    """What a table says of a state. Payoffs are lists over players in turn order.

    to_act: the player to act, counted from 1; None where the game is over. actions: best first for
    him. toss_up: another action is worth as much to him as far as `error` can tell. upper: where a
    search was cut, the upper bounds, `value` and the actions' values being the lower ones; `best`
    is None where the bounds do not decide. strategies: where both players choose at once, an
    optimal one of each; then actions are player 1's against the other's strategy, the likeliest
    first, `best` is None unless one is certain, and toss_up says that others are optimal too.
    """

    board: str
    state: dict[str, Any]
    to_act: int | None
    value: tuple[float, ...]
    actions: tuple[Action, ...]
    best: str | None
    toss_up: bool
    error: float
    source: str = "table"
    upper: tuple[float, ...] | None = None
    strategies: tuple[tuple[Bid, ...], ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """The answer with the names and the order of DESIGN 4."""
        said: dict[str, Any] = {
            "board": self.board,
            "state": self.state,
            "to_act": self.to_act,
            "value": list(self.value),
            "actions": [a.as_json() for a in self.actions],
            "best": self.best,
            "toss_up": self.toss_up,
            "error": self.error,
            "source": self.source,
        }
        if self.upper is not None:
            said["upper"] = list(self.upper)
        if self.strategies is not None:
            said["strategies"] = [
                [{"action": b.name, "chance": b.chance, "least": b.least, "most": b.most}
                 for b in side]
                for side in self.strategies
            ]  # fmt: skip
        return said


class Table(ABC):
    """An open table; a context manager. Safe to use from one thread at a time."""

    game: Game

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the files and forget what was decoded."""

    @property
    def error(self) -> float:
        """The bound on the error of every payoff."""
        return self.manifest.payoff_error

    # --- payoffs -----------------------------------------------------------------------------

    @abstractmethod
    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """The payoffs (n, players), float64, of canonical states (n, fields), and of which states
        (n,) the table has them; those of states that are over come from the rules."""

    @abstractmethod
    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether the table holds each canonical state (n, fields); not where it is over."""

    @abstractmethod
    def why_outside(self, state: Ints) -> str | None:
        """Why the table, complete, does not hold a canonical state, after "is"; None if it does."""

    @abstractmethod
    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        """About `count` states drawn evenly from the rows of the table, in key order, in pieces."""

    @abstractmethod
    def all_states(self) -> Iterator[Ints]:
        """Every state whose payoff the table has from its children, in key order, in pieces."""

    def residuals(self, states: Ints) -> Floats:
        """(n,) |payoff by the rules over the stored children - stored payoff|, the largest over
        players, of states (n, fields) of the table."""
        stored = self.probe(states)
        look = self.best_actions(expand(self.game, states), stored)
        found: Floats = np.abs(look.values[look.best] - stored).max(axis=1)
        return found

    def probe(self, states: Ints) -> Floats:
        """The payoffs (n, players), float64, of canonical states (n, fields).

        Raises MissingTableError for the first state that is not in the table.
        """
        payoffs, found = self.look(states)
        if not found.all():
            state = np.asarray(states).reshape(len(found), -1)[np.flatnonzero(~found)[0]]
            raise MissingTableError(self._missing(state))
        return payoffs

    def get(self, state: Ints, default: D) -> Floats | D:
        """The payoffs (players,) of one state, or `default` where the table does not hold it."""
        payoffs, found = self.look(np.asarray(state).reshape(1, -1))
        return payoffs[0] if found[0] else default

    def worth(self, states: Ints) -> Floats:
        """As `probe`, and also of states that the table does not hold but all of whose children it
        does: one step of the rules over it."""
        payoffs, found = self.look(states)
        missing = np.flatnonzero(~found)
        if len(missing):
            edges = expand(self.game, np.asarray(states)[missing])
            below, there = self.look(edges.children)
            if not there.all():
                owner = np.repeat(np.arange(len(missing)), np.diff(edges.first))
                at = missing[owner[np.flatnonzero(~there)[0]]]
                raise MissingTableError(self._missing(np.asarray(states)[at]))
            q = evaluate(edges, below)
            payoffs[missing] = payoffs_of(edges.kinds, edges.actors, q, self.game.tie_tolerance)
        return payoffs

    def one_step_above(self, state: Ints) -> bool:
        """Whether the table holds all children of a state (fields,) that it does not hold."""
        edges = expand(self.game, state.reshape(1, -1))
        return bool(self.look(edges.children)[1].all())

    def _missing(self, state: Ints) -> str:
        why = self.why_outside(state) or "not solved yet in this table"
        return f"{said(self.game, state)} is {why}"

    # --- answers -----------------------------------------------------------------------------

    def ask(self, words: Mapping[str, str]) -> Answer:
        """The answer to fields as text. Raises StateError, or MissingTableError as `probe`."""
        state = self.game.parse(words).reshape(1, -1)
        edges = expand(self.game, state)
        if edges.kinds[0] == SIMULTANEOUS:
            return self._bids(words, state[0], edges)
        return self.answers(state)[0]

    def _bids(self, words: Mapping[str, str], state: Ints, edges: Edges) -> Answer:
        """The answer to a state in which both players choose at once."""
        from solver import matrix_game  # long to compile

        q = evaluate(edges, self.worth(edges.children))
        game = joint(q.actions, q.values)
        solved = matrix_game.solve(game.games[None])
        row, column = solved.row_strategies[0], solved.column_strategies[0]
        value = float(solved.values[0])
        named = [self.game.choice_names(words, player, len(s)) for player, s in
                 enumerate((row, column))]  # fmt: skip
        sides = []
        for names, chances, own in (
            (named[0], row, game.games), (named[1], column, -game.games.T)
        ):  # fmt: skip
            least, most = matrix_game.ranges(np.ascontiguousarray(own)).T
            numbers = zip(names, chances, least, most, strict=True)
            sides.append(tuple(Bid(n, float(c), float(a), float(b)) for n, c, a, b in numbers))
        against = game.games @ column
        order = sorted(range(len(row)), key=lambda k: (-row[k], -against[k], k))
        actions = tuple(
            Action(named[0][k], (float(against[k]), game.total - float(against[k]))) for k in order
        )
        return Answer(
            self.manifest.board, self.game.describe(state), None, (value, game.total - value),
            actions, actions[0].name if row.max() > 1 - 1e-9 else None,
            any(not bid.sure for side in sides for bid in side),
            self.error + float(solved.gaps[0]), strategies=tuple(sides),
        )  # fmt: skip

    def answers(self, states: Ints) -> list[Answer]:
        """The answers to canonical states (n, fields): one step of the rules over the table.

        Raises StateError for a state that the full table would not hold either.
        """
        values, found = self.look(states)
        for x in np.flatnonzero(~found):
            outside = self.why_outside(states[x]) is not None
            raise (StateError if outside else MissingTableError)(self._missing(states[x]))
        edges = expand(self.game, states)
        outcome = self.best_actions(edges, values)
        return [self._answer(x, states[x], values[x], edges, outcome) for x in range(len(states))]

    def best_actions(self, edges: Edges, values: Floats) -> Lookahead:
        """Every action's payoffs and the one that the solve took, for expanded states.

        `values` (n, players): the stored payoffs of the states themselves.
        """
        # Children of a state that is over are the state itself, whose payoff is not looked at.
        q = evaluate(edges, self.worth(edges.children))
        actor = np.maximum(edges.actors, 0)[q.states]
        own = q.values[np.arange(len(q.states)), actor]
        top = np.maximum.reduceat(own, q.first[:-1])
        slack = 2 * self.error + self.game.tie_tolerance
        level = own >= top[q.states] - slack
        distance = np.abs(q.values - values[q.states]).max(axis=1)
        distance = np.where(level, distance, np.inf)
        near = np.minimum.reduceat(distance, q.first[:-1])
        candidates = np.flatnonzero(level & (distance <= near[q.states] + slack))
        best = candidates[np.searchsorted(q.states[candidates], np.arange(len(values)))]
        ties = np.add.reduceat(level.astype(np.int64), q.first[:-1]) > 1
        return Lookahead(q.first, q.actions, q.values, best, ties)

    def best_names(
        self, edges: Edges, states: Ints, values: Floats
    ) -> list[tuple[str | None, bool]]:
        """(best action, None where there is none; whether it is a toss-up) of expanded states,
        whose stored payoffs are `values`."""
        look = self.best_actions(edges, values)
        actions = look.actions[look.best]
        return [
            (None, False) if over else (self.game.action_name(int(action)), bool(tie))
            for action, tie, over in zip(actions, look.ties, edges.terminal, strict=True)
        ]

    def _answer(self, x: int, state: Ints, value: Floats, edges: Edges, look: Lookahead) -> Answer:
        first, last = look.first[x], look.first[x + 1]
        common = (self.manifest.board, self.game.describe(state))
        stored = tuple(map(float, value))
        if edges.kinds[x] == TERMINAL:
            return Answer(*common, None, stored, (), None, False, 0.0)
        if edges.actors[x] < 0:  # chance alone
            return Answer(*common, None, stored, (), None, False, self.error)
        actor, best = int(edges.actors[x]), int(look.best[x])
        order = sorted(range(first, last), key=lambda k: (k != best, -look.values[k, actor], k))
        actions = tuple(
            Action(self.game.action_name(int(look.actions[k])), tuple(map(float, look.values[k])))
            for k in order
        )
        return Answer(
            *common, actor + 1, stored, actions, actions[0].name, bool(look.ties[x]), self.error
        )


@dataclass(frozen=True)
class Lookahead:
    """One step ahead of n states with k actions in all.

    first: int64 (n + 1,). actions: int64 (k,). values: float64 (k, players). best: int64 (n,) into
    the k. ties: bool (n,), whether the best has a rival that precision can not tell from it.
    """

    first: Ints
    actions: Ints
    values: Floats
    best: Ints
    ties: NDArray[np.bool_]


def said(game: Game, state: Ints) -> str:
    """A state as a person would type it: ``scores=0,500,0 earned=1,0,0 …``."""
    return " ".join(
        f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in game.describe(state).items()
    )


def policy_of(table: Table) -> Policy:
    """The table's best actions as an agent; it must hold the states that it is asked about, less
    the fields that only agents look at (`Game.plain`)."""
    from solver.policy import Policy  # compiles the search

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        asked = np.ascontiguousarray(states[:, : table.game.field_count])
        edges = expand(table.game, asked)
        if len(asked) and edges.kinds[0] == SIMULTANEOUS:
            return _strategies(table, player, edges)
        found = []
        for answer, own in zip(table.answers(asked), actions, strict=True):
            names = [game.action_name(int(action)) for action in own]
            if answer.best is None:
                raise MissingTableError(f"{table.path}: says no best action at {answer.state}")
            found.append(np.array([float(name == answer.best) for name in names]))
        return found

    return Policy(decide)


def _strategies(table: Table, player: int, edges: Edges) -> list[Floats]:
    """A player's optimal strategies at expanded states in which both choose at once."""
    from solver import matrix_game

    q = evaluate(edges, table.worth(edges.children))
    found = []
    for x in range(len(edges.kinds)):
        here = slice(int(q.first[x]), int(q.first[x + 1]))
        solved = matrix_game.solve(joint(q.actions[here], q.values[here]).games[None])
        found.append((solved.row_strategies if player == 0 else solved.column_strategies)[0])
    return found
