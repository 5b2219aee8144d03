"""A game: its rules bound to one board, and everything that follows from them for any game.

Other packages never name a game. Search, simulation, verification, tables and commands use the
members of `Game` and the capabilities that they need.

**Agents.** An agent is called as ``choose(game, player, state, actions)`` at a state with more than
one action. It returns an index into `actions`, or a chance for each of them.

**Games in a user's file.** A board file never names code. The user does, with ``--game FILE.py`` or
`load_game_file`. The file is run once and calls `luckbase.register` for each of its games.

* **Other processes and machines.** A board of such a game is pickled with the file's text, so a
  worker without the file can run it.
* **A changed file.** The rules version of such a game contains a hash of the file's code, without
  comments and docstrings. If the code changes, old tables become stale.
"""

from __future__ import annotations

import ast
import copyreg
import hashlib
import importlib.util
import inspect
import os
import re
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from luckbase.solver.board import registry
from luckbase.solver.board.model import Board, Source, canonical
from luckbase.solver.board.registry import GameFile
from luckbase.solver.compiled import cache_folder
from luckbase.solver.errors import GameError, LuckbaseError, OptionError, StateError, line_of
from luckbase.solver.game.arrays import FLOAT64_ERROR, Coded, Floats, Ints, coded
from luckbase.solver.game.fields import Field, Fields, Refuse, State
from luckbase.solver.game.rules import WEIGHT, Capability, Level, Numbers, Rules, Unavailable, takes
from luckbase.solver.sentences import Payoffs, fields, named, on_command_line, option, shorten

C = TypeVar("C", bound=Capability)
LARGEST = np.finfo(np.float64).max

Agent = Callable[["Game", int, Ints, list[int]], int | Sequence[float]]
"""choose(game, player from 0, state (fields,), actions) -> index into actions, or their chances."""


class Game:
    """A game on one board. Immutable; pickled as its board.

    transition, players, max_edges, pays, simultaneous, payoff_range, tie_tolerance: as in `Rules`.
    """

    def __init__(self, board: Board, rules: Rules) -> None:
        self.board, self.rules = board, rules
        self.fields = Fields(rules.fields, board.game, type(board).options())
        self._made: dict[type[Capability], Any] = {}
        self.transition, self.max_edges = rules.transition, rules.max_edges
        self.players = rules.players
        self.pays, self.simultaneous = rules.pays, rules.simultaneous
        self.tie_tolerance = rules.tie_tolerance
        anything = (-inf, inf) if rules.pays else (0.0, 1.0)
        self.payoff_range: tuple[float, float] = rules.payoff_range or anything
        """The least and the greatest payoff; infinite if the search has to find them."""
        self.rules_version: int = rules.version
        """Raised when the same board gets other values or another row order."""
        self.columns: tuple[str, ...] = self.fields.columns
        """A name for each number of a state: ``scores_1``; players count from 1 in turn order."""
        self.field_count = len(self.columns)
        self.strides: Ints = self.fields.strides
        """int64 (2, fields): how a state's numbers make its key (`Fields.strides`). The key has
        room for the numbers of every state that a search can meet."""

    def __reduce__(self) -> tuple[Any, ...]:
        return load_game, (self.board,)

    @cached_property
    def level(self) -> Level | None:
        """The level that cuts large searches into stages, by column; None if there is none, or if
        turns are solved in memory (`turn`)."""
        level = None if self.turn.size else self.rules.level
        level = level if level is None or isinstance(level, Level) else Level(level)
        return None if level is None else level.by_column(self.rules.fields)

    @cached_property
    def turn(self) -> Ints:
        """int64 (2, k): the columns used only within a turn, and their numbers between turns."""
        columns, start = list[tuple[int, int]](), 0
        for field in self.fields:
            if field.name in self.rules.within_turn and field.default is not None:
                number = (field.default - field.shift) // field.unit
                columns += [(start + i, number) for i in range(field.length)]
            start += field.length
        return np.ascontiguousarray(np.array(columns, np.int64).reshape(-1, 2).T)

    def within_turn(self, states: Ints) -> NDArray[np.bool_]:
        """Return which canonical states (n, fields) are inside a turn: bool (n,)."""
        columns, numbers = self.turn
        inside: NDArray[np.bool_] = (np.asarray(states)[:, columns] != numbers).any(axis=1)
        return inside

    # --- capabilities ------------------------------------------------------------------------

    def has(self, kind: type[Capability]) -> bool:
        """Return whether the game has the capability on this board."""
        capability = self.rules.capabilities.get(kind)
        return capability is not None and not isinstance(capability, Unavailable)

    def get(self, kind: type[C]) -> C | None:
        """Return the capability, or None if the game lacks it on this board."""
        return self.need(kind) if self.has(kind) else None

    def own(self, kind: type[C]) -> C:
        """Return the capability, or its defaults (``kind()``) if the game lacks it."""
        return self.get(kind) or kind()

    def need(self, kind: type[C]) -> C:
        """Return the capability. Raises OptionError if the game lacks it on this board."""
        if (known := self._made.get(kind)) is not None:
            return known
        where = f"board {self.board.name}"
        capability = self.rules.capabilities.get(kind)
        if capability is None:
            raise OptionError(f"{where}: {self.board.game} {named(kind.missing)}")
        if isinstance(capability, Unavailable):
            raise OptionError(f"{where}: {capability.why}")
        try:
            loaded = registry.load(capability)
        except (ImportError, AttributeError) as error:
            raise self._breaks(f"capabilities: {kind.__name__}: {capability}: {error}") from error
        value = loaded(self) if not isinstance(loaded, kind) and takes(loaded, 1) else loaded
        if not isinstance(value, kind):
            problem = (
                f"capabilities: {kind.__name__}: {value!r:.60}; expected one, or a function of"
            )
            raise self._breaks(f"{problem} the game that makes one")
        self._made[kind] = value
        return value

    # --- rules -------------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> Numbers:
        """The board as numbers, for the transition."""
        numbers = self.rules.numbers
        if isinstance(numbers, Numbers):  # convert lists and other number types
            ints, reals = map(np.ascontiguousarray, numbers)
            return Numbers(ints.astype(np.int64), reals.astype(np.float64))
        return Numbers(np.array(numbers, np.int64), np.zeros(1))

    @property
    def payoff_name(self) -> str:
        if self.rules.payoff_name:
            return self.rules.payoff_name
        return "chance to win" if self.pays_chances else "payoff"

    @property
    def payoffs(self) -> Payoffs:
        """How its payoffs are written."""
        return Payoffs(self.payoff_name, self.pays_chances)

    @property
    def pays_chances(self) -> bool:
        """Whether payoffs are chances, whose differences are given in percentage points."""
        return self.payoff_range == (0.0, 1.0) and not self.pays

    @cached_property
    def payoff_span(self) -> Floats:
        """float64 (2,): the least and the greatest payoff, with slack for rounding."""
        low, high = self.payoff_range
        if low == -inf:
            return np.array([-LARGEST, LARGEST])
        slack = WEIGHT * max(1.0, abs(low), abs(high))
        return np.array([low - slack, high + slack])

    @property
    def known_range(self) -> tuple[float, float] | None:
        """The least and the greatest payoff; None if the search has to find them."""
        return None if self.payoff_range[0] == -inf else self.payoff_range

    @cached_property
    def float64_error(self) -> float:
        """Bound on the rounding error of the sums of a payoff in float64.

        It is `FLOAT64_ERROR` for payoffs up to 100 and proportional to the largest payoff beyond.
        If edges pay, it is always `FLOAT64_ERROR`: each state's own bound covers rounding.
        """
        largest = 0.0 if self.pays else max(map(abs, self.payoff_range))
        return FLOAT64_ERROR * max(1.0, 0.01 * largest)

    @cached_property
    def cut_error(self) -> float:
        """Bound on the difference to payoffs without the cut; 0 if nothing is cut."""
        return 0.0 if self.rules.cut_error is None else self.rules.cut_error()

    @cached_property
    def is_checked(self) -> bool:
        """Whether each expanded state is checked against the contract, as for users' games."""
        return not registry.is_here(self.board.game)

    def action_name(self, action: int) -> str:
        """Return the name of the action for people; "chance" if it has no name."""
        names = self.rules.actions
        if callable(names):
            return names(action) if action >= 0 else "chance"
        return names[action] if 0 <= action < len(names) else "chance"

    def start(self) -> Ints | None:
        """Return the canonical state (fields,) in which every play begins; None if there are
        several, or if the user must give it."""
        starts = self.starts()
        return starts[0][1].copy() if len(starts) == 1 else None

    def starts(self) -> list[tuple[float, Ints]]:
        """Return (chance, canonical state (fields,)) of each possible start, the likeliest first;
        empty if the user must give it. Raises GameError for wrong chances."""
        return self._starts

    @cached_property
    def _starts(self) -> list[tuple[float, Ints]]:
        declared = self.rules.start() if callable(self.rules.start) else self.rules.start
        if declared is None or isinstance(declared, Unavailable):
            return []
        if isinstance(declared, Mapping):
            declared = [(1.0, declared)]
        if not isinstance(declared, tuple | list) or not all(
            isinstance(pair, tuple | list) and len(pair) == 2 for pair in declared
        ):
            problem = (
                f"start: {declared!r:.80}; expected a state in words, or (chance, state) of each"
            )
            raise self._breaks(problem)
        try:
            read = np.array([self.fields.read(words) for _, words in declared])
            states = self.canonical_states(read)
        except StateError as error:
            if not self.is_checked:
                raise
            raise self._breaks(f"start: {error}") from None
        chances: dict[bytes, float] = {}
        for (chance, _), state in zip(declared, states, strict=True):
            chances[state.tobytes()] = chances.get(state.tobytes(), 0.0) + float(chance)
        total = sum(chances.values())
        off = abs(total - 1) > WEIGHT + len(declared) * 2.0**-53
        if off or not all(chance > 0 for chance in chances.values()):
            problem = f"the chances in Rules(start=…) add up to {total:.13g}; expected 1"
            raise self._breaks(f"{problem}, each above 0")
        ordered = sorted(chances.items(), key=lambda each: (-each[1], each[0]))
        return [(chance, np.frombuffer(key, np.int64).copy()) for key, chance in ordered]

    def _breaks(self, problem: str) -> GameError:
        return GameError(f"{registry.author_name(self.board.game)}: {problem}")

    def needed_start(self) -> Ints:
        """Return `start()`. Raises OptionError if there is none."""
        if (start := self.start()) is None:
            raise self._without_start()
        return start

    def needed_starts(self) -> Ints:
        """Return the possible starts (m, fields). Raises OptionError if there are none."""
        if not self.starts():
            raise self._without_start()
        return np.array([state for _, state in self.starts()])

    def _without_start(self) -> OptionError:
        problem = f"{self.no_start}; say where to start, as {option('start')}"
        return OptionError(problem + on_command_line(" FIELD=VALUE", "={'field': value}"))

    @property
    def no_start(self) -> str:
        """A sentence that the game has no `start`, with the reason."""
        start = self.rules.start
        why = f"{self.board.game} has no state that every play starts in"
        return f"board {self.board.name}: {start.why if isinstance(start, Unavailable) else why}"

    # --- states ------------------------------------------------------------------------------

    def parse(self, state: State) -> Ints:
        """Return the canonical state, int64 (fields,), of a mapping, a row of a frame, or text.

        Raises StateError in one sentence: the field, the value and what would be right.
        """
        return self.canonical_states(self.fields.read(state))[0]

    def canonical_states(self, values: Ints) -> Ints:
        """Return canonical states (n, fields) from values in people's units, ordered as `columns`.

        Raises StateError as `parse` does, with the row (from 1) if there are several.
        """
        states = np.asarray(values, np.int64).reshape(-1, self.field_count)
        refuse = Refuse(len(states))
        numbers = self.fields.numbers(states, refuse)
        found = numbers if self.rules.canonical is None else self.rules.canonical(numbers, refuse)
        if np.shape(found) != numbers.shape:
            problem = f"canonical gives {type(found).__name__}, not states {numbers.shape}"
            raise self._breaks(problem)
        return found

    def known_states(self, values: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the canonical states (m, fields) of valid rows of values, and a mask (n,)."""
        values = np.asarray(values, np.int64).reshape(-1, self.field_count)
        known = np.ones(len(values), bool)
        while known.any():
            try:
                return self.canonical_states(values[known]), known
            except StateError as error:  # each pass drops the rows that fail a check
                if error.wrong is None:
                    raise
                known[known] = ~error.wrong
        return np.empty((0, self.field_count), np.int64), known

    def describe(self, state: Ints) -> dict[str, Any]:
        """Return the fields of a state as JSON values, in people's units (dollars)."""
        return self.fields.describe(state)

    def say(self, state: Ints) -> str:
        """Return a state as a user types it: ``mine=0 yours=87``."""
        return fields(self.describe(state))

    def state_columns(self, states: Ints) -> dict[str, NDArray[np.integer[Any]]]:
        """Return the columns of states (n, fields) in people's units, named as in `columns`.

        int32; int64 for sets of more than 31 numbers. The inverse of `canonical_states`.
        """
        columns, field_of = {}, [field for field in self.fields for _ in field.columns]
        for name, field, column in zip(self.columns, field_of, states.T, strict=True):
            if field.unit > 1 or field.shift:  # most numbers equal their values (`Fields.values`)
                column = column * field.unit + field.shift
            columns[name] = column.astype(np.int64 if field.high >> 31 else np.int32)
        return columns

    def table_columns(self, states: Ints) -> dict[str, NDArray[np.integer[Any]] | Coded]:
        """Return the columns of states (n, fields) for a table, with sets and names as text."""
        texts = {field.name: field.text for field in self.fields if field.is_text}
        return {
            name: coded(column, texts[name]) if name in texts else column
            for name, column in self.state_columns(states).items()
        }


_loaded: deque[tuple[registry.Entry, Game]] = deque(maxlen=8)
"""The latest games of this process, each with the registry entry that made it."""


def load_game(board: Board) -> Game:
    """Return the board's game, cached until a game of the same name is registered again.

    Raises BoardError or OptionError for a valid board that the solver does not support, and
    GameError, with the line, if the game's own code raises an error.
    """
    entry, rules = registry.find(board.game), None
    for made_of, game in tuple(_loaded):
        known = game.board
        if made_of is entry and known.model_copy(update={"title": board.title}) == board:
            if (known.title, known.source) == (board.title, board.source):
                return game
            rules = game.rules
    game_ = Game(board, rules or _rules(entry, board))
    _loaded.append((entry, game_))
    return game_


def under(game: Game, **options: Any) -> Game:
    """Return the game on the same board with other values of these options of its rules."""
    board: Any = game.board
    rules = board.rules.model_copy(update=options)
    return game if rules == board.rules else load_game(board.model_copy(update={"rules": rules}))


def _rules(entry: registry.Entry, board: Board) -> Rules:
    try:
        rules = entry.rules(board)
        if not isinstance(rules, Rules):
            raise TypeError(f"the function that is registered for {board.game} returns "
                            f"{type(rules).__name__}; expected Rules")  # fmt: skip
    except LuckbaseError:
        raise
    except (Exception, SystemExit) as error:
        if registry.is_here(board.game):
            raise
        file = entry.file.path if entry.file else inspect.getfile(entry.make)  # type: ignore[arg-type]
        raise GameError(registry.author_name(board.game) + fault_in(Path(file), error)) from None
    return replace(rules, version=(rules.version << 32) + entry.stamp) if entry.stamp else rules


# --- games in a user's file ----------------------------------------------------------------------


def stamp(text: str) -> int:
    """Return a 32-bit hash of a file's code. Raises SyntaxError."""
    tree = _WithoutWords().visit(ast.parse(text.encode()))
    return int(hashlib.sha256(ast.dump(tree, annotate_fields=False).encode()).hexdigest()[:8], 16)


class _WithoutWords(ast.NodeTransformer):
    """Drop docstrings and ``if TYPE_CHECKING`` blocks."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return node.orelse if typing else node


def load_game_file(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Run a file that registers games and return their names. The same text runs only once.

    Raises OptionError in one sentence if the file cannot be read, fails (with the line), or
    registers nothing.
    """
    from luckbase.solver.board.file import open_regular

    where = Path(path)
    try:
        with open(where, encoding="utf-8", opener=open_regular) as source:
            text = source.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise OptionError(f"--game: {where}: {reason}") from None
    return _run(GameFile(str(where.absolute()), text), where)


def _run(file: GameFile, where: Path) -> tuple[str, ...]:
    names = registry.of_file(file)
    if names:
        return names
    name = f"luckbase_game_{hashlib.sha256(file.text.encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, where)
    if spec is None or spec.loader is None:
        raise OptionError(f"--game: {where}: is not a Python file; name one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pydantic looks up the modules of its models
    before = dict(registry.entries)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise OptionError(f"--game: {where}{fault_in(where, error)}") from None
    new = [e for name, e in registry.entries.items() if e is not before.get(name)]
    if not new:
        raise OptionError(f"--game: {where}: registers no game; end it in luckbase.register(…)")
    for entry in new:
        registry.enter(replace(entry, stamp=stamp(file.text), file=file))
        copyreg.pickle(entry.model(), _reduced)
    return tuple(entry.name for entry in new)


def fault_in(where: Path, error: BaseException) -> str:
    """Return the fault in a game's file, with its line, to follow the file's name."""
    message = str(error)
    wrong = re.search(r"unexpected keyword argument '(\w+)'", message)
    if type(error).__module__.startswith("numba"):  # whose messages have dozens of lines
        lines = [line.strip() for line in message.splitlines() if line.strip()]
        if lines[0].startswith("Failed in "):  # names one of numba's passes
            lines = lines[1:]
        message = " ".join(lines[: 1 + lines[0].endswith(":")])
        message = "; ".join([message, *getattr(error, "__notes__", ())])
    elif isinstance(error, ValidationError):
        from luckbase.solver.board.file import sentence_of

        first = error.errors(include_url=False)[0]
        message = f"{', '.join(map(str, first['loc']))}: {sentence_of(first)}"
    elif isinstance(error, TypeError) and wrong is not None:
        close = get_close_matches(wrong[1], [*Rules.__annotations__, *Field.__annotations__], n=1)
        if close:  # Python 3.13 adds a suggestion of its own
            message = f"{message.partition('. Did you mean')[0]}; did you mean '{close[0]}'?"
    if not re.match(r"\w+Error: ", message):
        message = f"{type(error).__name__}: {message.replace('.__init__()', '()')}"
    return f"{line_of(error, str(where.absolute()))}: {shorten(message, 240)}"


def own_fault(error: BaseException) -> str | None:
    """Return a sentence, with the line, for an error in the code of a user's game; else None."""
    files = [Path(entry.file.path) for entry in registry.entries.values() if entry.file]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if (where := Path(frame.filename)) in files:
            return where.name + fault_in(where, error)
    return None


def _reduced(board: Board) -> tuple[Any, ...]:
    return revive, (registry.find(board.game).file, board.name, canonical(board), board.source)


def revive(file: GameFile, name: str, form: dict[str, Any], source: Source | None) -> Board:
    """Restore a pickled board, even if the process lacks its game or the machine its file."""
    if not registry.of_file(file):
        where = Path(file.path)
        if not where.is_file() or where.read_text(encoding="utf-8") != file.text:
            where = _written(file)
        _run(file, where)
    model = registry.find(form["game"]).model()
    return model.model_validate({**form, "name": name}).read_from(source)


def _written(file: GameFile) -> Path:
    """Write the text to a file on this machine, in a folder named by its hash."""
    folder = cache_folder() or Path(tempfile.mkdtemp(prefix="luckbase-"))
    folder = folder / "games" / hashlib.sha256(file.text.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / Path(file.path).name
    beside = place.with_suffix(f".{os.getpid()}.part")
    beside.write_text(file.text, encoding="utf-8")
    beside.replace(place)
    return place
