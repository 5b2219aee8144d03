"""A table as a page without a server: the page answers what the table does, from any host of files.

Each is served twice: by a host that gives ranges of files, and by one that does not.
"""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luckbase
from luckbase.cluster.table.moves import address
from luckbase.cluster.table.table import StoredTable, open_table
from luckbase.cluster.words import typed
from luckbase.jobs.web.site import write_site
from tests.jobs.web.browsing import expect
from tests.places import BOARDS

PAYOFFS = ("pig", "skunk", "jackpot")
GAMES = (*PAYOFFS, "press-your-luck")
STATES = 60


class Plain(http.server.SimpleHTTPRequestHandler):
    """A host without ranges, as ``python -m http.server``; counts what it sends."""

    sent: list[int]

    def log_message(self, *_: Any) -> None:
        pass

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        self.sent.append(len(content))
        outputfile.write(content)


class Ranged(Plain):
    """A host with ranges."""

    def send_head(self) -> Any:
        said = self.headers.get("Range")
        if said is None:
            return super().send_head()
        first, last = map(int, said.removeprefix("bytes=").split("-"))
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return None
        file = path.open("rb")
        file.seek(first)
        content = file.read(last + 1 - first)
        file.close()
        self.send_response(206)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.sent.append(len(content))
        self.wfile.write(content)
        return None


@contextmanager
def hosted(folder: Path, kind: type[Plain]) -> Iterator[tuple[str, list[int]]]:
    """The address of a folder, and what was sent of it."""
    sent: list[int] = []
    own = type(kind.__name__, (kind,), {"sent": sent})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(own, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", sent
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def sites(tables: dict[str, Path], tmp_path_factory: Any) -> dict[str, tuple[Path, Path]]:
    """By game: a table, and its site."""
    decided = luckbase.solve(
        luckbase.load_board(BOARDS / "press-your-luck/tiny.toml", frontier=2),
        results=tmp_path_factory.mktemp("decided"), store="decisions", margin=True,
        payoffs_of="none",
    ).table  # fmt: skip
    found = {}
    for game in GAMES:
        path = Path(decided) if game == "press-your-luck" else tables[game]
        site = tmp_path_factory.mktemp(f"site-{game}")
        with open_table(path) as table:
            write_site(table, site)
        found[game] = path, site
    return found


ASK = """async (paths) => {
  const { answer } = await import("./static/site.js");
  const found = [];
  for (const path of paths) {
    const said = await answer(path);
    found.push([said.status, await said.json()]);
  }
  return found;
}"""


def asked(page: Any, table: StoredTable, queries: list[str], view: str = "state") -> list[Any]:
    """What the page's own server says."""
    name = "~".join(Path(table.path).parts[-3:])
    paths = [f"/api/tables/{name}/{view}?{query}" for query in queries]
    return page.evaluate(ASK, paths)  # type: ignore[no-any-return]


def some_states(table: StoredTable) -> Any:
    return np.concatenate([*table.draw(STATES, 7)])[:STATES]


@pytest.mark.parametrize("game", PAYOFFS)
@pytest.mark.parametrize("kind", [Plain, Ranged])
def test_a_page_without_a_server_says_what_the_table_says(
    game: str, kind: type[Plain], sites: dict[str, tuple[Path, Path]], browser: Any
) -> None:
    path, site = sites[game]
    with open_table(path) as table, hosted(site, kind) as (where, _):
        page = browser.new_page()
        page.goto(where)
        expect(page.locator("main:not([aria-busy])")).to_be_visible()
        said = [table.moves(typed(table.game.describe(state))) for state in some_states(table)]
        right = [json.loads(json.dumps(each.as_json())) for each in said]
        got = asked(page, table, [each["query"] for each in right])
        for (status, own), each in zip(got, right, strict=True):
            assert status == 200
            for name in ("state", "query", "text", "to_act", "value", "best", "over", "toss_up"):
                assert own[name] == each[name], name
            assert len(own["actions"]) == len(each["actions"])
            margins = own["margin"] or 0, each["margin"] or 0
            assert margins[0] == pytest.approx(margins[1], abs=1e-14)
            by_name = {action["action"]: action for action in own["actions"]}
            for action in each["actions"]:
                mine = by_name[action["action"]]
                assert mine["value"] == pytest.approx(action["value"], abs=1e-14)
                assert mine["best"] == action["best"]
                ways = [a.get("outcomes") or [a["next"]] for a in (mine, action)]
                for one, other in zip(*ways, strict=True):
                    same = ("query", "weight", "cases", "value", "over", "reward")
                    assert [one[name] for name in same] == [other[name] for name in same]
        page.close()


@pytest.mark.parametrize("kind", [Plain, Ranged])
def test_a_page_without_a_server_says_every_decision(
    kind: type[Plain], sites: dict[str, tuple[Path, Path]], browser: Any
) -> None:
    path, site = sites["press-your-luck"]
    with open_table(path) as table, hosted(site, kind) as (where, _):
        page = browser.new_page()
        page.goto(where)
        states = np.concatenate([*table.draw(400, 3)])
        words = [typed(table.game.describe(state)) for state in states]
        right = table.stored_best(states)
        classes = [table.decided.margin_class(state) for state in states]  # type: ignore[union-attr]
        got = asked(page, table, [address(each) for each in words])
        assert {best for best in right} > {"play", None} or len({*right}) > 2
        for (status, own), best, margin in zip(got, right, classes, strict=True):
            assert status == 200
            assert own["best"] == best
            assert (own.get("margin_class") or "") == margin
        page.close()
