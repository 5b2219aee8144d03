"""The exact payoff of every state of a game: solve overnight, query in the morning.

>>> import luckbase
>>> board = luckbase.load_board("boards/pig/tiny.toml")
>>> luckbase.solve(board).states
8400
>>> with luckbase.open(board) as t:
...     t[{"mine": 0, "yours": 10, "turn": 4}].best
'roll'

This page is the whole public API; docs/reference/python.md has a table of it. Each command has a
function here. `errors` has all exceptions, and `LuckbaseError` is their base class.

A state has the same fields as in ``luckbase query``. Write it as a mapping to numbers, tuples,
lists or text, ``{"scores": (0, 8000, 3000), "earned": "0,2,0"}``, as one text,
``"mine=0 yours=87"``, or as a row of a frame. A board is the result of `load_board` or the path of
a file. Players are numbered from 1. Payoffs have one number for each player, in turn order.
"""

from __future__ import annotations

import sys

if (
    sys.argv[:1] == ["-m"]  # Python is still looking for the module to run
    and sys.orig_argv[-len(sys.argv)].endswith("luckbase")
    and not sys.flags.safe_path
):
    del sys.path[0]  # the current folder: its files must not hide our modules

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from luckbase.solver.sentences import LABELS, Help

if TYPE_CHECKING:
    from luckbase.cluster.answers.answer import Answer
    from luckbase.cluster.answers.find import Status
    from luckbase.cluster.answers.table import Table
    from luckbase.cluster.batch.clean import Spare
    from luckbase.cluster.batch.requests import BoardName
    from luckbase.cluster.batch.run import BatchOptions, Due
    from luckbase.cluster.info import Info, PackagedBoard
    from luckbase.cluster.play.advise import Following
    from luckbase.cluster.play.agents import Evaluated, Matrix
    from luckbase.cluster.play.draw import Picture
    from luckbase.cluster.play.game import Play, PlayOptions
    from luckbase.cluster.solve.options import SolveOptions
    from luckbase.cluster.solve.plan import Planned
    from luckbase.cluster.solve.progress import Progress, Solved
    from luckbase.jobs.web.report import Report
    from luckbase.solver import errors
    from luckbase.solver.board.model import Board
    from luckbase.solver.board.registry import register
    from luckbase.solver.errors import LuckbaseError
    from luckbase.solver.game.fields import State
    from luckbase.solver.game.game import Game

    __version__: str

_ELSEWHERE = {
    "Answer": "cluster.answers.answer", "Board": "solver.board.model", "Due": "cluster.batch.run",
    "Evaluated": "cluster.play.agents", "Following": "cluster.play.advise",
    "Game": "solver.game.game", "Info": "cluster.info", "LuckbaseError": "solver.errors",
    "Matrix": "cluster.play.agents", "PackagedBoard": "cluster.info",
    "Picture": "cluster.play.draw", "Planned": "cluster.solve.plan", "Play": "cluster.play.game",
    "Progress": "cluster.solve.progress", "Report": "jobs.web.report",
    "SolveOptions": "cluster.solve.options", "Solved": "cluster.solve.progress",
    "Spare": "cluster.batch.clean", "Status": "cluster.answers.find",
    "Table": "cluster.answers.table", "register": "solver.board.registry",
}  # fmt: skip
"""The modules that define the other public names; imported when a name is first used."""

__all__ = [
    "Answer", "Board", "Due", "Evaluated", "Following", "Game", "Info", "LuckbaseError",
    "Matrix", "PackagedBoard", "Picture", "Planned", "Play", "Progress",
    "Report", "SolveOptions", "Solved", "Spare", "Status", "Table", "advise", "boards",
    "clean", "errors", "evaluate", "graph", "info", "load_board", "matrix", "open",
    "plan", "plan_all", "play", "register", "report", "solve", "solve_all", "status",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name == "errors":
        return import_module("luckbase.solver.errors")
    if name in _ELSEWHERE:
        return getattr(import_module(f"luckbase.{_ELSEWHERE[name]}"), name)
    raise AttributeError(f"module 'luckbase' has no attribute {name!r}")


def _version() -> str:
    """Return the installed version, or the version of this checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("luckbase")
    except PackageNotFoundError:
        import tomllib

        project = Path(__file__).resolve().parents[1] / "pyproject.toml"
        return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]


def _as_path(results: str | os.PathLike[str]) -> Path:
    """Return a folder or a URI of tables as a path."""
    if "://" not in os.fspath(results):
        return Path(results)
    from luckbase.cluster.store.storage import place_of

    return place_of(results)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_board(path: str | os.PathLike[str], /, **options: object) -> Board:
    """Read and check a board file. `options` replace options of the file, as ``--set`` does.

    >>> luckbase.load_board("boards/press-your-luck/1985-02.toml", score_unit=500, frontier=2)

    Raises BoardError, OptionError.
    """
    from luckbase.cluster.inputs import board_of

    return board_of(path, **options)


def boards() -> tuple[PackagedBoard, ...]:
    """Return the packaged boards. Their names can be used in place of a board file.

    >>> [board.name for board in luckbase.boards() if board.game == "skunk"]
    ['skunk/seed', 'skunk/tiny']

    `PackagedBoard.copy` writes a board to a file for editing."""
    from luckbase.cluster import info

    return info.boards()


def info(
    board_or_table: Board | str | os.PathLike[str], *,
    results: str | os.PathLike[str] = "results", **options: object,
) -> Info:  # fmt: skip
    """Explain a board or a table: the game in two sentences, fields, options and their values,
    charts, agents, commands to copy; for a table also its size, age and origin.

    >>> luckbase.info("press-your-luck/1985-02").fields[0].help
    'Dollars of players 1, 2 and 3, in turn order.'

    board_or_table, options: as in `open`; a board needs no table. Raises BoardError,
    OptionError, CorruptTableError."""
    from luckbase.cluster import info

    return info.info(board_or_table, _as_path(results), options)


def plan(
    board: Board | str | os.PathLike[str], start: Any = None, **options: Unpack[SolveOptions]
) -> Planned:
    """Predict the states, bytes, memory and time of a solve. Write nothing.

    >>> luckbase.plan(board, {"scores": (0, 2000, 3500), "earned": (1, 2, 2)}).states

    start, options: as in `solve`. `Planned.check` raises MemoryLimitError or DiskLimitError if the
    solve will not fit. Raises BoardError, OptionError, StateError.
    """
    from luckbase.cluster.inputs import board_of, plan_board

    return plan_board(board_of(board), start, options)


def solve(
    board: Board | str | os.PathLike[str], start: Any = None, **options: Unpack[SolveOptions]
) -> Solved:
    """Solve the missing part of a board's table. After a stop, the same call resumes.

    >>> luckbase.solve(board, workers=4, memory=8_000_000_000)
    >>> luckbase.solve(board, {"scores": (0, 8000, 3000), "earned": (4, 2, 2)})

    start: a state, several states or a frame: search all states below. Without it, the full table
        is solved. If the board has none, all states below the game's starts are searched.
    options: `SolveOptions`.

    Raises RequestError if the request is impossible, CorruptTableError.
    """
    from luckbase.cluster.inputs import board_of, solve_board

    return solve_board(board_of(board), start, options)


def plan_all(
    *boards: BoardName, start: Any = None, settings: Mapping[str, object] = {},
    **options: Unpack[SolveOptions],
) -> list[Due]:  # fmt: skip
    """Predict `solve_all` for each board: what is missing or stale and why, the size, the time.
    Write nothing. A board that cannot be solved has its `error` in the list.

    >>> [(due.request.name, due.state, due.seconds) for due in luckbase.plan_all("boards/pig")]
    """
    from luckbase.cluster.batch.requests import requests_for
    from luckbase.cluster.batch.run import plan_boards
    from luckbase.cluster.solve.options import Options

    requests = requests_for(boards, settings, finest=start is not None)
    return plan_boards(requests, start, Options.read(options))


def solve_all(
    *boards: BoardName, start: Any = None, settings: Mapping[str, object] = {},
    **options: Unpack[BatchOptions],
) -> list[Due]:  # fmt: skip
    """Solve the missing parts of many boards: board files, folders of them, job files, boards.

    >>> [one.error for one in luckbase.solve_all("boards/pig", "mine.toml") if one.error]

    All boards are read first. A board that fails does not stop the others: its result has an
    `error`. This function raises no `LuckbaseError`.

    start: as in `solve`.
    settings: options of all boards.
    options: `BatchOptions`. They take precedence over the options of a job file.
    """
    from luckbase.cluster.batch.run import solve_boards

    return solve_boards(boards, start, settings, options)


def clean(
    *names: str, results: str | os.PathLike[str] | None = None, yes: bool = False
) -> list[Spare]:
    """Return the tables that no board file needs any more, with the reasons. Remove them if `yes`.

    names: board files, folders of board files, job files: only their tables; or tables' folders.
    results: if not given, the folder that a job file names, or ``results``.

    A table with options that differ from its file, a search from given states and a table solved
    from Python are removed only if their folder is named. A table that is being solved stays.
    Raises OptionError."""
    from luckbase.cluster.batch.clean import clean as cleaned

    return cleaned(names, results, yes=yes)


def open(
    board_or_path: Board | str | os.PathLike[str], *, results: str | os.PathLike[str] = "results",
    in_memory: bool = False, start: Any = None, **options: object,
) -> Table:  # fmt: skip
    """Open a table by its folder, or by a board and its options. Use it in a ``with`` statement.

    >>> t = luckbase.open("boards/press-your-luck/1985-02.toml", score_unit=500)
    >>> t[{"scores": (0, 8000, 3000), "earned": (0, 2, 0)}].value
    (0.0037612058222293854, 0.7714707851409912, 0.22476798295974731)

    in_memory: solve the board here, on one core, and write nothing: its full table, or the states
    below `start`. Raises MissingTableError, which names the command to run; CorruptTableError;
    MemoryLimitError or SearchLimitError if the states do not fit in memory.
    """
    from luckbase.cluster import inputs
    from luckbase.cluster.answers.table import Table
    from luckbase.solver.charts import DRAWN_BY

    Table.played_by = "luckbase.cluster.play.game:play_on"
    DRAWN_BY.update(png="luckbase.cluster.answers.charts:draw", file="luckbase.jobs.draw:save")
    if in_memory:
        return inputs.in_memory(board_or_path, start, options)
    return inputs.open_by_name(board_or_path, _as_path(results), options)


def status(
    *names: str, results: str | os.PathLike[str] | None = None, settings: Mapping[str, str] = {}
) -> list[Status]:
    """Return for each table whether it is complete, partial, stale, damaged or missing, and why.

    names: tables' folders, board files, folders of board files, job files; none for all tables.
    results: if not given, the folder that a job file names, or ``results``.
    settings: options of the board files, as text.

    Only names and sizes of files are checked; `Table.verify` reads the files."""
    from luckbase.cluster.batch.run import statuses

    return statuses(names, None if results is None else _as_path(results), settings)


def evaluate(  # the command takes its options from these parameters
    board: Board | str | os.PathLike[str], agents: str | Sequence[Any] = "optimal",
    start: Any = None, *,
    gain: Annotated[bool, Help("What each player could gain by a best response.")] = False,
    games: Annotated[int | None, Help("Simulate N games, with standard errors.", "N", 1)] = None,
    seed: Annotated[int, Help("Seed of the simulated games.", "S", 0)] = 0,
    max_states: Annotated[int, Help("Maximum of states that agents reach.", "N", 1)] = 20_000_000,
    results: str | os.PathLike[str] = "results",
) -> Evaluated:  # fmt: skip
    """Return the payoffs of a profile of agents from a state, or from the game's start.

    >>> luckbase.evaluate("boards/pig/tiny.toml", "hold-at-5,optimal").value
    (0.5, 0.5)

    agents: one for all players or one for each: names (an agent of the game, ``optimal``,
        ``best-response``, ``random``, a table's folder, a board file, which means its table under
        `results`), functions ``choose(game, player, state, actions)``, or open tables.
    games: simulate this many games by Monte Carlo; the result has standard errors (`stderr`) and
        the means of the numbers that the game counts (`counts`). The same seed gives the same
        games. Without `games` payoffs are exact.

    Raises OptionError, SearchLimitError beyond `max_states`.
    """
    from luckbase.cluster.inputs import playing
    from luckbase.cluster.play.agents import evaluate_agents

    with playing(board, start, results) as (game, root, opener):
        return evaluate_agents(game, root, agents, opener, gain, games, seed, max_states)


def matrix(
    board: Board | str | os.PathLike[str], agents: str | Sequence[Any], start: Any = None, *,
    results: str | os.PathLike[str] = "results",
) -> Matrix:  # fmt: skip
    """Return the payoffs of each agent against each, in a game of two players.

    `Matrix.array` is float64 (agents, agents), the payoffs of player 1. agents, results: as in
    `evaluate`. Raises OptionError if the game does not have two players."""
    from luckbase.cluster.inputs import playing
    from luckbase.cluster.play.agents import matrix_of

    with playing(board, start, results) as (game, root, opener):
        return matrix_of(game, root, agents, opener)


def play(
    board: Board | str | os.PathLike[str], start: State | None = None, *,
    results: str | os.PathLike[str] = "results", max_states: int = 20_000_000,
    **options: Unpack[PlayOptions],
) -> Play:  # fmt: skip
    """A person's game. Payoffs come from the board's table, or from a solve in memory.

    >>> p = luckbase.play("boards/pig/tiny.toml", seed=3)
    >>> print(*p.through(lambda play: "roll"), sep="\\n")

    options: seat, against, seed, draw, hints (`cluster.play.game.PlayOptions`).

    `Play.talk` yields the messages and the questions of the game, `Play.decisions` the cost of each
    decision of the person. Raises OptionError, StateError, SearchLimitError.
    """
    from luckbase.cluster.inputs import game_of, new_play

    return new_play(game_of(board), start, _as_path(results), max_states, options)


def advise(
    board: Board | str | os.PathLike[str], start: State | None = None, *,
    max_states: Annotated[
        int, Help("Maximum number of states in the search for a decision.", "N", 1)
    ] = 5_000_000,
    results: str | os.PathLike[str] = "results", **options: object,
) -> Following:  # fmt: skip
    """Follow a real game in words: whose turn it is, the best action, its margin, the reasons.

    >>> game = luckbase.advise("boards/press-your-luck/tiny.toml")
    >>> game.say("Ed 500, 1 spin; Peter 0, 1 spin; Michael 1000, 1 spin").advice.best
    'play'

    start: the current state of the game; without it, the first line gives the state.
    options: options of the board.
    max_states: a decision with more states below gets no advice; the message has their number.

    `Following.say` takes a line as in ``luckbase advise``; the line ``help`` lists the forms. Use
    the result in a ``with`` statement. Raises BoardError, OptionError, StateError.
    """
    from luckbase.cluster.inputs import following

    return following(board, start, options, max_states, _as_path(results))


def graph(  # the command takes its options from these parameters
    board: Board | str | os.PathLike[str], agents: str | Sequence[Any] = "optimal",
    start: Any = None, *,
    every: Annotated[bool, Help("All positions, also those that play never reaches.")] = False,
    layers: Annotated[bool, Help("Draw a box around each layer.")] = False,
    labels: Annotated[str, Help(f"Labels of edges: {', '.join(LABELS)}.", "KIND")] = "chances",
    ends: Annotated[bool, Help("In a one-player game, also draw lost games.")] = False,
    results: str | os.PathLike[str] = "results",
) -> Picture:  # fmt: skip
    """Draw how a profile of agents plays. `Picture.diagram` is data; `Picture.dot` is a
    `graphviz.Digraph`, which a notebook shows.

    agents, results: as in `evaluate`. Raises OptionError."""
    from luckbase.cluster.inputs import playing
    from luckbase.cluster.play.draw import draw_play

    with playing(board, start, results) as (game, root, opener):
        return draw_play(game, root, agents, opener, every, layers, labels, ends)


def report(
    table: Table | Board | str | os.PathLike[str], sample: int | None = 10_000, *,
    results: str | os.PathLike[str] = "results", **options: object,
) -> Report:  # fmt: skip
    """Write a table as one HTML file: its board, examples, charts, the result of `Table.verify`.

    >>> luckbase.report("boards/skunk/seed.toml").save("report.html")

    table: an open table, or the first argument of `open`.
    sample: number of rows to verify; None for all, 0 for no verification.

    The file needs no network. Faults of the table are in the report and in `Report.verdict`.
    Raises the same errors as `open`."""
    from luckbase.cluster.answers.table import Table
    from luckbase.cluster.inputs import open_by_name
    from luckbase.jobs.web.report import report_on

    if isinstance(table, Table):
        return report_on(table, sample, verify=sample != 0)
    with open_by_name(table, _as_path(results), options) as opened:
        return report_on(opened, sample, verify=sample != 0)
