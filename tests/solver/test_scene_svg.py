"""A scene as SVG: well-formed, in words too, readable without any colour, safe in any page."""

import re
from xml.etree import ElementTree

import pytest

from luckbase.solver.game.capabilities import scene_of
from luckbase.solver.scene import PIPS, ROLES, STYLE, Box, Counter, Die, Scene, Words, svg
from tests.solver.test_scene import STARTS, game_of, start_of

SVG = "{http://www.w3.org/2000/svg}"
EVIL = '<script>"&'


@pytest.mark.parametrize(("board", "words"), STARTS, ids=[board for board, _ in STARTS])
def test_a_drawing_may_stand_in_any_page_as_often_as_one_likes(board, words):
    game = game_of(board)
    scene = scene_of(game, start_of(game, words))
    text = svg(scene)
    root = ElementTree.fromstring(text)
    every = list(root.iter())
    assert {e.tag.removeprefix(SVG) for e in every} <= {
        "svg", "title", "desc", "g", "rect", "circle", "text",
    }  # fmt: skip
    names = {name for element in every for name in element.attrib}
    assert not names & {"id", "style", "href"} and not any(n.startswith("on") for n in names)
    assert root.get("viewBox") == f"0 0 {scene.wide:g} {scene.high:g}"
    assert root.get("role") == "img" and "width" not in root.attrib
    assert root.findtext(f"{SVG}title") == scene.title
    assert root.findtext(f"{SVG}desc") == scene.about
    colours = {e.get("fill") for e in every} | {e.get("stroke") for e in every}
    assert colours <= {None, "none", "currentColor"}  # tints are the style sheet's alone


def test_every_box_and_its_words_are_drawn():
    game = game_of("jackpot/seed")
    scene = scene_of(game, {"open": "1,9", "dice": "3,4"})
    root = ElementTree.fromstring(svg(scene))
    boxes = [s for s in scene.shapes if isinstance(s, Box)]
    dice = [s for s in scene.shapes if isinstance(s, Die)]
    assert len(root.findall(f".//{SVG}rect")) == len(boxes) + len(dice)
    text = [e.text for e in root.iter(f"{SVG}text")]
    assert text[:9] == [str(k) for k in range(1, 10)]
    pips = [e for e in root.iter(f"{SVG}circle") if e.get("class") == "s-pip"]
    assert len(pips) == 3 + 4
    data = {(e.get("data-field"), e.get("data-value")) for e in root.iter(f"{SVG}g")}
    assert ("open", "9") in data


def test_words_can_not_end_an_element():
    shapes = (Box("card", 0, 0, 9, 9, (EVIL,), about=EVIL, field=EVIL, value=EVIL),
              Words(EVIL, 1, 1), Counter(3, 3, 3, EVIL, about=EVIL))  # fmt: skip
    text = svg(Scene(EVIL, EVIL, 10, 10, shapes))
    root = ElementTree.fromstring(text)
    assert "<script" not in text and root.findtext(f"{SVG}title") == EVIL


def test_a_die_has_as_many_pips_as_it_shows():
    assert {face: len(index) for face, index in PIPS.items()} == {
        face: face for face in range(1, 10)
    }
    ten = svg(Scene("t", "a.", 9, 9, (Die(0, 0, 9, 4, 10),)))
    assert "s-pip" not in ten and ">4</text>" in ten  # of ten sides: a number


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_letters_on_every_tint_have_the_contrast_of_wcag_aa_in_both_themes():
    both = r"--s-(\w+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)"
    tints = {name: themes for name, *themes in re.findall(both, STYLE.read_text(encoding="utf-8"))}
    assert len(tints) == 9
    for ink, *others in zip(tints.pop("ink"), *tints.values(), strict=True):
        for tint in others:
            dark, light = sorted((luminance(tint), luminance(ink)))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, tint
    for lit in re.findall(r"s-slide\S* > rect \{ fill: (#[0-9a-f]{6})", STYLE.read_text()):
        assert 1.05 / (luminance(lit) + 0.05) >= 4.5, lit  # white letters


def test_the_style_sheet_knows_what_is_drawn():
    text = STYLE.read_text(encoding="utf-8")
    for role in set(ROLES) - {""}:
        assert f".s-{role} " in text
    assert Scene("t", "a.", 9, 9, ())._repr_html_().startswith(f"<style>{text}</style>")
