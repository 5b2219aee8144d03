"""What an installation takes: the versions that the tests passed with, no more than is needed."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.constraints import END, FILE, PAGE, START, extras, installed, needed, sizes, versions


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


def test_the_plain_installation_is_below_800_mb_and_brings_no_extra() -> None:
    """With room for pip, for luckbase itself and for blocks of the disk that are not full."""
    plain = sizes()[""]
    assert 500 < sum(plain.values()) < 760
    assert not {"matplotlib", "scipy", "pandas", "starlette", "pillow"} & plain.keys()


def test_every_extra_is_in_the_table_of_sizes_with_its_packages() -> None:
    rows = PAGE.read_text(encoding="utf-8").split(START)[1].split(END)[0].splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == [f".[{e}]" if e else "." for e in extras()]
    for row, packages in zip(rows, sizes().values(), strict=True):
        large = sorted(packages, key=lambda name: -packages[name])[:2]
        total = float(row.split("|")[3].strip().removeprefix("+"))
        assert sum(packages.values()) < 1.2 * total + 10, "run python -m tests.constraints"
        assert total < 50 or all(name in row for name in large)


def test_the_tests_have_all_that_the_other_extras_bring() -> None:
    found = installed(extras()["test"]).keys()
    assert all(installed(extras()[name]).keys() <= found for name in ("report", "web"))
