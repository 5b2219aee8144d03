"""Press Your Luck, round 2: two or three players, spins, whammies, play or pass."""

from luckbase.solver.board.registry import Entry

GAMES = (
    Entry(
        "press-your-luck",
        f"{__name__}.board:PressYourLuckBoard",
        f"{__name__}.rules:press_your_luck",
        title="Press Your Luck",
        about="Two or three players of the game show spin a board of money and whammies; a "
        "whammy takes all that a player has. A player with spins left decides: play a spin, or "
        "pass all to the richest rival?",
    ),
)
