"""Everything for a game of your own, in one place: fields, rules, the transition, capabilities.

A game is a model of its board files, a transition and a function that makes its `Rules` of a
board; `register` enters it. `tests/games/climb.py` is one of sixty lines::

    luckbase solve hill.toml --game climb.py

`check_game` holds it to the contract, in one call of its author's test.
"""

from luckbase.solver.board.model import Board, Section, option
from luckbase.solver.board.registry import Entry, register
from luckbase.solver.check import check_game
from luckbase.solver.compiled import tell_numba
from luckbase.solver.game.capabilities import (
    Agents,
    Charts,
    Drawing,
    Layout,
    Statistics,
    View,
)
from luckbase.solver.game.fields import Field, Names, Refuse, set_field
from luckbase.solver.game.game import Game, load_game, load_game_file
from luckbase.solver.game.groups import GROUP_TYPE as _GROUP_TYPE
from luckbase.solver.game.groups import Axis, Grouped, Groups, Threshold
from luckbase.solver.game.rules import (
    JOINT,
    Capability,
    Level,
    Numbers,
    Rules,
    Unavailable,
    chance,
    decision,
    lead,
    over,
    pay,
    simultaneous,
    transition,
)
from luckbase.solver.scene import Box, Counter, Die, Scene, Words

__all__ = [
    "GROUP_TYPE", "JOINT", "Agents", "Axis", "Board", "Box", "Capability",
    "Charts", "Counter", "Die", "Drawing", "Entry", "Field", "Game", "Grouped",
    "Groups", "Layout", "Level", "Names", "Numbers", "Refuse", "Rules", "Scene",
    "Section", "Statistics", "Threshold", "Unavailable", "View", "Words", "chance", "check_game",
    "decision", "lead", "load_game", "load_game_file", "option", "over", "pay", "register",
    "set_field", "simultaneous", "transition",
]  # fmt: skip

tell_numba()  # so that functions that an author compiles may call `lead` and so on
GROUP_TYPE = _GROUP_TYPE.made
"""numba's type of a function that groups states (`Groups`)."""
