"""Skunk: two players, dice rolled as often as one dares, a 1 takes the turn, all 1s the score."""

from luckbase.solver.board.registry import Entry

GAMES = (Entry("skunk", f"{__name__}.board:SkunkBoard", f"{__name__}.game:skunk"),)
