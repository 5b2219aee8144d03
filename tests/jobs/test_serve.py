"""``luckbase serve`` as a command: where it listens, what it refuses, how it ends."""

import asyncio
import json
import re
import signal
import socket
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

import luckbase
from luckbase.cluster.store.storage import place_of
from luckbase.jobs.app import run
from luckbase.jobs.serve import address_of, hosts_of, pool_of
from luckbase.jobs.web.server import LOCAL
from tests.jobs.web import serving
from tests.places import BOARDS


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
