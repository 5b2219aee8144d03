"""Resolve files, folders and job files into boards, and read and check each.

A folder means every board file below it, sorted by name. A job file lists boards (see
docs/how-to/nights.md; `jobs/nights/example.toml` is an example). A file that cannot be read becomes
a request with an error, so that it does not stop the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from luckbase.cluster.store.storage import is_special, is_uri, place_of
from luckbase.solver.board.file import (
    as_words,
    located,
    name_of,
    packaged,
    path_of,
    read_boards,
    read_toml,
    sentence_of,
    show_path,
)
from luckbase.solver.board.model import Board, Section, board_hash, mistake
from luckbase.solver.errors import BoardError, JobError, LuckbaseError, OptionError
from luckbase.solver.sentences import nearest, show, shown


@dataclass(frozen=True)
class BoardRequest:
    file: str
    """The board's file, readable or not; "" for a board that is not from a file."""
    settings: dict[str, str]
    """Its options, as given to ``--set``."""
    board: Board | None
    """None if `error` is set."""
    error: LuckbaseError | None = None
    solve_options: dict[str, Any] = field(default_factory=dict)
    """Options of the solve from the job file, named as in `SolveOptions`."""
    order: str = "listed"
    """The order given in the job file."""
    group: int = 0
    """Index of the name in the call from which this request comes."""

    @property
    def name(self) -> str:
        """The board's name in messages: its file, followed by its options."""
        name = self.file if self.file or self.board is None else self.board.name
        return " ".join([name, *(f"{k}={v}" for k, v in self.settings.items())])

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for two requests with the same board, or with the same unreadable file."""
        name = "" if self.board is None else self.board.name
        board = "" if self.board is None else board_hash(self.board)
        name *= name != Path(self.file).stem  # a board from Python may have any name
        return (os.path.realpath(self.file), name, board, *sorted(self.settings.items()))


BoardName = Board | str | os.PathLike[str]
"""A loaded board, a board file, a folder of board files, or a job file."""


def _as_text(value: Any) -> str:
    if not isinstance(value, bool | int | str):
        raise mistake(f"{show(value)} is not an option's value; expected a number, true or text")
    return as_words({"": value})[""]


def _folder(text: str) -> str:
    try:
        place_of(text)
    except OptionError as error:
        raise mistake(str(error)) from None
    return text


Files = Annotated[
    list[Annotated[str, Field(strict=True)]],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    Field(min_length=1),
]
Settings = dict[str, Annotated[str, BeforeValidator(_as_text)]]


class Entry(Section):
    """A `[[board]]` entry of a job file: every file with every variant."""

    file: Files
    """Board files and folders."""
    settings: Settings = Field({}, alias="set")
    """Options that apply to all files."""
    variants: Annotated[list[Settings], Field(min_length=1)] = [{}]  # noqa: RUF012
    """Further options, one set for each variant."""


class Job(Section):
    title: str = ""
    order: Literal["listed", "shortest"] = "listed"
    results: Annotated[str, AfterValidator(_folder), Field(min_length=1, strict=True)] | None = None
    """The results folder."""
    workers: Annotated[int, Field(ge=1, strict=True)] | None = None
    memory: Annotated[float, Field(ge=0.01, allow_inf_nan=False, strict=True)] | None = None
    """In GB."""
    board: Annotated[list[Entry], Field(min_length=1)]

    def solve_options(self, path: Path) -> dict[str, Any]:
        """Return the options for a solve, named as in `SolveOptions`. path: of the job file."""
        options = {
            "workers": self.workers,
            "memory": None if self.memory is None else int(self.memory * 1e9),
            "results": None if self.results is None else _beside(path, self.results),
        }
        return {name: value for name, value in options.items() if value is not None}


def read_job(path: Path) -> Job:
    """Read and check a job file. Raises JobError."""
    where = show_path(path)
    try:
        return Job.model_validate(read_toml(path, where))
    except BoardError as error:
        raise JobError(str(error)) from None
    except ValidationError as error:
        errors = error.errors(include_url=False)
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    location = list(first["loc"])
    sentence = sentence_of(first)
    if first["type"] == "extra_forbidden":
        key = str(location.pop())
        model: type[Section] = Entry if location else Job
        known = [field.alias or name for name, field in model.model_fields.items()]
        sentence = f"unknown key {show(key)}; {nearest(key, known)}"
    words = [f"item {part + 1}" if isinstance(part, int) else part for part in location]
    raise JobError(": ".join([where, *([", ".join(words)] if words else []), sentence]))


def _beside(job: Path, name: str) -> Path:
    """Resolve a name in a job file relative to the job file's folder."""
    if is_uri(name):
        return place_of(name)
    path = job.parent / Path(name).expanduser()
    if name in packaged() and not path.exists():
        return located(name)
    folder = Path(os.path.realpath(path if path.is_dir() else path.parent))
    return folder if path.is_dir() else folder / path.name


def is_job(path: Path) -> bool:
    """True if a file is a job file: it lists boards and names no game."""
    if not path.is_file():
        return False  # a pipe could be read only once
    try:
        data = read_toml(path, "")
    except BoardError:
        return False
    return "board" in data and "game" not in data


def is_many(names: Sequence[str], settings: Mapping[str, str] = {}, start: Any = None) -> bool:
    """True if the names mean more than one table: several boards, or a board with several grids if
    no state is given. Raises OptionError for an empty name."""
    paths = [path_of(name) for name in names]
    if len(names) > 1 or any(path.is_dir() or is_job(path) for path in paths):
        return True
    with suppress(BoardError):  # which is reported when the board is solved
        is_single = start is not None or not paths[0].is_file()  # a pipe can be read but once
        return not is_single and len(list(islice(read_boards(paths[0], settings), 2))) > 1
    return False


def requests_for(
    names: Iterable[BoardName], settings: Mapping[str, object] = {}, *, finest: bool = False
) -> list[BoardRequest]:
    """Return a request for each board in `names`, in order of first occurrence, and for each of its
    grids, or only for the finest.

    settings: options for all boards; they take precedence over options of a job file.
    """
    words = as_words(settings)
    requests: dict[tuple[Any, ...], BoardRequest] = {}
    for group, name in enumerate(names):
        for request in _requests(name, words, finest):
            requests.setdefault(request.key, replace(request, group=group))
    return list(requests.values())


def _requests(name: BoardName, settings: dict[str, str], finest: bool) -> Iterator[BoardRequest]:
    if isinstance(name, Board):
        source = name.source
        file, options = ("", {}) if source is None else (source.file, dict(source.settings))
        yield BoardRequest(file, options, name)
        return
    try:
        path = path_of(name)
        job = read_job(path) if is_job(path) else None
    except (OptionError, JobError) as error:
        yield BoardRequest(os.fspath(name), settings, None, error)
        return
    if job is None:
        yield from _requests_at(path, settings, finest)
        return
    for entry in job.board:
        for file, variant in product(entry.file, entry.variants):
            words = {**entry.settings, **variant, **settings}
            for request in _requests_at(_beside(path, file), words, finest):
                yield replace(
                    request, file=shown(request.file), solve_options=job.solve_options(path),
                    order=job.order,
                )  # fmt: skip


def _requests_at(path: Path, settings: dict[str, str], finest: bool) -> Iterator[BoardRequest]:
    if not path.is_dir():
        yield from read_requests(path, settings, finest)
        return
    files = board_files(path)
    if not files:
        error = BoardError(f"{path}: has no board file; board files end in .toml")
        yield BoardRequest(str(path), settings, None, error)
    for file in files:
        for request in read_requests(file, settings, finest):
            if request.error is None or not is_job(file):  # a job is run where it is named
                yield request


def read_requests(path: Path, settings: dict[str, str], finest: bool) -> list[BoardRequest]:
    """Read and check a board file. Return a request for each of its grids, or for the finest."""
    file = name_of(path)
    try:
        boards = list(islice(read_boards(path, settings), 1 if finest else None))
    except LuckbaseError as error:
        return [BoardRequest(file, settings, None, error)]
    return [BoardRequest(file, each.source.settings, each) for each in boards if each.source]


def board_files(folder: Path) -> list[Path]:
    """Return the .toml files below a folder, without hidden files and folders and without pipes,
    which would block the reader."""
    paths = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        boards = [f for f in files if f.endswith(".toml") and not f.startswith(".")]
        paths += [path for f in boards if not is_special(str(path := Path(parent) / f))]
    return sorted(paths)
