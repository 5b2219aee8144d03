"""Lines of the ledger: names in them can not leave the table, whoever sealed them."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from luckbase.cluster.table.entries import (
    MAX_WAITING,
    Commits,
    begin,
    entries_of,
    read_ledger,
    write_head,
)
from luckbase.cluster.table.ledger import (
    FileEntry,
    Goal,
    Head,
    Ledger,
    as_text,
    from_text,
)
from luckbase.cluster.table.storage import Folder
from luckbase.solver.board.model import identity_of
from luckbase.solver.errors import CorruptTableError

HEAD = Head(5, "pig", "tiny", "0" * 64, {}, 1)


def file(name, part="tiers"):
    return FileEntry(name, part, 0, 1, 1, 0, 0, 9, 8, "AAAA", "BBBB", 0.0, {}, "1")


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
    for line, place in (
        (file(name), name),
        (file(f"tiers/{name}.parquet"), f"tiers/{name}.parquet"),
    ):
        try:
            read = from_text(HEAD, as_text(HEAD, line))
        except ValueError:
            continue
        assert read == line
        table = Path("/results/table")
        inside = Path("/results/table", place)
        assert ".." not in inside.parts and inside.is_relative_to(table) and "\n" not in place
        assert inside.parent.parent == table


def test_names_that_solves_give_are_read():
    for line in (file("tiers/spins-1.002.parquet"), file("search-0a/4-1.7.parquet", "search-0a")):
        assert from_text(HEAD, as_text(HEAD, line)) == line


@pytest.mark.parametrize("name", ["search-0a/a.parquet", "shards/a.parquet", "tiers/a.arrow"])
def test_others_are_refused(name):
    """The first is of another part."""
    with pytest.raises(ValueError, match="names a file outside the table"):
        from_text(HEAD, as_text(HEAD, file(name)))


def test_goals_are_kept_by_their_numbers_in_whatever_order_they_are_read():
    goals = [Goal("search", {"frontier": k}, None, 1, "", {}, number=k) for k in (3, 1, 2)]
    ledger = Ledger(HEAD)
    for n, goal in enumerate(goals, 1):
        ledger.add(goal)
        assert [one.number for one in ledger.goals] == sorted(g.number for g in goals[:n])


def test_a_line_that_is_not_as_it_was_written_is_refused_by_its_number(tmp_path):
    """Or counts as not written, and is said, where the table is to be mended."""
    head = replace(HEAD, identity=identity_of(HEAD.rules, HEAD.rules_version))
    storage, good = Folder(tmp_path), as_text(head, file("tiers/a.parquet"))
    changed = as_text(head, file("tiers/b.parquet")).replace("tiers/b", "tiers/c")
    write_head(storage, head)
    entries_of(begin(storage, tmp_path, head, "me")).add(good + changed)
    with pytest.raises(CorruptTableError, match=r"0000000002.*line 3"):
        read_ledger(storage, tmp_path)
    ledger = begin(storage, tmp_path, head, "me again")
    assert list(ledger.files) == ["tiers/a.parquet"]
    assert len(ledger.damage) == 1 and "line 3" in ledger.damage[0]


def test_many_lines_wait_until_their_patience_is_over():
    at_once, patient = Commits(Ledger(HEAD)), Commits(Ledger(HEAD), patience=3600.0)
    for n in range(MAX_WAITING):
        assert not at_once.full
        at_once.add(file(f"tiers/{n}.parquet"))
        patient.add(file(f"tiers/{n}.parquet"))
    assert at_once.full and not patient.full
