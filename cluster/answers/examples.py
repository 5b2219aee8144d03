"""States and rows of a table that are worth looking at: examples to begin with, the nearest states
to one above the table, ready searches, and decisions to train with.

Decisions to train with come up in play: games are simulated from the table's beginnings, mostly
with best actions. The margin of a decision is the cost of its cheapest mistake.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from luckbase.cluster.answers.actions import every_action
from luckbase.cluster.answers.answer import Answer, often
from luckbase.cluster.answers.columns import parse_where
from luckbase.cluster.answers.export import columns_of
from luckbase.cluster.answers.frames import all_answers
from luckbase.cluster.answers.moves import Addressed
from luckbase.cluster.answers.table import Table
from luckbase.cluster.store.provenance import in_order
from luckbase.solver.charts import Search
from luckbase.solver.errors import MissingTableError, OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts, FullTable
from luckbase.solver.game.fields import typed
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import DECISION, SIMULTANEOUS
from luckbase.solver.result import Flat, PythonOnly, Result
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.sentences import fields, many

TRIES = 20
"""Number of rows drawn to find one solved state: some rows of a partial search are not solved."""
STARTS, QUESTIONS, ROOTS = 5, 8, 6
"""Maximum numbers of starts, of questions, and of roots of searches among the examples."""
LIKELY = 0.01
"""Minimum chance of a start among the examples."""
MAX_STEPS = 400
"""Maximum number of states tried for each field near one above the table."""
DIFFICULTIES = {"any": (0.0, np.inf), "easy": (5.0, np.inf), "medium": (1.0, 5.0),
                "hard": (0.0, 1.0)}  # fmt: skip
"""Range of margins (exclusive, inclusive) of each difficulty, in units of `margin_unit`."""
PLAYS, STEPS, ROUNDS = 24, 120, 12
"""Games simulated at once, their maximum number of moves, and the maximum of repetitions."""
CARELESS = 0.2
"""Probability of a random move, to reach states that optimal players never reach."""


@dataclass(frozen=True)
class Example(Result):
    """An interesting state, with the table's answer."""

    label: str
    state: dict[str, str]
    address: Addressed
    answer: PythonOnly[Answer]

    @property
    def best(self) -> str:
        """The best action, or the likeliest choices of a mixed strategy; a dash if no player
        acts."""
        answer = self.answer
        if answer.strategies is None:
            return "toss-up" if answer.toss_up else answer.best or "–"
        likely = sorted(answer.strategies[0], key=lambda bid: -bid.chance)
        return ", ".join(f"{bid.name} {bid.chance:.0%}" for bid in likely[:3] if bid.chance > 0.005)

    def payoff_of(self, name: str) -> str:
        """Return an action's payoff to the player who acts, or a dash if it is not stored."""
        for action in self.answer.actions:
            if action.name == name and action.value and self.answer.to_act is not None:
                return self.answer.origin.payoffs.text(action.value[self.answer.to_act - 1])
        return "–"


def action_names(examples: Sequence[Example]) -> list[str]:
    """Return the actions of the examples in which one player decides."""
    answers = [each.answer for each in examples]
    return sorted({a.name for answer in answers if answer.to_act for a in answer.actions})


def opening_answers(table: Table) -> list[Example]:
    """Answer the full table's opening questions; without a full table, the start or the roots of
    searches. States that are not solved yet are left out."""
    return _answered(table, _questions(table))


def examples(table: Table) -> list[Example]:
    """Return states with which a page can begin: the game's likeliest starts, its questions or
    roots of searches, and two drawn rows."""
    starts, drawn = [*_starts(table)], list[tuple[str, Mapping[str, Any]]]()
    questions = [each for each in _questions(table) if not (starts and each[0] == "the start")]
    for label, seed in (("a random state", 0), ("another random state", 1)):
        for states in islice(table.draw(TRIES, seed), 1):
            drawn.append((label, table.game.describe(states[seed % len(states)])))
    return _answered(table, [*starts, *questions[:QUESTIONS], *drawn])


def _answered(table: Table, states: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Example]:
    by_state = dict[str, Example]()
    for label, state in states:
        with suppress(StateError, MissingTableError):
            example = Example(label, typed(state), state, table.ask(state))
            by_state.setdefault(fields(state), example)
    return [*by_state.values()]


def _starts(table: Table) -> Iterator[tuple[str, Mapping[str, Any]]]:
    game, starts = table.game, table.game.starts()
    if not starts:
        return
    states = np.array([state for _, state in starts])
    known = table.backup(states)[1] & ~expand(game, states).terminal
    known &= np.array([chance for chance, _ in starts]) >= LIKELY
    shown = [(starts[x][0], game.describe(states[x])) for x in np.flatnonzero(known)[:STARTS]]
    for chance, state in shown:
        different = {
            name: value
            for name, value in state.items()
            if any(value != others[name] for _, others in shown)
        }
        odds = f"a start, {often(chance)}: {fields(different)}"
        yield "the start" if len(starts) == 1 else odds, state


def _questions(table: Table) -> Iterator[tuple[str, Mapping[str, Any]]]:
    game, start = table.game, table.game.start()
    if table.full is not None and game.has(FullTable):
        yield from table.full.layout.opening_questions()
    elif start is not None and table.holds(start.reshape(1, -1))[0]:
        yield "the start", game.describe(start)
    else:
        roots = [root for goal in table.manifest.goals if goal.roots for root in goal.roots.start]
        stored = (root for root in roots if table.holds(game.parse(root).reshape(1, -1))[0])
        for root in islice(stored, ROOTS):
            yield "below this all is solved", in_order(root, game)


def nearest_known(table: Table, state: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield states near one above the table that it answers without a search, each with the field
    that differs. In each field, its largest number is lowered until the table has the state."""
    game, place = table.game, 0
    values = game.fields.read(state)
    for field in game.fields:
        columns, place = slice(place, place + field.length), place + field.length
        if field.is_text:
            continue
        path, numbers = [values], values.copy()
        while len(path) < MAX_STEPS and numbers[columns].max() > field.low:
            numbers[columns.start + numbers[columns].argmax()] -= field.unit
            path.append(numbers.copy())
        states, _ = game.known_states(np.array(path))
        known = np.flatnonzero(table.backup(states)[1])
        if len(known):
            yield field.name, typed(game.describe(states[known[0]]))


# --- ready searches ------------------------------------------------------------------------------


def margin_unit(game: Game) -> float:
    """Return the unit of margins: a hundredth of a win, a tenth of a point, or a thousandth of
    the most points or dollars."""
    low, high = game.known_range or (0.0, 100.0)
    return 0.01 * (high - low) if high - low <= 2 else max(0.1, 0.001 * high)


def searches(table: Table) -> list[Search]:
    """Return the ready searches whose columns this table has, the game's own first."""
    game, charts, schema = table.game, table.game.get(Charts), columns_of(table)
    ready = [] if charts is None else [*charts.searches]
    if not game.simultaneous:
        low, high = game.known_range or (0.0, 100.0)
        close = 0.001 if high - low <= 2 else margin_unit(game)
        gap = game.payoffs.change(close)
        ready += [
            Search(f"close decisions: the next best costs less than {gap}",
                   f"margin>0 margin<{close:g}"),
            Search("toss-ups: another action is worth as much", "toss_up=true"),
        ]  # fmt: skip

    def fits(search: Search) -> bool:
        with suppress(OptionError):
            parse_where(game, search.where, schema)
            return True
        return False

    return [*filter(fits, ready)]


@dataclass(frozen=True)
class FoundRow(Result):
    """A row that was found, in the form of luckbase query."""

    state: Addressed
    to_act: int | None
    best: str | None
    margin: float | None
    toss_up: bool
    value: tuple[float, ...]


@dataclass(frozen=True)
class FoundRows(Result):
    """The rows that a search found."""

    search: Flat[Search]
    rows: list[FoundRow]
    count: int  # number of rows found among the first `looked_at` of `total` rows
    looked_at: int
    total: int
    complete: bool  # True if the search read all rows


class _Late(Exception):
    """The time for a search is over."""


def first_rows(table: Table, search: Search, most: int, seconds: float) -> FoundRows:
    """Return the first rows, at most `most`, that a search finds; it ends after some seconds."""
    deadline = time.monotonic() + seconds
    kept: list[pa.RecordBatch] = []
    count = taken = looked_at = 0

    def on_rows(done: int, total: int) -> None:
        nonlocal looked_at
        looked_at = done
        if time.monotonic() > deadline:
            raise _Late

    reader = table.to_arrow(search.where, table.game.columns, actions=True, on_rows=on_rows)
    complete = False
    with suppress(_Late):
        for batch in reader:
            count += len(batch)
            if taken < most and len(batch):
                kept.append(batch.slice(0, most - taken))
                taken += len(kept[-1])
        complete = True
    rows = [
        FoundRow(each.state, each.to_act, each.best, each.margin, each.toss_up, each.value)
        for each in (all_answers(table, pa.Table.from_batches(kept)) if kept else ())
    ]
    return FoundRows(search, rows, count, looked_at, table.rows, complete)


# --- decisions to train with ---------------------------------------------------------------------


def difficulty_of(game: Game, margin: float) -> str:
    """Return the difficulty of a decision with this margin."""
    units = margin / margin_unit(game)
    return next(name for name in ("hard", "medium", "easy") if units <= DIFFICULTIES[name][1])


def decisions(
    table: Table, beginnings: Sequence[Ints], difficulty: str, seed: int
) -> Iterator[tuple[Ints, float]]:
    """Yield states (fields,) of this difficulty from simulated games, with their margins, in an
    order determined by `seed`; at the end raise MissingTableError.

    beginnings: states (k, fields) in which games begin; each group is used in turn.
    """
    low, high = (bound * margin_unit(table.game) for bound in DIFFICULTIES[difficulty])
    seen = 0
    for states in _simulated(table, beginnings, seed):
        seen += len(states)
        priced = margins(table, states)
        for x in np.flatnonzero((priced > max(low, table.tolerance)) & (priced <= high)).tolist():
            yield states[x], float(priced[x])
    kind = "is a decision" if difficulty == "any" else f"is a {difficulty} decision"
    raise MissingTableError(
        f"difficulty: none of {many(seen, 'state')} that came up in play {kind}; take another "
        "one, or another seed"
    )


def margins(table: Table, states: Ints) -> Floats:
    """Return the margins (n,) of states (n, fields); NaN if unknown or without a choice."""
    actions, priced = every_action(table, states)
    result = np.where(priced, actions.margins, np.nan)
    owners, own = np.repeat(np.arange(len(states)), np.diff(actions.first)), actions.choosers == 0
    for x in np.unique(owners[own]).tolist():
        costs = actions.values[x, 0] - actions.q[own & (owners == x), 0]
        result[x] = min(costs[costs > table.tolerance], default=np.nan)
    return result


def _simulated(table: Table, beginnings: Sequence[Ints], seed: int) -> Iterator[Ints]:
    """Yield the states (n, fields) with a decision of some games at a time."""
    game, rng = table.game, np.random.default_rng(seed)
    for k in range(ROUNDS if beginnings else 0):
        roots, states_met = beginnings[k % len(beginnings)], list[Ints]()
        states = roots[rng.integers(len(roots), size=PLAYS)]
        for _ in range(STEPS):
            edges = expand(game, states)
            states_met.append(states[(edges.kinds == DECISION) | (edges.kinds == SIMULTANEOUS)])
            best = table.stored_best(states)
            taken = [
                _edge(game, edges, x, best[x], rng)
                for x in np.flatnonzero(~edges.terminal).tolist()
            ]
            if not taken:
                break
            states = edges.children[taken]
        met = np.unique(np.concatenate(states_met), axis=0)
        yield np.ascontiguousarray(rng.permutation(met))


def _edge(game: Game, edges: Expanded, x: int, best: str | None, rng: np.random.Generator) -> int:
    """Return the edge taken at state x: usually of the best action, otherwise of a random one."""
    first, last = int(edges.first[x]), int(edges.first[x + 1])
    actions, weights = edges.actions[first:last], edges.weights[first:last]
    chosen = rng.choice(np.unique(actions))
    if edges.kinds[x] == DECISION and best is not None and rng.random() >= CARELESS:
        chosen = next((a for a in np.unique(actions) if game.action_name(int(a)) == best), chosen)
    index = np.flatnonzero(actions == chosen)
    return first + int(index[rng.choice(len(index), p=weights[index] / weights[index].sum())])
