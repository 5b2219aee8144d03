"""``luckbase eras``: boards of one game under one rule set, side by side, as a page."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import luckbase
from luckbase.jobs import options
from luckbase.jobs.terminal import render
from luckbase.jobs.written import check_out, write

if TYPE_CHECKING:
    from luckbase.solver.board.model import Board
    from luckbase.solver.game.eras import Era, Part

SIGNED = "Written by the command below from the board files and their tables; no number was typed."
"""By this line a page is known as one that may be written again."""


@dataclass(frozen=True)
class EraPage:
    """Which boards, and where the page goes."""

    boards: Annotated[
        list[Path], typer.Argument(metavar="BOARD BOARD...", help="Board files, the oldest first.")
    ]
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.md", help="The page; its pictures are written beside it."),
    ] = None
    settings: options.Settings = None
    results: options.Results = Path("results")


@options.takes(EraPage)
def eras(asked: EraPage) -> None:
    """Compare boards under one rule set: what a spin brings, where decisions moved, with pictures.

    Tables that are missing are solved first. The boards' options must be the same, or made so with
    --set. Without --out the page goes to stdout, without its pictures.
    """
    from luckbase.solver.errors import OptionError

    boards = [options.board_of(name, asked.settings) for name in asked.boards]
    check(boards)
    if asked.out is not None:
        if asked.out.suffix != ".md":
            raise OptionError(f"--out: {asked.out}: the page is Markdown; end it in .md")
        check_out(asked.out, asked.boards, SIGNED, "luckbase eras")
    lines: list[str] = []
    with ExitStack() as stack:
        found = [_solved(board, asked, stack) for board in boards]
        parts = _compared(found)
        lines += page(boards, asked)
    for part in parts:
        lines += [f"## {part.heading}", "", *_wrapped(part.text), ""]
        if part.picture is not None and asked.out is not None:
            lines += [f"![{part.heading}]({_picture(part, asked.out)})", ""]
        lines += [*table(part.columns, part.rows), ""] if part.rows else []
    text = "\n".join(lines).rstrip() + "\n"
    if asked.out is None:
        sys.stdout.write(text)
    else:
        write(asked.out, text.encode())
        render.say(f"{asked.out}: {len(boards)} boards compared")


def check(boards: Sequence[Board]) -> None:
    """Raises OptionError for fewer than two boards, for several games, for options that differ, for
    a game that has nothing to compare."""
    from luckbase.solver import load_game
    from luckbase.solver.errors import OptionError
    from luckbase.solver.game.eras import Eras

    if len(boards) < 2:
        raise OptionError("eras: one board is nothing to compare; name two or more")
    first = boards[0]
    names = [board.name for board in boards]
    if len({*names}) < len(names):
        raise OptionError(f"eras: {', '.join(names)}: two boards have one name; rename a file")
    for board in boards[1:]:
        if board.game != first.game:
            raise OptionError(
                f"eras: {first.name} is of {first.game}, {board.name} of {board.game}"
            )
    for name, values in _by_option(boards).items():
        said = [(where, value) for where, value in values.items() if value is not None]
        for where, value in said:
            if value != said[0][1]:
                raise OptionError(
                    f"{name}: {said[0][1]} on {said[0][0]}, {value} on {where}; make them one rule "
                    f"set with --set {name}={said[0][1]}"
                )
    load_game(first).need(Eras)


def _by_option(boards: Sequence[Board]) -> dict[str, dict[str, Any]]:
    """Every option that some board has, its value on each by the board's name, None on one that has
    no such option."""
    each = {board.name: option_values(board) for board in boards}
    names = dict.fromkeys(name for values in each.values() for name in values)
    return {name: {board: values.get(name) for board, values in each.items()} for name in names}


def option_values(board: Board) -> dict[str, Any]:
    """The options of a board by name, those that are not given left out."""
    found = {}
    for name, location in type(board).options().items():
        value: Any = board
        for part in location:
            value = getattr(value, str(part))
        if value is not None:
            found[name] = value
    return found


def _solved(board: Board, asked: EraPage, stack: ExitStack) -> Era:
    """The board with its table, solved if it is not there."""
    from luckbase.solver.game.eras import Era

    with render.progress(board.name) as show:
        luckbase.solve(board, results=asked.results, on_progress=show)
    table = stack.enter_context(luckbase.open(board, results=asked.results))
    return Era(table.game, table.probe, table.precision)


def _compared(found: list[Era]) -> list[Part]:
    from luckbase.solver.game.eras import Eras

    return found[0].game.need(Eras).compare(found)


def page(boards: Sequence[Board], asked: EraPage) -> list[str]:
    """The head of the page: the boards, their options, what a spin brings, what changed."""
    words = ["luckbase", "eras", *map(str, asked.boards)]
    words += [word for one in asked.settings or [] for word in ("--set", one)]
    words += ["--out", str(asked.out)] if asked.out is not None else []
    return [
        f"# {' and '.join(board.name for board in boards)} under one rule set", "",
        SIGNED, "", "```sh",
        shlex.join(words), "```", "",
        *table(("board", "what it is"), [(board.name, board.title) for board in boards]), "",
        *_wrapped(_rule_set(boards)), "", *_odds(boards), *_changes(boards),
    ]  # fmt: skip


def _rule_set(boards: Sequence[Board]) -> str:
    """The options of all, and those that only some boards can have."""
    every, some = [], []
    for name, values in _by_option(boards).items():
        having = [board for board, value in values.items() if value is not None]
        said = f"{name} {_word(values[having[0]])}"
        if len(having) == len(boards):
            every.append(said)
        else:
            some.append(f" Only {' and '.join(having)} can have {said}.")
    return f"One rule set for all: {', '.join(every)}." + "".join(some)


def _odds(boards: Sequence[Board]) -> list[str]:
    from luckbase.solver import load_game
    from luckbase.solver.game.odds import Odds

    facts = [load_game(board).need(Odds).written for board in boards]
    rows = []
    for each in zip(*facts, strict=True):
        moved = each[-1].value - each[0].value
        change = f"{float(moved):+,.2f}" if each[0].unit else f"{float(moved):+.5f}"
        rows.append((each[0].name, *map(str, each), change))
    heads = ("one spin", *(board.name for board in boards), "moved")
    text = "In dollars as the board has them, before any rounding. Chances are exact fractions:"
    chances = [
        (f"{one.name}", *(str(fact.value) for fact in each))
        for each in zip(*facts, strict=True)
        if not (one := each[0]).unit
    ]
    return ["## What one spin brings", "", text, "", *table(heads, rows), "",
            *table(heads[:-1], chances), ""]  # fmt: skip


def _changes(boards: Sequence[Board]) -> Iterator[str]:
    from luckbase.solver.board.file import differences
    from luckbase.solver.board.model import canonical

    for old, new in pairwise(boards):
        yield from (f"## What changed from {old.name} to {new.name}", "")
        yield from (f"* {line}" for line in differences(canonical(old), canonical(new)))
        yield ""


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(_word(cell) for cell in line) + " |" for line in lines]


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def _picture(part: Part, out: Path) -> str:
    """Writes a part's picture beside the page; its file's name."""
    from luckbase.jobs.terminal.pictures import draw

    assert part.picture is not None
    path = out.with_name(f"{out.stem}-{part.name}.png")
    write(path, draw(part.picture, ".png"))
    render.say(f"{path}: {part.heading}")
    return path.name
