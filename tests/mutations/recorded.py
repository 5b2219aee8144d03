"""Which test runs which function of the product: recorded by a run of all tests (a pytest plugin,
``-p tests.mutations.recorded``), and read.

A record: ``{"seconds": {test: seconds}, "tests": {"file:function": [test, …]}}``.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.mutations.drawn import ROOMS
from tests.places import ROOT

RECORD = ROOT / ".pytest_cache/luckbase-mutations"
"""One file a process of the recording run."""
LITTLE = 20
"""Functions: a test that runs fewer in its own process may run others in one that it starts."""


class _Recorder:
    """coverage.py over one process, each test a context of its own."""

    def __init__(self) -> None:
        from coverage import Coverage

        self.coverage = Coverage(
            data_file=None, include=[str(ROOT / room / "*") for room in ROOMS], config_file=False
        )
        self.seconds: dict[str, float] = {}
        self.coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = time.monotonic()
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")
            self.seconds[item.nodeid] = round(time.monotonic() - began, 2)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.coverage.stop()
        tests: dict[str, set[str]] = defaultdict(set)
        data = self.coverage.get_data()
        for file in data.measured_files():
            functions = functions_of(Path(file))
            for line, contexts in data.contexts_by_lineno(file).items():
                if line in functions:
                    place = f"{Path(file).relative_to(ROOT)}:{functions[line]}"
                    tests[place].update(test for test in contexts if test)
        RECORD.mkdir(parents=True, exist_ok=True)
        worker = getattr(session.config, "workerinput", {}).get("workerid", "main")
        said = {"seconds": self.seconds, "tests": {at: sorted(of) for at, of in tests.items()}}
        (RECORD / f"{worker}.json").write_text(json.dumps(said))


def pytest_configure(config: pytest.Config) -> None:
    """Record in the processes that run tests."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Recorder())


def functions_of(path: Path) -> dict[int, str]:
    """line -> the innermost function around it, of lines inside functions' bodies."""
    found: dict[int, str] = {}

    def inside(node: ast.AST, scope: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = (*scope, child.name)
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first, last = child.body[0].lineno, child.end_lineno or child.lineno
                found.update(dict.fromkeys(range(first, last + 1), ".".join(inner)))
            inside(child, inner)

    inside(ast.parse(path.read_bytes()), ())
    return found


class Record:
    """Which tests are closest to a function. Raises FileNotFoundError where nothing is recorded."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.tests: dict[str, set[str]] = defaultdict(set)
        files = sorted(RECORD.glob("*.json"))
        if not files:
            raise FileNotFoundError(RECORD)
        there = collected()
        for file in files:
            said: dict[str, Any] = json.loads(file.read_text())
            for test, seconds in said["seconds"].items():
                if typed(test) in there:  # pytest runs none where one is not
                    self.seconds[typed(test)] = self.seconds.get(typed(test), 0.0) + seconds
            for place, tests in said["tests"].items():
                self.tests[place] |= set(map(typed, tests)) & there
        self.new = there - set(self.seconds)
        self.seconds |= dict.fromkeys(self.new, 1.0)
        self.size: dict[str, int] = defaultdict(int)
        for tests in self.tests.values():
            for test in tests:
                self.size[test] += 1

    def closest(self, file: str, function: str, name: str, seconds: float) -> list[str]:
        """The tests that run a function, or those that call it or read the constant, for about so
        many seconds: its own test file first, those of its game or folder, then those that run
        least else; of tests that are newer than the record, those whose file says its name; of
        those that run hardly anything in their own process, those whose file names the module."""
        found = set(self.tests.get(f"{file}:{function}", ())) if function else set()
        places, seen = {(file, name)}, set[tuple[str, str]]()
        for _ in range(4):  # callers of callers of …: compiled functions are seen by nobody
            if found:
                break
            seen |= places
            places = {at for one in places for at in _readers(*one)} - seen
            found = {test for at, inner in places for test in self._of(at, inner)}
        found |= {test for test in self.new if name in _text(test.partition("::")[0])}
        outside = (test for test in self.seconds if self.size.get(test, 0) < LITTLE)
        found |= {test for test in outside if _imports(test.partition("::")[0], _module(file))}
        own, around = f"test_{Path(file).stem}.py", f"test_{Path(file).parent.name}"
        folder = f"tests/{Path(file).parent}/"
        ordered = sorted(
            found,
            key=lambda test: (
                own not in test,
                around not in test and not test.startswith(folder),
                self.size.get(test, 0) * (1 + self.seconds[test]),
                test,
            ),
        )
        chosen: list[str] = []
        left = seconds
        for test in ordered:
            if not chosen or self.seconds[test] <= left:
                chosen.append(test)
                left -= self.seconds[test] + 0.02
        return chosen

    def _of(self, file: str, name: str) -> Iterator[str]:
        for place, tests in self.tests.items():
            at, _, function = place.partition(":")
            if at == file and name in function.split("."):
                yield from tests


def collected(*paths: str) -> set[str]:
    """The tests of the plain suite, or of some files of it, that there are now: some may have gone
    since they were recorded, and slow ones would take a mutation's whole time."""
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-n0", *paths],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {typed(line) for line in said.stdout.splitlines() if "::" in line}


def typed(test: str) -> str:
    """A test's name as it can be typed in any checkout: without parameters that are paths."""
    name, bracket, parameters = test.partition("[")
    return name if "/" in parameters else name + bracket + parameters


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text()


@cache
def _imports(file: str, module: str) -> bool:
    """Whether a test file names a module of the product, or the command that it is."""
    room, _, name = module.rpartition(".")
    said = rf"{module}\b|from {room} import .*\b{name}\b"
    said += rf'|"{name}"' if room == "luckbase.jobs" else ""
    return re.search(said, _text(file)) is not None


@cache
def _readers(file: str, name: str) -> frozenset[tuple[str, str]]:
    """(file, function) of all functions and constants of the product that say a name of a file: in
    the file itself, or where it is imported."""
    graph, module = _graph(), _module(file)
    return frozenset(
        place for place, names in _says()
        if name in names and (place[0] == file or module in graph[_module(place[0])])
    )  # fmt: skip


def _module(file: str) -> str:
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith("luckbase") else f"luckbase.{name}"


@cache
def _graph() -> dict[str, set[str]]:
    from tests.test_rooms import import_graph, modules

    return import_graph(modules())


@cache
def _says() -> list[tuple[tuple[str, str], frozenset[str]]]:
    from tests.test_rooms import parsed

    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).glob("**/*.py")):
            file = str(path.relative_to(ROOT))
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign):
                    parts = (p for p in ast.walk(node) if isinstance(p, ast.Name | ast.Attribute))
                    names = {p.id if isinstance(p, ast.Name) else p.attr for p in parts}
                    for own in _names(node):
                        found.append(((file, own), frozenset(names - {own})))
    return found


def _names(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign) -> list[str]:
    """What a statement names: the function, or each constant of ``A, B = 0, 1``."""
    if not isinstance(node, ast.Assign):
        return [node.name]
    parts = (part for target in node.targets for part in ast.walk(target))
    return [part.id for part in parts if isinstance(part, ast.Name)]
