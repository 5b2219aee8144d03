"""The answers of a table: `Answer` for one state, `EveryAction` for many states as arrays.

`actions_of_part` computes an `EveryAction` for states of one part of a table, `stepped` for states
of which only the children are known; `joined` combines several. An `Answer` (`answer_at`) and the
columns of a batch or an export (`cluster.answers.columns`) are derived from it.
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

from luckbase.cluster.store.provenance import Origin
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
from luckbase.solver.sentences import capital, html_table, nearest, percent, shorten, spoken

if TYPE_CHECKING:
    from luckbase.cluster.answers.parts import Part, Rows

# --- one state -----------------------------------------------------------------------------------


ActionName = Annotated[str, Field(serialization_alias="action")]


@dataclass(frozen=True)
class Action(Result):
    """An action's name and its payoff to each player."""

    name: ActionName
    value: tuple[float, ...]


def _sure(least: Any, most: Any) -> Any:
    """True if a probability is the same in all optimal strategies, within these bounds."""
    return most - least < 1e-4


@dataclass(frozen=True)
class Bid(Result):
    """A choice of one player in simultaneous moves.

    chance: its probability in an optimal mixed strategy.
    least, most: its smallest and largest probability in any optimal mixed strategy.
    """

    name: ActionName
    chance: float
    least: float
    most: float

    @property
    def span(self) -> str:
        """The range of probabilities in optimal strategies, as text; "" if there is only one."""
        same = _sure(self.least, self.most)
        return "" if same else f"{percent(self.least)} – {percent(self.most)}"


NAMED = 3
"""Number of actions in a verdict."""
Source = Literal["table", "search", "decisions", "games", "interpolation"]
_SOURCES = {
    "decisions": "the stored decisions",
    "games": "games by the stored decisions",
    "interpolation": "the table",
}


@dataclass(frozen=True)
class Answer(Result):
    """The answer to a query. Payoffs are lists over players in turn order.

    origin: the table.
    to_act: the player who acts, from 1; None if the game is over.
    actions: best first for the player who acts. For simultaneous moves, player 1's actions against
        the other's strategy, most likely first.
    best: the best action. For simultaneous moves, player 1's certain choice, if there is one.
    margin: cost of the second-best action; None without a choice or if unknown.
    toss_up: True if another action is as good within `error`. For simultaneous moves, True if other
        strategies are optimal too.
    error: error bound of each payoff; for simulated games, its standard error.
    strategies: for simultaneous moves, an optimal mixed strategy of each player.
    decision_only: True if there is a choice and the table stores only the best action, without
        payoffs.
    given: fields that were given differently from `state`, for the same state.
    remark: how a state given in words was interpreted, if that is not obvious.
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
        """Return the payoffs of an action. For simultaneous moves, of player 1's choice against the
        other's strategy. Raises OptionError for an unknown action.

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
        """How the state was interpreted, in a line; "" if it is as given."""
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
    def verdict(self) -> str:
        """The best action and the next ones, each with its payoff to the player who decides:
        ``Pass to player 3: 90.2%, play 81.2%``."""
        if self.strategies is not None:
            return "Both choose at once"
        if self.to_act is None:
            return "Nobody chooses here" if self.error else "The game is over"
        if self.best is None:
            return f"Player {self.to_act} is up"
        text, seat = self.origin.payoffs.text, self.to_act - 1
        paid = [(spoken(each.name), text(each.value[seat])) for each in self.actions if each.value]
        if not paid:
            return capital(spoken(self.best))
        first, *others = paid[:NAMED]
        return capital(", ".join([": ".join(first), *map(" ".join, others)]))

    @property
    def standing(self) -> str:
        """The player who decides, and the margin of the best action; "" if the verdict includes
        both."""
        if self.strategies is not None:
            more = "; other strategies are optimal too" if self.toss_up else ""
            return f"An optimal strategy of each{more}"
        if self.to_act is None or self.best is None:
            return ""
        if len(self.actions) == 1 and self.source != "interpolation":
            return f"Player {self.to_act} must {spoken(self.best)}"
        better = ""
        if self.toss_up:
            better = "; a toss-up: another action is worth as much"
        elif self.margin is not None:
            better = f"; better by {self.origin.payoffs.change(self.margin)}"
        return f"Player {self.to_act} is up{better}"

    @property
    def details(self) -> tuple[str, str, str]:
        """The state, the precision, and the table, one line each."""
        each = sentences.within(self.error, "each ") if self.value else "no payoffs are stored"
        if self.source == "games":
            each = f"the largest standard error {self.error:.2g}"
        if self.source == "interpolation":
            each = f"interpolated between states {sentences.within(self.error, 'each ')}"
        source = _SOURCES.get(self.source, f"the {self.source}")
        state = f"{self.board}  {sentences.fields(self.state)}"
        return state, f"{each}, from {source}", f"answered by {self.origin}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return column headings and rows as text: the payoffs of the state and of each action; for
        simultaneous moves, the probabilities of each player's choices."""
        if self.strategies is not None:
            rows = [
                [f"player {i + 1}: {bid.name}", percent(bid.chance), bid.span]
                for i, side in enumerate(self.strategies)
                for bid in side
                if bid.chance > 1e-9 or bid.most > 1e-4
            ]
            return ["", "chance", "in any optimal one"], rows
        payoffs = [("this state", self.value)]
        payoffs += [(action.name, action.value) for action in self.actions]
        heads = ["", *(f"player {i + 1}" for i in range(len(self.value)))]
        text = self.origin.payoffs.text
        return heads, [[name, *map(text, value)] for name, value in payoffs if value]

    def __str__(self) -> str:
        heads, rows = self.table()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in [heads, *rows]
        ]
        lines = [self.verdict, self.standing, self.note, *lines, *self.details]
        return "\n".join(filter(None, lines))

    def _repr_html_(self) -> str:
        heads, rows = self.table()
        best = next((i for i, row in enumerate(rows) if row[0] == self.best), -1)
        verdict = f"<p><b>{escape(self.verdict)}</b></p>"
        table = html_table(heads, rows, [self.standing, self.note], marked=best)
        return f"{verdict}{table}<small>{'<br>'.join(map(escape, self.details))}</small>"


def interpolated(
    nearest_answer: Answer, answers: Sequence[Answer], weights: Sequence[float], between: str
) -> Answer:
    """Return the answer to a position between grid states: interpolated payoffs, and the action of
    the nearest state.

    answers: of the surrounding grid states.
    weights: of these answers.
    between: describes the position in words.
    """

    def mean(payoffs: Sequence[Sequence[float]]) -> tuple[float, ...]:
        return tuple((np.asarray(weights) @ np.asarray(payoffs)).tolist())

    best, seat = nearest_answer.best, (nearest_answer.to_act or 1) - 1
    by_action = [{action.name: action.value for action in each.actions} for each in answers]
    shared = [name for name in by_action[0] if all(name in each for each in by_action)]
    actions = [Action(name, mean([each[name] for each in by_action])) for name in shared]
    actions.sort(key=lambda action: (action.name != best, -action.value[seat]))
    margin = None
    if best in shared and len(actions) > 1:
        margin = actions[0].value[seat] - actions[1].value[seat]
    played, errors = answers[0].source == "games", np.array([each.error for each in answers])
    error = np.linalg.norm(weights * errors) if played else errors.max()
    differ = sorted({each.best for each in answers if each.best and each.best != best})
    remark = (
        f"{between}: payoffs are interpolated; action and reasons are those of the nearest state"
    )
    if differ:
        remark += f"; a neighbor's best action is {', '.join(differ)}"
    return replace(
        nearest_answer, value=mean([each.value for each in answers]), actions=tuple(actions),
        margin=margin, error=float(error), source="games" if played else "interpolation",
        decision_only=None, remark=remark,
    )  # fmt: skip


def otherwise(inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were given differently from the canonical state, ignoring order."""

    def unordered(value: Any) -> Any:
        return sorted(value) if isinstance(value, list) else value

    return {name: v for name, v in inputs.items() if unordered(v) != unordered(state.get(name))}


# --- many states, as arrays ----------------------------------------------------------------------

R = TypeVar("R", bound="Ragged")


@dataclass(frozen=True)
class Ragged:
    """Rows of n states, k in total. State x has rows first[x] to first[x + 1].

    first: int64 (n + 1,).
    names: names of rows.
    named: int64 (k,), indices into `names`.

    Subclasses add columns of k rows, or of n states, which are listed in `PER_STATE`.
    """

    PER_STATE: ClassVar[tuple[str, ...]] = ()

    first: Ints
    names: tuple[str, ...]
    named: Ints

    def only(self, at: Ints) -> Self:
        """Select states by indices (m,), in this order."""
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
    """The choices of both players, k in total, at those of n states that have simultaneous moves.
    Player 1's come first.

    players: int64 (k,), from 0.
    chances: float64 (k,), in an optimal mixed strategy.
    least, most: float64 (k,), in any optimal mixed strategy.
    payoffs: float64 (k,), to the chooser, against the other's strategy.
    """

    players: Ints
    chances: Floats
    least: Floats
    most: Floats
    payoffs: Floats


@dataclass(frozen=True)
class EveryAction(Ragged):
    """The answers for n states with k actions in total; p players.

    q: float64 (k, p), payoffs of actions.
    values: float64 (n, p), payoffs of states.
    to_act: int64 (n,), from 1; 0 for none or both.
    best: int64 (n,), index among the state's actions; -1 if no player decides.
    margins: float64 (n,), NaN without a choice.
    ties: bool (n,).
    errors: float64 (n,).
    bids: of states with simultaneous moves.
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
        """Return the best action of each state, or player 1's certain choice in simultaneous
        moves."""
        names, codes = [*self.names, None], np.full(len(self), -1)
        decided = np.flatnonzero(self.best >= 0)
        codes[decided] = self.named[self.first[decided] + self.best[decided]]
        best = [names[code] for code in codes.tolist()]
        for x in self.at_once().tolist():
            best[x] = self.sure_choice(x)
        return best

    def at_once(self) -> Ints:
        """Return the indices of states with simultaneous moves."""
        return np.flatnonzero(np.diff(self.bids.first))

    def choices(self, x: int, player: int) -> Ints:
        """Return the rows of `bids` with the choices of a player (from 0) at state x."""
        at = np.arange(self.bids.first[x], self.bids.first[x + 1])
        of_player: Ints = at[self.bids.players[at] == player]
        return of_player

    def sure_choice(self, x: int) -> str | None:
        """Return player 1's choice at state x if it is certain."""
        chances, payoffs = self.bids.chances, self.bids.payoffs
        k = max(self.choices(x, 0).tolist(), key=lambda k: (chances[k], payoffs[k], -k))
        return self.bids.names[self.bids.named[k]] if chances[k] > 1 - 1e-9 else None


def joined(pieces: Sequence[tuple[Ints, R]]) -> R:
    """Combine pieces (indices of states, answers) of n states, which are disjoint."""
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
    """Return `Bids` for n states without simultaneous moves."""
    none = np.empty(0)
    whole = none.astype(np.int64)
    return Bids(np.zeros(n + 1, np.int64), (), whole, whole, none, none, none, none)


def nothing_known(n: int, players: int) -> EveryAction:
    """Return answers for n unknown states in which no player acts."""
    none = np.zeros(n, np.int64)
    return EveryAction(
        np.zeros(n + 1, np.int64), (), none[:0], np.empty((0, players)), np.zeros((n, players)),
        to_act=none, best=none - 1, margins=np.full(n, np.nan), ties=none > 0, errors=np.zeros(n),
        bids=no_bids(n),
    )  # fmt: skip


def best_alone(actors: Ints, over: NDArray[np.bool_], rows: Rows, error: float) -> EveryAction:
    """Return answers for n states whose children's payoffs are unknown: only the best action, with
    the payoff of the state (NaN if not stored). actors: as in `Expanded`."""
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
    """Return payoffs over players; empty if unknown."""
    return () if any(map(isnan, payoffs)) else tuple(payoffs)


def answer_at(
    states: EveryAction, x: int, origin: Origin, state: dict[str, Any], source: Source = "table"
) -> Answer:
    """Return the answer for state x. state: its fields."""
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
    """Compute answers for n expanded states, without simultaneous moves, from the payoffs of
    actions.

    chosen_rows: rows (n,) of `q` of the best actions.
    tolerance: payoffs closer than this are tied.
    values: float64 (n, p), payoffs of the states, within `error`.
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
    """Compute the answers of a part for stored or terminal canonical states (n, fields). For
    simultaneous moves, only payoffs.

    edges, rows, payoffs: of the states and of their children, if already computed.

    Raises CorruptTableError.
    """
    edges = expand(part.game, states) if edges is None else edges
    if payoffs is None:
        part.fetch(np.concatenate([states, edges.children]))
    rows = part.stored(states) if rows is None else rows
    q = evaluate(edges, part.children(edges) if payoffs is None else payoffs)
    values = np.asarray(rows.values, np.float64)
    chosen_rows = part.taken(rows, q, edges.actors, states)
    result = from_rules(part.game, edges, q, chosen_rows, part.tolerance, values, part.error)
    if rows.margins is not None:  # then decisions and ties are stored, too
        decided = rows.best >= 0
        best, ties = np.where(decided, result.best, -1), result.ties & decided
        margins = np.where(result.to_act > 0, rows.margins, np.nan)
        result = replace(result, best=best, ties=ties, margins=margins)
    return result


def stepped(
    game: Game, edges: Expanded, q: ActionValues, near: tuple[float, float], errors: Floats,
    inputs: Ints,
) -> EveryAction:  # fmt: skip
    """Compute answers for n expanded states that are not stored, from the payoffs of actions.

    near: (tolerance, precision). Payoffs closer than `tolerance` cannot be distinguished if no
        error exceeds `precision`.
    errors: (m,), error bounds of the children's payoffs, in the order of edges.
    inputs: the states as the user gave them, values (n, fields), for the names of choices.
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
    """Solve the matrix games at the states `both` (m,) of n states. Return the choices, the payoffs
    (m, 2), and the gaps of the games (m,)."""
    from luckbase.solver.matrix_games import simplex as matrix_game

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
