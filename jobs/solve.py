"""``luckbase solve``: solve the missing parts of tables; with ``--dry-run``, print the plan.

All boards, folders and job files are read before the first is solved.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import luckbase
from luckbase.cluster.solve.options import Options
from luckbase.jobs import app, terminal
from luckbase.jobs.terminal import say
from luckbase.solver import sentences
from luckbase.solver.compiled import in_python
from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import Help

if TYPE_CHECKING:
    from luckbase import Due, Planned, Progress, Solved
    from luckbase.cluster.batch.requests import BoardRequest


@app.command(
    "luckbase solve pig/race",
    "luckbase solve press-your-luck/1985-02 --set score_unit=500 --dry-run",
    api=Options,
)
def solve(
    boards: Annotated[
        list[str],
        app.Argument("Board files, folders of board files, or job files; then, optionally, the "
                         "state from which to search, as with --from.",
                         "BOARD... [FIELD=VALUE...]"),
    ],
    settings: app.Settings = None,
    start: app.From = None,
    results: app.ResultsOrJob = None,
    memory: app.Memory = None,
    dry_run: Annotated[bool, Help("Print the plan and solve nothing.")] = False,
    as_json: app.Json = False,
    **how: Any,
) -> int:  # fmt: skip
    """Solve the missing part of a board's table; the same command resumes.

    Without a state it solves the full table. With FIELD=VALUE or --from, or if the game has no
    full table, it searches all states that can follow. It prints the table's folder on stdout.
    If you name several boards, all are read first. A board that cannot be read or solved is
    reported and skipped; the exit code is then 1.

    --dry-run prints the missing parts and why they are missing, with their states, bytes, memory
    and time. It refuses a table that does not fit in memory or on the disk.
    """
    from luckbase.cluster.batch.requests import is_many

    # Fields after --from a=1 are parsed as boards.
    fields = [word for word in boards if "=" in word and not os.path.exists(word)]
    names = [word for word in boards if word not in fields]
    if not names:
        raise OptionError("solve: name a board file, a folder of them or a job file")
    how |= {"results": results, "memory": app.read_memory(memory)}
    # Only the options that were given, because a job file may set the others.
    how = {name: value for name, value in how.items() if value is not None and value is not False}
    how |= {"start": app.read_start(start, fields), "on_note": say}
    options = app.read_settings(settings)
    folder = results or app.read_results("results")
    many = is_many(names, options, how["start"])
    if dry_run:
        return _dry_run(names, options, how, many, as_json)
    if many:
        return _exit_code(names, _solve_many(names, options, how, as_json))
    return _solve_one(names[0], options, how, folder, as_json)


def _solve_one(
    name: str, options: dict[str, str], how: dict[str, Any], folder: Path, as_json: bool
) -> int:
    from luckbase.cluster.answers.find import changed_since

    board = luckbase.load_board(name, **options)
    before = changed_since(board, folder)
    with terminal.progress(board.name, as_json) as on_progress:
        solved = luckbase.solve(board, on_progress=on_progress, **how)
    if as_json:
        terminal.print_json({"event": "solved"}, solved)
        return 0
    say_solved(solved, before)
    print(sentences.shown(solved.table))
    return 0


def _dry_run(
    names: Sequence[str], options: dict[str, str], how: dict[str, Any], many: bool, as_json: bool
) -> int:
    """Print the plan. Raises the error of a board that is named alone."""
    from luckbase.cluster.batch.run import disk_shortages

    planned = luckbase.plan_all(*names, settings=options, **how)
    if as_json:
        for due in planned:
            terminal.print_json({"event": "planned"}, due)
    elif many:
        _print_due(planned)
    else:
        _print_one_due(planned[0])
    if not many and planned[0].error is not None:
        raise planned[0].error
    for sentence in disk_shortages(planned):
        (say if as_json else print)(sentence)  # each line of JSON is a board
    return _exit_code(names, planned)


def _exit_code(names: Sequence[str], boards: Sequence[Due]) -> int:
    """Return 1 if any board failed; if one board file was named alone, its own exit code."""
    codes = [due.error.exit_code if due.error else 0 for due in boards]
    alone = len(names) == len(codes) == 1 and Path(names[0]) == Path(boards[0].request.file)
    return codes[0] if alone else int(any(codes))


def _solve_many(
    names: Sequence[str], options: dict[str, str], how: dict[str, Any], as_json: bool
) -> list[Due]:
    """Solve all boards; print the result of each, and a summary at the end."""
    outcomes: list[Due] = []
    started: list[BoardRequest] = []
    total = 0

    def show(
        request: BoardRequest, number: int, count: int
    ) -> AbstractContextManager[Callable[[Progress], None]]:
        nonlocal total
        total = count
        started.append(request)
        label = request.file if request.board is None else request.board.name
        return terminal.progress(label, as_json)

    def on_solved(outcome: Due) -> None:
        outcomes.append(outcome)
        if as_json:
            _print_outcome(outcome)
            return
        _say_outcome(outcome, f"[{len(outcomes)}/{total}] {outcome.request.name}", total > 1)
        if outcome.solved is not None:
            print(sentences.shown(outcome.solved.table), flush=True)

    try:
        luckbase.solve_all(*names, settings=options, shown=show, on_solved=on_solved, **how)
    finally:
        if started and total > 1 and not as_json:
            stopped = started[-1].name if len(started) > len(outcomes) else ""
            _say_outcomes(outcomes, total, stopped)
    return outcomes


# --- what a solve did ----------------------------------------------------------------------------


def say_solved(solved: Solved, before: list[str]) -> None:
    """Print a solve's report. before: the board's changes since its last table."""
    name, table = solved.manifest.head.board, sentences.shown(solved.table)
    for fault in solved.damaged[:5]:
        say(f"{name}: damaged, and solved again: {fault}")
    if len(solved.damaged) > 5:
        say(f"{name}: and {len(solved.damaged) - 5} more")
    if before:
        say(f"{name}: the board has changed since its last table: {'; '.join(before[:5])}")
    if not (solved.states if solved.searched else solved.shards):
        done = "all of it is there" if solved.searched else "the table is complete"
        say(f"{name}: nothing to do: {done}, {table}")
        return
    rows = solved.rows
    where = f"in {sentences.many(solved.file_count, 'file')}"
    if solved.goal.roots is not None:
        roots, rows = len(solved.goal.roots.start), solved.states
        where = f"below {'one state' if roots == 1 else sentences.many(roots, 'state')}"
    say(f"{name}: {sentences.counted(rows, 'state')} {where}")
    for label, text in _facts(solved):
        say(f"  {label:13}{text}")
    if not solved.searched:
        _opening_questions(solved)


def _facts(solved: Solved) -> Iterator[tuple[str, str]]:
    """Yield the lines of a solve's report."""
    count, size, manifest = sentences.count, sentences.size, solved.manifest
    if solved.kept:
        again = f", solved again {count(solved.again)} ({solved.again_seconds:.1f} s)"
        back = f", read back {count(solved.read)}"
        more = f"{again * bool(solved.again)}{back * bool(solved.read)}"
        yield "grown", f"kept {count(solved.kept)}{more}, new {count(solved.states)}"
    how = sentences.many(solved.workers, "Ray worker" if solved.ray else "thread")
    compiled = f", after {sentences.duration(solved.compile_seconds)} of compiling"
    compiled *= solved.compile_seconds > 1
    yield "time", f"{sentences.duration(solved.seconds)} with {how}{compiled}"
    kernel = count(solved.states / max(solved.solve_seconds, 1e-9))
    if not solved.searched:
        rate = count((solved.states + solved.again + solved.read) / solved.seconds)
        yield "speed", f"{rate} states/s end to end, {kernel} a core in the kernel"
    elif solved.solve_seconds:
        edges = solved.edges / max(solved.states, 1)
        yield "speed", f"{kernel} states/s a worker in the search, {edges:.1f} edges a state"
    if solved.levels:
        levels = sentences.many(solved.levels, "level")
        shards = sentences.many(solved.shards, "shard")
        yield "stages", f"{solved.stages} of {levels} in {shards}"
    each = solved.bytes / max(solved.rows, 1)
    digits = 1 if solved.searched else 2
    yield "size", f"{size(solved.bytes)}, {each:.{digits}f} bytes a state, Parquet"
    a_state = f", {solved.bytes_a_state:.0f} bytes a state while solving"
    yield "memory", f"{size(solved.peak_memory)} at most{a_state * bool(solved.bytes_a_state)}"
    parts = {"tiers": "payoffs", "decisions": "each the best"}
    for part, what in ({solved.goal.part: "payoffs"} if solved.searched else parts).items():
        if manifest.of_part(part) and (what == "payoffs" or manifest.error(part)):
            yield "accuracy", f"{what} {sentences.within(manifest.error(part))}"


def _opening_questions(solved: Solved) -> None:
    from luckbase.cluster.answers.examples import action_names, opening_answers
    from luckbase.cluster.answers.find import open_table

    with open_table(solved.table, named_by_board=True) as source, in_python(beside=True):
        answers = opening_answers(source)
    if not answers:
        return
    names = action_names(answers)
    rows = [(q.label, sentences.fields(q.state), *map(q.payoff_of, names), q.best) for q in answers]
    say()
    heads = ("the player up is" if names else "", "state", *names, "best")
    what = f", and the {source.game.payoff_name} of the player who acts" if names else ""
    terminal.print_table(f"A few questions{what}:", heads, rows, sys.stderr)
    question = sentences.fields(answers[0].state)
    table = shlex.quote(sentences.shown(solved.table))
    say(f"Ask anything: {sentences.program()} query {table} {question}", unbroken=True)


# --- what became of many boards ------------------------------------------------------------------


def _say_outcome(outcome: Due, where: str, many: bool) -> None:
    """Print the result of a board. many: errors are printed below the table of all boards."""
    solved = outcome.solved
    if solved is None:
        say(f"{where}: {'failed' if many else _without(outcome.error, outcome.request.file)}")
    elif outcome.state == "complete":
        say(f"{where}: nothing to do")
    else:
        new = (
            f"{sentences.counted(solved.states, 'state')} in {sentences.duration(outcome.seconds)}"
        )
        kept = f", kept {sentences.count(solved.kept)}" if solved.kept else ""
        say(f"{where}: {new}{kept}")
        for changed in outcome.why[:5]:
            say(f"  {changed}")


def _without(message: object, file: str) -> str:
    """Remove the file name from the beginning of a message, if it was printed before."""
    return str(message).removeprefix(f"{file}: ")


def _say_outcomes(outcomes: Sequence[Due], total: int, stopped: str) -> None:
    """Print the table of results, and a summary.

    total: number of requested boards.
    stopped: the board that was being solved when the command was interrupted; "" if none.
    """
    rows: list[tuple[str, ...]] = []
    for outcome in outcomes:
        solved, numbers = outcome.solved, ("", "", "")
        if solved is not None:
            numbers = (
                sentences.count(solved.states), sentences.count(solved.kept),
                sentences.size(solved.manifest.bytes),
            )  # fmt: skip
        duration = sentences.duration(outcome.seconds) if outcome.state == "solved" else ""
        rows.append((outcome.request.name, outcome.state, *numbers, duration))
    if stopped:
        rows.append((stopped, "stopped", "", "", "", ""))
    say()
    heads = ("board", "", "new states", "kept", "on disk", "time")
    terminal.print_table("", heads, rows, sys.stderr)
    for outcome in outcomes:
        if outcome.error:
            say(f"{outcome.request.name}: {_without(outcome.error, outcome.request.file)}")
    states = [outcome.state for outcome in outcomes]
    counts = [f"{states.count(state)} {state}" for state in ("solved", "complete", "failed")
              if state in states]  # fmt: skip
    seconds = sum(outcome.seconds for outcome in outcomes)
    done = f"{', '.join(counts)} in {sentences.duration(seconds)}" if outcomes else "none done"
    remaining = total - len(outcomes) - bool(stopped)
    more = [f"{stopped} was stopped"] * bool(stopped) + [f"{remaining} not begun"] * bool(remaining)
    sums = [f"{sentences.many(total, 'board')}: {done}", ", ".join(more)]
    say("; ".join(filter(None, sums)))


def _print_outcome(outcome: Due) -> None:
    """Print a board's result as JSON, in the form used for a single board, with its file."""
    where = {"file": outcome.request.file, "set": outcome.request.settings}
    if outcome.solved is not None:
        terminal.print_json({"event": "solved"}, outcome.solved, where)
        return
    board = outcome.request.board
    failed = {"event": "failed", "board": None if board is None else board.name}
    terminal.print_json(failed, where, {"error": str(outcome.error)})


# --- what is to be done --------------------------------------------------------------------------


def _print_due(planned: Sequence[Due]) -> None:
    todo = [due for due in planned if due.state not in ("complete", "refused")]
    rows = []
    for due in planned:
        numbers = ("", "", "")
        if due in todo:
            states = f"{'more than ' * due.more}{sentences.counted(due.states, 'state')}"
            numbers = (states, sentences.size(due.bytes), sentences.duration(due.seconds))
        rows.append((due.request.name, due.state, *numbers))
    heads = ("board", "is", "to solve", "on disk", "time")
    terminal.print_table("What is to be solved", heads, rows, sys.stdout)
    for due in planned:
        reasons = [due.error] if due.error else due.why
        for reason in reasons if due.state != "missing" else ():
            print(f"{due.request.name}: {_without(reason, due.request.file)}")
    summary = f"{len(todo)} of {sentences.many(len(planned), 'board')} to solve"
    if todo:
        size, seconds = sum(due.bytes for due in todo), sum(due.seconds for due in todo)
        summary += f": {sentences.counted(sum(due.states for due in todo), 'state')}, about "
        summary += f"{sentences.size(size)} and {sentences.duration(seconds)}"
    refused = sum(due.state == "refused" for due in planned)
    print(summary + (f"; {refused} cannot be" if refused else ""))


def _print_one_due(due: Due) -> None:
    """Print the state of one board and the plan of its whole solve."""
    if due.state != "refused":
        reasons = "; ".join(_without(reason, due.request.file) for reason in due.why)
        terminal.print_to_fit(f"{due.request.name} is {due.state}{': ' * bool(reasons)}{reasons}")
    if due.plan is None:
        return
    _print_plan(due.plan)
    if due.states < due.plan.states:
        remaining, size = sentences.counted(due.states, "state"), sentences.size(due.bytes)
        print(f"still to solve  {remaining}, {size}, about {sentences.duration(due.seconds)}")


def _print_plan(plan: Planned) -> None:
    bound = "" if plan.exact else "more than "
    size, kept = sentences.size, sentences.size(plan.kept_bytes)
    if plan.groups:
        count, heads = sentences.count, ("", "shards", "states", "memory a shard")
        rows = [
            (group.name, str(group.shards), count(group.states), size(group.memory))
            for group in plan.groups
        ]
        rows.append(("all", str(len(plan.plan.shards)), count(plan.states), ""))
        terminal.print_table(f"The plan for {plan.board}", heads, rows, sys.stdout)
    else:
        how = f"in {sentences.many(plan.levels, 'level')}" if plan.levels else "in one piece"
        how = "by levels" if plan.levels is None else how
        print(f"The plan for a search on {plan.board}")
        print(f"states          {bound}{sentences.count(plan.states)} {how}")
    print(f"table on disk   {bound or 'about '}{size(plan.table_bytes)}")
    if plan.groups:
        print(f"kept payoffs    about {kept} at their fullest, for shards that read them")
    elif plan.kept_bytes:
        print(f"until it ends   {bound or 'about '}{kept} more")
    workers = sentences.many(plan.workers, "thread" if plan.groups else "worker")
    print(f"peak memory     about {size(plan.peak_memory)} with {workers}")
    print(f"time            {bound or 'about '}{sentences.duration(plan.seconds)}")
