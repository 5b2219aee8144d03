"""Whether a game has charts, and which of them a person means."""

from __future__ import annotations

from luckbase.solver.charts.model import Kind
from luckbase.solver.errors import OptionError
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import on_command_line


def check_charts(game: Game) -> None:
    """Raises OptionError for a game that has none."""
    game.need(Charts)


def choose_chart(game: Game, name: str | None) -> Kind:
    """The chart of that name, the usual one if None. Raises OptionError, which says what there
    is."""
    kinds = game.need(Charts).kinds
    for kind in kinds:
        if name in (None, kind.name):
            return kind
    known = "; ".join(f"{kind.name}, {kind.shows}" for kind in kinds)
    said = f"'{name}' is no chart of {game.board.game}; expected: {known}"
    raise OptionError(on_command_line("--what: ", "chart: ") + said)
