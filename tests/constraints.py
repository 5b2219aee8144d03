"""What an installation takes: the versions that the tests passed with, and megabytes.

``python -m tests.constraints`` writes `constraints.txt` from what is installed here, of all that
the project and its extras need, and prints a table of sizes, that of docs/reference/platforms.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.places import ROOT

FILE, PAGE = ROOT / "constraints.txt", ROOT / "docs/reference/platforms.md"
HEAD = "# What the tests passed with, for pip install -c; written by python -m tests.constraints\n"
START = "<!-- sizes: written by python -m tests.constraints -->\n"
END = "<!-- end of sizes -->"
LARGE = 5.0
"""Megabytes from which on a package has its own in the table."""


def extras() -> dict[str, list[Requirement]]:
    """What `pyproject.toml` names: of the plain installation, "", and of each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    every = {"": project["dependencies"], **project["optional-dependencies"]}
    return {name: [Requirement(line) for line in lines] for name, lines in every.items()}


def needed() -> list[Requirement]:
    """What `pyproject.toml` names, with every extra."""
    return [each for of in extras().values() for each in of]


def installed(wanted: Iterable[Requirement]) -> dict[str, Distribution]:
    """By name, what is installed of all that is wanted, by way of others too."""
    found: dict[str, Distribution] = {}
    left = [(each.name, each.extras) for each in wanted]
    met = set()
    while left:
        name, more = left.pop()
        name = canonicalize_name(name)
        if (name, frozenset(more)) in met:
            continue
        met.add((name, frozenset(more)))
        try:
            package = distribution(name)
        except PackageNotFoundError:  # for another system, or another Python
            continue
        found[name] = package
        for line in package.requires or ():
            each = Requirement(line)
            if each.marker is None or any(
                each.marker.evaluate({"extra": extra}) for extra in ("", *more)
            ):
                left.append((each.name, each.extras))
    return dict(sorted(found.items()))


def versions() -> dict[str, str]:
    """By name, the installed version of all that is needed, by way of others too."""
    return {name: package.version for name, package in installed(needed()).items()}


def megabytes(package: Distribution) -> float:
    """What its files take on the disk, compiled Python with them."""
    files = [package.locate_file(file) for file in package.files or ()]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6  # type: ignore[attr-defined]


def sizes() -> dict[str, dict[str, float]]:
    """Of the plain installation, "", its packages and their megabytes; of each extra what it brings
    beside them."""
    every, found = extras(), {}
    plain = installed(every[""])
    for extra, wanted in every.items():
        own = installed(wanted)
        found[extra] = {n: megabytes(own[n]) for n in own if extra == "" or n not in plain}
    return found


def table() -> str:
    """A Markdown table of `sizes`."""
    lines = ["| install | packages | MB |", "| --- | --- | --- |"]
    for extra, packages in sizes().items():
        order = sorted(packages, key=lambda name: -packages[name])
        large = [f"{name} {packages[name]:.0f}" for name in order if packages[name] >= LARGE]
        rest = len(order) - len(large)
        name = f"`.[{extra}]`" if extra else "`.`"
        more = f"{'+' * bool(extra)}{sum(packages.values()):.0f}"
        lines.append(f"| {name} | {', '.join([*large, f'{rest} smaller'])} | {more} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(HEAD + "".join(f"{name}=={version}\n" for name, version in versions().items()))
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    PAGE.write_text(before + START + table() + END + rest.split(END, 1)[1], encoding="utf-8")
    print(table(), end="")
