"""How a chart shows itself in a notebook: by whoever can draw, for nothing here can.

`solver` has charts as data and no library of pictures; `luckbase.open` enters the function that
draws, by its name, so that nothing here imports what lies above it::

    drawn_by(png="luckbase.jobs.terminal.pictures:as_png")

It is loaded when a notebook shows a chart. Without one, a chart shows its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module
from typing import Any

MOST_ROWS = 30
"""Of a chart's rows, as a table."""

_draws: dict[str, str] = {}


def drawn_by(*, png: str) -> None:
    """Enter the function, ``module:name``, that makes the bytes of a PNG of a picture."""
    _draws["png"] = png


def png_of(picture: Any) -> bytes | None:
    """The picture as a PNG; None where nobody draws."""
    if "png" not in _draws:
        return None
    module, name = _draws["png"].split(":")
    draw: Callable[[Any], bytes] = getattr(import_module(module), name)
    return draw(picture)


def rows_as_html(columns: Sequence[str], rows: Sequence[Sequence[object]], note: str) -> str:
    """Rows as a table, the first ones if there are many; note: above it."""
    heads = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_said(cell))}</td>" for cell in row) + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = len(rows) - MOST_ROWS
    left = f"<small>{more:,} more rows</small>" if more > 0 else ""
    return (
        f"<table><caption>{escape(note)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table>{left}"
    )


def _said(cell: object) -> str:
    return f"{cell:.7g}" if isinstance(cell, float) else str(cell)
