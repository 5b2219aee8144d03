"""docs/reference/boards.md is held to the models of the boards, and to the boards themselves."""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from luckbase import solver
from luckbase.solver.games.press_your_luck.board import read_slide

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/reference/boards.md").read_text(encoding="utf-8")


def section(game: str) -> str:
    """What the page says of a game."""
    return TEXT.split(f"\n## {game}\n")[1].split("\n## ")[0]


def said(value: Any) -> str:
    """A value as the file has it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else str(value)


def values_of(field: Any) -> str:
    """The values that a field takes, as the page says them."""
    kind, bounds = field.annotation, list(field.metadata)
    if get_origin(kind) in (Union, types.UnionType):
        kinds = [each for each in get_args(kind) if each is not type(None)]
        return ", ".join(values_of_kind(each, bounds) for each in kinds)
    return values_of_kind(kind, bounds)


def values_of_kind(kind: Any, bounds: list[Any]) -> str:
    """The values of one type."""
    bounds = list(bounds)
    while not isinstance(kind, type) and get_origin(kind) is not Literal:
        bounds += kind.__metadata__
        kind = kind.__origin__
    if get_origin(kind) is Literal:
        return ", ".join(map(said, get_args(kind)))
    if kind is bool:
        return "`true`, `false`"
    found: dict[str, int] = {}
    for bound in bounds:
        for each in [bound, *getattr(bound, "metadata", [])]:
            found |= {name: getattr(each, name) for name in ("ge", "le") if hasattr(each, name)}
    return f"{found['ge']} to {found['le']}"


def field_at(model: type[BaseModel], location: tuple[Any, ...]) -> Any:
    for part in location[:-1]:
        inner = model.model_fields[str(part)].annotation
        assert isinstance(inner, type) and issubclass(inner, BaseModel)
        model = inner
    return model.model_fields[str(location[-1])]


MODELS = {board.game: type(board) for board in
          map(solver.load_board, sorted((ROOT / "boards").glob("*/*.toml")))}  # fmt: skip


def test_every_game_has_its_section() -> None:
    assert len(MODELS) >= 6
    assert {*MODELS} == {*re.findall(r"^## (.+)$", TEXT, re.MULTILINE)}


@pytest.mark.parametrize("game", MODELS)
def test_options_values_and_defaults_are_the_models_own(game: str) -> None:
    model = MODELS[game]
    rows = re.findall(r"^\| `([a-z_]+)` \| (.+?) \| (.+?) \| .+ \|$", section(game), re.MULTILINE)
    wanted = []
    for option, location in model.options().items():
        field = field_at(model, location)
        wanted.append((option, values_of(field), said(field.default)))
    assert sorted(rows) == sorted(wanted)


def test_every_board_is_in_the_table() -> None:
    files = {f"{p.parent.name}/{p.stem}" for p in (ROOT / "boards").glob("*/*.toml")}
    listed = re.findall(r"^\| `([a-z0-9-]+/[a-z0-9-]+)` \|", TEXT, re.MULTILINE)
    assert sorted(listed) == sorted(files)


def test_every_slide_in_the_table_is_one() -> None:
    table = section("press-your-luck").split("| slide |")[1]
    slides = [s for s in re.findall(r"`\"?([^`\"]+)\"?`", table) if s[0].isdigit() or " " in s or
              s in ("prize", "whammy", "double", "across")]  # fmt: skip
    kinds = {read_slide(int(s) if s.isdecimal() else s).kind for s in slides}
    assert kinds == {
        "money", "prize", "whammy", "go back", "advance", "move one", "pick a corner",
        "big bucks", "across", "double", "money or lose a whammy",
    }  # fmt: skip


def test_the_boards_own_keys_are_named() -> None:
    for name in MODELS["press-your-luck"].model_fields:
        assert name == "name" or re.search(rf"[`\[]{name}\b|\b{name} =", TEXT), name
