"""What is known of a table: whether it is complete, partial, stale or damaged, and why; its opening
questions, and what was solved."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from luckbase.cluster import words
from luckbase.cluster.table import RUNNING, Condition
from luckbase.cluster.table.answer import Answer
from luckbase.cluster.table.find import find_table, results_of, tables_of, why_stale
from luckbase.cluster.table.folder import damaged_files, read_ledger
from luckbase.cluster.table.ledger import (
    TIERS,
    Goal,
    Ledger,
    board_command,
    in_order,
    solve_command,
)
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.table import StoredTable, Table
from luckbase.solver import load_game
from luckbase.solver.board.file import read_board
from luckbase.solver.board.model import canonical, changed_options
from luckbase.solver.errors import (
    LuckbaseError,
    MissingTableError,
    OptionError,
    StateError,
    TableError,
    UnknownGameError,
)
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.result import PythonOnly, Result
from luckbase.solver.sentences import html_facts

SILENT_SECONDS = 60.0
"""A solve that has said nothing for so long was ended without a word."""


@dataclass(frozen=True)
class Status(Result):
    """What is known of a table without opening its files.

    state: complete, partial, stale or damaged; refused of a table whose game is not known here; of
    a board that has no table missing, of one that can not be read refused: then `table` is its
    file. options: not at the game's defaults.
    tiers: files of the full table, of `tiers_in_all`. roots: of searches. why: sentences, with
    what would help. error: the bound on a payoff's. running: what a solve that runs says of itself
    (`cluster.run.watch`).
    """

    table: str
    state: Condition
    options: dict[str, Any]
    tiers: int = 0
    tiers_in_all: int = 0
    roots: int = 0
    states: int = 0
    bytes: int = 0
    error: PythonOnly[float] = 0.0
    why: tuple[str, ...] = ()
    running: dict[str, Any] | None = None

    def _repr_html_(self) -> str:
        """The status in a notebook."""
        files = (
            f"{self.tiers:,} of {words.many(self.tiers_in_all, 'file')}"
            if self.tiers_in_all
            else ""
        )
        rows = [("options", words.fields(self.options)), ("states", f"{self.states:,}"),
                ("full table", files), ("roots of searches", f"{self.roots:,}" * bool(self.roots)),
                ("size", words.size(self.bytes)), ("why", "; ".join(self.why))]  # fmt: skip
        return html_facts(f"{self.state}: {self.table}", rows)


def statuses_of(
    names: Sequence[str], results: Path, settings: Mapping[str, str] = {}
) -> list[Status]:
    """The status of the tables that are named, by directory or board file.

    Raises OptionError, MissingTableError for what is not there.
    """
    return [status_of(path) for path in _chosen(names, results, dict(settings))]


def _chosen(names: Sequence[str], results: Path, settings: dict[str, str]) -> list[Path]:
    """The folders of what was named: of a board file all tables, with settings the one with these
    rules."""
    chosen: list[Path] = []
    for name in names:
        if Path(name).is_dir():
            chosen.append(Path(name))
            continue
        if not Path(name).exists():
            raise OptionError(f"{name}: no such table or board file")
        if settings:
            chosen.append(find_table(name, results, settings).path)
            continue
        of_board = tables_of(read_board(Path(name)), results)
        chosen += of_board or [find_table(name, results, {}).path]
    return chosen


def status_of(path: Path) -> Status:
    """The status of the table in a folder."""
    try:
        storage = Folder(path)
        ledger = read_ledger(storage, path)
        stale, bad = why_stale(ledger), damaged_files(storage, path, ledger)
        goal = ledger.furthest
        shown = changed_options(ledger.board({} if goal is None else goal.reach))
    except UnknownGameError as error:
        return Status(
            str(path), "refused", {}, states=ledger.rows, bytes=ledger.bytes, why=(str(error),),
            running=running(path),
        )  # fmt: skip
    except TableError as error:
        return Status(str(path), "damaged", {}, why=(str(error),), running=running(path))
    state, why = _state(ledger, stale, bad, results_of(path))
    return Status(
        str(path), state, shown | ({"margin": True} if ledger.margin else {}),
        len(ledger.of_part(TIERS)), 0 if goal is None else goal.files,
        len({json.dumps(start) for g in ledger.goals if g.roots for start in g.roots.start}),
        ledger.rows, ledger.bytes, ledger.error(), tuple(why), running(path),
    )  # fmt: skip


def running(path: Path) -> dict[str, Any] | None:
    """What a solve of the table says of itself; None where none runs, on any machine."""
    try:
        said: dict[str, Any] = json.loads((path / RUNNING).read_text())
        age = datetime.now().astimezone() - datetime.fromisoformat(said["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return said if abs(age.total_seconds()) < SILENT_SECONDS else None


def _state(
    ledger: Ledger, stale: list[str], bad: dict[str, str], results: Path | None
) -> tuple[Condition, list[str]]:
    """(the state in a word, why)."""
    if stale and not bad:
        return "stale", list(stale)
    if ledger.complete and not bad:
        return "complete", []
    game = load_game(ledger.board({}))
    if bad:
        parts = {ledger.files[name].part for name in bad}
        again = [solve_command(g, game, results) for g in ledger.goals if g.part in parts]
        made = [f"made again by: {each}" for each in dict.fromkeys(again)]
        return "damaged", [*words.some(5, list(bad.values())), *made]
    left = [goal for goal in ledger.goals if not ledger.is_done(goal)]
    return "partial", [f"goes on with: {solve_command(each, game, results)}" for each in left]


# --- what it says of itself ---


MAX_ROOTS = 6
"""States below which something was searched, that are asked about."""


@dataclass(frozen=True)
class Question:
    """A state worth asking about: what it shows, its fields, the table's answer."""

    title: str
    state: Mapping[str, Any]
    answer: Answer

    @property
    def best(self) -> str:
        """The best action, or the likeliest ones of a mixed strategy."""
        answer = self.answer
        if answer.strategies is None:
            return "toss-up" if answer.toss_up else str(answer.best)
        likely = sorted(answer.strategies[0], key=lambda bid: -bid.chance)
        return ", ".join(f"{bid.name} {bid.chance:.0%}" for bid in likely[:3] if bid.chance > 0.005)

    def payoff_of(self, name: str) -> str:
        """The payoff of an action to the player to act, or a dash where he does not have it."""
        for action in self.answer.actions:
            if action.name == name and self.answer.to_act is not None:
                return f"{action.value[self.answer.to_act - 1]:z.4f}"
        return "–"


def action_names(questions: Sequence[Question]) -> list[str]:
    """The actions among which somebody decides alone in these questions."""
    answers = [question.answer for question in questions]
    return sorted({a.name for answer in answers if answer.to_act for a in answer.actions})


def opening_answers(table: Table) -> list[Question]:
    """The opening questions of the full table, answered; without one the start, or the roots of
    searches: those that are not solved yet are left out."""
    found = []
    for title, state in _questions(table):
        with suppress(StateError, MissingTableError):
            found.append(Question(title, state, table.ask(state)))
    return found


def _questions(table: Table) -> Iterator[tuple[str, Mapping[str, Any]]]:
    full = table.full
    if full is not None and table.game.has(Layout):
        yield from full.layout.opening_questions()
        return
    start = table.game.start()
    if start is not None and table.holds(start.reshape(1, -1))[0]:
        yield "the start", table.game.describe(start)
        return
    for state in _roots(table)[:MAX_ROOTS]:
        if table.holds(table.game.parse(state).reshape(1, -1))[0]:
            yield "below this all is solved", state


def _roots(table: Table) -> list[dict[str, Any]]:
    goals = table.ledger.goals if isinstance(table, StoredTable) else []
    found = [state for goal in goals if goal.roots is not None for state in goal.roots.start]
    return [in_order(state, table.game) for state in found]


@dataclass(frozen=True)
class Summary:
    """title: of the board, where its file is still there. board: its canonical form. name: the
    table as a command names it. commands: that solved it. seconds: of one core, by what
    they went into. versions: of luckbase that solved it. partial: what is not there yet, in words;
    "" if all is. roots: of searches."""

    title: str
    board: dict[str, Any]
    states: int
    error: float
    files: int = 0
    bytes: int = 0
    name: str = "BOARD"
    commands: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    versions: tuple[str, ...] = ()
    partial: str = ""
    roots: tuple[dict[str, Any], ...] = ()


def summary_of(table: Table) -> Summary:
    """What was solved, and how."""
    board = table.game.board
    form = canonical(board)
    if not isinstance(table, StoredTable):
        return Summary(board.title, form, table.rows, table.error)
    ledger = table.ledger
    seconds: dict[str, float] = {}
    for entry in ledger.files.values():
        for name, spent in entry.seconds.items():
            seconds[name] = seconds.get(name, 0.0) + spent
    left = sum(not ledger.is_done(goal) for goal in ledger.goals)
    return Summary(
        title=_title(table), board=form, states=ledger.rows, error=table.error,
        files=len(ledger.files), bytes=ledger.bytes, name=_name(table),
        commands=tuple(dict.fromkeys(
            solve_command(goal, table.game, words="luckbase solve", file=_file(goal))
            for goal in ledger.goals
        )),
        seconds=seconds, versions=tuple(sorted({e.solver_version for e in ledger.files.values()})),
        partial=f"{left} of the {words.many(len(ledger.goals), 'solve')} asked for" if left else "",
        roots=tuple(_roots(table)),
    )  # fmt: skip


def _title(table: StoredTable) -> str:
    """The board's title, which is no part of its rules, from the file that it was read from."""
    goal = table.ledger.origin
    if goal is None or not Path(goal.board_file).is_file():
        return ""
    try:
        return read_board(Path(goal.board_file), goal.settings).title
    except LuckbaseError:  # the file is another one now
        return ""


def _name(table: StoredTable) -> str:
    """The table as a command names it: the board file with its options."""
    goal = table.ledger.origin
    if goal is None:
        return str(table.path)
    return board_command(_file(goal), goal.settings, table.game.board.game, words="")


def _file(goal: Goal) -> str:
    """The board file of a goal, by its place under a folder ``boards`` if it is in one."""
    parts = Path(goal.board_file or "BOARD").parts
    last = len(parts) - parts[::-1].index("boards") - 1 if "boards" in parts else 0
    return str(Path(*parts[last:]))
