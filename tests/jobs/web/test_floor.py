"""The floor of the server's speed, on two cores without other work: run it with -m slow -n0."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.jobs.web.serving import started

FLOOR = 200
"""Answers of one state a second."""
CLIENTS, SECONDS = 4, 5.0
BUSY = 1.5
"""A machine with a greater load measures its other work."""


def count_answers(address, path, seconds):
    """Ask for a path on one connection, and return the number of good answers."""
    connection, count = HTTPConnection(urlsplit(address).netloc, timeout=60), 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        connection.request("GET", path)
        reply = connection.getresponse()
        assert reply.read() and reply.status == 200
        count += 1
    connection.close()
    return count


@pytest.mark.slow
def test_the_server_gives_200_answers_of_one_state_a_second(tables):
    if os.getloadavg()[0] > BUSY:
        pytest.skip(f"the load is {os.getloadavg()[0]:.1f}; expected at most {BUSY}")
    table = tables["press-your-luck"]
    path = f"/tables/{'~'.join(table.parts[-3:])}/state?scores=500,1000,500&earned=0,2,0"
    with started(table) as address, ThreadPoolExecutor(CLIENTS) as clients:
        count_answers(address, path, 1.0)  # loads the compiled code
        begun = time.perf_counter()
        counts = clients.map(
            count_answers, *zip(*[(address, path, SECONDS)] * CLIENTS, strict=True)
        )
        rate = sum(counts) / (time.perf_counter() - begun)
    print(f"{rate:.0f} answers a second")
    assert rate >= FLOOR
