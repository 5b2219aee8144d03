"""A game of a person against agents, independent of any terminal: text out, answers in.

`Play.talk` is a generator. It yields lines of text and `Question`s, receives the answer to each
question (None: no more answers) and continues until the game is over or the person leaves. All
chance comes from the function `draw`, so tests can go through every possible play.

The cost of a decision at state x with action a is max over b of q(x, b) minus q(x, a), where q is
the person's payoff if all players play optimally afterwards. Against optimal opponents, the costs
add up, on average over chance, to the person's total loss compared with an optimal player.

For simultaneous moves, let A be the payoffs of the matrix game under optimal play afterwards, v its
value, and x and y optimal mixed strategies of the two sides (`solver.matrix_games.simplex`). Player
1's choice r is worth (A y)_r to them and costs v - (A y)_r, which is never below 0. Player 2's
choice c costs (x A)_c - v.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from luckbase.cluster.answers.actions import EveryAction, stepped
from luckbase.cluster.answers.lookup import Lookup
from luckbase.cluster.answers.moves import Addressed, changed
from luckbase.cluster.play.agents import AgentLike, Opener, Seat, no_tables, opponents
from luckbase.solver import sentences
from luckbase.solver.errors import MissingTableError, OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import (
    Agents,
    Drawing,
    detailed,
    first_state,
    simplify,
)
from luckbase.solver.game.fields import State
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import CHANCE, DECISION, JOINT, SIMULTANEOUS, TERMINAL
from luckbase.solver.result import IfAny, Result
from luckbase.solver.search.bellman import action_starts
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.sentences import on_command_line, option

Draw = Callable[[Floats], int]  # draw(chances) returns the index of the outcome
LEFT = "you left; the game is not over"

HELP = "a name, the beginning of just one, or its number; ? shows what each is worth, q quits"
HELP_AT_ONCE = "a name, or its last word; ? shows what each is worth, q quits"
"""For simultaneous moves, because the names of choices may end in numbers."""


@dataclass(frozen=True)
class Question:
    """A question to the person."""

    prompt: str


@dataclass(frozen=True)
class Decision(Result):
    """A decision of the person."""

    state: Addressed  # the fields of the state
    action: str  # the action taken
    best: str  # a best action; the same as `action` if that is best
    cost: float  # how much worse `action` is


@dataclass(frozen=True)
class Offer(Result):
    """An action that the person can take."""

    action: str
    value: float  # its expected payoff to the person
    cost: float  # how much worse it is than the best action; 0 if they cannot be distinguished
    best: bool = field(init=False, default=False)  # True if the cost is 0
    chance: IfAny[float] = None
    """Its probability in an optimal mixed strategy, for simultaneous moves."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "best", not self.cost)


Talk = Generator["str | Question", str | None, Any]
"""Yields lines and questions; answers are sent in."""


class Play:
    """One play from a canonical state (fields,), with payoffs from a table of the game or of its
    `plain` form. A context manager that closes the tables opened for it (`tables`)."""

    def __init__(
        self, game: Game, root: Ints, table: Lookup, seats: Sequence[Seat], person: int, draw: Draw,
        hints: bool = False,
    ) -> None:  # fmt: skip
        """person: index in `seats`."""
        self.game, self.table, self.seats, self.person = game, table, seats, person
        self.draw, self.hints = draw, hints
        self.help = HELP_AT_ONCE if game.simultaneous else HELP
        self.decisions: list[Decision] = []
        """The person's decisions so far."""
        self.returns: Floats = np.zeros(game.players)
        """float64 (players,), the sum of rewards so far."""
        self.over = False
        """True if the play has ended."""
        self.tables = ExitStack()
        self.root = root
        self._expand(root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exit: object) -> None:
        self.tables.close()

    def _expand(self, state: Ints) -> None:
        self.state = np.ascontiguousarray(state)
        self.edges: Expanded = expand(self.game, self.state.reshape(1, -1))
        self._priced: EveryAction | None = None
        seen = self.game.own(Agents).as_seen_by(self.person, self.state)
        self.shown: dict[str, Any] = self.game.describe(seen)

    @property
    def priced(self) -> EveryAction:
        """The payoffs of the actions at the current state; if both choose at once, of each choice
        against the other's optimal strategy."""
        if self._priced is None:
            table, inputs = self.table, self.game.fields.values(self.state.reshape(1, -1))
            q, errors = table.action_values(self.edges), np.zeros(len(self.edges.actions))
            near = table.tolerance, table.error
            self._priced = stepped(self.game, self.edges, q, near, errors, inputs)
        return self._priced

    @property
    def at_once(self) -> bool:
        """True if both players choose at the current state."""
        return bool(self.edges.kinds[0] == SIMULTANEOUS)

    def _rows(self, player: int) -> Ints:
        """Return the rows of `priced` with a player's actions."""
        return np.flatnonzero(self.priced.choosers == (player if self.at_once else -1))

    def through(self, answer: Callable[[Play], str | None]) -> list[str]:
        """Play to the end and return all lines. answer: called at each question; returns the
        answer, or None to leave."""
        lines: list[str] = []
        talk, reply = self.talk(), None
        while True:
            try:
                line = talk.send(reply)
            except StopIteration:
                return lines
            reply = answer(self) if isinstance(line, Question) else None
            lines.append(line.prompt if isinstance(line, Question) else line)

    def replay(self, moves: Sequence[str]) -> tuple[list[tuple[str, Ints]], bool]:
        """Play the person's moves. Return the lines, each with the state (fields,) after it, and
        whether the person decides next. Raises OptionError for an impossible move."""
        lines: list[tuple[str, Ints]] = []
        talk, answer, at = self.talk(), None, 0
        with suppress(StopIteration):
            while True:
                line, answer = talk.send(answer), None
                if not isinstance(line, Question):
                    lines.append((line, self.state))
                    continue
                if at == len(moves):
                    return lines, True
                names, answer = self.names, moves[at]
                at += 1
                if read_answer(names, answer, at_once=self.game.simultaneous) is None:
                    problem = f"number {at} is '{sentences.shorten(answer, 30)}'"
                    raise OptionError(f"move: {problem}; expected {', '.join(names)}")
        if at < len(moves):
            raise OptionError(f"move: {len(moves)} are given; the game was over after {at}")
        return lines, False

    @property
    def names(self) -> list[str]:
        """The names of the person's choices, in order."""
        return self._names(self.person)

    def _names(self, player: int) -> list[str]:
        return [self.priced.names[code] for code in self.priced.named[self._rows(player)]]

    def offers(self) -> list[Offer]:
        """Return the value and cost of each choice, in the order of `names`. The cost is 0 if a
        choice cannot be distinguished from the best."""
        priced, me, rows = self.priced, self.person, self._rows(self.person)
        values = priced.q[rows, me]
        top = priced.values[0, me] if self.at_once else values.max()
        slack = self.game.tie_tolerance + 2 * priced.errors[0]
        costs = np.where(top - values > slack, top - values, 0.0).tolist()
        chances = priced.mixed[rows, 0].tolist() if self.at_once else [None] * len(rows)
        return list(map(Offer, self.names, values.tolist(), costs, chances))

    # --- the talk ------------------------------------------------------------------------------

    def talk(self) -> Talk:
        """Play to the end. Yields lines, and questions that wait for an answer."""
        last = -1
        while self.edges.kinds[0] != TERMINAL:
            if self.at_once:
                if not (yield from self._choose_at_once()):
                    yield LEFT
                    return
                continue
            up = int(self.edges.actors[0])
            if up not in (-1, last):
                who = "you are" if up == self.person else f"{self.seats[up].name} is"
                yield f"{who} up: {sentences.fields(self.shown)}"
                last = up
            actions = np.array(list(dict.fromkeys(self.edges.actions.tolist())))
            pick: int | None = 0
            if self.edges.kinds[0] == DECISION and len(actions) > 1:
                pick = (yield from self._ask()) if up == self.person else self._decide(up, actions)
            if pick is None:
                yield LEFT
                return
            yield self._take(int(actions[pick]))
        self.returns += self.edges.rewards[0]
        self.over = True
        end = "" if self.game.simultaneous else f": {sentences.fields(self.shown)}"
        yield f"the game is over{end}"
        yield self._result()

    def _take(self, action: int) -> str:
        """Take an action and draw its outcome. Return the line that describes it."""
        before, state = self.shown, self.state
        children = np.ascontiguousarray(self.edges.children[self.edges.actions == action])
        no_actor = self.edges.kinds[0] == CHANCE and self.edges.actors[0] < 0
        self._step(action)
        # For simultaneous moves, the action of a chance state is a joint action like any other.
        name = "" if self.game.simultaneous else self.game.action_name(-1 if no_actor else action)
        outcome_number = int(np.argmax((children == self.state).all(axis=1)))
        names = self.game.own(Drawing).outcome_names(state, action, children)
        outcome = sentences.exclaimed(names[outcome_number] or "")
        if self.edges.kinds[0] != TERMINAL:
            numbers = changed(self.game, before, self.shown) or "nothing changes"
            outcome = f"{outcome} ({numbers})" if outcome else numbers
        return f"  {name}{': ' if name and outcome else ''}{outcome}"

    def _step(self, action: int) -> Floats:
        """Take an action and draw its outcome. Return the rewards, float64 (players,)."""
        edges = np.flatnonzero(self.edges.actions == action)
        edge = edges[self.draw(self.edges.weights[edges])]
        rewards: Floats = self.edges.rewards[edge]
        self.returns += rewards
        self._expand(self.edges.children[edge])
        return rewards

    def _decide(self, up: int, actions: Ints) -> int:
        """Return an opponent's choice, an index into `actions`."""
        decide, inputs = self.seats[up].decide, (self.state.reshape(1, -1), [actions])
        if decide is None:  # the stored best action is more precise than rounded payoffs
            return int(np.argmax(self.table.agent().decide(self.game, up, *inputs)[0]))
        return self.draw(decide(self.game, up, *inputs)[0])

    def _ask(self) -> Generator[str | Question, str | None, int | None]:
        """Ask until an answer is valid. Return an index into `names`; None if the person leaves."""
        names, offers = self.names, self.offers()
        numbered = names if self.at_once else [f"{i + 1} {name}" for i, name in enumerate(names)]
        hints, pick = self._hints(offers), None
        if self.hints:
            yield from hints
        while pick is None:
            answer = yield Question(f"{', '.join(numbered)}? ")
            if answer is None or (answer.strip().lower() in ("q", "quit")):
                return None
            if answer.strip() == "?":
                yield from hints
                continue
            pick = read_answer(names, answer, at_once=self.at_once)
            if pick is None:
                yield f"'{answer.strip()[:30]}' is not one of these; write {self.help}"
        best = pick
        if offers[pick].cost and self.at_once:
            best = int(np.argmax([offer.chance or 0.0 for offer in offers]))
        elif offers[pick].cost:
            best = int(self.priced.best[0])
        self.decisions.append(Decision(self.shown, names[pick], names[best], offers[pick].cost))
        return pick

    def _hints(self, offers: Sequence[Offer]) -> list[str]:
        """Return lines with the value and cost of each choice; also its chance for simultaneous
        moves."""
        payoffs = self.game.payoffs
        rows = [
            [offer.action, payoffs.text(offer.value),
             f"costs {payoffs.change(offer.cost)}" if offer.cost else "best"]
            for offer in offers
        ]  # fmt: skip
        head = f"  {payoffs.name}, at {sentences.fields(self.shown)}:"
        if self.at_once:
            value = payoffs.text(self.priced.values[0, self.person])
            head = (
                f"  {payoffs.name}: {value} for optimal play; by choice, against the other's, and "
                "its chance in yours:"
            )
            for row, offer in zip(rows, offers, strict=True):
                row.append(f"chance {sentences.percent(offer.chance or 0.0)}")
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        cells = [map(str.ljust, row, widths) for row in rows]
        return [head, *(f"    {'  '.join(each)}".rstrip() for each in cells)]

    def _choose_at_once(self) -> Generator[str | Question, str | None, bool]:
        """Play a state with simultaneous moves. Return False if the person left."""
        me, opponent = self.person, 1 - self.person
        names, rival = self.names, self.seats[opponent]
        yield f"you and {rival.name} choose at once: {sentences.fields(self.shown)}"
        pick = (yield from self._ask()) if len(names) > 1 else 0
        if pick is None:
            return False
        numbers = [np.unique(side) for side in np.divmod(self.edges.actions, JOINT)]
        theirs, lottery = self._names(opponent), self.priced.mixed[self._rows(opponent), 0]
        if rival.decide is not None:
            inputs = self.state.reshape(1, -1), [numbers[opponent]]
            lottery = rival.decide(self.game, opponent, *inputs)[0]
        reply = self.draw(lottery) if len(lottery) > 1 else 0
        pair = (pick, reply) if me == 0 else (reply, pick)
        gain = float(self._step(int(numbers[0][pair[0]] * JOINT + numbers[1][pair[1]]))[me])
        what = sentences.figures(abs(gain), 6) if gain else "nothing"
        gets = f"; you {'lose' if gain < 0 else 'get'} {what}" if self.game.pays else ""
        yield f"  you: {names[pick]}, {rival.name}: {theirs[reply]}{gets}"
        return True

    def _result(self) -> str:
        if self.game.pays_chances:
            won = np.flatnonzero(self.returns == 1.0)
            if len(won) == 1:
                return "you win" if won[0] == self.person else f"{self.seats[won[0]].name} wins"
            if self.game.players == 1 and self.returns[0] == 0.0:
                return "you lose"
            if self.game.players == 2 and (self.returns == 0.5).all():
                return "a draw"
        texts = [
            f"{seat.name} {sentences.figures(paid, 6)}"
            for seat, paid in zip(self.seats, self.returns, strict=True)
        ]
        return f"{self.game.payoff_name.removeprefix('expected ')}: {', '.join(texts)}"


class PlayOptions(TypedDict, total=False):
    """The options of a person's game; all are optional."""

    seat: int | None
    """The person's player number, from 1. Default: the player who decides first."""
    against: str | Sequence[AgentLike] | None
    """The opponents: one for all or one for each, as names or agents. Default: optimal."""
    seed: int
    """Seed of random numbers. Default: a new one."""
    draw: Draw  # the function that draws outcomes, instead of a seed
    hints: bool  # show the value of each action before every decision
    opener: Opener  # opens tables named as opponents
    on_note: Callable[[str], None]  # called with a message before a long operation
    named: str  # the board as the user typed it, for the command that solves a table


def begin(
    game: Game, start: Any, table_of: Callable[[Game, Ints], Lookup], how: PlayOptions,
    stored: Lookup | None = None,
) -> Play:  # fmt: skip
    """Begin a person's game.

    start: fields in the game's words or a canonical state (fields,), with all that the person sees;
        None for the game's start. If a game has several starts, one is drawn, only from the starts
        in the `stored` table if it is given.
    table_of: returns the table with the payoffs.

    Raises OptionError for an unknown seat or opponent, StateError if the game is over.
    """
    game, seat = detailed(game), how.get("seat")
    if seat is not None and not 1 <= seat <= game.players:
        raise OptionError(f"{option('seat')}: there is no player {seat}; write 1 to {game.players}")
    others = opponents(game, how.get("against"), how.get("opener", no_tables))
    draw = how["draw"] if "draw" in how else seeded(how["seed"] if "seed" in how else new_seed())
    if start is None:
        root = _first_state(game, draw, stored)
    else:
        root = start if isinstance(start, np.ndarray) else game.parse(start)
    if seat is None:
        seat = _who_decides(game, root) + 1
    if start is not None:
        root = game.own(Agents).as_seen_by(seat - 1, root)
    seats = [
        Seat(f"player {i + 1 + (i + 1 >= seat)} ({other.name})", other.decide)
        for i, other in enumerate(others)
    ]
    seats.insert(seat - 1, Seat("you"))
    hints = how.get("hints", False)
    play = Play(game, root, table_of(game, root), seats, seat - 1, draw, hints)
    if play.edges.terminal[0]:
        raise StateError(f"{sentences.fields(play.shown)}: the game is over there")
    return play


def _first_state(game: Game, draw: Draw, stored: Lookup | None) -> Ints:
    """Return the game's start; of several, draw one that is not terminal and has payoffs."""
    starts = game.starts()
    if len(starts) < 2:
        return first_state(game)
    states, chances = np.array([s for _, s in starts]), np.array([chance for chance, _ in starts])
    fine = ~expand(game, states).terminal
    if stored is not None:
        fine &= stored.backup(simplify(stored.game, states))[1]
    possible = np.flatnonzero(fine)
    if not len(possible):
        why = "" if stored is None else stored.missing(states[0])
        raise MissingTableError(f"{why}; say where to start, as {option('start')}"
                                + on_command_line(" FIELD=VALUE", "={'field': value}"))  # fmt: skip
    return states[possible[draw(chances[possible])]]


LOOK_AHEAD, LOOKED_AT = 12, 400
"""Limits of the search for the first decision: moves ahead, and states at each."""


def _who_decides(game: Game, root: Ints) -> int:
    """Return the first player, from 0, with a choice; the actor at the root if that is far off."""
    states = root.reshape(1, -1)
    first = max(int(expand(game, states).actors[0]), 0)
    for _ in range(LOOK_AHEAD):
        edges = expand(game, states)
        owner, at = action_starts(edges)
        decides = (edges.kinds == DECISION) & (np.bincount(owner[at], minlength=len(states)) > 1)
        if decides.any():
            return int(edges.actors[decides.argmax()])
        if not len(edges.children) or (edges.kinds == SIMULTANEOUS).any():
            break
        states = np.unique(edges.children, axis=0)[:LOOKED_AT]
    return first


def play_on(table: Lookup, start: State | None, **how: Unpack[PlayOptions]) -> Play:
    """Begin a person's game with payoffs from a table. Raises as `begin` does."""
    return begin(table.game, start, lambda game, root: table, how, table)


def new_seed() -> int:
    """Return an unpredictable seed."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def seeded(seed: int) -> Draw:
    """Return a `Draw` that uses one random number of a seeded generator for each draw."""
    rng = np.random.default_rng(seed)

    def draw(chances: Floats) -> int:
        sums = np.cumsum(chances)
        index = np.searchsorted(sums, rng.random() * sums[-1], side="right")
        return int(min(index, np.flatnonzero(chances)[-1]))

    return draw


def read_answer(names: Sequence[str], answer: str, *, at_once: bool) -> int | None:
    """Return the index of the name that an answer means; None if it means none or several.

    An answer, in upper or lower case, is a name, its number from 1, or the beginning of one name
    only. If `at_once`, names may end in numbers; then the answer is a name or the last word of a
    name.
    """
    text, lower = " ".join(answer.lower().split()), [name.lower() for name in names]
    for word, options in ((answer, names), (text, lower)):
        if word in options:
            return options.index(word)
    if at_once:
        meant = [i for i, name in enumerate(lower) if text == name.split()[-1]]
    else:
        numbers = [i for i in range(len(names)) if text == str(i + 1)]
        prefixed = [i for i, name in enumerate(lower) if text and name.startswith(text)]
        meant = numbers or prefixed
    return meant[0] if len(meant) == 1 else None
