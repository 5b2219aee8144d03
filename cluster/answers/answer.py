"""The answer of a table to one state: `Answer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from luckbase.cluster.store.provenance import Origin
from luckbase.solver import sentences
from luckbase.solver.errors import OptionError
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.sentences import capital, html_table, nearest, percent, shorten, spoken

ActionName = Annotated[str, Field(serialization_alias="action")]


@dataclass(frozen=True)
class Action(Result):
    """An action's name and its payoff to each player."""

    name: ActionName
    value: tuple[float, ...]


def is_sure(least: Any, most: Any) -> Any:
    """True if a probability is the same in all optimal strategies, within these bounds."""
    return most - least < 1e-4


@dataclass(frozen=True)
class Bid(Result):
    """A choice of one player in simultaneous moves."""

    name: ActionName
    chance: float  # its probability in an optimal mixed strategy
    least: float
    most: float
    """Its smallest and largest probability in any optimal mixed strategy."""

    @property
    def span(self) -> str:
        """The range of probabilities in optimal strategies, as text; "" if there is only one."""
        same = is_sure(self.least, self.most)
        return "" if same else f"{percent(self.least)} – {percent(self.most)}"


NAMED = 3
"""Number of actions in a verdict."""
Source = Literal["table", "search", "decisions", "games", "interpolation"]
_SOURCES = {
    "decisions": "the stored decisions",
    "games": "games by the stored decisions",
    "interpolation": "the table",
}


@dataclass(frozen=True)
class Answer(Result):
    """The answer to a query. Payoffs are lists over players in turn order.

    origin: the table.
    to_act: the player who acts, from 1; None if the game is over.
    actions: best first for the player who acts. For simultaneous moves, player 1's actions against
        the other's strategy, most likely first.
    best: the best action. For simultaneous moves, player 1's certain choice, if there is one.
    margin: cost of the second-best action; None without a choice or if unknown.
    toss_up: True if another action is as good within `error`. For simultaneous moves, True if other
        strategies are optimal too.
    error: error bound of each payoff; for simulated games, its standard error.
    strategies: for simultaneous moves, an optimal mixed strategy of each player.
    decision_only: True if there is a choice and the table stores only the best action, without
        payoffs.
    given: fields that were given differently from `state`, for the same state.
    remark: how a state given in words was interpreted, if that is not obvious.
    """

    origin: Flat[Origin]
    state: dict[str, Any]
    to_act: int | None
    value: tuple[float, ...]
    actions: tuple[Action, ...] = ()
    best: str | None = None
    margin: float | None = None
    toss_up: bool = False
    error: float = 0.0
    source: Source = "table"
    strategies: IfAny[tuple[tuple[Bid, ...], ...]] = None
    decision_only: IfAny[bool] = None
    given: PythonOnly[dict[str, Any]] = field(default_factory=dict, compare=False)
    remark: IfAny[str] = None

    def __getitem__(self, action: str) -> tuple[float, ...]:
        """Return the payoffs of an action. For simultaneous moves, of player 1's choice against the
        other's strategy. Raises OptionError for an unknown action.

        >>> t.ask(mine=0, yours=87)["roll"]
        """
        for each in self.actions:
            if each.name == action:
                return each.value
        names = [each.name for each in self.actions]
        hint = nearest(str(action), names) if names else "there is none here"
        raise OptionError(f"unknown action '{shorten(str(action), 30)}'; {hint}")

    @property
    def note(self) -> str:
        """How the state was interpreted, in a line; "" if it is as given."""
        notes = [self.remark] if self.remark else []
        if self.given:
            canonical = sentences.fields({name: self.state.get(name, "") for name in self.given})
            given = sentences.fields(self.given)
            notes.append(f"{given} is the same as {canonical}: both are one state")
        return "; ".join(notes)

    @property
    def board(self) -> str:
        """The name of the board."""
        return self.origin.board

    @property
    def verdict(self) -> str:
        """The best action and the next ones, each with its payoff to the player who decides:
        ``Pass to player 3: 90.2%, play 81.2%``."""
        if self.strategies is not None:
            return "Both choose at once"
        if self.to_act is None:
            return "Nobody chooses here" if self.error else "The game is over"
        if self.best is None:
            return f"Player {self.to_act} is up"
        text, seat = self.origin.payoffs.text, self.to_act - 1
        paid = [(spoken(each.name), text(each.value[seat])) for each in self.actions if each.value]
        if not paid:
            return capital(spoken(self.best))
        first, *others = paid[:NAMED]
        return capital(", ".join([": ".join(first), *map(" ".join, others)]))

    @property
    def standing(self) -> str:
        """The player who decides, and the margin of the best action; "" if the verdict includes
        both."""
        if self.strategies is not None:
            more = "; other strategies are optimal too" if self.toss_up else ""
            return f"An optimal strategy of each{more}"
        if self.to_act is None or self.best is None:
            return ""
        only_one = len(self.actions) == 1 and not self.decision_only
        if only_one and self.source != "interpolation":
            return f"Player {self.to_act} must {spoken(self.best)}"
        better = ""
        if self.toss_up:
            better = "; a toss-up: another action is worth as much"
        elif self.margin is not None:
            better = f"; better by {self.origin.payoffs.change(self.margin)}"
        return f"Player {self.to_act} is up{better}"

    @property
    def details(self) -> tuple[str, str, str]:
        """The state, the error bound, and the table, one line each."""
        each = sentences.within(self.error, "each ") if self.value else "no payoffs are stored"
        if self.source == "games":
            each = f"the largest standard error {self.error:.2g}"
        if self.source == "interpolation":
            each = f"interpolated between states {sentences.within(self.error, 'each ')}"
        source = _SOURCES.get(self.source, f"the {self.source}")
        state = f"{self.board}  {sentences.fields(self.state)}"
        return state, f"{each}, from {source}", f"answered by {self.origin}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return column headings and rows as text: the payoffs of the state and of each action; for
        simultaneous moves, the probabilities of each player's choices."""
        if self.strategies is not None:
            rows = [
                [f"player {i + 1}: {bid.name}", percent(bid.chance), bid.span]
                for i, side in enumerate(self.strategies)
                for bid in side
                if bid.chance > 1e-9 or bid.most > 1e-4
            ]
            return ["", "chance", "in any optimal one"], rows
        payoffs = [("this state", self.value)]
        payoffs += [(action.name, action.value) for action in self.actions]
        heads = ["", *(f"player {i + 1}" for i in range(len(self.value)))]
        text = self.origin.payoffs.text
        return heads, [[name, *map(text, value)] for name, value in payoffs if value]

    def __str__(self) -> str:
        heads, rows = self.table()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in [heads, *rows]
        ]
        lines = [self.verdict, self.standing, self.note, *lines, *self.details]
        return "\n".join(filter(None, lines))

    def _repr_html_(self) -> str:
        heads, rows = self.table()
        best = next((i for i, row in enumerate(rows) if row[0] == self.best), -1)
        verdict = f"<p><b>{escape(self.verdict)}</b></p>"
        table = html_table(heads, rows, [self.standing, self.note], marked=best)
        return f"{verdict}{table}<small>{'<br>'.join(map(escape, self.details))}</small>"


def interpolated(
    nearest_answer: Answer, answers: Sequence[Answer], weights: Sequence[float], between: str
) -> Answer:
    """Return the answer to a position between grid states: interpolated payoffs, and the action of
    the nearest state.

    answers: of the surrounding grid states.
    weights: of these answers.
    between: describes the position in words.
    """

    def mean(payoffs: Sequence[Sequence[float]]) -> tuple[float, ...]:
        return tuple((np.asarray(weights) @ np.asarray(payoffs)).tolist())

    best, seat = nearest_answer.best, (nearest_answer.to_act or 1) - 1
    by_action = [{action.name: action.value for action in each.actions} for each in answers]
    shared = [name for name in by_action[0] if all(name in each for each in by_action)]
    actions = [Action(name, mean([each[name] for each in by_action])) for name in shared]
    actions.sort(key=lambda action: (action.name != best, -action.value[seat]))
    margin = None
    if best in shared and len(actions) > 1:
        margin = actions[0].value[seat] - actions[1].value[seat]
    played, errors = answers[0].source == "games", np.array([each.error for each in answers])
    error = np.linalg.norm(weights * errors) if played else errors.max()
    differ = sorted({each.best for each in answers if each.best and each.best != best})
    remark = (
        f"{between}: payoffs are interpolated; action and reasons are those of the nearest state"
    )
    if differ:
        remark += f"; a neighbor's best action is {', '.join(differ)}"
    return replace(
        nearest_answer, value=mean([each.value for each in answers]), actions=tuple(actions),
        margin=margin, error=float(error), source="games" if played else "interpolation",
        decision_only=None, remark=remark,
    )  # fmt: skip


def otherwise(inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were given differently from the canonical state, ignoring order."""

    def unordered(value: Any) -> Any:
        return sorted(value) if isinstance(value, list) else value

    return {name: v for name, v in inputs.items() if unordered(v) != unordered(state.get(name))}


def often(chance: float) -> str:
    """Return a probability in words: ``one in six``, ``5 in 18``, ``16.4%``."""
    fraction = Fraction(chance).limit_denominator(36)
    over, under = fraction.numerator, fraction.denominator
    if not fraction or abs(fraction - chance) > 1e-9:
        return f"{100 * chance:.3g}%"
    if under >= len(sentences.NUMBERS):
        return f"{over} in {under}"
    return f"{sentences.NUMBERS[over]} in {sentences.NUMBERS[under]}"
