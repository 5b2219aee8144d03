"""What a table says of itself in a few numbers: its opening questions, and what was solved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.cluster import words
from luckbase.cluster.table.find import command
from luckbase.cluster.table.ledger import furthest
from luckbase.cluster.table.table import StoredTable
from luckbase.cluster.words import many
from luckbase.solver.board.file import read_board
from luckbase.solver.board.model import canonical
from luckbase.solver.errors import LuckbaseError, MissingTableError, StateError
from luckbase.solver.game.capabilities import Layout

if TYPE_CHECKING:
    from luckbase.cluster.table.answer import Answer
    from luckbase.cluster.table.ledger import Goal
    from luckbase.cluster.table.table import Table
    from luckbase.solver.game.game import Game

MOST_ROOTS = 6
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

    def worth(self, name: str) -> str:
        """The payoff of an action to the player to act, or a dash where he does not have it."""
        for action in self.answer.actions:
            if action.name == name and self.answer.to_act is not None:
                return f"{action.value[self.answer.to_act - 1]:z.4f}"
        return "–"


def action_names(asked: Sequence[Question]) -> list[str]:
    """The actions among which somebody decides alone in these questions."""
    answers = [question.answer for question in asked]
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
    for state in _roots(table)[:MOST_ROOTS]:
        if table.holds(table.game.parse(state).reshape(1, -1))[0]:
            yield "below this all is solved", state


def _roots(table: Table) -> list[dict[str, Any]]:
    goals = table.ledger.goals if isinstance(table, StoredTable) else []
    order = table.game.fields.names
    found = [state for goal in goals if goal.roots is not None for state in goal.roots.start]
    return [_in_order(state, order) for state in found]


def _in_order(state: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The fields of a state in the game's order; the ledger sorts them."""
    return {name: state[name] for name in names if name in state}


@dataclass(frozen=True)
class Summary:
    """title: of the board, where its file is still there. board: its canonical form. name: the
    table as a command names it. asked: the commands that solved it. seconds: of one core, by what
    they went into. versions: of luckbase that solved it. partial: what is not there yet, in words;
    "" if all is. roots: of searches."""

    title: str
    board: dict[str, Any]
    states: int
    error: float
    files: int = 0
    bytes: int = 0
    name: str = "BOARD"
    asked: tuple[str, ...] = ()
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
        asked=tuple(dict.fromkeys(solve_command(goal, table.game) for goal in ledger.goals)),
        seconds=seconds, versions=tuple(sorted({e.solver_version for e in ledger.files.values()})),
        partial=f"{left} of the {words.many(len(ledger.goals), 'solve')} asked for" if left else "",
        roots=tuple(_roots(table)),
    )  # fmt: skip


def _title(table: StoredTable) -> str:
    """The board's title, which is no part of its rules, from the file that it was read from."""
    goal = furthest(table.ledger) or table.ledger.latest
    if goal is None or not Path(goal.board_file).is_file():
        return ""
    try:
        return read_board(Path(goal.board_file), goal.settings).title
    except LuckbaseError:  # the file is another one now
        return ""


def _name(table: StoredTable) -> str:
    """The table as a command names it: the board file with its options."""
    goal = furthest(table.ledger) or table.ledger.latest
    if goal is None:
        return str(table.path)
    return command("", str(_file(goal)), goal.settings, table.game.board.game)


def _file(goal: Goal) -> Path:
    """The board file of a goal, by its place under a folder ``boards`` if it is in one."""
    file = Path(goal.board_file or "BOARD")
    parts = file.parts
    if "boards" in parts:
        return Path(*parts[len(parts) - 1 - parts[::-1].index("boards") :])
    return file


def solve_command(
    goal: Goal, game: Game, program: str = "luckbase", file: str = "", results: Path | None = None
) -> str:
    """The command that solves what a goal asked for; file: of the board, if not by its place under
    a folder ``boards``; results: where its table is."""
    board = game.board.game
    said = command(f"{program} solve", file or str(_file(goal)), goal.settings, board, results)
    if goal.roots is None:
        return said
    start = goal.roots.start
    said += f" --from {words.fields(_in_order(start[0], game.fields.names))}"
    said += f" (and {many(len(start) - 1, 'more state')})" if len(start) > 1 else ""
    if goal.roots.using is not None:
        said += f" --using {goal.roots.using.table}"
    return said
