"""A byte that changed is refused, not answered: single bytes anywhere, files swapped, old files.

Every way of asking goes through `solving.open_table`, so what is asked here is what `query`,
batches, `chart`, `play`, `diff` and agents ask; the command line itself is tried on a few.
"""

import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from luckbase.cluster.answers.diff import compare
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import run
from luckbase.solver.errors import CorruptTableError
from tests import solving
from tests.e2e.stopped import solve_until
from tests.places import BOARDS, TINY
from tests.shared import answers_of, files_of, plain

POINTS = BOARDS / "goofspiel/points.toml"
ROOTS = [{"scores": "0,1000,500", "earned": "0,2,0"}, {"scores": "500,0,0", "earned": "1,0,1"}]


def full(folder):
    return solving.solve_board(solving.load_board(TINY, frontier=1), results=folder).table


def decisions(folder):
    board = solving.load_board(TINY, frontier=1, decisions=2, max_whammies=1)
    return solving.solve_board(board, results=folder).table


def search(folder):
    board = solving.load_board(TINY)
    game = solving.load_game(board)
    for words in ROOTS:
        result = solving.solve_below(board, game.parse(words)[None], results=folder, workers=1)
    return result.table


@pytest.fixture(scope="module", params=[full, decisions, search], ids=lambda solve: solve.__name__)
def sound(request, tmp_path_factory):
    created = request.param(tmp_path_factory.mktemp("sound"))
    return created


@pytest.fixture
def copy(sound, tmp_path):
    return Path(shutil.copytree(sound, tmp_path / "table"))


def everything(table):
    """What a table says: every payoff, every best action, every row as it is stored."""
    states = np.concatenate(list(table.draw(table.rows, 0)))
    yield table.probe(states[table.pays(states)]).tobytes()
    part = states[:: max(1, len(states) // 400)]
    yield tuple(table.stored_best(part))
    yield [answer.as_json() for answer in answers_of(table, states[:5])]
    for piece in table.parts:
        for batch in piece.batches([*piece.columns, "best"]):
            yield batch.rows.to_pydict()


def part_of(file, at, size, footer):
    """What stands at a byte, for the tally."""
    if file.suffix != ".parquet":
        return file.name
    return "footer" if at >= size - footer else "row groups"


def flips(sound, copy, count, seed):
    """Change `count` bytes, one at a time, and ask everything. Counts (where, what came of it)."""
    with solving.open_table(sound) as table:
        right = list(everything(table))
        footers = {entry.place: entry.footer for part in table.parts for entry in part.entries}
    skipped = {"manifest.json.lock", "log"}  # no part of the table
    files = [path for path in sorted(copy.rglob("*")) if path.is_file()]
    files = [path for path in files if not skipped & {path.name, path.parent.name}]
    rng = np.random.default_rng(seed)
    tally = Counter()
    for _ in range(count):
        file = files[rng.integers(len(files))]
        complete = file.read_bytes()
        index, change = int(rng.integers(len(complete))), int(rng.integers(1, 256))
        file.write_bytes(
            complete[:index] + bytes([complete[index] ^ change]) + complete[index + 1 :]
        )
        where = part_of(file, index, len(complete), footers.get(str(file.relative_to(copy)), 0))
        try:
            with solving.open_table(copy) as table:
                same = list(everything(table)) == right
            tally[where, "right" if same else "WRONG"] += 1
        except CorruptTableError as error:
            text = str(error)
            assert "\n" not in text and (file.name in text or str(file.parent) in text), text
            assert "luckbase solve" in text
            tally[where, "refused"] += 1
        finally:
            file.write_bytes(complete)
    return tally


def check(tally, least):
    print(dict(tally))
    assert not [key for key in tally if key[1] == "WRONG"]
    for where, number in least.items():
        assert tally[where, "refused"] >= number, f"{where}: hardly ever met"
    assert not [key for key in tally if key[1] == "right"]


@pytest.mark.parametrize("count, seed", [(90, 1), pytest.param(1000, 2, marks=pytest.mark.slow)])
def test_no_changed_byte_is_ever_answered(count, seed, sound, copy):
    least = {"row groups": count // 20, "footer": count // 50, "manifest.json": count // 90}
    check(flips(sound, copy, count, seed), least)


def swapped(copy):
    """Two files that change places; their sizes may be equal."""
    files = sorted(copy.rglob("*.parquet"), key=lambda path: (path.stat().st_size, path.name))
    pairs = list(pairwise(files))
    return min(pairs, key=lambda pair: abs(pair[0].stat().st_size - pair[1].stat().st_size))


def test_two_files_that_changed_places_are_refused(copy):
    one, two = swapped(copy)
    first, second = one.read_bytes(), two.read_bytes()
    size = max(len(first), len(second))
    one.write_bytes(second.ljust(size, b"\0")[: len(first)])
    two.write_bytes(first.ljust(size, b"\0")[: len(second)])
    with solving.open_table(copy) as table, pytest.raises(CorruptTableError):
        list(everything(table))


def test_an_old_file_under_a_new_manifest_is_refused(tmp_path):
    """The file of another board of the same name has its name, its rows and nearly its bytes."""
    other = tmp_path / "tiny.toml"
    swapped = TINY.read_text().replace("1/2", "@").replace("1/3", "1/2").replace("@", "1/3")
    other.write_text(swapped)
    assert other.read_text() != TINY.read_text()
    board = solving.load_board(other, frontier=1)
    old = files_of(solving.solve_board(board, results=tmp_path / "old").table)
    new = full(tmp_path / "new")
    pairs = [(file, old[plain(file.relative_to(new))]) for file in sorted(new.rglob("*.parquet"))]
    differ = [(file, was) for file, was in pairs if file.read_bytes() != was]
    file, was = min(differ, key=lambda p: abs(p[0].stat().st_size - len(p[1])))
    size = file.stat().st_size
    file.write_bytes(was.ljust(size, b"\0")[:size])
    with solving.open_table(new) as table, pytest.raises(CorruptTableError) as result:
        list(everything(table))
    assert str(file) in str(result.value)


def test_two_row_groups_that_changed_places_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("luckbase.cluster.store.format.ROW_GROUP", 100)
    table = full(tmp_path)
    entries = read_manifest(Folder(table), table).files.values()
    entry = max(entries, key=lambda entry: entry.rows)
    with solving.open_table(table) as opened:
        part = opened.full
        assert part is not None
        file = part.groups.file(part.entries.index(entry))
        starts = file._starts
    sizes = np.diff(starts).tolist()
    equal = [(i, j) for i in range(1, len(sizes)) for j in range(i) if j and sizes[i] == sizes[j]]
    complete = bytearray((table / entry.place).read_bytes())
    for j, i in [(b, a) for a, b in equal]:
        first, second = (slice(starts[k], starts[k] + sizes[k]) for k in (i, j))
        if complete[first] != complete[second]:
            complete[first], complete[second] = complete[second], complete[first]
            break
    else:
        pytest.fail("no two row groups of one size in this table")
    (table / entry.place).write_bytes(complete)
    with solving.open_table(table) as opened, pytest.raises(CorruptTableError, match="row group"):
        list(everything(opened))


def changed_byte(table, pattern="*.parquet"):
    """Change one byte in the middle of each file."""
    for file in table.rglob(pattern):
        complete = bytearray(file.read_bytes())
        complete[len(complete) // 3] ^= 4
        file.write_bytes(complete)
    return file


def ways(tmp_path):
    """Ways to ask a full table of the tiny board on the command line."""
    (tmp_path / "in.csv").write_text("scores_1,scores_2,scores_3,earned_1,earned_2,earned_3\n"
                                     "0,1000,500,0,1,0\n")  # fmt: skip
    results = ["--results", str(tmp_path)]
    state = ["scores=0,1000,500", "earned=0,1,0"]
    return {
        "query": lambda table: ["query", str(table), *state],
        "above": lambda table: ["query", str(table), "scores=0,1000,500", "earned=0,2,0"],
        "batch": lambda table: ["query", str(table), "--batch", str(tmp_path / "in.csv")],
        "play": lambda table: ["play", str(TINY), *state, "--as", "2", *results],
        "diff": lambda table: ["diff", str(table), str(table)],
        "verify": lambda table: ["verify", str(table)],
        "export": lambda table: ["export", str(table), "--out", str(tmp_path / "out/x.csv")],
        "agent": lambda table: ["evaluate", str(TINY), *state, "--agents", str(table)],
    }


@pytest.mark.parametrize("way", list(ways(Path("/tmp"))) if Path("/tmp").is_dir() else [])
def test_every_command_refuses_a_changed_byte_in_one_sentence(way, tmp_path, capsys, monkeypatch):
    table = full(tmp_path)
    changed_byte(table)
    (tmp_path / "out").mkdir()
    monkeypatch.setattr("sys.stdin", None)
    capsys.readouterr()
    code = run(ways(tmp_path)[way](table))
    out, err = capsys.readouterr()
    assert code == 1
    text = err + out
    assert "is not as luckbase wrote it" in text
    assert "delete it, and luckbase solve of its board makes it again" in text
    assert not any((tmp_path / "out").iterdir())
    if way != "verify":
        assert err.count("\n") == 1
    if way not in ("verify", "play"):
        assert out == ""


def test_a_solve_that_goes_on_from_a_changed_file_refuses_it(tmp_path, capsys):
    """Goofspiel's payoffs are stored as they were solved, and read back by a later run."""
    board = solving.load_board(POINTS, cards=4)
    solve_until(board, tmp_path, 3)
    (table,) = tmp_path.glob("*/*/*")
    sound = shutil.copytree(table, tmp_path / "sound")
    files = read_manifest(Folder(table), table).files.values()
    file = table / max(entry.place for entry in files)  # others may lie there that nothing names
    changed_byte(table, file.name)
    with pytest.raises(CorruptTableError, match="is not as luckbase wrote it"):
        solving.solve_board(board, results=tmp_path, workers=1)
    file.unlink()
    solved = solving.solve_board(board, results=tmp_path, workers=1)
    assert [file.name in text for text in solved.damaged] == [True]
    assert files_of(solved.table).items() >= files_of(sound).items()
    complete = solving.solve_board(board, results=tmp_path / "fresh", workers=1)
    with solving.open_table(solved.table) as first, solving.open_table(complete.table) as second:
        result = compare(first, second)
        assert not result.differs and result.largest == 0
