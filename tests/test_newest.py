"""Which of the newest packages broke what (`tests.newest`), of environments that are only said."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.newest import (
    Environment,
    InstallError,
    Versions,
    breaks,
    changed,
    lowest_versions,
    pinned_versions,
)

OLD = {"numpy": "1.0", "polars": "1.0", "ray": "1.0", "rich": "1.0", "typer": "1.0"}
NEW = OLD | {"numpy": "2.0", "polars": "2.0", "ray": "2.0", "rich": "2.0"}
"""The newest polars takes the newest numpy; the newest ray can not be installed alone."""


class Said(Environment):
    """Tests: `slow` breaks with numpy 2, `frame` with polars 2, `both` where rich and ray are 2;
    `old` always does."""

    def __init__(self) -> None:
        super().__init__(Path())
        self.now: dict[str, str] = {}

    def make(self, *words: str) -> None:
        self.now = dict(OLD if "-c" in words else NEW)
        self.now |= dict(word.split("==") for word in words if "==" in word)

    def install(self, *words: str) -> None:
        if "-r" in words:
            self.now = dict(OLD)
            return
        name, _, version = words[0].partition("==")
        if name == "ray":
            raise InstallError("No matching distribution")
        self.now[name] = version
        if name == "polars":
            self.now["numpy"] = version

    def versions(self) -> Versions:
        return self.now

    def failing(self, words: Sequence[str]) -> list[str]:
        broken = {
            "slow": self.now["numpy"] == "2.0", "frame": self.now["polars"] == "2.0",
            "both": self.now["rich"] == self.now["ray"] == "2.0", "old": True,
        }  # fmt: skip
        return [name for name, fails in broken.items() if fails and name in words]


def test_each_failure_is_laid_to_the_package_that_causes_it() -> None:
    assert breaks(Said(), Said(), ["slow", "frame", "both", "old", "fine"], OLD) == [
        "fails with the tested versions too: old",
        "numpy 2.0, tested 1.0 breaks slow",
        "polars 2.0, tested 1.0, with numpy, breaks slow, frame",
        "ray 2.0, tested 1.0: can not be tried alone: No matching distribution",
        "no package alone breaks both",
    ]


def test_where_all_pass_nothing_is_at_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert breaks(Said(), Said(), ["fine"], OLD) == []
    assert capsys.readouterr().out == (
        "4 of 5 packages have other versions: numpy polars ray rich\n"
    )


def test_versions_that_are_said_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    lowest = {"numpy": "0.9", "polars": "1.0"}
    assert breaks(Said(), Said(), ["slow"], OLD, OLD | lowest) == []
    assert capsys.readouterr().out == "1 of 5 packages have other versions: numpy\n"
    assert {"numba", "obstore", "matplotlib", "starlette"} <= lowest_versions().keys()
    assert lowest_versions().keys() <= {*pinned_versions()}


def test_only_what_is_pinned_and_installed_can_differ() -> None:
    now = {"numpy": "2.0", "pip": "30", "rich": "1.0"}
    assert changed(OLD, now) == {"numpy": "2.0, tested 1.0"}
    assert {"numpy", "pytest", "pydantic-core"} <= pinned_versions().keys()


@pytest.mark.parametrize(
    ("text", "fails"),
    [("def test_one(): assert 0\ndef test_two(): pass\n", ["test_two_tests.py::test_one"]),
     ("def test_two(): pass\n", []), ("import nothing_of_this_name\n", ["test_two_tests.py"])],
)  # fmt: skip
def test_what_fails_is_what_pytest_says(
    text: str, fails: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # half of what pytest takes
    file = tmp_path / "test_two_tests.py"
    file.write_text(text)
    here = Environment(tmp_path)
    here.python = sys.executable
    words = ["-c", "/dev/null", "--rootdir", str(tmp_path), "--confcutdir", str(tmp_path)]
    assert here.failing([*words, str(file)]) == fails


def test_where_pytest_can_not_begin_it_is_tried_again_without_running_anything() -> None:
    here = Environment(Path())
    here.python = sys.executable
    assert here.failing(["--no-such-option"]) == ["--collect-only", "--no-such-option"]


def test_pip_says_what_it_can_not_install(tmp_path: Path) -> None:
    here = Environment(tmp_path)
    here.python = sys.executable
    with pytest.raises(InstallError, match="pip"):
        here.install("--no-such-option")
