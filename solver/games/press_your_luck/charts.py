"""The charts of Press Your Luck, as `solver.charts` has them.

``lead`` says at what lead to pass, by spins left; ``leads`` the same over the rival's score.
``decide`` is play or pass over both scores, ``by-lead`` and ``by-spins`` are both chances over the
lead and over the spins left. What is fixed in each may be chosen (`setting`).

A score at the cap counts as no more than the cap, so near it a lead is worth less than on the show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts import (
    DECIMALS,
    STATES,
    Band,
    Chart,
    ChartField,
    ChartRequest,
    Curve,
    Curves,
    Heatmap,
    Kind,
    Listing,
    Lookup,
    Search,
    aligned,
    outline,
    words_in,
)
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard
from luckbase.solver.games.press_your_luck.game import spoken
from luckbase.solver.games.press_your_luck.setting import (
    RIVAL_SHARE,
    Choice,
    Choose,
    Lead,
    Setting,
    SettingDefaults,
    choices,
    leads_of,
    settings,
    share_of_cap,
    stored_choices,
)
from luckbase.solver.scene import listed
from luckbase.solver.sentences import NUMBERS, many

SPINS = ChartField("spins", "Spins left in all, as 1 or 1,2 or 1-3.")
SPIN = ChartField("spins", "Spins left in all. One if you do not say.")
OWN = ChartField("own", "Dollars of the player who is up.")
RIVAL = ChartField("rival", "Dollars of the rival, the last of the opponents.")
THIRD = ChartField("third", "Dollars of the other opponent. 0 by default.")


def kinds_of(players: int) -> tuple[Kind, ...]:
    """The charts of so many players."""
    up = ChartField(
        "up", f"The player who is up: {spoken(players, 'or')}. Player 2 if you do not say."
    )
    others = [THIRD] if players == 3 else []
    whammies = ChartField(
        "whammies",
        f"Whammies of each player, as {','.join('0' * (players - 1))},3. None if you do not say.",
    )
    common = (*others, whammies)
    return (
        Kind(
            "lead", "at what lead to pass, by spins left", decisions=True,
            takes=(up, SPINS, RIVAL, *common),
            reading="A lead is one's own score less the rival's: pass from +3,000 means, pass when "
            "$3,000 or more ahead.",
        ),
        Kind(
            "leads", "at what lead to pass, over the rival's score", picture=True, decisions=True,
            takes=(up, SPINS, *common),
            reading="One curve for each number of spins left: pass on the curve and above it, play "
            "below.",
        ),
        Kind(
            "decide", "play or pass over both scores, and the chance to win", picture=True,
            decisions=True, takes=(up, SPIN, *common),
            reading="The colour is the chance to win; on one side of the line one plays, on the "
            "other one passes.",
        ),
        Kind(
            "by-lead", "the chance to win by playing and by passing, over the lead", picture=True,
            takes=(up, SPIN, RIVAL, *common),
            reading="The higher curve is the better choice; where the curves cross the decision "
            "turns.",
        ),
        Kind(
            "by-spins", "the same over the spins left", picture=True, needs=STATES,
            takes=(up, OWN, RIVAL, *common),
            reading="The higher curve is the better choice with so many spins, at the scores that "
            "the chart names.",
        ),
    )  # fmt: skip


def searches_of(players: int) -> tuple[Search, ...]:
    """Rows that are worth looking for, of so many players."""
    up, to = (1, 2) if players == 2 else (2, 3)
    others = [to, *(i for i in range(1, players + 1) if i not in (up, to))]
    ahead = " ".join(f"scores_{up}>scores_{i}" for i in others)
    return (
        Search(
            "passing is best though behind",
            f"to_act={up} best='pass to {to}' scores_{up}<scores_{to}",
        ),
        Search(
            "playing is best though ahead, with one spin",
            f"to_act={up} best=play spins=1 {ahead}",
        ),
        Search("the one up has three whammies and plays on", "to_act=1 whammies_1=3 best=play"),
    )


LEAD_COLUMNS = (
    "up", "spins", "rival", "rival_score", "third_score", "whammies",
    "pass_from", "play_from", "passes", "play_there", "pass_there", "unsure",
)  # fmt: skip
EXPERIMENT = 12
"""Spins of ``by-spins``, as far as the table holds them."""
WIDEST = 0.25
"""Of the cap: the leads of ``by-lead``, 5000 of 20000 dollars either way."""
PROBABILITY, MONEY = "my chance to win (probability)", "my expected dollars"


class LuckCharts(Charts):
    """The charts of a board (module docstring)."""

    def __init__(self, game: Game) -> None:
        assert isinstance(game.board, PressYourLuckBoard)
        self.kinds, self.searches = kinds_of(game.players), searches_of(game.players)
        self.game, self.solve, self.board = game, game.board.solve, game.board.name
        self.payoff = PROBABILITY
        if not game.pays_chances:
            self.payoff, words = MONEY, ("chance to win", "expected dollars")
            self.kinds = tuple(
                replace(
                    kind, shows=kind.shows.replace(*words), reading=kind.reading.replace(*words)
                )
                for kind in self.kinds
            )
        self.every = tuple(range(1, self.solve.frontier + 1))
        """All numbers of spins that the table covers."""
        self.scores = np.arange(0, self.solve.score_cap, self.solve.score_unit, dtype=np.int64)
        """Below the cap."""

    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Chart:
        how: dict[str, Callable[[Choose, ChartRequest], Chart]]
        how = {"lead": self._lead, "leads": self._leads, "decide": self._decide,
               "by-lead": self._by_lead, "by-spins": self._by_spins}  # fmt: skip
        choose: Choose = partial(choices, self.game, lookup, request.error)
        if request.best is not None:
            choose = partial(stored_choices, self.game, request.best)
        return how[name](choose, request)

    def _settings(self, request: ChartRequest, *varies: str, **defaults: Any) -> list[Setting]:
        chosen = SettingDefaults(frozenset(varies), **defaults)
        return settings(self.game, request.fields, chosen)

    def _lead(self, choose: Choose, request: ChartRequest) -> Listing:
        chosen = self._settings(request, "own", spins=self.every, several="all")
        leads = leads_of(self.game, choose, chosen)
        unsure = sum(int(lead.choice.unsure.sum()) for lead in leads)
        note = "a lead is one's own score less the rival's, who gets the spins; in between, play"
        if unsure:
            note += f"; too close to call, so that play is said: {many(unsure, 'lead')}"
        columns = tuple(
            name for name in LEAD_COLUMNS if self.game.players == 3 or name != "third_score"
        )
        return Listing(lead_lines(leads), columns, tuple(map(_lead_row, leads)), note)

    def _leads(self, choose: Choose, request: ChartRequest) -> Curves:
        chosen = self._settings(request, "own", "rival", spins=self.every, several="all")
        scores = self.scores
        by_score = [setting.over_rival(scores) for setting in chosen]
        leads = leads_of(self.game, choose, [x for line in by_score for x in line])
        ends = np.array([np.nan if x.pass_from is None else x.pass_from for x in leads])
        ends = ends.reshape(len(chosen), -1)
        outdone = np.array([[setting.outdone for setting in line] for line in by_score])
        ends[outdone] = np.nan
        curves = tuple(
            Curve(difference(setting, chosen), difference(setting, chosen, column=True), line)
            for setting, line in zip(chosen, ends, strict=True)
        )
        # The title is of the usual score of the rival, or the least above that is not blank: blank
        # are the lowest scores.
        usual = min(share_of_cap(self.game, RIVAL_SHARE), int(scores[-1]))
        titled = []
        for setting, line, blank in zip(chosen, ends, outdone.sum(axis=1), strict=True):
            at = max(int(np.searchsorted(scores, usual)), blank)
            if at < len(scores):
                titled.append((setting.spins, float(line[at])))
        return Curves(
            pass_from_title(titled, f"Here {who_has_less(chosen)} everywhere"),
            f"{self.board}; {setting_words(chosen[0], rival=False)}; scores count up to "
            f"{self.solve.score_cap:,}" + why_blank(chosen, outdone),
            "rival_score", scores, curves, "score of the rival, who gets the spins (dollars)",
            "pass from this lead on (dollars)", self._outdone_band(outdone),
            limits=_from_zero(ends),
        )  # fmt: skip

    def _outdone_band(self, outdone: NDArray[np.bool_]) -> tuple[Band, ...]:
        """Where the other opponent has more than the rival, of any curve (curves, scores)."""
        blank = int(outdone.sum(axis=1).max())
        if not blank:
            return ()
        last = float(self.scores[blank - 1]) + self.solve.score_unit / 2
        return (Band(0.0, last, "the third has\nmore, and gets\nthe spins"),)

    def _decide(self, choose: Choose, request: ChartRequest) -> Heatmap:
        (where,) = self._settings(request, "own", "rival")
        xs, ys = self.scores, np.append(self.scores, self.solve.score_cap)
        if len(xs) < 2:
            raise OptionError(
                f"the picture 'decide' needs two scores below the cap; this table has "
                f"{len(xs)}: score_cap={self.solve.score_cap}, score_unit={self.solve.score_unit}"
            )
        over = where.over_rival(ys)
        outdone = np.array([setting.outdone for setting in over])
        values = np.concatenate([setting.with_scores(where.up, xs) for setting in over])
        choice = choose(values)
        best, passing = (
            np.ascontiguousarray(part.reshape(len(ys), len(xs)).T)
            for part in (np.fmax(choice.play, choice.passed), choice.passing)
        )
        colour, limits = self.payoff, self.game.payoff_range
        if request.best is not None:  # decisions alone
            best, colour, limits = passing.astype(np.float64), "1: pass, 0: play", (0.0, 1.0)
        shown = ys[~outdone]
        middle = shown[(shown >= 0.15 * ys[-1]) & (shown <= 0.6 * ys[-1])]
        middle = where.over_rival(middle if len(middle) else shown)
        leads = [x.pass_from for x in leads_of(self.game, choose, middle)]
        blank = np.tile(outdone, (len(xs), 1))
        line = outline("play or pass", passing, xs, ys, ~blank)
        ahead = xs[:, None] > ys[None, :]
        regions = {"play": ~passing, "pass ahead": passing & ahead, "pass behind": passing & ~ahead}
        return Heatmap(
            decide_title(where, leads),
            f"{self.board}; {setting_words(where, rival=False)}"
            + why_blank([where], outdone[None]),
            (f"scores_{where.up + 1}", f"scores_{where.last + 1}", "value"), xs, ys, best,
            f"my score: player {where.up + 1} (dollars)",
            f"score of player {where.last + 1} (dollars)", colour,
            blank if blank.any() else None, limits,
            lines=() if line is None else (line,),
            words=words_in({name: at & ~blank for name, at in regions.items()}, xs, ys),
            rest=where.in_words(),
        )  # fmt: skip

    def _by_lead(self, choose: Choose, request: ChartRequest) -> Curves:
        (where,) = self._settings(request, "own")
        (lead,) = leads_of(self.game, choose, [where])
        near = np.abs(lead.leads) <= share_of_cap(self.game, WIDEST)
        leads, half = lead.leads[near], self.solve.score_unit / 2
        first, last = float(leads[0]), float(leads[-1])
        return Curves(
            f"{spin_count(where.spins).capitalize()}: {by_lead_title(lead)}",
            f"{self.board}; {setting_words(where)}",
            "lead", leads, both(lead.choice.play[near], lead.choice.passed[near]),
            f"my lead over player {where.rival + 1} (dollars)", self.payoff,
            tuple(
                Band(max(a - half, first), min(b + half, last), "pass")
                for a, b in lead.passes
                if a - half < last and b + half > first
            ),
        )  # fmt: skip

    def _by_spins(self, choose: Choose, request: ChartRequest) -> Curves:
        all_spins = tuple(range(1, EXPERIMENT + 1))
        chosen = self._settings(
            request, spins=all_spins, several="spins", own=0.4, rival=0.15, beyond=True
        )
        choice, in_table = self._choices_there(choose, chosen)
        spins = np.array([setting.spins for setting in chosen])
        last = int(np.flatnonzero(in_table)[-1]) + 1
        known, where = spins[in_table], chosen[0]
        gaps = "" if in_table.all() else f"; {runs(spins[~in_table])} spins: not in this table"
        free = ~np.isnan(choice.play) & ~np.isnan(choice.passed)
        return Curves(
            by_spins_title(known, choice.passing[in_table], bool(free.any())),
            f"{self.board}; {setting_words(where)}, I have {where.scores[where.up]:,}{gaps}",
            "spins", spins[:last], both(choice.play[:last], choice.passed[:last]),
            "spins left, all of them mine", self.payoff, self._beyond(known, spins[last:]),
        )  # fmt: skip

    def _choices_there(
        self, choose: Choose, cases: list[Setting]
    ) -> tuple[Choice, NDArray[np.bool_]]:
        """The choice in each setting, and of which the table holds what it takes: the others are
        NaN. Raises MissingTableError where it holds none."""
        results: list[Choice] = []
        missing: list[MissingTableError] = []
        in_table = np.ones(len(cases), bool)
        for i, setting in enumerate(cases):
            alone = setting.with_scores(setting.up, np.array([setting.scores[setting.up]]))
            try:
                results.append(choose(alone))
            except MissingTableError as why:
                missing.append(why)
                in_table[i] = False
                results.append(Choice(*np.full((2, 1), np.nan), *np.zeros((2, 1), bool)))
        if not in_table.any():
            raise missing[0]
        return Choice(*map(np.concatenate, zip(*results, strict=True))), in_table

    def _beyond(self, known: Ints, left: Ints) -> tuple[Band, ...]:
        """The first number of spins that a full table does not reach, and how it would."""
        frontier = self.solve.frontier
        if frontier + 1 not in left or known[-1] != frontier:
            return ()
        text = f"beyond this\ntable: set\nfrontier={frontier + 1}"
        return (Band(frontier + 0.5, frontier + 1.5, text),)


def _from_zero(numbers: Floats) -> tuple[float, float] | None:
    """Limits of an axis with 0 on it and room above; None where there is no number."""
    known = numbers[~np.isnan(numbers)]
    return (min(0.0, known.min()), 1.05 * known.max()) if len(known) and known.max() > 0 else None


def both(play: Floats, passed: Floats) -> tuple[Curve, ...]:
    """The curves of playing and passing."""
    return Curve("play", "play", play), Curve("pass", "pass", passed)


# --- words ---------------------------------------------------------------------------------------


def spin_count(count: int) -> str:
    """``one spin``, ``7 spins``."""
    number = NUMBERS[count] if count < 7 else str(count)
    return f"{number} spin{'s' * (count != 1)}"


def runs(numbers: Ints) -> str:
    """``1, 3 to 5`` of ascending numbers."""
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return listed([
        f"{part[0]}" if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts
    ])  # fmt: skip


def _runs_of_spins(counts: Ints) -> str:
    return f"{runs(counts)} spin{'s' * (counts.tolist() != [1])}"


# --- titles --------------------------------------------------------------------------------------


def pass_from_title(ends: Sequence[tuple[int, float]], gone: str) -> str:
    """Of (spins left, the lead from which to pass, NaN for none); gone: where there is no end."""
    if not ends:
        return gone
    known = {count: end for count, end in reversed(ends) if not math.isnan(end)}
    if not known:
        return "Never pass while playing is allowed"
    first, *more = sorted(known)[:3]
    said = [f"${known[first]:,.0f} ahead with {spin_count(first)}"]
    said += [f"${known[count]:,.0f} with {spin_count(count).split()[0]}" for count in more]
    return f"Pass from {', '.join(said)}"


def decide_title(where: Setting, leads: Sequence[int | None]) -> str:
    """Of the leads from which to pass, over the rival's scores in the middle."""
    known = [lead for lead in leads if lead is not None]
    left = f"{spin_count(where.spins).capitalize()} left"
    if not known:
        return f"{left}: play"
    least_lead, most_lead = min(known), max(known)
    to = "" if least_lead == most_lead else f" to {most_lead:,}"
    return f"{left}: pass from ${least_lead:,}{to} ahead"


def by_lead_title(lead: Lead) -> str:
    """From where to where to play, in words."""
    if lead.pass_from is None:
        return "play"
    if lead.play_from is None:
        return "pass"
    last = lead.pass_from - int(lead.leads[1] - lead.leads[0])
    if any(end < lead.play_from for _, end in lead.passes):
        side = "behind" if lead.play_from < 0 else "ahead"
        return f"play from ${abs(lead.play_from):,} {side} to ${last:,} ahead"
    return f"play up to ${last:,} ahead"


def by_spins_title(counts: Ints, passing: NDArray[np.bool_], free: bool) -> str:
    """With how many spins to pass and to play; free: whether a player may do either with any, as
    they may not at the cap or in third place."""
    both_ways = passing.any() and not passing.all()
    if free and both_ways:
        return f"Pass {runs(counts[passing])}, play {_runs_of_spins(counts[~passing])}"
    only = "do as they do" if both_ways else "pass" if passing.any() else "play"
    said = only.capitalize() if free else f"No choice: they must {only}"
    return f"{said}, with {_runs_of_spins(counts)}"


# --- settings ------------------------------------------------------------------------------------


def setting_words(where: Setting, *, rival: bool = True) -> str:
    """Who is up and what the others have; rival: the last opponent's score too."""
    said = [f"player {where.up + 1} up"]
    for player in (where.last, *where.beside):
        if not where.is_in(player):
            said.append(f"player {player + 1} is out")
        elif rival or player != where.last:
            said.append(f"player {player + 1} has {where.scores[player]:,}")
        count = where.earned[player] + where.passed[player]
        if count:
            said.append(f"player {player + 1} holds {spin_count(count)}")
    if any(where.whammies):
        said.append(f"whammies {','.join(map(str, where.whammies))}")
    return ", ".join(said)


def why_blank(cases: Sequence[Setting], blank: NDArray[np.bool_]) -> str:
    """Why a chart over the rival's score is blank where another opponent has more; blank: bool
    (settings, scores)."""
    return f"; blank where {who_has_less(cases)}, who then gets the spins" if blank.any() else ""


def who_has_less(cases: Sequence[Setting]) -> str:
    """``player 3 has less than player 1``: of the opponents, who gets no spins."""
    who = {(case.last, case.beside) for case in cases}
    if len(who) > 1:
        return "the rival has less than the third"
    ((last, others),) = who
    return f"player {last + 1} has less than player {' or '.join(str(i + 1) for i in others)}"


def _parts(where: Setting) -> dict[str, tuple[str, str]]:
    """What a setting is, part by part: (for people, as a column)."""
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
    """What of a setting differs among several, or the spins left; column: as a column's name."""
    parts, all_parts = _parts(where), [_parts(case) for case in cases]
    apart = [name for name in parts if len({case[name] for case in all_parts}) > 1] or ["spins"]
    return ("_" if column else ", ").join(parts[name][column] for name in apart)


# --- the list ------------------------------------------------------------------------------------


def _lead_row(lead: Lead) -> tuple[int | float | str, ...]:
    where, choice = lead.setting, lead.choice
    ends = ("" if end is None else end for end in (lead.pass_from, lead.play_from))
    at = lead.leads == lead.pass_from
    known = at & ~np.isnan(choice.play)
    chances = [round(float(x[known][0]), DECIMALS) if known.any() else "" for x in choice[:2]]
    return (
        where.up + 1, where.spins, where.rival + 1, where.scores[where.rival],
        *(where.scores[i] for i in where.behind), ",".join(map(str, where.whammies)), *ends,
        " ".join(f"{a}..{b}" for a, b in lead.passes), *chances, int(choice.unsure.sum()),
    )  # fmt: skip


def lead_lines(leads: Sequence[Lead]) -> tuple[str, ...]:
    """A head and a line for each setting, in columns."""
    whammies = any(any(lead.setting.whammies) for lead in leads)
    third = ["third has"] if leads and leads[0].setting.behind else []
    heads = ["up", "spins left", "rival has", *third,
             "pass from a lead of", "play from", "pass below, from .. to"]  # fmt: skip
    rows = [heads + ["whammies"] * whammies]
    for lead in leads:
        where, end = lead.setting, lead.pass_from
        below = [(a, b) for a, b in lead.passes if end is None or b < end]
        behind = [f"{where.scores[i]:,}" if where.is_in(i) else "out" for i in where.behind]
        cells = [
            f"player {where.up + 1}", str(where.spins),
            f"{where.scores[where.rival]:,} (player {where.rival + 1})", *behind,
            _signed(end), _signed(lead.play_from),
            ", ".join(f"{a:+,} .. {b:+,}" for a, b in below) or "-",
        ]  # fmt: skip
        rows.append(cells + [",".join(map(str, where.whammies))] * whammies)
    return aligned(rows)


def _signed(lead: int | None) -> str:
    return "never" if lead is None else f"{lead:+,}"
