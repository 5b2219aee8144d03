"""``luckbase status``, ``verify``, ``diff``, ``publish`` and ``clean``: tables as a whole.

They show which tables exist, check and compare them, copy them or write a page about them, and
remove those that no board file needs.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import luckbase
from luckbase.jobs import app, terminal
from luckbase.solver import sentences
from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import Help, capital, shorten

if TYPE_CHECKING:
    from luckbase import Spare, Status
    from luckbase.cluster.answers.comparison import Comparison
    from luckbase.cluster.answers.table import Table

SORTS: dict[str, Any] = {
    "name": None, "size": attrgetter("bytes"), "date": lambda status: status.date or "",
    "states": attrgetter("states"),
}  # fmt: skip
CLEAN_WORDS = {"unneeded": "not needed", "running": "being solved"}


@app.command(
    "luckbase status --sort size",
    "luckbase status pig/race",
)
def status(
    tables: Annotated[
        list[str] | None,
        app.Argument(
            "Tables' folders, board files, folders of board files, job files (default: all).",
            "[TABLE...]",
        ),
    ] = None,
    sort: Annotated[
        str, Help("Sort by name, size (largest first), date (newest first) or states.", "KEY")
    ] = "name",
    settings: app.Settings = None,
    results: app.ResultsOrJob = None,
    as_json: app.Json = False,
) -> int:
    """Show which tables are complete, partial, stale or damaged, and why.

    It checks only names and sizes of files; verify reads their bytes. The exit code is 1 unless all
    are complete."""
    if sort not in SORTS:
        raise OptionError(f"--sort: '{shorten(sort, 30)}'; expected {', '.join(SORTS)}")
    app.read_results(results or "results")
    set_options = app.read_settings(settings)
    statuses = luckbase.status(*(tables or []), results=results, settings=set_options)
    if SORTS[sort] is not None:
        statuses.sort(key=SORTS[sort], reverse=True)
    for each in statuses:
        if as_json:
            terminal.print_json(each)
        else:
            _print_status(each)
    if not as_json:
        _print_total(statuses, results)
    return 0 if all(each.state == "complete" for each in statuses) else 1


def _print_status(each: Status) -> None:
    terminal.print_to_fit(f"{each.state:9s} {each.table} {sentences.fields(each.options)}".rstrip())
    if each.state not in ("missing", "refused"):
        date = "" if each.date is None else f", {each.date[:16].replace('T', ' ')}"
        present = "" if each.tiers == each.tiers_in_all else f"{each.tiers} of "
        files = (
            f", {present}{sentences.many(each.tiers_in_all, 'tier')}" if each.tiers_in_all else ""
        )
        files += f" of {each.stores}" * (each.stores != "payoffs")
        below = f", below {sentences.many(each.roots, 'root')}" if each.roots else ""
        size = f"{sentences.counted(each.states, 'state')}, {sentences.size(each.bytes)}"
        print(f"          {size}{date}{files}{below}")
    for reason in [
        *_running(each.running or {}),
        *each.why,
        *(each.grid or ()),
    ]:
        print(f"          {reason}")


def _print_total(statuses: Sequence[Status], results: Path | None) -> None:
    if not statuses:
        print(f"no tables under {results or 'results'}")
    existing = [each for each in statuses if each.state != "missing"]
    if len(existing) > 1:
        states = sentences.counted(sum(each.states for each in existing), "state")
        size = sentences.size(sum(each.bytes for each in existing))
        print(f"\n          {sentences.many(len(existing), 'table')}: {states}, {size}")


def _running(state: dict[str, Any]) -> Iterator[str]:
    if not state:
        return
    seconds_left = state["seconds_left"]
    far = f"{state['shards']} of {sentences.many(state['shards_total'], 'shard')}"
    if state["finding"]:
        from luckbase.cluster.solve.progress import finding_text

        far = finding_text(state["states"], state["finding"])
    yield (
        f"running: process {state['process']} on {state['host']} since {state['since']}, {far}, "
        f"{sentences.count(state['states_a_second'])} states/s, "
        f"{sentences.size(state['memory'])} here"
        + ("" if seconds_left is None else f", about {sentences.duration(seconds_left)} left")
    )
    for node in state["nodes"]:
        activity = sentences.many(node["slots"], "core")
        if "shards_done" in node:
            activity += f", {sentences.many(node['shards_done'], 'shard')} done"
        yield f"  {node['node']}: {activity}"
    if state["last_note"]:
        yield f"  {state['last_note']}"


@app.command(
    "luckbase verify pig/race",
    "luckbase verify pig/tiny --all",
)
def verify(
    table: app.TableName,
    sample: Annotated[
        int | None, Help(f"Rows to recompute from the rules ({app.SAMPLE}).", "N", 0)
    ] = None,
    every: Annotated[bool, Help("Recompute every row.")] = False,
    seed: Annotated[int, Help("Seed of the sample.", "N", 0)] = 0,
    settings: app.Settings = None,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
) -> int:
    """Check a table: all its bytes, and its payoffs against the rules.

    Exit code 1 if it fails. A row's residual is the payoff recomputed from the rules, not the
    kernel, minus the stored one. Twice the error that its file promises is allowed.
    """
    rows = app.read_sample(sample, every)
    with (
        app.open_named(table, results, settings) as source,
        terminal.rows_progress("verify") as on_rows,
    ):
        verdict = source.verify(rows, seed, on_rows)
        manifest, error = source.manifest, source.error
        origin, where = source.origin, source.where
    if as_json:
        terminal.print_json(origin, {"table": str(where)}, verdict)
        return 0 if verdict.ok else 1
    for fault in verdict.faults:
        print(f"fault: {fault}")
    if verdict.faults:
        return 1
    files = f"{sentences.many(verdict.files, 'file')} as written, {sentences.size(manifest.bytes)}"
    terminal.print_to_fit(f"{origin}: {files}")
    checked = verdict.residuals
    if checked is not None and checked.rows:
        state = sentences.fields(checked.state)
        terminal.print_to_fit(
            f"{sentences.agree(checked.rows)}: worst residual {checked.worst:.2e} at "
            f"{state}, where {checked.bound:.2e} is allowed, mean {checked.mean:.2e}, stored to "
            f"{sentences.bound(error)}"
        )
    if not manifest.complete:
        unfinished = sum(not manifest.is_done(goal) for goal in manifest.goals)
        solves = sentences.many(len(manifest.goals), "solve")
        which = f"{unfinished} of its {solves}" if manifest.goals[1:] else "its solve"
        print(f"the table is partial: {which} did not end")
    return 0


@app.command(
    "luckbase diff pig/tiny pig/tiny --set-second sides=4",
    "luckbase diff pig/tiny pig/tiny --set-second sides=4 --out moved.csv",
)
def diff(
    first: app.TableName,
    second: Annotated[str, app.Argument("Another table of the game.", "TABLE")],
    out: Annotated[
        str | None, Help("Write all changed decisions to a .csv or .parquet file.", "FILE")
    ] = None,
    picture: Annotated[
        str | None, Help("Draw the changes to a .png, .svg, .pdf or .html file.", "FILE")
    ] = None,
    worst: Annotated[int, Help("Print the N most costly changes.", "N", 0)] = 10,
    sample: Annotated[int | None, Help("Compare only N random states.", "N", 1)] = None,
    settings: app.Settings = None,
    set_second: Annotated[
        list[str] | None, Help("Like --set, for the second board only.", "NAME=VALUE")
    ] = None,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
) -> int:
    """Compare two tables: the decisions that differ, and their cost.

    The cost is the loss of the player who decides, if they take the first table's action in the
    game of the second table. Toss-ups are counted separately. Exit code 1 if the tables differ."""
    from luckbase.cluster.answers.charts import PICTURES
    from luckbase.cluster.answers.files import check_place

    suffix = ""
    if picture is not None:
        suffix = app.check_ending("--picture", picture, PICTURES)
        check_place("--picture", picture)
    first_settings, second_settings = _settings_of(first, second, settings or [], set_second or [])
    with (
        app.open_named(first, results, first_settings) as old,
        app.open_named(second, results, second_settings) as new,
        terminal.rows_progress("diff") as on_rows,
    ):
        names = [old.origin, new.origin]
        app.say_unfinished(first, old)
        app.say_unfinished(second, new)
        result = old.diff(new, worst=worst, sample=sample, out=out, on_rows=on_rows)
    if out is not None:
        moved = result.actions + result.toss_ups + result.one_sided + result.unpriced
        terminal.say(f"{out}: {sentences.counted(moved, 'decision')}")
    if as_json:
        terminal.print_json({"tables": [name.as_json() for name in names]}, result)
    else:
        _print_comparison(result, names)
    if picture is not None:  # last, so that an error here does not hide the answer
        sys.stdout.flush()
        _draw(picture, suffix, result, names)
    return 1 if result.differs else 0


def _settings_of(
    first: str, second: str, both: list[str], settings: list[str]
) -> tuple[list[str], list[str]]:
    """Return the options of each table; `settings` are for the second. A folder has none."""
    in_first = [] if app.is_folder(first) else both
    in_second = [] if app.is_folder(second) else both
    names = [word.partition("=")[0].strip() for word in settings]
    inherited = [word for word in in_second if word.partition("=")[0].strip() not in names]
    return in_first, [*inherited, *settings]


def _draw(where: str, suffix: str, result: Comparison, names: Sequence[Any]) -> None:
    from luckbase.cluster.answers.charts import draw

    boards = [name.board for name in names]
    if boards[0] == boards[1]:
        boards = [f"{name.board} ({name.solve_id})" for name in names]
    drawn = draw(result.picture.heatmap(f"{boards[1]} in place of {boards[0]}"), suffix)
    size = sentences.size(terminal.write_file(where, drawn))
    terminal.say(f"{where}: where decisions moved, {size}")


def _print_comparison(result: Comparison, names: Sequence[Any]) -> None:
    if result.actions:
        heads, cases = result.case_rows()
        terminal.print_table("", heads, cases, sys.stdout)
    for sentence in result.notes:
        terminal.print_to_fit(f"{capital(sentence)}.")
    print(f"{'' if not result.notes else chr(10)}first   {names[0]}\nsecond  {names[1]}")
    counts = [f"{sentences.many(result.states, 'state')} in both"]
    sides = ("first are not in the second", "second are not in the first")
    counts += [f"{n:,} of the {side}" for side, n in zip(sides, result.only, strict=True)
             if n is not None]  # fmt: skip
    terminal.print_to_fit(f"{', '.join(counts)}; payoffs closer than {result.tolerance:.1e} agree")
    stored = ", of those with payoffs in both," * bool(result.unpriced)
    print(f"payoffs of {sentences.many(result.payoffs, 'state')}{stored} differ", end="")
    print(f", by {result.amount(result.largest)} at most" * bool(result.payoffs))
    if result.worst:
        columns = ("state", "cost", "before", "now")
        terminal.print_table("", columns, result.worst_rows(), sys.stdout)


PAGES = (".html", ".htm")
"""Suffixes of a page's file."""


@app.command(
    "luckbase publish pig/race s3://bucket/pig",
    "luckbase publish pig/tiny tiny.html",
)
def publish(
    table: app.TableName,
    to: Annotated[
        str,
        app.Argument("A store, a folder of a web server, or a page to write.", "URI|FILE.html"),
    ],
    sample: Annotated[
        int | None, Help(f"Rows to verify for the page ({app.SAMPLE}); 0 for none.", "N", 0)
    ] = None,
    every: Annotated[bool, Help("Verify every row for the page.")] = False,
    settings: app.Settings = None,
    strict: app.Strict = False,
    results: app.Results = Path("results"),
    as_json: app.Json = False,
) -> int:
    """Copy a finished table to a store, or write a page to send.

    Every copied byte is checked when it is read and after it was written. The same command resumes
    a copy that was stopped. A copy on a web server that supports range requests can be queried over
    https.

    A page is one HTML file with the board, a summary, charts and a verification. It needs no
    network. The exit code is 1 if the verification finds faults.
    """
    rows = app.read_sample(sample, every)
    is_page = Path(to).suffix.lower() in PAGES
    if is_page and "://" in to:
        raise OptionError(f"{to}: a page is written to a file on this machine")
    if is_page and not Path(to).parent.is_dir():
        raise OptionError(f"{to}: {Path(to).parent} is not a folder; create it first")
    if not is_page and (sample is not None or every):
        name = "--all" if every else "--sample"
        raise OptionError(f"{name}: only a page verifies rows; publish to a FILE.html")
    with app.open_named(table, results, settings, strict) as source:
        if is_page:
            return _write_page(source, Path(to), rows, as_json)
        with terminal.rows_progress("publish") as on_rows:
            result = source.publish(to, on_rows)
    if as_json:
        terminal.print_json(result)
        return 0
    size, files = sentences.size(result.bytes), sentences.many(result.files, "file")
    existing = result.files - result.copied
    more = f", {existing} of them there before" if existing else ""
    print(f"{result.to}: {sentences.counted(result.states, 'state')}, {size} in {files}{more}")
    return 0


def _write_page(table: Table, path: Path, rows: int | None, as_json: bool) -> int:
    """Write a table's page and print its verdict. Return 1 if the verification found faults."""
    page = luckbase.report(table, rows)
    written = page.save(path)
    if as_json:
        verdict = None if page.verdict is None else page.verdict.as_json()
        summary = {"charts": page.charts, "verdict": verdict}
        terminal.print_json(table.origin, summary, {"file": str(path), "bytes": written})
        return 0 if page.ok else 1
    text = "not verified"
    if page.verdict is not None and page.verdict.ok:
        residuals = page.verdict.residuals
        text = sentences.agree(residuals.rows if residuals else 0)
    elif page.verdict is not None:
        text = f"faults were found: {page.verdict.faults[0]}"
    charts, size = sentences.many(len(page.charts), "chart"), sentences.size(written)
    terminal.say(f"{path}: {charts}, {text}, {size}")
    print(path)
    return 0 if page.ok else 1


@app.command(
    "luckbase clean",
    "luckbase clean --yes",
)
def clean(
    names: Annotated[
        list[str] | None,
        app.Argument(
            "Only the tables of these board files, folders or job files; or tables.", "[BOARD...]"
        ),
    ] = None,
    results: app.ResultsOrJob = None,
    yes: Annotated[bool, Help("Remove the listed tables.")] = False,
    as_json: app.Json = False,
) -> int:
    """List or remove the tables that no board file needs any more.

    A table that was solved with --set, from given states or from Python is removed only if you name
    its folder. A table that a board file needs, or that is being solved, stays. The exit code is 1
    if a table cannot be read or, with --yes, cannot be removed.
    """
    spares = luckbase.clean(*(names or []), results=results, yes=yes)
    for spare in spares:
        if as_json:
            terminal.print_json(spare)
        else:
            _print_spare(spare)
    if not as_json:
        of_boards = f"of these boards under {results}" if results else "of these boards"
        _sum_up(spares, of_boards if names else f"under {results or 'results'}")
    stay = [yes and spare.named and spare.state != "removed" for spare in spares]
    return 1 if any(stay) or any(spare.error for spare in spares) else 0


def _print_spare(spare: Spare) -> None:
    states = f", {sentences.counted(spare.states, 'state')}" if spare.states else ""
    state = CLEAN_WORDS.get(spare.state, spare.state)
    print(f"{state:13s} {spare.table}  {sentences.size(spare.bytes)}{states}")
    reasons = [*spare.why]
    if spare.state == "kept" and not (spare.error or spare.table.is_symlink()):
        command = f"{sentences.program()} clean {shlex.quote(str(spare.table))} --yes"
        reasons.append(f"to remove it, run: {command}")
    if spare.foreign:
        reasons.append(f"not written by luckbase, and kept: {', '.join(spare.foreign[:5])}")
    if spare.error:
        reasons.append(spare.error)
    for reason in reasons:
        print(f"              {reason}")


def _sum_up(spares: Sequence[Spare], which: str) -> None:
    """Print what --yes would do, or did. which: the tables that were considered."""
    removed = [spare for spare in spares if spare.state == "removed"]
    unasked = [spare for spare in spares if spare.state == "unneeded"]
    size = sentences.size(sum(spare.bytes for spare in removed or unasked))
    tables = f"{sentences.many(len(removed or unasked), 'table')}, {size}"
    if removed:
        terminal.say(f"removed {tables}")
    elif unasked:
        terminal.say(f"{tables}; --yes removes {'them' if len(unasked) > 1 else 'it'}")
    elif not spares:
        terminal.say(f"nothing to remove: every table {which} is needed")
