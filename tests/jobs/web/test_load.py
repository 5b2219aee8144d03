"""Much at once: nobody's long question holds up the others, and memory stays bounded."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from starlette.testclient import TestClient

from tests.jobs.web.serving import asking, id_of, listening

LINE = b'{"mine": 0, "yours": 0}\n'


@contextmanager
def long_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Batches take until the end of this."""
    from luckbase.jobs.web import rows

    end, real = threading.Event(), rows.answered

    def slow(*given: object) -> bytes:
        assert end.wait(30)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(rows, "answered", slow)
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
            with urlopen(Request(f"{address}{path}", body), timeout=20) as reply:
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
    where, real = [], gzip.compress

    def compress(*given: object, **more: object) -> bytes:
        where.append(threading.current_thread().name)
        return real(*given, **more)  # type: ignore[arg-type]

    pig = id_of(client, "pig")
    monkeypatch.setattr(gzip, "compress", compress)
    client.get(f"/api/tables/{pig}/state")
    client.post(f"/api/tables/{pig}/batch", content=LINE * 100)
    assert [name.split("_")[0] for name in where] == ["luckbase-web", "luckbase-batch"]


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
