"""Climb, a made-up dice game for two, in under a hundred lines: how a game is added to luckbase.

Both start at 0. Who is up rests on his step, or rolls a die: a 1 throws him back to 0, anything
else takes him up so many steps, to the summit at most; then the other is up. After so many rounds,
or when somebody stands on the summit, the higher one wins; level is half a win each.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, StrictInt

from luckbase.solver.board.model import Board, Section
from luckbase.solver.errors import StateError
from luckbase.solver.game.rules import Agent, Game, Ints
from luckbase.solver.game.transition import Numbers, Transition, decision, lead, over, transition
from luckbase.solver.games import register

REST, ROLL = 0, 1


class Rules(Section):
    summit: Annotated[StrictInt, Field(ge=1, le=100)] = 10
    rounds: Annotated[StrictInt, Field(ge=1, le=20)] = 3
    sides: Annotated[StrictInt, Field(ge=2, le=20)] = 6


class ClimbBoard(Board):
    game: Literal["climb"]
    rules: Rules = Rules()


@transition
def climb(board, state, edges):  # type: ignore
    """State: the two steps, then the turns left. Board: summit, sides."""
    summit, sides = board.ints
    one, two, turns = state
    up = turns % 2  # an even number of turns is left when the first player is up
    if turns == 0 or max(one, two) == summit:
        first = 0.5 * (1 + (one > two) - (one < two))
        return over(edges, first, 1 - first)
    lead(edges, state, REST, 1.0)[2] = turns - 1
    for k in range(1, sides + 1):
        child = lead(edges, state, ROLL, 1 / sides)
        child[2] = turns - 1
        child[up] = min(state[up] + k, summit) if k > 1 else 0
    return decision(edges, up)


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
    def transition(self) -> Transition:
        return climb

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
