"""Goofspiel, the Game of Pure Strategy: rules, patterns, the layers and their kernel."""

from luckbase.solver.board.registry import Entry

GAMES = (Entry("goofspiel", f"{__name__}.board:GoofspielBoard", f"{__name__}.game:goofspiel"),)
