"""The slow tests' budget: what there is no time for is named, and what fails is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

TESTS = """
import time
clock = time.monotonic
def test_long(): time.monotonic = lambda: clock() + 1800
def test_other(): assert {other}
"""
"""The first takes half an hour, as it seems."""


@pytest.mark.parametrize(
    ("minutes", "other", "code", "said", "not_run"),
    [
        ("20", "False", 0, "1 passed, 1 skipped", ["test_other"]),
        ("0", "True", 0, "2 skipped", ["test_long", "test_other"]),
        ("60", "False", 1, "1 failed, 1 passed", []),
    ],
)
def test_no_test_is_begun_when_the_time_is_used_up(
    minutes: str, other: str, code: int, said: str, not_run: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "test_two.py"
    path.write_text(TESTS.format(other=other))
    words = ["-p", "tests.budget", "--minutes", minutes, "-c", str(tmp_path / "none.ini")]
    (tmp_path / "none.ini").touch()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-p", "no:cacheprovider", str(path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert done.returncode == code and said in done.stdout, done.stdout
    named = [line for line in done.stdout.splitlines() if line.startswith("not run, the time")]
    assert [line.rpartition("::")[2] for line in named] == not_run


def test_the_script_runs_the_slow_tests_with_a_budget() -> None:
    """None of them, with no time at all; all are named."""
    done = subprocess.run(
        ["bash", str(ROOT / ".ci/slow"), "0", "0", "1", "tests/e2e/test_hosts.py"],
        capture_output=True, text=True, check=False,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("not run, the time is used up: tests/") >= 7
    assert "passed" not in done.stdout
