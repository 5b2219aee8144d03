"""Agents as people name them: one for all players or one for each, and what decides for them.

A name is one of the game's own, ``optimal``, ``best-response``, ``random``, or, where a way to open
files is given, a table's directory or board file, or a file of frequencies, ``people.csv``
(docs/how-to/agents.md). In Python an agent may also be a function (`solver.game.game.Agent`), a
`Policy`, or an open table.

By a file of frequencies several actions of the kind that it counts (to pass to either of two
opponents) are equally likely, and so are several of the others. Where there is none of the kind, or
nothing else, they play as ``else`` says, or without it take the first action.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.solver.board.model import rules_identity
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import agents_of, plain
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.game.groups import Groups, TurningPoint
from luckbase.solver.policy.agents import (
    BEST_RESPONSE,
    OPTIMAL,
    RANDOM,
    Decider,
    Policy,
    asking,
    named_agent,
    random_player,
)
from luckbase.solver.sentences import many, nearest, option, shorten, show

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup

AgentLike = Any
"""An agent as a person gives it: a name, an `Agent`, a `Policy`, or an open table."""
Opener = Callable[[str], "Lookup | Policy | None"]
"""opener(name) -> the table in that directory, open, or the policy of that file; None where it is
none."""


def no_tables(name: str) -> Lookup | Policy | None:
    """The opener that knows no tables."""
    return None


def split(agents: str | Sequence[AgentLike], argument: str = "agents") -> list[AgentLike]:
    """The agents one by one, of ``A,B``; raises OptionError for an empty name."""
    if not isinstance(agents, str):
        return list(agents) if isinstance(agents, Sequence) else [agents]
    names = [name.strip() for name in agents.split(",")]
    if not all(names):
        raise OptionError(
            f"{option(argument)}: '{shorten(agents, 80)}' has an empty name; write A, or one a "
            "player: A,B"
        )
    return names


def name_of(agent: AgentLike) -> str:
    """What an agent is called."""
    if isinstance(agent, str):
        return agent
    origin = getattr(agent, "origin", None)
    return str(origin) if origin is not None else getattr(agent, "__name__", type(agent).__name__)


def _one_each(
    agents: str | Sequence[AgentLike], count: int, argument: str, who: str
) -> list[AgentLike]:
    """So many agents, of one for all or one for each. Raises OptionError for another number."""
    items = split(agents, argument)
    if len(items) not in (1, count):
        raise OptionError(
            f"{option(argument)}: {many(len(items), 'name')}, and {who}; give one for all or one "
            "for each"
        )
    return items * count if len(items) == 1 else items


def check(game: Game, agents: str | Sequence[AgentLike], opener: Opener) -> None:
    """Raises OptionError for an agent that there is not, unless their number is wrong as well."""
    items = split(agents)
    for agent in items if len(items) in (1, game.players) else ():
        _player(game, agent, opener, "agents")


def for_players(
    game: Game, agents: str | Sequence[AgentLike], opener: Opener = no_tables
) -> tuple[list[str], list[str | Agent | Policy]]:
    """The names, one a player, and what `solver.policy.evaluate` takes for them."""
    who = f"{game.board.game} has {many(game.players, 'player')}"
    seats = _one_each(agents, game.players, "agents", who)
    return list(map(name_of, seats)), [_player(game, agent, opener, "agents") for agent in seats]


def opponents(
    game: Game, against: str | Sequence[AgentLike] | None, opener: Opener = no_tables
) -> list[tuple[str, Decider | None]]:
    """The opponents of one player, one for all or one for each: their names, and what decides for
    them, None for `optimal`. Raises OptionError for one that there is not, or not on this board."""
    argument, others = "against", game.players - 1
    if not others and against is not None:
        raise OptionError(f"{option(argument)}: {game.board.game} has one player; leave it out")
    agents = OPTIMAL if against is None else against
    seats = _one_each(agents, others, argument, f"you have {many(others, 'opponent')}")
    players: list[tuple[str, Decider | None]] = []
    for agent in seats:
        if agent == BEST_RESPONSE:
            raise OptionError(
                f"{option(argument)}: {agent} has to know beforehand how you will play; {OPTIMAL} "
                "does not"
            )
        plays = _player(game, agent, opener, argument)
        decide: Decider | None = None
        if isinstance(plays, Policy):
            decide = plays.decide
        elif plays != OPTIMAL:
            decide = asking(random_player if isinstance(plays, str) else plays)
        players.append((name_of(agent), decide))
    return players


def _player(game: Game, agent: AgentLike, opener: Opener, argument: str) -> str | Agent | Policy:
    """An agent: a table's, the game's own, or the name of one that needs none."""
    if isinstance(agent, Policy):
        return agent
    table: Any = opener(agent) if isinstance(agent, str) else agent
    if isinstance(table, Policy):
        return table
    if hasattr(table, "agent"):
        if table.identity not in map(rules_identity, (game, plain(game))):
            raise OptionError(
                f"{option(argument)}: {name_of(agent)} is a table of {table.origin}, not of this "
                "board with these options"
            )
        return table.agent()
    if isinstance(agent, str):
        named = agent in (OPTIMAL, BEST_RESPONSE, RANDOM)
        return agent if named else named_agent(game, agent, argument)
    if not callable(agent):
        raise OptionError(
            f"{option(argument)}: {agent!r} is not an agent; give a name, a function or a table"
        )
    return agent


Column = Callable[[Ints, int], Ints]
ELSE, OF = "else", "of"
FAR = 2**40
"""Beyond every number of a state."""
MAX_BYTES = 1_000_000
_SPAN = re.compile(r"(-?\d{1,9})?(\.\.)?(-?\d{1,9})?")


@dataclass(frozen=True)
class Frequencies:
    """A file that was read: rows by (k, columns) from `low` to `high`, and the chance of the kind
    of action of each (k,). otherwise: how they play where no row applies."""

    turning: TurningPoint
    columns: Mapping[str, Column]
    low: Ints
    high: Ints
    chance: Floats
    otherwise: Decider | None

    def chances(self, states: Ints, player: int) -> Floats:
        """(n,) the chance of the kind of action at states (n, fields); NaN where `otherwise`
        decides."""
        values = np.stack([column(states, player) for column in self.columns.values()], 1)
        off = np.maximum(self.low - values[:, None], 0) + np.maximum(values[:, None] - self.high, 0)
        near = np.ones(off.shape[:2], bool)  # (n, k)
        for column in reversed(range(len(self.columns))):
            distances = np.where(near, off[:, :, column], FAR)
            near &= distances == distances.min(axis=1, keepdims=True)
        row = near.argmax(axis=1)
        says: Floats = self.chance[row]
        if self.otherwise is not None:
            says = np.where(off[np.arange(len(row)), row].any(axis=1), np.nan, says)
        return says

    def decide(self, game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        """As a `Decider`."""
        says, lotteries = self.chances(states, player), list[Floats]()
        for x, choices in enumerate(actions):
            kind = np.array([self.turning.takes(game.action_name(int(a))) for a in choices])
            if np.isnan(says[x]) or kind.all() or not kind.any():
                lottery = np.eye(1, len(choices))[0]
                if self.otherwise is not None:
                    lottery = self.otherwise(game, player, states[x : x + 1], [choices])[0]
                lotteries.append(lottery)
                continue
            lotteries.append(np.where(kind, says[x] / kind.sum(), (1 - says[x]) / (~kind).sum()))
        return lotteries


def read_frequencies(game: Game, path: Path) -> Policy:
    """The agent of a file. Raises OptionError, with the line, the field and the value, and where
    the game does not say what its decisions turn on."""
    groups = game.get(Groups)
    turning = None if groups is None else groups.turning
    if turning is None or turning.columns is None:
        raise OptionError(
            f"{path}: {game.board.game} does not say by what numbers its decisions are counted; "
            "name another agent"
        )
    return Policy(_Reader(game, path, turning, turning.columns).read().decide)


class _Reader:
    def __init__(
        self, game: Game, path: Path, turning: TurningPoint, columns: Mapping[str, Column]
    ) -> None:
        self.game, self.path, self.turning, self.columns = game, path, turning, columns
        self.line = 0

    def fault(self, sentence: str) -> OptionError:
        return OptionError(f"{self.path}, line {self.line}: {sentence}")

    def rows(self) -> Iterator[list[str]]:
        """The fields of every line that is neither blank nor a comment."""
        try:
            if self.path.stat().st_size > MAX_BYTES:
                raise OptionError(
                    f"{self.path}: more than {MAX_BYTES:,} bytes; expected a few rows"
                )
            text = self.path.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError)
            reason = "no such file" if missing else getattr(error, "strerror", None)
            reason = reason or "is not UTF-8 text"
            raise OptionError(f"{self.path}: {reason}") from None
        for self.line, words in enumerate(text.splitlines(), start=1):
            if words.strip() and not words.lstrip().startswith("#"):
                yield [word.strip() for word in next(csv.reader([words]))]

    def read(self) -> Frequencies:
        lines, does = self.rows(), self.turning.does
        head = next(lines, None)
        if head is None:
            raise OptionError(f"{self.path}: is empty; write {self._example()}")
        names = self._columns(head)
        spans, chances, otherwise = list[list[tuple[int, int]]](), list[float](), None
        for fields in lines:
            if otherwise is not None:
                raise self.fault(f"{show(fields[0])} stands behind '{ELSE}', which ends the file")
            if fields[0] == ELSE:
                otherwise = self._otherwise(fields)
                continue
            if len(fields) != len(head):
                hint = f"expected {len(head)}: {', '.join(head)}"
                raise self.fault(f"{many(len(fields), 'field')}; {hint}")
            cells = dict(zip(head, fields, strict=True))
            spans.append([self._span(name, cells[name]) for name in names])
            of = self._count(OF, cells[OF], 1, "times")
            chances.append(self._count(does, cells[does], 0, f"of {of}", of) / of)
        if not spans:
            raise OptionError(f"{self.path}: no row; write {self._example()}")
        lower, upper = (np.array([[s[end] for s in row] for row in spans]) for end in (0, 1))
        columns = {name: self.columns[name] for name in names}
        return Frequencies(self.turning, columns, lower, upper, np.array(chances), otherwise)

    def _columns(self, head: Sequence[str]) -> list[str]:
        does, known = self.turning.does, [*self.columns, self.turning.does, OF]
        for name in head:
            if name not in known:
                raise self.fault(f"column {show(name)} is unknown; {nearest(name, known)}")
            if head.count(name) > 1:
                raise self.fault(f"column '{name}' is named twice")
        names = [name for name in head if name in self.columns]
        missing = [name for name in (does, OF) if name not in head]
        if missing or not names:
            needed = missing[0] if missing else " or ".join(self.columns)
            raise self.fault(f"no column {needed}; write {self._example()}")
        return names

    def _example(self) -> str:
        return f"a line {','.join((*self.columns, self.turning.does, OF))}, then such rows"

    def _span(self, name: str, word: str) -> tuple[int, int]:
        match = _SPAN.fullmatch(word)
        low, dots, high = match.groups("") if match else ("", "", "")
        if not (low or high) or not (dots or low == word):
            hint = "write a number or a span: 500, 500..2500, ..0, 500.."
            raise self.fault(f"{name}: {show(word)} is neither a number nor a span; {hint}")
        ends = int(low or -FAR), int(high or (FAR if dots else low))
        if ends[0] > ends[1]:
            raise self.fault(f"{name}: {show(word)} ends before it begins; write the lesser first")
        return ends

    def _count(self, name: str, word: str, low: int, what: str, high: int = 10**9) -> int:
        if not re.fullmatch(r"\d{1,9}", word) or not low <= int(word) <= high:
            bounds = f" to {high}" if high < 10**9 else " or more"
            raise self.fault(f"{name}: {show(word)} {what}; expected a whole number, {low}{bounds}")
        return int(word)

    def _otherwise(self, fields: Sequence[str]) -> Decider:
        if len(fields) != 2:
            raise self.fault(f"{ELSE}: {many(len(fields) - 1, 'field')}; write {ELSE},AGENT")
        if fields[1] == RANDOM:
            return asking(random_player)
        agents = agents_of(self.game)
        if fields[1] not in agents:  # nor what would have to be solved
            hint = nearest(fields[1], [RANDOM, *agents])
            raise self.fault(f"{ELSE}: no agent {show(fields[1])} here; {hint}")
        agent = agents[fields[1]]
        return agent.decide if isinstance(agent, Policy) else asking(agent)
