"""The manifest: what is written is read, and nothing else, whoever made its check."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from luckbase.cluster.store.manifest import (
    Done,
    FileEntry,
    Goal,
    Head,
    LevelEntry,
    Manifest,
    Next,
    Roots,
    WriterRecord,
    decoded,
    seal,
    search_part,
)
from luckbase.solver.board.model import identity_of
from luckbase.solver.errors import CorruptTableError, ForeignTableError

HEAD = Head(5, "pig", "tiny", identity_of({}, 1), {}, 1)
WHERE = Path("/results/table")
ROOTS = Roots([{"mine": 1}])


def file(name, part="tiers", **more):
    return replace(
        FileEntry(name, part, 0, 1, 1, 0, 0, 9, 8, "0a" * 32, "0b" * 32, 0.0, {"solve": 1.5}, "1"),
        **more,
    )


def read(manifest):
    return decoded(manifest.encoded(), WHERE)


def full():
    manifest = Manifest(HEAD, created="a", revision=7, writers=["0123abcd"])
    part = search_part(ROOTS)
    for line in (
        Goal("tiers", {"frontier": 1}, None, 2, "a.toml", {"x": "1"}, 1),
        Goal(part, {}, ROOTS, 1, "", {}, 2), Done("ask", 1, 10),
        LevelEntry(part, {"width": 1}), file("tiers/a.parquet"),
        file(f"{part}/4-1.7.parquet", part, last_key=(1 << 64) - 1, stages=[1]),
    ):  # fmt: skip
        manifest.add(line)
    manifest.next = Next("ask", [file("tiers/b.parquet")], [LevelEntry(part, {"width": 2})])
    manifest.writer = WriterRecord("0123abcd", "here", 1, "m", "s", "now")
    assert manifest.goals[1].ask  # worked out once, and not written
    return manifest


def test_what_is_written_is_read():
    assert read(full()) == full()
    assert read(Manifest(HEAD)) == Manifest(HEAD)


def forged(**change):
    """A manifest with other values, and a check that matches."""
    form = json.loads(full().encoded())
    del form["check"]
    return seal(form | change)


def test_any_changed_byte_is_refused():
    content = full().encoded()
    for index in range(len(content)):
        for change in (1, 32, 128):
            wrong = content[:index] + bytes([content[index] ^ change]) + content[index + 1 :]
            with pytest.raises(CorruptTableError, match=r"manifest\.json: was changed"):
                decoded(wrong, WHERE)
        with pytest.raises(CorruptTableError):
            decoded(content[:index], WHERE)


NUMBERS = {
    "rows": (-1, 1 << 63, 1.5, "1"), "bytes": (-1, 1 << 63), "first_key": (-1, 1 << 64),
    "error": (-1e-9, "nan"), "seconds": ({"solve": -1.0},), "stages": ([-1],), "boxes": ([[1]],),
    "footer": (None, 0, 1 << 62), "row_group_rows": (0, 1 << 62), "tier": (1 << 24,),
    "sha256": ("x",), "footer_sha256": ("",),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_out_of_range_are_refused_by_name(name):
    form = json.loads(full().encoded())
    for value in NUMBERS[name]:
        files = [{**form["files"][0], name: value}, *form["files"][1:]]
        with pytest.raises(CorruptTableError, match=rf"files\.0\.{name}.* is not what format 5"):
            decoded(forged(files=files), WHERE)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_an_error_that_is_not_finite_is_refused(value):
    body = full().encoded().decode().rpartition(',"check":"')[0]
    assert body.count('"error":0.0') == 3
    body = body.replace('"error":0.0', f'"error":{value}', 1)
    from luckbase.cluster.store.manifest import digest

    with pytest.raises(CorruptTableError):
        decoded(f'{body},"check":"{digest(body)}"}}\n'.encode(), WHERE)
    with pytest.raises(ValueError, match="JSON"):
        seal({"error": math.nan})


def test_a_later_format_is_not_taken_for_damage():
    with pytest.raises(ForeignTableError, match="format 6; expected 5; a newer luckbase"):
        decoded(forged(format=6), WHERE)


def test_an_identity_of_other_rules_is_refused():
    with pytest.raises(CorruptTableError, match="its identity is not that of its rules"):
        decoded(forged(rules={"x": 1}), WHERE)


NAMES = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(["..", ".", "/", "tiers", "a1-0", "-1", "a1", "~", "\\", "\0", " "]))
    .map("".join),
)  # fmt: skip


@given(NAMES)
@example("../../etc/passwd")
@example("/etc/passwd")
@example("a1-0-1/../../x")
@example("a1-0-1\n")
def test_a_name_that_is_read_is_of_a_file_in_the_table(name):
    for entry in (
        file(name),
        file(f"tiers/{name}.parquet"),
        file("tiers/a.parquet", at=f"tiers/{name}.parquet"),
    ):
        manifest, after = Manifest(HEAD), Manifest(HEAD)
        manifest.add(entry)
        after.next = Next("ask", [entry], [])
        for each in (manifest, after):
            try:
                read(each)
            except (CorruptTableError, UnicodeEncodeError):
                continue
            inside = Path("/results/table", entry.place)
            assert ".." not in inside.parts and inside.is_relative_to(WHERE)
            assert "\n" not in entry.place and inside.parent.parent == WHERE


@pytest.mark.parametrize("name", ["search-0a/a.parquet", "shards/a.parquet", "tiers/a.arrow"])
def test_others_are_refused(name):
    """The first is of another part."""
    manifest = Manifest(HEAD)
    manifest.add(file(name))
    with pytest.raises(CorruptTableError, match="names a file outside the table"):
        read(manifest)


def test_goals_are_kept_by_their_numbers_in_whatever_order_they_are_read():
    goals = [Goal("search", {"frontier": k}, None, 1, "", {}, number=k) for k in (3, 1, 2)]
    manifest = Manifest(HEAD)
    for n, goal in enumerate(goals, 1):
        manifest.add(goal)
        assert [each.number for each in manifest.goals] == sorted(g.number for g in goals[:n])
