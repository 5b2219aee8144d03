"""Which boards a person means: files, folders, job files; what can not be read stops nothing."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.batch.requests import board_files, is_job, is_many, read_job, requests_for
from luckbase.solver.errors import JobError
from tests.cluster.batch.boards import BOARDS, JACKPOT, pig, put
from tests.places import ROOT


def named(result):
    return ["-" if each is None else each.name for each in result]


def test_a_folder_is_every_board_below_it_in_the_order_of_names(tmp_path):
    put(tmp_path / "b.toml", JACKPOT)
    put(tmp_path / "a/deep/z.toml", pig())
    put(tmp_path / "c.toml", "game = ")
    put(tmp_path / ".hidden/x.toml", JACKPOT)
    put(tmp_path / "notes.txt", "no board")
    result = requests_for([tmp_path])
    assert [Path(each.file).name for each in result] == ["z.toml", "b.toml", "c.toml"]
    assert named([each.board for each in result]) == ["z", "b", "-"]
    assert "c.toml: not TOML: Invalid value" in str(result[2].error)


def test_a_job_file_in_a_folder_is_left_alone_and_runs_where_it_is_named(tmp_path):
    put(tmp_path / "a.toml", JACKPOT)
    job = put(tmp_path / "night.toml", '[[board]]\nfile = "a.toml"\nset = { tiles = 3 }\n')
    assert [item.settings for item in requests_for([tmp_path])] == [{}]
    (item,) = requests_for([job])
    assert item.settings == {"tiles": "3"} and item.board is not None
    assert is_many([job]) and is_many([str(tmp_path)]) and not is_many([item.file])


def test_a_board_that_is_named_twice_is_asked_for_once(tmp_path):
    file = put(tmp_path / "a.toml", JACKPOT)
    (tmp_path / "link.toml").symlink_to(file)
    roundabout = f"{tmp_path}/../{tmp_path.name}/a.toml"
    assert len(requests_for([file, tmp_path, roundabout])) == 1
    job = put(tmp_path / "n/night.toml", '[[board]]\nfile = "../a.toml"\nset = { tiles = 3 }\n')
    assert len(requests_for([file, job])) == 2  # with other options it is another board
    board = luckbase.load_board(file)
    assert len(requests_for([board, board, luckbase.load_board(file, tiles=3)])) == 2
    assert len(requests_for([board, board.model_copy(update={"name": "twin"})])) == 2


def test_a_folder_without_boards_and_a_file_that_is_not_there_are_sentences(tmp_path):
    empty, gone = requests_for([tmp_path, tmp_path / "gone.toml"])
    assert "has no board file" in str(empty.error) and "no such file" in str(gone.error)


def test_options_of_the_command_come_before_those_of_the_job(tmp_path):
    put(tmp_path / "a.toml", JACKPOT)
    text = '[[board]]\nfile = "a.toml"\nset = { tiles = 3 }\nvariants = [{ sides = 4 }, {}]\n'
    job = put(tmp_path / "night.toml", text)
    assert [each.settings for each in requests_for([job], {"tiles": 2})] == [
        {"tiles": "2", "sides": "4"}, {"tiles": "2"}
    ]  # fmt: skip


def test_what_a_job_says_of_the_solve_is_handed_on(tmp_path):
    put(tmp_path / "a.toml", JACKPOT)
    text = 'memory = 0.5\nworkers = 1\nresults = "../out"\norder = "shortest"\n'
    job = put(tmp_path / "jobs/n.toml", text + '[[board]]\nfile = "../a.toml"\n')
    (only,) = requests_for([job])
    wanted = {"memory": 500_000_000, "workers": 1, "results": tmp_path / "out"}
    assert only.solve_options == wanted and only.order == "shortest"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("board = []", "board: [] is empty"),
        ("board = 3", "board: 3 is not a list"),
        ("[[board]]", "board, item 1, file: is missing"),
        ("[[board]]\nfile = 3", "board, item 1, file: 3 is not a list"),
        ("[[board]]\nfile = []", "board, item 1, file: [] is empty"),
        ("[[board]]\nfile = 'a'\nvariant = []", "unknown key 'variant'; did you mean 'variants'?"),
        ("[[board]]\nfile = 'a'\nvariants = []", "variants: [] is empty"),
        ("[[board]]\nfile = 'a'\nset = { x = [1] }", "set, x: [1] is not an option's value"),
        ("[[board]]\nfile = 'a'\nset = 3", "set: 3 is not a table; write it as { name = value }"),
        ("worker = 2\n[[board]]\nfile = 'a'", "unknown key 'worker'; did you mean 'workers'?"),
        ("workers = 0\n[[board]]\nfile = 'a'", "workers: 0 is too small; expected at least 1"),
        ("workers = true\n[[board]]\nfile = 'a'", "workers: true is not a whole number"),
        ("memory = '8'\n[[board]]\nfile = 'a'", "memory: '8' is not a number"),
        ("memory = nan\n[[board]]\nfile = 'a'", "memory: nan is not a finite number"),
        ("memory = inf\n[[board]]\nfile = 'a'", "memory: inf is not a finite number"),
        ("memory = 0.001\n[[board]]\nfile = 'a'", "memory: 0.001 is too small; expected at"),
        ("results = 'ftp://x/y'\n[[board]]\nfile = 'a'", "results: 'ftp://x/y' cannot hold tables"),
        ("results = ''\n[[board]]\nfile = 'a'", "results: '' "),
        ("order = 'best'\n[[board]]\nfile = 'a'", "order: 'best' is not allowed; expected"),
    ],
)
def test_a_mistake_in_a_job_is_one_sentence_with_its_place(tmp_path, text, message):
    job = tmp_path / "night.toml"
    put(job, text)
    assert is_job(job)
    with pytest.raises(JobError) as caught:
        read_job(job)
    assert str(caught.value).startswith(f"{job}: ") and message in str(caught.value)
    assert "\n" not in str(caught.value)
    (only,) = requests_for([job])
    assert isinstance(only.error, JobError) and only.board is None


@settings(max_examples=40)
@given(st.text(max_size=60))
def test_no_text_of_a_job_ends_in_anything_but_a_sentence(text):
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        job = Path(folder) / "night.toml"
        job.write_bytes(f"{text}\n[[board]]\nfile = 'a.toml'\n".encode("utf-8", "replace"))
        for each in requests_for([job]):
            assert each.board is None and each.error is not None and "\n" not in str(each.error)


def test_the_example_is_a_job_with_boards_that_are_there():
    result = requests_for([ROOT / "jobs/nights/example.toml"])
    assert len(result) == 3 + len(board_files(BOARDS / "jackpot"))
    assert all(each.error is None for each in result)
    text = (ROOT / "jobs/nights/example.toml").read_text(encoding="utf-8")
    from luckbase.cluster.batch.requests import Entry, Job

    for model in (Job, Entry):
        for name, field in model.model_fields.items():
            assert f"{field.alias or name} = " in text or name == "board", name
