"""A decision to train with: a state of a table, drawn among those of a difficulty, with what every
action costs and why.

States are drawn evenly from the rows of the table; where nobody decides in any, as where a table
has its rows before a card is turned, chance moves on once. Of those in which a player has a choice
the first that was drawn is taken whose margin is of the difficulty: what the cheapest mistake
costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BeforeValidator, Field

from luckbase.cluster.play.game import Offer
from luckbase.cluster.words import typed
from luckbase.jobs.web.http import ApiRequest, TableParams, whole
from luckbase.jobs.web.states import StateView, state_answer, step
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.rules import CHANCE, DECISION, SIMULTANEOUS
from luckbase.solver.result import Flat, Result
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import many, nearest

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable, Table

Difficulty = Literal["any", "easy", "medium", "hard"]
BOUNDS = {"any": (0.0, np.inf), "easy": (5.0, np.inf), "medium": (1.0, 5.0), "hard": (0.0, 1.0)}
"""Above which margin and up to which one a decision is of a difficulty, in `step`s."""
DRAWN, ROUNDS = 40, 12
"""Rows that are drawn at a time, and how often at most."""


@dataclass(frozen=True)
class TrainView(Result):
    """A decision. choices: what can be chosen, in the game's order, with what each costs who
    decides: player `seat`, from 1. margin: what the cheapest mistake costs. difficulty: of this
    decision."""

    state: Flat[StateView]
    seat: int
    choices: list[Offer]
    margin: float
    difficulty: Literal["easy", "medium", "hard"]
    seed: int


def _difficulty(text: str) -> str:
    known = get_args(Difficulty)
    if text not in known:
        raise OptionError(f"difficulty: '{text[:30]}' is unknown; {nearest(text, known)}")
    return text


class TrainParams(TableParams):
    """Of a decision to train with."""

    difficulty: Annotated[Difficulty, BeforeValidator(_difficulty)] = Field(
        "any", description="easy: a mistake costs more than 5 pp; medium: 1 to 5; hard: less; any",
        examples=["any"],
    )  # fmt: skip
    seed: Annotated[int, BeforeValidator(lambda text: whole("seed", text, 0, 2**32 - 1))] = Field(
        0, description="of the draw: the same seed gives the same state", examples=[7]
    )


def train_view(table: StoredTable, request: ApiRequest[TrainParams]) -> TrainView:
    """A decision of a difficulty. Raises MissingTableError where none was found."""
    difficulty, seed = request.params.difficulty, request.params.seed
    low, high = (bound * step(table.game) for bound in BOUNDS[difficulty])
    looked = 0
    for states in _drawn(table, seed):
        looked += len(states)
        for state, margin in zip(states, _margins(table, states), strict=True):
            if max(low, table.tolerance) < margin <= high:
                found = _view(table, state, float(margin), seed)
                if found is not None:
                    return found
    kind = "is a decision" if difficulty == "any" else f"is a {difficulty} decision"
    raise MissingTableError(
        f"difficulty: none of {many(looked, 'state')} that were drawn {kind}; take another "
        "one, or another seed"
    )


def _drawn(table: Table, seed: int) -> Iterator[Ints]:
    """States (n, fields) in which somebody may choose, some at a time, in an order by the seed."""
    rng = np.random.default_rng(seed)
    for _ in range(ROUNDS):
        drawn = list(table.draw(DRAWN, int(rng.integers(2**31))))
        if not drawn:
            return
        states = rng.permutation(np.concatenate(drawn))
        edges = expand(table.game, states)
        chosen = (edges.kinds == DECISION) | (edges.kinds == SIMULTANEOUS)
        if not chosen.any():  # chance moves on
            moved = [
                edges.children[rng.integers(edges.first[x], edges.first[x + 1])]
                for x in np.flatnonzero(edges.kinds == CHANCE).tolist()
            ]
            if not moved:
                continue
            states = np.array(moved)
            kinds = expand(table.game, states).kinds
            chosen = (kinds == DECISION) | (kinds == SIMULTANEOUS)
        yield np.ascontiguousarray(states[chosen])


def _margins(table: Table, states: Ints) -> Floats:
    """(n,) what the cheapest mistake of who decides costs; NaN where that is not known."""
    found, there = table.every_action(states)
    margins = np.where(there, found.margins, np.nan)
    for x in found.at_once().tolist():
        payoffs = found.bids.payoffs[found.choices(x, 0)]
        costs = found.values[x, 0] - payoffs
        margins[x] = min(costs[costs > table.tolerance], default=np.nan)
    return margins


def _view(table: StoredTable, state: Ints, margin: float, seed: int) -> TrainView | None:
    """The decision at a state; None where what an action leads to is not known."""
    view = state_answer(table, typed(table.game.describe(state)))
    answer = view.moves.answer
    if not view.playable or len(answer.actions) < 2:
        return None
    seat = answer.to_act or 1
    now, slack = answer.value[seat - 1], table.tolerance
    chances: dict[str, Any] = {}
    if answer.strategies is not None:
        chances = {bid.name: bid.chance for bid in answer.strategies[0]}
    paid = {action.name: action.value[seat - 1] for action in answer.actions}
    own = dict.fromkeys(expand(table.game, state.reshape(1, -1)).actions.tolist())
    names = list(chances) or [table.game.action_name(action) for action in own]
    choices = [
        Offer(name, paid[name], 0.0 if now - paid[name] <= slack else now - paid[name],
              chances.get(name))
        for name in names
    ]  # fmt: skip
    steps = margin / step(table.game)
    difficulty = next(name for name in ("hard", "medium", "easy") if steps <= BOUNDS[name][1])
    return TrainView(view, seat, choices, margin, difficulty, seed)  # type: ignore[arg-type]
