"""Solves that are stopped half-way: as Ctrl+C does it, or when so many of their shards are done."""

from contextlib import contextmanager

import pytest

from luckbase.cluster.store.writer import Writer
from tests import solving


def solve_until(board, results, shards, *, workers=1):
    """Solve the board's full table until this many shards are done, and stop there."""

    def stop(now):
        if now.shards >= shards:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solving.solve_board(board, results=results, workers=workers, on_progress=stop)


@contextmanager
def stopped_after(additions, error=KeyboardInterrupt):
    """The writer of a table raises this error once so many additions to the manifest were made.

    Yields a list that has an item for each addition. No public option stops a solve there.
    """
    add, done = Writer.add, []

    def stops(writer, *lines):
        add(writer, *lines)
        done.append(lines)
        if len(done) == additions:
            raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "add", stops)
        yield done
