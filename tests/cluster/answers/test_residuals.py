"""Residuals: a table is held to the errors that its own files promise, and the worst that is said
is the worst."""

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.answers import verify
from luckbase.cluster.answers.parts import drawn_rows
from luckbase.cluster.answers.verify import check_residuals
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import run
from luckbase.solver import sentences
from luckbase.solver.search.bellman import most_residual
from tests import solving
from tests.places import BOARDS
from tests.shared import rewrite, write_rows

PLAY = {"scores": "0,1000,500", "earned": "0,1,1"}


CASES = {
    "race": ("pig/race", {"goal": 10}, None),
    "piglet": ("pig/piglet", {"goal": 6}, None),
    "rounds": ("pig/rounds", {"rounds": 2, "cut": 20}, None),
    "skunk": ("skunk/tiny", {"goal": 10}, None),
    "jackpot": ("jackpot/tiny", {}, None),
    "shut the box": ("jackpot/shut-the-box-sum", {"tiles": 6}, None),
    "points": ("goofspiel/points", {"cards": 4}, None),
    "win": ("goofspiel/win", {"cards": 3}, None),
    "float32": ("press-your-luck/tiny", {"frontier": 1, "score_cap": 1000}, PLAY),
    "float64": (
        "press-your-luck/tiny", {"frontier": 1, "score_cap": 1000, "payoffs": "float64"}, PLAY
    ),
}  # fmt: skip
"""A small board of every game; where play begins, if the game does not say."""
WAYS = ("dense", "in one piece", "by stages")
KINDS = [(case, WAYS[i % 3]) for i, case in enumerate(CASES)]
KINDS += [("skunk", "by stages"), ("points", "in one piece"), ("float32", "dense")]
"""Each board one way, and each way for several games; two games have no full table."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sound")


@pytest.fixture(params=KINDS, ids=" ".join)
def sound(request, folder):
    """A table of a small board, solved one way or the other. Not to be changed."""
    case, how = request.param
    name, settings, start = CASES[case]
    board, results = solving.load_board(BOARDS / f"{name}.toml", **settings), folder / case / how
    found = list(results.glob("*/*/*"))
    if found:
        return found[0]
    if how == "dense":
        return solving.solve_board(board, results=results, workers=1).table
    roots = None if start is None else solving.load_game(board).parse(start)[None]
    small = 0 if how == "by stages" else 1 << 20
    return solving.solve_below(board, roots, results=results, workers=1, one_piece=small).table


def promised(table, entry):
    """What a file's payoffs are good to, as steps of the rules show it: without the leads that pig
    by rounds cuts off, by its rules too, and no better than a step's sums in float64."""
    game = table.game
    largest = max(map(abs, game.payoff_range))
    return max(entry.error - game.cut_error, (game.max_edges + 2) * 2.0**-53 * largest)


def disturbed(sound, shares, to):
    """The table with the payoffs of player 1 in each file off by shares (rows,) of what the file
    promises, in files as luckbase writes them."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(sound, to)
    with solving.open_table(sound) as table:
        manifest = table.manifest
        for name, old in manifest.files.items():
            rows = pq.ParquetFile(to / old.place).read()
            at, kind = rows.column_names.index("payoff_1"), rows.column("payoff_1").type
            payoffs = rows.column(at).to_numpy() + shares(len(rows)) * promised(table, old)
            rows = rows.set_column(at, "payoff_1", pa.array(payoffs).cast(kind, safe=False))
            manifest.files[name] = write_rows(to, old, rows)
    rewrite(to, manifest)
    return to


def verdict(path):
    with solving.open_table(path) as table:
        return table.verify(None)


def one(number, share):
    """In each file row `number`, modulo the rows that there are, by that share."""
    return lambda rows: np.where(np.arange(rows) == number % rows, share, 0.0)


def test_a_table_off_by_a_tenth_of_its_error_passes(sound, tmp_path):
    rng = np.random.default_rng(0)
    for shares in (
        lambda rows: np.full(rows, 0.1), one(-1, -0.1), lambda rows: rng.choice([-0.1, 0.1], rows)
    ):  # fmt: skip
        found = verdict(disturbed(sound, shares, tmp_path / "t"))
        assert found.ok, found.faults


def test_of_tied_actions_the_other_ones_payoff_passes():
    """Pig by rounds has that of the better one, and names the first of two that are tied."""
    board = luckbase.load_board(BOARDS / "pig/rounds.toml", rounds=2, cut=560)
    with luckbase.open(board, in_memory=True) as table:
        assert check_residuals(table, 20_000).faults == 0


def test_a_table_whose_payoffs_are_all_off_by_ten_errors_is_refused(sound, tmp_path):
    """Far from the end one step of the rules shows nothing of it."""
    found = verdict(disturbed(sound, lambda rows: np.full(rows, -10.0), tmp_path / "t"))
    assert found.residuals is not None and found.residuals.faults
    assert f"allowed {found.residuals.bound:.2e}" in found.faults[0]
    assert found.faults[0].endswith(f"is {sentences.fields(found.residuals.state)}")


@pytest.mark.parametrize(("number", "share"), [(-1, -10.0), (12345, 10.0)])
def test_a_table_of_which_one_row_is_off_by_ten_errors_is_refused(sound, number, share, tmp_path):
    assert not verdict(disturbed(sound, one(number, share), tmp_path / "t")).ok


def test_each_row_is_held_to_the_error_of_its_own_file(tmp_path):
    """The layers of Goofspiel have errors of their own, and so have the files of a search."""
    board = solving.load_board(BOARDS / "goofspiel/points.toml", cards=4)
    dense = solving.solve_board(board, results=tmp_path / "dense", workers=1)
    searched = solving.solve_below(board, results=tmp_path / "below", workers=1, one_piece=0)
    manifest = read_manifest(Folder(searched.table), searched.table)
    largest = max(manifest.files.values(), key=lambda entry: entry.rows)
    manifest.files[largest.name] = replace(largest, error=1e-9)
    rewrite(searched.table, manifest)
    low = min(entry.error for entry in manifest.files.values())
    assert 1e-12 <= low < 1.1e-12
    for path, least, most in ((dense.table, 0.0, 3e-11), (searched.table, low, 1e-9)):
        with solving.open_table(path) as table:
            (part,) = table.parts
            for states in part.draw(part.rows, 0):
                found = most_residual(table.game, part.errors_of(states))
                assert found.min() >= 2 * least and found.max() <= 2 * most
            errors = sorted(entry.error for entry in part.entries)
            assert (errors[0], errors[-1]) == (least, most)
        for tenfold in (0, -1):

            def shares(rows, at=tenfold):
                return one(at, 10.0)(rows)

            assert not verdict(disturbed(path, shares, tmp_path / "t")).ok


def test_the_worst_residual_said_is_the_worst_of_all_pieces_and_its_state(tmp_path, monkeypatch):
    board = solving.load_board(BOARDS / "goofspiel/points.toml", cards=4)
    solved = solving.solve_below(board, results=tmp_path, workers=1, one_piece=0)
    rng = np.random.default_rng(1)
    monkeypatch.setattr(verify, "states_at_once", lambda game: 30)
    off = disturbed(solved.table, lambda rows: rng.uniform(-5, 5, rows), tmp_path / "t")
    with solving.open_table(off) as table:
        (part,) = table.parts
        found, states = check_residuals(table, None), np.concatenate([*part.draw(part.rows, 0)])
        residuals = part.residuals(states)
        allowed = most_residual(table.game, part.errors_of(states))
        worst = np.argmax(residuals / allowed)
        assert (found.worst, found.bound) == (residuals[worst], allowed[worst])
        assert found.state == table.game.describe(states[worst])
        assert found.rows == len(states) and found.mean == pytest.approx(residuals.mean())
        wrong = states[residuals > allowed]
        assert found.faults == len(wrong) > 0
        assert found.files == tuple(sorted({part.entries[i].place for i in part.files_of(wrong)}))


@given(st.integers(0, 60), st.integers(0, 90), st.integers(0, 5))
def test_a_sample_draws_no_row_twice(total, count, seed):
    rows = drawn_rows(total, count, seed)
    assert len(rows) == len(set(rows.tolist())) == min(total, count)
    assert list(rows) == sorted(rows) and all(0 <= row < total for row in rows)


def test_a_sample_is_drawn_evenly():
    """Of few and of most rows; 4 standard deviations."""
    for count in (3, 9):
        often = np.zeros(12)
        for seed in range(4000):
            often[drawn_rows(12, count, seed)] += 1
        share = count / 12
        assert np.abs(often - 4000 * share).max() < 4 * (4000 * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("board", ["pig", "skunk"])
def test_a_sample_as_large_as_the_table_checks_every_row_once(board, table_of, capsys):
    path = table_of(BOARDS / board / "tiny.toml")
    with solving.open_table(path) as table:
        every, rows = check_residuals(table, None), table.rows
        for sample in (rows, 10 * rows):
            assert check_residuals(table, sample) == every
        assert check_residuals(table, rows - 1).rows == rows - 1
    assert run(["verify", str(path), "--sample", "1000000"]) == 0
    assert f"{rows:,} rows agree with the rules" in capsys.readouterr().out
