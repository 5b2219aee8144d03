"""What a table says of a state as `Answer`, and of many as arrays, `EveryAction`.

`actions_of_part` makes an `EveryAction` of states that a part of a table holds, `stepped` one of
 states whose children alone are known, `joined` one of several. An `Answer` (`answer_at`) and
the columns of a batch or an export (`cluster.table.columns`) are read off it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from luckbase.cluster.table.manifest import Origin
from luckbase.solver import sentences
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import choice_names
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import JOINT, SIMULTANEOUS
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.search.bellman import (
    EVEN,
    ActionValues,
    chosen,
    error_of_actions,
    evaluate,
    limits_of,
    refuse_sums,
    solved_games,
    sums_differ,
    undecided,
)
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.sentences import html_table, nearest, shorten

if TYPE_CHECKING:
    from luckbase.cluster.table.parts import Part, Rows

# --- one state -----------------------------------------------------------------------------------


ActionName = Annotated[str, Field(serialization_alias="action")]


@dataclass(frozen=True)
class Action(Result):
    """An action's name and its payoff, one a player."""

    name: ActionName
    value: tuple[float, ...]


def _sure(least: Any, most: Any) -> Any:
    """Whether a chance is the same in every optimal strategy, to the precision of these bounds."""
    return most - least < 1e-4


@dataclass(frozen=True)
class Bid(Result):
    """A choice of one player where both choose at once: its chance in an optimal strategy, and the
    least and the most that it can have in one."""

    name: ActionName
    chance: float
    least: float
    most: float

    @property
    def span(self) -> str:
        """The chances that it can have in an optimal strategy, where that is not one."""
        return "" if _sure(self.least, self.most) else f"{self.least:z.4f} – {self.most:z.4f}"


Source = Literal["table", "search", "decisions", "games", "interpolation"]
_SOURCES = {
    "decisions": "the stored decisions",
    "games": "games by the stored decisions",
    "interpolation": "the table",
}


@dataclass(frozen=True)
class Answer(Result):
    """What a table says of a state. Payoffs are lists over players in turn order.

    origin: which table. to_act: the player to act, counted from 1; None where the game is over.
    actions: best first for them. margin: what the second best would cost them, None where they have
    no choice or it is not decided. decision_only: they have a choice, and the table stores the best
    action without payoffs.
    error: how far off each payoff may be; of games that were played, its standard error. toss_up:
    another action is worth as much to them as far as
    `error` can tell. strategies: where both players choose at once, an optimal one of each; then
    actions are player 1's against the other's strategy, the likeliest first, `best` is None unless
    one is certain, and toss_up says that others are optimal too. given: fields that were given
    otherwise than `state` has them, being the same state. remark: how a state that was
    given in words was understood, if that is not plain.
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
    decision_only: IfAny[bool] = None
    given: PythonOnly[dict[str, Any]] = field(default_factory=dict, compare=False)
    remark: IfAny[str] = None

    def __getitem__(self, action: str) -> tuple[float, ...]:
        """The payoffs of an action, over players; where both choose at once of one of player 1's,
        against the other's strategy. Raises OptionError for one that there is not.

        >>> t.ask(mine=0, yours=87)["roll"]
        """
        for each in self.actions:
            if each.name == action:
                return each.value
        names = [each.name for each in self.actions]
        hint = nearest(str(action), names) if names else "there is none here"
        raise OptionError(f"unknown action '{shorten(str(action), 30)}'; {hint}")

    @property
    def note(self) -> str:
        """How the state was understood, in a line; "" if it is as it was given."""
        notes = [self.remark] if self.remark else []
        if self.given:
            canonical = sentences.fields({name: self.state.get(name, "") for name in self.given})
            given = sentences.fields(self.given)
            notes.append(f"{given} is the same as {canonical}: both are one state")
        return "; ".join(notes)

    @property
    def board(self) -> str:
        """The name of the board."""
        return self.origin.board

    @property
    def headline(self) -> str:
        """Who acts and what is best, in a line; "" where neither is known."""
        if self.strategies is not None:
            more = "; other strategies are optimal too" if self.toss_up else ""
            return f"both choose at once; an optimal strategy of each{more}"
        if self.to_act is None:
            return "nobody chooses here" if self.error else "the game is over"
        if self.best and self.decision_only:
            return f"player {self.to_act} is up; best: {self.best}"
        if len(self.actions) < 2:
            return f"player {self.to_act} is up and must {self.best}" if self.best else ""
        toss = "  (a toss-up)" if self.toss_up else ""
        ahead = "" if self.margin is None else f", by {self.margin:z.7f}"
        return f"player {self.to_act} is up; best: {self.best}{ahead}{toss}"

    @property
    def footline(self) -> str:
        """How good the numbers are and what answered, in a line."""
        each = sentences.within(self.error, "each ") if self.value else "no payoffs are stored"
        if self.source == "games":
            each = f"the largest standard error {self.error:.2g}"
        if self.source == "interpolation":
            each = f"interpolated between states {sentences.within(self.error, 'each ')}"
        source = _SOURCES.get(self.source, f"the {self.source}")
        return f"{each}, from {source}; answered by {self.origin}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """As text: the heads of the columns, and rows: the payoffs of the state and of each action;
        where both choose at once, the chances of each choice of each that can have one."""
        if self.strategies is not None:
            rows = [
                [f"player {i + 1}: {bid.name}", f"{bid.chance:z.6f}", bid.span]
                for i, side in enumerate(self.strategies)
                for bid in side
                if bid.chance > 1e-9 or bid.most > 1e-4
            ]
            return ["", "chance", "in any optimal one"], rows
        payoffs = [("this state", self.value)]
        payoffs += [(action.name, action.value) for action in self.actions]
        payoffs = [(name, value) for name, value in payoffs if value]
        heads = ["", *(f"player {i + 1}" for i in range(len(self.value)))]
        return heads, [[name, *(f"{x:z.7f}" for x in value)] for name, value in payoffs]

    def __str__(self) -> str:
        heads, rows = self.table()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in [heads, *rows]
        ]
        state = f"{self.board}  {sentences.fields(self.state)}"
        return "\n".join(
            line for line in (state, self.note, self.headline, *lines, self.footline) if line
        )

    def _repr_html_(self) -> str:
        heads, rows = self.table()
        best = next((i for i, row in enumerate(rows) if row[0] == self.best), -1)
        state = f"{self.board}  {sentences.fields(self.state)}"
        table = html_table(heads, rows, [state, self.note, self.headline], marked=best)
        return f"{table}<small>{escape(self.footline)}</small>"


def interpolated(
    nearest_answer: Answer, answers: Sequence[Answer], weights: Sequence[float], between: str
) -> Answer:
    """Return an answer to a position between grid states: weighted payoffs, and the action of the
    nearest state.

    answers: of the grid states around it. between: where it lies, in words.
    """

    def mean(payoffs: Sequence[Sequence[float]]) -> tuple[float, ...]:
        return tuple((np.asarray(weights) @ np.asarray(payoffs)).tolist())

    by_action = [{action.name: action.value for action in each.actions} for each in answers]
    shared = [a for a in nearest_answer.actions if all(a.name in each for each in by_action)]
    actions = tuple(Action(a.name, mean([each[a.name] for each in by_action])) for a in shared)
    margin, best = None, nearest_answer.best
    if nearest_answer.to_act is not None and len(actions) > 1:
        paid = {a.name: a.value[nearest_answer.to_act - 1] for a in actions}
        margin = paid.pop(best, 0.0) - max(paid.values()) if best else None
    differ = sorted({each.best for each in answers if each.best and each.best != best})
    remark = (
        f"{between}: payoffs are interpolated; action and reasons are those of the nearest state"
    )
    if differ:
        remark += f"; a neighbor's best action is {', '.join(differ)}"
    return replace(
        nearest_answer, value=mean([each.value for each in answers]), actions=actions,
        margin=margin, source="interpolation", remark=remark,
    )  # fmt: skip


def otherwise(inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given in other words than the canonical state has, but for an order."""

    def unordered(value: Any) -> Any:
        return sorted(value) if isinstance(value, list) else value

    return {name: v for name, v in inputs.items() if unordered(v) != unordered(state.get(name))}


# --- many states, as arrays ----------------------------------------------------------------------

R = TypeVar("R", bound="Ragged")


@dataclass(frozen=True)
class Ragged:
    """Rows of n states, k in all: state x has rows first[x] .. first[x + 1].

    first: int64 (n + 1,). names: of rows; named: int64 (k,), into `names`. Subclasses add columns
    of k rows, or of n states, whose names are in `PER_STATE`.
    """

    PER_STATE: ClassVar[tuple[str, ...]] = ()

    first: Ints
    names: tuple[str, ...]
    named: Ints

    def only(self, at: Ints) -> Self:
        """Of these states (m,), in this order."""
        counts = np.diff(self.first)[at]
        first = np.concatenate([[0], np.cumsum(counts)])
        rows = np.repeat(self.first[at] - first[:-1], counts) + np.arange(first[-1])
        columns = {
            each.name: getattr(self, each.name)[at if each.name in self.PER_STATE else rows]
            for each in fields(self)
            if isinstance(getattr(self, each.name), np.ndarray) and each.name != "first"
        }
        return replace(self, first=first, **columns)


@dataclass(frozen=True)
class Bids(Ragged):
    """The choices of both players, k in all, at those of n states where they choose at once.

    Of a state player 1's are first. players: int64 (k,), from 0. chances: float64 (k,), in an
    optimal strategy; least, most: float64 (k,), in any. payoffs: float64 (k,), to who chooses,
    against the other's strategy.
    """

    players: Ints
    chances: Floats
    least: Floats
    most: Floats
    payoffs: Floats


@dataclass(frozen=True)
class EveryAction(Ragged):
    """What is said of n states with k actions in all; p players.

    q: float64 (k, p). values: float64 (n, p). to_act: int64 (n,), from 1; 0 where nobody does, or
    both. best: int64 (n,), which of the state's actions, from 0; -1 where nobody decides. margins:
    float64 (n,), NaN where there is no choice. ties: bool (n,). errors: float64 (n,). bids: of
    states where both choose at once.
    """

    PER_STATE = ("values", "to_act", "best", "margins", "ties", "errors")

    q: Floats
    values: Floats
    to_act: Ints
    best: Ints
    margins: Floats
    ties: NDArray[np.bool_]
    errors: Floats
    bids: Bids

    def __len__(self) -> int:
        return len(self.values)

    def only(self, at: Ints) -> Self:
        return replace(super().only(at), bids=self.bids.only(at))

    def best_names(self) -> list[str | None]:
        """The best action of each state; where both choose at once, player 1's if it is sure."""
        names, codes = [*self.names, None], np.full(len(self), -1)
        decided = np.flatnonzero(self.best >= 0)
        codes[decided] = self.named[self.first[decided] + self.best[decided]]
        best = [names[code] for code in codes.tolist()]
        for x in self.at_once().tolist():
            best[x] = self.sure_choice(x)
        return best

    def at_once(self) -> Ints:
        """The states where both choose at once."""
        return np.flatnonzero(np.diff(self.bids.first))

    def choices(self, x: int, player: int) -> Ints:
        """The rows of `bids` that are choices of a player (from 0) at state x."""
        at = np.arange(self.bids.first[x], self.bids.first[x + 1])
        of_player: Ints = at[self.bids.players[at] == player]
        return of_player

    def sure_choice(self, x: int) -> str | None:
        """Player 1's choice at state x that is made for certain, if one is."""
        chances, payoffs = self.bids.chances, self.bids.payoffs
        k = max(self.choices(x, 0).tolist(), key=lambda k: (chances[k], payoffs[k], -k))
        return self.bids.names[self.bids.named[k]] if chances[k] > 1 - 1e-9 else None


def joined(pieces: Sequence[tuple[Ints, R]]) -> R:
    """One of n states, from pieces of them: which states, and what is said of them; each of the n
    is in one piece."""
    at = np.concatenate([at for at, _ in pieces])
    together = _concatenated([piece for _, piece in pieces])
    return together if (np.diff(at) == 1).all() else together.only(np.argsort(at))


def _concatenated(pieces: Sequence[R]) -> R:
    if len(pieces) == 1:
        return pieces[0]
    distinct = dict.fromkeys(name for piece in pieces for name in piece.names)
    places = {name: i for i, name in enumerate(distinct)}
    named = [np.array([places[n] for n in p.names], np.int64)[p.named] for p in pieces]
    counts = np.concatenate([np.diff(piece.first) for piece in pieces])
    columns: dict[str, Any] = {
        "first": np.concatenate([[0], np.cumsum(counts)]), "names": tuple(distinct),
        "named": np.concatenate(named),
    }  # fmt: skip
    for name in (each.name for each in fields(pieces[0]) if each.name not in columns):
        parts: list[Any] = [getattr(piece, name) for piece in pieces]
        together = _concatenated if isinstance(parts[0], Ragged) else np.concatenate
        columns[name] = together(parts)
    return replace(pieces[0], **columns)


def no_bids(n: int) -> Bids:
    """Of n states where nobody chooses at once."""
    none = np.empty(0)
    whole = none.astype(np.int64)
    return Bids(np.zeros(n + 1, np.int64), (), whole, whole, none, none, none, none)


def nothing_known(n: int, players: int) -> EveryAction:
    """Of n states of which nothing is known, and where nobody acts."""
    none = np.zeros(n, np.int64)
    return EveryAction(
        np.zeros(n + 1, np.int64), (), none[:0], np.empty((0, players)), np.zeros((n, players)),
        to_act=none, best=none - 1, margins=np.full(n, np.nan), ties=none > 0, errors=np.zeros(n),
        bids=no_bids(n),
    )  # fmt: skip


def best_alone(actors: Ints, over: NDArray[np.bool_], rows: Rows, error: float) -> EveryAction:
    """Of n states, rows of a part without the payoffs of their children: the best action alone,
    worth as much as the state; NaN where not even that is stored. actors: as of `Expanded`."""
    acts = (actors >= 0) & ~over
    decided = acts & (rows.best >= 0)
    values, n = np.asarray(rows.values, np.float64), len(acts)
    return EveryAction(
        np.concatenate([[0], np.cumsum(decided)]), tuple(rows.labels),
        rows.best[decided].astype(np.int64), q=values[decided], values=values,
        to_act=np.where(acts, actors + 1, 0), best=np.where(decided, 0, -1),
        margins=np.full(n, np.nan), ties=np.zeros(n, bool),
        errors=np.where(over | np.isnan(values[:, 0]), 0.0, error), bids=no_bids(n),
    )  # fmt: skip


def _paid(payoffs: Sequence[float]) -> tuple[float, ...]:
    """The payoffs of an answer, over players; none where they are not known."""
    return () if any(map(isnan, payoffs)) else tuple(payoffs)


def answer_at(
    states: EveryAction, x: int, origin: Origin, state: dict[str, Any], source: Source = "table"
) -> Answer:
    """The answer to state x of many, whose fields are `state`."""
    bids, value = states.bids, _paid(states.values[x].tolist())
    toss_up, error = bool(states.ties[x]), float(states.errors[x])
    if bids.first[x + 1] > bids.first[x]:  # actions are player 1's
        rows = [states.choices(x, player).tolist() for player in (0, 1)]
        row_bids, column_bids = (
            tuple(
                Bid(bids.names[bids.named[k]], *(
                    float(each[k]) for each in (bids.chances, bids.least, bids.most)
                ))
                for k in side
            )
            for side in rows
        )  # fmt: skip
        payoffs, total = bids.payoffs[rows[0]].tolist(), sum(value)
        order = sorted(range(len(row_bids)), key=lambda k: (-row_bids[k].chance, -payoffs[k], k))
        actions = tuple(Action(row_bids[k].name, (payoffs[k], total - payoffs[k])) for k in order)
        return Answer(
            origin, state, None, value, actions, states.sure_choice(x), None, toss_up, error,
            source, (row_bids, column_bids),
        )  # fmt: skip
    actor, best = int(states.to_act[x]) - 1, int(states.best[x])
    span = slice(int(states.first[x]), int(states.first[x + 1]))
    q, named = states.q[span].tolist(), states.named[span].tolist()
    order = sorted(range(len(q)), key=lambda k: (k != best, -q[k][actor], k))
    actions = tuple(Action(states.names[named[k]], _paid(q[k])) for k in order)
    margin = float(states.margins[x])
    return Answer(
        origin, state, actor + 1 or None, value, actions, actions[0].name if best >= 0 else None,
        None if margin != margin else margin, toss_up, error, source,
    )  # fmt: skip


# --- from a step of the rules --------------------------------------------------------------------


def from_rules(
    game: Game, edges: Expanded, q: ActionValues, chosen_rows: Ints, tolerance: float,
    values: Floats, error: float | Floats,
) -> EveryAction:  # fmt: skip
    """Of n expanded states, from every action's payoffs; not of those where both choose at once.

    chosen_rows: the rows (n,) of `q` that are the best. tolerance: how far payoffs may be apart and
    still be one. values: float64 (n, p), of the states, within `error`.
    """
    own, starts = q.of_actors(edges.actors), q.first[:-1]
    level = own >= np.maximum.reduceat(own, starts)[q.states] - tolerance
    others = own.copy()
    others[chosen_rows] = -np.inf
    margins = np.maximum(own[chosen_rows] - np.maximum.reduceat(others, starts), 0.0)
    over = edges.terminal
    acts = (edges.actors >= 0) & ~over
    counts = np.diff(q.first)
    rows = np.flatnonzero(np.repeat(acts, counts))
    distinct, named = np.unique(q.actions[rows], return_inverse=True)
    return EveryAction(
        np.concatenate([[0], np.cumsum(counts * acts)]),
        tuple(game.action_name(int(action)) for action in distinct), named, q=q.values[rows],
        values=values,
        to_act=np.where(acts, edges.actors + 1, 0), best=np.where(acts, chosen_rows - starts, -1),
        margins=np.where(acts & (counts > 1), margins, np.nan),
        ties=acts & (np.add.reduceat(level.astype(np.int64), starts) > 1),
        errors=np.where(over, 0.0, error), bids=no_bids(len(over)),
    )  # fmt: skip


def actions_of_part(
    part: Part, states: Ints, edges: Expanded | None = None, rows: Rows | None = None,
    payoffs: Floats | None = None,
) -> EveryAction:  # fmt: skip
    """What a part says of canonical states (n, fields) that it holds, or that are over, with every
    action; where both choose at once the payoffs alone. edges, rows, payoffs: of the states and of
    their children, if they are expanded, read or looked up already. Raises CorruptTableError."""
    edges = expand(part.game, states) if edges is None else edges
    if payoffs is None:
        part.fetch(np.concatenate([states, edges.children]))
    rows = part.stored(states) if rows is None else rows
    q = evaluate(edges, part.children(edges) if payoffs is None else payoffs)
    values = np.asarray(rows.values, np.float64)
    chosen_rows = part.taken(rows, q, edges.actors, states)
    result = from_rules(part.game, edges, q, chosen_rows, part.tolerance, values, part.error)
    if rows.margins is not None:  # and with them all that was decided
        decided = rows.best >= 0
        best, ties = np.where(decided, result.best, -1), result.ties & decided
        margins = np.where(result.to_act > 0, rows.margins, np.nan)
        result = replace(result, best=best, ties=ties, margins=margins)
    return result


def stepped(
    game: Game, edges: Expanded, q: ActionValues, near: tuple[float, float], errors: Floats,
    inputs: Ints,
) -> EveryAction:  # fmt: skip
    """Of n expanded states that no table holds, from every action's payoffs.

    near: payoffs closer than the first can not be told apart, where none is off by more than the
    second. errors: (m,) how far off those of the children may be, in the edges' order. inputs: the
    states as a person gave them, values (n, fields), for the names of their bids.
    """
    tolerance, precision = near
    chosen_rows, apart = chosen(q, edges.actors, tolerance), error_of_actions(edges, errors)
    error = np.maximum(np.maximum.reduceat(apart, q.first[:-1]), precision)
    result = from_rules(game, edges, q, chosen_rows, tolerance, q.values[chosen_rows], error)
    if (apart > precision).any():
        unclear = undecided(q, edges.actors, apart, chosen_rows, game.tie_tolerance)
        result.ties[:] |= unclear & (result.best >= 0)
    both = np.flatnonzero(edges.kinds == SIMULTANEOUS)
    if not len(both):
        return result
    even = limits_of(game, tolerance)[EVEN]
    uneven = sums_differ(q, both) > np.maximum(even, 4 * error[both])
    if uneven.any():
        x = both[uneven.argmax()]
        refuse_sums(game, game.canonical_states(inputs[x : x + 1])[0], q, x)
    bids, payoffs, gaps = _bids_at(game, q, both, inputs)
    result.values[both], result.errors[both] = payoffs, error[both] + gaps
    unsure = ~_sure(bids.least, bids.most)
    result.ties[both] = np.logical_or.reduceat(unsure, bids.first[both])
    return replace(result, bids=bids)


def _bids_at(game: Game, q: ActionValues, both: Ints, inputs: Ints) -> tuple[Bids, Floats, Floats]:
    """The choices at n states, the m `both` of which are those where both choose at once; the
    payoffs (m, 2) of these, and the gaps of their games (m,)."""
    from luckbase.solver.matrix_game import simplex as matrix_game

    others = np.setdiff1d(np.arange(len(q.first) - 1), both)
    pieces = [(others, no_bids(len(others)))]
    payoffs, gaps = np.zeros((len(both), 2)), np.zeros(len(both))
    for at, solution in solved_games(q, both):
        x, y = solution.row_strategies, solution.column_strategies
        n, rows, columns = len(at), x.shape[1], y.shape[1]
        cells = q.first[at][:, None] + np.arange(rows * columns)
        games = np.ascontiguousarray(q.values[cells, 0].reshape(n, rows, columns))
        totals = q.values[q.first[at]].sum(axis=1)
        k = np.searchsorted(both, at)
        payoffs[k] = np.stack([solution.values, totals - solution.values], axis=1)
        gaps[k] = solution.gaps
        turned = np.ascontiguousarray(-games.transpose(0, 2, 1))
        chances = np.concatenate([x, y], axis=1)
        ranges = np.concatenate([matrix_game.all_ranges(side) for side in (games, turned)], axis=1)
        payoffs_of = [
            (games * y[:, None, :]).sum(axis=2),
            totals[:, None] - (games * x[:, :, None]).sum(axis=1),
        ]
        pairs = q.actions[cells].reshape(n, rows, columns)
        numbers = (pairs[:, :, 0] // JOINT).tolist(), (pairs[:, 0] % JOINT).tolist()
        names = [
            name
            for k, state in enumerate(game.fields.describe_all(game.fields.numbers(inputs[at])))
            for player in (0, 1)
            for name in choice_names(game, state, player, numbers[player][k])
        ]
        distinct = dict.fromkeys(names)
        places = {name: i for i, name in enumerate(distinct)}
        pieces.append((at, Bids(
            np.arange(n + 1) * (rows + columns), tuple(distinct),
            np.array([places[name] for name in names], np.int64),
            players=np.tile(np.repeat([0, 1], [rows, columns]), n),
            chances=chances.ravel(), least=np.minimum(ranges[..., 0], chances).ravel(),
            most=np.maximum(ranges[..., 1], chances).ravel(),
            payoffs=np.concatenate(payoffs_of, axis=1).ravel(),
        )))  # fmt: skip
    return joined(pieces), payoffs, gaps
