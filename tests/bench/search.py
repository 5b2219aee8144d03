"""The bench suite ``search``: from the root with no table; in one piece, and by stages."""

import sys
import time

from luckbase.jobs import terminal
from luckbase.solver.sentences import count, duration, size
from tests import solving

ONE, STAGES = 1 << 40, 0
QUESTIONS = (
    ("five spins", "0,2000,3500", "0,3,2", ((1, ONE), (1, ONE))),
    ("six spins", "0,8000,3000", "0,6,0", ((1, ONE), (1, ONE))),
    ("four spins in three hands", "0,2000,3500", "1,1,2", ((1, ONE), (1, STAGES), (2, STAGES))),
    ("five spins in three hands", "0,2000,3500", "1,2,2", ((1, STAGES), (2, STAGES))),
)
"""What it is, scores, spins, and the ways to search: workers, states in one piece."""


def search_suite(board, results):
    """Print a line for each question and way, files included."""
    rows = []
    for title, scores, earned, ways in QUESTIONS:
        game = solving.load_game(solving.load_board(board, score_unit=250, tied_pass="next"))
        root = game.parse({"scores": scores, "earned": earned}).reshape(1, -1)
        for workers, piece in ways:
            before = time.process_time()
            done = solving.solve_below(
                game.board, root, results=results, force=True, workers=workers, one_piece=piece
            )
            used = time.process_time() - before
            with solving.open_table(done.table) as table:
                value = table.ask({"scores": scores, "earned": earned}).value
            rows.append((
                title, "in one piece" if piece else f"by stages, {workers} threads",
                count(done.states), f"{done.edges / done.states:.1f}", duration(done.seconds),
                f"{done.states / done.seconds / 1e6:.2f}", f"{used / done.states * 1e9:.0f}",
                size(done.peak_memory), " ".join(f"{each:.6f}" for each in value),
            ))  # fmt: skip
    heads = ("$250, no table", "", "states", "edges a state", "time", "M states/s",
             "processor, ns a state", "memory", "payoffs")  # fmt: skip
    terminal.print_table("Searches from the root", heads, rows, sys.stdout)
