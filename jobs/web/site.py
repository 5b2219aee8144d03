"""A table as a page without a server: ``luckbase publish TABLE --site DIR``.

The page is that of `jobs.web.server`; what it asks is answered in the browser (``site.js``) from
files of blocks, of which a question reads a few kB. No rule is written down twice: of a table of
payoffs a row says what can happen there, of a table of decisions what is best. What the files hold
stands in `docs/reference/site-format.md`.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.table import OnRows, nobody
from luckbase.cluster.table.decisions import CLASS_NAMES, DecisionPart, SealedBlocks
from luckbase.cluster.table.format import tier_stem
from luckbase.cluster.table.ledger import FileEntry
from luckbase.cluster.table.moves import equal_cases
from luckbase.cluster.table.parts import TierPart
from luckbase.cluster.table.storage import storage_at
from luckbase.cluster.table.table import StoredTable
from luckbase.jobs.terminal import write_file
from luckbase.jobs.web import pictures
from luckbase.jobs.web.http import FILE_TYPES, STATIC, ApiRequest, encode
from luckbase.jobs.web.pool import TablePool
from luckbase.jobs.web.states import ChartParams, chart_view, step
from luckbase.jobs.web.tables import info, summary
from luckbase.solver.errors import LuckbaseError, OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Drawing, scene_of
from luckbase.solver.game.game import Game
from luckbase.solver.result import Result
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.sentences import many

OFFLINE_BYTES = 50_000_000
"""Up to which a browser keeps all of a site."""
MAX_STATES = 5_000_000
"""States of a table of payoffs that a site holds."""
MAX_PAID = 50_000_000
"""States of a table of decisions whose payoffs a site holds, of the fewest spins first."""
MAX_ALIASES = 300_000
"""Combinations of numbers among which other words for a state are looked for."""
ROWS, PIECE = 512, 64
"""States of a block, and blocks that are made together."""
LEVEL = 6
"""Of zlib. Decisions at $500, 32 million codes a second; 9 has 7 % fewer bytes, and takes 11 times
as long."""
VIEWS = ("state", "charts", "grid", "train")
LEFT_OUT = ("report.js", "report.css", "play.js", "filter.js", "compare.js", "sw.js")
"""Of the page's files: what no view of a site loads, and what is written with more in it."""
DATA = "data"


@dataclass(frozen=True)
class Site(Result):
    """A site that was written. files, bytes: all of it; data: bytes of its blocks. offline: whether
    a browser keeps all of it."""

    table: str
    to: str
    states: int
    files: int
    bytes: int
    data: int
    offline: bool


def write_site(table: StoredTable, folder: Path, on_rows: OnRows = nobody) -> Site:
    """Write the page of a table into a folder, for any web server.

    Raises OptionError for a table that a site cannot hold, OSError.
    """
    part = table.decided
    decisions = {} if part is None else _decisions(part)
    if not decisions:
        _check(table)
    pool = TablePool([lambda: [table.path]])
    (entry,) = pool.listed()
    page = info(summary(pool, entry), table).as_json()
    seal = f"{page['solve_id']}/"
    (folder / DATA).mkdir(parents=True, exist_ok=True)
    sizes: dict[str, int] = {}

    def put(name: str, blocks: Iterable[bytes]) -> None:
        sizes[name] = write_file(folder / DATA / name, packed(f"{seal}{name}", blocks))

    page["charts"], charts = _charts(table, page["charts"])
    put("charts.bin", [*charts, _picture(table.game, page).encode()])
    if part is not None and decisions:
        page |= {"site": decisions, "colours": ["best"]}
        page["site"]["paid"] = _put_payoffs(table, put)
        _put_decisions(table, part, put, on_rows)
    else:
        page["site"], aliases, blocks = _payoffs(table, on_rows)
        put("aliases.bin", [aliases])
        put("states.bin", blocks)
    page |= {"views": VIEWS, "agents": [], "tolerance": table.tolerance, "step": step(table.game)}
    page |= {"state": "complete", "running": None, "backdrop": ""}
    data = sum(sizes.values())
    offline = [*sizes] if data <= OFFLINE_BYTES else []
    files = _page(folder, page, offline)
    return Site(
        str(table.path), str(folder), page["states"], len(sizes) + len(files),
        data + sum(files.values()), data, bool(offline),
    )  # fmt: skip


def packed(seal: str, blocks: Iterable[bytes]) -> bytes:
    """A file of blocks: where each begins and the last one ends, then the blocks, each 8 bytes of
    its digest and raw deflate. seal: what the file is, which goes into the digests."""
    sealed_blocks = []
    for number, block in enumerate(blocks):
        deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -15, 9)
        content = deflate.compress(block) + deflate.flush()
        check = hashlib.sha256(f"{seal}/{number}\n".encode() + content).digest()[:8]
        sealed_blocks.append(check + content)
    places = np.cumsum([4 * len(sealed_blocks) + 4, *map(len, sealed_blocks)], dtype="<u4")
    return places.tobytes() + b"".join(sealed_blocks)


def planes(numbers: NDArray[Any]) -> bytes:
    """The bytes of numbers, first the lowest of each, last the highest: alike ones together."""
    return numbers.reshape(-1, 1).view(np.uint8).T.tobytes()


def _page(folder: Path, page: dict[str, Any], offline: list[str]) -> dict[str, int]:
    """Write the page's own files; gives the bytes of each. offline: what of `DATA` a browser is to
    keep."""
    index = (STATIC / "index.html").read_text(encoding="utf-8")
    index = index.replace('"/static/', '"static/').replace(
        '<html lang="en">', '<html lang="en" data-site="site.json">'
    )
    index = index.replace("</head>", '<link rel="manifest" href="site.webmanifest">\n</head>')
    index = re.sub(r"<p>Exact payoffs.*?</p>", FOOT, index)
    index = re.sub(
        r"(<noscript>).*?(</noscript>)", r"\1<p>This page needs JavaScript.</p>\2", index
    )
    index = index.replace("</body>", FROM_DISK)
    title = f"{page['game_title']}: {page['title']}"
    manifest = {
        "name": title, "short_name": page["game_title"], "start_url": "./",
        "display": "standalone",
        "background_color": "#ffffff", "theme_color": "#ffffff",
        "icons": [{"src": "static/icon.svg", "sizes": "any", "type": "image/svg+xml"}],
    }  # fmt: skip
    files = {
        "index.html": index.encode(), "offline.json": json.dumps(offline).encode(),
        "site.json": json.dumps({"format": 1, "table": page}, separators=(",", ":")).encode(),
        "site.webmanifest": json.dumps(manifest, ensure_ascii=False).encode(),
    }  # fmt: skip
    for path in sorted(STATIC.iterdir()):
        if path.suffix in FILE_TYPES and path.name not in (*LEFT_OUT, "index.html"):
            files[f"static/{path.name}"] = path.read_bytes()
    version = hashlib.sha256(b"".join(files.values())).hexdigest()[:16]
    kept = ["./" if name == "index.html" else name for name in files]  # a host may redirect to it
    worker = f"const VERSION = {json.dumps(version)}, FILES = {json.dumps(kept)};\n"
    files["sw.js"] = worker.encode() + (STATIC / "sw.js").read_bytes()
    (folder / "static").mkdir(exist_ok=True)
    return {name: write_file(folder / name, content) for name, content in files.items()}


def _picture(game: Game, page: dict[str, Any]) -> str:
    """The state in which the page begins, drawn, as the list of tables has it; "" for none."""
    start = page["start"] or next((each["state"] for each in page["examples"]), None)
    return "" if start is None else pictures.svg(scene_of(game, start))


FOOT = '<p>Exact, solved beforehand; this page asks no server. <span id="offline"></span></p>'
FROM_DISK = """<script>
if (location.protocol === "file:") document.querySelector(".loading").textContent =
  "A browser runs no page of modules from the disk: start a web server in this folder, " +
  "python3 -m http.server, and open the address that it says.";
</script>
</body>"""


def _charts(table: StoredTable, kinds: list[Any]) -> tuple[list[Any], list[bytes]]:
    """The charts that the table answers as they are without settings, and what each says."""
    kept, views = [], []
    for kind in kinds:
        with suppress(LuckbaseError):
            path = {"name": kind["name"]}
            view = chart_view(table, ApiRequest(ChartParams.read({}), path))
            views.append(encode(view.as_json()))
            kept.append({**kind, "takes": [], "reachable": False})
    return kept, views


# --- a table of decisions ------------------------------------------------------------------------


def _decisions(part: DecisionPart) -> dict[str, Any]:
    """What ``decisions.js`` has to know of the board and of the blocks; nothing of a game whose
    blocks it can not read."""
    readable = part.plan.for_readers([part.tier_of_number[entry.tier] for entry in part.entries])
    head = {"kind": "decisions", "actions": part.action_names, "classes": CLASS_NAMES, "rows": ROWS}
    return {**head, **readable} if readable else {}


def _put_decisions(
    table: StoredTable, part: DecisionPart, put: Callable[[str, Iterable[bytes]], None],
    on_rows: OnRows,
) -> None:  # fmt: skip
    """The blocks of the table, as they are but for their compression."""
    storage, rows = storage_at(table.path), 0

    def copy(entry: FileEntry) -> int:
        with closing(SealedBlocks(storage, table.path, entry)) as file:
            name = f"{Path(entry.name).stem}.bin"
            put(name, (file.codes(number).tobytes() for number in range(file.groups)))
        return entry.rows

    with ThreadPoolExecutor(cores()) as threads:
        for done in threads.map(copy, part.entries):
            rows += done
            on_rows(rows, part.ledger.rows)


def _put_payoffs(table: StoredTable, put: Callable[[str, Iterable[bytes]], None]) -> list[str]:
    """The payoffs of tiers that have them, in the order of their rows, as far as a site has room;
    gives their names."""
    names: list[str] = []
    part, room = table.full, MAX_PAID
    if part is None:
        return names
    whole: dict[int, int] = {}
    for entry in part.entries:
        whole[entry.tier] = whole.get(entry.tier, 0) + entry.rows
    for number, rows in sorted(whole.items()):
        tier = part.tier_of_number[number]
        if rows != part.layout.rows(tier) or rows > room:
            continue
        room -= rows
        names.append(tier_stem(part.layout, tier))
        put(f"{names[-1]}.payoffs.bin", _payoff_blocks(part, tier, rows))
    return names


def _payoff_blocks(part: TierPart, tier: Any, rows: int) -> Iterator[bytes]:
    for start in range(0, rows, ROWS * PIECE):
        states = part.layout.states_at(tier, np.arange(start, min(start + ROWS * PIECE, rows)))
        payoffs = part.lookup(states)[0].astype("<f4")
        for at in range(0, len(payoffs), ROWS):
            yield planes(payoffs[at : at + ROWS])


# --- a table of payoffs --------------------------------------------------------------------------


def _check(table: StoredTable) -> None:
    """Raises OptionError for a table of payoffs that a site cannot hold."""
    game = table.game
    table.need_payoffs("a site")
    if game.simultaneous:
        raise OptionError(f"{table.path}: a site is of games in which one decides at a time")
    for field in game.fields:
        if field.names is not None:
            raise OptionError(f"{table.path}: {field.name}: a site is of games whose fields are "
                              "numbers; run: luckbase serve")  # fmt: skip
    if table.rows > MAX_STATES:
        raise OptionError(
            f"{table.path}: has {many(table.rows, 'state')}; expected at most {MAX_STATES:,} of a "
            "site, or a table of decisions"
        )


def _payoffs(table: StoredTable, on_rows: OnRows) -> tuple[dict[str, Any], bytes, Iterator[bytes]]:
    """What ``payoffs.js`` has to know of the states; the keys of states that people say otherwise,
    and of what they are; and the blocks of states, after a first one of the first key of each."""
    game = table.game
    states = np.concatenate([piece for part in table.parts for piece in part.all_states()])
    rows = np.concatenate([states, *_over(table, states)])
    rooms = rows.max(axis=0).astype(object) + 1
    strides = [int(np.prod(rooms[i + 1 :])) for i in range(len(rooms))]
    if int(np.prod(rooms)) >= 1 << 53:
        raise OptionError(f"{table.path}: its states have too many fields for a site")
    by_key = np.array(strides)
    keys, first = np.unique(rows @ by_key, return_index=True)
    rows = rows[first]
    total = _total(table, rows[:: max(1, len(rows) // 100_000)])
    columns = [
        {"field": field.name, "stride": strides[i], "room": int(rooms[i]), "unit": field.unit,
         "shift": field.shift}
        for i, field in enumerate(f for f in game.fields for _ in f.columns)
    ]  # fmt: skip

    def blocks() -> Iterator[bytes]:
        yield keys[::ROWS].astype("<f8").tobytes()
        for start in range(0, len(rows), ROWS * PIECE):
            on_rows(start, len(rows))
            piece = rows[start : start + ROWS * PIECE]
            yield from _state_blocks(table, piece, keys[start : start + len(piece)], by_key, total)
        on_rows(len(rows), len(rows))

    aliases = _aliases(game, rooms.tolist(), columns)
    return {"kind": "payoffs", "columns": columns, "total": total}, aliases, blocks()


def _aliases(game: Game, rooms: list[int], columns: list[dict[str, Any]]) -> bytes:
    """The keys of what people may say that is the same as another state, ascending, then the keys
    of those; of games with more states to say none."""
    if int(np.prod(rooms, dtype=object)) > MAX_ALIASES:
        return b""
    numbers = np.indices(rooms).reshape(len(rooms), -1).T
    units, shifts, strides = (
        np.array([each[name] for each in columns]) for name in ("unit", "shift", "stride")
    )
    states, sound = game.known_states(numbers * units + shifts)
    keys, canonical = numbers[sound] @ strides, states @ strides
    moved = keys != canonical
    return planes(np.concatenate([keys[moved], canonical[moved]]).astype("<f8"))


def _over(table: StoredTable, states: Ints) -> Iterator[Ints]:
    """The states to which these lead and of which the table has no row: those that are over."""
    for start in range(0, len(states), ROWS * PIECE):
        children = expand(table.game, states[start : start + ROWS * PIECE]).children
        ended = np.unique(children[~table.holds(children)], axis=0)
        yield ended[expand(table.game, ended).terminal]


def _total(table: StoredTable, rows: Ints) -> float | None:
    """What the payoffs of all players are together, where the last one's follows from the others'
    to the last bit; else None."""
    payoffs = table.lookup(rows)[0]
    if table.game.players != 2:
        return None
    total = float(payoffs[0].sum())
    return total if np.array_equal(total - payoffs[:, 0], payoffs[:, 1]) else None


def _state_blocks(
    table: StoredTable, rows: Ints, keys: Ints, strides: Ints, total: float | None
) -> Iterator[bytes]:
    game, edges = table.game, expand(table.game, rows)
    payoffs, _ = table.lookup(rows)
    moved = _Merged.of(edges, edges.children @ strides)
    for start in range(0, len(rows), ROWS):
        stop = min(start + ROWS, len(rows))
        kinds: dict[str, int] = {}
        which = [
            kinds.setdefault(_pattern(game, rows[x], edges, moved, x), len(kinds))
            for x in range(start, stop)
        ]
        a, b = moved.first[start], moved.first[stop]
        counts = np.diff(moved.first[start : stop + 1])
        slot = np.arange(b - a) - np.repeat(np.cumsum(counts) - counts, counts)
        own_keys = np.repeat(keys[start:stop], counts)
        order = np.argsort(slot, kind="stable")
        away = (moved.keys[a:b] - own_keys)[order]
        away -= np.where(np.diff(slot[order], prepend=-1) == 0, np.roll(away, 1), 0)
        values = payoffs[start:stop] if total is None else payoffs[start:stop, :1]
        numbers = np.concatenate([
            np.diff(keys[start:stop], prepend=0), which, values.T.reshape(-1), away
        ]).astype("<f8")  # fmt: skip
        patterns = f"[{','.join(kinds)}]".encode()
        head = np.array([len(patterns), stop - start], "<u4").tobytes()
        yield head + patterns + planes(numbers)


@dataclass
class _Merged:
    """The edges of some states, those of an action that come to the same as one, as
    `cluster.table.moves` shows them: the likeliest first. edge: of each the first one that it
    stands for; first: where those of each state begin."""

    edge: Ints
    keys: Ints
    chances: Floats
    actions: Ints
    first: Ints

    @classmethod
    def of(cls, edges: Expanded, keys: Ints) -> _Merged:
        """From edges and the keys (m,) of their children."""
        states = np.repeat(np.arange(len(edges.first) - 1), np.diff(edges.first))
        begins = np.ones(len(keys), bool)
        begins[1:] = (np.diff(states) != 0) | (np.diff(edges.actions) != 0)
        group, paid = np.cumsum(begins), _numbered(edges.rewards)
        order = np.lexsort((np.arange(len(keys)), paid, keys, group))
        new = np.ones(len(keys), bool)
        for each in (group, paid, keys):
            new[1:] &= np.diff(each[order]) == 0
        new[1:] = ~new[1:]
        at = np.flatnonzero(new)
        edge = order[at]
        chances = np.add.reduceat(edges.weights[order], at) if len(at) else edges.weights[:0]
        order = np.lexsort((edge, -chances, group[edge]))
        order = order[~edges.terminal[states[edge[order]]]]
        edge = edge[order]
        first = np.searchsorted(states[edge], np.arange(len(edges.first)))
        return cls(edge, keys[edge], chances[order], edges.actions[edge], first)


def _numbered(rewards: Floats) -> Ints:
    """A number for each row that differs."""
    if not rewards.any():
        return np.zeros(len(rewards), np.int64)
    numbers: Ints = np.unique(rewards, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers


def _pattern(game: Game, state: Ints, edges: Expanded, moved: _Merged, x: int) -> str:
    """What can happen at state x, but for where it leads, as JSON."""
    a, b = int(moved.first[x]), int(moved.first[x + 1])
    actor, moves = int(edges.actors[x]), []
    turns = np.flatnonzero(np.diff(moved.actions[a:b])) + a + 1
    for low, high in pairwise([a, *turns.tolist(), b] if b > a else []):
        action = int(moved.actions[low])
        of = slice(int(edges.first[x]), int(edges.first[x + 1]))
        weights = edges.weights[of][edges.actions[of] == action].tolist()
        cases = equal_cases(tuple(weights))
        names = game.own(Drawing).outcome_names(state, action, edges.children[moved.edge[low:high]])
        outcomes = [
            {"name": name or "", "weight": chance if cases is None else round(chance * cases),
             "cases": cases, "chance": chance, "reward": edges.rewards[edge].tolist()}
            for name, chance, edge in zip(
                names, moved.chances[low:high].tolist(), moved.edge[low:high], strict=True
            )
        ]  # fmt: skip
        moves.append({"action": None if actor < 0 else game.action_name(action),
                      "outcomes": outcomes})  # fmt: skip
    pattern = {
        "over": not moves,
        "to_act": actor + 1 if actor >= 0 and moves else None,
        "moves": moves,
    }
    return json.dumps(pattern, separators=(",", ":"), ensure_ascii=False)
