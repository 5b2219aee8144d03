"""Many requests at once: no long question delays the others, and connections are bounded."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.request import Request, urlopen

from luckbase.jobs import serve
from luckbase.jobs.web import states, tables
from tests.jobs.web.serving import asking, id_of, listening

HANGS = 300.0
"""Seconds after which something hangs: first answers are compiled, on a slow machine too."""


@contextmanager
def long_searches(monkeypatch):
    """Searches for rows take until the end of this."""
    end, real = threading.Event(), tables.first_rows

    def slow(*given):
        assert end.wait(HANGS)
        return real(*given)

    monkeypatch.setattr(tables, "first_rows", slow)
    try:
        yield
    finally:
        end.set()


def test_long_questions_delay_neither_their_table_nor_the_others(web_results, monkeypatch):
    """There are more of them than threads, all of one table."""
    with asking(web_results) as client:
        pig, skunk = id_of(client, "pig"), id_of(client, "skunk")
    with listening(web_results) as address, ThreadPoolExecutor(8) as pool:

        def get(path):
            with urlopen(f"{address}{path}", timeout=HANGS) as reply:
                reply.read()
                return int(reply.status)

        with long_searches(monkeypatch):
            query = [pool.submit(get, f"/tables/{pig}/search/1?most=1") for _ in range(6)]
            for _ in range(5):
                for path in (f"/tables/{skunk}/state", f"/tables/{pig}/state", "/"):
                    assert get(path) == 200
            assert not any(each.done() for each in query)
        assert [each.result() for each in query] == [200] * 6


def test_states_that_are_searched_delay_no_state_of_their_table(web_results, monkeypatch):
    end, real = threading.Event(), states.moves

    def slow(table, state, max_states):
        assert not max_states or end.wait(HANGS)
        return real(table, state, max_states)

    with asking(web_results) as client:
        index = f"/tables/{id_of(client, 'press-your-luck')}/state?scores=0,1000,500"
    with listening(web_results) as address, ThreadPoolExecutor(20) as pool:

        def get(path, accept="application/json"):
            query = Request(f"{address}{path}", headers={"Accept": accept})
            with urlopen(query, timeout=HANGS) as reply:
                return reply.read()

        monkeypatch.setattr(states, "moves", slow)
        above = [pool.submit(get, f"{index}&earned=1,{1 + k % 2},1") for k in range(20)]
        try:
            for accept in ("application/json", "text/html"):
                for _ in range(5):
                    assert get(f"{index}&earned=0,1,0", accept)
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


def test_more_connections_than_may_be_are_refused(web_results, monkeypatch):
    monkeypatch.setattr(serve, "CONNECTIONS", 3)  # no option; the system here may allow fewer
    with listening(web_results) as address, connect(address), connect(address):
        third = connect(address)
        assert status_of(third) == 503
        third.close()


def test_idle_connections_leave_the_others_answered(web_results):
    with listening(web_results) as address:
        idle = [connect(address) for _ in range(400)]
        with connect(address) as line:
            assert status_of(line) == 200
        for each in idle:
            each.close()


def test_a_header_is_read_no_further_than_it_may_be_long(web_results):
    with listening(web_results) as address:
        with connect(address) as line:
            assert status_of(line, b"Host: 127.0.0.1\r\nX: " + b"x" * 200_000) == 400
        with urlopen(f"{address}/tables", timeout=HANGS) as reply:
            assert json.load(reply)["tables"]
