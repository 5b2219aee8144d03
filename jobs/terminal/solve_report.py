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
    from luckbase.cluster.run.progress import Solved, SolvedSearch, SolvedTiers


def say(solved: Solved, path: Path, before: list[str]) -> None:
    """The report in lines for people. path: the board file as it was named; before: what it has
    changed since its last table."""
    from luckbase.cluster.run.progress import SolvedSearch, SolvedTiers

    name, table = solved.ledger.head.board, render.shown(solved.table)
    for fault in solved.damaged[:5]:
        render.say(f"{name}: damaged, and solved again: {fault}")
    if len(solved.damaged) > 5:
        render.say(f"{name}: and {len(solved.damaged) - 5} more")
    if isinstance(solved, SolvedSearch):
        if solved.states:
            _say_search(solved)
        else:
            render.say(f"{name}: nothing to do: all of it is there, {table}")
    elif isinstance(solved, SolvedTiers) and solved.shards:
        if before:
            render.say(f"{name} is not the board of its older table: {'; '.join(before[:5])}")
        _say_tiers(solved)
        _opening_questions(solved, path)
    else:
        render.say(f"{name}: nothing to do: the table is complete, {table}")


def _say_search(solved: SolvedSearch) -> None:
    ledger, say = solved.ledger, render.say
    roots = solved.goal.roots
    assert roots is not None
    n = len(roots.start)
    below = "one state" if n == 1 else f"{n} states"
    say(f"{ledger.head.board}: {render.counted(solved.states, 'state')} below {below}")
    if solved.kept:
        say(f"  grown        kept {render.count(solved.kept)}, new {render.count(solved.states)}")
    _say_time(solved)
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
    each = solved.bytes / max(solved.rows, 1)
    say(f"  size         {render.size(solved.bytes)}, {each:.1f} bytes a state, Parquet")
    a_state = solved.bytes_a_state
    while_solving = f", {a_state:.0f} bytes a state while solving" if a_state else ""
    say(f"  memory       {render.size(solved.peak_memory)} at most{while_solving}")
    precision = ledger.precision(solved.goal.part)
    decided = precision == ledger.error(solved.goal.part)
    where = "" if decided else " where all decisions below are told, and not all are"
    say(f"  accuracy     payoffs within {precision:.1e}{where}")


def _say_time(solved: Solved, more: str = "") -> None:
    how = f"{solved.workers} Ray workers" if solved.ray else f"{solved.workers} threads"
    render.say(f"  time         {render.duration(solved.seconds)} with {how}{more}")


def _say_tiers(solved: SolvedTiers) -> None:
    ledger, say = solved.ledger, render.say
    files = render.many(solved.tiers, "file")
    say(f"{ledger.head.board}: {render.counted(solved.rows, 'state')} in {files}")
    if solved.kept:
        again = f", solved again {render.count(solved.again)} ({solved.again_seconds:.1f} s)"
        read = f", read back {render.count(solved.read)}"
        say(
            f"  grown        kept {render.count(solved.kept)}{again * bool(solved.again)}"
            f"{read * bool(solved.read)}, new {render.count(solved.states)}"
        )
    compiled = solved.compile_seconds
    _say_time(solved, f", after {render.duration(compiled)} of compiling" if compiled > 1 else "")
    rate = (solved.states + solved.again + solved.read) / solved.seconds
    kernel = solved.states / max(solved.solve_seconds, 1e-9)
    say(
        f"  speed        {rate / 1e6:.1f} M states/s end to end, "
        f"{kernel / 1e6:.0f} M states/s a core in the kernel"
    )
    each = solved.bytes / solved.rows
    say(f"  size         {render.size(solved.bytes)}, {each:.2f} bytes a state, Parquet")
    say(f"  memory       {render.size(solved.peak_memory)} at most")
    say(f"  accuracy     payoffs within {ledger.error('tiers'):.1e}")
    if solved.tally:
        counted = (f"{name} {number:.3g}" for name, number in solved.tally.items())
        say(f"  counted      {', '.join(counted)}")


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
    return {"event": "solved", **outcome.solved.as_json(), **where}


def print_json(said: dict[str, Any]) -> None:
    """A line of JSON."""
    print(json.dumps(said), flush=True)
