"""Which boards were saved: half-saved files are waited for, comments are no change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from luckbase.cluster.batch.requests import SavedBoards
from tests.cluster.batch.boards import JACKPOT, pig, press, put

CLOCK = [1_700_000_000]


def save(path: Path, text: str) -> str:
    """Write a file at a later time than anything before."""
    name = put(path, text)
    CLOCK[0] += 10
    os.utime(path, (CLOCK[0], CLOCK[0]))
    return name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "a.toml", press())
    save(tmp_path / "b.toml", pig())
    return tmp_path


def names(found: list) -> list[str]:  # type: ignore[type-arg]
    return [Path(one.file).name for one in found]


def test_a_saved_board_comes_once_and_when_it_changes_no_more(folder: Path) -> None:
    saved = SavedBoards([folder])
    assert names(saved.read_all()) == ["a.toml", "b.toml"] and saved.poll() == []
    save(folder / "a.toml", press(cap=1500))
    assert saved.poll() == []  # it may still be written
    assert names(saved.poll()) == ["a.toml"] and saved.poll() == []


def test_a_file_that_changes_from_look_to_look_is_waited_for(folder: Path) -> None:
    saved = SavedBoards([folder])
    saved.read_all()
    for cap in (1500, 2000, 2500):
        save(folder / "a.toml", press(cap=cap))
        assert saved.poll() == []
    (one,) = saved.poll()
    assert one.board is not None and one.board.model_dump()["solve"]["score_cap"] == 2500


def test_a_half_saved_board_is_waited_for_and_said_once(folder: Path) -> None:
    said: list[str] = []
    saved = SavedBoards([folder], on_note=said.append)
    saved.read_all()
    save(folder / "a.toml", press(cap=1500)[:-200] + "[solve")
    assert [saved.poll() for _ in range(4)] == [[]] * 4
    assert len(said) == 1 and said[0].startswith("waiting for it to be saved again: ")
    save(folder / "a.toml", "")
    assert [saved.poll() for _ in range(3)] == [[]] * 3 and "game: is missing" in said[-1]
    save(folder / "a.toml", press(cap=1500))
    saved.poll()
    assert names(saved.poll()) == ["a.toml"] and len(said) == 2


def test_a_comment_is_no_change(folder: Path) -> None:
    said: list[str] = []
    saved = SavedBoards([folder], on_note=said.append)
    saved.read_all()
    save(folder / "a.toml", press() + "\n# of the tape of 3 June\n")
    assert [saved.poll() for _ in range(3)] == [[]] * 3
    assert said == [f"{folder / 'a.toml'}: was saved, and its rules are as they were"]


def test_a_new_board_comes_and_one_that_is_gone_is_said(folder: Path) -> None:
    said: list[str] = []
    saved = SavedBoards([folder], on_note=said.append)
    saved.read_all()
    save(folder / "c.toml", JACKPOT)
    saved.poll()
    assert names(saved.poll()) == ["c.toml"]
    (folder / "c.toml").unlink()
    assert [saved.poll() for _ in range(3)] == [[]] * 3
    assert len(said) == 1 and "c.toml: is gone" in said[0]
    save(folder / "c.toml", JACKPOT)
    assert [saved.poll() for _ in range(3)] == [[]] * 3  # its rules are as they were


def test_as_many_boards_are_watched_as_there_are(folder: Path) -> None:
    saved = SavedBoards([folder])
    assert len(saved.read_all()) == saved.boards == 2
    (folder / "b.toml").rename(folder / "c.toml")
    saved.poll()
    assert names(saved.poll()) == ["c.toml"] and saved.boards == 2
    (folder / "c.toml").unlink()
    saved.poll()
    assert saved.poll() == [] and saved.boards == 1
    save(folder / "a.toml", press()[:-200] + "[solve")
    saved.poll()
    assert saved.poll() == [] and saved.boards == 0


def test_a_board_that_could_not_be_read_at_first_comes_when_it_can(folder: Path) -> None:
    save(folder / "c.toml", "game = ")
    saved = SavedBoards([folder])
    assert [one.error is None for one in saved.read_all()] == [True, True, False]
    save(folder / "c.toml", JACKPOT)
    saved.poll()
    assert names(saved.poll()) == ["c.toml"]


def test_a_job_file_counts_as_what_it_lists(folder: Path) -> None:
    said: list[str] = []
    job = save(folder / "n/night.toml", '[[board]]\nfile = "../a.toml"\n')
    saved = SavedBoards([job], on_note=said.append)
    assert len(saved.read_all()) == 1
    save(folder / "b.toml", pig(12))  # not listed
    assert [saved.poll() for _ in range(3)] == [[]] * 3 and not said
    save(folder / "n/night.toml", '[[board]]\nfile = "../a.toml"\nvariants = [{}, { score_cap')
    assert [saved.poll() for _ in range(3)] == [[]] * 3
    save(
        folder / "n/night.toml",
        '[[board]]\nfile = "../a.toml"\nvariants = [{}, { score_cap = 1500 }]\n',
    )
    saved.poll()
    assert [one.settings for one in saved.poll()] == [{"score_cap": "1500"}]
    save(folder / "a.toml", press(whammies=3))
    saved.poll()
    assert len(saved.poll()) == 2
