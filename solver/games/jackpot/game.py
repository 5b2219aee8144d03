"""Jackpot and Shut the Box bound to a board: its rules.

The fields are `open`, the tiles still to be flipped, and `dice`, the faces rolled in the order of
the dice; there is no `dice` before the roll::

    open=1,2,3,9 dice=3,4
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    Agents,
    Charts,
    ClosedForms,
    Drawing,
    Level,
    SearchHints,
)
from luckbase.solver.game.fields import Field, Refuse, members, set_field
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups
from luckbase.solver.game.rules import Numbers, Rules
from luckbase.solver.games.jackpot import rules
from luckbase.solver.games.jackpot.board import JackpotBoard
from luckbase.solver.games.jackpot.board import Rules as Options
from luckbase.solver.games.jackpot.rules import FACES, OPEN, roll_sum
from luckbase.solver.njit import njit
from luckbase.solver.search.expand import expand

HERE = __package__


def jackpot(board: JackpotBoard) -> Rules:
    """The rules of Jackpot, or of Shut the Box, on a board."""
    options = board.rules
    numbers = Numbers(*rules.numbers(options))
    left = options.objective == "sum"
    return Rules(
        fields=[
            set_field("open", options.tiles),
            Field(
                "dice",
                length=options.dice,
                low=1,
                high=options.sides,
                default=0,
                blank=0,
                as_list=True,
            ),
        ],
        players=1,
        transition=rules.transition,
        numbers=numbers,
        max_edges=rules.most_edges(options, numbers.ints),
        actions=action_name,
        start={"open": tuple(range(1, options.tiles + 1))},
        canonical=partial(canonical, options, numbers.ints),
        payoff_range=(-float(options.tiles * (options.tiles + 1) // 2), 0.0)
        if left
        else (0.0, 1.0),
        payoff_name="minus the tiles left" if left else "chance to shut all",
        capabilities={
            Agents: f"{HERE}.agents:own",
            Charts: f"{HERE}.charts:TileCharts",
            ClosedForms: f"{HERE}.agents:Fractions",
            SearchHints: SearchHints(Level({"open": 1})),
            Groups: groups,
            Drawing: f"{HERE}.charts:drawing",
        },
    )


def outcome_names(options: Options, state: Ints, action: int, after: Ints) -> list[str | None]:
    """What people call the rolls after a state: ``6 and 1``; ``a total of 7`` where only that
    counts. What is flipped has no other name than the action."""
    if state[rules.FACES :].any():
        return [None] * len(after)
    alone = options.dice == 1 or action == rules.ROLL  # one die
    named: list[str | None] = []
    for faces in after[:, rules.FACES :].tolist():
        rolled = [str(face) for face in faces if face]
        if options.allowed == "sum" and not alone:
            named.append(f"a total of {sum(faces)}")
        else:
            named.append(" and ".join(rolled) if len(rolled) > 1 else f"a {rolled[0]}")
    return named


def options_of(game: Game) -> Options:
    """The board's rule options."""
    assert isinstance(game.board, JackpotBoard)
    return game.board.rules


def before_roll(game: Game, open_tiles: int) -> Ints:
    """The state with these tiles open, as bits, before the roll."""
    found = np.zeros(game.field_count, np.int64)
    found[rules.OPEN] = open_tiles
    return found


def positions(game: Game) -> Ints:
    """Every set of tiles before the roll, all of them open first."""
    every = (1 << options_of(game).tiles) - 1
    return np.array([before_roll(game, tiles) for tiles in range(every, -1, -1)])


def choices(game: Game, state: Ints) -> list[int]:
    """What an agent is asked to choose from: the actions of a state in the order of the dice.

    After a roll of Jackpot that is first die, second die, their sum, as far as those tiles are
    open, doubles twice; the transition holds the same tiles in the same order, each once. Empty
    where the game is over.
    """
    if not state[rules.FACES :].any():
        found = expand(game, state.reshape(1, -1)).actions.tolist()
        return [action for action in dict.fromkeys(found) if action >= 0]
    listed = np.empty(game.max_edges, np.int64)
    count = rules.choices(game.numbers.ints, np.ascontiguousarray(state), listed)
    return [int(tiles) for tiles in listed[:count]]


def action_name(action: int) -> str:
    """``roll 2 dice``, ``flip 1+6``."""
    if action >= rules.ROLL:
        return f"roll {_dice(action // rules.ROLL)}"
    return "flip " + "+".join(map(str, members(action)))


def canonical(options: Options, ints: Ints, states: Ints, refuse: Refuse) -> Ints:
    """Canonical states: where only the sum of the dice counts, the dice are the sum."""
    tiles, faces = states[:, rules.OPEN], states[:, rules.FACES :]
    rolled: Ints = (faces != 0).sum(axis=1)
    gap = (faces != 0) & (np.cumsum(faces == 0, axis=1) > 0)
    refuse(gap.any(axis=1), lambda x: "dice: a 0 stands before a face; write the faces first")
    refuse(
        (tiles == 0) & (rolled > 0),
        lambda x: "dice: no tile is open and the game is over; leave dice out",
    )
    fine = (rolled == 0) | _may_be_rolled(options, rolled, tiles)
    refuse(~fine, lambda x: _wrong_count(options, int(rolled[x]), int(tiles[x])))
    rules.merge_sums(ints, states)
    return states


def _may_be_rolled(options: Options, rolled: Ints, tiles: Ints) -> NDArray[np.bool_]:
    """(n,) whether so many dice can have been rolled with these tiles open."""
    one_here = np.logical_and(tiles >> options.sides == 0, options.one_die != "never")
    all_here = ~np.logical_and(one_here, options.one_die == "must")
    fine: NDArray[np.bool_] = ((rolled == options.dice) & all_here) | ((rolled == 1) & one_here)
    return fine


def _wrong_count(options: Options, rolled: int, tiles: int) -> str:
    """Why so many dice can not have been rolled with these tiles open, one sentence."""
    sides, high = options.sides, members(tiles >> options.sides << options.sides)
    if options.one_die == "must" and not high:
        return f"dice: no tile above {sides} is open, so one die is rolled; write one face"
    if options.one_die != "never" and rolled == 1:
        rule = f"one die is rolled only when no tile above {sides} is open"
        return f"dice: {rule}, and {high[-1]} is; write {options.dice} faces"
    return f"dice: {_dice(rolled)} given, and this board rolls {_dice(options.dice)}"


def _dice(count: int) -> str:
    return "1 die" if count == 1 else f"{count} dice"


@njit(GROUP_TYPE, cache=True, nogil=True)
def group(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """The group of a state, by the contract in `solver.game.groups`."""
    tiles, count = state[OPEN], 0
    while tiles > 0:
        count += tiles & 1
        tiles >>= 1
    out[2], out[3] = count, roll_sum(state)
    return count * 2 + (1 if state[FACES] > 0 else 0)


def groups(game: Game) -> Groups:
    """What people group its decisions by: how many tiles are open, and what is chosen."""
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
