"""``luckbase diff``: which decisions another table moves, and what the old ones cost there."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.cluster.table.comparison import Comparison


@dataclass(frozen=True)
class Diff:
    """Which tables, and what is told of them."""

    one: options.TableName
    other: Annotated[str, typer.Argument(metavar="TABLE", help="Another table of the game.")]
    more: options.More = None
    reachable: Annotated[
        bool,
        typer.Option(
            "--reachable", help="Only states that can come up under best play of either table."
        ),
    ] = False
    start: options.From = None
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Every decision that moved, as .csv or .parquet."),
    ] = None
    picture: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where decisions moved, as .png, .svg or .pdf."),
    ] = None
    groups: Annotated[
        int, typer.Option(metavar="N", min=0, help="Print the N groups that cost most in all.")
    ] = 12
    worst: Annotated[
        int, typer.Option(metavar="N", min=0, help="Print the N decisions that cost most.")
    ] = 10
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="X", min=0, help="Payoffs closer than this agree; the tables' precision"
        ),
    ] = None
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Compare N states only, drawn evenly.")
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Which states are drawn.")] = 0
    settings: options.Settings = None
    second: Annotated[
        list[str] | None,
        typer.Option(
            "--set-second", metavar="NAME=VALUE", help="As --set, for the second board only."
        ),
    ] = None
    results: options.Results = Path("results")
    as_json: options.Json = False

    def settings_of(self) -> list[list[str]]:
        """The options of each table; none of a directory."""
        both, second = self.settings or [], self.second or []
        mine, theirs = (both if not Path(t).is_dir() else [] for t in (self.one, self.other))
        return [mine, [*(w for w in theirs if _name(w) not in map(_name, second)), *second]]


@options.takes(Diff)
def diff(args: Diff) -> int:
    """Say which decisions the second table moves, and what it costs to keep those of the first
    (exit code 1 if the tables differ).

    The cost is in the second one's payoffs, to the one who decides; toss-ups are counted apart."""
    suffix = _suffix(args.picture)
    start = options.read_start(args.start, args.more)
    chosen = args.settings_of()
    with (
        options.open_found(args.one, args.results, chosen[0]) as first,
        options.open_found(args.other, args.results, chosen[1]) as last,
        render.progress("diff") as on_progress,
    ):
        names = [table.origin for table in (first, last)]
        for name, table in ((args.one, first), (args.other, last)):
            options.say_unfinished(name, table)
        found = first.diff(
            last, tolerance=args.tolerance, worst=args.worst, sample=args.sample,
            seed=args.seed, reachable=args.reachable, start=start, out=args.out,
            on_rows=render.rows_progress(on_progress),
        )  # fmt: skip
    if args.out is not None:
        moved = found.actions + found.toss_ups + found.one_sided + found.unpriced
        render.say(f"{args.out}: {render.counted(moved, 'decision')}")
    if args.as_json:
        print(json.dumps({"tables": [name.as_json() for name in names], **found.as_json()}))
    else:
        _print(found, names, args.groups)
    if args.picture is not None:  # last: whatever befalls it, the answer is there
        sys.stdout.flush()
        _draw(args.picture, suffix, found, names)
    return 1 if found.differs else 0


def _name(word: str) -> str:
    return word.partition("=")[0].strip()


def _suffix(picture: str | None) -> str:
    """The ending of the picture's file. Raises OptionError for another than there are, and where
    it can not be written."""
    from luckbase.cluster.table.files import check_place
    from luckbase.solver.errors import OptionError

    suffix = "" if picture is None else Path(picture).suffix.lower()
    if picture is not None and suffix not in options.PICTURES:
        raise OptionError(f"--picture: {picture}: end it in {', '.join(options.PICTURES)}")
    if picture is not None:
        check_place("--picture", picture)
    return suffix


def _draw(where: str, suffix: str, found: Comparison, names: Sequence[Any]) -> None:
    from luckbase.cluster.table.files import whole_file
    from luckbase.jobs.plots import draw

    boards = [name.board for name in names]
    if boards[0] == boards[1]:
        boards = [f"{name.board} ({name.solve_id})" for name in names]
    drawn = draw(found.picture.heatmap(f"{boards[1]} in place of {boards[0]}"), suffix)
    with whole_file(where) as file:
        file.write(drawn)
    render.say(f"{where}: where decisions moved, {render.size(len(drawn))}")


def _states(found: Comparison) -> str:
    """How many were compared, and how many are in one table only."""
    up = " that can come up" if found.reachable else ""
    said = [f"{render.many(found.states, 'state')} in both{up}"]
    sides = (("first", "second"), ("second", "first"))
    for (one, other), count in zip(sides, found.only, strict=True):
        if count is not None:
            said.append(f"{count:,} of the {one} are not in the {other}")
    return ", ".join(said)


def _print(found: Comparison, names: Sequence[Any], groups: int) -> None:
    for sentence in found.sentences:
        print(render.to_fit(f"{sentence[:1].upper()}{sentence[1:]}.", sys.stdout))
    print()
    print(f"first   {names[0]}\nsecond  {names[1]}")
    print(f"{_states(found)}; payoffs closer than {found.tolerance:.1e} agree")
    print(f"payoffs differ at {found.payoffs:,}, by {found.largest:.3e} at most")
    moved = [group for group in found.groups if group.changed]
    rows = [
        (
            ", ".join(group.group.values()), f"{group.decisions:,}", f"{group.changed:,}",
            f"{100 * group.changed / max(group.decisions, 1):.2f} %", f"{group.mean:.2e}",
            f"{group.worst:.2e}",
        )
        for group in moved[:groups]
    ]  # fmt: skip
    if rows:
        heads = (", ".join(moved[0].group), "decisions", "moved", "share", "mean cost", "worst")
        render.print_table("", heads, rows, sys.stdout)
        if len(moved) > len(rows):
            print(
                f"and {render.many(len(moved) - len(rows), 'more group')} (--groups {len(moved)})"
            )
    worst = [
        (
            render.fields(one.state), f"{one.cost:.3e}", f"{one.size:.3e}", str(one.best[0]),
            str(one.best[1]),
        )
        for one in found.worst
    ]  # fmt: skip
    if worst:
        columns = ("state", "cost", "payoffs apart", "best in the first", "in the second")
        render.print_table("", columns, worst, sys.stdout)
