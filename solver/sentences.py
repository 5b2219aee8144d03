"""Words for sentences: values and names as an error quotes them."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


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


def nearest(word: str, known: Iterable[str]) -> str:
    """A clause on what was meant: "did you mean 'a' or 'b'?", or else all that is known."""
    known = list(known)
    close = get_close_matches(word[:100].lower(), known, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"known here: {', '.join(known)}"
