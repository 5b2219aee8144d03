"""Jackpot and Shut the Box: the transition, the fields, the rules on a board.

A state is ``open=1,2,3,9 dice=3,4``: the open tiles (not yet flipped) as bits, with bit t - 1 for
tile t, and one face for each die, in the order of the dice. Before the roll there is no `dice`; all
faces are 0.

* Before the roll there is no choice: every roll is equally likely. The exception is ``one_die``
  when all tiles above the faces of one die are flipped: then one die is rolled ("must"), or the
  player chooses the number of dice ("may"): two actions, each a lottery over its rolls.
* After the roll the player flips one of the choices. In Jackpot these are single open tiles, listed
  as first die, second die, …, their sum. In Shut the Box they are sets of open tiles that add up to
  the roll, the set with the highest tile first, then with the next highest. If there is only one
  set or tile to flip, the player has no choice.
* The game is over when all tiles are flipped, or if a roll allows none. The payoff is 1 if all are
  flipped and 0 otherwise, or minus the sum of the open tiles (higher payoffs are better).

Ties between actions: the order of the choices, and two dice before one; a later action must be
better by more than the tolerance.

Merging: Jackpot's dice keep their order, because the agents `first` and `last` need it. Shut the
Box uses only the sum of a roll, so all rolls with the same sum are one state. It is shown as one
die if one may be rolled and can show the sum, and otherwise as the most even dice, low ones first
(7 is 3,4 and 12 is 6,6).

An **agent** gets the list from `choices`. Actions are sets of tiles as bits, so a set with higher
tiles has a higher number, and rolling more dice has a higher number than rolling fewer.

Sources: docs/numbers.md#french-2022, docs/numbers.md#shut-the-box.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, Self

import numpy as np
from pydantic import model_validator

from luckbase.solver.board.model import Board, Section, mistake, option
from luckbase.solver.compiled import njit, types
from luckbase.solver.game import rules
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Agents, Charts, Drawing
from luckbase.solver.game.fields import Field, Refuse, members, set_field
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups
from luckbase.solver.game.outcomes import sums
from luckbase.solver.game.rules import Numbers, Rules
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import bits_in
from luckbase.solver.sentences import many, show

HERE = __package__
OPEN, FACES = 0, 1  # the positions of the fields in a state

ROLL = 1 << 16
"""Rolling k dice is the action k * ROLL; a smaller action is the set of tiles flipped, as bits."""

TILES, DICE, SIDES, ADD_UP, ONE_DIE, MIN_SUM, FIRST = 0, 1, 2, 3, 4, 5, 6
"""Positions in `Numbers.ints`. From FIRST on, for Shut the Box: where the sets of tiles that add up
to 0, 1, …, dice * sides begin, and the end; then the sets."""
NEVER, MAY, MUST = 0, 1, 2  # the values of ONE_DIE
_i, _i1, _f1 = types.int64, types.int64[::1], types.float64[::1]

MAX_ROLLS = 1296  # the most ordered rolls: four dice of six sides
MAX_STATES = 1 << 24
"""The most sets of tiles times ordered rolls: 16 tiles with two dice of 16 sides."""


class Options(Section):
    """The rule options."""

    tiles: int = option(9, 1, 16, "Number of tiles, numbered from 1, all open at first.")
    dice: int = option(2, 1, 4, "Number of dice.")
    sides: int = option(6, 2, 20, "Faces of each die, all equally likely.")
    allowed: Literal["jackpot", "sum"] = option(
        "jackpot",
        help="Tiles that may be flipped: the tile of one die or of the sum of all (Jackpot), or "
        "any tiles that add up to the roll (Shut the Box).",
    )
    one_die: Literal["never", "may", "must"] = option(
        "never",
        help="Whether the player may or must roll one die once all tiles above its faces are "
        "flipped; only with two dice and allowed = 'sum'.",
    )
    objective: Literal["shut", "sum"] = option(
        "shut", help="The payoff: the chance to flip all tiles, or minus the sum of open tiles."
    )

    @property
    def rolls(self) -> int:
        """The number of ordered rolls, all equally likely."""
        return int(self.sides**self.dice)

    @model_validator(mode="after")
    def _can_be_solved(self) -> Self:
        if self.rolls > MAX_ROLLS:
            problem = f"{self.dice} dice of {self.sides} sides roll in {self.rolls} ways"
            raise mistake(f"{problem}; expected at most {MAX_ROLLS}", "rules", "dice")
        if self.rolls << self.tiles > MAX_STATES:
            problem = f"{self.tiles} tiles and {self.rolls} rolls make {self.rolls << self.tiles}"
            raise mistake(f"{problem} positions; expected at most {MAX_STATES}", "rules", "tiles")
        if self.one_die != "never" and (self.dice, self.allowed) != (2, "sum"):
            problem = f"{show(self.one_die)} is for boards with dice = 2 and allowed = 'sum'"
            raise mistake(f"{problem}; write 'never'", "rules", "one_die")
        stuck = self._never_flipped()
        if stuck:
            raise mistake(f"no roll can flip tile {stuck}, so no game can be won", "rules", "tiles")
        return self

    def _never_flipped(self) -> int | None:
        """Return the lowest tile that no roll allows, even with all tiles down, or None."""
        tiles, largest = range(1, self.tiles + 1), self.dice * self.sides
        if self.allowed == "jackpot":
            flipped = {*range(1, self.sides + 1), *range(self.dice, largest + 1)}
        else:  # alone, or with other tiles that lift a low one to the least roll
            flipped = {*range(1, largest + 1)} if sum(tiles) >= self.dice else set()
        return min({*tiles} - flipped, default=None)


class JackpotBoard(Board):
    """A board of Jackpot or Shut the Box: only [rules]."""

    game: Literal["jackpot"]
    rules: Options = Options()


@njit(_i(_i1))
def roll_sum(state):
    total = 0
    for i in range(FACES, state.size):
        total += state[i]
    return total


@njit(types.boolean(_i1, _i))
def one_die_here(ints, open_tiles):
    """Return whether one die may or must be rolled with these tiles open."""
    return ints[ONE_DIE] != NEVER and open_tiles >> ints[SIDES] == 0


@njit(types.void(_i1, _i, _i1))
def show_sum(ints, total, state):
    """Write the faces that represent all rolls of this sum (module docstring) into `state`."""
    dice = ints[DICE]
    if one_die_here(ints, state[OPEN]) and total <= ints[SIDES]:
        state[FACES] = total
        state[FACES + 1] = 0
        return
    for i in range(dice):
        state[FACES + i] = (total + i) // dice


@njit(_i(_i1, _i1, _i1))
def list_flips(ints, state, listed):
    """Write the sets of tiles that may be flipped after the roll; return their number.

    The order is first die, second die, sum; a tile that two dice show is listed twice.
    """
    open_tiles, total, n = state[OPEN], roll_sum(state), 0
    if ints[ADD_UP]:
        for k in range(ints[FIRST + total], ints[FIRST + total + 1]):
            if ints[k] & ~open_tiles == 0:
                listed[n] = ints[k]
                n += 1
        return n
    for i in range(FACES, state.size + (state.size > FACES + 1)):
        number = state[i] if i < state.size else total
        if number <= ints[TILES] and open_tiles >> (number - 1) & 1:
            listed[n] = 1 << (number - 1)
            n += 1
    return n


@njit(_i(_i1, _f1, _i1, _i, types.int64[:, ::1], _f1, _i1, _i))
def roll(ints, reals, state, dice, children, weights, actions, edge):
    """Write the edges of rolling some dice; return the next free edge."""
    sides = ints[SIDES]
    if ints[ADD_UP]:
        chances = 0 if dice == ints[DICE] else ints[DICE] * sides + 1
        for total in range(dice, dice * sides + 1):
            children[edge, OPEN] = state[OPEN]
            show_sum(ints, total, children[edge])
            weights[edge], actions[edge] = reals[chances + total], dice * ROLL
            edge += 1
        return edge
    for number in range(sides**dice):  # the rolls in order, the first die slowest
        children[edge, OPEN] = state[OPEN]
        digits = number
        for i in range(dice - 1, -1, -1):
            children[edge, FACES + i] = digits % sides + 1
            digits //= sides
        weights[edge], actions[edge] = 1.0 / sides**dice, dice * ROLL
        edge += 1
    return edge


@njit(rules.TRANSITION_TYPE)
def transition(board, state, edges):  # noqa: C901  # the rules, step by step
    """Write the edges of a state, by the contract in `solver.game.rules`.

    For Shut the Box, `reals` holds the chance of each sum from 0 on, of all dice, then of one.
    """
    ints, reals = board
    children, weights, actions, rewards, about = edges
    open_tiles = state[OPEN]
    about[0], about[1] = rules.CHANCE, 0
    n = 0
    if open_tiles and roll_sum(state) == 0:
        one_die = one_die_here(ints, open_tiles)
        if not one_die or ints[ONE_DIE] == MAY:
            n = roll(ints, reals, state, ints[DICE], children, weights, actions, n)
        if one_die:
            n = roll(ints, reals, state, 1, children, weights, actions, n)
            if ints[ONE_DIE] == MAY:
                about[0] = rules.DECISION
    elif open_tiles:
        listed = list_flips(ints, state, actions)
        for k in range(listed):  # each set of tiles once, at its first position
            tiles, seen = actions[k], False
            for edge in range(n):
                seen = seen or actions[edge] == tiles
            if not seen:
                children[n] = 0
                children[n, OPEN] = open_tiles & ~tiles
                weights[n], actions[n] = 1.0, tiles
                n += 1
        if n > 1:
            about[0] = rules.DECISION
    if n == 0:
        about[0], about[1] = rules.TERMINAL, -1
        rewards[0, 0] = 0.0 if open_tiles else 1.0
        if ints[MIN_SUM]:
            rewards[0, 0] = 0.0
            for tile in range(1, ints[TILES] + 1):
                rewards[0, 0] -= tile * (open_tiles >> (tile - 1) & 1)
    return n


@njit(types.void(_i1, types.int64[:, ::1]))
def merge_sums(ints, states):
    """Make states canonical in place: for Shut the Box, faces that represent the sum."""
    for x in range(states.shape[0]):
        total = roll_sum(states[x])
        if ints[ADD_UP] and total:
            show_sum(ints, total, states[x])


def numbers(options: Options) -> Numbers:
    """Return the board as `transition` reads it."""
    add_up, largest = options.allowed == "sum", options.dice * options.sides
    one_die = ("never", "may", "must").index(options.one_die)
    ints = [options.tiles, options.dice, options.sides, add_up, one_die, options.objective == "sum"]
    if not add_up:
        return Numbers(np.array(ints, np.int64), np.zeros(1))
    sets = range((1 << options.tiles) - 1, 0, -1)  # the highest tile first
    of_sets = np.array([sum(members(tiles)) for tiles in sets])
    order = np.argsort(of_sets, kind="stable")
    begins = np.searchsorted(of_sets[order], range(largest + 2))
    ints += [FIRST + largest + 2 + int(begin) for begin in begins]
    ints += [sets[k] for k in order[: begins[-1]]]
    chances = np.zeros(largest + 1 + options.sides + 1)
    chances[options.dice : largest + 1] = sums(options.dice, options.sides).chances
    chances[largest + 2 :] = 1 / options.sides
    return Numbers(np.array(ints, np.int64), chances)


def most_edges(options: Options, ints: Ints) -> int:
    """Return the most edges of a state on this board, or choices listed for one."""
    if options.allowed == "jackpot":
        return max(options.rolls, options.dice + 1)
    largest = options.dice * options.sides
    sums = largest - options.dice + 1 + (options.sides if options.one_die == "may" else 0)
    sets = np.diff(ints[FIRST : FIRST + largest + 2])
    return max(sums, int(sets.max()))


def jackpot(board: JackpotBoard) -> Rules:
    """Return the rules of Jackpot, or of Shut the Box, on a board."""
    options = board.rules
    board_numbers, counts_open = numbers(options), options.objective == "sum"
    tiles = set_field(
        "open", options.tiles, help="Open tiles, which are not flipped.",
        sample=",".join(map(str, range(1, min(options.tiles, 4) + 1))),
    )  # fmt: skip
    dice = Field(
        "dice", options.dice, low=1, high=options.sides, default=0, blank=0, as_list=True,
        help="The face of each die; leave it out for the position before the roll.",
        sample=",".join(str(min(k + 2, options.sides)) for k in range(options.dice)),
    )  # fmt: skip
    worst = -float(options.tiles * (options.tiles + 1) // 2)
    return Rules(
        fields=[tiles, dice],
        players=1,
        transition=transition,
        numbers=board_numbers,
        max_edges=most_edges(options, board_numbers.ints),
        actions=action_name,
        start={"open": tuple(range(1, options.tiles + 1))},
        canonical=partial(canonical, options, board_numbers.ints),
        payoff_range=(worst, 0.0) if counts_open else (0.0, 1.0),
        payoff_name="minus the tiles left" if counts_open else "chance to shut all",
        level={"open": 1},
        capabilities={
            Agents: agents,
            Charts: f"{HERE}.charts:TileCharts",
            Groups: groups,
            Drawing: f"{HERE}.charts:drawing",
        },
    )


def outcome_names(options: Options, state: Ints, action: int, after: Ints) -> list[str | None]:
    """Return people's names of rolls: ``6 and 1``, or ``a total of 7`` if only that counts.

    None for flips: the name of the action serves.
    """
    if state[FACES:].any():
        return [None] * len(after)
    alone = options.dice == 1 or action == ROLL  # one die
    named: list[str | None] = []
    for faces in after[:, FACES:].tolist():
        rolled = [str(face) for face in faces if face]
        if options.allowed == "sum" and not alone:
            named.append(f"a total of {sum(faces)}")
        else:
            named.append(" and ".join(rolled) if len(rolled) > 1 else f"a {rolled[0]}")
    return named


def options_of(game: Game) -> Options:
    assert isinstance(game.board, JackpotBoard)
    return game.board.rules


def positions(game: Game) -> Ints:
    """Return every set of tiles before the roll, from all open to none: (n, fields)."""
    tiles = np.arange((1 << options_of(game).tiles) - 1, -1, -1)
    return np.pad(tiles[:, None], ((0, 0), (OPEN, game.field_count - 1)))


def choices(game: Game, state: Ints) -> list[int]:
    """Return the list from which an agent chooses: the actions of a state in the order of the dice.
    After a roll of Jackpot these are the open tiles among first die, second die and their sum, with
    doubles twice."""
    if not state[FACES:].any():
        actions = expand(game, state.reshape(1, -1)).actions.tolist()
        return [action for action in dict.fromkeys(actions) if action >= 0]
    listed = np.empty(game.max_edges, np.int64)
    count = list_flips(game.numbers.ints, np.ascontiguousarray(state), listed)
    return [int(tiles) for tiles in listed[:count]]


def action_name(action: int) -> str:
    """Return ``roll 2 dice`` or ``flip 1+6``."""
    if action >= ROLL:
        return f"roll {_dice(action // ROLL)}"
    return "flip " + "+".join(map(str, members(action)))


def canonical(options: Options, ints: Ints, states: Ints, refuse: Refuse) -> Ints:
    """Return canonical states: if only the sum of the dice counts, the dice represent it."""
    tiles, faces = states[:, OPEN], states[:, FACES:]
    rolled: Ints = (faces != 0).sum(axis=1)
    gap = (faces != 0) & (np.cumsum(faces == 0, axis=1) > 0)
    refuse(gap.any(axis=1), lambda x: "dice: a 0 stands before a face; write the faces first")
    refuse(
        (tiles == 0) & (rolled > 0),
        lambda x: "dice: no tile is open and the game is over; leave dice out",
    )
    one_here = (tiles >> options.sides == 0) & (options.one_die != "never")
    all_here = ~one_here | (options.one_die != "must")
    right = (rolled == 0) | (rolled == options.dice) & all_here | (rolled == 1) & one_here
    refuse(~right, lambda x: _wrong_count(options, int(rolled[x]), int(tiles[x])))
    merge_sums(ints, states)
    return states


def _wrong_count(options: Options, rolled: int, tiles: int) -> str:
    """Return why these dice cannot have been rolled with these tiles open, in one sentence."""
    sides, above = options.sides, members(tiles >> options.sides << options.sides)
    if options.one_die == "must" and not above:
        return f"dice: no tile above {sides} is open, so one die is rolled; write one face"
    if options.one_die != "never" and rolled == 1:
        rule = f"one die is rolled only when no tile above {sides} is open"
        return f"dice: {rule}, and {above[-1]} is; write {options.dice} faces"
    return f"dice: {_dice(rolled)} given; expected {_dice(options.dice)}"


def _dice(count: int) -> str:
    return many(count, "die", "dice")


# --- agents --------------------------------------------------------------------------------------


def min_(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the lowest tile; among sets of tiles, the set with the lowest highest tile."""
    return actions.index(min(actions))


def max_(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the highest tile."""
    return actions.index(max(actions))


def first(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the first choice: the tile of the first die if it is open."""
    return 0


def last(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the last choice: the tile of the sum if it is open."""
    return len(actions) - 1


def hilo(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the highest tile that no single die can show, otherwise the lowest: 9 8 7 1 2 … 6."""
    sides = options_of(game).sides

    def priorities(tiles: int) -> list[int]:
        return sorted(-tile if tile > sides else tile for tile in members(tiles))

    return min(range(len(actions)), key=lambda k: priorities(actions[k]))


def hilo2(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Take the highest tile if no single die can show it (7 or more), otherwise the lowest."""
    above_die = max(actions) >> options_of(game).sides
    return (max_ if above_die else min_)(game, player, state, actions)


AGENTS: Mapping[str, Agent] = {
    "min": min_, "max": max_, "first": first, "last": last, "hilo": hilo, "hilo2": hilo2,
}  # fmt: skip


def agents(game: Game) -> Agents:
    """Return the agents, and the list of their choices."""
    return Agents(AGENTS, lambda state, actions: choices(game, state))


# --- groups of decisions -------------------------------------------------------------------------


@njit(GROUP_TYPE)
def group(board, state, actor, out, rest):
    """Return the group of a state, by the contract in `solver.game.groups`."""
    count = bits_in(state[OPEN])
    out[2], out[3] = count, roll_sum(state)
    return count * 2 + (1 if state[FACES] > 0 else 0)


def groups(game: Game) -> Groups:
    """Return the groups: the number of open tiles, and the kind of choice."""
    options = options_of(game)
    return Groups(
        columns=(
            Grouped("tiles open", [str(k) for k in range(options.tiles + 1)]),
            Grouped("to choose", ["how many dice", "which tiles"]),
        ),
        group=group,
        numbers=Numbers(np.zeros(1, np.int64), np.zeros(1)),
        axes=(
            Axis("tiles_open", "tiles open", 0, 1, options.tiles + 1),
            Axis("roll", "sum of the roll, 0 before it", 0, 1, options.dice * options.sides + 1),
        ),
    )
