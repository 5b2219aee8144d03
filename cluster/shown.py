"""How results show themselves in a notebook: a small table of what they are."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def facts(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """A table of two columns, what is empty left out; title: above it."""
    body = "".join(
        f'<tr><th>{escape(name)}</th><td style="text-align: left">{escape(said)}</td></tr>'
        for name, said in rows
        if said
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"


def listing(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with heads."""
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
