"""The fields of a state, declared once for each game, and how people read and write them.

A `Field` declares the name of a part of a state, how many numbers it has, their bounds, their unit
and their default::

    Field("scores", length=3, high=20_000, unit=250, default=None)
    Field("player", low=1, high=2, default=1)
    set_field("mine", most=13)

`Fields` are all fields of a game, in the order of its state. The same names and defaults apply to
all input and output: ``scores=0,2000,3500`` in a query, a cell or three columns of a batch, a tuple
in Python, three columns of a table.

A state has three forms:

* **words**: field name -> anything that `Field.read` accepts, in people's units;
* **values**: int64 (n, columns) in people's units; a set as bits, with bit k - 1 for number k;
* **numbers**: int64 (n, columns) as the rules read them: (value - low if low is negative) divided
  by the unit. Never negative.

Errors are StateErrors of one sentence: the row (from 1) if there are several, the field, the value
and what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Ints, set_text
from luckbase.solver.sentences import FIELD, listed, many, nearest, pairs, setting, shorten

MAX_VALUE = 10**9 - 1
"""The largest value of a field that declares no other."""
NEAR = 2_000
"""How many names of a field's values are searched for a misspelled one."""
FEW = 12
"""How many names of a field's values an error lists."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,9}")
_PLAIN = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*")
_TAKEN = re.compile(r"key|best|to_act|margin|status|toss_up|payoff(_\d+)?|tier")
"""Names of columns that every table has."""
_BYTES = (bytes, bytearray, memoryview)
_NUMBERS = (int, float, Decimal, np.integer, np.floating)
_NO_NUMBERS = (bool, np.timedelta64)
"""Subtypes of `_NUMBERS` that are not numbers."""


def word(text: str) -> str:
    """Return a text as one word of a state: ``_`` for a space, ``/`` for a new line, in NFC."""
    text = normalize("NFC", text)
    said = "/".join(text.strip("\n").splitlines()).replace(" ", "_")
    return "".join(char if char.isprintable() else "?" for char in said)


class Names:
    """The names of a field's values, from 0: distinct words (`word`)."""

    def __init__(self, names: Sequence[str]) -> None:
        """Raise ValueError for empty or equal names."""
        self.names = tuple(word(str(name)) for name in names)
        self.values = {name: value for value, name in enumerate(self.names)}
        if not all(self.names) or len(self.values) < len(self.names):
            raise ValueError(f"Names: {self.names!r:.80}; expected words, no two the same")

    def value(self, said: str) -> int | None:
        """Return the value of a name, which need not be one word yet; None if it is unknown."""
        return self.values.get(word(said))


@dataclass(frozen=True)
class Field:
    """One field of a state.

    length: the number of numbers; several form a list, for example over players.
    low, high: the least and the greatest value.
    unit: values are multiples of it. The rules read (value - low) / unit if low is negative, and
        value / unit otherwise.
    default: the value of each number if the field is left out; None if it is required.
    blank: a value below `low` for "empty". It is not written, and a list may omit it at its end.
    bits: bits of each number in a key; 0 for as many as `high` needs. If the fields of a game need
        more than 64, each number takes only as much room as it has values (`Fields.strides`).
    is_set: a set of whole numbers from 1; its value is its bits.
    as_list: write a single number as a list of one.
    names: the names of the values, for a field of one number that people write as text.
    help: a plain sentence that explains the field, with its unit.
    sample: a value as a person writes it, valid on the board.
    """

    name: str
    length: int = 1
    low: int = 0
    high: int = MAX_VALUE
    unit: int = 1
    default: int | None = 0
    blank: int | None = None
    bits: int = 0
    is_set: bool = False
    as_list: bool = False
    names: Names | None = None
    help: str = ""
    sample: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for impossible bounds or an unusable name."""
        named = isinstance(self.name, str) and self.name.isidentifier()
        if not named or _TAKEN.fullmatch(self.name):
            raise ValueError(
                f"field {self.name!r}: expected a name of letters, digits and _, none that tables "
                "have a column of (key, best, to_act, margin, status, payoff, tier)"
            )
        sizes = (self.length, self.low, self.high, self.unit)
        if not all(type(size) is int for size in sizes):
            raise ValueError(f"field {self.name}: length, low, high, unit: expected whole numbers")
        names = getattr(self.names, "names", ())
        for wrong, why in (
            (self.length < 1 or self.unit < 1 or self.low > self.high,
             "expected length and unit of at least 1, low of at most high"),
            (not self.is_set and max(-self.low, self.high) > MAX_VALUE,
             f"low, high: expected at most {MAX_VALUE}"),
            (self.is_set and self.length > 1, "expected a field of its own for each set"),
            (self.blank is not None and not 0 <= self.blank <= self.low,
             "blank: expected a value below low, 0 or more"),
            (not isinstance(self.names, Names | None), "names: expected Names([…])"),
            (not isinstance(self.help, str) or not isinstance(self.sample, str),
             "help, sample: expected text"),
            (names and sizes != (1, 0, len(names) - 1, 1),
             f"names: expected high={len(names) - 1}, for so many names"),
        ):  # fmt: skip
            if wrong:
                raise ValueError(f"field {self.name}: {why}")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """A name for each number: the field's, or ``scores_1``, …; players count from 1."""
        if self.length == 1:
            return (self.name,)
        return tuple(f"{self.name}_{i + 1}" for i in range(self.length))

    @property
    def shift(self) -> int:
        """The value whose number is 0."""
        return min(self.low, 0)

    @property
    def width(self) -> int:
        """Bits of each number in a key."""
        return self.bits or ((self.high - self.shift) // self.unit).bit_length()

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number, as the rules read them."""
        low = self.low if self.blank is None else self.blank
        high = (self.high - self.shift) // self.unit
        return (low - self.shift) // self.unit, min(high, (1 << self.width) - 1)

    @property
    def example(self) -> str:
        """The field as a person might write it."""
        if self.names is not None:
            return f"{self.name}={self.names.names[0]}"
        if self.is_set:
            return f"{self.name}=1,2"
        return f"{self.name}={','.join([str(max(self.low, 0))] * self.length)}"

    @property
    def is_text(self) -> bool:
        """Whether people write its value as text, not as numbers that can be compared."""
        return self.is_set or self.names is not None

    def text(self, value: int) -> str:
        """Return the text of a value in a table, for a field that is text."""
        return set_text(value) if self.names is None else self.names.names[value]

    # --- words -> values ---------------------------------------------------------------------

    def read(self, said: object) -> list[int]:
        """Return the values (length) of a field as a person gives it.

        Accepts text, also as bytes in UTF-8; whole numbers of any type, such as 1.0; lists, tuples
        and arrays of these; and sets, for a set field. None and NaN count as empty, like "" and [].
        Raises StateError for anything else.
        """
        if type(said) is str and _PLAIN.fullmatch(said) and not self.is_text:  # fast path
            plain = [*map(int, said.split(","))]
            if len(plain) == self.length:
                return plain
        parts = self._parts(said)
        if self.is_set:
            return [self._bits(parts)]
        if not parts and self.blank is None and self.default is not None:
            return [self.default] * self.length
        short, numbers = self.length - len(parts), list(map(self._number, parts))
        if short < 0 or (short and self.blank is None):
            why = f"is empty; expected {many(self.length, 'value')}"
            if parts:
                why = f"'{_shown(said)}' has {many(len(parts), 'value')}; expected {self.length}"
            raise StateError(f"{self.name}: {why}, as in {self.example}")
        return numbers + [self.blank or 0] * short

    def _parts(self, said: object) -> list[object]:
        if is_gap(said):
            return []
        said = self._text(said)
        if isinstance(said, str) and self.names is not None:
            return [said] if said.strip() else []
        if isinstance(said, str):
            text = said.replace("$", "").strip()
            split = re.split(r"\s*[, ]\s*" if self.is_set else r"\s*,\s*", text)
            return list(split) if text else []
        if isinstance(said, np.ndarray):
            said = list(said) if said.ndim else said[()]
        lists = (list, tuple, range, set, frozenset) if self.is_set else (list, tuple, range)
        if isinstance(said, lists) and not hasattr(said, "n_fields"):  # no time intervals
            return list(said)
        return [said]

    def _text(self, said: object) -> object:
        try:
            return bytes(said).decode() if isinstance(said, _BYTES) else said
        except UnicodeDecodeError:
            raise StateError(f"{self.name}: '{_shown(said)}' is not text in UTF-8") from None

    def _number(self, part: object) -> int:
        number = _whole(self._text(part))
        if self.names is not None:  # names may be numbers that differ from their values
            said = part if isinstance(part, str) else _shown(part if number is None else number)
            number = self.names.value(said)
            if number is None:
                raise StateError(self._unknown(said))
            return number
        if number is None:
            raise StateError(
                f"{self.name}: '{_shown(part)}' is not a whole number of at most 9 digits"
            )
        return number

    def _unknown(self, said: str) -> str:
        assert self.names is not None
        names = self.names.names
        near = get_close_matches(word(said)[:200], names[:NEAR], n=1, cutoff=0.8)
        known = f"one is {names[0]}" if len(names) > FEW else f"expected one of: {', '.join(names)}"
        meant = f"did you mean {near[0]}?" if near else known
        return f"{self.name}: there is no '{shorten(said, 60)}'; {meant}"

    def _bits(self, parts: list[object]) -> int:
        bits, largest = 0, self.high.bit_length()
        for part in parts:
            number = self._number(part)
            if not 1 <= number <= largest:
                raise StateError(f"{self.name}: {number} is not a number from 1 to {largest}")
            if bits >> (number - 1) & 1:
                raise StateError(f"{self.name}: {number} is there twice")
            bits |= 1 << (number - 1)
        return bits

    # --- values ------------------------------------------------------------------------------

    def wrong(self, values: Ints) -> NDArray[np.bool_]:
        """Return a mask of the values (…) that the field does not allow."""
        off: NDArray[np.bool_] = (values < self.low) | (values > self.high)
        if self.unit > 1:
            off |= values % self.unit != 0
        return off if self.blank is None else off & (values != self.blank)

    def why(self, value: int) -> str:
        """Return a sentence about a value that `wrong` marks: the fault and what would be right."""
        if self.is_set:
            return (
                f"{self.name}: {value} is not a set of numbers from 1 to {self.high.bit_length()}"
            )
        if value < self.low:
            return f"{self.name}: {value} is too small; expected at least {self.low}"
        if value > self.high:
            return f"{self.name}: {value} is too large; expected at most {self.high}"
        below = value // self.unit * self.unit
        return (
            f"{self.name}: {value} is not a multiple of {self.unit}; nearest are {below} and "
            f"{below + self.unit}"
        )

    def say(self, values: Sequence[int]) -> int | str | list[int] | None:
        """Return values (length) as JSON: a number, a text or a list; None if all are blank."""
        if self.is_set:
            return members(values[0])
        if self.names is not None:
            return self.names.names[int(values[0])]
        said = [int(value) for value in values]
        while self.blank is not None and said and said[-1] == self.blank:
            said.pop()
        if not said and self.blank is not None:
            return None
        return said[0] if self.length == 1 and not self.as_list else said


def is_gap(said: object) -> bool:
    """Return whether it marks an empty cell of a frame: None or NaN."""
    if isinstance(said, Decimal):
        return said.is_nan()
    return said is None or (isinstance(said, float | np.floating) and bool(np.isnan(said)))


State = str | Mapping[str, Any]
"""A state as a person gives it: fields by name, or text, ``mine=0 yours=87``; a row of a pandas
frame is read like a mapping."""


def is_state(value: object) -> bool:
    """Return whether it is a single state: text, a mapping or a row of a frame."""
    return isinstance(value, str | Mapping) or _is_row(value)


def _is_row(value: object) -> bool:
    return getattr(value, "ndim", 0) == 1 and hasattr(value, "keys")


def said_in(state: State, known: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a state without empty ones; of a row of a frame only the known columns.
    Raises StateError."""
    if type(state) is not dict and not is_state(state):
        raise StateError(
            f"'{_shown(state)}' is not a state; write its fields, as {{'scores': (0, 500, 0)}}, or "
            "as text, 'scores=0,500,0'"
        )
    said: dict[str, Any] = (
        pairs(state.split(), StateError, "", FIELD) if isinstance(state, str) else dict(state)
    )
    if known and _is_row(state):
        said = {name: value for name, value in said.items() if name in known}
    return {
        name: value for name, value in said.items() if type(value) is str or not is_gap(value)
    }  # fmt: skip


def typed(state: State) -> dict[str, str]:
    """Return the fields of a state as text, without those that are None. Raises StateError.

    >>> typed({"scores": (0, 8000, 3000), "lead": 2, "dice": None})
    {'scores': '0,8000,3000', 'lead': '2'}
    """
    return {
        name: listed(sorted(value) if isinstance(value, set | frozenset) else value)
        for name, value in said_in(state).items()
    }


def _whole(part: object) -> int | None:
    """Return the whole number in a text or a number; None unless it is one that an int64 holds."""
    if isinstance(part, str):
        return int(part) if _WHOLE.fullmatch(part) else None
    if not isinstance(part, _NUMBERS) or isinstance(part, _NO_NUMBERS) or is_gap(part):
        return None
    number: Any = part.item() if isinstance(part, np.generic) else part  # float16 would warn
    return int(number) if -(2**63) <= number < 2**63 and number == int(number) else None


def _shown(said: object) -> str:
    try:
        return shorten(str(said), 30)
    except Exception:  # Python refuses to print very long numbers
        return "…"


def set_field(name: str, most: int, default: int | None = None, **more: Any) -> Field:
    """Return a field that is a set of numbers from 1 to `most`, cards or tiles: ``mine=1,2,5``."""
    return Field(name, high=(1 << most) - 1, default=default, is_set=True, **more)


def members(bits: int) -> list[int]:
    """Return the numbers of a set, ascending."""
    return [k + 1 for k in range(int(bits).bit_length()) if int(bits) >> k & 1]


class Refuse:
    """Refuses states that the board does not have.

    Call it with a mask of the wrong states and a function that words the first fault.
    """

    def __init__(self, states: int) -> None:
        self.states = states

    def __call__(self, wrong: NDArray[np.bool_], sentence: Callable[..., str]) -> None:
        """Raise StateError if any state is wrong.

        wrong: bool (n,), or (n, k), for example over players.
        sentence: called with the row, and the column if there is one.
        """
        if wrong.any():
            place = [int(x) for x in np.argwhere(wrong)[0]]
            error = StateError(self.row(place[0]) + sentence(*place))
            error.wrong = np.logical_or.reduce(wrong.reshape(len(wrong), -1), axis=1)
            raise error

    def row(self, x: int) -> str:
        """Return the row to begin a sentence with; "" for a single state."""
        return f"row {x + 1}: " if self.states > 1 else ""


class Fields(Sequence[Field]):
    """The fields of a game's states, in order; options: the names of its board's options."""

    def __init__(
        self, fields: Sequence[Field], game: str = "this game", options: Collection[str] = ()
    ) -> None:
        self._fields, self._game, self._options = tuple(fields), game, options
        owner = [field for field in fields for _ in range(field.length)]
        self.names = tuple(field.name for field in fields)
        self.columns = tuple(column for field in fields for column in field.columns)
        """A name for each number of a state."""
        self._known = frozenset((*self.names, *self.columns))
        largest = np.iinfo(np.int64).max
        exact = sum(field.width for field in owner) > 64
        rooms = [field.bounds[1] + 1 if exact else 1 << field.width for field in owner]
        ones = [1]
        for room in reversed(rooms[1:]):
            ones.append(ones[-1] * room)
        self.most: Ints = np.array([min(room - 1, largest) for room in rooms], np.int64)
        """int64 (columns,): the largest value of each number that a key has room for."""
        self.strides: Ints = np.array(
            [
                [(step + (1 << 63)) % (1 << 64) - (1 << 63) for step in reversed(ones)],
                [-room if exact else field.width for room, field in zip(rooms, owner, strict=True)],
            ],
            np.int64,
        ).reshape(2, -1)
        """int64 (2, columns): what 1 in each number adds to a key, modulo 2**64; and the number's
        bits, or minus its room if that is not a power of two (`solver.search.keys`)."""
        ends = [(low, min(high, largest)) for low, high in (field.bounds for field in owner)]
        self.bounds: Ints = np.ascontiguousarray(np.array(ends, np.int64).reshape(-1, 2).T)
        """int64 (2, columns): the least and the greatest value of each number of a state."""
        self.sets = np.array([field.is_set for field in owner], bool)
        """bool (columns,): whether each number of a state is a set."""
        self._shifts = np.array([field.shift for field in owner])
        self._units = np.array([field.unit for field in owner])
        self._low = np.array([field.low for field in owner])
        self._high = np.array([min(field.high, largest) for field in owner])

    def __getitem__(self, i: Any) -> Any:
        return self._fields[i]

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        """Return one line a field: an example, and its help."""
        width = max((len(field.example) for field in self), default=0)
        return "\n".join(f"{field.example:{width}}  {field.help}".rstrip() for field in self)

    @property
    def example(self) -> str:
        """The required fields as a person might write them."""
        return " ".join(field.example for field in self if field.default is None)

    def read(self, state: State) -> Ints:
        """Return the values (columns,) of a state in words, by fields or by columns.

        Raises StateError if it is not a state, has an unknown name, or lacks a required field.
        """
        words = said_in(state, self._known)
        values: list[int] = []
        for name in words:
            if name not in self._known:
                raise self._unknown(str(name), words)
        for field in self:
            names = self._names_of(field, words)
            said = words[names[0]] if len(names) == 1 else [words[name] for name in names]
            values += field.read(said) if names else [field.default or 0] * field.length
        return np.array(values, np.int64)

    def _names_of(self, field: Field, given: Collection[str], column: str = "") -> Sequence[str]:
        """Return the names by which a field is given: its own, those of its columns, or none.
        column: a word before the name of a missing column of a frame. Raises StateError."""
        inside = [name for name in field.columns if name in given]
        if field.name in given:
            if twice := next((name for name in inside if name != field.name), None):
                raise StateError(f"{field.name} is said twice, by {twice} too; write one of them")
            return (field.name,)
        if len(inside) == field.length or (not inside and field.default is not None):
            return inside
        missing = next(name for name in field.columns if name not in given)
        if column:
            raise StateError(f"{column} {missing} is missing")
        if inside:
            raise StateError(f"{missing} is missing; write {field.example}")
        raise StateError(f"{field.name} is missing; write {self.example}")

    def _unknown(self, name: str, words: Mapping[str, Any]) -> StateError:
        """Return an error for an unknown field, with a field or an option that it may mean."""
        meant = nearest(name, self.names, f"a state of {self._game} has ")
        if not meant.startswith("did you mean"):
            meant = self._by_help(name) or meant
        if name in self._options and not meant.startswith("did you mean"):
            meant = f"it is an option: {setting(name, shorten(str(words[name]), 30))}"
        return StateError(f"unknown field '{shorten(name, 30)}'; {meant}")

    def _by_help(self, name: str) -> str:
        """Return a clause with the fields whose help has a word, as `nearest`; "" for none."""
        word = re.compile(rf"\b{re.escape(name.lower().removesuffix('s'))}s?\b")
        named = [field.name for field in self if len(name) > 2 and word.search(field.help.lower())]
        return f"did you mean {' or '.join(named)}?" if named else ""

    def left_out(self, words: State) -> dict[str, Any]:
        """Return the defaults, as JSON, of the fields that a state in words leaves out."""
        said = said_in(words)
        empty = {name for name, it in said.items() if isinstance(it, str) and not it.strip()}
        return {
            field.name: field.say([field.default] * field.length)
            for field in self
            if field.default is not None and field.blank is None
            if not (said.keys() - (set() if field.is_set else empty)) & {field.name, *field.columns}
        }

    def read_columns(self, cells: Mapping[str, Any], rows: int) -> Ints:
        """Return the values (rows, columns) of a frame.

        cells: name of a field or column -> its cells, an array of whole numbers or a sequence of
            anything that `Field.read` accepts. Other columns are ignored.

        Raises StateError, with the row of a wrong cell; also for a misspelled column.
        """
        if not cells and not rows:
            return np.empty((0, len(self.columns)), np.int64)
        if not any(name in cells for name in (*self.names, *self.columns)):
            expected = ", ".join(self.names)
            if self.columns != self.names:
                expected = f"{', '.join(self.columns[:3])}, … or {expected}"
            raise StateError(
                f"no column is a field of a state: {', '.join(list(cells)[:6]) or 'none'}; "
                f"expected {expected}"
            )
        parts = []
        for field in self:
            names = self._names_of(field, cells, "column")
            if not names:
                self._check_slips(cells, field)
                parts.append(np.full((rows, field.length), field.default))
            for name in names:  # a column of a list is read as a field of its own
                single = Field(name, default=field.default, blank=field.blank)
                parts.append(_cells(field if name == field.name else single, cells[name]))
        return np.ascontiguousarray(np.hstack(parts).astype(np.int64))

    def _check_slips(self, cells: Iterable[str], field: Field) -> None:
        """Raise StateError for a misspelled column, which would give `field` its default."""
        for name in cells:
            meant = nearest(name, dict.fromkeys((field.name, *field.columns)), "")
            if name not in self._known and meant.startswith("did you mean"):
                raise StateError(f"unknown column '{shorten(name, 30)}'; {meant}")

    def numbers(self, values: Ints, refuse: Refuse | None = None) -> Ints:
        """Return the numbers of values (n, columns). Raises StateError for a value outside its
        field's bounds or off its unit."""
        values = np.array(values, np.int64).reshape(-1, len(self.columns))
        refuse, at = refuse or Refuse(len(values)), 0
        fine = (values >= self._low) & (values <= self._high) & (values % self._units == 0)
        for field in () if fine.all() else self:
            own = values[:, at : at + field.length]
            refuse(field.wrong(own), lambda x, i, f=field, own=own: f.why(int(own[x, i])))
            at += field.length
        return np.ascontiguousarray((values - self._shifts) // self._units)

    def values(self, numbers: Ints) -> Ints:
        """Return the values (n, columns) of numbers (n, columns)."""
        return np.asarray(numbers) * self._units + self._shifts

    def describe(self, numbers: Ints) -> dict[str, Any]:
        """Return the state of numbers (columns,) in words, as JSON; blank fields are left out."""
        return self.describe_all(np.asarray(numbers).reshape(1, -1))[0]

    def describe_all(self, numbers: Ints) -> list[dict[str, Any]]:
        """Return `describe` of each row of numbers (n, columns)."""
        values, at = self.values(numbers), 0
        columns: list[Any] = []
        for field in self:
            part = values[:, at : (at := at + field.length)]
            if field.blank is not None or field.is_text:
                columns.append(map(field.say, part.tolist()))
            else:  # plain numbers
                single = field.length == 1 and not field.as_list
                columns.append((part[:, 0] if single else part).tolist())
        return [
            {name: value for name, value in zip(self.names, row, strict=True) if value is not None}
            for row in zip(*columns, strict=True)
        ]


def _cells(field: Field, cells: Any) -> Ints:
    """Return the values (rows, length) of the cells of a field."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iu":
        if field.length == 1 and not field.is_text and cells.dtype != np.uint64:  # may be 2**64 - 1
            return cells.astype(np.int64).reshape(-1, 1)
        cells = cells.tolist()
    texts: dict[str, list[int]] = {}  # they repeat
    rows = []
    for x, said in enumerate(cells):
        try:
            values = texts.get(said) if type(said) is str else None
            values = field.read(said) if values is None else values
        except StateError as error:
            raise StateError(f"row {x + 1}: {error}") from None
        if type(said) is str:
            texts[said] = values
        rows.append(values)
    return np.array(rows, np.int64).reshape(-1, field.length)
