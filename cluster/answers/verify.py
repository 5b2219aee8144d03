"""Verify a table: first its files, then its values against the rules.

**Files.** Every file in the manifest exists, unchanged, with its rows and keys; there are no other
files in the parts' folders. The manifest is unchanged and names the tiers, rows and keys that the
rules and the board require. Errors are not larger than a solve of this game leaves
(`FullTable.most_error`), and the roots of searches are in the table.

**Values.** The Bellman residual of a row is the difference between its stored payoff and the payoff
recomputed by the rules (not by the kernel) from the stored payoffs of its children; the largest
over players (`Part.residuals`). The limit is `bellman.most_residual` for the file's error, without
`Game.cut_error`, which appears in no residual. A residual covers only one step of the rules, so a
small search is also solved again, and every row and the error are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from luckbase.cluster import notebook
from luckbase.cluster.answers.actions import states_at_once
from luckbase.cluster.answers.part_kinds import DecisionPart, KeyPart, TierPart
from luckbase.cluster.answers.parts import Part, distance, drawn_rows, named
from luckbase.cluster.store import OnRows
from luckbase.cluster.store.format import (
    DECISION_ROWS,
    PayoffTable,
    arrow_columns,
    constants,
    decision_file,
    key_range,
    numbers_of,
    row_group_rows,
    solved_rows,
    tier_files,
)
from luckbase.cluster.store.manifest import TIERS, FileEntry, Manifest, row_spans
from luckbase.cluster.store.parquet import TableFile
from luckbase.cluster.store.storage import storage_at
from luckbase.cluster.store.writer import check_bytes, files_there, read_manifest
from luckbase.solver.compiled import compile_on
from luckbase.solver.dense import decisions_in_order
from luckbase.solver.errors import CorruptTableError, GameError, SearchLimitError, StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import DecisionLayout, FullTable, most_search_error, rounding
from luckbase.solver.game.game import load_game
from luckbase.solver.result import Flat, PythonOnly, Result
from luckbase.solver.search.bellman import most_residual
from luckbase.solver.search.expand import expand, who_acts
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.sentences import fields, html_facts, many, some

if TYPE_CHECKING:
    from luckbase.cluster.answers.lookup import Lookup


@dataclass(frozen=True)
class Residuals(Result):
    """The residuals of the checked rows."""

    rows: Annotated[int, Field(serialization_alias="rows_checked")]
    worst: Annotated[float, Field(serialization_alias="worst_residual")]
    """The residual that is largest relative to its limit, `bound`."""
    bound: Annotated[float, Field(serialization_alias="worst_bound")]
    mean: Annotated[float, Field(serialization_alias="mean_residual")]
    state: Annotated[dict[str, Any], Field(serialization_alias="worst_state")]  # fields of that row
    faults: PythonOnly[int]  # number of rows with a residual above their limit
    files: PythonOnly[tuple[str, ...]] = ()  # the paths of the files with these rows


_NAMES = ("worst_residual", "worst_bound", "mean_residual", "worst_state")
_NO_ROWS = {"rows_checked": 0, **dict.fromkeys(_NAMES)}


@dataclass(frozen=True)
class Verdict(Result):
    """The result of a verification."""

    ok: bool = field(init=False, default=False)  # True if there are no faults
    faults: list[str]  # one sentence each
    files: int  # number of files read
    residuals: Flat[Residuals | None]
    """Of the recomputed rows; None if files are damaged or there are no rows."""

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


def verify(
    table: Lookup, sample: int | None, seed: int = 0, on_rows: OnRows = notebook.on_rows
) -> Verdict:
    """Check all bytes of the table's files, if it has any, then `sample` rows (None: all). Faults
    are part of the verdict, not raised.

    on_rows: called with the number of rows done and the total; (0, …) when a check begins.
    """
    files = table.manifest.files if table.in_files else ()
    residuals = None
    faults = check_files(table, on_rows)
    if not faults:
        faults = check_columns(table, sample, seed)
    try:
        if not faults:
            faults = check_roots(table)
        if not faults and table.rows:
            residuals, faults = _check_values(table, sample, seed, on_rows)
            faults += check_searches(table, on_rows)
    except CorruptTableError as error:
        faults = [str(error)]
    return Verdict(faults, len(files), residuals)


def _check_values(
    table: Lookup, sample: int | None, seed: int, on_rows: OnRows
) -> tuple[Residuals, list[str]]:
    """Return the residuals of rows, and the faults of payoffs and best actions."""
    residuals, faults = check_residuals(table, sample, seed, on_rows), list[str]()
    if residuals.faults:
        faults.append(
            f"{', '.join(some(5, residuals.files))}: {residuals.faults:,} of "
            f"{many(residuals.rows, 'row')} with a residual above what the error of their file "
            f"allows; the worst, {residuals.worst:.2e}, allowed {residuals.bound:.2e}, is "
            f"{fields(residuals.state)}"
        )
    if table.decided is not None and table.decided.entries:
        rows, wrong, state = check_decisions(table.decided, sample, seed, on_rows)
        residuals = replace(residuals, rows=residuals.rows + rows)
        if wrong:
            faults.append(
                f"{wrong:,} of {many(rows, 'row')} with another best action than its tier solved "
                f"again; the first is {fields(state)}"
            )
    return residuals, faults


def check_files(table: Lookup, on_rows: OnRows = notebook.on_rows) -> list[str]:
    """Check the files of a table in a folder. Return a sentence for each fault."""
    if not table.in_files:
        return []
    manifest, storage = table.manifest, storage_at(table.where)
    faults_by_name = check_bytes(storage, table.where, manifest, on_rows)
    faults = list(faults_by_name.values())
    for part in table.parts:
        for entry in part.entries:
            if entry.name not in faults_by_name:
                try:
                    faults += _check_entry(part, entry)
                except CorruptTableError as error:
                    faults.append(str(error))
        if isinstance(part, TierPart) and part.paid:
            faults += [
                f"{table.where / name}: is not in the manifest, which says complete"
                for name in sorted(_missing_files(manifest))
            ]
    beside = files_there(storage) if storage.lists else {}
    now = read_manifest(storage, table.where)  # a solve may have continued
    places, finished = {entry.place for entry in now.files.values()}, now.complete and not now.next
    for name in beside if finished and not now.is_written else ():
        if name not in places and not name.endswith(".part"):
            faults.append(f"{table.where / name}: is not in the manifest")
    return faults


def _missing_files(manifest: Manifest) -> set[str]:
    """Return the files of finished goals of the full table whose rows are in no file."""
    names: set[str] = set()
    spans = row_spans(manifest.of_part(TIERS))
    for goal in manifest.goals:
        if goal.part == TIERS and manifest.is_done(goal):
            game = load_game(manifest.board(goal.reach))
            layout, decided = game.need(FullTable), game.get(DecisionLayout)
            if decided is not None:
                beyond = filter(decided.is_decided, decided.tiers())
                names |= {decision_file(layout, tier) for tier in beyond} - manifest.files.keys()
            for tier in layout.tiers():
                of_tier = spans.get(layout.tier_number(tier), [])
                names |= {
                    file.name for file in tier_files(layout, tier)
                    if not any(a <= file.start and file.stop <= b for a, b in of_tier)
                }  # fmt: skip
    return names


def _check_entry(part: Part, entry: FileEntry) -> list[str]:
    """Check a file's rows and keys by its tier or its own keys. Return a sentence for each
    fault."""
    file = part.groups.open(entry)
    if isinstance(part, TierPart) and entry.tier not in part.tier_of_number:
        return [f"{file.path}: is of a tier that this board does not have"]
    faults = []
    if entry.error > most_error(part, entry):
        faults.append(f"its error {entry.error:.2e} is larger than any solve leaves")
    if isinstance(part, TierPart):
        faults += _check_tier(part, entry, file.groups)
    else:
        first, last, ascends = 0, -1, True
        for number, group in enumerate(file.read_all(range(file.groups), ["key"])):
            keys = numbers_of(group.column(0))
            if len(keys):
                first = first if number else int(keys[0])
                ascends &= last < int(keys[0]) and bool((keys[1:] > keys[:-1]).all())
                last = int(keys[-1])
        if (first, max(0, last)) != (entry.first_key, entry.last_key):
            faults.append("its first or last key is not what the manifest says")
        if not ascends:
            faults.append("its keys do not ascend")
    return [f"{file.path}: {why}" for why in faults]


def most_error(part: Part, entry: FileEntry) -> float:
    """Return the maximum error that a solve leaves in a file, from the game alone."""
    if not isinstance(part, TierPart):
        return most_search_error(part.game)
    tier = part.tier_of_number[entry.tier]
    if isinstance(part, DecisionPart):
        return 0.0
    return part.layout.most_error(tier) + rounding(part.layout)


def _check_tier(part: TierPart, entry: FileEntry, groups: int) -> list[str]:
    tier = part.tier_of_number[entry.tier]
    layout, first = part.layout, entry.first_row  # the tier may be cut into files differently
    fine = (entry.first_key, entry.last_key) == key_range(entry.tier, entry.rows, first)
    if isinstance(part, DecisionPart):
        shape = first, entry.rows, entry.row_group_rows, groups, entry.name
        rows, name = layout.rows(tier), decision_file(layout, tier)
        fine &= shape == (0, rows, DECISION_ROWS, -(-rows // DECISION_ROWS), name)
        return [] if fine else ["its rows, keys or row groups are not those of its tier"]
    inside = first >= 0 and first + entry.rows <= layout.rows(tier)
    fine &= entry.row_group_rows == row_group_rows(layout, tier)
    fine &= inside and first % layout.block_rows(tier) == 0
    return [] if fine else ["its rows or keys are not those of its tier"]


def check_residuals(
    table: Lookup, sample: int | None, seed: int = 0, on_rows: OnRows = notebook.on_rows
) -> Residuals:
    """Compute the Bellman residuals of `sample` distinct rows, drawn uniformly from the table, or
    of all rows (None, or if there are no more).

    Raises CorruptTableError if a file cannot be read or a child of a row is missing.
    """
    paid = sum(part.rows for part in table.parts if part.paid)
    total = paid if sample is None else min(sample, paid)
    done, faults, files = 0, 0, set[str]()
    worst, bound, summed = -1.0, 1.0, 0.0
    where: dict[str, Any] = {}
    on_rows(done, total)
    for part, states in _pieces(table, total / max(paid, 1), seed):
        residuals = part.residuals(states)
        # The error of a file includes that of its inputs. Cuts by the rules are in no residual.
        allowed = most_residual(table.game, part.errors_of(states) - table.game.cut_error)
        at = int(np.argmax(residuals / allowed))
        if not residuals[at] / allowed[at] <= worst / bound:
            worst, bound = float(residuals[at]), float(allowed[at])
            where = table.game.describe(states[at])
        wrong = states[~(residuals <= allowed)]
        if len(wrong):
            faults += len(wrong)
            files |= {part.entries[i].place for i in set(part.files_of(wrong).tolist())}
        summed += float(residuals.sum())
        done += len(states)
        on_rows(done, total)
    mean = summed / max(done, 1)
    return Residuals(done, max(worst, 0.0), bound, mean, where, faults, tuple(sorted(files)))


def _pieces(table: Lookup, share: float, seed: int) -> Iterator[tuple[Part, Ints]]:
    """Yield parts with payoffs, each with states that fit in memory with their edges, until a
    share of the part's states has been drawn."""
    most = states_at_once(table.game)
    for part in table.parts:
        for states in part.draw(round(share * part.rows), seed) if part.paid else ():
            for start in range(0, len(states), most):
                yield part, states[start : start + most]


ROWS_A_GROUP = 1000
"""Number of sampled rows for which the columns of one row group are checked."""
FEW = 2000
"""Number of rows of a search's row group for which the rules determine who acts."""


def check_columns(table: Lookup, sample: int | None, seed: int = 0) -> list[str]:
    """Compare the columns of row groups, all (None) or sampled, with the rules. Return a sentence
    for each file that differs."""
    faults = []
    for part in table.parts if table.in_files else ():
        groups = [
            (i, n) for i, entry in enumerate(part.entries)
            for n in range(-(-entry.rows // entry.row_group_rows)) if part.paid
        ]  # fmt: skip
        if sample is not None:
            count = max(1, sample // ROWS_A_GROUP)
            groups = [groups[i] for i in drawn_rows(len(groups), count, seed).tolist()]
        for i, numbers in groupby(groups, key=itemgetter(0)):
            try:
                file = part.groups.open(part.entries[i])
                wrong = {name for _, n in numbers for name in _wrong_columns(part, i, file, n)}
            except CorruptTableError as error:
                faults.append(str(error))
                continue
            if wrong:
                names = ", ".join(sorted(wrong))
                faults.append(f"{file.path}: {names}: not as the rules have it")
    return faults


def _wrong_columns(part: Part, i: int, file: TableFile, number: int) -> set[str]:
    """Return the names of the columns of a row group of file i that do not match its keys."""
    entry = file.entry
    start = number * entry.row_group_rows
    stop = min(start + entry.row_group_rows, entry.rows)
    if isinstance(part, TierPart):
        layout, tier = part.layout, part.tier_of_number[entry.tier]
        span = entry.first_row + start, entry.first_row + stop
        right: dict[str, Any] = constants(layout.tier_fields(tier), stop - start)
        right |= layout.state_rows(tier, *span)
        right["to_act"] = layout.acting_rows(tier, *span)
    else:
        states = part.states_at(i, np.arange(start, stop))
        _, actors = who_acts(part.game, states[:FEW])
        right = dict(part.game.table_columns(states))
        right["to_act"] = (np.maximum(actors, -1) + 1).astype(np.int8)
    expected, stored = arrow_columns(right), file.read(number, [*right])
    return {
        name for name, column in expected.items()
        if not _plain(stored[name].combine_chunks()[: len(column)]).equals(_plain(column))
    }  # fmt: skip


def _plain(column: Any) -> Any:
    """Return a column without its dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


# --- searches ------------------------------------------------------------------------------------

SOLVED_AGAIN = 1_000_000
"""Maximum number of states of a search that is solved again: about a second, or minutes if many
states inside turns are not stored."""


def check_roots(table: Lookup) -> list[str]:
    """Return a sentence for each finished search with a root that is invalid or missing."""
    faults, parts = [], {part.name: part for part in table.parts}
    for name, roots in _roots_of(table).items():
        try:
            for root in roots:
                states = table.game.parse(root).reshape(1, -1)
                stored = name in parts and parts[name].get_many(states)[1][0]
                if not stored and not expand(table.game, states).terminal[0]:
                    faults.append(f"{table.where}: {name} lacks its root {fields(root)}")
        except (StateError, CorruptTableError) as error:
            faults.append(f"{table.where}: {name} has a root that is none: {error}")
    return faults


def _roots_of(table: Lookup) -> dict[str, list[dict[str, Any]]]:
    """Return the roots of the finished searches, by part."""
    goals = filter(table.manifest.is_done, table.manifest.goals)
    return {goal.part: goal.roots.start for goal in goals if goal.roots is not None}


def check_searches(table: Lookup, on_rows: OnRows = notebook.on_rows) -> list[str]:
    """Solve finished searches of at most `SOLVED_AGAIN` states again, in memory, and compare
    everything stored. Return a sentence for each file that differs."""

    def show() -> bool:
        on_rows(min(graph.count, part.rows), part.rows)
        return False

    faults, game, roots_of = [], table.game, _roots_of(table)
    for part in table.parts:
        roots = roots_of.get(part.name)
        if roots is None or not isinstance(part, KeyPart) or part.rows > SOLVED_AGAIN:
            continue
        graph = Graph(game, max_states=SOLVED_AGAIN, stop=show, keeps_turns=False)
        on_rows(0, part.rows)
        try:
            compile_on()
            graph.solve(np.array([game.parse(root) for root in roots]))
        except SearchLimitError:
            continue
        except (StateError, GameError) as error:
            faults.append(f"{table.where}: {part.name} cannot be solved again: {error}")
            continue
        again = solved_rows(graph)
        if part.rows != len(again):
            here = f"{many(part.rows, 'state')}, and {len(again):,} are below its roots"
            faults.append(f"{table.where}: {part.name} has {here}")
            continue
        # A file adds the errors of its own states to those of the files that it reads.
        most = game.float64_error + 1.01 * len(part.entries) * graph.error
        for entry in part.entries:
            path = table.where / entry.place
            file = part.groups.open(entry)
            groups = [_differing(part, file, n, again, most) for n in range(file.groups)]
            if wrong := set[str]().union(*groups):
                names = ", ".join(sorted(wrong))
                faults.append(f"{path}: {names}: not as its search, solved again, has it")
            least = min(game.cut_error + game.float64_error, float(np.ptp(game.payoff_range)))
            if not least <= entry.error <= game.cut_error + most:
                expected = f"{least:.2e} to {game.cut_error + most:.2e}"
                faults.append(f"{path}: its error is {entry.error:.2e}; expected {expected}")
    return faults


def _differing(
    part: KeyPart, file: TableFile, number: int, again: PayoffTable, error: float
) -> set[str]:
    """Return the columns of a search's row group that differ from its rows `again`. error: bound of
    both."""
    game, stored = part.game, part.decode(file, number, part.has)
    at = np.minimum(np.searchsorted(again.keys, stored["key"]), len(again) - 1)
    if (again.keys[at] != stored["key"]).any():
        return {"key"}
    rows = again.only(at)
    allowed = float(most_residual(game, error))
    tie = game.tie_tolerance + allowed
    actions = np.where(rows.actor == 0, -1, np.maximum(rows.best, -1))
    names = [None if a < 0 else game.action_name(a) for a in actions.tolist()]
    stored_names = named(stored["best"], part.action_names)
    renamed = np.array(names, object) != np.array(stored_names, object)
    to_act = numbers_of(file.read(number, ["to_act"]).column(0))
    differs = {
        "payoffs": ~(np.abs(stored["values"] - rows.values) <= allowed).all(axis=1),
        "best": renamed & ~((stored["margin"] <= tie) & (rows.margin <= tie)),
        "margin": distance(stored["margin"], rows.margin) > 2 * allowed + tie * renamed,
        "to_act": to_act != rows.actor,
    }
    return {name for name, each in differs.items() if each.any()}


# --- decisions -----------------------------------------------------------------------------------

ROWS_A_SAMPLE = 1000
"""Rows beyond the frontier that are solved again for each sampled row. A single row cannot be
solved alone, and solving a tier is a thousand times as fast as looking up its rows."""


def check_decisions(
    part: DecisionPart, sample: int | None, seed: int = 0, on_rows: OnRows = notebook.on_rows
) -> tuple[int, int, dict[str, Any]]:
    """Solve tiers again and compare their best actions with the stored ones. Return the number of
    compared rows, the number that differ, and the first that differs.

    sample: None for all tiers; otherwise tiers reached from a sample of the highest ones, with
        about `ROWS_A_SAMPLE` times as many rows.
    """
    layout, file_of = part.plan, {entry.tier: i for i, entry in enumerate(part.entries)}
    sampled = None if sample is None else _sampled_tiers(layout, sample * ROWS_A_SAMPLE, seed)
    tiers = layout.tiers() if sampled is None else sampled
    total = sum(map(layout.layout.rows, tiers))
    done = compared = wrong = 0
    first: dict[str, Any] = {}
    on_rows(0, total)
    for tier, _, noted in decisions_in_order(layout, sampled):
        file = file_of.get(layout.layout.tier_number(tier))
        if file is not None:
            differ = np.flatnonzero(part.best_of_file(file) != noted)
            compared, wrong = compared + len(noted), wrong + len(differ)
            if len(differ) and not first:
                first = part.game.describe(layout.layout.states_at(tier, differ[:1])[0])
        done += layout.layout.rows(tier)
        on_rows(done, total)
    return compared, wrong, first


def _sampled_tiers(layout: DecisionLayout[Any], rows: int, seed: int) -> set[Any]:
    """Return tiers and all tiers below them, drawn from those with the most spins up to this many
    rows; at least the smallest such set."""
    dense, order = layout.layout, [*layout.tiers()]

    def closure(tier: Any) -> set[Any]:
        reached, stack = {tier}, [tier]
        while stack:
            new = {*dense.children(stack.pop())} - reached
            reached |= new
            stack += new
        return reached

    levels = [next(iter(dense.tier_fields(tier).values()), 0) for tier in order]
    most = max(levels)
    top = [closure(t) for t, level in zip(order, levels, strict=True) if level == most]
    sampled: set[Any] = set()
    for k in np.random.default_rng(seed).permutation(len(top)).tolist():
        more = sampled | top[k]
        if sum(map(dense.rows, more)) <= rows:
            sampled = more
    return sampled or min(top, key=lambda tiers: sum(map(dense.rows, tiers)))
