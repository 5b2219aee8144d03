"""``luckbase boards`` and ``info``: the boards to begin with; a board or a table explained."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import luckbase
from luckbase.cluster import words
from luckbase.cluster.words import Help
from luckbase.jobs import options, terminal
from luckbase.solver.compiled import in_python
from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import capital, nearest

if TYPE_CHECKING:
    from luckbase.cluster.info import FieldInfo, OptionInfo, TableAbout

WIDTH = 80
"""Columns of what is printed, where the terminal has as many."""
NAME = 24
"""Of a name in front of a text, at most; a longer one has a line to itself."""


@options.command(
    "luckbase boards",
    "luckbase boards --copy pig/race --out mine.toml",
)
def boards(
    copy: Annotated[str | None, Help("Write this board to a file, to edit.", "NAME")] = None,
    out: Annotated[
        str | None, Help("The file; if not given, the board's name here.", "FILE")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the boards that luckbase brings, or copy one to edit.

    Every command takes their names, without a path. Games that are written down, for luckbase
    advise --file, are listed and copied as well."""
    from luckbase.cluster.info import written_down

    found = [*luckbase.boards(), *written_down()]
    if out is not None and copy is None:
        raise OptionError("--out: name the board to write too: --copy NAME")
    if copy is not None:
        by_name = {each.name: each for each in found}
        if copy not in by_name:
            raise OptionError(f"--copy: unknown board '{copy[:60]}'; {nearest(copy, by_name)}")
        path = by_name[copy].copy(out)
        if as_json:
            terminal.print_json(by_name[copy], {"file": str(path)})
        else:
            print(path)
            then = "solve" if path.suffix == ".toml" else "advise --file"
            terminal.say(f"edit it, then: {words.program()} {then} {path}")
        return
    if as_json:
        listed = {"boards": luckbase.boards(), "episodes": written_down()}
        terminal.print_json({name: [each.as_json() for each in of] for name, of in listed.items()})
        return
    for title, of_game in groupby(found, lambda each: each.game_title):
        print(title)
        rows = [*of_game]
        wide = max(len(each.name) for each in rows)
        for each in rows:
            print(f"  {each.name:{wide}}  {each.about}")
    terminal.say(f"{words.program()} info NAME explains one; --copy NAME writes one to edit")


@options.command(
    "luckbase info pig/race",
    "luckbase info pig/race --json",
)
def info(
    table: Annotated[str, options.Argument("A board file or its name, or a table.", "TABLE")],
    settings: options.Settings = None,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> None:
    """Explain a board or a table: fields, options, charts, agents.

    It says what each field of a state is, which values the options have, how to read the charts,
    and commands to copy; of a table also its size, age and origin."""
    with in_python():
        found = luckbase.info(table, results=results, **options.read_settings(settings))
    if as_json:
        terminal.print_json(found)
        return
    named = found.file if found.table is None else found.table.status.table
    about = ["", *_lines(found.about)] if found.about else []
    print(found.title, named, *about, "", sep="\n")
    who = "of the player" if found.players == 1 else f"of each of {found.players} players"
    low, high = found.payoff_range
    print(f"Payoff: {found.payoff_name}, {who}, from {low:g} to {high:g}.")
    print("\nA state, field by field")
    _print_pairs((each.name, _field_text(each)) for each in found.fields)
    print("\nOptions: --set NAME=VALUE, or in a copy of the board file")
    _print_pairs((_option_name(each), _option_text(each)) for each in found.options)
    if found.charts:
        print("\nCharts: luckbase chart, --what NAME")
        _print_pairs((each.name, f"{capital(each.shows)}. {each.reading}") for each in found.charts)
    print("", *_lines(f"Agents: {', '.join(_runs(found.agents))}, best-response"), sep="\n")
    print("\nTable")
    _print_pairs(_table_rows(found.table))
    print("\nTry")
    for example in found.examples:
        print(*_command_lines(example), sep="\n")


# --- text in 80 columns --------------------------------------------------------------------------


def _wide() -> int:
    """The columns of a line: the terminal's, 80 at most."""
    return min(terminal.width(sys.stdout) or WIDTH, WIDTH)


def _lines(text: str) -> list[str]:
    return textwrap.wrap(text, _wide(), break_on_hyphens=False)


def _command_lines(command: str) -> list[str]:
    """A command that can be copied, over several lines where it is long."""
    lines = [""]
    for word in command.split(" "):
        if len(lines[-1]) + len(word) + 4 > _wide() and lines[-1]:
            lines[-1] += " \\"
            lines.append(" " * 4)
        lines[-1] += f" {word}"
    return [f" {line}" for line in lines]


def _runs(names: Iterable[str]) -> Iterable[str]:
    """Names, those that differ in a number that counts up as one."""
    for stem, of_stem in groupby(names, lambda name: name.rstrip("0123456789")):
        first, *_, last = [*of_stem] * 2
        yield first if first == last else f"{first} to {last.removeprefix(stem)}"


def _print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Names, each with its text beside it; a name that is too long has a line to itself."""
    rows = [*pairs]
    column = 4 + max((len(name) for name, _ in rows if len(name) <= NAME), default=0)
    wide = _wide()
    for name, text in rows:
        lines = textwrap.wrap(text, max(wide - column, 20), break_on_hyphens=False) or [""]
        if len(name) > NAME:
            lines.insert(0, "")
        heads = [f"  {name}", *[""] * len(lines)]
        for head, line in zip(heads, lines, strict=False):
            print(f"{head:{column}}{line}".rstrip())


def _field_text(of: FieldInfo) -> str:
    """What a field is, what may be left out, an example."""
    bounds = ""
    if of.kind in ("number", "players", "list") and of.max is not None:
        step = f" in steps of {of.step}" if of.step > 1 else ""
        bounds = f" {of.min} to {of.max}{step}."
    left_out = "" if of.default is None or of.blank else f" If left out: {of.default}."
    return f"{of.help}{bounds}{left_out} Example: {of.name}={of.example}"


def _option_name(of: OptionInfo) -> str:
    return of.name if of.value is None else f"{of.name}={of.value}"


def _option_text(of: OptionInfo) -> str:
    """What an option does, its other values, and who changed it."""
    values = [each for each in of.values if each not in ("true", "false")]
    said = {"default": "", "board": "the board file", "command": "--set"}[of.set_by]
    otherwise = f"; otherwise {of.default}" if of.default is not None else ""
    return " ".join(
        [of.help, *([f"Values: {', '.join(values)}."] if values else []),
         *([f"Set by {said}{otherwise}."] if said else [])]
    )  # fmt: skip


def _table_rows(of: TableAbout | None) -> Iterable[tuple[str, str]]:
    """A table in lines."""
    if of is None:
        yield "none", "It is not solved yet, with these options."
        return
    status = of.status
    size = f"{words.counted(status.states, 'state')}, {words.size(status.bytes)}"
    size += f" of {status.stores}" * (status.stores != "payoffs")
    priced = status.stores != "decisions" or of.error_bound > 0
    within = f"; each payoff within {of.error_bound:.1e}" * priced
    yield status.state, f"{size} on disk{within}"
    for why in status.why:
        yield "", why
    age = (datetime.now() - datetime.fromisoformat(of.solved)).total_seconds()
    yield "solved", f"{of.solved}, {_ago(age)}"
    for command in of.commands:
        yield "by", command


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{words.many(int(seconds // size), unit)} ago"
    return "just now"
