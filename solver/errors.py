"""The exceptions of luckbase, derived from `LuckbaseError`, but for `Stopped`.

`str(error)` is one sentence for a person, without line breaks or a final full stop: where the error
is, what is wrong and what would be right. The command line prints it and exits with
`error.exit_code`.
"""

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Stopped(Exception):
    """The solve was told to stop; the unfinished work on its shard is discarded."""


class LuckbaseError(Exception):
    """Base class of every error that luckbase raises on purpose."""

    exit_code: ClassVar[int] = 1


class RequestError(LuckbaseError):
    """The request is wrong and can be corrected; no work was done."""

    exit_code: ClassVar[int] = 2


class BoardError(RequestError):
    """A board file cannot be read, or the board in it cannot be played."""


class JobError(RequestError):
    """A job file cannot be read, or a job in it cannot be run."""


class StateError(RequestError):
    """A state does not exist on this board: an unknown field, or an impossible value.

    wrong: bool (n,), if several states were given: which of them fail the first check that failed.
    """

    wrong: "NDArray[np.bool_] | None" = None


class OptionError(RequestError):
    """An option is unknown, or its value is not allowed."""


class MemoryLimitError(RequestError):
    """The request does not fit in the memory limit."""


class DiskLimitError(RequestError):
    """The request does not fit on the disk."""


class SearchLimitError(RequestError):
    """A search met more states than its limit."""


class StoreError(RequestError):
    """A store refused a request: no such bucket or key, no permission, or no reply."""


class ClosedTableError(RequestError):
    """The table was closed; open it again to query it."""


class FencedError(RequestError):
    """Another solve of the same table has begun, so this one stops committing."""


class TableError(LuckbaseError):
    """A table on disk is wrong or missing."""


class MissingTableError(TableError):
    """The table, or the part of it that the query needs, does not exist."""


class UnknownGameError(TableError):
    """The table exists, but its game is not registered: a user's own game."""


class CorruptTableError(TableError):
    """A table's files do not match its manifest."""


class ForeignTableError(CorruptTableError):
    """The folder holds a valid table, but of rules other than its name, or of a later format."""


class StaleTableError(TableError):
    """The board has changed since the table was solved, and the user required a fresh table."""


class WorkerError(LuckbaseError):
    """Workers died on one shard more often than it is retried."""


class GameError(RequestError):
    """A game's own code breaks the contract of games (`solver.check`)."""


def need(what: str, *packages: str, extra: str = "") -> None:
    """Raise OptionError if packages that `what` needs are not installed.

    extra: the extra of pyproject.toml that installs them; without it the error names the packages.
    """
    from importlib.util import find_spec

    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        names = f"'.[{extra}]'" if extra else " ".join(missing)
        raise OptionError(f"{what} needs {' and '.join(missing)}; run: pip install {names}")


def line_of(error: BaseException, file: str) -> str:
    """Return ", line N" for the innermost line of `file` that raised the error, or ""."""
    import traceback
    from pathlib import Path

    place = getattr(error, "loc", None)  # set by numba's errors
    if place is not None and Path(place.filename).name == Path(file).name:
        return f", line {place.line}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    line = getattr(error, "lineno", None) or (lines[-1] if lines else None)
    return "" if line is None else f", line {line}"
