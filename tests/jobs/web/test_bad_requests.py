"""Whatever is asked: a sentence, never a mistake of ours, never another file."""

import re
import sys
from collections import deque
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luckbase.solver.compiled import cache_roots
from tests.jobs.web.serving import GAMES, PAGE, asking, id_of, listening

SEEN = deque(maxlen=100_000)
"""Files that were opened since somebody began to look."""
sys.addaudithook(lambda event, given: SEEN.append(str(given[0])) if event == "open" else None)


def refused(reply):
    """The sentence of a refusal."""
    assert reply.status_code in (400, 404, 405, 409), (reply.status_code, reply.text)
    text = reply.json()
    assert set(text) <= {"error", "field"}
    sentence = text["error"]
    assert sentence and "\n" not in sentence and not sentence.endswith("."), sentence
    assert "Traceback" not in sentence and len(sentence) < 600
    return str(sentence)


letters = st.characters(codec=None, exclude_categories=())
"""Lone surrogates too, which are no letters."""
rude = st.text(max_size=30) | st.sampled_from(
    ["..", "../../etc/passwd", "/etc/passwd", "%2e%2e%2f", "\0", "pig~tiny~..", "1" * 400, "-1",
     "1e9", "nan", "inf", "0,0,0,0,0", ",,,", "${HOME}", "<script>", "٣", "true", "9" * 9]
)  # fmt: skip
few = settings(
    max_examples=60, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
VIEWS = ("", "/state", "/grid", "/chart/chart", "/search/1", "/nothing")


@few
@given(id=rude, view=st.sampled_from(VIEWS), name=rude, value=rude)
def test_any_id_and_any_parameter(client, id, view, name, value):
    SEEN.clear()
    refused(client.get(f"/tables/{quote(id, safe='')}{view}", params={name: value}))
    assert [file for file in SEEN if "passwd" in file or file in (id, value)] == []


@few
@given(
    game=st.sampled_from(GAMES),
    view=st.sampled_from(("/state", "/grid", "/chart/hold", "/chart/x")),
    given_=st.dictionaries(
        st.sampled_from(
            ["scores", "earned", "mine", "yours", "turn", "theirs", "deck", "upcard", "open",
             "dice", "scores_1", "x", "y", "colour", "most", "hints"]
        ) | rude,
        rude | st.sampled_from(["mine", "turn", "scores_1", "best", "0", "1,2", "0,500,0"]),
        max_size=5,
    ),
)  # fmt: skip
def test_any_parameters_of_a_table_that_is_there(client, web_results, game, view, given_):
    SEEN.clear()
    reply = client.get(f"/tables/{id_of(client, game)}{view}", params=given_)
    page = client.get(f"/tables/{id_of(client, game)}{view}", params=given_, headers=PAGE)
    assert page.status_code in (200, 400, 404, 409) and page.text.endswith("</html>")
    assert "<script>" not in page.text  # a parameter of that name
    if reply.status_code == 200:
        reply.json()
    else:
        refused(reply)
    compiled = map(str, cache_roots())
    allowed = (str(web_results), sys.prefix, sys.base_prefix, "/proc", "/sys/fs/cgroup", *compiled)
    strange = [file for file in SEEN if not file.startswith(allowed)]
    # What is compiled lies in a folder of its own, and so does the lock of who compiles it in a run
    # of all tests; a board file is looked at again if it changed. Pandas reads a time zone.
    known = r"__pycache__|/boards/|/luckbase-locks-|/web/templates/|/zoneinfo/UTC"
    strange = [file for file in strange if not re.search(known, file) and not file.isdigit()]
    assert [file for file in strange if not file.endswith((".py", ".pyc"))] == []


@few
@given(
    game=st.sampled_from(GAMES),
    asked=st.lists(
        st.tuples(
            st.sampled_from(["seed", "seat", "against", "move", "hints", "mine", "scores"]) | rude,
            rude | st.sampled_from(["1", "2", "roll", "hold", "random", "optimal", "0"]),
        ),
        max_size=5,
    ),
)  # fmt: skip
def test_any_game_that_is_asked_for(client, game, asked):
    reply = client.get(f"/tables/{id_of(client, game)}/play", params=asked)
    if reply.status_code != 200:
        refused(reply)


def test_the_field_that_a_sentence_is_of_is_named(client):
    id = id_of(client, "pig")
    for query, field in (("mine=1&yours=99", "yours"), ("mine=x&yours=0", "mine"), ("a=1", None)):
        assert client.get(f"/tables/{id}/state?{query}").json().get("field") == field


def test_long_words_and_games_do_not_come_back_whole(client, monkeypatch):
    monkeypatch.setattr("luckbase.jobs.web.views.MAX_MOVES", 2)  # no option
    at = f"/tables/{id_of(client, 'pig')}/play"
    for against in ("x" * 390, "x" * 389 + ",", "x," * 190, "x" * 50_000):
        refused(client.get(at, params={"against": against}))
    text = refused(client.get(at, params={"move": ["roll"] * 3}))
    assert text == "move: 3 are too many; expected at most 2"


@pytest.mark.parametrize(
    "host, good",
    [("127.0.0.1:80", True), ("localhost", True), ("[::1]:8714", True), ("evil.example", False),
     ("127.0.0.1.evil.example", False), ("", False)],
)  # fmt: skip
def test_only_a_name_of_this_machine_is_answered(host, good, client):
    reply = client.get("/tables", headers={"host": host})
    assert reply.status_code == (200 if good else 400)
    assert good or reply.text == "Invalid host header"


def test_every_answer_keeps_the_page_to_itself(web_results):
    with listening(web_results) as address:
        each = []
        for path in ("/", "/tables", "/nothing", "/static/live.js"):
            connection = HTTPConnection(urlsplit(address).netloc, timeout=300)
            connection.request("GET", path)
            each.append(connection.getresponse().headers)
            connection.close()
    for headers in each:
        policy = dict(
            each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";")
        )
        assert (policy["default-src"], policy["script-src"]) == ("'none'", "'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_answers_are_compressed_where_that_is_asked(client):
    path = f"/tables/{id_of(client, 'jackpot')}/state"
    plain = client.get(path, headers={"accept-encoding": "identity"})
    zipped = client.get(path, headers={"accept-encoding": "gzip"})
    assert zipped.headers["content-encoding"] == "gzip" and plain.json() == zipped.json()
    assert int(zipped.headers["content-length"]) < len(plain.content) / 2


def test_nothing_can_be_written(client, web_results):
    before = {path: path.stat().st_mtime_ns for path in web_results.rglob("*")}
    id = id_of(client, "pig")
    at = f"/tables/{id}"
    for method in ("PUT", "DELETE", "PATCH", "POST"):
        for path in ("/", "/tables", at, f"{at}/state", f"{at}/play", "/static/live.js"):
            assert client.request(method, path).status_code == 405
    assert client.head(f"{at}/state").status_code == 200
    client.get(f"{at}/play?seed=1&move=roll")
    assert {path: path.stat().st_mtime_ns for path in web_results.rglob("*")} == before


def test_a_mistake_of_ours_is_a_plain_sentence_and_a_line_in_the_log(
    web_results, monkeypatch, caplog
):
    def broken(*given):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("luckbase.jobs.web.views.why", broken)
    with asking(web_results) as client:
        reply = client.get(f"/tables/{id_of(client, 'pig')}/state?mine=0&yours=0")
    assert reply.status_code == 500
    assert "secret" not in reply.text and "an error in luckbase" in reply.json()["error"]
    assert any("/state" in record.getMessage() for record in caplog.records)
    assert any("secret detail" in str(record.exc_info) for record in caplog.records)
