"""A batch that is refused says in which row it is wrong, counted from 1, whatever the game."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from luckbase import solver
from luckbase.jobs.app import run
from luckbase.solver.errors import StateError

BOARDS = Path(__file__).parents[2] / "boards"
TINY = str(BOARDS / "press-your-luck/tiny.toml")

Refused = Callable[..., str]

STATES = {
    "press-your-luck/tiny": ([0, 500, 0] + [0] * 9, [[0, 7, 0] + [0] * 9, [0] * 9 + [0, 5, 0],
                             [0] * 3 + [-1] + [0] * 8, [0] * 9 + [4] * 3]),
    "goofspiel/points": ([3, 3, 3, 0], [[-1, 3, 3, 0], [1, 3, 3, 0], [3, 3, 3, 99], [3, 3, 3, 5]]),
    "goofspiel/win": ([3, 3, 3, 0, 0], [[-1, 3, 3, 0, 0], [3, 3, 3, 0, 999]]),
    "jackpot/seed": ([511, 0, 0], [[-1, 0, 0], [511, 7, 7], [511, 0, 3], [511, 3, 0]]),
    "pig/race": ([0, 0, 0, 1], [[-1, 0, 0, 1], [0, 0, 0, 3], [100, 100, 0, 1]]),
    "pig/rounds": ([0, 0, 0, 1, 1], [[-1, 0, 0, 1, 1], [0, 0, 0, 1, 3], [0, 0, 0, 99, 1]]),
    "skunk/seed": ([0, 0, 0, 1], [[-1, 0, 0, 1], [0, 0, 0, 3], [100, 100, 0, 1]]),
}  # fmt: skip
"""Of each game a state, and what is none, in the numbers of its columns."""


@pytest.mark.parametrize(
    ("board", "wrong"), [(board, wrong) for board, (_, many) in STATES.items() for wrong in many]
)
@pytest.mark.parametrize("row", [1, 3])
def test_the_first_row_that_is_no_state_is_named(board: str, wrong: list[int], row: int) -> None:
    game = solver.load_game(solver.load_board(BOARDS / f"{board}.toml"))
    right = STATES[board][0]
    assert len(game.canonical_states(np.array([right] * 3))) == 3
    rows = [right] * (row - 1) + [wrong, right, wrong]
    with pytest.raises(StateError, match=rf"^row {row}: "):
        game.canonical_states(np.array(rows))


def test_every_board_that_takes_a_batch_is_asked() -> None:
    games = {name.partition("/")[0] for name in STATES}
    assert games == {path.parent.name for path in BOARDS.glob("*/*.toml")}


@pytest.fixture(scope="module")
def results(table_of: Callable[..., Path]) -> Path:
    return table_of(Path(TINY), frontier=1).parents[2]


@pytest.fixture
def refused(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """The sentence with which a batch is refused."""

    def call(path: Path) -> str:
        assert run(["query", TINY, "--batch", str(path), "--results", str(results)]) == 2
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1
        return said.err

    return call


@pytest.mark.parametrize("before", [2, 10_500])
def test_a_row_outside_the_table_is_named_in_small_and_large_batches(
    refused: Refused, tmp_path: Path, before: int
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("scores,earned\n" + '"0,500,0","0,1,0"\n' * before + '"0,500,0","0,7,0"\n' * 2)
    assert f"row {before + 1}: is beyond this table's frontier" in refused(path)


def test_a_row_with_too_few_numbers_is_named(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('scores\n"0,500,0"\n"0,500"\n"0"\n')
    assert "row 2: scores: has 2 values, not 3" in refused(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [("scores,scores\n1,2\n", "two columns are called 'scores'"),
     ("scores_1,scores_2,scores_3,note,note\n0,0,0,a,b\n", "two columns are called 'note'"),
     ("scores_1,scores_2,scores_3,,\n0,0,0,,\n", "two columns are called nothing")],
)  # fmt: skip
def test_two_columns_of_one_name_are_one_sentence(
    refused: Refused, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "in.csv"
    path.write_text(text)
    assert said in refused(path)


def test_two_parquet_columns_of_one_name_are_one_sentence(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table([pa.array(["0,0,0"])] * 2, names=["scores", "scores"]), path)
    assert "two columns are called 'scores'" in refused(path)


@pytest.mark.parametrize("command", ["plan", "solve"])
@pytest.mark.parametrize(
    "text", ["inf", "-inf", "nan", "1e400", "1e300", "-1", "0", "0.009", "8GB", ""]
)
def test_a_memory_that_is_no_size_is_one_sentence_before_anything_is_made(
    command: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, TINY, f"--memory={text}", "--results", str(tmp_path)]
    assert run(words) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert f"--memory: '{text}' is not a number of GB from 0.01; write it as --memory 8" in said.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["0.5", "1e3", " 8 "])
def test_a_memory_that_is_a_size_is_taken(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", TINY, "--set", "frontier=1", f"--memory={text}", "--results", str(tmp_path)]
    assert run(words) == 0
