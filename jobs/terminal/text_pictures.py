"""Pictures of `solver.charts.model` as text: for a terminal, a pipe or a .txt file.

A heat map is a digit a cell, 0 for the least numbers and 9 for the greatest, what each stands for
below it; lines are ``#``. On a terminal with colours the digits have those of the picture behind
them. Curves are a letter each. Where there are more numbers than room, every second or third is
shown; all of them are in the CSV.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from luckbase.solver.charts.model import Curves, Heatmap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Grid = list[list[str]]

PIPED = 100
"""Columns where there is no terminal."""
LEAST_WIDE, LEAST_HIGH, MOST_HIGH = 40, 16, 52
MOST_TICKS, STEP_HIGH = 6, 4
"""Of the y axis of curves, and lines from one to the next."""
LINE, BLANK, BAND = "#", ".", ":"
LETTERS = "ox+*@%&="
VIRIDIS = (
    (68, 1, 84), (72, 40, 120), (62, 74, 137), (49, 104, 142), (38, 130, 142),
    (31, 158, 137), (53, 183, 121), (110, 206, 88), (181, 222, 43), (253, 231, 37),
)  # fmt: skip
"""The colours of the digits 0 to 9: those of `jobs.terminal.pictures`, evenly spaced."""


def text(picture: Heatmap | Curves, wide: int | None = None, colour: bool = False) -> str:
    """The picture in lines of at most `wide` columns, a line break at the end of each.

    wide: `PIPED` if not given; no less than `LEAST_WIDE`. colour: with escape sequences.
    """
    wide = max(wide or PIPED, LEAST_WIDE)
    if isinstance(picture, Heatmap):
        lines = _heatmap(picture, wide, colour)
    else:
        lines = _curves(picture, wide)
    return "".join(f"{line.rstrip()}\n" for line in lines)


# --- heat maps -----------------------------------------------------------------------------------


def _heatmap(picture: Heatmap, wide: int, colour: bool) -> list[str]:
    margin = max(len(_number(y)) for y in picture.ys) + 2
    room = wide - margin
    each = 2 if 2 * len(picture.xs) <= room else 1
    columns = _sampled(len(picture.xs), room // each)
    # A character is twice as high as it is wide; what is flat anyway is not made flatter.
    even = len(picture.ys) * each * len(columns) // (2 * len(picture.xs))
    rows = _sampled(len(picture.ys), min(MOST_HIGH, max(even, LEAST_HIGH)))
    digits, ends = _digits(picture)
    cells = [[digits[i, j] for i in columns] for j in rows]
    _mark_lines(picture, cells, columns, rows)
    painted = [[_painted(cell, each, colour) for cell in line] for line in cells]
    _write_words(picture, painted, columns, rows, each)
    lines = [picture.title, picture.about, "", f"{picture.y_label}"]
    labelled = _sampled(len(rows), max(2, len(rows) // 4))
    for at in range(len(rows) - 1, -1, -1):
        label = _number(picture.ys[rows[at]]) if at in labelled else ""
        lines.append(f"{label:>{margin - 2}} |" + "".join(painted[at]))
    shown = {k * each: _number(picture.xs[i]) for k, i in enumerate(columns)}
    lines += _x_axis(shown, len(columns) * each, margin, picture.x_label)
    return [*lines, "", *_key(picture, ends, colour)]


def _digits(picture: Heatmap) -> tuple[NDArray[np.str_], NDArray[np.float64]]:
    """The character of each cell, and the ends (11,) of what the ten digits stand for."""
    blank = np.isnan(picture.values) if picture.blank is None else picture.blank
    held = picture.values[~blank & ~np.isnan(picture.values)]
    low, high = picture.limits or ((held.min(), held.max()) if len(held) else (0.0, 1.0))
    ends = np.linspace(low, high, 11)
    found = np.full(picture.values.shape, " ")
    numbers = np.nan_to_num(picture.values, nan=low)
    # The last bound belongs to the digit 9; a half unit in the last place keeps .3 out of 2.
    steps = np.clip(((numbers - low) / ((high - low) or 1.0) * 10 + 1e-9).astype(int), 0, 9)
    known = ~np.isnan(picture.values)
    found[known] = steps[known].astype(str)
    found[known & blank] = BLANK
    return found, ends


def _mark_lines(picture: Heatmap, cells: Grid, columns: list[int], rows: list[int]) -> None:
    for line in picture.lines:
        for k in range(len(line.xs) - 1):
            ends = np.array([line.xs[k : k + 2], line.ys[k : k + 2]], float)
            if np.isnan(ends).any():
                continue
            points = np.linspace(ends[:, 0], ends[:, 1], 2 * (len(columns) + len(rows)))
            across = _nearest(points[1:-1, 0], picture.xs[columns])
            up = _nearest(points[1:-1, 1], picture.ys[rows])
            for i, j in zip(across, up, strict=True):
                cells[j][i] = LINE


def _nearest(points: NDArray[np.float64], centres: NDArray[np.int64]) -> list[int]:
    """The last of the ascending centres that is nearest to each point: ties go up."""
    between = (centres[1:] + centres[:-1]) / 2
    found: list[int] = np.searchsorted(between, points, side="right").tolist()
    return found


def _painted(cell: str, each: int, colour: bool) -> str:
    wide = cell * each if cell in (LINE, BLANK) else cell + " " * (each - 1)
    if not colour or not cell.isdigit():
        return f"\x1b[1;37;41m{wide}\x1b[0m" if colour and cell == LINE else wide
    red, green, blue = VIRIDIS[int(cell)]
    ink = "30" if int(cell) > 5 else "97"
    return f"\x1b[{ink};48;2;{red};{green};{blue}m{wide}\x1b[0m"


def _write_words(
    picture: Heatmap, painted: Grid, columns: list[int], rows: list[int], each: int
) -> None:
    for words in picture.words:
        (i,) = _nearest(np.array([words.x]), picture.xs[columns])
        (j,) = _nearest(np.array([words.y]), picture.ys[rows])
        parts = [f" {part} " for part in words.text.split("\n")]
        for k, part in enumerate(parts):
            row = j + len(parts) // 2 - k
            cells = -(-len(part) // each)
            first = min(max(0, i - cells // 2), max(0, len(columns) - cells))
            if not 0 <= row < len(rows) or cells > len(columns):
                continue
            for c in range(cells):
                painted[row][first + c] = part[c * each : (c + 1) * each].ljust(each)


def _key(picture: Heatmap, ends: NDArray[np.float64], colour: bool) -> list[str]:
    whole = float(np.ptp(ends)) >= 10
    texts = [f"{end:,.0f}" if whole else f"{end:.3g}" for end in ends]
    steps = [f"{_painted(str(k), 1, colour)} {texts[k]}" for k in range(10)]
    lines = [f"{picture.colour_label}, from:", "  " + "  ".join(steps) + f"  to {texts[10]}"]
    lines += [f"  {LINE} {line.label}" for line in picture.lines]
    if picture.blank is not None and picture.blank.any():
        lines.append(f"  {BLANK} none")
    return lines


# --- curves --------------------------------------------------------------------------------------


def _curves(picture: Curves, wide: int) -> list[str]:
    ticks = _ticks(picture)
    heights = np.linspace(ticks[0], ticks[-1], (len(ticks) - 1) * STEP_HIGH + 1)
    labels = [_label(y, float(ticks[-1] - ticks[0])) for y in heights]
    margin = max(map(len, labels)) + 2
    room = wide - margin - 1
    across = np.linspace(*picture.x_range, room)
    cells = [[" "] * room for _ in heights]
    for band in picture.bands:
        marked = (across >= band.first) & (across <= band.last)
        for row in cells:
            row[:] = np.where(marked, BAND, row).tolist()
    for letter, curve in zip(_letters(picture), picture.curves, strict=True):
        _draw(cells, letter, heights, _drawn(picture.xs, curve.values, across))
    lines = [picture.title, picture.about, "", picture.y_label]
    for at in range(len(heights) - 1, -1, -1):
        label = labels[at] if at % STEP_HIGH == 0 else ""
        lines.append(f"{label:>{margin - 2}} |" + "".join(cells[at]))
    marks = {int(np.abs(across - x).argmin()): _number(x) for x in picture.xs}
    lines += [*_x_axis(marks, room, margin, picture.x_label), ""]
    named = zip(_letters(picture), picture.curves, strict=True)
    lines.append("  " + "   ".join(f"{letter} {curve.label}" for letter, curve in named))
    notes = dict.fromkeys(" ".join(band.text.split()) for band in picture.bands)
    return lines + [f"  {BAND} {note}" for note in notes]


def _draw(
    cells: Grid, letter: str, heights: NDArray[np.float64], drawn: NDArray[np.float64]
) -> None:
    """Write one curve; where it is steep, up to the height of the next column."""
    rows = [-1 if np.isnan(y) else int(np.abs(heights - y).argmin()) for y in drawn]
    for at, row in enumerate(rows):
        if row < 0:
            continue
        after = rows[at + 1] if at + 1 < len(rows) else -1
        steep = 0 if after < 0 else after - row
        step = 1 if steep > 0 else -1
        for k in range(max(1, abs(steep))):
            cells[row + k * step][at] = letter


def _letters(picture: Curves) -> str:
    """A letter for each curve."""
    count = len(picture.curves)
    return (LETTERS * (count // len(LETTERS) + 1))[:count]


def _ticks(picture: Curves) -> NDArray[np.float64]:
    """Round numbers, evenly spaced, that all numbers lie between."""
    held = np.concatenate([picture.limits or (), *(curve.values for curve in picture.curves)])
    held = held[~np.isnan(held)]
    low, high = (held.min(), held.max()) if len(held) else (0.0, 1.0)
    span = float(high - low) or 1.0
    power = 10.0 ** np.floor(np.log10(span / 4))
    step = power * next(k for k in (1, 2, 2.5, 5, 10) if span / (k * power) <= MOST_TICKS)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    ticks: NDArray[np.float64] = step * np.arange(first, max(last, first + 1) + 1)
    return ticks


def _drawn(
    xs: NDArray[np.int64], values: NDArray[np.float64], across: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The curve at the places `across`: straight between two numbers side by side, NaN beyond."""
    found = np.full(len(across), np.nan)
    for x, value in zip(xs, values, strict=True):
        found[np.abs(across - x).argmin()] = value
    for k in range(len(xs) - 1):
        inside = (across >= xs[k]) & (across <= xs[k + 1])
        if not np.isnan(values[k : k + 2]).any():
            found[inside] = np.interp(across[inside], xs[k : k + 2], values[k : k + 2])
    return found


# --- both ----------------------------------------------------------------------------------------


def _sampled(count: int, most: int) -> list[int]:
    """At most so many of 0 .. count - 1, evenly spaced from 0."""
    step = -(-count // max(1, most))
    return list(range(0, count, step))


def _x_axis(labels: dict[int, str], wide: int, margin: int, name: str) -> list[str]:
    """The axis, its labels where there is room for them, and its name. labels: by column."""
    places, texts = list(labels), list(labels.values())
    least = max(map(len, texts)) + 3
    apart = min(np.diff(places), default=least)
    stride = -(-least // max(1, int(apart)))
    first = texts.index("0") % stride if "0" in texts else 0
    line = [" "] * (wide + 12)
    for k in range(first, len(places), stride):
        line[places[k] : places[k] + len(texts[k])] = texts[k]
    indent = " " * margin
    return [f"{indent[1:]}+" + "-" * wide, indent + "".join(line).rstrip(), f"{indent}{name}"]


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _label(value: float, span: float) -> str:
    return f"{value:,.0f}" if span >= 20 else f"{value:.4g}"
