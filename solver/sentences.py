"""Text for people: values, numbers, sizes, names, options and HTML tables.

The same sentences serve the command line and Python, so options are named for the reader: ``--set``
only on the command line.
"""

import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_UP, Context
from difflib import get_close_matches
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

_OTHERWISE = {"start": "from", "seat": "as", "every": "all"}
"""Arguments with another name on the command line."""
_typed = False
FIELD = "FIELD=VALUE: a field's name, = and what it is"
"""The form of a field in words, for `pairs`."""
CLOSE = 0.75
"""The similarity (`difflib`) from which a word counts as a misspelling of another. Swapping two of
four letters is above it; ``turns`` and ``yours`` are below."""
FEW = 6  # the most names differing only in a number that are listed one by one
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
LABELS = ("none", "actions", "counts", "chances")
"""The labels that edges of a picture of play can have."""


class Help(NamedTuple):
    """Help for an argument of a Python function; the command line makes its option from it."""

    text: str
    metavar: str | None = None
    min: int | None = None


@contextmanager
def command_line() -> Iterator[None]:
    """Phrase sentences for the command line inside this context."""
    global _typed
    before, _typed = _typed, True
    try:
        yield
    finally:
        _typed = before


def flag(name: str) -> str:
    """Return an argument as it is typed: ``--max-states`` for ``max_states``."""
    return "--" + _OTHERWISE.get(name, name).replace("_", "-")


def option(name: str) -> str:
    """Return an argument's name in a sentence: ``max_states``, or ``--max-states``."""
    return flag(name) if _typed else name


def setting(name: str, value: object) -> str:
    """Return an option of a board: ``score_unit=500``, or ``--set score_unit=500``."""
    return f"{'--set ' * _typed}{name}={value}"


def named(text: str) -> str:
    """Return a text with its options in braces, such as ``{start}``, replaced by `option`."""
    return re.sub(r"\{(\w+)\}", lambda match: option(match[1]), text)


def on_command_line(words: str, otherwise: str = "") -> str:
    """Return `words` on the command line and `otherwise` in Python."""
    return words if _typed else otherwise


def shorten(text: str, length: int) -> str:
    """Return `text` on one line of printable characters, at most `length` long."""
    line = " ".join(text.split())
    line = "".join(char if char.isprintable() else "?" for char in line)
    return line if len(line) <= length else line[: length - 1] + "…"


def show(value: object) -> str:
    """Return a board file's value for a sentence: short, on one line, for any type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(shorten(value, 60))
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"  # Python refuses to print very long ones
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        parts = ["…" if isinstance(part, Mapping | list | tuple) else show(part) for part in value]
        return shorten(f"[{', '.join(parts)}]", 60)
    return "nothing" if value is None else shorten(str(value), 60)


def many(number: int, thing: str, things: str = "") -> str:
    """Return ``1 tier`` or ``74 tiers``; things: the plural, if it is not `thing` and an s."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def nearest(word: str, known: Iterable[str], otherwise: str = "expected one of: ") -> str:
    """Return a suggestion, "did you mean 'a' or 'b'?", or else the list of all known words."""
    known = [name for name in known if name != word]
    lower, several = {name.lower(): name for name in known}, families(known)
    same = lower.get(word.lower())
    if same is not None:
        return f"did you mean {same!r}? Capitals and small letters differ"
    close = get_close_matches(word[:100].lower(), lower, n=3, cutoff=CLOSE)
    matches = [lower[name] for name in close]
    if not matches and len(word) > 2:
        matches = [name for name in several if name.lower().startswith(word.lower())][:3]
    if matches:
        form = families(matches, 0)[0]
        such = f" (as {form})" if form in several and form not in matches else ""
        return f"did you mean {' or '.join(map(repr, matches))}{such}?"
    return otherwise + ", ".join(several)


def families(names: Sequence[str], few: int = FEW) -> list[str]:
    """Return names, with more than `few` that differ only in a number merged: ``hold-at-K``."""
    forms = {name: re.sub(r"\d+", "K", name) for name in names}
    sizes = Counter(forms.values())
    return list(dict.fromkeys(form if sizes[form] > few else n for n, form in forms.items()))


def fields(state: Mapping[str, Any], between: str = " ") -> str:
    """Return a state as it can be typed: ``scores=0,500,0 earned=1,0,0``."""
    return between.join(f"{name}={listed(value)}" for name, value in state.items())


def quoted(state: Mapping[str, Any]) -> str:
    """Return `fields` with each word quoted for a shell, if its values come from a file."""
    return shlex.join(f"{name}={listed(value)}" for name, value in state.items())


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path as short as it can be typed in the current folder."""
    short, folder = Path(path), Path.cwd()
    return str(short.relative_to(folder) if short.is_relative_to(folder) else path)


def listed(value: Any) -> str:
    """Return the value of a field or an option as it can be typed: ``0,500,0``, ``true``."""
    if isinstance(value, bool):
        return str(value).lower()
    if hasattr(value, "tolist"):
        value = value.tolist()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def pairs(words: Iterable[str], error: type[Exception], where: str, form: str) -> dict[str, str]:
    """Return name -> value of words such as ``["a=1", "b=x"]``, each name once.

    Raises `error` for a wrong word, with a sentence that begins with `where` and names the `form`.
    """
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = map(str.strip, word.partition("="))
        if not equals or not name:
            so_far = f"; read so far: {fields(values)}" if values else ""
            raise error(f"{where}'{word}' is not {form}{so_far}")
        if re.search(r",[a-z_]\w*=", value, re.I):
            apart = re.sub(r",(?=[a-z_]\w*=)", " ", word, flags=re.I)
            raise error(f"{where}'{word}' is several in one; separate them with spaces: {apart}")
        if name in values:
            raise error(f"{where}{name} is given twice")
        values[name] = value
    return values


BARE_NOUN = re.compile(r"[a-z]+(,? and .*)?")


def noun(name: str) -> str:
    """Return an outcome's name in a sentence: ``a whammy and out``; ``a 1 (the turn is lost)``."""
    what, _, more = name.replace(", and ", " and ").partition(": ")
    return f"{'a ' * bool(BARE_NOUN.fullmatch(what))}{what}{f' ({more})' if more else ''}"


def spoken(action: str) -> str:
    """An action's name within a sentence: ``pass to player 3`` for ``pass to 3``."""
    return re.sub(r"^(\w+ to) (\d+)$", r"\1 player \2", action)


def exclaimed(name: str) -> str:
    """Return an outcome's name as an exclamation: ``whammy!``; ``a 6``."""
    return f"{name}!" if BARE_NOUN.fullmatch(name) else name


def count(number: float) -> str:
    """Return ``42.9 million``; every digit below a million."""
    if abs(number) < 999_999.5:
        return f"{number:,.0f}"
    if abs(number) < 999.5e6:
        return f"{figures(number / 1e6, 3)} million"
    return f"{figures(number / 1e9, 3)} billion"


def counted(number: float, thing: str) -> str:
    """Return ``1 state`` or ``42.9 million states``."""
    return f"{count(number)} {thing}{'s' * (count(number) != '1')}"


def agree(rows: int) -> str:
    """Return ``10,000 rows agree with the rules``."""
    return f"{many(rows, 'row')} agree{'s' * (rows == 1)} with the rules"


def size(number: float) -> str:
    """Return a number of bytes: ``1.2 GB``."""
    for unit, word in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(number) >= 0.9995 * unit:
            return f"{figures(number / unit, 3)} {word}"
    return many(round(number), "byte")


def figures(number: float, digits: int) -> str:
    """Return a number to `digits` digits, or all digits before the point: ``1,003,000``."""
    return f"{number:z,.{digits}g}" if abs(number) < 10**digits - 0.5 else f"{number:,.0f}"


def duration(seconds: float) -> str:
    """Return ``1 h 12 min``, ``3 min 05 s``, ``2.4 s``: to the nearest minute, second, tenth."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remainder:02d} s"
    hours, remainder = divmod(round(seconds / 60), 60)
    return f"{hours} h {remainder:02d} min"


def within(error: float, each: str = "") -> str:
    """Return an error bound: ``within 3.0e-08``, or ``exact`` for 0."""
    return f"{each}within {bound(error)}" if error else "exact"


def bound(error: float) -> str:
    """Return a bound in two digits, rounded up: ``3.0e-08``."""
    up = Context(prec=2, rounding=ROUND_UP).create_decimal(error * (1 - 1e-9))  # without noise
    return f"{float(up):.1e}"


def percent(chance: float) -> str:
    """``66.1%``; a chance that is neither 0 nor 1 is never written as one of these."""
    if 0 < chance < 0.0005 or 0.9995 < chance < 1:
        return "under 0.1%" if chance < 0.5 else "over 99.9%"
    return f"{100 * chance:z.1f}%"


@dataclass(frozen=True)
class Payoffs:
    """How the payoffs of a game are written: chances to win in percent, their differences in
    points, dollars without decimals."""

    name: str = ""
    chance: bool = False  # whether they are chances to win
    digits: int | None = None  # decimals of plain numbers, which are written instead

    @property
    def dollars(self) -> bool:
        return "dollars" in self.name

    def size(self, value: float) -> str:
        """How large a number is, without its unit, in two digits or three; of dollars to the
        dollar, with the sign."""
        if self.digits is not None:
            return f"{abs(value):.{self.digits}f}"
        sign = "$" if self.dollars else ""
        if sign and (abs(value) >= 1 or not value):
            return f"${abs(value):,.0f}"
        size = abs(value) * (100 if self.chance else 1)
        if size < 0.0005:
            return f"under {sign}0.001" if size else "0"
        digits = sum(size < end for end in (9.95, 0.095, 0.0095))
        return f"{sign}{size:.{digits}f}"

    def change(self, value: float) -> str:
        """A difference without its sign: ``4.1 points``."""
        unit = " points" if self.chance or "points" in self.name else ""
        return self.size(value) + unit * (self.digits is None)

    def span(self, low: float, high: float) -> str:
        """Two differences of one sign, the lesser first: ``0.8 to 17 points``."""
        least, size, most = self.size(low), self.size(high), self.change(high)
        if least == size or size.startswith("under"):
            return most
        return f"{f'{least} to' if low else 'up to'} {most}"

    def text(self, value: float) -> str:
        """Return a payoff: ``66.1%``, ``0.31``, ``254.6``, ``-$1,132``."""
        if self.digits is not None:
            return f"{value:z.{self.digits}f}"
        if self.dollars:
            return f"{'-' if value <= -0.0005 else ''}{self.size(value)}"
        if self.chance:
            return percent(value)
        # Payoffs below 1e-9 are noise; of those above 100, tenths distinguish actions.
        return figures(value if abs(value) > 1e-9 else 0.0, 3 if abs(value) < 100 else 4)

    def of(self, player: str, value: float) -> str:
        """``player 2 wins 66.1%``, ``expected points ahead 0.31``, ``player 2 expects -$1,132``."""
        if self.dollars:
            return f"{player} expects {self.text(value)}"
        of_whom = f"{player} wins" if self.name == "chance to win" else self.name
        return f"{of_whom} {self.text(value)}"


def program() -> str:
    """Return how the command line was called, so that printed commands can be typed again."""
    import shutil

    called = Path(sys.argv[0])
    path = shutil.which("luckbase")
    if called.name != "luckbase":
        return "luckbase"
    return "luckbase" if path and Path(path).resolve() == called.resolve() else str(called)


def some(count: int, sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the first `count` sentences, and how many more there are."""
    more = len(sentences) - count
    return (*sentences[:count], *([f"and {more} more"] if more > 0 else []))


def html_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], caption: Sequence[str] = (), *,
    kind: str = "", marked: int = -1, align: str = "",
) -> str:  # fmt: skip
    """Return rows as an HTML table; the first cell of each row is its heading.

    caption: lines above the table. kind: its class. marked: the number of a row in bold.
    """
    body, cell_tag = [], f'<td style="text-align: {align}">' if align else "<td>"
    for i, row in enumerate(rows):
        bold = ("<b>", "</b>") if i == marked else ("", "")
        first = "".join(f'<th scope="row">{escape(cell)}</th>' for cell in row[:1])
        cells = "".join(f"{cell_tag}{escape(cell).join(bold)}</td>" for cell in row[1:])
        body.append(f"<tr>{first}{cells}</tr>")
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    above = "<br>".join(map(escape, filter(None, caption)))
    return (
        (f'<table class="{kind}">' if kind else "<table>")
        + f"<caption>{above}</caption>" * bool(above)
        + f"<thead><tr>{head}</tr></thead>" * bool(heads)
        + f"<tbody>{''.join(body)}</tbody></table>"
    )


def html_facts(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return names and values as an HTML table without empty values; title: above it."""
    return html_table((), [row for row in rows if row[1]], [title], align="left")
