"""The pages in a real browser show what the same addresses answer in JSON: tables of games, with
the mouse, with the keyboard alone, without JavaScript, on a phone, in light and dark; and the
console stays empty (`browsing`)."""

import re
import threading
from urllib.parse import parse_qsl, urlsplit

import pytest

import luckbase
from luckbase.cluster.solve import progress
from luckbase.jobs.web import pool
from tests.jobs.web.browsing import (
    STATES,
    Visitor,
    chromium,
    expect,
    faults,
    follow,
    id_of,
    numbers,
    only_refusals,
)
from tests.jobs.web.serving import GAMES, listening, queried
from tests.places import BOARDS

EDITS = {
    "press-your-luck": ("scores, player 1", "1500", "scores=1500,1000,500"),
    "goofspiel": ("upcard", "4", "upcard=4"),
    "jackpot": ("dice", "3", "dice=3"),
}
"""Games whose pages differ: numbers, sets, one player. Of each a field by its label, what is
written there, and what the address says then."""
CHOICES = ("press-your-luck", "jackpot")
"""Those in which one chooses at a time."""
NO_SCRIPT = {"java_script_enabled": False}
WITHOUT = pytest.mark.parametrize(
    "visitor", [{}, NO_SCRIPT], indirect=True, ids=["live", "without script"]
)
EACH_GAME = pytest.mark.parametrize(
    ("visitor", "game"),
    [*(({}, game) for game in EDITS), (NO_SCRIPT, "press-your-luck"), (NO_SCRIPT, "goofspiel")],
    indirect=["visitor"],
    ids=[*EDITS, "press-your-luck without script", "goofspiel without script"],
)
"""Without a script the games differ by their forms alone: numbers, or sets."""


@pytest.fixture(scope="module")
def tables(web_results, table_of):
    """The table of each game's tiny board, and "other": one with another rule,
    "finer": one with other scores."""
    result = {path.parts[-3]: path for path in web_results.glob("*/tiny/*")}
    board = BOARDS / "press-your-luck/tiny.toml"
    result["other"] = table_of(board, frontier=2, third_place_spins=False)
    result["finer"] = table_of(board, frontier=1, score_unit=250, score_cap=1500)
    return result


@pytest.fixture(scope="module")
def site(tables):
    """The address of a server of these tables."""
    with listening(*tables.values()) as address:
        yield f"{address}/"


@pytest.fixture(scope="module")
def windows():
    """windows(**settings) -> a new tab of a window with these settings; those of one kind are one
    window, for each takes a second, and no tab knows what another one keeps."""
    created = {}

    def tab(**settings):
        if repr(settings) not in created:
            window = created[repr(settings)] = browser.new_context(**settings)
            window.set_default_timeout(60_000)  # the first answer may wait for what is compiled
        return created[repr(settings)].new_page()

    with chromium() as browser:
        yield tab


@pytest.fixture
def visitor(windows, site, request):
    """A visitor whose console stays empty; `indirect` parameters are of the window."""
    window = {"viewport": {"width": 1200, "height": 900}, **getattr(request, "param", {})}
    visiting = Visitor(windows(**window), site)
    yield visiting
    visiting.page.close()
    assert visiting.said == []


@pytest.fixture
def address(tables):
    """address(game, view, query) -> the address of a view."""

    def of(game, view="state", query=None):
        question = STATES[game] if query is None else query
        return f"tables/{id_of(tables[game])}/{view}{f'?{question}' if question else ''}"

    return of


def edit(visitor, label, text):
    """Change a field; a page without a script has a button that sends the form."""
    page = visitor.page
    field = page.get_by_label(label, exact=True)
    if field.evaluate("each => each.tagName") == "SELECT":
        field.select_option(text)
    else:
        field.fill(text)
    sent(page.locator(".edit .go"))


def sent(button):
    """Send a form by its button, which pages without a script have."""
    if button.is_visible():
        button.click()


def shows(page, table, fields):
    """A page has the payoffs of a state."""
    assert numbers(page.locator(".shares").first) == queried(table, fields)["value"]


# --- explore --------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", EDITS)
def test_a_table_opens_from_home_and_the_page_has_the_numbers_of_query(
    game, visitor, tables, address
):
    page = visitor.go("")
    assert page.locator(".tables h3").count() == len(tables)
    page.locator(f".tables a[href*='{id_of(tables[game])}/state']").first.click()
    if game in ("goofspiel", "jackpot"):  # the sets of the form are the drawing
        expect(page.locator(".edit .set").first).to_be_visible()
        expect(page.locator(".picture")).to_have_count(0)
    else:
        expect(page.locator(".picture svg")).to_have_attribute("role", "img")
    page = visitor.go(address(game))
    text = queried(tables[game], dict(parse_qsl(STATES[game])))
    assert numbers(page.locator(".verdict .shares")) == text["value"]
    rows = page.locator("table.actions tbody tr").all()
    up = (text["to_act"] or 1) - 1
    assert len(rows) == (len(text["actions"]) if game in CHOICES else 0)
    for row, action in zip(rows, text["actions"], strict=False):
        name = re.sub(r"to (\d)", r"to player \1", action["action"]).capitalize()
        assert row.locator("th").inner_text() == name
        assert numbers(row) == [action["value"][up]]
    if game in CHOICES:
        assert numbers(page.locator("h1"))[0] == text["actions"][0]["value"][up]
    for side, bids in enumerate(text.get("strategies") or []):
        shown = numbers(page.locator(".sides > table").nth(side))
        assert shown == [b["chance"] for b in bids if b["chance"] > 1e-9 or b["most"] > 1e-4]


@EACH_GAME
def test_edit_a_field_follow_an_outcome_and_go_back(game, visitor, tables, address):
    page = visitor.go(address(game))
    label, text, message = EDITS[game]
    edit(visitor, label, text)
    expect(page).to_have_url(re.compile(re.escape(message)))
    visitor.drawn()
    assert "was=" not in page.url
    shows(page, tables[game], visitor.fields())
    edited = page.url
    page.locator("table.outcomes tbody a, table.pairs a, table.actions a").first.click()
    expect(page).not_to_have_url(edited)
    page.go_back()
    expect(page).to_have_url(edited)
    page.go_back()
    expect(page).to_have_url(visitor.site + address(game))
    visitor.drawn()
    expect(page.get_by_label(label, exact=True)).not_to_have_value(text)


@WITHOUT
def test_a_refused_value_marks_its_box_dims_the_answer_and_offers_the_nearest(
    visitor, tables, address
):
    page = visitor.go(address("press-your-luck"))
    before = numbers(page.locator(".verdict .shares"))
    edit(visitor, "scores, player 2", "1010")
    expect(page.locator("#wrong")).to_contain_text("1010 is not a multiple of 500")
    assert page.locator("[aria-invalid]").count() == 1
    expect(page.get_by_label("scores, player 2", exact=True)).to_have_attribute(
        "aria-invalid", "true"
    )
    dimmed = page.locator(".verdict").evaluate("each => getComputedStyle(each).filter")
    assert "opacity(0.45)" in dimmed
    assert numbers(page.locator(".verdict .shares")) == before
    assert page.locator("a.fix").all_inner_texts() == ["1,000", "1,500"]
    page.locator("a.fix").nth(1).click()
    expect(page.locator("[aria-invalid]")).to_have_count(0)
    shows(page, tables["press-your-luck"], {"scores": "500,1500,500", "earned": "0,2,0"})
    only_refusals(visitor)


def test_a_sentence_says_who_has_what(visitor, tables, address):
    page = visitor.go("")
    box = page.get_by_label("Or type a situation")
    box.fill("Ed 500; Peter 1000, 2 spins; Michael 500")
    box.press("Enter")
    expect(page).to_have_url(re.compile("scores=500,1000,500&earned=0,2,0"))
    served = next(each for each in tables.values() if id_of(each) in page.url)
    shows(page, served, visitor.fields())


def test_a_set_of_cards_is_live_and_says_what_is_missing(visitor, tables, address):
    page = visitor.go(address("goofspiel"))
    before = numbers(page.locator(".shares").first)
    page.get_by_label("mine: 4").uncheck(force=True)
    expect(page.locator("#wrong")).to_be_visible()
    assert numbers(page.locator(".shares").first) == before
    page.get_by_label("mine: 2").check(force=True)
    expect(page).to_have_url(re.compile("mine=1,2,3(&|$)"))
    expect(page.locator("#wrong")).to_have_count(0)
    shows(page, tables["goofspiel"], visitor.fields())
    only_refusals(visitor)


def test_the_box_that_has_the_keyboard_keeps_it_and_what_is_typed(visitor, address):
    page = visitor.go(address("pig"))
    turn = page.get_by_label("turn", exact=True)
    turn.focus()
    page.keyboard.press("ArrowUp")
    expect(page).to_have_url(re.compile("turn=5"))
    visitor.drawn()
    expect(turn).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page).to_have_url(re.compile("turn=6"))
    expect(turn).to_have_value("6")


# --- charts, searches -----------------------------------------------------------------------------


@WITHOUT
def test_a_setting_of_a_chart_and_the_state_of_a_cell(visitor, tables, address):
    page = visitor.go(address("press-your-luck", "chart/decide", ""))
    expect(page.locator("svg.plot:visible")).to_contain_text("pass")
    page.locator("#up").fill("1")
    sent(page.get_by_role("button", name="Show"))
    expect(page).to_have_url(re.compile("up=1"))
    page.get_by_role("button", name="Open").click()
    expect(page).to_have_url(re.compile("/state"))
    shows(page, tables["press-your-luck"], visitor.fields())


def test_a_click_on_a_heat_map_opens_the_state_there(visitor, tables, address):
    page = visitor.go(address("pig", "grid", "x=mine&y=turn&yours=8"))
    ground = page.locator(".desktop .background").first.bounding_box()
    count = page.locator("figure").get_attribute("data-xs").count(",") + 1
    page.mouse.click(ground["x"] + ground["width"] * 3.5 / count,
                     ground["y"] + ground["height"] - 2)  # fmt: skip
    expect(page).to_have_url(re.compile("/state"))
    fields = visitor.fields()
    assert (fields["mine"], fields["yours"], fields["turn"]) == ("3", "8", "0")
    shows(page, tables["pig"], fields)


# --- train, play, what if -------------------------------------------------------------------------


def test_a_running_solve_shows_its_progress_and_the_page_refreshes_itself(
    visitor, tmp_path, monkeypatch
):
    """Every five seconds, without a script by its head."""
    monkeypatch.setattr(progress, "WRITE_SECONDS", 0.0)  # no option
    monkeypatch.setattr(pool, "LIST_SECONDS", 0.0)
    board = luckbase.load_board(BOARDS / "press-your-luck/tiny.toml", frontier=2)
    going, seen, more = threading.Event(), threading.Event(), threading.Event()

    def slowly(now):
        """A stop after three shards until the page has shown them, and another one later."""
        if now.shards > 2:
            going.set()
            assert more.wait(300)
        if now.shards > 8:
            assert seen.wait(300)

    how = {"results": tmp_path, "workers": 1, "on_progress": slowly}
    solving = threading.Thread(target=luckbase.solve, args=(board,), kwargs=how, daemon=True)
    solving.start()
    assert going.wait(300)
    with listening(tmp_path) as address:
        visitor.page.clock.install()
        page = visitor.page
        page.goto(address)
        bar = page.locator("progress")
        expect(page.locator(".running")).to_contain_text(
            re.compile(r"^\s*\d+%, \d+ of 74 shards, [\d,.]+ (million )?states a second")
        )
        assert 'http-equiv="refresh" content="5"' in page.content()
        first = int(bar.get_attribute("value"))
        more.set()
        page.clock.run_for(5000)
        expect(bar).not_to_have_attribute("value", str(first))
        assert first < int(bar.get_attribute("value")) < int(bar.get_attribute("max"))
        seen.set()
        solving.join(300)
        page.clock.run_for(5000)
        expect(bar).to_have_count(0)
        expect(page.locator(".tables .badge")).to_have_count(0)
        expect(page.locator(".question h1")).to_contain_text("?")


@EACH_GAME
def test_a_decision_is_told_what_it_cost_and_the_score_goes_on(game, visitor, tables, address):
    page = visitor.go(address(game, "train", "seed=5"))
    expect(page.get_by_role("heading", name="What do you do?")).to_be_visible()
    choices = page.locator(".moves a")
    assert choices.count() > 1
    for i in range(choices.count()):
        follow(page, choices.nth(i))
        head = page.locator("h1").inner_text()
        if "costs" in head:
            break
        page.go_back()
    shown = float(re.search(r"costs (?:under )?\$?([\d.]+)", head)[1])
    look = page.get_by_role("link", name="Look closer").get_attribute("href")
    answer = queried(tables[game], dict(parse_qsl(urlsplit(look).query)))
    if game in CHOICES:
        up = answer["to_act"] - 1
        costs = [100 * (answer["value"][up] - each["value"][up]) for each in answer["actions"]]
        # Two digits, as in every sentence.
        assert any(abs(shown - cost) <= (0.06 if cost < 9.9 else 0.51) for cost in costs)
    expect(page.locator(".score")).to_contain_text("0 of 1 right")
    follow(page, page.get_by_role("link", name="Next"))
    expect(page.get_by_role("heading", name="What do you do?")).to_be_visible()
    expect(page.locator(".score")).to_contain_text("0 of 1 right")


def test_the_question_of_home_is_answered_with_its_reasons(visitor):
    page = visitor.go("")
    expect(page.locator(".question h1")).to_contain_text("?")
    page.locator(".question .moves a").first.click()
    expect(page.locator("h1")).to_contain_text(re.compile("Right|costs"))
    expect(page.locator(".why p").first).to_be_visible()


@EACH_GAME
def test_a_game_is_played_to_its_end_and_its_decisions_priced(game, visitor, tables, address):
    page = visitor.go(address(game, "play", STATES[game] if game == "press-your-luck" else ""))
    if game == "press-your-luck":
        page.get_by_label("you are").select_option("2")
    page.get_by_text("The same luck again").click()
    page.get_by_label("random seed").fill("7")
    page.get_by_label("Show the payoff of each action").check()
    follow(page, page.get_by_role("button", name="Begin"))
    on = ("Go on", "To your next move")
    for taken in range(400):
        moves, goes = page.locator(".moves a").all(), page.get_by_role("link", name=on[1])
        if page.locator(".decisions").count() or not (moves or goes.count()):
            break
        further = page.get_by_role("link", name=on[taken % 2])
        follow(page, moves[taken % len(moves)] if moves else further)
    rows = page.locator("table.decisions tbody tr").all()
    assert rows
    for row in rows if game in CHOICES else []:
        where = urlsplit(row.get_by_role("link").get_attribute("href")).query
        answer = queried(tables[game], dict(parse_qsl(where)))
        own, values = answer["to_act"] - 1, {a["action"]: a["value"] for a in answer["actions"]}
        cost = answer["value"][own] - values[row.locator("td").first.inner_text()][own]
        shown = row.locator("td").last.inner_text().replace("none", "0").split()[0]
        assert float(shown) == pytest.approx(100 * cost, rel=0.06, abs=0.006)


@WITHOUT
def test_two_tables_at_one_state_with_the_difference_as_heads(visitor, tables, address):
    page = visitor.go(address("press-your-luck", "compare"))
    other = id_of(tables["other"])
    page.get_by_label("What if it were").select_option(other)
    sent(page.get_by_role("button", name="Compare"))
    expect(page.locator("table.compared thead th").nth(1)).to_have_text("third_place_spins=false")
    heads = page.locator("table.compared thead th").all_inner_texts()
    assert heads == ["third_place_spins=true", "third_place_spins=false", "change"]
    fields = {n: v for n, v in visitor.fields().items() if n not in ("second", "shared", "was")}
    row = page.locator("table.compared tbody tr").first
    both = [queried(tables[name], fields)["value"][1] for name in ("press-your-luck", "other")]
    assert numbers(row) == both
    edit(visitor, "scores, player 1", "1500")
    expect(page).to_have_url(re.compile("scores=1500,1000,500"))
    page.get_by_label("What if it were").select_option(id_of(tables["finer"]))
    sent(page.get_by_role("button", name="Compare"))
    expect(page.locator(".note").first).to_contain_text("different grids, of 500 and 250")


# --- for everybody --------------------------------------------------------------------------------


VIEWS = {
    "home": None,
    **{game: (game,) for game in GAMES},
    "about": ("pig", "", ""),
    "refused": ("pig", "state", "mine=3&yours=99&was=mine%3D3%26yours%3D8"),
    "begin": ("pig", "play", ""),
    "play": ("press-your-luck", "play", "seed=3&scores=0,1000,500&earned=0,2,0&move=play&at=2"),
    "train": ("press-your-luck", "train", "seed=5&difficulty=any"),
    "curves": ("press-your-luck", "chart/leads", ""),
    "heat map": ("pig", "chart/hold", ""),
    "listing": ("jackpot", "chart/flip", ""),
    "grid": ("press-your-luck", "grid", "x=scores_1&y=scores_2&scores=0,1000,500"),
    "search": ("press-your-luck", "search/1", ""),
    "what if": ("press-your-luck", "compare"),
    "no such state": ("pig", "state", "mine=3&yours=8&turns=4"),
    "no answer": ("press-your-luck", "state", "scores=0,0,0&earned=7,7,6"),
    "no such page": None,
}
"""Each view once, with all that it can show."""


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_for_everybody(view, visitor, address):
    elsewhere = {"home": "", "no such page": "nowhere"}
    page = visitor.go(elsewhere[view] if VIEWS[view] is None else address(*VIEWS[view]))
    if view == "train":
        follow(page, page.locator(".moves a").first)
        expect(page.locator(".why")).to_be_visible()
    assert faults(page) == []
    if view.startswith(("no", "refused")):
        only_refusals(visitor)


@pytest.mark.parametrize("visitor", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
@pytest.mark.parametrize("game", ["press-your-luck", "pig"])
def test_a_phone_shows_the_verdict_and_the_inputs_first(game, visitor, address):
    page = visitor.go(address(game))
    for part in page.locator("h1, .edit input:visible").all():
        box = part.bounding_box()
        assert box["y"] + box["height"] <= 844
    for text in page.locator(".ring .picture text").all()[:60]:
        assert text.bounding_box()["height"] >= 11


def tab_to(page, wanted, most=80):
    """Press Tab until what matches a selector has the keyboard, and shows it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert page.evaluate(outline) != "none" or "input" in wanted
            return
    raise AssertionError(f"{wanted} is not reached by Tab")


def test_the_keyboard_alone_is_enough(visitor, tables):
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


def test_a_page_is_small_and_asks_no_other_server(visitor, address):
    sent = []
    visitor.page.on("response", lambda r: sent.append(int(r.headers.get("content-length", 0))))
    page = visitor.go(address("press-your-luck"))
    page.wait_for_load_state("networkidle")
    assert 5_000 < sum(sent) < 60_000
    assert all(url.startswith(visitor.site) for url in visitor.asked)
