"""The bench suite ``serve``: what the server of the pages bears, on two cores with its clients.

* answers a second of one state, by four clients that keep their connections;
* the same while 400 connections are idle, and while others have sent 128 MB of headers without an
  end;
* the slowest short answer while 20 questions search: rows of the table, and states above it.
"""

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from luckbase.jobs import terminal
from luckbase.solver import sentences

FLOOR = 200
"""Answers a second, on two cores."""
SECONDS, CLIENTS = 5.0, 4
IDLE, HALF, HEADER = 400, 1_980, 64_700
"""Idle connections, those with a header without an end, and its bytes: 128 MB together."""
SEARCHES = 20
STATE = "scores=0,8000,3000&earned=0,1,0"
ABOVE = "scores=0,{},3000&earned=1,2,1"


def serve_suite(board, results):
    """Print the table."""
    from luckbase import cluster, solver

    solved = cluster.solve_board(
        solver.load_board(board, score_unit=500, frontier=2), results=results
    )
    id, rows = "~".join(solved.table.parts[-3:]), []
    short = f"/tables/{id}/state?{STATE}"
    with serving(solved.table) as (port, process):
        get(port, short)
        rows.append(("one state", *measured(port, short, process)))
        for number, size, said in (
            (IDLE, 0, f"with {IDLE} idle connections"),
            (HALF, HEADER, f"with {sentences.size(HALF * HEADER)} of headers"),
        ):
            with ExitStack() as lines:
                for _ in range(number):
                    hold(port, lines, size)
                rows.append((said, *measured(port, short, process)))
        for name, paths in (
            ("ready searches", [f"/tables/{id}/search/{1 + k % 5}" for k in range(SEARCHES)]),
            ("states above the table",
             [f"/tables/{id}/state?{ABOVE.format(5000 + 500 * k)}" for k in range(SEARCHES)]),
        ):  # fmt: skip
            with ThreadPoolExecutor(SEARCHES) as pool:
                asked = [pool.submit(get, port, path) for path in paths]
                rate, slowest, memory = measured(
                    port, short, process, lambda asked=asked: not all(map(_done, asked))
                )
                longest = max(each.result() for each in asked)
            said = f"while {SEARCHES} {name} run, the longest {longest:.1f} s"
            rows.append((said, rate, slowest, memory))
    heads = ("", "answers a second", "slowest", "memory")
    terminal.print_table(f"A server on two cores; floor {FLOOR}", heads, rows, sys.stdout)


def _done(asked):
    return asked.done()


@contextmanager
def serving(table):
    """The port of a server of a table, and its process."""
    words = [sys.executable, "-m", "luckbase", "serve", str(table), "--port", "0", "--no-open"]
    process = subprocess.Popen([*words, "--json"], stdout=subprocess.PIPE, text=True)
    try:
        address = json.loads(process.stdout.readline())["address"]
        yield int(address.rstrip("/").rpartition(":")[2]), process
    finally:
        process.terminate()
        process.wait(20)


def get(port, path, line=None):
    """Ask, and return the seconds that the answer took; line: a connection that is kept."""
    began, asked = time.monotonic(), line or http.client.HTTPConnection("127.0.0.1", port)
    asked.request("GET", path)
    reply = asked.getresponse()
    reply.read()
    assert reply.status in (200, 404), reply.status
    return time.monotonic() - began


def measured(port, path, process, while_=None):
    """Answers a second, the slowest of them, and the server's memory. while_: until this is false,
    else for some seconds."""
    taken, until = [], time.monotonic() + SECONDS

    def ask():
        line = http.client.HTTPConnection("127.0.0.1", port)
        while while_() if while_ else time.monotonic() < until:
            taken.append(get(port, path, line))

    clients, began = [threading.Thread(target=ask) for _ in range(CLIENTS)], time.monotonic()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    seconds = time.monotonic() - began
    with open(f"/proc/{process.pid}/status") as status:
        (memory,) = [line.split()[1] for line in status if line.startswith("VmRSS")]
    slowest = max(taken, default=0.0)
    return f"{len(taken) / seconds:.0f}", f"{slowest:.2f} s", sentences.size(1024 * int(memory))


def hold(port, lines, size):
    """Open a connection, send a header of so many bytes without its end, and keep it open."""
    line = lines.enter_context(socket.create_connection(("127.0.0.1", port)))
    line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ".ljust(size, b"x") if size else b"")
