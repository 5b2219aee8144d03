"""The columns of actions, and conditions on columns.

The payoffs of every action are columns, the same in exports, batches and frames
(docs/how-to/store.md lists them, and the syntax of conditions). They are columns rather than a
list in each row, because users compare actions with each other, and CSV has no lists. They are in
the order of the game's actions; if the game lists none, numbers come before letters.

Row groups that cannot match a condition are skipped (`Where.may_hold`), by the constants of their
file and the minimum and maximum of their columns.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from operator import and_, eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np
import pyarrow as pa

from luckbase.cluster.answers.actions import EveryAction
from luckbase.cluster.store.format import nullable
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints, set_text
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import nearest

DECISION_COLUMNS = {
    "to_act": pa.int8(), "best": pa.string(), "margin": pa.float64(), "toss_up": pa.bool_(),
}  # fmt: skip
"""Columns that describe a decision, in addition to its actions."""
MAX_COLUMNS = 2_000
"""Maximum number of columns of actions: more would be unreadable."""


@dataclass(frozen=True)
class ActionNames:
    """The names of actions in some states, and of choices in simultaneous moves."""

    game: Game
    actions: tuple[str, ...]
    choices: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> list[str]:
        """The names of all columns of actions. Raises OptionError if there are too many."""
        pairs = [(name, "payoff") for name in self.actions]
        pairs += [(name, kind) for name in self.choices for kind in ("chance", "payoff")]
        players = range(1, self.game.players + 1)
        candidates = (f"{self.words[name]}_{kind}_{i}" for name, kind in pairs for i in players)
        names = list(dict.fromkeys(candidates))
        if len(names) > MAX_COLUMNS:
            raise OptionError(
                f"actions: {len(self.actions) + len(self.choices):,} of them make {len(names):,} "
                f"columns; expected at most {MAX_COLUMNS:,}; take fewer states, or leave the "
                "actions out"
            )
        return names

    @cached_property
    def words(self) -> dict[str, str]:
        """The part of a column's name for each action and choice; all are distinct."""
        words: dict[str, str] = {}
        for name in dict.fromkeys([*self.actions, *self.choices]):
            word, number = word_of(name), 1
            while word in words.values():
                number += 1
                word = f"{word_of(name)}_{number}th"
            words[name] = word
        return words

    def arrays_of(
        self, actions: EveryAction, only: Collection[str] | None = None
    ) -> dict[str, pa.Array]:
        """Return `DECISION_COLUMNS` and the columns of actions for n states; or `only` these."""
        n, names = len(actions), [*DECISION_COLUMNS, *self.columns]
        names = [name for name in names if only is None or name in only]
        arrays = dict.fromkeys(names, nullable(np.full(n, np.nan)))
        decisions: dict[str, Any] = {
            "to_act": lambda: pa.array(actions.to_act.astype(np.int8)),
            "best": lambda: pa.array(actions.best_names(), pa.string()),
            "margin": lambda: nullable(actions.margins),
            "toss_up": lambda: pa.array(actions.ties),
        }
        arrays |= {name: make() for name, make in decisions.items() if name in arrays}
        columns = dict[str, Floats]()  # an action and a choice of the same name share columns
        for name, owners, values in self._payoffs(actions):
            if name in arrays:
                columns.setdefault(name, np.full(n, np.nan))[owners] = values
        return arrays | {name: nullable(column) for name, column in columns.items()}

    def _payoffs(self, actions: EveryAction) -> Iterator[tuple[str, Ints, Floats]]:
        """Yield (column, states (k,) that have it, values (k,)) for all actions. A choice has a
        payoff of its player only."""
        owners = np.repeat(np.arange(len(actions)), np.diff(actions.first))
        order = np.argsort(actions.named, kind="stable")
        ends = np.searchsorted(actions.named[order], np.arange(len(actions.names) + 1))
        for name, (first, last) in zip(actions.names, pairwise(ends.tolist()), strict=True):
            if name not in self.words:  # its columns were not requested
                continue
            rows, word = order[first:last], self.words[name]
            choosers = actions.choosers[rows]
            for i in range(self.game.players):
                own, chosen = rows[(choosers == i) | (choosers < 0)], rows[choosers == i]
                yield f"{word}_payoff_{i + 1}", owners[own], actions.q[own, i]
                yield f"{word}_chance_{i + 1}", owners[chosen], actions.mixed[chosen, 0]


def word_of(name: str) -> str:
    """Return an action's name as part of a column's name: ``pass to 3`` is ``pass_to_3``."""
    word = re.sub(r"\W+", "_", name.lower()).strip("_")
    return word if word and not word[0].isdigit() else f"action_{word}".rstrip("_")


def names_of(game: Game, rows: EveryAction) -> ActionNames:
    """Return the names of the actions in n states."""
    alone = rows.choosers < 0
    actions, choices = (
        in_order(game, [rows.names[code] for code in np.unique(rows.named[at]).tolist()])
        for at in (alone, ~alone)
    )
    return ActionNames(game, actions, choices)


def listed_actions(game: Game) -> tuple[str, ...]:
    """Return all actions of a game in the order of its rules; empty if it does not list them."""
    if not callable(game.rules.actions):
        return tuple(game.rules.actions)
    layout = game.get(FullTable)
    return () if layout is None else tuple(layout.best_names)


def in_order(game: Game, names: Iterable[str]) -> tuple[str, ...]:
    """Sort the names of actions as their columns are ordered."""
    places = {name: k for k, name in enumerate(listed_actions(game))}
    return tuple(sorted(names, key=lambda name: (places.get(name, len(places)), _natural(name))))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that orders numbers by size."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


OPS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_WORD = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)\s*(==|!=|<=|>=|=|<|>)\s*(.*)", re.DOTALL)

Span = tuple[Any, Any]
"""Minimum and maximum."""


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a value or another column."""

    column: str
    op: str
    value: Any
    kind: Any = None
    """The column's type, if it is an integer column; with `other`, both columns are cast to it."""
    other: str | None = None  # the column to compare with

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,) if self.other is None else (self.column, self.other)

    def expression(self) -> Any:
        import pyarrow.compute as pc

        field, value = pc.field(self.column), pa.scalar(self.value, self.kind)
        if self.other is not None:
            field, value = (pc.field(name).cast(self.kind, safe=False) for name in self.columns)
        return OPS[self.op](field, value)

    def may_hold(self, span: Span, others: Span | None = None) -> bool:
        """True if a value in `span` can satisfy the condition. others: span of the other column."""
        (low, high), (least, most) = span, others or (self.value, self.value)
        if isinstance(low, str) != isinstance(least, str):
            return True
        return bool({
            "==": low <= most and least <= high, "!=": not low == high == least == most,
            "<": low < most, "<=": low <= most, ">": high > least, ">=": high >= least,
        }[self.op])  # fmt: skip


@dataclass(frozen=True)
class Where:
    """Conditions that must all hold."""

    conditions: tuple[Condition, ...]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for each in self.conditions for name in each.columns))

    def only(self, columns: Collection[str]) -> Where:
        """Return the conditions that use only these columns."""
        return Where(tuple(each for each in self.conditions if {*each.columns} <= {*columns}))

    def without(self, others: Where) -> Where:
        return Where(tuple(each for each in self.conditions if each not in others.conditions))

    def expression(self) -> Any:
        """Return the conditions as a pyarrow expression; None if there are none."""
        if not self.conditions:
            return None
        return reduce(and_, (each.expression() for each in self.conditions))

    def may_hold(self, spans: Mapping[str, Span]) -> bool:
        """True if a row can match whose columns are within these spans, as far as known."""
        checks = (c for c in self.conditions if {*c.columns} <= {*spans})
        return all(c.may_hold(spans[c.column], spans.get(c.other or "")) for c in checks)


def parse_where(
    game: Game, text: str | Sequence[str], schema: pa.Schema, lenient: bool = False
) -> Where:
    """Parse conditions for a table with these columns. lenient: ignore conditions on other columns.
    Raises OptionError."""
    conditions: list[Condition] = []
    words = _words([text] if isinstance(text, str) else text)
    for word in words:
        match = _WORD.fullmatch(word)
        if match is None:
            raise OptionError(
                f"where: '{word[:40]}' is not a condition; write COLUMN OP VALUE, as scores_1>=8000"
            )
        name, op, value = match[1], match[2].replace("==", "="), match[3].strip()
        try:
            conditions += _conditions(game, name, op, value, schema)
        except OptionError:
            if not lenient:
                raise
    if not words:
        raise OptionError("where: is empty; write COLUMN OP VALUE, as scores_1>=8000")
    return Where(tuple(conditions))


def _words(texts: Sequence[str]) -> list[str]:
    """Split texts into conditions at spaces outside quotes. A word that is not a condition belongs
    to the previous value (``best=pass to 3``). Conditions may be joined by ``and``."""
    words: list[str] = []
    for text in texts:
        try:
            split = shlex.split(text)
        except ValueError as error:
            raise OptionError(f"where: '{text[:40]}': {error}") from None
        for word, after in zip(split, [*split, ""][1:], strict=True):
            if words and word.lower() == "and" and _WORD.fullmatch(after):
                continue
            if words and not _WORD.fullmatch(word):
                words[-1] += f" {word}"
            else:
                words.append(word.strip())
    return words


def _conditions(game: Game, name: str, op: str, value: str, schema: pa.Schema) -> list[Condition]:
    lengths = {field.name: field.length for field in game.fields}
    if any(field.is_set for field in game.fields if field.name == name):
        if op not in ("=", "!="):
            raise OptionError(f"where: {name} is a set; compare it with = or !=")
        return [Condition(name, {"=": "=="}.get(op, op), _set(name, value))]
    if name not in schema.names and lengths.get(name, 1) > 1:
        values = value.split(",")
        if op != "=" or len(values) != lengths[name]:
            raise OptionError(
                f"where: {name} has {lengths[name]} numbers; write {name}=0,…, or one of them as "
                f"{name}_1>=0"
            )
        return [
            _integer_condition(
                f"{name}_{i + 1}", "==", _number(f"{name}_{i + 1}", x.strip()), pa.int32()
            )
            for i, x in enumerate(values)
        ]
    if name not in schema.names:
        raise OptionError(f"where: unknown column '{name}'; {nearest(name, list(schema.names))}")
    kind, op = schema.field(name).type, "==" if op == "=" else op
    if pa.types.is_boolean(kind):
        return [Condition(name, op, _yes_or_no(name, op, value))]
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        return [Condition(name, op, _text(game, name, op, value))]
    if value in schema.names and _is_number(schema.field(value).type):
        same = schema.field(value).type == kind
        return [Condition(name, op, None, kind if same else pa.float64(), value)]
    number = _number(name, value)
    return [_integer_condition(name, op, number, kind) if pa.types.is_integer(kind) else
            Condition(name, op, float(number))]  # fmt: skip


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _integer_condition(name: str, op: str, value: int | float, kind: Any) -> Condition:
    """Return a condition with a value of an integer column's type: ``spins<2.5`` is
    ``spins<=2``."""
    least = 0 if pa.types.is_unsigned_integer(kind) else -(1 << (kind.bit_width - 1))
    most = least + (1 << kind.bit_width) - 1
    below = math.floor(value)
    if least <= value <= most and below == value:
        return Condition(name, op, below, kind)
    if op in ("<", "<="):
        op, value = "<=", min(below, most)
    elif op in (">", ">="):
        op, value = ">=", max(below + 1, least)
    if op in ("<=", ">=") and least <= value <= most:
        return Condition(name, op, int(value), kind)
    return Condition(name, ">=" if op == "!=" else "<", least, kind)  # always true or always false


def _yes_or_no(name: str, op: str, value: str) -> bool:
    if op not in ("==", "!=") or value.lower() not in ("true", "false"):
        raise OptionError(f"where: {name} is true or false; write {name}=true or {name}=false")
    return value.lower() == "true"


def _text(game: Game, name: str, op: str, value: str) -> str:
    """Return a text as the table stores it; for a field, one of its names."""
    if op not in ("==", "!="):
        raise OptionError(f"where: {name} is a text; compare it with = or !=")
    named = [field for field in game.fields if field.name == name and value]
    try:
        return named[0].text(*named[0].read(value)) if named else value
    except StateError as error:
        raise OptionError(f"where: {error}") from None


def _set(name: str, value: str) -> str:
    """Return a set as the table stores it: ``1 2 5``."""
    words = [word for word in re.split(r"[ ,]+", value) if word]
    if not all(re.fullmatch(r"[1-9][0-9]?", word) and int(word) <= 62 for word in words):
        raise OptionError(f"where: {name}: '{value[:30]}' is not a set of numbers from 1")
    return set_text(sum(1 << (int(word) - 1) for word in set(words)))


def _number(name: str, value: str) -> int | float:
    for kind in (int, float):
        try:
            number: int | float = kind(value)
        except ValueError:
            continue
        if number == number and abs(number) < 2**63:
            return number
    raise OptionError(f"where: {name}: '{value[:30]}' is not a number or a column of numbers")
