"""The exact payoff of every state of a game, solved overnight and asked in the morning.

>>> import luckbase
>>> board = luckbase.load_board("boards/pig/tiny.toml")
>>> luckbase.solve(board).states
8400
>>> with luckbase.open(board) as t:
...     t[{"mine": 0, "yours": 10, "turn": 4}].best
'roll'

All of luckbase is on this page; what the command line does, a function here does:

=============================================  =================================================
`load_board`                                   a board file, read and checked
`plan`, `solve`, `status`                      what a solve takes; the solve; which tables are there
`plan_all`, `solve_all`, `clean`               the same for many boards; remove unneeded tables
`open` -> `Table`                              ``t[state]``, ``t.ask(mine=0, yours=87)``,
                                               ``t.values(frame)``, ``t.to_pandas()``,
                                               ``t.export(file)``, ``t.verify()``,
                                               ``t.diff(other)``, ``t.chart()``, ``t.agent()``,
                                               ``t.play()``, ``t.why(state)``
`evaluate`, `matrix`                           the payoffs of a profile of agents
`play`, `graph`                                a person's game; a drawing of how agents play
`advise`                                       a real game followed in words
`report`                                       a table in one file, to send to somebody
`info`, `boards`                               a board or a table explained; luckbase's boards
`Game`, `register`                             a game of your own
`errors`                                       every exception, one tree: `LuckbaseError`
=============================================  =================================================

A state is a mapping of the fields that ``luckbase query`` takes, as numbers, tuples, lists or text:
``{"scores": (0, 8000, 3000), "earned": "0,2,0"}``; or text as a whole, ``"mine=0 yours=87"``; or a
row of a frame. A board is what `load_board` gives, or its file. Players count
from 1, payoffs are lists over players, in turn order; errors are sentences.
"""

from __future__ import annotations

import sys

if (
    sys.argv[:1] == ["-m"]  # while Python looks for the module that it is to run
    and sys.orig_argv[-len(sys.argv)].endswith("luckbase")
    and not sys.flags.safe_path
):
    del sys.path[0]  # the current folder, whose files are not modules of ours

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
    from luckbase.cluster.batch.run import BatchOptions, Due, Outcome
    from luckbase.cluster.info import Info, PackagedBoard
    from luckbase.cluster.play.advise import Following
    from luckbase.cluster.play.draw import Picture
    from luckbase.cluster.play.evaluate import Evaluated, Matrix
    from luckbase.cluster.play.game import Play, PlayOptions
    from luckbase.cluster.search.plan import PlannedSearch
    from luckbase.cluster.solve.full_table import Planned
    from luckbase.cluster.solve.options import SolveOptions
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
    "Answer": "cluster.answers.answer", "Board": "solver.board.model",
    "Due": "cluster.batch.run",
    "Evaluated": "cluster.play.evaluate",
    "Following": "cluster.play.advise", "Game": "solver.game.game",
    "Info": "cluster.info", "LuckbaseError": "solver.errors", "Matrix": "cluster.play.evaluate",
    "Outcome": "cluster.batch.run", "PackagedBoard": "cluster.info",
    "Picture": "cluster.play.draw",
    "Planned": "cluster.solve.full_table",
    "PlannedSearch": "cluster.search.plan",
    "Play": "cluster.play.game", "Progress": "cluster.solve.progress", "Report": "jobs.web.report",
    "SolveOptions": "cluster.solve.options",
    "Solved": "cluster.solve.progress", "Spare": "cluster.batch.clean",
    "Status": "cluster.answers.find", "Table": "cluster.answers.table",
    "register": "solver.board.registry",
}  # fmt: skip
"""Where the names are that this page does not define: loaded when they are asked for."""

__all__ = [
    "Answer", "Board", "Due", "Evaluated", "Following", "Game", "Info", "LuckbaseError",
    "Matrix", "Outcome", "PackagedBoard", "Picture", "Planned", "PlannedSearch", "Play", "Progress",
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
    """The version that is installed, or that of this checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("luckbase")
    except PackageNotFoundError:
        import tomllib

        project = Path(__file__).resolve().parents[1] / "pyproject.toml"
        return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]


def _place(results: str | os.PathLike[str]) -> Path:
    """A folder of tables, or where a URI says."""
    if "://" not in os.fspath(results):
        return Path(results)
    from luckbase.cluster.store.storage import place_of

    return place_of(results)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_board(path: str | os.PathLike[str], /, **options: object) -> Board:
    """Read and check a board file; `options` change its own, as ``--set name=value`` does.

    >>> luckbase.load_board("boards/press-your-luck/1985-02.toml", score_unit=500, frontier=2)

    Raises BoardError, OptionError.
    """
    from luckbase.cluster.inputs import board_of

    return board_of(path, **options)


def boards() -> tuple[PackagedBoard, ...]:
    """The boards that the package brings, whose names are taken wherever a board file is.

    >>> [board.name for board in luckbase.boards() if board.game == "skunk"]
    ['skunk/seed', 'skunk/tiny']

    `PackagedBoard.copy` writes one to a file, to edit."""
    from luckbase.cluster.info import boards as found

    return found()


def info(
    board_or_table: Board | str | os.PathLike[str], *,
    results: str | os.PathLike[str] = "results", **options: object,
) -> Info:  # fmt: skip
    """A board or a table explained: the game in two sentences, fields, options and their values,
    charts, agents, commands to copy; of a table its size, age and origin.

    >>> luckbase.info("press-your-luck/1985-02").fields[0].help
    'Dollars of players 1, 2 and 3, in turn order.'

    board_or_table, options: as `open` has them; a board needs no table. Raises BoardError,
    OptionError, CorruptTableError."""
    from luckbase.cluster.info import info as found

    return found(board_or_table, _place(results), options)


def plan(
    board: Board | str | os.PathLike[str], start: Any = None, **options: Unpack[SolveOptions]
) -> Planned | PlannedSearch:
    """Return what a solve will take: its states, bytes, memory and time.

    >>> luckbase.plan(board, {"scores": (0, 2000, 3500), "earned": (1, 2, 2)}).states

    start, options: as `solve` has them. Nothing is written. `Planned.check` raises MemoryLimitError
    or DiskLimitError if the solve will not fit, `PlannedSearch.check` DiskLimitError. Raises
    BoardError, OptionError, StateError.
    """
    from luckbase.cluster.inputs import board_of, plan_board

    return plan_board(board_of(board), start, options)


def solve(
    board: Board | str | os.PathLike[str], start: Any = None, **options: Unpack[SolveOptions]
) -> Solved:
    """Solve what is missing of a board's table; the same call goes on after a stop.

    >>> luckbase.solve(board, workers=4, memory=8_000_000_000)
    >>> luckbase.solve(board, {"scores": (0, 8000, 3000), "earned": (4, 2, 2)})

    start: a state, several, or a frame of them: solve what lies below, by search. Without it the
    full table is solved, or, where the board has none, what lies below the game's start, or starts.
    options: `SolveOptions`. Raises RequestError for what cannot be done, CorruptTableError.
    """
    from luckbase.cluster.inputs import board_of, solve_board

    return solve_board(board_of(board), start, options)


def plan_all(
    *boards: BoardName, start: Any = None, settings: Mapping[str, object] = {},
    **options: Unpack[SolveOptions],
) -> list[Due]:  # fmt: skip
    """What `solve_all` would do, board by board: what is missing or stale and why, how much of it,
    how long; nothing is written. A board that cannot be solved is among them, with its `error`.

    >>> [(one.request.name, one.state, one.seconds) for one in luckbase.plan_all("boards/pig")]
    """
    from luckbase.cluster.batch.requests import requests_for
    from luckbase.cluster.batch.run import plan_boards
    from luckbase.cluster.solve.options import Options

    requests = requests_for(boards, settings, finest=start is not None)
    return plan_boards(requests, start, Options.read(options))


def solve_all(
    *boards: BoardName, start: Any = None, settings: Mapping[str, object] = {},
    **options: Unpack[BatchOptions],
) -> list[Outcome]:  # fmt: skip
    """Solve what is missing of many boards: board files, folders of them, job files, boards.

    >>> [one.error for one in luckbase.solve_all("boards/pig", "mine.toml") if one.failed]

    All are read first. What cannot be read or solved stops no other: it is an `Outcome` like the
    rest, whose `error` is a sentence. start: as `solve` has it. settings: options of all boards.
    options: as of `solve`, before those of a job file; `BatchOptions`. Raises nothing of ours.
    """
    from luckbase.cluster.batch.run import solve_boards

    return solve_boards(boards, start, settings, options)


def clean(
    *names: str, results: str | os.PathLike[str] | None = None, yes: bool = False
) -> list[Spare]:
    """The tables that no board file asks for any more, and why; removed if `yes`.

    names: board files, folders of them and job files, whose tables alone are looked at; or tables'
    directories. results: ``results``, if no job file says where.

    What was solved with other options than its file's, from some states or from Python goes only
    where its directory is named; what somebody solves never goes. Raises OptionError."""
    from luckbase.cluster.batch.clean import clean as cleaned

    return cleaned(names, results, yes=yes)


def open(
    board_or_path: Board | str | os.PathLike[str], *, results: str | os.PathLike[str] = "results",
    in_memory: bool = False, start: Any = None, **options: object,
) -> Table:  # fmt: skip
    """Open a table, a context manager: by its directory, or by a board (file) with its options.

    >>> t = luckbase.open("boards/press-your-luck/1985-02.toml", score_unit=500)
    >>> t[{"scores": (0, 8000, 3000), "earned": (0, 2, 0)}].value
    (0.0037612058222293854, 0.7714707851409912, 0.22476798295974731)

    in_memory: solve the board here, on one core, and write nothing: its full table, or what lies
    below `start`. Raises MissingTableError where there is none, with what would be right;
    CorruptTableError; MemoryLimitError, SearchLimitError for what is too much for the memory.
    """
    from luckbase.cluster import inputs
    from luckbase.cluster.answers.table import Table
    from luckbase.solver.charts import DRAWN_BY

    Table.played_by = "luckbase.cluster.play.game:play_on"
    DRAWN_BY.update(
        png="luckbase.cluster.answers.charts:draw", file="luckbase.jobs.draw:save",
        html="luckbase.jobs.web.pictures:as_html",
    )  # fmt: skip
    if in_memory:
        return inputs.in_memory(board_or_path, start, options)
    return inputs.open_by_name(board_or_path, _place(results), options)


def status(
    *names: str, results: str | os.PathLike[str] | None = None, settings: Mapping[str, str] = {}
) -> list[Status]:
    """What is complete, partial, stale, damaged or missing, and why: of tables by directory, board
    file, folder of board files or job file, of all under `results` if none is named. Files are
    looked at by name and size alone; `Table.verify` reads their bytes. settings: options of the
    board files, as text. results: if not given, where a job file says, or "results"."""
    from luckbase.cluster.batch.run import statuses

    return statuses(names, None if results is None else _place(results), settings)


def evaluate(  # what the command has
    board: Board | str | os.PathLike[str], agents: str | Sequence[Any] = "optimal",
    start: Any = None, *,
    gain: Annotated[bool, Help("What each player could gain by a best response.")] = False,
    games: Annotated[int | None, Help("Simulate N games, with standard errors.", "N", 1)] = None,
    seed: Annotated[int, Help("Seed of the simulated games.", "S", 0)] = 0,
    max_states: Annotated[int, Help("The most states agents may come to.", "N", 1)] = 20_000_000,
    results: str | os.PathLike[str] = "results",
) -> Evaluated:  # fmt: skip
    """Return the payoffs of a profile of agents from a state, or from the game's start.

    >>> luckbase.evaluate("boards/pig/tiny.toml", "hold-at-5,optimal").value
    (0.5, 0.5)

    agents: one for all players or one for each: names (the game's own, ``optimal``,
        ``best-response``, ``random``, a table's folder, a board file, which means its table under
        `results`), functions ``choose(game, player, state, actions)``, or open tables.
    games: simulate this many games by Monte Carlo; the result has standard errors (`stderr`) and
        the means of the numbers that the game counts (`counts`). The same seed gives the same
        games. Without `games` payoffs are exact.

    Raises OptionError, SearchLimitError beyond `max_states`.
    """
    from luckbase.cluster.inputs import playing
    from luckbase.cluster.play.evaluate import EvaluateOptions, evaluate_agents

    options = EvaluateOptions(gain, games, seed, max_states)
    with playing(board, agents, start, results) as (game, root, opener):
        return evaluate_agents(game, root, agents, options, opener)


def matrix(
    board: Board | str | os.PathLike[str], agents: str | Sequence[Any], start: Any = None, *,
    results: str | os.PathLike[str] = "results",
) -> Matrix:  # fmt: skip
    """Each agent against each, in a game of two: `Matrix.array` is float64 (agents, agents), player
    1's payoffs. agents, results: as of `evaluate`. Raises OptionError for another game."""
    from luckbase.cluster.inputs import playing
    from luckbase.cluster.play.evaluate import matrix_of

    with playing(board, agents, start, results) as (game, root, opener):
        return matrix_of(game, root, agents, opener)


def play(
    board: Board | str | os.PathLike[str], start: State | None = None, *,
    results: str | os.PathLike[str] = "results", max_states: int = 20_000_000,
    **how: Unpack[PlayOptions],
) -> Play:  # fmt: skip
    """A person's game, priced by the board's table, or by a solve in memory where there is none.

    >>> p = luckbase.play("boards/pig/tiny.toml", seed=3)
    >>> print(*p.through(lambda play: "roll"), sep="\\n")

    how: seat, against, seed, draw, hints (`cluster.play.game.PlayOptions`). `Play.talk` yields what
    is said and what is asked; `Play.decisions` says what each of the person's cost. Raises
    OptionError, StateError, SearchLimitError.
    """
    from luckbase.cluster.inputs import game_of, new_play

    return new_play(game_of(board), start, _place(results), max_states, how)


def advise(
    board: Board | str | os.PathLike[str], start: State | None = None, *,
    max_states: Annotated[
        int, Help("The most states that a search for one decision may find.", "N", 1)
    ] = 5_000_000,
    results: str | os.PathLike[str] = "results", **options: object,
) -> Following:  # fmt: skip
    """A real game, followed in words: whose turn, what to do, by how much, and why.

    >>> game = luckbase.advise("boards/press-your-luck/tiny.toml")
    >>> game.say("Ed 500, 1 spin; Peter 0, 1 spin; Michael 1000, 1 spin").advice.best
    'play'

    `Following.say` takes a line as it is typed at ``luckbase advise``; ``help`` says which. start:
    where the game is, if no line is to say so. options: of the board. A decision with more than
    `max_states` below gets no advice, but says how many. A context manager. Raises BoardError,
    OptionError, StateError.
    """
    from luckbase.cluster.inputs import following

    return following(board, start, options, max_states, _place(results))


def graph(  # what the command has
    board: Board | str | os.PathLike[str], agents: str | Sequence[Any] = "optimal",
    start: Any = None, *,
    every: Annotated[bool, Help("Every position, those that no play comes to as well.")] = False,
    layers: Annotated[bool, Help("Draw a box around each layer.")] = False,
    labels: Annotated[str, Help(f"What edges say: {', '.join(LABELS)}.", "KIND")] = "chances",
    ends: Annotated[bool, Help("In a one-player game, lost games as well.")] = False,
    results: str | os.PathLike[str] = "results",
) -> Picture:  # fmt: skip
    """How a profile of agents plays, drawn: `Picture.diagram` is data, `Picture.dot` a
    `graphviz.Digraph`, which a notebook shows.

    agents, results: as of `evaluate`. Raises OptionError."""
    from luckbase.cluster.inputs import playing
    from luckbase.cluster.play.draw import DrawingOptions, draw_play

    how = DrawingOptions(every, labels, layers, ends)
    with playing(board, agents, start, results) as (game, root, opener):
        return draw_play(game, root, agents, how, opener)


def report(
    table: Table | Board | str | os.PathLike[str], sample: int | None = 10_000, *,
    results: str | os.PathLike[str] = "results", **options: object,
) -> Report:  # fmt: skip
    """A table in one HTML file: its board, a few questions, charts, the verdict of `Table.verify`.

    >>> luckbase.report("boards/skunk/seed.toml").save("report.html")

    table: open, or as `open` takes it. sample: rows that are verified; None for all, 0 for no
    verification. The file needs no network. Raises as `open`; faults that are
    found stand in the report, and in `Report.verdict`."""
    from luckbase.cluster.answers.table import Table
    from luckbase.cluster.inputs import open_by_name
    from luckbase.jobs.web.report import report_on

    if isinstance(table, Table):
        return report_on(table, sample, verify=sample != 0)
    with open_by_name(table, _place(results), options) as found:
        return report_on(found, sample, verify=sample != 0)
