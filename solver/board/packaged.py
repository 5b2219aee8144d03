"""The boards that the package brings, by name: ``pig/race``.

A name is taken wherever a board file is; a file or folder of that path goes before it.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from functools import cache
from pathlib import Path

HOME = Path(__file__).parents[2] / "boards"
"""Where they are: in a checkout and in an installed package."""
SUFFIX = ".toml"


@cache
def names() -> tuple[str, ...]:
    """The names of all, in the order of the alphabet."""
    return tuple(sorted(f"{path.parent.name}/{path.stem}" for path in HOME.glob(f"*/*{SUFFIX}")))


def located(name: str | os.PathLike[str]) -> Path:
    """The path that a person means: the one that they wrote if there is such, else that of the
    board of this name, else what they wrote."""
    path = Path(name)
    if path.as_posix() not in names() or os.path.exists(path):
        return path
    return HOME / f"{path.as_posix()}{SUFFIX}"


def episode(name: str | os.PathLike[str]) -> Path:
    """The file of a game that is written down: the one of this path, else one of those that the
    package brings, ``press-your-luck/episodes/tiny``, with its ending or without."""
    path = Path(name)
    known = [HOME / path, HOME / f"{path.as_posix()}.txt"]
    return next((each for each in [path, *known] if each.is_file()), path)


def name_of(path: str | os.PathLike[str]) -> str:
    """The path as a person types it: the name, of a board of these."""
    path = Path(path)
    return f"{path.parent.name}/{path.stem}" if path.parent.parent == HOME else str(path)


def meant(path: Path) -> str:
    """A clause naming the board that a path which is not there may mean; nothing where there is
    none."""
    if path.as_posix() in {name.partition("/")[0] for name in names()}:
        near = [name for name in names() if name.startswith(f"{path.as_posix()}/")]
    else:
        whole = "/".join(path.with_suffix("").parts[-2:])
        near = [name for name in names() if name == whole]
        near = near or get_close_matches(whole, names(), n=1, cutoff=0.8)
        near = near or [name for name in names() if name.endswith(f"/{path.stem}")]
    if not near:
        return ""
    *others, last = near
    said = f"{', '.join(others)} or {last}, boards" if others else f"{last}, a board"
    return f"; did you mean {said} that luckbase brings?"
