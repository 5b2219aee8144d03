"""Jackpot's agents: each is one short function, listed in `AGENTS`.

An agent is called as ``choose(game, player, state, actions)`` (`solver.game.game`) and returns an
index into `actions`, the list from `choices` (`solver.games.jackpot.rules`). Actions are sets of
tiles as bits, so a set with higher tiles has a higher number, and rolling more dice has a higher
number than rolling fewer.

Source: docs/numbers.md#french-2022 (the six agents).
"""

from __future__ import annotations

from collections.abc import Mapping

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Agents
from luckbase.solver.game.fields import members
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.games.jackpot.rules import choices, options_of


def min_(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the lowest tile; among sets of tiles, the set with the lowest highest tile."""
    return actions.index(min(actions))


def max_(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the highest tile."""
    return actions.index(max(actions))


def first(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the first choice: the tile of the first die if it is open."""
    return 0


def last(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the last choice: the tile of the sum if it is open."""
    return len(actions) - 1


def hilo(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the highest tile that no single die can show, otherwise the lowest: 9 8 7 1 2 … 6."""
    sides = options_of(game).sides

    def priorities(tiles: int) -> list[int]:
        return sorted(-tile if tile > sides else tile for tile in members(tiles))

    return min(range(len(actions)), key=lambda k: priorities(actions[k]))


def hilo2(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the highest tile if no single die can show it (7 or more), otherwise the lowest."""
    above_die = max(actions) >> options_of(game).sides
    return (max_ if above_die else min_)(game, player, state, actions)


AGENTS: Mapping[str, Agent] = {
    "min": min_, "max": max_, "first": first, "last": last, "hilo": hilo, "hilo2": hilo2,
}  # fmt: skip


def agents(game: Game) -> Agents:
    """Return the six agents, and the list of their choices."""
    return Agents(AGENTS, lambda state, actions: choices(game, state))
