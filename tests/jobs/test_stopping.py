"""Signals end a command with the way to go on; the version, -h and the shell's completion."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from luckbase.cluster.table.ledger import read_ledger
from luckbase.cluster.table.storage import Folder
from luckbase.jobs.app import run
from luckbase.jobs.terminal.stopping import Ended, exit_code

ROOT = Path(__file__).parents[2]
TINY = str(ROOT / "boards/press-your-luck/tiny.toml")


def begun(results: Path, *more: str, ignore: int | None = None) -> tuple[subprocess.Popen, list]:
    """A solve in a process of its own that has finished three tiers, and its words."""
    words = ["solve", TINY, "--set", "frontier=4", "--results", str(results), "--workers", "1"]
    words += more

    def before() -> None:
        if ignore is not None:
            signal.signal(ignore, signal.SIG_IGN)

    process = subprocess.Popen(
        [sys.executable, "-m", "luckbase", *words], cwd=ROOT, stderr=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, preexec_fn=before,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(list(results.rglob("*.parquet"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    return process, words


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_solve_as_ctrl_c_does(number: int, code: int, tmp_path: Path) -> None:
    process, words = begun(tmp_path)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, ""), err
    assert f"nothing solved is lost: luckbase {' '.join(words)}\n" in err
    (table,) = (path.parent for path in tmp_path.rglob("table.json"))
    finished = read_ledger(Folder(table), table).files
    done = {p: p.stat().st_mtime_ns for p in (table / name for name in finished)}
    assert done and run(words) == 0
    assert all(p.stat().st_mtime_ns == then for p, then in done.items())


def test_what_goes_on_does_not_begin_anew(tmp_path: Path) -> None:
    """--force would throw away what was solved."""
    process, words = begun(tmp_path, "--force")
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert f"nothing solved is lost: luckbase {' '.join(words[:-1])}\n" in err


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """Under nohup a solve outlives its terminal."""
    process, _ = begun(tmp_path, ignore=signal.SIGHUP)
    os.kill(process.pid, signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_exit_codes_are_the_shells() -> None:
    assert exit_code(KeyboardInterrupt()) == 130
    assert exit_code(Ended(signal.SIGTERM)) == 143 and exit_code(Ended(signal.SIGHUP)) == 129


def test_handlers_are_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    assert run(["status", "nowhere"]) == 2
    assert before == [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]


# --- about the command itself --------------------------------------------------------------------


def test_the_version_is_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"luckbase {project['version']}\n"


@pytest.mark.parametrize("words", [[], ["solve"], ["evaluate"]])
def test_h_is_short_for_help(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    said = []
    for option in ("-h", "--help"):
        assert run([*words, option]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and "Usage: luckbase" in said[0]


def test_a_shell_can_complete() -> None:
    plain = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    words = [sys.executable, "-m", "luckbase"]
    shown = subprocess.run(
        [*words, "--show-completion", "bash"], cwd=ROOT, env=plain, capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    assert "_LUCKBASE_COMPLETE=complete_bash" in shown and shown.rstrip().endswith("luckbase")
    asked = {"_LUCKBASE_COMPLETE": "complete_bash", "COMP_WORDS": "luckbase s", "COMP_CWORD": "1"}
    done = subprocess.run(
        words, cwd=ROOT, env={**plain, **asked}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["solve", "status", "simulate", "serve"]


def test_help_loads_nothing_heavy() -> None:
    """Nor what completion and the version need only when they are asked for."""
    code = (
        "import sys; from luckbase.jobs.app import run; run(['--help'])\n"
        "heavy = {'numpy', 'numba', 'pyarrow', 'rich', 'ray', 'importlib.metadata'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
