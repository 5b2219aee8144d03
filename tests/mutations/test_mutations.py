"""What the runner of mutations draws, and that it sees a fault."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest

from tests.mutations import recorded
from tests.mutations.__main__ import Copy
from tests.mutations.drawn import KINDS, draw, mutations
from tests.mutations.recorded import Record, collected, functions_of
from tests.places import ROOT

SOURCE = '''
LIMIT = 4


def store(folder, lines):
    """Lines to disk: first the files."""
    folder.put(lines[0])
    folder.commit(lines)
    if len(lines) < LIMIT:
        return -len(lines)
    return len(lines) - 1
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver/example.py").write_text(SOURCE)
    return tmp_path


def test_each_kind_is_found_where_it_stands(checkout: Path) -> None:
    """Comparison, signs, constants, index, order, calls; nothing in the docstring."""
    source = SOURCE.encode()
    found = {(m.kind, *m.shown(source)) for m in mutations(checkout)}
    assert found == {
        ("constant", "LIMIT = 4", "LIMIT = 5"),
        ("call", "folder.put(lines[0])", "pass"),
        ("call", "folder.commit(lines)", "pass"),
        ("index", "folder.put(lines[0])", "folder.put(lines[1])"),
        ("order", "folder.put(lines[0]) folder.commit(lines)",
         "folder.commit(lines) folder.put(lines[0])"),
        ("comparison", "if len(lines) < LIMIT:", "if len(lines) <= LIMIT:"),
        ("sign", "return -len(lines)", "return len(lines)"),
        ("sign", "return len(lines) - 1", "return len(lines) + 1"),
        ("constant", "return len(lines) - 1", "return len(lines) - 2"),
    }  # fmt: skip


def test_a_draw_has_every_kind_and_is_still_python(tmp_path: Path) -> None:
    """Of one room's folder: to go through all of them takes seconds."""
    shutil.copytree(ROOT / "cluster/table", tmp_path / "cluster/table")
    drawn = draw(tmp_path, 60, 1)
    assert len(set(drawn)) == 60 and {mutation.kind for mutation in drawn} == set(KINDS)
    for mutation in drawn:
        ast.parse(mutation.applied((ROOT / mutation.file).read_bytes()))


def test_a_place_keeps_its_lot_when_other_lines_change(checkout: Path) -> None:
    """So that those that survived can be tried again while the product goes on."""
    before = [m.shown(SOURCE.encode()) for m in draw(checkout, 6, 3)]
    longer = "TITLE = 'a line above'\n" + SOURCE
    (checkout / "solver/example.py").write_text(longer)
    assert [m.shown(longer.encode()) for m in draw(checkout, 6, 3)] == before


def test_constants_set_as_a_tuple_are_each_their_own(checkout: Path) -> None:
    (checkout / "solver/example.py").write_text("FIRST, SECOND = 0, 1\nTHIRD: int = 2\n")
    assert {m.name for m in mutations(checkout)} == {"FIRST", "SECOND", "THIRD"}


def test_a_compiled_function_has_the_tests_of_who_calls_it() -> None:
    """`best_of` is seen by no coverage, `Graph.solve` is."""
    record = object.__new__(Record)
    place = "solver/search/sweep.py:Sweeping.solve"
    record.tests, record.seconds = (
        {place: {"tests/solver/test_check.py::test"}},
        {"tests/solver/test_check.py::test": 1},
    )
    record.size, record.new = {"tests/solver/test_check.py::test": 1}, set()
    found = record.closest("solver/search/sweep.py", "", "_solve_component", 10)
    assert found == ["tests/solver/test_check.py::test"]


def test_what_a_test_runs_in_a_process_of_its_own_is_found_by_its_module() -> None:
    record = object.__new__(Record)
    watched = "tests/cluster/run/test_memory_used.py::test_watched"
    record.tests, record.new = {}, set()
    record.seconds, record.size = {watched: 1.0, "tests/docs/test_blocks.py::test": 1.0}, {}
    assert record.closest("cluster/machine.py", "_Peak.so_far", "so_far", 10) == [watched]
    lanes = "tests/solver/matrix_game/test_eight_games.py::test_lanes"  # compiled functions alone
    record.seconds = {watched: 1.0, lanes: 1.0}
    file = "solver/matrix_game/eight_games.py"
    assert record.closest(file, "read_support", "read_support", 10) == [lanes]


def test_a_test_that_is_gone_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest runs none of those beside it either, which would look as if they failed."""
    here = "tests/solver/test_check.py::test"
    monkeypatch.setattr(recorded, "RECORD", tmp_path)
    monkeypatch.setattr(recorded, "collected", lambda: {here})
    said = {"seconds": {here: 1.0, f"{here}_gone": 1.0}, "tests": {}}
    (tmp_path / "main.json").write_text(json.dumps(said))
    assert Record().closest("solver/check.py", "", "check_game", 10) == [here]


def test_the_tests_that_there_are_are_found_by_name() -> None:
    here = "tests/mutations/test_mutations.py::test_a_draw_has_every_kind_and_is_still_python"
    assert here in collected("tests/mutations")


def test_lines_are_those_of_their_innermost_function(checkout: Path) -> None:
    assert functions_of(checkout / "solver/example.py") == dict.fromkeys(range(6, 12), "store")


def test_a_fault_dies_of_a_test_that_sees_it(tmp_path: Path) -> None:
    """One in how files are read, and the test of that; another test passes beside it."""
    copy = Copy(tmp_path / "copy", tmp_path / "temporary")
    shutil.rmtree(copy.compiled, ignore_errors=True)
    (tmp_path / "cluster/table").mkdir(parents=True)
    shutil.copy(ROOT / "cluster/table/storage.py", tmp_path / "cluster/table")
    faults = (m for m in mutations(tmp_path) if m.function == "Folder.read")
    fault = next(m for m in faults if m.kind == "comparison")
    tests = ["tests/cluster/table/test_storage.py::TestFolder"]
    assert copy.dies(fault, tests)
    assert not copy.dies(fault, ["tests/solver/board/test_board.py"])
