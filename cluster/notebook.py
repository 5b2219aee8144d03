"""A progress bar below the cell of a notebook, for work that takes longer than a moment."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

MOMENT, EVERY = 1.0, 0.5
"""Seconds before a bar appears, and between two updates."""


class Bar:
    """A bar in the output of a notebook's cell; elsewhere it shows nothing."""

    def __init__(self) -> None:
        self._display: Any = None
        self._drawn = time.monotonic() + MOMENT - EVERY

    def show(self, done: int, total: int, text: str = "") -> None:
        """Draw the bar, unless it was drawn just now."""
        now, at_end = time.monotonic(), self._display is not None and done >= total > 0
        if (now - self._drawn < EVERY and not at_end) or not in_notebook():
            return
        from IPython.display import HTML, display

        self._drawn = now
        share = f"{100 * done / total:.0f}%" if total else ""
        bar = f'<progress value="{done}" max="{total or 1}"></progress>'
        picture = HTML(f"{bar} {escape(f'{share} {text}'.strip())}")
        if self._display is None:
            self._display = display(picture, display_id=True)
        else:
            self._display.update(picture)


def in_notebook() -> bool:
    """True if this process is the kernel of a notebook."""
    python = sys.modules.get("IPython")
    return getattr(python and python.get_ipython(), "kernel", None) is not None


_rows = Bar()


def on_rows(done: int, total: int) -> None:
    """Show the number of rows done; 0 begins a new bar."""
    global _rows
    if not done:
        _rows = Bar()
    _rows.show(done, total, f"of {total:,} rows")
