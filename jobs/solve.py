"""``luckbase solve``: solve what is missing of a full table, or of what lies below some roots."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import options, render

if TYPE_CHECKING:
    from cluster.answer import Answer
    from cluster.driver import Solved
    from solver.board import Board


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
    memory: Annotated[
        float | None, typer.Option(help="GB that shards in flight may use.", metavar="GB", min=0.01)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Solve all of it again.")] = False,
    as_json: options.Json = False,
) -> None:
    """Solve what is missing of each board's full table; the same command goes on after a stop.

    With --from, or for a game that has no tiers: of all that lies below some states, by search.
    Prints the table's directory on stdout.
    """
    from solver import load_game
    from solver.board import read_board
    from solver.errors import OptionError
    from solver.game import TieredGame

    names, start = options.split_from(boards, start)
    if not names:
        raise OptionError("solve: name a board file")
    chosen = options.read_settings(settings)
    read = [(Path(name), read_board(Path(name), chosen)) for name in names]  # all, before any
    search = (start, depth, max_depth, using, max_states)
    for path, board in read:
        asked = search != (None, "auto", None, None, None)
        if asked or not isinstance(load_game(board), TieredGame):
            from jobs.below import solve_below

            solve_below(path, board, chosen, search, results, workers, address, force, as_json)
        else:
            _solve_one(path, board, chosen, results, workers, address, memory, force, as_json)


def _solve_one(
    path: Path,
    board: Board,
    settings: dict[str, str],
    results: Path,
    workers: int | None,
    address: str | None,
    memory: float | None,
    force: bool,
    as_json: bool,
) -> None:
    import cluster

    before = _older_solves(board, results)
    with render.progress(board.name) as on_progress:
        solved = cluster.solve(
            board,
            results=results,
            workers=workers,
            address=address,
            memory=None if memory is None else int(memory * 1e9),
            force=force,
            board_file=str(path.absolute()),
            settings=settings,
            on_progress=on_progress,
        )
    if as_json:
        print(json.dumps(_as_json(solved)))
    else:
        _summary(solved, path, before)
        print(render.shown(solved.table))


def _older_solves(board: Board, results: Path) -> list[str]:
    """What this board has changed since its newest other table, as sentences; empty if nothing."""
    from cluster.manifest import read_manifest
    from cluster.staleness import what_changed
    from solver import load_tiered_game
    from solver.board import canonical
    from solver.errors import LuckbaseError

    newest: tuple[float, list[str]] = (0.0, [])
    version = load_tiered_game(board).rules_version
    for table in options.tables_in(results):
        try:
            manifest = read_manifest(table)
        except LuckbaseError:
            continue
        if (manifest.game, manifest.board) == (board.game, board.name):
            changed = what_changed(manifest, canonical(board), version)
            if not changed:
                return []
            newest = max(newest, ((table / "manifest.json").stat().st_mtime, changed))
    return newest[1]


def _as_json(solved: Solved) -> dict[str, Any]:
    manifest = solved.manifest
    return {
        "board": manifest.board,
        "table": str(solved.table),
        "states": manifest.rows,
        "tiers": manifest.tiers,
        "bytes": manifest.bytes,
        "solved_now": solved.rows,
        "seconds": round(solved.seconds, 3),
        "states_per_second": round(solved.rows / solved.seconds) if solved.seconds else None,
        "compile_seconds": round(solved.compile_seconds, 3),
        "kernel_seconds": round(solved.solve_seconds, 3),
        "peak_memory": solved.peak_memory,
        "workers": solved.workers,
        "ray": solved.ray,
        "tally": solved.tally,
    }


def _summary(solved: Solved, path: Path, before: list[str]) -> None:
    manifest, say = solved.manifest, render.say
    table = render.shown(solved.table)
    if solved.shards == 0:
        say(f"{manifest.board}: nothing to do: the table is complete, {table}")
        return
    if before:
        say(f"{manifest.board} is not the board of its older table: {'; '.join(before[:5])}")
    done, kernel = solved.rows / solved.seconds, solved.rows / solved.solve_seconds
    how = f"{solved.workers} Ray workers" if solved.ray else f"{solved.workers} threads"
    say(f"{manifest.board}: {render.count(manifest.rows)} states in {manifest.tiers} files")
    resumed = manifest.rows - solved.rows
    if resumed > 0:
        say(f"  from before  {render.count(resumed)} states were there and stayed")
    compiled = solved.compile_seconds
    first = f", after {render.duration(compiled)} of compiling" if compiled > 1 else ""
    say(f"  time         {render.duration(solved.seconds)} with {how}{first}")
    say(
        f"  speed        {done / 1e6:.1f} M states/s end to end, "
        f"{kernel / 1e6:.0f} M states/s a core in the kernel"
    )
    say(
        f"  size         {render.size(manifest.bytes)}, {manifest.bytes / manifest.rows:.2f} bytes "
        "a state, Parquet"
    )
    say(f"  memory       {render.size(solved.peak_memory)} at most")
    say(f"  accuracy     payoffs within {manifest.payoff_error:.1e}")
    if solved.tally:
        counted = (f"{name} {number:.3g}" for name, number in solved.tally.items())
        say(f"  counted      {', '.join(counted)}")
    _opening_questions(solved, path)


def _opening_questions(solved: Solved, path: Path) -> None:
    import shlex

    from cluster import open_table

    with open_table(solved.table) as opened:
        asked = [
            (title, words, opened.ask(words)) for title, words in opened.game.opening_questions()
        ]
    if not asked:
        return
    names = sorted({a.name for *_, answer in asked if answer.to_act for a in answer.actions})
    rows = [
        (
            title,
            " ".join(f"{name}={value}" for name, value in words.items()),
            *(_worth(answer, name) for name in names),
            _says(answer),
        )
        for title, words, answer in asked
    ]
    render.say()
    heads = ("the player up is" if names else "", "state", *names, "best")
    what = f", and the {opened.game.payoff_name} of who acts" if names else ""
    render.print_table(f"A few questions{what}:", heads, rows, sys.stderr)
    question = " ".join(f"{name}={value}" for name, value in asked[0][1].items())
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
