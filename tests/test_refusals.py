"""Every refusal of `refusals.toml` is one sentence with exit code 2 that leaves no file; Python
raises the sentence that the command line prints."""

import io
import re
import shlex
import tomllib

import pytest

import luckbase
from luckbase.game import load_game
from luckbase.solver.game.capabilities import FullTable
from tests.jobs.web.serving import PAGE, id_of
from tests.places import BOARDS, ROOT
from tests.solver.board.board_files import assert_one_sentence

DATA = tomllib.loads((ROOT / "tests/refusals.toml").read_text(encoding="utf-8"))
CASES = [(group, *case) for group in DATA["group"] for case in group["cases"]]


def cases_of(*kinds):
    """The parameters of the groups of these kinds: the group, what is asked, the sentence."""
    result = [
        pytest.param(group, query, sentence, id=f"{group['title']}: {sentence}")
        for group, *query, sentence in CASES
        if group["kind"] in kinds
    ]
    assert result
    return pytest.mark.parametrize(("group", "asked", "sentence"), result)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The folder in which commands run, with nothing in it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def table(table_of):
    """table(name) -> the table of a name in `refusals.toml`."""

    def found(name):
        settings = dict(DATA["tables"][name])
        return str(table_of(BOARDS / f"{settings.pop('board')}.toml", **settings))

    return found


@pytest.fixture
def refused(command, here):
    """Run a command that is refused; the sentence that it prints."""

    def call(words, sentence, code=2, prints=False):
        before = files_of(here)
        result, out, err = command(*words)
        assert result == code, err
        assert out == "" or prints
        *_, last = err.splitlines()
        assert last == err.strip() or prints
        assert_said(sentence, last)
        assert files_of(here) == before
        return last.removeprefix("luckbase: ")

    return call


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


def assert_same(printed, text):
    """The command line prints the sentence that Python raises; advice names options."""
    assert text.split("; ")[0].split(": ", 1)[-1] in printed.replace("--set ", "")


def assert_said(sentence, text):
    """A sentence has these words; "…" stands for some that are left out."""
    assert re.search(".*".join(map(re.escape, sentence.split(" … "))), text), text


def raised(sentence, call, *given, **named):
    """The sentence that a call raises, for exit code 2."""
    with pytest.raises(luckbase.LuckbaseError) as caught:
        call(*given, **named)
    assert caught.value.exit_code == 2
    assert_one_sentence(caught.value)
    assert_said(sentence, str(caught.value))
    assert " --" not in str(caught.value)  # options are of the command line
    return str(caught.value)


def settings_of(options):
    """The words of a command for options of a board."""
    return [word for name, value in options.items() for word in ("--set", f"{name}={value}")]


def fields_of(text):
    return dict(word.split("=", 1) for word in text.split())


@cases_of("file")
def test_a_board_file(group, asked, sentence, refused, here):
    old, new = asked if len(asked) == 2 else (group["line"], *asked)
    text = group.get("text") or (BOARDS / f"{group['board']}.toml").read_text(encoding="utf-8")
    assert re.search(f"^{re.escape(old)}", text, re.MULTILINE), old
    text = re.sub(f"^{re.escape(old)}", lambda _: new, text, count=1, flags=re.MULTILINE)
    (here / "x.toml").write_text(text, encoding="utf-8")
    message = raised(sentence, luckbase.load_board, "x.toml")
    assert message.startswith("x.toml: ")
    assert_same(refused(["info", "x.toml"], sentence), message)


@cases_of("option", "board")
def test_a_board_and_its_options(group, asked, sentence, refused):
    options = fields_of(*asked) if group["kind"] == "option" else {}
    board = group.get("board", asked[0])
    text = raised(sentence, luckbase.load_board, board, **options)
    assert_same(refused(["solve", board, *settings_of(options)], sentence), text)


@cases_of("layout")
def test_a_board_without_a_full_table(group, asked, sentence):
    board, *options = asked[0].split()
    game = load_game(luckbase.load_board(board, **fields_of(" ".join(options))))
    assert not game.has(FullTable)
    raised(sentence, game.need, FullTable)


@cases_of("state")
def test_a_state(group, asked, sentence, refused, table):
    words, options = asked[0].split(), group.get("options", {})
    if "table" in group:
        command = ["query", table(group["table"]), *words]
        with luckbase.open(command[1]) as opened:
            text = raised(sentence, opened.ask, fields_of(*asked))
    else:
        game = load_game(luckbase.load_board(group["board"], **options))
        text = raised(sentence, game.parse, fields_of(*asked))
        command = ["solve", group["board"], *settings_of(options), "--dry-run", "--from", *words]
    assert_same(refused(command, sentence), text)


@cases_of("chart", "where")
def test_a_chart_and_rows_of_a_table(group, asked, sentence, refused, table):
    name = table(group["table"])
    with luckbase.open(name) as opened:
        if group["kind"] == "where":
            text = raised(sentence, opened.to_arrow, *asked)
            command = ["export", name, *asked]
        else:
            chart, *words = asked[0].split()
            text = raised(sentence, opened.chart, chart, fields_of(" ".join(words)))
            command = ["chart", name, "--what", chart, *words]
    assert_same(refused(command, sentence), text)


@cases_of("batch")
def test_a_batch(group, asked, sentence, refused, table, here):
    file, content = asked
    (here / file).write_bytes(content.encode("latin-1"))
    words = ["query", table(group["table"]), "--batch", file]
    for more in ([], ["--actions", "--out", "out.csv"]):
        refused([*words, *more], sentence)


@cases_of("lines")
def test_a_game_that_is_followed(group, asked, sentence, refused, monkeypatch):
    *lines, last = asked[0].split(" / ")
    options = group.get("options", {})
    with luckbase.advise(group["board"], max_states=5, **options) as game:
        for line in lines:
            game.take(line)
        text = raised(sentence, game.say, last)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*lines, "", "# a comment", last])))
    words = ["advise", group["board"], "--max-states", "5", *settings_of(options)]
    number = len(lines) + 3
    result = refused(words, sentence, prints=True)
    assert result == f"line {number}: '{last}': {text}"


@cases_of("author")
def test_a_mistake_of_an_author(group, asked, sentence, refused, here, own_games):
    text = (ROOT / "tests/games/climb.py").read_text(encoding="utf-8")
    old, new = asked
    assert old in text
    (here / "climb.py").write_text(text.replace(old, new), encoding="utf-8")
    (here / "hill.toml").write_text('game = "climb"\n')
    refused(["solve", "hill.toml", "--game", "climb.py"], sentence)


@cases_of("command")
def test_a_command(group, asked, sentence, refused, table, here, monkeypatch):
    for name in group.get("files", ()):
        path = here / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text('game = "pig"\n')
    words = [table(word) if word in DATA["tables"] else word for word in shlex.split(*asked)]
    while re.match("[A-Z_]+=", words[0]):
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    refused(words, sentence, group.get("code", 2), group.get("prints", False))


@cases_of("http")
def test_an_address_of_the_server(group, asked, sentence, client):
    address = asked[0].replace("{id}", id_of(client, "pig"))
    reply, page = client.get(address), client.get(address, headers=PAGE)
    assert 'role="alert"' in page.text and page.status_code == reply.status_code
    assert reply.status_code in (400, 404)
    assert set(reply.json()) <= {"error", "field"}
    assert_said(sentence, reply.json()["error"])
    assert_one_sentence(reply.json()["error"])
