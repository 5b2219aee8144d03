"""The bench suite ``probe``: how fast a table answers.

The first table: one state and a million of them (``peers`` has DuckDB beside). The second: every
action of random states, one at a time, in a batch, as JSON, and of all rows in an export.
The table has 42.9 million states. States are drawn evenly from all of it, in any order.
"""

import json
import sys
import time

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests.bench.timing import best_of
from tests.shared import answers_of

ONE_BY_ONE, MANY, ROWS = 2_000, 20_000, 1_500_000


def probe_suite(board, results):
    """Print both tables."""
    _lookups(board, results)
    _batches(board, results)


def _lookups(board, results):
    import numpy as np

    from luckbase.solver.game.capabilities import FullTable
    from tests import solving

    solved = solving.solve_board(
        solving.load_board(board, score_unit=500, frontier=2), results=results
    )
    rng = np.random.default_rng(0)
    with solving.open_table(solved.table) as table:
        states = _random_states(table, rng, 1_000_000)
        ordered = states[np.lexsort(table.game.need(FullTable).locate(states)[::-1])]
        one = states[:200]
        cold = best_of(1, lambda: [table.probe(s[None]) for s in one]) / len(one)
        warm = best_of(3, lambda: [table.probe(s[None]) for s in one]) / len(one)
        asked = best_of(3, lambda: [answers_of(table, s[None]) for s in one[:50]]) / 50
        unsorted = best_of(2, lambda: table.probe(states))
        in_order = best_of(2, lambda: table.probe(ordered))
    rows = [
        ("one state, its row group not yet decoded", f"{cold * 1e3:.2f} ms"),
        ("one state, warm", f"{warm * 1e3:.2f} ms"),
        ("one question with every action, warm", f"{asked * 1e3:.2f} ms"),
        ("a million states, sorted by key", f"{in_order:.2f} s"),
        ("a million states, in any order", f"{unsorted:.2f} s"),
    ]
    title = f"Probing a table of {sentences.count(solved.manifest.rows)} states"
    terminal.print_table(title, ("", "time"), rows, sys.stdout)


def _random_states(table, rng, count):
    """States drawn evenly from the whole table, in any order."""
    import numpy as np

    states = np.concatenate(list(table.draw(count, 0)))
    return np.asarray(states[rng.permutation(len(states))])


def _batches(board, results):
    import numpy as np
    import pyarrow as pa

    from tests import solving

    solved = solving.solve_board(
        solving.load_board(board, score_unit=500, frontier=2), results=results
    )
    rng = np.random.default_rng(0)
    with solving.open_table(solved.table) as table:
        states = np.concatenate(list(table.draw(MANY, 0)))
        states = states[rng.permutation(len(states))]
        columns = table.game.state_columns(states)
        words = [table.game.describe(state) for state in states[:ONE_BY_ONE]]
        table.ask(words[0])
        table.parts[0].groups.close()
        ask = [_cpu(lambda: [table.ask(one) for one in words]) / len(words) for _ in range(2)]
        table.parts[0].groups.close()
        batch = pa.table(columns)
        first = best_of(1, lambda: table.values(batch, actions=True)) / len(states)
        again = best_of(3, lambda: table.values(batch, actions=True)) / len(states)
        lines = best_of(2, lambda: [json.dumps(a.as_json()) for a in table.ask_all(batch)])
        seconds = {
            "one question after the other, row groups not yet decoded (one core)": ask[0],
            "the same questions again (one core)": min(ask),
            f"a batch of {MANY:,}, row groups not yet decoded": first,
            "the same batch again": again,
            "the same batch as JSON lines of full answers": lines / len(states),
            "rows of an export, every action": _streamed(table.to_arrow(actions=True)),
            "rows of an export, only what is stored": _streamed(table.to_arrow()),
        }
    rows = [(text, f"{1 / each:,.0f}") for text, each in seconds.items()]
    title = f"Every action of states of a table of {sentences.count(solved.manifest.rows)}"
    terminal.print_table(title, ("", "states/s"), rows, sys.stdout)


def _cpu(work):
    """Processor seconds."""
    before = time.process_time()
    work()
    return time.process_time() - before


def _streamed(batches):
    """Seconds a row of the first rows of a stream."""
    began, rows = time.perf_counter(), 0
    for batch in batches:
        rows += len(batch)
        if rows >= ROWS:
            break
    return (time.perf_counter() - began) / rows
