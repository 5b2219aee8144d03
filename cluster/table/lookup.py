"""What a table answers: payoffs and decisions by state, from the parts that hold them.

A state is answered by the part that holds it: the full table first, then what lies below the roots
of searches, then the parts of searches that ended at another table. What no part holds is worked
out: one step of the rules where all its children are there, else a search down to what is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.answer import (
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
from luckbase.cluster.table.manifest import (
    TIERS,
    Manifest,
    Origin,
    origin_of,
)
from luckbase.cluster.table.parts import PIECE, Part, TierPart, lookup_or_backup, once
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
from luckbase.solver.policy.agents import Policy
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
    from luckbase.cluster.table.decisions import DecisionPart

D = TypeVar("D")

MAX_SEARCHED = 20_000_000
"""States that a search above the table may meet unless told otherwise."""
MAX_EDGES = 400_000
"""Edges that are looked up at a time; 100 bytes each and as much again for the sorting."""
OnLevel = Callable[[int, int], None]
"""on_level(states, levels): how many a search has met so far."""


class Lookup:
    """An open table, as far as it answers by state; a context manager. Safe to use from one thread
    at a time.

    parts: where states are looked up, in this order. where: the table's place, for people. source:
    where its payoffs come from, in words. manifest: of a table in a folder.
    """

    manifest: Manifest | None = None
    stale: tuple[str, ...] = ()
    """Why its board's file means another table by now, if it does."""
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
        """Close the files and forget what was decoded; then every method raises ClosedTableError,
        but this one."""
        for part in self._parts or ():
            part.groups.close()
        self._parts = None

    @property
    def parts(self) -> list[Part]:
        """Where states are looked up. Raises ClosedTableError."""
        if self._parts is None:
            raise ClosedTableError(f"{self.where}: this table is closed; open it again")
        return self._parts

    @parts.setter
    def parts(self, parts: list[Part]) -> None:
        self._parts = parts

    def check_open(self) -> None:
        """Raises ClosedTableError after `close`."""
        _ = self.parts

    @cached_property
    def origin(self) -> Origin:
        """What every answer says of the table."""
        origin = origin_of(self.game, self.stale)  # by the rules as they are now
        own = self.manifest and self.manifest.head.identity
        return replace(origin, solve_id=own or origin.solve_id)

    @property
    def identity(self) -> str:
        """The identity of the rules under which it was solved (`solver.board.model`)."""
        return self.origin.solve_id

    @property
    def source(self) -> str:
        """Where its payoffs come from, for people."""
        return self._source or f"the table of {self.origin}"

    def __repr__(self) -> str:
        states = "closed" if self._parts is None else sentences.many(self.rows, "state")
        return f"<Table of {self.origin}: {states}, {self.where}>"

    def __bool__(self) -> bool:
        """Yes, also of a table without a row."""
        return True

    def __len__(self) -> int:
        """Its rows, a state each."""
        return self.rows

    def __contains__(self, state: State) -> bool:
        """Whether it has a row of the state; there is none where the game is over, or both choose
        at once. Raises StateError for what is no state of the board."""
        return bool(self.holds(self.game.parse(state).reshape(1, -1))[0])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The state of each row as `Answer.state` says it, by part and in the order of keys; a row
        group is in memory at a time.

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
        """The part that holds the full table, or as much of it as is solved."""
        return next((cast("TierPart", part) for part in self.parts if part.dense), None)

    @property
    def error(self) -> float:
        """Return the bound on the error of every payoff."""
        return max((part.error for part in self.parts if part.paid), default=0.0)

    @property
    def tolerance(self) -> float:
        """Actions closer than this can not be told apart from what is stored."""
        return self.game.tie_tolerance + 2 * self.error

    @property
    def rounded(self) -> bool:
        """Whether decisions that are no ties can be too close for what is stored to tell. Where
        both choose at once payoffs do not hang on which of two decisions it is."""
        return self.error > self.game.tie_tolerance and not self.game.simultaneous

    @property
    def rows(self) -> int:
        """Rows of all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def decided(self) -> DecisionPart | None:
        """Return the part that has best actions without payoffs, if there is one."""
        return next((cast("DecisionPart", part) for part in self.parts if not part.paid), None)

    # --- payoffs -----------------------------------------------------------------------------

    def owners(self, states: Ints) -> Ints:
        """(n,) the first part that holds each canonical state (n, fields); -1 where none does."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        owners = np.full(len(states), -1, np.int64)
        for i, part in enumerate(self.parts):
            left = np.flatnonzero(owners < 0)
            if not len(left):
                break
            owners[left[part.holds(states[left])]] = i
        return owners

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether some part holds each canonical state; not where it is over."""
        holds: NDArray[np.bool_] = self.owners(states) >= 0
        return holds

    def pays(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether some part holds the payoffs of each canonical state, as `holds`."""
        if self.decided is None:
            return self.holds(states)
        pays: NDArray[np.bool_] = self._payers(states) >= 0
        return pays

    def _payers(self, states: Ints) -> Ints:
        """Return (n,) the first part that holds the payoffs of each canonical state (n, fields); -1
        if none does."""
        owners = self.owners(states)
        paid = np.array([*(part.paid for part in self.parts), False])
        return np.where(paid[owners], owners, -1)

    def stores_best_alone(self, state: State) -> bool:
        """Return whether the table has the best action of a state and not its payoffs. Raises
        StateError for what is no state of the board."""
        states = self.game.parse(state).reshape(1, -1)
        if self.decided is None or not self.decided.holds(states)[0]:
            return False
        return not self.lookup_or_backup(states)[1][0]

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """The payoffs (n, players), float64, of canonical states (n, fields), and of which states
        (n,) some part has them; those of states that are over come from the rules.
        """
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
        """The payoffs (n, players), float64, of canonical states (n, fields).

        Raises MissingTableError for the first state that is not in the table.
        """
        payoffs, known = self.lookup(states)
        self._require(states, known)
        return payoffs

    def _require(
        self, states: Ints, known: NDArray[np.bool_],
        error: type[MissingTableError | StateError] = MissingTableError,
    ) -> None:  # fmt: skip
        """Raises the error for the first of the states (n, fields) that was not found (n,)."""
        if not known.all():
            raise error(self.missing(np.asarray(states).reshape(len(known), -1)[np.argmin(known)]))

    def get(self, state: Ints, default: D) -> Floats | D:
        """The payoffs (players,) of one state, or `default` where the table does not hold it."""
        payoffs, known = self.lookup(np.asarray(state).reshape(1, -1))
        return payoffs[0] if known[0] else default

    def lookup_or_backup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """As `lookup`, and also of states that the table does not hold but all of whose children it
        does: one step of the rules over it."""
        return lookup_or_backup(self.game, self.lookup, states, self.tolerance)

    def action_values(self, edges: Expanded) -> ActionValues:
        """The payoffs of every action of expanded states of this game, or of one that it is `plain`
        of; also a step above those held. Raises MissingTableError."""
        return evaluate(edges, self.probe_or_backup(simplify(self.game, edges.children)))

    def probe_or_backup(self, states: Ints) -> Floats:
        """As `probe`, also of states all of whose children the table holds."""
        payoffs, known = self.lookup_or_backup(states)
        self._require(states, known)
        return payoffs

    def why_outside(self, state: Ints) -> str | None:
        """Why the table does not hold a canonical state, after "is"; None if it does."""
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
        """The sentence that a canonical state (fields,) is not in the table, and why."""
        why = self.why_outside(state) or "not solved yet in this table"
        return f"{self.game.say(state)} is {why}"

    def errors(self, states: Ints) -> Floats:
        """(n,) bounds on the errors of what `lookup_or_backup` gives of canonical states."""
        if not self.rounded or self.game.turn.size:
            return np.full(len(states), self.error)
        bounds = np.array([*(part.error for part in self.parts), 0.0])  # the last: it is over
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
        """The answer to a state, as `ask`, by a search where the table does not reach it.

        >>> t[{"scores": (0, 8000, 3000), "earned": (0, 2, 0)}].best
        """
        return self.ask(state, MAX_SEARCHED)

    def ask(
        self, state: State | None = None, /, max_states: int = 0,
        on_level: OnLevel | None = None, **fields: Any,
    ) -> Answer:  # fmt: skip
        """The answer to a state, by a search of at most `max_states` where the table does not reach
        it.

        >>> t.ask(mine=0, yours=87) == t.ask("mine=0 yours=87") == t.ask({"mine": 0, "yours": 87})
        True

        state: a mapping of the fields of ``luckbase query``, as numbers, tuples, lists or text; a
        row of a frame; or text, as ``mine=0 yours=87`` or a sentence of the game (`position_of`);
        or else fields as keywords. on_level: told how many states a search
        has met, in how many levels.

        Raises StateError, also for a state beyond the table where nothing may be searched;
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

    def told(self, position: Position, answer: Answer) -> Answer:
        """Return the answer to a position that was told in words, from that to its state.

        Between grid states the payoffs are interpolated if the table has all of these.
        """
        words = self.game.need(Follow)
        weights, states, between = words.neighbors(position)
        remarks: list[str | None] = [words.note(position)]
        if between:
            found = self.known_answers(states, self.game.fields.values(states))
            known = [each for each in found if each is not None and each.value]
            if len(known) == len(found):
                answer = interpolated(answer, known, weights.tolist(), between)
                remarks.append(answer.remark)
            else:
                nearest = words.say(words.place(position.names, position.state))
                remarks.append(f"{between}: counts as the nearest state, {nearest}")
        return replace(answer, remark="; ".join(filter(None, remarks)) or None)

    def known_answers(
        self, states: Ints, inputs: Ints, edges: Expanded | None = None,
        payoffs: Floats | None = None,
    ) -> list[Answer | None]:  # fmt: skip
        """The answers to canonical states (n, fields), nothing searched; None where there is none.
        inputs, edges, payoffs: as `every_action`."""
        game, n, decided = self.game, len(states), self.decided
        if edges is None and (decided is not None or game.simultaneous):
            edges = expand(game, states)
        actions, known = self.every_action(states, inputs, edges, payoffs)
        if edges is not None and game.simultaneous:
            # Both may choose where the payoffs alone are there, and no strategies.
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
        """The answer to a canonical state (1, fields) with what was given otherwise; inputs: as
        `every_action`."""
        numbers = self.game.fields.numbers(inputs)
        if (numbers == state).all():
            return answer
        return replace(answer, given=otherwise(self.game.describe(numbers[0]), answer.state))

    def search(
        self, state: Ints, max_states: int, inputs: Ints | None = None,
        on_level: OnLevel | None = None,
    ) -> tuple[Answer, Floats]:  # fmt: skip
        """The answer to one canonical state (fields,) above the table's frontier, and the payoffs
        (m, players) of its children.

        Every child is expanded, and theirs, until it is over or the table holds it; those payoffs
        are looked up at once, and the rest is backward induction. So the answer is as exact as the
        table, but for decisions that are closer than its error tells: they count as tied, the
        earlier action is taken, and what the others get there is another action's. Where the search
        met such decisions, a second one, between bounds, says how far off its payoffs may be.

        max_states: how many the search may find; a million take about 90 MB and 2 s. inputs: the
        state as a person gave it, values (1, fields), for the names of their bids.

        Raises SearchLimitError, saying how far it got; StateError for a cycle that is not covered.
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
        """The payoffs (m, players) of the children of a state (1, fields), by a search down to the
        table; and bounds (m,) on their errors."""
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
        """What `ask` says of canonical states (n, fields), nothing searched, as arrays; and of
        which (n,) there is an answer: they are held, or all of their children are, or are over.

        inputs: the same as a person gave them, values (n, fields), for the names of their bids.
        edges, payoffs: of the states, if they are expanded, and of their children (m, players), if
        these are looked up.
        """
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        inputs = self.game.fields.values(states) if inputs is None else inputs
        if len(self.parts) > 1:
            payoffs = None  # a part looks among its own first
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
        """The same of states that a part holds: with the strategies where both choose at once and
        their children are there."""
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
        """The same of states whose best actions are stored: with payoffs by one step of the rules
        if the table has those of all children."""
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
        """How many states fit in memory with their edges."""
        return max(1, MAX_EDGES // self.game.max_edges)

    def _shares(self, states: Ints, at: Ints, part: Part | None = None) -> Iterator[Ints]:
        """The states `at`, as many at a time as fit in memory with their edges; in the order of the
        part that holds them."""
        most = self.states_at_once
        if part is not None and len(at) > most // 8:
            at = at[np.argsort(part.keys(states[at]), kind="stable")]
        for start in range(0, len(at), most):
            yield at[start : start + most]

    def _stepped(self, states: Ints, inputs: Ints) -> tuple[EveryAction, NDArray[np.bool_]]:
        """One step of the rules from canonical states (n, fields) that no part holds, and at which
        (n,) all children are there, or over."""
        edges = expand(self.game, states)
        payoffs, known = once(self.game, self.lookup_or_backup, edges.children)
        complete = np.logical_and.reduceat(known, edges.first[:-1])
        q = evaluate(edges, payoffs)
        near, errors = (self.tolerance, self.error), self.errors(edges.children)
        return stepped(self.game, edges, q, near, errors, inputs), complete

    def margins_of(self, states: Ints) -> Floats:
        """The margins (n,) of canonical states that are held; NaN where there is no choice."""
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
        """The best actions of canonical states, as they are stored; None of what is not held."""
        owners = self.owners(states)
        names = np.full(len(states), None, object)
        for i, part in enumerate(self.parts):
            at = np.flatnonzero(owners == i)
            names[at] = part.stored_best(states[at])
        best: list[str | None] = names.tolist()
        return best

    def known_best(self, states: Ints) -> list[str | None]:
        """As `stored_best`. Raises MissingTableError for a state that is not held."""
        self._require(states, self.holds(states))
        return self.stored_best(states)

    def agent(self) -> Policy:
        """The table's best actions as an agent, for `evaluate` and `play`; it must hold
        the states that it is asked about, less the fields that only agents look at
        (`solver.game.capabilities.plain`), or all of their children. In states in which both choose
        at once it plays an optimal strategy."""
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
            chances = []
            for state, name, choices in zip(plain, best, actions, strict=True):
                names = [game.action_name(int(action)) for action in choices]
                if name not in names:
                    where = self.game.say(state)
                    if name is None:
                        raise MissingTableError(f"{self.where}: says no best action at {where}")
                    raise CorruptTableError(
                        f"{self.where}: names an action at {where} that it does not allow"
                    )
                chances.append(np.array([float(each == name) for each in names]))
            return chances

        def holds(states: Ints) -> NDArray[np.bool_]:
            return self.lookup_or_backup(plain := simplify(self.game, states))[1] | self.holds(
                plain
            )

        return Policy(decide, holds)

    # --- all of it ---------------------------------------------------------------------------

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        """About `count` solved states drawn evenly from the rows of all parts, in pieces."""
        rows = max(1, self.rows)
        for part in self.parts:
            if part.rows:
                yield from part.draw(max(1, round(count * part.rows / rows)), seed)

    def unfinished(self, part: str | None = None) -> list[str]:
        """What is still to be solved of it, or of a part by name, a clause each; none of a table
        that is whole."""
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
    """The states that a table, or a part of one, holds among those met from `roots` without going
    through another such: keys (k,) and payoffs (k, players)."""
    from luckbase.solver.search.explore import KNOWN, explore  # compiles the search

    holds = table.pays if isinstance(table, Lookup) else table.holds
    result = explore(table.game, roots, known=holds, max_states=max_states, on_level=on_level)
    keys = np.ascontiguousarray(result.keys[result.kinds == KNOWN])
    return keys, table.lookup(unpack_all(table.game.strides, keys))[0]
