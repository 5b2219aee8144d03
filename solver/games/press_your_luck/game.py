"""Press Your Luck bound to a board: its rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    Agents,
    Charts,
    Layout,
    OutcomeNames,
    Scenes,
    SearchHints,
)
from luckbase.solver.game.fields import Field, Refuse
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import Groups
from luckbase.solver.game.level import Level
from luckbase.solver.game.rules import Rules
from luckbase.solver.game.transition import Numbers
from luckbase.solver.games.press_your_luck import rules
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard, outcome_distribution
from luckbase.solver.games.press_your_luck.choosing import TIE_TOLERANCE

PLAYERS = range(1, rules.PLAYERS + 1)
LEVEL = Level(
    falls={f"{spins}_{i}": 1 for spins in ("earned", "passed") for i in PLAYERS},
    apart=tuple({f"whammies_{i}": 1} for i in PLAYERS),
    inside=tuple({f"scores_{i}": -1} for i in PLAYERS),
)
"""The spins left; while they stay the same, so do the whammies, and no score falls."""
MOST_SPINS = 1000
"""Spins that a state may hold; beyond any game, and small enough to count with."""


def press_your_luck(board: PressYourLuckBoard) -> Rules:
    """The rules of three players, round 2, on a board; see `rules` for the game."""
    options, solve = board.rules, board.solve
    outcomes, most = outcome_distribution(board), options.max_whammies
    chosen = (board.cap_units, most, options.third_place_spins, options.tied_pass == "passer")
    return Rules(
        fields=[
            Field("scores", 3, high=solve.score_cap, unit=solve.score_unit, default=None, bits=8),
            Field("earned", 3, bits=5),  # a game's questions give 20 spins
            Field("passed", 3, bits=5),
            Field("whammies", 3, high=most, bits=3),
        ],
        players=3,
        transition=rules.transition,
        numbers=Numbers(*rules.numbers(chosen, outcomes)),
        max_edges=outcomes.distinct + 3,
        actions=action_name,
        canonical=partial(canonical, most),
        tie_tolerance=TIE_TOLERANCE,
        capabilities={
            Layout: layout,
            Agents: agents,
            Charts: charts,
            SearchHints: SearchHints(level=LEVEL),
            Scenes: drawing,
            Groups: groups,
            OutcomeNames: outcome_names,
        },
    )


def layout(game: Game) -> Layout[Any]:
    """The tiers and their kernel."""
    from luckbase.solver.games.press_your_luck.layout import Planes

    return Planes(game)


def agents(game: Game) -> Agents:
    """How people play."""
    from luckbase.solver.games.press_your_luck.agents import AGENTS

    return Agents(AGENTS)


def drawing(game: Game) -> Scenes:
    """The board around three desks."""
    from luckbase.solver.games.press_your_luck.scene import scenes

    return scenes(game)


def groups(game: Game) -> Groups:
    """By spins left, place and lead."""
    from luckbase.solver.games.press_your_luck.groups import groups as made

    return made(game)


def outcome_names(game: Game) -> OutcomeNames:
    """What a spin brings."""
    from luckbase.solver.games.press_your_luck.spins import Spins

    return OutcomeNames(Spins(game).names)


def charts(game: Game) -> Charts:
    """At what lead to pass, and pictures of it."""
    from luckbase.solver.games.press_your_luck.pictures import LuckCharts

    return LuckCharts(game)


def action_name(action: int) -> str:
    """``play``, ``pass to 3``."""
    return "play" if action == rules.PLAY else f"pass to {action}"


def canonical(most: int, states: Ints, refuse: Refuse) -> Ints:
    """Canonical states: whammies that can put nobody out any more are 0."""
    scores, earned, passed, whammies = (states[:, i : i + 3] for i in range(0, 12, 3))
    out = whammies == most
    for name, held in (("scores", scores), ("earned", earned), ("passed", passed)):
        refuse(out & (held > 0), _out_with(name, most))
    refuse(
        out.all(axis=1, keepdims=True),
        lambda x, i: "whammies: all three players are out; somebody must be in",
    )
    spins = earned.sum(axis=1, keepdims=True) + passed.sum(axis=1, keepdims=True)
    refuse(
        spins > MOST_SPINS,
        lambda x, i: f"earned and passed: {spins[x, 0]} spins; the most is {MOST_SPINS}",
    )
    whammies[~out & (whammies + spins < most)] = 0
    return states


def _out_with(name: str, most: int) -> Callable[[int, int], str]:
    return lambda x, i: f"{name}: player {i + 1} is out ({most} whammies) and must have 0"
