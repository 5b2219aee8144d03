"""The versions that an installation takes are those that the tests passed with."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.constraints import FILE, needed, versions


def pinned() -> dict[str, Requirement]:
    lines = [line for line in FILE.read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(each.name): each for each in map(Requirement, lines)}


def test_every_dependency_has_one_version_that_the_project_allows() -> None:
    pins = pinned()
    for each in needed():
        (pin,) = pins[canonicalize_name(each.name)].specifier
        assert pin.operator == "==" and each.specifier.contains(pin.version), each.name


def test_what_they_need_in_turn_is_pinned_too() -> None:
    """All that is installed here for them, whatever its version is here."""
    assert versions().keys() <= pinned().keys()
    assert {"referencing", "pydantic-core", "iniconfig"} <= pinned().keys()
