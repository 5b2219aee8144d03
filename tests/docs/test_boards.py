"""The pages of the games and docs/reference/boards.md are held to the models of the boards, and to
the boards themselves."""

import re
from pathlib import Path

import pytest

from luckbase.solver.board import registry
from luckbase.solver.board.model import options_of
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.games.press_your_luck.outcomes import read_slide
from tests import solving
from tests.docs.generated import PAGES, PART, STATES, pictures, with_parts
from tests.places import ROOT

TEXT = (ROOT / "docs/reference/boards.md").read_text(encoding="utf-8")


def section(game):
    """What the page says of a game."""
    return TEXT.split(f"\n## {game}\n")[1].split("\n## ")[0]


def options(game):
    """The table of its options."""
    return section(game).split("<!-- generated: options of")[1].split("<!-- end")[0]


GENERATED = [page for page in PAGES if PART.search(page.read_text(encoding="utf-8"))]
BOARDS = [solving.load_board(path) for path in sorted((ROOT / "boards").glob("*/*.toml"))]
PICTURES = pictures()
MODELS = {board.game: type(board) for board in BOARDS}


def test_every_game_has_its_section():
    assert len(MODELS) >= 6
    assert {*MODELS} == {*re.findall(r"^## (.+)$", TEXT, re.MULTILINE)}


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: str(page.name))
def test_tables_of_fields_options_and_charts_are_the_games_own(page):
    text = page.read_text(encoding="utf-8")
    assert with_parts(text) == text, "run python -m tests.docs.generated"


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: str(file.name))
def test_drawn_states_are_those_of_the_program(file):
    assert file.read_text(encoding="utf-8") == PICTURES[file], "run python -m tests.docs.generated"
    page = ROOT / f"docs/games/{file.stem.removesuffix('-state')}.md"
    _, state = STATES[page.stem]
    assert f"(../pictures/{file.name})" in page.read_text(encoding="utf-8")
    assert state in page.read_text(encoding="utf-8"), f"{page.name}: say what is drawn"


@pytest.mark.parametrize("game", MODELS)
def test_every_option_of_a_game_is_in_its_table(game):
    rows = re.findall(r"^\| `([a-z_]+)` \| .+ \|$", options(game), re.MULTILINE)
    shared = re.findall(r"`([a-z_]+)`", section(game).split("<!-- generated: options of")[0])
    assert sorted(rows + shared) == sorted(MODELS[game].options())


def games():
    """Each game on all of our boards, and where states count the rolls."""
    result = {game: [] for game in MODELS}
    for board in BOARDS:
        counts = "count_rolls" in board.options() and not board.name.endswith("-double")
        for settings in [{}, {"count_rolls": "true"}][: 1 + counts]:
            made = solving.load_board(board.source.file, **settings)
            result[board.game].append(solving.load_game(made))
    return result


GAMES = games()


@pytest.mark.parametrize("game", MODELS)
def test_every_field_option_and_chart_of_a_game_has_its_text(game):
    """The examples of the fields are a state."""
    title, about = registry.described(game)
    assert title != game and len(re.findall(r"[.?](?= |$)", about)) == 2, about
    texts = {}
    for result in GAMES[game]:
        options = options_of(result.board).items()
        texts |= {option: field.description for option, (_, field) in options}
        texts |= {field.name: field.help for field in result.fields}
        charts = result.get(Charts)
        texts |= {kind.name: kind.reading for kind in charts.kinds} if charts else {}
        words = {field.name: field.sample for field in result.fields}
        text = result.describe(result.parse(words))
        assert all(words.values()) and text.keys() == words.keys(), words
    for name, text in texts.items():
        assert text and re.fullmatch(r"[A-Z(].{10,170}\.", text), (name, text)


def test_every_board_begins_with_a_sentence():
    for board in BOARDS:
        first = Path(board.source.file).read_text(encoding="utf-8").splitlines()[0]
        assert re.fullmatch(r"# [A-Z].{10,45}\.", first), board.source.file


def test_every_slide_in_the_table_is_one():
    table = section("press-your-luck").split("| slide |")[1].split("\n\n")[0]
    slides = [s for s in re.findall(r"`\"?([^`\"]+)\"?`", table) if s[0].isdigit() or " " in s or
              s in ("prize", "whammy", "double", "across")]  # fmt: skip
    kinds = {read_slide(int(s) if s.isdecimal() else s).kind for s in slides}
    assert kinds == {
        "money", "prize", "whammy", "go back", "advance", "move one", "pick a corner",
        "big bucks", "across", "double", "money or lose a whammy", "lose a whammy", "to",
    }  # fmt: skip


def test_the_boards_own_keys_are_named():
    for name in MODELS["press-your-luck"].model_fields:
        assert name == "name" or re.search(rf"[`\[]{name}\b|\b{name} =", TEXT), name
