"""Climb, a made-up dice game for two, in under a hundred lines: how a game is added to luckbase.

Both start at 0. Who is up rests on his step, or rolls a die: a 1 throws him back to 0, anything
else takes him up so many steps, to the summit at most; then the other is up. After so many rounds,
or when somebody stands on the summit, the higher one wins; level is half a win each.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, StrictInt

from luckbase.solver.board.model import Board, Section
from luckbase.solver.errors import StateError
from luckbase.solver.game.rules import (
    DECISION,
    SUCCESSORS_TYPE,
    TERMINAL,
    Agent,
    Game,
    Ints,
    Numbers,
)
from luckbase.solver.games import register
from luckbase.solver.njit import njit

REST, ROLL = 0, 1


class Rules(Section):
    summit: Annotated[StrictInt, Field(ge=1, le=100)] = 10
    rounds: Annotated[StrictInt, Field(ge=1, le=20)] = 3
    sides: Annotated[StrictInt, Field(ge=2, le=20)] = 6


class ClimbBoard(Board):
    game: Literal["climb"]
    rules: Rules = Rules()


@njit(SUCCESSORS_TYPE, cache=True)
def successors(ints, reals, state, children, weights, actions, rewards, about):  # type: ignore
    """State: the two steps, then the turns left. Board: summit, sides."""
    summit, sides, turns = ints[0], ints[1], state[2]
    up = turns % 2  # an even number of turns is left when the first player is up
    if turns == 0 or max(state[0], state[1]) == summit:
        about[0], about[1] = TERMINAL, -1
        rewards[0, 0] = 0.5 * (1 + (state[0] > state[1]) - (state[0] < state[1]))
        rewards[0, 1] = 1.0 - rewards[0, 0]
        return 0
    for k in range(sides + 1):  # 0 is resting
        children[k], children[k, 2] = state, turns - 1
        children[k, up] = min(state[up] + k, summit) * (k != 1)
        weights[k], actions[k] = (1.0 / sides, ROLL) if k else (1.0, REST)
    about[0], about[1] = DECISION, up
    return sides + 1


class Climb(Game):
    rules_version: ClassVar[int] = 1
    players: ClassVar[int] = 2
    fields: ClassVar[tuple[tuple[str, int], ...]] = (("steps", 2), ("turns", 1))
    tie_tolerance: ClassVar[float] = 1e-12

    def __init__(self, board: Board) -> None:
        assert isinstance(board, ClimbBoard)
        super().__init__(board)
        self.rules = board.rules
        self.max_edges = board.rules.sides + 1
        self.bits = np.array([7, 7, 6])

    @property
    def successors(self) -> Callable[..., int]:
        return successors

    @property
    def numbers(self) -> Numbers:
        return Numbers(np.array([self.rules.summit, self.rules.sides]), np.zeros(1))

    def start(self) -> Ints:
        return np.array([0, 0, 2 * self.rules.rounds])

    def parse(self, words: Mapping[str, str]) -> Ints:
        try:
            numbers = [int(x) for name, _ in self.fields for x in words[name].split(",")]
        except (KeyError, ValueError):
            raise StateError("write a state as steps=0,4 turns=3") from None
        return self.canonical_states(np.array([numbers]))[0]

    def canonical_states(self, values: Ints) -> Ints:
        most = np.array([self.rules.summit, self.rules.summit, 2 * self.rules.rounds])
        if values.shape[1:] != (3,) or (values < 0).any() or (values > most).any():
            raise StateError(f"steps and turns go from 0 to {most.tolist()}")
        return values

    def describe(self, state: Ints) -> dict[str, Any]:
        return {"steps": state[:2].tolist(), "turns": int(state[2])}

    def action_name(self, action: int) -> str:
        return "roll" if action == ROLL else "rest"

    def agents(self) -> Mapping[str, Agent]:
        return {"roll": lambda game, player, state, actions: actions.index(ROLL)}


register("climb", ClimbBoard, Climb)
