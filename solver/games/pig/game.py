"""Pig bound to a board, in rounds or as a race: its rules.

The fields are `mine` and `yours`, the totals of the player to act and of the other, `turn`, the
points of the turn, `round`, from 1 (if not said), and `player`, who acts: 1 (if not said) or 2::

    mine=40 yours=55 turn=12 round=9 player=2

Only the difference counts, so a state is shown with the lower total 0. Payoffs are player 1's
first, whoever acts. A board with `count_rolls` has one more field, `rolls`, the rolls of the turn,
and no table.

The Pig that is a race has Skunk's rules with other dice (`solver.games.skunk`). A turn lost
leaves both scores as they are, so cycles go only through {(m, y), (y, m)}: the pair of banked
scores and who has the dice. The kernel solves each such pair after those of a higher sum, and one
sweep is enough.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    Agents,
    ClosedForms,
    Drawing,
    Layout,
    Level,
    SearchHints,
    View,
)
from luckbase.solver.game.fields import Field, Refuse
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import Groups
from luckbase.solver.game.rules import Numbers, Rules
from luckbase.solver.games.pig import kernel
from luckbase.solver.games.pig.board import PigBoard, PigRoundsBoard, RoundsRules
from luckbase.solver.games.skunk.agents import TurnAgents
from luckbase.solver.games.skunk.game import (
    NO_ROLLS,
    groups_of_scores,
    race,
    refuse_rolls,
    two_forms,
)
from luckbase.solver.games.skunk.layout import Question
from luckbase.solver.games.skunk.scene import RaceScene, RollNames, draw, rounds
from luckbase.solver.scene import Scene

HERE = __package__


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
            Layout: NO_ROLLS if options.count_rolls else f"{HERE}.layout:Rounds",
            Agents: Agents(TurnAgents(100, options.sides)),
            ClosedForms: f"{HERE}.agents:RoundsForms",
            SearchHints: SearchHints(Level({"round": -2, "player": -1})),
            View: two_forms,
            Drawing: drawing,
            Groups: lambda game: groups_of_scores(100, cut, "stick", "sticks"),
        },
    )


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


QUESTIONS: tuple[Question, ...] = (
    ("the start", (0.0, 0.0, 0.0)),
    ("level, at the usual hold", (0.0, 0.0, 0.2)),
    ("far behind", (0.2, 0.8, 0.2)),
    ("both nearly there", (0.9, 0.9, 0.05)),
)


def pig(board: PigBoard) -> Rules:
    """The rules of the race on a board."""
    return race(board, board.rules.race(), QUESTIONS)


class RoundsNames:
    """The names of what rolls bring on a board."""

    def __init__(self, board: PigRoundsBoard) -> None:
        race = board.rules.race()
        self.said, self.cut, self.most = RollNames(race), board.solve.cut, race.dice * race.sides

    def names(self, state: Ints, action: int, children: Ints) -> list[str | None]:
        """What each state (n, fields) is called that an action leads to; None near the cut, where
        a state that is over does not say whether the turn was lost."""
        lead = state[kernel.MINE] - state[kernel.YOURS] + state[kernel.TURN]
        if action != kernel.ROLL or lead + self.most >= self.cut:
            return [None] * len(children)
        return [self._name(state.tolist(), child) for child in children.tolist()]

    def _name(self, state: list[int], child: list[int]) -> str:
        first = state[kernel.TURN] == 0
        whose = kernel.ROUND, kernel.PLAYER
        if any(child[at] != state[at] for at in whose):
            return self.said.lost(first, score=False)
        return self.said.points(first, child[kernel.TURN] - state[kernel.TURN])


MIN_END = 50
"""Points that the tracks show, however few there are."""


def drawing(game: Game) -> Drawing:
    """The drawing of a board's states."""
    assert isinstance(game.board, PigRoundsBoard)
    return Drawing(partial(_draw, game.board.rules), RoundsNames(game.board).names)


def _draw(options: RoundsRules, values: Ints) -> Scene:
    mine, yours, turn, round_, player, *rolls = values.tolist()
    banked = (mine, yours) if player == 1 else (yours, mine)
    over = round_ > options.rounds
    winner = None
    if over and mine != yours:
        winner = 0 if banked[0] > banked[1] else 1
    end = max(MIN_END, -(-(max(banked) + turn) // MIN_END) * MIN_END)
    race = RaceScene(
        banked, turn, player - 1, end, False, rolls[0] if rolls else None, winner, over
    )
    above, top = rounds(options.rounds, round_)
    scene = draw(race, options.dice, options.sides, above, top)
    said = f"Round {min(round_, options.rounds)} of {options.rounds}. "
    return Scene(scene.title, said + scene.about, scene.wide, scene.high, scene.shapes)
