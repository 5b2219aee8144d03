"""The bench suite ``peers``: what a person would take in our place, and we, at the same work in
turns.

The programs live in an environment of their own
(docs/explanation/performance.md#the-field-side-by-side makes it), whose Python ``--python`` names;
`peer_programs` is what they run. Each turn is a process of its own, ours too, and times its work
alone. A ratio is their time over ours in one turn; the least and the median of the turns are
printed, and the answers are compared. Who is faster than we are stands first; what a program can
not do stands in its place.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests.bench.peer_programs import most_memory
from tests.bench.storm_files import write_process
from tests.places import BOARDS

TURNS, LIMIT = 3, 300.0
"""Turns of each; seconds that a program may take for one."""
PIG, GOOFSPIEL = (20, 40, 60, 100), (3, 4, 5)
"""Goals; cards."""
SIDES, GAMES, SECONDS = (2, 3, 5, 8, 13), 2_000, 20.0
"""Actions a player of matrix games; how many of each; seconds that a program may take for them."""
MATRIX = (
    "QuantEcon minmax", "QuantEcon lemke_howson", "nashpy linear_program", "HiGHS",
    "scipy linprog",
)  # fmt: skip
PROCESSES = {
    "jackpot/seed": {}, "pig/piglet": {}, "pig/tiny": {}, "pig/race": {"goal": 40}
}  # fmt: skip
TOOLBOX_STATES = 10_000
"""pymdptoolbox compares all pairs of states: 6.5 GB for 15,746."""
ASKED, BATCH = 20, 10_000
ROOTS = (
    "scores=0,2000,3500 earned=0,3,2", "scores=0,2000,3500 earned=3,2,1 whammies=2,0,0",
    "scores=2000,3000,6000 earned=0,3,0", "scores=0,1000,0 earned=0,10,0 whammies=0,3,3",
    "scores=0,10000,7000 earned=0,2,1", "scores=0,10000,7000 earned=0,1,0",
)  # fmt: skip
"""The searches of pressorpass's `test1`, whose board is that of 1985-02 at $250."""
CANNOT = (
    "OpenSpiel: no tables on disk, no bound on what it prints, a state is a Python object.",
    "QuantEcon, nashpy, HiGHS, scipy: no proof of the gap with the answer; it is worked out here.",
    "Storm: two players who choose at once, or two with payoffs of their own; it gets the process "
    "that we found, and reading it is not in its time, while finding it is in ours.",
    f"pymdptoolbox: more than some {TOOLBOX_STATES:,} states; a discount of 1 (it gets 1 - 1e-15).",
    "DuckDB, polars, pyarrow: what is not stored: other actions, states above the table, checks.",
    "Syzygy's files are of chess; a probe is a position's distance, not every move's.",
    "PRISM is not looked for: a Java program that no package registry here has.",
)


@dataclass
class Line:
    """One program at one work. ours, theirs: seconds of each turn; said: their answer and how far
    from ours, or why there is none."""

    work: str
    who: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    said: str = ""
    memory: tuple[int, int] = (0, 0)

    @property
    def ratios(self):
        return [theirs / ours for ours, theirs in zip(self.ours, self.theirs, strict=False)]

    @property
    def faster(self):
        """Whether they are, in most turns or in the best of each."""
        if not self.ratios:
            return False
        return statistics.median(self.ratios) < 1 or min(self.theirs) < min(self.ours)

    def cells(self):
        if not self.theirs:
            ours = _time(min(self.ours)) if self.ours else ""
            return self.work, self.who, ours, "", "", "", "", self.said
        least, middle = min(self.ratios), statistics.median(self.ratios)
        sizes = "/".join(sentences.size(size) if size else "–" for size in self.memory)
        return (
            self.work, self.who, _time(min(self.ours)), _time(min(self.theirs)), f"{least:.3g}",
            f"{middle:.3g}", sizes if any(self.memory) else "", self.said,
        )  # fmt: skip


HEADS = ("work", "program", "ours", "theirs", "x, least", "x, median", "memory", "answers")


def _time(seconds):
    for unit, factor in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def peers_suite(board, results, python=None, pressorpass=None, syzygy=None):
    """Print who is faster than we are, then all; python: of the environment of the programs."""
    results.mkdir(parents=True, exist_ok=True)
    lines = []
    for line in _lines(board, results, python, pressorpass, syzygy):
        print(" ".join(line.cells()), file=sys.stderr, flush=True)
        lines.append(line)
    faster = [line for line in lines if line.faster]
    rows = [line.cells() for line in faster] or [("nobody", *[""] * (len(HEADS) - 1))]
    terminal.print_table("Faster than luckbase here", HEADS, rows, sys.stdout)
    rows = [line.cells() for line in lines]
    terminal.print_table("All, in turns; x: their time over ours", HEADS, rows, sys.stdout)
    for sentence in CANNOT:
        print(f"* {sentence}")


def _lines(board, results, python, pressorpass, syzygy):
    yield from _asking(board, results)
    if pressorpass is not None:
        yield _pressorpass(pressorpass, results)
    if python is None:
        said = "not run: name the Python of their environment with --python"
        yield Line("everything else", "OpenSpiel, QuantEcon, Storm, …", said=said)
        return
    for game, sizes in (("pig", PIG), ("goofspiel", GOOFSPIEL)):
        for size in sizes:
            said = {"game": game, "size": size}
            yield _in_turns(f"{game} {size}", "OpenSpiel", python, "game", said, "open_spiel", said)
    yield from _processes(python, results)
    yield from _matrix_games(python, results)
    if syzygy is not None:
        line = Line("one question", "python-chess, Syzygy")
        done = _theirs(line, python, "syzygy", {"tables": str(syzygy), "questions": ASKED * 100})
        line.said = line.said or f"{_time(done['seconds']) if done else ''}, KQvKR, of chess"
        yield line


# --- turns ---------------------------------------------------------------------------------------


def _run(python, task, said):
    """A task in a process of its own: of `peer_programs` by their Python, of this module by ours;
    None where it takes too long. Raises RuntimeError where it fails."""
    module = [str(Path(__file__).with_name("peer_programs.py"))]
    command = [str(python), *module] if python else [sys.executable, "-m", "tests.bench.peers"]
    try:
        done = subprocess.run(
            [*command, task, json.dumps(said)], capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1][:200])
    found = json.loads(done.stdout.splitlines()[-1])  # before it, banners
    return found


def _in_turns(work, who, python, task, said, their_task, their_said):
    """A line of a work that we do by `task` and they by `their_task`."""
    line = Line(work, who)
    for _ in range(TURNS):
        ours = _run(None, task, said)
        assert ours is not None
        line.ours.append(ours["seconds"])
        theirs = _theirs(line, python, their_task, their_said)
        if theirs is None:
            break
        line.theirs.append(theirs["seconds"])
        line.memory = (ours["memory"], theirs["memory"])
        line.said = _compared(ours["answer"], theirs["answer"])
        if theirs["seconds"] > LIMIT / 10:
            break  # one turn says it
    return line


def _theirs(line, python, task, said):
    """A task of another program; None, and the line says why, where it fails or takes too long."""
    try:
        found = _run(python, task, said)
    except RuntimeError as error:
        line.said = str(error)
        return None
    if found is None:
        line.said = f"not within {LIMIT:.0f} s"
    return found


def _compared(ours, theirs):
    if "gap" in ours:
        return f"worst gap {theirs['gap']:.1e}, ours {ours['gap']:.1e}"
    apart = abs(ours["value"] - theirs["value"])
    return f"{apart:.0e} apart, states {theirs['states']:,}, ours {ours['states']:,}"


# --- works ---------------------------------------------------------------------------------------


def _processes(python, results):
    """Our tables as decision processes (`tests.bench.storm_files`), solved by others."""
    import luckbase

    for name, options in PROCESSES.items():
        out = results / name.replace("/", "-")
        read = luckbase.load_board(name, **options)
        with luckbase.open(read, in_memory=True) as table:
            states = write_process(table, str(out))
        work = f"{name} {sentences.fields(options)}".strip()
        said = {"board": name, "options": options}
        for who, task in (("Storm", "storm"), ("pymdptoolbox", "mdptoolbox")):
            if task == "mdptoolbox" and states > TOOLBOX_STATES:
                yield Line(work, who, said=f"not run: {states:,} states")
            else:
                yield _in_turns(work, who, python, "process", said, task, {"name": str(out)})


def _matrix_games(python, results):
    """Random games, one after the other; the gap of every answer is worked out here."""
    for side in SIDES:
        path, out = results / f"games-{side}.npy", results / "strategies.npy"
        batch = np.random.default_rng(side).standard_normal((GAMES, side, side))
        np.save(path, batch)
        for who in MATRIX:
            line = Line(f"matrix games, {side} × {side}", who)
            said = {"program": who, "games": str(path), "out": str(out), "most": SECONDS}
            for _ in range(TURNS):
                ours = _run(None, "matrix", {"games": str(path)})
                assert ours is not None
                line.ours.append(ours["seconds"])
                theirs = _theirs(line, python, "matrix_games", said)
                if theirs is None:
                    break
                line.theirs.append(theirs["seconds"])
                theirs["answer"]["gap"] = worst_gap(batch, np.load(out))
                line.said = _compared(ours["answer"], theirs["answer"])
                if theirs["answer"]["games"] < GAMES:
                    line.said += f", of {sentences.many(theirs['answer']['games'], 'game')}"
                    break
            yield line


def worst_gap(batch, pairs):
    """The largest distance of the bounds that pairs of strategies (k, 2, m) prove of the first k of
    games (n, m, m)."""
    games = batch[: len(pairs)]
    low = np.einsum("nr,nrc->nc", pairs[:, 0], games).min(axis=1)
    high = np.einsum("nrc,nc->nr", games, pairs[:, 1]).max(axis=1)
    return float((high - low).max())


def _asking(board, results):
    """The payoffs of states of one full table of Press Your Luck, by all columns: one after the
    other, and in a batch."""
    import pandas

    import luckbase

    read = luckbase.load_board(board, score_unit=500, frontier=2)
    solved = luckbase.solve(read, results=results)
    with luckbase.open(solved.table) as table:
        drawn = np.concatenate(list(table.draw(BATCH, 0)))
        frame = pandas.DataFrame(table.game.table_columns(drawn))
        spins = [name for name in frame.columns if name.startswith(("earned", "passed"))]
        frame["spins"] = frame[spins].sum(axis=1).astype(np.int32)
        files = str(solved.table / "tiers/*.parquet")
        one_by_one = np.split(np.arange(ASKED), ASKED)
        for work, pieces in (
            (f"{ASKED} questions of {table.rows:,} states", one_by_one),
            (f"{len(drawn):,} states at once", [np.arange(len(drawn))]),
        ):
            asked = [(drawn[at], frame.iloc[at].reset_index(drop=True)) for at in pieces]
            for who, ask in ASKING.items():
                yield _asked(Line(work, who), table, asked, files, ask)


def _asked(line, table, asked, files, ask):
    for _ in range(TURNS):
        seconds, ours = _timed(lambda: [table.probe(states)[:, 0] for states, _ in asked])
        line.ours.append(seconds)
        seconds, theirs = _timed(lambda: [ask(files, frame) for _, frame in asked])
        line.theirs.append(seconds)
        apart = np.sort(np.concatenate(ours)) - np.sort(np.concatenate(theirs))
        line.said = f"{np.abs(apart).max():.0e} apart"
    return line


def _duckdb(files, frame):
    import duckdb

    with duckdb.connect() as connection:
        connection.register("asked", frame)
        using = ", ".join(frame.columns)
        said = f"select payoff_1 from read_parquet('{files}') join asked using ({using})"
        return connection.sql(said).fetchnumpy()["payoff_1"]


def _polars(files, frame):
    import polars

    asked = polars.from_pandas(frame).lazy()
    found = polars.scan_parquet(files).join(asked, on=list(frame.columns), how="semi")
    return found.select("payoff_1").collect()["payoff_1"].to_numpy()


def _pyarrow(files, frame):
    """A filter for one state, a join for many."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    data = ds.dataset(str(Path(files).parent))
    if len(frame) == 1:
        wanted = None
        for name, value in frame.iloc[0].items():
            here = ds.field(name) == int(value)
            wanted = here if wanted is None else wanted & here
        return data.to_table(columns=["payoff_1"], filter=wanted)["payoff_1"].to_numpy()
    asked = pa.Table.from_pandas(frame, preserve_index=False)
    rows = data.to_table(columns=[*frame.columns, "payoff_1"])
    return rows.join(asked, list(frame.columns), join_type="inner")["payoff_1"].to_numpy()


ASKING = {
    "DuckDB": _duckdb, "polars": _polars, "pyarrow": _pyarrow,
}  # fmt: skip


def _pressorpass(checkout, results):
    """The C++ program, built in a copy of its checkout; its `test1` against the same searches."""
    copied = results / "pressorpass"
    shutil.copytree(checkout, copied, dirs_exist_ok=True)
    built = subprocess.run(["make", "-B", "test1"], cwd=copied, capture_output=True, text=True)
    line = Line(f"{len(ROOTS)} searches, $250", "pressorpass")
    if built.returncode:
        line.said = f"not built: {built.stderr.strip().splitlines()[-1][:120]}"
        return line
    line.said = "its answers are bounds: at most 64 deep, the player behind always plays"
    for _ in range(TURNS):
        ours = _run(None, "searches", {"roots": ROOTS})
        assert ours is not None
        line.ours.append(ours["seconds"])
        began = time.perf_counter()
        subprocess.run([copied / "test1"], capture_output=True, check=True)
        line.theirs.append(time.perf_counter() - began)
    return line


# --- ours, in a process of its own ---------------------------------------------------------------


def _timed(work):
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def _game(game, size):
    name, option = ("pig/race", "goal") if game == "pig" else ("goofspiel/points", "cards")
    return _solved(name, {option: size})


def _solved(board, options):
    """A board solved in memory: its full table, or a search from its start."""
    import luckbase

    read = luckbase.load_board(board, **options)
    luckbase.open(luckbase.load_board(f"{board.partition('/')[0]}/tiny"), in_memory=True)
    seconds, table = _timed(lambda: luckbase.open(read, in_memory=True))
    value = table.ask(table.game.describe(table.game.needed_start())).value[0]
    return seconds, {"value": value, "states": table.rows}


def _matrix(games):
    from luckbase.solver.matrix_game.simplex import solve

    batch = np.load(games)
    solve(batch[:1])
    seconds, found = _timed(lambda: solve(batch))
    return seconds / len(batch), {"gap": float(found.gaps.max())}


def _searches(roots):
    import luckbase
    from luckbase.jobs.app import read_fields

    read = luckbase.load_board(BOARDS / "press-your-luck/1985-02.toml")
    starts = [read_fields(root.split()) for root in roots]
    luckbase.open(read, in_memory=True, start=starts[-1])
    return _timed(
        lambda: [luckbase.open(read, in_memory=True, start=start).rows for start in starts]
    )


OURS = {
    "game": _game, "process": _solved, "matrix": _matrix, "searches": _searches,
}  # fmt: skip


if __name__ == "__main__":
    spent, answer = OURS[sys.argv[1]](**json.loads(sys.argv[2]))
    print(json.dumps({"seconds": spent, "memory": most_memory(), "answer": answer}))
