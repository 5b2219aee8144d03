"""The bench suite ``probe``: how fast a table answers.

The first table: one state and a million of them, against pyarrow's dataset filter. The second:
every action of random states, one at a time, in a batch, as JSON, and of all rows in an export.
The table has 42.9 million states. States are drawn evenly from all of it, in any order.
"""

import json
import sys
import time

from luckbase.jobs import terminal
from luckbase.solver import sentences
from tests.bench.timing import best_of
from tests.shared import answers_of

PREDICTED = {"cold": 600, "warm": 2_000, "first": 10_000, "again": 110_000, "json": 20_000,
             "export": 170_000, "stored": 3_000_000}  # fmt: skip
"""States a second: of each line of the table."""
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
        peer = _dataset_filter_seconds(table, one[0])
    rows = [
        ("one state, its row group not yet decoded", f"{cold * 1e3:.2f} ms", f"{peer / cold:.0f}"),
        ("one state, warm", f"{warm * 1e3:.2f} ms", f"{peer / warm:.0f}"),
        ("one question with every action, warm", f"{asked * 1e3:.2f} ms", ""),
        ("a million states, sorted by key", f"{in_order:.2f} s", ""),
        ("a million states, in any order", f"{unsorted:.2f} s", ""),
        ("pyarrow's dataset filter, one state", f"{peer * 1e3:.0f} ms", "1"),
    ]
    title = f"Probing a table of {sentences.count(solved.manifest.rows)} states"
    terminal.print_table(title, ("", "time", "x"), rows, sys.stdout)


def _random_states(table, rng, count):
    """States drawn evenly from the whole table, in any order."""
    import numpy as np

    states = np.concatenate(list(table.draw(count, 0)))
    return np.asarray(states[rng.permutation(len(states))])


def _dataset_filter_seconds(table, state):
    """The peer: pyarrow's dataset over the same files, filtered by the state's columns."""
    import pyarrow.dataset as ds

    files = ds.dataset(table.where / "tiers")
    said = table.game.describe(state)
    flat = [x for name in table.game.fields.names for x in said[name]]
    wanted = ds.field("spins") == int(sum(flat[3:9]))
    for name, value in zip(table.game.columns, flat, strict=True):
        wanted &= ds.field(name) == value
    return best_of(2, lambda: files.to_table(filter=wanted))


def _batches(board, results):
    import numpy as np

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
        batch = _batch(columns)
        first = best_of(1, lambda: table.values(batch, actions=True)) / len(states)
        again = best_of(3, lambda: table.values(batch, actions=True)) / len(states)
        lines = best_of(2, lambda: [json.dumps(a.as_json()) for a in table.ask_all(batch)])
        seconds = {
            "cold": ask[0], "warm": min(ask), "first": first, "again": again,
            "json": lines / len(states), "export": _streamed(table.to_arrow(actions=True)),
            "stored": _streamed(table.to_arrow()),
        }  # fmt: skip
    shown = {
        "cold": "one question after the other, row groups not yet decoded (one core)",
        "warm": "the same questions again (one core)",
        "first": f"a batch of {MANY:,}, row groups not yet decoded",
        "again": "the same batch again",
        "json": "the same batch as JSON lines of full answers",
        "export": "rows of an export, every action",
        "stored": "rows of an export, only what is stored",
    }
    rows = [
        (text, f"{PREDICTED[name]:,}", f"{1 / seconds[name]:,.0f}") for name, text in shown.items()
    ]
    title = f"Every action of states of a table of {sentences.count(solved.manifest.rows)}"
    terminal.print_table(title, ("", "predicted, states/s", "states/s"), rows, sys.stdout)


def _batch(columns):
    import pyarrow as pa

    return pa.table(columns)


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
