"""Signals end a command with the way to go on; what nobody reads, and a full disk, are sentences;
compiling is said while it goes on, and no estimate of time left counts it. A solve that runs is
watched from elsewhere, by its status and its events."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import luckbase
from luckbase.cluster.answers.find import SILENT_SECONDS, running
from luckbase.cluster.solve import progress as watch
from luckbase.cluster.solve.progress import Progress, Watch
from luckbase.cluster.store import RUNNING
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import Writer, read_manifest
from luckbase.jobs import terminal
from luckbase.jobs.app import run
from luckbase.solver.compiled import njit, types
from tests import solving
from tests.cluster.store.test_writer import HEAD
from tests.places import ROOT
from tests.shared import first_solves, python

PRESS = str(ROOT / "boards/press-your-luck/tiny.toml")


SLOWLY = """
import runpy, time
from luckbase.cluster.solve import full_table
write, written = full_table.write_tier, []
def slowly(*given, **named):
    written.append(1)
    time.sleep(0.1 * (len(written) > 3))
    return write(*given, **named)
full_table.write_tier = slowly
runpy.run_module("luckbase", run_name="__main__", alter_sys=True)
"""
"""A command whose solve takes its time from the fourth tier on, so that it is not done before
anybody stops it, however busy the machine is."""


def begun(results, *more, ignored=False):
    """A solve in a process of its own that has finished three tiers of many."""
    program = ["-m", "luckbase"] if ignored else ["-c", SLOWLY]
    words = ["solve", PRESS, "--set", "frontier=2", "--results", str(results), "--workers", "1"]

    def before():  # the tests may run under nohup
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

    child = subprocess.Popen(
        [sys.executable, *program, *words, *more], cwd=ROOT, stderr=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, preexec_fn=before,
    )  # fmt: skip
    end = time.monotonic() + 300
    while child.poll() is None and time.monotonic() < end:
        # Folders may go while this looks.
        if sum(name.endswith(".parquet") for *_, names in os.walk(results) for name in names) > 2:
            break
        time.sleep(0.03)
    return child


@pytest.mark.parametrize(
    ("number", "code", "force"), [(signal.SIGINT, 130, []), (signal.SIGHUP, 129, ["--force"])]
)
def test_a_signal_ends_a_solve_with_the_command_that_goes_on(number, code, force, tmp_path):
    """Also with --force: the same command resumes."""
    child = begun(tmp_path, *force)
    os.kill(child.pid, number)
    out, err = child.communicate(timeout=300)
    assert (child.returncode, out) == (code, ""), err
    words = shlex.split(err.partition("finished files stay; run again: luckbase ")[2])
    assert words == child.args[3:]
    (table,) = (path.parent for path in tmp_path.rglob("manifest.json"))
    manifest = read_manifest(Folder(table), table)
    finished = manifest.next.files if force else manifest.files.values()
    done = {p: p.stat().st_mtime_ns for p in (table / entry.place for entry in finished)}
    assert done and run(words) == 0
    assert all(p.stat().st_mtime_ns == then for p, then in done.items())
    assert not list(tmp_path.rglob("*.part"))


def test_a_signal_that_is_ignored_stays_so(tmp_path):
    """Under nohup a solve outlives its terminal."""
    child = begun(tmp_path, ignored=True)
    os.kill(child.pid, signal.SIGHUP)
    child.communicate(timeout=300)
    assert child.returncode == 0


# --- about the command itself --------------------------------------------------------------------


def test_v_and_h_are_short_for_the_version_and_for_help(command):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for words, said in (
        (["--version"], f"luckbase {project['version']}\n"), (["--help"], "Usage: luckbase"),
        (["solve", "--help"], "Usage: luckbase solve"),
    ):  # fmt: skip
        *more, word = words
        assert command(*words) == command(*more, {"--version": "-V", "--help": "-h"}[word])
        assert said in command(*words)[1]


def test_a_shell_can_complete():
    asked = {"_LUCKBASE_COMPLETE": "complete_bash", "COMP_WORDS": "luckbase s", "COMP_CWORD": "1"}
    assert python("-m", "luckbase", env=asked).stdout.split() == ["solve", "serve", "status"]


@pytest.mark.parametrize(
    ("words", "heavy", "modules"),
    [(["--help"], {"importlib.metadata"}, 6), (["clean", "--help"], set(), 1)],
)
def test_help_loads_nothing_heavy(words, heavy, modules):
    """Nor, of all commands, what completion and the version need only when they are asked for; of
    one command, its own module alone."""
    heavy |= {"numpy", "numba", "pyarrow", "rich", "ray"}
    code = (
        f"import sys; from luckbase.jobs.app import COMMANDS, run; run({words});"
        f"ours = {{m for m in COMMANDS.values() if f'luckbase.jobs.{{m}}' in sys.modules}};"
        f"print(len(ours), sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    assert python("-c", code).stderr.strip() == f"{modules} []"


# --- streams -------------------------------------------------------------------------------------


PIG = str(ROOT / "boards/pig/tiny.toml")
STATE = ("mine=0", "yours=0", "turn=0")


@pytest.fixture(scope="module")
def results(table_of):
    return str(table_of(Path(PIG)).parents[2])


def printed_to(out, *words):
    """Exit code and stderr of a command that prints to an open file.

    The command may be the first to compile a function, and the sentence about it is left out.
    """
    done = subprocess.run(
        [sys.executable, "-m", "luckbase", *words], cwd=ROOT, stdout=out, text=True,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    return done.returncode, done.stderr.replace(f"{terminal.COMPILING_TEXT}\n", "")


@pytest.mark.parametrize(
    "words",
    [["export", PIG], ["--help"]],
)
def test_a_pipe_that_nobody_reads_ends_a_command_as_sigpipe_does(results, words):
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as pipe:
        more = [] if words == ["--help"] else ["--results", results]
        assert printed_to(pipe, *words, *more) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("what", [["query", PIG, *STATE], ["export", PIG, "--format", "jsonl"]])
def test_a_stdout_that_can_not_be_written_is_blamed_and_not_the_results(results, what):
    with open("/dev/full", "wb") as full:
        code, err = printed_to(full, *what, "--results", results)
    assert (code, err) == (
        1,
        "luckbase: stdout: cannot write the output: No space left on device\n",
    )


@contextmanager
def _full_disk(path):
    """A file system of one page at a folder, that root can make."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["chart", PIG], "chart.csv"),
        (["publish", PIG], "page.html"),
        (["export", PIG], "rows.csv"),
    ],
)
def test_a_full_disk_is_blamed_on_the_file_and_leaves_none(results, tmp_path, command, words, name):
    with _full_disk(tmp_path / "full") as full:
        out = [] if words[0] == "publish" else ["--out"]
        code, _, err = command(*words, *out, full / name, "--results", results)
        assert list(full.iterdir()) == []
    assert code == 1 and f"luckbase: {full / name}: the disk is full" in err


STOPPED = """
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, *more):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
runpy.run_module("luckbase", run_name="__main__")
"""
"""A command that is interrupted while it imports its own parts."""


def test_ctrl_c_before_a_command_has_begun_is_no_traceback():
    done = python("-c", STOPPED, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


# --- compiling -----------------------------------------------------------------------------------


def test_a_first_run_says_that_it_compiles_and_a_second_compiles_nothing(run_folder):
    first, second = first_solves(run_folder)
    assert first["err"].startswith("compiling, the first time only …\n")
    assert first["err"].count("compiling, the first") == 1
    assert second["out"].split()[1:] == []  # no function was compiled


def test_only_compiling_is_measured():
    before = terminal.compiling_seconds()

    @njit(types.int64(types.int64), cache=False)
    def add(x):
        return x + 1

    assert terminal.compiling_seconds() == before
    add(1)
    assert terminal.compiling_seconds() > before


def test_the_time_left_is_at_the_pace_of_work_alone():
    now = Progress(5, 20, 250, 1000, 40.0)
    assert now.estimate(0.0) == pytest.approx(120)
    assert now.estimate(30.0) == pytest.approx(30)
    assert now.estimate(40.0) is None
    assert Progress(1, 400, 1, 10**6, 5.0).estimate() is None  # no pace yet
    gone_on = Progress(9, 20, 750, 1000, 40.0, before=500)
    assert gone_on.estimate(0.0) == pytest.approx(40)
    assert Progress(1, 4, 0, 0, 5.0).estimate() == pytest.approx(15)
    assert Progress(0, 0, 0, 0, 0.0, compiling=True).estimate() is None
    said = gone_on.as_json()
    assert (said["states_a_second"], said["seconds_left"]) == (6, 40.0)


@pytest.mark.parametrize("board", ["press-your-luck/tiny", "jackpot/tiny"])
def test_a_solve_and_a_search_say_when_they_compile(board, tmp_path):
    seen = []
    made = solving.load_board(ROOT / f"boards/{board}.toml")
    if board.startswith("jackpot"):
        solving.solve_below(made, results=tmp_path, workers=1, on_progress=seen.append)
    else:
        solving.solve_board(made, results=tmp_path, workers=1, on_progress=seen.append)
    assert [now.compiling for now in seen[:2]] == [True, False]
    assert not any(now.compiling for now in seen[1:])


def test_the_lines_of_progress_say_share_pace_and_time_left(every_line, capsys):
    with terminal.progress("tiny") as show:
        show(Progress(0, 0, 0, 0, 0.0, compiling=True))
        show(Progress(5, 20, 250, 1000, 40.0))
        show(Progress(6, 20, 10**7, 4 * 10**7, 40.0))
    assert capsys.readouterr().err == (
        "tiny: 25 %  6 states/s, 5 of 20 tiers, about 2 min 00 s left\n"
        "tiny: 25 %  250,000 states/s, 6 of 20 tiers, about 2 min 00 s left\n"
    )


def test_a_terminal_has_a_bar_and_says_above_it_that_functions_are_compiled(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.__stderr__", sys.stderr)  # where the bar may move the cursor
    for name, value in (("COLUMNS", "100"), ("FORCE_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)  # a dumb one has no bar
    times = iter([0.0])
    monkeypatch.setattr(terminal, "compiling_seconds", lambda: next(times, 9.0))
    with terminal.watch_compiling(), terminal.progress("tiny") as show:
        show(Progress(0, 0, 0, 0, 0.0, compiling=True))
        show(Progress(5, 20, 250, 1000, 40.0))
        said, end = "", time.monotonic() + 60
        while not ("25 %" in said and terminal.COMPILING_TEXT in said) and time.monotonic() < end:
            time.sleep(0.05)  # threads print both
            said += capsys.readouterr().err
    assert "25 %" in said and terminal.COMPILING_TEXT in said


def test_a_signal_that_compiled_code_keeps_is_said_and_a_second_one_ends_the_process(
    monkeypatch, capfd
):
    def end(*_):
        """It is not run: nothing comes back to Python."""

    codes = []
    monkeypatch.setattr(signal, "getsignal", lambda number: end)
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)  # no option
    monkeypatch.setattr(os, "_exit", codes.append)
    reads, writes = os.pipe()
    os.write(writes, bytes([signal.SIGINT, signal.SIGTERM]))
    os.close(writes)
    terminal._watch(reads, end)
    assert codes == [143]
    first, second = capfd.readouterr().err.split("; ")[1:]
    assert first.startswith("Ctrl+C again ends it") and second.startswith("SIGTERM again ends it")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_second_signal_ends_a_command_by_itself_and_handlers_are_put_back(number, code):
    there = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, there)
    try:
        with terminal.signals():
            with pytest.raises(terminal.Ended) as stop:
                signal.raise_signal(number)
            assert terminal.exit_code(stop.value) == code
            assert signal.getsignal(number) == signal.SIG_DFL
        assert signal.getsignal(number) is there
    finally:
        signal.signal(number, before)


def test_status_shows_a_solve_that_runs(tmp_path, monkeypatch, command):
    monkeypatch.setattr(watch, "WRITE_SECONDS", 0.0)  # no option
    seen = []

    def look(now):
        if now.shards > 5 and not seen:
            (only,) = luckbase.status(results=tmp_path)
            assert only.running is not None and only.state == "partial"
            code, out, _ = command("status", "--results", tmp_path)
            assert code == 1
            seen.append((only.running, out))

    board = luckbase.load_board(PRESS, frontier=2)
    luckbase.solve(board, results=tmp_path, workers=1, on_progress=look)
    ((text, shown),) = seen
    assert text["process"] == os.getpid() and text["shards_total"] == 74
    assert 5 <= int(str(text["shards"])) < 74 and int(str(text["states"])) > 0
    assert f"running: process {os.getpid()} on " in shown and " of 74 shards, " in shown
    assert "  this process: 1 core" in shown and "goes on with: luckbase solve" in shown
    (after,) = luckbase.status(results=tmp_path)
    assert after.running is None and not list(tmp_path.rglob(RUNNING))


def test_a_solve_prints_events_and_at_last_what_it_did(tmp_path, every_line, command):
    words = ["--set", "frontier=2", "--workers", "1", "--results", tmp_path, "--json"]
    *events, last = map(json.loads, command("solve", PRESS, *words)[1].splitlines())
    assert {event["event"] for event in events} == {"progress"} and last["event"] == "solved"
    shards = [event["shards"] for event in events]
    assert shards == sorted(shards)
    assert shards[-1] == events[-1]["shards_total"] == last["file_count"]
    assert events[-1]["states"] == events[-1]["states_total"] == last["states"]
    assert all(event["seconds"] >= 0 <= (event["seconds_left"] or 0) for event in events)


def test_a_solve_that_was_killed_on_this_machine_does_not_run(tmp_path):
    storage = Folder(tmp_path)
    with Writer(storage, tmp_path, HEAD).take() as writer, Watch(tmp_path, print, print) as shown:
        shown.show(Progress(1, 2, 3, 4, 5.0), [])
        assert running(tmp_path) is not None
        # another process has its number now
        writer.manifest.writer = replace(writer.manifest.writer, started="0")
        writer.commit()
        assert running(tmp_path) is None


def test_a_solve_that_has_long_been_silent_does_not_run(tmp_path):
    file = tmp_path / RUNNING
    with Watch(tmp_path, print, print) as shown:
        shown.show(Progress(1, 2, 3, 4, 5.0), [])
        text = json.loads(file.read_text())
        assert running(tmp_path) == text
        for age in (SILENT_SECONDS - 5, SILENT_SECONDS + 5):
            at = datetime.now().astimezone() - timedelta(seconds=age)
            file.write_text(json.dumps({**text, "at": at.isoformat()}))
            assert (running(tmp_path) is not None) == (age < SILENT_SECONDS)
        for bad in ("", "{", "[]", '{"at": 3}', '{"at": "soon"}'):
            file.write_text(bad)
            assert running(tmp_path) is None
