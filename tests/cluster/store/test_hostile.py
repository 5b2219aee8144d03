"""What a stranger may put into a table, with all hashes correct: refused in a sentence, or found by
verify; nothing ends by a signal, in a traceback, or beyond the table's folder."""

import io
import json
import re
import shutil
import sys
import time
import traceback
from contextlib import redirect_stdout, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import luckbase
from luckbase.cluster.store import RUNNING, writer
from luckbase.cluster.store.manifest import NAME
from luckbase.solver.board.model import identity_of
from luckbase.solver.errors import LuckbaseError
from luckbase.solver.game.game import load_game
from tests import solving
from tests.cluster.store import hostile
from tests.cluster.store.hostile import (
    edited,
    footer_changed,
    numbers,
    off_by,
    rows_changed,
    special,
    with_column,
)
from tests.places import BOARDS
from tests.shared import python

HUGE = 1 << 62
REFUSED = ("ask", "rows", "export", "verify")


def value(path, to):
    return lambda table: edited(table, path, to)


def rows(change, **how):
    return lambda table: rows_changed(table, change, **how)


def raw(content):
    return lambda table: (table / NAME).write_bytes(content)


def keys(make):
    return rows(with_column("key", make), dictionary=("best",))


def rules(**change):
    """A board that is none, whose identity is that of its rules."""

    def changed(table):
        form = hostile.form_of(table)
        form["rules"] |= change
        form["identity"] = identity_of(form["rules"], form["rules_version"])
        hostile.sealed(table, form)

    return changed


def running(text):
    """A table that another host seems to solve, with a sign of life that says this."""

    def change(table):
        edited(table, "writer", lambda writer: writer | {"ended": False, "machine": "another"})
        now = datetime.now().astimezone().isoformat()
        (table / RUNNING).write_text(json.dumps({"at": now, "process": 1, "host": "a"} | text))

    return change


def brackets(table):
    text = json.dumps(hostile.form_of(table))
    hostile.sealed_text(table, text[:-1] + ', "rules": ' + "[" * 20_000 + "]" * 20_000 + "}")


def unknown_tier(table):
    form = hostile.form_of(table)
    entry = form["files"][0]
    entry["tier"] = 99_999
    entry["first_key"] = 99_999 << 40
    entry["last_key"] = entry["first_key"] + entry["rows"] - 1
    hostile.sealed(table, form)


def too_many_rows(table):
    form = hostile.form_of(table)
    form["files"][0]["rows"] += 1
    form["files"][0]["last_key"] += 1
    hostile.sealed(table, form)


def random_payoffs(table):
    """Of every file, with a bound on their error that allows them."""
    for number in range(len(hostile.form_of(table)["files"])):
        if "/" in (name := hostile.entry_at(table, number).name) and name.startswith("tiers"):
            shuffled = with_column("payoff_1", lambda r: np.random.default_rng(1).permutation(
                numbers(r, "payoff_1")))  # fmt: skip
            rows_changed(table, shuffled, number)
        edited(table, f"files.{number}.error", 1.0)


def label(text):
    def make(read):
        return pa.DictionaryArray.from_arrays(np.zeros(len(read), np.int32), pa.array([text]))

    return rows(with_column("best", make))


FULL, SEARCH, STAGES, BELOW = "full", "search", "stages", "below"
HALF_OF = {FULL: "half full", SEARCH: "half of stages", STAGES: "half of stages"}
"""Half-solved tables, on which the cases of whole ones are tried too."""
HALVES = sorted(set(HALF_OF.values()))
FOUND = "found by verify"
FINE = "no fault"
SOLVED = "solved or refused"
CASES = [
    # the manifest: (what, table, change, the sentence of each step, or what comes of it)
    ("another number of rows", FULL, value("files.0.rows", 1), "its keys are not those"),
    ("a row more than the tier", FULL, too_many_rows, "is of no tier of this board"),
    ("a tier that is not there", FULL, unknown_tier, "is of no tier of this board"),
    ("other groups", FULL, value("files.0.row_group_rows", 1000), "other rows than the manifest"),
    ("a file of all", FULL, value("files.0.bytes", HUGE), "ends at byte|bytes, not"),
    ("a large error", FULL, value("files.0.error", 1.0), FOUND),
    ("another last key", FULL, value("files.0.last_key", 0), "its keys are not those"),
    ("a name above", FULL, value("files.0.name", "../x.parquet"), "outside the table"),
    ("a place above", FULL, value("files.0.at", "tiers/../../x.parquet"), "outside the table"),
    ("an absolute place", FULL, value("files.0.at", "/etc/passwd"), "outside the table"),
    ("a hidden place", FULL, value("files.0.at", "tiers/..parquet"), "outside the table"),
    ("another part", FULL, value("files.0.part", "tiers/.."), "outside the table"),
    ("a name with a zero", FULL, value("files.0.name", "tiers/a\0.parquet"), "outside the table"),
    ("a goal of no part", FULL, value("goals.0.part", "decisions"), r"goals\.0\.part is not what"),
    ("a reach that is text", FULL, value("goals.0.reach", {"frontier": "x"}), "goals.0.reach"),
    ("a long reach", FULL, value("goals.0.reach", {"frontier": 10**9}), "is not one that this"),
    ("an unknown reach", FULL, value("goals.0.reach", {"nothing": 1}), "is not one that this"),
    ("a board file that never ends", FULL, value("goals.0.board_file", "/dev/zero"), FINE),
    ("options for a shell", FULL, value("goals.0.settings", {"x": "$(rm -rf ~);\x1b[2J"}), FINE),
    ("a game that is not there", FULL, value("game", "nothing"), "its game 'nothing' is unknown"),
    ("a later format", FULL, value("format", 6), "a newer luckbase wrote it"),
    ("a format as text", FULL, value("format", "5"), "format is not|format 5"),
    ("a writer of no name", FULL, value("writers", ["../.."]), r"writers\.0 is not what"),
    ("a writer above", FULL, value("writer.id", "../../x"), r"writer\.id is not what"),
    ("a process that is no number", FULL, value("writer.process", "x"), "writer.process is not"),
    ("states below 0", FULL, value("done.0.states", -1), "done.0.states is not"),
    ("rules that are none", FULL, rules(solve={"score_unit": 0}), "is not one that this luckbase"),
    *((f"rules whose section is {to}", FULL, rules(solve=to), "is not one that this luckbase")
      for to in (0, None, "x", [], True)),
    *((f"rules of the game {to}", FULL, rules(game=to), "is not one that this luckbase")
      for to in (None, 0, [], {})),
    ("a level that is none", FULL, value("levels", [{"part": "x", "level": {}}]), "levels.0.part"),
    ("brackets", FULL, brackets, "manifest.json"),
    ("null", FULL, raw(b"null"), "its check does not match"),
    ("nothing", FULL, raw(b""), "its check does not match"),
    ("no text", FULL, raw(b"\xff" * 999), "its check does not match"),
    ("a large file", FULL, raw(b" " * (70 << 20)), "larger than any"),
    ("commas", FULL, raw(b"[" + b"1," * 5_000_000), "larger than any"),
    ("a pipe", FULL, lambda t: special(t, "pipe", NAME), "is a pipe or a device"),
    ("a device", FULL, lambda t: special(t, "/dev/zero", NAME), "is a pipe or a device"),
    # the files
    ("tiers elsewhere", FULL, lambda t: hostile.linked(t, "tiers"), "is missing"),
    ("a lock elsewhere", FULL, lambda t: hostile.linked(t, "manifest.json.lock"), FINE),
    ("logs elsewhere", FULL, lambda t: hostile.linked(t, "log"), FINE),
    ("a search elsewhere", SEARCH,
     lambda t: hostile.linked(t, next(t.glob("search-*")).name), "is missing"),
    ("a pipe as a lock", FULL, lambda t: special(t, "pipe", "manifest.json.lock"), FINE),
    ("a device as a lock", FULL, lambda t: special(t, "/dev/zero", "manifest.json.lock"), FINE),
    ("a sign of life of any kind", FULL, running({"at": "now"}), FINE),
    ("a sign of life of text", FULL, running({"shards": "x", "nodes": [1]}), FINE),
    ("a large sign of life", FULL, running({"last_note": "x" * (100 << 20)}), FINE),
    ("a data pipe", FULL, lambda t: special(t, "pipe"), "bytes, not|pipe or a device|is empty"),
    ("a data device", FULL, lambda t: special(t, "/dev/zero"), "bytes, not|pipe or a device|empty"),
    ("no payoffs", FULL, rows(lambda r: r.drop_columns(["payoff_2"])), "lacks a column"),
    ("payoffs as text", FULL, rows(with_column("payoff_1", lambda r: ["x"] * len(r))),
     "its column payoff_1 has another type"),
    ("best as numbers", FULL, rows(with_column("best", lambda r: np.arange(len(r)))),
     "its column best has another type"),
    ("actions of another game", FULL, label("steal"), "does not allow"),
    ("a long action", FULL, label("x" * (260 << 20)), "too many bytes|does not allow"),
    ("fewer rows", FULL, rows(lambda r: r.slice(0, 99)), "other rows than the manifest"),
    ("rows in other groups", FULL, rows(lambda r: r, group=500), "other rows than the manifest"),
    ("places below 0", FULL, lambda t: footer_changed(t, lambda c: [[-5, 1]]), "other places"),
    ("places beyond", FULL, lambda t: footer_changed(t, lambda c: [[HUGE, 1]]), "other places"),
    ("places that are none", FULL, lambda t: footer_changed(t, lambda c: [["0", 1]]), "is not as"),
    ("no payoff", FULL, rows(off_by("payoff_1", np.nan)), FOUND),
    ("another payoff", FULL, rows(off_by("payoff_1", 1e-3)), FOUND),
    ("random payoffs", FULL, random_payoffs, FOUND),
    ("another player", FULL, rows(off_by("to_act", 1)), FOUND),
    ("another state", FULL, rows(off_by("scores_1", 500)), FOUND),
    ("random keys", SEARCH, keys(lambda r: np.sort(np.random.default_rng(1).integers(
        0, 1 << 63, len(r), np.uint64))), "key of no state|not canonical|no keys|is not there"),
    ("keys of no state", SEARCH, keys(lambda r: numbers(r, "key") | np.uint64(0xF << 60)),
     "key of no state|not canonical|is not there"),
    ("keys down", SEARCH, keys(lambda r: numbers(r, "key")[::-1]), "ascend|is not there"),
    ("keys as text", SEARCH, keys(lambda r: numbers(r, "key").astype(str)), "another type"),
    ("keys below 0", SEARCH, keys(lambda r: numbers(r, "key").astype(np.int64)), "another type"),
    ("margins as text", SEARCH, rows(with_column("margin", lambda r: ["x"] * len(r))),
     "its column margin has another type"),
    ("a worse action", SEARCH, rows(with_column("best", lambda r: pa.chunked_array(
        [r["best"].cast(pa.string()).combine_chunks()[::-1]]).dictionary_encode())),
     "does not allow|residual"),
    ("another tile", SEARCH, rows(off_by("to_act", 1)), FOUND),
    ("a search tier", SEARCH, value("files.0.tier", 1), "its keys are none"),
    ("another margin", SEARCH, rows(with_column("margin", lambda r: numbers(r, "margin") + 1e-3)),
     FOUND),
    ("a payoff a little off", SEARCH, rows(off_by("payoff_1", 1e-9)), FOUND),
    ("no margin", SEARCH, rows(with_column("margin", lambda r: np.full(len(r), np.nan))), FOUND),
    ("an error a little larger", SEARCH, value("files.0.error", 1e-8), "error is 1.00e-08; exp"),
    ("an error that is too small", SEARCH, value("files.0.error", 0.0), "error is 0.00e"),
    ("an error of a millionth", FULL, value("files.0.error", 2e-6), "larger than any solve"),
    ("roots of another name", SEARCH, value("goals.0.roots", {"start": [{"open": [1]}]}), "others"),
    ("no roots", SEARCH, value("goals.0.roots", None), "roots of .* are others"),
    ("roots of the full table", FULL, value("goals.0.roots", {"start": [{}]}), "are others"),
    ("roots that are none", SEARCH, lambda t: hostile.other_roots(t, [{"open": "x"}]),
     "has a root that is none: open"),
    ("roots above", BELOW, lambda t: hostile.other_roots(t, [{"open": [1, 2, 3, 4]}]),
     "lacks its root open=1,2,3,4"),
    ("a level of nothing", STAGES, value("levels.0.level", {}), "has a level that is none"),
    ("a level of no width", STAGES, value("levels.0.level.width", 0), "level"),
    ("a level of text", STAGES, value("levels.0.level.falls", {"open": "x"}), "level"),
    ("a level of no field", STAGES, value("levels.0.level.falls", {"nothing": 1}), "level"),
    ("other stages", STAGES, value("files.0.stages", [HUGE]), "is not there|not below|rows"),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    tables = {kind: solve(kind, folder / kind) for kind in (FULL, SEARCH, STAGES, BELOW, *HALVES)}
    for kind in HALVES:
        hostile.half(tables[kind])
    return tables


def solve(kind, results, force=False):
    """Solve the table of a kind; return its folder."""
    if kind in (FULL, HALF_OF[FULL]):
        tiny = BOARDS / "press-your-luck" / "tiny.toml"
        board = luckbase.load_board(tiny, frontier=1, max_whammies=1)
        if kind != FULL:  # payoffs that are read back, because they are float64
            board = luckbase.load_board(BOARDS / "pig" / "rounds.toml", rounds=2, cut=20)
        return luckbase.solve(board, results=results, force=force).table
    board = luckbase.load_board(BOARDS / "jackpot" / "tiny.toml")
    game = load_game(board)
    roots = game.parse({"open": [1, 2]})[None] if kind == BELOW else None
    one_piece = 0 if kind in (STAGES, HALF_OF[STAGES]) else 1000
    how = {"results": results, "one_piece": one_piece, "force": force}
    return solving.solve_below(board, roots, **how).table


@pytest.mark.parametrize("halves", [False, True])
def test_every_case_is_refused_in_a_sentence_or_found(tables, tmp_path, halves):
    """All in one process of its own, which must not end by a signal, nor have much memory."""
    assert len(CASES) >= 60 and len({case[0] for case in CASES}) == len(CASES)
    cases = CASES
    if halves:
        cases = [
            (what, HALF_OF[kind], change, SOLVED)
            for what, kind, change, _ in CASES if kind in HALF_OF
        ]  # fmt: skip
    kinds = HALVES if halves else [FULL, SEARCH, STAGES, BELOW]
    jobs = [[kind, str(hostile.copy_of(tables[kind], tmp_path / kind))] for kind in kinds]
    for number, (_, kind, change, _) in enumerate(cases):
        table = hostile.copy_of(tables[kind], tmp_path / str(number))
        with suppress(*(LookupError, ValueError) if halves else ()):  # it lacks that
            change(table)
        jobs.append([kind, str(table)])
    outside = {path: path.read_bytes() for path in files_in(tmp_path / "outside")}
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    done = python(__file__, tmp_path / "jobs.json", check=False, timeout=580, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = list(map(json.loads, done.stdout.splitlines()))
    result = {}
    for text in lines[: len(kinds)]:  # first, because it compiles
        assert not any(text["said"].values()), text
        compiled = text["memory"]
    for (what, *_, outcome), text in zip(cases, lines[len(kinds) :], strict=True):
        text["memory"] -= compiled
        if why := why_wrong(outcome, text):
            result[what] = why
    assert not result, json.dumps(result, indent=1)
    assert {path: path.read_bytes() for path in files_in(tmp_path / "outside")} == outside
    assert {path.name for path in tmp_path.iterdir()} <= {"outside", "jobs.json"}


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def why_wrong(outcome, message):
    """Why what was said of a case is not what should come of it; "" if it is."""
    texts = [text for text in message["said"].values() if text]
    if broken := [text for text in texts if "Traceback" in text or "\n" in text or "\x1b" in text]:
        return broken[0][-800:]
    if message["seconds"] > 60 or message["memory"] > 1_000_000_000:
        return f"took {message['seconds']} seconds, {message['memory']:,} bytes"
    solved_again = (
        "force" in message["said"] and not message["said"]["force"] and "root" not in outcome
    )
    if solved_again and message["said"]["verify again"]:  # other roots are those of another search
        return f"solved again, {message['said']['verify again']}"
    if outcome == SOLVED:
        return ""
    if outcome == FINE:
        return str(message["said"]) if any(message["said"].get(step) for step in REFUSED) else ""
    verified = message["said"].get("verify") or ""
    if outcome == FOUND:
        return "" if verified else "verify found nothing"
    if not any(re.search(outcome, text) for text in texts):
        return str(message["said"])
    return "" if verified else "verify found nothing"


# --- the process that reads them ---


def faults_of(opened, remaining=None):
    """The faults of a table; without those of files of writers that its manifest does not name, if
    it was changed."""
    faults = opened.verify(None).faults
    return (
        "; ".join(fault for fault in faults if remaining is None or remaining not in fault) or None
    )


def said_of(kind, table):
    """What each step says of a table, None if it does what it should."""
    started, text = time.monotonic(), {}
    state = {"scores": (0, 500, 1000), "earned": (0, 1, 0)}
    results = Path(table).parents[2]

    def ask(opened):
        start = opened.game.start()
        opened.ask(state if start is None else {"open": (1, 2)})

    def export(opened):
        with redirect_stdout(io.StringIO()):
            opened.export(str(results / "out.csv"))

    def run(step, do):
        try:
            text[step] = do()
        except LuckbaseError as error:
            text[step] = str(error) or "no sentence"
        except Exception:
            text[step] = f"Traceback {traceback.format_exc()}"

    def opened(do):
        with luckbase.open(table) as it:
            return do(it)

    if kind not in HALVES:
        run("verify", lambda: opened(faults_of))
        run("ask", lambda: opened(ask))
        run("rows", lambda: opened(lambda it: sum(1 for _ in it) and None))
        run("export", lambda: opened(export))
        run("status", lambda: "; ".join(luckbase.status(table)[0].why) or None)
        run("clean", lambda: luckbase.clean(results=str(results)) and None)
    run("solve", lambda: solve(kind, results) and None)
    if kind != FULL:
        run("force", lambda: solve(kind, results, force=True) and None)
        run("verify again", lambda: opened(partial(faults_of, remaining="is not in the manifest")))
    status = Path("/proc/self/status").read_text()
    peak = 1024 * int(re.search(r"VmHWM:\s+([0-9]+) kB", status)[1])
    return {"said": text, "seconds": time.monotonic() - started, "memory": peak}


def main(path):
    writer.LEASE_SECONDS = 0.3
    for kind, table in json.loads(Path(path).read_text()):
        print(json.dumps(said_of(kind, table)), flush=True)
        shutil.rmtree(Path(table).parents[2], ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
