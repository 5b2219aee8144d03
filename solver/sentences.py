"""Words for sentences: values and names as an error quotes them, options as who reads it has them;
rows as an HTML table.

What is a sentence of the command line's is one of Python's too, and there nobody wrote ``--set``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from html import escape
from typing import Any

_OTHERWISE = {"start": "from", "seat": "as", "every": "all"}
"""Arguments that have another name on the command line."""
_typed = False
FIELD = "FIELD=VALUE: a field's name, = and what it is"
"""The form of a field in words, for `pairs`."""
CLOSE = 0.75
"""How alike words are (`difflib`) for one to be a slip of the other: four letters with two swapped
are, ``turns`` and ``yours`` are not."""
FEW = 6
"""Names that differ in a number alone are said one by one, up to so many."""
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@contextmanager
def command_line() -> Iterator[None]:
    """While this lasts, sentences are for somebody who types commands."""
    global _typed
    before, _typed = _typed, True
    try:
        yield
    finally:
        _typed = before


def flag(name: str) -> str:
    """An argument as it is typed: ``--max-states`` for ``max_states``."""
    return "--" + _OTHERWISE.get(name, name).replace("_", "-")


def option(name: str) -> str:
    """An argument as a sentence names it: ``max_states``; ``--max-states`` for who types."""
    return flag(name) if _typed else name


def setting(name: str, value: object) -> str:
    """An option of a board: ``score_unit=500``; ``--set score_unit=500`` for who types."""
    return f"{'--set ' * _typed}{name}={value}"


def named(text: str) -> str:
    """A text that was written beforehand, with the options that it has in braces: ``{start}``."""
    return re.sub(r"\{(\w+)\}", lambda found: option(found[1]), text)


def on_command_line(words: str, otherwise: str = "") -> str:
    """Words of a sentence that are for who types alone, or what stands there otherwise."""
    return words if _typed else otherwise


def shorten(text: str, most: int) -> str:
    """`text` on one line of printable characters, at most `most` long."""
    line = " ".join(text.split())
    line = "".join(char if char.isprintable() else "?" for char in line)
    return line if len(line) <= most else line[: most - 1] + "…"


def show(value: object) -> str:
    """A value from a board file as a sentence quotes it: short, on one line, whatever it is."""
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
    """``1 tier``, ``74 tiers``; things: of more than one, if it is not `thing` and an s."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def capital(text: str) -> str:
    """A text with a capital first letter."""
    return text[:1].upper() + text[1:]


def nearest(word: str, known: Iterable[str], otherwise: str = "expected one of: ") -> str:
    """A clause on what was meant: "did you mean 'a' or 'b'?", or else all that is known."""
    known = [name for name in known if name != word]
    lower, several = {name.lower(): name for name in known}, families(known)
    same = lower.get(word.lower())
    if same is not None:
        return f"did you mean {same!r}? Capitals and small letters differ"
    close = get_close_matches(word[:100].lower(), lower, n=3, cutoff=CLOSE)
    found = [lower[name] for name in close]
    if not found and len(word) > 2:
        found = [name for name in several if name.lower().startswith(word.lower())][:3]
    if found:
        form = families(found, 0)[0]
        such = f" (as {form})" if form in several and form not in found else ""
        return f"did you mean {' or '.join(map(repr, found))}{such}?"
    return otherwise + ", ".join(several)


def families(names: Sequence[str], few: int = FEW) -> list[str]:
    """Names, and of more than a few that differ in a number alone one: ``hold-at-K``."""
    forms = {name: re.sub(r"\d+", "K", name) for name in names}
    sizes = Counter(forms.values())
    return list(dict.fromkeys(form if sizes[form] > few else n for n, form in forms.items()))


def fields(state: Mapping[str, Any], between: str = " ") -> str:
    """A state as it can be typed: ``scores=0,500,0 earned=1,0,0``."""
    return between.join(f"{name}={listed(value)}" for name, value in state.items())


def listed(value: Any) -> str:
    """A field's value as it can be typed: ``0,500,0``."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def pairs(words: Iterable[str], error: type[Exception], where: str, form: str) -> dict[str, str]:
    """What words of a form say, ``["a=1", "b=x"]`` -> ``{"a": "1", "b": "x"}``, each name once;
    error and where: of a sentence on a wrong one."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = map(str.strip, word.partition("="))
        if not equals or not name:
            raise error(f"{where}'{word}' is not {form}")
        if name in found:
            raise error(f"{where}{name} is given twice")
        found[name] = value
    return found


def html_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], caption: Sequence[str] = (), *,
    kind: str = "", marked: int = -1, align: str = "",
) -> str:  # fmt: skip
    """Rows as an HTML table, the first cell of each the heading of its row.

    heads: of the columns, none if empty; caption: lines above it; kind: its class; marked: the
    number of a row that is set in bold; align: where text stands in its cells, if not given where
    the page has it.
    """
    body, cell_tag = [], f'<td style="text-align: {align}">' if align else "<td>"
    for i, row in enumerate(rows):
        bold = ("<b>", "</b>") if i == marked else ("", "")
        first = "".join(f'<th scope="row">{escape(cell)}</th>' for cell in row[:1])
        rest = "".join(f"{cell_tag}{escape(cell).join(bold)}</td>" for cell in row[1:])
        body.append(f"<tr>{first}{rest}</tr>")
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    above = "<br>".join(map(escape, filter(None, caption)))
    return (
        (f'<table class="{kind}">' if kind else "<table>")
        + f"<caption>{above}</caption>" * bool(above)
        + f"<thead><tr>{head}</tr></thead>" * bool(heads)
        + f"<tbody>{''.join(body)}</tbody></table>"
    )


def html_facts(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Names and what is said of them as an HTML table, what is empty left out; title: above it."""
    return html_table((), [row for row in rows if row[1]], [title], align="left")
