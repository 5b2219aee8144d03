"""Tests for so many minutes: when they are used up no other test is begun, and those are named.

``pytest -p tests.budget --minutes 60``; `.ci/slow` runs the slow ones so.
"""

from __future__ import annotations

import time

import pytest

WHY = "not run, the time is used up"
BEGAN = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=60.0, help="begin no test after so many")


def pytest_collection_finish(session: pytest.Session) -> None:
    session.stash[BEGAN] = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() - item.session.stash[BEGAN] >= 60 * item.config.getoption("--minutes"):
        pytest.skip(WHY)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    for report in skipped:
        if WHY in str(report.longrepr):
            terminalreporter.write_line(f"{WHY}: {report.nodeid}")
