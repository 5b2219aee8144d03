"""The memory of a search: stages need less than one piece; buffers are for edges that exist."""

import pytest

import luckbase
from luckbase.solver.errors import MemoryLimitError
from tests.games import wide  # noqa: F401  # its game is registered
from tests.places import BOARDS
from tests.shared import python

MORE = 110_000_000
"""Bytes beyond what a process has once all is compiled: stages take 79 million, and 123 million if
they all stayed in memory; one piece takes 369 million."""
SCRIPT = """
import resource, sys, tempfile
from tests import solving

board = solving.load_board(sys.argv[1], tied_pass="next")
game = solving.load_game(board)

def search(one_piece, **words):
    how = {"workers": 1, "one_piece": one_piece, "memory": int(sys.argv[2])}
    with tempfile.TemporaryDirectory() as folder:
        return solving.solve_below(board, game.parse(words)[None], results=folder, **how).states

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
    done = python("-c", SCRIPT, *words)
    assert done.stdout.split("\n")[-3:-1] == ["633199", "no memory"]


WIDE_SCRIPT = """
import re, sys, tempfile
import luckbase, tests.games.wide

n = int(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    board = folder + "/wide.toml"
    with open(board, "w") as file:
        file.write('game = "wide"')
    wide = luckbase.load_board(board, n=n)
    solved = luckbase.solve(wide, results=folder + "/results")
    with luckbase.open(solved.table) as table:
        print(solved.states, table.ask({"ticket": 0}).value[0])
with open("/proc/self/status") as status:  # getrusage would say what the parent had
    print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) < 500_000)
"""


def test_50_000_outcomes_in_one_state_take_less_than_500_mb():
    """Before, buffers grew with the square of `max_edges`: 4.4 GB for 22,100 outcomes."""
    for n in ("2", "50000"):  # the first compiles, which has a peak of its own
        done = python("-c", WIDE_SCRIPT, n)
    first, last = done.stdout.splitlines()
    states, value = first.split()
    assert states == "1" and float(value) == pytest.approx(50_001 / 100_000, rel=1e-12)
    assert last == "True"


def test_a_limit_that_the_edges_of_one_state_exceed_is_a_sentence_that_names_max_edges(tmp_path):
    board = tmp_path / "wide.toml"
    board.write_text('game = "wide"')
    with pytest.raises(MemoryLimitError, match=r"^max_edges: 3,000,000 edges a state need buffers"):
        luckbase.solve(
            luckbase.load_board(board, n=3_000_000), results=tmp_path, memory=300_000_000
        )
    planned = [
        luckbase.plan(luckbase.load_board(board, n=n), results=tmp_path).peak_memory
        for n in (10, 50_000)
    ]
    assert planned[1] - planned[0] > 50_000 * 100
