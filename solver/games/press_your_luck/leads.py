"""At what lead to pass: the question of Press Your Luck that everybody asks, answered by state.

`leads_of` looks at every score of the player up below the cap, where he may still choose, and says
from which lead on he passes (`Lead.pass_from`), from which he plays (`Lead.play_from`), and at
which leads below that he passes too: far behind he would rather have the rival spin and whammy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts.model import Look
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard
from luckbase.solver.games.press_your_luck.setting import Choice, Setting, choices


@dataclass(frozen=True, eq=False)
class Lead:
    """Play or pass by lead. leads: int64 (n,), dollars ahead of the rival, every score below the
    cap. choice: arrays (n,)."""

    setting: Setting
    leads: Ints
    choice: Choice

    @property
    def pass_from(self) -> int | None:
        """The least lead from which on passing is always best; None where there is none."""
        at = _last_run(self.choice.passing)
        return None if at == len(self.leads) else int(self.leads[at])

    @property
    def play_from(self) -> int | None:
        """The least lead from which on, up to `pass_from`, playing is always best; None where that
        is nowhere."""
        end = _last_run(self.choice.passing)
        at = _last_run(~self.choice.passing[:end])
        return None if at == end else int(self.leads[at])

    @property
    def passes(self) -> list[tuple[int, int]]:
        """All leads at which passing is best, as (first, last)."""
        edges = np.flatnonzero(np.diff(np.pad(self.choice.passing.astype(np.int8), 1)))
        return [
            (int(self.leads[first]), int(self.leads[stop - 1]))
            for first, stop in zip(edges[::2], edges[1::2], strict=True)
        ]

    def at(self, lead: int | None) -> tuple[float, float] | None:
        """(play, pass) at a lead; None where there is no such."""
        if lead is None:
            return None
        x = int(np.flatnonzero(self.leads == lead)[0])
        return float(self.choice.play[x]), float(self.choice.passed[x])


def leads_of(game: Game, look: Look, settings: list[Setting], error: float) -> list[Lead]:
    """Play or pass by lead in each setting; all are looked up at once."""
    assert isinstance(game.board, PressYourLuckBoard)
    solve = game.board.solve
    scores = np.arange(0, solve.score_cap, solve.score_unit, dtype=np.int64)
    values = np.concatenate([each.with_scores(each.up, scores) for each in settings])
    found, n = choices(game, look, values, error), len(scores)
    return [
        Lead(each, scores - each.score(each.rival), _part(found, slice(i * n, i * n + n)))
        for i, each in enumerate(settings)
    ]


def _part(choice: Choice, at: slice) -> Choice:
    return Choice(choice.play[at], choice.passed[at], choice.passing[at], choice.unsure[at])


def _last_run(yes: NDArray[np.bool_]) -> int:
    """Where the run of True begins that lasts to the end; the length where the last is False."""
    no = np.flatnonzero(~yes)
    return int(no[-1]) + 1 if len(no) else 0
