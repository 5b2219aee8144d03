"""Goofspiel, the Game of Pure Strategy: rules, patterns, layers and their kernel."""

from luckbase.solver.board.registry import Entry

GAMES = (
    Entry(
        "goofspiel",
        f"{__name__}.rules:GoofspielBoard",
        f"{__name__}.rules:goofspiel",
        title="Goofspiel",
        about="Two players with the same cards bid a card each, at once, for prizes that are "
        "turned up one by one; the higher card takes the prize. The best play is a lottery over "
        "the cards.",
    ),
)
