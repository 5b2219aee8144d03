"""``luckbase eras``: the page is what the boards and the tables say, at a coarse unit; what is
published is what the boards say, and, on a slow day, what the tables do."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import luckbase
from luckbase.cluster.table.table import Table
from luckbase.jobs.app import run
from tests.places import BOARDS, ROOT

ERAS = [BOARDS / f"press-your-luck/{name}.toml" for name in ("1984-06", "1985-02")]
PUBLISHED = ROOT / "results/published/eras.md"
COARSE = ("--set", "score_unit=1000", "--set", "frontier=2", "--set", "outcomes=8")
Cell = tuple[int, float] | None


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page at a coarse unit."""
    folder = tmp_path_factory.mktemp("eras")
    out = folder / "eras.md"
    words = ["eras", *map(str, ERAS), *COARSE, "--results", str(folder / "r"), "--out", str(out)]
    assert run(words) == 0
    return out


def part(page: Path, heading: str) -> str:
    return page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]


def rows(page: Path, heading: str) -> list[list[str]]:
    """The rows of a part's tables, heads left out."""
    lines = [
        line[2:-2].split(" | ") for line in part(page, heading).splitlines() if line[:1] == "|"
    ]
    return [line for i, line in enumerate(lines)
            if line[0] != "---" and (i + 1 == len(lines) or lines[i + 1][0] != "---")]  # fmt: skip


def numbers_of(cell: str) -> Cell:
    found = re.fullmatch(r"([+-][\d,]+) \(([+-][\d,]+)\)", cell)
    assert found or cell == "never", cell
    return (int(found[1].replace(",", "")), float(found[2].replace(",", ""))) if found else None


def test_what_the_boards_say_does_not_depend_on_the_unit_and_is_what_is_published(
    twin: Path,
) -> None:
    for heading in ("What one spin brings", "What changed from 1984-06 to 1985-02"):
        assert part(twin, heading) == part(PUBLISHED, heading)


def test_the_odds_are_those_of_the_squares_counted_by_hand() -> None:
    """docs/sources.md#numbers-of-this-project has 1/6 and 71/243 for February 1985; the money and
    the whammy of either board add up to one with it."""
    chances = {row[0]: [Fraction(cell) for cell in row[1:]]
               for row in rows(PUBLISHED, "What one spin brings") if "/" in row[1]}  # fmt: skip
    assert chances["whammy"][1] == Fraction(1, 6)
    assert chances["money plus a spin"][1] == Fraction(71, 243)
    assert [sum(each) for each in zip(*chances.values(), strict=True)] == [1, 1]


def test_every_change_of_a_square_is_one_in_the_files() -> None:
    import tomllib

    old, new = (tomllib.loads(path.read_text(encoding="utf-8"))["squares"] for path in ERAS)
    wanted = [
        f"* squares {n}, slide {i + 1}: was {a!r}, now {b!r}"
        for n in map(str, range(1, 19))
        for i, (a, b) in enumerate(zip(old[n], new[n], strict=True))
        if a != b
    ]
    said = part(PUBLISHED, "What changed from 1984-06 to 1985-02").split("\n")
    assert [line for line in said if line] == wanted


def asked(table: Table, spins: int, whammies: int, rival: int) -> Cell:
    """The lead and the crossing, by asking score by score."""
    unit, cap = table.game.board.solve.score_unit, table.game.board.solve.score_cap  # type: ignore[attr-defined]
    gains: list[tuple[int, float]] = []
    for score in range(0, cap, unit):
        answer = table[{"scores": (0, score, rival), "earned": (0, spins, 0),
                        "whammies": (0, 0, whammies)}]  # fmt: skip
        chance = {action.name: action.value[1] for action in answer.actions}
        if "play" in chance and len(chance) > 1:
            passing = max(value for name, value in chance.items() if name != "play")
            gains.append((score - rival, passing - chance["play"]))
        else:
            gains.append((score - rival, -1.0 if "play" in chance else 1.0))
    last = max((i for i, (_, gain) in enumerate(gains) if gain <= 2 * table.error), default=-1)
    if last == len(gains) - 1:
        return None
    (x0, g0), (x1, g1) = gains[last], gains[last + 1]
    return x1, x1 - (x1 - x0) * g1 / (g1 - g0)


def compare(page: Path, tables: list[Table], spins: set[int]) -> int:
    count = 0
    for row in rows(page, "At what lead to pass"):
        case = (int(row[0]), int(row[1]), int(row[2].replace(",", "")))
        if case[0] not in spins:
            continue
        found = [numbers_of(cell) for cell in row[3:5]]
        for said, table in zip(found, tables, strict=True):
            wanted = asked(table, *case)
            assert (said is None) == (wanted is None)
            if said is not None and wanted is not None:
                assert said[0] == wanted[0] and said[1] == pytest.approx(wanted[1], abs=0.6)
        if None not in found:
            assert float(row[5].replace(",", "")) == pytest.approx(
                found[1][1] - found[0][1],
                abs=1.01,  # type: ignore[index]
            )
        count += 1
    return count


def test_every_lead_of_the_page_is_that_of_the_tables_asked_one_by_one(twin: Path) -> None:
    tables = [luckbase.open(board, results=twin.parent / "r", score_unit=1000, frontier=2,
                            outcomes=8) for board in ERAS]  # fmt: skip
    assert compare(twin, tables, {1, 2}) >= 10


def test_the_last_spin_is_that_of_the_tables(twin: Path) -> None:
    heading = "The last spin"
    rival = int(re.search(r"rival on \$([\d,]+)", part(twin, heading))[1].replace(",", ""))  # type: ignore[index]
    tables = [luckbase.open(board, results=twin.parent / "r", score_unit=1000, frontier=2,
                            outcomes=8) for board in ERAS]  # fmt: skip
    for lead, *cells in rows(twin, heading):
        score = rival + int(lead.replace(",", ""))
        for i, table in enumerate(tables):
            answer = table[{"scores": (0, score, rival), "earned": (0, 1, 0)}]
            chance = {action.name.split()[0]: action.value[1] for action in answer.actions}
            for cell, name in zip(cells[2 * i : 2 * i + 2], ("play", "pass"), strict=True):
                assert float(cell) == pytest.approx(chance[name], abs=6e-5)


def test_pictures_stand_beside_the_page(twin: Path) -> None:
    for page in (twin, PUBLISHED):
        names = re.findall(r"\]\((\S+\.png)\)", page.read_text(encoding="utf-8"))
        assert names == ["eras-lead.png", "eras-last-spin.png"]
        for name in names:
            assert page.with_name(name).read_bytes().startswith(b"\x89PNG")


def test_a_coarse_board_stands_beside_its_original(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A board of squares has options that one of outcomes has not."""
    coarse = str(tmp_path / "coarse.toml")
    options = ("--set", "score_unit=1000", "--set", "score_cap=5000", "--set", "frontier=1")
    assert run(["coarsen", str(ERAS[1]), "--outcomes", "8", *options[:4], "--out", coarse]) == 0
    for boards in ([str(ERAS[1]), coarse], [coarse, str(ERAS[1])]):
        capsys.readouterr()
        assert run(["eras", *boards, *options, "--results", str(tmp_path / "r")]) == 0
        page = capsys.readouterr().out
        assert " Only 1985-02 can have prize_value 2500." in page.replace("\n", " ")
        one = page.split("One rule set for all: ")[1].split(".")[0]
        assert "score_unit 1000" in one and "prize_value" not in one
        assert "| whammy | 1/6 | 1/6 |" in page
    other = tmp_path / "other.toml"
    other.write_text(ERAS[1].read_text().replace("prize_value = 2500", "prize_value = 3000"))
    assert run(["eras", coarse, str(ERAS[1]), str(other), *options]) == 2
    said = capsys.readouterr().err
    assert "prize_value: 2500 on 1985-02, 3000 on other; make them one rule set" in said


def test_a_cap_of_one_unit_has_no_leads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eras", *map(str, ERAS), "--set", "score_unit=500", "--set", "frontier=1",
             "--results", str(tmp_path / "r"), "--set"]  # fmt: skip
    assert run([*words, "score_cap=500"]) == 2
    error = capsys.readouterr().err
    assert "score_cap: 500 at a score_unit of 500" in error and "right would be 1000" in error
    assert run([*words, "score_cap=1000"]) == 0


def test_a_page_that_it_did_not_write_stays(
    twin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# What I saw on the tapes\n")
    words = ["eras", *map(str, ERAS), *COARSE, "--results", str(twin.parent / "r"), "--out"]
    assert run([*words, str(notes)]) == 2
    assert "notes.md is there already, and luckbase eras did not" in capsys.readouterr().err
    assert notes.read_text() == "# What I saw on the tapes\n" and len([*tmp_path.iterdir()]) == 1
    text = twin.read_text()
    twin.write_text(text + "\n")
    assert run([*words, str(twin)]) == 0 and twin.read_text() == text


@pytest.mark.slow
def test_the_published_leads_of_one_spin_are_those_of_the_tables(
    table_of: Callable[..., Path],
) -> None:
    """$250, one spin left: 25.8 million states a board."""
    tables = [luckbase.open(table_of(board, frontier=1)) for board in ERAS]
    assert compare(PUBLISHED, tables, {1}) == 4


def test_a_game_without_eras_is_refused_before_anything_is_solved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.toml").write_text((BOARDS / "pig/tiny.toml").read_text())
    words = [str(tmp_path / "old.toml"), str(tmp_path / "new.toml")]
    assert run(["eras", *words, "--results", str(tmp_path / "r")]) == 2
    assert "pig has nothing to say of several boards" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([str(ERAS[0])], "one board is nothing to compare"),
        ([str(ERAS[0]), str(ERAS[0])], "two boards have one name"),
        ([str(ERAS[0]), str(BOARDS / "press-your-luck/tiny.toml")], "score_unit: 250 on 1984-06"),
        ([str(ERAS[0]), str(BOARDS / "pig/tiny.toml")], "is of press-your-luck, tiny of pig"),
        ([*map(str, ERAS), "--out", "page.html"], "the page is Markdown"),
    ],
)
def test_what_can_not_be_compared_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eras", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error and len(error.splitlines()) == 1
