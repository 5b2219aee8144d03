"""How long something takes: the least of several runs."""

import time


def best_of(runs, work, clock=time.perf_counter):
    """The least seconds of several runs."""
    times = []
    for _ in range(runs):
        started = clock()
        work()
        times.append(clock() - started)
    return min(times)
