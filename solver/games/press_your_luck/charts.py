"""The charts of Press Your Luck, for `solver.charts`.

``leads`` shows the lead from which to pass, over the rival's score, by spins left. ``decide`` shows
play or pass over both scores. The fixed parts can be chosen (`setting`).

Scores above the cap count as the cap, so near it a lead is worth less than on the show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts import (
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
    outline,
    words_in,
)
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck.rules import board_of, spoken
from luckbase.solver.games.press_your_luck.setting import (
    Choice,
    Setting,
    choices,
    settings,
    usual_score,
)
from luckbase.solver.sentences import NUMBERS

SPINS = ChartField("spins", "Spins left in all, as 1 or 1,2 or 1-3.")
SPIN = ChartField("spins", "Spins left in all (default: 1).")
OWN = ChartField("own", "Dollars of the player who is up.")
RIVAL = ChartField("rival", "Dollars of the rival, the last of the opponents.")
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
        values = np.concatenate([setting.over(scores, scores) for setting in chosen])
        passing = choose(values).passing.reshape(len(chosen), len(scores), -1)
        ends: Floats = np.append(scores, np.nan)[last_run(passing)] - scores
        outdone = np.array([setting.outdone(scores) for setting in chosen])
        ends[outdone] = np.nan
        curves = tuple(
            Curve(difference(setting, chosen), difference(setting, chosen, column=True), line)
            for setting, line in zip(chosen, ends, strict=True)
        )
        # The title uses the usual score of the rival, or the least higher one that is not blank;
        # the lowest scores are blank.
        usual = min(usual_score(self.game), int(scores[-1]))
        titled = []
        for setting, line, blank in zip(chosen, ends, outdone.sum(axis=1), strict=True):
            index = max(int(np.searchsorted(scores, usual)), blank)
            if index < len(scores):
                titled.append((setting.spins, float(line[index])))
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


def _parts(where: Setting) -> dict[str, tuple[str, str]]:
    """Return the parts of a setting: (for people, as a column)."""
    third = [where.scores[i] for i in where.beside]
    whammies = ",".join(map(str, where.whammies))
    of_others = [(where.earned[i], where.passed[i]) for i in where.others]
    return {
        "up": (f"player {where.up + 1} up", f"up_{where.up + 1}"),
        "spins": (f"{spin_count(where.spins)} left", f"spins_{where.spins}"),
        "third": (
            "".join(f"third has {score:,}" for score in third),
            "".join(f"third_{score}" for score in third),
        ),
        "whammies": (f"whammies {whammies}", f"whammies_{whammies.replace(',', '_')}"),
        "held": (f"the others hold {of_others}", f"held_{of_others}"),
    }


def difference(where: Setting, cases: Sequence[Setting], column: bool = False) -> str:
    """Return the parts of a setting that differ among several, or the spins left.

    column: whether to return it as a column's name.
    """
    parts, all_parts = _parts(where), [_parts(case) for case in cases]
    apart = [name for name in parts if len({case[name] for case in all_parts}) > 1] or ["spins"]
    return ("_" if column else ", ").join(parts[name][column] for name in apart)
