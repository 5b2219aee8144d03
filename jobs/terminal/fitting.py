"""Text made to fit a width, without ever cutting a number: cells of tables, and lines.

A table that is too wide gets narrower in its text columns, states and names first, which break at
spaces, after commas and after slashes; a column of numbers stays whole. What can not be made to fit
is printed as a block a row. Heads break at spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

BETWEEN = 3
"""Characters that a column takes beside its cells."""


def fit(
    heads: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> tuple[list[str], list[list[str]]] | None:
    """The heads and the cells with line breaks where the table would be wider than `width`; None
    where no line breaks make it fit."""
    columns = [[row[i] for row in rows] for i in range(len(heads))]
    numbers = [_is_number(column) for column in columns]
    least = [
        max([*map(len, column)] if number else _pieces(column), default=0)
        for column, number in zip(columns, numbers, strict=True)
    ]
    least = [max(own, *_pieces([head])) for own, head in zip(least, heads, strict=True)]
    wide = [max(map(len, [head, *column])) for head, column in zip(heads, columns, strict=True)]
    room = width - BETWEEN * len(heads) - 1
    if sum(least) > room:
        return None
    while sum(wide) > room:  # what can give most gives first
        i = max(range(len(wide)), key=lambda i: (wide[i] > least[i], wide[i]))
        wide[i] -= 1
    cells = [
        [cell if numbers[i] else "\n".join(broken(cell, wide[i])) for i, cell in enumerate(row)]
        for row in rows
    ]
    return ["\n".join(broken(head, wide[i])) for i, head in enumerate(heads)], cells


def blocks(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A block a row, lines ``head: value``, and an empty line between."""
    lines = []
    for row in rows:
        for head, cell in zip(heads, row, strict=True):
            if cell:
                lines += broken(f"{head}: {cell}" if head else cell, width, "    ")
        lines.append("")
    return lines[:-1]


def broken(text: str, width: int, indent: str = "") -> list[str]:
    """The lines of a text of at most `width`, where its words are, or the pieces of a longer word;
    `indent` before all but the first. A piece that is longer has a line to itself."""
    lines, line = [], ""
    for word in re.findall(r"\s*\S+\s*", text):
        whole = len(indent) + len(word.strip()) <= width
        for piece in [word] if whole else filter(None, re.findall(PIECE, word)):
            if line.strip() and len(line) + len(piece.rstrip()) > width:
                lines.append(line.rstrip())
                line = indent + piece.lstrip()
            else:
                line += piece
    return [*lines, line.rstrip()]


PIECE = r"\s*[^\s,/]*[,/]?\s*"
"""What a long word may be broken into: after commas and after slashes."""


def _pieces(texts: Iterable[str]) -> list[int]:
    """The lengths of what can not be broken."""
    return [len(piece.strip()) for text in texts for piece in re.findall(PIECE, text)] or [0]


def _is_number(column: Iterable[str]) -> bool:
    """Whether every cell of a column begins as a number does, or is empty."""
    return all(re.match(r"[+\-−–$]?\.?\d|[–\-]?$", cell) for cell in column)


def fold(lines: Sequence[str], width: int) -> list[str]:
    """Lines of at most `width`: columns that all lines have are put below one another, the first
    one before each part; lines without such columns are broken."""
    if all(len(line) <= width for line in lines):
        return list(lines)
    most = max(map(len, lines))
    padded = [line.ljust(most) for line in lines]
    blank = [all(line[k] == " " for line in padded) for k in range(most)]
    gaps = [k for k in range(2, most) if blank[k - 2] and blank[k - 1] and not blank[k]]
    if len(lines) < 2 or len(gaps) < 2:
        return [part for line in lines for part in broken(line, width, "    ")]
    first = gaps[1] if blank[0] and gaps[0] == blank.index(False) else gaps[0]
    folded, start = [], first
    while start < most:
        ends = [k for k in [*gaps, most] if start < k <= start + width - first]
        end = ends[-1] if ends else min(k for k in [*gaps, most] if k > start)
        folded += [*((line[:first] + line[start:end]).rstrip() for line in padded), ""]
        start = end
    return folded[:-1]
