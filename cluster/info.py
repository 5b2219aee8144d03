"""The facts of a board or a table: game, fields, options, charts, agents, and commands to copy.

For a table also its size, age and origin. Also lists the boards in the package.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from luckbase.cluster.answers.find import Status, find_table, is_table, tables_on_grids
from luckbase.cluster.batch.requests import requests_for
from luckbase.cluster.batch.run import statuses, statuses_of_board
from luckbase.cluster.inputs import board_of, has_full_table
from luckbase.cluster.store.manifest import Manifest, Roots
from luckbase.cluster.store.provenance import board_command, in_order, is_its_start, solve_command
from luckbase.cluster.store.storage import place_of, storage_at
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver import sentences
from luckbase.solver.board import registry
from luckbase.solver.board.file import BOARDS, SUFFIX, as_words, name_of, packaged, read_board
from luckbase.solver.board.model import Board, canonical, options_of, rules_identity, values_of
from luckbase.solver.charts import FULL, Kind
from luckbase.solver.errors import LuckbaseError, MissingTableError, OptionError
from luckbase.solver.game.capabilities import Agents, Charts, FullTable, detailed
from luckbase.solver.game.fields import MAX_VALUE, Field
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.policies.agents import OPTIMAL, RANDOM
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.sentences import option

CHOICES = 20
"""Maximum number of values of a field that are listed one by one."""
FEW_STATES = 1e6
"""Maximum number of states below the start for which an example evaluates agents."""


@dataclass(frozen=True)
class PackagedBoard(Result):
    """A board in the package.

    name: as every command takes it.
    game_title: the common name of the game.
    title: of the board.
    about: the first sentence of the file.
    text: the whole file.
    """

    name: str
    game: str
    game_title: str
    title: str
    about: str
    text: PythonOnly[str] = field(repr=False)

    def copy(self, out: str | os.PathLike[str] | None = None) -> Path:
        """Write the board to a file for editing, by default NAME.toml in the current folder. Return
        the path. Raises OptionError if the file exists."""
        path = Path(out or f"{self.name.rpartition('/')[2]}{SUFFIX}")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(self.text)
        except FileExistsError:
            raise OptionError(f"{option('out')}: {path} is there already; name another") from None
        return path


@cache
def boards() -> tuple[PackagedBoard, ...]:
    """Return the boards in the package, ordered by game."""
    entries = []
    for name in packaged():
        text = (BOARDS / f"{name}{SUFFIX}").read_text(encoding="utf-8")
        data, about = tomllib.loads(text), text.partition("\n")[0].removeprefix("# ")
        title = registry.described(data["game"])[0]
        entries.append(PackagedBoard(name, data["game"], title, data["title"], about, text))
    return tuple(sorted(entries, key=lambda each: (each.game_title, each.name)))


# --- a board or a table --------------------------------------------------------------------------


FieldKind = Literal["players", "list", "set", "choice", "name", "number"]


@dataclass(frozen=True)
class FieldInfo(Result):
    """A field of a state, as a page's form needs it."""

    name: str
    label: str
    help: str  # describes the field, as a sentence
    example: str  # a value as it is written in a URL
    kind: FieldKind
    """Players (one number a player), list (several other numbers), set (numbers from 1), choice
    (one of few values), name (one of many), number."""
    players: bool
    length: int
    min: int
    max: int | None
    step: int
    """Minimum, maximum and step of each number; null for no limit."""
    choices: list[int] | list[str] | None  # the values or their names, if they are few
    default: int | str | None  # the value if the field is omitted; null if it is required
    optional: bool
    blank: bool


@dataclass(frozen=True)
class OptionInfo(Result):
    """An option of a board, with values as ``--set name=value`` takes them; None for no value."""

    name: str
    value: str | None  # on this board
    default: str | None  # of the game
    set_by: Literal["default", "board", "command"]  # the source of the value
    values: tuple[str, ...]  # the permitted values
    help: str


@dataclass(frozen=True)
class TableAbout(Result):
    """A table on disk."""

    status: Flat[Status]  # its folder, progress, states and bytes
    solved: str  # local time of the last write
    error_bound: float  # a bound on the error of every payoff
    commands: tuple[str, ...]  # the commands that solved it


@dataclass(frozen=True)
class Info(Result):
    """A board, and its table if there is one.

    file: the board as a command takes it.
    title: of the board; its name if it has none.
    about: describes the game in two sentences.
    examples: complete commands.
    """

    board: str
    file: str
    title: str
    game: str
    game_title: str
    about: str
    players: int
    payoff_name: str
    payoff_range: tuple[float, float] | None
    fields: tuple[FieldInfo, ...]
    options: tuple[OptionInfo, ...]
    charts: tuple[Kind, ...]
    agents: tuple[str, ...]
    examples: tuple[str, ...]
    table: IfAny[TableAbout] = None

    def __repr__(self) -> str:
        return f"<{self.title}: {self.game_title}, {self.file}>"

    def _repr_html_(self) -> str:
        status = None if self.table is None else self.table.status
        solved = "not solved yet" if status is None else f"{status.state}: {status.table}"
        options = {each.name: each.value for each in self.options if each.value is not None}
        rows = [("game", self.about), ("payoff", self.payoff_name), ("table", solved),
                *((f"field {each.name}", each.help) for each in self.fields),
                ("options", sentences.fields(options)),
                ("charts", ", ".join(each.name for each in self.charts)),
                ("agents", ", ".join(sentences.families(self.agents)))]  # fmt: skip
        return sentences.html_facts(self.title, rows)


def info(
    board_or_path: Board | str | os.PathLike[str], results: Path, options: Mapping[str, object]
) -> Info:
    """Return the facts of a board, or of a table and its board. Raises as `find_table` does, except
    for a board that has no table yet."""
    named = board_or_path
    if isinstance(named, Board) or not place_of(named).is_dir():
        board = board_of(named, **options)
        fixed = dict.fromkeys(type(board).grid) if isinstance(named, Board) else options
        path = next(iter(tables_on_grids(board, results, fixed)), None)
        manifest = None if path is None else read_manifest(storage_at(path), path)
        if manifest is not None and manifest.head.identity != rules_identity(load_game(board)):
            board = board_in(manifest)  # of another grid
    else:
        path = find_table(os.fspath(named), results, as_words(options))
        if not is_table(path):
            raise MissingTableError(f"{path}: is not a table; name one, or a board file")
        manifest = read_manifest(storage_at(path), path)
        board = board_in(manifest)
    game, source = load_game(board), board.source
    title, about = registry.described(board.game)
    file = "BOARD" if source is None else sentences.shown(name_of(source.file))
    charts = game.get(Charts)
    return Info(
        board=board.name, file=file, title=board.title or board.name, game=board.game,
        game_title=title, about=about, players=game.players, payoff_name=game.payoff_name,
        payoff_range=game.known_range,
        fields=tuple(field_info(game, each) for each in game.fields),
        options=tuple(_options(board)),
        charts=() if charts is None else tuple(charts.kinds),
        agents=tuple(agents_on(game)),
        examples=tuple(_examples(game, file, results, manifest)),
        table=None if path is None or manifest is None else _about(path, manifest, game, results),
    )  # fmt: skip


def board_in(manifest: Manifest) -> Board:
    """Return the board of a table: from its file if unchanged, otherwise from the manifest."""
    goal = manifest.origin
    stored = manifest.board(manifest.reach)
    if goal is not None and goal.board_file:
        with suppress(LuckbaseError):
            current = read_board(Path(goal.board_file), goal.settings)
            return current if canonical(current) == canonical(stored) else stored
    return stored


def _about(path: Path, manifest: Manifest, game: Game, results: Path) -> TableAbout:
    (request,) = requests_for([game.board])
    of_board = statuses_of_board(request, results) if path.is_relative_to(results) else iter(())
    same = (each for each in of_board if Path(each.table) == path)
    status = next(same, None) or statuses([str(path)], None)[0]
    written = "" if status.date is None else status.date[:16].replace("T", " ")
    commands = (solve_command(goal, game, words="luckbase solve") for goal in manifest.goals)
    return TableAbout(
        status, written, manifest.error(),
        tuple(dict.fromkeys(commands)),
    )  # fmt: skip


def _options(board: Board) -> Iterator[OptionInfo]:
    settings = {} if board.source is None else board.source.settings
    for name, (value, declared) in options_of(board).items():
        set_by: Literal["default", "board", "command"] = "default"
        if name in settings:
            set_by = "command"
        elif value != declared.default:
            set_by = "board"
        texts = [
            f"{each[0]} to {each[-1]}" if isinstance(each, range) else as_words({"": each})[""]
            for each in values_of(declared)
        ]
        text, default = (
            None if each is None else as_words({"": each})[""] for each in (value, declared.default)
        )
        yield OptionInfo(name, text, default, set_by, tuple(texts), declared.description or "")


def _examples(game: Game, file: str, results: Path, manifest: Manifest | None) -> Iterator[str]:
    """Yield example commands for a board, each of which works after those before it."""
    settings = {} if game.board.source is None else game.board.source.settings
    root, several = (
        game.start(),
        len(game.starts()) > 1 and FullTable not in game.rules.capabilities,
    )
    state = sentences.fields(_example_state(game, manifest))
    start = "" if several or root is not None else state

    def command(name: str, *more: str) -> str:
        command_line = board_command(file, settings, game.board.game, results, f"luckbase {name}")
        return " ".join([command_line, *filter(None, more)])

    full, solvable = False, True
    try:
        full = has_full_table(game)
    except OptionError:  # only states below a given state can be solved
        solvable = root is None
    if solvable:
        roots = _searched_from(manifest)
        below = roots is not None and not is_its_start(game, roots)
        yield command("solve", f"--from {state}" if below or not (full or start == "") else "")
        yield command("query", state)
        charts = game.get(Charts)
        for kind in charts.kinds[:1] if charts is not None else ():
            if (full and not below) or kind.needs != FULL:
                yield command("chart", f"--what {kind.name}")
    yield command("play", start, "--hints")
    layout = game.get(FullTable)
    if layout is None or root is None or sum(map(layout.rows, layout.tiers())) <= FEW_STATES:
        for agent in islice(_game_agents(game), 1):
            agents = ",".join([OPTIMAL] * (game.players - 1) + [agent])
            yield command("evaluate", start, f"--agents {agents}")


def _searched_from(manifest: Manifest | None) -> Roots | None:
    """Return the roots of the last search of a table that contains only searches."""
    return None if manifest is None or manifest.origin is None else manifest.origin.roots


def _example_state(game: Game, manifest: Manifest | None) -> Mapping[str, Any]:
    """Return fields of a state that the table can answer: a search's root or an instructive one."""
    layout, root = game.get(FullTable), game.start()
    if (roots := _searched_from(manifest)) is not None:
        return in_order(roots.start[0], game)
    complete = all(each.sample for each in game.fields) and (layout is not None or root is not None)
    state: dict[str, Any] = {each.name: sample(each) for each in game.fields}
    if complete and (layout is None or layout.why_outside(game.parse(state)) is None):
        return state
    for _, state in layout.opening_questions() if layout is not None else ():
        return state
    return state if root is None else game.describe(root)


# --- agents and fields of a game -----------------------------------------------------------------


def agents_on(game: Game, seconds: float = math.inf) -> Iterator[str]:
    """Yield the agents that can play: optimal, random, and the game's own agents that this board
    supports and that need at most `seconds` before their first move."""
    yield from (OPTIMAL, RANDOM)
    yield from _game_agents(detailed(game), seconds)


def _game_agents(game: Game, seconds: float = math.inf) -> Iterator[str]:
    agents = game.own(Agents)
    for name in agents.by_name:
        with suppress(LuckbaseError):
            agents.check(game, name)
            if agents.seconds(game, name) <= seconds:
                yield name


def sample(item: Field) -> str:
    """Return a field's example value as a person would write it."""
    return item.sample or item.example.partition("=")[2]


def field_info(game: Game, item: Field) -> FieldInfo:
    """Return a field as a page's form needs it."""
    lone = item.length == 1 and not item.as_list
    players = not lone and item.length == game.players and not item.as_list
    kind: FieldKind = (
        "set" if item.is_set else "players" if players else "number" if lone else "list"
    )
    upper = None if item.high == MAX_VALUE else item.high
    choices: list[int] | list[str] | None = None
    if item.is_set:
        choices = list(range(1, item.high.bit_length() + 1))
    elif item.names is not None:
        choices = list(item.names.names) if len(item.names.names) <= CHOICES else None
        kind = "choice" if choices else "name"
    elif upper is not None and (upper - item.low) // item.unit < CHOICES:
        choices = list(range(item.low, upper + 1, item.unit))
        kind = "choice" if kind == "number" else kind
    default: int | str | None = item.default
    if item.is_text and item.default is not None:
        default = item.text(item.default).replace(" ", ",")  # names are single words
    return FieldInfo(
        name=item.name, label=item.name.replace("_", " "), help=item.help, example=sample(item),
        kind=kind, players=players, length=item.length, min=item.low, max=upper, step=item.unit,
        choices=choices, default=default,
        optional=item.default is not None or item.blank is not None, blank=item.blank is not None,
    )  # fmt: skip
