"""Why an action is best, in words: the effect of chance, the payoff of a sure action, and
thresholds.

The numbers come from the moves at the state (`cluster.answers.moves`) and from a limited lookup
along a field that the game declares, so every sentence is supported by the table. Changes are
relative to the payoff of the state for the player who decides. Changes that the table cannot
distinguish from 0 are 0.

>>> with luckbase.open("boards/pig/tiny.toml") as table:
...     print(*table.why({"mine": 0, "yours": 10, "turn": 4}), sep="\\n")
Rolling: a 1 (the turn is lost), one in six, costs 36 points; everything else gains 3.4 to 11
points. Holding: player 1 wins 23.8%, 33 points less than by rolling. Holding is best nowhere from 1
point to 19 points in this turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from luckbase.cluster.answers.answer import Answer, often
from luckbase.cluster.answers.lookup import Lookup
from luckbase.cluster.answers.moves import Move, Moves, Outcome
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import Groups, TurningPoint
from luckbase.solver.game.rules import DECISION
from luckbase.solver.search.expand import who_acts
from luckbase.solver.sentences import Payoffs, capital, noun, spoken

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


def why(table: Lookup, at: Moves) -> list[str]:
    """Return the reasons for the best action: claims about it, the next best and the threshold."""
    answer = at.answer
    if answer.to_act is None:
        chance = () if answer.strategies is not None else at.outcomes
        return _luck(table, chance, None, 0, answer.value, 0.0)
    claims = [claim for move in at.moves[:2] for claim in _of_action(table, at, move)]
    if len(at.moves) > 1 and (turn := _turn(table, at)):
        claims.append(turn)
    return claims


def reason(table: Lookup, at: Moves) -> str:
    """Return why the best action beats the next, as one sentence: the cost and probability of the
    largest loss; "" without a choice.

    >>> reason(table, table.moves({"mine": 0, "yours": 10, "turn": 4}))
    'a 1 (the turn is lost), one in six, costs 36 points; holding gives away 33 points'
    """
    answer = at.answer
    if answer.decision_only:  # without payoffs, only the threshold is known
        return _turn(table, at).rstrip(".")
    if answer.to_act is None or len(at.moves) < 2:
        return ""
    best, second = at.moves[:2]
    clause = f"{gerund(second.action.name)} is as good"
    if second.cost:
        clause = f"{gerund(second.action.name)} gives away {table.game.payoffs.change(second.cost)}"
    for move in (best, second):
        if len(move.outcomes) > 1:
            losses, _ = _effects(table, move.outcomes, answer.to_act - 1, answer.value)
            if losses and move is best:
                return f"{losses[0]}; {clause}"
            return f"{clause} on average: {losses[0]}" if losses else clause
    return clause


def _of_action(table: Lookup, at: Moves, move: Move) -> list[str]:
    answer, cost = at.answer, move.cost or 0.0
    assert answer.to_act is not None
    actor = answer.to_act - 1
    if len(move.outcomes) != 1:
        return _luck(table, move.outcomes, move.action.name, actor, answer.value, cost)
    if len(at.moves) < 2 or move.outcomes[0].value is None:
        return []
    return [_sure(table.game, answer, move, actor, cost)]


# --- the effect of chance ------------------------------------------------------------------------


def _luck(
    table: Lookup, outcomes: Sequence[Outcome], action: str | None, actor: int,
    value: Sequence[float], cost: float,
) -> list[str]:  # fmt: skip
    """Return the sentence for the outcomes of an action, or of chance alone (None); empty if
    nothing is known to change. cost: average cost of the action; 0 for the best."""
    losses, rest = _effects(table, outcomes, actor, value)
    parts = [*losses, *rest]
    if not parts:
        return []
    if cost:
        parts.append(f"on average {table.game.payoffs.change(cost)} less")
    head = f"for player {actor + 1}" if action is None else gerund(action)
    return [f"{capital(head)}: {'; '.join(parts)}."]


def _effects(
    table: Lookup, outcomes: Sequence[Outcome], actor: int, value: Sequence[float]
) -> tuple[list[str], list[str]]:
    """Return clauses for the changes from `value` by outcomes: the most important loss and all
    other losses together; all outcomes that cost nothing. Both are empty if a payoff is unknown or
    nothing changes."""
    changes = [
        each.value[actor] + each.reward[actor] - value[actor]
        for each in outcomes
        if value and each.value is not None
    ]
    changes = [0.0 if abs(change) <= table.tolerance else change for change in changes]
    if len(changes) < len(outcomes) or not any(changes):
        return [], []
    weights = [each.chance * change for each, change in zip(outcomes, changes, strict=True)]
    losing = sorted((k for k, x in enumerate(changes) if x < 0), key=weights.__getitem__)
    # A loss of at least a third of the total is named; the others are summarized.
    first = 1 if losing and weights[losing[0]] <= sum(weights[k] for k in losing) / 3 else 0
    losses, payoffs = list[str](), table.game.payoffs
    for at in filter(None, (losing[:first], losing[first:])):
        who = f"{len(at)} {'other ' * bool(losses)}outcomes"
        who = noun(outcomes[at[0]].name) if len(at) == 1 else who
        subject = f"{who}, {often(sum(outcomes[k].chance for k in at))},"
        losses.append(_clause(payoffs, subject, [changes[k] for k in at], "s" * (len(at) == 1)))
    rest = [change for change in changes if change >= 0]
    others = "everything else" if losses else "every outcome"
    return losses, [_clause(payoffs, others, rest, "s")] if rest else []


def _clause(payoffs: Payoffs, subject: str, changes: Sequence[float], ending: str) -> str:
    """Return a clause for changes of the same sign: ``everything else gains 0.8 to 17 points``.
    ending: of the verb."""
    low, high = min(changes), max(changes)
    if low == high == 0:
        return f"{subject} change{ending} nothing"
    if high > 0:
        return f"{subject} gain{ending} {payoffs.span(low, high)}"
    return f"{subject} cost{ending} {payoffs.span(-high, -low)}"


# --- a sure action -------------------------------------------------------------------------------


def _sure(game: Game, answer: Answer, move: Move, actor: int, cost: float) -> str:
    """Return the sentence for an action that leads to one state: what happens, if it has a name;
    the payoff of another player who acts next; the payoff of the player who decides. cost: 0 for
    the best action."""
    (then,) = move.outcomes
    assert then.value is not None
    payoffs, brings = game.payoffs, _brings(game, answer.state, then)
    parts = [brings] if brings else []
    who, own = f"player {then.actor + 1}", f"player {actor + 1}"
    payoff = payoffs.of(own, move.action.value[actor])
    if game.players > 2 and then.actor not in (-1, actor):
        wins = payoffs.of(who, then.value[then.actor] + then.reward[then.actor])
        if brings and brings.startswith(who):
            parts = [f"{brings} and {wins.removeprefix(who).strip()}"]
        else:
            parts.append(wins if wins.startswith(who) else f"{who}'s {wins}")
        payoff = payoff if payoff.startswith(own) else f"{own}'s {payoff}"
    if not move.best and answer.best is not None:
        less = f"{payoffs.change(cost)} less than" if cost else "as much as"
        payoff += f", {less} by {gerund(answer.best)}"
    return f"{capital(gerund(move.action.name))}: {'; '.join([*parts, payoff])}."


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


def _turn(table: Lookup, at: Moves) -> str:
    """Return the sentence for the threshold of the decision at a state: the best actions on the
    `_line` through it, as far as the same player has a stored choice there without gaps. Return ""
    if one player does not decide, or the best action is unknown."""
    game, answer = table.game, at.answer
    groups, actor = game.get(Groups), (answer.to_act or 0) - 1
    line = None if answer.best is None else _line(game, at.numbers, actor)
    if line is None or groups is None or groups.turning is None:
        return ""
    (states, column), turning = line, groups.turning
    if not (answer.decision_only or any(turning.takes(move.action.name) for move in at.moves)):
        return ""
    best = table.stored_best(np.ascontiguousarray(states))
    # A user's game need not accept states that the table does not hold.
    stored = np.flatnonzero([name is not None for name in best])
    kinds, actors = who_acts(game, states[stored])
    kept = stored[(kinds == DECISION) & (actors == actor)]
    runs = np.split(kept, np.flatnonzero(np.diff(states[kept, column]) > 1) + 1)
    here = at.numbers[column]
    run = next((run for run in runs if (states[run, column] == here).any()), kept[:0])
    if len(run) < 2:
        return ""
    numbers = turning.number(np.concatenate([states[run], at.numbers[None]]), actor)
    numbers, now = numbers[:-1], int(numbers[-1])
    takes = np.array([0, *(turning.takes(str(best[k])) for k in run.tolist()), 0], np.int8)
    edges = np.flatnonzero(takes[1:] != takes[:-1])
    spans = list(zip(numbers[edges[::2]].tolist(), numbers[edges[1::2] - 1].tolist(), strict=True))
    low, high = int(numbers[0]), int(numbers[-1])
    return _turning_text(turning, now, spans, low, high)


def _turning_text(
    turning: TurningPoint, here: int, spans: Sequence[tuple[int, int]], low: int, high: int
) -> str:
    """Return the sentence for a threshold.

    here: the number at the state.
    spans: the ranges of numbers at which `turning.doing` is best; the nearest is named.
    low, high: the range of numbers with a choice.
    """
    say, does, at = turning.say, capital(turning.doing), turning.at
    whole = f"from {say(low)} to {say(high)}"
    if not spans:
        return f"{does} is best nowhere {whole}{at}."
    first, last = min(spans, key=lambda span: max(span[0] - here, here - span[1], 0))
    if (first, last) == (low, high):
        return f"{does} is best everywhere {whole}{at}."
    if first == low:
        span = f"up to {say(last)}"
    elif last == high:
        span = f"from {say(first)}"
    elif first == last:
        span = f"only at {say(first)}"
    else:
        span = f"from {say(first)} to {say(last)}"
    return f"{does} is best {span}{at}; here it is {say(here)}."


# --- words ---------------------------------------------------------------------------------------


def gerund(action: str) -> str:
    """Return an action as a gerund: ``passing to player 3``; unknown verbs in quotation marks."""
    verb, *rest = spoken(action).split(" ")
    return " ".join([_GERUNDS[verb], *rest]) if verb in _GERUNDS else f"'{action}'"


def named(text: str, names: Sequence[str]) -> str:
    """Replace player numbers with names in a text: ``pass to Michael``."""

    def name(match: re.Match[str]) -> str:
        index = int(match[1] or match[2]) - 1
        return names[index] if 0 <= index < len(names) else match[0]

    return re.sub(r"\b[Pp]layer (\d+)\b|(?<=\bto )(\d+)\b", name, text)
