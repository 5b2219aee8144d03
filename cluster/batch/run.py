"""Solve many boards, one after another, whatever becomes of each; which of them were saved since.

Board files are looked at now and then, by their times. A file that still changes from one look to
the next is waited for, and so is one that can not be read, as a half-saved one can not; a comment
or a title is no change.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, cast

from luckbase.cluster.batch.plan import options_for, plan_boards
from luckbase.cluster.batch.requests import BoardName, BoardRequest, files_of, requests_for
from luckbase.cluster.inputs import solved
from luckbase.cluster.run.options import Options, SolveOptions
from luckbase.cluster.run.progress import Progress, Solved
from luckbase.cluster.table.find import changed_since
from luckbase.solver.board.model import board_hash
from luckbase.solver.errors import LuckbaseError

OnProgress = Callable[[Progress], None]
ShowProgress = Callable[[BoardRequest, int, int], AbstractContextManager[OnProgress]]
"""show(board, its number from 1, how many there are) -> a context that hears how far it is."""
FileTimes = dict[str, tuple[int, int, int]]
"""Of each file: when it was changed (ns), its size, its inode."""


@dataclass(frozen=True)
class Outcome:
    """What became of one board."""

    request: BoardRequest
    state: str
    """solved, complete (nothing was to do) or failed: then `error` says why in a sentence."""
    solved: Solved | None = None
    """What its solve did."""
    error: str = ""
    changed: tuple[str, ...] = ()
    """What its file had changed since it was solved last."""
    seconds: float = 0.0
    """Of wall time."""
    exit_code: int = 0

    @property
    def failed(self) -> bool:
        """Whether there is no table of it."""
        return self.state == "failed"


class BatchOptions(SolveOptions, total=False):
    """The options of many solves; every one may be left out."""

    on_outcome: Callable[[Outcome], None]
    """Called with what became of each board, as it is known."""
    shown: ShowProgress
    """A context for each board that hears how far it is, in the place of `on_progress`."""


def solve_boards(
    names: Sequence[BoardName], start: Any, settings: Mapping[str, object], options: BatchOptions
) -> list[Outcome]:
    """Solve every board behind `names`; what becomes of one stops no other. As
    `luckbase.solve_all`."""
    own: dict[str, Any] = dict(options)
    on_outcome, show = own.pop("on_outcome", None), own.pop("shown", None)
    shared, requests = Options(**own), requests_for(names, settings)
    if any(request.order != "listed" for request in requests):
        requests = [due.request for due in plan_boards(requests, start, shared)]
    outcomes = []
    for number, request in enumerate(requests, start=1):
        began, board_options = time.perf_counter(), options_for(request, shared)
        progress = nullcontext(shared.on_progress)
        try:
            with progress if show is None else show(request, number, len(requests)) as on_progress:
                outcome = _solve(request, start, replace(board_options, on_progress=on_progress))
        except BrokenPipeError:
            raise
        except Exception as error:
            code = error.exit_code if isinstance(error, LuckbaseError) else 1
            outcome = Outcome(request, "failed", error=sentence(error), exit_code=code)
        outcomes.append(replace(outcome, seconds=time.perf_counter() - began))
        if on_outcome is not None:
            on_outcome(outcomes[-1])
    return outcomes


def _solve(request: BoardRequest, start: Any, options: Options) -> Outcome:
    if request.board is None:
        raise request.error or AssertionError("neither a board nor what is wrong with it")
    changed = tuple(changed_since(request.board, options.folder))
    result = solved(request.board, start, cast(SolveOptions, dict(vars(options))))
    state = "solved" if result.states or result.shards else "complete"
    return Outcome(request, state, result, changed=changed)


def sentence(error: Exception) -> str:
    """What a solve ended with, in a sentence."""
    cause = getattr(error, "cause", error)  # of an error that a Ray worker sent
    if isinstance(error, LuckbaseError):
        return str(error)
    if not isinstance(cause, OSError):
        message = " ".join(str(error).split())[:200]
        return f"{type(error).__name__}: {message}; solve it alone to see where"
    where = cause.filename or "results"
    if cause.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{where}: the disk is full; with more room the same command goes on"
    return f"{where}: {' '.join((cause.strerror or str(cause)).split())}"


class SavedBoards:
    """The boards behind some names, and which of them were saved since they were read.

    names, settings: as `requests_for` has them. on_note: hears in a sentence what is waited for.
    """

    def __init__(
        self, names: Sequence[BoardName], settings: Mapping[str, object] = {},
        on_note: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        self.names, self.settings, self.on_note = names, settings, on_note
        self._hashes: dict[tuple[Any, ...], str] = {}  # of deleted ones too: they may return
        self._requests: list[BoardRequest] = []
        self._handled = self._latest = self._file_times()

    @property
    def boards(self) -> int:
        """How many boards are watched that can be read."""
        return sum(request.board is not None for request in self._requests)

    def read_all(self) -> list[BoardRequest]:
        """All boards, as they are now."""
        self._handled = self._latest = self._file_times()  # before they are read, to miss no save
        self._requests = requests_for(self.names, self.settings)
        self._hashes = {request.key: _hash(request) for request in self._requests}
        return self._requests

    def poll(self) -> list[BoardRequest]:
        """The boards that were saved since the last poll, with other rules or for the first time;
        none while some file still changes."""
        now = self._file_times()
        changing, self._latest = now != self._latest, now
        saved = [file for file in now if now[file] != self._handled.get(file)]
        gone = [file for file in self._handled if not os.path.exists(file)]
        if changing or not (saved or gone):
            return []
        for file in gone:
            self.on_note(f"{file}: is gone; its tables stay, luckbase clean lists them")
            del self._handled[file]
        self._handled |= now
        self._requests = requests_for(self.names, self.settings)
        for file in saved:
            self._report(file)
        changed = [r for r in self._requests if r.board is not None and self._is_new(r)]
        self._hashes |= {request.key: _hash(request) for request in changed}
        return changed

    def _is_new(self, request: BoardRequest) -> bool:
        return self._hashes.get(request.key) != _hash(request)

    def _report(self, file: str) -> None:
        """What is waited for, and that nothing is to be done."""
        requests = [r for r in self._requests if os.path.realpath(r.file) == file]
        errors = [str(request.error) for request in requests if request.error is not None]
        for error in dict.fromkeys(errors):
            self.on_note(f"waiting for it to be saved again: {error}")
        if requests and not errors and not any(map(self._is_new, requests)):
            self.on_note(f"{requests[0].file}: was saved, and its rules are as they were")

    def _file_times(self) -> FileTimes:
        times: FileTimes = {}
        for path in files_of(self.names):
            try:
                stat = path.stat()
            except OSError:
                continue
            times[os.path.realpath(path)] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        return times


def _hash(request: BoardRequest) -> str:
    return "" if request.board is None else board_hash(request.board)
