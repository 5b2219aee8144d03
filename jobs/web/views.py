"""The views of a table: what each address of one takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from luckbase.cluster.table.moves import Moves, moves
from luckbase.cluster.table.stored import StoredTable
from luckbase.jobs.web import about
from luckbase.jobs.web.asked import Asked
from luckbase.jobs.web.replies import as_json
from luckbase.jobs.web.shelf import Shelf
from luckbase.solver.errors import LuckbaseError, StaleTableError

JSON = "application/json"

Reply = tuple[str, bytes]
"""The type of what is sent, and its bytes."""


@dataclass(frozen=True)
class View:
    """An address: its path, what answers it, and how large a body it takes (0: none)."""

    path: str
    answer: Callable[[Shelf, str, Asked, str, bytes], Reply]
    method: str = "GET"
    most_bytes: int = 0


def listing(shelf: Shelf) -> dict[str, Any]:
    """``GET /api/tables``."""
    return {"tables": [about.summary(shelf, each) for each in shelf.listed()]}


def of_table(question: Callable[[StoredTable, Asked], Any]) -> Callable[..., Reply]:
    """A view that asks one table, by parameters alone, and says JSON."""

    def answer(shelf: Shelf, id: str, asked: Asked, kind: str, body: bytes) -> Reply:
        strict = asked.truth("strict")
        with shelf.open(id) as table:
            try:
                if strict and table.origin.stale:
                    why = "; ".join(table.origin.stale[:3])
                    raise StaleTableError(f"{id}: this table is stale: {why}")
                return JSON, as_json(question(table, asked))
            except LuckbaseError as error:
                error.fields = table.game.fields.names  # type: ignore[attr-defined]
                raise

    return answer


def table_view(shelf: Shelf, id: str, asked: Asked, kind: str, body: bytes) -> Reply:
    """``GET /api/tables/{id}``."""
    asked.nothing_else(())
    said = about.summary(shelf, shelf.find(id))
    with shelf.open(id) as table:
        return JSON, as_json(said | about.described(table))


def state_view(table: StoredTable, asked: Asked) -> dict[str, Any]:
    """``GET /api/tables/{id}/state``."""
    drawn = asked.take("random")
    seed = None if drawn is None else hash_of(drawn)
    words = about.need_state(table, asked.state(), seed)
    return state_said(table, words)


def state_said(table: StoredTable, words: Any) -> dict[str, Any]:
    """The answer to a state with what can happen there, and its drawing."""
    there: Moves = moves(table, words, about.MOST_SEARCHED)
    return there.as_json() | {"drawing": drawing(table, words)}


def hash_of(text: str) -> int:
    """A seed of any text, always the same."""
    from zlib import crc32

    return crc32(text.encode())


def drawing(table: StoredTable, words: Any) -> str | None:
    """The state as the game looks, as SVG."""
    from luckbase.jobs.web.scene_svg import svg
    from luckbase.solver.game.scenes import scene_of

    return svg(scene_of(table.game, words))


AT = "/api/tables/{id}"
VIEWS = (
    View(AT, table_view),
    View(f"{AT}/state", of_table(state_view)),
)
