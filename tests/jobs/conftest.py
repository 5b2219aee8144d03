"""What tests of several commands share."""

import io
import os
import subprocess
import sys
import time

import pytest

from luckbase.jobs.app import run
from tests.places import ROOT

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
"""A command whose solve takes its time from the fourth tier on."""


def begun_solve(words, results, slowly=True, **how):
    """A solve in a process of its own that has finished three tiers of many. slowly: so that it is
    not done before anybody stops it, however busy the machine is."""
    program = ["-c", SLOWLY] if slowly else ["-m", "luckbase"]
    child = subprocess.Popen(
        [sys.executable, *program, *words], cwd=ROOT, stderr=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, **how,
    )  # fmt: skip
    end = time.monotonic() + 300
    while parquet_files(results) < 3 and child.poll() is None and time.monotonic() < end:
        time.sleep(0.03)
    return child


def parquet_files(folder):
    """How many there are; folders may go while this looks."""
    return sum(name.endswith(".parquet") for _, _, names in os.walk(folder) for name in names)


@pytest.fixture
def played(capsys, monkeypatch, tmp_path):
    """Runs `play` with lines on stdin: exit code, stdout, stderr."""

    def call(*words, lines=()):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(line + "\n" for line in lines)))
        code = run(["play", *words, "--results", str(tmp_path / "results")])
        text = capsys.readouterr()
        return code, text.out, text.err

    return call
