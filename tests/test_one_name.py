"""There is one name, ``luckbase``: a folder with a solver.py of its own breaks nothing."""

import tarfile
import zipfile

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.places import ROOT
from tests.shared import python

TINY = ROOT / "boards/press-your-luck/tiny.toml"


@pytest.fixture
def notebook(tmp_path):
    """Somebody's folder, with modules of the names of our rooms."""
    ours = "solver.py", "cluster.py", "jobs/__init__.py", "tests.py"
    for name in (*ours, "json.py", "numpy.py", "numba.py", "pyarrow/__init__.py", "shlex.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise RuntimeError('a foreign module was imported')\n")
    return tmp_path


def test_a_solve_in_a_folder_with_a_foreign_solver_and_cluster_and_jobs(notebook, ray_cluster):
    """Workers of a Ray cluster do not import from the driver's folder, not even a `luckbase`."""
    (notebook / "luckbase.py").write_text("raise RuntimeError('a foreign module was imported')")
    script = f"""
import luckbase
board = luckbase.load_board({str(TINY)!r}, frontier=1)
solved = luckbase.solve(board, workers=2, address={ray_cluster!r})
with luckbase.open(solved.table) as table:
    print(table.ask({{"scores": "0,1000,500", "earned": "0,1,0"}}).best, solved.ray)
"""
    done = python("-P", "-c", script, cwd=notebook, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["play", "True"]


def test_the_command_runs_there_too(notebook):
    done = python("-m", "luckbase", "solve", TINY, "--set", "frontier=1", cwd=notebook, check=False)
    assert done.returncode == 0, done.stderr


def test_a_wheel_holds_one_name_and_all_rooms(tmp_path):
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"luckbase"}
    rooms = {path.relative_to(ROOT) for room in ("solver", "cluster", "jobs")
             for path in (ROOT / room).rglob("*.py")}  # fmt: skip
    assert {f"luckbase/{path}" for path in rooms} <= set(names)
    boards = {path.relative_to(ROOT) for path in (ROOT / "boards").glob("*/*.toml")}
    assert {f"luckbase/{path}" for path in boards} <= set(names)
    assert {"luckbase/py.typed", "luckbase/jobs/nights/example.toml"} <= set(names)


def test_a_source_archive_builds_the_same_wheel(tmp_path):
    (archive,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path / "sdist"))
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("luckbase-*")
    contents = []
    for root in (ROOT, unpacked):
        (wheel,) = WheelBuilder(str(root)).build(directory=str(tmp_path / root.name))
        contents.append({each.filename: each.CRC for each in zipfile.ZipFile(wheel).infolist()})
    assert contents[0] == contents[1]
