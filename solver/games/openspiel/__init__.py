"""The games of OpenSpiel that hide nothing, by the name that `pyspiel.load_game` takes."""

from luckbase.solver.board.registry import Entry

GAMES = (
    Entry(
        "openspiel",
        f"{__name__}.game:OpenSpielBoard",
        f"{__name__}.game:openspiel",
        title="A game of OpenSpiel",
        about="A game of Google DeepMind's OpenSpiel, found state by state through its Python "
        "package. What is every state of it worth?",
        called="load",
    ),
)
