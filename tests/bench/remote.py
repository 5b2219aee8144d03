"""The bench suite ``remote``: a table in a real store, 30 ms away; and 10,000 files there."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests.proxy import Proxy
from tests.stores import BUCKET, Seaweed

AWAY = 0.03
"""Seconds that each answer of the store takes at least."""
SETTINGS = {"score_unit": 500, "frontier": 2}
STATES, FILES, QUESTIONS = 1000, 10_000, 10


def remote_suite(board: Path, results: Path) -> None:
    """Print both tables. The proxy between is a program in Python: what goes through it in a second
    is no store's."""
    with tempfile.TemporaryDirectory() as folder:
        server = Seaweed(Path(folder))
        server.start(again=3)
        proxy = Proxy(server.endpoint, AWAY)
        os.environ.update(server.environment)
        try:
            _questions(board, results, proxy)
            _many_files(proxy)
        finally:
            proxy.close()
            server.kill()


def _questions(board: Path, results: Path, proxy: Proxy) -> None:
    import numpy as np

    import luckbase
    from luckbase.cluster.table.find import open_table

    solved = luckbase.solve(luckbase.load_board(board, **SETTINGS), results=results)
    with open_table(solved.table) as local:
        uri, started = f"s3://{BUCKET}/{secrets.token_hex(4)}", time.perf_counter()
        local.publish(uri)
        published = time.perf_counter() - started
        states = np.concatenate(list(local.draw(STATES, 1)))
        asked = [local.game.describe(state) for state in states[:: STATES // QUESTIONS]]
        local.ask(asked[0])  # compiled, loaded
        os.environ["AWS_ENDPOINT_URL"] = proxy.endpoint
        rows = []

        def say(what: str, work: Callable[[], object], of: int = 1) -> None:
            proxy.requests.clear()
            started = time.perf_counter()
            work()
            seconds = (time.perf_counter() - started) / of
            size = sum(size for *_, size in proxy.requests)
            requests = f"{len(proxy.requests) / of:.1f}"
            rows.append((what, requests, sentences.size(round(size / of)), f"{seconds:.3f} s"))

        def each(ask: Callable[[Any, Any], object]) -> Callable[[], None]:
            def work() -> None:
                for state in asked:
                    with open_table(uri) as found:
                        ask(found, state)

            return work

        say("opened, and one state", each(lambda found, state: found.ask(state)), len(asked))
        say(
            "the same with the sentences of why",
            each(lambda f, s: (f.ask(s), f.why(s))),
            len(asked),
        )
        state = [f"{name}={','.join(map(str, value))}" for name, value in asked[0].items()]
        command = [sys.executable, "-m", "luckbase", "query", uri, *state, "--json"]
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

        def fresh() -> None:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=kept)

        fresh()  # Python keeps what it compiled
        say(
            "a fresh process, Python's start included",
            lambda: [fresh() for _ in range(QUESTIONS)],
            QUESTIONS,
        )
        with open_table(uri) as found:
            say(f"{STATES:,} random states at once", lambda: found.lookup(states))
            say("once more", lambda: found.lookup(states))
            say("the same in the folder, from its memory", lambda: local.lookup(states))
            say(f"every action of {STATES:,}", lambda: found.every_action(states))
    heads = ("a question", "requests", "bytes", "time")
    size = f"{local.ledger.rows:,} states, {sentences.size(local.ledger.bytes)}"
    title = f"{size}, {AWAY * 1e3:.0f} ms a request"
    terminal.print_table(f"{title}; published in {published:.0f} s", heads, rows, sys.stdout)


def _many_files(proxy: Proxy) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from dataclasses import replace

    from luckbase import solver
    from luckbase.cluster.table.entries import HEAD, begin, compact, read_ledger, write_head
    from luckbase.cluster.table.index import write_index
    from luckbase.cluster.table.ledger import Ledger, new_head
    from luckbase.cluster.table.storage import place_of, storage_at
    from tests.bench.ledger import _entry
    from tests.places import BOARDS

    where = place_of(f"s3://{BUCKET}/{secrets.token_hex(4)}")
    storage = storage_at(where)
    head = new_head(solver.load_game(solver.load_board(BOARDS / "press-your-luck/tiny.toml")))
    ledger = Ledger(head)
    for entry in map(_entry, range(FILES)):
        ledger.add(entry)
    proxy.seconds = 0.0
    with ThreadPoolExecutor(16) as pool:
        list(
            pool.map(lambda name: storage.put(name, bytes(ledger.files[name].bytes)), ledger.files)
        )
    proxy.seconds = AWAY
    write_head(storage, head)
    compact(replace(ledger, entries=begin(storage, where, head, "bench").entries))
    rows = []

    def say(what: str, work: Callable[[], object]) -> None:
        proxy.requests.clear()
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
        rows.append((what, f"{len(proxy.requests):,}", f"{seconds:.2f} s"))

    say("listed, with sizes", lambda: storage.list("tiers/"))
    say("its ledger opened", lambda: read_ledger(storage, where))
    say(
        "its index written, with every footer read",
        lambda: write_index(storage, storage.read(HEAD), ledger),
    )
    say("opened by its index", lambda: read_ledger(storage, where))
    title = f"{FILES:,} files in a store, {AWAY * 1e3:.0f} ms a request"
    terminal.print_table(title, ("", "requests", "time"), rows, sys.stdout)
