"""Agents from a file that says how often people did what, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luckbase
from luckbase.cluster.play.agents import read_frequencies
from luckbase.solver import load_board, load_game
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from tests.solver.board.board_files import BOARDS

TINY = BOARDS / "tiny.toml"
START = {"scores": (1000, 500, 1500), "earned": (1, 1, 0)}
HEAD = "lead,spins,passes,of\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "people.csv"
    path.write_text(text, encoding="utf-8")
    return path


def passes(path: Path, **state: Any) -> float:
    """The chance that the one up passes in a state, by the file."""
    game = load_game(load_board(TINY))
    found = game.parse(state)
    decide = read_frequencies(game, path).decide
    (chances,) = decide(game, 0, found[None], [np.array([0, 2], np.int64)])
    assert chances.sum() == pytest.approx(1)
    return float(chances[1])


ROWS = HEAD + "..-500,1..3,1,10\n# the same row again says nothing\n\n-500,1,9,10\n0..500,2,3,10\n"


@pytest.mark.parametrize(
    ("scores", "spins", "chance"),
    [
        ((500, 1000, 0), 1, 0.1),  # the first row that covers it
        ((1500, 1000, 0), 2, 0.3),
        ((2500, 1000, 0), 2, 0.3),  # the nearest lead of those with two spins
        ((2500, 0, 0), 1, 0.1),  # of those with one spin; two are as near, and the first counts
        ((0, 1000, 0), 9, 0.1),  # of those with three spins
    ],
)
def test_a_state_is_of_the_first_row_that_covers_it_or_the_nearest(
    tmp_path: Path, scores: tuple[int, ...], spins: int, chance: float
) -> None:
    found = passes(written(tmp_path, ROWS), scores=scores, earned=(spins, 0, 0))
    assert found == pytest.approx(chance)


def test_where_no_row_says_the_agent_behind_else_plays(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + "0,1,3,10\nelse,always-pass-ahead\n")
    assert passes(path, scores=(1000, 1000, 0), earned=(1, 0, 0)) == pytest.approx(0.3)
    assert passes(path, scores=(2000, 1000, 0), earned=(1, 0, 0)) == 1
    assert passes(path, scores=(500, 1000, 0), earned=(1, 0, 0)) == 0
    path = written(tmp_path, HEAD + "0,1,3,10\nelse,random\n")
    assert passes(path, scores=(500, 1000, 0), earned=(1, 0, 0)) == 0.5


def by_hand(game: Game, player: int, state: Ints, actions: list[int]) -> list[float]:
    """Passes, to either opponent alike, three times in ten when ahead, else once."""
    scores = state[:3]
    ahead = scores[player] > max(score for i, score in enumerate(scores) if i != player)
    chance = 0.3 if ahead else 0.1
    to = [action != 0 for action in actions]
    return [chance / sum(to) if each else (1 - chance) / (len(to) - sum(to)) for each in to]


def test_a_profile_of_people_is_worth_what_the_same_by_hand_is(tmp_path: Path) -> None:
    path = str(written(tmp_path, HEAD + "..0,..20,1,10\n1..,..20,3,10\n"))
    found = luckbase.evaluate(TINY, path, START)
    expected = luckbase.evaluate(TINY, by_hand, START)
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.agents == (path,) * 3


def test_each_player_is_told_what_the_best_response_to_the_people_brings(tmp_path: Path) -> None:
    path = str(written(tmp_path, HEAD + "..0,..20,1,10\n1..,..20,3,10\n"))
    found = luckbase.evaluate(TINY, f"{path},best-response", START)
    assert found.gain is not None and found.agents == (path,) * 3
    for player in range(3):
        agents = [path] * 3
        agents[player] = "best-response"
        best = luckbase.evaluate(TINY, agents, START).value[player]
        assert found.gain[player] == pytest.approx(best - found.value[player], abs=1e-12)
    assert max(found.gain) > 0.01


def test_people_play_pig_by_the_points_of_a_turn_too(tmp_path: Path) -> None:
    path = written(tmp_path, "turn,holds,of\n..4,0,1\n5..,1,1\n")
    pig = BOARDS.parent / "pig" / "tiny.toml"
    found = luckbase.evaluate(pig, [str(path), "optimal"]).value
    assert found == pytest.approx(luckbase.evaluate(pig, "hold-at-5,optimal").value, abs=1e-12)
    played = luckbase.simulate(pig, [str(path), "optimal"], games=2000, seed=1)
    assert played.exact == pytest.approx(found, abs=1e-12)
    game = luckbase.play(pig, against=str(path), seed=3)
    assert any(str(path) in line for line in game.through(lambda play: "roll"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; write a line lead,spins,passes,of, then such rows"),
        (HEAD, "no row; write a line"),
        ("lead,spins,pases,of\n", "line 1: column 'pases' is unknown; did you mean 'passes'"),
        ("lead,lead,passes,of\n", "line 1: column 'lead' is named twice"),
        ("lead,spins,of\n", "line 1: no column passes; write a line lead,spins,passes,of"),
        ("passes,of\n", "line 1: no column lead or spins"),
        (HEAD + "x,1,2,3\n", "line 2: lead: 'x' is neither a number nor a span; write"),
        (HEAD + "#\n-,1,2,3\n", "line 3: lead: '-' is neither"),
        (HEAD + "..,1,2,3\n", "line 2: lead: '..' is neither"),
        (HEAD + "1 2,1,2,3\n", "line 2: lead: '1 2' is neither"),
        (HEAD + "5..3,1,2,3\n", "line 2: lead: '5..3' ends before it begins; write the lesser"),
        (HEAD + "3,1,5,3\n", "line 2: passes: '5' of 3; expected a whole number, 0 to 3"),
        (HEAD + "3,1,-1,3\n", "line 2: passes: '-1' of 3; expected"),
        (HEAD + "3,1,0,0\n", "line 2: of: '0' times; expected a whole number, 1 or more"),
        (HEAD + "3,1,2\n", "line 2: 3 fields; expected 4: lead, spins, passes, of"),
        (HEAD + "3,1,2,3\nelse,sometimes\n", "line 3: else: no agent 'sometimes' here; expected"),
        (HEAD + "3,1,2,3\nelse,optimal\n", "line 3: else: no agent 'optimal' here"),
        (HEAD + "3,1,2,3\nelse\n", "line 3: else: 0 fields; write else,AGENT"),
        (HEAD + "else,random\n3,1,2,3\n", "line 3: '3' stands behind 'else', which ends the file"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(OptionError, match=r"people\.csv") as caught:
        luckbase.evaluate(TINY, str(written(tmp_path, text)), START)
    assert sentence in str(caught.value)


def test_files_that_can_not_be_read_and_games_without_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"none\.csv: no such file"):
        luckbase.evaluate(TINY, str(tmp_path / "none.csv"), START)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(OptionError, match=r"bytes\.csv: is not UTF-8 text"):
        luckbase.evaluate(TINY, str(tmp_path / "bytes.csv"), START)
    path = written(tmp_path, HEAD + " " * 1_000_000)
    with pytest.raises(OptionError, match="more than 1,000,000 bytes"):
        luckbase.evaluate(TINY, str(path), START)
    with pytest.raises(OptionError, match="jackpot does not say by what numbers its decisions"):
        luckbase.evaluate(BOARDS.parent / "jackpot" / "tiny.toml", str(path))
