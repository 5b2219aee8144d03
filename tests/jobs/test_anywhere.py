"""Tables that are asked where a URI says: published, as in a folder, in few requests, and never
with a byte that somebody changed on the way."""

import shutil
import threading
from dataclasses import replace
from pathlib import Path

import duckdb
import duckdb_extension_httpfs
import numpy as np
import polars
import pytest

import luckbase
from luckbase.cluster.answers.find import open_table
from luckbase.cluster.store.storage import Folder, Place, place_of, storage_at
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver.errors import (
    CorruptTableError,
    ForeignTableError,
    LuckbaseError,
    MissingTableError,
    OptionError,
    RequestError,
    StoreError,
)
from tests.places import BOARDS
from tests.proxy import Proxy, WebServer
from tests.shared import lines_of, rewrite

TINY = BOARDS / "press-your-luck/tiny.toml"
STATE = {"scores": "0,1500,1000", "earned": "0,1,0"}
WORDS = [f"{name}={value}" for name, value in STATE.items()]


@pytest.fixture(scope="module")
def table(table_of):
    return table_of(TINY, frontier=1)


@pytest.fixture(scope="module")
def local(table):
    with open_table(table) as found:
        yield found


@pytest.fixture
def memory(tmp_path, local):
    """The table, published into this process's memory, as results have it."""
    uri = f"memory://{tmp_path.name}/results/press-your-luck/tiny/{local.identity}"
    local.publish(uri)
    return uri


@pytest.fixture
def site(tmp_path, local):
    """The table in a folder that a web server has."""
    local.publish(tmp_path / "site/t")
    return tmp_path / "site"


@pytest.fixture
def server(site):
    found = WebServer(site)
    yield found
    found.close()


@pytest.fixture
def proxy(server):
    """What stands between us and the server."""
    found = Proxy(server.address)
    yield found
    found.close()


@pytest.fixture
def uri(proxy):
    return f"{proxy.endpoint}/t"


def test_a_file_beside_one_of_other_bytes_is_read_in_its_own_place(tmp_path, local):
    """A late worker of another solve has left a file under each name."""
    uri = f"memory://{tmp_path.name}/results"
    there = storage_at(place_of(f"{uri}/press-your-luck/tiny/{local.identity}"))
    for name in local.manifest.files:
        there.put(name, b"another's")
    solved = luckbase.solve(luckbase.load_board(TINY, frontier=1), results=uri)
    with open_table(solved.table) as found:
        assert all(entry.at for entry in found.manifest.files.values())
        assert found.ask(STATE).value == local.ask(STATE).value


# --- few requests --------------------------------------------------------------------------------


def test_no_row_group_and_no_footer_is_read_twice(uri, proxy, local, table, tmp_path):
    """Also where all that the sentences of `why` need is read; and by an export with every action,
    which looks children up too."""
    for state in np.concatenate(list(local.draw(6, 3))):
        proxy.parts.clear()
        proxy.requests.clear()
        with open_table(uri) as found:
            asked = local.game.describe(state)
            assert found.ask(asked) == local.ask(asked) and found.why(asked)
        assert {method for method, *_ in proxy.requests} == {"GET"}
        assert len(set(proxy.parts)) == len(proxy.parts) and 2 <= len(proxy.parts) <= 5
    proxy.parts.clear()
    with open_table(uri) as found:
        found.export(tmp_path / "there.csv")
    local.export(tmp_path / "here.csv")
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    read = [(path, part) for path, part in proxy.parts if path.endswith(".parquet")]
    assert len(set(read)) == len(read) == 2 * len(local.manifest.files)


def test_many_states_are_read_in_parallel_and_once(uri, proxy, local):
    states = np.concatenate(list(local.draw(1000, 4)))
    six = threading.Event()

    def together(method, path, forward):
        """No file is answered of before six are asked for."""
        if path.endswith(".parquet"):
            if proxy.at_once >= 6:
                six.set()
            six.wait(60)
        return forward()

    proxy.at_once, proxy.change = 0, together
    with open_table(uri) as found:
        for _ in range(2):
            assert (found.get_many(states)[0] == local.get_many(states)[0]).all()
        read = [(path, part) for path, part in proxy.parts if path.endswith(".parquet")]
        assert len(set(read)) == len(read) <= 2 * len(found.manifest.files)
    assert six.is_set()


# --- every command -------------------------------------------------------------------------------


def test_a_command_says_of_a_uri_what_it_says_of_the_folder(command, memory, table):
    """But for its title, which is in the board file, whose path is not published."""

    def said(name, *words):
        code, out, err = command(words[0], name, *words[1:])
        assert code == 0, err
        return out.replace(name, "NAME")

    for words in (["query", *WORDS], ["verify"], ["chart"], ["diff", str(table)],
                  ["export", "scores_1=0", "--out", "-"]):  # fmt: skip
        assert said(memory, *words) == said(str(table), *words)
    assert said(str(table), "info").startswith("Three outcomes, seven scores\n")
    title, text = said(memory, "info").split("\n", 1)
    assert title == "tiny" and "18,816 states" in text
    assert said(memory, "status").splitlines()[0] == said(str(table), "status").splitlines()[0]


def test_a_board_file_means_its_table_in_results_of_a_uri(command, memory, table):
    results = str(Place(memory).parents[2])
    board = [str(TINY), "--set", "frontier=1", "--results"]
    code, out, _ = command("query", *board, results, *WORDS)
    assert (code, out) == (0, command("query", *board, str(table.parents[2]), *WORDS)[1])
    assert command("status", "--results", results)[1].startswith(f"complete  {memory}")
    assert "complete" in command("solve", "--dry-run", *board, results)[1]
    nothing = "memory://nothing-there/results"
    code, _, err = command("export", *board, nothing)
    assert code == 1
    assert f"no table of this board with frontier=1 under {nothing}; run: " in err


def test_a_byte_that_changed_in_the_store_is_found(memory, command):
    storage = storage_at(place_of(memory))
    (name,) = storage.list("tiers/spins-1.whammies_1-0.whammies_2-0.whammies_3-0")
    content = storage.read(name)
    storage.put(name, content[:700] + b"?" + content[701:])
    code, out, _ = command("verify", memory)
    assert code == 1
    assert f"fault: {memory}/{name}: is not as luckbase wrote it (its SHA-256 is another)" in out
    storage.put(name, content[:-1])
    assert command("status", memory)[1].startswith(f"damaged   {memory}")
    storage.delete(name)
    assert f"{name}: is missing" in command("status", memory)[1]
    code, _, err = command("query", memory, *WORDS)
    assert code == 1 and "(it is missing)" in err


def test_polars_and_duckdb_read_a_published_table(bucket, seaweed, site, server, local):
    uri = f"{bucket}/t"
    local.publish(uri)
    keys = {
        "aws_access_key_id": "luck", "aws_secret_access_key": "base",
        "aws_endpoint_url": seaweed.endpoint, "aws_region": "us-east-1", "aws_allow_http": "true",
    }  # fmt: skip
    frame = polars.scan_parquet(f"{uri}/tiers/*.parquet", storage_options=keys)
    mean = frame.filter(polars.col("to_act") == 2).select(polars.col("payoff_2").mean()).collect()
    database = duckdb.connect()
    (extension,) = Path(duckdb_extension_httpfs.__path__[0]).glob("extensions/*/*.duckdb_extension")
    database.load_extension(str(extension))
    database.execute(
        "create secret (type s3, key_id 'luck', secret 'base', region 'us-east-1', url_style "
        f"'path', use_ssl false, endpoint '{seaweed.endpoint.removeprefix('http://')}')"
    )
    there = read_manifest(Folder(site / "t"), site / "t").files.values()
    files = [f"{server.address}/t/{entry.place}" for entry in there]
    with open_table(uri) as found:
        rows = found.to_arrow()
        assert rows is not None
        for source in ("rows", f"'{uri}/tiers/*.parquet'", f"read_parquet({files})"):
            sql = f"select avg(payoff_2) from {source} where to_act = 2"
            assert database.sql(sql).fetchall()[0][0] == pytest.approx(mean.item())


# --- published -----------------------------------------------------------------------------------


def test_a_published_table_has_the_same_bytes(memory, table):
    storage, folder = storage_at(place_of(memory)), Folder(table)
    here, there = read_manifest(folder, table), read_manifest(storage, place_of(memory))
    assert not there.is_written and {goal.board_file for goal in there.goals} == {""}
    there_goals = [replace(goal, board_file=mine.board_file)
                   for goal, mine in zip(there.goals, here.goals, strict=True)]  # fmt: skip
    assert there_goals == here.goals  # but for the path of the board file on this machine
    assert lines_of(there)[len(there_goals) :] == lines_of(here)[len(there_goals) :]
    for name, entry in there.files.items():
        assert storage.read(entry.place) == folder.read(here.files[name].place)


def test_clean_takes_what_was_published_away(site, tmp_path):
    (spare,) = luckbase.clean(str(site / "t"), results=tmp_path, yes=True)
    assert (spare.state, spare.foreign) == ("removed", ())
    assert not (site / "t").exists()


def test_a_copy_that_was_stopped_goes_on(table, local, tmp_path, monkeypatch):
    to, puts = tmp_path / "to", []
    put = Folder.put

    def stopping(self, name, content):
        puts.append(name)
        if len(puts) == 8:
            raise KeyboardInterrupt
        put(self, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "put", stopping)
        with pytest.raises(KeyboardInterrupt):
            local.publish(to)
    there = read_manifest(Folder(to), to)
    assert not there.complete and 0 < len(there.files) < 8
    damaged = to / next(iter(there.files.values())).place
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    done = local.publish(to)
    assert done.copied == done.files - len(there.files) + 1
    assert len([*to.rglob("*.parquet")]) == done.files  # the damaged one is replaced
    assert local.publish(to).copied == 0
    with open_table(to) as found:
        assert found.verify(100).ok


def test_what_is_not_finished_or_not_its_place_is_refused(local, table, tmp_path, table_of):
    part = shutil.copytree(table, tmp_path / "part")
    manifest = read_manifest(Folder(part), part)
    manifest.done.clear()
    rewrite(part, manifest)
    with open_table(part) as found, pytest.raises(RequestError, match="is not finished"):
        found.publish(tmp_path / "to")
    pig = table_of(BOARDS / "pig/tiny.toml")
    for place, error, said in (
        (table, RequestError, "is the table itself"),
        (pig, ForeignTableError, "holds a table of other rules"),
        ("https://example.org/t", StoreError, "is only read"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            local.publish(place)


def test_a_byte_that_changes_on_the_way_is_found(local, table, tmp_path, monkeypatch):
    put = Folder.put

    def changing(self, name, content):
        if not name.endswith(".parquet"):
            return put(self, name, content)
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_bytes(content[:-1] + b"?")

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "put", changing)
        with pytest.raises(StoreError, match="is not what was put there"):
            local.publish(tmp_path / "to")
    bad = shutil.copytree(table, tmp_path / "bad")
    file = next((bad / "tiers").iterdir())
    file.write_bytes(file.read_bytes()[:-9] + b"?" + file.read_bytes()[-8:])
    with open_table(bad) as found, pytest.raises(CorruptTableError, match="its SHA-256 is another"):
        found.publish(tmp_path / "to")


# --- over https ----------------------------------------------------------------------------------


def test_a_web_server_is_asked_in_three_requests(server, local, command):
    name = f"{server.address}/t"
    with open_table(name) as found:
        assert found.ask(STATE) == local.ask(STATE)
    assert len(server.requests) == 3  # the manifest, a footer, a row group
    code, out, _ = command("status", name)
    assert (code, out.split()[:2]) == (0, ["complete", name])
    with open_table(name) as found:
        assert found.verify(50).ok


def test_what_a_web_server_changed_or_cut_is_refused(server, site, local):
    def answer():
        with open_table(f"{server.address}/t") as found:
            return found.ask(STATE)

    right = answer()
    used = {site / path.lstrip("/") for path in server.requests}
    assert len(used) == 2
    random = np.random.default_rng(1)
    for file in used:
        whole = file.read_bytes()
        for at in random.integers(len(whole), size=5).tolist():
            for changed in (
                whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :],
                whole[:at],
                whole + b"more",
            ):
                file.write_bytes(changed)
                try:
                    assert answer() == right  # where it was not looked at: the footer, or beyond it
                    assert file.suffix == ".parquet"
                    assert at >= len(whole) - 4000 or len(changed) > len(whole)
                except CorruptTableError as error:
                    assert "\n" not in str(error)
        file.write_bytes(whole)
    assert answer() == right


def test_what_a_web_server_does_not_give_or_take_is_a_sentence(site, server, command):
    plain = WebServer(site, ranges=False)
    with open_table(f"{plain.address}/t") as found, pytest.raises(StoreError, match="parts of fil"):
        found.ask(STATE)
    plain.close()
    assert list(place_of(server.address + "/t").glob("*")) == []
    name = f"{server.address}/x"
    with pytest.raises(MissingTableError, match="no table here"):
        open_table(name)
    code, _, err = command("solve", "pig/tiny", "--results", name)
    assert (code, "is only read; expected a folder, s3://" in err) == (2, True), err
    code, _, err = command("status", "--results", name)
    assert (code, "a web server does not say what it has" in err) == (2, True), err
    for answer, said in {
        (401, b""): "its server lets nobody read there without a login",
        (403, b"<Error><Code>AccessDenied</Code></Error>"): "its server lets nobody read there",
        (200, b"<html></html>"): "expected what luckbase publish wrote; publish the table there",
    }.items():
        proxy = Proxy(server.address, change=lambda method, path, forward, a=answer: a)
        with pytest.raises(LuckbaseError, match=said):
            open_table(f"{proxy.endpoint}/t")
        proxy.close()


def test_without_obstore_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None)
    needs = r"s3://b/t needs obstore; run: pip install '\.\[cloud\]'"
    with pytest.raises(OptionError, match=needs):
        open_table("s3://b/t")
