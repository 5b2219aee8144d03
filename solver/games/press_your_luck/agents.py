"""Press Your Luck's agents: how people play. Each is one short function (`solver.game.rules`,
Agents).

Asked only where there is a choice between playing and passing, so a player who is third, or who has
passed spins, plays whatever his agent is.
"""

from __future__ import annotations

from collections.abc import Mapping

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.games.press_your_luck import rules


def ahead(game: Game, player: int, state: Ints) -> bool:
    """Whether the player's score is above that of every opponent still in."""
    numbers = game.numbers.ints
    return all(
        state[rules.SCORE + player] > state[rules.SCORE + i]
        for i in range(rules.PLAYERS)
        if i != player and state[rules.WHAMMIES + i] < numbers[rules.MAX_WHAMMIES]
    )


def never_pass(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Plays every spin, as long as the rules let him."""
    return actions.index(rules.PLAY) if rules.PLAY in actions else 0


def always_pass(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Passes whenever he may."""
    return next(i for i, action in enumerate(actions) if action != rules.PLAY)


def always_pass_ahead(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Passes whenever he is ahead, else plays."""
    choose = always_pass if ahead(game, player, state) else never_pass
    return choose(game, player, state, actions)


def play_until_ahead(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Plays until he leads by the least amount that a spin pays, then passes."""
    units = game.numbers.ints[rules.UNITS :]
    lead = state[rules.SCORE + player] - max(
        state[rules.SCORE + i] for i in range(rules.PLAYERS) if i != player
    )
    choose = always_pass if lead > units.min() else never_pass
    return choose(game, player, state, actions)


AGENTS: Mapping[str, Agent] = {
    "never-pass": never_pass,
    "always-pass": always_pass,
    "always-pass-ahead": always_pass_ahead,
    "play-until-ahead": play_until_ahead,
}
"""The agents by name."""
