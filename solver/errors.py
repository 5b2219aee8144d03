"""The exceptions of luckbase, one tree. `str(error)` is one sentence for a person, without line
breaks or a final full stop: where, what is wrong, and what would be right. The command line prints
it and ends with `error.exit_code`.
"""

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class LuckbaseError(Exception):
    """Anything luckbase refuses or finds wrong; its `str` is one sentence for a person."""

    exit_code: ClassVar[int] = 1


class RequestError(LuckbaseError):
    """The request is wrong and another one would be right; nothing was done."""

    exit_code: ClassVar[int] = 2


class BoardError(RequestError):
    """A board file cannot be read, or the board in it is not one that can be played."""


class JobError(RequestError):
    """A job file cannot be read, or what it says cannot be done."""


class StateError(RequestError):
    """A state is not one of this board's: a field not known, or a value that no state has.

    wrong: where several states were given, which of them (n,) fail the check that failed first.
    """

    wrong: "NDArray[np.bool_] | None" = None


class OptionError(RequestError):
    """An option is not known here, or its value is not one that it takes."""


class MemoryLimitError(RequestError):
    """What was asked for does not fit in the memory that it was allowed."""


class DiskLimitError(RequestError):
    """What was asked for does not fit on the disk where it was to go."""


class SearchLimitError(RequestError):
    """A search met more states than it was allowed to."""


class StoreError(RequestError):
    """A place that a URI names does not do what was asked: no bucket, key, right or answer."""


class ClosedTableError(RequestError):
    """The table was closed; another one, opened anew, answers."""


class FencedError(RequestError):
    """Another solve of the same table has begun: this one commits nothing more."""


class TableError(LuckbaseError):
    """A table on disk is not what it should be."""


class MissingTableError(TableError):
    """The table, or the part of it that the question needs, is not there."""


class UnknownGameError(TableError):
    """The table is there, and the rules of its game are not: a game of one's own."""


class CorruptTableError(TableError):
    """The table is there and its files are not what its manifest says."""


class ForeignTableError(CorruptTableError):
    """The folder holds a sound table, of other rules than its name says, or of a later format."""


class StaleTableError(TableError):
    """The table's board has changed since it was solved, and only a fresh table was asked for."""


class WorkerError(LuckbaseError):
    """Workers died over one shard more often than it is tried again."""


class GameError(RequestError):
    """A game's own code does not keep the contract of games (`solver.check`)."""


def need(what: str, *packages: str, extra: str = "") -> None:
    """Raises OptionError where packages are not installed that `what` needs. extra: of pyproject's,
    that brings them; without one people install them by name."""
    from importlib.util import find_spec

    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        said = f"'.[{extra}]'" if extra else " ".join(missing)
        raise OptionError(f"{what} needs {' and '.join(missing)}; run: pip install {said}")
