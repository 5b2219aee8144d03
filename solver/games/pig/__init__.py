"""Pig: one die, as often as one dares; a race to a goal, or so many rounds."""

from luckbase.solver.board.registry import Entry

GAMES = (
    Entry("pig", f"{__name__}.board:PigBoard", f"{__name__}.game:pig"),
    Entry("pig-rounds", f"{__name__}.board:PigRoundsBoard", f"{__name__}.game:pig_rounds"),
)
