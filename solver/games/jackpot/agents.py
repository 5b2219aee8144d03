"""Jackpot's agents: what one flips is one short function, and `AGENTS` is where it is found.

An agent is asked ``choose(game, player, state, actions)`` (`solver.game.rules`) and answers with an
index into `actions`, which is what `choices` lists (`solver.games.jackpot.game`): sets of tiles as
bits, so the number of a set is higher the higher its tiles are, and rolling more dice is higher
than rolling fewer. A new one::

    @agent
    def second(game, player, state, actions):
        return min(1, len(actions) - 1)

Source: docs/sources.md#french-2022 (the six agents).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.games.jackpot.board import JackpotBoard

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
