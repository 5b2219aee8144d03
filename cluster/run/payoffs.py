"""Payoffs that shards of this process hand to one another: arrays, taken from a pool.

To touch fresh memory costs more than the kernel, so what nobody reads any more is used again. What
is beyond the pool's bytes lies in files without a name, whose pages the system may let go of.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from luckbase.solver.game.arrays import Floats

ROOMY = 1.5
"""So many times what is needed a used array may have."""


@dataclass(frozen=True)
class Held:
    """An array of payoffs and the memory that it lies in."""

    array: Floats
    buffer: Floats


class Pool:
    """Arrays of payoffs for one run; one thread at a time takes and gives back."""

    def __init__(self, memory: int, folder: Path) -> None:
        """memory: bytes that arrays may have; folder: where what is beyond lies."""
        self._memory, self._folder = memory, folder
        self._free: list[Floats] = []
        self._bytes = 0

    def take(self, shape: tuple[int, ...]) -> Held:
        """An array of this shape; what stands in it is anything. Raises OSError where the disk is
        full."""
        size = int(np.prod(shape))
        fitting = [b for b in self._free if size <= b.size <= max(1, ROOMY * size)]
        if fitting:
            buffer = min(fitting, key=lambda b: b.size)
            self._free = [b for b in self._free if b is not buffer]
        else:
            while self._free and self._bytes + 8 * size > self._memory:
                self._let_go(max(range(len(self._free)), key=lambda i: self._free[i].size))
            if self._bytes + 8 * size > self._memory:
                buffer = self._in_a_file(size)
            else:
                buffer = np.empty(size)
                self._bytes += buffer.nbytes
        return Held(buffer[:size].reshape(shape), buffer)

    def give(self, held: Held) -> None:
        """Nobody reads this any more."""
        if held.buffer.base is None:  # what lies in a file goes with its last reader
            self._free.append(held.buffer)

    def _let_go(self, i: int) -> None:
        self._bytes -= self._free.pop(i).nbytes

    def _in_a_file(self, size: int) -> Floats:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            os.posix_fallocate(file.fileno(), 0, max(8, 8 * size))  # a full disk says so here
            mapped = mmap.mmap(file.fileno(), max(8, 8 * size))
        return np.frombuffer(mapped, np.float64)[:size]


def writable(array: Floats) -> Floats:
    """The same memory for compiled code, which takes an array that can not be written to for
    another type and compiles anew. Nothing writes to it."""
    return array if array.flags.writeable else np.asarray(_Unlocked(array))


class _Unlocked:
    def __init__(self, array: Floats) -> None:
        self._array = array  # whose memory must stay
        about = dict(array.__array_interface__)
        self.__array_interface__ = about | {"data": (about["data"][0], False)}
