"""Solve many boards, one after another, whatever becomes of each."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, cast

from luckbase.cluster.given import solved
from luckbase.cluster.night.asked import Asked, Named, asked_for
from luckbase.cluster.night.due import due, options_of
from luckbase.cluster.run.options import Options, Progress, Solved, SolveOptions
from luckbase.cluster.table.find import changed_since
from luckbase.solver.errors import LuckbaseError

Shown = Callable[[Asked, int, int], AbstractContextManager[Callable[[Progress], None]]]
"""shown(board, its number from 1, how many there are) -> a context that is told how far it is."""


@dataclass(frozen=True)
class Outcome:
    """What became of one board that was asked for.

    state: solved, complete (nothing was to do) or failed: then `error` says why in a sentence.
    solved: what its solve did. changed: what its file had changed since it was solved last.
    seconds: of wall time.
    """

    asked: Asked
    state: str
    solved: Solved | None = None
    error: str = ""
    changed: tuple[str, ...] = ()
    seconds: float = 0.0
    exit_code: int = 0

    @property
    def failed(self) -> bool:
        """Whether there is no table of it."""
        return self.state == "failed"


class NightOptions(SolveOptions, total=False):
    """The options of many solves; every one may be left out.

    on_outcome: told what became of each board, as it is known. shown: a context for each board
    that is told how far it is (`Shown`), in the place of `on_progress`.
    """

    on_outcome: Callable[[Outcome], None]
    shown: Shown


def night(
    names: Sequence[Named], start: Any, settings: Mapping[str, object], options: NightOptions
) -> list[Outcome]:
    """Solve every board behind `names`; as `luckbase.solve_all`."""
    own = dict(options)
    on_outcome, shown = own.pop("on_outcome", None), own.pop("shown", None)
    found = []
    asked = Options(**cast(SolveOptions, own))
    for one in outcomes(asked_for(names, settings), start, asked, cast("Shown | None", shown)):
        found.append(one)
        if on_outcome is not None:
            cast(Callable[[Outcome], None], on_outcome)(one)
    return found


def outcomes(
    boards: Sequence[Asked], start: Any, asked: Options, shown: Shown | None = None
) -> Iterator[Outcome]:
    """Solve each board; what becomes of one stops no other. start: as `luckbase.solve` has it."""
    todo = list(boards)
    if any(one.order != "listed" for one in todo):
        todo = [found.asked for found in due(todo, start, asked)]
    for number, one in enumerate(todo, start=1):
        began, own = time.perf_counter(), options_of(one, asked)
        try:
            if shown is None:
                found = _solve(one, start, own)
            else:
                with shown(one, number, len(todo)) as on_progress:
                    found = _solve(one, start, replace(own, on_progress=on_progress))
        except BrokenPipeError:
            raise
        except Exception as error:
            code = error.exit_code if isinstance(error, LuckbaseError) else 1
            found = Outcome(one, "failed", error=sentence(error), exit_code=code)
        yield replace(found, seconds=time.perf_counter() - began)


def _solve(one: Asked, start: Any, asked: Options) -> Outcome:
    if one.board is None:
        raise one.error or AssertionError("neither a board nor what is wrong with it")
    changed = tuple(changed_since(one.board, asked.folder))
    found = solved(one.board, start, cast(SolveOptions, dict(vars(asked))))
    state = "solved" if found.states or found.shards else "complete"
    return Outcome(one, state, found, changed=changed)


def sentence(error: Exception) -> str:
    """What a solve ended with, in a sentence."""
    cause = getattr(error, "cause", error)  # of an error that a Ray worker sent
    if isinstance(error, LuckbaseError):
        return str(error)
    if not isinstance(cause, OSError):
        said = " ".join(str(error).split())[:200]
        return f"{type(error).__name__}: {said}; solve it alone to see where"
    where = cause.filename or "results"
    if cause.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{where}: the disk is full; with more room the same command goes on"
    return f"{where}: {' '.join((cause.strerror or str(cause)).split())}"
