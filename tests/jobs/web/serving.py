"""Tables that the tests of the server ask, and a client that asks them without a network."""

import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, redirect_stdout
from functools import partial

import uvicorn
from starlette.testclient import TestClient

from luckbase.cluster.answers.find import tables_below
from luckbase.jobs.app import run
from luckbase.jobs.serve import config_of
from luckbase.jobs.web.pool import TablePool
from luckbase.jobs.web.server import make_app
from luckbase.solver.game.fields import typed
from tests.places import ROOT

GAMES = ("press-your-luck", "goofspiel", "skunk", "pig", "jackpot")
PAGE = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
"""What a browser sends."""


@contextmanager
def asking(*folders, open_tables=4):
    """A client of a server of the tables under these folders; `pool`: its tables."""
    pool = TablePool([partial(tables_below, folder) for folder in folders], open_tables)
    with TestClient(make_app(pool), base_url="http://127.0.0.1") as client:
        client.pool = pool
        yield client
    pool.forget()


def id_of(client, game):
    """The id of the one table of a game."""
    (result,) = [t["id"] for t in client.get("/tables").json()["tables"] if t["game"] == game]
    return str(result)


def state_of(client, id, **query):
    """A good answer to a state."""
    reply = client.get(f"/tables/{id}/state", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def drawn(client, id, seed):
    """The fields of a state that a seed draws from the rows of a table."""
    with client.pool.open(id) as opened:
        states = next(opened.table.draw(20, seed))
        return typed(opened.table.game.describe(states[seed % len(states)]))


@contextmanager
def served(*words):
    """A server in a process of its own, and what it said first."""
    process = subprocess.Popen(
        [sys.executable, "-m", "luckbase", "serve", *words, "--no-open", "--port", "0"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process, process.stderr.readline()
    finally:
        process.kill()
        process.wait()


@contextmanager
def listening(*folders):
    """The address of a real server, in a thread."""
    app = make_app(TablePool([partial(tables_below, folder) for folder in folders]))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(config_of(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


def queried(table, state):
    """What ``luckbase query --json`` says of a state."""
    out = io.StringIO()
    with redirect_stdout(out):
        words = [f"{name}={value}" for name, value in state.items()]
        assert run(["query", str(table), *words, "--json"]) == 0
    return json.loads(out.getvalue())
