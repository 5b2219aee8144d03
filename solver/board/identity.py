"""Which rules: everything that changes a payoff, as one short name.

The rules identity of a game on a board is made of the canonical board without the options of reach
(`Board.reach`), which say how far a table goes, and of the version of that game's rules. The file's
name is not in it, nor the frontier, nor the roots of a search: tables of one identity hold the same
payoffs and grow together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from luckbase.solver.board.model import Board, canonical

if TYPE_CHECKING:
    from luckbase.solver.game.game import Game

DIGITS = 12


def rules_form(board: Board) -> dict[str, Any]:
    """The canonical form of the board without the options of reach: what changes a payoff."""
    form = canonical(board)
    for option in type(board).reach:
        *sections, key = map(str, type(board).options()[option])
        inner = form
        for section in sections:
            inner = inner.get(section, {})
        inner.pop(key, None)
    return {key: value for key, value in form.items() if value != {}}


def identity_of(form: Mapping[str, Any], rules_version: int) -> str:
    """The rules identity of a `rules_form`, in 12 hexadecimal digits."""
    text = json.dumps([form, rules_version], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGITS]


def rules_identity(game: Game) -> str:
    """The rules identity of a game on its board, in 12 hexadecimal digits."""
    return identity_of(rules_form(game.board), game.rules_version)


def changed_options(board: Board) -> dict[str, Any]:
    """The options that are not at their game's defaults, by name, those of reach left out."""
    found: dict[str, Any] = {}
    for option, location in type(board).options().items():
        if option in type(board).reach:
            continue
        *sections, key = map(str, location)
        inner: Any = board
        for section in sections:
            inner = getattr(inner, section)
        value, field = getattr(inner, key), type(inner).model_fields[key]
        if value != field.default:
            found[option] = value
    return dict(sorted(found.items()))
