"""The objects of a ledger: who may add one, and which of them count.

An **entry** is ``ledger/<10 digits>``, counted from 1: sealed lines, the first of which says what
it is. It is put where there is none, and never changes::

    fence   a driver begins here: nobody who began before it can add anything any more
    lines   what one commit adds, all of it or nothing
    all     everything that counts here: what has a smaller number does not count any more

A driver adds the number after its last, no other, so an earlier one runs into the fence of a later
one, and stops. Safety needs nothing else: no lock, no lease, no clock. What it does need:

* Fences are never deleted. A driver that was suspended for a week tries the number after its last,
  and that must be taken.
* A compaction deletes smaller numbers than its own: what another driver has added after it counts.
* Names that a driver deletes are of its own past. It deletes a file that the ledger named once an
  entry of its own has taken it out; another only where it has listed it, and then found that
  nobody has begun (`check`). And whoever begins while an earlier driver may yet live puts all files
  under names of its own (`mark`): so no delete that comes late, of whatever driver, hits what
  counts.
* A driver that has made its fence lists again. A compaction may have made a hole, between its first
  list and its fence, into which the fence fell, where it stops nobody: then it begins again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from luckbase.cluster.table.storage import Storage, in_threads
from luckbase.solver.errors import CorruptTableError, FencedError

LINES = "ledger/"
FENCE, ADDS, ALL = "fence", "lines", "all"
CHECK = 32
_SEALED = re.compile(r'(?s)(.*),\s*"check":\s*"([0-9a-f]{32})"\s*\}\s*')
_DIGITS, _TRIES, _GAP_TRIES, _AT_ONCE = 10, 50, 3, 16


@dataclass(frozen=True)
class Entry:
    """An entry that counts. lines: without their line feeds. damage: why not all of it is as it was
    written, "" where it is."""

    number: int
    kind: str
    lines: list[str]
    holder: str = ""
    damage: str = ""

    @property
    def name(self) -> str:
        """Its name in the store."""
        return entry_name(self.number)


def is_entry(name: str) -> bool:
    """Whether an object is an entry, by its name."""
    number = name.removeprefix(LINES)
    return len(number) == _DIGITS and number.isascii() and number.isdigit()


def entry_name(number: int) -> str:
    """The name of an entry."""
    return f"{LINES}{number:0{_DIGITS}d}"


class Entries:
    """The entries of one table. Whoever adds begins before; who reads only, does not."""

    def __init__(self, storage: Storage, identity: str) -> None:
        """identity: of the table, by which lines are sealed."""
        self.storage, self.identity = storage, identity
        self.number = 0
        """Of the last one that is this driver's; 0 before it begins."""
        self.mark = ""
        """What the names of this driver's files have that no other driver's have."""
        self.compacted: str | None = None
        """The text of the entry that says all, where only fences came after it."""
        self._compaction = 0
        self._nonce = os.urandom(8).hex()
        self._kinds: dict[int, str] = {}

    # --- adding --------------------------------------------------------------------------------

    def begin(self, holder: str, lapsed: bool = False) -> None:
        """Make a fence, which names the holder: from here on no earlier driver adds anything.
        lapsed: an earlier driver may yet live, and delete what it wanted to delete."""
        for _ in range(_TRIES):
            number = max(self._numbers(), default=0) + 1
            if self._put(number, FENCE, "", holder) and max(self._numbers()) == number:
                self.number, self.mark = number, f".fence-{number}" if lapsed else ""
                return
        raise FencedError("other solves of this table begin all the time; try again")

    def add(self, text: str, kind: str = ADDS) -> None:
        """Add sealed lines, each with its line feed, in one entry. Raises FencedError where another
        driver has begun."""
        assert self.number, "a driver begins before it adds"
        number = self.number + 1
        if not self._put(number, kind, text):
            raise self._fenced()
        self.number, self.compacted = number, None

    def check(self) -> None:
        """Raises FencedError where another driver has begun."""
        if max(self._numbers()) > self.number:
            raise self._fenced()

    def _fenced(self) -> FencedError:
        by, name = "", entry_name(self.number + 1)
        with suppress(FileNotFoundError):
            by = self._entry(self.number + 1, self.storage.read(name)).holder
        return FencedError(
            f"another solve of this table has begun{by and f': {by}'}; this one stops, and what it "
            "has committed stays"
        )

    def compact(self, text: str) -> None:
        """Say in one entry all lines that count, where none says so yet; and delete what does not
        count any more."""
        if text != self.compacted:
            self.add(text, ALL)
            self.compacted, self._compaction = text, self.number
        for number in self._superseded():
            self.storage.delete(entry_name(number))

    def _superseded(self) -> list[int]:
        return [n for n in self._numbers() if n < self._compaction and self._kind(n) != FENCE]

    def _kind(self, number: int) -> str:
        """The kind of an entry; of one that can not be read, of which it may be: a fence."""
        if number not in self._kinds:
            try:
                self._entry(number, self.storage.read(entry_name(number)))
            except FileNotFoundError:
                return ADDS
        return self._kinds[number]

    def _put(self, number: int, kind: str, text: str, holder: str = "") -> bool:
        head = {"kind": kind, "number": number, "nonce": self._nonce, "digest": digest(text)}
        head |= {"holder": holder} if holder else {}
        content = (seal(self.identity, head) + text).encode()
        done = self.storage.put_if_absent(entry_name(number), content)
        if done:
            self._kinds[number] = kind
        return done

    # --- reading -------------------------------------------------------------------------------

    def read(self) -> list[Entry]:
        """The entries that count, ascending: the last of all lines, and what came after it.

        A number that is missing among them is an entry that has only damage.
        """
        for attempt in range(_TRIES):
            numbers = self._numbers()
            entries, end = list[Entry](), (numbers or [0])[-1]
            try:
                for entry in self._descending(numbers):
                    entries += [_missing(n) for n in range(end, entry.number, -1)]
                    entries.append(entry)
                    end = entry.number - 1
                    if entry.kind == ALL:
                        end = 0
                        break
            except FileNotFoundError:
                continue  # it has just been compacted
            entries += [_missing(n) for n in range(end, 0, -1)][:1]
            gaps = any(not entry.kind for entry in entries)
            if not gaps or attempt >= _GAP_TRIES:  # a folder's list may miss one that is new
                return self._note_compaction(entries[::-1])
        raise CorruptTableError("the ledger of this table changes all the time; try again")

    def _note_compaction(self, entries: list[Entry]) -> list[Entry]:
        counts = [entry for entry in entries if entry.kind != FENCE]
        self.compacted = None
        if all(entry.kind == ALL and not entry.damage for entry in counts):
            self.compacted = "".join(f"{line}\n" for entry in counts for line in entry.lines)
            self._compaction = counts[0].number if counts else 0
        return entries

    def _descending(self, numbers: list[int]) -> Iterator[Entry]:
        names = [entry_name(number) for number in numbers]
        if names:  # of a table that is complete the last one says all
            yield self._entry(numbers[-1], self.storage.read(names[-1]))
        for stop in range(len(names) - 1, 0, -_AT_ONCE):
            at = range(max(0, stop - _AT_ONCE), stop)
            contents = self._read_all([names[i] for i in at])
            yield from (self._entry(numbers[i], contents[i - at[0]]) for i in reversed(at))

    def _read_all(self, names: list[str]) -> list[bytes]:
        return list(in_threads(self.storage.read, names, _AT_ONCE))  # of a store as quick as one

    def _entry(self, number: int, content: bytes) -> Entry:
        head: dict[str, Any] = {}
        try:
            first, _, text = content.decode().partition("\n")
            head = unseal(self.identity, first + "\n")
            damage = "" if digest(text) == head["digest"] else "its lines are not all there"
            damage = damage if head["number"] == number else "it is of another number"
        except (ValueError, KeyError, RecursionError) as error:
            text = content.decode(errors="replace")
            damage = f"line 1: {error}"
        self._kinds[number] = head.get("kind", FENCE)
        lines = text.removesuffix("\n").split("\n") if text else []
        return Entry(number, head.get("kind", ADDS), lines, head.get("holder", ""), damage)

    def _numbers(self) -> list[int]:
        names = filter(is_entry, self.storage.list(LINES))
        return sorted(int(name.removeprefix(LINES)) for name in names)


def _missing(number: int) -> Entry:
    return Entry(number, "", [], damage="is missing")


# --- sealed text ---


def digest(text: str) -> str:
    """The check of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:CHECK]


def seal(salt: str, form: dict[str, Any], indent: int | None = None) -> str:
    """JSON of `form` with its check as the last key; a single line unless `indent`."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(form, sort_keys=True, separators=separators, indent=indent)
    body = text[:-1].rstrip()
    between = "" if indent is None else "\n" + " " * indent
    return f'{body},{between}"check":{separators[1][1:]}"{digest(salt + chr(10) + body)}"}}\n'


def unseal(salt: str, text: str) -> dict[str, Any]:
    """The form in a sealed text. Raises ValueError where a byte of it has changed."""
    match = _SEALED.fullmatch(text)
    if not match:
        raise ValueError("has no check")
    if digest(salt + "\n" + match[1]) != match[2]:
        raise ValueError("its check does not match")
    form = json.loads(match[1] + "}")
    assert isinstance(form, dict)
    return form
