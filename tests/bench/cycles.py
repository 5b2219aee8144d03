"""The bench suite ``cycles``: games whose states come back to each other, one thread each."""

import sys
import time

from luckbase.jobs import terminal

RARE = {"one": 1e-5, "two": 2e-5, "pass_on": True}
GAMES = (
    ("a walk of 20,000 states", "reported", "Gambler", {"goal": 20_000}, {"goal": 9}, 0.2),
    ("10,000 cycles of two states", "reported", "Throwers", {"pairs": 10_000}, {"pairs": 2}, 0.2),
    ("heads in a row: 18 states", "reported", "Streak", {"heads": 18}, {"heads": 3}, 0.05),
    ("an end with 1e-5, with a choice", "reported", "Throwers", RARE, {"pairs": 2}, 0.05),
    ("Hog with ten dice", "dice_races", "Hog", {}, {"goal": 9}, 1.0),
    ("Pig to 100", "dice_races", "Piglets", {}, {"goal": 9}, 3.0),
    ("Pig for three to 20", "dice_races", "Piglets", {"goal": 20, "players": 3},
     {"goal": 5, "players": 3}, 3.0),
    ("two-dice Pig", "dice_races", "TwoDice", {}, {"goal": 9}, 20.0),
)  # fmt: skip
"""(name, module, board, options, those of a small game to compile with, floor in seconds)."""


def cycles_suite(board, results):
    """Print the processor time of each search, less what it takes to expand all states once."""
    from importlib import import_module

    from luckbase.solver.game.game import load_game
    from luckbase.solver.search.expand import who_acts
    from luckbase.solver.search.game_graph import Graph

    rows = []
    for title, module, kind, options, small, floor in GAMES:
        of = getattr(import_module(f"tests.games.{module}"), kind)
        game, tiny = (
            load_game(of(game=kind.lower(), name=title, rules=of.Options(**each)))
            for each in (options, small)
        )
        Graph(tiny).solve(tiny.needed_start()[None])
        graph, before = Graph(game), time.process_time()
        at = graph.solve(game.needed_start()[None])[0]
        used = time.process_time() - before
        states = graph.states(range(graph.count))
        who_acts(game, states[:1])
        before = time.process_time()
        who_acts(game, states)
        finding = time.process_time() - before
        rows.append(
            (
                title, f"{graph.count:,}", f"{used:.3f}", f"{used - finding:.3f}", f"{floor:g}",
                f"{graph.values[at, 0]:.15g}", f"{graph.errors[at]:.1e}",
            )
        )  # fmt: skip
    heads = ("", "states", "seconds", "beyond the rules", "floor", "payoff", "error")
    terminal.print_table("Cycles: processor time, compiled before", heads, rows, sys.stdout)
