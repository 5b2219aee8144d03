"""Every action of many states at once: what `Answer` says of one, as arrays of n states.

A part of a table makes an `EveryAction` of states that it holds (`Part.every_action`), `stepped`
one of states whose children alone are known, `joined` one of several; `Lookup.every_action` puts
them together. What is said of one state, of a batch, and of the rows of an export is read off it:
`cluster.table.answer` makes the `Answer` to one of the states, `cluster.table.columns` the columns
of all.

How far off are payoffs that are worked out from others, a step of the rules above them? A mean of
payoffs is as exact as they are. But where two actions are closer than that tells, either may be the
best one, and those who do not decide get what it gives them: so far their payoffs may be off.
Payoffs that are off by no more than the tie tolerance tell every decision: what is closer is tied,
by the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import choice_names
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import SIMULTANEOUS
from luckbase.solver.search.bellman import ActionValues, action_starts, chosen, solved_games
from luckbase.solver.search.expand import Expanded


@dataclass(frozen=True)
class Bids:
    """The choices of both players, b in all, at those of n states where they choose at once.

    first: int64 (n + 1,), state x has choices first[x] .. first[x + 1], player 1's first. players:
    int64 (b,), from 0. named: int64 (b,), into `names`. chances: float64 (b,), in an optimal
    strategy; least, most: float64 (b,), in any. payoffs: float64 (b,), his against the other's
    strategy.
    """

    first: Ints
    players: Ints
    names: tuple[str, ...]
    named: Ints
    chances: Floats
    least: Floats
    most: Floats
    payoffs: Floats


BID_COLUMNS = ("players", "named", "chances", "least", "most", "payoffs")


@dataclass(frozen=True)
class EveryAction:
    """What is said of n states with k actions in all; p players.

    values: float64 (n, p). to_act: int64 (n,), from 1; 0 where nobody does, or both. first: int64
    (n + 1,), state x has actions first[x] .. first[x + 1]. named: int64 (k,), into `names`. q:
    float64 (k, p). best: int64 (n,), into the k; -1 where nobody decides. margins: float64 (n,),
    NaN where there is no choice. ties: bool (n,). errors: float64 (n,). bids: of states where both
    choose at once.
    """

    values: Floats
    to_act: Ints
    first: Ints
    names: tuple[str, ...]
    named: Ints
    q: Floats
    best: Ints
    margins: Floats
    ties: NDArray[np.bool_]
    errors: Floats
    bids: Bids | None = None

    def __len__(self) -> int:
        return len(self.values)

    def best_names(self) -> list[str | None]:
        """The best action of each state; where both choose at once, player 1's if it is sure."""
        names: list[str | None] = [*self.names, None]
        codes = np.where(self.best >= 0, self.named[self.best] if len(self.named) else -1, -1)
        found = [names[code] for code in codes.tolist()]
        for x in self.at_once().tolist():
            found[x] = self.sure_choice(x)
        return found

    def only(self, at: Ints) -> EveryAction:
        """Of these states (m,)."""
        first, rows = _taken(self.first, at)
        moved = first[:-1] - self.first[at]
        found = EveryAction(
            values=self.values[at], to_act=self.to_act[at], first=first, names=self.names,
            named=self.named[rows], q=self.q[rows],
            best=np.where(self.best[at] >= 0, self.best[at] + moved, -1), margins=self.margins[at],
            ties=self.ties[at], errors=self.errors[at],
        )  # fmt: skip
        if self.bids is None:
            return found
        first, rows = _taken(self.bids.first, at)
        columns = {name: getattr(self.bids, name)[rows] for name in BID_COLUMNS}
        return replace(found, bids=Bids(first=first, names=self.bids.names, **columns))

    def at_once(self) -> Ints:
        """The states where both choose at once."""
        if self.bids is None:
            return np.empty(0, np.int64)
        return np.flatnonzero(np.diff(self.bids.first))

    def choices(self, x: int, player: int) -> Ints:
        """The rows of `bids` that are choices of a player (from 0) at state x."""
        assert self.bids is not None
        here = np.arange(self.bids.first[x], self.bids.first[x + 1])
        own: Ints = here[self.bids.players[here] == player]
        return own

    def sure_choice(self, x: int) -> str | None:
        """Player 1's choice at state x that is made for certain, if one is."""
        assert self.bids is not None
        chances, payoffs = self.bids.chances, self.bids.payoffs
        k = max(self.choices(x, 0).tolist(), key=lambda k: (chances[k], payoffs[k], -k))
        return self.bids.names[self.bids.named[k]] if chances[k] > 1 - 1e-9 else None


# --- from a step of the rules ------------------------------------------------------------------


def sure(least: Any, most: Any) -> Any:
    """Whether a chance is the same in every optimal strategy, from the least and the most."""
    return most - least < 1e-4


@dataclass(frozen=True)
class Lookahead:
    """One step ahead of n states with k actions in all.

    first: int64 (n + 1,). actions: int64 (k,). values: float64 (k, players). actors: int64 (n,), -1
    where nobody acts. best: int64 (n,) into the k. ties: bool (n,), whether the best has a rival
    that precision can not tell from it. margins: float64 (n,), the best's payoff less the best
    other's; NaN where there is no choice.
    """

    first: Ints
    actions: Ints
    values: Floats
    actors: Ints
    best: Ints
    ties: NDArray[np.bool_]
    margins: Floats


def look_ahead(q: ActionValues, actors: Ints, slack: float, best: Ints) -> Lookahead:
    """One step ahead, from every action's payoffs, who acts (n,), how far payoffs can be apart and
    still be one, and the best actions (n,), -1 where it is to be found: then the earliest level."""
    own = q.values[np.arange(len(q.states)), np.maximum(actors, 0)[q.states]]
    starts = q.first[:-1]
    top = np.maximum.reduceat(own, starts)
    level = own >= top[q.states] - slack
    n = len(starts)
    candidates = np.flatnonzero(np.where((best >= 0)[q.states], q.actions == best[q.states], level))
    taken = candidates[np.searchsorted(q.states[candidates], np.arange(n))]
    others = own.copy()
    others[taken] = -np.inf
    second = np.maximum.reduceat(others, starts)
    margins = np.where(np.diff(q.first) > 1, np.maximum(own[taken] - second, 0.0), np.nan)
    ties = np.add.reduceat(level.astype(np.int64), starts) > 1
    return Lookahead(q.first, q.actions, q.values, actors, taken, ties, margins)


def _taken(first: Ints, at: Ints) -> tuple[Ints, Ints]:
    """(first (m + 1,), which of the k) of the states `at` (m,), of n with k things."""
    counts = np.diff(first)[at]
    found = np.concatenate([[0], np.cumsum(counts)])
    return found, np.repeat(first[at] - found[:-1], counts) + np.arange(found[-1])


def of_some(first: Ints, kept: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """(first (n + 1,), which of the k) of n states with k actions, those of others left out."""
    counts = np.diff(first)
    at = np.flatnonzero(np.repeat(kept, counts))
    return np.concatenate([[0], np.cumsum(counts * kept)]), at


def numbered(game: Game, actions: Ints) -> tuple[tuple[str, ...], Ints]:
    """The names of actions (k,), and which of them each has (k,)."""
    known, named = np.unique(actions, return_inverse=True)
    return tuple(game.action_name(int(action)) for action in known), named


def from_rules(
    game: Game, edges: Expanded, look: Lookahead, values: Floats, error: float | Floats
) -> EveryAction:
    """Of n expanded states, none of which is one where both choose at once, from one step ahead;
    values: float64 (n, p), as they are stored, within `error`."""
    over = edges.terminal
    kept = (edges.actors >= 0) & ~over
    first, at = of_some(look.first, kept)
    names, named = numbered(game, look.actions[at])
    best = np.where(kept, look.best - look.first[:-1] + first[:-1], -1)
    return EveryAction(
        values=values, to_act=np.where(kept, edges.actors + 1, 0), first=first, names=names,
        named=named, q=look.values[at], best=best, margins=np.where(kept, look.margins, np.nan),
        ties=look.ties & kept, errors=np.where(over, 0.0, error),
    )  # fmt: skip


def stepped(
    game: Game, edges: Expanded, q: ActionValues, near: tuple[float, float], errors: Floats,
    inputs: Ints,
) -> EveryAction:  # fmt: skip
    """Of n expanded states that no table holds, from every action's payoffs.

    near: payoffs closer than the first can not be told apart, where none is off by more than the
    second. errors: (m,) how far off those of the children may be, in the edges' order. inputs: the
    states as a person gave them, values (n, fields), for the names of his bids.
    """
    tolerance, precision = near
    taken, apart = chosen(q, edges.actors, tolerance), error_of_actions(edges, errors)
    look = look_ahead(q, edges.actors, tolerance, q.actions[taken])
    values, alone = q.values[taken], edges.kinds != SIMULTANEOUS
    error = np.maximum(error_of_states(q, apart), precision)
    found = from_rules(game, edges, look, values, error)
    if (apart > precision).any():
        unclear = undecided(q, edges.actors, apart, taken, game.tie_tolerance)
        found.ties[:] |= unclear & (found.best >= 0)
    if alone.all():
        return found
    bids, payoffs, gaps = _bids(game, edges, q, inputs)
    both = np.flatnonzero(~alone)
    values[both], found.errors[both] = payoffs[both], error[both] + gaps[both]
    found.ties[both] = np.logical_or.reduceat(~sure(bids.least, bids.most), bids.first[both])
    return replace(found, bids=bids)


def _bids(
    game: Game, edges: Expanded, q: ActionValues, inputs: Ints
) -> tuple[Bids, Floats, Floats]:
    """The choices at those of n states where both choose at once, the payoffs (n, 2) of these
    states, and the gaps of their games (n,)."""
    from luckbase.solver.matrix_game import certified as matrix_game

    n = len(edges.kinds)
    both = np.flatnonzero(edges.kinds == SIMULTANEOUS)
    sides: list[Any] = [()] * n
    payoffs, gaps = np.zeros((n, 2)), np.zeros(n)
    for at, solved in solved_games(q, both):
        shape = solved.row_strategies.shape[1], solved.column_strategies.shape[1]
        cells = q.first[at][:, None] + np.arange(shape[0] * shape[1])
        games = np.ascontiguousarray(q.values[cells, 0].reshape(-1, *shape))
        totals = q.values[q.first[at]].sum(axis=1)
        payoffs[at, 0], payoffs[at, 1], gaps[at] = (
            solved.values,
            totals - solved.values,
            solved.gaps,
        )
        x, y = solved.row_strategies, solved.column_strategies
        mine = (games * y[:, None, :]).sum(axis=2)
        theirs = totals[:, None] - (games * x[:, :, None]).sum(axis=1)
        turned = np.ascontiguousarray(-games.transpose(0, 2, 1))
        ranges = [matrix_game.all_ranges(side) for side in (games, turned)]
        for i, state in enumerate(at.tolist()):
            sides[state] = (x[i], y[i], ranges[0][i], ranges[1][i], mine[i], theirs[i])
    return _laid_out(game, both, sides, inputs), payoffs, gaps


def _laid_out(game: Game, both: Ints, sides: list[Any], inputs: Ints) -> Bids:
    """The choices of each state behind one another."""
    names: dict[str, int] = {}
    named: list[int] = []
    counts = np.zeros(len(sides) + 1, np.int64)
    for x, numbers in zip(both.tolist(), game.fields.numbers(inputs[both]), strict=True):
        words = game.fields.describe(numbers)
        for player in range(2):
            chances = sides[x][player]
            said = choice_names(game, words, player, len(chances))
            named += [names.setdefault(name, len(names)) for name in said]
            counts[x + 1] += len(chances)
    here = [sides[x] for x in both.tolist()]
    ranges = np.concatenate([np.concatenate(each[2:4]) for each in here])
    return Bids(
        np.cumsum(counts),
        np.concatenate([np.repeat([0, 1], [len(each[0]), len(each[1])]) for each in here]),
        tuple(names), np.array(named, np.int64),
        np.concatenate([np.concatenate(each[:2]) for each in here]), ranges[:, 0], ranges[:, 1],
        np.concatenate([np.concatenate(each[4:]) for each in here]),
    )  # fmt: skip


# --- several -----------------------------------------------------------------------------------


def joined(pieces: Sequence[tuple[Ints, EveryAction]], n: int, players: int) -> EveryAction:
    """One of n states, from those of pieces of them: which states, and what is said of them; of
    states in no piece nobody acts, and nothing is known."""
    if len(pieces) == 1 and np.array_equal(pieces[0][0], np.arange(n)):
        return pieces[0][1]
    first, names, places = _rows_together(pieces, n)
    k = int(first[-1])
    found = EveryAction(
        values=np.zeros((n, players)), to_act=np.zeros(n, np.int64), first=first, names=names,
        named=np.zeros(k, np.int64), q=np.zeros((k, players)), best=np.full(n, -1),
        margins=np.full(n, np.nan), ties=np.zeros(n, bool), errors=np.zeros(n),
        bids=_joined_bids([(at, piece.bids) for at, piece in pieces if piece.bids is not None], n),
    )  # fmt: skip
    for (at, piece), (rows, named) in zip(pieces, places, strict=True):
        for name in ("values", "to_act", "margins", "ties", "errors"):
            getattr(found, name)[at] = getattr(piece, name)
        found.named[rows], found.q[rows] = named, piece.q
        moved = first[at] - piece.first[:-1]
        found.best[at] = np.where(piece.best >= 0, piece.best + moved, -1)
    return found


def _joined_bids(pieces: Sequence[tuple[Ints, Bids]], n: int) -> Bids | None:
    if not pieces:
        return None
    first, names, places = _rows_together(pieces, n)
    columns = {
        name: np.zeros(int(first[-1]), getattr(pieces[0][1], name).dtype) for name in BID_COLUMNS
    }
    for (_, piece), (rows, named) in zip(pieces, places, strict=True):
        for name, column in columns.items():
            column[rows] = named if name == "named" else getattr(piece, name)
    return Bids(first=first, names=names, **columns)


def _rows_together(
    pieces: Sequence[tuple[Ints, Any]], n: int
) -> tuple[Ints, tuple[str, ...], list[tuple[Ints, Ints]]]:
    """(first (n + 1,), all names, of each piece where its rows go and what they are `named`)."""
    counts, names = np.zeros(n + 1, np.int64), dict[str, int]()
    for at, piece in pieces:
        counts[at + 1] = np.diff(piece.first)
    first, places = np.cumsum(counts), []
    for at, piece in pieces:
        moved = np.repeat(first[at] - piece.first[:-1], np.diff(piece.first))
        codes = np.array([names.setdefault(name, len(names)) for name in piece.names], np.int64)
        places.append((moved + np.arange(len(piece.named)), codes[piece.named]))
    return first, tuple(names), places


def error_of_actions(edges: Expanded, off: Floats) -> Floats:
    """(k,) how far off the payoffs of every action of expanded states may be, if those of the
    children, in the edges' order, may be off by so much (m,)."""
    starts = action_starts(edges)[1]
    mean = np.add.reduceat(edges.weights * off, starts)
    low, high = np.minimum.reduceat(off, starts), np.maximum.reduceat(off, starts)
    found: Floats = np.clip(mean, low, high)  # without the rounding of the sum
    return found


def error_of_states(q: ActionValues, off: Floats) -> Floats:
    """(n,) how far off any payoff of any action of states may be, from those of actions (k,)."""
    found: Floats = np.maximum.reduceat(off, q.first[:-1])
    return found


def error_of_taken(q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float) -> Floats:
    """(n,) how far off the payoffs of states may be that are those of the actions taken, rows (n,)
    of `q`: there may be better ones, as far as those of actions, off by so much (k,), tell.

    actors: (n,), from 0. tie: the tie tolerance.
    """
    apart: NDArray[np.float64] = np.abs(q.values - q.values[taken[q.states]]).max(axis=1) + off
    return error_of_states(q, np.where(_may_be_best(q, actors, off, taken, tie), apart, 0.0))


def undecided(
    q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float
) -> NDArray[np.bool_]:
    """(n,) whether an action other than the one taken may be the best one; as `error_of_taken`."""
    found = np.add.reduceat(_may_be_best(q, actors, off, taken, tie), q.first[:-1], dtype=np.int64)
    more: NDArray[np.bool_] = found > 1
    return more


def _may_be_best(
    q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float
) -> NDArray[np.bool_]:
    """(k,) the actions one of which is the best one by the rules, each state's taken one with them:
    all that may be as good where one of these is off by more than the tie tolerance; where none is,
    what is tied is tied, and the first of them is the best."""
    own = q.values[np.arange(len(off)), np.maximum(actors, 0)[q.states]]
    best = taken[q.states]
    may: NDArray[np.bool_] = own + off >= own[best] - off[best] - tie
    may[taken] = True
    may &= np.logical_or.reduceat(may & (off > tie), q.first[:-1])[q.states]
    may[taken] = may[chosen(q, actors, tie)] = True
    return may
