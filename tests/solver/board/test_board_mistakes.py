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
    differences,
    read_board,
    show_path,
)
from luckbase.solver.board.model import Board, board_hash, canonical
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

LINES = [
    ("[solve]", "[solve]\nscore_unti = 5", "solve: unknown key 'score_unti'; did you mean 'sc"),
    ("title =", "titel =", "x.toml: unknown key 'titel'; did you mean 'title'?"),
    ("title =", "name = 'a'\ntitle =", "unknown key 'name'; a board is named after its file"),
    ("title =", "score_cap = 1\ntitle =", "unknown key 'score_cap'; it belongs in [solve]"),
    ("[rules]", "[rules]\nprize_value = 5", "rules: unknown key 'prize_value'; it belongs at"),
    ("[rules]", "[rule]", "unknown key 'rule'; did you mean 'rules'?"),
    ("game =", "gane =", 'game: is missing; write game = "'),
    ("game =", "game = 'chess' #", "game: unknown game 'chess'; expected game = \""),
    ("game =", "game = 3 #", "game: unknown game 3"),
    ("title =", "title = 5 #", "title: 5 is not text in quotes"),
    ("title =", 'title = "\\u001b[2J" #', "title: '\\x1b[2J' has characters that are not printed"),
    ("prize_value =", "prize_value = 0 #", "prize_value: 0 is too small; expected at least 1"),
    ("prize_value =", "prize_value = 2500.5 #", "prize_value: 2500.5 is not a whole number"),
    ("prize_value =", "#", "prize_value: is missing, and squares 2, slide 3 is a prize"),
    ("3 =", "#", "squares: 3 is missing; this board has squares 1 to 18"),
    ("3 =", "19 =", "squares: 3 is missing; this board has squares 1 to 19"),
    ("3 =", "61 =", "squares: '61' is not a square; they are 1 to 60"),
    ("3 =", "03 =", "squares: '03' is not a square"),
    ("3 =", "3 = 5 #", "squares 3: 5 is not a list of slides"),
    ("3 =", "3 = [] #", "squares 3: has 0 slides; expected 1 to 6"),
    ("3 =", "3 = [1, 2, 3, 4, 5, 6, 7] #", "squares 3: has 7 slides; expected 1 to 6"),
    ("3 =", "3 = [500, 2000, 'wammy'] #", "squares 3, slide 3: 'wammy' is not a slide; did"),
    ("3 =", "3 = [500.0, 2, 2] #", "squares 3, slide 1: 500.0 is not a slide; write whole dollars"),
    ("3 =", "3 = [true, 2, 2] #", "squares 3, slide 1: true is not a slide"),
    ("3 =", "3 = [1, -5, 2] #", "squares 3, slide 2: -5 is not a slide; write whole dollars"),
    ("3 =", "3 = [1, 2000000, 2] #", "squares 3, slide 2: 2000000 is not a slide"),
    ("3 =", "3 = [1, [2], 2] #", "squares 3, slide 2: [2] is not a slide"),
    ("3 =", "3 = [1, 'whammy + spin', 2] #", "squares 3, slide 2: 'whammy + spin' is not a slide"),
    ("3 =", "3 = [1, 'go back 60', 2] #", "squares 3, slide 2: 'go back 60' must go from 1 to 59"),
    ("3 =", "3 = [1, 'go back 18', 2] #", "squares 3: slides lead in a circle, 3 → 3"),
    ("3 =", "3 = ['to 4, 19'] #", "squares 3, slide 1: 'to 4, 19' leads to no square; expected 1"),
    ("3 =", "3 = ['to 0, 4'] #", "squares 3, slide 1: 'to 0, 4' leads to no square; expected 1"),
    ("3 =", "3 = ['to 4, 4'] #", "squares 3, slide 1: 'to 4, 4' has one square twice"),
    ("3 =", "3 = ['to 3, 4'] #", "squares 3: slides lead in a circle, 3 → 3"),
    ("3 =", "3 = ['to four'] #", "squares 3, slide 1: 'to four' is not a slide"),
    (
        "3 =",
        "3 = ['500 + 2 spins'] #",
        "spin_cap: is missing, and squares 3, slide 1 brings more t",
    ),
    (
        "3 =",
        "3 = ['500 + 10 spins'] #",
        "squares 3, slide 1: '500 + 10 spins' brings 10 spins; expected 1 to 9",
    ),
    ("3 =", "3 = ['whammy + 2 spins'] #", "squares 3, slide 1: 'whammy + 2 spins' is not a slide"),
    ("max_whammies =", "spin_cap = 0 #", "spin_cap: 0 is too small; expected at least 1"),
    (
        "max_whammies =",
        "or_lose_whammy = 'both' #",
        "or_lose_whammy: 'both' is not allowed; expected",
    ),
    ("3 =", "3 = [1, 'across', 2] #", "squares 3, slide 2: 'across' leads nowhere; give across in"),
    ("3 =", "3 = [1, '100 + spin', 2] #", "squares 3, slide 2: '100 + spin' is 0 units"),
    ("8 =", "8 = [1, 'move one', 2] #", "squares 8: slides lead in a circle, 8 → 9 → 8"),
    ("[squares]", "[outcomes]\n500 = '1'\n[squares]", "and this one has both"),
    ("[squares]", "squares = 5\n[square]", "unknown key 'square'"),
    ("big_bucks =", "big_bucks = 0 #", "big_bucks: 0 is too small; expected at least 1"),
    ("big_bucks =", "big_bucks = 61 #", "big_bucks: 61 is too large; expected at most 60"),
    ("big_bucks =", "big_bucks = 19 #", "big_bucks: 19 is not a square; expected 1 to 18"),
    ("big_bucks =", "big_bucks = 12 #", "squares 12: slides lead in a circle, 12 → 12"),
    ("big_bucks =", "#", "squares 12, slide 3: 'big bucks' leads nowhere; give big_bucks in [plac"),
    ("corners =", "corners = [6] #", "squares 6, slide 2: 'pick a corner' leads nowhere"),
    ("corners =", "corners = [] #", "corners: [] is not a list of squares such as [1, 6, 10, 15]"),
    ("corners =", "corners = 6 #", "corners: 6 is not a list of squares"),
    ("corners =", "corners = [1, 1] #", "corners: [1, 1] names a square twice"),
    ("corners =", "corners = [1, 'six'] #", "corners, item 2: 'six' is not a whole number"),
    ("third_place_spins =", "third_place_spins = 1 #", "third_place_spins: 1 is not true or false"),
    ("tied_pass =", "tied_pass = 'me' #", "tied_pass: 'me' is not allowed"),
    ("choices =", "choices = 'worst' #", "choices: 'worst' is not allowed"),
    ("max_whammies =", "max_whammies = 5 #", "max_whammies: 5 is too large; expected at most 4"),
    ("max_whammies =", "max_whammies = 0 #", "max_whammies: 0 is too small; expected at least 1"),
    ("score_unit =", "score_unit = 300 #", "score_unit: 300 does not divide score_cap 20000"),
    ("score_unit =", "score_unit = 0 #", "score_unit: 0 is too small; expected at least 1"),
    ("score_unit =", "score_unit = '250' #", "score_unit: '250' is not a whole number"),
    ("score_unit =", "score_unit = true #", "score_unit: true is not a whole number"),
    ("frontier =", "frontier = 0 #", "frontier: 0 is too small; expected at least 1"),
    ("frontier =", "frontier = 21 #", "frontier: 21 is too large; expected at most 20"),
    ("frontier =", "frontier = 0x" + "f" * 9000 + "#", "a number of more than 30 digits"),
    ("outcomes =", "outcomes = 'two' #", "outcomes: 'two' is not allowed; expected 'all'"),
    ("frontier =", "frontier 2 #", "line 63: not TOML: Expected '=' after a key"),
    ("frontier =", "frontier = 2\nfrontier =", "not TOML: Cannot overwrite a value"),
    ("frontier =", "frontier = " + "[" * 2000 + "#", "is nested too deeply"),
]


@pytest.mark.parametrize(("old", "new", "said"), LINES, ids=[said for *_, said in LINES])
def test_a_mistake_in_a_line_is_one_sentence_naming_the_place(old, new, said):
    """Each line of the good board spoilt in turn."""
    with pytest.raises(BoardError) as caught:
        read(edited(FEBRUARY, old, new))
    assert_one_sentence(caught.value)
    assert "x.toml: " in str(caught.value)
    assert said in str(caught.value)


OUTCOMES = [
    ('"whammy" = "1/5"', "outcomes: the chances sum to 31/30, not to 1"),
    ('"whammy" = "0"', "outcomes, 'whammy': '0' is not a chance above 0 and up to 1"),
    ('"whammy" = "7/6"', "outcomes, 'whammy': '7/6' is not a chance above 0 and up to 1"),
    ('"whammy" = "-1/6"', "outcomes, 'whammy': '-1/6' is not a chance; write a fraction such as"),
    ('"whammy" = "1/0"', "outcomes, 'whammy': '1/0' is not a chance; write a fraction"),
    ('"whammy" = 0.25', "outcomes, 'whammy': 0.25 is not a chance; write a fraction such as"),
    ('"whammy" = true', "outcomes, 'whammy': true is not a chance; write a fraction such as"),
    ('"wammy" = "1/6"', "outcomes, 'wammy': 'wammy' is not a slide; did you mean 'whammy'?"),
    ('"move one" = "1/6"', "outcomes, 'move one': leads to another square, and a board of outc"),
    ('"500 + Spin" = "1/6"', "outcomes: '500 + spin' is there twice"),
    ('"100 + spin" = "1/6"', "outcomes, '100 + spin': '100 + spin' is 0 units of score_unit 500"),
    ("whammy.a = 5", "outcomes, 'whammy': a table is not a chance"),
]


@pytest.mark.parametrize(("line", "said"), OUTCOMES, ids=[said for _, said in OUTCOMES])
def test_a_mistake_in_outcomes_is_one_sentence_naming_the_place(line, said):
    """The whammy's line of a good board spoilt."""
    with pytest.raises(BoardError) as caught:
        read(SMALL.replace('"whammy" = "1/6"', line))
    assert_one_sentence(caught.value)
    assert said in str(caught.value)


WHOLE = [
    ('[outcomes]\nwhammy = "1"', "outcomes: every outcome is a whammy"),
    ('[outcomes]\n"500 + spin" = "1"', "outcomes: every outcome gives a spin back"),
    ("outcomes = 5", "outcomes: 5 is not a section; write [outcomes] and lines"),
    ("[outcomes]", "outcomes: is empty; write [outcomes] and lines"),
    ("", "a board has either [squares] or [outcomes], and this one has neither"),
    ("squares = 5", "squares: 5 is not a section; write [squares]"),
    ("[squares]\n1 = [1, 2, 3]", "squares: a board has 2 squares or more"),
    ('[outcomes]\n"500" = 1\n[places]\nacross = 8', "places: a board of outcomes has no squares"),
    (
        '[outcomes]\n"500" = 1\n[rules]\n"a\\nb" = 8',
        "rules: unknown key 'a b'; expected one of: players, ",
    ),
    ("rules = 3", "rules: 3 is not a section; write its name in square brackets"),
    (
        "[outcomes]\n" + "\n".join(f'{n} = "1/201"' for n in range(201)),
        "outcomes: 201 are too many",
    ),
]


@pytest.mark.parametrize(("text", "said"), WHOLE, ids=[said for _, said in WHOLE])
def test_a_board_that_cannot_be_played_is_one_sentence(text, said):
    """Mistakes of a board as a whole."""
    with pytest.raises(BoardError) as caught:
        read(f'game = "press-your-luck"\n{text}')
    assert_one_sentence(caught.value)
    assert f"x.toml: {said}" in str(caught.value)


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
    for name, said in cases.items():
        with pytest.raises(BoardError, match=said) as caught:
            read_board(tmp_path / name)
        assert_one_sentence(caught.value)


@pytest.mark.parametrize("uri", ["s3://bucket/boards/1.toml", "https://example.com/1.toml"])
def test_a_uri_is_no_board_file_and_is_said_as_it_was_typed(uri):
    with pytest.raises(BoardError) as caught:
        read_board(Path(uri))
    assert str(caught.value) == f"{uri}: no such file; expected a board file on this machine"


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


def test_a_wrong_request_ends_with_exit_code_two_and_all_else_with_one():
    """1 the answer is no, 2 the request is wrong."""
    wrong = [errors.BoardError, errors.StateError, errors.OptionError, errors.MemoryLimitError]
    rest = [errors.MissingTableError, errors.CorruptTableError, errors.WorkerError]
    assert {error.exit_code for error in wrong} == {2}
    assert {error.exit_code for error in rest} == {1}
    assert all(issubclass(error, errors.LuckbaseError) for error in wrong + rest)


def test_only_a_name_that_is_really_close_is_suggested(tmp_path):
    """Else the folder's boards where they are few; a file that is none is no help."""
    said = {}
    (tmp_path / "pyproject.toml").write_text("[project]")
    (tmp_path / "missing.toml").symlink_to("nothing")
    for names in ((), ("pig", "skunk"), tuple(f"board-{i:03}" for i in range(0, 1000, 100))):
        for name in names:
            (tmp_path / f"{name}.toml").write_text('game = "pig"')
        for asked in ("missing", "skunks", "pyprojekt"):
            with pytest.raises(errors.BoardError) as error:
                read_board(tmp_path / f"{asked}.toml")
            said[len(names), asked] = str(error.value).partition("no such file")[2]
    assert said[0, "missing"] == said[10, "missing"] == ""
    assert said[2, "missing"] == "; the board files there are pig.toml, skunk.toml"
    assert said[2, "skunks"] == f"; did you mean {tmp_path / 'skunk.toml'}?"


# Settings


def test_a_setting_changes_an_option_and_nothing_else():
    """`--set` on the command line, and the same line in the file, are one board."""
    board = press_your_luck(FEBRUARY, score_unit="500", third_place_spins="false", tied_pass="next")
    assert (board.solve.score_unit, board.rules.third_place_spins) == (500, False)
    assert differences(canonical(read_board(FEBRUARY)), canonical(board)) == [
        "third_place_spins: was true, now false",
        "tied_pass: was 'passer', now 'next'",
        "score_unit: was 250, now 500",
    ]


def test_the_prize_value_and_options_not_in_the_file_can_be_set():
    """[rules] does not stand in this file."""
    board = read(SMALL, prize_value="2000", max_whammies="2")
    assert (board.prize_value, board.rules.max_whammies) == (2000, 2)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("score_unti", "5", "unknown option 'score_unti'; did you mean 'score_unit'"),
        ("title", "5", "unknown option 'title'; "),
        ("zzz", "5", "unknown option 'zzz'; expected one of: choices, frontier, house"),
        ("score_unit", "300", "score_unit=300: score_unit: 300 does not divide score_cap 20000"),
        ("score_cap", "20100", "score_cap=20100: score_unit: 250 does not divide score_cap 20100"),
        ("score_unit", "five", "score_unit: 'five' is not a whole number"),
        ("score_unit", "", "score_unit: '' is not a whole number"),
        ("score_unit", "9" * 5000, "score_unit: '99999"),
        ("third_place_spins", "yes", "third_place_spins: 'yes' is not true or false"),
        ("tied_pass", "5", "tied_pass: 5 is not allowed; expected 'passer' or 'next'"),
        ("outcomes", "two", "outcomes: 'two' is not allowed; expected 'all' or"),
        ("prize_value", "-1", "prize_value: -1 is too small; expected at least 1"),
        ("score_unit", "4000", "squares 6, slide 1: '700 + spin' is 0 units of score_unit 4000"),
    ],
)
def test_a_wrong_setting_is_one_sentence_that_names_it(option, value, said):
    """An OptionError, as the file itself is right."""
    with pytest.raises(OptionError) as caught:
        read_board(FEBRUARY, {option: value})
    assert_one_sentence(caught.value)
    assert said in str(caught.value)


def test_a_mistake_of_the_file_is_not_blamed_on_a_setting(tmp_path):
    """Even when an option is set."""
    path = tmp_path / "x.toml"
    path.write_text(edited(FEBRUARY, "frontier =", "frontier = 99 #"), encoding="utf-8")
    with pytest.raises(BoardError, match=r"x\.toml: frontier: 99 is too large"):
        read_board(path, {"score_unit": "500"})
    assert press_your_luck(path, frontier="3").solve.frontier == 3


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
        assert isinstance(board, Board)
        assert board_hash(board_from_canonical(board.name, canonical(board))) == board_hash(board)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory):
    """One file that the fuzzed tests write again and again."""
    return tmp_path_factory.mktemp("fuzz") / "x.toml"


@settings(max_examples=150, deadline=None)
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
    edits=st.lists(
        st.tuples(
            st.integers(0, len(GOOD)),
            st.integers(0, 12),
            st.sampled_from(PIECES) | st.text(max_size=3),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_good_board_spoilt_anywhere_is_a_board_or_one_sentence(scratch, edits):
    """A few characters cut out and something put in their place."""
    text = GOOD
    for start, length, piece in edits:
        text = text[:start] + piece + text[start + length :]
    scratch.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert_read_or_refused(scratch)


@settings(max_examples=300, deadline=None)
@given(
    line=st.sampled_from(re.findall(r"^\w+(?= = )", GOOD, re.MULTILINE)),
    value=st.sampled_from(PIECES)
    | st.lists(st.sampled_from(PIECES), min_size=3, max_size=3).map(
        lambda parts: f"[{', '.join(parts)}]"
    ),
)
def test_a_value_of_any_type_is_a_board_or_one_sentence(scratch, line, value):
    """Each key of a good board given each odd value."""
    text = re.sub(f"^{line} = .*$", lambda _: f"{line} = {value}", GOOD, flags=re.MULTILINE)
    scratch.write_bytes(text.encode())
    assert_read_or_refused(scratch)


@settings(max_examples=100, deadline=None)
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
