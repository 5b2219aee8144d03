"""The setting of a chart of Press Your Luck: who is up, the others' holdings, and play or pass.

The player up holds earned spins, and no player before them holds any. A chart is over their score
and the rival's. The rest can be chosen, by the columns of a table::

    up=2 spins=1 third=0 whammies_3=3 earned_3=1

``up`` is the player up (2 by default). ``spins`` is the number of spins left in all; the player up
has the spins that the others do not hold. ``third`` is the dollars of the opponent other than the
last; you can also write ``scores_1=6000``, or a full field, ``whammies=0,0,3``. A player is out
with the maximum of whammies, ``whammies_1=4``.

The **rival** is the opponent who has more: they get the spins. A **lead** is the score of the
player up minus the rival's.

A player at the cap has no choice, so a chart is over scores below it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts import ChartRequest, Lookup
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck.rules import (
    PLAY,
    board_of,
    by_field,
    is_pass,
    player_up,
    spoken,
)
from luckbase.solver.search.bellman import evaluate
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import many, nearest, setting

MAX_SETTINGS = 500  # the most settings of one chart; more than a person can read
WORDS = ("up", "spins", "own", "rival", "third")


@dataclass(frozen=True)
class Setting:
    """A state in which the player up has a choice, except for their score; players from 0."""

    scores: tuple[int, ...]  # dollars
    earned: tuple[int, ...]
    passed: tuple[int, ...]
    whammies: tuple[int, ...]
    up: int
    last: int  # the opponent whose score is called ``rival``
    out: int  # the number of whammies that put a player out

    @property
    def spins(self) -> int:
        return sum(self.earned + self.passed)

    @property
    def others(self) -> tuple[int, ...]:
        """The opponents, the next in turn order first."""
        players = len(self.scores)
        return tuple((self.up + step) % players for step in range(1, players))

    @property
    def beside(self) -> tuple[int, ...]:
        """The opponents other than `last`."""
        return tuple(i for i in self.others if i != self.last)

    def is_in(self, player: int) -> bool:
        return self.whammies[player] < self.out

    def outdone(self, rival: Ints) -> NDArray[np.bool_]:
        """Return whether another opponent is in and has more than these scores of `last`, (n,).

        Then they get the spins.
        """
        return max((self.scores[i] for i in self.beside if self.is_in(i)), default=-1) > rival

    def over(self, rival: Ints, own: Ints) -> Ints:
        """Return values (rivals * owns, 4 players) with every score of `last` and of the player up.

        The scores of the player up vary fastest.
        """
        state = [*self.scores, *self.earned, *self.passed, *self.whammies]
        values = np.tile(np.array(state, np.int64), (len(rival) * len(own), 1))
        values[:, self.last] = np.repeat(rival, len(own))
        values[:, self.up] = np.tile(own, len(rival))
        return values


class Choice(NamedTuple):
    """Play or pass at n states."""

    play: Floats
    """(n,): the payoff to the player up after playing, NaN if they may not play."""
    passed: Floats  # (n,): the same after passing
    passing: NDArray[np.bool_]  # (n,): whether passing is best


def choices(game: Game, lookup: Lookup, request: ChartRequest, values: Ints) -> Choice:
    """Return play or pass at states in people's units (n, 4 players), by one step of the rules.

    Beyond the frontier the best actions that the table stores are used; their payoffs are NaN.

    lookup: payoffs of the children. Raises StateError for an invalid state.
    """
    no_offer = game.field_count - values.shape[1]
    states = game.canonical_states(np.pad(values, ((0, 0), (0, no_offer))))
    play, passed = np.full((2, len(states)), np.nan)
    passing = np.zeros(len(states), bool)
    _, earned, passed_on, _ = by_field(values)
    stored = (earned + passed_on).sum(axis=1) > board_of(game).solve.frontier
    if request.best is not None and stored.any():
        passing[stored] = [is_pass(str(name)) for name in request.best(states[stored])]
        states = states[~stored]
    else:
        stored[:] = False
    if len(states):
        edges = expand(game, states)
        q, at = evaluate(edges, lookup(edges.children)), np.flatnonzero(~stored)
        of_actor, plays = q.of_actors(edges.actors), q.actions == PLAY
        play[at[q.states[plays]]] = of_actor[plays]
        np.fmax.at(passed, at[q.states[~plays]], of_actor[~plays])
        tolerance = max(game.tie_tolerance, 2 * request.error)
        passing[at] = (passed[at] - play[at] > tolerance) | np.isnan(play[at])
    return Choice(play, passed, passing)


# --- settings ------------------------------------------------------------------------------------


def settings(
    game: Game, fields: Mapping[str, str], spins: Sequence[int] | None = None
) -> list[Setting]:
    """Return the settings that fields describe, the first field slowest. Raises StateError.

    spins: the numbers of spins of a chart that allows several values of each field; None for a
        chart of one setting.
    """
    columns = _columns(game, fields)
    up = columns.pop("up", [2])
    if not set(up) <= {*range(1, game.players + 1)}:
        raise StateError(f"up: {max(up)} is not a player; {spoken(game.players, 'or')}")
    counts = columns.pop("spins", list(spins or [1]))
    for name, listed in {"up": up, "spins": counts, **columns}.items():
        if len(listed) > 1 and spins is None:
            raise StateError(f"{name}: this chart is of one value; write {name}={listed[0]}")
    if "spins" not in fields and spins is not None:  # skip counts that leave the player up none
        of_others = sum(
            min(listed) for name, listed in columns.items() if name.startswith(("earned", "passed"))
        )
        counts = [n for n in counts if n > of_others] or counts[-1:]
    cases = list(product(up, counts, *columns.values()))
    if len(cases) > MAX_SETTINGS:
        raise StateError(f"{len(cases)} settings in one chart; expected at most {MAX_SETTINGS}")
    return [
        _setting(game, who - 1, n, dict(zip(columns, values, strict=True)))
        for who, n, *values in cases
    ]


def _columns(game: Game, fields: Mapping[str, str]) -> dict[str, list[int]]:
    """Return column -> the chosen numbers; whole fields by column."""
    columns: dict[str, list[int]] = {}
    for name, text in fields.items():
        parts = [column for column in game.columns if column.rpartition("_")[0] == name]
        chosen = WORDS[: 2 + game.players]
        if not parts and name not in (*game.columns, *chosen):
            known = (*chosen, *game.columns, *game.fields.names)
            raise StateError(f"unknown field '{name}'; {nearest(name, known)}")
        numbers = _numbers(name, text)
        if not parts:
            columns[name] = numbers
        elif len(numbers) != len(parts):
            raise StateError(
                f"{name}: '{text[:30]}' has {many(len(numbers), 'value')}, not {len(parts)}"
            )
        else:
            columns |= {column: [number] for column, number in zip(parts, numbers, strict=True)}
    return columns


def _numbers(name: str, text: str) -> list[int]:
    """Return the numbers of ``1,2,5`` or ``1-12``. Raises StateError."""
    numbers: list[int] = []
    for part in text.replace("$", "").replace(" ", "").split(","):
        ends = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if not ends:
            raise StateError(
                f"{name}: '{text[:30]}' is not a number or several, as in {name}=1,2 or {name}=1-3"
            )
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if last - first >= MAX_SETTINGS:
            raise StateError(f"{name}: {part} are too many; expected at most {MAX_SETTINGS}")
        numbers += range(first, last + 1)
    return numbers


def _setting(game: Game, up: int, spins: int, columns: Mapping[str, int]) -> Setting:
    """Return a setting. Raises StateError unless the player up has a choice."""
    limit, most = board_of(game).rules.max_whammies, board_of(game).depth
    others = [i for i in reversed(range(game.players)) if i != up]
    last, *inside = sorted(others, key=lambda i: columns.get(f"whammies_{i + 1}") == limit)
    words = {"own": f"scores_{up + 1}", "rival": f"scores_{last + 1}"}
    if inside:
        words["third"] = f"scores_{inside[0] + 1}"
    state = _state(game, words, columns)
    of_others = sum(n for name, n in state.items() if name.startswith(("earned", "passed")))
    if of_others >= spins:
        raise StateError(
            f"spins: {spins} in all, and the others hold {of_others}; player {up + 1} needs one"
        )
    state[f"earned_{up + 1}"] = spins - of_others
    values = np.array([*state.values()])
    scores, earned, passed, whammies = (tuple(column.tolist()) for column in by_field(values))
    parsed = Setting(scores, earned, passed, whammies, up, last, limit)
    if whammies[up] == limit:
        raise StateError(f"up: player {up + 1} is out")
    if not any(map(parsed.is_in, parsed.others)):
        raise StateError("whammies: every opponent is out, and the game is over")
    first = int(player_up(game.canonical_states(values)[0]))
    if first != up:
        raise StateError(f"up: player {first + 1} holds a spin and is up before player {up + 1}")
    if spins > most:
        raise StateError(
            f"spins: {spins} in all, and the table covers {most}; solve with "
            f"{setting('frontier', spins)}"
        )
    return parsed


def _state(game: Game, words: Mapping[str, str], columns: Mapping[str, int]) -> dict[str, int]:
    """Return the columns of a state except the spins of the player up: chosen, or the defaults.

    words: the columns of the scores. Raises StateError for a column that cannot be chosen, or that
        is chosen twice.
    """
    player = words["own"].removeprefix("scores_")
    why = {
        f"earned_{player}": f"player {player} is up, and has what the others leave of spins=",
        f"passed_{player}": f"player {player} is up, and who must spin has no choice",
    }
    for word, over in (
        ("own", f"player {player} is up, and this chart is over their score"),
        ("rival", "this chart is over the rival's score"),
    ):
        why |= dict.fromkeys((word, words[word]), over)
    state = dict.fromkeys(game.columns, 0)
    state[words["rival"]] = usual_score(game)
    for name, number in columns.items():
        if name in why:
            raise StateError(f"{name}: {why[name]}; leave it out")
        column = words.get(name, name)
        if column != name and column in columns:
            raise StateError(f"{name}: is the same as {column}, which is given too; leave one out")
        state[column] = number
    return state


def usual_score(game: Game) -> int:
    """Return the rival's score in titles, in dollars on the board's grid: 6000 of 20000."""
    solve = board_of(game).solve
    return round(0.3 * solve.score_cap / solve.score_unit) * solve.score_unit
