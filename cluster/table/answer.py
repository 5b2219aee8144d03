"""Answers to questions as data: what a table says of a state, and which table said so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from luckbase.cluster import words
from luckbase.solver.board.identity import changed_options, rules_identity
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.search.bellman import ActionValues
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
        options = "".join(f" {name}={_said(value)}" for name, value in self.options.items())
        return f"{self.board}{options}, solve {self.solve_id}"


def origin_of(game: Game, stale: tuple[str, ...] = ()) -> Origin:
    """The board and the rules of a game, as an answer says them."""
    board = game.board
    return Origin(board.name, changed_options(board), rules_identity(game), stale)


def _said(value: Any) -> str:
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


def sure(least: Any, most: Any) -> Any:
    """Whether a chance is the same in every optimal strategy, from the least and the most."""
    return most - least < 1e-4


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


def words_of(game: Game, state: Ints) -> dict[str, str]:
    """A state's fields as a person would type them: ``{"scores": "0,500,0", …}``."""
    return words.typed(game.describe(state))


def said(game: Game, state: Ints) -> str:
    """A state as a person would type it: ``scores=0,500,0 earned=1,0,0 …``."""
    return words.fields(game.describe(state))
