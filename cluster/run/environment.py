"""What a process is made of, as far as a table's bytes depend on it; imports none of it."""

from __future__ import annotations

import hashlib
import platform
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numba", "llvmlite", "numpy", "pyarrow", "pydantic")


@dataclass(frozen=True)
class Environment:
    """versions: of Python, of packages and of the machine, by name. code: a hash of luckbase."""

    versions: tuple[tuple[str, str], ...]
    code: str

    def differs_from(self, other: Environment) -> str:
        """What is different there, as a sentence has it; "" where nothing is."""
        mine = dict(self.versions)
        for name, there in other.versions:
            if there == "":
                return f"has no {name}; {mine[name]} is needed"
            if there != mine[name]:
                return f"has {name} {there}, not {mine[name]}"
        return "" if self.code == other.code else "runs other code of luckbase"


@cache
def own_environment() -> Environment:
    """This process's."""
    found = [("Python", ".".join(map(str, sys.version_info[:2])))]
    for package in PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            found.append((package, ""))
    return Environment((*found, ("the architecture", platform.machine())), code_hash())


@cache
def code_hash() -> str:
    """A hash of the source files of luckbase that this process runs."""
    digest = hashlib.sha256()
    for name, path in source_files():
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


PACKAGE = Path(__file__).parents[2]
"""The folder of the package luckbase, where this process has it from."""


def source_files() -> list[tuple[str, Path]]:
    """The files of the package luckbase, with their names in it."""
    found = [*PACKAGE.glob("*.py")]
    for room in PACKAGE.iterdir():  # a link in a checkout, which a search from above does not enter
        found += room.rglob("*.py") if room.is_dir() else ()
    return sorted((path.relative_to(PACKAGE).as_posix(), path) for path in found)
