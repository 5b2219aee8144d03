"""Board files: every mistake in one is one sentence that names the place; so is a wrong setting."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from luckbase.solver import errors
from luckbase.solver.board.file import (
    MAX_BYTES,
    board_from_canonical,
    read_board,
    show_path,
)
from luckbase.solver.board.model import board_hash, canonical
from luckbase.solver.errors import BoardError, OptionError, RequestError
from luckbase.solver.games.press_your_luck.board import outcome_distribution
from tests.solver.board.board_files import (
    FEBRUARY,
    SMALL,
    assert_one_sentence,
    edited,
    press_your_luck,
    read,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [("0x" + "f" * 9000, "a number of more than 30 digits"), ("[" * 2000, "is nested too deeply")],
)
def test_what_is_very_long_is_one_sentence(number, text):
    with pytest.raises(BoardError, match=text) as caught:
        read(edited(FEBRUARY, "frontier =", f"frontier = {number} #"))
    assert_one_sentence(caught.value)


def test_what_is_very_long_elsewhere_is_one_sentence():
    lines = "\n".join(f'{n} = "1/201"' for n in range(201))
    with pytest.raises(BoardError, match="outcomes: 201 are too many"):
        read(f'game = "press-your-luck"\n[outcomes]\n{lines}')
    with pytest.raises(OptionError, match="score_unit: '99999") as caught:
        read_board(FEBRUARY, {"score_unit": "9" * 5000})
    assert_one_sentence(caught.value)


def test_three_outcomes_whose_mean_plus_a_spin_is_nothing_are_refused():
    """(100 + 200) / 2 = 150 is 0 units of 500."""
    text = SMALL.replace('"500 + spin"', '"100 + spin"').replace('"2000 + spin"', '"200 + spin"')
    with pytest.raises(BoardError, match="mean amount plus a spin is 150, 0 units") as caught:
        read(text + "outcomes = 3")
    assert_one_sentence(caught.value)


def test_a_small_amount_plus_a_spin_is_taken_where_only_the_mean_counts():
    """(100 + 2000) / 2 = 1050 is 2 units of 500."""
    board = read(SMALL.replace('"500 + spin"', '"100 + spin"'), outcomes="3")
    assert outcome_distribution(board).spin == ((2, Fraction(1, 3)),)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    """Not there (with the nearest name), a directory, not UTF-8, too large, an impossible path."""
    (tmp_path / "1985-02.toml").write_bytes(b"a = 1\nb = '\xff'")
    (tmp_path / "large.toml").write_bytes(b"#" * 200_000)
    cases = {
        "1985-2.toml": "no such file; did you mean ",
        "none/1.toml": "no such file",
        "": "is a directory",
        "1985-02.toml": "line 2: is not UTF-8 text",
        "large.toml": "too large for a board file",
        "a\0b": "cannot be read",
        "1985-02.toml/b": "cannot be read",
        "x" * 300: "cannot be read",
    }
    for name, text in cases.items():
        with pytest.raises(BoardError, match=text) as caught:
            read_board(tmp_path / name)
        assert_one_sentence(caught.value)


def test_a_folder_that_looks_like_a_uri_is_named_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s3:/bucket").mkdir(parents=True)
    assert show_path(Path("s3:/bucket")) == "s3:/bucket"


def test_a_file_may_be_as_large_as_it_says(tmp_path):
    path, text = tmp_path / "full.toml", FEBRUARY.read_bytes() + b"\n#"
    path.write_bytes(text.ljust(MAX_BYTES, b"#"))
    assert read_board(path).rules == read_board(FEBRUARY).rules
    path.write_bytes(text.ljust(MAX_BYTES + 1, b"#"))
    with pytest.raises(BoardError, match=f"is larger than {MAX_BYTES} bytes"):
        read_board(path)


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    """As some editors write them."""
    text = FEBRUARY.read_text(encoding="utf-8").replace("\n", "\r\n")
    path = tmp_path / "1985-02.toml"
    path.write_bytes(text.encode("utf-8-sig"))
    assert read_board(path) == read_board(FEBRUARY)


def test_only_a_name_that_is_really_close_is_suggested(tmp_path):
    """Else the folder's boards where they are few; a file that is none is no help."""
    text = {}
    (tmp_path / "pyproject.toml").write_text("[project]")
    (tmp_path / "missing.toml").symlink_to("nothing")
    for names in ((), ("pig", "skunk"), tuple(f"board-{i:03}" for i in range(0, 1000, 100))):
        for name in names:
            (tmp_path / f"{name}.toml").write_text('game = "pig"')
        for query in ("missing", "skunks", "pyprojekt"):
            with pytest.raises(errors.BoardError) as error:
                read_board(tmp_path / f"{query}.toml")
            text[len(names), query] = str(error.value).partition("no such file")[2]
    assert text[0, "missing"] == text[10, "missing"] == ""
    assert text[2, "missing"] == "; the board files there are pig.toml, skunk.toml"
    assert text[2, "skunks"] == f"; did you mean {tmp_path / 'skunk.toml'}?"


# Settings


def test_the_prize_value_and_options_not_in_the_file_can_be_set():
    """[rules] does not stand in this file."""
    board = read(SMALL, prize_value="2000", max_whammies="2")
    assert (board.prize_value, board.rules.max_whammies) == (2000, 2)


def test_a_mistake_of_the_file_is_not_blamed_on_a_setting(tmp_path):
    """Even when an option is set."""
    path = tmp_path / "x.toml"
    path.write_text(edited(FEBRUARY, "frontier =", "frontier = 99 #"), encoding="utf-8")
    with pytest.raises(BoardError, match=r"x\.toml: frontier: 99 is too large"):
        read_board(path, {"score_unit": "250"})
    assert press_your_luck(path, score_unit="250", frontier="3").solve.frontier == 3


# Whatever bytes there are in the file

GOOD = FEBRUARY.read_text(encoding="utf-8")
PIECES = [
    *r"""[ ] = " ' # . { } 0 -1 1.5 inf nan true [] {} [[squares]] [rules.x] [squares] [outcomes]
    1979-05-27 'move~one' 'prize~+~spin' '+' '99999999999~+~spin' 'go~back~5' '½' "\u0007" 1_0
    squares game""".replace("~", " ").split(),
    *("", "\n", "\0", "\ufeff", "'\u0661'", "0x" + "f" * 6000, "9" * 6000, f"'{'x' * 5000}'"),
]


def assert_read_or_refused(path, options=None):
    """A board, or one sentence."""
    try:
        board = read_board(path, options or {})
    except RequestError as error:
        assert_one_sentence(error)
    else:
        assert board_hash(board_from_canonical(board.name, canonical(board))) == board_hash(board)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory):
    """One file that the fuzzed tests write again and again."""
    return tmp_path_factory.mktemp("fuzz") / "x.toml"


@settings(max_examples=100, deadline=None)
@example(data=b"\xff\xfe")
@example(data=b"a = " + b"9" * 6000)
@example(data=b"a = " + b"[" * 20_000)
@example(data=b"a" + b".a" * 2_000 + b" = 1")
@example(data=b'game = "press-your-luck"\nrules' + b".a" * 2_000 + b" = 1")
@given(data=st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode()))
def test_any_bytes_are_a_board_or_one_sentence(scratch, data):
    """Never a traceback."""
    scratch.write_bytes(data)
    assert_read_or_refused(scratch)


@settings(max_examples=300, deadline=None)
@given(
    edits=st.just([])
    | st.lists(
        st.tuples(
            st.integers(0, len(GOOD)), st.integers(0, 12),
            st.sampled_from(PIECES) | st.text(max_size=3),
        ),
        max_size=3,
    ),
    line=st.sampled_from(["", *re.findall(r"^\w+(?= = )", GOOD, re.MULTILINE)]),
    value=st.sampled_from(PIECES)
    | st.lists(st.sampled_from(PIECES), min_size=3, max_size=3).map(
        lambda parts: f"[{', '.join(parts)}]"
    ),
)  # fmt: skip
def test_a_good_board_spoilt_anywhere_or_with_any_value_is_a_board_or_one_sentence(
    scratch, edits, line, value
):
    """A key, or none, is given an odd value of any type; then, or not, characters are cut out and
    others put there."""
    text = re.sub(f"^{line} = .*$", lambda _: f"{line} = {value}", GOOD, flags=re.MULTILINE)
    for start, length, piece in edits:
        text = text[:start] + piece + text[start + length :]
    scratch.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert_read_or_refused(scratch)


@settings(max_examples=60, deadline=None)
@given(
    options=st.dictionaries(
        st.sampled_from(["score_unit", "score_cap", "outcomes", "frontier", "tied_pass", "x"])
        | st.text(max_size=5),
        st.sampled_from(["1", "500", "3000", "true", "three", "next"]) | st.text(max_size=5),
        max_size=3,
    )
)
def test_any_settings_are_taken_or_one_sentence(options):
    """On a board that is right."""
    assert_read_or_refused(FEBRUARY, options)
