"""Rows that meet conditions: those that an export writes, counted, within a page's patience."""

import pytest

import luckbase
from luckbase.jobs.web import filter
from tests.jobs.web.serving import GAMES, id_of

WHERE = {
    "press-your-luck": "to_act=2 best='pass to 3' scores_2<scores_3",
    "goofspiel": "payoff_1>payoff_2 cards>=2",
    "skunk": "best=roll mine<yours turn>0",
    "pig": "margin<0.3",
    "jackpot": "open=1,2",
}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Time for a search on a machine that is busy with other tests."""
    monkeypatch.setattr(filter, "SECONDS", 600.0)


@pytest.mark.parametrize("game", GAMES)
def test_rows_are_those_of_an_export_with_their_answers(game, client, web_results):
    id = id_of(client, game)
    asked = {"where": WHERE[game], "most": "3"}
    said = client.get(f"/api/tables/{id}/filter", params=asked).json()
    with luckbase.open(web_results.joinpath(*id.split("~"))) as table:
        right = table.to_arrow(WHERE[game], actions=True).read_all()
        assert said["count"] == len(right) > len(said["rows"]) == 3
        assert said["complete"] and said["looked_at"] == said["of"] == table.rows
        shown = right.slice(0, 3).to_pylist()
        for row, other in zip(said["rows"], shown, strict=True):
            fields = dict(pair.split("=") for pair in row["query"].split("&"))
            answer = table.ask(fields)
            assert row["value"] == list(answer.value)
            assert row["value"] == pytest.approx([other["payoff_1"], *row["value"][1:]])
            assert (row["best"], row["margin"]) == (answer.best, answer.margin)
            assert (row["to_act"] or 0) == other["to_act"]


def test_a_search_stops_when_its_time_is_over(client, monkeypatch):
    monkeypatch.setattr(filter, "SECONDS", -1.0)  # no option
    said = client.get(f"/api/tables/{id_of(client, 'pig')}/filter?where=margin<0.01").json()
    assert not said["complete"] and said["looked_at"] == said["count"] == 0 < said["of"]
