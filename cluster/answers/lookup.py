"""Queries of a table: payoffs and decisions by state, from the table's parts.

A state is answered by the first part of the table that has it: the full table, then the searches.
Other states are computed: by one step of the rules if all their children are stored, otherwise by a
search down to stored states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.answers.actions import answer_at, every_action, policy_of, stepped
from luckbase.cluster.answers.answer import Answer, interpolated, otherwise
from luckbase.cluster.answers.parts import PIECE, Part, backup, named
from luckbase.cluster.store.manifest import TIERS, Manifest
from luckbase.cluster.store.provenance import Origin, origin_of
from luckbase.solver import sentences
from luckbase.solver.compiled import compile_on
from luckbase.solver.errors import ClosedTableError, MissingTableError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Follow, Position, position_of, simplify
from luckbase.solver.game.fields import State
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import DECISION, SIMULTANEOUS
from luckbase.solver.policies.agents import Policy
from luckbase.solver.search.bellman import (
    ActionValues,
    chosen,
    error_of_actions,
    error_of_taken,
    evaluate,
)
from luckbase.solver.search.expand import Expanded, expand, known_below
from luckbase.solver.search.keys import unpack_all

if TYPE_CHECKING:
    from luckbase.cluster.answers.part_kinds import DecisionPart, TierPart

D = TypeVar("D")

MAX_SEARCHED = 20_000_000
"""Default limit of states of a search above the table."""
OnLevel = Callable[[int, int], None]
"""on_level(states, levels): called with a search's progress."""
Price = Callable[[Ints, Sequence[float]], list[Answer]]
"""price(states (k, fields), weights): returns answers with payoffs, more exact for larger weights
(`moves.chances`)."""


class Lookup:
    """An open table; a context manager. Not thread-safe.

    game: with the table's board.
    parts: searched in this order.
    where: the table's folder or URI.
    manifest: of its files.
    source: how a table in memory was made, in words; "" for a table in files.
    """

    stale: tuple[str, ...] = ()
    """Why its board file now describes another table, if it does."""
    other_grids: Sequence[Callable[[], Self]] = ()
    """Open the board's tables on other grids: finished tables first, then the finest."""
    _on_grids: list[Any]
    """This table and the opened tables on other grids."""

    def __init__(
        self, game: Game, parts: Sequence[Part], where: Path, manifest: Manifest, source: str = ""
    ) -> None:
        self.game, self.where, self.manifest = game, where, manifest
        self._parts: list[Part] | None = list(parts)
        for part in parts:  # they share the room
            part.groups.max_bytes //= len(parts)
        self._source = source
        self._on_grids = [self]

    def __enter__(self) -> Self:
        self.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and drop cached rows, also of tables on other grids. Then other methods
        raise ClosedTableError."""
        for table in self._on_grids[1:]:
            table.close()
        for part in self._parts or ():
            part.groups.close()
        self._parts = None

    @property
    def parts(self) -> list[Part]:
        """The parts in which states are looked up. Raises ClosedTableError."""
        if self._parts is None:
            raise ClosedTableError(f"{self.where}: this table is closed; open it again")
        return self._parts

    def check_open(self) -> None:
        """Raise ClosedTableError after `close`."""
        _ = self.parts

    @property
    def in_files(self) -> bool:
        """True for a table in a folder or at a URI, False for a table in memory."""
        return not self._source

    @cached_property
    def origin(self) -> Origin:
        """The description of the table in every answer."""
        origin = origin_of(self.game, self.stale)  # by the current rules
        return replace(origin, solve_id=self.manifest.head.identity or origin.solve_id)

    @property
    def identity(self) -> str:
        """The identity of its rules (`solver.board.model`)."""
        return self.origin.solve_id

    @property
    def source(self) -> str:
        """The origin of its payoffs, in words."""
        return self._source or f"the table of {self.origin}"

    def __repr__(self) -> str:
        states = "closed" if self._parts is None else sentences.many(self.rows, "state")
        return f"<Table of {self.origin}: {states}, {self.where}>"

    def __bool__(self) -> bool:
        """True even for a table without rows."""
        return True

    def __len__(self) -> int:
        """The number of rows; each is a state."""
        return self.rows

    def __contains__(self, state: State) -> bool:
        """True if the table has a row for the state. Terminal states and states with simultaneous
        moves may have none. Raises StateError for an invalid state."""
        return bool(self.holds(self.game.parse(state).reshape(1, -1))[0])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the state of each row, as in `Answer.state`, by part and key. One row group is in
        memory at a time.

        >>> next(iter(t))
        {'mine': 0, 'yours': 99, 'turn': 0}
        """
        for part in self.parts:
            for batch in part.batches(()):
                rows = np.arange(len(batch.rows))
                for at in np.array_split(rows, max(1, -(-len(rows) // PIECE))):
                    yield from self.game.fields.describe_all(batch.states(at))

    # --- facts -------------------------------------------------------------------------------

    @property
    def full(self) -> TierPart | None:
        """The part of the full table, complete or not; None if there is none."""
        return next((cast("TierPart", part) for part in self.parts if part.dense), None)

    @property
    def decided(self) -> DecisionPart | None:
        """The part with best actions but no payoffs, if there is one."""
        return next((cast("DecisionPart", part) for part in self.parts if not part.paid), None)

    @property
    def error(self) -> float:
        """An error bound for all payoffs."""
        return max((part.error for part in self.parts if part.paid), default=0.0)

    @property
    def tolerance(self) -> float:
        """Actions closer than this cannot be distinguished by stored payoffs."""
        return self.game.tie_tolerance + 2 * self.error

    @property
    def rows(self) -> int:
        """Number of rows in all parts."""
        return sum(part.rows for part in self.parts)

    def unfinished(self, part: str | None = None) -> list[str]:
        """Return the unsolved parts of the table, or of one part, as clauses; empty if complete."""
        self.check_open()
        manifest, clauses = self.manifest, []
        goal = manifest.furthest
        if part in (None, TIERS) and goal is not None and not manifest.is_done(goal):
            are, (there, files) = "is" if goal.files == 1 else "are", manifest.progress(goal)
            clauses.append(f"{there} of its {sentences.many(files, 'tier')} {are} solved")
        searches = [g for g in manifest.goals if g.part != TIERS and part in (None, g.part)]
        unfinished = sum(not manifest.is_done(g) for g in searches)
        if unfinished:
            total = "1 search" if len(searches) == 1 else f"{len(searches)} searches"
            clauses.append(f"{unfinished} of its {total} did not end")
        return clauses

    # --- payoffs and decisions of canonical states, as arrays --------------------------------

    def owners(self, states: Ints, *, paid: bool = False) -> Ints:
        """Return the first part (n,) that has each canonical state (n, fields), or if `paid` its
        payoffs; -1 for none."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        owners = np.full(len(states), -1, np.int64)
        for i, part in enumerate(self.parts):
            rest = np.flatnonzero(owners < 0)
            if len(rest) and (part.paid or not paid):
                owners[rest[part.holds(states[rest])]] = i
        return owners

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """Return a mask (n,) of the canonical states that have a row in a part."""
        return self.owners(states) >= 0

    def pays(self, states: Ints) -> NDArray[np.bool_]:
        """Return a mask (n,) of the canonical states whose payoffs are in a part."""
        return self.owners(states, paid=True) >= 0

    def get(self, state: Ints, default: D) -> Floats | D:
        """Return the payoffs (players,) of one canonical state, or `default` if it is not in the
        table."""
        payoffs, known = self.get_many(np.asarray(state).reshape(1, -1))
        return payoffs[0] if known[0] else default

    def get_many(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the payoffs, float64 (n, players), of canonical states (n, fields), and a mask
        (n,) of known ones. Payoffs of terminal states come from the rules."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        payoffs, known = np.zeros((len(states), self.game.players)), np.zeros(len(states), bool)
        for part in self.parts:
            rest = np.flatnonzero(~known)
            if len(rest):
                payoffs[rest], known[rest] = part.get_many(states[rest])
        return payoffs, known

    def probe(self, states: Ints) -> Floats:
        """Return the payoffs, float64 (n, players), of canonical states (n, fields). Raises
        MissingTableError for the first state that is not in the table."""
        payoffs, known = self.get_many(states)
        self.require(states, known)
        return payoffs

    def require(self, states: Ints, known: NDArray[np.bool_]) -> None:
        """Raise MissingTableError for the first of the states (n, fields) that is not known."""
        if not known.all():
            raise MissingTableError(self.missing(np.asarray(states)[np.argmin(known)]))

    def backup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """As `get_many`; also compute states whose children are stored, by one step of the
        rules."""
        return backup(self.game, self.get_many, states, self.tolerance)

    def action_values(self, edges: Expanded) -> ActionValues:
        """Return the payoffs of every action of expanded states of this game, or of a game whose
        `plain` form it is; also one step above stored states. Raises MissingTableError."""
        children = simplify(self.game, edges.children)
        payoffs, known = self.backup(children)
        self.require(children, known)
        return evaluate(edges, payoffs)

    def errors(self, states: Ints) -> Floats:
        """Return error bounds (n,) of the results of `backup` for canonical states."""
        # Payoffs with simultaneous moves do not depend on the choice between close decisions.
        rounded = self.error > self.game.tie_tolerance and not self.game.simultaneous
        if not rounded or self.game.turn.size:
            return np.full(len(states), self.error)
        bounds = np.array([*(part.error for part in self.parts), 0.0])  # last: terminal
        owners = self.owners(states, paid=True)
        errors: Floats = bounds[owners]
        missing = np.flatnonzero(owners < 0)
        if not len(missing):
            return errors
        edges = expand(self.game, np.ascontiguousarray(states[missing]))
        below = error_of_actions(edges, bounds[self.owners(edges.children, paid=True)])
        q = evaluate(edges, self.get_many(edges.children)[0])
        chosen_rows = chosen(q, edges.actors, self.tolerance)
        tie = self.game.tie_tolerance
        errors[missing] = error_of_taken(q, edges.actors, below, chosen_rows, tie) * ~edges.terminal
        return errors

    def stored_best(self, states: Ints) -> list[str | None]:
        """Return the stored best actions of canonical states; None if not stored."""
        return named(*self.best_codes(states))

    def best_codes(self, states: Ints) -> tuple[NDArray[np.int16], list[str]]:
        """Return the stored best actions of canonical states as indices (n,) into names, -1 if not
        stored; and the names."""
        owners, names = self.owners(states), list[str]()
        best = np.full(len(states), -1, np.int16)
        for i, part in enumerate(self.parts):
            at = np.flatnonzero(owners == i)
            codes = part.stored(states[at], {"best"}).best
            best[at] = np.where(codes < 0, -1, codes + len(names))
            names += part.action_names
        return best, names

    def stores_best_alone(self, state: State) -> bool:
        """True if the table has the best action of a state but not its payoffs. Raises StateError
        for an invalid state."""
        states = self.game.parse(state).reshape(1, -1)
        if self.decided is None or not self.decided.holds(states)[0]:
            return False
        return not self.backup(states)[1][0]

    def why_outside(self, state: Ints) -> str | None:
        """Return why the table lacks a canonical state, as a clause after "is"; None if it does
        not."""
        if self.get_many(state.reshape(1, -1))[1][0]:
            return None
        if not self.rows:
            return "not solved yet; solve again to go on"
        if self.decided is not None and self.decided.holds(state.reshape(1, -1))[0]:
            return "held without its payoffs: it is beyond the frontier of this table"
        if self.full is None:
            return "not below this table's roots"
        return self.full.layout.why_outside(state) or "not solved yet in this table"

    def missing(self, state: Ints) -> str:
        """Return the sentence that a canonical state (fields,) is not in the table, and why."""
        why = self.why_outside(state) or "not solved yet in this table"
        return f"{self.game.say(state)} is {why}"

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        """Yield about `count` solved states drawn uniformly from all parts, in pieces."""
        rows = max(1, self.rows)
        for part in self.parts:
            if part.rows:
                yield from part.draw(max(1, round(count * part.rows / rows)), seed)

    # --- answers -----------------------------------------------------------------------------

    def __getitem__(self, state: State) -> Answer:
        """Return the answer to a state as `ask` does, with a search if necessary.

        >>> t[{"scores": (0, 8000, 3000), "earned": (0, 2, 0)}].best
        """
        return self.ask(state, MAX_SEARCHED)

    def ask(
        self, state: State | None = None, /, max_states: int = 0,
        on_level: OnLevel | None = None, **fields: Any,
    ) -> Answer:  # fmt: skip
        """Return the answer to a state, with a search of at most `max_states` states if the table
        does not have it. Of a board with several grids, the first table that has it answers
        (`other_grids`).

        >>> t.ask(mine=0, yours=87) == t.ask("mine=0 yours=87") == t.ask({"mine": 0, "yours": 87})
        True

        state: a mapping of the fields of ``luckbase query``, as numbers, tuples, lists or text; a
            row of a frame; or text such as ``mine=0 yours=87`` or a sentence of the game
            (`position_of`). Fields may also be given as keywords.
        on_level: called with a search's number of states and levels so far.

        Raises StateError, also for a state that would need a search if `max_states` is 0;
        SearchLimitError.
        """
        if state is not None and fields:
            raise StateError(f"{next(iter(fields))}: give a state or its fields as keywords")
        state = fields if state is None else state
        if (table := self.for_state(state)) is not self:
            return table.ask(state, max_states, on_level)
        position = position_of(self.game, state) if isinstance(state, str) else None
        canonical, inputs = self.read(state)
        (answer,) = self.known_answers(canonical, inputs)
        if answer is None and max_states:
            answer = self.search(canonical, inputs, max_states, on_level)[0]
        if answer is None:
            raise StateError(self.missing(canonical[0]))
        return answer if position is None else self.answer_position(position, answer)

    def for_state(self, state: State) -> Self:
        """Return the first of this table and `other_grids` that answers a state, as `ask` takes it,
        without a search; this table if none does. Raises StateError for a state that is on no
        grid."""
        if not self.other_grids:
            return self
        errors = list[StateError]()
        tables: list[Self] = self._on_grids
        for i in range(1 + len(self.other_grids)):
            if i == len(tables):
                tables.append(self.other_grids[i - 1]())
            try:
                if tables[i].known_answers(*tables[i].read(state))[0] is not None:
                    return tables[i]
            except StateError as error:
                errors.append(error)
        if len(errors) == len(tables):
            raise errors[0]
        return self

    def read(self, state: State) -> tuple[Ints, Ints]:
        """Return a state, as `ask` takes it, in canonical form (1, fields), and as values in users'
        units (1, fields). Raises StateError."""
        if isinstance(state, str) and (position := position_of(self.game, state)) is not None:
            state = self.game.describe(position.state)
        inputs = self.game.fields.read(state).reshape(1, -1)
        return self.game.canonical_states(inputs), inputs

    def answer_position(
        self, position: Position, answer: Answer, price: Price | None = None
    ) -> Answer:
        """Return the answer to a position given in words, based on the answer to its state. Between
        grid states, payoffs are interpolated if the table has the payoffs of all of these states or
        `price` computes them."""
        words = self.game.need(Follow)
        weights, states, between = words.neighbors(position)
        remarks: list[str | None] = [words.note(position)]
        if between:
            found = self.known_answers(states, self.game.fields.values(states))
            known = [each for each in found if each is not None and each.value]
            if len(known) < len(found) and price is not None:
                known = price(states, weights.tolist())
            if len(known) == len(found):
                answer = interpolated(answer, known, weights.tolist(), between)
                remarks.append(answer.remark)
            else:
                nearest = words.say(words.place(position.names, position.state))
                remarks.append(f"{between}: counts as the nearest state, {nearest}")
        return replace(answer, remark="; ".join(filter(None, remarks)) or None)

    def known_answers(self, states: Ints, inputs: Ints) -> list[Answer | None]:
        """Return the answers to canonical states (n, fields) without searching; None where there is
        none. inputs: as in `every_action`."""
        several = self.decided is not None or self.game.simultaneous
        edges = expand(self.game, states) if several else None
        actions, known = every_action(self, states, inputs)
        if edges is not None and self.game.simultaneous:
            # Both may choose even if there are only payoffs and no strategies.
            known = known & ((edges.kinds != SIMULTANEOUS) | (np.diff(actions.first) > 0))
        described, answers = self.game.fields.describe_all(states), list[Answer | None]()
        for x, is_known in enumerate(known.tolist()):
            answer = None
            if is_known:
                answer = answer_at(actions, x, self.origin, described[x])
                answer = self.as_given(answer, states[x], inputs[x])
                if edges is not None and edges.kinds[x] == DECISION and not answer.value:
                    answer = replace(answer, decision_only=True)
            answers.append(answer)
        return answers

    def as_given(self, answer: Answer, state: Ints, inputs: Ints) -> Answer:
        """Return the answer to a canonical state (fields,), with a note of the fields that were
        given differently. inputs: as the user gave it, values (fields,)."""
        numbers = self.game.fields.numbers(inputs.reshape(1, -1))[0]
        if (numbers == state).all():
            return answer
        return replace(answer, given=otherwise(self.game.describe(numbers), answer.state))

    def search(
        self, state: Ints, inputs: Ints, max_states: int, on_level: OnLevel | None = None
    ) -> tuple[Answer, Floats]:
        """Answer one canonical state (1, fields) above the table's frontier by a search; also
        return the payoffs (m, players) of its children.

        States are expanded until they are terminal or stored; stored payoffs are looked up, and the
        rest is computed by backward induction. The answer is as exact as the table, except for
        decisions that are closer than the table's error: they count as ties, the earlier action is
        taken, and the other players' payoffs are those of this action. If the search visits such
        decisions, a second search with bounds computes the error of its payoffs.

        inputs: the state as the user gave it, values (1, fields), for the names of choices.
        max_states: limit of the search; a million states take about 90 MB and 2 s.

        Raises SearchLimitError, with its progress; StateError for a cycle that is not covered.
        """
        from luckbase.solver.search.game_graph import Graph  # compiles the search

        compile_on()
        game, edges = self.game, expand(self.game, state)
        keys = known_below(game, state, self.pays, max_states, on_level)
        stored = unpack_all(game.strides, keys)
        graph = Graph(game, tolerance=self.tolerance, max_states=max_states)
        graph.know(keys, self.get_many(stored)[0], self.errors(stored))
        at = graph.solve(edges.children)
        payoffs, errors = graph.values[at], graph.errors[at].astype(np.float64)
        near = self.tolerance, self.error
        actions = stepped(game, edges, evaluate(edges, payoffs), near, errors, inputs)
        answer = answer_at(actions, 0, self.origin, game.describe(state[0]), "search")
        return self.as_given(answer, state[0], inputs[0]), payoffs

    def agent(self) -> Policy:
        """Return the table's best actions as an agent, for `evaluate` and `play`.

        The table must have the states in which the agent acts, without fields that only agents use
        (`solver.game.capabilities.plain`), or all of their children. For simultaneous moves it
        plays an optimal mixed strategy.
        """
        self.check_open()
        return policy_of(self)
