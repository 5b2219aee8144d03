"""Every number is whole at any width: tables, lists, the talk of a play."""

import io
import re

import pytest

from luckbase.jobs import terminal
from luckbase.jobs.terminal import blocks, broken, fit, fold
from luckbase.solver.game.capabilities import Charts
from tests.places import BOARDS
from tests.solving import load_board, load_game

RACE = str(BOARDS / "pig/tiny.toml")
TINY, GOOFSPIEL = str(BOARDS / "press-your-luck/tiny.toml"), str(BOARDS / "goofspiel/points.toml")
AGENTS = "hold-at-2,hold-at-3,hold-at-4,hold-at-5,hold-at-6,hold-at-12,hold-at-15,optimal"
NINE = ",".join(map(str, range(1, 10)))
NUMBER = r"[+\-]?\.?\d[\d.,]*(?:e[+\-]\d+)?"

COMMANDS = {
    "query": ["query", TINY, "scores=0,1000,500", "earned=0,1,0"],
    "batch of bids": ["query", GOOFSPIEL, f"mine={NINE}", f"theirs={NINE}", f"deck={NINE}",
                      "upcard=7", "--set", "cards=9"],
    "matrix": ["evaluate", RACE, "--agents", AGENTS, "--matrix", "--set", "goal=12"],
    "three players": ["evaluate", TINY, "--agents", "never-pass,always-pass-ahead,optimal",
                      "--gain", "scores=0,1000,500", "earned=1,1,1"],
    "plan": ["solve", "--dry-run", str(BOARDS / "press-your-luck/1985-02.toml"), "--memory", "8",
             "--set", "score_unit=250", "--set", "frontier=2"],
    "chart of bids": ["chart", GOOFSPIEL, "--set", "cards=9"],
    "play": ["play", GOOFSPIEL, "--set", "cards=9", "--seed", "1", "--hints"],
}  # fmt: skip


@pytest.fixture(scope="module")
def results(results_of):
    return results_of((TINY, {"frontier": 2}), (GOOFSPIEL, {"cards": 9}))


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_prints_every_number_whole(words, results, command, monkeypatch):
    """On a terminal of 80 columns, and into a file."""
    printed = []
    for width in (None, 80):
        monkeypatch.setattr(terminal, "width", lambda out, width=width: width)  # none is here
        monkeypatch.setattr("sys.stdin", io.StringIO("?\n9\n1\n5\n7\n2\n3\n4\n6\n8\n"))
        code, out, _ = command(*words, *(["--results", results] * (words[0] != "evaluate")))
        assert code == 0 and "…" not in out
        printed.append(re.sub(r"\d+ games in .*|time +about.*|memory .*", "", out))
    full, narrow = (re.findall(NUMBER, text.replace(",", ", ")) for text in printed)
    assert len(full) > 5 and set(narrow) == set(full)
    # In panels the first column, and in blocks the heads, stand there again and again.
    assert all(narrow.count(n) >= full.count(n) for n in set(full))
    assert max(map(len, printed[1].splitlines())) <= 80


# --- the parts -----------------------------------------------------------------------------------

HEADS = (
    "table", "states", "kernel, M/s a core", "end to end, M/s with 2",
    "bytes a state", "on disk", "peak memory", "time",
)  # fmt: skip
ROWS = [
    ("$500, frontier 2", "42.9 million", "92", "16.0", "4.65", "200 MB", "0.35 GB", "2.6 s"),
    ("$250, frontier 4", "6.54 billion", "80", "20.4", "5.05", "33 GB", "4.1 GB", "5 min 21 s"),
]
"""The widest table of `bench`."""


@pytest.mark.parametrize("width", [30, 60, 80, 100, 140])
def test_the_tables_of_bench_fit_or_are_blocks(width):
    fitted = fit(HEADS, ROWS, width)
    if fitted is None:
        assert width < 100
        lines = blocks(HEADS, ROWS, width)
        assert "states: 6.54 billion" in lines and "time: 5 min 21 s" in lines
        assert lines.count("") == 1
        return
    heads, rows = fitted
    columns = zip(heads, *rows, strict=True)
    used = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    assert sum(used) + 3 * len(HEADS) + 1 <= width
    assert [list(row) for row in ROWS] == rows  # only the heads were broken


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("scores=0,10000,7000 earned=0,1,0", 20, ["scores=0,10000,7000", "earned=0,1,0"]),
        ("scores=0,10000,7000 earned=0,1,0", 12, ["scores=0,", "10000,7000", "earned=0,1,0"]),
        ("results/pig/tiny/12", 10, ["results/", "pig/tiny/", "12"]),
        ("1234567890", 4, ["1234567890"]),
        ("  hold: mine 0 -> 3", 40, ["  hold: mine 0 -> 3"]),
        ("", 4, [""]),
    ],
)
def test_text_breaks_between_its_pieces(text, width, lines):
    assert broken(text, width) == lines


def test_lists_with_columns_are_folded_in_panels():
    lines = ["         1         2", " 9  0.1111  0.222222", "10       0         1"]
    assert fold(lines, 24) == lines
    left, right = [line[:10] for line in lines], [line[:2] + line[10:] for line in lines]
    assert fold(lines, 14) == [*left, "", *right]
    assert fold(["(0,67) .1635364 - 28 96 100"], 20) == ["(0,67) .1635364 - 28", "    96 100"]


def test_what_an_encoding_has_no_letter_for_is_a_code(tmp_path, monkeypatch):
    for errors, said in (("strict", r"W\xfcrfel \u2026"), ("replace", "W?rfel ?")):
        with (tmp_path / "out").open("w", encoding="ascii", errors=errors) as out:
            monkeypatch.setattr("sys.stdout", out)
            monkeypatch.setattr("sys.stderr", out)
            terminal.name_streams()
            print("Würfel …", flush=True)
        assert (tmp_path / "out").read_text() == f"{said}\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_is_asked_for_its_width_and_a_file_is_as_wide_as_it_must_be(monkeypatch):
    monkeypatch.setenv("COLUMNS", "77")
    there, file = Terminal(), io.StringIO()
    assert (terminal.width(there), terminal.width(file)) == (77, None)
    terminal.print_table("", HEADS, ROWS, there)
    assert "6.54 billion" in there.getvalue() and "…" not in there.getvalue()
    terminal.print_table("", ("[red]x", "worth"), [("9" * 200, "[/]a :smile:")], file)
    assert all(
        text in file.getvalue() for text in ("[red]x", "9" * 200, "[/]a :smile:")
    )  # no markup


def test_no_character_of_a_message_acts_on_a_terminal():
    raw = io.BytesIO()
    text = terminal._Text(raw, encoding="utf-8")
    text.write("a\x1b[2Jb\rc\x07\u202ed\n\te \x1b[1mbold\x1b[0m")
    text.flush()
    assert raw.getvalue().decode() == "a?[2Jb?c??d\n\te \x1b[1mbold\x1b[0m"


# --- every command of every game ------------------------------------------------------------------

STATES = {
    "press-your-luck/tiny": ["scores=0,1000,500", "earned=0,1,0"],
    "pig/tiny": ["mine=0", "yours=3", "turn=2"],
    "skunk/tiny": ["mine=0", "yours=3", "turn=4"],
    "goofspiel/tiny": ["mine=1,2,3,4", "theirs=1,2,3,4", "deck=1,2,3,4", "upcard=2"],
    "jackpot/tiny": ["open=1,2,3,4", "dice=3"],
}
DIFFERENT = {
    "press-your-luck/tiny": "max_whammies=2", "pig/tiny": "sides=4", "skunk/tiny": "sides=4",
    "goofspiel/tiny": "cards=3", "jackpot/tiny": "sides=4",
}  # fmt: skip


@pytest.mark.parametrize("board", STATES)
def test_no_command_prints_a_line_that_is_wider(board, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(terminal, "width", lambda out: 80)  # no terminal is here
    charts = [kind.name for kind in load_game(load_board(board)).need(Charts).kinds]
    state, change = STATES[board], DIFFERENT[board]
    near = ["--set", "frontier=1"] if board == "press-your-luck/tiny" else []
    wide = {}
    for words in (
        ["solve", board, "--dry-run"], ["solve", board, *near], ["query", board, *state],
        ["verify", board], ["info", board], ["status"], ["chart", "--list", board],
        *(["chart", board, "--what", name] for name in charts),
        ["evaluate", board, "--agents", "optimal", "--from", *state],
        ["evaluate", board, "--agents", "random", "--games", "20", "--from", *state],
        ["solve", board, *near, "--set", change, "--results", "other"],
        ["diff", board, str(tmp_path / "other")], ["info"], ["clean", "--results", "other"],
    ):  # fmt: skip
        if words[0] == "diff":
            words[-1] = str(next((tmp_path / "other").glob("*/*/*")).relative_to(tmp_path))
        code, out, err = command(*words)
        assert code in (0, 1), (words, err)
        lines = [line.rstrip() for line in (out + err).splitlines()]
        lines = [line for line in lines if len(line) > 80 and "luckbase " not in line]
        if lines:
            wide[" ".join(words)] = lines[:3]
    assert not wide
