"""What no board file asks for any more goes, and nothing else does."""

import json
import os
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.batch.clean import contents, remove
from luckbase.cluster.store import writer as writers
from luckbase.cluster.store.remote import Objects
from luckbase.cluster.store.storage import storage_at
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver.errors import JobError, OptionError
from tests.cluster.batch.boards import JACKPOT, everything, pig, put
from tests.cluster.store.test_writer import Alone, elsewhere, ended, short  # noqa: F401
from tests.shared import taken


@pytest.fixture
def folder(tmp_path):
    """Somebody's folder: a board, solved as it is, as it was, and with an option."""
    file = put(tmp_path / "boards/a.toml", pig(9))
    luckbase.solve(file, results=tmp_path / "results")
    put(tmp_path / "boards/a.toml", pig(10))
    luckbase.solve(file, results=tmp_path / "results")
    luckbase.solve(luckbase.load_board(file, goal=11), results=tmp_path / "results")
    return tmp_path


def clean(folder, *names, yes=False):
    """The tables by state."""
    result = {}
    for each in luckbase.clean(*map(str, names), results=folder / "results", yes=yes):
        result.setdefault(each.state, []).append(each.table)
    return result


def tables(folder):
    return {path.parent for path in (folder / "results").rglob("manifest.json")}


def table_of(folder, **options):
    with luckbase.open(folder / "boards/a.toml", results=folder / "results", **options) as table:
        return Path(str(table.where))


def test_what_the_file_said_before_goes_and_what_it_says_stays(folder):
    old = table_of(folder, goal=9)
    before = everything(folder)
    assert clean(folder) == {"unneeded": [old]} and everything(folder) == before
    (only,) = luckbase.clean(results=folder / "results")
    assert only.why == ("goal: was 9, now 10",) and only.states > 0
    assert only.bytes == sum(p.stat().st_size for p in old.rglob("*") if p.is_file())
    assert clean(folder, yes=True) == {"removed": [old]}
    assert not old.exists() and clean(folder) == {} and len(tables(folder)) == 2
    assert table_of(folder).exists() and table_of(folder, goal=11).exists()


def test_what_was_solved_with_an_option_goes_only_where_it_is_named(folder):
    named = table_of(folder, goal=11)
    put(folder / "boards/a.toml", pig(10).replace("sides = 6", "sides = 4") + "\n[x]")
    put(folder / "boards/a.toml", pig(12).replace("[rules]", "[rules]\nsides = 4"))
    result = clean(folder, yes=True)
    assert len(result["removed"]) == 2 and result["kept"] == [named]
    assert clean(folder, folder / "boards", yes=True) == {"kept": [named]}
    assert clean(folder, folder / "boards/a.toml", yes=True) == {"kept": [named]}
    assert named.exists() and clean(folder, named, yes=True) == {"removed": [named]}
    assert not tables(folder)
    assert not (folder / "results/pig").exists() and (folder / "results").exists()


def test_what_was_solved_from_some_states_goes_only_where_it_is_named(tmp_path):
    file = put(tmp_path / "boards/a.toml", JACKPOT)
    results = tmp_path / "results"
    plain = luckbase.solve(file, results=results).table
    fewer = put(tmp_path / "boards/c.toml", JACKPOT.replace("tiles = 4", "tiles = 3"))
    below = luckbase.solve(fewer, {"open": "1,2"}, results=results).table
    assert clean(tmp_path) == {}
    for name in "ac":
        (tmp_path / f"boards/{name}.toml").unlink()
    assert clean(tmp_path) == {"unneeded": [plain], "kept": [below]}
    assert clean(tmp_path, below) == {"unneeded": [below]}


def test_what_a_board_file_asks_for_stays_even_where_it_is_named(folder):
    query = table_of(folder)
    (only,) = luckbase.clean(str(query), results=folder / "results", yes=True)
    assert only.state == "needed" and "a.toml needs it" in only.why[0] and query.exists()


def test_a_deleted_board_asks_for_nothing_and_a_moved_one_does(folder):
    now, old = table_of(folder), table_of(folder, goal=9)
    (folder / "boards/a.toml").rename(folder / "boards/renamed.toml")
    result = clean(folder)
    assert result["unneeded"] == [old] and now not in result.get("kept", [])
    (folder / "boards/renamed.toml").unlink()
    assert set(clean(folder)["unneeded"]) == {now, old}
    assert set(clean(folder, folder / "boards")["unneeded"]) == {now, old}
    assert set(clean(folder, folder / "boards/a.toml")["unneeded"]) == {now, old}
    assert set(clean(folder, folder / "boards", yes=True)["removed"]) == {now, old}


def test_a_project_that_was_moved_keeps_what_its_boards_ask_for(tmp_path):
    """Also where the results are deeper than the boards."""
    for results in ("results", "out/of/it"):
        old = put(tmp_path / "old/boards/a.toml", pig(9))
        table = luckbase.solve(old, results=tmp_path / "old" / results).table
        assert luckbase.clean(results=tmp_path / "old" / results) == []
        (tmp_path / "old").rename(tmp_path / "new")
        assert luckbase.clean(results=tmp_path / "new" / results, yes=True) == []
        assert (tmp_path / "new" / table.relative_to(tmp_path / "old")).is_dir()
        shutil.rmtree(tmp_path / "new")


def test_a_board_whose_folder_is_not_there_may_be_elsewhere(folder):
    """A folder that was moved away, a disk that was taken out."""
    before = everything(folder / "results")
    (folder / "boards").rename(folder / "elsewhere")
    result = luckbase.clean(results=folder / "results", yes=True)
    assert {each.state for each in result} == {"kept"} and len(result) == 3
    assert all("its folder is missing" in each.why[0] for each in result)
    assert everything(folder / "results") == before
    assert len(clean(folder, folder / "boards", yes=True)["kept"]) == 3
    assert len(clean(folder, folder / "elsewhere", yes=True)["kept"]) == 2
    (folder / "elsewhere").rename(folder / "boards")
    assert len(clean(folder)["unneeded"]) == 1


def test_a_board_in_a_folder_that_can_not_be_read_may_be_there(folder, monkeypatch):
    now, old, named = table_of(folder), table_of(folder, goal=9), table_of(folder, goal=11)
    (folder / "boards/a.toml").unlink()

    def closed(path="."):
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", closed)
        assert set(clean(folder, yes=True)["kept"]) == {now, old, named}
    assert clean(folder, yes=True)["removed"] == sorted([now, old])


def test_a_board_that_can_not_be_read_keeps_all_of_its_tables(folder):
    before = everything(folder / "results")
    put(folder / "boards/a.toml", "game = 'pig")
    result = clean(folder, yes=True)
    assert set(result) == {"kept"} and len(result["kept"]) == 3
    assert everything(folder / "results") == before


def test_other_boards_tables_are_not_looked_at(folder):
    other = put(folder / "other/b.toml", JACKPOT)
    luckbase.solve(other, results=folder / "results")
    os.unlink(other)
    assert "jackpot" not in str(clean(folder, folder / "boards"))
    assert "jackpot" in str(clean(folder)) and "pig" not in str(clean(folder, other))


def test_the_tables_of_a_job_file_are_where_it_says_and_a_name_of_nothing_is_refused(folder):
    text = '[[board]]\nfile = "boards/a.toml"\n'
    job = put(folder / "job.toml", 'results = "results"\n' + text)
    (spare,) = luckbase.clean(str(job))
    assert spare.table == table_of(folder, goal=9) and spare.state == "unneeded"
    other = put(folder / "other.toml", 'results = "elsewhere"\n' + text)
    said_twice = f"results: job files say {folder}/elsewhere and {folder}/results; name one"
    with pytest.raises(OptionError, match=said_twice):
        luckbase.clean(str(other), str(job))
    assert len(luckbase.clean(str(other), str(job), results=folder / "results")) == 1
    with pytest.raises(JobError, match="unknown key 'result'"):
        luckbase.clean(str(put(folder / "wrong.toml", 'result = "results"\n' + text)))
    for name in ("nowhere", "boards/b.toml"):
        with pytest.raises(OptionError, match="no such table, board file or fold"):
            clean(folder, folder / name)


def test_a_table_that_somebody_solves_is_never_removed(folder):
    old = table_of(folder, goal=9)
    with taken(old):
        before = everything(old)
        (only,) = luckbase.clean(results=folder / "results", yes=True)
        assert only.state == "running" and "another solve of this table is running" in only.error
        assert everything(old) == before
        (only,) = luckbase.clean(str(old), results=folder / "results", yes=True)
        assert only.state == "running" and old.exists()
    assert clean(folder, yes=True) == {"removed": [old]}


def test_a_table_that_another_machine_solves_is_never_removed(folder, short):  # noqa: F811
    old = table_of(folder, goal=9)
    storage = storage_at(old)
    with elsewhere(storage, read_manifest(storage, old).head):
        (only,) = luckbase.clean(results=folder / "results", yes=True)
        assert only.state == "running" and "running: process 7 on far since noon" in only.error
        text = {"process": 7, "host": "far", "at": datetime.now().astimezone().isoformat()}
        text |= dict.fromkeys(("since", "last_note"), "") | {"finding": None, "nodes": []}
        counts = "shards", "shards_total", "states", "states_total", "states_a_second", "memory"
        text |= dict.fromkeys((*counts, "seconds", "seconds_left"), 0)
        (old / "running.json").write_text(json.dumps(text))
        (only,) = luckbase.clean(results=folder / "results", yes=True)
        assert (only.state, only.why) == ("running", ("process 7 on far solves it",))
    assert clean(folder, yes=True) == {"removed": [old]}


def test_somebodys_own_files_and_links_stay(folder):
    old = table_of(folder, goal=9)
    put(old / "notes.txt", "mine")
    put(old / "tiers/notes.md", "mine")
    put(old / "search/deep/x.parquet", "mine")
    elsewhere = put(folder / "elsewhere/big.parquet", "mine")
    (old / "shards").symlink_to(folder / "elsewhere")
    (old / "tiers/gone").symlink_to(folder / "nowhere")
    (only,) = luckbase.clean(results=folder / "results", yes=True)
    assert only.state == "removed"
    assert only.foreign == (
        "notes.txt", "search/deep/x.parquet", "shards", "tiers/gone", "tiers/notes.md",
    )  # fmt: skip
    remaining = {str(path.relative_to(old)) for path in old.rglob("*") if not path.is_dir()}
    assert remaining == {"notes.txt", "search/deep/x.parquet", "tiers/gone", "tiers/notes.md"}
    assert (old / "shards").is_symlink() and Path(elsewhere).read_text() == "mine"
    assert clean(folder) == {}  # no table is there any more


def test_a_removal_that_was_stopped_goes_on(folder, monkeypatch):
    old, true = table_of(folder, goal=9), Path.unlink

    def stop_at_the_manifest(self, missing_ok=False):
        if self.name == "manifest.json":
            raise PermissionError(13, "Permission denied", str(self))
        true(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", stop_at_the_manifest)
    (only,) = luckbase.clean(results=folder / "results", yes=True)
    assert only.state == "unneeded" and "cannot be removed" in only.error
    monkeypatch.undo()
    (only,) = luckbase.status(str(old), results=folder / "results")
    assert (only.state, only.states, only.bytes) == ("stale", 0, 0)
    assert clean(folder, yes=True) == {"removed": [old]} and not old.exists()


def test_a_table_that_can_not_be_read_goes_only_where_it_is_named(folder):
    old = table_of(folder, goal=9)
    path = old / "manifest.json"
    path.write_bytes(path.read_bytes()[:-9])  # the ids of its writers are still there
    assert clean(folder, yes=True) == {"kept": [old]}
    assert clean(folder, old, yes=True) == {"removed": [old]} and not old.exists()


def test_without_the_ids_of_its_writers_no_file_goes_but_the_manifest(folder):
    old = table_of(folder, goal=9)
    files = sorted(old.glob("tiers/*"))
    (old / "manifest.json").write_text("{")
    assert clean(folder, old, yes=True) == {"removed": [old]}
    assert sorted(path for path in old.rglob("*") if path.is_file()) == files


def test_a_link_in_the_place_of_a_table_is_left_alone(folder):
    old = table_of(folder, goal=9)
    there = folder / "big-disk" / old.name
    shutil.move(old, there)
    old.symlink_to(there)
    before = everything(there)
    result = luckbase.clean(results=folder / "results", yes=True)
    assert [each.state for each in result] == ["kept"] and "is a link" in result[0].why[0]
    assert everything(there) == before and old.is_symlink()


@pytest.mark.parametrize("name", ["a b [1]", "*", "x;y", "ü$(id)", "-rf"])
def test_folders_and_boards_of_unusual_names(tmp_path, name):
    file = put(tmp_path / name / f"{name}.toml", pig(9))
    results = tmp_path / f"results {name}"
    old = luckbase.solve(file, results=results).table
    assert luckbase.clean(results=results, yes=True) == []
    (planned,) = luckbase.plan_all(tmp_path / name, results=results)
    assert planned.state == "complete"
    put(Path(file), pig(10))
    (planned,) = luckbase.plan_all(tmp_path / name, results=results)
    assert planned.state == "stale" and planned.why == ("goal: was 9, now 10",)
    (only,) = luckbase.clean(results=results, yes=True)
    assert (only.table, only.state) == (old, "removed") and not old.exists()
    assert Path(file).exists()


# --- in a store ----------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path, bucket):
    """(results in a store, a table there that nobody needs any more, one that is needed)."""
    file = put(tmp_path / "boards/a.toml", pig(9))
    old = luckbase.solve(file, results=bucket).table
    put(Path(file), pig(10))
    return bucket, old, luckbase.solve(file, results=bucket).table


def objects(table):
    return storage_at(table).list()


def test_in_a_store_goes_what_nobody_needs_and_nothing_else(stored):
    results, old, needed = stored
    storage_at(old).put("notes.txt", b"mine")
    before = objects(needed)
    (only,) = luckbase.clean(results=results)
    assert (only.table, only.state, only.why) == (old, "unneeded", ("goal: was 9, now 10",))
    assert only.bytes == sum(objects(old).values()) - 4
    (only,) = luckbase.clean(results=results, yes=True)
    assert (only.state, only.foreign) == ("removed", ("notes.txt",))
    assert objects(old) == {"notes.txt": 4}
    assert objects(needed) == before and luckbase.clean(results=results, yes=True) == []
    (only,) = luckbase.clean(str(needed), results=results, yes=True)
    assert only.state == "needed" and objects(needed) == before


def test_in_a_store_nothing_goes_that_somebody_solves(stored, short):  # noqa: F811
    results, old, _ = stored
    storage = storage_at(old)
    head = read_manifest(storage, old).head
    with elsewhere(storage, head) as far:
        before = objects(old)
        (item,) = luckbase.clean(results=results, yes=True)
        assert item.state == "running" and "another solve of this table is running" in item.error
        assert objects(old).keys() == before.keys()
        far.commit()
    ended(elsewhere(storage, head))  # a process that says nothing any more
    assert [item.state for item in luckbase.clean(results=results, yes=True)] == ["removed"]
    assert objects(old) == {}


def test_no_earlier_solve_commits_to_a_table_that_is_removed(stored, monkeypatch):
    results, old, _ = stored
    storage, true = storage_at(old), Objects.delete
    early = Alone(storage, old, read_manifest(storage, old).head).take()
    writers._alive.discard(early.id)
    fenced = []

    def delete(self, name):
        true(self, name)
        if name.endswith((".parquet", "manifest.json")):
            with pytest.raises(luckbase.errors.FencedError, match="has begun"):
                early.commit()
            fenced.append(name)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "delete", delete)
        (only,) = luckbase.clean(results=results, yes=True)
    assert only.state == "removed" and len(fenced) > 1
    assert objects(old) == {}


FILES = ["tiers/all.0123abcd.parquet", "tiers/a.parquet.x-1-0123abcd-0.part",
         "decisions/x.0123abcd.0123456789ab.parquet", "search-00ff/x.0123abcd.parquet",
         "log/20261129T101010.123456-7.log", "spill.0123abcd/a/b", "shards/0-1-2.0123abcd.arrow",
         "running.json", "manifest.json.h-1-0123abcd-0.part",
         ".writer-0123abcd", "manifest.json.lock"]  # fmt: skip
FOREIGN = ["readme.md", "tiers/x.csv", "tiers/a/b.parquet", "manifest.bak/x.jsonl",
           "searching/x.parquet", "log/x.txt", "log/1.log", "other/x.parquet", "table.json",
           "tiers/thesis.parquet", "tiers/thesis.4567abcd.parquet", "tiers/thesis.part",
           "shards/notes.arrow", "spill/a", "search/x.0123abcd.parquet"]  # fmt: skip


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(ours=st.sets(st.sampled_from(FILES)), others=st.sets(st.sampled_from(FOREIGN)))
def test_what_goes_and_what_stays_is_all_there_was(tmp_path, ours, others):
    table = tmp_path / "results/g/b/0"
    for name in ours | others:
        put(table / name, name)
    table.mkdir(parents=True, exist_ok=True)
    (table / "manifest.json").write_text('{"writers": ["0123abcd"]}')
    sizes = {name: len(name) for name in ours} | {"manifest.json": 25}
    assert contents(table, {"0123abcd"}) == (sizes, sorted(others))
    assert remove(table) == sorted(others)
    remaining = {str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()}
    assert remaining == others and table.exists() == bool(others)
    shutil.rmtree(tmp_path / "results", ignore_errors=True)
