"""Everything for a game of your own, in one place: fields, rules, the transition, capabilities,
what they take and return, and the chances of dice and cards.

A game is a model of its board files, a transition and a function that makes its `Rules` of a
board; `register` enters it. `tests/games/climb.py` is one of sixty lines::

    luckbase solve hill.toml --game climb.py

`check_game` holds it to the contract, in one call of its author's test.
"""

from luckbase.solver.board.model import Board, Section, mistake, option
from luckbase.solver.board.registry import Entry, register
from luckbase.solver.charts import (
    Chart,
    ChartField,
    ChartRequest,
    Curve,
    Curves,
    Heatmap,
    Kind,
    Listing,
    Search,
)
from luckbase.solver.check import check_game
from luckbase.solver.compiled import tell_numba
from luckbase.solver.errors import GameError, OptionError, StateError, Stopped
from luckbase.solver.game.arrays import Best, Coded, Runs
from luckbase.solver.game.capabilities import (
    Agents,
    Charts,
    Drawing,
    Event,
    Follow,
    FullTable,
    Position,
)
from luckbase.solver.game.fields import Field, Names, Refuse, members, set_field
from luckbase.solver.game.game import Game, load_game, load_game_file
from luckbase.solver.game.groups import GROUP_TYPE as _GROUP_TYPE
from luckbase.solver.game.groups import Axis, Grouped, Groups, Threshold, TurningPoint
from luckbase.solver.game.outcomes import Outcomes, Sums, draws, keeps, rolls, rolls_in_order, sums
from luckbase.solver.game.rules import (
    CHANCE,
    DECISION,
    JOINT,
    SIMULTANEOUS,
    TERMINAL,
    Capability,
    Level,
    Numbers,
    Rules,
    Unavailable,
    chance,
    decision,
    joint,
    lead,
    over,
    pay,
    simultaneous,
    transition,
)
from luckbase.solver.policies.agents import Policy
from luckbase.solver.scene import Box, Counter, Die, Group, Scene, Shape, Words

__all__ = [
    "CHANCE", "DECISION", "GROUP_TYPE", "JOINT", "SIMULTANEOUS", "TERMINAL", "Agents", "Axis",
    "Best", "Board", "Box", "Capability", "Chart", "ChartField", "ChartRequest", "Charts", "Coded",
    "Counter", "Curve", "Curves", "Die", "Drawing", "Entry", "Event", "Field", "Follow",
    "FullTable", "Game", "GameError", "Group", "Grouped", "Groups", "Heatmap", "Kind", "Level",
    "Listing", "Names", "Numbers", "OptionError", "Outcomes", "Policy", "Position", "Refuse",
    "Rules", "Runs", "Scene", "Search", "Section", "Shape", "StateError", "Stopped", "Sums",
    "Threshold", "TurningPoint", "Unavailable", "Words", "chance", "check_game", "decision",
    "draws", "joint", "keeps", "lead", "load_game", "load_game_file", "members", "mistake",
    "option", "over", "pay", "register", "rolls", "rolls_in_order", "set_field", "simultaneous",
    "sums", "transition",
]  # fmt: skip

tell_numba()  # so that functions that an author compiles may call `lead` and so on
GROUP_TYPE = _GROUP_TYPE.made
"""numba's type of a function that groups states (`Groups`)."""
