"""The charts of Press Your Luck, as `solver.charts.model` has them.

``lead`` says at what lead to pass, by spins left.
"""

from __future__ import annotations

from luckbase.solver.charts.model import DECIMALS, Heatmap, Kind, Listing, Look, Wanted
from luckbase.solver.errors import OptionError
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard
from luckbase.solver.games.press_your_luck.leads import Lead, leads_of
from luckbase.solver.games.press_your_luck.setting import Asked, settings

KINDS = (
    Kind("lead", "at what lead to pass, by spins left"),
)  # fmt: skip
LEAD_COLUMNS = (
    "up", "spins", "rival", "rival_score", "third_score", "whammies", "pass_from", "play_from",
    "passes", "play_there", "pass_there", "unsure",
)  # fmt: skip
OWN_SCORE = frozenset({"scores"})


class LuckCharts(Charts):
    """The charts of a board (module docstring)."""

    kinds = KINDS

    def __init__(self, game: Game) -> None:
        assert isinstance(game.board, PressYourLuckBoard)
        self.game, self.board = game, game.board

    def make(self, name: str, look: Look, wanted: Wanted) -> Listing | Heatmap:
        if wanted.reachable:
            raise OptionError("--reachable: charts of this game are of all states; leave it out")
        return _lead(self.game, look, wanted)


# --- at what lead to pass ------------------------------------------------------------------------


def _lead(game: Game, look: Look, wanted: Wanted) -> Listing:
    assert isinstance(game.board, PressYourLuckBoard)
    every = tuple(range(1, game.board.solve.frontier + 1))
    asked = settings(game, wanted.fields, Asked(OWN_SCORE, every, many=True))
    found = leads_of(game, look, asked, wanted.error)
    unsure = sum(int(lead.choice.unsure.sum()) for lead in found)
    note = "a lead is my score less the rival's, who gets the spins; play from one to the other" + (
        f"; {unsure} leads are too close to call, and count as play" if unsure else ""
    )
    return Listing(_lead_lines(found), LEAD_COLUMNS, tuple(map(_lead_row, found)), note)


def _lead_row(lead: Lead) -> tuple[int | float | str, ...]:
    where, there = lead.setting, lead.at(lead.pass_from)
    chances = ("", "") if there is None else tuple(round(x, DECIMALS) for x in there)
    return (
        where.up + 1, where.spins, where.rival + 1, where.score(where.rival),
        where.score(where.third), ",".join(map(str, where.whammies)), _cell(lead.pass_from),
        _cell(lead.play_from), " ".join(f"{a}..{b}" for a, b in lead.passes), *chances,
        int(lead.choice.unsure.sum()),
    )  # fmt: skip


def _cell(number: int | None) -> int | str:
    return "" if number is None else number


def _lead_lines(found: list[Lead]) -> tuple[str, ...]:
    whammies = any(any(lead.setting.whammies) for lead in found)
    heads = ["up", "spins left", "rival has", "third has", "pass from a lead of",
             "play from", "pass below, from .. to"]  # fmt: skip
    rows = [heads + ["whammies"] * whammies]
    for lead in found:
        where, end = lead.setting, lead.pass_from
        below = [(a, b) for a, b in lead.passes if end is None or b < end]
        third = f"{where.score(where.third):,}" if where.is_in(where.third) else "out"
        rows.append([
            f"player {where.up + 1}", str(where.spins),
            f"{where.score(where.rival):,} (player {where.rival + 1})", third,
            _signed(end), _signed(lead.play_from),
            ", ".join(f"{a:+,} .. {b:+,}" for a, b in below) or "-",
        ] + [",".join(map(str, where.whammies))] * whammies)  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return tuple(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def _signed(lead: int | None) -> str:
    return "never" if lead is None else f"{lead:+,}"
