"""The bench suite ``peers``: other programs and luckbase at the same work, in turns.

The programs live in an environment of their own (docs/explanation/performance.md), whose Python
``--python`` names; `peer_programs` runs them. Each turn is a process of its own, for luckbase too,
and times the work alone. A ratio is their time divided by ours in one turn. The answers are
compared.
"""

import json
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas

import luckbase
from luckbase.jobs import terminal
from luckbase.solver.matrix_games.simplex import solve

TURNS, LIMIT = 3, 300.0
"""Turns of each program; seconds that a program may take for one."""
PIG, GOOFSPIEL = (20, 40, 60, 100), (3, 4, 5)
"""Goals; cards."""
SIDES, GAMES, SECONDS = (2, 3, 5, 8, 13), 2_000, 20.0
"""Actions a player of matrix games; games; seconds that a program may take for them."""
SINGLE, BATCH = 20, 10_000
HEADS = ("work", "program", "ours", "theirs", "x, least", "x, median", "answers")


def peers_suite(board, results, python=None):
    """Print a line for each work and program. python: of the environment of the programs."""
    results.mkdir(parents=True, exist_ok=True)
    rows = [*_queries(board, results), *(_programs(python, results) if python else ())]
    terminal.print_table("x: their time over ours", HEADS, rows, sys.stdout)
    if not python:
        print("OpenSpiel and solvers of matrix games: name their Python with --python")


def _programs(python, results):
    for game, size in [("pig", n) for n in PIG] + [("goofspiel", n) for n in GOOFSPIEL]:
        words = {"game": game, "size": size}
        turns = partial(_run, None, "game", words), partial(_run, python, "open_spiel", words)
        yield _in_turns(f"{game} {size}", "OpenSpiel", *turns, _values)
    for side in SIDES:
        path, out = str(results / f"games-{side}.npy"), str(results / "strategies.npy")
        batch = np.random.default_rng(side).standard_normal((GAMES, side, side))
        np.save(path, batch)

        def gaps(ours, theirs, batch=batch, out=out):
            gap = worst_gap(batch, np.load(out))
            return f"worst gap {gap:.1e}, ours {ours['gap']:.1e}, of {theirs['games']:,} games"

        ours = partial(_run, None, "matrix", {"games": path})
        theirs = partial(_run, python, "matrix_games", {"games": path, "out": out, "most": SECONDS})
        yield _in_turns(f"matrix games, {side} × {side}", "QuantEcon minmax", ours, theirs, gaps)


def _in_turns(work, who, ours, theirs, compared):
    """The row of a program at a work. ours, theirs: a turn; return seconds and an answer."""
    turns, note = [], ""
    for _ in range(TURNS):
        seconds, answer = ours()
        try:
            their_seconds, their_answer = theirs()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            note = str(error)[:100]
            break
        turns.append((seconds, their_seconds))
        note = compared(answer, their_answer)
        if their_seconds > LIMIT / 10:
            break
    if not turns:
        return work, who, "", "", "", "", note
    ratios = [their_seconds / seconds for seconds, their_seconds in turns]
    least = [f"{min(column):.3g} s" for column in zip(*turns, strict=True)]
    return (work, who, *least, f"{min(ratios):.3g}", f"{statistics.median(ratios):.3g}", note)


def _run(python, task, words):
    """Run a task in a process: of `peer_programs` by their Python, else of this module. Seconds and
    the answer."""
    theirs = [str(python), str(Path(__file__).with_name("peer_programs.py"))]
    command = theirs if python else [sys.executable, "-m", "tests.bench.peers"]
    done = subprocess.run(
        [*command, task, json.dumps(words)], capture_output=True, text=True, timeout=LIMIT
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    text = json.loads(done.stdout.splitlines()[-1])  # banners come first
    return text["seconds"], text["answer"]


def _values(ours, theirs):
    apart = abs(ours["value"] - theirs["value"])
    return f"{apart:.0e} apart, states {theirs['states']:,}, ours {ours['states']:,}"


def worst_gap(batch, pairs):
    """Return the largest gap of the bounds that pairs of strategies (k, 2, m) prove of the first k
    of games (n, m, m)."""
    games = batch[: len(pairs)]
    low = np.einsum("nr,nrc->nc", pairs[:, 0], games).min(axis=1)
    high = np.einsum("nrc,nc->nr", games, pairs[:, 1]).max(axis=1)
    return float((high - low).max())


def _queries(board, results):
    """Payoffs of states of one full table, by all columns: one by one, and in a batch."""
    solved = luckbase.solve(luckbase.load_board(board, score_unit=500, frontier=2), results=results)
    with luckbase.open(solved.table) as table:
        drawn = np.concatenate(list(table.draw(BATCH, 0)))
        frame = pandas.DataFrame(dict(table.game.table_columns(drawn)))
        frame["spins"] = frame.filter(regex="^(earned|passed)").sum(axis=1)
        for work, pieces in (
            (f"{SINGLE} states of {table.rows:,}", np.split(np.arange(SINGLE), SINGLE)),
            (f"{len(drawn):,} states at once", [np.arange(len(drawn))]),
        ):
            ours = partial(_each, lambda at: table.probe(drawn[at])[:, 0], pieces)
            theirs = partial(_each, lambda at: _duckdb(solved.table, frame.iloc[at]), pieces)
            yield _in_turns(work, "DuckDB", ours, theirs, _apart)


def _each(work, pieces):
    return _timed(lambda: np.sort(np.concatenate([work(piece) for piece in pieces])))


def _apart(ours, theirs):
    return f"{np.abs(ours - theirs).max():.0e} apart"


def _duckdb(table, wanted):
    with duckdb.connect() as connection:
        connection.register("wanted", wanted)
        files = f"read_parquet('{table}/tiers/*.parquet')"
        text = f"select payoff_1 from {files} join wanted using ({', '.join(wanted.columns)})"
        return connection.sql(text).fetchnumpy()["payoff_1"]


# --- our own tasks -------------------------------------------------------------------------------


def _timed(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _game(game, size):
    """Solve a board in memory: its full table, or a search from its start."""
    name, option = ("pig/race", "goal") if game == "pig" else ("goofspiel/points", "cards")
    board = luckbase.load_board(name, **{option: size})
    luckbase.open(luckbase.load_board(f"{game}/tiny"), in_memory=True)  # compiles
    seconds, table = _timed(lambda: luckbase.open(board, in_memory=True))
    value = table.ask(table.game.describe(table.game.needed_start())).value[0]
    return seconds, {"value": value, "states": table.rows}


def _matrix(games):
    batch = np.load(games)
    solve(batch[:1])
    seconds, solved = _timed(lambda: solve(batch))
    return seconds / len(batch), {"gap": float(solved.gaps.max())}


OURS = {"game": _game, "matrix": _matrix}
if __name__ == "__main__":
    spent, answer = OURS[sys.argv[1]](**json.loads(sys.argv[2]))
    print(json.dumps({"seconds": spent, "answer": answer}))
