"""What a command prints, when stdout or stderr can not take it.

Such a fault is an error of ours that names the stream: an OSError without a name would be taken for
one of the results folder, and click takes a closed pipe for exit code 1, which says "no" here.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from typing import Any, ClassVar, TextIO

from luckbase.solver.errors import LuckbaseError


class StreamError(LuckbaseError):
    """What was printed could not be written."""


class ClosedPipe(StreamError):
    """Nobody reads any more, as after ``| head -1``: nothing is said, as other tools do."""

    exit_code: ClassVar[int] = 128 + signal.SIGPIPE


class _Stream(io.FileIO):
    """An open descriptor that raises `StreamError`."""

    def __init__(self, number: int, called: str) -> None:
        super().__init__(number, "w", closefd=False)
        self._called = called

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())  # what is left in buffers is written at exit
            os.close(nowhere)
            if error.errno == errno.EPIPE:
                raise ClosedPipe(f"{self._called}: closed") from None
            raise StreamError(
                f"{self._called}: what was printed can not be written: {error.strerror}"
            ) from None


def name_streams() -> None:
    """From now on stdout and stderr raise `StreamError`; for a process that is a command."""
    if sys.stdin is None:  # closed from the beginning, as by <&-
        sys.stdin = open(os.devnull)  # noqa: SIM115 (stays open)
    sys.stdout = _named(sys.stdout, "stdout")
    sys.stderr = _named(sys.stderr, "stderr")


def _named(stream: TextIO | None, called: str) -> TextIO:
    if stream is None:  # closed from the beginning, as by >&-
        return open(os.devnull, "w")
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Stream(stream.fileno(), called)), stream.encoding, stream.errors,
        line_buffering=called == "stderr" or stream.isatty(),
    )  # fmt: skip
