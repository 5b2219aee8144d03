"""The other programs of the bench suite ``peers``, each run by the Python of an environment that
has them. ``python peer_programs.py TASK JSON`` prints a line of JSON with ``seconds`` (of the work,
without imports and reading files) and ``answer``. This module imports nothing of luckbase.
"""

import json
import sys
import threading
import time

EPSILON = 1e-9
"""The largest change of a value at which value iterations end."""
GAME = {
    "pig": "pig(players=2,winscore={size})",
    "goofspiel": "goofspiel(imp_info=False,num_cards={size},points_order=random,"
    "returns_type=point_difference)",
}  # fmt: skip


def open_spiel(game, size):
    """Value iteration over all states of a game from its start; player 1's value there."""
    import pyspiel
    from open_spiel.python.algorithms import value_iteration

    loaded = pyspiel.load_game(GAME[game].format(size=size))
    began = time.perf_counter()
    values = value_iteration.value_iteration(loaded, -1, EPSILON, cyclic_game=game == "pig")
    seconds = time.perf_counter() - began
    start = loaded.new_initial_state()
    if start.is_chance_node():
        value = sum(p * float(values[str(start.child(a))]) for a, p in start.chance_outcomes())
    else:
        value = (1 + float(values[str(start)])) / 2  # of -1 and 1, the chance to win
    return seconds, {"value": value, "states": len(values)}


def matrix_games(games, out, most):
    """As many games (n, m, m) of a file as QuantEcon solves in `most` seconds, one after the other;
    their pairs of strategies go to a file. Seconds are those of one game."""
    import numpy as np
    from quantecon.optimize import minmax

    batch, result = np.load(games), []
    minmax(batch[0])  # what it compiles
    began = time.perf_counter()
    for game in batch:
        result.append(minmax(game)[1:])
        if time.perf_counter() - began > most:
            break
    seconds = (time.perf_counter() - began) / len(result)
    np.save(out, np.array(result))
    return seconds, {"games": len(result)}


TASKS = {"open_spiel": open_spiel, "matrix_games": matrix_games}


def main(task, text):
    """Do a task in a thread with a large stack: OpenSpiel goes down a game by recursion."""
    result = []
    sys.setrecursionlimit(10**6)
    threading.stack_size(1 << 29)
    thread = threading.Thread(target=lambda: result.append(TASKS[task](**json.loads(text))))
    thread.start()
    thread.join()
    [(seconds, answer)] = result
    print(json.dumps({"seconds": seconds, "answer": answer}))


if __name__ == "__main__":
    main(*sys.argv[1:])
