"""Answers that last as long as their tables: ETags, versions, what is remembered."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.testclient import TestClient

import luckbase
from luckbase.jobs.web import pool, server
from luckbase.jobs.web.http import AnswerCache
from luckbase.solver.njit import PACKAGE
from tests.jobs.web.serving import asking, id_of
from tests.places import BOARDS

STATE = "scores=0,1000,500&earned=0,1,1"


def version_of(client: TestClient, id: str) -> str:
    (found,) = [t["version"] for t in client.get("/api/tables").json()["tables"] if t["id"] == id]
    return str(found)


def test_an_answer_that_is_there_already_is_not_sent_again(client: TestClient) -> None:
    id = id_of(client, "press-your-luck")
    first = [client.get(f"/api/tables/{id}/state?{STATE}") for _ in range(2)][-1]
    tag = first.headers["etag"]
    for known in (tag, f'"other", W/{tag}'):
        again = client.get(f"/api/tables/{id}/state?{STATE}", headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    other = client.get(f"/api/tables/{id}/state?{STATE}&drawing=0", headers={"if-none-match": tag})
    assert other.status_code == 200 and other.headers["etag"] != tag


def test_only_an_address_with_the_version_may_be_kept_for_ever(client: TestClient) -> None:
    id = id_of(client, "pig")
    at = f"/api/tables/{id}/state?mine=1&yours=1"
    client.get(at)  # the table is open, and where its board is known
    for more, said in (
        ("", "no-cache"),
        ("&version=0123456789abcdef", "no-cache"),
        (f"&version={version_of(client, id)}", "max-age=31536000, immutable"),
    ):
        assert client.get(at + more).headers["cache-control"] == said
    for path in ("/api/tables", f"/api/tables/{id}", f"/api/tables/{id}/filter"):
        assert client.get(path).headers["cache-control"] == "no-store"


def test_an_answer_is_worked_out_once_and_compressed_or_not_as_it_is_wanted(
    web_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asking(web_results) as client:
        id, tables = id_of(client, "pig"), client.pool  # type: ignore[attr-defined]
        at = f"/api/tables/{id}/state?mine=1&yours=2"
        client.get(at)
        asked, real = [], tables.ask
        monkeypatch.setattr(tables, "ask", lambda *a, **k: asked.append(a) or real(*a, **k))
        replies = [client.get(at, headers={"accept-encoding": how}) for how in ("gzip", "") * 3]
        assert len(asked) == 2
        assert len({reply.text for reply in replies}) == 1
        assert [reply.headers.get("content-encoding") for reply in replies] == ["gzip", None] * 3
        for _ in range(2):  # what is wrong is not remembered
            assert client.get(f"{at}&zzz=1").status_code == 400
        assert len(asked) == 4


def test_a_version_is_of_all_the_code_that_answers() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path in pool.CODE_FILES.values()}
    assert {"solver/njit.py", "cluster/table/moves.py", "jobs/web/states.py"} <= found


def test_what_is_remembered_of_answers_is_bounded_and_the_last_ones() -> None:
    cache = AnswerCache(10)
    for name, size in (("a", 4), ("b", 4), ("a", 5), ("c", 5)):
        cache.keep(name, Response(b"x" * size))
    assert cache.bytes == 10 and cache.get("b") is None
    assert cache.get("a") is not None
    cache.keep("d", Response(b"x"))
    assert cache.get("c") is None and cache.get("a") is not None and cache.bytes == 6
    cache.keep("large", Response(b"x" * 11))
    assert cache.bytes == 0 and cache.get("large") is None


def test_a_version_is_looked_up_once_for_all_that_the_loop_takes_up_together() -> None:
    class Pool:
        looked = 0

        def known(self, id: str) -> str:
            return id

        def version(self, entry: str) -> str:
            self.looked += 1
            return f"{entry}{self.looked}"

    explorer = server.Explorer(Pool())  # type: ignore[arg-type]

    async def asked() -> list[str | None]:
        together = await asyncio.gather(*map(explorer.version, "aaba"))
        return [*together, await explorer.version("a")]

    assert asyncio.run(asked()) == ["a1", "a1", "b2", "a1", "a3"]


def test_a_table_that_grows_answers_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To who has an answer, and to who names the version before."""
    monkeypatch.setattr(pool, "LIST_SECONDS", 0.0)
    board = BOARDS / "press-your-luck/tiny.toml"
    luckbase.solve(luckbase.load_board(board, frontier=1), results=tmp_path)
    with asking(tmp_path) as client:
        id = id_of(client, "press-your-luck")
        at = f"/api/tables/{id}/state?{STATE}"
        client.get(at)
        version = version_of(client, id)
        before = client.get(f"{at}&version={version}")
        assert "immutable" in before.headers["cache-control"]
        luckbase.solve(luckbase.load_board(board, frontier=2), results=tmp_path)
        had = {"if-none-match": before.headers["etag"]}
        after = client.get(f"{at}&version={version}", headers=had)
        assert after.headers["cache-control"] == "no-cache" and after.status_code == 200
        assert (before.json()["source"], after.json()["source"]) == ("search", "table")
        assert version_of(client, id) != version


def test_a_table_whose_board_changes_says_so_in_the_next_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "LIST_SECONDS", 0.0)
    board = tmp_path / "mine.toml"
    board.write_text('game = "pig"\n[rules]\ngoal = 10\n')
    luckbase.solve(board, results=tmp_path / "results")
    with asking(tmp_path / "results") as client:
        at = f"/api/tables/{id_of(client, 'pig')}/state?mine=1&yours=1"
        before = [client.get(at) for _ in range(2)][-1]
        assert before.json()["stale"] == []
        board.write_text('game = "pig"\n[rules]\ngoal = 12\n')
        os.utime(board, ns=(1, 1))
        after = client.get(at, headers={"if-none-match": before.headers["etag"]})
        assert "goal" in after.json()["stale"][0]


@pytest.mark.parametrize("game", ["press-your-luck", "pig"])
def test_a_drawing_is_its_backdrop_and_what_is_the_states_own(
    game: str, client: TestClient
) -> None:
    at = f"/api/tables/{id_of(client, game)}"
    whole, own = (
        client.get(f"{at}/state?random=1&drawing={how}").json()["drawing"] for how in ("1", "state")
    )
    backdrop = client.get(at).json()["backdrop"]
    assert own.replace("</desc>", f"</desc>{backdrop}") == whole
    assert (len(own) < len(whole)) == (game == "press-your-luck")
