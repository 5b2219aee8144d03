"""Jackpot's agents: what one flips is one short function, and `AGENTS` is where it is found.

An agent is asked ``choose(game, player, state, actions)`` (`solver.game.rules`) and answers with an
index into `actions`, which is what `choices` lists (`solver.games.jackpot.game`): sets of tiles as
bits, so the number of a set is higher the higher its tiles are, and rolling more dice is higher
than rolling fewer. A new one::

    @agent
    def second(game, player, state, actions):
        return min(1, len(actions) - 1)

Source: docs/sources.md#french-2022 (the six agents).

**Exact fractions** (`Exact`): the best play and an agent's. For states x with actions a, each a
lottery over edges with chance w and child y, all in fractions::

    V(x)     = the payoff of x                                         if x is over
             = max over a of q(x, a),  q(x, a) = sum of w V(y)         under the best play
             = q(x, the agent's a)                                     under an agent's

Every edge leads to fewer open tiles, or from before a roll to after it with the same ones. So with
the sets of tiles in the order of their bits, and the states after a roll before the one it comes
from, children stand before their parents and one pass up gives V. The edges are the rules' own
(`rules.transition`); a chance is made exact by the denominator that all rolls share, sides ** dice.

    >>> exact = Exact(game)
    >>> exact.best.value
    Fraction(14103327415, 176319369216)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Agents, ClosedForms, choices
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.game.rules import DECISION, TERMINAL, room_for
from luckbase.solver.games.jackpot.board import JackpotBoard, Rules
from luckbase.solver.games.jackpot.game import choices as in_order_of_dice

Choice = Callable[[Game, int, Ints, list[int]], int]

AGENTS: dict[str, Agent] = {}
"""The agents by name."""


def agent(choose: Choice) -> Choice:
    """Enter a function in `AGENTS`, by its name without a trailing underscore."""
    AGENTS[choose.__name__.rstrip("_")] = choose
    return choose


@agent
def min_(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The lowest tile; of sets of tiles the one whose highest is lowest."""
    return actions.index(min(actions))


@agent
def max_(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The highest tile."""
    return actions.index(max(actions))


@agent
def first(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The first of the list: the first die's tile if it is open."""
    return 0


@agent
def last(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The last of the list: the tile of the sum if it is open."""
    return len(actions) - 1


@agent
def hilo(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """By priority: the tiles that no single die shows, highest first, then 1 up: 9 8 7 1 2 … 6."""
    sides = _sides(game)
    return min(range(len(actions)), key=lambda k: sorted(_priorities(sides, actions[k])))


@agent
def hilo2(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The highest tile if no single die shows it (7 or more), else the lowest."""
    high = max(actions) >> _sides(game)
    return (max_ if high else min_)(game, player, state, actions)


def _sides(game: Game) -> int:
    assert isinstance(game.board, JackpotBoard)
    return game.board.rules.sides


def _priorities(sides: int, tiles: int) -> Iterator[int]:
    """The places of a set's tiles in the order of `hilo`: negative above the faces of a die."""
    for tile in range(1, tiles.bit_length() + 1):
        if tiles >> (tile - 1) & 1:
            yield -tile if tile > sides else tile


MAX_STATES = 200_000
"""Sets of tiles times rolls: 12 tiles and two dice of 6 are 147,456 and take 5 s and 300 MB."""

State = tuple[int, ...]
Lottery = tuple[tuple[Fraction, int], ...]
"""Chances and the places of the children."""


@dataclass(frozen=True)
class Play:
    """A way of playing. `values` and `actions` stand in the order of `Exact.states`; the action is
    -1 where the game is over. `value` is that of the start."""

    values: list[Fraction]
    actions: list[int]

    @property
    def value(self) -> Fraction:
        return self.values[-1]


@dataclass(frozen=True)
class _Found:
    """What the rules say of a state: its kind, (action, weight, child) of its edges, its payoff."""

    kind: int
    edges: list[tuple[int, float, State]]
    payoff: float


def _asking(game: Game) -> Callable[[State], _Found]:
    """The game's transition for one state at a time, as Python numbers."""
    edges = room_for(game.max_edges, game.field_count, 1)

    def ask(state: State) -> _Found:
        n = game.transition(game.numbers, np.array(state), edges)
        below = map(tuple, edges.children[:n].tolist())
        found = zip(edges.actions[:n].tolist(), edges.weights[:n].tolist(), below, strict=True)
        return _Found(int(edges.about[0]), list(found), float(edges.rewards[0, 0]))

    return ask


class Exact:
    """All states of a game, whether it can come to them or not, with exact chances.

    states: the states as tuples, children before parents, the start last. at: their places.
    lotteries: for each state, by action in the order of the rules; empty where the game is over.
    payoffs: of the states that are over, by place.

    Raises OptionError for a board with too many states.
    """

    def __init__(self, game: Game) -> None:
        assert isinstance(game.board, JackpotBoard)
        board: Rules = game.board.rules
        if board.rolls << board.tiles > MAX_STATES:
            raise OptionError(
                f"board {game.board.name}: exact fractions are for at most {MAX_STATES} positions "
                f"and this board has {board.rolls << board.tiles}; ask without them"
            )
        self.game, self.rolls = game, board.rolls
        self.states: list[State] = []
        self.at: dict[State, int] = {}
        self.lotteries: list[dict[int, Lottery]] = []
        self.payoffs: dict[int, Fraction] = {}
        self.deciding: list[int] = []
        ask = _asking(game)
        for open_tiles in range(1 << board.tiles):
            before = (open_tiles, *[0] * board.dice)
            rolling = ask(before)
            for after in sorted({child for _, _, child in rolling.edges}):
                self._add(after, ask(after))
            self._add(before, rolling)

    def _add(self, state: State, found: _Found) -> None:
        """Enter a state after its children."""
        x = self.at[state] = len(self.states)
        self.states.append(state)
        edges: dict[int, list[tuple[Fraction, int]]] = {}
        for action, weight, child in found.edges:
            edges.setdefault(action, []).append((self._chance(weight), self.at[child]))
        for lottery in edges.values():
            assert sum(chance for chance, _ in lottery) == 1, state
        self.lotteries.append({action: tuple(lottery) for action, lottery in edges.items()})
        if found.kind == TERMINAL:
            self.payoffs[x] = Fraction(found.payoff)  # whole, as a float too
        elif found.kind == DECISION:
            self.deciding.append(x)

    def _chance(self, weight: float) -> Fraction:
        """The fraction that the rules mean: so many of sides ** dice rolls."""
        exact = Fraction(weight).limit_denominator(self.rolls)
        assert float(exact) == weight and self.rolls % exact.denominator == 0, weight
        return exact

    @cached_property
    def best(self) -> Play:
        """The best play; of tied actions the earliest."""
        values: list[Fraction] = []
        actions: list[int] = []
        for x, lotteries in enumerate(self.lotteries):
            best, chosen = self.payoffs.get(x), -1
            for action, lottery in lotteries.items():
                q = expected(lottery, values)
                if best is None or q > best:
                    best, chosen = q, action
            assert best is not None
            values.append(best)
            actions.append(chosen)
        return Play(values, actions)

    def play(self, agent: Agent) -> Play:
        """An agent's play. Where there is one action they are not asked."""
        values: list[Fraction] = []
        actions = [next(iter(lotteries), -1) for lotteries in self.lotteries]
        for x in self.deciding:
            state = np.array(self.states[x])
            listed = choices(self.game, state, list(self.lotteries[x]))
            chosen = agent(self.game, 0, state, list(listed))
            assert isinstance(chosen, int)  # the agents of this game draw no lots
            actions[x] = listed[chosen]
        for x, (lotteries, action) in enumerate(zip(self.lotteries, actions, strict=True)):
            over = self.payoffs.get(x)
            values.append(expected(lotteries[action], values) if over is None else over)
        return Play(values, actions)


def expected(lottery: Lottery, values: list[Fraction]) -> Fraction:
    """The mean of the children's values."""
    return sum((chance * values[child] for chance, child in lottery), Fraction(0))


class Fractions(ClosedForms):
    """The payoff of the start, of an agent or of the best play."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def exact(self, agent: Agent | None) -> Fraction:
        exact = Exact(self.game)
        return (exact.best if agent is None else exact.play(agent)).value


def own(game: Game) -> Agents:
    """The six agents, and what they choose from."""
    return Agents(AGENTS, lambda state, actions: in_order_of_dice(game, state))
