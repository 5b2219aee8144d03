"""A search by stages solves under a limit of memory that one in one piece exceeds."""

import subprocess
import sys

from tests.places import BOARDS

MORE = 110_000_000
"""Bytes beyond what a process has once all is compiled: stages take 79 million, and 123 million if
they all stayed in memory; one piece takes 369 million."""
SCRIPT = """
import resource, sys, tempfile
from luckbase import cluster, solver

board = solver.load_board(sys.argv[1], tied_pass="next")
game = solver.load_game(board)

def search(one_piece, **words):
    how = {"workers": 1, "one_piece": one_piece, "memory": int(sys.argv[2])}
    with tempfile.TemporaryDirectory() as folder:
        return cluster.solve_below(board, game.parse(words)[None], results=folder, **how).states

for one_piece in (0, 1 << 40):
    search(one_piece, scores="0,10000,7000", earned="0,2,1")
with open("/proc/self/status") as file:
    data = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (data + int(sys.argv[2]),) * 2)
for one_piece in (0, 1 << 40):
    try:
        print(search(one_piece, scores="6000,9000,12000", earned="1,1,0"))
    except MemoryError:
        print("no memory")
"""


def test_by_stages_it_is_solved_where_one_piece_has_no_memory():
    words = [str(BOARDS / "press-your-luck/1985-02.toml"), str(MORE)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, timeout=1200
    )
    assert not done.returncode, done.stderr[-1500:]
    assert done.stdout.split("\n")[-3:-1] == ["633199", "no memory"]
