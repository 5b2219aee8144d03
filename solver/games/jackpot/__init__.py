"""Jackpot and Shut the Box: one player, tiles 1 to 9 down, two dice, flip what a roll allows."""

from luckbase.solver.board.registry import Entry

GAMES = (Entry("jackpot", f"{__name__}.board:JackpotBoard", f"{__name__}.game:jackpot"),)
