"""What the charts of Press Your Luck say: titles, labels, lines of the list."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Ints
from luckbase.solver.games.press_your_luck import rules
from luckbase.solver.games.press_your_luck.setting import Lead, Setting

NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def spins(count: int) -> str:
    """``one spin``, ``7 spins``."""
    number = NUMBERS[count] if count < len(NUMBERS) else str(count)
    return f"{number} spin{'s' * (count != 1)}"


def dollars(amount: float) -> str:
    """``$3,000``."""
    return f"${amount:,.0f}"


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# --- titles --------------------------------------------------------------------------------------


def pass_from(ends: Sequence[tuple[int, float]], gone: str = "") -> str:
    """Of (spins left, the lead from which to pass, NaN for none); gone: where there is no end."""
    if not ends:
        return gone
    known = {count: end for count, end in reversed(ends) if not math.isnan(end)}
    if not known:
        return "Never pass while playing is allowed"
    first, *more = sorted(known)[:3]
    said = [f"{dollars(known[first])} ahead with {spins(first)}"]
    said += [f"{dollars(known[count])} with {spins(count).split()[0]}" for count in more]
    return f"Pass from {', '.join(said)}"


def decision(where: Setting, leads: Sequence[int | None]) -> str:
    """Of the leads from which to pass, over the rival's scores in the middle."""
    known = [lead for lead in leads if lead is not None]
    left = f"{spins(where.spins).capitalize()} left"
    if not known:
        return f"{left}: play"
    low, high = min(known), max(known)
    to = "" if low == high else f" to {high:,}"
    return f"{left}: pass from {dollars(low)}{to} ahead"


def play(lead: Lead) -> str:
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


def by_spins(counts: Ints, passing: NDArray[np.bool_]) -> str:
    """With how many spins to pass and to play."""
    if passing.all() or not passing.any():
        return f"{'Pass' if passing.any() else 'Play'}, with {runs(counts)} {_spins(counts)}"
    return f"Pass {runs(counts[passing])}, play {runs(counts[~passing])} {_spins(counts[~passing])}"


def no_choice(counts: Ints, passing: NDArray[np.bool_]) -> str:
    """Where a player may not play, or may not pass: at the cap, in third place."""
    must = "pass" if passing.all() else "play" if not passing.any() else "do as they do"
    return f"No choice: they must {must}, with {runs(counts)} {_spins(counts)}"


def _spins(counts: Ints) -> str:
    return "spin" if counts.tolist() == [1] else "spins"


def runs(numbers: Ints) -> str:
    """``1, 3 to 5`` of ascending numbers."""
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return listed([
        f"{part[0]}" if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts
    ])  # fmt: skip


# --- settings ------------------------------------------------------------------------------------


def others(where: Setting, *, rival: bool = True) -> str:
    """Who is up and what the others have; rival: the last opponent's score too."""
    said = [f"player {where.up + 1} up"]
    for player in sorted(where.others, key=lambda i: i != where.last):
        if not where.is_in(player):
            said.append(f"player {player + 1} is out")
        elif rival or player != where.last:
            said.append(f"player {player + 1} has {where.score(player):,}")
        held = sum(where.spins_of(player))
        if held:
            said.append(f"player {player + 1} holds {spins(held)}")
    if any(where.whammies):
        said.append(f"whammies {','.join(map(str, where.whammies))}")
    return ", ".join(said)


def outdone(every: Sequence[Setting], there: NDArray[np.bool_]) -> str:
    """Why a chart over the rival's score is blank where another opponent has more; there: bool
    (settings, scores)."""
    return f"; blank where {less(every)}, who then gets the spins" if there.any() else ""


def less(every: Sequence[Setting]) -> str:
    """``player 3 has less than player 1``: of the opponents, who gets no spins."""
    who = {(each.last + 1, rules.PLAYERS - each.up - each.last + 1) for each in every}
    last, other = min(who) if len(who) == 1 else ("the rival", "the third")
    names = [f"player {one}" if isinstance(one, int) else one for one in (last, other)]
    return f"{names[0]} has less than {names[1]}"


def _parts(where: Setting) -> dict[str, tuple[str, str]]:
    """What a setting is, part by part: (for people, as a column)."""
    third = where.score(3 - where.up - where.last)
    whammies = ",".join(map(str, where.whammies))
    held = [where.spins_of(i) for i in where.others]
    return {
        "up": (f"player {where.up + 1} up", f"up_{where.up + 1}"),
        "spins": (f"{spins(where.spins)} left", f"spins_{where.spins}"),
        "third": (f"third has {third:,}", f"third_{third}"),
        "whammies": (f"whammies {whammies}", f"whammies_{whammies.replace(',', '_')}"),
        "held": (f"the others hold {held}", f"held_{held}"),
    }


def told_apart(where: Setting, every: Sequence[Setting], column: bool = False) -> str:
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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return tuple(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def _signed(lead: int | None) -> str:
    return "never" if lead is None else f"{lead:+,}"
