"""The versions that the tests passed with: ``python -m tests.constraints`` writes `constraints.txt`
from what is installed here, of all that the project and its extras need."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.places import ROOT

FILE = ROOT / "constraints.txt"
HEAD = "# What the tests passed with, for pip install -c; written by python -m tests.constraints\n"


def needed() -> list[Requirement]:
    """What `pyproject.toml` names, with every extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return [Requirement(line) for of in (project["dependencies"], *extras) for line in of]


def versions() -> dict[str, str]:
    """By name, the installed version of all that is needed, by way of others too."""
    found: dict[str, str] = {}
    left = [(each.name, each.extras) for each in needed()]
    met = set()
    while left:
        name, extras = left.pop()
        name = canonicalize_name(name)
        if (name, frozenset(extras)) in met:
            continue
        met.add((name, frozenset(extras)))
        try:
            package = distribution(name)
        except PackageNotFoundError:  # for another system, or another Python
            continue
        found[name] = package.version
        for line in package.requires or ():
            each = Requirement(line)
            if each.marker is None or any(
                each.marker.evaluate({"extra": extra}) for extra in ("", *extras)
            ):
                left.append((each.name, each.extras))
    return dict(sorted(found.items()))


if __name__ == "__main__":
    FILE.write_text(HEAD + "".join(f"{name}=={version}\n" for name, version in versions().items()))
