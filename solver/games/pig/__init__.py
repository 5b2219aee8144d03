"""Pig with one die, as a race to a goal or over a number of rounds."""

from luckbase.solver.board.registry import Entry

GAMES = (
    Entry(
        "pig",
        f"{__name__}.rules:PigBoard",
        f"{__name__}.rules:pig",
        title="Pig",
        about="Two players race to a goal, usually 100 points, and roll a die as often as they "
        "dare. A 1 takes the points of the turn: roll, or hold?",
    ),
    Entry(
        "pig-rounds",
        f"{__name__}.rules:PigRoundsBoard",
        f"{__name__}.rules:pig_rounds",
        title="Pig by rounds",
        about="Two players take a turn each in every round, usually for ten rounds, and the higher "
        "total wins. In a turn they roll a die as often as they dare; a 1 takes its points.",
    ),
)
