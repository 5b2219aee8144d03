"""Much at once: nobody's long question holds up the others, and memory stays bounded."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from starlette.testclient import TestClient

from luckbase.jobs.web import http, server, states
from tests.jobs.web.serving import asking, id_of, listening

HANGS = 300.0
"""Seconds after which something hangs: first answers are compiled, on a slow machine too."""
LINE = b'{"mine": 0, "yours": 0}\n'


@contextmanager
def long_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Batches take until the end of this."""
    from luckbase.jobs.web import states

    end, real = threading.Event(), states.rows_of

    def slow(*given: object) -> bytes:
        assert end.wait(HANGS)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(states, "rows_of", slow)
    try:
        yield
    finally:
        end.set()


def test_long_batches_hold_up_neither_their_table_nor_the_others(
    web_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than there are threads, to one table."""
    with asking(web_results) as client:
        pig, skunk = id_of(client, "pig"), id_of(client, "skunk")
    with listening(web_results) as address, ThreadPoolExecutor(8) as pool:

        def get(path: str, body: bytes | None = None) -> int:
            with urlopen(Request(f"{address}{path}", body), timeout=HANGS) as reply:
                reply.read()
                return int(reply.status)

        with long_batches(monkeypatch):
            batches = [pool.submit(get, f"/api/tables/{pig}/batch", LINE) for _ in range(6)]
            for _ in range(5):
                for path in (f"/api/tables/{skunk}/state", f"/api/tables/{pig}/state", "/"):
                    assert get(path) == 200
            assert not any(batch.done() for batch in batches)
        assert [batch.result() for batch in batches] == [200] * 6


def test_answers_are_compressed_in_the_threads(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, real = [], http.gzip.compress

    def compress(*given: object, **more: object) -> bytes:
        where.append(threading.current_thread().name)
        return real(*given, **more)  # type: ignore[arg-type]

    pig = id_of(client, "pig")
    monkeypatch.setattr(http.gzip, "compress", compress)
    client.get(f"/api/tables/{pig}/state")
    client.post(f"/api/tables/{pig}/batch", content=LINE * 100)
    assert [name.split("_")[0] for name in where] == ["luckbase-web", "luckbase-batch"]


def test_states_that_are_asked_at_once_are_answered_together_and_each_as_alone(
    web_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a state that is wrong, and one that the table does not reach, beside the others."""
    asked = [f"scores=0,{500 * k},500&earned=0,1,1&drawing=state" for k in range(6)]
    asked += ["scores=0,1,2", "scores=0,500,500&earned=0,2,1"]
    with asking(web_results) as client:
        id = id_of(client, "press-your-luck")
        alone = [client.get(f"/api/tables/{id}/state?{words}") for words in asked]
    assert [reply.status_code for reply in alone] == [200] * 6 + [400, 200]
    sizes, free, real = list[int](), threading.Event(), states.state_views
    there, with_others = list(asked), server.Explorer.with_others

    def comes(explorer: Any, view: Any, mine: Any) -> Any:
        there.pop()
        return with_others(explorer, view, mine)

    def slow(table: Any, requests: Any) -> Any:
        assert free.wait(HANGS)
        sizes.append(len(requests))
        return real(table, requests)

    (view,) = (view for view in server.VIEWS if view.of_many)
    views = [replace(each, of_many=slow) if each is view else each for each in server.VIEWS]
    monkeypatch.setattr(server, "VIEWS", tuple(views))
    monkeypatch.setattr(server.Explorer, "with_others", comes)
    with listening(web_results) as address, ThreadPoolExecutor(8) as pool:

        def get(words: str) -> tuple[int, Any]:
            try:
                with urlopen(f"{address}/api/tables/{id}/state?{words}", timeout=HANGS) as reply:
                    return int(reply.status), json.load(reply)
            except HTTPError as error:
                return error.code, json.load(error)

        replies = [pool.submit(get, words) for words in asked]
        while there and not all(reply.done() for reply in replies):
            time.sleep(0.01)  # until all wait: the first for us, the others for it
        free.set()
        for reply, one in zip(replies, alone, strict=True):
            assert reply.result() == (one.status_code, one.json())
    assert max(sizes) > 1 and sum(sizes) == len(asked)


def test_who_was_answered_with_others_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that each batch would be of those who are back by then, and the next of the rest."""
    sizes = list[int]()

    class Tables:
        def ask(self, id: str, question: Any, strict: bool) -> Any:
            return question(None)

        def forget(self) -> None: ...

    def of_many(table: Any, asked: Any) -> Any:
        sizes.append(len(asked))
        return asked

    async def all_of_them() -> None:
        explorer = server.Explorer(Tables())  # type: ignore[arg-type]

        async def ask(after: float) -> None:
            await asyncio.sleep(after)
            asked = http.ApiRequest(states.DrawnParams.read({}))
            await explorer.with_others(view, server.Waiting("t", asked, lambda made: made))

        for late in (0.0, 0.1):
            await asyncio.gather(ask(0), ask(late))
        explorer.close()

    view = replace(next(view for view in server.VIEWS if view.of_many), of_many=of_many)
    monkeypatch.setattr(server, "LINGER_SECONDS", 20.0)
    began = time.monotonic()
    asyncio.run(all_of_them())
    assert sizes == [2, 2] and time.monotonic() - began < 10  # and no longer than for the second


@pytest.mark.parametrize(
    "headers, good",
    [
        ({}, True),
        ({"origin": "http://127.0.0.1"}, True),
        ({"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "http://127.0.0.1:9999"}, False),
        ({"origin": "null"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1"}, False),
    ],
)
def test_work_that_another_page_sends_is_refused(
    headers: dict[str, str], good: bool, client: TestClient
) -> None:
    """As text/plain, which a browser sends without asking first."""
    at = f"/api/tables/{id_of(client, 'pig')}"
    for view, body in (("batch", LINE), ("play", b'{"seed": 1}')):
        sent = {"content-type": "text/plain", **headers}
        reply = client.post(f"{at}/{view}", content=body, headers=sent)
        assert reply.status_code == (200 if good else 403), reply.text
        assert good or reply.json()["error"].startswith("origin: POST is for this server's own")


@contextmanager
def sending(address: str, path: str, *pieces: bytes, length: int, type_: str = "") -> Iterator[Any]:
    """A request of which these pieces of the body have been sent; gives its connection."""
    host, port = address.removeprefix("http://").split(":")
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {length}\r\n"
    head += f"Content-Type: {type_}\r\n" if type_ else ""
    with socket.create_connection((host, int(port)), timeout=HANGS) as line:
        line.sendall(f"{head}\r\n".encode())
        for piece in pieces:
            line.sendall(piece)
        yield line


def reply_of(line: socket.socket) -> tuple[int, str]:
    """The status and the content of what comes back, the connection being closed after it."""
    found = b""
    while more := line.recv(65536):
        found += more
        head, blank, content = found.partition(b"\r\n\r\n")
        if blank and len(content) >= int(re.search(rb"length: ([0-9]+)", head)[1]):  # type: ignore[index]
            break
    return int(found.split(b" ", 2)[1]), content.decode()


def test_what_can_not_be_answered_is_refused_before_its_body_is_read(web_results: Path) -> None:
    with asking(web_results) as client:
        pig = id_of(client, "pig")
    with listening(web_results) as address:
        for id, type_, length, sent, status, said in (
            ("nothing", "text/csv", 10**7, b"", 404, "unknown table 'nothing'"),
            (
                pig,
                "image/png",
                10**7,
                b"junk" * 10,
                400,
                "content-type: unknown type 'image/png'",
            ),
            (pig, "text/csv", 10**8, b"", 400, "body: has more than 64,000,000 bytes"),
        ):
            path = f"/api/tables/{id}/batch"
            with sending(address, path, sent, length=length, type_=type_) as line:
                code, content = reply_of(line)
            assert code == status and said in json.loads(content)["error"], content


def test_all_bodies_together_are_bounded(
    web_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "BODIES_BYTES", 10 * len(LINE))
    with asking(web_results) as client:
        at = f"/api/tables/{id_of(client, 'pig')}/batch"
    with listening(web_results) as address:
        for again in range(1, 7):
            with sending(address, at, LINE * 7, length=8 * len(LINE)) as first:
                time.sleep(0.05 * 2**again)  # the server reads it; else it may refuse this one
                with sending(address, at, LINE * 4, length=4 * len(LINE)) as second:
                    code, content = reply_of(second)
                if code == 503:
                    first.sendall(LINE)
                    assert reply_of(first)[0] == 200
                    break
        assert code == 503 and "reads too many others" in json.loads(content)["error"]
        with sending(address, at, LINE * 10, length=10 * len(LINE)) as third:
            assert reply_of(third)[0] == 200


def test_a_body_that_does_not_come_is_not_waited_for(
    web_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "READ_SECONDS", 0.2)
    with asking(web_results) as client:
        at = f"/api/tables/{id_of(client, 'pig')}/batch"
    with listening(web_results) as address, sending(address, at, LINE, length=99) as line:
        code, content = reply_of(line)
    assert code == 408 and "body: did not arrive within 0.2 s" in json.loads(content)["error"]


def test_more_requests_at_once_than_may_be_are_told_to_come_again(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luckbase.jobs.web.server.MAX_REQUESTS", 0)
    reply = client.get("/api/tables")
    assert reply.status_code == 503 and "ask again in a moment" in reply.json()["error"]
