"""Parts of a report's page: tables, letters and points of a picture, numbers for the mouse."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Detail:
    """How much of a chart's numbers stands in the page: lines and rows of a list, cells of a
    picture's table, decimals under the mouse, and whether there are any."""

    lines: int = 25
    rows: int = 400
    cells: int = 441
    decimals: int = 6
    mouse: bool = True


def words_at(text: str, x: float, y: float) -> str:
    """Words on a picture, centred on a point; they may have several lines."""
    lines = text.split("\n")
    first = y - 9 * (len(lines) - 1)
    return "".join(
        text_at(line, x, first + 18 * i, "middle", 14, "said") for i, line in enumerate(lines)
    )


def path_of(xs: Sequence[float], ys: Sequence[float]) -> str:
    """A line through points in units; a NaN is a gap in it."""
    found, draw = "", False
    for x, y in zip(xs, ys, strict=True):
        if np.isnan(x) or np.isnan(y):
            draw = False
            continue
        found += f"{'L' if draw else 'M'}{x:.1f} {y:.1f}"
        draw = True
    return found


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """An HTML table, the first column a heading of its row; kind: its class."""
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = []
    for row in rows:
        cells = "".join(
            f"<td{' class=words' if '=' in one else ''}>{escape(one)}</td>" for one in row[1:]
        )
        body.append(f'<tr><th scope="row">{escape(row[0])}</th>{cells}</tr>')
    classes = f' class="{kind}"' if kind else ""
    return (
        f'<div class="wide"><table{classes}><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def text_at(text: str, x: float, y: float, at: str, size: float, kind: str = "") -> str:
    """A line of letters whose middle line is at y; at: its start, middle or end is at x."""
    classes = f' class="{kind}"' if kind else ""
    return (
        f'<text{classes} x="{x:.1f}" y="{y + 0.35 * size:.1f}" text-anchor="{at}" '
        f'font-size="{size:g}">{escape(text)}</text>'
    )


def png(points: NDArray[np.uint8]) -> bytes:
    """A PNG of points (rows, columns, 4), the top row first."""
    rows, columns, _ = points.shape
    raw = b"".join(b"\0" + points[i].tobytes() for i in range(rows))
    head = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    found = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b"")):
        check = zlib.crc32(kind + content)
        found += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
    return found


def mouse(said: Mapping[str, Any]) -> str:
    """Numbers as JSON for ``report.js``, and where it says them; nothing can end the element."""
    numbers = json.dumps(said, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<script type="application/json" class="numbers">{numbers}</script>'
        '<output class="under" aria-live="polite">Point at the picture, or move through it with '
        "the arrow keys.</output>"
    )


def number(value: float, decimals: int) -> int | float | None:
    """A number for the mouse; None where there is none."""
    if np.isnan(value):
        return None
    return int(value) if value == int(value) else round(float(value), decimals)


def ticks(low: float, high: float, count: int, whole: bool) -> list[float]:
    """Some `count` round numbers from low to high."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(count, integer=whole).tick_values(low, high)
    slack = 1e-9 * (high - low)
    return [round(float(x), 9) + 0.0 for x in found if low - slack <= x <= high + slack]
