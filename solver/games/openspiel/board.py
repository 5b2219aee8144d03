"""OpenSpiel boards: which of its games, and what one state of it is."""

from typing import Literal

from luckbase.solver.board.model import Board, Section, option


class Rules(Section):
    """The rule options."""

    load: str = option("tic_tac_toe", help="The game as pyspiel.load_game takes it.")
    states: Literal["strings", "moves", "histories"] = option(
        "strings",
        help="What makes two positions one state: OpenSpiel's string of them; the string and how "
        "many moves were made; or all moves that were made.",
    )


class OpenSpielBoard(Board):
    """A game of OpenSpiel."""

    game: Literal["openspiel"] = "openspiel"
    rules: Rules = Rules()
