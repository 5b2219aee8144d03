"""To play and to train on the page. The server keeps nothing of it.

**A person's game**: every request brings its seed and the moves so far, and the game is played
again from its beginning (`cluster.play.game`).

**A decision to train with** (`train_view`): a state of a table, drawn among those of a difficulty,
with what every action costs and why. States are drawn evenly from the rows of the table; where
nobody decides in any, as where a table has its rows before a card is turned, chance moves on once.
Of those in which a player has a choice the first that was drawn is taken whose margin is of the
difficulty: what the cheapest mistake costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BeforeValidator, Field

from luckbase.cluster.play.game import (
    Decision,
    Offer,
    Play,
    Question,
    new_seed,
    play_on,
    read_answer,
)
from luckbase.cluster.table.moves import address
from luckbase.jobs.web import tables
from luckbase.jobs.web.http import ApiRequest, TableParams, Truth, whole
from luckbase.jobs.web.pictures import svg
from luckbase.jobs.web.states import StateView, state_answer, step
from luckbase.solver import sentences
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import View, agents_of, scene_of, simplify
from luckbase.solver.game.fields import typed
from luckbase.solver.game.rules import CHANCE, DECISION, SIMULTANEOUS
from luckbase.solver.result import Flat, Number, Result
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import many, nearest, shorten

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable, Table

MAX_MOVES = 2_000
Difficulty = Literal["any", "easy", "medium", "hard"]
BOUNDS = {"any": (0.0, np.inf), "easy": (5.0, np.inf), "medium": (1.0, 5.0), "hard": (0.0, 1.0)}
"""Above which margin and up to which one a decision is of a difficulty, in `step`s."""
DRAWN, ROUNDS = 40, 12
"""Rows that are drawn at a time, and how often at most."""


def _seed(text: str) -> int:
    return whole("seed", text, 0, 2**32 - 1)


class GameParams(TableParams, extra="allow"):
    """A game so far; the fields of a state say where it begins."""

    lists = ("move",)

    seed: Annotated[int, BeforeValidator(_seed)] = Field(default_factory=new_seed)
    """What the dice are drawn from; a new seed if not given."""
    seat: str = ""
    """Which player you are, from 1; the first to decide if not given."""
    against: str = ""
    """One agent, or one for each other player, separated by commas."""
    move: list[str] = Field(default_factory=list)
    """Your answers so far."""
    hints: Truth = False
    """Say what each action is worth."""


@dataclass(frozen=True)
class Choice(Result):
    """What you are asked."""

    actions: list[str]
    hints: list[Offer] | None


@dataclass(frozen=True)
class GameView(Result):
    """A game so far: what happened, where it stands, what is asked next (null: it is over)."""

    seed: int
    seat: int
    seats: list[str]
    said: list[str]
    state: dict[str, Any]
    text: str
    query: str
    drawing: str
    value: list[float] | None
    ask: Choice | None
    over: bool
    result: str | None
    decisions: list[Decision]
    cost: Number


def game_view(table: StoredTable, request: ApiRequest[GameParams]) -> GameView:
    """Return the game as far as its moves go: the log, the next question, and the cost of each
    decision. Raises OptionError for a move that is not possible."""
    game = request.params
    if len(game.move) > MAX_MOVES:
        raise OptionError(f"move: {len(game.move):,} are too many; expected at most {MAX_MOVES:,}")
    seat = whole("seat", game.seat, 1, table.game.players) if game.seat else None
    how: dict[str, Any] = {"seat": seat, "seed": game.seed}
    if game.against:
        _check_opponents(table, game.against)
        how["against"] = game.against
    begins = table.game.start() is not None or tables.known_starts(table)
    beginning = None if begins else next(tables.beginnings(table), None)
    play = play_on(table, game.state or beginning, **how)
    _check_priced(table, play)
    lines, asks = _replay(play, game.move)
    hints = play.offers() if asks and game.hints else None
    state = play.game.own(View).as_seen_by(play.person, play.state)
    seen = typed(play.game.describe(state))
    bare = simplify(table.game, play.state.reshape(1, -1))
    value, priced = table.lookup_or_backup(bare)
    return GameView(
        seed=game.seed, seat=play.person + 1, seats=[seat.name for seat in play.seats],
        said=lines, state=play.shown, text=sentences.fields(play.shown),
        query=address(table.game.describe(bare[0])), drawing=svg(scene_of(play.game, seen)),
        value=value[0].tolist() if priced[0] else None,
        ask=Choice(play.names, hints) if asks else None, over=play.over,
        result=lines[-1] if play.over else None, decisions=play.decisions,
        cost=sum(each.cost for each in play.decisions),
    )  # fmt: skip


def _check_opponents(table: StoredTable, against: str) -> None:
    """Raises OptionError for an agent of the game's that is not offered on this board."""
    for name in map(str.strip, against.split(",")):
        offered = tables.opponents(table.game)
        if name in agents_of(table.game) and name not in offered:
            hint = nearest(name, offered)
            raise OptionError(f"against: '{name}' cannot play on this board here; {hint}")


def _check_priced(table: StoredTable, play: Play) -> None:
    """Raises MissingTableError where a game begins at a state whose moves the table can not
    price."""
    states = np.concatenate([play.state.reshape(1, -1), play.edges.children])
    priced = table.lookup_or_backup(simplify(table.game, states))[1]
    if not priced[1:].all():
        raise MissingTableError(f"state: {sentences.fields(play.shown)} {tables.UNPRICED}")


def _replay(play: Play, moves: list[str]) -> tuple[list[str], bool]:
    """What is said while the moves are played, and whether another one is asked for."""
    lines: list[str] = []
    talk, answer, at = play.talk(), None, 0
    while True:
        try:
            event = talk.send(answer)
        except StopIteration:
            break
        answer = None
        if not isinstance(event, Question):
            lines.append(event)
            continue
        if at == len(moves):
            return lines, True
        names = play.names
        if read_answer(names, moves[at], at_once=play.game.simultaneous) is None:
            raise OptionError(
                f"move: number {at + 1} is '{shorten(moves[at], 30)}'; expected {', '.join(names)}"
            )
        answer, at = moves[at], at + 1
    if at < len(moves):
        raise OptionError(f"move: {len(moves)} are given; the game was over after {at}")
    return lines, False


# --- a decision to train with --------------------------------------------------------------------


@dataclass(frozen=True)
class TrainView(Result):
    """A decision. choices: what can be chosen, in the game's order, with what each costs who
    decides: player `seat`, from 1. margin: what the cheapest mistake costs. difficulty: of this
    decision."""

    state: Flat[StateView]
    seat: int
    choices: list[Offer]
    margin: float
    difficulty: Literal["easy", "medium", "hard"]
    seed: int


def _difficulty(text: str) -> str:
    allowed = get_args(Difficulty)
    if text not in allowed:
        raise OptionError(f"difficulty: '{text[:30]}' is unknown; {nearest(text, allowed)}")
    return text


class TrainParams(TableParams):
    """Of a decision to train with."""

    difficulty: Annotated[Difficulty, BeforeValidator(_difficulty)] = "any"
    """easy: a mistake costs more than 5 pp; medium: 1 to 5; hard: less; any."""
    seed: Annotated[int, BeforeValidator(_seed)] = 0
    """Of the draw: the same seed gives the same state."""


def train_view(table: StoredTable, request: ApiRequest[TrainParams]) -> TrainView:
    """A decision of a difficulty. Raises MissingTableError where none was found."""
    difficulty, seed = request.params.difficulty, request.params.seed
    low, high = (bound * step(table.game) for bound in BOUNDS[difficulty])
    looked = 0
    for states in _drawn(table, seed):
        looked += len(states)
        for state, margin in zip(states, _margins(table, states), strict=True):
            if max(low, table.tolerance) < margin <= high:
                view = _view(table, state, float(margin), seed)
                if view is not None:
                    return view
    kind = "is a decision" if difficulty == "any" else f"is a {difficulty} decision"
    raise MissingTableError(
        f"difficulty: none of {many(looked, 'state')} that were drawn {kind}; take another "
        "one, or another seed"
    )


def _drawn(table: Table, seed: int) -> Iterator[Ints]:
    """States (n, fields) in which somebody may choose, some at a time, in an order by the seed."""
    rng = np.random.default_rng(seed)
    for _ in range(ROUNDS):
        drawn = list(table.draw(DRAWN, int(rng.integers(2**31))))
        if not drawn:
            return
        states = rng.permutation(np.concatenate(drawn))
        edges = expand(table.game, states)
        deciding = (edges.kinds == DECISION) | (edges.kinds == SIMULTANEOUS)
        if not deciding.any():  # chance moves on
            children = [
                edges.children[rng.integers(edges.first[x], edges.first[x + 1])]
                for x in np.flatnonzero(edges.kinds == CHANCE).tolist()
            ]
            if not children:
                continue
            states = np.array(children)
            kinds = expand(table.game, states).kinds
            deciding = (kinds == DECISION) | (kinds == SIMULTANEOUS)
        yield np.ascontiguousarray(states[deciding])


def _margins(table: Table, states: Ints) -> Floats:
    """(n,) what the cheapest mistake of who decides costs; NaN where that is not known."""
    actions, priced = table.every_action(states)
    margins = np.where(priced, actions.margins, np.nan)
    for x in actions.at_once().tolist():
        payoffs = actions.bids.payoffs[actions.choices(x, 0)]
        costs = actions.values[x, 0] - payoffs
        margins[x] = min(costs[costs > table.tolerance], default=np.nan)
    return margins


def _view(table: StoredTable, state: Ints, margin: float, seed: int) -> TrainView | None:
    """The decision at a state; None where what an action leads to is not known."""
    view = state_answer(table, typed(table.game.describe(state)))
    answer = view.moves.answer
    if not view.playable or len(answer.actions) < 2:
        return None
    seat = answer.to_act or 1
    choices = play_on(table, answer.state, seat=seat).offers()
    steps = margin / step(table.game)
    difficulty = next(name for name in ("hard", "medium", "easy") if steps <= BOUNDS[name][1])
    return TrainView(view, seat, choices, margin, difficulty, seed)  # type: ignore[arg-type]
