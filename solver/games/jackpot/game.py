"""Jackpot and Shut the Box bound to a board: what `solver.game.rules` asks of every game.

The fields are `open`, the tiles still to be flipped, and `dice`, the faces rolled in the order of
the dice; there is no `dice` before the roll::

    open=1,2,3,9 dice=3,4

As a column (`canonical_states`), `open` is one number: tile 1 counts 1, tile 2 counts 2, tile 3
counts 4, tile t counts 2 ** (t - 1). All nine tiles are 511.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board.model import Board, nearest
from luckbase.solver.errors import StateError
from luckbase.solver.game.rules import Agent, Game, Ints, Numbers
from luckbase.solver.games.jackpot import rules
from luckbase.solver.games.jackpot.board import JackpotBoard
from luckbase.solver.graph.bellman import expand

if TYPE_CHECKING:
    from luckbase.solver.games.jackpot.agents import Choice


class Jackpot(Game):
    """One player; see `rules` for the game and `board` for its options."""

    rules_version: ClassVar[int] = 1
    players: ClassVar[int] = 1
    fields: ClassVar[tuple[tuple[str, int], ...]] = (("open", 1), ("dice", 2))
    sets: ClassVar[frozenset[str]] = frozenset({"open"})
    tie_tolerance: ClassVar[float] = 1e-12

    def __init__(self, board: Board) -> None:
        assert isinstance(board, JackpotBoard)
        super().__init__(board)
        self.board: JackpotBoard = board
        self.tiles, self.dice, self.sides = board.rules.tiles, board.rules.dice, board.rules.sides
        self.one_die = board.rules.one_die
        if self.dice != 2:  # a field is as long as the board has dice
            self.fields = (("open", 1), ("dice", self.dice))  # type: ignore[misc]
        if board.rules.objective == "sum":
            self.payoff_range = (-float(self.tiles * (self.tiles + 1) // 2), 0.0)
            self.payoff_name = "minus the tiles left"
        else:
            self.payoff_name = "chance to shut all"
        self.equally_likely = board.rules.rolls
        self.max_edges = rules.most_edges(board.rules, self.numbers.ints)
        self.bits = np.array([self.tiles] + [self.sides.bit_length()] * self.dice)

    @property
    def successors(self) -> Callable[..., int]:
        return rules.successors

    @cached_property
    def numbers(self) -> Numbers:
        return Numbers(*rules.numbers(self.board.rules))

    def start(self) -> Ints:
        return self.state((1 << self.tiles) - 1)

    def state(self, open_tiles: int) -> Ints:
        """The state with these tiles open, as bits, before the roll."""
        found = np.zeros(1 + self.dice, np.int64)
        found[rules.OPEN] = open_tiles
        return found

    def agents(self) -> Mapping[str, Agent]:
        from luckbase.solver.games.jackpot.agents import AGENTS

        return AGENTS

    def positions(self) -> Ints:
        return np.array([self.state(tiles) for tiles in range((1 << self.tiles) - 1, -1, -1)])

    def exact_value(self, agent: Agent | None) -> Fraction:
        from luckbase.solver.games.jackpot.exact import Exact

        exact = Exact(self)
        return (exact.best if agent is None else exact.play(cast("Choice", agent))).value

    def choices(self, state: Ints, actions: list[int] | None = None) -> list[int]:
        """What an agent is asked to choose from: the actions of a state in the agents' order.

        After a roll of Jackpot that is first die, second die, their sum, as far as those tiles are
        open, doubles twice; the successors hold the same tiles in the same order, each once. Empty
        where the game is over.
        """
        if not state[rules.FACES :].any():
            found = expand(self, state.reshape(1, -1)).actions.tolist()
            return [action for action in dict.fromkeys(found) if action >= 0]
        listed = np.empty(self.max_edges, np.int64)
        count = rules.choices(self.numbers.ints, np.ascontiguousarray(state), listed)
        return [int(tiles) for tiles in listed[:count]]

    # --- states in people's words --------------------------------------------------------------

    def parse(self, words: Mapping[str, str]) -> Ints:
        names = [name for name, _ in self.fields]
        for name in words:
            if name not in names:
                raise StateError(f"unknown field '{name}'; {nearest(name, names)}")
        if "open" not in words:
            raise StateError(
                "open is missing; write the tiles that are not flipped yet as open=1,2,3"
            )
        state = self.state(0)
        for tile in _whole("open", words["open"]):
            if not 1 <= tile <= self.tiles:
                raise StateError(f"open: {self._no_tile(tile)}")
            if state[rules.OPEN] >> (tile - 1) & 1:
                raise StateError(f"open: tile {tile} stands there twice")
            state[rules.OPEN] |= 1 << (tile - 1)
        faces = _whole("dice", words.get("dice", ""))
        if len(faces) > self.dice:
            raise StateError(
                f"dice: {len(faces)} dice are too many; this board rolls {_dice(self.dice)}"
            )
        for face in faces:
            if not 1 <= face <= self.sides:  # in a column 0 is a die not rolled; not in words
                raise StateError(self._no_face(face))
        state[rules.FACES : rules.FACES + len(faces)] = faces
        found: Ints = self.canonical_states(state)[0]
        return found

    def canonical_states(self, values: Ints) -> Ints:
        states = np.array(values, np.int64, order="C").reshape(-1, 1 + self.dice)
        tiles, faces = states[:, rules.OPEN], states[:, rules.FACES :]

        def refuse(wrong: NDArray[np.bool_], sentence: Callable[[int], str]) -> None:
            if wrong.any():
                x = int(np.flatnonzero(wrong)[0])
                raise StateError((f"row {x + 1}: " if len(states) > 1 else "") + sentence(x))

        every = (1 << self.tiles) - 1
        refuse(
            (tiles < 0) | (tiles > every),
            lambda x: (
                f"open: {tiles[x]} is no set of tiles; tile t counts 2 ** (t - 1), all {every}"
            ),
        )
        off: NDArray[np.bool_] = (faces < 0) | (faces > self.sides)
        refuse(np.any(off, axis=1), lambda x: self._no_face(int(faces[x][off[x]][0])))
        rolled: Ints = (faces != 0).sum(axis=1)
        gap = (faces != 0) & (np.cumsum(faces == 0, axis=1) > 0)
        refuse(gap.any(axis=1), lambda x: "dice: a 0 stands before a face; write the faces first")
        refuse(
            (tiles == 0) & (rolled > 0),
            lambda x: "dice: no tile is open and the game is over; leave dice out",
        )
        one_here = np.logical_and(tiles >> self.sides == 0, self.one_die != "never")
        all_here = ~np.logical_and(one_here, self.one_die == "must")
        fine = (rolled == 0) | ((rolled == self.dice) & all_here) | ((rolled == 1) & one_here)
        refuse(~fine, lambda x: self._wrong_count(int(rolled[x]), int(tiles[x])))
        rules.merge_sums(self.numbers.ints, states)
        return states

    def _no_tile(self, tile: int) -> str:
        return f"{tile} is not a tile; this board has 1 to {self.tiles}"

    def _no_face(self, face: int) -> str:
        return f"dice: {face} is not on a die; the faces are 1 to {self.sides}"

    def _wrong_count(self, rolled: int, tiles: int) -> str:
        """Why so many dice can not have been rolled with these tiles open, one sentence."""
        high = self._tiles_of(tiles >> self.sides << self.sides)
        if self.one_die == "must" and not high:
            return f"dice: no tile above {self.sides} is open, so one die is rolled; write one face"
        if self.one_die != "never" and rolled == 1:
            rule = f"one die is rolled only when no tile above {self.sides} is open"
            return f"dice: {rule}, and {high[-1]} is; write {self.dice} faces"
        return f"dice: {_dice(rolled)} given, and this board rolls {_dice(self.dice)}"

    def _tiles_of(self, tiles: int) -> list[int]:
        return [tile for tile in range(1, self.tiles + 1) if tiles >> (tile - 1) & 1]

    def describe(self, state: Ints) -> dict[str, Any]:
        said: dict[str, Any] = {"open": self._tiles_of(int(state[rules.OPEN]))}
        faces = [int(face) for face in state[rules.FACES :] if face]
        return said | ({"dice": faces} if faces else {})

    def action_name(self, action: int) -> str:
        if action >= rules.ROLL:
            return f"roll {_dice(action // rules.ROLL)}"
        return "flip " + "+".join(map(str, self._tiles_of(action)))

    def action(self, state: Ints, name: str) -> int:
        """The action that a person names, as `action_name` does: ``flip 7``, ``flip 1+6``.

        Raises StateError: an action that is none, a tile flipped already, or one not allowed here.
        """
        listed = self.choices(state)
        found = {self.action_name(action): action for action in listed}
        if name in found:
            return found[name]
        tiles = re.fullmatch(r"flip ([0-9]{1,4}(?:\+[0-9]{1,4})*)", name)
        for tile in map(int, tiles[1].split("+")) if tiles else ():
            if not 1 <= tile <= self.tiles:
                raise StateError(f"{name}: {self._no_tile(tile)}")
            if not state[rules.OPEN] >> (tile - 1) & 1:
                raise StateError(f"{name}: tile {tile} is flipped already")
        right = " or ".join(f"'{right}'" for right in found) or "nothing; the game is over"
        raise StateError(f"action '{name[:30]}' is not allowed here; right would be {right}")


def _dice(count: int) -> str:
    return "1 die" if count == 1 else f"{count} dice"


def _whole(name: str, text: str) -> list[int]:
    """Whole numbers separated by commas; none in an empty text."""
    found = []
    for part in text.split(",") if text.strip() else ():
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", part):
            raise StateError(f"{name}: '{part.strip()[:30]}' is not a whole number")
        found.append(int(part))
    return found
