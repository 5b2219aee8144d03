"""The other programs of the bench suite ``peers``, each run by the Python of an environment that
has them: ``python peer_programs.py TASK JSON`` prints a line of JSON, ``seconds`` of the work alone
(its imports and its reading of files left out), ``answer`` and ``memory``, the most bytes that it
had.

Nothing of luckbase is imported here, nor anything before it is needed.
"""

import json
import sys
import threading
import time
from pathlib import Path

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


def storm(name):
    """The most that the one who chooses can get from the first state, by Storm's own choice of
    method."""
    import stormpy

    model = stormpy.build_model_from_explicit(f"{name}.tra", f"{name}.lab")
    [wanted] = stormpy.parse_properties('Pmax=? [F "won"]')
    began = time.perf_counter()
    found = stormpy.model_checking(model, wanted)
    seconds = time.perf_counter() - began
    value = float(found.get_value(next(iter(model.initial_states))))
    return seconds, {"value": value, "states": int(model.nr_states)}


def mdptoolbox(name):
    """The same by pymdptoolbox, which wants one matrix a choice: a state that has fewer choices
    repeats its first. A state pays the chance to win with its next step."""
    import mdptoolbox.mdp
    import numpy as np
    from scipy import sparse

    rows = np.loadtxt(f"{name}.tra", skiprows=1)
    x, choice, y = rows[:, :3].astype(int).T
    labels = [line.split() for line in Path(f"{name}.lab").read_text().splitlines()]
    labelled = {label: int(line[0]) for line in labels if line[0].isdigit() for label in line[1:]}
    states = int(x.max()) + 1
    most = np.zeros(states, int)
    np.maximum.at(most, x, choice)
    matrices, rewards = [], []
    for c in range(int(most.max()) + 1):
        at = choice == np.where(most[x] >= c, c, 0)
        at &= x != labelled["won"]  # paid for once, when it is reached
        matrix = sparse.csr_matrix((rows[at, 3], (x[at], y[at])), (states, states))
        rewards.append(np.asarray(matrix[:, labelled["won"]].todense()).ravel())
        stay = ([1.0], ([labelled["won"]], [labelled["over"]]))
        matrices.append(matrix + sparse.csr_matrix(stay, (states, states)))
    solver = mdptoolbox.mdp.ValueIteration(
        matrices, np.array(rewards).T, 1 - 1e-15, EPSILON, max_iter=100_000
    )
    solver.max_iter = 100_000  # it works out one of its own
    began = time.perf_counter()
    solver.run()
    seconds = time.perf_counter() - began
    return seconds, {"value": float(solver.V[labelled["init"]]), "states": states}


def matrix_games(program, games, out, most):
    """As many games (n, m, m) of a file as go in `most` seconds, one after the other; their pairs
    of strategies go to a file. Seconds are those of one game."""
    import numpy as np

    batch, found = np.load(games), []
    solve = SOLVERS[program]()
    solve(batch[0])  # what it compiles
    began = time.perf_counter()
    for game in batch:
        found.append(solve(game))
        if time.perf_counter() - began > most:
            break
    seconds = (time.perf_counter() - began) / len(found)
    np.save(out, np.array(found))
    return seconds, {"games": len(found)}


def _quantecon_minmax():
    from quantecon.optimize import minmax

    return lambda a: minmax(a)[1:]


def _quantecon_lemke_howson():
    from quantecon.game_theory import NormalFormGame, Player, lemke_howson

    return lambda a: lemke_howson(NormalFormGame((Player(a), Player(-a.T))))


def _nashpy():
    import nashpy

    return lambda a: nashpy.Game(a).linear_program()


def _highs():
    """A model a game, handed over whole; the other player's strategy is its dual solution."""
    import highspy
    import numpy as np

    def solve(a):
        m, n = a.shape
        shifted = a - a.min() + 1.0  # max 1 y subject to A y <= 1, y >= 0
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = n, m
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_, model.col_lower_ = np.ones(n), np.zeros(n)
        model.col_upper_ = np.full(n, highspy.kHighsInf)
        model.row_lower_, model.row_upper_ = np.full(m, -highspy.kHighsInf), np.ones(m)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.arange(0, m * n + 1, n)
        model.a_matrix_.index_ = np.tile(np.arange(n), m)
        model.a_matrix_.value_ = shifted.ravel()
        solver.passModel(model)
        solver.run()
        point = solver.getSolution()
        y, x = np.array(point.col_value), np.abs(np.array(point.row_dual))
        return x / x.sum(), y / y.sum()

    return solve


def _scipy():
    import numpy as np
    from scipy.optimize import linprog

    def solve(a):
        m, n = a.shape
        shifted = a - a.min() + 1.0
        found = linprog(-np.ones(n), shifted, np.ones(m), method="highs")
        y, x = found.x, np.abs(found.ineqlin.marginals)
        return x / x.sum(), y / y.sum()

    return solve


SOLVERS = {
    "QuantEcon minmax": _quantecon_minmax, "QuantEcon lemke_howson": _quantecon_lemke_howson,
    "nashpy linear_program": _nashpy, "HiGHS": _highs, "scipy linprog": _scipy,
}  # fmt: skip


def syzygy(tables, questions):
    """Probes of positions of king and queen against king and rook, one after the other."""
    import random

    import chess
    import chess.syzygy

    rng, boards = random.Random(0), []
    while len(boards) < questions:
        board = chess.Board(None)
        for square, piece in zip(rng.sample(range(64), 4), "KQkr", strict=True):
            board.set_piece_at(square, chess.Piece.from_symbol(piece))
        boards += [board] * board.is_valid()
    with chess.syzygy.open_tablebase(tables) as opened:
        opened.probe_dtz(boards[0])
        began = time.perf_counter()
        for board in boards:
            opened.probe_dtz(board)
        return (time.perf_counter() - began) / len(boards), {"questions": len(boards)}


TASKS = {
    "open_spiel": open_spiel, "storm": storm, "mdptoolbox": mdptoolbox,
    "matrix_games": matrix_games, "syzygy": syzygy,
}  # fmt: skip


def main(task, said):
    """Do a task in a thread with a large stack: OpenSpiel goes down a game by recursion."""
    found = []
    sys.setrecursionlimit(10**6)
    before = threading.stack_size(1 << 29)
    thread = threading.Thread(target=lambda: found.append(TASKS[task](**json.loads(said))))
    thread.start()
    threading.stack_size(before)
    thread.join()
    [(seconds, answer)] = found
    print(json.dumps({"seconds": seconds, "memory": most_memory(), "answer": answer}))


def most_memory():
    """The most bytes that this process had (`getrusage` would say what its parent had); 0 where
    Linux does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
