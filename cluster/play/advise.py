"""Follow a real game line by line: show who is to act, the best action, its margin and the reason.

`Following.say` takes a line in the game's own words (`solver.game.capabilities.Follow`) or one of
`WORDS`. It returns the new state and, if a player must decide, the best action. Payoffs come from
the board's table if it has exactly these rules, otherwise from a search down to the table or to the
end of the game, within a limit.

>>> game = luckbase.advise("boards/press-your-luck/tiny.toml")
>>> game.say("Ed 0, 1 spin; Peter 500, 1; Michael 1000, 1").up
'Ed'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from luckbase.cluster.answers.lookup import Lookup
from luckbase.cluster.answers.moves import Moves, moves
from luckbase.cluster.answers.why import named, reason
from luckbase.solver import sentences
from luckbase.solver.errors import MissingTableError, SearchLimitError, StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Event, Follow, Position
from luckbase.solver.game.game import Game
from luckbase.solver.result import IfAny, Result

WORDS = (
    ("undo", "take the last line back"), ("state", "who has what"),
    ("help", "these lines"), ("quit", "leave"),
)  # fmt: skip


@dataclass(frozen=True)
class Choice(Result):
    """An action at a decision."""

    action: str  # its name
    value: tuple[float, ...]  # the payoff of each player
    cost: float
    """How much worse it is than the best action for the player who decides; 0 if unknown."""


@dataclass(frozen=True)
class Advice(Result):
    """The best action and the alternatives."""

    best: str | None
    margin: float | None  # by how much the best action beats the next one; None without a choice
    toss_up: bool  # True if the next action is as good
    value: tuple[float, ...]  # the payoff of each player
    choices: tuple[Choice, ...]
    why: str  # the reason, as a sentence
    error: float  # a bound on the error of payoffs
    source: str  # "table" or "search"
    decision_only: IfAny[bool] = None  # True if the table stores the best action without payoffs


@dataclass(frozen=True)
class Response(Result):
    """The response to a line."""

    text: str  # the line in full, or the text that it requested
    up: str | None  # the player who acts now; None if the game is over
    state: dict[str, Any]  # as ``luckbase query`` takes it
    players: dict[str, str]  # each player's standing, in the game's words
    note: IfAny[str] = None  # a part of the line that was not counted as given
    advice: IfAny[Advice] = None
    unpriced: IfAny[str] = None  # why there is no advice


class Following:
    """A game that is being followed. Payoffs come from the board's tables, finest first, and from
    searches of at most `max_states` states.

    start: a canonical state (fields,); without it, the board's start or the first line.
    paths: the folders of the tables.
    instead: returns, for a position as a line, a clause with the command whose table would answer
        it; "" if there is none.
    """

    def __init__(
        self, game: Game, start: Ints | None, paths: Sequence[Path], max_states: int,
        instead: Callable[[str], str],
    ) -> None:  # fmt: skip
        from luckbase.cluster.answers.find import open_table

        self.game, self.words = game, game.need(Follow)
        self.max_states, self.instead = max_states, instead
        self.tables: list[Lookup] = [open_table(path, named_by_board=True) for path in paths]
        self.searched: list[Lookup] = []
        """The last search of a board without a table, for later lines."""
        self.positions: list[Position] = []
        """The position before each of `events` and the current one; empty before the game."""
        self.events: list[Event] = []
        self.offered = start is None and (start := game.start()) is not None
        """True if no start was given and the board has a start."""
        if start is not None:
            names = [f"player {i + 1}" for i in range(game.players)]
            self.positions.append(self.words.place(names, start))

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *_: object) -> None:
        for table in self.tables:
            table.close()

    @property
    def here(self) -> Position:
        """The current position. Raises StateError before the game begins."""
        if not self.positions:
            line = self.words.words[0][0]
            raise StateError(f"expected first who has what, in turn order, as in {line}")
        return self.positions[-1]

    def take(self, line: str) -> str:
        """Advance by a line, without advice. Return the line in full. Raises StateError."""
        start = self.words.begin(line)
        if start is not None:
            self.positions, self.events = [start], []
            return self.words.say(start)
        event, after = self.words.read(self.here, line)
        self.positions.append(after)
        self.events.append(event)
        return event.text

    def say(self, line: str) -> Response:
        """Respond to a line of the game or one of `WORDS`. Raises StateError."""
        match line.strip().lower():
            case "undo":
                if not self.events:
                    raise StateError("there is no line to take back")
                self.positions.pop()
                text = f"without: {self.events.pop().text}"
            case "state":
                text = self.words.say(self.here)
            case "help":
                width = max(len(form) for form, _ in (*self.words.words, *WORDS))
                text = "\n".join(f"{a:{width}}  {b}" for a, b in (*self.words.words, *WORDS))
                if not self.positions:
                    return Response(text, None, {}, {})
            case _:
                text = self.take(line)
        return self.advise(text)

    def advise(self, text: str = "") -> Response:
        """Return the current position and the best action."""
        position = self.here
        desks = {name: self.words.desk(position, i) for i, name in enumerate(position.names)}
        up = position.names[position.up] if position.up >= 0 else None
        advice, unpriced, note = None, None, self.words.note(position) or None
        if up is not None:
            try:
                table, here = self._moves(position)
                note, advice = here.answer.remark, advice_at(table, here, position.names)
            except SearchLimitError as error:
                instead = self.instead(self.words.say(position))
                unpriced = f"{error}; {instead}" if instead else str(error)
        return Response(text, up, self.game.describe(position.state), desks, note, advice, unpriced)

    def _moves(self, position: Position) -> tuple[Lookup, Moves]:
        """Return the first table that answers a position with a player to act, otherwise a search,
        and the moves there. Raises SearchLimitError."""
        from luckbase.cluster.answers.table import search_in_memory

        for table in [*self.tables, *self.searched]:
            with suppress(MissingTableError):
                return table, self._moves_in(table, position, 0)
        if not self.tables:
            self.searched = [search_in_memory(self.game, position.state, self.max_states)]
        table = [*self.tables, *self.searched][0]
        return table, self._moves_in(table, position, self.max_states)

    def _moves_in(self, table: Lookup, position: Position, max_states: int) -> Moves:
        if table.game is not self.game:
            position = table.game.need(Follow).on_grid(position)
        here = moves(table, table.game.describe(position.state), max_states)
        return replace(here, answer=table.answer_position(position, here.answer))


def advice_at(table: Lookup, here: Moves, names: Sequence[str]) -> Advice:
    """Return the advice at a state, with the players' names."""
    answer = here.answer
    costs = {move.action.name: move.cost or 0.0 for move in here.moves}
    choices = tuple(
        Choice(named(each.name, names), each.value, costs.get(each.name, 0.0))
        for each in answer.actions
    )
    return Advice(
        answer.best and named(answer.best, names), answer.margin, answer.toss_up, answer.value,
        choices, named(reason(table, here), names), answer.error, answer.source,
        answer.decision_only,
    )  # fmt: skip


def payoffs_text(game: Game, names: Iterable[str], value: Iterable[float]) -> str:
    """Return the payoffs of all players as text: ``Ed wins 77.8%; Peter wins 12.2%``."""
    payoffs = game.payoffs
    if payoffs.dollars or game.payoff_name == "chance to win":
        return "; ".join(payoffs.of(*each) for each in zip(names, value, strict=True))
    paid = (sentences.figures(each, 6) for each in value)
    text = ", ".join(map(" ".join, zip(names, paid, strict=True)))
    return f"{game.payoff_name}: {text}"


def in_words(response: Response, game: Game) -> list[str]:
    """Return the lines to print for a response."""
    payoffs = game.payoffs
    lines = [f"  {response.note}"] if response.note else []
    if response.up is None:
        return [*lines, "  the game is over"] if response.players else lines
    lines.append(f"  {response.up} is up: {response.players[response.up]}")
    advice = response.advice
    if advice is None:
        return [*lines, f"  no advice: {response.unpriced}"]
    if advice.decision_only:
        lines.append(f"  {advice.best}: {advice.why}")
    elif advice.margin is None:
        lines.append(f"  {response.up} must {advice.best or 'play'}")
    else:
        by = f"better by {payoffs.change(advice.margin)}"
        lines.append(f"  {advice.best}, {'a toss-up' if advice.toss_up else by}: {advice.why}")
    if not advice.value:
        return lines
    return [*lines, f"  {payoffs_text(game, response.players, advice.value)}"]
