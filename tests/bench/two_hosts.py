"""How much faster two hosts of one core solve than one does: ``python -m tests.bench.two_hosts``.

Each host has a core of this machine for itself, the lone one too: its driver, its worker and what
writes share it. Frontier 4 at $500, about a minute. The nodes have nothing compiled when they join.

What the machine allows is measured beside it: two solves on a core each that know nothing of each
other, against one alone. Cores that share a cache or a clock give less than two.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.hosts import ROOT, Hosts, missing

WORDS = ("--set", "score_unit=500", "--set", "frontier=4", "--json")


def seconds(folder: Path, count: int) -> tuple[float, dict[str, float]]:
    """Of a whole solve on so many hosts, from the command to its end, and what it says."""
    hosts = Hosts(folder)
    try:
        for i in range(count):
            name = "head" if i == 0 else f"node{i}"
            hosts.make(name, compiled=True, core=i)
            hosts.ray(name, 1, 1_500_000_000)
        board = ROOT / "boards/press-your-luck/1985-02.toml"
        command = [sys.executable, "-m", "luckbase", "solve", str(board), *WORDS, "--address",
                   hosts.address, "--results", str(hosts.shared)]  # fmt: skip
        began = time.perf_counter()
        done = hosts.run("head", command, timeout=540)
        taken = time.perf_counter() - began
        if done.returncode:
            raise RuntimeError(done.stderr[-1500:])
        return taken, json.loads(done.stdout.splitlines()[-1])
    finally:
        hosts.down()


def alone(folder: Path, count: int) -> float:
    """Seconds until so many solves of their own are over, each on a core and without Ray."""
    board = ROOT / "boards/press-your-luck/1985-02.toml"
    began = time.perf_counter()
    solves = []
    for core in range(count):
        command = ["taskset", "-c", str(core), sys.executable, "-m", "luckbase", "solve"]
        command += [str(board), *WORDS, "--workers", "1", "--results", str(folder / str(core))]
        solves.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL))
    if any([solve.wait() for solve in solves]):
        raise RuntimeError("a solve on one core failed")
    return time.perf_counter() - began


def main() -> None:
    """Print the times and their ratio, and what two cores give to two solves."""
    lacking = missing()
    if lacking:
        sys.exit(lacking)
    found = []
    for count in (1, 2):
        with tempfile.TemporaryDirectory(prefix="luckbase-") as folder:
            taken, said = seconds(Path(folder), count)
        found.append(taken)
        print(f"hosts of one core: {count}, {taken:.1f} s in all, of which {said['seconds']:.1f} s "
              "the solve", flush=True)  # fmt: skip
    print(f"two against one: {found[0] / found[1]:.2f} times as fast")
    lone = []
    for count in (1, 1, 2):  # the first one compiles
        with tempfile.TemporaryDirectory(prefix="luckbase-") as folder:
            lone.append(alone(Path(folder), count))
    print(f"two solves on a core each, without Ray or a network: {2 * lone[1] / lone[2]:.2f} times "
          f"the work of one ({lone[2]:.1f} s for {lone[1]:.1f})")  # fmt: skip


if __name__ == "__main__":
    main()
