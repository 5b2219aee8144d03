"""Verification of a table: first its files, then its values against the rules.

**Files.** Every file that the manifest names is there, byte for byte as it was written, with its
rows and its keys; there are no others beside them; the manifest is as luckbase wrote it and names
the tiers, rows and keys that the rules and the board ask for.

**Values.** The Bellman residual of rows: the payoff recomputed from the rules (not the kernel) over
the stored payoffs of the children, minus the stored payoff, largest over players. Of tied actions
any one that the stored payoffs agree with will do. What is allowed is `bellman.most_residual` of
the file's error, without what the rules themselves cut off, which shows in no residual. Above a
rounded table it is the error where all decisions are told: those that are not are ties.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from luckbase.cluster.table import OnRows, nobody
from luckbase.cluster.table.decisions import GROUP_ROWS, DecisionPart, file_name
from luckbase.cluster.table.format import (
    key_range,
    numbers_of,
    row_group_rows,
    tier_files,
)
from luckbase.cluster.table.manifest import TIERS, FileEntry, Manifest, row_spans
from luckbase.cluster.table.parts import Part, TierPart
from luckbase.cluster.table.storage import storage_at
from luckbase.cluster.table.writer import check_bytes, files_there, read_manifest
from luckbase.solver.dense import decisions_in_order
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import NOBODY, DecisionLayout, Layout
from luckbase.solver.game.game import load_game
from luckbase.solver.result import Flat, PythonOnly, Result
from luckbase.solver.search.bellman import most_residual
from luckbase.solver.sentences import fields, html_facts, many

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup


@dataclass(frozen=True)
class Residuals(Result):
    """What the rows checked gave. worst: the residual that is the largest beside what its file
    allows, `bound`; state: where, as fields. faults: rows whose residual is above what theirs do.
    """

    rows: Annotated[int, Field(serialization_alias="rows_checked")]
    worst: Annotated[float, Field(serialization_alias="worst_residual")]
    bound: Annotated[float, Field(serialization_alias="worst_bound")]
    mean: Annotated[float, Field(serialization_alias="mean_residual")]
    state: Annotated[dict[str, Any], Field(serialization_alias="worst_state")]
    faults: PythonOnly[int]


_NAMES = ("worst_residual", "worst_bound", "mean_residual", "worst_state")
_NO_ROWS = {"rows_checked": 0, **dict.fromkeys(_NAMES)}


@dataclass(frozen=True)
class Verdict(Result):
    """ok: whether nothing is wrong. faults: what is, a sentence each. files: how many were read.
    residuals: of the rows that were recomputed; None where the files were damaged or there are no
    rows."""

    ok: bool = field(init=False, default=False)
    faults: list[str]
    files: int
    residuals: Flat[Residuals | None]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ok", not self.faults)

    def as_json(self) -> dict[str, Any]:
        return super().as_json() | ({} if self.residuals else _NO_ROWS)

    def _repr_html_(self) -> str:
        checked = self.residuals
        rows = [("files", f"{self.files:,}" * bool(self.files)), ("faults", "; ".join(self.faults))]
        if checked is not None and checked.rows:
            rows += [("rows", f"{checked.rows:,} computed again from the rules"),
                     ("worst residual", f"{checked.worst:.2e} at {fields(checked.state)}"),
                     ("allowed there", f"{checked.bound:.2e}"),
                     ("mean residual", f"{checked.mean:.2e}")]  # fmt: skip
        return html_facts("no fault was found" if self.ok else "faults were found", rows)


def verify(table: Lookup, sample: int | None, seed: int = 0, on_rows: OnRows = nobody) -> Verdict:
    """Every byte of the table's files, if it has any, then `sample` rows (None: all). on_rows: told
    how far it is with the one, then with the other."""
    files = () if table.manifest is None else table.manifest.files
    faults = check_files(table, on_rows)
    if faults or not (table.decisions_alone or table.rows):
        return Verdict(faults, len(files), None)
    if table.decisions_alone:
        residuals = check_decisions(table, sample, seed, on_rows)
        have, off = "another decision, or payoff, than their tiers solved again", " off"
    else:
        residuals = check_residuals(table, sample, seed, on_rows)
        have = "a residual above what the error of their file allows"
        off = f", allowed {residuals.bound:.2e}"
    if residuals.faults:
        of = f"{residuals.faults:,} of {many(residuals.rows, 'row')}"
        worst = f"the worst, {residuals.worst:.2e}{off}, is {fields(residuals.state)}"
        faults.append(f"{of} {'has' if residuals.faults == 1 else 'have'} {have}; {worst}")
    return Verdict(faults, len(files), residuals)


def check_files(table: Lookup, on_rows: OnRows = nobody) -> list[str]:
    """What is wrong with the files of a table in a folder, a sentence each; empty if nothing is."""
    if table.manifest is None:
        return []
    manifest, storage = table.manifest, storage_at(table.where)
    faults_by_name = check_bytes(storage, table.where, manifest, on_rows)
    faults = list(faults_by_name.values())
    for part in table.parts:
        for entry in part.entries:
            if entry.name not in faults_by_name:
                faults += _check_entry(part, entry)
        if isinstance(part, TierPart) and part.paid:
            faults += [
                f"{table.where / name}: is not in the manifest, which says complete"
                for name in sorted(_missing_files(manifest))
            ]
    beside = files_there(storage) if storage.lists else {}
    now = read_manifest(storage, table.where)  # a solve may have gone on since it was opened
    places, finished = {entry.place for entry in now.files.values()}, now.complete and not now.next
    for name in beside if finished and not now.is_written else ():
        if name not in places and not name.endswith(".part"):
            faults.append(f"{table.where / name}: is not in the manifest")
    return faults


def _missing_files(manifest: Manifest) -> set[str]:
    """The files of every goal of the full table that is done of which no file has the rows."""
    names: set[str] = set()
    spans = row_spans(manifest.of_part(TIERS))
    for goal in manifest.goals:
        if goal.part == TIERS and manifest.is_done(goal):
            layout = load_game(manifest.board(goal.reach)).need(Layout)
            for tier in layout.tiers():
                of_tier = spans.get(layout.tier_number(tier), [])
                names |= {
                    file.name for file in tier_files(layout, tier)
                    if not any(a <= file.rows[0] and file.rows[1] <= b for a, b in of_tier)
                }  # fmt: skip
    return names


def _check_entry(part: Part, entry: FileEntry) -> list[str]:
    """Whether a file's rows and keys are those that its tier, or its own keys, ask for."""
    with part.groups.passing(entry) as file:
        rows = int(file.metadata.num_rows) if part.paid else entry.rows
        faults = [f"has {many(rows, 'row')}, the manifest says {entry.rows}"] * (rows != entry.rows)
        if isinstance(part, TierPart):
            faults += _check_tier(part, entry, file.groups)
        else:
            keys = [numbers_of(file.read(i, ["key"]).column(0)) for i in range(file.groups)]
            all_keys = np.concatenate(keys)
            ends = (int(all_keys[0]), int(all_keys[-1])) if len(all_keys) else (0, 0)
            if ends != (entry.first_key, entry.last_key):
                faults.append("its first or last key is not what the manifest says")
            if (all_keys[1:] <= all_keys[:-1]).any():
                faults.append("its keys do not ascend")
        return [f"{file.path}: {why}" for why in faults]


def _check_tier(part: TierPart, entry: FileEntry, groups: int) -> list[str]:
    tier = part.tier_of_number.get(entry.tier)
    if tier is None:
        return ["is of a tier that this board does not have"]
    layout, first = part.layout, entry.first_row  # however the tier is cut in files
    fine = (entry.first_key, entry.last_key) == key_range(entry.tier, entry.rows, first)
    if isinstance(part, DecisionPart):
        shape = first, entry.rows, entry.row_group_rows, groups, entry.name
        rows, name = layout.rows(tier), file_name(part.plan, tier)
        fine &= shape == (0, rows, GROUP_ROWS, -(-rows // GROUP_ROWS), name)
        return [] if fine else ["its rows, keys or row groups are not those of its tier"]
    inside = first >= 0 and first + entry.rows <= layout.rows(tier)
    fine &= entry.row_group_rows == row_group_rows(layout, tier)
    fine &= inside and first % layout.block_rows(tier) == 0
    return [] if fine else ["its rows or keys are not those of its tier"]


def check_residuals(
    table: Lookup, sample: int | None, seed: int = 0, on_rows: OnRows = nobody
) -> Residuals:
    """Bellman residuals of `sample` different rows drawn evenly from the whole table, or of all
    (None, or where there are no more).

    Raises CorruptTableError where a file can not be read or a child of a row is not there.
    """
    total = table.rows if sample is None else min(sample, table.rows)
    done = faults = 0
    worst, bound, summed = -1.0, 1.0, 0.0
    where: dict[str, Any] = {}
    on_rows(done, total)
    for part, states in _pieces(table, sample, seed):
        residuals = part.residuals(states)
        # A file's promise holds for what it was made from, too. What rules cut off shows in none.
        allowed = most_residual(table.game, part.errors_of(states) - table.game.cut_error)
        at = int(np.argmax(residuals / allowed))
        if not residuals[at] / allowed[at] <= worst / bound:
            worst, bound = float(residuals[at]), float(allowed[at])
            where = table.game.describe(states[at])
        faults += int((~(residuals <= allowed)).sum())
        summed += float(residuals.sum())
        done += len(states)
        on_rows(done, total)
    return Residuals(done, max(worst, 0.0), bound, summed / max(done, 1), where, faults)


ROWS_A_SAMPLE = 1000
"""Rows of a table of decisions that are solved again for each row of a sample: a row alone can not
be, and a tier is solved a thousand times as fast as rows are looked up."""


def check_decisions(
    table: Lookup, sample: int | None, seed: int = 0, on_rows: OnRows = nobody
) -> Residuals:
    """Tiers of a table of decisions solved again, and held to what is stored: decisions
    and what payoffs there are. All (None), or those that a sample of the highest tiers
    leads to, as many as there are about so many rows of.

    A row is a fault where it has another code, or its payoff is further off than its file says.
    """
    decided = table.decided
    assert decided is not None
    layout = decided.plan
    sampled = None if sample is None else _sampled_tiers(layout, sample * ROWS_A_SAMPLE, seed)
    tiers = layout.tiers() if sampled is None else sampled
    total, done, faults, worst, summed = sum(map(layout.layout.rows, tiers)), 0, 0, 0.0, 0.0
    where: dict[str, Any] = {}
    number_of = {entry.tier: i for i, entry in enumerate(decided.entries)}
    on_rows(0, total)
    for tier, payoffs, noted in decisions_in_order(layout, sampled):
        rows = layout.layout.rows(tier)
        recomputed = np.where(noted.best == NOBODY, -1, noted.best)
        wrong = decided.best_of_file(number_of[layout.layout.tier_number(tier)]) != recomputed
        off = _payoffs_off(table, layout.layout, tier, payoffs)
        wrong |= off > table.error
        at = int(np.argmax(wrong)) if wrong.any() else int(np.argmax(off))
        if not where or wrong.any() or off[at] > worst:
            where = table.game.describe(layout.layout.states_at(tier, np.array([at]))[0])
        worst, summed = max(worst, float(off.max())), summed + float(off.sum())
        faults, done = faults + int(wrong.sum()), done + rows
        on_rows(done, total)
    return Residuals(done, worst, table.error, summed / max(done, 1), where, faults)


def _sampled_tiers(layout: DecisionLayout[Any], rows: int, seed: int) -> set[Any]:
    """Tiers with all that they lead to, drawn among those of the highest number of spins until
    there are so many rows; at least the smallest of these."""
    dense, order = layout.layout, [*layout.tiers()]

    def closure(tier: Any) -> set[Any]:
        reached, stack = {tier}, [tier]
        while stack:
            new = {*dense.children(stack.pop())} - reached
            reached |= new
            stack += new
        return reached

    last = {next(iter(dense.tier_fields(tier).values()), 0) for tier in order}
    top = [t for t in order if next(iter(dense.tier_fields(t).values()), 0) == max(last)]
    sampled: set[Any] = set()
    for k in np.random.default_rng(seed).permutation(len(top)).tolist():
        more = sampled | closure(top[k])
        if sum(map(dense.rows, more)) <= rows:
            sampled = more
    if sampled:
        return sampled
    return min((closure(tier) for tier in top), key=lambda of: sum(map(dense.rows, of)))


def _payoffs_off(table: Lookup, dense: Layout[Any], tier: Any, payoffs: Floats) -> Floats:
    """(rows,) how far the stored payoffs of a tier are off; 0 where none are stored."""
    entries = [] if table.full is None else table.full.entries
    errors, number = np.zeros(dense.rows(tier)), dense.tier_number(tier)
    for entry in (entry for entry in entries if entry.tier == number):
        assert table.full is not None
        for batch in table.full.batches(table.full.columns, entries=[entry]):
            start = entry.first_row + batch.before
            stop = start + len(batch.rows)
            flat = payoffs.reshape(len(dense.kernel_planes(tier)), -1)
            for plane, player in zip(flat, dense.kernel_planes(tier), strict=True):
                if player >= 0:
                    column = numbers_of(batch.rows.column(table.full.columns[player]))
                    off = np.abs(column - plane[start:stop])
                    errors[start:stop] = np.maximum(errors[start:stop], off)
    return errors


def _pieces(table: Lookup, sample: int | None, seed: int) -> Iterator[tuple[Part, Ints]]:
    for part in table.parts:
        if sample is None or sample >= table.rows:
            pieces = part.all_states()
        else:
            pieces = part.draw(round(sample * part.rows / table.rows), seed)
        for states in pieces:
            for share in np.array_split(states, max(1, -(-len(states) // table.states_at_once))):
                yield part, share
