"""A drawing of a state of Skunk or Pig: two scores on their tracks, the turn, the dice.

`RollNames` names the outcomes of rolls: ``a 1: the turn is lost``, ``7 points: 5 and 2, or 4 and
3``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Drawing
from luckbase.solver.game.game import Game
from luckbase.solver.games.skunk.rules import MINE, PLAYER, ROLL, TURN, YOURS, Options, race_options
from luckbase.solver.scene import CHANCE, GONE, GOOD, QUIET, UP, Box, Die, Scene, Shape, Words
from luckbase.solver.sentences import NUMBERS, many

WIDE, LEFT, RIGHT, TRACK, ROW = 640.0, 104.0, 52.0, 34.0, 74.0
"""In units: the width of the sheet, the margins left and right of a track, the height of a track,
the distance between tracks."""
DIE, TICKS = 44.0, 10  # the size of a die in units; the number of labelled parts of a track


@dataclass(frozen=True)
class RaceScene:
    """The contents of a drawing of a race."""

    banked: tuple[int, int]  # points of player 1 and player 2
    turn: int  # points in the turn of `player`
    player: int  # who acts, from 0
    end: int  # of the track
    goal: bool = True  # whether reaching the end wins
    rolls: int | None = None  # in the turn, if they are counted
    winner: int | None = None  # from 0
    over: bool = False


def drawing(game: Game) -> Drawing:
    """Return the drawing of a race's states and the names of its rolls."""
    options = race_options(game)
    return Drawing(partial(_draw, options), RollNames(options).in_race)


def _draw(options: Options, values: Ints) -> Scene:
    mine, yours, turn, player, *rolls = values.tolist()
    banked = (mine, yours) if player == 1 else (yours, mine)
    winner = None
    if mine + turn >= options.goal:
        winner = player - 1
    elif yours >= options.goal:
        winner = 2 - player
    race = RaceScene(
        banked, turn, player - 1, options.goal, True, rolls[0] if rolls else None, winner,
        winner is not None,
    )  # fmt: skip
    return draw(race, options.dice, options.sides)


def draw(
    race: RaceScene, dice: int, sides: int, above: tuple[Shape, ...] = (), top: float = 0
) -> Scene:
    """Draw the tracks and the dice below the shapes `above` them, which are `top` units high."""
    shapes: list[Shape] = list(above)
    for i in range(2):
        shapes += _track(race, i, top + 8 + i * ROW)
    y = top + 8 + 2 * ROW
    if not race.over:
        for i in range(dice):
            shapes.append(Die(LEFT + i * (DIE + 10), y, DIE, None, sides, CHANCE))
        dice_text = f"the turn: {race.turn}"
        shapes.append(
            Words(dice_text, LEFT + dice * (DIE + 10) + 12, y + DIE / 2, 22, "start", True)
        )
    title, about = _description(race)
    shapes.append(Words(title, WIDE - 8, y + DIE / 2, 17, "end"))
    return Scene(title, about, WIDE, y + DIE + 8, tuple(shapes))


def _track(race: RaceScene, player: int, y: float) -> Iterator[Shape]:
    acts, banked = player == race.player and not race.over, race.banked[player]
    width = WIDE - LEFT - RIGHT
    field = "mine" if player == race.player else "yours"
    name = f"player {player + 1}"
    role = UP if acts else GOOD if player == race.winner else ""
    does = "has won" if player == race.winner else "acts" if acts else "waits"
    yield Box("desk", 4, y, LEFT - 12, TRACK, (name,), role, 17, f"{name} {does}")
    labels = f"{name} has {banked}", field, str(banked)
    yield Box("track", LEFT, y, width, TRACK, (), QUIET, 16, *labels)
    reach, shown = width * min(banked / race.end, 1.0), f"{banked}"
    if banked:
        yield Box("bar", LEFT, y, reach, TRACK, (), "", 16, *labels)
    if player == race.player and race.turn:
        more = width * min((banked + race.turn) / race.end, 1.0) - reach
        labels = f"{many(race.turn, 'point')} of the turn, not banked", "turn", str(race.turn)
        yield Box("bar", LEFT + reach, y, more, TRACK, (), CHANCE, 16, *labels)
        shown += f" + {race.turn} = {banked + race.turn}"
    yield Words(shown, LEFT + 8, y + TRACK / 2, 20, "start", bold=True)
    for k in range(TICKS + 1):
        if race.end * k % TICKS == 0:
            x = LEFT + width * k / TICKS
            yield Words(str(race.end * k // TICKS), x, y + TRACK + 11, 12, role=QUIET)
    if race.goal:
        yield Words("wins", LEFT + width + 8, y + TRACK / 2, 15, "start")


def _description(race: RaceScene) -> tuple[str, str]:
    player_1, player_2 = race.banked
    if race.over:
        who = "a draw" if race.winner is None else f"player {race.winner + 1} has won"
        return who, f"Player 1 has {player_1}, player 2 has {player_2}: {who}."
    title = f"player {race.player + 1} has the dice"
    rolled = "" if race.rolls is None else f" in {many(race.rolls, 'roll')}"
    turn = (
        f"{many(race.turn, 'point')} in the turn{rolled}" if race.turn else "at the start of a turn"
    )
    goal = f" {race.end} wins." if race.goal else ""
    return (
        title,
        f"Player 1 has {player_1} banked, player 2 {player_2}. {title.capitalize()}, {turn}.{goal}",
    )


def rounds(count: int, now: int) -> tuple[tuple[Shape, ...], float]:
    """Return the shapes of `count` rounds while round `now` is played, and their height."""
    width = min(40.0, (WIDE - LEFT - 8) / count)
    shapes: list[Shape] = [Words("round", 8, 22, 17, "start")]
    for k in range(1, count + 1):
        role = UP if k == now else GONE if k < now else ""
        about = f"round {k}{' is played' if k == now else ' is over' if k < now else ''}"
        shapes.append(Box("plate", LEFT + (k - 1) * width, 6, width - 4, 32, (str(k),), role,
                          min(16.0, width * 0.5), about, "round", str(k)))  # fmt: skip
    return tuple(shapes), 48.0


MAX_LISTED = 3  # the most rolls that a name lists


class RollNames:
    """The names of the outcomes of rolls, under rule options."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.rolls: dict[tuple[bool, str, int], set[tuple[int, ...]]] = {}
        """(first roll of a turn, effect, points) -> the faces of such rolls, the highest first."""
        for first in (True, False):
            for faces, penalty, points in options.every_roll(first):
                same = self.rolls.setdefault((first, penalty, points), set())
                same.add(tuple(sorted(faces, reverse=True)))

    def in_race(self, state: Ints, action: int, children: Ints) -> list[str | None]:
        """Return the names of the states (n, fields) of a race that an action leads to."""
        if action != ROLL:
            return [None] * len(children)
        return [self._in_race(state.tolist(), child) for child in children.tolist()]

    def _in_race(self, state: list[int], child: list[int]) -> str:
        mine, turn = state[MINE], state[TURN]
        first, goal = turn == 0, self.options.goal
        if child[PLAYER] != state[PLAYER]:
            both = mine == 0  # then losing the score costs only the turn
            return self.lost(first, child[YOURS] != mine, both)
        if child[MINE] == goal:
            return self.at_least(first, goal - mine - turn) + ": the game is won"
        return self.points(first, child[TURN] - turn)

    def lost(self, first: bool, score: bool, both: bool = False) -> str:
        """Return the name of a roll that loses the turn, or the score; both: of either kind."""
        penalties = ("turn", "score") if both else ("score",) if score else ("turn",)
        rolls = [self.rolls.get((first, penalty, 0), ()) for penalty in penalties]
        fewest = min(faces.count(1) for same in rolls for faces in same)
        ones = "a 1" if fewest == 1 else f"{NUMBERS[self.options.dice]} 1s"
        return f"{ones}: the {'score' if score else 'turn'} is lost"

    def points(self, first: bool, points: int) -> str:
        """Return the name of the rolls that are worth this many points."""
        rolls = sorted(self.rolls[first, "points", points], reverse=True)
        if self.options.dice == 1 or len(rolls) > MAX_LISTED:
            return self._short(points)
        listed = ", or ".join(" and ".join(map(str, faces)) for faces in rolls)
        return f"{self._short(points)}: {listed}"

    def at_least(self, first: bool, points: int) -> str:
        """Return the name of the rolls that are worth at least this many points."""
        points_of_rolls = [p for f, penalty, p in self.rolls if (f, penalty) == (first, "points")]
        reaching = [p for p in points_of_rolls if p >= points]
        return self._short(min(reaching)) + " or more" * (len(reaching) > 1)

    def _short(self, points: int) -> str:
        if self.options.dice == 1 and self.options.count == "faces":
            return f"a {points}"
        return many(points, "point")
