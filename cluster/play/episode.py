"""A game written down, replayed: each decision priced, and an accuracy a player.

A file has a line a line of the game (`cluster.play.advise`), after lines ``title: …``, ``board: …``
and ``set: score_unit=500``, which may be left out; ``#`` begins a comment. What a decision cost is
what the player's payoff lost against the best action, all playing the best from there on. Their
accuracy is the share that they kept of what they could have lost:

    1 - (sum of costs) / (sum over decisions of what the worst action costs)

Decisions are priced from the last to the first, as what lies below a late one is part of what lies
below an earlier one. What has too many states below is named, with how many, and not counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from luckbase.cluster.play.advise import Following, advice_at, named
from luckbase.cluster.table.ledger import Origin, origin_of
from luckbase.cluster.table.why import Payoffs
from luckbase.solver.board.file import episode_file, episodes
from luckbase.solver.errors import OptionError, RequestError, SearchLimitError
from luckbase.solver.game.capabilities import Event, Position
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import DECISION
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import nearest, pairs, shorten

HEADS = ("title", "board", "set", "source")


@dataclass(frozen=True)
class Script:
    """An episode's file, read. lines: (number from 1, text); settings: options of the board."""

    name: str
    lines: tuple[tuple[int, str], ...]
    title: str = ""
    board: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Decided(Result):
    """A decision, or a line without one. line: its number in the file; player: who was up, None
    of a line that says who has what; action: what was taken, None where there was no choice; state:
    before it, as ``luckbase query`` takes it; cost: None where it has no price; worst: what the
    worst action costs; value: the payoff of each player before the line; unpriced: why there is no
    price, with how many states."""

    line: int
    text: str
    player: str | None = None
    action: str | None = None
    best: str | None = None
    cost: float | None = None
    worst: float | None = None
    toss_up: bool = False
    why: str = ""
    value: tuple[float, ...] | None = None
    state: dict[str, Any] | None = None
    unpriced: IfAny[str] = None


@dataclass(frozen=True)
class Accuracy(Result):
    """How a player decided: so many decisions, priced ones, best ones among these; what they cost
    in all; accuracy: 0 to 1, None where none has a price."""

    player: str
    decisions: int
    priced: int
    best: int
    cost: float
    accuracy: float | None


@dataclass(frozen=True)
class Episode(Result):
    """An episode, priced. players: in turn order, with what each has at the end; over: whether the
    game is; payoff: what costs are of; chances: costs are differences of chances, pp."""

    origin: Flat[Origin]
    title: str
    payoff: str
    chances: bool
    players: dict[str, str]
    over: bool
    lines: tuple[Decided, ...]
    accuracy: tuple[Accuracy, ...]
    end: tuple[float, ...] | None
    """The payoffs at the end, or where the file ends."""
    game: PythonOnly[Game] = field(repr=False)

    @property
    def decisions(self) -> list[Decided]:
        """The lines at which somebody had a choice."""
        return [each for each in self.lines if each.action is not None]

    def cost(self, number: float) -> str:
        """A cost with its unit."""
        return Payoffs(self.payoff, self.chances).change(number) if number else "best"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows of the decisions, for people."""
        rows = []
        for each in self.decisions:
            cost = "no price" if each.cost is None else self.cost(each.cost)
            better = each.best if each.cost else ""
            rows.append([f"{each.line}", each.text, cost, better or ""])
        return ["line", "decision", "cost", "better"], rows

    def summary(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows of the players' accuracy."""
        rows = []
        for each in self.accuracy:
            share = "–" if each.accuracy is None else f"{100 * each.accuracy:.1f}%"
            cost = self.cost(each.cost) if each.cost else "0"
            of = f"{each.best} of {each.priced}"
            rows.append([each.player, str(each.decisions), of, cost if each.priced else "–", share])
        return ["player", "decisions", "best", "cost in all", "accuracy"], rows

    def unpriced(self) -> list[str]:
        """A sentence on each decision without a price."""
        return [f"line {each.line}: '{each.text}' has no price: {each.unpriced}"
                for each in self.decisions if each.cost is None]  # fmt: skip


def read_script(file: str | os.PathLike[str]) -> Script:
    """An episode's file, or one of those that the package brings. Raises OptionError, with the
    number of a line that can not be."""
    path = episode_file(file)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        hint = nearest(os.fspath(file), episodes())
        raise OptionError(f"{file}: no such file of a game that is written down; {hint}") from None
    except (OSError, UnicodeDecodeError):
        raise OptionError(f"{file}: cannot be read; expected a file of an episode") from None
    heads: dict[str, str] = {}
    settings: dict[str, str] = {}
    lines: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.partition("#")[0].strip()
        head = None if lines else re.fullmatch(r"(\w+):\s*(.*)", line)
        if head is None:
            lines += [(number, line)] if line else []
        elif head[1].lower() not in HEADS:
            expected = nearest(head[1], HEADS)
            raise OptionError(f"{file}, line {number}: unknown head '{head[1]}'; {expected}")
        elif head[1].lower() == "set":
            where = f"{file}, line {number}: "
            settings |= pairs(head[2].split(), OptionError, where, "NAME=VALUE")
        else:
            heads[head[1].lower()] = head[2]
    title, board = heads.get("title", ""), heads.get("board")
    return Script(os.fspath(file), tuple(lines), title, board, settings)


def replay(following: Following, script: Script, skip: int = 0) -> Episode:
    """The episode of a file; its first `skip` decisions are not priced, which take longest.

    Raises the RequestError of a line that can not be, with its number.
    """
    events: list[tuple[int, str, Position | None, Event | None]] = []
    for number, line in script.lines:
        before = following.positions[-1] if following.positions else None
        count = len(following.events)
        try:
            text = following.take(line)
        except RequestError as error:
            raise type(error)(f"line {number}: '{shorten(line, 60)}': {error}") from None
        happened = following.events[-1] if len(following.events) > count else None
        events.append((number, text, before if happened else None, happened))
    last, game = following.here, following.game
    choices = [at for at in events if at[2] is not None and _has_choice(game, at[2])]
    skipped = {at[0] for at in choices[:skip]}
    lines = [_priced(following, *at, at[0] in skipped) for at in reversed(events)][::-1]
    return Episode(
        origin_of(game), script.title or script.name, game.payoff_name, game.pays_chances,
        {name: following.words.desk(last, i) for i, name in enumerate(last.names)},
        last.up < 0, tuple(lines), tuple(_accuracy(name, lines) for name in last.names),
        _value(following, last), game,
    )  # fmt: skip


def _has_choice(game: Game, at: Position) -> bool:
    return bool(expand(game, at.state.reshape(1, -1)).kinds[0] == DECISION)


def _value(following: Following, at: Position) -> tuple[float, ...] | None:
    """The payoffs at a position; None where they can not be had."""
    try:
        return following.prices.at(at.state)[1].answer.value or None
    except SearchLimitError:
        return None


def _priced(
    following: Following, number: int, text: str, at: Position | None, event: Event | None,
    skipped: bool,
) -> Decided:  # fmt: skip
    """A line with its price. at: the position before it."""
    if at is None or event is None:
        return Decided(number, text)
    game, names = following.game, at.names
    action = named(game.action_name(event.action), names)
    bare = Decided(number, text, names[at.up], state=game.describe(at.state))
    choice = _has_choice(game, at)
    if choice:
        bare = replace(bare, action=action, unpriced="it is skipped")
    if skipped:
        return bare
    try:
        table, at_state = following.prices.at(at.state)
    except SearchLimitError as error:
        return replace(bare, unpriced=str(error) if choice else None)
    if not choice:
        return replace(bare, value=at_state.answer.value or None)
    advice = advice_at(table, at_state, names)
    if advice.margin_class is not None:
        why = f"best is {advice.best_by_class}; the table stores decisions without payoffs"
        return replace(bare, best=advice.best, why=advice.why, unpriced=why)
    costs = {each.action: each.cost for each in advice.choices}
    if action not in costs:  # level in units, and not in dollars
        return replace(bare, unpriced=f"{game.say(at.state)}, rounded to units, does not allow it")
    return replace(
        bare, best=advice.best, cost=costs[action], worst=max(costs.values()),
        toss_up=advice.toss_up, why=advice.why, value=advice.value, unpriced=None,
    )  # fmt: skip


def _accuracy(player: str, lines: Sequence[Decided]) -> Accuracy:
    decisions = [each for each in lines if each.player == player and each.action is not None]
    costs = [(each.cost, each.worst or 0.0) for each in decisions if each.cost is not None]
    cost, worst = sum(cost for cost, _ in costs), sum(worst for _, worst in costs)
    share = None if not costs else 1 - cost / worst if worst else 1.0
    best = sum(not cost for cost, _ in costs)
    return Accuracy(player, len(decisions), len(costs), best, float(cost), share)
