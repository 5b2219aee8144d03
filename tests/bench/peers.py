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
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from luckbase.jobs import terminal

TURNS, LIMIT = 3, 300.0
"""Turns of each program; seconds that a program may take for one."""
PIG, GOOFSPIEL = (20, 40, 60, 100), (3, 4, 5)
"""Goals; cards."""
SIDES, GAMES, SECONDS = (2, 3, 5, 8, 13), 2_000, 20.0
"""Actions a player of matrix games; games; seconds that a program may take for them."""
MATRIX = ("QuantEcon minmax", "scipy linprog")
SINGLE, BATCH = 20, 10_000
HEADS = ("work", "program", "ours", "theirs", "x, least", "x, median", "answers")


@dataclass
class Line:
    """One program at one work. ours, theirs: seconds of each turn. note: how the answers compare,
    or why there are none."""

    work: str
    who: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    note: str = ""

    def cells(self):
        if not self.theirs:
            return self.work, self.who, "", "", "", "", self.note
        ratios = [theirs / ours for ours, theirs in zip(self.ours, self.theirs, strict=False)]
        return (
            self.work, self.who, f"{min(self.ours):.3g} s", f"{min(self.theirs):.3g} s",
            f"{min(ratios):.3g}", f"{statistics.median(ratios):.3g}", self.note,
        )  # fmt: skip


def peers_suite(board, results, python=None):
    """Print a line for each work and program. python: of the environment of the programs."""
    results.mkdir(parents=True, exist_ok=True)
    lines = [*_queries(board, results), *(_programs(python, results) if python else ())]
    terminal.print_table("x: their time over ours", HEADS, [x.cells() for x in lines], sys.stdout)
    if not python:
        print("OpenSpiel and solvers of matrix games: name their Python with --python")


def _programs(python, results):
    for game, sizes in (("pig", PIG), ("goofspiel", GOOFSPIEL)):
        for size in sizes:
            words = {"game": game, "size": size}
            line = Line(f"{game} {size}", "OpenSpiel")
            yield _in_turns(line, python, ("game", words), ("open_spiel", words), _values)
    for side in SIDES:
        path, out = results / f"games-{side}.npy", results / "strategies.npy"
        batch = np.random.default_rng(side).standard_normal((GAMES, side, side))
        np.save(path, batch)

        def gaps(ours, theirs, batch=batch, out=out):
            gap = worst_gap(batch, np.load(out))
            return f"worst gap {gap:.1e}, ours {ours['gap']:.1e}, of {theirs['games']:,} games"

        for who in MATRIX:
            words = {"program": who, "games": str(path), "out": str(out), "most": SECONDS}
            line = Line(f"matrix games, {side} × {side}", who)
            ours = ("matrix", {"games": str(path)})
            yield _in_turns(line, python, ours, ("matrix_games", words), gaps)


def _in_turns(line, python, ours, theirs, compared):
    """Fill a line in by turns. ours, theirs: (task, its arguments)."""
    for _ in range(TURNS):
        own = _run(None, *ours)
        try:
            other = _run(python, *theirs)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            line.note = str(error)[:100]
            break
        line.ours.append(own["seconds"])
        line.theirs.append(other["seconds"])
        line.note = compared(own["answer"], other["answer"])
        if other["seconds"] > LIMIT / 10:
            break
    return line


def _run(python, task, words):
    """Run a task in a process: of `peer_programs` by their Python, else of this module."""
    module = [str(python), str(Path(__file__).with_name("peer_programs.py"))]
    command = module if python else [sys.executable, "-m", "tests.bench.peers"]
    done = subprocess.run(
        [*command, task, json.dumps(words)], capture_output=True, text=True, timeout=LIMIT
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])  # banners come first


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
    import luckbase

    solved = luckbase.solve(luckbase.load_board(board, score_unit=500, frontier=2), results=results)
    with luckbase.open(solved.table) as table:
        drawn = np.concatenate(list(table.draw(BATCH, 0)))
        frame = table.game.table_columns(drawn)
        frame = dict(frame) | {"spins": sum(v for k, v in frame.items() if k[:6] in SPINS)}
        for work, pieces in (
            (f"{SINGLE} states of {table.rows:,}", np.split(np.arange(SINGLE), SINGLE)),
            (f"{len(drawn):,} states at once", [np.arange(len(drawn))]),
        ):
            yield _queried(Line(work, "DuckDB"), table, solved.table, drawn, frame, pieces)


def _queried(line, table, path, drawn, frame, pieces):
    for _ in range(TURNS):
        seconds, ours = _timed(lambda: [table.probe(drawn[at])[:, 0] for at in pieces])
        line.ours.append(seconds)
        some = [{name: column[at] for name, column in frame.items()} for at in pieces]
        seconds, theirs = _timed(lambda some=some: [_duckdb(path, each) for each in some])
        line.theirs.append(seconds)
        apart = np.sort(np.concatenate(ours)) - np.sort(np.concatenate(theirs))
        line.note = f"{np.abs(apart).max():.0e} apart"
    return line


SPINS = ("earned", "passed")


def _duckdb(table, columns):
    import duckdb
    import pandas

    with duckdb.connect() as connection:
        connection.register("wanted", pandas.DataFrame(columns))
        files = f"read_parquet('{table}/tiers/*.parquet')"
        text = f"select payoff_1 from {files} join wanted using ({', '.join(columns)})"
        return connection.sql(text).fetchnumpy()["payoff_1"]


# --- our own tasks -------------------------------------------------------------------------------


def _timed(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _game(game, size):
    """Solve a board in memory: its full table, or a search from its start."""
    import luckbase

    name, option = ("pig/race", "goal") if game == "pig" else ("goofspiel/points", "cards")
    board = luckbase.load_board(name, **{option: size})
    luckbase.open(luckbase.load_board(f"{game}/tiny"), in_memory=True)  # compiles
    seconds, table = _timed(lambda: luckbase.open(board, in_memory=True))
    value = table.ask(table.game.describe(table.game.needed_start())).value[0]
    return seconds, {"value": value, "states": table.rows}


def _matrix(games):
    from luckbase.solver.matrix_games.simplex import solve

    batch = np.load(games)
    solve(batch[:1])
    seconds, solved = _timed(lambda: solve(batch))
    return seconds / len(batch), {"gap": float(solved.gaps.max())}


OURS = {"game": _game, "matrix": _matrix}
if __name__ == "__main__":
    spent, answer = OURS[sys.argv[1]](**json.loads(sys.argv[2]))
    print(json.dumps({"seconds": spent, "answer": answer}))
