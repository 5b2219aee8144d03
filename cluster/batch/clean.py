"""Find and remove tables that no board file needs.

A board file needs the table of its current rules. luckbase looks for board files in three places:
the files from which the table was solved (its manifest names them), other board files in the same
folders, and the files named in the call.

Three kinds of tables are removed only if their folder is named: tables solved with ``--set``, from
chosen states or from a board without a file, because no board file can show that they are needed.
Tables are also kept if they are being solved, if their board file cannot be read, or if the file's
folder is missing, because it may have been moved or its disk removed.

luckbase removes only files that it wrote. First the manifest is emptied, then the files are
deleted, and the manifest goes last. After an interruption the table therefore still exists, without
states, and the same call continues. If other files remain, the folder stays.

`clean` first becomes the table's writer. So it never removes a table that a live process is
solving, and a suspended solve cannot commit anything afterwards.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from luckbase.cluster.answers.find import is_table, running, tables_in, what_changed
from luckbase.cluster.batch.requests import is_job, read_job, requests_for
from luckbase.cluster.store import FORMAT, GRID, RUNNING, Condition
from luckbase.cluster.store.manifest import NAME, Goal, Head, Manifest
from luckbase.cluster.store.provenance import RESULTS, is_its_start
from luckbase.cluster.store.storage import is_special, is_uri, place_of, storage_at
from luckbase.cluster.store.writer import BEATS, Writer, is_ours, read_manifest, writers_in
from luckbase.solver import sentences
from luckbase.solver.board.file import path_of, read_board, read_boards, suggestion
from luckbase.solver.board.model import rules_identity
from luckbase.solver.errors import FencedError, LuckbaseError, OptionError, RequestError, TableError
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import load_game
from luckbase.solver.result import OrNull, PythonOnly, Result
from luckbase.solver.sentences import option, setting

FILES = re.compile(
    rf"{re.escape(NAME)}(\.lock)?|{re.escape(GRID)}|{re.escape(RUNNING)}|\.{re.escape(RUNNING)}\.[0-9]+"
    r"|log/[0-9]{8}T[0-9]{6}\.[0-9]{6}-[0-9]+\.log"  # of earlier versions
)
"""Names of files in a table's folder that luckbase writes, in addition to those of writers."""


@dataclass(frozen=True)
class Spare(Result):
    """A table that no board file needs, or a table that was named."""

    table: Path
    state: Condition
    why: tuple[str, ...] = ()
    """Reasons, as sentences."""
    states: int = 0
    bytes: int = 0
    foreign: tuple[str, ...] = ()
    """Files in its folder that luckbase did not write and keeps."""
    named: PythonOnly[bool] = False
    error: OrNull[str] = ""
    """Why it could not be removed."""


def clean(
    names: Sequence[str], results: str | os.PathLike[str] | None, *, yes: bool = False
) -> list[Spare]:
    """Find the tables that no board file needs; remove them if `yes`.

    names: boards, folders of boards, job files, or folders of tables; if empty, all tables in the
        results folder. A named table is removed even if it is protected.
    results: the results folder; by default the folder given in the job files, or ``results``.

    Raises OptionError for a name that is neither a table nor a board, for read-only places and for
    job files with different results folders; JobError for an invalid job file.
    """
    if results is None:
        jobs = [path for path in map(place_of, names) if is_job(path)]
        options = [read_job(path).solve_options(path) for path in jobs]
        named_folders = sorted({str(each.get("results", RESULTS)) for each in options})
        if len(named_folders) > 1:
            raise OptionError(
                f"{option('results')}: job files say {' and '.join(named_folders)}; name one"
            )
        results = (named_folders or [RESULTS])[0]
    place = place_of(results)
    for name in (*names, results):
        if is_uri(name) and not storage_at(place_of(name)).lists:
            raise OptionError(f"{os.fspath(name)[:80]}: is only read; nothing is removed there")
    if not place.is_dir() and not (names and all(is_table(place_of(n)) for n in names)):
        raise OptionError(f"{option('results')}: there is not a folder {results}")
    scope, spares = _Scope(names, place), list[Spare]()
    for path in scope.tables():
        try:
            spare = _spare(path, scope)
        except PermissionError as error:
            denied = f"{error.filename or path}: permission denied"
            spare = Spare(path, "kept", named=path in scope.named, error=denied)
        if spare is not None:
            spares.append(_removed(spare) if yes and spare.state == "unneeded" else spare)
    return spares


def _removed(spare: Spare) -> Spare:
    try:
        return replace(spare, state="removed", foreign=tuple(remove(spare.table)))
    except (RequestError, FencedError) as error:
        return replace(spare, state="running", error=str(error))
    except LuckbaseError as error:
        return replace(spare, error=str(error))
    except OSError as error:
        why = f"{error.filename or spare.table}: {error.strerror or error}"
        return replace(spare, error=f"it cannot be removed: {why}")


class _Scope:
    """The names in the call, resolved: folders of tables, board files and folders of boards."""

    def __init__(self, names: Sequence[str], results: Path) -> None:
        self.results = results
        self.named = [place_of(name) for name in names if is_table(place_of(name))]
        self.places = [name for name in names if not is_table(place_of(name))]
        existing = {name for name in self.places if os.path.exists(path_of(name))}
        self.requests = requests_for([name for name in self.places if name in existing])
        self.files = {path: _board_files(path) for path in tables_in(results)}
        sources = [file for files in self.files.values() for file in files]
        for name in self.places:
            if name not in existing and not any(_below(file, name) for file in sources):
                near = suggestion(Path(name))
                raise OptionError(f"{name}: no such table, board file or folder of boards{near}")

    def tables(self) -> list[Path]:
        named = {_real(path): path for path in self.named}
        if self.named and not self.places:
            return list(named.values())
        tables = {_real(path): path for path in self.files}
        if self.places:
            tables = {real: path for real, path in tables.items() if self._is_in(path)}
        return sorted([*named.values(), *(p for real, p in tables.items() if real not in named)])

    def _is_in(self, path: Path) -> bool:
        place = (path.parent.parent.name, path.parent.name)
        if place in {(r.board.game, r.board.name) for r in self.requests if r.board}:
            return True
        return any(_below(file, name) for file in self.files[path] for name in self.places)

    @cached_property
    def file_of_rules(self) -> dict[str, str]:
        """One board file for each rules identity that a board file needs. Searches the named files,
        and all board files in folders from which tables were solved."""
        folders = {os.path.dirname(file) for files in self.files.values() for file in files}
        candidates = dict.fromkeys(
            place for folder in sorted(folders - {""})
            for place in ([folder] if os.path.isdir(folder) else _moved(folder, self.results))
        )  # fmt: skip
        beside = [
            str(file) for folder in candidates for file in sorted(Path(folder).glob("*.toml"))
            if not is_special(str(file))
        ]  # fmt: skip
        by_rules: dict[str, str] = {}
        for request in [*self.requests, *requests_for(beside)]:
            if request.board is not None and _is_own(request.file, request.settings):
                with suppress(LuckbaseError):
                    by_rules.setdefault(rules_identity(load_game(request.board)), request.file)
        return by_rules


def _real(path: Path) -> str:
    return str(path) if is_uri(path) else os.path.realpath(path)


def _board_files(path: Path) -> list[str]:
    try:
        return [goal.board_file for goal in read_manifest(storage_at(path), path).goals]
    except (TableError, PermissionError):
        return []


def _moved(folder: str, results: Path) -> list[str]:
    """Return folders where a missing folder may be now, if a project was moved with its results.
    These are paths that end like the missing one, in a folder that contains the results."""
    if is_uri(results):
        return []
    parts = Path(folder).parts[1:]
    parents = Path(os.path.realpath(results)).parents
    paths = [os.path.join(parent, *parts[i:]) for parent in parents for i in range(len(parts))]
    return [str(parents[0]), *filter(os.path.isdir, paths)]


def _below(file: str, name: str) -> bool:
    if not file:
        return False
    path, place = os.path.realpath(file), os.path.realpath(name)
    return path == place or path.startswith(os.path.join(place, ""))


def _spare(path: Path, scope: _Scope) -> Spare | None:
    """Return the state of a table, or None if a board file needs it and it was not named. Raises
    PermissionError."""
    named = path in scope.named
    if not is_uri(path) and path.is_symlink():
        return Spare(path, "kept", ("it is a link, and a link is not followed",), named=named)
    ours, others = contents(path, writers_in(storage_at(path)))
    spare = Spare(path, "kept", bytes=sum(ours.values()), foreign=tuple(others), named=named)
    try:
        manifest = read_manifest(storage_at(path), path)
    except TableError as error:
        goes = () if named else (f"to remove it, name it: {path}",)
        return replace(spare, state="unneeded" if named else "kept", why=(str(error), *goes))
    spare = replace(spare, states=manifest.rows)
    if (solver := running(path)) is not None:
        who = f"process {solver['process']} on {solver['host']} solves it"
        return replace(spare, state="running", why=(who,))
    sources = [_source(goal, manifest) for goal in manifest.goals]
    file = scope.file_of_rules.get(manifest.head.identity)
    for goal, source in zip(manifest.goals, sources, strict=True):
        if file is None and source.same and not source.protects:
            file = goal.board_file
    if file is not None:
        return replace(spare, state="needed", why=(f"{file} needs it",)) if named else None
    why = tuple(dict.fromkeys(reason for source in sources for reason in source.why))
    if named:
        return replace(spare, state="unneeded", why=why)
    if any(source.same for source in sources):
        return None  # its board file, with the recorded options, still describes this table
    protects = dict.fromkeys(source.protects for source in sources if source.protects)
    if protects or not sources:
        return replace(spare, why=(*why, *protects))
    return replace(spare, state="unneeded", why=why)


class _Source(NamedTuple):
    """A goal of a table, compared with its board file as it is now."""

    same: bool = False
    """True if the file, with the recorded options, still describes the table."""
    why: tuple[str, ...] = ()
    protects: str = ""
    """Why the table must not be removed; empty if only the board file decides."""


def _source(goal: Goal, manifest: Manifest) -> _Source:
    file, protects = goal.board_file, ""
    if not file:
        return _Source(protects="it was solved from a board that is in no file")
    if not _is_own(file, goal.settings):
        options = " ".join(setting(name, value) for name, value in goal.settings.items())
        protects = f"it was solved with {options}"
    elif goal.roots is not None and not _is_start(goal, manifest):
        protects = "it was solved from chosen states"
    try:
        if os.path.basename(file) not in os.listdir(os.path.dirname(file)):
            return _Source(why=(f"{file} is gone",), protects=protects)
    except OSError:
        why = f"{file} cannot be looked up: its folder is missing or cannot be read"
        maybe = "its board file may have been moved, or its disk taken out"
        return _Source(why=(why,), protects=protects or maybe)
    try:
        game = load_game(read_board(Path(file), goal.settings))
    except LuckbaseError as error:
        why = f"its board file cannot be read: {error}"
        return _Source(why=(why,), protects=protects or "its board file may be half-saved")
    if rules_identity(game) == manifest.head.identity:
        return _Source(True, protects=protects)
    changed = what_changed(manifest.head, game.board, game.rules_version)
    return _Source(why=sentences.some(5, changed), protects=protects)


def _is_own(file: str, settings: Mapping[str, str]) -> bool:
    """True if a board file itself has these options: none, or the options of a grid."""
    with suppress(LuckbaseError):
        boards = read_boards(Path(file)) if settings else iter(())
        return not settings or settings in [each.source.settings for each in boards if each.source]
    return False


def _is_start(goal: Goal, manifest: Manifest) -> bool:
    """True if a plain solve of the board would run this search: from its start to the end."""
    roots = goal.roots
    assert roots is not None
    try:
        game = load_game(manifest.board(goal.reach))
    except LuckbaseError:
        return False
    return not game.has(FullTable) and is_its_start(game, roots)


def contents(table: Path, writers: Collection[str]) -> tuple[dict[str, int], list[str]]:
    """Return the files in a table's folder that luckbase wrote, with sizes, and the names of other
    files.

    writers: the ids of the table's writers.
    """
    sizes = storage_at(table).list()
    ours = [name for name in sizes if FILES.fullmatch(name) or is_ours(name, writers)]
    return {name: sizes[name] for name in ours}, sorted(sizes.keys() - {*ours})


def remove(table: Path) -> list[str]:
    """Remove a table. Return the names of files that luckbase did not write, which stay. Raises
    RequestError if the table is being solved, OSError if a file cannot be deleted."""
    storage = storage_at(table)
    try:
        head = read_manifest(storage, table).head
    except TableError:
        head = Head(FORMAT, table.parent.parent.name, table.parent.name, table.name, {}, 0)
    with Writer(storage, table, head).take() as writer:
        writers = {*writer.manifest.writers}
        writer.drop([*writer.manifest.files])
        ours, others = contents(table, writers)
        for name in ours.keys() - {NAME, f"{NAME}.lock", f"{BEATS}{writer.id}"}:
            storage.delete(name)
        writer.remove()
    storage.delete(f"{NAME}.lock")
    if not storage.anywhere:
        for folder, _, _ in os.walk(table, topdown=False):
            with suppress(OSError):  # other people's files are in it
                os.rmdir(folder)
        for above in (table.parent, table.parent.parent):  # of the board and of the game
            with suppress(OSError):
                above.rmdir()
    return others
