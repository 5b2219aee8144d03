"""Files that a command writes for people: all of one or nothing, never in place of another's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from luckbase.solver.errors import OptionError

HEAD_LINES = 3
"""One of these ends in the words by which a command knows a file of its own."""


def check_out(out: Path, inputs: Iterable[Path], words: str, writer: str) -> None:
    """Refuse to write over a file that is read, or does not begin with the `words` of its `writer`.

    Raises OptionError.
    """
    if not out.parent.is_dir():
        raise OptionError(f"--out: {out}: there is no folder {out.parent}")
    if not out.exists():
        return
    if not out.is_file():
        raise OptionError(f"--out: {out} is no file; name one that is not there yet")
    if any(one.exists() and out.samefile(one) for one in inputs):
        raise OptionError(f"--out: {out} is a board that is read; name another file")
    with out.open("rb") as file:
        head = [file.readline(1000).rstrip() for _ in range(HEAD_LINES)]
    if not any(line.endswith(words.encode()) for line in head):
        raise OptionError(
            f"--out: {out} is there already, and {writer} did not write it; name another file"
        )


def write(out: Path, content: bytes) -> None:
    """Write a file beside its place, and put it there when it is whole."""
    out = Path(os.path.realpath(out))  # where a link leads
    handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, out)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
