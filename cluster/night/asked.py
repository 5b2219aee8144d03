"""Which boards are asked for: from files, folders and job files to boards, each read and checked.

A folder means every board file below it, in the order of their names; a job file (`job`) what it
lists. What can not be read is listed too, with its sentence, so that it stops nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from luckbase.cluster.night.job import Job, is_job, place_of, read_job
from luckbase.cluster.table.files import is_special
from luckbase.solver.board.file import as_words, read_board
from luckbase.solver.board.model import Board, board_hash
from luckbase.solver.board.toml_file import path_of
from luckbase.solver.errors import BoardError, JobError, LuckbaseError, OptionError


@dataclass(frozen=True)
class Asked:
    """One board that is asked for.

    file: the board's, or the one that can not be read; "" of a board that was made in another way.
    settings: its options, as ``--set`` has them. board: None where `error` says what is wrong.
    how: what its job file says of the solve, as `SolveOptions` has it; order: the job's. group:
    which of the names it is from. in_hand: a board was given, not its file.
    """

    file: str
    settings: dict[str, str]
    board: Board | None
    error: LuckbaseError | None = None
    how: dict[str, Any] = field(default_factory=dict)
    order: str = "listed"
    group: int = 0
    in_hand: bool = False

    @property
    def name(self) -> str:
        """The board, for people: its file, and its options where there are any."""
        name = self.file if self.file or self.board is None else self.board.name
        return " ".join([name, *(f"{k}={v}" for k, v in self.settings.items())])

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for what is the same file with the same options, or the same board in hand."""
        if self.in_hand and self.board is not None:
            return (self.board.name, board_hash(self.board))
        return (os.path.realpath(self.file), *sorted(self.settings.items()))


Named = Asked | Board | str | os.PathLike[str]
"""A board: its file, a folder of them, a job file; one in hand; one that was looked up before."""


def is_many(names: Sequence[str]) -> bool:
    """Whether more is meant than one board file. Raises OptionError for an empty name."""
    paths = [path_of(name) for name in names]
    return len(names) > 1 or any(path.is_dir() or is_job(path) for path in paths)


def asked_for(names: Iterable[Named], settings: Mapping[str, object] = {}) -> list[Asked]:
    """Every board behind `names`, each once, where it is named first. settings: options of them
    all, before those that a job file says."""
    words = as_words(settings)
    found: dict[tuple[Any, ...], Asked] = {}
    for group, name in enumerate(names):
        for one in _of(name, words):
            found.setdefault(one.key, replace(one, group=group))
    return list(found.values())


def _of(name: Named, settings: dict[str, str]) -> Iterator[Asked]:
    if isinstance(name, Asked):
        yield name
        return
    if isinstance(name, Board):
        source = name.source
        said = ("", {}) if source is None else (source.file, dict(source.settings))
        yield Asked(*said, name, in_hand=True)
        return
    try:
        path = path_of(name)
    except OptionError as error:
        yield Asked("", settings, None, error)
        return
    if path.is_dir():
        yield from _in_folder(path, settings)
    elif is_job(path):
        yield from _of_job(path, settings)
    else:
        yield read_asked(path, settings)


def _in_folder(folder: Path, settings: dict[str, str]) -> Iterator[Asked]:
    files = board_files(folder)
    if not files:
        error = BoardError(f"{folder}: no board file is in it; a board file ends in .toml")
        yield Asked(str(folder), settings, None, error)
    for file in files:
        one = read_asked(file, settings)
        if one.error is None or not is_job(file):  # a job is run where it is named
            yield one


def _of_job(path: Path, settings: dict[str, str]) -> Iterator[Asked]:
    try:
        job = read_job(path)
    except JobError as error:
        yield Asked(str(path), settings, None, error)
        return
    how = how_of(job, path)
    for entry in job.board:
        for name in entry.file:
            for variant in entry.variants:
                words = {**entry.settings, **variant, **settings}
                there = place_of(path, name)
                several = _in_folder(there, words) if there.is_dir() else [read_asked(there, words)]
                for one in several:
                    yield replace(one, file=short(one.file), how=how, order=job.order)


def read_asked(path: Path, settings: dict[str, str]) -> Asked:
    """A board file, read and checked."""
    try:
        board = read_board(path, settings)
        return Asked(str(path), settings, board)
    except LuckbaseError as error:
        return Asked(str(path), settings, None, error)


def how_of(job: Job, path: Path) -> dict[str, Any]:
    """What a job says of the solve, as `SolveOptions` has it; nothing of what it leaves open."""
    found: dict[str, Any] = {"workers": job.workers}
    found["margin"] = job.margin or None
    found["memory"] = None if job.memory is None else int(job.memory * 1e9)
    found["results"] = None if job.results is None else place_of(path, job.results)
    return {name: value for name, value in found.items() if value is not None}


def board_files(folder: Path) -> list[Path]:
    """The .toml files below a folder, those in hidden folders left out, and pipes: to read one is
    to wait."""
    found = []
    for where, inner, files in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        boards = [f for f in files if f.endswith(".toml") and not f.startswith(".")]
        found += [path for f in boards if not is_special(str(path := Path(where) / f))]
    return sorted(found)


def files_of(names: Sequence[Named]) -> list[Path]:
    """Every file that decides what `names` ask for: board files, job files and theirs."""
    found: list[Path] = []
    for name in names:
        if isinstance(name, Asked | Board):
            continue
        path = Path(name)
        if path.is_dir():
            found += board_files(path)
            continue
        found.append(path)
        if is_job(path):
            try:
                listed = [place_of(path, n) for entry in read_job(path).board for n in entry.file]
            except JobError:
                continue
            found += [f for one in listed for f in (board_files(one) if one.is_dir() else [one])]
    return list(dict.fromkeys(found))


def short(file: str) -> str:
    """A path as short as it can be typed here."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file
