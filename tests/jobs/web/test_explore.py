"""Explore in a real browser: which table it is, a state that follows every change, the way back,
half a state, the keys; and the list, which says where to start."""

import re
from pathlib import Path

import pytest

from tests.jobs.web.browsing import expect, id_of, numbers, only_refusals, queried

PHONE = {"viewport": {"width": 390, "height": 844}}
NARROW = {"viewport": {"width": 320, "height": 640}}


def test_one_table_is_where_to_start(visitor, tables):
    page = visitor.go("")
    expect(page.get_by_role("heading", name="Press Your Luck", exact=True)).to_be_visible()
    expect(page.locator(".picture svg")).to_have_count(5)
    page.get_by_role("link", name="Start here").click()
    expect(page.locator(".verdict h1")).to_be_visible()
    assert id_of(tables["press-your-luck"]) in page.url


def test_the_head_says_which_table_and_leads_to_another(visitor, tables, address):
    page = visitor.go(address("press-your-luck"))
    table = page.get_by_role("region", name="The table")
    expect(table).to_contain_text("Press Your Luck")
    expect(table).to_contain_text("Three outcomes, seven scores")
    expect(table).to_contain_text("score_unit=500 · 226,527 states")
    table.get_by_text("Press Your Luck").click()
    expect(table.locator("dl")).to_contain_text("Dollars between scores")
    before = visitor.fields()
    other = id_of(tables["other"])
    page.get_by_label("Another table").select_option(other)
    expect(page).to_have_url(re.compile(re.escape(other)))
    expect(table).to_contain_text("third_place_spins=false")
    assert visitor.fields() == before
    shown = numbers(page.locator(".split"))
    assert shown == queried(tables["other"], before)["value"]
    page.get_by_label("Another table").select_option(id_of(tables["pig"]))
    expect(table).to_contain_text("One die, first to 20")
    expect(page.locator(".verdict h1")).to_contain_text("up")


def value_at(tables, page, **state):
    """The page shows the answer to a state of pig, and its address says it."""
    for name, value in state.items():
        expect(page).to_have_url(re.compile(f"{name}={value}(&|$)"))
    expect(page.locator("main:not([aria-busy])")).to_be_visible()
    assert numbers(page.locator(".split")) == queried(tables["pig"], state)["value"]


@pytest.mark.parametrize("visitor", [{"timezone_id": "UTC"}], indirect=True, ids=["own clock"])
def test_every_change_of_a_field_moves_the_answer(visitor, tables, address):
    visitor.page.clock.set_fixed_time(1e12)  # changes that are quick, however long they take
    page = visitor.go(address("pig", query="mine=3&yours=8&turn=4&player=1"))
    turn = page.get_by_label("turn", exact=True)
    page.get_by_label("turn: more").click()
    value_at(tables, page, mine="3", yours="8", turn="5")
    page.locator("input[type=range][data-field=turn]").fill("9")
    value_at(tables, page, mine="3", yours="8", turn="9")
    expect(turn).to_have_value("9")
    page.clock.set_fixed_time(1e12 + 1600)  # another change, not the same one going on
    turn.fill("12")
    value_at(tables, page, mine="3", yours="8", turn="12")
    expect(turn).to_be_focused()
    expect(page.locator(".path li")).to_have_count(3)
    page.get_by_role("button", name="Undo").click()
    value_at(tables, page, mine="3", yours="8", turn="9")
    page.locator("h1").click()
    page.keyboard.press("u")
    value_at(tables, page, mine="3", yours="8", turn="4")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    page.get_by_text("The last states").click()
    page.get_by_role("link", name="turn=12").click()
    value_at(tables, page, mine="3", yours="8", turn="12")


def test_a_set_of_cards_is_live_and_says_what_is_missing(visitor, tables, address):
    page = visitor.go(address("goofspiel"))
    before = numbers(page.locator(".split"))
    page.get_by_label("mine: 4").uncheck()
    expect(page.locator(".fields .wrong:visible")).to_have_count(1)
    assert numbers(page.locator(".split")) == before
    page.get_by_label("mine: 2").check()
    expect(page).to_have_url(re.compile("mine=1,2,3(&|$)"))
    expect(page.locator(".fields .wrong:visible")).to_have_count(0)
    visitor.drawn()
    assert (
        numbers(page.locator(".split")) == queried(tables["goofspiel"], visitor.fields())["value"]
    )
    only_refusals(visitor)


@pytest.mark.parametrize(
    ("game", "query", "said", "state"),
    [
        ("press-your-luck", "scores=0,1500,500", "this table begins: earned", r"earned=\d,\d,\d"),
        ("pig", "turn=3", "where this table begins: mine 0, yours 0", "mine=0&yours=0&turn=3"),
        ("pig", "mine=3&yours=8", "the usual: turn 0", "mine=3&yours=8$"),
    ],
)  # fmt: skip
def test_half_a_state_is_completed_and_says_so_first(
    game, query, said, state, visitor, tables, address
):
    page = visitor.go(address(game, query=query))
    expect(page.locator(".verdict h1 + p")).to_contain_text(said)
    expect(page.locator(".verdict h1")).not_to_contain_text("over")
    expect(page).to_have_url(re.compile(state))
    assert numbers(page.locator(".split")) == queried(tables[game], visitor.fields())["value"]


def test_keys_do_what_buttons_do_and_can_be_turned_off(visitor, address):
    page = visitor.go(address("pig"))
    page.keyboard.press("2")
    expect(page).not_to_have_url(re.compile("turn=4"))
    visitor.drawn()
    page.keyboard.press("u")
    expect(page).to_have_url(re.compile("turn=4"))
    visitor.drawn()
    page.keyboard.press("e")
    expect(page.locator("input[name=mine]")).to_be_focused()
    page.keyboard.press("u")  # who writes is not disturbed
    expect(page.locator("input[name=mine]")).to_have_value(re.compile("u"))
    expect(page.locator(".fields .wrong:visible")).to_contain_text("mine")
    page.get_by_text("Keys", exact=True).click()
    page.get_by_label("Letters and digits are keys").uncheck()
    url = page.url
    page.keyboard.press("r")
    page.wait_for_timeout(300)
    assert page.url == url
    only_refusals(visitor)


def test_why_stands_under_the_answer(visitor, address):
    with visitor.page.expect_response(re.compile("/state")) as reply:
        page = visitor.go(address("press-your-luck"))
    said = reply.value.json()["why"]
    assert said and page.locator(".why p").all_text_contents() == said


def test_differences_of_chances_are_percentage_points(visitor, tables, address):
    page = visitor.go(address("press-your-luck"))
    answer = queried(tables["press-your-luck"], visitor.fields())
    expect(page.locator(".verdict .lead")).to_contain_text(f"{100 * answer['margin']:.2f} pp")
    gains = page.locator(".swinging .n").all_inner_texts()
    assert gains and all(each.endswith(" pp") or each == "±0" for each in gains)


def test_amounts_that_are_no_slide_are_explained(visitor, address):
    page = visitor.go(address("press-your-luck"))
    expect(page.get_by_text("Amounts count in steps of $500")).to_be_visible()


@pytest.mark.parametrize("visitor", [PHONE, NARROW], indirect=True)
def test_on_a_phone_the_answer_is_first_and_the_board_can_be_read(visitor, address):
    page = visitor.go(address("press-your-luck"))
    head, board = (page.locator(each).bounding_box()["y"] for each in (".verdict h1", ".drawing"))
    assert head < board
    letters = """() => Math.min(...[...document.querySelectorAll(".drawing text")]
      .map(one => one.getBoundingClientRect().height))"""
    assert page.evaluate(letters) < 9
    page.get_by_role("button", name="Zoom in").click()
    assert page.evaluate(letters) > 12
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cost = page.locator("table.actions tbody tr").nth(1).locator("td").last
    box = cost.bounding_box()
    assert box["x"] + box["width"] <= page.viewport_size["width"]
    assert cost.evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.parametrize("visitor", [PHONE], indirect=True)
def test_the_numbers_of_the_main_line_do_not_meet(visitor, address):
    page = visitor.go(address("press-your-luck"))
    page.get_by_text("Main line").click()
    expect(page.locator(".mainline li").first).to_be_visible()
    boxes = page.evaluate(
        """() => [...document.querySelectorAll(".mainline li")].map(li =>
          [...li.querySelectorAll("a, .values > span")].map(one => {
            const {left, right, top, bottom} = one.getBoundingClientRect();
            return [left, right, top, bottom];
          }))"""
    )
    for line in boxes:
        for i, (l1, r1, t1, b1) in enumerate(line):
            for l2, r2, t2, b2 in line[i + 1 :]:
                assert r1 <= l2 or r2 <= l1 or b1 <= t2 or b2 <= t1


def test_a_click_leaves_no_ring(visitor, address):
    page = visitor.go(address("pig"))
    page.locator("table.outcomes tbody a").first.click()
    expect(page.locator("h1")).to_be_focused()
    ring = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(ring) == "none"
    page.keyboard.press("Tab")
    assert page.evaluate(ring) == "solid"


def test_an_answer_can_be_taken_along(visitor, address):
    page = visitor.go(address("press-your-luck"))
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    rows = [line.split(",") for line in Path(saved.value.path()).read_text().splitlines()]
    assert rows[0][:3] == ["what", "name", "chance"]
    assert [float(cell) for cell in rows[1][-4:-1]] == numbers(page.locator(".split"))
    chances = [float(row[-5]) for row in rows if row[0] == "outcome of play"]
    assert sum(chances) == pytest.approx(1)
    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG").click()
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")
