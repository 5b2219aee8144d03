"""Charts, grids, filters, the matrix of bids and what if, in a real browser (`browsing`)."""

import csv
import re
from pathlib import Path
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import pytest

from tests.jobs.web.browsing import Visitor, expect, id_of, numbers, only_refusals, queried, serving
from tests.places import ROOT
from tests.shared import python

CLIMB = ROOT / "tests/games/climb.py"

# --- grids ----------------------------------------------------------------------------------------


def point_at(page, across, up):
    """Point at a place of the heat map, in shares of its width and height, about."""
    box = page.locator("canvas.map").bounding_box()
    left, right, top, bottom = 66, 22, 8, 46
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
def test_a_cell_says_the_number_of_the_state_that_it_opens(game, visitor, tables, address):
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
    shown = re.search(r"([\d.]+)( pp|%)", said)
    wanted = answer["margin"] if "margin" in said else answer["value"]["value_2" in GRIDS[game]]
    assert shown is not None and float(shown[1]) == pytest.approx(100 * wanted, abs=0.0051)
    if "best: " in said:
        assert said.rpartition("best: ")[2] == answer["best"]


def test_a_grid_of_a_game_of_ones_own_has_names_to_choose(tmp_path, windows):
    named = "default=turns, names=Names([f't{i}' for i in range(turns + 1)])"
    game, text = tmp_path / "named.py", CLIMB.read_text()
    game.write_text(text.replace("default=turns", named).replace("Field, R", "Field, Names, R"))
    (tmp_path / "named.toml").write_text('game = "climb"\n')
    words = ["named.toml", "--game", "named.py"]
    python("-m", "luckbase", "solve", *words, cwd=tmp_path)
    (table,) = (path.parent for path in tmp_path.glob("results/*/*/*/manifest.json"))
    with serving(table, Path("--game"), game) as site:
        visitor = Visitor(windows(viewport={"width": 1200, "height": 900}), site)
        page = visitor.go(f"#/t/{id_of(table)}/grid")
        turns = page.locator("select[name=turns]")
        expect(turns).to_have_value("t6")
        turns.select_option("t2")
        page.wait_for_url("**turns=t2**")
        visitor.drawn()
        assert visitor.said == [] and page.locator("canvas.map").count() == 1
        page.close()


@pytest.mark.parametrize(
    ("game", "chart", "keys"),
    [
        ("press-your-luck", "chart=decide", ["ArrowRight", "ArrowUp"]),
        ("press-your-luck", "chart=decide&up=1&spins=2&third=500", ["ArrowUp", "ArrowUp"]),
    ],
)
def test_a_cell_of_a_chart_is_a_state(game, chart, keys, visitor, tables, address):
    page = visitor.go(address(game, "charts", chart))
    page.locator("canvas.map").focus()
    for key in keys:
        page.keyboard.press(key)
    said = page.locator(".readout span").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator(".split")).to_be_visible()
    answer = queried(tables[game], visitor.fields())
    shown = float(said.rpartition(" ")[2])
    assert shown == pytest.approx(answer["value"][answer["to_act"] - 1], abs=1e-6)
    if "up=1" in chart:
        assert visitor.fields() | {"scores": "0,500,1000", "earned": "2,0,0"} == visitor.fields()


def test_a_chart_has_settings_in_the_address(visitor, address):
    page = visitor.go(address("press-your-luck", "charts", "chart=decide"))
    head = page.locator(".mapped h2")
    expect(head).to_contain_text("One spin")
    spins = page.get_by_label("spins", exact=True)
    spins.fill("2")  # nothing is pressed
    expect(head).to_contain_text("Two spins")
    assert visitor.fields() == {"chart": "decide", "spins": "2"}
    spins.fill("many")
    expect(page.locator(".row .wrong:visible")).to_contain_text("spins: 'many' is not a number")
    expect(spins).to_have_attribute("aria-invalid", "true")
    page.go_back()
    expect(head).to_contain_text("Two spins")
    expect(page.locator(".settings .wrong:visible")).to_have_count(0)
    visitor.go(address("press-your-luck", "charts", "chart=decide&spins=2&third=500"))
    expect(head).to_contain_text("Two spins")
    expect(page.get_by_label("spins", exact=True)).to_have_value("2")
    expect(page.get_by_label("third", exact=True)).to_have_value("500")
    visitor.go(address("press-your-luck", "charts", "chart=leads&earned_3=1"))  # beyond its own
    expect(page.get_by_label("earned 3")).to_have_value("1")
    only_refusals(visitor)


def chart_of(page, name):
    """Open a chart of the game, by choosing it; what the server said of it."""
    with page.expect_response(re.compile(rf"/chart/{name}(\?|$)")) as reply:
        page.locator(f".chartlist a[href$='chart={name}']").click()
    said = reply.value.json()
    expect(page.locator(".mapped h2")).to_be_visible()
    return said


def plain(value):
    """A number of a chart as the page writes it."""
    return "none" if value is None else f"{float(f'{value:.6g}'):,.6f}".rstrip("0").rstrip(".")


def read_of(said, i):
    """What the readout says of the curves at a place of the axis."""
    numbers = [curve["values"][i] for curve in said["curves"]]
    return [
        f"{curve['label']} {plain(value)}"
        for curve, value in zip(said["curves"], numbers, strict=True)
    ]


def test_curves_say_their_numbers(visitor, address):
    page = visitor.go(address("press-your-luck", "charts", ""))
    said = chart_of(page, "leads")
    xs, picture, readout = said["xs"], page.locator(".heat > svg.curves"), page.locator(".readout")
    i = int(len(xs) * 0.7)
    box = picture.bounding_box()
    ends = [float(picture.locator(".axis").get_attribute(name)) for name in ("x1", "x2")]
    across = ends[0] + (ends[1] - ends[0]) * (xs[i] - xs[0]) / (xs[-1] - xs[0])
    page.mouse.move(box["x"] + across, box["y"] + box["height"] / 2)
    at = f"{said['x_label']} = {xs[i]:,}:".replace("-", "−")
    assert readout.locator("> *").all_text_contents()[:3] == [at, *read_of(said, i)]
    known = [curve["values"][i] for curve in said["curves"] if curve["values"][i] is not None]
    dots = [float(dot.get_attribute("cy")) for dot in picture.locator(".cursor circle").all()]
    order = range(len(known))
    assert sorted(order, key=dots.__getitem__) == sorted(order, key=lambda k: -known[k])
    page.mouse.move(0, 0)
    picture.focus()
    for key in ("Home", "ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert [said["curves"][1]["values"][i] is None for i in (1, 2)] == [False, True]
    expect(readout.locator("strong")).to_have_text(read_of(said, 1)[1])
    assert picture.locator(".cursor circle").count() == 1
    page.keyboard.press("ArrowRight")
    expect(readout.locator("strong")).to_have_text(read_of(said, 2)[1])
    assert picture.locator(".cursor circle").count() == 0
    page.keyboard.press("End")
    expect(readout).to_contain_text(f"= {xs[-1]:,}")
    page.get_by_text("The numbers as a table").click()
    found = page.locator("table.numbers tbody tr")
    expect(found).to_have_count(len(xs))
    rows = found.all()
    for row, *own in zip(rows, *(curve["values"] for curve in said["curves"]), strict=True):
        cells = ["" if number is None else plain(number) for number in own]
        assert row.locator("td").all_text_contents() == cells


def test_the_page_writes_counts_sizes_and_what_is_paid_in_full(visitor):
    page = visitor.go("")
    said = page.evaluate(
        """async () => {
          const { Payoffs, count, size } = await import("/static/format.js");
          const { plain } = await import("/static/listing.js");
          const paid = (name, value) => new Payoffs({ payoff_name: name }).paid(value);
          return [count(999.6e6), size(999.6e3), count(4.2e12), paid("expected dollars", 1700),
                  paid("points", 10), paid("points", -0.25), paid("points", 1e-10), plain(-1e-9),
                  new Payoffs({ payoff_name: "dollars" }).text(-0.5), paid("dollars", 0.25)];
        }"""
    )
    assert said[:3] == ["1.00 billion", "1.00 MB", "4,200 billion"]
    assert said[3:] == ["+$1,700", "+10", "−0.25", "+1.0e-10", "0", "−$1", "+$0.25"]


def test_a_pair_of_choices_shows_the_mean_of_what_chance_brings_after_it(visitor):
    page = visitor.go("")
    legend, chances = page.evaluate(
        """async () => {
          const { matrix } = await import("/static/matrix.js");
          const { met } = await import("/static/answer.js");
          const { Payoffs } = await import("/static/format.js");
          const way = (weight, value, reward) =>
            ({ pair: [0, 0], weight, value: [value], reward: [reward], over: false, query: "x=1" });
          const answer = {
            value: [0], strategies: [[{ action: "a", chance: 1 }], [{ action: "b", chance: 1 }]],
            outcomes: [way(0.25, 8, 0), way(0.75, 0, 4)],
          };
          const [, , scale] = matrix({ game: "g" }, new Payoffs({}), answer, (to) => to);
          return [scale.textContent, met(answer, { action: "a" }).map((each) => each.chance)];
        }"""
    )
    assert "5.0000" in legend and chances == [0.75, 0.25]


# --- what if -----------------------------------------------------------------------------


def test_two_tables_side_by_side(visitor, tables, address):
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
        f"{'+' if change > 0 else '−'}{abs(change):.2f} pp"
    )
    page.get_by_role("link", name="See the difference as a map").click()
    expect(page.locator(".legend")).to_contain_text("pp")
    point_at(page, 0.2, 0.5)
    expect(page.locator(".readout")).to_contain_text(re.compile("[+−±0]"))


@pytest.mark.parametrize("ways", [("press-your-luck", "finer"), ("finer", "press-your-luck")])
def test_differences_of_tables_with_other_steps_are_those_of_their_answers(
    ways, visitor, tables, address
):
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
    shown = re.search(r"([+−±])([\d.]+)(e-\d+)? pp", page.locator(".readout span").inner_text())
    change = float(shown[2] + (shown[3] or "")) * (-1 if shown[1] == "−" else 1)
    assert change == pytest.approx(100 * (two - one), abs=0.0051)
    if ways[0] == "finer":  # 1250 dollars are no score of the other
        page.keyboard.press("ArrowDown")
        expect(page.locator(".readout")).to_contain_text("no such state on tiny")


# --- to take along --------------------------------------------------------------------------------


def saved(page, word):
    """What a button of what can be taken along saves."""
    with page.expect_download() as found:
        page.get_by_role("button", name=word, exact=True).first.click()
    return Path(found.value.path()).read_bytes()


@pytest.mark.parametrize(
    "game, view, query",
    [
        ("press-your-luck", "charts", "chart=leads"),
        ("press-your-luck", "grid", "x=scores_1&y=scores_2&colour=value_2&scores=0,1000,500"),
        ("goofspiel", "state", "mine=1,3,4&theirs=1,2,4&deck=1,2,4&upcard=2"),
    ],
)
def test_a_picture_is_saved_with_its_title_and_its_numbers(game, view, query, visitor, address):
    page = visitor.go(address(game, view, query))
    expect(page.get_by_role("button", name="PNG", exact=True).first).to_be_visible()
    png, svg = saved(page, "PNG"), saved(page, "SVG").decode()
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(png[16:20]) == 1920
    title = page.locator(".mapped h2, section h2:has(~ .heat)").first.inner_text()
    root = ElementTree.fromstring(svg)
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "".join(title.split()) in "".join("".join(filter(None, words)).split())
    assert len(words) >= 10 and "var(" not in svg and "class=" not in svg
    rows = list(csv.reader(saved(page, "CSV").decode().splitlines()))
    assert len(rows) > 5 and {len(row) for row in rows} == {len(rows[0])}
    assert [float(row[0]) for row in rows[1:]]


# --- both choose at once --------------------------------------------------------------------------


def test_the_matrix_of_bids_says_each_pair_in_words(visitor, tables, address):
    page = visitor.go(address("goofspiel"))
    state = dict(parse_qsl("mine=1,3,4&theirs=1,2,4&deck=1,2,4&upcard=2"))
    said = queried(tables["goofspiel"], state)
    mine, theirs = said["strategies"]
    page.locator("canvas.map").focus()
    page.keyboard.press("ArrowRight")  # their second card, my first
    readout = page.locator(".readout span")
    expect(readout).to_contain_text(f"Player 1: {mine[0]['action']}, player 2: bid 2.")
    chance = 100 * mine[0]["chance"] * theirs[1]["chance"]
    expect(readout).to_contain_text(f"They choose so {chance:.1f}% of the time")
    shown = re.search(r"ahead of player 1 ([−\d.]+),", readout.inner_text())
    page.keyboard.press("Enter")
    expect(page.locator("h1")).not_to_have_text("Both choose at once")
    then = queried(tables["goofspiel"], visitor.fields())["value"][0]
    assert float(shown[1].replace("−", "-")) == pytest.approx(then - 2, abs=6e-5)  # 1 against 2


# --- filters --------------------------------------------------------------------------------------


def test_a_ready_search_finds_rows_that_open(visitor, tables, address):
    page = visitor.go(address("press-your-luck", "filter", ""))
    page.get_by_role("link", name="Passing is best though behind").click()
    expect(page.locator("input[name=where]")).to_have_value(re.compile("scores_2<scores_3"))
    expect(page.locator(".counted")).to_contain_text("of 226,527 states")
    head = page.get_by_role("button", name="better by")
    head.click()
    head.click()
    expect(page.locator(".found")).to_contain_text("In all of these:")
    expect(page.locator(".found")).to_contain_text("up 2, best pass to 3")
    row = page.locator("table.listed tbody tr").first
    heads = [head.split()[0] for head in page.locator("table.listed thead th").all_inner_texts()]
    shown = row.locator("td").all_inner_texts()
    row.get_by_role("link").click()
    expect(page.locator(".split")).to_be_visible()
    answer = queried(tables["press-your-luck"], visitor.fields())
    assert answer["best"] == "pass to 3" and answer["to_act"] == 2
    assert answer["state"]["scores"][1] < answer["state"]["scores"][2]
    better = float(shown[heads.index("better")].removesuffix(" pp"))
    assert better == pytest.approx(100 * answer["margin"], abs=0.0051)


def test_a_condition_is_built_and_a_wrong_one_is_a_sentence(visitor, address):
    page = visitor.go(address("pig", "filter", "where=turn>=5"))
    expect(page.locator(".counted")).to_contain_text("states")
    before = page.locator(".counted").inner_text()
    page.get_by_text("Add a condition").click()
    page.get_by_label("column", exact=True).select_option("mine")
    page.get_by_label("compared").select_option("<")
    page.get_by_label("with a value, or another column").fill("yours")
    page.get_by_role("button", name="Add and search").click()
    expect(page.locator(".counted")).not_to_have_text(before)
    line = page.get_by_label("All of these must hold")
    expect(line).to_have_value("turn>=5 mine<yours")
    line.fill("mines=3")
    line.press("Enter")
    expect(page.locator(".search .wrong")).to_have_text(
        re.compile("unknown column 'mines'; did you mean 'mine'")
    )
    expect(page.locator("table.listed")).to_have_count(0)
    only_refusals(visitor)
