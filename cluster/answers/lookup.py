"""Queries of a table: payoffs and decisions by state, from the table's parts.

A state is answered by the first part that has it: the full table, then the searches. Other states
are computed: by one step of the rules if all their children are stored, otherwise by a search down
to stored states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.answers.answer import (
    Answer,
    EveryAction,
    actions_of_part,
    answer_at,
    best_alone,
    interpolated,
    joined,
    nothing_known,
    otherwise,
    stepped,
)
from luckbase.cluster.answers.parts import PIECE, Part, lookup_or_backup, once
from luckbase.cluster.answers.tier_part import TierPart
from luckbase.cluster.store.manifest import TIERS, Manifest
from luckbase.cluster.store.provenance import Origin, origin_of
from luckbase.solver import sentences
from luckbase.solver.compiled import compile_on
from luckbase.solver.errors import (
    ClosedTableError,
    CorruptTableError,
    MissingTableError,
    StateError,
)
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
    strategies_of,
)
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.search.keys import Keys, unpack_all

if TYPE_CHECKING:
    from luckbase.cluster.answers.tier_part import DecisionPart

D = TypeVar("D")

MAX_SEARCHED = 20_000_000
"""Default limit of states of a search above the table."""
MAX_EDGES = 400_000
"""Number of edges looked up at a time: 100 bytes each, and as much again for sorting."""
OnLevel = Callable[[int, int], None]
"""on_level(states, levels): called with a search's progress."""
Price = Callable[[Ints, Sequence[float]], list[Answer]]
"""price(states (k, fields), weights): returns answers with payoffs, more exact for larger weights
(`moves.chances`)."""


class Lookup:
    """The queries of an open table; a context manager. Not thread-safe.

    parts: searched in this order.
    where: the table's location, for messages.
    source: the origin of its payoffs, in words.
    manifest: of a table in a folder.
    """

    manifest: Manifest | None = None
    stale: tuple[str, ...] = ()
    """Why its board file now describes another table, if it does."""
    _parts: list[Part] | None = None

    def __init__(
        self, game: Game, parts: Sequence[Part], where: Path, source: str | None = None
    ) -> None:
        self.game, self.where = game, where
        self.parts = list(parts)
        self._source = source

    def __enter__(self) -> Self:
        self.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and drop cached rows. Then other methods raise ClosedTableError."""
        for part in self._parts or ():
            part.groups.close()
        self._parts = None

    @property
    def parts(self) -> list[Part]:
        """The parts in which states are looked up. Raises ClosedTableError."""
        if self._parts is None:
            raise ClosedTableError(f"{self.where}: this table is closed; open it again")
        return self._parts

    @parts.setter
    def parts(self, parts: list[Part]) -> None:
        self._parts = parts

    def check_open(self) -> None:
        """Raise ClosedTableError after `close`."""
        _ = self.parts

    @cached_property
    def origin(self) -> Origin:
        """The description of the table in every answer."""
        origin = origin_of(self.game, self.stale)  # by the current rules
        own = self.manifest and self.manifest.head.identity
        return replace(origin, solve_id=own or origin.solve_id)

    @property
    def identity(self) -> str:
        """The identity of the rules under which it was solved (`solver.board.model`)."""
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

    @property
    def full(self) -> TierPart | None:
        """The part of the full table, complete or not; None if there is none."""
        return next((cast("TierPart", part) for part in self.parts if part.dense), None)

    @property
    def error(self) -> float:
        """An error bound for all payoffs."""
        return max((part.error for part in self.parts if part.paid), default=0.0)

    @property
    def tolerance(self) -> float:
        """Actions closer than this cannot be distinguished by stored payoffs."""
        return self.game.tie_tolerance + 2 * self.error

    @property
    def rounded(self) -> bool:
        """True if stored payoffs cannot distinguish some decisions that are not ties. For
        simultaneous moves, payoffs do not depend on the choice between such decisions."""
        return self.error > self.game.tie_tolerance and not self.game.simultaneous

    @property
    def rows(self) -> int:
        """Number of rows in all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def decided(self) -> DecisionPart | None:
        """The part with best actions but no payoffs, if there is one."""
        return next((cast("DecisionPart", part) for part in self.parts if not part.paid), None)

    # --- payoffs -----------------------------------------------------------------------------

    def owners(self, states: Ints) -> Ints:
        """Return the first part (n,) that has each canonical state (n, fields); -1 for none."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        owners = np.full(len(states), -1, np.int64)
        for i, part in enumerate(self.parts):
            left = np.flatnonzero(owners < 0)
            if not len(left):
                break
            owners[left[part.holds(states[left])]] = i
        return owners

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """Return a mask (n,) of the canonical states that have a row in a part."""
        holds: NDArray[np.bool_] = self.owners(states) >= 0
        return holds

    def pays(self, states: Ints) -> NDArray[np.bool_]:
        """Return a mask (n,) of the canonical states whose payoffs are in a part."""
        if self.decided is None:
            return self.holds(states)
        pays: NDArray[np.bool_] = self._payers(states) >= 0
        return pays

    def _payers(self, states: Ints) -> Ints:
        """Return the first part (n,) with the payoffs of each canonical state; -1 for none."""
        owners = self.owners(states)
        paid = np.array([*(part.paid for part in self.parts), False])
        return np.where(paid[owners], owners, -1)

    def stores_best_alone(self, state: State) -> bool:
        """True if the table has the best action of a state but not its payoffs. Raises StateError
        for an invalid state."""
        states = self.game.parse(state).reshape(1, -1)
        if self.decided is None or not self.decided.holds(states)[0]:
            return False
        return not self.lookup_or_backup(states)[1][0]

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the payoffs, float64 (n, players), of canonical states (n, fields), and a mask
        (n,) of known ones. Payoffs of terminal states come from the rules."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        if not self.parts:
            return np.zeros((len(states), self.game.players)), np.zeros(len(states), bool)
        payoffs, known = self.parts[0].lookup(states)
        for part in self.parts[1:]:
            left = np.flatnonzero(~known)
            if not len(left):
                break
            payoffs[left], known[left] = part.lookup(states[left])
        return payoffs, known

    def probe(self, states: Ints) -> Floats:
        """Return the payoffs, float64 (n, players), of canonical states (n, fields). Raises
        MissingTableError for the first state that is not in the table."""
        payoffs, known = self.lookup(states)
        self._require(states, known)
        return payoffs

    def _require(
        self, states: Ints, known: NDArray[np.bool_],
        error: type[MissingTableError | StateError] = MissingTableError,
    ) -> None:  # fmt: skip
        """Raise `error` for the first of the states (n, fields) that is not known (n,)."""
        if not known.all():
            raise error(self.missing(np.asarray(states).reshape(len(known), -1)[np.argmin(known)]))

    def get(self, state: Ints, default: D) -> Floats | D:
        """Return the payoffs (players,) of one state, or `default` if it is not in the table."""
        payoffs, known = self.lookup(np.asarray(state).reshape(1, -1))
        return payoffs[0] if known[0] else default

    def lookup_or_backup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """As `lookup`; states whose children are stored are computed by one step of the rules."""
        return lookup_or_backup(self.game, self.lookup, states, self.tolerance)

    def action_values(self, edges: Expanded) -> ActionValues:
        """Return the payoffs of every action of expanded states of this game, or of a game whose
        `plain` form it is; also one step above stored states. Raises MissingTableError."""
        return evaluate(edges, self.probe_or_backup(simplify(self.game, edges.children)))

    def probe_or_backup(self, states: Ints) -> Floats:
        """As `probe`, and also for states whose children are all stored."""
        payoffs, known = self.lookup_or_backup(states)
        self._require(states, known)
        return payoffs

    def why_outside(self, state: Ints) -> str | None:
        """Return why the table lacks a canonical state, as a clause after "is"; None if it does
        not."""
        if self.lookup(state.reshape(1, -1))[1][0]:
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

    def errors(self, states: Ints) -> Floats:
        """Return error bounds (n,) of the results of `lookup_or_backup` for canonical states."""
        if not self.rounded or self.game.turn.size:
            return np.full(len(states), self.error)
        bounds = np.array([*(part.error for part in self.parts), 0.0])  # last: terminal
        owners = self._payers(states)
        errors: Floats = bounds[owners]
        missing = np.flatnonzero(owners < 0)
        if not len(missing):
            return errors
        edges = expand(self.game, np.ascontiguousarray(states[missing]))
        below = error_of_actions(edges, bounds[self._payers(edges.children)])
        q = evaluate(edges, self.lookup(edges.children)[0])
        chosen_rows = chosen(q, edges.actors, self.tolerance)
        tie = self.game.tie_tolerance
        errors[missing] = error_of_taken(q, edges.actors, below, chosen_rows, tie) * ~edges.terminal
        return errors

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
        does not have it.

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
        game, state = self.game, fields if state is None else state
        if isinstance(state, str) and (position := position_of(game, state)) is not None:
            nearest = self.ask(game.describe(position.state), max_states, on_level)
            return self.told(position, nearest)
        inputs = game.fields.read(state).reshape(1, -1)
        canonical = game.canonical_states(inputs)
        (answer,) = self.known_answers(canonical, inputs)
        if answer is None and max_states:
            searched = self.search(canonical[0], max_states, inputs, on_level)[0]
            answer = self.with_inputs(searched, canonical, inputs)
        if answer is None:
            raise StateError(self.missing(canonical[0]))
        return answer

    def told(self, position: Position, answer: Answer, price: Price | None = None) -> Answer:
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

    def answers(self, state: State) -> bool:
        """True if a state, as `ask` takes it, is answered without a search. Raises StateError for
        an invalid state."""
        game = self.game
        if isinstance(state, str) and (position := position_of(game, state)) is not None:
            state = game.describe(position.state)
        inputs = game.fields.read(state).reshape(1, -1)
        return self.known_answers(game.canonical_states(inputs), inputs)[0] is not None

    def known_answers(
        self, states: Ints, inputs: Ints, edges: Expanded | None = None,
        payoffs: Floats | None = None,
    ) -> list[Answer | None]:  # fmt: skip
        """Return the answers to canonical states (n, fields) without searching; None where there is
        none. inputs, edges, payoffs: as in `every_action`."""
        game, n, decided = self.game, len(states), self.decided
        if edges is None and (decided is not None or game.simultaneous):
            edges = expand(game, states)
        actions, known = self.every_action(states, inputs, edges, payoffs)
        if edges is not None and game.simultaneous:
            # Both may choose even if there are only payoffs and no strategies.
            known = known & ((edges.kinds != SIMULTANEOUS) | (np.diff(actions.bids.first) > 0))
        same = (game.fields.numbers(inputs) == states).all(axis=1).tolist()
        described, answers = game.fields.describe_all(states), list[Answer | None]([None] * n)
        for x in np.flatnonzero(known).tolist():
            answer, at = answer_at(actions, x, self.origin, described[x]), slice(x, x + 1)
            chooses = edges is not None and edges.kinds[x] == DECISION
            if decided is not None and chooses and not answer.value:
                answer = replace(answer, decision_only=True)
            answers[x] = answer if same[x] else self.with_inputs(answer, states[at], inputs[at])
        return answers

    def with_inputs(self, answer: Answer, state: Ints, inputs: Ints) -> Answer:
        """Return the answer to a canonical state (1, fields), with a note of the fields that were
        given differently. inputs: as in `every_action`."""
        numbers = self.game.fields.numbers(inputs)
        if (numbers == state).all():
            return answer
        return replace(answer, given=otherwise(self.game.describe(numbers[0]), answer.state))

    def search(
        self, state: Ints, max_states: int, inputs: Ints | None = None,
        on_level: OnLevel | None = None,
    ) -> tuple[Answer, Floats]:  # fmt: skip
        """Answer one canonical state (fields,) above the table's frontier by a search; also return
        the payoffs (m, players) of its children.

        States are expanded until they are terminal or stored; stored payoffs are looked up, and the
        rest is computed by backward induction. The answer is as exact as the table, except for
        decisions that are closer than the table's error: they count as ties, the earlier action is
        taken, and the other players' payoffs are those of this action. If the search visits such
        decisions, a second search with bounds computes the error of its payoffs.

        max_states: limit of the search; a million states take about 90 MB and 2 s.
        inputs: the state as the user gave it, values (1, fields), for the names of choices.

        Raises SearchLimitError, with its progress; StateError for a cycle that is not covered.
        """
        compile_on()
        game, root = self.game, state.reshape(1, -1)
        edges = expand(game, root)
        payoffs, errors = self._searched(root, edges.children, max_states, on_level)
        inputs = game.fields.values(root) if inputs is None else inputs
        near, q = (self.tolerance, self.error), evaluate(edges, payoffs)
        actions = stepped(game, edges, q, near, errors, inputs)
        return answer_at(actions, 0, self.origin, game.describe(state), "search"), payoffs

    def _searched(
        self, root: Ints, children: Ints, max_states: int, on_level: OnLevel | None
    ) -> tuple[Floats, Floats]:
        """Search down to the table. Return the payoffs (m, players) of the children of a state (1,
        fields), and error bounds (m,)."""
        from luckbase.solver.search.game_graph import Graph

        game = self.game
        keys, payoffs = known_below(self, root, max_states, on_level)
        graph = Graph(game, tolerance=self.tolerance, max_states=max_states)
        graph.know(keys, payoffs, self.errors(unpack_all(game.strides, keys)))
        at = graph.solve(children)
        return graph.values[at], graph.errors[at].astype(np.float64)

    def every_action(
        self, states: Ints, inputs: Ints | None = None, edges: Expanded | None = None,
        payoffs: Floats | None = None,
    ) -> tuple[EveryAction, NDArray[np.bool_]]:  # fmt: skip
        """Return the answers of `ask`, without searches, to canonical states (n, fields), as
        arrays; and a mask (n,) of those that have one: stored and terminal states, and states whose
        children are all stored.

        inputs: the states as the user gave them, values (n, fields), for the names of choices.
        edges, payoffs: of the states and of their children (m, players), if already computed.
        """
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        inputs = self.game.fields.values(states) if inputs is None else inputs
        if len(self.parts) > 1:
            payoffs = None  # each part searches its own rows first
        owners, known = self.owners(states), np.ones(len(states), bool)
        pieces: list[tuple[Ints, EveryAction]] = []
        for at in self._shares(states, np.flatnonzero(owners < 0)):
            actions, known[at] = self._stepped(states[at], inputs[at])
            pieces.append((at, actions))
        for i, part in enumerate(self.parts):
            for at in self._shares(states, np.flatnonzero(owners == i), part):
                whole = len(at) == len(states) and (np.diff(at) == 1).all()
                expanded = (edges, payoffs) if whole else (None, None)
                pieces.append((at, self.of_part(part, states[at], inputs[at], *expanded)))
        nothing = nothing_known(0, self.game.players)
        return joined(pieces or [(owners, nothing)]), known

    def of_part(
        self, part: Part, states: Ints, inputs: Ints, edges: Expanded | None = None,
        payoffs: Floats | None = None,
    ) -> EveryAction:  # fmt: skip
        """Return the same for states of one part. For simultaneous moves, strategies are included
        if the children are stored."""
        edges = expand(self.game, states) if edges is None else edges
        if not part.paid:
            return self._decided(part, states, inputs, edges)
        result = actions_of_part(part, states, edges, payoffs=payoffs)
        both = np.flatnonzero(edges.kinds == SIMULTANEOUS)
        if not len(both):
            return result
        from_rules, known = self._stepped(states[both], inputs[both])
        kept = np.flatnonzero(known)
        others = np.setdiff1d(np.arange(len(states)), both[kept])
        return joined([(others, result.only(others)), (both[kept], from_rules.only(kept))])

    def _decided(self, part: Part, states: Ints, inputs: Ints, edges: Expanded) -> EveryAction:
        """Return the same for states whose best actions are stored. Payoffs are computed by one
        step of the rules if those of all children are stored."""
        known = self.lookup(edges.children)[1]
        whole = np.logical_and.reduceat(known, edges.first[:-1])
        less, more = np.flatnonzero(~whole), np.flatnonzero(whole)
        rows = part.stored(states[less])
        pieces = [(less, best_alone(edges.actors[less], edges.terminal[less], rows, part.error))]
        if len(more):
            pieces.append((more, self._stepped(states[more], inputs[more])[0]))
        return joined(pieces)

    @property
    def states_at_once(self) -> int:
        """Number of states that fit in memory with their edges."""
        return max(1, MAX_EDGES // self.game.max_edges)

    def _shares(self, states: Ints, at: Ints, part: Part | None = None) -> Iterator[Ints]:
        """Yield the states `at` in groups that fit in memory with their edges, in their part's
        order."""
        most = self.states_at_once
        if part is not None and len(at) > most // 8:
            at = at[np.argsort(part.keys(states[at]), kind="stable")]
        for start in range(0, len(at), most):
            yield at[start : start + most]

    def _stepped(self, states: Ints, inputs: Ints) -> tuple[EveryAction, NDArray[np.bool_]]:
        """Compute canonical states (n, fields) by one step of the rules; also return a mask (n,) of
        those whose children are all stored or terminal."""
        edges = expand(self.game, states)
        payoffs, known = once(self.game, self.lookup_or_backup, edges.children)
        complete = np.logical_and.reduceat(known, edges.first[:-1])
        q = evaluate(edges, payoffs)
        near, errors = (self.tolerance, self.error), self.errors(edges.children)
        return stepped(self.game, edges, q, near, errors, inputs), complete

    def margins_of(self, states: Ints) -> Floats:
        """Return the margins (n,) of stored canonical states; NaN without a choice."""
        owners, margins = self.owners(states), np.full(len(states), np.nan)
        for i in np.unique(owners[owners >= 0]).tolist():
            part, at = self.parts[i], np.flatnonzero(owners == i)
            rows = part.stored(states[at])
            apart = rows.margins
            if apart is None:
                apart = actions_of_part(part, states[at], rows=rows).margins
            margins[at] = apart
        return margins

    def stored_best(self, states: Ints) -> list[str | None]:
        """Return the stored best actions of canonical states; None if not stored."""
        owners = self.owners(states)
        names = np.full(len(states), None, object)
        for i, part in enumerate(self.parts):
            at = np.flatnonzero(owners == i)
            names[at] = part.stored_best(states[at])
        best: list[str | None] = names.tolist()
        return best

    def known_best(self, states: Ints) -> list[str | None]:
        """As `stored_best`. Raises MissingTableError for a state that is not stored."""
        self._require(states, self.holds(states))
        return self.stored_best(states)

    def agent(self) -> Policy:
        """Return the table's best actions as an agent, for `evaluate` and `play`.

        The table must have the states in which the agent acts, without fields that only agents use
        (`solver.game.capabilities.plain`), or all of their children. For simultaneous moves it
        plays an optimal mixed strategy.
        """
        self.check_open()

        def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
            plain = simplify(self.game, states)
            at_once = self.game.simultaneous and len(plain)
            if at_once and expand(self.game, plain[:1]).kinds[0] == SIMULTANEOUS:
                return strategies_of(self.action_values(expand(self.game, plain)), player)
            best = self.stored_best(plain)
            if above := [x for x, name in enumerate(best) if name is None]:
                stepped_on, known = self.every_action(plain[above])
                self._require(plain[above], known)
                for x, name in zip(above, stepped_on.best_names(), strict=True):
                    best[x] = name
            chances, sure = list[Floats](), dict[tuple[str | None, bytes], Floats]()
            for state, name, choices in zip(plain, best, actions, strict=True):
                key = name, choices.tobytes()  # many states have the same choices
                if key not in sure:
                    sure[key] = self._certain(game, state, name, choices)
                chances.append(sure[key])
            return chances

        def holds(states: Ints) -> NDArray[np.bool_]:
            return self.lookup_or_backup(plain := simplify(self.game, states))[1] | self.holds(
                plain
            )

        return Policy(decide, holds)

    def _certain(self, game: Game, state: Ints, best: str | None, actions: Ints) -> Floats:
        """Return the chance of each action (k,) of a state: 1 of the best."""
        names = [game.action_name(int(action)) for action in actions]
        if best not in names:
            where = self.game.say(state)
            if best is None:
                raise MissingTableError(f"{self.where}: says no best action at {where}")
            raise CorruptTableError(
                f"{self.where}: names an action at {where} that it does not allow"
            )
        return np.array([float(each == best) for each in names])

    # --- all of it ---------------------------------------------------------------------------

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        """Yield about `count` solved states drawn uniformly from all parts, in pieces."""
        rows = max(1, self.rows)
        for part in self.parts:
            if part.rows:
                yield from part.draw(max(1, round(count * part.rows / rows)), seed)

    def unfinished(self, part: str | None = None) -> list[str]:
        """Return the unsolved parts of the table, or of one part, as clauses; empty if complete."""
        self.check_open()
        manifest = self.manifest
        if manifest is None:
            return []
        goal, clauses = manifest.furthest, []
        if part in (None, TIERS) and goal is not None and not manifest.is_done(goal):
            are, (there, files) = "is" if goal.files == 1 else "are", manifest.progress(goal)
            clauses.append(f"{there} of its {sentences.many(files, 'tier')} {are} solved")
        searches = [g for g in manifest.goals if g.part != TIERS and part in (None, g.part)]
        left = sum(not manifest.is_done(g) for g in searches)
        if left:
            of = "1 search" if len(searches) == 1 else f"{len(searches)} searches"
            clauses.append(f"{left} of its {of} did not end")
        return clauses


def known_below(
    table: Lookup | Part, roots: Ints, max_states: int, on_level: OnLevel | None = None
) -> tuple[Keys, Floats]:
    """Return the stored states that are reached from `roots` without passing through another stored
    state: keys (k,) and payoffs (k, players)."""
    from luckbase.solver.search.explore import KNOWN, explore  # compiles the search

    holds = table.pays if isinstance(table, Lookup) else table.holds
    result = explore(table.game, roots, known=holds, max_states=max_states, on_level=on_level)
    keys = np.ascontiguousarray(result.keys[result.kinds == KNOWN])
    return keys, table.lookup(unpack_all(table.game.strides, keys))[0]
