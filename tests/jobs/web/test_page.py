"""The page in a real browser shows what the API answers: every game's tiny table, with the mouse,
with the keyboard alone, on a phone, in light and dark; and the console stays empty (`browsing`)."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.jobs.web.browsing import STATES, expect, faults, id_of, numbers, only_refusals, queried
from tests.jobs.web.serving import GAMES

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
def test_a_table_opens_from_the_list_and_the_page_says_the_numbers_of_query(
    game, visitor, tables, address
):
    page = visitor.go("")
    assert page.locator("li.table").count() == len(tables)
    page.locator(f"li.table a[href*='{id_of(tables[game])}/state']").first.click()
    expect(page.locator(".board .drawing svg")).to_have_attribute("role", "img")
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


@pytest.mark.parametrize("game", GAMES)
def test_a_decision_is_told_what_it_cost_and_the_score_goes_on(game, visitor, tables, address):
    with visitor.page.expect_response(re.compile(r"/train\?")) as reply:
        page = visitor.go(address(game, "train", "seed=5"))
    said = reply.value.json()
    expect(page.get_by_role("heading", name="What do you do?")).to_be_visible()
    assert page.locator(".move").count() == len(said["choices"])
    worst = max(range(len(said["choices"])), key=lambda i: said["choices"][i]["cost"])
    page.keyboard.press(str(worst + 1))
    cost = said["choices"][worst]["cost"]
    head = page.locator("h1")
    expect(head).to_contain_text("costs")
    shown = float(re.search(r"[\d.]+(?= pp|$)", head.inner_text())[0])
    assert shown == pytest.approx(cost * (1 if game == "goofspiel" else 100), abs=0.006)
    assert page.locator(".why p").all_text_contents() == said["why"]
    fields = {name: value for name, value in (w.split("=") for w in said["query"].split("&"))}
    answer = queried(tables[game], fields)
    best = [each["action"] for each in said["choices"] if each["best"]]
    assert answer["best"] in best or answer["best"] is None
    expect(page.locator(".score")).to_contain_text("0%")
    url = page.url
    page.keyboard.press("n")
    expect(page).not_to_have_url(url)
    visitor.drawn()
    expect(page.locator(".score")).to_contain_text("decision")


# --- for everybody --------------------------------------------------------------------------------


VIEWS = {
    "list": None,
    **{game: (game,) for game in GAMES},
    "begin": ("pig", "play", ""),
    "play": ("press-your-luck", "play", "seed=3&scores=0,1000,500&earned=0,2,0&move=play"),
    "train": ("press-your-luck", "train", "seed=5&difficulty=any"),
    "none to train with": ("pig", "train", "seed=5&difficulty=hard"),
    "curves": ("press-your-luck", "charts", "chart=leads"),
    "heat map": ("pig", "charts", "chart=hold"),
    "listing": ("jackpot", "charts", "chart=flip"),
    "grid": ("press-your-luck", "grid", "x=scores_1&y=scores_2&colour=value_2&scores=0,1000,500"),
    "actions": ("skunk", "grid", "x=mine&y=turn&colour=best&yours=8"),
    "filter": ("press-your-luck", "filter", "where=best='pass to 3' scores=0,500,1000"),
    "what if": None,
    "no such state": ("pig", "state", "mine=3&yours=8&turns=4"),
    "no such page": None,
}
"""Each view once, with all that it can show."""


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_for_everybody(view, visitor, tables, address):
    first, second = (id_of(tables[name]) for name in ("press-your-luck", "other"))
    compared = f"#/compare?first={first}&second={second}&scores=500,1000,1500&earned=1,1,0"
    elsewhere = {"list": "", "what if": compared, "no such page": "#/nowhere"}
    page = visitor.go(elsewhere[view] if VIEWS[view] is None else address(*VIEWS[view]))
    if view == "train":
        page.keyboard.press("1")
        expect(page.locator(".why")).to_be_visible()
    assert faults(page) == []
    if view.startswith("no"):
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
