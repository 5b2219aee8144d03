"""Which board files were saved since they were read last: looked at now and then, by their times.

A file that still changes from one look to the next is waited for, and so is one that can not be
read, as a half-saved one can not; a comment or a title is no change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from luckbase.cluster.night.asked import Asked, Named, asked_for, files_of
from luckbase.solver.board.model import board_hash

Times = dict[str, tuple[int, int, int]]
"""Of each file: when it was changed (ns), its size, its inode."""


class Saved:
    """The boards behind some names, and which of them were saved.

    names, settings: as `asked_for` has them. on_note: told in a sentence what is waited for.
    """

    def __init__(
        self, names: Sequence[Named], settings: Mapping[str, object] = {},
        on_note: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        self.names, self.settings, self.on_note = names, settings, on_note
        self._read: dict[tuple[Any, ...], str] = {}  # of those that are gone too: they may return
        self._there: list[Asked] = []
        self._handled = self._seen = self._times()

    @property
    def boards(self) -> int:
        """How many boards are watched that can be read."""
        return sum(one.board is not None for one in self._there)

    def first(self) -> list[Asked]:
        """All boards, as they are now."""
        self._handled = self._seen = self._times()  # before they are read: what is saved later, is
        found = self._there = asked_for(self.names, self.settings)
        self._read = {one.key: _content(one) for one in found}
        return found

    def look(self) -> list[Asked]:
        """The boards that were saved since the last look, with other rules or for the first time;
        none while some file still changes."""
        now = self._times()
        still, self._seen = now != self._seen, now
        saved = [file for file in now if now[file] != self._handled.get(file)]
        gone = [file for file in self._handled if not os.path.exists(file)]
        if still or not (saved or gone):
            return []
        for file in gone:
            self.on_note(f"{file}: is gone; its tables stay, luckbase clean lists them")
            del self._handled[file]
        self._handled |= now
        found = self._there = asked_for(self.names, self.settings)
        for file in saved:
            self._say(file, [one for one in found if os.path.realpath(one.file) == file])
        changed = [one for one in found if one.board is not None and self._is_new(one)]
        self._read |= {one.key: _content(one) for one in changed}
        return changed

    def _is_new(self, one: Asked) -> bool:
        return self._read.get(one.key) != _content(one)

    def _say(self, file: str, boards: Sequence[Asked]) -> None:
        """What is waited for, and that nothing is to be done."""
        wrong = [str(one.error) for one in boards if one.error is not None]
        for said in dict.fromkeys(wrong):
            self.on_note(f"waiting for it to be saved again: {said}")
        if boards and not wrong and not any(map(self._is_new, boards)):
            self.on_note(f"{boards[0].file}: was saved, and its rules are as they were")

    def _times(self) -> Times:
        found: Times = {}
        for path in files_of(self.names):
            try:
                at = path.stat()
            except OSError:
                continue
            found[os.path.realpath(path)] = (at.st_mtime_ns, at.st_size, at.st_ino)
        return found


def _content(one: Asked) -> str:
    """What a board says; "" where it can not be read."""
    return "" if one.board is None else board_hash(one.board)
