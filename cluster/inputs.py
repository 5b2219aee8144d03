"""Read and check the inputs of commands and of the API: boards, states, roots and tables.

Also opens the tables of a play: those of its agents, and the table with its payoffs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.cluster.answers import find
from luckbase.cluster.solve.options import Options, SolveOptions
from luckbase.cluster.store.provenance import board_command
from luckbase.cluster.store.storage import is_uri, place_of
from luckbase.solver import sentences
from luckbase.solver.board.file import as_words, path_of, read_board, read_boards
from luckbase.solver.board.model import Board, options_of
from luckbase.solver.compiled import compile_on
from luckbase.solver.errors import (
    MemoryLimitError,
    OptionError,
    SearchLimitError,
    StateError,
    TableError,
)
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    FullTable,
    first_state,
    plain,
    simplify,
    state_of,
    states_to_copy,
)
from luckbase.solver.game.fields import State, is_state
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.policies.agents import OPTIMAL
from luckbase.solver.search.expand import expand, root_keys
from luckbase.solver.sentences import many, option

if TYPE_CHECKING:
    from luckbase.cluster.answers.lookup import Lookup
    from luckbase.cluster.answers.table import Table
    from luckbase.cluster.play.advise import Following
    from luckbase.cluster.play.agents import Opener
    from luckbase.cluster.play.game import Play, PlayOptions
    from luckbase.cluster.solve.plan import Planned
    from luckbase.cluster.solve.progress import Solved
    from luckbase.solver.policies.evaluate import Starts

MAX_IN_MEMORY = 100_000_000
"""Maximum number of states of a full table in memory."""
MAX_ROWS = 20_000_000
"""Maximum number of rows that are solved in memory for a play: seconds, and 8 bytes a row."""
MAX_DRAWN = 2_000_000
"""Maximum number of states of the search below a start that was drawn: seconds."""
MAX_OPTIMAL = 4_000_000
"""Maximum number of rows that are solved in memory for the agent `optimal`: seconds."""
A_WHILE = 2.0
"""Predicted seconds above which a solve in memory is announced."""


def roots_of(game: Game, start: Any) -> Ints | None:
    """Return canonical states (m, fields); None for None.

    start: a state in users' form, a list of them, a frame, or an array of canonical states.

    Raises StateError, OptionError.
    """
    if start is None:
        return None
    if is_state(start):
        start = [start]
    if isinstance(start, np.ndarray):
        width = game.field_count
        if start.dtype.kind not in "iu" or not start.size or start.shape[-1:] != (width,):
            raise StateError(
                f"start: an array of {start.dtype} {start.shape}; expected canonical states, "
                f"int64 (n, {width})"
            )
        roots = game.canonical_states(game.fields.values(start))
    elif isinstance(start, list | tuple):
        roots = np.array([game.parse(state) for state in start]).reshape(-1, game.field_count)
    else:
        from luckbase.cluster.answers.frames import Frame, state_columns

        roots = game.canonical_states(state_columns(game, Frame(start)))
    if not len(roots):
        raise StateError(f"start: has no state; write one as {game.fields.example}")
    return roots


def game_of(board: Board | str | os.PathLike[str], /, **options: object) -> Game:
    """Return the game of a board or board file. Raises BoardError, OptionError."""
    return load_game(board_of(board, **options))


def board_of(board: Board | str | os.PathLike[str], /, **options: object) -> Board:
    """Return a board, read from its file with options if necessary."""
    if not isinstance(board, Board):
        return read_board(path_of(board), as_words(options))
    if options:
        name = next(iter(options))
        raise OptionError(f"{name}: the board is there already; give options to load_board")
    return board


def start_of(game: Game, start: Any) -> Ints:
    """Return the canonical state (fields,) where plays begin: the given one or the game's start.
    Raises OptionError if there is none or more than one."""
    roots = roots_of(game, start)
    if roots is None:
        return first_state(game)
    if len(roots) != 1:
        raise OptionError(
            f"{option('start')}: {many(len(roots), 'state')} given; a play starts from one"
        )
    root: Ints = roots[0]
    return root


def starts_of(game: Game, start: Any) -> Starts:
    """Return the states where plays begin: the given one, or the game's starts with their
    probabilities. Raises as `start_of` does."""
    from luckbase.solver.policies.evaluate import Starts, starts_at

    pairs = game.starts() if roots_of(game, start) is None else []
    if len(pairs) < 2:
        return starts_at(start_of(game, start))
    return Starts(
        np.array([state for _, state in pairs]), np.array([chance for chance, _ in pairs])
    )


def has_full_table(game: Game, on_note: Callable[[str], None] = lambda text: None) -> bool:
    """True if the board has a full table; a board without one is searched from its start. Raises
    the game's OptionError for a board that has no start either."""
    if FullTable not in game.rules.capabilities:
        return False
    try:
        game.need(FullTable)
    except OptionError as why:
        if game.start() is None:
            raise
        on_note(f"{why}; searching all that its rules lead to")
        return False
    return True


def solves_full_table(game: Game, start: Any, options: Options) -> bool:
    """True if a solve fills the full table, False if it searches below some states."""
    return start is None and not options.searches and has_full_table(game, options.on_note)


def plan_board(board: Board, start: Any, options: SolveOptions) -> Planned:
    """Plan what `solve_board` does with the same arguments. Raises as `luckbase.plan` does."""
    opts, game = Options.read(options), load_game(board)
    if solves_full_table(game, start, opts):
        from luckbase.cluster.solve.plan import fitting, plan_table

        return plan_table(load_game(fitting(board, opts)), opts)
    from luckbase.cluster.search.plan import planned_search

    return planned_search(game, root_keys(game, roots_of(game, start)), opts.folder, opts.workers)


def solve_board(board: Board, start: Any, options: SolveOptions) -> Solved:
    """Solve the missing parts of a board's table: its full table, or a search.

    It is a search if the board has no full table, or if `start` or `options` require a search.
    Raises as `luckbase.solve` does.
    """
    opts, game = Options.read(options), load_game(board)
    if solves_full_table(game, start, opts):
        from luckbase.cluster.solve.full_table import solve
        from luckbase.cluster.solve.plan import fitting

        solved = solve(fitting(board, opts), **options)
        try:
            _measure_grids(board, opts.folder, opts.on_note)
        except TableError as error:  # the other grid's: this table is solved
            opts.on_note(f"the grids were not compared: {error}")
        return solved
    from luckbase.cluster.search.solve import solve_below

    return solve_below(board, roots_of(game, start), **options)


def _measure_grids(board: Board, results: Path, on_note: Callable[[str], None]) -> None:
    """Compare the tables of a board on its grids, if there are several in a folder."""
    from luckbase.cluster.answers.grids import measure_grids

    paths = find.tables_on_grids(board, results, {})
    if len(paths) > 1 and not is_uri(results):
        with ExitStack() as opened:
            tables = [opened.enter_context(find.open_table(path)) for path in paths]
            measure_grids(tables, on_note)


def open_by_name(board_or_path: Any, results: Path, options: Mapping[str, object]) -> Table:
    """Open the table in a folder or of a board. Raises MissingTableError, which names the command
    to run, and as `find_tables` does."""
    if isinstance(board_or_path, Board):
        return find.open_for(board_of(board_or_path, **options), results, {})
    return find.open_for(os.fspath(board_or_path), results, as_words(options))


def in_memory(board_or_path: Any, start: Any, options: Mapping[str, object]) -> Table:
    """Solve a board in memory: its full table, or all states below `start`. Return the table.
    Raises MemoryLimitError or SearchLimitError if that is too large."""
    from luckbase.cluster.answers.table import search_in_memory, tiers_in_memory

    game = plain(game_of(board_or_path, **options))
    if start is None and has_full_table(game):
        layout = game.need(FullTable)
        rows = sum(map(layout.rows, layout.tiers()))
        if rows > MAX_IN_MEMORY:
            raise MemoryLimitError(
                f"board {game.board.name}: {many(rows, 'state')} are too many to keep in memory; "
                f"solve its table, or take {layout.smaller}"
            )
        return tiers_in_memory(layout)
    roots = roots_of(game, start)
    return search_in_memory(game, game.needed_starts() if roots is None else roots)


def searched_for(
    name: str, results: Path, settings: dict[str, str], state: State, max_states: int
) -> Table | None:
    """Solve all states below a state in memory, for a board without a table; None if it has tables
    with other options. Raises SearchLimitError, with a command whose table would answer the
    state."""
    from luckbase.cluster.answers.table import search_in_memory

    game = game_of(name, **settings)
    if find.tables_of(game.board, results):
        return None
    root = state_of(game, state)
    compile_on()
    try:
        return search_in_memory(game, root, max_states)
    except SearchLimitError:
        more = f"allow more with {option('max_states')}, or give a state nearer the end"
        raise SearchLimitError(
            f"{name}: no table of this board, and more than {many(max_states, 'state')} follow "
            f"from this state; {table_that_answers(name, settings, results, state) or more}"
        ) from None


def table_that_answers(
    name: Board | str | os.PathLike[str], settings: Mapping[str, str], results: Path, state: State
) -> str:
    """Return a clause with the command, and its time, of a board's first grid whose table would
    have a state: a table as deep as a solve makes it here, or else the last grid's with more
    decisions. Return "" if there is none, or if `name` is not a board."""
    from luckbase.cluster.solve.plan import decided_layout, fitting, plan_table

    options, file, boards = Options(results=results), "", list[Board]()
    if isinstance(name, Board):
        file, boards = name.name, [name]
    elif path_of(name).is_file():
        file, boards = os.fspath(name), [*read_boards(path_of(name), settings)]
    solved = [fitting(board, options) for board in boards]
    for board in chain(solved, *map(_deeper, solved[-1:])):
        game = load_game(board)
        if not game.has(FullTable):
            continue
        try:
            at = state_of(game, state)
        except StateError:  # not on this grid
            continue
        decided = decided_layout(game)
        layout = game.need(FullTable) if decided is None else decided.layout
        if layout.why_outside(at) is None:
            words = {} if board.source is None else board.source.settings
            plan = plan_table(game, options)
            command = board_command(file, words, board.game, results)
            time = sentences.duration(plan.seconds)
            memory = f" with {sentences.size(plan.plan.shard_memory)} of memory"
            memory *= plan.plan.shard_memory > plan.budget
            return f"in about {time}{memory} this makes a table with it: {command}"
    return ""


def _deeper(board: Board) -> Iterator[Board]:
    """Yield a board from a file with more and more decisions, if it has any."""
    grid, source = type(board).grid, board.source
    if not grid or source is None:
        return
    depth, _ = options_of(board)[grid[-1]]
    with suppress(OptionError):
        for more in count(1 + (depth or 0)):
            yield read_board(Path(source.file), {**source.settings, grid[-1]: str(more)})


def following(
    board: Board | str | os.PathLike[str], start: Any, options: Mapping[str, object],
    max_states: int, results: Path,
) -> Following:  # fmt: skip
    """Follow a game, from a given state if there is one. Raises as `start_of` does."""
    from luckbase.cluster.play.advise import Following

    game = game_of(board, **options)
    root = None if start is None else start_of(game, start)
    instead = partial(table_that_answers, board, as_words(options), results)
    fixed = dict.fromkeys(type(game.board).grid) if isinstance(board, Board) else options
    tables = find.tables_on_grids(game.board, results, fixed)
    return Following(game, root, tables, max_states, instead)


# --- tables of a play ----------------------------------------------------------------------------


@contextmanager
def tables_by_name(game: Game, results: Path, *, optimal: bool = False) -> Iterator[Opener]:
    """Yield a function that opens the table named by an agent, once: a folder whose name contains a
    slash, or the table of a board file under `results`. Close the tables at the end.

    optimal: the agent of this name is a full table, solved in memory, if that is small.
    """
    from luckbase.cluster.answers.table import tiers_in_memory

    with ExitStack() as tables:

        @cache
        def opener(name: str) -> Lookup | None:
            path = place_of(name)
            if ("/" in name and path.is_dir()) or (path.suffix == ".toml" and path.is_file()):
                return tables.enter_context(
                    find.open_table(find.table_used(name, game.board, results))
                )
            layout = plain(game).get(FullTable) if optimal and name == OPTIMAL else None
            if layout is None or not layout.best_names or not _is_small(layout, MAX_OPTIMAL):
                return None
            return tables.enter_context(tiers_in_memory(layout))

        yield opener


def _is_small(layout: FullTable[Any], rows: int) -> bool:
    """True if a full table in memory has at most this many rows and exact payoffs: then its kernel
    is ten times as fast as a search."""
    return layout.payoff_type is np.float64 and sum(map(layout.rows, layout.tiers())) <= rows


@contextmanager
def playing(
    board: Board | str | os.PathLike[str], start: Any, results: str | os.PathLike[str]
) -> Iterator[tuple[Game, Starts, Opener]]:
    """Yield the game of a board, the starts of plays, and an opener of the agents' tables. Raises
    as `start_of` does."""
    game = game_of(board)
    with tables_by_name(game, place_of(results), optimal=True) as opener:
        yield game, starts_of(game, start), opener


def new_play(game: Game, start: Any, results: Path, max_states: int, how: PlayOptions) -> Play:
    """Begin a person's game, with payoffs from the fastest source. The play closes the tables that
    it opened. Raises as `table_for_play` and `cluster.play.game.begin` do."""
    from luckbase.cluster.play.game import begin

    named, on_note = how.get("named", "BOARD"), how.get("on_note", lambda text: None)
    with ExitStack() as tables:

        def priced(game: Game, root: Ints) -> Table:
            table = table_for_play(game, root, results, max_states, named, on_note)
            return tables.enter_context(table)

        by_name = tables.enter_context(tables_by_name(game, results))
        stored = None
        if start is None and len(game.starts()) > 1:
            bare = plain(game)
            starts = simplify(bare, starts_of(game, None).states)
            # Exclude terminal states: every table has their payoffs.
            stored = _stored(bare, starts[~expand(bare, starts).terminal], results)
            stored = stored and tables.enter_context(stored)
            max_states = max_states if stored else min(max_states, MAX_DRAWN)
        play = begin(game, start, priced, {"opener": by_name, **how}, stored)
        play.tables = tables.pop_all()
        return play


def table_for_play(
    game: Game, root: Ints, results: Path, max_states: int, file: str = "BOARD",
    on_note: Callable[[str], None] = lambda text: None,
) -> Table:  # fmt: skip
    """Return a table, of the `plain` game, that has the payoffs of all children of `root`
    (fields,).

    It is the first available of:

    1. a complete table of this board that contains the root;
    2. the game's tiers, solved in memory, if they have few rows and float64 payoffs;
    3. a search of all states below the root, up to a limit.

    file: the board with its options, for the command in error messages.
    on_note: called before long work.

    Raises SearchLimitError, before any long work if the game can predict it, if there is neither a
    table nor enough memory.
    """
    from luckbase.cluster.answers.table import tiers_in_memory

    bare = plain(game)
    root = simplify(bare, root.reshape(1, -1))[0]
    stored = _stored(bare, root[None], results)
    if stored is not None:
        return stored
    # If this board cannot have the layout, `need` raises the reason; a search would not end.
    layout = bare.need(FullTable) if FullTable in bare.rules.capabilities else None
    if layout and _is_small(layout, MAX_ROWS) and _inside(layout, root):
        seconds = sum(map(layout.tier_seconds, layout.tiers()))
        if seconds > A_WHILE:
            duration = sentences.duration(seconds)
            on_note(f"{bare.board.name}: solving it first, in memory: {duration}")
        return tiers_in_memory(layout)
    return search_below(bare, root, max_states, file)


def _stored(game: Game, roots: Ints, results: Path) -> Table | None:
    """Return a complete table on disk of this board that contains one of the roots (k, fields) or
    all its children."""
    try:
        path = find.table_of(game.board, results)
        if path is None:
            return None
        table = find.open_table(path, named_by_board=True)
    except TableError:  # `status` reports it
        return None
    if table.backup(roots)[1].any():
        return table
    table.close()
    return None


def _inside(layout: FullTable[Any], root: Ints) -> bool:
    """True if the full table contains the root or all its children."""
    if layout.why_outside(root) is None:
        return True
    children = expand(layout.game, root.reshape(1, -1)).children
    return all(layout.why_outside(child) is None for child in children)


def search_below(game: Game, root: Ints, max_states: int, file: str = "BOARD") -> Table:
    """Search all states below a state (fields,) in memory. Raises SearchLimitError."""
    from luckbase.cluster.answers.table import search_in_memory

    layout = game.get(FullTable)
    if layout is not None and _inside(layout, root):
        nearer = f"take {layout.smaller}".removesuffix(",")
    else:
        file, lower = f"{file} --from {game.say(root)}", states_to_copy(game)
        nearer = f"begin lower, as {lower}" if lower else "give a state nearer the end"
    try:
        return search_in_memory(game, root, max_states)
    except SearchLimitError as error:
        raise SearchLimitError(
            f"{error}; {nearer}, or solve a table first: luckbase solve {file}"
        ) from None
