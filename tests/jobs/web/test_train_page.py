"""Train and Play in a browser: with keys, in both themes, from 320 px."""

import re

import pytest

from tests.jobs.web.browsing import GAMES, expect, faults, id_of, queried


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


def test_the_score_outlives_a_reload_counts_a_decision_once_and_starts_again(visitor, address):
    page = visitor.go(address("pig", "train", "seed=5&difficulty=easy"))
    for _ in range(2):
        page.get_by_role("button", name="roll").click()
        expect(page.get_by_role("button", name="Next")).to_be_focused()
        page.reload()
        expect(page.locator("h1")).to_contain_text("Right: roll")  # it was decided
        page.evaluate("sessionStorage.getItem('x')")
        page.get_by_role("button", name="Next").click()
        visitor.drawn()
    expect(page.locator(".score dd").first).to_have_text("2")
    expect(page.locator(".score")).to_contain_text("100%")
    page.get_by_role("button", name="Start again").click()
    expect(page.locator(".score dd")).to_have_count(0)


def test_a_difficulty_that_a_table_has_nothing_of_says_so(visitor, address):
    page = visitor.go(address("pig", "train", "seed=5&difficulty=hard"))
    expect(page.locator(".sorry")).to_contain_text("take another one")
    page.get_by_role("button", name="easy").click()
    expect(page.get_by_role("heading", name="What do you do?")).to_be_visible()
    visitor.said.clear()  # Chromium's line for the 404


@pytest.mark.parametrize("game", GAMES)
def test_play_begins_where_the_person_has_something_to_decide(game, visitor, address):
    page = visitor.go(address(game, "play", ""))
    for seed in ("1", "2"):
        page.get_by_label("seed of the dice").fill(seed)
        page.get_by_role("button", name="Begin").click()
        expect(page.locator(".move").first).to_be_visible()
        log = page.locator(".log li").count()
        page.keyboard.press("1")
        expect(page.locator(".log li").nth(log)).to_be_visible()
        page.go_back()
        page.go_back()
        visitor.drawn()


@pytest.mark.parametrize("view", ["question", "verdict", "none"])
def test_nothing_is_wrong_with_train(view, visitor, address):
    game = "pig" if view == "none" else "press-your-luck"
    page = visitor.go(
        address(game, "train", f"seed=5&difficulty={'hard' if game == 'pig' else 'any'}")
    )
    if view == "verdict":
        page.keyboard.press("1")
        expect(page.locator(".why")).to_be_visible()
    assert faults(page) == []
    visitor.said.clear()


def test_nothing_is_wrong_with_a_game_that_is_played(visitor, tables):
    page = visitor.go(
        f"#/t/{id_of(tables['press-your-luck'])}/play?seed=3&scores=0,1000,500&earned=0,2,0&move=play"
    )
    expect(page.locator(".log")).to_contain_text(re.compile(r"play: (whammy!|\$)"))
    assert faults(page) == []
