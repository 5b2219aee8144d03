"""The bench suite ``search``: from the root with no table; in one piece, and by stages."""

import sys
import time

from luckbase.jobs import terminal
from luckbase.solver.sentences import count, duration, size
from tests.shared import answers_of

QUESTIONS = (
    ("five spins", 250, "next", {"scores": "0,2000,3500", "earned": "0,3,2"}),
    ("three spins", 250, "next", {"scores": "2000,3000,6000", "earned": "0,3,0"}),
    ("three spins between two", 250, "next", {"scores": "0,10000,7000", "earned": "0,2,1"}),
    ("six spins", 250, "next", {"scores": "0,8000,3000", "earned": "0,6,0"}),
    ("five spins at $500", 500, "next", {"scores": "0,2000,3500", "earned": "0,3,2"}),
)
"""(what it is, score_unit, tied_pass, fields); source: docs/numbers.md#numbers-of-this-project."""


def search_suite(board, results):
    """Print both tables."""
    from tests import solving

    rows = []
    for i, (title, unit, tied, words) in enumerate(QUESTIONS):
        game = solving.load_game(solving.load_board(board, score_unit=unit, tied_pass=tied))
        root = game.parse(words).reshape(1, -1)
        result = [_search(game, root, results / f"search-{i}-{k}", workers=1, one_piece=1 << 40)
                 for k in range(2)]  # fmt: skip
        best = min(result, key=lambda each: each.solve_seconds)
        with solving.open_table(best.table) as table:
            answer = answers_of(table, root)[0]
        assert answer.to_act is not None
        worth = [f"{a.name} {a.value[answer.to_act - 1]:.6f}" for a in answer.actions]
        seconds = best.solve_seconds / best.states
        rows.append(
            (
                f"{title}, ${unit}", count(best.states),
                f"{best.edges / best.states:.1f}", f"{1e-6 / seconds:.2f}",
                f"{best.bytes_a_state:.0f}",
                duration(best.solve_seconds), ", ".join(worth),
            )
        )  # fmt: skip
    heads = (
        "from the root, no table", "states", "edges a state", "M states/s", "bytes",
        "time", "chance of the player up",
    )  # fmt: skip
    terminal.print_table(
        "Search, one worker (bytes a state while solving)", heads, rows, sys.stdout
    )
    _stages(board, results / "large", LARGE, WAYS)
    _stages(board, results / "larger", LARGER, WAYS[1:])


LARGE = ("four spins in three hands", 250, "next", {"scores": "0,2000,3500", "earned": "1,1,2"})
"""A search of 12 million states."""
LARGER = ("five spins in three hands", 250, "next", {"scores": "0,2000,3500", "earned": "1,2,2"})
"""One of 32 million."""
WAYS = (
    ("in one piece", {"workers": 1, "one_piece": 1 << 40}),
    ("by stages, 1 thread", {"workers": 1, "one_piece": 0}),
    ("by stages, 2 threads", {"workers": 2, "one_piece": 0}),
    ("by stages, 2 Ray workers", {"workers": 2, "one_piece": 0, "address": "local"}),
)


def large_search(board, results, what=LARGE, **how):
    """A large search by stages, on one thread unless told otherwise."""
    from tests import solving

    _, unit, tied, words = what
    game = solving.load_game(solving.load_board(board, score_unit=unit, tied_pass=tied))
    root = game.parse(words).reshape(1, -1)
    return _search(game, root, results, **({"workers": 1, "one_piece": 0} | how))


def _stages(board, results, what, ways):
    """One large search in several ways, files and Ray's start included."""
    rows = []
    alone = None
    title, unit = what[:2]
    for i, (name, how) in enumerate(ways):
        before = time.process_time()
        result = large_search(board, results / f"way-{i}", what, **how)
        used = time.process_time() - before
        alone = alone or result.seconds
        rows.append(
            (
                name, str(result.shards), duration(result.seconds),
                f"{alone / result.seconds:.2f}", size(result.peak_memory),
                f"{result.seconds / result.states * 1e9:.0f}", f"{used / result.states * 1e9:.0f}",
            )
        )  # fmt: skip
    heads = (
        "", "shards", "time", "times as fast", "memory", "ns a state",
        "processor time of this process",
    )  # fmt: skip
    text = f"{title}, ${unit}: {count(result.states)} states, files written"
    terminal.print_table(text, heads, rows, sys.stdout)


def _search(game, root, results, **how):
    from tests import solving

    return solving.solve_below(game.board, root, results=results, force=True, **how)
