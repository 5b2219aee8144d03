"""What a request says, read and checked; a sentence where it is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.sentences import nearest, shorten

Pairs = Sequence[tuple[str, str]]
"""The parameters of an address, in their order."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
WORD_LENGTH = 400
"""Letters that a parameter may have; any state is shorter."""


class Asked:
    """The parameters of a request. `take` those that a view knows; the rest are fields of a state,
    or refused."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.left: dict[str, str] = {}
        for name, value in pairs:
            if name in self.left:
                raise OptionError(f"{shorten(name, 30)}: is given twice")
            if len(value) > WORD_LENGTH:
                raise OptionError(f"{shorten(name, 30)}: has more than {WORD_LENGTH} letters")
            self.left[name] = value

    def take(self, name: str) -> str | None:
        """The value of a parameter, which is taken out; None where it is not there."""
        return self.left.pop(name, None)

    def need(self, name: str, example: str) -> str:
        """The same. Raises OptionError where it is not there."""
        found = self.take(name)
        if not found:
            raise OptionError(f"{name}: is missing; write {name}={example}")
        return found

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number from low to high. Raises OptionError."""
        text = self.take(name)
        return default if text is None else whole(name, text, low, high)

    def truth(self, name: str, default: bool = False) -> bool:
        """Whether a parameter says 1 or true. Raises OptionError."""
        text = self.take(name)
        if text is None:
            return default
        if text not in ("0", "1", "false", "true"):
            raise OptionError(f"{name}: '{shorten(text, 30)}' is neither 1 nor 0")
        return text in ("1", "true")

    def state(self) -> dict[str, str]:
        """What is left: the fields of a state in words."""
        left, self.left = self.left, {}
        return left

    def nothing_else(self, known: Sequence[str]) -> None:
        """Raises OptionError for what is left."""
        for name in self.left:
            raise OptionError(f"unknown parameter '{shorten(name, 30)}'; {nearest(name, known)}")


def whole(name: str, text: object, low: int, high: int) -> int:
    """A whole number from low to high. Raises OptionError."""
    said = str(text)
    if isinstance(text, bool) or not _WHOLE.fullmatch(said) or not low <= int(said) <= high:
        raise OptionError(
            f"{name}: '{shorten(said, 30)}' is not a whole number from {low} to {high}"
        )
    return int(said)


def state_in(text: object) -> dict[str, str]:
    """The fields of an address, ``scores=0,500,0&earned=1,0,0``, or of a mapping. Raises
    StateError."""
    if isinstance(text, Mapping):
        return {str(name): _plain(name, value) for name, value in text.items() if value is not None}
    found: dict[str, str] = {}
    for word in re.split(r"[&\s]+", str(text).strip().removeprefix("?")):
        name, equals, value = word.partition("=")
        if not word:
            continue
        if not equals:
            raise StateError(f"'{shorten(word, 30)}' is not FIELD=VALUE, as in turn=0")
        if name in found:
            raise StateError(f"{shorten(name, 30)} is given twice")
        found[name] = value.replace("%2C", ",")
    return found


def _plain(name: object, value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    if not isinstance(value, str | int):
        raise StateError(f"{name}: {shorten(str(value), 30)} is neither a number nor text")
    return str(value)
