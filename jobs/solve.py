"""``luckbase solve``: solve what is missing of a full table, or of what lies below some roots."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from luckbase.jobs import options
from luckbase.jobs.terminal import render

if TYPE_CHECKING:
    from luckbase.cluster.run.driver import Solved
    from luckbase.cluster.table.answer import Answer
    from luckbase.solver.board.model import Board
    from luckbase.solver.game.game import Game

MOST_SEARCHED = 1e9
"""States that a search without a word is begun for, by the game's own rough guess."""


def solve(
    boards: Annotated[list[str], typer.Argument(metavar="BOARD...", help="Board files.")],
    settings: options.Settings = None,
    start: options.From = None,
    depth: Annotated[
        str, typer.Option(metavar="N", help="The frontier of a search: a level, or auto.")
    ] = "auto",
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", help="Cut a search at this level.", min=1)
    ] = None,
    using: Annotated[
        str | None, typer.Option(metavar="TABLE", help="A table at which a search may end.")
    ] = None,
    max_states: Annotated[
        int | None, typer.Option(metavar="N", help="States that a search may meet.", min=1)
    ] = None,
    results: options.Results = Path("results"),
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Shards at once; all cores if not given.", min=1)
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="ADDR", help="A running Ray cluster (it must share DIR).")
    ] = None,
    memory: options.Memory = None,
    margin: Annotated[
        bool, typer.Option("--margin", help="Store what the second best action would cost.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Solve all of it again.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Read every byte first; solve again what has changed.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Solve what is missing of each board's full table; the same command goes on after a stop.

    With --from, or for a game that has no tiers: of all that lies below some states, by search.
    Prints the table's directory on stdout.
    """
    from luckbase.solver import load_game
    from luckbase.solver.board.file import read_board
    from luckbase.solver.errors import OptionError

    names, start = options.split_from(boards, start)
    if not names:
        raise OptionError("solve: name a board file")
    chosen, allowed = options.read_settings(settings), options.read_memory(memory)
    read = [(Path(name), read_board(Path(name), chosen)) for name in names]  # all, before any
    search = (start, depth, max_depth, using, max_states)
    for path, board in read:
        asked = search != (None, "auto", None, None, None)
        if asked or not _has_tiers(load_game(board)):
            from luckbase.jobs.below import solve_below

            solve_below(board, search, results, workers, address, force, check, as_json)
        else:
            _solve_one(
                path, board, results, workers, address, allowed, margin, force, check, as_json
            )  # fmt: skip


def _has_tiers(game: Game) -> bool:
    """Whether the board has a full table; one that has none, but not too many states, is searched.

    Raises OptionError, the game's, where there are too many.
    """
    from luckbase.solver.errors import OptionError
    from luckbase.solver.game.capabilities import Layout, hints

    if Layout not in game.rules.capabilities:
        return False
    try:
        game.need(Layout)
    except OptionError as why:
        root, below = game.start(), hints(game).states_below
        if root is None or (below is not None and below(root) > MOST_SEARCHED):
            raise
        render.say(f"{why}; searching all that its rules lead to")
        return False
    return True


def _solve_one(
    path: Path,
    board: Board,
    results: Path,
    workers: int | None,
    address: str | None,
    memory: int | None,
    margin: bool,
    force: bool,
    check: bool,
    as_json: bool,
) -> None:
    from luckbase import cluster

    before = _older_solves(board, results)
    with render.progress(board.name) as on_progress:
        solved = cluster.solve(
            board,
            results=results,
            workers=workers,
            address=address,
            memory=memory,
            margin=margin,
            force=force,
            check=check,
            on_progress=on_progress,
        )
    if as_json:
        print(json.dumps(_as_json(solved)))
    else:
        _summary(solved, path, before)
        print(render.shown(solved.table))


def _older_solves(board: Board, results: Path) -> list[str]:
    """What this board file has changed since it was solved last, as sentences; empty if nothing, or
    if there is a table of the board as it stands."""
    from luckbase.cluster.table.find import table_of, tables_of, what_changed, why_stale
    from luckbase.cluster.table.ledger import HEAD, read_ledger
    from luckbase.cluster.table.storage import Folder
    from luckbase.solver import load_game
    from luckbase.solver.errors import LuckbaseError

    try:
        if table_of(board, results) is not None:
            return []
    except LuckbaseError:  # the solve says so
        return []
    newest: tuple[float, list[str]] = (0.0, [])
    version = load_game(board).rules_version
    for table in tables_of(board, results):
        try:
            ledger = read_ledger(Folder(table), table)
        except LuckbaseError:
            continue
        if why_stale(ledger):  # else that one was asked for with other options, and still is right
            when = (table / HEAD).stat().st_mtime
            newest = max(newest, (when, what_changed(ledger.head, board, version)))
    return newest[1]


def _as_json(solved: Solved) -> dict[str, Any]:
    from luckbase.cluster.table.table import open_table

    ledger = solved.ledger
    with open_table(solved.table, named_by_board=True) as opened:
        said = opened.origin.as_json()
    done = solved.rows + solved.again + solved.read
    return said | {
        "table": str(solved.table),
        "states": ledger.rows,
        "tiers": len(ledger.files),
        "bytes": ledger.bytes,
        "kept": solved.kept,
        "solved_again": solved.again,
        "read_back": solved.read,
        "solved_now": solved.rows,
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
    say(f"{name}: {render.count(ledger.rows)} states in {len(ledger.files)} files")
    if solved.kept:
        again = f", solved again {render.count(solved.again)} ({solved.again_seconds:.1f} s)"
        read = f", read back {render.count(solved.read)}"
        say(
            f"  grown        kept {render.count(solved.kept)}{again * bool(solved.again)}"
            f"{read * bool(solved.read)}, new {render.count(solved.rows)}"
        )
    compiled = solved.compile_seconds
    first = f", after {render.duration(compiled)} of compiling" if compiled > 1 else ""
    say(f"  time         {render.duration(solved.seconds)} with {how}{first}")
    rate = (solved.rows + solved.again + solved.read) / solved.seconds
    kernel = solved.rows / max(solved.solve_seconds, 1e-9)
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


def _in_words(state: Mapping[str, object]) -> str:
    """A state as a person would type it."""
    return " ".join(f"{name}={render.listed(value)}" for name, value in state.items())


def _opening_questions(solved: Solved, path: Path) -> None:
    import shlex

    from luckbase.cluster.table.table import open_table
    from luckbase.solver.game.capabilities import layout_of

    with open_table(solved.table, named_by_board=True) as opened:
        asked = [
            (title, _in_words(words), opened.ask(words))
            for title, words in layout_of(opened.game).opening_questions()
        ]
    if not asked:
        return
    names = sorted({a.name for *_, answer in asked if answer.to_act for a in answer.actions})
    rows = [
        (
            title,
            words,
            *(_worth(answer, name) for name in names),
            _says(answer),
        )
        for title, words, answer in asked
    ]
    render.say()
    heads = ("the player up is" if names else "", "state", *names, "best")
    what = f", and the {opened.game.payoff_name} of who acts" if names else ""
    render.print_table(f"A few questions{what}:", heads, rows, sys.stderr)
    question = asked[0][1]
    table = shlex.quote(render.shown(solved.table))
    render.say(f"Ask anything: {render.program()} query {table} {question}")


def _says(answer: Answer) -> str:
    """The best action, or the likeliest ones of a mixed strategy."""
    if answer.strategies is None:
        return "toss-up" if answer.toss_up else str(answer.best)
    likely = sorted(answer.strategies[0], key=lambda bid: -bid.chance)
    return ", ".join(f"{bid.name} {bid.chance:.0%}" for bid in likely[:3] if bid.chance > 0.005)


def _worth(answer: Answer, name: str) -> str:
    """The payoff of an action to the player to act, or a dash where he does not have it."""
    for action in answer.actions:
        if action.name == name and answer.to_act is not None:
            return f"{action.value[answer.to_act - 1]:.4f}"
    return "–"
