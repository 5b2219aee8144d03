"""Sleepers in place of workers: to the driver it is the same search."""

from __future__ import annotations

from pathlib import Path

import pytest

from luckbase import cluster, solver
from luckbase.cluster.table.entries import read_ledger
from luckbase.cluster.table.storage import Folder
from tests.bench.asleep import receipts, sleeping
from tests.cluster.search.searches import cut_small
from tests.places import BOARDS


def test_a_search_asleep_is_the_same_to_its_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_small(monkeypatch, 300)
    board = solver.load_board(BOARDS / "press-your-luck/tiny.toml")
    root = solver.load_game(board).parse({"scores": "0,0,0", "earned": "2,1,1"}).reshape(1, -1)
    with receipts() as said:
        made = cluster.solve_below(board, root, results=tmp_path, one_piece=0, workers=2)
    short = {name: one._replace(solve=0.002, write=0.001) for name, one in said.items()}
    with sleeping(short, 9) as taken:
        again = cluster.solve_below(
            board, root, results=tmp_path / "again", one_piece=0, workers=9, memory=1 << 50
        )
    assert (again.shards, again.states, again.edges) == (made.shards, made.states, made.edges)
    found, asleep = (read_ledger(Folder(t), t).files for t in (made.table, again.table))
    assert asleep == {name: asleep[name] for name in found} and len(found) > 4
    assert all(one.checks == found[name].checks for name, one in asleep.items())
    used, busy = taken[0]
    assert not list(again.table.glob("search/*")) and 0 < used < 5 and 0 < busy < again.seconds
