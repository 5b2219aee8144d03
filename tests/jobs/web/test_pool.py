"""Tables that come, grow, change, break and go while a server reads them; many requests at once:
no long question delays the others, and connections are bounded. And luckbase serve as a command:
where it listens, what it refuses, how it ends. The floor of its speed is for two cores without
other work: run it with -m slow -n0."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from types import SimpleNamespace
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import pytest

import luckbase
from luckbase.cluster.answers.find import tables_below
from luckbase.cluster.machine import memory_limit
from luckbase.cluster.store.storage import Folder, place_of
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs import serve
from luckbase.jobs.app import run
from luckbase.jobs.serve import address_of, hosts_of, pool_of
from luckbase.jobs.web import pool, server, views
from luckbase.jobs.web.pool import TablePool
from luckbase.jobs.web.server import LOCAL
from luckbase.solver.errors import MissingTableError
from tests.jobs.web import serving
from tests.jobs.web.serving import GAMES, asking, drawn, id_of, listening, served, state_of
from tests.places import BOARDS
from tests.shared import rewrite

PRESS = BOARDS / "press-your-luck/tiny.toml"


GOAL = 'game = "pig"\n[rules]\ngoal = {}\n'


@pytest.fixture
def results(tmp_path, monkeypatch):
    """An empty results folder; a server looks at it before every answer."""
    monkeypatch.setattr(pool, "LIST_SECONDS", 0.0)  # no option
    return tmp_path / "results"


@pytest.fixture
def copied(results, web_results):
    """A folder of its own with the tables of pig and skunk."""
    for game in ("pig", "skunk"):
        shutil.copytree(web_results / game, results / game)
    return results


@pytest.fixture
def client(results):
    with asking(results) as result:
        yield result


HANGS = 300.0
"""Seconds after which something hangs: first answers are compiled, on a slow machine too."""


def read(address, path, accept="application/json"):
    query = Request(f"{address}{path}", headers={"Accept": accept})
    with urlopen(query, timeout=HANGS) as reply:
        return reply.read()


def answers(address, paths, threads=8):
    """What a server answers to paths, several at once."""
    with ThreadPoolExecutor(threads) as many:
        return list(many.map(partial(read, address), paths))


def test_a_table_that_is_solved_meanwhile_appears_and_grows(results, client):
    assert client.get("/tables").json() == {"tables": []}
    luckbase.solve(luckbase.load_board(PRESS, frontier=1), results=results)
    id = id_of(client, "press-your-luck")
    query = {"scores": "0,1000,500", "earned": "0,1,1"}
    before = state_of(client, id, **query)
    luckbase.solve(luckbase.load_board(PRESS, frontier=2), results=results)
    after = state_of(client, id, **query)
    assert (before["source"], after["source"]) == ("search", "table")
    assert after["value"] == pytest.approx(before["value"], abs=1e-6)


def test_a_table_that_is_deleted_is_gone_and_one_in_its_place_is_opened_again(copied, client):
    """Files of the old one must not answer for the new."""
    id = id_of(client, "pig")
    state_of(client, id)
    shutil.rmtree(copied / "pig")
    reply = client.get(f"/tables/{id}/state?mine=1&yours=1")
    assert reply.status_code == 404 and "unknown table" in reply.json()["error"]
    assert [table["game"] for table in client.get("/tables").json()["tables"]] == ["skunk"]
    luckbase.solve(BOARDS / "pig/tiny.toml", results=copied)
    assert state_of(client, id, mine="1", yours="1")["source"] == "table"


def test_a_changed_byte_is_refused_and_the_others_answer(copied, client):
    id, other = id_of(client, "pig"), id_of(client, "skunk")
    (file,) = copied.glob("pig/*/*/tiers/*.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)
    reply = client.get(f"/tables/{id}/state?mine=1&yours=1")
    assert reply.status_code == 409
    assert "is not as luckbase wrote it" in reply.json()["error"]
    assert state_of(client, other)["to_act"] == 1


def test_a_damaged_table_is_listed_and_says_why(copied, client):
    id = id_of(client, "pig")
    (file,) = copied.glob("pig/*/*/manifest.json")
    file.write_bytes(file.read_bytes().replace(b"pig", b"pug", 1))
    listed = {table["id"]: table for table in client.get("/tables").json()["tables"]}
    assert listed[id]["state"] == "damaged" and listed[id]["why"]
    for path in ("", "/state", "/grid?x=mine&y=yours"):
        assert client.get(f"/tables/{id}{path}").status_code == 409


def test_a_stale_table_says_so(results, client, tmp_path):
    board = tmp_path / "mine.toml"
    board.write_text(GOAL.format(10))
    luckbase.solve(board, results=results)
    id = id_of(client, "pig")
    assert state_of(client, id)["stale"] == []
    board.write_text(GOAL.format(12))
    os.utime(board, ns=(1, 1))
    (listed,) = client.get("/tables").json()["tables"]
    assert listed["state"] == "stale" and "goal" in listed["why"][0]
    assert "goal" in state_of(client, id)["stale"][0]


def test_what_is_being_solved_is_listed_without_states(copied, client):
    """A head and a goal, and no row yet."""
    (path,) = copied.glob("pig/*/*/")
    manifest = read_manifest(Folder(path), path)
    manifest.files.clear()
    manifest.done.clear()
    rewrite(path, manifest)
    (listed,) = (t for t in client.get("/tables").json()["tables"] if t["game"] == "pig")
    assert (listed["state"], listed["states"]) == ("partial", 0)
    reply = client.get(f"/tables/{listed['id']}/state?mine=1&yours=1")
    assert reply.status_code in (200, 404)
    assert client.get(f"/tables/{listed['id']}").json()["start"] is None


def test_many_readers_at_once_get_the_same_answers(web_results):
    """Of several tables, with long questions among short ones, over a real connection."""
    with asking(web_results) as client:
        ids = [id_of(client, game) for game in GAMES]
        paths = [
            f"/tables/{id}/state?{urlencode(drawn(client, id, seed))}"
            for seed in range(6)
            for id in ids
        ]
    paths += [f"/tables/{ids[0]}/state?scores=0,1000,{c}00&earned=1,1,1" for c in (0, 5)]
    with listening(web_results) as address:
        assert answers(address, paths * 3) == answers(address, paths, threads=1) * 3


@pytest.fixture
def tables(web_results):
    found = TablePool([partial(tables_below, web_results)])
    yield found
    found.forget()
    assert not found._idle


def test_no_more_tables_stay_open_than_may(web_results):
    tables = TablePool([partial(tables_below, web_results)], open_tables=2)
    ids = [each.id for each in tables.listed()]
    assert len(ids) == len(GAMES)
    kept = []
    for id in ids * 2:
        with tables.open(id) as opened:
            kept.append(opened)
            opened.table.draw(1, 0)
    assert [each.entry.id for each in tables._idle] == ids[-2:]
    for id in (ids[-2], ids[0]):  # who was used last stays
        with tables.open(id):
            pass
    assert [each.entry.id for each in tables._idle] == [ids[-2], ids[0]]
    tables.forget()


def test_what_is_remembered_is_bounded(tables):
    """By tables that stay open and as many in use: a share of the machine's memory."""
    id = tables.listed()[0].id
    with tables.open(id) as first, tables.open(id) as second:
        assert second is not first
        parts = [each.table.parts for each in (first, second)]
        sizes = [sum(part.groups.max_bytes for part in each) for each in parts]
    assert sizes[0] == sizes[1] and 4 * pool.OPEN_TABLES * sizes[0] <= memory_limit()
    with tables.open(id) as again:
        assert again is first


def test_a_table_is_waited_for_and_not_opened_for_each_question(web_results, monkeypatch):
    opened, real = [], pool.open_table
    monkeypatch.setattr(server, "OF_ONE_TABLE", 1)  # no option
    monkeypatch.setattr(pool, "open_table", lambda path: opened.append(path) or real(path))
    with asking(web_results) as client:
        id = id_of(client, "pig")
        queries = [urlencode(drawn(client, id, seed)) for seed in range(24)]
    opened.clear()
    with listening(web_results) as address:
        assert all(answers(address, [f"/tables/{id}/state?{query}" for query in queries]))
    assert len(opened) == 1


def test_a_failed_question_leaves_the_table_usable(tables):
    id = tables.listed()[0].id
    for _ in range(5):
        with pytest.raises(MissingTableError), tables.open(id):
            raise MissingTableError("nothing there")
    with tables.open(id) as opened:
        assert opened.table.rows


def test_two_folders_with_one_table_each_have_ids_of_their_own(copied, web_results):
    with asking(copied, web_results) as client:
        ids = [table["id"] for table in client.get("/tables").json()["tables"]]
        assert len(ids) == len(set(ids)) == 2 + len(GAMES)
        for id in ids:
            state_of(client, id)


def test_a_folder_whose_name_is_no_text_is_listed_and_answers(results, web_results, client):
    strange = os.fsdecode(os.fsencode(results) + b"/pig\xff/tiny")
    os.makedirs(strange)
    (table,) = web_results.glob("pig/*/*/")
    shutil.copytree(table, os.path.join(strange, table.name))
    (listed,) = client.get("/tables").json()["tables"]
    assert listed["id"] == f"pig?~tiny~{table.name}"
    assert state_of(client, quote(listed["id"]))["to_act"] == 1


def test_folders_of_this_machine_are_never_named(results, tmp_path, web_results, client):
    """A state too far above, a stale table, a damaged file, a damaged head."""
    shutil.copytree(web_results / "press-your-luck", results / "press-your-luck")
    board = tmp_path / "mine.toml"
    board.write_text(GOAL.format(10))
    luckbase.solve(board, results=results)
    board.write_text(GOAL.format(12))
    id, press = id_of(client, "pig"), id_of(client, "press-your-luck")
    far = f"/tables/{press}/state?scores=0,0,0&earned=7,7,6"
    sent = [client.get(far), client.get(f"/tables/{id}/state?drawing=1")]
    assert [reply.status_code for reply in sent] == [404, 400]
    place = "/".join(("results", *press.split("~")))
    assert f"luckbase query {place} scores=0,0,0" in sent[0].text
    sent += [client.get("/tables"), client.get(f"/tables/{id}/state")]
    (file,) = results.glob("pig/*/*/tiers/*.parquet")
    file.write_bytes(b"x" * file.stat().st_size)
    client.pool.forget(id)
    sent += [client.get(f"/tables/{id}/state?mine=1&yours=1")]
    assert sent[-1].status_code == 409
    (manifest,) = results.glob("pig/*/*/manifest.json")
    manifest.write_text("{}")
    sent += [client.get(f"/tables/{id}"), client.get("/tables")]
    assert not any(str(tmp_path) in reply.text for reply in sent)


@pytest.fixture
def end():
    """What takes long waits for this."""
    event = threading.Event()
    yield event
    event.set()


def test_long_questions_delay_neither_their_table_nor_the_others(web_results, monkeypatch, end):
    """There are more of them than threads, all of one table."""
    real = views.first_rows
    monkeypatch.setattr(views, "first_rows", lambda *given: end.wait(HANGS) and real(*given))
    with asking(web_results) as client:
        pig, skunk = id_of(client, "pig"), id_of(client, "skunk")
    with listening(web_results) as address, ThreadPoolExecutor(8) as pool:
        path = f"/tables/{pig}/search/1?most=1"
        query = [pool.submit(read, address, path) for _ in range(6)]
        try:
            for _ in range(5):
                for path in (f"/tables/{skunk}/state", f"/tables/{pig}/state", "/"):
                    assert read(address, path)
            assert not any(each.done() for each in query)
        finally:
            end.set()
        assert all(each.result() for each in query)


def test_states_that_are_searched_delay_no_state_of_their_table(web_results, monkeypatch, end):
    real = views.moves

    def slow(table, state, max_states, on_level):
        assert not max_states or end.wait(HANGS)
        return real(table, state, max_states, on_level)

    monkeypatch.setattr(views, "moves", slow)
    with asking(web_results) as client:
        index = f"/tables/{id_of(client, 'press-your-luck')}/state?scores=0,1000,500"
    with listening(web_results) as address, ThreadPoolExecutor(20) as pool:
        paths = [f"{index}&earned=1,{1 + k % 2},1" for k in range(20)]
        above = [pool.submit(read, address, path) for path in paths]
        try:
            for accept in ("application/json", "text/html") * 5:
                assert read(address, f"{index}&earned=0,1,0", accept)
            assert not any(each.done() for each in above)
        finally:
            end.set()
        assert {json.loads(each.result())["source"] for each in above} == {"search"}


def connect(address):
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=HANGS)


def status_of(line, head=b"Host: 127.0.0.1"):
    """The status of the answer to a request on a connection."""
    line.sendall(b"GET /tables HTTP/1.1\r\n" + head + b"\r\n\r\n")
    return int(line.recv(100).split(b" ")[1])


def test_connections_are_bounded_and_idle_ones_leave_the_others_answered(web_results, monkeypatch):
    """No more than the system here may allow."""
    with listening(web_results) as address:
        idle = [connect(address) for _ in range(400)]
        with connect(address) as line:
            assert status_of(line) == 200
        for each in idle:
            each.close()
    monkeypatch.setattr(serve, "CONNECTIONS", 3)  # no option
    with (
        listening(web_results) as address, connect(address), connect(address),
        connect(address) as third,
    ):  # fmt: skip
        assert status_of(third) == 503


def test_a_header_is_read_no_further_than_it_may_be_long(web_results):
    with listening(web_results) as address:
        with connect(address) as line:
            assert status_of(line, b"Host: 127.0.0.1\r\nX: " + b"x" * 200_000) == 400
        with connect(address) as line:
            assert status_of(line) == 200


FLOOR = 200
"""Answers of one state a second."""
CLIENTS, SECONDS = 4, 5.0
BUSY = 1.5
"""A machine with a greater load measures its other work."""


def count_answers(address, path, seconds):
    """Ask for a path on one connection, and return the number of good answers."""
    connection, count = HTTPConnection(urlsplit(address).netloc, timeout=60), 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        connection.request("GET", path)
        reply = connection.getresponse()
        assert reply.read() and reply.status == 200
        count += 1
    connection.close()
    return count


@pytest.mark.slow
def test_the_server_gives_200_answers_of_one_state_a_second(web_results):
    if os.getloadavg()[0] > BUSY:
        pytest.skip(f"the load is {os.getloadavg()[0]:.1f}; expected at most {BUSY}")
    (table,) = web_results.glob("press-your-luck/*/*")
    path = f"/tables/{'~'.join(table.parts[-3:])}/state?scores=500,1000,500&earned=0,2,0"
    with served(str(table)) as (_, text), ThreadPoolExecutor(CLIENTS) as clients:
        address = re.search(r"http://\S+", text)[0]
        count_answers(address, path, 1.0)  # loads the compiled code
        begun = time.perf_counter()
        counts = clients.map(
            count_answers, *zip(*[(address, path, SECONDS)] * CLIENTS, strict=True)
        )
        rate = sum(counts) / (time.perf_counter() - begun)
    print(f"{rate:.0f} answers a second")
    assert rate >= FLOOR


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def pig(table_of):
    return table_of(BOARDS / "pig/tiny.toml")


def test_it_says_its_address_answers_and_ends_with_a_signal(pig):
    with serving.served(str(pig)) as (process, text):
        result = re.search(r"^1 table at (http://127\.0\.0\.1:[0-9]+/) \(Ctrl\+C ends it\)", text)
        assert result, text
        with urlopen(f"{result[1]}tables", timeout=300) as reply:
            assert json.loads(reply.read())["tables"][0]["game"] == "pig"
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0
        text = process.stderr.read().replace("compiling, the first time only …\n", "")
        assert text == ""


def test_another_address_is_warned_of_and_answers_by_any_name(pig):
    with serving.served(str(pig), "--host", "0.0.0.0") as (process, text):
        assert "whoever reaches this machine can read these tables" in text
        result = re.search(r"http://[0-9.]+:([0-9]+)/", process.stderr.readline())
        assert result
        with socket.create_connection(("127.0.0.1", int(result[1])), timeout=300) as line:
            line.sendall(b"GET /tables HTTP/1.1\r\nHost: any.example\r\n\r\n")
            assert line.recv(100).startswith(b"HTTP/1.1 200")
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0


@pytest.mark.parametrize(
    "host, address, hosts",
    [
        ("127.0.0.1", "127.0.0.1", ("127.0.0.1", "localhost", "::1")),
        ("MyBox.example", "192.0.2.7", ("mybox.example", "192.0.2.7", *LOCAL)),
        ("127.0.0.2", "127.0.0.2", ("127.0.0.2", *LOCAL)),
        ("fe80::1%eth0", "fe80::1%eth0", ("fe80::1%eth0", *LOCAL)),
        ("0.0.0.0", "0.0.0.0", None),
        ("::", "::", None),
    ],
)
def test_only_all_addresses_at_once_may_be_called_by_any_name(host, address, hosts):
    assert hosts_of(host, SimpleNamespace(getsockname=lambda: (address, 80))) == hosts


def test_the_address_is_one_that_a_browser_takes():
    for name, address in ((("127.0.0.1", 80), "127.0.0.1:80"), (("::1", 80, 0, 0), "[::1]:80")):
        listener = SimpleNamespace(getsockname=lambda name=name: name, family=None)
        assert address_of(listener) == f"http://{address}/"


def test_a_port_that_is_taken_is_one_sentence(pig, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["serve", str(pig), "--no-open", "--port", str(port)]) == 2
    text = capsys.readouterr().err
    assert text == (
        f"luckbase: --port: {port} is in use; choose another port, or --port 0 for any free port\n"
    )


def test_a_hangup_ends_it(pig, monkeypatch):
    async def once(self):
        signal.raise_signal(signal.SIGHUP)
        assert self.should_exit

    monkeypatch.setattr("uvicorn.Server.main_loop", once)
    assert run(["serve", str(pig), "--port", "0", "--no-open"]) == 0


def test_a_screen_gets_the_page_opened(pig, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")

    async def once(self):
        for _ in range(6000):
            if not opened:
                await asyncio.sleep(0.05)

    monkeypatch.setattr("uvicorn.Server.main_loop", once)
    assert run(["serve", str(pig), "--port", "0"]) == 0
    assert len(opened) == 1 and re.fullmatch(r"http://127\.0\.0\.1:[0-9]+/", opened[0])


def test_what_is_named_is_what_is_served(pig, tmp_path):
    results = pig.parents[2]
    for names in ([str(pig)], [str(results)], [str(results / "pig")], [str(pig.parent)]):
        assert [each.path for each in pool_of(names, tmp_path, {}).listed()] == [pig]
    uri = place_of(f"memory://{tmp_path.name}/t")
    with luckbase.open(pig) as table:
        table.publish(uri)
    with serving.asking(uri) as client:
        assert serving.state_of(client, serving.id_of(client, "pig"))["to_act"] == 1
    board = str(BOARDS / "pig/tiny.toml")
    assert [each.path for each in pool_of([board], results, {}).listed()] == [pig]
    assert [each.path for each in pool_of([board], results, {"goal": "20"}).listed()] == [pig]
    assert pool_of([], tmp_path, {}).listed() == []
