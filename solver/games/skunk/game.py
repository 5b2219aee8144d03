"""Skunk bound to a board: what `solver.game.rules` asks of every game.

The fields are `mine` and `yours`, the banked points of the player to act and of the other, `turn`,
the points of the turn, and `player`, who acts: 1 (if not said) or 2::

    mine=0 yours=87 turn=32

Payoffs are the two players' chances to win, player 1's first, whoever acts. A score can fall back
to 0 and every state can reach every other, so there is one tier. Its rows stand in the order of
(player, mine, yours, turn), and there is a row for every state with mine + turn < goal, also for
those that no play comes to (a turn of 1 point with two dice).

A board with `count_rolls` has one more field, `rolls`, the rolls of the turn, and no table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board.model import Board, nearest
from luckbase.solver.charts.model import Heatmap, Kind, Listing, Look, Wanted
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.decisions import Decisions, kernel_arrays
from luckbase.solver.game.rules import Agent, Floats, Ints
from luckbase.solver.game.tiered import TieredGame
from luckbase.solver.game.transition import Numbers, Transition
from luckbase.solver.games.skunk import kernel, rules
from luckbase.solver.games.skunk.agents import TurnAgents
from luckbase.solver.games.skunk.board import Rules, SkunkBoard

TOLERANCE = 1e-9
"""A table whose bound on the error is larger is refused; goal 200 has 1e-10."""


class Skunk(TieredGame[int]):
    """Two players; see `rules` for the game and `kernel` for how it is solved."""

    rules_version: ClassVar[int] = 2
    """2: the one tier has no folder of its own."""
    players: ClassVar[int] = 2
    fields: ClassVar[tuple[tuple[str, int], ...]] = (
        ("mine", 1),
        ("yours", 1),
        ("turn", 1),
        ("player", 1),
    )
    tie_tolerance: ClassVar[float] = 1e-11
    cyclic: ClassVar[bool] = True
    payoff_type: ClassVar[type[np.floating[Any]]] = np.float64
    best_names: ClassVar[tuple[str, ...]] = ("hold", "roll")
    smaller: ClassVar[str] = "a lower goal"

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self.rules = self._rules(board)
        self.goal = self.rules.goal
        if self.rules.count_rolls:
            self.fields = (*self.fields, ("rolls", 1))  # type: ignore[misc]
        wide = self.goal.bit_length()
        self.bits = np.array([wide, wide, wide, 2] + [wide] * self.rules.count_rolls)
        self.max_edges = self.rules.dice * self.rules.sides + 4

    def _rules(self, board: Board) -> Rules:
        assert isinstance(board, SkunkBoard)
        return board.rules

    @property
    def transition(self) -> Transition:
        return rules.transition

    @cached_property
    def numbers(self) -> Numbers:
        return Numbers(*rules.numbers(self.rules))

    def start(self) -> Ints:
        return np.array([0, 0, 0, 1] + [0] * self.rules.count_rolls, np.int64)

    def agents(self) -> Mapping[str, Agent]:
        return TurnAgents(self.goal, self.rules.sides)

    def quick_value(self, agents: Sequence[str]) -> tuple[float, ...] | None:
        from luckbase.solver.games.skunk.profiles import chance_to_win, knows

        if not all(knows(self, name) for name in agents):
            return None
        one, two = agents
        won = chance_to_win(self.plain(), one, two)
        return won, 1.0 - won

    def plain(self) -> Skunk:
        if not self.rules.count_rolls:
            return self
        plain: dict[str, Any] = self.board.model_dump()
        plain["rules"]["count_rolls"] = False
        return type(self)(type(self.board).model_validate(plain))

    def charts(self) -> Sequence[Kind]:
        from luckbase.solver.games.skunk.pictures import KINDS

        return KINDS

    def chart(self, name: str, look: Look, wanted: Wanted) -> Listing | Heatmap:
        from luckbase.solver.games.skunk.pictures import make

        return make(self, name, look, wanted)

    # --- states in people's words --------------------------------------------------------------

    def parse(self, words: Mapping[str, str]) -> Ints:
        for name in words:
            if name not in self.columns:
                raise StateError(f"unknown field '{name}'; {nearest(name, self.columns)}")
        for name in ("mine", "yours"):
            if name not in words:
                raise StateError(f"{name} is missing; write both scores as mine=0 yours=0")
        absent = {"player": "1"}
        numbers = [whole(name, words.get(name, absent.get(name, "0"))) for name in self.columns]
        found: Ints = self.canonical_states(np.array([numbers], np.int64))[0]
        return found

    def canonical_states(self, values: Ints) -> Ints:
        states = np.array(values, np.int64).reshape(-1, self.field_count)
        mine, yours, turn, player = (states[:, i] for i in range(4))

        def refuse(wrong: NDArray[np.bool_], sentence: Callable[[int], str]) -> None:
            if wrong.any():
                x = int(np.flatnonzero(wrong)[0])
                raise StateError((f"row {x + 1}: " if len(states) > 1 else "") + sentence(x))

        for i, name in enumerate(self.columns):
            refuse(states[:, i] < 0, _negative(name, states[:, i]))
        refuse(
            (player != 1) & (player != 2),
            lambda x: f"player: {player[x]} does not play; write 1 or 2",
        )
        refuse(
            (mine >= self.goal) & (yours >= self.goal),
            lambda x: f"mine and yours: {mine[x]} and {yours[x]}, and {self.goal} wins at once; "
            "only one of them can have it",
        )  # fmt: skip
        refuse(
            (yours >= self.goal) & (turn > 0),
            lambda x: f"turn: {turn[x]}, and with yours={yours[x]} the game is over; leave it out",
        )
        if self.rules.count_rolls:
            rolls = states[:, rules.ROLLED]
            refuse(
                (turn > 0) != (rolls > 0),
                lambda x: f"rolls: {rolls[x]} rolls and {turn[x]} points in the turn; "
                "both are 0 before the first roll and above it after",
            )  # fmt: skip
            refuse(rolls > turn, lambda x: f"rolls: {rolls[x]} rolls are worth {rolls[x]} or more")
        lost = yours >= self.goal
        over = lost | (mine + turn >= self.goal)
        winner = np.where(lost, 3 - player, player)
        states[over] = 0
        states[over, rules.MINE] = self.goal
        states[over, rules.PLAYER] = winner[over]
        return states

    def describe(self, state: Ints) -> dict[str, Any]:
        return dict(zip(self.columns, map(int, state), strict=True))

    def action_name(self, action: int) -> str:
        return "roll" if action == rules.ROLL else "hold"

    # --- the tier ------------------------------------------------------------------------------

    def tiers(self) -> Sequence[int]:
        where = f"board {self.board.name}"
        if self.rules.count_rolls:
            raise OptionError(
                f"{where}: count_rolls: a table does not hold the rolls of a turn, which change no "
                "value; write false"
            )
        if not self.rules.must_roll:
            raise OptionError(
                f"{where}: at mine=0 yours=0 turn=0 both players could pass for ever, and the "
                "rules do not say what such a play pays; a turn must begin with a roll"
            )
        return (0,)

    def children(self, tier: int) -> Sequence[int]:
        return ()

    def tier_number(self, tier: int) -> int:
        return 0

    def tier_fields(self, tier: int) -> dict[str, int]:
        return {}  # no field of a state is constant in the one tier there is

    def tier_name(self, tier: int) -> str:
        return f"goal {self.goal}"

    def shape(self, tier: int) -> tuple[int, ...]:
        return (self.rows(tier),)

    def rows(self, tier: int) -> int:
        return self.goal * self.goal * (self.goal + 1)

    def block_rows(self, tier: int) -> int:
        return 1

    def solve_tier(
        self,
        tier: int,
        out: Floats,
        fetch: Callable[[int], Floats],
        stop: Callable[[], bool],
        part: int = 0,
        decisions: Decisions | None = None,
    ) -> float:
        self.tiers()  # refuses a board whose plays may not end
        V = np.full((self.goal, self.goal), 0.5)
        kernel.solve(self.numbers.ints, V, stop=stop)
        kernel.fill(self.numbers.ints, V, out, self.tie_tolerance, *kernel_arrays(decisions))
        bound = kernel.certify(self.numbers.ints, out)
        if not bound <= TOLERANCE:
            raise StateError(
                f"the values at goal {self.goal} are certain to {bound:.2g} only, and "
                f"{TOLERANCE:.2g} is asked for; take a lower goal"
            )
        return bound

    def payoff_rows(
        self, tier: int, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        return [payoffs[start:stop], 1.0 - payoffs[start:stop]]

    def state_rows(self, tier: int, start: int, stop: int) -> dict[str, NDArray[np.int32]]:
        states = self.states_at(tier, np.arange(start, stop))
        return {name: states[:, i].astype(np.int32) for i, name in enumerate(self.columns)}

    def acting_rows(self, tier: int, start: int, stop: int) -> NDArray[np.int8]:
        acting = np.full(stop - start, 1, np.int8)
        acting[max(self.rows(tier) // 2 - start, 0) :] = 2
        return acting

    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        mine, yours, turn, player = np.asarray(states, np.int64).reshape(-1, 4).T
        over = mine + turn >= self.goal
        rows = self._starts[np.minimum(mine, self.goal)] + yours * (self.goal - mine) + turn
        rows += (player - 1) * (self.rows(0) // 2)
        return np.where(over, -1, 0), np.where(over, -1, rows)

    def states_at(self, tier: int, rows: Ints) -> Ints:
        player, rest = np.divmod(np.asarray(rows, np.int64), self.rows(0) // 2)
        mine = np.searchsorted(self._starts, rest, side="right") - 1
        yours, turn = np.divmod(rest - self._starts[mine], self.goal - mine)
        return np.column_stack([mine, yours, turn, player + 1])

    @cached_property
    def _starts(self) -> Ints:
        """The first row of each `mine` in a player's half, 0 to the goal."""
        mine = np.arange(self.goal + 1)
        starts: Ints = self.goal * (mine * self.goal - mine * (mine - 1) // 2)
        return starts

    def why_outside(self, state: Ints) -> str | None:
        return None

    def opening_questions(self) -> Iterator[tuple[str, dict[str, str]]]:
        shares = (
            ("the start", (0.0, 0.0, 0.0)),
            ("level, at the usual hold", (0.0, 0.0, 0.21)),
            ("far ahead", (0.67, 0.0, 0.0)),
            ("the other is nearly there", (0.0, 0.87, 0.32)),
            ("a great turn, the other nearly there", (0.0, 0.87, 0.44)),
        )
        for title, parts in shares:
            yield (
                title,
                {
                    name: str(int(part * self.goal))
                    for name, part in zip(("mine", "yours", "turn"), parts, strict=True)
                },
            )


def whole(name: str, text: str) -> int:
    """A whole number as a person writes it; StateError names the field."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", text):
        said = text.strip()[:30]
        raise StateError(f"{name}: '{said}' is not a whole number of at most 9 digits")
    return int(text)


def _negative(name: str, held: Ints) -> Callable[[int], str]:
    return lambda x: f"{name}: {held[x]} is negative; the least is 0"
