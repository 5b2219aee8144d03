"""What is due of many boards, and what became of them, for people and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from luckbase.jobs.terminal import render, solved_report

if TYPE_CHECKING:
    from luckbase.cluster.night.due import Due
    from luckbase.cluster.night.outcome import Outcome


def print_due(found: Sequence[Due]) -> None:
    """A table of what is due, and its sum."""
    rows = [_due_row(one) for one in found]
    heads = ("board", "is", "to solve", "on disk", "time")
    render.print_table("What is to be solved", heads, rows, sys.stdout)
    for one in found:
        reasons = [str(one.error)] if one.error else one.why
        for reason in reasons if one.state != "missing" else ():
            print(f"{one.asked.name}: {_without(reason, one.asked.file)}")
    todo = [one for one in found if one.state not in ("complete", "refused")]
    refused = sum(one.state == "refused" for one in found)
    states, size = sum(one.states for one in todo), sum(one.bytes for one in todo)
    said = f"{len(todo)} of {render.many(len(found), 'board')} to solve"
    if todo:
        said += f": {render.counted(states, 'state')}, about {render.size(size)} and "
        said += render.duration(sum(one.seconds for one in todo))
    print(said + (f"; {refused} can not be" if refused else ""))


def _due_row(one: Due) -> tuple[str, ...]:
    if one.state in ("complete", "refused"):
        return (one.asked.name, one.state, "", "", "")
    about = "about " if one.about else ""
    return (
        one.asked.name, one.state, f"{about}{render.counted(one.states, 'state')}",
        render.size(one.bytes), render.duration(one.seconds),
    )  # fmt: skip


def _without(said: str, file: str) -> str:
    """A sentence without the file that it begins with, where that stands before it already."""
    return said.removeprefix(f"{file}: ")


def say_outcome(one: Outcome, number: int, total: int) -> None:
    """A line for a board that is done."""
    where = f"[{number}/{total}] {one.asked.name}"
    if one.failed:
        render.say(f"{where}: {_without(one.error, one.asked.file)}")
        return
    render.say(f"{where}: {_did(one)}")
    if one.state == "solved":
        for said in one.changed[:5]:
            render.say(f"  {said}")


def _did(one: Outcome) -> str:
    solved = one.solved
    assert solved is not None
    if one.state == "complete":
        return "nothing to do"
    new = f"{render.counted(solved.states, 'state')} in {render.duration(one.seconds)}"
    return f"{new}, kept {render.count(solved.kept)}" if solved.kept else new


def say_outcomes(found: Sequence[Outcome], total: int, stopped: str = "") -> None:
    """The table of what happened, and its sum, of more than one. total: boards asked for. stopped:
    the name of the one that was being solved when the night was ended."""
    if total == 1:
        return
    rows = []
    for one in found:
        solved = one.solved
        numbers = ("", "", "")
        if solved is not None:
            numbers = (
                render.count(solved.states), render.count(solved.kept),
                render.size(solved.ledger.bytes),
            )  # fmt: skip
        time = render.duration(one.seconds) if one.state == "solved" else ""
        rows.append((one.asked.name, one.state, *numbers, time))
    if stopped:
        rows.append((stopped, "stopped", "", "", "", ""))
    render.say()
    heads = ("board", "", "new states", "kept", "on disk", "time")
    render.print_table("", heads, rows, sys.stderr)
    for one in found:
        if one.failed:
            render.say(f"{one.asked.name}: {_without(one.error, one.asked.file)}")
    words = [(sum(one.state == word for one in found), word) for word in
             ("solved", "complete", "failed")]  # fmt: skip
    said = ", ".join(f"{count} {word}" for count, word in words if count)
    seconds = sum(one.seconds for one in found)
    done = f"{said} in {render.duration(seconds)}" if found else "none done"
    left = total - len(found) - bool(stopped)
    more = [f"{stopped} was stopped"] * bool(stopped) + [f"{left} not begun"] * bool(left)
    render.say(
        "; ".join([f"{render.many(total, 'board')}: {done}", *[", ".join(more)] * bool(more)])
    )


def as_json(one: Outcome) -> dict[str, Any]:
    """A board's outcome as JSON values: as the solve of one board says it, with its file."""
    where = {"file": one.asked.file, "set": one.asked.settings}
    if one.solved is None:
        board = one.asked.board
        name = None if board is None else board.name
        return {"event": "failed", "board": name, **where, "error": one.error}
    return {"event": "solved", **solved_report.as_json(one.solved), **where}


def print_json(said: dict[str, Any]) -> None:
    """A line of JSON."""
    print(json.dumps(said), flush=True)
