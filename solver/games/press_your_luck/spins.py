"""What one spin brings, in the words of the show: ``whammy``, ``$2,500``, ``$750 and a spin``.

The rules themselves (`rules.spin`) say what state each of the board's outcomes leads to; a state
that several lead to is named after all of them. Dollars are those of the solve, whole units.
"""

from __future__ import annotations

import numpy as np

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck import rules
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard

WHAMMY = -1
"""As `rules.spin` takes it."""


class Spins:
    """The names of what a spin brings on a board."""

    def __init__(self, game: Game) -> None:
        assert isinstance(game.board, PressYourLuckBoard)
        self.ints, self.unit = game.numbers.ints, game.board.solve.score_unit

    def names(self, state: Ints, action: int, children: Ints) -> list[str | None]:
        """What each of the states (n, fields) is called that an action leads to from a state
        (fields,): none but those of a spin have a name."""
        if action != rules.PLAY:
            return [None] * len(children)
        up = rules.player_up(state)
        outcomes = [WHAMMY, *range(int(self.ints[rules.OUTCOMES]))]
        after = np.empty((len(outcomes), rules.FIELDS), np.int64)
        for edge, outcome in enumerate(outcomes):
            rules.spin(self.ints, state, up, outcome, after, edge)
        leading: dict[bytes, list[int]] = {}
        for outcome, child in zip(outcomes, after, strict=True):
            leading.setdefault(child.tobytes(), []).append(outcome)
        out = self.ints[rules.MAX_WHAMMIES]
        return [
            self._name(leading[np.ascontiguousarray(child).tobytes()])
            + ", and out" * int(child[rules.WHAMMIES + up] == out)
            for child in children
        ]

    def _name(self, outcomes: list[int]) -> str:
        """What those outcomes are called together that lead to one state: nothing won as well as a
        whammy, or, at the cap, an amount and all above it."""
        if outcomes[0] == WHAMMY:
            return " or ".join(["whammy", *map(self._won, outcomes[1:])])
        more = " or more" if len(outcomes) > 1 else ""
        return self._won(outcomes[0], more)

    def _won(self, outcome: int, more: str = "") -> str:
        dollars = f"${self.ints[rules.UNITS + outcome] * self.unit:,}{more}"
        return f"{dollars} and a spin" if outcome >= self.ints[rules.MONEY] else dollars
