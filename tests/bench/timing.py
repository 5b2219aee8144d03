"""How long something takes: the least of several runs."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_of(
    runs: int, work: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> float:
    """The least seconds of several runs."""
    times = []
    for _ in range(runs):
        started = clock()
        work()
        times.append(clock() - started)
    return min(times)
