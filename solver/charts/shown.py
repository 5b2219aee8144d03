"""How a chart or a scene shows itself in a notebook: by whoever can draw, for nothing here can.

`solver` has charts as data and no library of pictures; `luckbase.open` enters the functions that
draw, by their names, so that nothing here imports what lies above it::

    drawn_by(png="luckbase.jobs.plots:as_png", html=…)

They are loaded when a notebook shows something. Without them it is shown as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module
from typing import Any

from luckbase.solver.sentences import many

MOST_ROWS = 30
"""Of a chart's rows, as a table."""

_draws: dict[str, str] = {}


def drawn_by(*, png: str, html: str) -> None:
    """Enter the functions, each ``module:name``: `png` makes the bytes of a picture of a Heatmap,
    `html` an element of a page of a Scene."""
    _draws.update(png=png, html=html)


def png_of(picture: Any) -> bytes | None:
    """A Heatmap as a PNG; None where nobody draws."""
    draw: Callable[[Any], bytes] | None = _drawing("png")
    return None if draw is None else draw(picture)


def html_of(scene: Any) -> str | None:
    """A Scene as an element of a page; None where nobody draws."""
    draw: Callable[[Any], str] | None = _drawing("html")
    return None if draw is None else draw(scene)


def _drawing(kind: str) -> Any:
    if kind not in _draws:
        return None
    module, name = _draws[kind].split(":")
    return getattr(import_module(module), name)


def rows_as_html(columns: Sequence[str], rows: Sequence[Sequence[object]], note: str) -> str:
    """Rows as a table, the first ones if there are many; note: above it."""
    heads = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_said(cell))}</td>" for cell in row) + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = len(rows) - MOST_ROWS
    left = f"<small>{many(more, 'more row')}</small>" if more > 0 else ""
    return (
        f"<table><caption>{escape(note)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table>{left}"
    )


def _said(cell: object) -> str:
    return f"{cell:.7g}" if isinstance(cell, float) else str(cell)
