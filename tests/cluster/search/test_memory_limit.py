"""A search by stages solves under a limit of memory that one in one piece exceeds."""

from __future__ import annotations

import subprocess
import sys

from tests.places import BOARDS

MORE = 250_000_000
"""Bytes beyond what a process has once all is compiled."""
SCRIPT = """
import resource, sys, tempfile
from luckbase import cluster, solver

board = solver.load_board(sys.argv[1], tied_pass="next")
game = solver.load_game(board)
how = {"workers": 1, "one_piece": int(sys.argv[2]), "memory": int(sys.argv[3])}

def search(folder, **words):
    return cluster.solve_below(board, game.parse(words).reshape(1, -1), results=folder, **how)

with tempfile.TemporaryDirectory() as folder:
    search(folder, scores="0,10000,7000", earned="0,2,1")
    with open("/proc/self/status") as file:
        data = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (data + int(sys.argv[3]),) * 2)
    try:
        print(search(folder, scores="2000,4000,6000", earned="1,1,0").states)
    except MemoryError:
        print("no memory")
"""


def said(one_piece: int) -> str:
    words = [str(BOARDS / "press-your-luck/1985-02.toml"), str(one_piece), str(MORE)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, timeout=1200
    )
    assert not done.returncode, done.stderr[-1500:]
    return done.stdout.split("\n")[-2]


def test_by_stages_it_is_solved_where_one_piece_has_no_memory() -> None:
    """1.5 million states."""
    assert said(one_piece=0) == "1528134"
    assert said(one_piece=1 << 40) == "no memory"
