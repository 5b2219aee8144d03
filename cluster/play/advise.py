"""A real game followed line by line: whose turn it is, what to do, by how much, and why.

`Following.say` takes a line of the game's own words (`solver.game.capabilities.Follow`), or one of
`WORDS`, and says where that leads and, where somebody decides, what is best there. Payoffs come
from the board's table, where there is one of exactly these rules, and from a search down to it or
to the end of the game, within a limit.

    >>> game = luckbase.advise("boards/press-your-luck/tiny.toml")
    >>> game.say("Ed 0, 1 spin; Peter 500, 1; Michael 1000, 1").up
    'Ed'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.moves import Moves, moves
from luckbase.cluster.table.why import Payoffs, reason
from luckbase.solver import sentences
from luckbase.solver.errors import SearchLimitError, StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Event, Follow, Position
from luckbase.solver.game.game import Game
from luckbase.solver.result import IfAny, Result

MAX_STATES = 5_000_000
"""States that a search may find for one decision: some ten seconds."""
KEPT = 2
"""Searches that are kept in memory, for later lines."""
WORDS = (
    ("undo", "take the last line back"), ("state", "who has what"),
    ("help", "these lines"), ("quit", "leave"),
)  # fmt: skip


@dataclass(frozen=True)
class Choice(Result):
    """An action at a decision: what it is called, the payoff of each player, what it costs who
    decides against the best; 0 where that can not be told."""

    action: str
    value: tuple[float, ...]
    cost: float


@dataclass(frozen=True)
class Advice(Result):
    """What to do. best, and by how much more than the next: margin, None without a choice; toss_up:
    the next is as good; value: the payoff of each player; why: in a sentence; error: how far off
    payoffs may be; source: table or search. decision_only: the table stores the best action
    without payoffs."""

    best: str | None
    margin: float | None
    toss_up: bool
    value: tuple[float, ...]
    choices: tuple[Choice, ...]
    why: str
    error: float
    source: str
    decision_only: IfAny[bool] = None


@dataclass(frozen=True)
class Said(Result):
    """What comes of a line. text: the line in full, or what it asked for; up: who acts now, None
    where the game is over; state: as ``luckbase query`` takes it; players: what each has, as it was
    said; note: what does not count as it was said; unpriced: why there is no advice."""

    text: str
    up: str | None
    state: dict[str, Any]
    players: dict[str, str]
    note: IfAny[str] = None
    advice: IfAny[Advice] = None
    unpriced: IfAny[str] = None


class Prices:
    """The payoffs of one board's states: of its table under `results`, if there is one, and of
    searches of at most `max_states`. solve: the command that makes a table."""

    def __init__(self, game: Game, results: Path, max_states: int, solve: str) -> None:
        from luckbase.cluster.table.find import open_table, table_of

        self.game, self.max_states, self.solve = game, max_states, solve
        path = table_of(game.board, results)
        self.table = None if path is None else open_table(path, named_by_board=True)
        self.searches: list[Lookup] = []

    def close(self) -> None:
        for table in [*self.searches, *filter(None, [self.table])]:
            table.close()

    def at(self, state: Ints) -> tuple[Lookup, Moves]:
        """What can happen at a canonical state (fields,), and the table that says so.

        Raises SearchLimitError, which says how many states there are and what would do.
        """
        state_fields = self.game.describe(state)
        for table in [*filter(None, [self.table]), *self.searches]:
            if table.lookup_or_backup(state.reshape(1, -1))[1][0]:
                return table, moves(table, state_fields)
        if self.table is not None:
            try:
                return self.table, moves(self.table, state_fields, self.max_states)
            except SearchLimitError as error:
                raise SearchLimitError(f"{error}; {self._instead()}") from None
        table = self._search(state)
        self.searches = [table, *self.searches][:KEPT]
        return table, moves(table, state_fields)

    def _search(self, state: Ints) -> Lookup:
        from luckbase.cluster.table.table import search_in_memory

        try:
            return search_in_memory(self.game, state, self.max_states)
        except SearchLimitError as error:
            raise SearchLimitError(f"{error}; {self._instead()}") from None

    def _instead(self) -> str:
        return f"solve a table first, run: {self.solve}; or take a coarser board"


class Following:
    """A game that is followed, from a line that says who has what, or from a canonical state."""

    def __init__(self, game: Game, prices: Prices, start: Ints | None = None) -> None:
        self.game, self.prices, self.words = game, prices, game.need(Follow)
        self.positions: list[Position] = []
        """Where the game was before each of `events`, and where it is; empty before it began."""
        self.events: list[Event] = []
        self.offered = start is None and (start := game.start()) is not None
        """Whether it begins as the board says, until a line says who has what."""
        if start is not None:
            names = [f"player {i + 1}" for i in range(game.players)]
            self.positions.append(self.words.place(names, start))

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *_: object) -> None:
        self.prices.close()

    @property
    def here(self) -> Position:
        """Where the game is. Raises StateError before it began."""
        if not self.positions:
            line = self.words.words[0][0]
            raise StateError(f"expected first who has what, in turn order, as in {line}")
        return self.positions[-1]

    def take(self, line: str) -> str:
        """Go where a line leads, without advice; the line in full. Raises StateError."""
        start = self.words.begin(line)
        if start is not None:
            self.positions, self.events = [start], []
            return self.words.say(start)
        event, after = self.words.read(self.here, line)
        self.positions.append(after)
        self.events.append(event)
        return event.text

    def say(self, line: str) -> Said:
        """What comes of a line of the game, or of one of `WORDS`. Raises StateError."""
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
                    return Said(text, None, {}, {})
            case _:
                text = self.take(line)
        return self.advise(text)

    def advise(self, text: str = "") -> Said:
        """Where the game is, and what is best there."""
        at = self.here
        desks = {name: self.words.desk(at, i) for i, name in enumerate(at.names)}
        up = at.names[at.up] if at.up >= 0 else None
        advice, unpriced, note = None, None, self.words.note(at) or None
        if up is not None:
            try:
                table, here = self.prices.at(at.state)
                here = replace(here, answer=table.told(at, here.answer))
                note = here.answer.remark
                advice = advice_at(table, here, at.names)
            except SearchLimitError as error:
                unpriced = str(error)
        return Said(text, up, self.game.describe(at.state), desks, note, advice, unpriced)


def advice_at(table: Lookup, at: Moves, names: Sequence[str]) -> Advice:
    """What to do at a state, in the players' names."""
    answer = at.answer
    costs = {move.action.name: move.cost or 0.0 for move in at.moves}
    choices = tuple(
        Choice(named(each.name, names), each.value, costs.get(each.name, 0.0))
        for each in answer.actions
    )
    return Advice(
        answer.best and named(answer.best, names), answer.margin, answer.toss_up, answer.value,
        choices, named(reason(table, at), names), answer.error, answer.source,
        answer.decision_only,
    )  # fmt: skip


def named(text: str, names: Sequence[str]) -> str:
    """A text with the players' names for their numbers: ``passing to Michael``."""

    def name(match: re.Match[str]) -> str:
        at = int(match[1] or match[2]) - 1
        return names[at] if 0 <= at < len(names) else match[0]

    return re.sub(r"\bplayer (\d+)\b|(?<=\bto )(\d+)\b", name, text)


def payoffs_text(game: Game, names: Iterable[str], value: Iterable[float]) -> str:
    """The payoffs of all players: ``Ed wins 77.8%; Peter wins 12.2%``."""
    payoffs = Payoffs(game.payoff_name, game.pays_chances)
    if payoffs.dollars or game.payoff_name == "chance to win":
        return "; ".join(payoffs.of(*each) for each in zip(names, value, strict=True))
    paid = (sentences.figures(each, 6) for each in value)
    text = ", ".join(map(" ".join, zip(names, paid, strict=True)))
    return f"{game.payoff_name}: {text}"


def in_words(said: Said, game: Game) -> list[str]:
    """What a person reads after a line."""
    payoffs = Payoffs(game.payoff_name, game.pays_chances)
    lines = [f"  {said.note}"] if said.note else []
    if said.up is None:
        return [*lines, "  the game is over"] if said.players else lines
    lines.append(f"  {said.up} is up: {said.players[said.up]}")
    advice = said.advice
    if advice is None:
        return [*lines, f"  no advice: {said.unpriced}"]
    if advice.decision_only:
        lines.append(f"  {advice.best}: {advice.why}")
    elif advice.margin is None:
        lines.append(f"  {said.up} must {advice.best or 'play'}")
    else:
        by = f"better by {payoffs.change(advice.margin)}"
        lines.append(f"  {advice.best}, {'a toss-up' if advice.toss_up else by}: {advice.why}")
    if not advice.value:
        return lines
    return [*lines, f"  {payoffs_text(game, said.players, advice.value)}"]
