"""What a solve did, what is due of many boards and what became of them: for people, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.cluster.batch.plan import Due
    from luckbase.cluster.batch.run import Outcome
    from luckbase.cluster.run.options import Solved


def as_json(solved: Solved) -> dict[str, Any]:
    """The report as JSON values."""
    return _search_json(solved) if solved.searched else _full_json(solved)


def say(solved: Solved, path: Path, before: list[str]) -> None:
    """The report in lines for people. path: the board file as it was named; before: what it has
    changed since its last table."""
    if solved.searched:
        say_search(solved)
    else:
        _summary(solved, path, before)


def _origin(solved: Solved) -> dict[str, Any]:
    from luckbase.cluster.table.table import open_table

    with open_table(solved.table, named_by_board=True) as opened:
        return opened.origin.as_json()


def _full_json(solved: Solved) -> dict[str, Any]:
    ledger = solved.ledger
    done = solved.states + solved.again + solved.read
    return _origin(solved) | {
        "table": str(solved.table),
        "states": ledger.rows,
        "tiers": len(ledger.files),
        "bytes": ledger.bytes,
        "kept": solved.kept,
        "solved_again": solved.again,
        "read_back": solved.read,
        "solved_now": solved.states,
        "damaged": list(solved.damaged),
        "seconds": round(solved.seconds, 3),
        "states_per_second": round(done / solved.seconds) if solved.seconds else None,
        "compile_seconds": round(solved.compile_seconds, 3),
        "kernel_seconds": round(solved.solve_seconds, 3),
        "peak_memory": solved.peak_memory,
        "workers": solved.workers,
        "ray": solved.ray,
        "tally": solved.tally,
    }


def _search_json(solved: Solved) -> dict[str, Any]:
    ledger = solved.ledger
    return _origin(solved) | {
        "table": str(solved.table),
        "states": sum(entry.rows for entry in ledger.of_part(solved.goal.part)),
        "bytes": sum(entry.bytes for entry in ledger.of_part(solved.goal.part)),
        "kept": solved.kept,
        "solved_now": solved.states,
        "damaged": list(solved.damaged),
        "edges": solved.edges,
        "overlap": round(solved.overlap, 4),
        "levels": solved.levels,
        "stages": solved.stages,
        "shards": solved.shards,
        "seconds": round(solved.seconds, 3),
        "solve_seconds": round(solved.solve_seconds, 3),
        "bytes_a_state": round(solved.bytes_a_state, 1),
        "peak_memory": solved.peak_memory,
        "workers": solved.workers,
        "ray": solved.ray,
    }


def say_search(solved: Solved) -> None:
    """What a search did, in lines for people."""
    ledger, say = solved.ledger, render.say
    name, roots = ledger.head.board, solved.goal.roots
    entries = ledger.of_part(solved.goal.part)
    assert roots is not None
    for fault in solved.damaged[:5]:
        say(f"{name}: damaged, and solved again: {fault}")
    if len(solved.damaged) > 5:
        say(f"{name}: and {len(solved.damaged) - 5} more")
    if not solved.states:
        table = render.shown(solved.table)
        say(f"{name}: nothing to do: all of it is there, {table}")
        return
    n = len(roots.start)
    below = "one state" if n == 1 else f"{n} states"
    say(f"{name}: {render.counted(solved.states, 'state')} below {below}")
    if solved.kept:
        say(f"  grown        kept {render.count(solved.kept)}, new {render.count(solved.states)}")
    how = f"{solved.workers} Ray workers" if solved.ray else f"{solved.workers} threads"
    say(f"  time         {render.duration(solved.seconds)} with {how}")
    if solved.solve_seconds:
        rate = solved.solved / solved.solve_seconds / 1e6
        per = solved.edges / max(solved.solved, 1)
        say(f"  speed        {rate:.2f} M states/s a worker in the search, {per:.1f} edges a state")
    if solved.levels:
        say(
            f"  stages       {solved.stages} of {render.many(solved.levels, 'level')} in "
            f"{render.many(solved.shards, 'shard')}, "
            f"overlap {solved.overlap:.2f} (states solved over distinct states)"
        )
    stored = sum(entry.bytes for entry in entries)
    size = stored / max(sum(entry.rows for entry in entries), 1)
    say(f"  size         {render.size(stored)}, {size:.1f} bytes a state, Parquet")
    a_state = solved.bytes_a_state
    each = f", {a_state:.0f} bytes a state while solving" if a_state else ""
    say(f"  memory       {render.size(solved.peak_memory)} at most{each}")
    precision = ledger.precision(solved.goal.part)
    told = precision == ledger.error(solved.goal.part)
    where = "" if told else " where all decisions below are told, and not all are"
    say(f"  accuracy     payoffs within {precision:.1e}{where}")


def _summary(solved: Solved, path: Path, before: list[str]) -> None:
    ledger, say = solved.ledger, render.say
    table = render.shown(solved.table)
    name = ledger.head.board
    for fault in solved.damaged[:5]:
        say(f"{name}: damaged, and solved again: {fault}")
    if len(solved.damaged) > 5:
        say(f"{name}: and {len(solved.damaged) - 5} more")
    if solved.shards == 0:
        say(f"{name}: nothing to do: the table is complete, {table}")
        return
    if before:
        say(f"{name} is not the board of its older table: {'; '.join(before[:5])}")
    how = f"{solved.workers} Ray workers" if solved.ray else f"{solved.workers} threads"
    files = render.many(len(ledger.files), "file")
    say(f"{name}: {render.counted(ledger.rows, 'state')} in {files}")
    if solved.kept:
        again = f", solved again {render.count(solved.again)} ({solved.again_seconds:.1f} s)"
        read = f", read back {render.count(solved.read)}"
        say(
            f"  grown        kept {render.count(solved.kept)}{again * bool(solved.again)}"
            f"{read * bool(solved.read)}, new {render.count(solved.states)}"
        )
    compiled = solved.compile_seconds
    first = f", after {render.duration(compiled)} of compiling" if compiled > 1 else ""
    say(f"  time         {render.duration(solved.seconds)} with {how}{first}")
    rate = (solved.states + solved.again + solved.read) / solved.seconds
    kernel = solved.states / max(solved.solve_seconds, 1e-9)
    say(
        f"  speed        {rate / 1e6:.1f} M states/s end to end, "
        f"{kernel / 1e6:.0f} M states/s a core in the kernel"
    )
    say(
        f"  size         {render.size(ledger.bytes)}, {ledger.bytes / ledger.rows:.2f} bytes "
        "a state, Parquet"
    )
    say(f"  memory       {render.size(solved.peak_memory)} at most")
    say(f"  accuracy     payoffs within {ledger.error('tiers'):.1e}")
    if solved.tally:
        counted = (f"{name} {number:.3g}" for name, number in solved.tally.items())
        say(f"  counted      {', '.join(counted)}")
    _opening_questions(solved, path)


def _opening_questions(solved: Solved, path: Path) -> None:
    import shlex

    from luckbase.cluster.table.status import action_names, opening_answers
    from luckbase.cluster.table.table import open_table

    with open_table(solved.table, named_by_board=True) as opened:
        answers = opening_answers(opened)
    if not answers:
        return
    names = action_names(answers)
    rows = [(q.title, render.fields(q.state), *map(q.payoff_of, names), q.best) for q in answers]
    render.say()
    heads = ("the player up is" if names else "", "state", *names, "best")
    what = f", and the {opened.game.payoff_name} of who acts" if names else ""
    render.print_table(f"A few questions{what}:", heads, rows, sys.stderr)
    question = render.fields(answers[0].state)
    table = shlex.quote(render.shown(solved.table))
    render.say(f"Ask anything: {render.program()} query {table} {question}")


def print_due(planned: Sequence[Due]) -> None:
    """A table of what is due, and its sum."""
    rows = [_due_row(due) for due in planned]
    heads = ("board", "is", "to solve", "on disk", "time")
    render.print_table("What is to be solved", heads, rows, sys.stdout)
    for due in planned:
        reasons = [str(due.error)] if due.error else due.why
        for reason in reasons if due.state != "missing" else ():
            print(f"{due.request.name}: {_without(reason, due.request.file)}")
    todo = [due for due in planned if due.state not in ("complete", "refused")]
    refused = sum(due.state == "refused" for due in planned)
    states, size = sum(due.states for due in todo), sum(due.bytes for due in todo)
    said = f"{len(todo)} of {render.many(len(planned), 'board')} to solve"
    if todo:
        said += f": {render.counted(states, 'state')}, about {render.size(size)} and "
        said += render.duration(sum(due.seconds for due in todo))
    print(said + (f"; {refused} can not be" if refused else ""))


def _due_row(due: Due) -> tuple[str, ...]:
    if due.state in ("complete", "refused"):
        return (due.request.name, due.state, "", "", "")
    about = "about " if due.about else ""
    return (
        due.request.name, due.state, f"{about}{render.counted(due.states, 'state')}",
        render.size(due.bytes), render.duration(due.seconds),
    )  # fmt: skip


def _without(said: str, file: str) -> str:
    """A sentence without the file that it begins with, where that stands before it already."""
    return said.removeprefix(f"{file}: ")


def say_outcome(outcome: Outcome, number: int, total: int) -> None:
    """A line for a board that is done."""
    where = f"[{number}/{total}] {outcome.request.name}"
    if outcome.failed:
        render.say(f"{where}: {_without(outcome.error, outcome.request.file)}")
        return
    render.say(f"{where}: {_did(outcome)}")
    if outcome.state == "solved":
        for said in outcome.changed[:5]:
            render.say(f"  {said}")


def _did(outcome: Outcome) -> str:
    solved = outcome.solved
    assert solved is not None
    if outcome.state == "complete":
        return "nothing to do"
    new = f"{render.counted(solved.states, 'state')} in {render.duration(outcome.seconds)}"
    return f"{new}, kept {render.count(solved.kept)}" if solved.kept else new


def say_outcomes(outcomes: Sequence[Outcome], total: int, stopped: str = "") -> None:
    """The table of what happened, and its sum, of more than one. total: boards asked for. stopped:
    the name of the one that was being solved when the night was ended."""
    if total == 1:
        return
    rows = []
    for outcome in outcomes:
        solved = outcome.solved
        numbers = ("", "", "")
        if solved is not None:
            numbers = (
                render.count(solved.states), render.count(solved.kept),
                render.size(solved.ledger.bytes),
            )  # fmt: skip
        time = render.duration(outcome.seconds) if outcome.state == "solved" else ""
        rows.append((outcome.request.name, outcome.state, *numbers, time))
    if stopped:
        rows.append((stopped, "stopped", "", "", "", ""))
    render.say()
    heads = ("board", "", "new states", "kept", "on disk", "time")
    render.print_table("", heads, rows, sys.stderr)
    for outcome in outcomes:
        if outcome.failed:
            render.say(f"{outcome.request.name}: {_without(outcome.error, outcome.request.file)}")
    words = [(sum(outcome.state == word for outcome in outcomes), word) for word in
             ("solved", "complete", "failed")]  # fmt: skip
    said = ", ".join(f"{count} {word}" for count, word in words if count)
    seconds = sum(outcome.seconds for outcome in outcomes)
    done = f"{said} in {render.duration(seconds)}" if outcomes else "none done"
    left = total - len(outcomes) - bool(stopped)
    more = [f"{stopped} was stopped"] * bool(stopped) + [f"{left} not begun"] * bool(left)
    render.say(
        "; ".join([f"{render.many(total, 'board')}: {done}", *[", ".join(more)] * bool(more)])
    )


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """A board's outcome as JSON values: as the solve of one board says it, with its file."""
    where = {"file": outcome.request.file, "set": outcome.request.settings}
    if outcome.solved is None:
        board = outcome.request.board
        name = None if board is None else board.name
        return {"event": "failed", "board": name, **where, "error": outcome.error}
    return {"event": "solved", **as_json(outcome.solved), **where}


def print_json(said: dict[str, Any]) -> None:
    """A line of JSON."""
    print(json.dumps(said), flush=True)
