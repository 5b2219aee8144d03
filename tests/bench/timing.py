"""How long something takes: the least of several runs; a solve in a process of its own."""

import json
import os
import resource
import subprocess
import sys
import time


def best_of(runs, work, clock=time.perf_counter):
    """The least seconds of several runs."""
    times = []
    for _ in range(runs):
        started = clock()
        work()
        times.append(clock() - started)
    return min(times)


def solved(board, settings, results, **env):
    """What a solve in a process of its own says as JSON, its processor seconds and its seconds."""
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "luckbase", "solve", str(board), "--json", "--force"]
    before, began = _children_seconds(), time.perf_counter()
    done = subprocess.run(
        [*command, "--results", str(results), *words], stdout=subprocess.PIPE, check=True,
        env={**os.environ, **env},
    )  # fmt: skip
    spent = _children_seconds() - before, time.perf_counter() - began
    return json.loads(done.stdout.splitlines()[-1]), *spent  # before it, progress


def _children_seconds():
    """The processor time of commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
