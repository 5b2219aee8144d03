"""A table as a page without a server: the page answers what the table does, from any host of files.

Each is served twice: by a host that gives ranges of files, and by one that does not.
"""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luckbase
from luckbase.cluster.table.find import open_table
from luckbase.cluster.table.moves import address
from luckbase.cluster.table.table import StoredTable
from luckbase.game import Board, Field, Rules, decision, lead, over, register, set_field, transition
from luckbase.jobs.app import run
from luckbase.jobs.web.site import write_site
from luckbase.solver.errors import OptionError
from luckbase.solver.game.fields import typed
from tests.jobs.web.browsing import expect, faults
from tests.places import BOARDS

PAYOFFS = ("pig", "skunk", "jackpot", "deck")
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


@transition
def deck(board, state, edges):  # type: ignore[no-untyped-def]
    """Lay card 40 aside or take it, until it is warm; an even hand wins."""
    hand, heat = state
    if heat == 6:
        return over(edges, 1.0 - hand % 2)
    for taken in (0, 1):
        child = lead(edges, state, taken, 1.0)
        child[0], child[1] = hand ^ (taken << 39), heat + 1
    return decision(edges, 0)


def deck_rules(board: Board) -> Rules:
    hand = 1 << 1 | 1 << 32 | 1 << 39  # as the start has it
    fields = [set_field("hand", 40, hand), Field("heat", low=-20, high=10, unit=5, default=-20)]
    start = {"hand": (2, 33, 40), "heat": -10}
    return Rules(fields=fields, players=1, transition=deck, numbers=(), max_edges=2, start=start,
                 actions=("aside", "take"))  # fmt: skip


@pytest.fixture(scope="module")
def sites(tables: dict[str, Path], tmp_path_factory: Any) -> dict[str, tuple[Path, Path]]:
    """By game: a table, and its site."""
    decided = luckbase.solve(
        luckbase.load_board(BOARDS / "press-your-luck/tiny.toml", frontier=2),
        results=tmp_path_factory.mktemp("decided"), store="decisions", margin=True,
        payoffs_of="spins=1",
    ).table  # fmt: skip
    register("deck", Board, deck_rules)
    own = luckbase.solve(Board(game="deck", name="deck"), results=tmp_path_factory.mktemp("own"))
    paths = tables | {"press-your-luck": Path(decided), "deck": Path(own.table)}
    found = {}
    for game in GAMES:
        path = paths[game]
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


@pytest.mark.parametrize(("game", "kind"), [*((game, Ranged) for game in PAYOFFS), ("pig", Plain)])
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
        if game == "deck":  # a set that is not said is its default
            ((_, own),) = asked(page, table, ["heat=-10"])
            assert own["state"]["hand"] == [2, 33, 40] and own["value"] == [1.0]
        page.close()


def test_a_page_without_a_server_says_every_decision(
    sites: dict[str, tuple[Path, Path]], browser: Any
) -> None:
    path, site = sites["press-your-luck"]
    with open_table(path) as table, hosted(site, Ranged) as (where, _):
        page = browser.new_page()
        page.goto(where)
        assert "has its best action. Open" in page.inner_text("p.lead")
        states = np.concatenate([*table.draw(400, 3)])
        words = [typed(table.game.describe(state)) for state in states]
        right = table.stored_best(states)
        classes = [table.decided.margin_class(state) for state in states]  # type: ignore[union-attr]
        got = asked(page, table, [address(each) for each in words])
        assert len({*right}) > 2 and len({*classes}) > 2
        payoffs, known = table.lookup(states)
        assert 0 < known.sum() < len(states)
        value = [each.tolist() if there else [] for each, there in zip(payoffs, known, strict=True)]
        for (status, own), *each in zip(got, right, classes, value, strict=True):
            assert status == 200
            assert [own["best"], own.get("margin_class", ""), own["value"]] == each
        page.close()


def test_a_state_said_otherwise_is_the_one_that_the_table_takes_it_for(
    tmp_path: Path, browser: Any
) -> None:
    board = luckbase.load_board(BOARDS / "jackpot/tiny.toml", dice=2)
    found = luckbase.solve(board, results=tmp_path / "results")
    with open_table(Path(found.table)) as table:
        write_site(table, tmp_path / "site")
        with hosted(tmp_path / "site", Plain) as (where, _):
            page = browser.new_page()
            page.goto(where)
            (status, said), (wrong, sorry) = asked(
                page, table, ["open=1,2,3,4&dice=4,1", "open=1,2,3,4&dice=9,1"]
            )
        right = table.ask(open=(1, 2, 3, 4), dice=(4, 1))
        assert status == 200 and said["state"] == right.state and said["state"]["dice"] != [4, 1]
        assert said["value"] == [*right.value]
        assert wrong == 400 and "dice: 9 is too large" in sorry["error"]
    page.close()


def test_a_block_that_was_changed_is_refused(
    sites: dict[str, tuple[Path, Path]], tmp_path: Path, browser: Any
) -> None:
    path, site = sites["pig"]
    shutil.copytree(site, tmp_path / "site")
    file = tmp_path / "site/data/states.bin"
    content = bytearray(file.read_bytes())
    places = np.frombuffer(content[:4], "<u4")[0] // 4 - 1
    ends = np.frombuffer(content[: 4 * places + 4], "<u4").astype(int)
    for end in ends[1:]:
        content[end - 1] ^= 1
    swapped = bytes(content)
    with open_table(path) as table, hosted(tmp_path / "site", Ranged) as (where, _):
        for changed in (swapped, _exchanged(file.read_bytes(), ends)):
            file.write_bytes(changed)
            page = browser.new_page()
            page.goto(where + f"#/t/{'~'.join(path.parts[-3:])}/state")
            expect(page.get_by_text("is not what was published")).not_to_have_count(0)
            (status, said), *_ = asked(page, table, ["mine=0&yours=0&turn=0"])
            assert status == 409 and "value" not in said
            page.close()


def _exchanged(content: bytes, ends: Any) -> bytes:
    """The file with the first two blocks of states at each other's place, and the places right."""
    blocks = [content[a:b] for a, b in pairwise(ends.tolist())]
    blocks[1], blocks[2] = blocks[2], blocks[1]
    places = np.cumsum([ends[0], *map(len, blocks)], dtype="<u4")
    return places.tobytes() + b"".join(blocks)


@pytest.mark.parametrize("game", GAMES)
def test_the_first_answer_takes_few_bytes(
    game: str, sites: dict[str, tuple[Path, Path]], browser: Any
) -> None:
    path, site = sites[game]
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    with hosted(site, Ranged) as (where, sent):
        page.goto(f"{where}#/t/{'~'.join(path.parts[-3:])}/state")
        expect(page.locator("main:not([aria-busy]) h1")).to_be_visible()
        assert sum(sent) < 150_000
    context.close()


@pytest.mark.parametrize("game", ["press-your-luck", pytest.param("pig", marks=pytest.mark.slow)])
def test_a_phone_without_a_connection_has_all_of_a_small_site(
    game: str, sites: dict[str, tuple[Path, Path]], browser: Any
) -> None:
    path, site = sites[game]
    id = "~".join(path.parts[-3:])
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    with hosted(site, Ranged) as (where, _):
        page.goto(f"{where}#/t/{id}/state")
        expect(page.get_by_text("kept here, for use without a connection")).to_be_visible()
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    for view in ("state?random=5", "charts", "grid", "train"):
        page.goto("about:blank")
        page.goto(f"{where}#/t/{id}/{view}")
        expect(page.locator("main:not([aria-busy]) :is(h1, h2)").first).to_be_visible()
        expect(page.locator(".sorry")).to_have_count(0)
    if game == "press-your-luck":
        expect(page.locator("thead .own")).to_have_text(re.compile(r"^player \d$"))
    with open_table(path) as table:
        rows = page.locator('section[aria-label="The state"] tbody th').all_inner_texts()
        assert rows == [field.name for field in table.game.fields]
        states = some_states(table)
        words = [address(typed(table.game.describe(state))) for state in states]
        assert all(status == 200 for status, _ in asked(page, table, words))
    assert not said
    context.close()


@pytest.mark.parametrize(
    "game", ["press-your-luck", pytest.param("jackpot", marks=pytest.mark.slow)]
)
def test_its_views_keep_to_the_width_and_can_be_read(
    game: str, sites: dict[str, tuple[Path, Path]], browser: Any
) -> None:
    path, site = sites[game]
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    with hosted(site, Plain) as (where, _):
        for view in (
            "",
            *(f"#/t/{'~'.join(path.parts[-3:])}/{view}" for view in ("state", "train")),
        ):
            page.goto("about:blank")
            page.goto(where + view)
            expect(page.locator("main:not([aria-busy]) h1").first).to_be_visible()
            assert faults(page) == []
    context.close()


def test_what_a_site_cannot_hold_is_one_sentence(tables: dict[str, Path], tmp_path: Path) -> None:
    with (
        open_table(tables["goofspiel"]) as table,
        pytest.raises(OptionError, match="one decides at a time"),
    ):
        write_site(table, tmp_path)


def test_publish_takes_one_place(tables: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    assert run(["publish", str(tables["skunk"])]) == 2
    assert "expected one place" in capsys.readouterr().err
    assert run(["publish", str(tables["skunk"]), "--site", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert said["files"] == len(files)
    assert said["bytes"] == sum(each.stat().st_size for each in files)
