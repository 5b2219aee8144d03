"""Press Your Luck, round 2: two or three players, spins, whammies, play or pass."""

from luckbase.solver.board.registry import Entry

GAMES = (
    Entry(
        "press-your-luck",
        f"{__name__}.board:PressYourLuckBoard",
        f"{__name__}.game:press_your_luck",
    ),
)
