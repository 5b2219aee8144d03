"""Play and training on a page. The server stores no state.

**A game**: every request contains a random seed and all moves so far, and the game is replayed from
its beginning (`cluster.play.game`).

**Training**: a decision that comes up in play, of a given difficulty
(`cluster.answers.examples`), with the cost of every action and the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.cluster.answers.examples import DIFFICULTIES, decisions, difficulty_of, margins
from luckbase.cluster.answers.moves import address
from luckbase.cluster.play.game import (
    Decision,
    Offer,
    Play,
    PlayOptions,
    new_seed,
    play_on,
)
from luckbase.jobs.web.pool import opponents
from luckbase.jobs.web.states import StateView, state_answer
from luckbase.solver import sentences
from luckbase.solver.errors import LuckbaseError, MissingTableError, OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Agents, agents_of, scene_of, simplify
from luckbase.solver.game.fields import typed
from luckbase.solver.result import Flat, PythonOnly, Result
from luckbase.solver.scene import Scene
from luckbase.solver.sentences import nearest

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table
    from luckbase.jobs.web.http import ViewRequest

MAX_MOVES = 2_000
MAX_SEED = 2**32 - 1


@dataclass(frozen=True)
class GameView(Result):
    """A game so far."""

    seed: int
    seat: int
    seats: list[str]
    log: list[str]
    lines: int  # number of lines in the log; a page may show fewer
    state: dict[str, Any]
    query: str
    value: list[float] | None
    actions: list[str] | None
    """Your next choices; null if the game is over or an earlier line is shown."""
    hints: list[Offer] | None  # the payoff of each choice, if requested
    over: bool
    decisions: list[Decision]
    scene: PythonOnly[Scene]


def game_view(request: ViewRequest) -> GameView:
    """Replay a game. Return the log, the next question, and the cost of each decision.

    seed: of the dice; a new one by default. seat: your player number, from 1; by default the first
    player to decide. against: one agent, or one for each other player, separated by commas. move:
    your answers so far. hints: add the payoff of each action. at: show the game after so many lines
    of its log. Fields of a state are the beginning.

    Raises OptionError for an impossible move.
    """
    table, query = request.table, request.query
    game, moves = table.game, query.get("move", [])
    if len(moves) > MAX_MOVES:
        raise OptionError(f"move: {len(moves):,} are too many; expected at most {MAX_MOVES:,}")
    hints = query.integer("hints", 0, 1, 0)
    how = PlayOptions(seed=query.integer("seed", 0, MAX_SEED, new_seed()))
    if "seat" in query:
        how["seat"] = query.integer("seat", 1, game.players, 1)
    if "against" in query:
        _check_opponents(table, query["against"])
        how["against"] = query["against"]
    first = request.opened.facts.start
    try:
        play = play_on(table, query.state or None, **how)
    except LuckbaseError:  # it has no start, or the table none of them
        if query.state or first is None:
            raise
        play = play_on(table, first, **how)
    _check_priced(table, play)
    log, asks = play.replay(moves)
    shown = query.integer("at", 0, len(log), len(log))
    last, lines = shown == len(log), [line for line, _ in log[:shown]]
    state = play.state if last else log[shown - 1][1] if shown else play.root
    asks = asks and last
    seen = play.game.describe(play.game.own(Agents).as_seen_by(play.person, state))
    bare = simplify(game, state.reshape(1, -1))
    value, priced = table.backup(bare)
    return GameView(
        seed=how["seed"], seat=play.person + 1, seats=[seat.name for seat in play.seats],
        log=lines, lines=len(log), state=seen, query=address(game.describe(bare[0])),
        value=value[0].tolist() if priced[0] else None, actions=play.names if asks else None,
        hints=play.offers() if asks and hints else None,
        over=play.over and last, decisions=play.decisions, scene=scene_of(play.game, typed(seen)),
    )  # fmt: skip


def _check_opponents(table: Table, against: str) -> None:
    """Raise OptionError for an agent of the game that is not available on this board."""
    for name in map(str.strip, against.split(",")):
        offered = opponents(table.game)
        if name in agents_of(table.game) and name not in offered:
            hint = nearest(name, offered)
            raise OptionError(f"against: '{name}' cannot play on this board here; {hint}")


def _check_priced(table: Table, play: Play) -> None:
    """Raise MissingTableError if the table lacks payoffs of moves at the game's first state."""
    states = np.concatenate([play.state.reshape(1, -1), play.edges.children])
    priced = table.backup(simplify(table.game, states))[1]
    if not priced[1:].all():
        raise MissingTableError(
            f"state: {sentences.fields(play.shown)} cannot be played from: the table does not have "
            "the payoffs of what can happen there"
        )


# --- a decision to train with --------------------------------------------------------------------


@dataclass(frozen=True)
class TrainView(Result):
    """A decision."""

    state: Flat[StateView]
    seat: int
    choices: list[Offer]
    """The possible choices in the game's order, with their costs to the player `seat` (from 1)."""
    margin: float  # cost of the cheapest mistake
    difficulty: str
    """Of this decision: easy if a mistake costs more than 5 points, medium 1 to 5, hard less."""
    seed: int


def train_view(request: ViewRequest) -> TrainView:
    """Return a decision of a difficulty, the same for the same seed; or the decision at a given
    state. Raises MissingTableError if there is none."""
    table, query, game = request.table, request.query, request.table.game
    seed = query.integer("seed", 0, MAX_SEED, new_seed())
    difficulty = query.get("difficulty", "any")
    if difficulty not in DIFFICULTIES:
        hint = nearest(difficulty, DIFFICULTIES)
        raise OptionError(f"difficulty: '{difficulty[:30]}' is unknown; {hint}")
    if query.state:
        state = game.parse(query.state)
        view = _decision(table, state, float(margins(table, state.reshape(1, -1))[0]), seed)
        if view is None:
            raise MissingTableError(f"{sentences.fields(query.state)}: nobody has a choice there")
        return view
    starts = [state for _, state in game.starts()]
    examples = [game.parse(each.state) for each in request.opened.facts.examples]
    beginnings = [np.array(each) for each in (starts, examples) if each]
    found = (
        _decision(table, *each, seed) for each in decisions(table, beginnings, difficulty, seed)
    )
    return next(view for view in found if view is not None)


def _decision(table: Table, state: Ints, margin: float, seed: int) -> TrainView | None:
    """Return the decision at a state; None if there is no choice or the result of an action is
    unknown."""
    if np.isnan(margin):
        return None
    view = state_answer(table, typed(table.game.describe(state)))
    answer = view.moves.answer
    if not view.playable or len(answer.actions) < 2:
        return None
    seat = answer.to_act or 1
    choices = play_on(table, answer.state, seat=seat).offers()
    return TrainView(view, seat, choices, margin, difficulty_of(table.game, margin), seed)
