"""Stopped at any addition to the manifest, a solve goes on with the same command: the same bytes,
and no file is written twice. Full tables, decisions, parts of a tier, searches in one piece and by
stages; in a folder and in an object store. `test_power_cut` cuts within each step."""

import hashlib
from functools import partial

import numpy as np
import pytest

from luckbase.cluster.answers.find import tables_in
from luckbase.cluster.store.storage import place_of, storage_at
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver.errors import LuckbaseError
from luckbase.solver.games.goofspiel import full_table as layout
from tests import solving
from tests.cluster.search.searches import WIDE, cut_small, tiny
from tests.e2e.stopped import stopped_after
from tests.places import BOARDS, TINY

MOST = 2
"""Places at which each kind of solve is stopped, drawn from all."""


def full(results):
    return solving.solve_board(solving.load_board(TINY, frontier=1), results=results, workers=1)


def with_decisions(results):
    board = solving.load_board(TINY, frontier=1, decisions=2, max_whammies=1)
    return solving.solve_board(board, results=results, workers=1)


def in_parts(results):
    board = solving.load_board(BOARDS / "goofspiel/points.toml", cards=6)
    return solving.solve_board(board, results=results, workers=1)


def search(results, **how):
    return solving.solve_below(
        tiny().board, tiny().parse(WIDE)[None], results=results, workers=1, **how
    )


SOLVES = {
    "full": full,
    "decisions": with_decisions,
    "parts": in_parts,
    "one piece": search,
    "stages": partial(search, one_piece=0),
}


@pytest.fixture
def small_pieces(monkeypatch):
    """Parts and shards of a few states, which no option makes: there would be one of each."""
    layout.layer_of.cache_clear()
    monkeypatch.setattr(layout, "GAMES_A_PART", 3000)
    cut_small(monkeypatch)
    yield
    layout.layer_of.cache_clear()


def content(table):
    """The rows and the SHA-256 of each file of a table, by name; and the names as they are kept."""
    storage = storage_at(table)
    manifest = read_manifest(storage, table)
    sums = {}
    for name, entry in manifest.files.items():
        digest = hashlib.sha256(storage.read(entry.place)).hexdigest()
        assert digest == entry.sha256
        sums[name] = entry.rows, digest
    return sums, {name: entry.place for name, entry in manifest.files.items()}, manifest.complete


@pytest.mark.parametrize("where", ["folder", "store"])
@pytest.mark.parametrize("kind", SOLVES)
def test_a_solve_stopped_at_any_addition_goes_on_to_the_same_bytes(
    kind, where, tmp_path, small_pieces, request
):
    results = tmp_path if where == "folder" else request.getfixturevalue("bucket")
    solve = SOLVES[kind]
    with stopped_after(-1) as additions:
        expected, _, complete = content(solve(f"{results}/undisturbed").table)
    assert complete and len(additions) >= (2 if kind == "one piece" else 5)
    rng = np.random.default_rng(len(additions))
    for k in rng.permutation(np.arange(1, len(additions) + 1))[:MOST]:
        with stopped_after(k), pytest.raises((KeyboardInterrupt, LuckbaseError)):
            solve(f"{results}/{k}")
        (table,) = tables_in(place_of(f"{results}/{k}"))
        rows, places, _ = content(table)
        solved = solve(f"{results}/{k}")
        now, places_now, complete = content(solved.table)
        assert complete and now == expected, k
        assert places.items() <= places_now.items(), "a file was written twice"
        assert solved.states + sum(n for n, _ in rows.values()) == sum(n for n, _ in now.values())
