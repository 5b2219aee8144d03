"""The bench suite ``web``: what a server of one table answers in a second.

The server is ``luckbase serve`` on one core, and this process asks it, on another. The processor
time of either a request is what the system says that it used. States are drawn evenly from the
whole table, each asked about once, so no answer is remembered but where it says so. Many
connections at once ask as the page does: first a server of one process, then one with a process a
core, which share the cores with who asks.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luckbase.cluster.table.storage import forget
from luckbase.jobs import terminal
from luckbase.solver import sentences

WARM, ASKED = 6_000, 2_000
"""Requests before the clock runs, and while it does."""
ROWS = 100_000
"""States of a batch."""
SETTINGS = {"score_unit": 500, "frontier": 2}
CONNECTIONS, MANY, CROWD = 16, 5_000, 256
"""Connections that ask at once, what they ask together, and more connections than are answered."""


@dataclass
class Server:
    """A running server of one table, and its id there."""

    process: subprocess.Popen[str]
    host: str
    port: int
    id: str = ""

    def __post_init__(self) -> None:
        self.line = http.client.HTTPConnection(self.host, self.port)

    def get(self, path: str, **headers: str) -> bytes:
        """The body of an answer."""
        self.line.request("GET", path, headers=headers)
        return self._answer()

    def post(self, path: str, body: bytes, kind: str) -> bytes:
        """The body of the answer to a body."""
        self.line.request("POST", path, body, {"content-type": kind})
        return self._answer()

    def _answer(self) -> bytes:
        reply = self.line.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"the server says {reply.status}: {body[:300]!r}")
        return body

    def seconds(self) -> float:
        """Processor seconds that it and the processes that it has started have used."""
        pid, ticks = self.process.pid, 0
        others = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *others):
            words = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(words[11]) + int(words[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """The most bytes that it has had in memory."""
        said = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+([0-9]+) kB", said)
        return int(found[1]) << 10 if found else 0


@contextmanager
def serving(table: Path, processes: int = 1) -> Iterator[Server]:
    """A server of one table, on a free port, which ends afterwards."""
    command = [sys.executable, "-m", "luckbase", "serve", str(table), "--no-open", "--port", "0",
               "--processes", str(processes)]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    all_cores = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set[int]()
    if processes == 1 and len(all_cores) > 1:
        os.sched_setaffinity(process.pid, {max(all_cores)})
        os.sched_setaffinity(0, all_cores - {max(all_cores)})
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://([^:/]+):([0-9]+)/", said)
        if found is None:
            raise RuntimeError(f"the server did not begin: {said}{process.stderr.read()}")
        yield Server(process, found[1], int(found[2]))
    finally:
        process.terminate()
        process.wait(20)
        if all_cores:
            os.sched_setaffinity(0, all_cores)


def web_suite(board: Path, results: Path) -> None:
    """Print the tables."""
    import numpy as np

    from luckbase import cluster, solver
    from luckbase.cluster.table.moves import address

    solved = cluster.solve(solver.load_board(board, **SETTINGS), results=results)
    table = Path(solved.table)
    with cluster.open_table(table) as opened:
        drawn = np.concatenate(list(opened.draw(ROWS, 0)))
        drawn = drawn[np.random.default_rng(0).permutation(len(drawn))]
        states = [opened.game.describe(state) for state in drawn]
    queries = [address(state) for state in states]
    cold = statistics.median(_cold(table, query) for query in queries[-5:])
    with serving(table) as server:
        server.id = json.loads(server.get("/api/tables"))["tables"][0]["id"]
        rows: list[tuple[str, ...]] = _requests(server, queries)
        rows += [("first answer of a new process, table not open", f"{cold * 1e3:.0f} ms", "", "")]
        title = f"One process on one core, a table of {sentences.count(solved.ledger.rows)} states"
        heads = ("random states of the whole table", "server, a request", "a second", "an answer")
        terminal.print_table(title, heads, rows, sys.stdout)
        heads = ("a batch", "server, a state", "states/s", "with best")
        terminal.print_table("Many at once", heads, _batches(server, states), sys.stdout)
        print(f"the most memory of the server: {sentences.size(server.memory())}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    for processes in dict.fromkeys((1, cores)):
        with serving(table, processes) as server:
            title = (
                f"As the page asks, compressed, {sentences.many(processes, 'process', 'processes')}"
            )
            heads = ("", "server, a request", "who asks", "a second", "half within, 99 of 100", "")
            terminal.print_table(title, heads, _many_at_once(server, queries), sys.stdout)


def _many_at_once(server: Server, queries: list[str]) -> list[tuple[str, ...]]:
    """A row for each way of asking by many connections at once."""
    info = json.loads(server.get("/api/tables"))["tables"][0]
    asked = [f"/api/tables/{info['id']}/state?{query}&drawing=state" for query in queries]
    _at_once(server, asked[:WARM], CONNECTIONS)
    some = asked[WARM : WARM + MANY]
    return [
        _at_once(server, some, CONNECTIONS, f"{CONNECTIONS} connections, each state once"),
        _at_once(server, some[-ASKED:], CONNECTIONS, "the last of them again, remembered"),
        _at_once(server, asked[-MANY:], CROWD, f"{CROWD} connections"),
    ]


def _at_once(server: Server, paths: list[str], connections: int, name: str = "") -> tuple[str, ...]:
    """A row of what so many connections, each with one request after the other, get."""
    times, status, rest = list[float](), Counter[int](), iter(paths)

    async def ask() -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        for path in rest:
            began = time.perf_counter()
            head = f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\nAccept-Encoding: gzip\r\n\r\n"
            writer.write(head.encode())
            said = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.findall(rb"content-length: (\d+)", said)[0]))
            times.append(time.perf_counter() - began)
            status[int(said[9:12])] += 1
        writer.close()

    async def all_of_them() -> None:
        await asyncio.gather(*(ask() for _ in range(connections)))

    before, mine, began = server.seconds(), time.process_time(), time.perf_counter()
    asyncio.run(all_of_them())
    took, spent = time.perf_counter() - began, server.seconds() - before
    mine = time.process_time() - mine
    counts = ", ".join(f"{sentences.count(n)} of {code}" for code, n in sorted(status.items()))
    half, most = (statistics.quantiles(times, n=100)[k] * 1e3 for k in (49, 98))
    return (
        name, *(f"{seconds / len(paths) * 1e3:.2f} ms" for seconds in (spent, mine)),
        f"{len(paths) / took:,.0f}", f"{half:.0f} ms, {most:.0f} ms", counts,
    )  # fmt: skip


def _cold(table: Path, query: str) -> float:
    """Seconds from the request to the whole answer of a server that has answered nothing of this
    table before, some seconds after its start."""
    with serving(table) as server:
        id = json.loads(server.get("/api/tables"))["tables"][0]["id"]
        time.sleep(3)
        for path in filter(Path.is_file, table.rglob("*")):
            forget(path)
        began = time.perf_counter()
        server.get(f"/api/tables/{id}/state?{query}")
        return time.perf_counter() - began


def _requests(server: Server, queries: list[str]) -> list[tuple[str, ...]]:
    """A row for each kind of request."""
    at = f"/api/tables/{server.id}/state?"
    for query in queries[:WARM]:
        server.get(f"{at}{query}&drawing=0")
    asked = queries[WARM : WARM + ASKED]
    kinds: tuple[tuple[str, Callable[[str], bytes]], ...] = (
        ("every action and outcome", lambda q: server.get(f"{at}{q}&drawing=0")),
        ("the same with the drawing", lambda q: server.get(f"{at}{q}")),
        ("the same, compressed", lambda q: server.get(f"{at}{q}", **{"accept-encoding": "gzip"})),
    )
    rows: list[tuple[str, ...]] = []
    for name, get in kinds:
        before, sizes, times = server.seconds(), [], []
        for query in asked:
            began = time.perf_counter()
            sizes.append(len(get(query)))
            times.append(time.perf_counter() - began)
        spent = (server.seconds() - before) / len(asked)
        slow = statistics.quantiles(times, n=100)[98]
        rows.append(
            (
                name, f"{spent * 1e3:.2f} ms", f"{1 / spent:.0f}",
                f"{statistics.mean(sizes) / 1e3:.1f} kB, {statistics.median(times) * 1e3:.1f} ms "
                f"(99 of 100: {slow * 1e3:.1f} ms)",
            )
        )  # fmt: skip
    return rows


def _batches(server: Server, states: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    at, parquet = f"/api/tables/{server.id}/batch", io.BytesIO()
    pq.write_table(pa.table({name: [s[name] for s in states] for name in states[0]}), parquet)
    lines = "".join(json.dumps(state) + "\n" for state in states).encode()
    rows: list[tuple[str, ...]] = []
    for name, body, kind in (
        ("JSON lines", lines, "application/x-ndjson"),
        ("Parquet", parquet.getvalue(), "application/vnd.apache.parquet"),
    ):
        spent, seconds = [], []
        for best in ("", "?best=1"):
            before, began = server.seconds(), time.perf_counter()
            server.post(at + best, body, kind)
            seconds.append(time.perf_counter() - began)
            spent.append((server.seconds() - before) / len(states))
        rows.append(
            (f"{name}, {len(states):,} states", f"{spent[0] * 1e6:.0f} µs, {spent[1] * 1e6:.0f} µs",
             f"{len(states) / seconds[0]:,.0f}", f"{len(states) / seconds[1]:,.0f}")
        )  # fmt: skip
    return rows
