"""Why an action is best, in words: the effect of chance, the payoff of a sure action, and
thresholds.

A claim is a dataclass of numbers; its `str` is a sentence. The numbers come from the moves at the
state (`cluster.answers.moves`) and from a limited lookup along a field that the game declares, so
every sentence is supported by the table. Changes are relative to the payoff of the state for the
player who decides. Changes that the table cannot distinguish from 0 are 0.

>>> with luckbase.open("boards/pig/tiny.toml") as table:
...     print(*table.why({"mine": 0, "yours": 10, "turn": 4}), sep="\\n")
Rolling: a 1 (the turn is lost), one in six, costs 35 points; everything else gains 2.9 to 11
points. Holding: player 1 wins 28%, 33 points less than by rolling. Holding is best nowhere from 1
point to 19 points in this turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from luckbase.cluster.answers.answer import Answer
from luckbase.cluster.answers.lookup import Lookup, OnLevel
from luckbase.cluster.answers.moves import Move, Moves, Outcome, moves
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.fields import State
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import Groups, TurningPoint
from luckbase.solver.game.rules import DECISION
from luckbase.solver.search.expand import expand, who_acts
from luckbase.solver.sentences import NUMBERS, Payoffs, capital, noun

MAX_LINE = 256
"""Maximum number of states looked up along a field around the given one."""

_GERUNDS = {"bid": "bidding", "flip": "flipping", "hold": "holding", "pass": "passing",
          "play": "playing", "roll": "rolling", "stick": "sticking",
          "stop": "stopping", "take": "taking"}  # fmt: skip


def about(answer: Answer) -> str:
    """Return the result of simulated games of each action for the player who decides, with standard
    errors: ``Play: about 81.2% (± 0.40)``; "" for other payoffs."""
    if answer.source != "games" or answer.to_act is None:
        return ""
    payoffs = answer.origin.payoffs
    worth = [
        f"{action.name}: about {payoffs.text(action.value[answer.to_act - 1])} "
        f"(± {payoffs.size(answer.error)})"
        for action in answer.actions
    ]
    return capital("; ".join(worth))


@dataclass(frozen=True)
class Effect:
    """Outcomes with similar effects.

    name: of the outcome, if there is only one.
    count: number of outcomes.
    low, high: smallest and largest change, with the same sign.
    """

    name: str | None
    count: int
    chance: float
    low: float
    high: float

    def text(self, payoffs: Payoffs, subject: str, several: bool) -> str:
        """Return a clause: ``everything else gains 0.8 to 17 points``."""
        if self.low == self.high == 0:
            return f"{subject} {'change' if several else 'changes'} nothing"
        verb, ends = (
            ("gain", (self.low, self.high)) if self.high > 0 else ("cost", (self.high, self.low))
        )
        return f"{subject} {verb}{'' if several else 's'} {payoffs.span(*map(abs, ends))}"


@dataclass(frozen=True)
class Luck:
    """The chance outcomes of an action.

    action: None if no player acts.
    losses: the most important loss, then all others together.
    rest: all outcomes that cost nothing.
    cost: average cost of the action; 0 for the best.
    """

    action: str | None
    player: int
    losses: tuple[Effect, ...]
    rest: Effect | None
    cost: float
    payoffs: Payoffs

    def __str__(self) -> str:
        parts = [
            effect.text(self.payoffs, self.subject(i, effect), effect.count > 1)
            for i, effect in enumerate(self.losses)
        ]
        if self.rest is not None:
            others = "everything else" if self.losses else "every outcome"
            parts.append(self.rest.text(self.payoffs, others, several=False))
        if self.cost:
            parts.append(f"on average {self.payoffs.change(self.cost)} less")
        head = f"for player {self.player}" if self.action is None else gerund(self.action)
        return f"{capital(head)}: {'; '.join(parts)}."

    def subject(self, i: int, effect: Effect) -> str:
        """Return the outcomes of the i-th loss: ``a whammy, one in six,``."""
        who = f"{effect.count} {'other ' * (i > 0)}outcomes"
        return f"{who if effect.name is None else noun(effect.name)}, {often(effect.chance)},"


@dataclass(frozen=True)
class Sure:
    """An action that leads to one state.

    brings: what happens, if it has a name.
    up: the player who acts next, with their payoff, if that is not the player who decides.
    own: payoff of the player who decides.
    cost: 0 for the best action.
    than: the best action.
    """

    action: str
    player: int
    brings: str | None
    up: tuple[int, float] | None
    own: float
    cost: float
    than: str | None
    payoffs: Payoffs

    def __str__(self) -> str:
        parts = [self.brings] if self.brings else []
        if self.up is not None:
            wins = self.payoffs.of(who := f"player {self.up[0]}", self.up[1])
            if self.brings and self.brings.startswith(who):
                parts = [f"{self.brings} and {wins.removeprefix(who).strip()}"]
            else:
                parts.append(wins if wins.startswith(who) else f"{who}'s {wins}")
        payoff = self.payoffs.of(who := f"player {self.player}", self.own)
        if self.up is not None and not payoff.startswith(who):
            payoff = f"{who}'s {payoff}"
        if self.than is not None and self.cost:
            payoff += f", {self.payoffs.change(self.cost)} less than by {gerund(self.than)}"
        elif self.than is not None:
            payoff += f", as much as by {gerund(self.than)}"
        return f"{capital(gerund(self.action))}: {'; '.join([*parts, payoff])}."


@dataclass(frozen=True)
class Turn:
    """The threshold of a decision along a field of the state.

    here: the number at the state.
    first, last: the nearest range of numbers at which `turning.doing` is best; None if there is
        none.
    low, high: the range of numbers with a choice.
    """

    here: int
    first: int | None
    last: int | None
    low: int
    high: int
    turning: TurningPoint

    def __str__(self) -> str:
        say, does, at = self.turning.say, capital(self.turning.doing), self.turning.at
        span = f"from {say(self.low)} to {say(self.high)}"
        if self.first is None or self.last is None:
            return f"{does} is best nowhere {span}{at}."
        if (self.first, self.last) == (self.low, self.high):
            return f"{does} is best everywhere {span}{at}."
        if self.first == self.low:
            span = f"up to {say(self.last)}"
        elif self.last == self.high:
            span = f"from {say(self.first)}"
        elif self.first == self.last:
            span = f"only at {say(self.first)}"
        else:
            span = f"from {say(self.first)} to {say(self.last)}"
        return f"{does} is best {span}{at}; here it is {say(self.here)}."


Claim = Luck | Sure | Turn


def why(table: Lookup, at: Moves) -> tuple[Claim, ...]:
    """Return the reasons for the best action: claims about it, the next best and the threshold."""
    answer = at.answer
    if answer.to_act is None:
        chance = () if answer.strategies is not None else at.outcomes
        return tuple(_luck(table, chance, None, 0, answer.value, 0.0))
    claims: list[Claim] = []
    for move in at.moves[:2]:
        claims += _of_action(table, at, move)
    if len(at.moves) > 1 and (turn := _turn(table, at)) is not None:
        claims.append(turn)
    return tuple(claims)


def explain(
    table: Lookup, state: State, max_states: int = 0, on_level: OnLevel | None = None
) -> tuple[Moves, tuple[Claim, ...]]:
    """Return the moves at a state and the reasons for the best action. Raises as `moves` does. From
    an object store, everything needed is read at once."""
    far = [part for part in table.parts if part.groups.storage.anywhere]
    if far:
        canonical, _ = table.read(state)
        edges = expand(table.game, canonical)
        line = _line(table.game, canonical[0], int(edges.actors[0]))
        read = np.concatenate([canonical, edges.children, *([] if line is None else [line[0]])])
        for part in far:
            part.fetch(read)
    at = moves(table, state, max_states, on_level)
    return at, why(table, at)


def reason(table: Lookup, at: Moves) -> str:
    """Return why the best action beats the next, as one sentence: the cost and probability of the
    largest loss; "" without a choice.

    >>> reason(table, table.moves({"mine": 0, "yours": 10, "turn": 4}))
    'a 1 (the turn is lost), one in six, costs 35 points; holding gives away 33 points'
    """
    if at.answer.decision_only:  # without payoffs, only the threshold is known
        turn = _turn(table, at)
        return "" if turn is None else str(turn).rstrip(".")
    if at.answer.to_act is None or len(at.moves) < 2:
        return ""
    best, second = at.moves[:2]
    payoffs, clause = table.game.payoffs, f"{gerund(second.action.name)} is as good"
    if second.cost:
        clause = f"{gerund(second.action.name)} gives away {payoffs.change(second.cost)}"
    lucky = next((move for move in (best, second) if len(move.outcomes) > 1), None)
    for claim in () if lucky is None else _of_action(table, at, lucky):
        if isinstance(claim, Luck) and claim.losses:
            loss = claim.losses[0]
            costs = loss.text(payoffs, claim.subject(0, loss), loss.count > 1)
            return f"{costs}; {clause}" if lucky is best else f"{clause} on average: {costs}"
    return clause


def _of_action(table: Lookup, at: Moves, move: Move) -> Iterator[Luck | Sure]:
    answer, cost = at.answer, move.cost or 0.0
    assert answer.to_act is not None
    actor = answer.to_act - 1
    if len(move.outcomes) != 1:
        yield from _luck(table, move.outcomes, move.action.name, actor, answer.value, cost)
        return
    (then,) = move.outcomes
    if len(at.moves) < 2 or then.value is None:
        return
    up = None
    if table.game.players > 2 and then.actor not in (-1, actor):
        up = then.actor + 1, then.value[then.actor] + then.reward[then.actor]
    yield Sure(
        move.action.name, actor + 1, _brings(table.game, answer.state, then), up,
        move.action.value[actor], cost, None if move.best else answer.best, table.game.payoffs,
    )  # fmt: skip


def _brings(game: Game, before: Mapping[str, Any], then: Outcome) -> str | None:
    """Describe an action with one outcome: what remains of a set, or the outcome's name."""
    remains = []
    for name in (each.name for each in game.fields if each.is_set or each.blank is not None):
        old, new = before.get(name), then.state.get(name)
        if not (isinstance(old, list) and isinstance(new, list)):
            continue
        if len(new) < len(old) and set(new) < set(old):
            remains.append(f"leaves {name} {', '.join(map(str, new)) or 'none'}")
    return "; ".join(remains) or (None if "->" in then.name else then.name)


def _luck(
    table: Lookup, outcomes: Sequence[Outcome], action: str | None, actor: int,
    value: Sequence[float], cost: float,
) -> Iterator[Luck]:  # fmt: skip
    """Yield the changes from `value` by outcomes; none if a payoff is unknown or nothing
    changes."""
    changes = [
        each.value[actor] + each.reward[actor] - value[actor]
        for each in outcomes
        if value and each.value is not None
    ]
    changes = [0.0 if abs(change) <= table.tolerance else change for change in changes]
    if len(changes) < len(outcomes) or not any(changes):
        return
    weights = [each.chance * change for each, change in zip(outcomes, changes, strict=True)]
    losing = sorted((k for k, x in enumerate(changes) if x < 0), key=weights.__getitem__)
    # A loss of at least a third of the total is named; the others are summarized.
    first = 1 if losing and weights[losing[0]] <= sum(weights[k] for k in losing) / 3 else 0
    groups = [each for each in (losing[:first], losing[first:]) if each]

    def effect(at: Sequence[int]) -> Effect:
        name, values = outcomes[at[0]].name if len(at) == 1 else None, [changes[k] for k in at]
        return Effect(name, len(at), sum(outcomes[k].chance for k in at), min(values), max(values))

    rest = [k for k, change in enumerate(changes) if change >= 0]
    yield Luck(
        action, actor + 1, tuple(map(effect, groups)), effect(rest) if rest else None,
        cost, table.game.payoffs,
    )  # fmt: skip


# --- where it turns ------------------------------------------------------------------------------


def _line(game: Game, state: Ints, actor: int) -> tuple[Ints, int] | None:
    """Return states (n, fields), at most `MAX_LINE`, that differ from `state` only in the number
    along which the actor's decisions turn, ascending; and the column of that number. Return None if
    the game has no such number."""
    groups = game.get(Groups)
    if groups is None or groups.turning is None or actor < 0:
        return None
    field = next(each for each in game.fields if each.name == groups.turning.field)
    column = game.columns.index(field.columns[actor if field.length > 1 else 0])
    low, high = game.fields.bounds[:, column].tolist()
    now, each_way = int(state[column]), MAX_LINE // 2
    numbers = np.arange(max(low, now - each_way), min(high, now + each_way - 1) + 1)
    states = np.repeat(state[None], len(numbers), axis=0)
    states[:, column] = numbers
    reached, sound = game.known_states(game.fields.values(states))
    return reached[reached[:, column] == numbers[sound]], column


def _turn(table: Lookup, at: Moves) -> Turn | None:
    """Return the threshold of the decision at a state: the best actions on the `_line` through it,
    as far as the same player has a stored choice there without gaps. Return None if one player does
    not decide, or the best action is unknown."""
    game, answer = table.game, at.answer
    groups, actor = game.get(Groups), (answer.to_act or 0) - 1
    line = None if answer.best is None else _line(game, at.numbers, actor)
    if line is None or groups is None or groups.turning is None:
        return None
    (states, column), turning = line, groups.turning
    if not (answer.decision_only or any(turning.takes(move.action.name) for move in at.moves)):
        return None
    best = table.stored_best(np.ascontiguousarray(states))
    # A user's game need not accept states that the table does not hold.
    stored = np.flatnonzero([name is not None for name in best])
    kinds, actors = who_acts(game, states[stored])
    kept = stored[(kinds == DECISION) & (actors == actor)]
    runs = np.split(kept, np.flatnonzero(np.diff(states[kept, column]) > 1) + 1)
    here = at.numbers[column]
    run = next((run for run in runs if (states[run, column] == here).any()), kept[:0])
    if len(run) < 2:
        return None
    numbers = turning.number(np.concatenate([states[run], at.numbers[None]]), actor)
    numbers, now = numbers[:-1], int(numbers[-1])
    takes = np.array([0, *(turning.takes(str(best[k])) for k in run.tolist()), 0], np.int8)
    edges = np.flatnonzero(takes[1:] != takes[:-1])
    spans = list(zip(numbers[edges[::2]].tolist(), numbers[edges[1::2] - 1].tolist(), strict=True))
    first, last = min(
        spans, key=lambda span: max(span[0] - now, now - span[1], 0), default=(None, None)
    )
    return Turn(now, first, last, int(numbers[0]), int(numbers[-1]), turning)


# --- words ---------------------------------------------------------------------------------------


def gerund(action: str) -> str:
    """Return an action as a gerund: ``passing to 3``; unknown verbs in quotation marks."""
    verb, *rest = action.split(" ")
    return " ".join([_GERUNDS[verb], *rest]) if verb in _GERUNDS else f"'{action}'"


@lru_cache(1024)
def often(chance: float) -> str:
    """Return a probability in words: ``one in six``, ``5 in 18``, ``16.4%``."""
    fraction = Fraction(chance).limit_denominator(36)
    over, under = fraction.numerator, fraction.denominator
    if not fraction or abs(fraction - chance) > 1e-9:
        return f"{100 * chance:.3g}%"
    if under >= len(NUMBERS):
        return f"{over} in {under}"
    return f"{NUMBERS[over]} in {NUMBERS[under]}"
