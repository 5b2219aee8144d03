"""The page in a real browser: every game's tiny table, with the mouse, with the keyboard alone, on
a phone, in light and dark; and not a word in the console (`browsing`).
"""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.jobs.web.browsing import (
    GAMES,
    STATES,
    expect,
    faults,
    id_of,
    numbers,
    only_refusals,
    queried,
)

EDITS = {
    "press-your-luck": ("scores, player 1", "1500", "scores=1500,1000,500"),
    "goofspiel": ("upcard", "4", "upcard=4"),
    "jackpot": ("dice", "3", "dice=3"),
    "pig": ("turn", "7", "turn=7"),
    "skunk": ("turn", "7", "turn=7"),
}
"""A field by its label, what is written there, and what the address says then."""
CHOICES = [game for game in GAMES if game != "goofspiel"]
"""The games in which one chooses at a time."""
# --- the explorer ---------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_every_table_opens_from_the_list_and_is_drawn(game, visitor, tables):
    page = visitor.go("")
    assert page.locator("li.table").count() == len(tables)
    page.locator(f"li.table a[href*='{id_of(tables[game])}/state']").first.click()
    expect(page.locator(".verdict h1")).to_be_visible()
    drawn = page.locator(".drawing svg")
    expect(drawn).to_have_attribute("role", "img")
    assert drawn.bounding_box()["width"] > 200
    assert page.title().endswith("· luckbase")


@pytest.mark.parametrize("game", GAMES)
def test_the_page_says_the_numbers_of_query(game, visitor, tables, address):
    page = visitor.go(address(game))
    expect(page.locator(".split")).to_be_visible()
    said = queried(tables[game], dict(parse_qsl(STATES[game])))
    assert numbers(page.locator(".split")) == said["value"]
    rows = page.locator("table.actions tbody tr").all()
    assert len(rows) == len(said["actions"]) > 1
    for row, action in zip(rows, said["actions"], strict=True):
        assert row.locator("th").inner_text() == action["action"]
        assert numbers(row) == action["value"]
    if game in CHOICES:
        assert said["best"] in page.locator("h1").inner_text()
    for side, bids in enumerate(said.get("strategies") or []):
        shown = numbers(page.locator(".sides > div").nth(side))
        assert shown == [b["chance"] for b in bids if b["chance"] > 1e-9 or b["most"] > 1e-4]


@pytest.mark.parametrize("game", GAMES)
def test_edit_a_field_take_an_action_and_an_outcome_and_go_back(game, visitor, address):
    page = visitor.go(address(game))
    label, text, said = EDITS[game]
    field = page.get_by_label(label, exact=True)
    if field.evaluate("each => each.tagName") == "SELECT":
        field.select_option(text)
    else:
        field.fill(text)
    expect(page).to_have_url(re.compile(re.escape(said)))
    visitor.drawn()
    edited = page.url
    action = page.locator("table.actions .act").nth(1)
    action.click()
    expect(page).not_to_have_url(edited)
    visitor.drawn()
    if page.locator("table.actions .act[aria-pressed=true]").count():  # chance comes next
        chosen = page.url
        page.locator("table.outcomes tbody a").first.click()
        expect(page).not_to_have_url(chosen)
        expect(page.locator(".path li")).to_have_count(3)
        page.go_back()
        expect(page).to_have_url(chosen)
    page.go_back()
    expect(page).to_have_url(edited)
    page.go_back()
    expect(page).to_have_url(visitor.site + address(game))


def test_outcomes_together_are_worth_the_action(visitor, address):
    page = visitor.go(address("pig"))
    roll = page.locator("table.actions tr", has_text="roll")
    roll.get_by_role("button").click()
    expect(roll.get_by_role("button")).to_have_attribute("aria-pressed", "true")
    chances, then = [], []
    for row in page.locator("table.outcomes tbody tr").all():
        chances.append(float(row.locator("td").first.get_attribute("title").split()[0]) / 6)
        then.append(numbers(row)[0])
    assert sum(chances) == pytest.approx(1)
    mean = sum(c * v for c, v in zip(chances, then, strict=True))
    assert mean == pytest.approx(numbers(roll)[0])


def test_the_path_leads_back_and_an_address_says_all(visitor, address):
    page = visitor.go(address("pig"))
    for step in range(3):
        page.locator("table.outcomes tbody a").nth(1).click()
        expect(page.locator(".path li")).to_have_count(step + 2)
    page.locator(".path li a").nth(1).click()
    expect(page.locator(".path li")).to_have_count(2)
    shown, where = numbers(page.locator(".split")), page.url
    page.goto("about:blank")
    page.goto(where)
    expect(page.locator(".split")).to_be_visible()
    assert numbers(page.locator(".split")) == shown


def test_the_main_line_goes_to_the_end(visitor, address):
    page = visitor.go(address("jackpot", query="open=1,2,3,4"))
    page.get_by_text("Main line").click()
    steps = page.locator(".mainline li")
    expect(steps.first).to_be_visible()
    assert steps.count() >= 3
    steps.last.get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("The game is over")


def test_a_random_state_gets_an_address_of_its_own(visitor, tables, address):
    page = visitor.go(address("skunk"))
    page.get_by_role("button", name="A random state").click()
    expect(page).not_to_have_url(re.compile(r"random|mine=3&yours=8&turn=4$"))
    visitor.drawn()
    assert numbers(page.locator(".split")) == queried(tables["skunk"], visitor.fields())["value"]


@pytest.mark.parametrize(
    ("game", "label", "wrong", "sentence"),
    [
        ("press-your-luck", "scores, player 2", "1010", "1010 is not a multiple of 500"),
        ("press-your-luck", "earned, player 1", "many", "'many' is not a whole number"),
        ("skunk", "mine", "", "mine is missing"),
        ("jackpot", "dice", "7", "dice"),
        ("pig", "turn", "99", "turn"),
    ],
)
def test_bad_input_is_a_sentence_beside_its_field(game, label, wrong, sentence, visitor, address):
    page = visitor.go(address(game))
    before = numbers(page.locator(".split"))
    page.get_by_label(label, exact=True).fill(wrong)
    beside = page.locator(".row, .slider").filter(has=page.get_by_label(label, exact=True))
    expect(beside.locator(".wrong")).to_contain_text(sentence)
    expect(page.get_by_label(label, exact=True)).to_have_value(wrong)
    expect(page.get_by_label(label, exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page).to_have_url(visitor.site + address(game))
    assert numbers(page.locator(".split")) == before
    only_refusals(visitor)


def test_an_address_that_is_wrong_says_so(visitor, address):
    page = visitor.go(address("pig"))
    page.goto(visitor.site + address("pig", query="mine=3&yours=8&turns=4"))
    expect(page.locator(".verdict [role=alert]")).to_contain_text("unknown field 'turns'")
    page.goto(visitor.site + "#/t/no~such~table/state")
    expect(page.locator("main [role=alert]")).to_contain_text("unknown table")
    for nowhere in ("#/nowhere", f"#/t/%E0{address('pig')[3:]}", "#/t/%E0/state", "#/%"):
        visitor.go(nowhere)
        expect(page.locator("main [role=alert]")).to_contain_text("no such page")
    only_refusals(visitor)


# --- play -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_a_game_is_played_to_its_end_and_its_decisions_priced(game, visitor, tables, address):
    start = STATES[game] if game == "press-your-luck" else ""
    page = visitor.go(address(game, "play", start))
    if game == "press-your-luck":
        page.get_by_label("you are").select_option("2")
    page.get_by_label("seed of the dice").fill("7")
    page.get_by_role("button", name="Begin").click()
    expect(page.locator(".move").first).to_be_visible()
    page.get_by_role("button", name="Show what they are worth").click()
    expect(page.locator(".hinted").first).to_be_visible()
    for taken in range(60):
        visitor.drawn()
        moves = page.locator(".move").all()
        if not moves:
            break
        moves[taken % len(moves)].click()
    expect(page.locator(".moves")).to_have_count(0)
    decided = page.get_by_role("region", name="Your decisions")
    expect(decided).to_contain_text(re.compile("decision|cost"))
    rows = page.locator("table.decisions tbody tr").all()
    assert rows
    for row in rows if game in CHOICES else []:
        where = urlsplit(urlsplit(row.get_by_role("link").get_attribute("href")).fragment).query
        answer = queried(tables[game], dict(parse_qsl(where)))
        own, values = answer["to_act"] - 1, {a["action"]: a["value"] for a in answer["actions"]}
        cost = answer["value"][own] - values[row.locator("td").first.inner_text()][own]
        shown = row.locator("td").last.inner_text()
        assert (0 if shown == "none" else float(shown.removesuffix(" pp"))) == pytest.approx(
            100 * cost, abs=0.0051
        )


def test_a_move_is_taken_back(visitor, address):
    page = visitor.go(address("pig", "play", "seed=3&seat=1&against=random"))
    first = page.locator(".log").inner_text()
    page.get_by_role("button", name="roll").click()
    expect(page.locator(".log")).not_to_have_text(first)
    page.get_by_role("link", name="Take back").click()
    expect(page.locator(".log li")).to_have_count(len(first.splitlines()))
    assert page.locator(".log").inner_text() == first


# --- for everybody --------------------------------------------------------------------------------


def every_view(address):
    """Each view once, with all that it can show."""
    return {
        "list": "",
        **{game: address(game) for game in GAMES},
        "begin": address("pig", "play", ""),
        "play": address("pig", "play", "seed=3&seat=1&against=optimal&move=roll"),
        "no such state": address("pig", "state", "mine=3&yours=8&turns=4"),
        "no such page": "#/nowhere",
    }  # fmt: skip


VIEWS = [
    "list", *GAMES, "begin", "play", "no such state", "no such page",
]  # fmt: skip
"""What is looked at; the names of `every_view`."""


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_for_everybody(view, visitor, address):
    page = visitor.go(every_view(address)[view])
    assert faults(page) == []
    if view.startswith("no such"):
        only_refusals(visitor)


def tab_to(page, wanted, most=60):
    """Press Tab until what matches a selector has the keyboard, and shows it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert page.evaluate(outline) != "none" or "input" in wanted
            return
    raise AssertionError(f"{wanted} is not reached by Tab")


def test_the_keyboard_alone_is_enough(visitor, tables, address):
    page = visitor.go("")
    tab_to(page, f"h3 a[href*='{id_of(tables['pig'])}']")
    page.keyboard.press("Enter")
    expect(page.locator(".verdict h1")).to_be_visible()
    tab_to(page, "input[name=turn]")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page).to_have_url(re.compile("turn=2"))
    expect(page.locator("input[name=turn]")).to_be_focused()
    tab_to(page, "table.outcomes a")
    page.keyboard.press("Enter")
    expect(page).not_to_have_url(re.compile("turn=2(&|$)"))
    expect(page.locator("h1")).to_be_focused()
    assert page.locator("#said").inner_text() == page.locator("h1").inner_text()
    page.keyboard.press("Shift+Tab")
    tab_to(page, ".path li:nth-last-child(2) a")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("turn=2"))


def test_the_page_is_small_and_asks_once(visitor, address):
    sent = []
    visitor.page.on("response", lambda r: sent.append(int(r.headers.get("content-length", 0))))
    page = visitor.go(address("pig"))
    page.wait_for_load_state("networkidle")
    assert 10_000 < sum(sent) < 80_000
    assert all(url.startswith(visitor.site) for url in visitor.asked if url != "about:blank")
    visitor.asked.clear()
    page.locator("table.outcomes tbody a").first.click()
    expect(page.locator(".path li")).to_have_count(2)
    page.wait_for_load_state("networkidle")
    (asked,) = [url for url in visitor.asked if "/api/" in url]
    assert "/state?" in asked
