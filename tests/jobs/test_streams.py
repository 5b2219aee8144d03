"""What a command says and leaves when nobody reads it, when the disk is full, when it is stopped
before it has begun."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from luckbase.cluster.table import files
from luckbase.jobs.app import run
from tests.places import ROOT

TINY = str(ROOT / "boards/pig/tiny.toml")
STATE = ("mine=0", "yours=0", "turn=0")


@pytest.fixture(scope="module")
def results(table_of: Callable[..., Path]) -> str:
    return str(table_of(Path(TINY)).parents[2])


def command(*words: str, out: int) -> tuple[int, str]:
    """Exit code and stderr of a command that prints to an open file."""
    done = subprocess.run(
        [sys.executable, "-m", "luckbase", *words], cwd=ROOT, stdout=out, text=True,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["export", TINY],
        ["export", TINY, "--format", "arrow"],
        ["query", TINY, *STATE],
        ["query", TINY, *STATE, "--json"],
        ["--help"],
    ],
)
def test_a_pipe_that_nobody_reads_ends_a_command_as_sigpipe_does(
    results: str, words: list[str]
) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as pipe:
        more = [] if words == ["--help"] else ["--results", results]
        assert command(*words, *more, out=pipe.fileno()) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("what", [["query", TINY, *STATE], ["export", TINY, "--format", "jsonl"]])
def test_a_stdout_that_can_not_be_written_is_blamed_and_not_the_results(
    results: str, what: list[str]
) -> None:
    with open("/dev/full", "wb") as full:
        code, err = command(*what, "--results", results, out=full.fileno())
    assert code == 1
    assert err == (
        "luckbase: stdout: what was printed can not be written: No space left on device\n"
    )


@contextmanager
def _full_disk(path: Path) -> Iterator[Path]:
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
        (["chart", TINY], "chart.csv"),
        (["report", TINY], "report.html"),
        (["graph", str(ROOT / "boards/pig/piglet.toml")], "graph.dot"),
        (["export", TINY], "rows.csv"),
    ],
)
def test_a_full_disk_is_blamed_on_the_file_of_out_and_leaves_none(
    results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], name: str
) -> None:
    more = [] if words[0] == "graph" else ["--results", results]
    with _full_disk(tmp_path / "full") as full:
        code = run([*words, *more, "--out", str(full / name)])
        assert list(full.iterdir()) == []
    assert code == 1
    assert f"luckbase: {full / name}: the disk is full" in capsys.readouterr().err


def test_a_file_of_out_stands_as_it_was_where_a_new_one_fails(
    results: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "chart.csv"
    out.write_text("as it was")

    def fails() -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "attempt", fails)
    assert run(["chart", TINY, "--results", results, "--out", str(out)]) == 1
    assert out.read_text() == "as it was"


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


def test_ctrl_c_before_a_command_has_begun_is_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", STOPPED], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
