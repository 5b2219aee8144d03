"""Signals end a command with the way to go on; what nobody reads, and a full disk, are sentences;
compiling is said while it goes on, and no estimate of time left counts it."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest

from luckbase.cluster.solve.progress import Progress
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs import terminal
from luckbase.jobs.app import run
from luckbase.solver.compiled import njit, types
from tests import solving
from tests.jobs.conftest import begun_solve
from tests.places import ROOT
from tests.shared import first_solves, python

PRESS = str(ROOT / "boards/press-your-luck/tiny.toml")


def begun(results, *more, ignore=None):
    """A solve in a process of its own that has finished three tiers, and its words."""
    words = ["solve", PRESS, "--set", "frontier=2", "--results", str(results), "--workers", "1"]
    words += more

    def before():
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
        if ignore is not None:
            signal.signal(ignore, signal.SIG_IGN)

    return begun_solve(words, results, slowly=ignore is None, preexec_fn=before), words


@pytest.mark.parametrize(
    ("number", "code", "force"), [(signal.SIGINT, 130, []), (signal.SIGHUP, 129, ["--force"])]
)
def test_a_signal_ends_a_solve_with_the_command_that_goes_on(number, code, force, tmp_path):
    """Also with --force: the same command resumes."""
    child, words = begun(tmp_path, *force)
    os.kill(child.pid, number)
    out, err = child.communicate(timeout=300)
    assert (child.returncode, out) == (code, ""), err
    assert f"finished files stay; run again: luckbase {' '.join(words)}\n" in err
    (table,) = (path.parent for path in tmp_path.rglob("manifest.json"))
    manifest = read_manifest(Folder(table), table)
    finished = manifest.next.files if force else manifest.files.values()
    done = {p: p.stat().st_mtime_ns for p in (table / entry.place for entry in finished)}
    assert done and run(words) == 0
    assert all(p.stat().st_mtime_ns == then for p, then in done.items())
    assert not list(tmp_path.rglob("*.part"))


def test_a_signal_that_is_ignored_stays_so(tmp_path):
    """Under nohup a solve outlives its terminal."""
    child, _ = begun(tmp_path, ignore=signal.SIGHUP)
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
    [(["--help"], {"importlib.metadata"}, 7), (["clean", "--help"], set(), 1)],
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


def test_the_lines_of_progress_take_compiling_in_their_stride(every_line, capsys):
    with terminal.progress("tiny") as show:
        show(Progress(0, 0, 0, 0, 0.0, compiling=True))
        show(Progress(5, 20, 250, 1000, 40.0))
        show(Progress(6, 20, 10**7, 4 * 10**7, 40.0))
    assert capsys.readouterr().err == (
        "tiny: 25 %  6 states/s, 5 of 20 tiers, about 2 min 00 s left\n"
        "tiny: 25 %  250,000 states/s, 6 of 20 tiers, about 2 min 00 s left\n"
    )


def test_the_bar_says_so(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.__stderr__", sys.stderr)  # where the bar may move the cursor
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")  # a dumb one has no bar
    with terminal.progress("tiny") as show:
        show(Progress(0, 0, 0, 0, 0.0, compiling=True))
        said, end = "", time.monotonic() + 60
        while "compiling, the first time only" not in said and time.monotonic() < end:
            time.sleep(0.05)  # it is drawn by a thread
            said += capsys.readouterr().err
        show(Progress(5, 20, 250, 1000, 40.0))
    assert "compiling, the first time only" in said


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
