"""Scenes: everything that a state says is on the sheet, and nothing else is."""

import re

import pytest

from luckbase.game import check_game, load_game_file
from luckbase.solver.game.capabilities import Drawing, scene_of
from luckbase.solver.scene import (
    BAD,
    GONE,
    GOOD,
    KINDS,
    ROLES,
    UP,
    Box,
    Counter,
    Die,
    Words,
    listed,
    plain_scene,
)
from luckbase.solver.search.expand import expand
from tests.places import BOARDS, ROOT
from tests.solving import load_board, load_game

LUCK = {"scores": "0,8000,3000", "earned": "0,2,0", "passed": "0,1,0", "whammies": "1,0,3"}
STARTS = [
    ("press-your-luck/1985-02", LUCK),
    ("press-your-luck/tiny", {"scores": "0,500,0", "earned": "2,1,1", "whammies": "3,0,0"}),
    ("goofspiel/win", {"mine": "1,2,5,9", "theirs": "2,3,4,8", "deck": "1,4,5,9", "lead": "-3"}),
    ("goofspiel/tiny", {}),
    ("jackpot/seed", {}),
    ("jackpot/shut-the-box", {"open": "1,2,3,9", "dice": "3,4"}),
    ("skunk/tiny", {}),
    ("pig/tiny", {}),
    ("pig/piglet", {}),
    ("pig/rounds", {"mine": "0", "yours": "3", "turn": "2", "round": "9"}),
]
UNSAID = {"player", "rolls"}
"""Columns that words say, not a box: who acts is marked."""


def game_of(board, **options):
    return load_game(load_board(BOARDS / f"{board}.toml", **options))


def start_of(game, words):
    if words:
        return dict(words)
    return game.describe(game.needed_start())


def states_below(game, words, steps=6):
    """The states of plays: of the first, the middle and the last edge, again and again."""
    for k in range(3):
        state = game.parse(words).reshape(1, -1)
        for _ in range(steps):
            yield game.describe(state[0])
            children = expand(game, state).children
            if not len(children):
                break
            state = children[[0, len(children) // 2, len(children) - 1][k]].reshape(1, -1)


def boxes(scene, kind="", field=""):
    return [
        s for s in (*scene.backdrop.shapes, *scene.shapes)
        if isinstance(s, Box) and kind in ("", s.kind) and field in ("", s.field)
    ]  # fmt: skip


def dice(scene):
    return [s for s in scene.shapes if isinstance(s, Die)]


def shown(scene, column):
    """What the sheet says of a column of the state."""
    match column:
        case "upcard":
            return {box.value for box in boxes(scene, field="deck") if box.role == UP} or {"0"}
        case "round":
            return {box.value for box in boxes(scene, field="round") if box.role == UP} or {"11"}
        case "lead":
            texts = " ".join(shape.text for shape in scene.shapes if isinstance(shape, Words))
            result = re.search(r"player (1|2) leads by (\d+)", texts)
            assert result or "level" in texts
            return {("-" if result[1] == "2" else "") + result[2] if result else "0"}
        case "turn":
            return {box.value for box in boxes(scene, field="turn")} or {"0"}
    if column.startswith("dice"):
        return {str(die.face or 0) for die in dice(scene)} | {"0"}
    return {box.value for box in boxes(scene, field=column)}


@pytest.mark.parametrize(("board", "words"), STARTS, ids=[board for board, _ in STARTS])
def test_all_that_a_state_says_is_on_the_sheet(board, words):
    game = game_of(board)
    sets = {field.name for field in game.fields if field.is_set}
    for state in states_below(game, start_of(game, words)):
        scene = scene_of(game, state)
        for column, value in zip(game.columns, game.fields.read(state).tolist(), strict=True):
            if column in sets:
                there = {int(b.value) for b in boxes(scene, field=column) if b.role != GONE}
                assert there == {k + 1 for k in range(16) if value >> k & 1}
            elif column.startswith("dice"):
                assert str(value) in shown(scene, column)
            elif column not in UNSAID:
                assert shown(scene, column) == {str(value)}, column


@pytest.mark.parametrize(("board", "words"), STARTS, ids=[board for board, _ in STARTS])
def test_every_shape_is_on_the_sheet_and_of_a_known_kind(board, words):
    game = game_of(board)
    for state in states_below(game, start_of(game, words)):
        scene = scene_of(game, state)
        assert scene.title and scene.about.endswith(".") and "\n" not in scene.about
        for shape in (*scene.backdrop.shapes, *scene.shapes):
            assert shape.role in ROLES
            left, top, right, bottom = edges(shape)
            assert left >= 0 and top >= 0 and right <= scene.wide and bottom <= scene.high, shape
            if isinstance(shape, Box):
                assert shape.kind in KINDS
                longest = max(map(len, shape.lines), default=0)
                assert longest * shape.size * 0.62 <= shape.wide + 0.1, shape  # letters, at most
                assert len(shape.lines) * shape.size * 1.25 <= shape.high + 2, shape


def edges(shape):
    match shape:
        case Box():
            return shape.x, shape.y, shape.x + shape.wide, shape.y + shape.high
        case Counter():
            return (shape.x - shape.radius, shape.y - shape.radius, shape.x + shape.radius,
                    shape.y + shape.radius)  # fmt: skip
        case Die():
            return shape.x, shape.y, shape.x + shape.wide, shape.y + shape.wide
    wide = len(shape.text) * shape.size * 0.5
    remaining = {"start": 0.0, "middle": wide / 2, "end": wide}[shape.at]
    return (shape.x - remaining, shape.y - shape.size / 2, shape.x - remaining + wide,
            shape.y + shape.size / 2)  # fmt: skip


# --- each game ---------------------------------------------------------------------------------


def test_three_desks_and_the_eighteen_squares_clockwise():
    game = game_of("press-your-luck/1985-02")
    scene = scene_of(game, LUCK)
    assert scene.title == "player 2 is up"
    assert "Player 2: $8,000, 2 earned and 1 passed spins, no whammies." in scene.about
    assert [desk.role for desk in boxes(scene, "desk")] == ["", UP, ""]
    had = [s for s in scene.shapes if isinstance(s, Counter) and s.role == BAD]
    assert len(had) == 1 + 3
    squares = boxes(scene, "square")
    assert len(squares) == 18 and len({(s.x, s.y) for s in squares}) == 18
    corners = [(s.x, s.y) for s in (squares[0], squares[5], squares[9], squares[14])]
    (a, b), (c, d), (e, f), (g, h) = corners
    assert a == g < c == e and b == d < f == h
    steps = [abs(first.x - second.x) + abs(first.y - second.y) for first, second in
             zip(squares, squares[1:] + squares[:1], strict=True)]  # fmt: skip
    assert max(steps) <= 110  # each beside the next, all the way round
    slides = [slide.lines[0] for slide in boxes(scene, "slide")]
    assert slides[:3] == ["$1,400", "$1,750", "$2,250"] and slides[9] == "$3,000 + spin"
    assert {s.lines[0] for s in boxes(scene, "slide") if s.role == BAD} == {"whammy"}
    assert all("+ spin" in s.lines[0] for s in boxes(scene, "slide") if s.role == GOOD)


def test_the_chances_that_slides_say_are_those_of_a_spin():
    game = game_of("press-your-luck/1985-02")
    message = [slide.about.rpartition(", ")[2] for slide in boxes(scene_of(game, LUCK), "slide")]
    chances = [float(text.split("%")[0]) / 100 for text in message if "%" in text]
    assert len(chances) == 54 - 6 and sum(chances) == pytest.approx(1, abs=54 * 0.5e-4)


def test_a_game_that_is_over_says_who_has_won_and_who_is_out():
    game = game_of("press-your-luck/tiny")
    over = scene_of(game, {"scores": "0,1500,3000", "whammies": "4,0,0"})
    assert over.title == "the game is over: player 3 has won"
    assert [desk.role for desk in boxes(over, "desk")] == [GONE, "", GOOD]
    level = scene_of(game, {"scores": "500,1500,1500"})
    assert level.title == "the game is over: player 2 and player 3 share the win"


def test_the_cards_shown_are_those_that_were_named():
    game = game_of("goofspiel/points")
    words = {"mine": "3,13", "theirs": "7,11", "deck": "2,12", "upcard": "12"}
    scene = scene_of(game, words)
    stored = {f: [b.lines[0] for b in boxes(scene, "card", f) if b.role != GONE]
            for f in ("mine", "theirs", "deck")}  # fmt: skip
    assert stored == {"mine": ["3", "13"], "theirs": ["7", "11"], "deck": ["2", "12"]}
    assert scene.title == "the 12 is turned up; both bid"


# --- a game without a drawing of its own -------------------------------------------------------


def test_a_game_of_ones_own_gets_a_plain_drawing_of_its_fields(tmp_path):
    load_game_file(ROOT / "tests/games/climb.py")
    (tmp_path / "hill.toml").write_text('game = "climb"\n')
    board = load_board(tmp_path / "hill.toml")
    assert check_game(board)
    game = load_game(board)
    assert not game.has(Drawing)
    scene = scene_of(game, {"steps": (4, 0), "turns": 5})
    assert [(b.field, b.lines) for b in boxes(scene, "plate")] == [
        ("steps_1", ("4",)), ("steps_2", ("0",)), ("turns", ("5",)),
    ]  # fmt: skip
    assert scene.about == "steps: 4, 0; turns: 5."


def test_the_plain_drawing_of_sets_and_of_what_is_not_there():
    from luckbase.solver.game.fields import Field, set_field

    fields = [set_field("open", 14), Field("dice", 2, low=1, high=6, default=0, blank=0)]
    scene = plain_scene(fields, [0b10000000000101, 0, 0], "tiles")
    tiles = boxes(scene, "tile")
    assert [t.value for t in tiles if t.role == ""] == ["1", "3", "14"] and len(tiles) == 14
    assert tiles[13].y > tiles[0].y  # a second row
    assert [b.lines for b in boxes(scene, "plate")] == [("–",), ("–",)]
    assert max(edges(s)[3] for s in scene.shapes) <= scene.high


def test_listed():
    assert [listed(["1", "2", "5"][:n]) for n in range(4)] == ["none", "1", "1 and 2", "1, 2 and 5"]
