"""The setting of a chart of Press Your Luck: who is up, what the others have; play or pass there.

The player up holds earned spins and nobody before them holds any; their score, or how many spins
they have, is what a chart varies. The rest may be chosen, in the words of a table's columns::

    up=2 spins=1 rival=6000 third=0 whammies_3=3 earned_3=1

``up`` is who is up (2 unless chosen), ``spins`` how many spins are left in all: those that the
others do not hold are theirs. ``rival`` and ``third`` are the dollars of the last and of the other
opponent, ``own`` those of the player up; ``scores_3=6000`` does as well, or a whole field,
``whammies=0,0,3``. One who is out has as many whammies as put a player out, ``whammies_1=4``.

The **rival** is the opponent who has more: they get the spins. A **lead** is the score of the
player up less the rival's.

At what lead to pass: `leads_of` looks at every score of the player up below the cap, where they may
still choose, and says from which lead on they pass (`Lead.pass_from`), from which they play
(`Lead.play_from`), and at which leads below that they pass too: far behind they would rather have
the rival spin and whammy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts import Lookup
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck import rules
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard
from luckbase.solver.search.bellman import evaluate
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import many, nearest, setting

MAX_SETTINGS = 500
"""Settings of one chart; more than a person reads."""
RIVAL_SHARE = 0.3
"""Of the cap, that the rival has unless it is chosen: 6000 of 20000 dollars."""


@dataclass(frozen=True)
class Setting:
    """A state in which the player up has a choice, but for their score.

    values: its twelve numbers in people's units (dollars). up: who is up, from 0. last: the
    opponent whose score is called ``rival``, from 0. out: the whammies that put a player out.
    """

    values: tuple[int, ...]
    up: int
    last: int
    out: int

    @property
    def spins(self) -> int:
        """Spins left in all."""
        return sum(self.values[rules.EARNED : rules.WHAMMIES])

    @property
    def rival(self) -> int:
        """The opponent who gets the spins, from 0: they are in and have more, or else come next."""
        return max(self.others, key=lambda i: (self.is_in(i), self.score(i)))

    @property
    def third(self) -> int:
        """The other opponent, from 0."""
        return rules.PLAYERS - self.up - self.rival

    @property
    def outdone(self) -> bool:
        """Whether the opponent beside `last` is in and has more, so that they get the spins."""
        other = rules.PLAYERS - self.up - self.last
        return self.is_in(other) and self.score(other) > self.score(self.last)

    @property
    def others(self) -> tuple[int, int]:
        """The opponents, from 0, the next in turn order first."""
        return (self.up + 1) % rules.PLAYERS, (self.up + 2) % rules.PLAYERS

    @property
    def whammies(self) -> tuple[int, ...]:
        """Of every player."""
        return self.values[rules.WHAMMIES :]

    def score(self, player: int) -> int:
        """Dollars of a player, from 0."""
        return self.values[rules.SCORE + player]

    def spins_of(self, player: int) -> tuple[int, int]:
        """Earned and passed spins of a player, from 0."""
        return self.values[rules.EARNED + player], self.values[rules.PASSED + player]

    def is_in(self, player: int) -> bool:
        """Whether a player, from 0, is still in."""
        return self.whammies[player] < self.out

    def with_scores(self, player: int, dollars: Ints) -> Ints:
        """Values (n, 12): this setting with each of n scores of a player, from 0."""
        values = np.tile(np.array(self.values, np.int64), (len(dollars), 1))
        values[:, rules.SCORE + player] = dollars
        return values

    def in_words(self, game: Game) -> dict[str, str]:
        """The state as fields, as text."""
        found = {}
        for each in game.fields:
            numbers = [self.values[game.columns.index(name)] for name in each.columns]
            found[each.name] = ",".join(map(str, numbers))
        return found

    def over_rival(self, dollars: Ints) -> list[Setting]:
        """This setting with each of n scores of the last opponent."""
        every = self.with_scores(self.last, dollars).tolist()
        return [replace(self, values=tuple(values)) for values in every]


@dataclass(frozen=True, eq=False)
class Choice:
    """Play or pass at n states: the chance of the player up to win after each, NaN where they may
    not; float64 (n,). passing: bool (n,), whether passing is best. unsure: whether that hangs on
    less than the tolerance."""

    play: Floats
    passed: Floats
    passing: NDArray[np.bool_]
    unsure: NDArray[np.bool_]

    @property
    def free(self) -> NDArray[np.bool_]:
        """(n,) whether there is a choice."""
        return ~np.isnan(self.play) & ~np.isnan(self.passed)

    @property
    def best(self) -> Floats:
        """Their chance to win, (n,)."""
        return np.fmax(self.play, self.passed)


def choices(game: Game, lookup: Lookup, values: Ints, error: float) -> Choice:
    """Play or pass at states in people's units (n, 12), one step ahead of what `lookup` gives.

    error: the bound on each payoff. Raises StateError for what is no state.
    """
    states = game.canonical_states(values)
    edges = expand(game, states)
    q = evaluate(edges, lookup(edges.children))
    own = q.values[np.arange(len(q.states)), edges.actors[q.states]]
    play, passed = np.full((2, len(states)), np.nan)
    plays = q.actions == rules.PLAY
    play[q.states[plays]] = own[plays]
    np.fmax.at(passed, q.states[~plays], own[~plays])
    tolerance = max(game.tie_tolerance, 2 * error)
    both = ~np.isnan(play) & ~np.isnan(passed)
    gain = np.where(both, passed, 0.0) - np.where(both, play, 0.0)
    passing = np.where(both, gain > tolerance, np.isnan(play))
    return Choice(play, passed, passing, both & (np.abs(gain) <= tolerance))


# --- what is asked -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SettingDefaults:
    """What a chart varies, and what it takes where nothing is chosen.

    varies: what is not a person's to choose: ``own``, ``rival``, the scores. spins: unless
    chosen. several: of which column the chart takes several values, as in ``spins=1,2``; ``all``,
    or of none. own, rival: shares of the cap that they have,
    unless chosen; the third has nothing. beyond: whether there may be more spins than a full table
    covers.
    """

    varies: frozenset[str] = frozenset()
    spins: tuple[int, ...] = (1,)
    several: str = ""
    own: float = 0.0
    rival: float = RIVAL_SHARE
    beyond: bool = False


def settings(game: Game, fields: Mapping[str, str], defaults: SettingDefaults) -> list[Setting]:
    """The settings that fields ask for, the first field slowest. Raises StateError."""
    columns = _columns(game, fields)
    up = columns.pop("up", [2])
    if not set(up) <= {1, 2, 3}:
        raise StateError(f"up: {max(up)} is not a player; 1, 2 or 3")
    spins = columns.pop("spins", list(defaults.spins))
    names = list(columns)
    for name, each in {"up": up, "spins": spins, **columns}.items():
        if len(each) > 1 and defaults.several not in (name, "all") and name in (*fields, *names):
            raise StateError(f"{name}: this chart is of one value; write {name}={each[0]}")
    if "spins" not in fields and defaults.several:  # as many as the others leave them one of
        spent = [name for name in names if name.startswith(("earned", "passed"))]
        of_others = sum(min(columns[name]) for name in spent)
        spins = [left for left in spins if left > of_others] or spins[-1:]
    every = list(product(up, spins, *columns.values()))
    if len(every) > MAX_SETTINGS:
        raise StateError(f"{len(every)} settings in one chart; the most is {MAX_SETTINGS}")
    return [
        _setting(game, who - 1, left, dict(zip(names, values, strict=True)), defaults)
        for who, left, *values in every
    ]


WORDS = ("up", "spins", "own", "rival", "third")


def _columns(game: Game, fields: Mapping[str, str]) -> dict[str, list[int]]:
    """Column -> the numbers that are asked for; whole fields by column."""
    columns: dict[str, list[int]] = {}
    for name, text in fields.items():
        parts = [column for column in game.columns if column.rpartition("_")[0] == name]
        if not parts and name not in (*game.columns, *WORDS):
            known = (*WORDS, *game.columns, *game.fields.names)
            raise StateError(f"unknown field '{name}'; {nearest(name, known)}")
        numbers = read_numbers(name, text)
        if not parts:
            columns[name] = numbers
        elif len(numbers) != len(parts):
            raise StateError(
                f"{name}: '{text[:30]}' has {many(len(numbers), 'value')}, not {len(parts)}"
            )
        else:
            columns |= {column: [number] for column, number in zip(parts, numbers, strict=True)}
    return columns


def read_numbers(name: str, text: str) -> list[int]:
    """Numbers as ``1,2,5`` or ``1-12``. Raises StateError."""
    found: list[int] = []
    for part in text.replace("$", "").replace(" ", "").split(","):
        ends = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if not ends:
            raise StateError(
                f"{name}: '{text[:30]}' is not a number or several, as in {name}=1,2 or {name}=1-3"
            )
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if last - first >= MAX_SETTINGS:
            raise StateError(f"{name}: {part} are too many; the most is {MAX_SETTINGS}")
        found += range(first, last + 1)
    return found


def _setting(
    game: Game, up: int, spins: int, columns: Mapping[str, int], defaults: SettingDefaults
) -> Setting:
    assert isinstance(game.board, PressYourLuckBoard)
    most = game.board.rules.max_whammies
    rival = _rival(up, columns, most)
    _refuse_varied(up, rival, columns, defaults)
    state = dict.fromkeys(game.columns, 0) | _scores(game, up, rival, columns, defaults)
    values = [state[name] for name in game.columns]
    if "own" in defaults.varies:
        values[rules.SCORE + up] = 0
    of_others = sum(values[rules.EARNED : rules.WHAMMIES])
    if of_others >= spins:
        raise StateError(
            f"spins: {spins} in all, and the others hold {of_others}; player {up + 1} needs one"
        )
    values[rules.EARNED + up] = spins - of_others
    _check(game, values, up, most)
    if not defaults.beyond:
        _check_frontier(values, game.board.solve.frontier)
    return Setting(tuple(values), up, rival, most)


def _rival(up: int, columns: Mapping[str, int], most: int) -> int:
    """The last opponent, from 0, or the other one where they are out."""
    rival = max(i for i in range(rules.PLAYERS) if i != up)
    gone = columns.get(f"whammies_{rival + 1}") == most
    return rules.PLAYERS - up - rival if gone else rival


def _refuse_varied(
    up: int, rival: int, columns: Mapping[str, int], defaults: SettingDefaults
) -> None:
    """Raises StateError for a column that is not a person's to choose."""
    why = {
        f"earned_{up + 1}": f"player {up + 1} is up, and has what the others leave of spins=",
        f"passed_{up + 1}": f"player {up + 1} is up, and who must spin has no choice",
    }
    if "own" in defaults.varies:
        over = f"player {up + 1} is up, and this chart is over their score"
        why |= {"own": over, f"scores_{up + 1}": over}
    if "rival" in defaults.varies:
        why |= dict.fromkeys(
            ("rival", f"scores_{rival + 1}"), "this chart is over the rival's score"
        )
    for name in columns:
        if name in why:
            raise StateError(f"{name}: {why[name]}; leave it out")


def _scores(
    game: Game, up: int, rival: int, columns: Mapping[str, int], defaults: SettingDefaults
) -> dict[str, int]:
    """The columns that are chosen, with the scores that are not."""
    chosen = dict(columns)
    third = rules.PLAYERS - up - rival
    scores = {
        f"scores_{up + 1}": share_of_cap(game, defaults.own),
        f"scores_{rival + 1}": share_of_cap(game, defaults.rival),
    }
    for word, player in (("own", up), ("rival", rival), ("third", third)):
        if word in chosen:
            name = f"scores_{player + 1}"
            if name in columns:
                raise StateError(f"{word}: that is {name}, which stands there too; leave one out")
            scores[name] = chosen.pop(word)
    return scores | chosen


def share_of_cap(game: Game, share: float) -> int:
    """Dollars on the board's grid."""
    assert isinstance(game.board, PressYourLuckBoard)
    solve = game.board.solve
    return round(share * solve.score_cap / solve.score_unit) * solve.score_unit


def _check(game: Game, values: Sequence[int], up: int, most: int) -> None:
    """Raises StateError for what is no state in which player `up` has a choice."""
    assert isinstance(game.board, PressYourLuckBoard)
    if values[rules.WHAMMIES + up] == most:
        raise StateError(f"up: player {up + 1} is out")
    if sum(w < most for w in values[rules.WHAMMIES :]) < 2:
        raise StateError("whammies: both opponents are out, and the game is over")
    (state,) = game.canonical_states(np.array([values]))
    first = int(rules.player_up(state))
    if first != up:
        raise StateError(f"up: player {first + 1} holds a spin and is up before player {up + 1}")


def _check_frontier(values: Sequence[int], frontier: int) -> None:
    """Raises StateError for more spins than a full table covers."""
    spins = sum(values[rules.EARNED : rules.WHAMMIES])
    if spins > frontier:
        raise StateError(
            f"spins: {spins} in all, and the table covers {frontier}; solve with "
            f"{setting('frontier', spins)}"
        )


@dataclass(frozen=True, eq=False)
class Lead:
    """Play or pass by lead. leads: int64 (n,), dollars ahead of the rival, every score below the
    cap. choice: arrays (n,)."""

    setting: Setting
    leads: Ints
    choice: Choice

    @property
    def pass_from(self) -> int | None:
        """The least lead from which on passing is always best; None where there is none."""
        at = _last_run(self.choice.passing)
        return None if at == len(self.leads) else int(self.leads[at])

    @property
    def play_from(self) -> int | None:
        """The least lead from which on, up to `pass_from`, playing is always best; None where that
        is nowhere."""
        end = _last_run(self.choice.passing)
        at = _last_run(~self.choice.passing[:end])
        return None if at == end else int(self.leads[at])

    @property
    def passes(self) -> list[tuple[int, int]]:
        """All leads at which passing is best, as (first, last)."""
        edges = np.flatnonzero(np.diff(np.pad(self.choice.passing.astype(np.int8), 1)))
        return [
            (int(self.leads[first]), int(self.leads[stop - 1]))
            for first, stop in zip(edges[::2], edges[1::2], strict=True)
        ]

    def at(self, lead: int | None) -> tuple[float, float] | None:
        """(play, pass) at a lead; None where there is no such."""
        if lead is None:
            return None
        x = int(np.flatnonzero(self.leads == lead)[0])
        return float(self.choice.play[x]), float(self.choice.passed[x])


def leads_of(game: Game, lookup: Lookup, settings: list[Setting], error: float) -> list[Lead]:
    """Play or pass by lead in each setting; all are looked up at once."""
    assert isinstance(game.board, PressYourLuckBoard)
    solve = game.board.solve
    scores = np.arange(0, solve.score_cap, solve.score_unit, dtype=np.int64)
    values = np.concatenate([each.with_scores(each.up, scores) for each in settings])
    found, n = choices(game, lookup, values, error), len(scores)
    return [
        Lead(each, scores - each.score(each.rival), _part(found, slice(i * n, i * n + n)))
        for i, each in enumerate(settings)
    ]


def _part(choice: Choice, at: slice) -> Choice:
    return Choice(choice.play[at], choice.passed[at], choice.passing[at], choice.unsure[at])


def _last_run(yes: NDArray[np.bool_]) -> int:
    """Where the run of True begins that lasts to the end; the length where the last is False."""
    no = np.flatnonzero(~yes)
    return int(no[-1]) + 1 if len(no) else 0
