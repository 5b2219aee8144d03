"""Jackpot and Shut the Box: one player flips tiles 1 to 9 as the dice allow."""

from luckbase.solver.board.registry import Entry

GAMES = (
    Entry(
        "jackpot",
        f"{__name__}.rules:JackpotBoard",
        f"{__name__}.rules:jackpot",
        title="Jackpot and Shut the Box",
        about="A player rolls dice and flips tiles that the roll allows, until all tiles are "
        "flipped or none can be. Which tiles should they flip?",
    ),
)
