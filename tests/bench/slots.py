"""How well a cluster's slots are used, and how soon: ``python -m tests.bench.slots``.

Four hosts of four slots each solve a board; while shards are ready, how many slots are busy? Then a
fifth one joins a solve that runs, with nothing compiled: how long until its first shard is solved?
The hosts share the two cores of this machine, so shards are slow, and what is measured is the
driver's doing.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from luckbase import cluster, solver
from luckbase.cluster.run.schedule import Schedule
from luckbase.cluster.table import RUNNING
from tests.e2e.hosts import ROOT, Hosts, missing

BOARD, OPTIONS = ROOT / "boards/press-your-luck/1985-02.toml", {"score_unit": 500, "frontier": 2}
SLOTS = 16


def watched(address: str, results: Path) -> None:
    """Solve here and print the share of slots that were busy while more shards were ready."""
    busy, last, state = [0.0, 0.0], [time.perf_counter()], [0, 0]
    follow = Schedule._solve_ready

    def looked(schedule: Schedule) -> Any:
        now = time.perf_counter()
        running, ready = state
        if ready:  # what stood since it was looked at last
            busy[0] += min(running, SLOTS) * (now - last[0])
            busy[1] += SLOTS * (now - last[0])
        out = follow(schedule)
        last[0], state[:] = now, [len(schedule.running), len(schedule.ready)]
        return out

    Schedule._solve_ready = looked  # type: ignore[method-assign]
    board = solver.load_board(BOARD, **OPTIONS)
    found = cluster.solve(board, results=results, address=address)
    print(json.dumps([busy[0] / busy[1], busy[1] / SLOTS, found.seconds, found.shards]))


def slots_busy(folder: Path) -> str:
    """What `watched` finds."""
    hosts = Hosts(folder)
    try:
        for name in ("head", "node1", "node2", "node3"):
            hosts.make(name, compiled=True)
            hosts.ray(name, SLOTS // 4)
        words = [sys.executable, "-m", "tests.bench.slots", hosts.address, str(hosts.shared)]
        done = hosts.run("head", words, timeout=540)
        if done.returncode:
            raise RuntimeError(done.stderr[-1500:])
        share, ready, seconds, shards = json.loads(done.stdout.splitlines()[-1])
        return (f"{share:.1%} of {SLOTS} slots busy in the {ready:.1f} s in which shards were "
                f"ready, of {seconds:.1f} s and {shards} shards")  # fmt: skip
    finally:
        hosts.down()


def first_shard(folder: Path) -> str:
    """How long a host that joins takes to its first shard, from when its Ray has started."""
    hosts = Hosts(folder)
    try:
        hosts.make("head", compiled=True)
        hosts.ray("head", 1)
        hosts.make("late")
        words = [sys.executable, "-m", "luckbase", "solve", str(BOARD), "--address", hosts.address,
                 "--results", str(hosts.shared),
                 *(f"--set={name}={value}" for name, value in OPTIONS.items())]  # fmt: skip
        solve = hosts.start("head", words, folder / "solve.log")
        while not (running := list(hosts.shared.rglob(RUNNING))):
            time.sleep(0.1)
        while not json.loads(running[0].read_text())["nodes"][0]["shards_done"]:
            time.sleep(0.1)
        hosts.ray("late", 1)
        began = time.perf_counter()
        while not any(one["node"].startswith("test-late") and one["shards_done"]
                      for one in json.loads(running[0].read_text())["nodes"]):  # fmt: skip
            time.sleep(0.05)
        taken = time.perf_counter() - began
        solve.wait(300)
        return f"first shard {taken:.1f} s after a host without anything compiled has joined"
    finally:
        hosts.down()


def main() -> None:
    """Print both."""
    if len(sys.argv) == 3:
        return watched(sys.argv[1], Path(sys.argv[2]))
    lacking = missing()
    if lacking:
        sys.exit(lacking)
    for measure in (slots_busy, first_shard):
        with tempfile.TemporaryDirectory(prefix="luckbase-") as folder:
            print(measure(Path(folder)), flush=True)


if __name__ == "__main__":
    main()
