"""A table: everything that was solved under one rules identity, open for questions.

    >>> with cluster.open_table("results/press-your-luck/1985-02/ab2edb73e281") as table:
    ...     table.probe(states)                       # (n, fields) -> (n, players) float64
    ...     table.ask({"scores": "0,10000,7000", "earned": "0,1,0"}).best
    'pass to 2'

A state is answered by the part that holds it: the full table first, then what lies below the roots
of searches, then the parts of searches that ended at another table or were cut. What no part holds
is worked out: one step of the rules where all its children are there, else a search down to what
is (`cluster.table.above`). `probe` raises MissingTableError for a state that is not held, `get`
gives a default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.answer import Answer, Origin, origin_of, said
from luckbase.cluster.table.find import why_stale
from luckbase.cluster.table.keyed import KeyPart
from luckbase.cluster.table.ledger import Ledger, read_ledger
from luckbase.cluster.table.lines import TIERS, Goal
from luckbase.cluster.table.part import Part, worth
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.tiers import TierPart
from luckbase.solver import load_game
from luckbase.solver.errors import MissingTableError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import simplify
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import SIMULTANEOUS, TERMINAL
from luckbase.solver.graph.bellman import Expanded, evaluate, expand, joint

if TYPE_CHECKING:
    from luckbase.solver.policy.evaluate import Policy

D = TypeVar("D")


class Table:
    """An open table; a context manager. Safe to use from one thread at a time."""

    def __init__(self, path: Path, ledger: Ledger, *, named_by_board: bool = False) -> None:
        """named_by_board: found by the rules of a board file as it stands, so never stale."""
        self.path, self.ledger, self.named_by_board = path, ledger, named_by_board
        goal = furthest(ledger)
        self.game: Game = load_game(ledger.board({} if goal is None else goal.reach))
        storage = Folder(path)
        self.parts: list[Part] = [
            (TierPart if name == TIERS else KeyPart)(storage, path, ledger, name, self.game)
            for name in ledger.part_names()
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and forget what was decoded."""
        for part in self.parts:
            part.close()

    @cached_property
    def origin(self) -> Origin:
        """What every answer says of the table."""
        stale = () if self.named_by_board else tuple(why_stale(self.ledger, absent_is_stale=False))
        return origin_of(self.game, stale)

    @cached_property
    def exact(self) -> list[Part]:
        """The parts whose payoffs are values, not bounds."""
        return [p for p in self.parts if not (isinstance(p, KeyPart) and p.bounds)]

    @property
    def full(self) -> TierPart | None:
        """The part that holds the full table, or as much of it as is solved."""
        return next((p for p in self.parts if isinstance(p, TierPart)), None)

    @property
    def error(self) -> float:
        """The bound on the error of every payoff that is not one of two bounds."""
        return max((part.error for part in self.exact), default=0.0)

    @property
    def tolerance(self) -> float:
        """Actions closer than this can not be told apart from what is stored."""
        return self.game.tie_tolerance + 2 * self.error

    @property
    def rows(self) -> int:
        """Rows of all parts."""
        return sum(part.rows for part in self.parts)

    # --- payoffs -----------------------------------------------------------------------------

    def owners(self, states: Ints) -> Ints:
        """(n,) the first part that holds each canonical state (n, fields); -1 where none does."""
        return _first_holding(self.parts, states)

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether some part that is exact holds each canonical state; not where it is over."""
        held: NDArray[np.bool_] = _first_holding(self.exact, states) >= 0
        return held

    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """The payoffs (n, players), float64, of canonical states (n, fields), and of which states
        (n,) some part has them, not only bounds; those of states that are over come from the rules.
        """
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        exact = self.exact
        if not exact:
            return np.zeros((len(states), self.game.players)), np.zeros(len(states), bool)
        payoffs, found = exact[0].look(states)
        for part in exact[1:]:
            left = np.flatnonzero(~found)
            if not len(left):
                break
            payoffs[left], found[left] = part.look(states[left])
        return payoffs, found

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
        payoffs, found = worth(self.game, self.look, states, self.tolerance)
        if not found.all():
            raise MissingTableError(self._missing(np.asarray(states)[np.flatnonzero(~found)[0]]))
        return payoffs

    def why_outside(self, state: Ints) -> str | None:
        """Why the table does not hold a canonical state, after "is"; None if it does."""
        if self.look(state.reshape(1, -1))[1][0]:
            return None
        if not self.rows:
            return "not solved yet; solve again to go on"
        if self.owners(state.reshape(1, -1))[0] >= 0:
            return "held between two bounds only, in a search that was cut; query says both"
        if self.full is None:
            return "not below this table's roots"
        return self.full.layout.why_outside(state) or "not solved yet in this table"

    def _missing(self, state: Ints) -> str:
        why = self.why_outside(state) or "not solved yet in this table"
        return f"{said(self.game, state)} is {why}"

    # --- answers -----------------------------------------------------------------------------

    def ask(self, words: Mapping[str, object], max_states: int = 0) -> Answer:
        """The answer to fields as text, by a search of at most `max_states` where the table does
        not reach the state.

        Raises StateError, also for a state beyond the table where nothing may be searched;
        SearchLimitError.
        """
        from luckbase.cluster.table.above import (  # compiles the search
            answer_by_search,
            answer_step,
        )

        state = self.game.parse(words).reshape(1, -1)
        edges = expand(self.game, state)
        held = self.owners(state)[0] >= 0 or edges.kinds[0] == TERMINAL
        if held and edges.kinds[0] != SIMULTANEOUS:
            return self.answers(state)[0]
        if self._reaches(edges):
            return answer_step(self, state[0], edges, self.worth(edges.children), words)
        if max_states:
            return answer_by_search(self, state[0], max_states, words)
        raise StateError(self._missing(state[0]))

    def answers(self, states: Ints) -> list[Answer]:
        """The answers to canonical states (n, fields) that the table holds, or that are over.

        Raises StateError for another.
        """
        owners = self.owners(states)
        if len(states) and (owners == owners[0]).all() and owners[0] >= 0:
            return self.parts[int(owners[0])].answers(states, self.origin)
        found: list[Answer | None] = [None] * len(states)
        for i in np.unique(owners):
            at = np.flatnonzero(owners == i)
            part = self.parts[max(int(i), 0)] if self.parts else None
            if i < 0:
                over = expand(self.game, states[at]).terminal
                if part is None or not over.all():
                    raise StateError(self._missing(states[at[np.flatnonzero(~over)[0]]]))
            assert part is not None
            for x, answer in zip(at, part.answers(states[at], self.origin), strict=True):
                found[x] = answer
        return [answer for answer in found if answer is not None]

    def best_of(self, states: Ints) -> tuple[list[str | None], Floats, NDArray[np.bool_]]:
        """Of canonical states (n, fields): the best actions, None where nobody decides or it is not
        decided; the margins (n,), NaN where there is no choice; and which are toss-ups.

        Raises MissingTableError for a state that is not in the table and not over.
        """
        owners = self.owners(states)
        names: list[str | None] = [None] * len(states)
        margins = np.full(len(states), np.nan)
        ties = np.zeros(len(states), bool)
        for i in np.unique(owners):
            at = np.flatnonzero(owners == i)
            if i < 0:
                self.probe(states[at])  # raises
                continue
            part = self.parts[int(i)]
            best, margins[at] = part.best_of(states[at])
            ties[at] = margins[at] <= part.tolerance
            for x, name in zip(at.tolist(), best, strict=True):
                names[x] = name
        return names, margins, ties

    def stored_best(self, states: Ints) -> list[str | None]:
        """The best actions of canonical states, as they are stored; None of what is not held."""
        owners = self.owners(states)
        names: list[str | None] = [None] * len(states)
        for i in np.unique(owners[owners >= 0]):
            at = np.flatnonzero(owners == i)
            for x, name in zip(at.tolist(), self.parts[i].stored_best(states[at]), strict=True):
                names[x] = name
        return names

    def _reaches(self, edges: Expanded) -> bool:
        """Whether all children are held, or theirs, of a state in which both choose at once."""
        if not len(edges.children):
            return False
        return bool(worth(self.game, self.look, edges.children, self.tolerance)[1].all())

    # --- all of it ---------------------------------------------------------------------------

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        """About `count` solved states drawn evenly from the rows of all parts, in pieces."""
        rows = max(1, self.rows)
        for part in self.parts:
            if part.rows:
                yield from part.draw(max(1, round(count * part.rows / rows)), seed)

    def all_states(self) -> Iterator[Ints]:
        """Every state that some part has solved from its children, part by part, in pieces."""
        for part in self.parts:
            yield from part.all_states()


def _first_holding(parts: Sequence[Part], states: Ints) -> Ints:
    """(n,) the first of `parts` that holds each canonical state (n, fields); -1 where none does."""
    states = np.ascontiguousarray(np.asarray(states, np.int64))
    found = np.full(len(states), -1, np.int64)
    for i, part in enumerate(parts):
        left = np.flatnonzero(found < 0)
        if not len(left):
            break
        found[left[part.holds(states[left])]] = i
    return found


def furthest(ledger: Ledger) -> Goal | None:
    """The goal of the full table that reaches furthest; None where there is none."""
    found = [goal for goal in ledger.goals if goal.part == TIERS]
    return max(found, key=lambda goal: (goal.files, goal.number), default=None)


def open_table(path: str | os.PathLike[str], *, named_by_board: bool = False) -> Table:
    """Open the table in a directory. Raises MissingTableError, CorruptTableError."""
    where = Path(path)
    return Table(where, read_ledger(Folder(where), where), named_by_board=named_by_board)


def policy_of(table: Table) -> Policy:
    """The table's best actions as an agent; it must hold the states that it is asked about, less
    the fields that only agents look at (`Game.plain`)."""
    from luckbase.solver.policy.evaluate import Policy  # compiles the search

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        asked = simplify(table.game, states)
        edges = expand(table.game, asked)
        if len(asked) and edges.kinds[0] == SIMULTANEOUS:
            return _strategies(table, player, edges)
        found = []
        names, _, _ = table.best_of(asked)
        for x, (best, own) in enumerate(zip(names, actions, strict=True)):
            if best is None:
                where = table.game.describe(asked[x])
                raise MissingTableError(f"{table.path}: says no best action at {where}")
            said = [game.action_name(int(action)) for action in own]
            found.append(np.array([float(name == best) for name in said]))
        return found

    return Policy(decide)


def _strategies(table: Table, player: int, edges: Expanded) -> list[Floats]:
    """A player's optimal strategies at expanded states in which both choose at once."""
    from luckbase.solver.matrix_game import certified as matrix_game

    q = evaluate(edges, table.worth(edges.children))
    found = []
    for x in range(len(edges.kinds)):
        here = slice(int(q.first[x]), int(q.first[x + 1]))
        solved = matrix_game.solve(joint(q.actions[here], q.values[here]).games[None])
        found.append((solved.row_strategies if player == 0 else solved.column_strategies)[0])
    return found
