"""A state of Skunk or Pig as the game looks: two scores on their tracks, the turn, the dice.

What a roll brings is said in words: ``a 1: the turn is lost``, ``7 points: 5 and 2, or 4 and 3``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Drawing
from luckbase.solver.game.game import Game
from luckbase.solver.games.skunk.game import MINE, PLAYER, ROLL, TURN, YOURS, Options, race_options
from luckbase.solver.scene import CHANCE, GONE, GOOD, QUIET, UP, Box, Die, Scene, Shape, Words
from luckbase.solver.sentences import NUMBERS, many

WIDE, LEFT, RIGHT, TRACK, ROW = 640.0, 104.0, 52.0, 34.0, 74.0
"""The sheet, what is left and right of a track, how high one is, from one to the next, in units."""
DIE, TICKS = 44.0, 10
"""A die in units; parts of a track that are numbered."""


@dataclass(frozen=True)
class RaceScene:
    """What is drawn of a race. banked: of player 1 and player 2; turn: the points of the turn of
    `player`, from 0; end: of the track; goal: whether that is what wins; rolls: of the turn, where
    they are counted; winner: from 0, None while nobody has won; over: the game is."""

    banked: tuple[int, int]
    turn: int
    player: int
    end: int
    goal: bool = True
    rolls: int | None = None
    winner: int | None = None
    over: bool = False


def drawing(game: Game) -> Drawing:
    """The states of a race, and what a roll brings in words."""
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
    """The tracks and the dice below what stands `above` them, which is `top` units high."""
    shapes: list[Shape] = list(above)
    for i in range(2):
        shapes += _track(race, i, top + 8 + i * ROW)
    y = top + 8 + 2 * ROW
    if not race.over:
        for i in range(dice):
            shapes.append(Die(LEFT + i * (DIE + 10), y, DIE, None, sides, CHANCE))
        said = f"the turn: {race.turn}"
        shapes.append(Words(said, LEFT + dice * (DIE + 10) + 12, y + DIE / 2, 22, "start", True))
    title, about = _said(race)
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


def _said(race: RaceScene) -> tuple[str, str]:
    one, two = race.banked
    if race.over:
        who = "a draw" if race.winner is None else f"player {race.winner + 1} has won"
        return who, f"Player 1 has {one}, player 2 has {two}: {who}."
    title = f"player {race.player + 1} has the dice"
    rolled = "" if race.rolls is None else f" in {many(race.rolls, 'roll')}"
    turn = (
        f"{many(race.turn, 'point')} in the turn{rolled}" if race.turn else "at the start of a turn"
    )
    goal = f" {race.end} wins." if race.goal else ""
    return title, f"Player 1 has {one} banked, player 2 {two}. {title.capitalize()}, {turn}.{goal}"


def rounds(count: int, now: int) -> tuple[tuple[Shape, ...], float]:
    """The rounds of a game of `count`, the `now`-th being played, and how high that is."""
    width = min(40.0, (WIDE - LEFT - 8) / count)
    shapes: list[Shape] = [Words("round", 8, 22, 17, "start")]
    for k in range(1, count + 1):
        role = UP if k == now else GONE if k < now else ""
        about = f"round {k}{' is played' if k == now else ' is over' if k < now else ''}"
        shapes.append(Box("plate", LEFT + (k - 1) * width, 6, width - 4, 32, (str(k),), role,
                          min(16.0, width * 0.5), about, "round", str(k)))  # fmt: skip
    return tuple(shapes), 48.0


MAX_LISTED = 3
"""Rolls that a name lists."""


class RollNames:
    """The names of what rolls bring, under rule options."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.rolls: dict[tuple[bool, str, int], set[tuple[int, ...]]] = {}
        """(first of a turn, what it does, points) -> the faces of such rolls, the highest first."""
        for first in (True, False):
            for faces, penalty, points in options.every_roll(first):
                same = self.rolls.setdefault((first, penalty, points), set())
                same.add(tuple(sorted(faces, reverse=True)))

    def in_race(self, state: Ints, action: int, children: Ints) -> list[str | None]:
        """What each state (n, fields) of a race is called that an action leads to."""
        if action != ROLL:
            return [None] * len(children)
        return [self._in_race(state.tolist(), child) for child in children.tolist()]

    def _in_race(self, state: list[int], child: list[int]) -> str:
        mine, turn = state[MINE], state[TURN]
        first, goal = turn == 0, self.options.goal
        if child[PLAYER] != state[PLAYER]:
            both = mine == 0  # then the loss of the score takes nothing
            return self.lost(first, child[YOURS] != mine, both)
        if child[MINE] == goal:
            return self.at_least(first, goal - mine - turn) + ": the game is won"
        return self.points(first, child[TURN] - turn)

    def lost(self, first: bool, score: bool, both: bool = False) -> str:
        """What a roll is called that loses the turn, or the score too; both: either."""
        penalties = ("turn", "score") if both else ("score",) if score else ("turn",)
        rolls = [self.rolls.get((first, penalty, 0), ()) for penalty in penalties]
        fewest = min(faces.count(1) for same in rolls for faces in same)
        ones = "a 1" if fewest == 1 else f"{NUMBERS[self.options.dice]} 1s"
        return f"{ones}: the {'score' if score else 'turn'} is lost"

    def points(self, first: bool, points: int) -> str:
        """What the rolls are called that are worth so many points."""
        rolls = sorted(self.rolls[first, "points", points], reverse=True)
        if self.options.dice == 1 or len(rolls) > MAX_LISTED:
            return self._short(points)
        listed = ", or ".join(" and ".join(map(str, faces)) for faces in rolls)
        return f"{self._short(points)}: {listed}"

    def at_least(self, first: bool, points: int) -> str:
        """What the rolls are called that are worth so many points or more."""
        points_of_rolls = [p for f, penalty, p in self.rolls if (f, penalty) == (first, "points")]
        reaching = [p for p in points_of_rolls if p >= points]
        return self._short(min(reaching)) + " or more" * (len(reaching) > 1)

    def _short(self, points: int) -> str:
        if self.options.dice == 1 and self.options.count == "faces":
            return f"a {points}"
        return many(points, "point")
