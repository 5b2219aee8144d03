"""The charts of Press Your Luck, for `solver.charts`, and the setting of a chart.

``leads`` shows the lead from which to pass, over the rival's score, by spins left. ``decide`` shows
play or pass over both scores. The player up holds earned spins, and no player before them holds
any. Everything except the two scores can be chosen, by the columns of a table::

    up=2 spins=1 third=0 whammies_3=3 earned_3=1

``up`` is the player up (2 by default). ``spins`` is the number of spins left in all; the player up
has the spins that the others do not hold. ``third`` is the dollars of the opponent other than the
last; you can also write ``scores_1=6000``, or a full field, ``whammies=0,0,3``. A player is out
with the maximum of whammies, ``whammies_1=4``.

The **rival** is the opponent who has more: they get the spins. A **lead** is the score of the
player up minus the rival's. A player at the cap has no choice, so a chart is over scores below it.
Scores above the cap count as the cap, so near it a lead is worth less than on the show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts import (
    MOST_NUMBERS,
    Band,
    Chart,
    ChartField,
    ChartRequest,
    Curve,
    Curves,
    Heatmap,
    Kind,
    Lookup,
    Search,
    Words,
    last_run,
    numbers_in,
    outline,
    words_in,
)
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts
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
from luckbase.solver.sentences import NUMBERS, nearest, setting

SPINS = ChartField("spins", "Spins left in all, as 1 or 1,2 or 1-3.")
SPIN = ChartField("spins", "Spins left in all (default: 1).")
THIRD = ChartField("third", "Dollars of the other opponent (default: 0).")


def kinds_of(players: int) -> tuple[Kind, ...]:
    """Return the charts for this number of players."""
    up = ChartField("up", f"The player who is up: {spoken(players, 'or')} (default: 2).")
    others = [THIRD] if players == 3 else []
    whammies = ChartField(
        "whammies",
        f"Whammies of each player, as {','.join('0' * (players - 1))},3 (default: none).",
    )
    common = (*others, whammies)
    return (
        Kind(
            "leads", "the lead from which to pass, over the rival's score", picture=True,
            takes=(up, SPINS, *common),
            reading="A lead is the player's score minus the rival's. There is a curve for each "
            "number of spins left: pass on the curve and above it, play below.",
        ),
        Kind(
            "decide", "play or pass over both scores, and the chance to win", picture=True,
            takes=(up, SPIN, *common),
            reading="The colour is the chance to win. Play on one side of the line; pass on the "
            "other.",
        ),
    )  # fmt: skip


def searches_of(players: int) -> tuple[Search, ...]:
    """Return rows that are worth looking for, for this number of players."""
    up, to = (1, 2) if players == 2 else (2, 3)
    others = [to, *(i for i in range(1, players + 1) if i not in (up, to))]
    ahead = " ".join(f"scores_{up}>scores_{i}" for i in others)
    return (
        Search(
            "passing is best although the player is behind",
            f"to_act={up} best='pass to {to}' scores_{up}<scores_{to}",
        ),
        Search(
            "playing is best although the player is ahead, with one spin",
            f"to_act={up} best=play spins=1 {ahead}",
        ),
        Search("player 1 has three whammies and plays on", "to_act=1 whammies_1=3 best=play"),
    )


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
        """Return whether another opponent gets the spins, with more than these scores of `last`."""
        return max((self.scores[i] for i in self.beside if self.is_in(i)), default=-1) > rival

    def over(self, rival: Ints, own: Ints) -> Ints:
        """Return values (rivals * owns, 4 players) with every score of `last` and, varying fastest,
        of the player up."""
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


Choose = Callable[[Ints], Choice]  # `choices` of a chart's game and table


class LuckCharts(Charts):
    def __init__(self, game: Game) -> None:
        board = board_of(game)
        self.kinds, self.searches = kinds_of(game.players), searches_of(game.players)
        self.game, self.solve, self.board = game, board.solve, board.name
        self.every = range(1, board.depth + 1)  # all numbers of spins that a table covers
        self.scores = np.arange(0, self.solve.score_cap, self.solve.score_unit, dtype=np.int64)
        """The scores below the cap."""

    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Chart:
        choose = partial(choices, self.game, lookup, request)
        return (self._leads if name == "leads" else self._decide)(choose, request)

    def _leads(self, choose: Choose, request: ChartRequest) -> Curves:
        chosen, scores = settings(self.game, request.fields, self.every), self.scores
        values = np.concatenate([case.over(scores, scores) for case in chosen])
        passing = choose(values).passing.reshape(len(chosen), len(scores), -1)
        ends: Floats = np.append(scores, np.nan)[last_run(passing)] - scores
        outdone = np.array([case.outdone(scores) for case in chosen])
        ends[outdone] = np.nan
        curves = tuple(map(Curve, *zip(*labels(chosen), strict=True), ends))
        # The title uses the usual score of the rival, or the least higher one that is not blank;
        # the lowest scores are blank.
        usual = min(usual_score(self.game), int(scores[-1]))
        titled = []
        for case, line, blank in zip(chosen, ends, outdone.sum(axis=1), strict=True):
            index = max(int(np.searchsorted(scores, usual)), blank)
            if index < len(scores):
                titled.append((case.spins, float(line[index])))
        limits = _from_zero(ends)
        return Curves(
            pass_from_title(titled, f"Here {who_has_less(chosen)} everywhere"),
            f"{self.board}; {setting_words(chosen[0])}; scores count up to "
            f"{self.solve.score_cap:,}" + why_blank(chosen, outdone),
            "rival_score", scores, curves, "score of the rival, who gets the spins (dollars)",
            "pass from this lead on (dollars)", self._outdone_band(outdone),
            _beside_curves(ends, scores, limits), limits,
        )  # fmt: skip

    def _outdone_band(self, outdone: NDArray[np.bool_]) -> tuple[Band, ...]:
        """Return the band of scores at which the third has more than the rival, in any curve."""
        blank = int(outdone.sum(axis=1).max())
        if not blank:
            return ()
        last = float(self.scores[blank - 1]) + self.solve.score_unit / 2
        return (Band(0.0, last, "the third has\nmore, and gets\nthe spins"),)

    def _decide(self, choose: Choose, request: ChartRequest) -> Heatmap:
        (where,) = settings(self.game, request.fields)
        xs, ys = self.scores, np.append(self.scores, self.solve.score_cap)
        if len(xs) < 2:
            raise OptionError(
                f"the picture 'decide' needs two scores below the cap; this table has "
                f"{len(xs)}: score_cap={self.solve.score_cap}, score_unit={self.solve.score_unit}"
            )
        choice, outdone = choose(where.over(ys, xs)), where.outdone(ys)
        best, passing = (
            np.ascontiguousarray(part.reshape(len(ys), len(xs)).T)
            for part in (np.fmax(choice.play, choice.passed), choice.passing)
        )
        colour, limits = "my chance to win (probability)", self.game.payoff_range
        if np.isnan(best).all():  # best actions without payoffs
            best, colour, limits = passing.astype(np.float64), "1: pass, 0: play", (0.0, 1.0)
        middle = ~outdone & (ys >= 0.15 * ys[-1]) & (ys <= 0.6 * ys[-1])
        leads: Floats = np.append(xs, np.nan)[last_run(passing.T)] - ys
        blank = np.tile(outdone, (len(xs), 1))
        line = outline("play or pass", passing, xs, ys, ~blank)
        ahead = xs[:, None] > ys[None, :]
        regions = {"play": ~passing, "pass ahead": passing & ahead, "pass behind": passing & ~ahead}
        names = ("scores", "earned", "passed", "whammies")
        return Heatmap(
            decide_title(where, leads[middle if middle.any() else ~outdone]),
            f"{self.board}; {setting_words(where)}"
            + why_blank([where], outdone[None]),
            (f"scores_{where.up + 1}", f"scores_{where.last + 1}", "value"), xs, ys, best,
            f"my score: player {where.up + 1} (dollars)",
            f"score of player {where.last + 1} (dollars)", colour,
            blank if blank.any() else None, limits,
            lines=() if line is None else (line,),
            words=words_in({name: cells & ~blank for name, cells in regions.items()}, xs, ys),
            rest={name: ",".join(map(str, getattr(where, name))) for name in names},
        )  # fmt: skip


def _from_zero(numbers: Floats) -> tuple[float, float] | None:
    """Return limits of an axis with 0 on it and room above; None if there are no numbers."""
    known = numbers[~np.isnan(numbers)]
    return (min(0.0, known.min()), 1.05 * known.max()) if len(known) and known.max() > 0 else None


def _beside_curves(
    ends: Floats, scores: Ints, limits: tuple[float, float] | None
) -> tuple[Words, ...]:
    """Return the words "pass" above all curves and "play" below them, with room on the picture."""
    if limits is None:
        return ()
    ys = np.linspace(*limits, 40).astype(np.int64)
    above = np.logical_and.reduce(ys > ends[..., None])
    below = np.logical_and.reduce(ys < ends[..., None])
    return words_in({"pass": above, "play": below}, scores, ys)


# --- words ---------------------------------------------------------------------------------------


def spin_count(count: int) -> str:
    """Return ``one spin`` or ``7 spins``."""
    number = NUMBERS[count] if count < 7 else str(count)
    return f"{number} spin{'s' * (count != 1)}"


def labels(cases: Sequence[Setting]) -> Iterator[tuple[str, str]]:
    """Yield the label and the column name of each curve: what differs among the settings, or else
    the spins left."""
    parts = [list(_parts(case)) for case in cases]
    differs = [len({*each}) > 1 for each in zip(*parts, strict=True)]
    for of_case in parts:
        kept = [*compress(of_case, differs)] or of_case[1:2]
        yield ", ".join(text for text, _ in kept), "_".join(name for _, name in kept)


def _parts(case: Setting) -> Iterator[tuple[str, str]]:
    """Yield the parts of a setting: (for people, as a column)."""
    yield f"player {case.up + 1} up", f"up_{case.up + 1}"
    yield f"{spin_count(case.spins)} left", f"spins_{case.spins}"
    third = [case.scores[i] for i in case.beside]
    yield "".join(f"third has {n:,}" for n in third), "".join(f"third_{n}" for n in third)
    whammies = ",".join(map(str, case.whammies))
    yield f"whammies {whammies}", f"whammies_{whammies.replace(',', '_')}"
    held = [(case.earned[i], case.passed[i]) for i in case.others]
    yield f"the others hold {held}", f"held_{held}"


# --- titles --------------------------------------------------------------------------------------


def pass_from_title(ends: Sequence[tuple[int, float]], gone: str) -> str:
    """Return the title for (spins left, lead from which to pass, or NaN); gone: for no `ends`."""
    if not ends:
        return gone
    known = {count: end for count, end in reversed(ends) if not math.isnan(end)}
    if not known:
        return "Never pass while playing is allowed"
    first, *more = sorted(known)[:3]
    parts = [f"${known[first]:,.0f} ahead with {spin_count(first)}"]
    parts += [f"${known[count]:,.0f} with {spin_count(count).split()[0]}" for count in more]
    return f"Pass from {', '.join(parts)}"


def decide_title(where: Setting, leads: Floats) -> str:
    """Return the title for the leads from which to pass (NaN for never), over the middle scores."""
    known = leads[~np.isnan(leads)]
    spins_left = f"{spin_count(where.spins).capitalize()} left"
    if not len(known):
        return f"{spins_left}: play"
    least_lead, most_lead = known.min(), known.max()
    to = "" if least_lead == most_lead else f" to {most_lead:,.0f}"
    return f"{spins_left}: pass from ${least_lead:,.0f}{to} ahead"


# --- settings ------------------------------------------------------------------------------------


def choices(game: Game, lookup: Lookup, request: ChartRequest, values: Ints) -> Choice:
    """Return play or pass at states in people's units (n, 4 players), by one step of the rules, or
    beyond the frontier by the stored best actions. Raises StateError for an invalid state."""
    states = _states(game, values)
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


def settings(
    game: Game, fields: Mapping[str, str], spins: Sequence[int] | None = None
) -> list[Setting]:
    """Return the settings that fields describe, by `up`, `spins` and the others. Raises StateError.

    spins: the numbers of spins of a chart that allows several values of a word or column; None for
        a chart of one setting.
    """
    chosen = ("up", "spins", "third")[: game.players]
    words: dict[str, Sequence[Any]] = {"up": [2], "spins": spins or [1]}
    for name, text in fields.items():
        if name not in (known := (*chosen, *game.columns, *game.fields.names)):
            raise StateError(f"unknown field '{name}'; {nearest(name, known)}")
        words[name] = numbers_in(name, text) if name in (*chosen, *game.columns) else [text]
        if len(words[name]) > 1 and spins is None:
            raise StateError(f"{name}: this chart is of one value; write {name}={words[name][0]}")
    if (total := math.prod(map(len, words.values()))) > MOST_NUMBERS:
        raise StateError(f"{total} settings in one chart; expected at most {MOST_NUMBERS}")
    cases = []
    for up, count, *values in product(*words.values()):
        if up not in range(1, game.players + 1):
            raise StateError(f"up: {up} is not a player; {spoken(game.players, 'or')}")
        others = _without_spins(game, up - 1, dict(zip([*words][2:], values, strict=True)))
        # Skip counts that leave the player up none.
        if "spins" in fields or count > others.spins or count == words["spins"][-1]:
            cases.append(_with_spins(game, others, count))
    return cases


def _without_spins(game: Game, up: int, words: Mapping[str, Any]) -> Setting:
    """Return a setting in which the player up has no spins yet: of the words given, and the
    defaults of the others. Raises StateError."""
    limit = board_of(game).rules.max_whammies
    zeros = {column: 0 for column in game.columns if column.rpartition("_")[0] not in words}
    given = {name: value for name, value in words.items() if name != "third"}
    values = game.fields.read({**zeros, **given})
    scores, _, _, whammies = by_field(values)
    others = [i for i in reversed(range(game.players)) if i != up]
    last, *inside = sorted(others, key=lambda i: bool(whammies[i] == limit))
    own = {f"scores_{up + 1}", f"scores_{last + 1}", f"earned_{up + 1}", f"passed_{up + 1}"}
    for name in given:
        if own & {name, *(column for column in game.columns if column.startswith(f"{name}_"))}:
            raise StateError(
                f"{name}: the chart sets the score and the spins of player {up + 1}, who is up, "
                "and the score of the rival; leave it out"
            )
    if "third" in words:
        if (column := f"scores_{inside[0] + 1}") in given:
            raise StateError(f"third: is the same as {column}, which is given too; leave one out")
        scores[inside[0]] = words["third"]
    scores[last] = usual_score(game)
    scores_, earned, passed, out = (tuple(column.tolist()) for column in by_field(values))
    return Setting(scores_, earned, passed, out, up, last, limit)


def _with_spins(game: Game, others: Setting, spins: int) -> Setting:
    """Return a setting with this number of spins in all. Raises StateError unless the player up has
    a choice."""
    up, held, most = others.up, others.spins, board_of(game).depth
    if held >= spins:
        raise StateError(
            f"spins: {spins} in all, and the others hold {held}; player {up + 1} needs one"
        )
    where = replace(
        others, earned=(*others.earned[:up], spins - held, *others.earned[up + 1 :])
    )  # fmt: skip
    if not where.is_in(up):
        raise StateError(f"up: player {up + 1} is out")
    if not any(map(where.is_in, where.others)):
        raise StateError("whammies: every opponent is out, and the game is over")
    own, rival = (np.array([where.scores[i]]) for i in (up, where.last))
    first = int(player_up(_states(game, where.over(rival, own))[0]))
    if first != up:
        raise StateError(f"up: player {first + 1} holds a spin and is up before player {up + 1}")
    if spins > most:
        raise StateError(
            f"spins: {spins} in all, and the table covers {most}; solve with "
            f"{setting('frontier', spins)}"
        )
    return where


def _states(game: Game, values: Ints) -> Ints:
    """Return the canonical states of values (n, 4 players), without an offer."""
    return game.canonical_states(np.pad(values, ((0, 0), (0, game.field_count - values.shape[1]))))


def usual_score(game: Game) -> int:
    """Return the rival's score in titles, in dollars on the board's grid: 6000 of 20000."""
    solve = board_of(game).solve
    return round(0.3 * solve.score_cap / solve.score_unit) * solve.score_unit


def setting_words(where: Setting) -> str:
    """Return who is up, and the holdings of the opponents except the score of the last one."""
    parts = [f"player {where.up + 1} up"]
    for player in (where.last, *where.beside):
        if not where.is_in(player):
            parts.append(f"player {player + 1} is out")
        elif player != where.last:
            parts.append(f"player {player + 1} has {where.scores[player]:,}")
        count = where.earned[player] + where.passed[player]
        if count:
            parts.append(f"player {player + 1} holds {spin_count(count)}")
    if any(where.whammies):
        parts.append(f"whammies {','.join(map(str, where.whammies))}")
    return ", ".join(parts)


def why_blank(cases: Sequence[Setting], blank: NDArray[np.bool_]) -> str:
    """Return why scores are blank: another opponent has more. blank: bool (settings, scores)."""
    return f"; blank where {who_has_less(cases)}, who then gets the spins" if blank.any() else ""


def who_has_less(cases: Sequence[Setting]) -> str:
    """Return ``player 3 has less than player 1``: the opponent who gets no spins."""
    who = {(case.last, case.beside) for case in cases}
    if len(who) > 1:
        return "the rival has less than the third"
    ((last, others),) = who
    return f"player {last + 1} has less than player {' or '.join(str(i + 1) for i in others)}"
