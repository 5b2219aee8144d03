"""Goofspiel's agents: some follow a rule, others play optimally for one objective.

* `match` bids the card equal to the upcard; if it is gone, the lowest card above it; if there is
  none, the lowest card. It needs the cards, so the board must keep them (`keep_cards`).
* `high` and `low` bid their highest and their lowest card.
* `one-then-points` and `one-then-win` bid the lowest card if the highest upcard comes first, then
  play optimally: the published question of the value of "always bid 1 against the 9".
* `points-optimal` and `win-optimal` play optimally for the points ahead and for the chance to
  finish ahead, regardless of the board's objective. They solve the game of their objective with as
  many cards in memory, once in each process, and a matrix game for every state in which they bid.
  Points need no lead: on a board with objective = "win" it is left out. Winning needs a lead, so
  `win-optimal` plays only on such a board.

Optimal strategies need not be unique, and their payoff against an opponent who is not optimal, or
for another objective, depends on the choice. These agents play the strategies that
`matrix_game.solve` finds for the row player. They are the same for the same pattern of hands, deck,
upcard and lead, in either seat (player 2 plays as player 1 of the swapped state), whether or not
the board keeps cards.

Sources: docs/numbers.md#ross-1971 (bidding the upcard is optimal against an opponent who bids at
random), docs/numbers.md#rhoads-and-bartholdi-2012 (the 1 against the 9).
"""

from __future__ import annotations

import threading
from functools import lru_cache, partial

import numpy as np

from luckbase.solver.dense import InMemory
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Agents
from luckbase.solver.game.game import Agent, Game, under
from luckbase.solver.games.goofspiel.full_table import Layers, layers_of
from luckbase.solver.games.goofspiel.rules import (
    DECK,
    UPCARD,
    as_seen_by,
    choice_names,
    make_all_canonical,
    options_of,
    simplify,
)
from luckbase.solver.policies.agents import Policy
from luckbase.solver.search.bellman import evaluate, strategies_of
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import setting


def match(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Bid the card equal to the upcard, otherwise the next higher, otherwise the lowest."""
    high_enough = [k for k, action in enumerate(actions) if action + 1 >= state[UPCARD]]
    return high_enough[0] if high_enough else 0


def high(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Bid the highest card."""
    return len(actions) - 1


def low(game: Game, player: int, state: Ints, actions: list[int]) -> int:
    """Bid the lowest card."""
    return 0


def strategies_at(table: InMemory[int], states: Ints) -> list[Floats]:
    """Return player 1's optimal lotteries over their bids, ascending, at canonical states (n,
    fields) with the upcard turned."""
    edges = expand(table.game, states)
    return strategies_of(evaluate(edges, table.lookup(edges.children)[0]), 0)


def _decide(
    objective: str, game: Game, player: int, states: Ints, actions: list[Ints]
) -> list[Floats]:
    """`Policy.decide` for a player who is optimal for `objective`."""
    options = options_of(game)
    table = solved(options.cards, objective)
    own_view = as_seen_by(options, player, states)
    seen = np.ascontiguousarray(own_view[:, : table.game.field_count])  # points: no lead
    make_all_canonical(table.game.numbers.ints, seen)
    different, which = np.unique(seen, axis=0, return_inverse=True)
    strategies = strategies_at(table, different)
    return [strategies[x] for x in which.reshape(-1)]


def _one_then(
    objective: str, game: Game, player: int, states: Ints, actions: list[Ints]
) -> list[Floats]:
    """Decide as `_decide` does, but bid the lowest card if the highest upcard comes first."""
    cards = options_of(game).cards
    strategies = _decide(objective, game, player, states, actions)
    first = states[:, DECK] == (1 << cards) - 1
    for x in np.flatnonzero(first & (states[:, UPCARD] == cards)):
        strategies[x] = np.eye(len(actions[x]))[0]
    return strategies


OBJECTIVES = ("points", "win")
SOLVES = {name: o for o in OBJECTIVES for name in (f"{o}-optimal", f"one-then-{o}")}
"""The objective for which each of these agents solves the game in memory."""


def check(game: Game, name: str) -> None:
    """Raise OptionError if a board lacks fields that an agent needs, or is too large to solve."""
    options = options_of(game)
    if name == "match" and not options.keep_cards:
        raise OptionError(
            "agent 'match' needs the cards in their hand; play it with "
            + setting("keep_cards", "true")
        )
    if SOLVES.get(name) == "win" and options.objective != "win":
        raise OptionError(
            "agent 'win-optimal' needs the lead, which a board for points leaves out; play it "
            f"with {setting('objective', 'win')}"
        )
    if name in SOLVES:
        _layers(options.cards, SOLVES[name])


def seconds(game: Game, name: str) -> float:
    """Return roughly how long an agent that passes `check` works before their first bid."""
    if name not in SOLVES:
        return 0.0
    return SECONDS_A_GAME * _layers(options_of(game).cards, SOLVES[name])[1]


AGENTS: dict[str, Agent | Policy] = {
    "match": match,
    "high": high,
    "low": low,
    **{f"{objective}-optimal": Policy(partial(_decide, objective)) for objective in OBJECTIVES},
    **{f"one-then-{objective}": Policy(partial(_one_then, objective)) for objective in OBJECTIVES},
}


def own(game: Game) -> Agents:
    """Return the agents. They see the cards of the hands, tables only their comparisons; each
    player's own hand is `mine`."""
    return Agents(
        AGENTS, check=check, seconds=seconds, plain=partial(under, game, keep_cards=False),
        detailed=partial(under, game, keep_cards=True), simplify=partial(simplify, game),
        as_seen_by=partial(as_seen_by, options_of(game)), choice_names=choice_names,
    )  # fmt: skip


MAX_GAMES = 400_000_000
"""The most matrix games to solve in memory: half a minute of work and half a gigabyte."""
SECONDS_A_GAME = 7.5e-8
_LOCK = threading.Lock()


def solved(cards: int, objective: str) -> InMemory[int]:
    """Return the game with this many cards for "points" or "win", solved once in each process.
    Raises OptionError if it is too large."""
    with _LOCK:
        return _solved(cards, objective)


@lru_cache(maxsize=4)
def _solved(cards: int, objective: str) -> InMemory[int]:
    return InMemory(_layers(cards, objective)[0])


def _layers(cards: int, objective: str) -> tuple[Layers, int]:
    """Return the layers and their number of matrix games. Raises OptionError for too many."""
    layers = layers_of(cards, objective)
    games = sum(layers.layer(tier).games for tier in layers.tiers())
    if games > MAX_GAMES:
        raise OptionError(
            f"cards: {cards} is too many to solve in memory for {objective}: {games:.1e} matrix "
            f"games, and the limit is {MAX_GAMES:.0e}; expected at most 12 for points, 10 for win"
        )
    return layers, games
