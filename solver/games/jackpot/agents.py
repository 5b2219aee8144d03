"""Jackpot's agents: what one flips is one short function, and `AGENTS` is where it is found.

An agent is asked ``choose(game, player, state, actions)`` (`solver.game.rules`) and answers with an
index into `actions`, which is what `choices` lists (`solver.games.jackpot.game`): sets of tiles as
bits, so the number of a set is higher the higher its tiles are, and rolling more dice is higher
than rolling fewer.

Source: docs/sources.md#french-2022 (the six agents).

**Exact fractions** (`Exact`): the best play and an agent's. For states x with actions a, each a
lottery over edges with chance w and child y, all in fractions::

    V(x)     = the payoff of x                                         if x is over
             = max over a of q(x, a),  q(x, a) = sum of w V(y)         under the best play
             = q(x, the agent's a)                                     under an agent's

Every edge leads to fewer open tiles, or from before a roll to after it with the same ones. So with
the sets of tiles in the order of their bits, and the states after a roll before the one it comes
from, children stand before their parents and one pass up gives V. The edges are the rules' own
(`game.transition`); a chance is made exact by the denominator that all rolls share, sides ** dice.
Payoffs are whole numbers of 1 / (rolls ** tiles), for between two rolls a tile is flipped.

    >>> exact = Exact(game)
    >>> exact.best.value
    Fraction(14103327415, 176319369216)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Agents, ClosedForms
from luckbase.solver.game.fields import members
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.games.jackpot.game import choices, options_of, positions
from luckbase.solver.search.expand import expand


def min_(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The lowest tile; of sets of tiles the one whose highest is lowest."""
    return actions.index(min(actions))


def max_(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The highest tile."""
    return actions.index(max(actions))


def first(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The first of the list: the first die's tile if it is open."""
    return 0


def last(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The last of the list: the tile of the sum if it is open."""
    return len(actions) - 1


def hilo(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """By priority: the tiles that no single die shows, highest first, then 1 up: 9 8 7 1 2 … 6."""
    sides = options_of(game).sides

    def priorities(tiles: int) -> list[int]:
        return sorted(-tile if tile > sides else tile for tile in members(tiles))

    return min(range(len(actions)), key=lambda k: priorities(actions[k]))


def hilo2(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """The highest tile if no single die shows it (7 or more), else the lowest."""
    above_die = max(actions) >> options_of(game).sides
    return (max_ if above_die else min_)(game, player, state, actions)


AGENTS: Mapping[str, Agent] = {
    "min": min_, "max": max_, "first": first, "last": last, "hilo": hilo, "hilo2": hilo2,
}  # fmt: skip
"""The agents by name."""

MAX_STATES = 200_000
"""Sets of tiles times rolls: 12 tiles and two dice of 6 are 147,456 and take 3 s and 300 MB."""

State = tuple[int, ...]
Lottery = list[tuple[int, int]]
"""Of all rolls, as many as lead to a child, and its place."""


@dataclass(frozen=True)
class Play:
    """A way of playing. `values`, in units of 1 / unit, and `actions` stand in the order of
    `Exact.states`; the action is -1 where the game is over. `value` is that of the start."""

    values: list[int]
    actions: list[int]
    unit: int

    @property
    def value(self) -> Fraction:
        return Fraction(self.values[-1], self.unit)


class Exact:
    """All states of a game, whether it can come to them or not, with exact chances.

    states: the states as tuples, children before parents, the start last. at: their places.
    lotteries: for each state, by action in the order of the rules; empty where the game is over.
    payoffs: of the states that are over, by place, in units of 1 / unit.

    Raises OptionError for a board with too many states.
    """

    def __init__(self, game: Game) -> None:
        options = options_of(game)
        if options.rolls << options.tiles > MAX_STATES:
            raise OptionError(
                f"board {game.board.name}: exact fractions are for at most {MAX_STATES} positions "
                f"and this board has {options.rolls << options.tiles}; leave the fractions out"
            )
        self.game, before = game, positions(game)
        both = np.concatenate([before, expand(game, before).children])
        self.states: list[State] = sorted(
            set(map(tuple, both.tolist())), key=lambda state: (state[0], not any(state[1:]), state)
        )
        self.at = {state: x for x, state in enumerate(self.states)}
        edges = expand(game, np.array(self.states))
        below = [self.at[child] for child in map(tuple, edges.children.tolist())]
        rolls = self.rolls = options.rolls
        self.unit = rolls**options.tiles
        self.payoffs = {  # whole, as floats too
            int(x): int(edges.rewards[edges.first[x], 0]) * self.unit
            for x in np.flatnonzero(edges.terminal)
        }
        self.lotteries: list[dict[int, Lottery]] = [{} for _ in self.states]
        # The chances that the rules mean: so many of sides ** dice rolls.
        ways = {w: round(w * rolls) for w in set(edges.weights.tolist())}
        assert all(count / rolls == w for w, count in ways.items())
        parents = np.repeat(np.arange(len(self.states)), np.diff(edges.first)).tolist()
        for x, action, weight, child in zip(
            parents, edges.actions.tolist(), edges.weights.tolist(), below, strict=True
        ):
            if x not in self.payoffs:
                self.lotteries[x].setdefault(action, []).append((ways[weight], child))
        assert all(sum(w for w, _ in way) == rolls for x in self.lotteries for way in x.values())

    @cached_property
    def best(self) -> Play:
        """The best play; of tied actions the earliest."""
        return self._play(lambda x, q: max(q, key=q.__getitem__))

    def play(self, agent: Agent) -> Play:
        """An agent's play. Where there is one action they are not asked."""

        def choose(x: int, q: dict[int, int]) -> int:
            if len(q) == 1:
                return next(iter(q))
            state = np.array(self.states[x])
            listed = choices(self.game, state)
            chosen = agent(self.game, 0, state, list(listed))
            assert isinstance(chosen, int)  # the agents of this game draw no lots
            return listed[chosen]

        return self._play(choose)

    def _play(self, choose: Callable[[int, dict[int, int]], int]) -> Play:
        """The play of who chooses an action of a state, by its place, of the actions' values."""
        values: list[int] = []
        actions: list[int] = []
        for x, lotteries in enumerate(self.lotteries):
            q = {action: self.expected(lottery, values) for action, lottery in lotteries.items()}
            actions.append(choose(x, q) if q else -1)
            values.append(q[actions[x]] if q else self.payoffs[x])
        return Play(values, actions, self.unit)

    def expected(self, lottery: Lottery, values: list[int]) -> int:
        """The mean of the children's values; it is whole."""
        return sum(ways * values[child] for ways, child in lottery) // self.rolls


class Fractions(ClosedForms):
    """The payoff of the start, of an agent or of the best play."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def exact(self, agent: Agent | None) -> Fraction:
        exact = Exact(self.game)
        return (exact.best if agent is None else exact.play(agent)).value


def own(game: Game) -> Agents:
    """The six agents, and what they choose from."""
    return Agents(AGENTS, lambda state, actions: choices(game, state))
