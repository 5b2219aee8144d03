"""Skunk: two players roll dice; a 1 loses the points of the turn, all 1s lose the score."""

from luckbase.solver.board.registry import Entry

GAMES = (
    Entry(
        "skunk",
        f"{__name__}.rules:SkunkBoard",
        f"{__name__}.rules:skunk",
        title="Skunk",
        about="Two players race to a goal, usually 100 points, and roll two dice as often as "
        "they dare. A 1 takes the points of the turn, and two 1s take all points: roll, or hold?",
    ),
)
