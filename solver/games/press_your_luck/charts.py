"""The charts of Press Your Luck, as `solver.charts` has them.

``lead`` says at what lead to pass, by spins left; ``leads`` the same over the rival's score.
``decide`` is play or pass over both scores, ``by-lead`` and ``by-spins`` are both chances over the
lead and over the spins left. What is fixed in each may be chosen (`setting`).

A score at the cap counts as no more than the cap, so near it a lead is worth less than on the show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts import (
    DECIMALS,
    STATES,
    Band,
    Chart,
    ChartRequest,
    Curve,
    Curves,
    Heatmap,
    Kind,
    Listing,
    Lookup,
    Words,
    aligned,
    outline,
    words_in,
)
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck import rules
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard
from luckbase.solver.games.press_your_luck.setting import (
    RIVAL_SHARE,
    Choice,
    Lead,
    Setting,
    SettingDefaults,
    choices,
    leads_of,
    settings,
    share_of_cap,
)
from luckbase.solver.scene import listed

KINDS = (
    Kind("lead", "at what lead to pass, by spins left"),
    Kind("leads", "at what lead to pass, over the rival's score", picture=True),
    Kind("decide", "play or pass over both scores, and the chance to win", picture=True),
    Kind("by-lead", "the chance to win by playing and by passing, over the lead", picture=True),
    Kind("by-spins", "the same over the spins left", picture=True, needs=STATES),
)
LEAD_COLUMNS = (
    "up", "spins", "rival", "rival_score", "third_score", "whammies", "pass_from", "play_from",
    "passes", "play_there", "pass_there", "unsure",
)  # fmt: skip
EXPERIMENT = 12
"""Spins of ``by-spins``, as far as the table holds them."""
WIDEST = 0.25
"""Of the cap: the leads of ``by-lead``, 5000 of 20000 dollars either way."""
PROBABILITY = "my chance to win (probability)"


class LuckCharts(Charts):
    """The charts of a board (module docstring)."""

    kinds = KINDS

    def __init__(self, game: Game) -> None:
        assert isinstance(game.board, PressYourLuckBoard)
        self.game, self.solve, self.board = game, game.board.solve, game.board.name

    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Chart:
        request.refuse_reachable("charts of this game are of all states")
        how: dict[str, Callable[[Lookup, ChartRequest], Chart]]
        how = {"lead": self._lead, "leads": self._leads, "decide": self._decide,
               "by-lead": self._by_lead, "by-spins": self._by_spins}  # fmt: skip
        return how[name](lookup, request)

    @property
    def _every(self) -> tuple[int, ...]:
        """All numbers of spins that the table covers."""
        return tuple(range(1, self.solve.frontier + 1))

    @property
    def _cap(self) -> str:
        return f"scores count up to {self.solve.score_cap:,}"

    def _scores(self, stop: int) -> Ints:
        return np.arange(0, stop, self.solve.score_unit, dtype=np.int64)

    def _lead(self, lookup: Lookup, request: ChartRequest) -> Listing:
        chosen = settings(
            self.game, request.fields, SettingDefaults(frozenset({"own"}), self._every, "all")
        )
        found = leads_of(self.game, lookup, chosen, request.error)
        unsure = sum(int(lead.choice.unsure.sum()) for lead in found)
        note = "a lead is my score less the rival's, who gets the spins; play from one to the other"
        if unsure:
            note += f"; {unsure} leads are too close to call, and count as play"
        return Listing(lead_lines(found), LEAD_COLUMNS, tuple(map(_lead_row, found)), note)

    def _leads(self, lookup: Lookup, request: ChartRequest) -> Curves:
        varies = frozenset({"own", "rival"})
        chosen = settings(self.game, request.fields, SettingDefaults(varies, self._every, "all"))
        scores = self._scores(self.solve.score_cap)
        by_score = [each.over_rival(scores) for each in chosen]
        found = leads_of(self.game, lookup, [x for line in by_score for x in line], request.error)
        ends = np.array([np.nan if x.pass_from is None else x.pass_from for x in found])
        ends = ends.reshape(len(chosen), -1)
        outdone = np.array([[each.outdone for each in line] for line in by_score])
        ends[outdone] = np.nan
        curves = tuple(
            Curve(difference(each, chosen), difference(each, chosen, column=True), line)
            for each, line in zip(chosen, ends, strict=True)
        )
        return Curves(
            pass_from_title(self._usual_ends(chosen, scores, ends, outdone),
                          f"Here {who_has_less(chosen)} everywhere"),
            f"{self.board}; {setting_words(chosen[0], rival=False)}; {self._cap}"
            + why_blank(chosen, outdone),
            "rival_score", scores, curves, "score of the rival, who gets the spins (dollars)",
            "pass from this lead on (dollars)", self._outdone_band(scores, outdone),
            limits=_from_zero(ends),
        )  # fmt: skip

    def _usual_ends(
        self, chosen: list[Setting], scores: Ints, ends: Floats, outdone: NDArray[np.bool_]
    ) -> list[tuple[int, float]]:
        """(spins, the lead from which to pass) of each curve that is there, at the usual score of
        the rival or the least above."""
        usual = share_of_cap(self.game, RIVAL_SHARE)
        found = []
        for each, line, gone in zip(chosen, ends, outdone, strict=True):
            there = np.flatnonzero(~gone)
            if len(there):
                at = there[np.argmax(scores[there] >= min(usual, scores[there[-1]]))]
                found.append((each.spins, float(line[at])))
        return found

    def _outdone_band(self, scores: Ints, outdone: NDArray[np.bool_]) -> tuple[Band, ...]:
        """Where the other opponent has more than the rival, of any curve."""
        there = np.flatnonzero(outdone.any(axis=0))
        if not len(there):
            return ()
        last = float(scores[there[-1]]) + self.solve.score_unit / 2
        return (Band(float(scores[0]), last, "the third has\nmore, and gets\nthe spins"),)

    def _decide(self, lookup: Lookup, request: ChartRequest) -> Heatmap:
        (where,) = settings(self.game, request.fields, SettingDefaults(frozenset({"own", "rival"})))
        xs, ys = self._scores(self.solve.score_cap), self._scores(self.solve.score_cap + 1)
        if len(xs) < 2:
            raise OptionError(
                f"the picture 'decide' needs two scores below the cap; this table has "
                f"{len(xs)}: score_cap={self.solve.score_cap}, score_unit={self.solve.score_unit}"
            )
        over = where.over_rival(ys)
        lines = [one.with_scores(where.up, xs) for one in over]
        outdone = np.array([one.outdone for one in over])
        found = choices(self.game, lookup, np.concatenate(lines), request.error)
        there = ys[~outdone]
        middle = there[(there >= 0.15 * ys[-1]) & (there <= 0.6 * ys[-1])]
        middle = middle if len(middle) else there
        shape = (len(ys), len(xs))
        passing = np.ascontiguousarray(found.passing.reshape(shape).T)
        leads = [
            x.pass_from
            for x in leads_of(self.game, lookup, where.over_rival(middle), request.error)
        ]
        blank = np.tile(outdone, (len(xs), 1))
        line = outline("play or pass", passing, xs, ys, ~blank)
        names = (f"scores_{where.up + 1}", f"scores_{where.last + 1}", "value")
        return Heatmap(
            decide_title(where, leads),
            f"{self.board}; {setting_words(where, rival=False)}"
            + why_blank([where], outdone[None]), names,
            xs, ys, np.ascontiguousarray(found.best.reshape(shape).T),
            f"my score: player {where.up + 1} (dollars)",
            f"score of player {where.last + 1} (dollars)", PROBABILITY,
            blank if blank.any() else None, (0.0, 1.0), lines=() if line is None else (line,),
            words=region_words(passing, xs, ys, ~blank),
            rest=where.in_words(self.game),
        )  # fmt: skip

    def _by_lead(self, lookup: Lookup, request: ChartRequest) -> Curves:
        (where,) = settings(self.game, request.fields, SettingDefaults(frozenset({"own"})))
        (lead,) = leads_of(self.game, lookup, [where], request.error)
        most = share_of_cap(self.game, WIDEST)
        near = np.abs(lead.leads) <= most
        unit = self.solve.score_unit
        bands = [Band(a - unit / 2, b + unit / 2, "pass") for a, b in lead.passes]
        ends = (float(lead.leads[near][0]), float(lead.leads[near][-1]))
        return Curves(
            f"{spin_count(where.spins).capitalize()}: {by_lead_title(lead)}",
            f"{self.board}; {setting_words(where)}",
            "lead", lead.leads[near], both(lead.choice.play[near], lead.choice.passed[near]),
            f"my lead over player {where.rival + 1} (dollars)", PROBABILITY,
            tuple(
                Band(max(b.first, ends[0]), min(b.last, ends[1]), b.text)
                for b in bands
                if b.first < ends[1] and b.last > ends[0]
            ),
        )  # fmt: skip

    def _by_spins(self, lookup: Lookup, request: ChartRequest) -> Curves:
        every = tuple(range(1, EXPERIMENT + 1))
        found = settings(
            self.game,
            request.fields,
            SettingDefaults(frozenset(), every, "spins", 0.4, 0.15, beyond=True),
        )
        choice, there = self._choices_there(lookup, found, request.error)
        spins = np.array([each.spins for each in found])
        last = int(np.flatnonzero(there)[-1]) + 1
        known, where = spins[there], found[0]
        gaps = "" if there.all() else f"; {runs(spins[~there])} spins: not in this table"
        title = by_spins_title if choice.free.any() else no_choice_title
        return Curves(
            title(known, choice.passing[there]),
            f"{self.board}; {setting_words(where)}, I have {where.score(where.up):,}{gaps}",
            "spins", spins[:last], both(choice.play[:last], choice.passed[:last]),
            "spins left, all of them mine", PROBABILITY, self._beyond(known, spins[last:]),
        )  # fmt: skip

    def _choices_there(
        self, lookup: Lookup, every: list[Setting], error: float
    ) -> tuple[Choice, NDArray[np.bool_]]:
        """The choice in each setting, and of which the table holds what it takes: the others are
        NaN. Raises MissingTableError where it holds none."""
        found: list[Choice] = []
        missing: list[MissingTableError] = []
        there = np.ones(len(every), bool)
        nothing, no = np.full(1, np.nan), np.zeros(1, bool)
        for i, each in enumerate(every):
            own = each.with_scores(each.up, np.array([each.score(each.up)]))
            try:
                found.append(choices(self.game, lookup, own, error))
            except MissingTableError as why:
                missing.append(why)
                there[i] = False
                found.append(Choice(nothing, nothing, no, no))
        if not there.any():
            raise missing[0]
        parts = ("play", "passed", "passing", "unsure")
        return Choice(*(np.concatenate([getattr(x, name) for x in found]) for name in parts)), there

    def _beyond(self, known: Ints, left: Ints) -> tuple[Band, ...]:
        """The first number of spins that a full table does not reach, and how it would."""
        there = self.solve.frontier
        if there + 1 not in left or known[-1] != there:
            return ()
        text = f"beyond this\ntable: set\nfrontier={there + 1}"
        return (Band(there + 0.5, there + 1.5, text),)


def _from_zero(numbers: Floats) -> tuple[float, float] | None:
    """Limits of an axis with 0 on it and room above; None where there is no number."""
    known = numbers[~np.isnan(numbers)]
    return (min(0.0, known.min()), 1.05 * known.max()) if len(known) and known.max() > 0 else None


def both(play: Floats, passed: Floats) -> tuple[Curve, ...]:
    """The curves of playing and passing."""
    return Curve("play", "play", play), Curve("pass", "pass", passed)


def region_words(
    passing: NDArray[np.bool_], xs: Ints, ys: Ints, known: NDArray[np.bool_]
) -> tuple[Words, ...]:
    """ "play" and "pass" in the middle of where it is best: passing, known (n, m) above and
    below."""
    ahead = xs[:, None] > ys[None, :]
    regions = {"play": ~passing, "pass ahead": passing & ahead, "pass behind": passing & ~ahead}
    return words_in({name: inside & known for name, inside in regions.items()}, xs, ys)


def _lead_row(lead: Lead) -> tuple[int | float | str, ...]:
    where, there = lead.setting, lead.at(lead.pass_from)
    chances = ("", "") if there is None else tuple(round(x, DECIMALS) for x in there)
    return (
        where.up + 1, where.spins, where.rival + 1, where.score(where.rival),
        where.score(where.third), ",".join(map(str, where.whammies)), _cell(lead.pass_from),
        _cell(lead.play_from), " ".join(f"{a}..{b}" for a, b in lead.passes), *chances,
        int(lead.choice.unsure.sum()),
    )  # fmt: skip


def _cell(number: int | None) -> int | str:
    return "" if number is None else number


# --- words ---------------------------------------------------------------------------------------

NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def spin_count(count: int) -> str:
    """``one spin``, ``7 spins``."""
    number = NUMBERS[count] if count < len(NUMBERS) else str(count)
    return f"{number} spin{'s' * (count != 1)}"


def dollars(amount: float) -> str:
    """``$3,000``."""
    return f"${amount:,.0f}"


# --- titles --------------------------------------------------------------------------------------


def pass_from_title(ends: Sequence[tuple[int, float]], gone: str = "") -> str:
    """Of (spins left, the lead from which to pass, NaN for none); gone: where there is no end."""
    if not ends:
        return gone
    known = {count: end for count, end in reversed(ends) if not math.isnan(end)}
    if not known:
        return "Never pass while playing is allowed"
    first, *more = sorted(known)[:3]
    said = [f"{dollars(known[first])} ahead with {spin_count(first)}"]
    said += [f"{dollars(known[count])} with {spin_count(count).split()[0]}" for count in more]
    return f"Pass from {', '.join(said)}"


def decide_title(where: Setting, leads: Sequence[int | None]) -> str:
    """Of the leads from which to pass, over the rival's scores in the middle."""
    known = [lead for lead in leads if lead is not None]
    left = f"{spin_count(where.spins).capitalize()} left"
    if not known:
        return f"{left}: play"
    low, high = min(known), max(known)
    to = "" if low == high else f" to {high:,}"
    return f"{left}: pass from {dollars(low)}{to} ahead"


def by_lead_title(lead: Lead) -> str:
    """From where to where to play, in words."""
    if lead.pass_from is None:
        return "play"
    if lead.play_from is None:
        return "pass"
    last = lead.pass_from - int(lead.leads[1] - lead.leads[0])
    low, side = abs(lead.play_from), "behind" if lead.play_from < 0 else "ahead"
    if any(end < lead.play_from for _, end in lead.passes):
        return f"play from {dollars(low)} {side} to {dollars(last)} ahead"
    return f"play up to {dollars(last)} ahead"


def by_spins_title(counts: Ints, passing: NDArray[np.bool_]) -> str:
    """With how many spins to pass and to play."""
    if passing.all() or not passing.any():
        return f"{'Pass' if passing.any() else 'Play'}, with {runs(counts)} {_spin_word(counts)}"
    played = counts[~passing]
    return f"Pass {runs(counts[passing])}, play {runs(played)} {_spin_word(played)}"


def no_choice_title(counts: Ints, passing: NDArray[np.bool_]) -> str:
    """Where a player may not play, or may not pass: at the cap, in third place."""
    must = "pass" if passing.all() else "play" if not passing.any() else "do as they do"
    return f"No choice: they must {must}, with {runs(counts)} {_spin_word(counts)}"


def _spin_word(counts: Ints) -> str:
    return "spin" if counts.tolist() == [1] else "spins"


def runs(numbers: Ints) -> str:
    """``1, 3 to 5`` of ascending numbers."""
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return listed([
        f"{part[0]}" if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts
    ])  # fmt: skip


# --- settings ------------------------------------------------------------------------------------


def setting_words(where: Setting, *, rival: bool = True) -> str:
    """Who is up and what the others have; rival: the last opponent's score too."""
    said = [f"player {where.up + 1} up"]
    for player in sorted(where.others, key=lambda i: i != where.last):
        if not where.is_in(player):
            said.append(f"player {player + 1} is out")
        elif rival or player != where.last:
            said.append(f"player {player + 1} has {where.score(player):,}")
        count = sum(where.spins_of(player))
        if count:
            said.append(f"player {player + 1} holds {spin_count(count)}")
    if any(where.whammies):
        said.append(f"whammies {','.join(map(str, where.whammies))}")
    return ", ".join(said)


def why_blank(every: Sequence[Setting], there: NDArray[np.bool_]) -> str:
    """Why a chart over the rival's score is blank where another opponent has more; there: bool
    (settings, scores)."""
    return f"; blank where {who_has_less(every)}, who then gets the spins" if there.any() else ""


def who_has_less(every: Sequence[Setting]) -> str:
    """``player 3 has less than player 1``: of the opponents, who gets no spins."""
    who = {(each.last + 1, rules.PLAYERS - each.up - each.last + 1) for each in every}
    last, other = min(who) if len(who) == 1 else ("the rival", "the third")
    names = [f"player {one}" if isinstance(one, int) else one for one in (last, other)]
    return f"{names[0]} has less than {names[1]}"


def _parts(where: Setting) -> dict[str, tuple[str, str]]:
    """What a setting is, part by part: (for people, as a column)."""
    third = where.score(3 - where.up - where.last)
    whammies = ",".join(map(str, where.whammies))
    of_others = [where.spins_of(i) for i in where.others]
    return {
        "up": (f"player {where.up + 1} up", f"up_{where.up + 1}"),
        "spins": (f"{spin_count(where.spins)} left", f"spins_{where.spins}"),
        "third": (f"third has {third:,}", f"third_{third}"),
        "whammies": (f"whammies {whammies}", f"whammies_{whammies.replace(',', '_')}"),
        "held": (f"the others hold {of_others}", f"held_{of_others}"),
    }


def difference(where: Setting, every: Sequence[Setting], column: bool = False) -> str:
    """What of a setting differs among several, or the spins left; column: as a column's name."""
    parts, all_parts = _parts(where), [_parts(each) for each in every]
    apart = [name for name in parts if len({each[name] for each in all_parts}) > 1] or ["spins"]
    return ("_" if column else ", ").join(parts[name][column] for name in apart)


# --- the list ------------------------------------------------------------------------------------


def lead_lines(found: Sequence[Lead]) -> tuple[str, ...]:
    """A head and a line for each setting, in columns."""
    whammies = any(any(lead.setting.whammies) for lead in found)
    heads = ["up", "spins left", "rival has", "third has", "pass from a lead of", "play from",
             "pass below, from .. to"]  # fmt: skip
    rows = [heads + ["whammies"] * whammies]
    for lead in found:
        where, end = lead.setting, lead.pass_from
        below = [(a, b) for a, b in lead.passes if end is None or b < end]
        third = f"{where.score(where.third):,}" if where.is_in(where.third) else "out"
        cells = [
            f"player {where.up + 1}", str(where.spins),
            f"{where.score(where.rival):,} (player {where.rival + 1})", third,
            _signed(end), _signed(lead.play_from),
            ", ".join(f"{a:+,} .. {b:+,}" for a, b in below) or "-",
        ]  # fmt: skip
        rows.append(cells + [",".join(map(str, where.whammies))] * whammies)
    return aligned(rows)


def _signed(lead: int | None) -> str:
    return "never" if lead is None else f"{lead:+,}"
