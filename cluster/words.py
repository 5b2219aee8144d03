"""Numbers, states and commands as people read and type them; a state as a mapping, as text."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from luckbase.solver.sentences import fields as fields
from luckbase.solver.sentences import listed as listed
from luckbase.solver.sentences import many as many

if TYPE_CHECKING:
    from luckbase.solver.game.fields import State

LABELS = ("none", "actions", "counts", "chances")
"""What the edges of a picture of play may say."""


class Help(NamedTuple):
    """What an argument of Python's means: the command line makes its option from it."""

    text: str
    metavar: str | None = None
    min: int | None = None


def typed(state: State) -> dict[str, str]:
    """The fields of a state as text, whatever they were: numbers, lists, arrays, text.

    >>> typed({"scores": (0, 8000, 3000), "lead": 2, "dice": None})
    {'scores': '0,8000,3000', 'lead': '2'}

    A field that is None is left out. Raises StateError for what is no state.
    """
    from luckbase.solver.game.fields import said_in  # numpy, which --help does without

    return {
        name: listed(sorted(value) if isinstance(value, set | frozenset) else value)
        for name, value in said_in(state).items()
    }


BARE_NOUN = re.compile(r"[a-z]+(,? and .*)?")


def noun(name: str) -> str:
    """An outcome's name within a sentence: ``a whammy and out``; ``a 1 (the turn is lost)``."""
    what, _, more = name.replace(", and ", " and ").partition(": ")
    return f"{'a ' * bool(BARE_NOUN.fullmatch(what))}{what}{f' ({more})' if more else ''}"


def exclaimed(name: str) -> str:
    """An outcome's name as it happens: ``whammy!``; ``a 6``."""
    return f"{name}!" if BARE_NOUN.fullmatch(name) else name


def count(number: float) -> str:
    """``42.9 million``; every digit below a million."""
    if abs(number) < 999_999.5:
        return f"{number:,.0f}"
    if abs(number) < 999.5e6:
        return f"{_three(number / 1e6)} million"
    return f"{_three(number / 1e9)} billion"


def counted(number: float, thing: str) -> str:
    """``1 state``, ``42.9 million states``."""
    return f"{count(number)} {thing}{'s' * (count(number) != '1')}"


def agree(rows: int) -> str:
    """``10,000 rows agree with the rules``."""
    return f"{many(rows, 'row')} agree{'s' * (rows == 1)} with the rules"


def size(number: float) -> str:
    """``1.2 GB``."""
    for unit, word in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(number) >= 0.9995 * unit:
            return f"{_three(number / unit)} {word}"
    return many(round(number), "byte")


def _three(number: float) -> str:
    """Three digits, or all of those before the point."""
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"


def duration(seconds: float) -> str:
    """``1 h 12 min``, ``3 min 05 s``, ``2.4 s``: to the nearest minute, second, tenth."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours} h {rest:02d} min"


def within(error: float, each: str = "") -> str:
    """How far numbers may be off: ``within 3.0e-08``; ``exact`` where they are not."""
    return f"{each}within {error:.1e}" if error else "exact"


def cost(number: float, chance: bool = False) -> str:
    """What a decision costs: six digits after the point, or as 1.2e-08 where those would not show
    it; of a chance in percentage points, ``28.1521 pp``."""
    if chance:
        return f"{100 * number:.4f} pp" if number >= 1e-6 else f"{100 * number:.1e} pp"
    return f"{number:.6f}" if number >= 1e-6 else f"{number:.1e}"


def program() -> str:
    """How the command line is called here, so that what we print can be typed again."""
    import shutil

    called = Path(sys.argv[0])
    found = shutil.which("luckbase")
    if called.name != "luckbase":
        return "luckbase"
    return "luckbase" if found and Path(found).resolve() == called.resolve() else str(called)


def some(most: int, sentences: Sequence[str]) -> tuple[str, ...]:
    """The first few of sentences, and how many more there are."""
    more = len(sentences) - most
    return (*sentences[:most], *([f"and {more} more"] if more > 0 else []))
