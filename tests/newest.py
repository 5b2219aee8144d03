"""The tests with the newest of every package, or the lowest that luckbase allows; which broke what.

``python -m tests.newest [--lowest] [WORDS FOR PYTEST…]`` makes a fresh environment without
`constraints.txt`, no pre-releases, and runs the tests in it, or those that are named. It says which
versions differ from those that the tests passed with. Where tests fail, each package that differs
is tried alone, in an environment that else has the tested versions. Exit code 1 where a test fails.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.constraints import FILE
from tests.places import ROOT

Versions = Mapping[str, str]
NEWEST, TESTED = ROOT / ".venv-newest", ROOT / ".venv-tested"
NO_TESTS = 5
"""Pytest's exit code where nothing was collected."""


class InstallError(Exception):
    """What pip says where it can not install something."""


class Environment:
    """A virtual environment; `make` it first."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.python = folder, str(folder / "bin/python")

    def make(self, *words: str) -> None:
        """Make it anew, with what `pip install` is given."""
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(self.folder)], check=True)
        self.install(*words)

    def install(self, *words: str) -> None:
        """Raises InstallError, with pip's last line."""
        done = self._run("-m", "pip", "install", "--quiet", *words)
        if done.returncode:
            raise InstallError([*done.stderr.splitlines(), f"pip ends with {done.returncode}"][-1])

    def versions(self) -> Versions:
        """By name, what is installed."""
        said = self._run("-m", "pip", "list", "--format", "json").stdout
        return {canonicalize_name(each["name"]): each["version"] for each in json.loads(said)}

    def failing(self, words: Sequence[str]) -> list[str]:
        """The tests that fail of those that words for pytest name; where it can not even begin,
        words with which it should."""
        with tempfile.TemporaryDirectory() as cache:
            done = self._run("-m", "pytest", "-o", f"cache_dir={cache}", *words, loud=True)
            failed = Path(cache) / "v/cache/lastfailed"
            found = [*json.loads(failed.read_text())] if failed.exists() else []
        ended = done.returncode in (0, NO_TESTS)
        return found or ([] if ended else ["--collect-only", *words])

    def _run(self, *words: str, loud: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *words], cwd=ROOT, text=True, capture_output=not loud, check=False
        )


def pinned_versions() -> Versions:
    """Those of `constraints.txt`."""
    lines = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
    pins = [Requirement(line) for line in lines]
    return {canonicalize_name(each.name): next(iter(each.specifier)).version for each in pins}


def lowest_versions() -> Versions:
    """Those that `pyproject.toml` allows of what luckbase needs, its extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [project["optional-dependencies"][extra] for extra in ("cloud", "report", "web")]
    needs = map(Requirement, sum(extras, project["dependencies"]))
    return {canonicalize_name(each.name): bound.version
            for each in needs for bound in each.specifier if bound.operator == ">="}  # fmt: skip


def changed(before: Versions, now: Versions) -> dict[str, str]:
    """Of the packages whose version is another one now, ``9.1, tested 9.0``."""
    return {name: f"{now[name]}, tested {version}" for name, version in before.items()
            if now.get(name, version) != version}  # fmt: skip


def breaks(
    newest: Environment, tested: Environment, words: Sequence[str], pins: Versions,
    lowest: Versions = {},
) -> list[str]:  # fmt: skip
    """What fails with the newest versions, or with these, a line each package that is at fault, and
    each test that fails and no package alone breaks; nothing where all pass. Environments are made
    here."""
    newest.make(".[test]", *(f"{name}=={version}" for name, version in lowest.items()))
    now = newest.versions()
    differ = changed(pins, now)
    many = f"{len(differ)} of {len(pins)} packages have"
    print(f"{many} other versions:", *sorted(differ), flush=True)
    failed = newest.failing(words)
    if not failed:
        return []
    tested.make("-c", str(FILE), ".[test]")
    already = tested.failing(failed)
    found = [f"fails with the tested versions too: {test}" for test in already]
    left = [test for test in failed if test not in already]
    unexplained = {*left}
    for name, said in differ.items() if left else ():
        try:
            tested.install(f"{name}=={now[name]}")
        except InstallError as error:
            found.append(f"{name} {said}: can not be tried alone: {error}")
            continue
        with_it = [other for other in changed(pins, tested.versions()) if other != name]
        broken = tested.failing(["--numprocesses", "0", *left])
        if broken:
            along = f", with {', '.join(with_it)}," if with_it else ""
            found.append(f"{name} {said}{along} breaks {', '.join(broken)}")
            unexplained -= {*broken} if {*broken} <= {*left} else unexplained
        tested.install("--no-deps", "-r", str(FILE))
    return [*found, *(f"no package alone breaks {test}" for test in left if test in unexplained)]


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--lowest"]
    lowest = lowest_versions() if "--lowest" in sys.argv else {}
    lines = breaks(Environment(NEWEST), Environment(TESTED), words, pinned_versions(), lowest)
    which = "the lowest versions" if lowest else "the newest of everything"
    print("\n".join(lines) or f"the tests pass with {which}")
    sys.exit(1 if lines else 0)
