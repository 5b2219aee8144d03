"""What a table says of a state, and which table said so; of a state above its frontier by a search.

From the state's children every one is expanded and merged by key until it is over or the table
holds it (`solver.search.explore`); the table's payoffs of those are looked up at once, and the rest
is backward induction by the rules (`solver.search.game_graph`). So an answer above the frontier is
as exact as the table below it: its payoffs are means of the table's, within the same bound; but for
decisions that are closer than the table's precision tells. They count as tied, and the earlier
action is taken; what the others get there is another action's. Where a search met such decisions, a
second one, between bounds, says how far off its payoffs may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from luckbase.cluster import words
from luckbase.cluster.table.actions import EveryAction, stepped, sure
from luckbase.solver.board.model import changed_options, rules_identity
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.search.bellman import evaluate
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.search.keys import Keys, unpack_all
from luckbase.solver.sentences import html_table


@dataclass(frozen=True)
class Origin(Result):
    """Which table answers: its board, the options that are not at the game's defaults, its rules
    identity, and for one named by its path why it is stale, if it is."""

    board: str
    options: dict[str, Any] = field(default_factory=dict)
    solve_id: str = ""
    stale: tuple[str, ...] = ()

    def __str__(self) -> str:
        options = "".join(f" {name}={_text(value)}" for name, value in self.options.items())
        return f"{self.board}{options}, solve {self.solve_id}"


def origin_of(game: Game, stale: tuple[str, ...] = ()) -> Origin:
    """The board and the rules of a game, as an answer says them."""
    board = game.board
    return Origin(board.name, changed_options(board), rules_identity(game), stale)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


ActionName = Annotated[str, Field(serialization_alias="action")]


@dataclass(frozen=True)
class Action(Result):
    """An action's name and its payoff, one a player."""

    name: ActionName
    value: tuple[float, ...]


@dataclass(frozen=True)
class Bid(Result):
    """A choice of one player where both choose at once: its chance in an optimal strategy, and the
    least and the most that it can have in one."""

    name: ActionName
    chance: float
    least: float
    most: float

    @property
    def sure(self) -> bool:
        """Whether every optimal strategy gives it this chance (to the precision of `ranges`)."""
        return bool(sure(self.least, self.most))


def _span(bid: Bid) -> str:
    """The chances that a choice can have in an optimal strategy, where that is not one."""
    return "" if bid.sure else f"{bid.least:z.4f} – {bid.most:z.4f}"


def otherwise(given: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given in other words than the canonical state has, but for an order."""

    def unordered(value: Any) -> Any:
        return sorted(value) if isinstance(value, list) else value

    return {name: v for name, v in given.items() if unordered(v) != unordered(state.get(name))}


Source = Literal["table", "search"]


@dataclass(frozen=True)
class Answer(Result):
    """What a table says of a state. Payoffs are lists over players in turn order.

    origin: which table. to_act: the player to act, counted from 1; None where the game is over.
    actions: best first for him. margin: what the second best would cost him, None where he has no
    choice or it is not decided. toss_up: another action is worth as much to him as far as `error`
    can tell. strategies: where both players
    choose at once, an optimal one of each; then actions are player 1's against the other's
    strategy, the likeliest first, `best` is None unless one is certain, and toss_up says that
    others are optimal too. given: fields that were given otherwise than `state` has them, being the
    same state.
    """

    origin: Flat[Origin]
    state: dict[str, Any]
    to_act: int | None
    value: tuple[float, ...]
    actions: tuple[Action, ...] = ()
    best: str | None = None
    margin: float | None = None
    toss_up: bool = False
    error: float = 0.0
    source: Source = "table"
    strategies: IfAny[tuple[tuple[Bid, ...], ...]] = None
    given: PythonOnly[dict[str, Any]] = field(default_factory=dict, compare=False)

    @property
    def note(self) -> str:
        """What was asked where the state says it otherwise, in a line; "" where it does not."""
        if not self.given:
            return ""
        here = words.fields({name: self.state.get(name, "") for name in self.given})
        return f"{words.fields(self.given)} is the same as {here}: both are one state"

    @property
    def board(self) -> str:
        """The name of the board."""
        return self.origin.board

    @property
    def headline(self) -> str:
        """Who acts and what is best, in a line; "" where neither is known."""
        if self.strategies is not None:
            other = "; other strategies are optimal too" if self.toss_up else ""
            return f"both choose at once; an optimal strategy of each{other}"
        if self.to_act is None:
            return "nobody chooses here" if self.error else "the game is over"
        if len(self.actions) < 2:
            return f"player {self.to_act} is up and must {self.best}" if self.best else ""
        toss = "  (a toss-up)" if self.toss_up else ""
        ahead = "" if self.margin is None else f", by {self.margin:z.7f}"
        return f"player {self.to_act} is up; best: {self.best}{ahead}{toss}"

    @property
    def footline(self) -> str:
        """How good the numbers are and what answered, in a line."""
        return f"each within {self.error:.1e}, from the {self.source}; answered by {self.origin}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """As text: the heads of the columns, and rows: the payoffs of the state and of each action;
        where both choose at once, the chances of each choice of each that can have one."""
        if self.strategies is not None:
            rows = [
                [f"player {i + 1}: {bid.name}", f"{bid.chance:z.6f}", _span(bid)]
                for i, side in enumerate(self.strategies)
                for bid in side
                if bid.chance > 1e-9 or bid.most > 1e-4
            ]
            return ["", "chance", "in any optimal one"], rows
        every = [("this state", self.value)]
        every += [(action.name, action.value) for action in self.actions]
        heads = ["", *(f"player {i + 1}" for i in range(len(self.value)))]
        return heads, [[name, *(f"{x:z.7f}" for x in value)] for name, value in every]

    def __str__(self) -> str:
        heads, rows = self.table()
        wide = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]).rstrip()
            for row in [heads, *rows]
        ]
        state = f"{self.board}  {words.fields(self.state)}"
        return "\n".join(
            line for line in (state, self.note, self.headline, *lines, self.footline) if line
        )

    def _repr_html_(self) -> str:
        """The answer in a notebook."""
        heads, rows = self.table()
        best = next((i for i, row in enumerate(rows) if row[0] == self.best), -1)
        state = f"{self.board}  {words.fields(self.state)}"
        table = html_table(heads, rows, [state, self.note, self.headline], marked=best)
        return f"{table}<small>{escape(self.footline)}</small>"


def answer_at(
    found: EveryAction, x: int, origin: Origin, state: dict[str, Any], source: Source = "table"
) -> Answer:
    """The answer to state x of many, whose fields are `state`."""
    bids, value = found.bids, tuple(found.values[x].tolist())
    toss_up, error = bool(found.ties[x]), float(found.errors[x])
    if bids is not None and bids.first[x + 1] > bids.first[x]:  # actions are player 1's
        rows = [found.choices(x, player).tolist() for player in (0, 1)]
        mine, theirs = (
            tuple(
                Bid(bids.names[bids.named[k]], *(
                    float(each[k]) for each in (bids.chances, bids.least, bids.most)
                ))
                for k in side
            )
            for side in rows
        )  # fmt: skip
        paid, total = bids.payoffs[rows[0]].tolist(), sum(value)
        order = sorted(range(len(mine)), key=lambda k: (-mine[k].chance, -paid[k], k))
        actions = tuple(Action(mine[k].name, (paid[k], total - paid[k])) for k in order)
        return Answer(
            origin, state, None, value, actions, found.sure_choice(x), None, toss_up, error, source,
            (mine, theirs),
        )  # fmt: skip
    actor, best = int(found.to_act[x]) - 1, int(found.best[x])
    first, last = int(found.first[x]), int(found.first[x + 1])
    q, named = found.q[first:last].tolist(), found.named[first:last].tolist()
    order = sorted(range(last - first), key=lambda k: (first + k != best, -q[k][actor], k))
    actions = tuple(Action(found.names[named[k]], tuple(q[k])) for k in order)
    margin = float(found.margins[x])
    return Answer(
        origin, state, actor + 1 or None, value, actions, actions[0].name if best >= 0 else None,
        None if margin != margin else margin, toss_up, error, source,
    )  # fmt: skip


# --- above the frontier --------------------------------------------------------------------------


class Holder(Protocol):
    """What a search may end at: a table (`cluster.table.lookup.Lookup`), or a part of one."""

    @property
    def game(self) -> Game: ...
    def holds(self, states: Ints) -> NDArray[np.bool_]: ...
    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]: ...


class Answering(Holder, Protocol):
    """A table that says how exact its payoffs are."""

    @property
    def origin(self) -> Origin: ...
    @property
    def precision(self) -> float: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def rounded(self) -> bool: ...
    def errors(self, states: Ints) -> Floats: ...


OnLevel = Callable[[int, int], None]
"""on_level(states, levels): how many a search has met so far."""


def known_below(
    table: Holder, roots: Ints, max_states: int, on_level: OnLevel | None = None
) -> tuple[Keys, Floats]:
    """The states that the table holds among those met from `roots` without going through another
    such: keys (k,) and payoffs (k, players)."""
    from luckbase.solver.search.explore import KNOWN, explore  # compiles the search

    found = explore(table.game, roots, known=table.holds, max_states=max_states, on_level=on_level)
    keys = np.ascontiguousarray(found.keys[found.kinds == KNOWN])
    return keys, table.lookup(unpack_all(table.game.bits, keys))[0]


def answer_by_search(
    table: Answering, state: Ints, max_states: int, words: Mapping[str, object] | None = None,
    on_level: OnLevel | None = None,
) -> Answer:  # fmt: skip
    """The answer to one canonical state (fields,) above the table's frontier.

    max_states: how many the search may meet; a million take about 90 MB and 2 s. on_level: told how
    far it is.

    Raises SearchLimitError, saying how far it got; StateError for a cycle that is not covered.
    """
    edges = expand(table.game, state.reshape(1, -1))
    payoffs, errors = searched(table, state, edges, max_states, on_level)
    return answer_step(table, state, edges, payoffs, errors, words, "search")


def searched(
    table: Answering, state: Ints, edges: Expanded, max_states: int, on_level: OnLevel | None = None
) -> tuple[Floats, Floats]:
    """The payoffs (m, players) of the children of one expanded state (fields,) above the table's
    frontier, by a search down to it; and bounds (m,) on their errors. Raises as
    `answer_by_search`."""
    from luckbase.solver.search.game_graph import Graph

    game = table.game
    keys, payoffs = known_below(table, state.reshape(1, -1), max_states, on_level)
    graph = Graph(game, tolerance=table.tolerance, max_states=max_states)
    graph.know(keys, payoffs)
    children = graph.solve(edges.children)
    found: Floats = graph.values[children]
    errors = table.errors(unpack_all(game.bits, keys))
    close = graph.margins[: graph.count] <= table.tolerance
    if not (table.rounded and close.any()):
        return found, np.full(len(found), errors.max(initial=table.precision))
    # All decisions that the known payoffs do not tell, for their errors, may fall as they like.
    graph, off = Graph(game, bounds=True, max_states=max_states), errors[:, None]
    graph.know(keys, np.concatenate([payoffs - off, payoffs + off], axis=1))
    try:
        at = graph.solve(edges.children)
    except StateError:  # a cycle with such a decision
        return found, np.full(len(found), np.ptp(game.payoff_range))
    low, high = graph.values[at, : game.players], graph.values[at, game.players :]
    return found, np.maximum(found - low, high - found).max(axis=1)


def answer_step(
    table: Answering, state: Ints, edges: Expanded, payoffs: Floats, errors: Floats,
    words: Mapping[str, object] | None = None, source: Source = "table",
) -> Answer:  # fmt: skip
    """The answer to an expanded state (fields,) that is not stored, from the payoffs (m, players)
    of its children, with bounds (m,) on their errors; `words`: as a person gave it, for the names
    of their bids; source: where the payoffs come from."""
    game = table.game
    inputs = game.fields.values(state) if words is None else game.fields.read(words)
    near = table.tolerance, table.precision
    found = stepped(game, edges, evaluate(edges, payoffs), near, errors, inputs.reshape(1, -1))
    return answer_at(found, 0, table.origin, game.describe(state), source)
