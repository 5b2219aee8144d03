"""The n-round Pig bound to a board: its rules.

The fields are `mine` and `yours`, the totals of the player to act and of the other, `turn`, the
points of the turn, `round`, from 1 (if not said), and `player`, who acts: 1 (if not said) or 2::

    mine=40 yours=55 turn=12 round=9 player=2

Only the difference counts, so a state is shown with the lower total 0. Payoffs are player 1's
first, whoever acts. A board with `count_rolls` has one more field, `rolls`, the rolls of the turn,
and no table.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    Agents,
    ClosedForms,
    Detail,
    Layout,
    OutcomeNames,
    Scenes,
    SearchHints,
    plain,
)
from luckbase.solver.game.fields import Field, Refuse
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import Groups
from luckbase.solver.game.level import Level
from luckbase.solver.game.rules import Rules
from luckbase.solver.game.transition import Numbers
from luckbase.solver.games.pig import rounds_kernel as kernel
from luckbase.solver.games.pig.board import PigRoundsBoard
from luckbase.solver.games.pig.rounds_tiers import Rounds
from luckbase.solver.games.skunk.agents import TurnAgents
from luckbase.solver.games.skunk.game import NO_ROLLS, refuse_rolls, two_forms


def _cut_error(numbers: Numbers, spread: float) -> float:
    """The most that the cut can change of any payoff; `spread` lies between a win and a loss."""
    return kernel.cut_error(numbers.ints) * spread


def pig_rounds(board: PigRoundsBoard) -> Rules:
    """The rules of the n-round Pig on a board."""
    options, cut = board.rules, board.solve.cut
    lead, points = cut.bit_length(), (2 * cut).bit_length()
    fields = [
        Field("mine", default=None, bits=lead),
        Field("yours", default=None, bits=lead),
        Field("turn", bits=points),
        Field("round", low=1, high=options.rounds + 1, default=1),
        Field("player", low=1, high=2, default=1),
    ]
    difference, numbers = options.objective == "difference", Numbers(*kernel.numbers(board))
    return Rules(
        fields=[*fields, Field("rolls", bits=points)] if options.count_rolls else fields,
        players=2,
        transition=kernel.transition,
        numbers=numbers,
        cut_error=partial(_cut_error, numbers, 2.0 if difference else 1.0),
        max_edges=options.dice * options.sides + 3,
        actions=("stick", "roll"),
        start={"mine": 0, "yours": 0},
        canonical=partial(canonical, options.rounds, cut),
        tie_tolerance=1e-11,
        payoff_range=(-1.0, 1.0) if difference else (0.0, 1.0),
        payoff_name="win minus loss" if difference else "",
        capabilities={
            Layout: NO_ROLLS if options.count_rolls else Rounds,
            Agents: Agents(TurnAgents(100, options.sides)),
            ClosedForms: closed_forms,
            SearchHints: SearchHints(Level({"round": -2, "player": -1})),
            Detail: two_forms,
            Scenes: drawing,
            Groups: partial(groups, cut),
            OutcomeNames: outcome_names,
        },
    )


def drawing(game: Game) -> Scenes:
    """The rounds, two tracks and the dice."""
    from luckbase.solver.games.pig.scene import scenes

    return scenes(game)


def outcome_names(game: Game) -> OutcomeNames:
    """What a roll brings."""
    from luckbase.solver.games.pig.rounds_dice import RoundsNames

    assert isinstance(game.board, PigRoundsBoard)
    return OutcomeNames(RoundsNames(game.board).names)


def groups(cut: int, game: Game) -> Groups:
    """By how the scores stand and the points of the turn."""
    from luckbase.solver.games.skunk.groups import groups_of_scores

    return groups_of_scores(100, cut, "stick", "sticks")


def closed_forms(game: Game) -> ClosedForms:
    """The chances of any two agents, round by round."""
    from luckbase.solver.games.pig.profiles import RoundsForms

    return RoundsForms(plain(game))


def canonical(rounds: int, cut: int, states: Ints, refuse: Refuse) -> Ints:
    """Canonical states: the lower total is 0; all that are over with one winner are one."""
    mine, yours, turn, round_, player = (states[:, i].copy() for i in range(5))
    over = round_ == rounds + 1
    refuse(
        over & ((turn > 0) | (player != 1)),
        lambda x: f"round: {round_[x]} is after the last, and the game is over; leave turn and "
        "player out",
    )  # fmt: skip
    lead = mine - yours
    if states.shape[1] > kernel.ROLLED:
        refuse_rolls(states[:, kernel.ROLLED], turn, refuse)
    states[:, kernel.MINE], states[:, kernel.YOURS] = np.maximum(lead, 0), np.maximum(-lead, 0)
    won, lost = lead + turn >= cut, lead <= -cut
    ended = over | won | lost
    sign = np.where(won, 1, np.sign(lead)) * np.where(player == 1, 1, -1)
    states[ended] = 0
    states[ended, kernel.MINE] = (sign > 0)[ended]
    states[ended, kernel.YOURS] = (sign < 0)[ended]
    states[ended, kernel.ROUND], states[ended, kernel.PLAYER] = rounds + 1, 1
    return states
