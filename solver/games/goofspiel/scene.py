"""A state of Goofspiel as the game looks: two hands, and the deck of prizes between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from luckbase.solver.charts.scene import CHANCE, GONE, QUIET, UP, Box, Scene, Shape, Words, listed
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Scenes
from luckbase.solver.game.fields import members
from luckbase.solver.game.game import Game
from luckbase.solver.games.goofspiel import rules
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.board import Rules as Options

CARD, HIGH, GAP, HEAD, ROW = 42.0, 60.0, 8.0, 34.0, 116.0
"""A card, between cards, the words above a row, and from row to row, in units."""
LEAST = 9
"""Cards that the sheet is wide enough for, however few there are."""


def scenes(game: Game) -> Scenes:
    """The drawing of a board's states."""
    assert isinstance(game.board, GoofspielBoard)
    return Scenes(partial(draw, game.board.rules))


def draw(options: Options, values: Ints) -> Scene:
    """The other's hand on top, mine below; values (fields,)."""
    mine, theirs, deck = (members(int(values[i])) for i in range(rules.UPCARD))
    upcard, most = int(values[rules.UPCARD]), options.cards
    lead = int(values[rules.LEAD]) if options.objective == "win" else None
    wide = max(most, LEAST) * (CARD + GAP) + GAP
    left = (wide - most * (CARD + GAP) + GAP) / 2
    shapes: list[Shape] = []
    rows = (("player 2", "theirs", theirs), ("the deck", "deck", deck), ("player 1", "mine", mine))
    for i, (name, field, held) in enumerate(rows):
        y = 4 + i * ROW
        role = UP if upcard and field != "deck" else ""
        head = f"{name}: {sum(held)} points left" if field == "deck" else name
        shapes.append(Words(head, GAP, y + 11, 16, "start", bold=role == UP))
        shapes += _cards(field, held, most, left, y + HEAD, upcard if field == "deck" else 0)
    if lead is not None:
        said = f"player 1 leads by {lead}" if lead > 0 else f"player 2 leads by {-lead}"
        shapes.append(Words(said if lead else "level", wide - GAP, 15 + ROW, 16, "end"))
    title, about = _said(mine, theirs, deck, upcard, lead)
    return Scene(title, about, wide, 3 * ROW - 12, tuple(shapes))


def _cards(
    field: str, held: Sequence[int], most: int, left: float, y: float, upcard: int
) -> Iterator[Shape]:
    """The cards 1 to `most`, the one that is turned up raised."""
    for k in range(1, most + 1):
        there, up = k in held, k == upcard
        role = UP if up else CHANCE if there and field == "deck" else "" if there else GONE
        about = f"the {k} {'is turned up' if up else 'is there' if there else 'is gone'}"
        yield Box("card", left + (k - 1) * (CARD + GAP), y - 9 * up, CARD, HIGH, (str(k),), role,
                  24, about, field, str(k))  # fmt: skip
    if not held:
        yield Words("no cards", left, y + HIGH / 2, 16, "start", role=QUIET)


def _said(
    mine: list[int], theirs: list[int], deck: list[int], upcard: int, lead: int | None
) -> tuple[str, str]:
    """The title and the sentences."""
    title = "before the next prize is turned up"
    if upcard:
        title = f"the {upcard} is turned up; both bid"
    elif not deck:
        title = "the game is over"
    hands = [
        f"{who} {listed(list(map(str, held)))}."
        for who, held in (
            ("Player 1 holds", mine), ("Player 2 holds", theirs), ("In the deck:", deck),
        )
    ]  # fmt: skip
    if upcard:
        hands.append(f"The {upcard} is turned up.")
    if lead is not None:
        ahead = 1 if lead > 0 else 2
        hands.append(f"Player {ahead} leads by {abs(lead)}." if lead else "Both are level.")
    return title, " ".join(hands)
