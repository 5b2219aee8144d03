"""Ready searches: the rows are those that an export writes, counted, within a page's patience."""

import pytest

import luckbase
from luckbase.jobs.web import tables
from tests.jobs.web.serving import GAMES, id_of


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Time for a search on a machine that is busy with other tests."""
    monkeypatch.setattr(tables, "SECONDS", 600.0)


@pytest.mark.parametrize("game", GAMES)
def test_rows_are_those_of_an_export_with_their_answers(game, client, web_results):
    id = id_of(client, game)
    ready = client.get(f"/tables/{id}").json()["searches"]
    assert ready
    with luckbase.open(web_results.joinpath(*id.split("~"))) as table:
        for number, search in enumerate(ready, start=1):
            text = client.get(f"/tables/{id}/search/{number}?most=3").json()
            right = table.to_arrow(search["where"], actions=True).read_all()
            assert text["label"] == search["label"] and text["count"] == len(right)
            assert text["complete"] and text["looked_at"] == text["total"] == table.rows
            for row, other in zip(text["rows"], right.slice(0, 3).to_pylist(), strict=True):
                fields = dict(pair.split("=") for pair in row["query"].split("&"))
                answer = table.ask(fields)
                assert row["value"] == list(answer.value)
                assert row["value"] == pytest.approx([other["payoff_1"], *row["value"][1:]])
                assert (row["best"], row["margin"]) == (answer.best, answer.margin)
                assert (row["to_act"] or 0) == other["to_act"]


def test_a_search_stops_when_its_time_is_over(client, monkeypatch):
    monkeypatch.setattr(tables, "SECONDS", -1.0)  # no option
    text = client.get(f"/tables/{id_of(client, 'pig')}/search/1").json()
    assert not text["complete"] and text["looked_at"] == text["count"] == 0 < text["total"]
