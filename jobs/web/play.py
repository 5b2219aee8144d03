"""Play and training on a page. The server stores no state.

**A game**: every request contains a random seed and all moves so far, and the game is replayed from
its beginning (`cluster.play.game`).

**Training** (`train_view`): a decision that occurs in play, of a given difficulty, with the cost of
every action and the reasons. Many games are simulated from the table's beginnings, mostly with best
actions. Of the states with a choice, the first one is taken whose margin, the cost of the cheapest
mistake, has the difficulty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BeforeValidator, Field

from luckbase.cluster.answers.moves import address
from luckbase.cluster.play.game import (
    Decision,
    Offer,
    Play,
    Question,
    new_seed,
    play_on,
    read_answer,
)
from luckbase.jobs.web import tables
from luckbase.jobs.web.http import ApiRequest, TableParams, Truth, whole
from luckbase.jobs.web.pictures import svg
from luckbase.jobs.web.states import StateView, state_answer
from luckbase.solver import sentences
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import View, agents_of, scene_of, simplify
from luckbase.solver.game.fields import typed
from luckbase.solver.game.rules import DECISION, SIMULTANEOUS
from luckbase.solver.result import Flat, Number, PythonOnly, Result
from luckbase.solver.scene import Scene
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.sentences import many, nearest, shorten

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import StoredTable, Table

MAX_MOVES = 2_000
Difficulty = Literal["any", "easy", "medium", "hard"]
BOUNDS = {"any": (0.0, np.inf), "easy": (5.0, np.inf), "medium": (1.0, 5.0), "hard": (0.0, 1.0)}
"""Range of margins (exclusive, inclusive) of each difficulty, in units of `step`."""
PLAYS, STEPS, ROUNDS = 24, 120, 12
"""Games simulated at once, their maximum number of moves, and the maximum of repetitions."""
CARELESS = 0.2
"""Probability of a random move, to reach states that optimal players never reach."""


def _seed(text: str) -> int:
    return whole("seed", text, 0, 2**32 - 1)


class GameParams(TableParams, extra="allow"):
    """A game so far. The fields of a state give its beginning."""

    lists = ("move",)

    seed: Annotated[int, BeforeValidator(_seed)] = Field(default_factory=new_seed)
    """Seed of the dice; a new one by default."""
    seat: str = ""
    """Your player number, from 1; by default the first player to decide."""
    against: str = ""
    """One agent, or one for each other player, separated by commas."""
    move: list[str] = Field(default_factory=list)
    """Your answers so far."""
    hints: Truth = False
    """Add the payoff of each action."""
    at: str = ""
    """Show the game after this many lines of its log; all lines if empty."""


@dataclass(frozen=True)
class Choice(Result):
    """The question to you."""

    actions: list[str]
    hints: list[Offer] | None


@dataclass(frozen=True)
class GameView(Result):
    """A game so far: the log, the state, and the next question (null if the game is over or an
    earlier line is shown). lines: number of lines in the whole log."""

    seed: int
    seat: int
    seats: list[str]
    said: list[str]
    lines: int
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
    scene: PythonOnly[Scene]


def game_view(table: StoredTable, request: ApiRequest[GameParams]) -> GameView:
    """Replay a game. Return the log, the next question, and the cost of each decision. Raises
    OptionError for an impossible move."""
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
    log, asks = _replay(play, game.move)
    state, shown = play.state, len(log)
    if game.at:
        shown = whole("at", game.at, 0, len(log))
        state = log[shown - 1][1] if shown else play.root
    last = shown == len(log)
    hints = play.offers() if asks and last and game.hints else None
    seen = play.game.describe(play.game.own(View).as_seen_by(play.person, state))
    bare = simplify(table.game, state.reshape(1, -1))
    value, priced = table.lookup_or_backup(bare)
    lines, scene = [line for line, _ in log[:shown]], scene_of(play.game, typed(seen))
    return GameView(
        seed=game.seed, seat=play.person + 1, seats=[seat.name for seat in play.seats],
        said=lines, lines=len(log), state=seen, text=sentences.fields(seen),
        query=address(table.game.describe(bare[0])),
        drawing=svg(scene), scene=scene, value=value[0].tolist() if priced[0] else None,
        ask=Choice(play.names, hints) if asks and last else None, over=play.over and last,
        result=lines[-1] if play.over and last else None, decisions=play.decisions,
        cost=sum(each.cost for each in play.decisions),
    )  # fmt: skip


def _check_opponents(table: StoredTable, against: str) -> None:
    """Raise OptionError for an agent of the game that is not available on this board."""
    for name in map(str.strip, against.split(",")):
        offered = tables.opponents(table.game)
        if name in agents_of(table.game) and name not in offered:
            hint = nearest(name, offered)
            raise OptionError(f"against: '{name}' cannot play on this board here; {hint}")


def _check_priced(table: StoredTable, play: Play) -> None:
    """Raise MissingTableError if the table lacks payoffs of moves at the game's first state."""
    states = np.concatenate([play.state.reshape(1, -1), play.edges.children])
    priced = table.lookup_or_backup(simplify(table.game, states))[1]
    if not priced[1:].all():
        raise MissingTableError(f"state: {sentences.fields(play.shown)} {tables.UNPRICED}")


def _replay(play: Play, moves: list[str]) -> tuple[list[tuple[str, Ints]], bool]:
    """Play the moves. Return the lines of the log, each with the state (fields,) after it, and
    whether the person decides next."""
    log: list[tuple[str, Ints]] = []
    talk, answer, at = play.talk(), None, 0
    while True:
        try:
            event = talk.send(answer)
        except StopIteration:
            break
        answer = None
        if not isinstance(event, Question):
            log.append((event, play.state))
            continue
        if at == len(moves):
            return log, True
        names = play.names
        if read_answer(names, moves[at], at_once=play.game.simultaneous) is None:
            raise OptionError(
                f"move: number {at + 1} is '{shorten(moves[at], 30)}'; expected {', '.join(names)}"
            )
        answer, at = moves[at], at + 1
    if at < len(moves):
        raise OptionError(f"move: {len(moves)} are given; the game was over after {at}")
    return log, False


# --- a decision to train with --------------------------------------------------------------------


@dataclass(frozen=True)
class TrainView(Result):
    """A decision.

    choices: the possible choices in the game's order, with their costs to the player `seat` (from
        1).
    margin: cost of the cheapest mistake.
    difficulty: of this decision.
    """

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


class TrainParams(TableParams, extra="allow"):
    """The parameters of a decision for training. The fields of a state select that decision."""

    difficulty: Annotated[Difficulty, BeforeValidator(_difficulty)] = "any"
    """easy: a mistake costs more than 5 points; medium: 1 to 5; hard: less; any."""
    seed: Annotated[int, BeforeValidator(_seed)] = 0
    """Seed of the draw: the same seed gives the same state."""


def train_view(table: StoredTable, request: ApiRequest[TrainParams]) -> TrainView:
    """Return a decision of a difficulty, or the decision at a given state. Raises MissingTableError
    if there is none."""
    difficulty, seed = request.params.difficulty, request.params.seed
    low, high = (bound * tables.step(table.game) for bound in BOUNDS[difficulty])
    given, seen = request.params.state, 0
    if given:
        parsed = [table.game.parse(given).reshape(1, -1)]
        low, high = -1.0, np.inf
    for states in parsed if given else _met(table, seed):
        seen += len(states)
        for state, margin in zip(states, _margins(table, states), strict=True):
            if max(low, table.tolerance * (not given)) < margin <= high:
                view = _view(table, state, float(margin), seed)
                if view is not None:
                    return view
    if given:
        raise MissingTableError(f"{sentences.fields(given)}: nobody has a choice there")
    kind = "is a decision" if difficulty == "any" else f"is a {difficulty} decision"
    raise MissingTableError(
        f"difficulty: none of {many(seen, 'state')} that came up in play {kind}; take another "
        "one, or another seed"
    )


def _met(table: StoredTable, seed: int) -> Iterator[Ints]:
    """Yield states (n, fields) with a decision from simulated games that begin where the table
    begins, some games at a time, in an order determined by the seed."""
    game, rng = table.game, np.random.default_rng(seed)
    starts = [state for _, state in game.starts()]
    roots = [starts, [game.parse(state) for state in tables.beginnings(table)]]
    roots = [each for each in roots if each]  # a search may be far from the start of the game
    for k in range(ROUNDS if roots else 0):
        where, found = np.array(roots[k % len(roots)]), list[Ints]()
        states = where[rng.integers(len(where), size=PLAYS)]
        for _ in range(STEPS):
            edges = expand(game, states)
            deciding = (edges.kinds == DECISION) | (edges.kinds == SIMULTANEOUS)
            found.append(states[deciding])
            best = table.stored_best(states)
            going = [
                edges.children[_edge(table, edges, x, best[x], rng)]
                for x in np.flatnonzero(~edges.terminal).tolist()
            ]
            if not going:
                break
            states = np.array(going)
        met = np.unique(np.concatenate(found), axis=0)
        yield np.ascontiguousarray(rng.permutation(met))


def _edge(table: Table, edges: Expanded, x: int, best: str | None, rng: np.random.Generator) -> int:
    """Return the edge taken at state x: usually of the best action, otherwise of a random one."""
    first, last = int(edges.first[x]), int(edges.first[x + 1])
    actions, weights = edges.actions[first:last], edges.weights[first:last]
    chosen = rng.choice(np.unique(actions))
    if edges.kinds[x] == DECISION and best is not None and rng.random() >= CARELESS:
        named = [a for a in np.unique(actions).tolist() if table.game.action_name(a) == best]
        chosen = named[0] if named else chosen
    at = np.flatnonzero(actions == chosen)
    return first + int(at[rng.choice(len(at), p=weights[at] / weights[at].sum())])


def _margins(table: Table, states: Ints) -> Floats:
    """Return the cost (n,) of the cheapest mistake; NaN if unknown."""
    actions, priced = table.every_action(states)
    margins = np.where(priced, actions.margins, np.nan)
    for x in actions.at_once().tolist():
        payoffs = actions.bids.payoffs[actions.choices(x, 0)]
        costs = actions.values[x, 0] - payoffs
        margins[x] = min(costs[costs > table.tolerance], default=np.nan)
    return margins


def _view(table: StoredTable, state: Ints, margin: float, seed: int) -> TrainView | None:
    """Return the decision at a state; None if the result of an action is unknown."""
    view = state_answer(table, typed(table.game.describe(state)))
    answer = view.moves.answer
    if not view.playable or len(answer.actions) < 2:
        return None
    seat = answer.to_act or 1
    choices = play_on(table, answer.state, seat=seat).offers()
    steps = margin / tables.step(table.game)
    difficulty = next(name for name in ("hard", "medium", "easy") if steps <= BOUNDS[name][1])
    return TrainView(view, seat, choices, margin, difficulty, seed)  # type: ignore[arg-type]
