"""Boards of Press Your Luck side by side: at what lead to pass, and what playing and passing give.

On a grid of scores a lead at which to pass moves by whole units or not at all. Where it lies
between two grid points is read off a straight line through what passing gains at either: the
**crossing**, the lead at which playing and passing would be worth the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts.model import Cell, Curve, Curves
from luckbase.solver.errors import OptionError
from luckbase.solver.game.eras import Era, Eras, Part
from luckbase.solver.games.press_your_luck import rules
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard
from luckbase.solver.games.press_your_luck.leads import Lead, leads_of
from luckbase.solver.games.press_your_luck.setting import Setting

UP, RIVAL = 1, 2
"""Players from 0: he who is up, and his rival; the first has nothing and no spins."""
RIVAL_SHARES = (0.15, 0.3, 0.45, 0.6)
"""Of the cap: what the rival has in the table."""
WIDEST_LEAD = 5000
"""Dollars ahead or behind, in the picture of one spin."""


@dataclass(frozen=True)
class Luck(Eras):
    """The comparison; `usual` are the boards' options, which are the same."""

    board: PressYourLuckBoard

    def compare(self, eras: Sequence[Era]) -> list[Part]:
        unit, cap = self.board.solve.score_unit, self.board.solve.score_cap
        if cap < 2 * unit:
            raise OptionError(
                f"score_cap: {cap} at a score_unit of {unit} leaves no score between nothing and "
                f"the cap, and no lead to compare; right would be {2 * unit} or more"
            )
        return [self._leads(eras), self._one_spin(eras)]

    def _rivals(self) -> list[int]:
        """What the rival has, on the grid, in the table."""
        unit, cap = self.board.solve.score_unit, self.board.solve.score_cap
        return sorted({max(1, round(share * cap / unit)) * unit for share in RIVAL_SHARES})

    def _cases(self) -> list[tuple[int, int, int]]:
        """(spins, the rival's whammies, his dollars); with one spin left whammies do not matter."""
        frontier, last = self.board.solve.frontier, self.board.rules.max_whammies - 1
        return [
            (spins, whammies, rival)
            for spins in range(1, frontier + 1)
            for whammies in ((0, last) if last and spins > 1 else (0,))
            for rival in self._rivals()
        ]

    def _leads(self, eras: Sequence[Era]) -> Part:
        cases = self._cases()
        found = {era.name: _leads_at(era, cases) for era in eras}
        rows: list[tuple[Cell, ...]] = []
        shifts: list[float] = []
        for i, case in enumerate(cases):
            each = [found[era.name][i] for era in eras]
            if all(lead.pass_from is None for lead in each):
                continue
            ends = [crossing(lead) for lead in each]
            first, last = ends[0], ends[-1]
            moved = None if first is None or last is None else last - first
            shifts += [] if moved is None else [moved]
            rows.append((*case[:2], f"{case[2]:,}", *map(_cell, each), _signed(moved)))
        columns = ("spins left", "rival's whammies", "rival has", *(era.name for era in eras))
        text = (
            "Player 2 is up and has all the spins, player 1 has nothing, and player 3, the rival, "
            "gets the spins if they are passed. The lead from which on passing is best, on the "
            "grid of scores; in brackets the crossing, the lead at which playing and passing would "
            "be worth the same. `moved` is that of the crossing, from the first board to the last."
        )
        if shifts:
            least, most = _signed(min(shifts)), _signed(max(shifts))
            text += f" The crossing moved by {least} to {most} dollars."
        usual = self._usual()
        title = "Pass from " + ", ".join(
            _told(spins, [found[era.name][cases.index((spins, 0, usual))] for era in eras])
            for spins in range(1, self.board.solve.frontier + 1)
        )
        return Part("At what lead to pass", "lead", text, (*columns, "moved"), tuple(rows),
                    self._picture(eras, title))  # fmt: skip

    def _usual(self) -> int:
        """What the rival has where only one such case is told."""
        rivals = self._rivals()
        return rivals[(len(rivals) - 1) // 2]

    def _picture(self, eras: Sequence[Era], title: str) -> Curves:
        """The crossing by what the rival has."""
        unit, cap = self.board.solve.score_unit, self.board.solve.score_cap
        step = max(unit, cap // 40 // unit * unit)
        rivals = np.arange(step, cap, step, dtype=np.int64)
        curves = []
        for spins in range(1, self.board.solve.frontier + 1):
            for era in eras:
                leads = _leads_at(era, [(spins, 0, int(rival)) for rival in rivals])
                values = [np.nan if (end := crossing(lead)) is None else end for lead in leads]
                left = f"{spins} spin{'s' * (spins > 1)} left"
                curves.append(
                    Curve(f"{era.name}, {left}", f"{era.name}_spins_{spins}", np.array(values))
                )
        return Curves(
            title, _about(self.board, f"player 2 up, the first has nothing; the title: a rival on "
                          f"${self._usual():,}"),
            "rival", rivals, tuple(curves), "the rival has ($)", "pass from a lead of ($)",
        )  # fmt: skip

    def _one_spin(self, eras: Sequence[Era]) -> Part:
        rival = self._usual()
        case = (1, 0, rival)
        curves: list[Curve] = []
        wide = min(WIDEST_LEAD, rival)
        rows: dict[int, list[float]] = {}
        for era in eras:
            (lead,) = _leads_at(era, [case])
            inside = np.abs(lead.leads) <= wide
            xs = lead.leads[inside]
            for word, of in (("play", lead.choice.play), ("pass", lead.choice.passed)):
                curves.append(Curve(f"{era.name}, {word}", f"{era.name}_{word}", of[inside]))
                for x, value in zip(xs.tolist(), of[inside].tolist(), strict=True):
                    rows.setdefault(x, []).append(value)
        step = max(1, len(rows) // 10)
        listed = tuple(
            (_signed(x), *(f"{value:.4f}" if value == value else "–" for value in values))
            for x, values in list(rows.items())[::step]
        )
        columns = ("lead", *(curve.label for curve in curves))
        text = (
            f"The chance of player 2 to win with one spin left, the rival on ${rival:,} and player "
            "1 on nothing, by his lead."
        )
        picture = Curves(
            "Play or pass the last spin", _about(self.board, f"the rival has ${rival:,}"), "lead",
            xs, tuple(curves), "lead ($)", "chance to win",
        )  # fmt: skip
        return Part("The last spin", "last-spin", text, columns, listed, picture)


def crossing(lead: Lead) -> float | None:
    """The lead at which passing gains nothing, on a straight line from the last lead at which
    playing is best to the first from which on passing is; None where there is none."""
    start = lead.pass_from
    if start is None:
        return None
    at = int(np.flatnonzero(lead.leads == start)[0])
    gains: NDArray[np.float64] = lead.choice.passed - lead.choice.play
    if at == 0 or np.isnan(gains[at - 1 : at + 1]).any() or gains[at] == gains[at - 1]:
        return float(start)
    share = gains[at] / (gains[at] - gains[at - 1])
    return float(start - share * (lead.leads[at] - lead.leads[at - 1]))


def _leads_at(era: Era, cases: Sequence[tuple[int, int, int]]) -> list[Lead]:
    """Play or pass with (spins, the rival's whammies, his dollars), by lead."""
    board = era.game.board
    assert isinstance(board, PressYourLuckBoard)
    found = []
    for spins, whammies, rival in cases:
        values = np.zeros(rules.FIELDS, np.int64)
        values[rules.SCORE + RIVAL], values[rules.EARNED + UP] = rival, spins
        values[rules.WHAMMIES + RIVAL] = whammies
        found.append(Setting(tuple(values.tolist()), UP, RIVAL, board.rules.max_whammies))
    return leads_of(era.game, era.look, found, era.error)


def _told(spins: int, leads: Sequence[Lead]) -> str:
    """From what lead on to pass, board after board, once if it is the same."""
    said = list(dict.fromkeys("never" if x.pass_from is None else f"{x.pass_from:+,}"
                              for x in leads))  # fmt: skip
    return f"{', then '.join(said)} with {spins} spin{'s' * (spins > 1)}"


def _cell(lead: Lead) -> str:
    if lead.pass_from is None:
        return "never"
    end = crossing(lead)
    return f"{_signed(lead.pass_from)} ({_signed(end)})"


def _signed(dollars: float | None) -> str:
    return "–" if dollars is None else f"{round(dollars):+,}"


def _about(board: PressYourLuckBoard, what: str) -> str:
    return f"{what}; scores in units of ${board.solve.score_unit:,}"
