"""The bench suite ``probe``: how fast a table of 42.9 million states answers.

Lookups of payoffs (``peers`` has DuckDB beside), then every action of random states: one at a time,
in a batch, as JSON, and of rows of an export. States are drawn evenly from all of it, in any order.
"""

import json
import sys
import time

import numpy as np
import pyarrow as pa

from luckbase.jobs import terminal
from luckbase.solver import sentences
from luckbase.solver.game.capabilities import FullTable
from tests import solving
from tests.bench.timing import best_of

SINGLE, MANY, LOOKUPS, ROWS = 2_000, 20_000, 1_000_000, 1_500_000


def probe_suite(board, results):
    """Print both tables."""
    read = solving.load_board(board, score_unit=500, frontier=2)
    solved = solving.solve_board(read, results=results)
    title = f"of a table of {sentences.count(solved.manifest.rows)} states"
    with solving.open_table(solved.table) as table:
        rows = [(text, f"{seconds * 1e3:,.2f} ms") for text, seconds in _lookups(table)]
        terminal.print_table(f"Payoffs {title}", ("", "time"), rows, sys.stdout)
        rows = [(text, f"{1 / seconds:,.0f}") for text, seconds in _answers(table)]
        terminal.print_table(f"Every action {title}", ("", "states/s"), rows, sys.stdout)


def _random_states(table, count):
    states = np.concatenate(list(table.draw(count, 0)))
    return states[np.random.default_rng(0).permutation(len(states))]


def _lookups(table):
    states = _random_states(table, LOOKUPS)
    ordered = states[np.lexsort(table.game.need(FullTable).locate(states)[::-1])]

    def each():
        for state in states[:200]:
            table.probe(state[None])

    yield "one state, its row group not yet decoded", best_of(1, each) / 200
    yield "one state, warm", best_of(3, each) / 200
    yield "a million states, sorted by key", best_of(2, lambda: table.probe(ordered))
    yield "a million states, in any order", best_of(2, lambda: table.probe(states))


def _answers(table):
    states = _random_states(table, MANY)
    batch = pa.table(table.game.state_columns(states))
    words = [table.game.describe(state) for state in states[:SINGLE]]

    def single():
        for one in words:
            table.ask(one)

    def fresh(work, count, clock=time.perf_counter):
        table.parts[0].groups.close()
        return best_of(1, work, clock) / count

    table.ask(words[0])
    yield "single states, row groups not decoded", fresh(single, SINGLE, time.process_time)
    yield "single states again", best_of(2, single, time.process_time) / SINGLE
    work = lambda: table.values(batch, actions=True)  # noqa: E731
    yield f"a batch of {MANY:,}, row groups not decoded", fresh(work, MANY)
    yield "the same batch again", best_of(3, work) / MANY
    lines = best_of(2, lambda: [json.dumps(each.as_json()) for each in table.ask_all(batch)])
    yield "the same batch as JSON lines", lines / MANY
    yield "rows of an export, every action", _streamed(table.to_arrow(actions=True))
    yield "rows of an export, only what is stored", _streamed(table.to_arrow())


def _streamed(batches):
    """Seconds a row of the first rows of a stream."""
    began, rows = time.perf_counter(), 0
    for batch in batches:
        rows += len(batch)
        if rows >= ROWS:
            break
    return (time.perf_counter() - began) / rows
