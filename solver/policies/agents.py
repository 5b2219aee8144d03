"""Players: agents by name, and policies that decide for many states at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Agents, agents_of
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.sentences import nearest, option, shorten

Decider = Callable[[Game, int, Ints, list[Ints]], list[Floats]]
"""decide(game, player, states (k, fields), actions of each) -> chances of each."""


@dataclass(frozen=True)
class Policy:
    """A way of playing that decides for many states at once, such as a table.

    decide: the decider.
    holds: function from states (n, fields) to a mask (n,) of the states with a decision; None if
        all states have one.
    """

    decide: Decider
    holds: Callable[[Ints], NDArray[np.bool_]] | None = None


OPTIMAL, BEST_RESPONSE, RANDOM = "optimal", "best-response", "random"


def asking(agent: Agent) -> Decider:
    """Return an agent as a decider, which raises OptionError, with the state, for an invalid
    choice."""

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        answers = []
        for state, codes in zip(states, actions, strict=True):
            listed = game.own(Agents).choices(state, coded := codes.tolist())
            answer = agent(game, player, state, list(listed))
            weights = np.zeros(len(listed))
            if isinstance(answer, int | np.integer):
                if 0 <= answer < len(listed):
                    weights[answer] = 1.0
            else:
                with suppress(TypeError, ValueError):
                    weights = np.asarray(answer, np.float64)
            fits = weights.shape == (len(listed),)
            if not (fits and weights.min() >= 0 and abs(weights.sum() - 1) <= 1e-9):  # NaN neither
                raise OptionError(
                    f"an agent answered {answer!r} at {game.say(state)}; expected an "
                    f"index below {len(listed)} or as many chances that sum to 1"
                )
            chances = np.zeros(len(codes))
            for action, weight in zip(listed, weights, strict=True):
                chances[coded.index(action)] += weight
            answers.append(chances)
        return answers

    return decide


def random_player(game: Game, player: int, state: Ints, actions: list[int]) -> Sequence[float]:
    """Choose each action with the same chance."""
    return [1 / len(actions)] * len(actions)


def named_agent(game: Game, name: str, argument: str = "agents") -> Agent | Policy:
    """Return one of the game's agents. Raises OptionError, naming the argument, for an unknown name
    or an agent that this board cannot have."""
    known = agents_of(game)
    if name not in known:
        names = [OPTIMAL, BEST_RESPONSE, RANDOM, *known]
        raise OptionError(
            f"{option(argument)}: no agent '{shorten(name, 80)}'; {nearest(name, names)}"
        )
    game.own(Agents).check(game, name)
    return known[name]
