"""A person's game on the page. The server keeps nothing of it.

Every request brings its seed and the moves so far, and the game is played again from its beginning
(`cluster.play.talk`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from luckbase.cluster import words
from luckbase.cluster.play.talk import (
    Offer,
    Play,
    Question,
    new_play,
    new_seed,
    read_action,
    read_end,
)
from luckbase.cluster.table.moves import Moves, address
from luckbase.cluster.table.part import worth
from luckbase.cluster.table.stored import StoredTable
from luckbase.jobs.web import about
from luckbase.jobs.web.asked import state_in, whole
from luckbase.jobs.web.pictures import drawing
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.game.capabilities import agents_of, as_seen_by, simplify
from luckbase.solver.policy.evaluate import OPTIMAL, RANDOM
from luckbase.solver.sentences import nearest, shorten

MOST_MOVES = 2_000
MOST_BYTES = 200_000
KEYS = ("seed", "seat", "against", "state", "moves", "hints")


@dataclass(frozen=True)
class Game:
    """A game as a request says it."""

    seed: int
    seat: int = 1
    against: str | None = None
    state: Mapping[str, str] | None = None
    moves: list[str] = field(default_factory=list)
    hints: bool = False


def read_game(body: bytes, players: int) -> Game:
    """The game in a request's body. Raises OptionError, StateError."""
    try:
        said = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise OptionError('body: is not JSON; write {"seed": 1, "moves": []}') from None
    if not isinstance(said, dict):
        raise OptionError('body: is no object; write {"seed": 1, "moves": []}')
    for name in said:
        if name not in KEYS:
            raise OptionError(f"unknown key '{shorten(str(name), 30)}'; {nearest(name, KEYS)}")
    moves, against, state = said.get("moves") or [], said.get("against"), said.get("state")
    if not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
        raise OptionError('moves: is no list of names; write "moves": ["roll", "hold"]')
    if len(moves) > MOST_MOVES:
        raise OptionError(f"moves: are {len(moves):,}; the most is {MOST_MOVES:,}")
    if isinstance(against, list) and all(isinstance(each, str) for each in against):
        against = ",".join(against) or None
    if not isinstance(against, str | None):
        raise OptionError('against: is no name; write "against": "optimal"')
    if not isinstance(state, str | dict | None):
        raise OptionError("state: is no address of a state, as scores=0,500,0&earned=1,0,0")
    seed = said.get("seed")
    return Game(
        new_seed() if seed is None else whole("seed", seed, 0, 2**32 - 1),
        whole("seat", said.get("seat") or 1, 1, players),
        against or None,
        state_in(state) if state else None,
        moves,
        said.get("hints") is True,
    )


def played(table: StoredTable, game: Game) -> dict[str, Any]:
    """The game as far as its moves go: what happened, what is asked next, and what each decision
    cost. Raises OptionError for a move that there is not."""
    how: dict[str, Any] = {"seat": game.seat, "seed": game.seed}
    if game.against is not None:
        _check_opponents(table, game.against)
        how["against"] = game.against
    play = new_play(table, game.state or _beginning(table), **how)
    _check_priced(table, play)
    said, asks = _replay(play, game.moves)
    ask = None if not asks else {
        "actions": play.names,
        "hints": [_offer(each) for each in play.offers()] if game.hints else None,
    }  # fmt: skip
    state = as_seen_by(play.game, play.person, play.state)
    own = words.typed(play.game.describe(state))
    bare = simplify(table.game, play.state.reshape(1, -1))
    value, known = worth(table.game, table.look, bare, table.tolerance)
    here = table.game.describe(bare[0])
    return {
        "seed": game.seed, "seat": game.seat, "seats": [seat.name for seat in play.seats],
        "said": said, "state": play.shown, "text": words.fields(play.shown),
        "query": address(here), "drawing": drawing(play.game, own),
        "value": value[0].tolist() if known[0] else None, "ask": ask, "over": play.over,
        "result": said[-1] if play.over else None,
        "decisions": [
            {"text": words.fields(each.state), "query": address(each.state),
             "action": each.action, "best": each.best, "cost": each.cost}
            for each in play.decisions
        ],
        "cost": sum(each.cost for each in play.decisions),
    }  # fmt: skip


def _check_opponents(table: StoredTable, against: str) -> None:
    """Raises OptionError for an agent of the game's that is not offered on this board."""
    for name in map(str.strip, against.split(",")):
        if name in agents_of(table.game) and not about.plays(table.game, name):
            right = nearest(name, [OPTIMAL, RANDOM, *about.opponents(table.game)])
            raise OptionError(f"against: '{name}' can not play on this board here; {right}")


def _check_priced(table: StoredTable, play: Play) -> None:
    """Raises MissingTableError where a game begins at a state whose moves the table can not
    price."""
    states = np.concatenate([play.state.reshape(1, -1), play.edges.children])
    known = worth(table.game, table.look, simplify(table.game, states), table.tolerance)[1]
    if not known[1:].all():
        raise MissingTableError(f"state: {words.fields(play.shown)} {UNPRICED}")


UNPRICED = "can not be played from: the table does not have the payoffs of what can happen there"


def why_not(there: Moves) -> str | None:
    """Why a state can not be played from; None if it can."""
    if there.over:
        return "the game is over there"
    outcomes = [*there.outcomes, *(each for move in there.moves for each in move.outcomes)]
    if there.answer.source == "table" and all(each.value is not None for each in outcomes):
        return None
    return f"{words.fields(there.answer.state)} {UNPRICED}"


def _beginning(table: StoredTable) -> Mapping[str, str] | None:
    """Where a game begins that has no one start: where the page begins."""
    return about.start_of(table) if table.game.start() is None else None


def _replay(play: Play, moves: list[str]) -> tuple[list[str], bool]:
    """What is said while the moves are played, and whether another one is asked for."""
    said: list[str] = []
    talk, given, at = play.talk(), None, 0
    read = read_end if play.game.simultaneous else read_action
    while True:
        try:
            event = talk.send(given)
        except StopIteration:
            break
        given = None
        if not isinstance(event, Question):
            said.append(event)
            continue
        if at == len(moves):
            return said, True
        names = play.names
        if read(names, moves[at]) is None:
            raise OptionError(
                f"moves: number {at + 1}, '{shorten(moves[at], 30)}', is none of {', '.join(names)}"
            )
        given, at = moves[at], at + 1
    if at < len(moves):
        raise OptionError(f"moves: {len(moves)} are given, and the game was over after {at}")
    return said, False


def _offer(each: Offer) -> dict[str, Any]:
    said = {"action": each.action, "value": each.value, "cost": each.cost, "best": not each.cost}
    return said if each.chance is None else said | {"chance": each.chance}
