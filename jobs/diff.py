"""``luckbase diff``: which decisions another table moves, and what the old ones cost there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from luckbase.cluster import words
from luckbase.cluster.words import Help
from luckbase.jobs import options, terminal
from luckbase.solver.sentences import capital

if TYPE_CHECKING:
    from luckbase.cluster.table.comparison import Comparison


@options.command(
    "luckbase diff pig/tiny pig/tiny --set-second sides=4",
    "luckbase diff pig/tiny pig/tiny --set-second sides=4 --out moved.csv",
)
def diff(
    first: options.TableName,
    second: Annotated[str, options.Argument("Another table of the game.", "TABLE")],
    more: options.More = None,
    reachable: Annotated[
        bool, Help("Only states that can come up under best play of either table.")
    ] = False,
    start: options.From = None,
    out: Annotated[
        str | None, Help("Every decision that moved, as .csv or .parquet.", "FILE")
    ] = None,
    picture: Annotated[
        str | None, Help("Where decisions moved, as .png, .svg or .pdf.", "FILE")
    ] = None,
    groups: Annotated[int, Help("Print the N groups that cost most in all.", "N", 0)] = 12,
    worst: Annotated[int, Help("Print the N decisions that cost most.", "N", 0)] = 10,
    tolerance: Annotated[
        float | None, Help("Payoffs closer than this count as equal.", "X", 0)
    ] = None,
    sample: Annotated[int | None, Help("Compare N states only, drawn evenly.", "N", 1)] = None,
    seed: Annotated[int, Help("Seed of the sample.", "N", 0)] = 0,
    settings: options.Settings = None,
    set_second: Annotated[
        list[str] | None, Help("As --set, for the second board only.", "NAME=VALUE")
    ] = None,
    results: options.Results = Path("results"),
    as_json: options.Json = False,
) -> int:
    """Say where decisions differ between two tables, and at what cost.

    The cost is that of the first table's action, in the second table's payoffs, to the one who
    decides; toss-ups are counted apart. Exit code 1 if the tables differ."""
    from luckbase.cluster.table.frames import check_place

    suffix = ""
    if picture is not None:
        suffix = options.check_ending("--picture", picture, options.PICTURES)
        check_place("--picture", picture)
    roots = options.read_start(start, more)
    mine, theirs = _settings_of(first, second, settings or [], set_second or [])
    with (
        options.open_found(first, results, mine) as old,
        options.open_found(second, results, theirs) as new,
        terminal.rows_progress("diff") as on_rows,
    ):
        names = [old.origin, new.origin]
        options.say_unfinished(first, old)
        options.say_unfinished(second, new)
        found = old.diff(
            new, tolerance=tolerance, worst=worst, sample=sample, seed=seed, reachable=reachable,
            start=roots, out=out, on_rows=on_rows,
        )  # fmt: skip
    if out is not None:
        moved = found.actions + found.toss_ups + found.one_sided + found.unpriced
        terminal.say(f"{out}: {words.counted(moved, 'decision')}")
    if as_json:
        terminal.print_json({"tables": [name.as_json() for name in names]}, found)
    else:
        _print(found, names, groups)
    if picture is not None:  # last: whatever befalls it, the answer is there
        sys.stdout.flush()
        _draw(picture, suffix, found, names)
    return 1 if found.differs else 0


def _settings_of(
    first: str, second: str, both: list[str], settings: list[str]
) -> tuple[list[str], list[str]]:
    """The options of each table, `settings` of the second; none of a directory."""
    mine, theirs = (both if not options.is_folder(table) else [] for table in (first, second))
    own = [word.partition("=")[0].strip() for word in settings]
    kept = [word for word in theirs if word.partition("=")[0].strip() not in own]
    return mine, [*kept, *settings]


def _draw(where: str, suffix: str, found: Comparison, names: Sequence[Any]) -> None:
    from luckbase.jobs.plots import draw

    boards = [name.board for name in names]
    if boards[0] == boards[1]:
        boards = [f"{name.board} ({name.solve_id})" for name in names]
    drawn = draw(found.picture.heatmap(f"{boards[1]} in place of {boards[0]}"), suffix)
    size = words.size(terminal.write_file(where, drawn))
    terminal.say(f"{where}: where decisions moved, {size}")


def _print(found: Comparison, names: Sequence[Any], groups: int) -> None:
    if found.actions:
        heads, cases = found.case_rows()
        terminal.print_table("", heads, cases, sys.stdout)
    for sentence in found.notes:
        terminal.print_to_fit(f"{capital(sentence)}.")
    print(f"{'' if not found.notes else chr(10)}first   {names[0]}\nsecond  {names[1]}")
    up = " that can come up" if found.reachable else ""
    said = [f"{words.many(found.states, 'state')} in both{up}"]
    sides = ("first are not in the second", "second are not in the first")
    said += [f"{n:,} of the {side}" for side, n in zip(sides, found.only, strict=True)
             if n is not None]  # fmt: skip
    terminal.print_to_fit(f"{', '.join(said)}; payoffs closer than {found.tolerance:.1e} agree")
    print(f"payoffs of {words.many(found.payoffs, 'state')} differ", end="")
    print(f", by {found.amount(found.largest)} at most" * bool(found.payoffs))
    moved = [group for group in found.groups if group.changed]
    rows = [
        (
            ", ".join(group.group.values()), f"{group.decisions:,}", f"{group.changed:,}",
            f"{100 * group.changed / max(group.decisions, 1):.2f} %", found.amount(group.mean),
            found.amount(group.worst),
        )
        for group in moved[:groups]
    ]  # fmt: skip
    if rows:
        heads = (", ".join(moved[0].group), "decisions", "moved", "share", "mean cost", "worst")
        terminal.print_table("", heads, rows, sys.stdout)
        if len(moved) > len(rows):
            print(f"and {words.many(len(moved) - len(rows), 'more group')} (--groups {len(moved)})")
    worst = [
        (words.fields(each.state), found.amount(each.cost), *map(str, each.best))
        for each in found.worst
    ]
    if worst:
        columns = ("state", "cost", "before", "now")
        terminal.print_table("", columns, worst, sys.stdout)
