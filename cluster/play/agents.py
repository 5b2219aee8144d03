"""Agents as people name them: one for all players or one for each, and what decides for them; and
the table that prices a play.

A name is one of the game's own, ``optimal``, ``best-response``, ``random``, or, where a way to open
tables is given, a table's directory or board file. In Python an agent may also be a function
(`solver.game.game.Agent`), a `Policy`, or an open table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.cluster import words
from luckbase.cluster.table.find import table_of, table_used
from luckbase.cluster.table.ledger import SEARCH, TIERS
from luckbase.cluster.table.parts import lookup_or_backup
from luckbase.cluster.table.table import (
    StoredTable,
    Table,
    open_table,
    search_in_memory,
    tiers_in_memory,
)
from luckbase.cluster.words import many
from luckbase.solver.board.model import Board, rules_identity
from luckbase.solver.errors import OptionError, SearchLimitError, TableError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    Layout,
    agents_of,
    check_agent,
    hints,
    plain,
    simplify,
)
from luckbase.solver.policy.evaluate import (
    BEST_RESPONSE,
    OPTIMAL,
    RANDOM,
    Policy,
    asking,
    named_agent,
    random_player,
)
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import option, shorten

if TYPE_CHECKING:
    from luckbase.solver.game.game import Agent, Game
    from luckbase.solver.policy.chain import Decider


AgentLike = Any
"""An agent as a person gives it: a name, an `Agent`, a `Policy`, or an open table."""
Opener = Callable[[str], Table | None]
"""opener(name) -> the table in that directory, open; None where it is none."""


def no_tables(name: str) -> Table | None:
    """The opener that knows no tables."""
    return None


@contextmanager
def tables_by_name(board: Board, results: Path) -> Iterator[Opener]:
    """Opens the table that an agent's name means on a board, once: a directory whose name has a
    slash, or a board file, whose table under `results` it is; closes them at the end."""
    with ExitStack() as tables:

        @cache
        def opener(name: str) -> Table | None:
            path = Path(name)
            if ("/" in name and path.is_dir()) or (path.suffix == ".toml" and path.is_file()):
                return tables.enter_context(open_table(table_used(name, board, results)))
            return None

        yield opener


def split(agents: str | Sequence[AgentLike], argument: str = "agents") -> list[AgentLike]:
    """The agents one by one, of ``A,B``; raises OptionError for an empty name."""
    if not isinstance(agents, str):
        return list(agents) if isinstance(agents, Sequence) else [agents]
    names = [name.strip() for name in agents.split(",")]
    if not all(names):
        raise OptionError(
            f"{option(argument)}: '{shorten(agents, 80)}' has an empty name; write A, or one a "
            "player: A,B"
        )
    return names


def name_of(agent: AgentLike) -> str:
    """What an agent is called."""
    if isinstance(agent, str):
        return agent
    origin = getattr(agent, "origin", None)
    return str(origin) if origin is not None else getattr(agent, "__name__", type(agent).__name__)


def _one_each(
    agents: str | Sequence[AgentLike], count: int, argument: str, who: str
) -> list[AgentLike]:
    """So many agents, of one for all or one for each. Raises OptionError for another number."""
    each = split(agents, argument)
    if len(each) not in (1, count):
        raise OptionError(
            f"{option(argument)}: {many(len(each), 'name')}, and {who}; give one for all or one "
            "for each"
        )
    return each * count if len(each) == 1 else each


def for_players(
    game: Game, agents: str | Sequence[AgentLike], opener: Opener = no_tables
) -> tuple[list[str], list[str | Agent | Policy]]:
    """The names, one a player, and what `solver.policy.evaluate` takes for them."""
    who = f"{game.board.game} has {many(game.players, 'player')}"
    each = _one_each(agents, game.players, "agents", who)
    return list(map(name_of, each)), [_player(game, agent, opener, "agents") for agent in each]


def opponents(
    game: Game, against: str | Sequence[AgentLike] | None, opener: Opener = no_tables
) -> list[tuple[str, Decider | None]]:
    """The opponents of one player, one for all or one for each: their names, and what decides for
    them, None for `optimal`. Raises OptionError for one that there is not, or not on this board."""
    argument, others = "against", game.players - 1
    if not others and against is not None:
        raise OptionError(f"{option(argument)}: {game.board.game} has one player; leave it out")
    agents = OPTIMAL if against is None else against
    each = _one_each(agents, others, argument, f"you have {many(others, 'opponent')}")
    players: list[tuple[str, Decider | None]] = []
    for agent in each:
        if agent == BEST_RESPONSE:
            raise OptionError(
                f"{option(argument)}: {agent} has to know beforehand how you will play; {OPTIMAL} "
                "does not"
            )
        plays = _player(game, agent, opener, argument)
        if isinstance(agent, str) and agent in agents_of(game):
            check_agent(game, agent)
        decide: Decider | None = None
        if isinstance(plays, Policy):
            decide = plays.decide
        elif plays != OPTIMAL:
            decide = asking(random_player if isinstance(plays, str) else plays)
        players.append((name_of(agent), decide))
    return players


def _player(game: Game, agent: AgentLike, opener: Opener, argument: str) -> str | Agent | Policy:
    """An agent: a table's, the game's own, or the name of one that needs none."""
    if isinstance(agent, Policy):
        return agent
    table: Any = opener(agent) if isinstance(agent, str) else agent
    if hasattr(table, "agent"):
        if table.identity not in map(rules_identity, (game, plain(game))):
            raise OptionError(
                f"{option(argument)}: {name_of(agent)} is a table of {table.origin}, not of this "
                "board with these options"
            )
        policy: Policy = table.agent()
        return policy
    if isinstance(agent, str):
        named = agent in (OPTIMAL, BEST_RESPONSE, RANDOM)
        return agent if named else named_agent(game, agent, argument)
    if not callable(agent):
        raise OptionError(
            f"{option(argument)}: {agent!r} is no agent; give a name, a function or a table"
        )
    function: Agent = agent
    return function


# --- the table that prices a play ----------------------------------------------------------------

MAX_ROWS = 20_000_000
"""Rows of all tiers that are solved in memory: seconds, and 8 bytes each."""
ROUGHLY = 4
"""How many times the states that a search meets a game may guess beforehand."""
A_WHILE = 2.0
"""Predicted seconds of a solve in memory that a person is told of."""


def soonest(
    game: Game, root: Ints, results: Path, max_states: int, file: str = "BOARD",
    on_note: Callable[[str], None] = lambda text: None,
) -> Table:  # fmt: skip
    """A table, of the `plain` game, that prices what can happen from `root` (fields,) on: all of
    its children are in it. The first that can be had of

    1. a complete table of this very board that holds the root;
    2. the game's tiers, solved here and kept in memory, where they are few rows of float64;
    3. a search of all that lies below the root, up to a limit.

    Raises SearchLimitError where neither a table nor the memory has room, before any long work
    where the game knows that, and names the command that makes a table of the board, `file` and
    options. on_note: told where it takes a while.
    """
    bare = plain(game)
    root = simplify(bare, root.reshape(1, -1))[0]
    stored = _stored(bare, root, results)
    if stored is not None:
        return stored
    # A layout that this board can not have says why; without it the search would end in a cycle.
    layout = bare.need(Layout) if Layout in bare.rules.capabilities else None
    few = layout is not None and sum(map(layout.rows, layout.tiers())) <= MAX_ROWS
    if layout and few and layout.payoff_type is np.float64 and _inside(layout, root):
        seconds = sum(map(layout.tier_seconds, layout.tiers()))
        if seconds > A_WHILE:
            said = words.duration(seconds)
            on_note(f"{bare.board.name}: solving it first, in memory: {said}")
        return tiers_in_memory(layout)
    return searched(bare, root, max_states, file)


def _stored(game: Game, root: Ints, results: Path) -> StoredTable | None:
    """A complete table on disk of exactly this board, with all that lies below the root."""
    try:
        path = table_of(game.board, results)
        if path is None:
            return None
        table = open_table(path, named_by_board=True)
    except TableError:  # `status` says so
        return None
    for part in table.parts:
        known = lookup_or_backup(game, part.lookup, root.reshape(1, -1), game.tie_tolerance)[1]
        if part.name in (TIERS, SEARCH) and known[0]:  # others end at another table
            return table
    table.close()
    return None


def _inside(layout: Layout[Any], root: Ints) -> bool:
    """Whether the full table holds the root, or else all that it leads to."""
    if layout.why_outside(root) is None:
        return True
    children = expand(layout.game, root.reshape(1, -1)).children
    return all(layout.why_outside(child) is None for child in children)


def searched(game: Game, root: Ints, max_states: int, file: str = "BOARD") -> Table:
    """All that lies below a state (fields,), in memory. Raises SearchLimitError."""
    layout = game.get(Layout)
    tiered = layout if layout is not None and _inside(layout, root) else None
    below = "" if tiered else f" --from {words.fields(game.describe(root))}"
    table = f"solve a table first: luckbase solve {file}{below}"
    below_root = hints(game).states_below
    guess = 0.0 if below_root is None else below_root(root)
    if guess > ROUGHLY * max_states:
        smaller = f"; take {tiered.smaller} or " if tiered else "; give a state nearer the end, or "
        raise SearchLimitError(
            f"board {game.board.name}: some {words.count(guess)} states are too many to solve "
            f"before a play{smaller}{table}"
        )
    try:
        return search_in_memory(game, root, max_states)
    except SearchLimitError as error:
        raise SearchLimitError(f"{error}; give a state nearer the end, or {table}") from None
