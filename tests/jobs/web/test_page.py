"""The page in a real browser: every game's tiny table, with the mouse, with the keyboard alone, on
a phone, in light and dark; and not a word in the console (`browsing`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.jobs.web.browsing import (
    GAMES,
    STATES,
    Visitor,
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
def test_every_table_opens_from_the_list_and_is_drawn(
    game: str, visitor: Visitor, tables: dict[str, Path]
) -> None:
    page = visitor.go("")
    assert page.locator("li.table").count() == len(tables)
    page.locator(f"li.table a[href*='{id_of(tables[game])}/state']").first.click()
    expect(page.locator(".verdict h1")).to_be_visible()
    drawn = page.locator(".drawing svg")
    expect(drawn).to_have_attribute("role", "img")
    assert drawn.bounding_box()["width"] > 200
    assert page.title().endswith("· luckbase")


@pytest.mark.parametrize("game", GAMES)
def test_the_page_says_the_numbers_of_query(
    game: str, visitor: Visitor, tables: dict[str, Path], address: Callable[..., str]
) -> None:
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
def test_edit_a_field_take_an_action_and_an_outcome_and_go_back(
    game: str, visitor: Visitor, address: Callable[..., str]
) -> None:
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


def test_outcomes_together_are_worth_the_action(
    visitor: Visitor, address: Callable[..., str]
) -> None:
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


def test_the_path_leads_back_and_an_address_says_all(
    visitor: Visitor, address: Callable[..., str]
) -> None:
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


def test_the_main_line_goes_to_the_end(visitor: Visitor, address: Callable[..., str]) -> None:
    page = visitor.go(address("jackpot", query="open=1,2,3,4"))
    page.get_by_text("Main line").click()
    steps = page.locator(".mainline li")
    expect(steps.first).to_be_visible()
    assert steps.count() >= 3
    steps.last.get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("The game is over")


def test_a_random_state_gets_an_address_of_its_own(
    visitor: Visitor, tables: dict[str, Path], address: Callable[..., str]
) -> None:
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
def test_bad_input_is_a_sentence_beside_its_field(
    game: str, label: str, wrong: str, sentence: str, visitor: Visitor, address: Callable[..., str]
) -> None:  # fmt: skip
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


def test_an_address_that_is_wrong_says_so(visitor: Visitor, address: Callable[..., str]) -> None:
    page = visitor.go(address("pig"))
    page.goto(visitor.site + address("pig", query="mine=3&yours=8&turns=4"))
    expect(page.locator(".verdict [role=alert]")).to_contain_text("unknown field 'turns'")
    page.goto(visitor.site + "#/t/no~such~table/state")
    expect(page.locator("main [role=alert]")).to_contain_text("no table here")
    for nowhere in ("#/nowhere", f"#/t/%E0{address('pig')[3:]}", "#/t/%E0/state", "#/%"):
        visitor.go(nowhere)
        expect(page.locator("main [role=alert]")).to_contain_text("no such page")
    only_refusals(visitor)


# --- grids ----------------------------------------------------------------------------------------


def point_at(page: Any, across: float, up: float) -> None:
    """Point at a place of the heat map, in shares of its width and height."""
    box = page.locator("canvas.map").bounding_box()
    left, right, top, bottom = 62, 22, 8, 46
    page.mouse.move(
        box["x"] + left + across * (box["width"] - left - right),
        box["y"] + top + (1 - up) * (box["height"] - top - bottom),
    )


GRIDS = {
    "press-your-luck": "x=scores_1&y=scores_2&colour=value_2&scores=0,1000,500&earned=0,2,0",
    "pig": "x=mine&y=yours&colour=value_1&turn=4",
    "skunk": "x=mine&y=turn&colour=margin&yours=8",
}


@pytest.mark.parametrize("game", GRIDS)
def test_a_cell_says_the_number_of_the_state_that_it_opens(
    game: str, visitor: Visitor, tables: dict[str, Path], address: Callable[..., str]
) -> None:
    page = visitor.go(address(game, "grid", GRIDS[game]))
    expect(page.locator("canvas.map")).to_be_visible()
    point_at(page, 0.4, 0.3)
    readout = page.locator(".readout")
    expect(readout.get_by_role("link")).to_be_visible()
    said = readout.locator("span").inner_text()
    box = page.locator("canvas.map").bounding_box()
    assert box["width"] > 500
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".split")).to_be_visible()
    answer = queried(tables[game], visitor.fields())
    shown = re.search(r"([\d.]+)%", said)
    wanted = answer["margin"] if "margin" in said else answer["value"]["value_2" in GRIDS[game]]
    assert shown is not None and float(shown[1]) == pytest.approx(100 * wanted, abs=0.0051)
    if "best: " in said:
        assert said.rpartition("best: ")[2] == answer["best"]


def test_a_grid_by_keyboard_slider_and_as_a_table(
    visitor: Visitor, tables: dict[str, Path], address: Callable[..., str]
) -> None:
    page = visitor.go(address("pig", "grid", "x=mine&y=yours&colour=value_1&turn=4"))
    page.locator("canvas.map").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator(".readout")).to_contain_text("mine = 2, yours = 1")
    expect(page.locator(".curve svg")).to_have_attribute("aria-label", re.compile("along mine"))
    slider = page.get_by_label("turn", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**turn=5**")
    expect(page.locator(".readout")).not_to_contain_text("mine = 2")  # the new map is there
    page.get_by_text("The numbers as a table").click()
    table = page.locator("table.numbers")
    expect(table).to_be_visible()
    value = queried(tables["pig"], {"mine": "2", "yours": "1", "turn": "5"})["value"][0]
    cell = table.locator("tbody tr").nth(1).locator("td").nth(2)
    assert cell.inner_text() == f"{100 * value:.2f}%"
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**turn=6**")
    value = queried(tables["pig"], {"mine": "2", "yours": "1", "turn": "6"})["value"][0]
    expect(cell).to_have_text(f"{100 * value:.2f}%")  # what was left open is open
    page.get_by_text("The numbers as a table").click()
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**turn=5**")
    expect(page.locator(".readout")).not_to_contain_text("mine =")
    expect(table).to_have_count(0)
    page.locator("canvas.map").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".split")).to_be_visible()
    assert visitor.fields()["turn"] == "5"


def test_colours_of_actions_and_a_chart_of_the_game(
    visitor: Visitor, address: Callable[..., str]
) -> None:
    page = visitor.go(address("skunk", "grid", "x=mine&y=turn&colour=best&yours=8"))
    expect(page.locator(".legend.names")).to_contain_text("roll")
    page.get_by_label("what it shows").select_option("win")
    expect(page.locator(".mapped h2")).to_contain_text("dice")
    point_at(page, 0.5, 0.5)
    expect(page.locator(".readout a")).to_have_attribute("href", re.compile("mine=10&yours=10"))
    page.get_by_label("what it shows").select_option("-")
    expect(page.get_by_label("across")).to_be_visible()


@pytest.mark.parametrize(
    ("game", "chart", "keys"),
    [
        ("pig", "chart=turn", ["ArrowRight", "ArrowUp", "ArrowUp"]),
        ("skunk", "chart=turn&settings=yours=8", ["ArrowRight", "ArrowUp"]),
        ("press-your-luck", "chart=decide", ["ArrowRight", "ArrowUp"]),
        ("press-your-luck", "chart=decide&settings=up=1+spins=2+third=500", ["ArrowUp", "ArrowUp"]),
    ],
)
def test_a_cell_of_a_chart_is_a_state(
    game: str,
    chart: str,
    keys: list[str],
    visitor: Visitor,
    tables: dict[str, Path],
    address: Callable[..., str],
) -> None:
    page = visitor.go(address(game, "grid", chart))
    page.locator("canvas.map").focus()
    for key in keys:
        page.keyboard.press(key)
    said = page.locator(".readout span").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator(".split")).to_be_visible()
    answer = queried(tables[game], visitor.fields())
    shown = float(said.rpartition(" ")[2])
    assert shown == pytest.approx(answer["value"][answer["to_act"] - 1], abs=1e-6)
    if game == "pig":
        assert visitor.fields() == {"mine": "1", "yours": "6", "turn": "2"}
    if "settings=up=1" in chart:
        assert visitor.fields() | {"scores": "0,500,1000", "earned": "2,0,0"} == visitor.fields()


def test_what_is_no_state_opens_nothing(visitor: Visitor, address: Callable[..., str]) -> None:
    page = visitor.go(address("pig", "grid", "chart=turn"))
    page.locator("canvas.map").focus()
    page.keyboard.press("End")
    page.keyboard.press("PageUp")
    expect(page.locator(".readout")).to_contain_text("none")
    assert page.locator(".readout a").count() == 0
    page = visitor.go(address("goofspiel", "grid", "chart=upcard"))  # a bid is in no state
    page.locator("canvas.map").focus()
    expect(page.locator(".readout")).to_contain_text("chance of the bid")
    assert page.locator(".readout a").count() == 0


def test_a_chart_has_settings_in_the_address(visitor: Visitor, address: Callable[..., str]) -> None:
    page = visitor.go(address("pig", "grid", "chart=turn"))
    head = page.locator(".mapped h2")
    expect(head).to_contain_text("Against 6 points")
    settings = page.get_by_label("settings")
    settings.fill("yours=9")
    page.get_by_role("button", name="Use").click()
    expect(head).to_contain_text("Against 9 points")
    assert visitor.fields() == {"chart": "turn", "settings": "yours=9"}
    settings.fill("mine=3")
    settings.press("Enter")
    expect(page.locator(".settings .wrong")).to_contain_text("mine: this picture is over it")
    expect(settings).to_have_attribute("aria-invalid", "true")
    page.go_back()
    expect(head).to_contain_text("Against 9 points")
    expect(page.locator(".settings .wrong")).to_be_hidden()
    expect(settings).to_have_value("yours=9")
    visitor.go(address("press-your-luck", "grid", "chart=by-lead&settings=spins=2+rival=500"))
    expect(head).to_contain_text("Two spins")
    expect(settings).to_have_value("spins=2 rival=500")
    only_refusals(visitor)


def chart_of(page: Any, name: str) -> dict[str, Any]:
    """Open a chart of the game, by choosing it; what the server said of it."""
    with page.expect_response(re.compile(f"/chart/{name}$")) as reply:
        page.get_by_label("what it shows").select_option(name)
    said: dict[str, Any] = reply.value.json()
    expect(page.locator(".mapped h2")).to_be_visible()
    return said


@pytest.mark.parametrize("name", ["leads", "by-lead", "by-spins"])
def test_curves_are_told_apart_without_colours(
    name: str, visitor: Visitor, address: Callable[..., str]
) -> None:
    page = visitor.go(address("press-your-luck", "grid"))
    said = chart_of(page, name)
    assert said["kind"] == "curves"
    expect(page.locator(".mapped h2")).to_have_text(said["title"])
    lines = page.locator(".heat > svg.curves > path.line")
    expect(lines).to_have_count(len(said["curves"]))
    dashes = [line.get_attribute("stroke-dasharray") for line in lines.all()]
    assert len(set(dashes)) == len(dashes) >= 2
    shown = [
        curve["label"] for curve in said["curves"] if any(v is not None for v in curve["values"])
    ]
    labels = page.locator(".heat > svg.curves > .label").all()
    assert sorted(label.text_content() for label in labels) == sorted(shown)
    places = sorted(float(label.get_attribute("y")) for label in labels)
    assert all(low - high > 15 for high, low in pairwise(places))
    assert page.locator(".heat > svg.curves > .band").count() == len(said["bands"])
    reasons = " ".join(page.locator(".heat > svg.curves > .why").all_text_contents())
    assert reasons.split() == " ".join(band["text"] for band in said["bands"]).split()


def plain(value: float | None) -> str:
    """A number of a chart as the page writes it."""
    return "none" if value is None else f"{float(f'{value:.6g}'):,.6f}".rstrip("0").rstrip(".")


def read_of(said: dict[str, Any], i: int) -> list[str]:
    """What the readout says of the curves at a place of the axis."""
    numbers = [curve["values"][i] for curve in said["curves"]]
    return [
        f"{curve['label']} {plain(value)}"
        for curve, value in zip(said["curves"], numbers, strict=True)
    ]


def test_curves_say_their_numbers(visitor: Visitor, address: Callable[..., str]) -> None:
    page = visitor.go(address("press-your-luck", "grid"))
    said = chart_of(page, "by-lead")
    xs, picture, readout = said["xs"], page.locator(".heat > svg.curves"), page.locator(".readout")
    i = int(len(xs) * 0.7)
    box = picture.bounding_box()
    ends = [float(picture.locator(".axis").get_attribute(name)) for name in ("x1", "x2")]
    across = ends[0] + (ends[1] - ends[0]) * (xs[i] - xs[0]) / (xs[-1] - xs[0])
    page.mouse.move(box["x"] + across, box["y"] + box["height"] / 2)
    at = f"{said['x_label']} = {xs[i]:,}:".replace("-", "−")
    assert readout.locator("> *").all_text_contents()[:3] == [at, *read_of(said, i)]
    dots = [float(dot.get_attribute("cy")) for dot in picture.locator(".cursor circle").all()]
    one, two = (curve["values"][i] for curve in said["curves"])
    assert (dots[0] < dots[1]) == (one > two)
    page.mouse.move(0, 0)
    picture.focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(readout.locator("strong")).to_have_text(read_of(said, 2)[1])
    assert picture.locator(".cursor circle").count() == 1
    page.keyboard.press("End")
    expect(readout).to_contain_text(f"= {xs[-1]:,}")
    band = [band["text"] for band in said["bands"] if band["first"] <= xs[-1] <= band["last"]]
    expect(readout).to_contain_text(f"({band[0]})")
    page.get_by_text("The numbers as a table").click()
    found = page.locator("table.numbers tbody tr")
    expect(found).to_have_count(len(xs))
    rows = found.all()
    for row, *own in zip(rows, *(curve["values"] for curve in said["curves"]), strict=True):
        assert row.locator("td").all_text_contents() == [plain(number) for number in own]


def test_a_chart_to_read_and_the_same_as_a_table(
    visitor: Visitor, address: Callable[..., str]
) -> None:
    page = visitor.go(address("jackpot", "grid", ""))
    said = chart_of(page, "flip")
    expect(page.locator("pre.listing")).to_have_text("\n".join(said["lines"]))
    expect(page.locator(".mapped .about")).to_have_text(said["note"])
    page.get_by_text("The same as a table").click()
    found = page.locator("table.numbers tbody tr")
    expect(found).to_have_count(len(said["rows"]))
    rows = found.all()
    shown = [row.locator("td").all_text_contents() for row in rows]
    assert shown == [[f"{cell}" for cell in row] for row in said["rows"]]


def test_the_gaps_of_a_line_stay_open(visitor: Visitor, address: Callable[..., str]) -> None:
    page = visitor.go(address("press-your-luck", "grid", "x=scores_1&y=scores_2"))
    (line,) = chart_of(page, "decide")["lines"]
    found = page.evaluate(
        "async ([xs, ys]) => (await import('/static/heatmap.js')).pieces(xs, ys)",
        [line["xs"], line["ys"]],
    )
    assert len(found) == line["xs"].count(None) > 2
    assert all(len(piece) == 2 and None not in [*piece[0], *piece[1]] for piece in found)


def test_the_scale_reads_in_grey(visitor: Visitor) -> None:
    page = visitor.go("")
    grey = page.evaluate(
        """async () => {
          const { viridis, named } = await import("/static/colours.js");
          const grey = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
          return [Array.from({length: 21}, (_, k) => grey(viridis(k / 20))),
                  Array.from({length: 4}, (_, k) => grey(named(k, 4)))];
        }"""
    )
    for scale, step in zip(grey, (3, 30), strict=True):
        assert all(b - a > step for a, b in pairwise(scale))


# --- play, and what if ----------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_a_game_is_played_to_its_end_and_its_decisions_priced(
    game: str, visitor: Visitor, tables: dict[str, Path], address: Callable[..., str]
) -> None:
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
        assert (0 if shown == "none" else float(shown[:-1])) == pytest.approx(
            100 * cost, abs=0.0051
        )


def test_a_move_is_taken_back(visitor: Visitor, address: Callable[..., str]) -> None:
    page = visitor.go(address("pig", "play", "seed=3&seat=1&against=random"))
    first = page.locator(".log").inner_text()
    page.get_by_role("button", name="roll").click()
    expect(page.locator(".log")).not_to_have_text(first)
    page.get_by_role("link", name="Take back").click()
    expect(page.locator(".log li")).to_have_count(len(first.splitlines()))
    assert page.locator(".log").inner_text() == first


def test_two_tables_side_by_side(
    visitor: Visitor, tables: dict[str, Path], address: Callable[..., str]
) -> None:
    state = "scores=0,2000,2000&earned=1,1,0"
    first, second = (id_of(tables[name]) for name in ("press-your-luck", "other"))
    page = visitor.go(f"#/compare?first={first}&second={second}&{state}")
    expect(page.locator(".boards .drawing")).to_have_count(2)
    asked = dict(parse_qsl(state))
    one, two = (queried(tables[name], asked) for name in ("press-your-luck", "other"))
    row = page.locator("table.compared tbody tr").first
    assert numbers(row) == [one["value"][0], two["value"][0]]
    change = 100 * (two["value"][0] - one["value"][0])
    assert abs(change) > 0.01
    expect(row.locator(".swinging .n")).to_have_text(
        f"{'+' if change > 0 else '−'}{abs(change):.2f}%"
    )
    page.get_by_role("link", name="See the difference as a map").click()
    expect(page.locator(".legend")).to_contain_text("%")
    point_at(page, 0.2, 0.5)
    expect(page.locator(".readout")).to_contain_text(re.compile("[+−±0]"))


@pytest.mark.parametrize("ways", [("press-your-luck", "finer"), ("finer", "press-your-luck")])
def test_differences_of_tables_with_other_steps_are_those_of_their_answers(
    ways: tuple[str, str], visitor: Visitor, tables: dict[str, Path], address: Callable[..., str]
) -> None:
    state = "scores=500,1000,1500&earned=0,1,0"
    second = id_of(tables[ways[1]])
    visitor.go(
        address(ways[0], "grid", f"with={second}&x=scores_2&y=scores_3&colour=value_2&{state}")
    )
    page = visitor.page
    named = {
        "press-your-luck": "score_cap=3000, score_unit=500",
        "finer": "score_cap=1500, score_unit=250",
    }
    expect(page.locator(".mapped h2")).to_have_text(
        f"Chance to win, player 2: tiny with {named[ways[1]]} less tiny with {named[ways[0]]}"
    )
    page.locator("canvas.map").focus()
    units = 2 if ways[0] == "finer" else 1
    for _ in range(2 * units):
        page.keyboard.press("ArrowRight")
    for _ in range(3 * units):
        page.keyboard.press("ArrowUp")
    expect(page.locator(".readout")).to_contain_text("player 2 = 1000, scores, player 3 = 1500")
    asked = dict(parse_qsl(state))
    one, two = (queried(tables[name], asked)["value"][1] for name in ways)
    assert one != two
    shown = re.search(r"([+−±])([\d.]+)(e-\d+)?%", page.locator(".readout span").inner_text())
    assert shown is not None
    change = float(shown[2] + (shown[3] or "")) * (-1 if shown[1] == "−" else 1)
    assert change == pytest.approx(100 * (two - one), abs=0.0051)
    if ways[0] == "finer":  # 1250 dollars are no score of the other
        page.keyboard.press("ArrowDown")
        expect(page.locator(".readout")).to_contain_text("no such state on tiny")


# --- for everybody --------------------------------------------------------------------------------


def every_view(address: Callable[..., str], tables: dict[str, Path]) -> dict[str, str]:
    """Each view once, with all that it can show."""
    first, second = (id_of(tables[name]) for name in ("press-your-luck", "other"))
    return {
        "list": "",
        **{game: address(game) for game in GAMES},
        **{f"{game} grid": address(game, "grid", query) for game, query in GRIDS.items()},
        "actions": address("skunk", "grid", "x=mine&y=turn&colour=best&yours=8"),
        "pig turn": address("pig", "grid", "chart=turn&settings=yours=9"),
        "leads": address("press-your-luck", "grid", "chart=leads"),
        "by-spins": address("press-your-luck", "grid", "chart=by-spins"),
        "bids": address("goofspiel", "grid", "chart=bids"),
        "begin": address("pig", "play", ""),
        "play": address("pig", "play", "seed=3&seat=1&against=optimal&move=roll"),
        "what if": f"#/compare?first={first}&second={second}&scores=500,1000,1500&earned=1,1,0",
        "no such state": address("pig", "state", "mine=3&yours=8&turns=4"),
        "no such page": "#/nowhere",
    }  # fmt: skip


VIEWS = [
    "list", *GAMES, *(f"{game} grid" for game in GRIDS), "actions", "pig turn", "leads", "by-spins",
    "bids", "begin", "play", "what if", "no such state", "no such page",
]  # fmt: skip
"""What is looked at; the names of `every_view`."""


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_for_everybody(
    view: str, visitor: Visitor, address: Callable[..., str], tables: dict[str, Path]
) -> None:
    page = visitor.go(every_view(address, tables)[view])
    assert faults(page) == []
    if view.startswith("no such"):
        only_refusals(visitor)


def tab_to(page: Any, wanted: str, most: int = 60) -> None:
    """Press Tab until what matches a selector has the keyboard, and shows it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert page.evaluate(outline) != "none" or "input" in wanted
            return
    raise AssertionError(f"{wanted} is not reached by Tab")


def test_the_keyboard_alone_is_enough(
    visitor: Visitor, tables: dict[str, Path], address: Callable[..., str]
) -> None:
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


def test_the_page_is_small_and_asks_once(visitor: Visitor, address: Callable[..., str]) -> None:
    sent: list[int] = []
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
