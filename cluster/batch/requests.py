"""Which boards are meant by files, folders and job files: each read and checked.

A folder means every board file below it, in the order of their names; a job file what it lists
(docs/how-to/nights.md; `jobs/nights/example.toml` is one). What can not be read is listed too, with
its sentence, so that it stops nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from luckbase.cluster.inputs import is_job
from luckbase.cluster.table.storage import is_special, is_uri, place_of
from luckbase.solver.board.file import (
    as_words,
    located,
    name_of,
    packaged,
    path_of,
    read_board,
    read_toml,
    sentence_of,
    show_path,
)
from luckbase.solver.board.model import Board, Section, board_hash, mistake
from luckbase.solver.errors import BoardError, JobError, LuckbaseError, OptionError
from luckbase.solver.sentences import nearest, show, shown


@dataclass(frozen=True)
class BoardRequest:
    """One board to solve."""

    file: str
    """The board's file, or the one that can not be read; "" of a board made in another way."""
    settings: dict[str, str]
    """Its options, as ``--set`` has them."""
    board: Board | None
    """None where `error` says what is wrong."""
    error: LuckbaseError | None = None
    solve_options: dict[str, Any] = field(default_factory=dict)
    """What its job file says of the solve, named as in `SolveOptions`."""
    order: str = "listed"
    """The job file's."""
    group: int = 0
    """Which of the names it is from."""
    loaded: bool = False
    """A board was passed, not its file."""

    @property
    def name(self) -> str:
        """The board, for people: its file, and its options where there are any."""
        name = self.file if self.file or self.board is None else self.board.name
        return " ".join([name, *(f"{k}={v}" for k, v in self.settings.items())])

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for the same file with the same options, or the same board passed."""
        if self.loaded and self.board is not None:
            return (self.board.name, board_hash(self.board))
        return (os.path.realpath(self.file), *sorted(self.settings.items()))


BoardName = Board | str | os.PathLike[str]
"""A board that is loaded, its file, a folder of board files, or a job file."""


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
    """Boards with their options: every file with every variant."""

    file: Files
    """Files and folders."""
    settings: Settings = Field({}, alias="set")
    """Options of all of them."""
    variants: Annotated[list[Settings], Field(min_length=1)] = [{}]  # noqa: RUF012
    """Options of each, beside those."""


class Job(Section):
    """What a job file says."""

    title: str = ""
    order: Literal["listed", "shortest"] = "listed"
    results: Annotated[str, AfterValidator(_folder), Field(min_length=1, strict=True)] | None = None
    """The folder of tables."""
    workers: Annotated[int, Field(ge=1, strict=True)] | None = None
    memory: Annotated[float, Field(ge=0.01, allow_inf_nan=False, strict=True)] | None = None
    """In GB."""
    board: Annotated[list[Entry], Field(min_length=1)]

    def solve_options(self, path: Path) -> dict[str, Any]:
        """What the job file at `path` says of the solve, named as in `SolveOptions`."""
        options = {
            "workers": self.workers,
            "memory": None if self.memory is None else int(self.memory * 1e9),
            "results": None if self.results is None else _beside(path, self.results),
        }
        return {name: value for name, value in options.items() if value is not None}


def read_job(path: Path) -> Job:
    """Read and check a job file. Raises JobError, one sentence."""
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
    """Where a file is that a job names: as seen from the job file's own folder."""
    if is_uri(name):
        return place_of(name)
    path = job.parent / Path(name).expanduser()
    if name in packaged() and not path.exists():
        return located(name)
    folder = Path(os.path.realpath(path if path.is_dir() else path.parent))
    return folder if path.is_dir() else folder / path.name


def requests_for(
    names: Iterable[BoardName], settings: Mapping[str, object] = {}
) -> list[BoardRequest]:
    """Every board behind `names`, each once, where it is named first. settings: options of them
    all, before those that a job file says."""
    words = as_words(settings)
    requests: dict[tuple[Any, ...], BoardRequest] = {}
    for group, name in enumerate(names):
        for request in _requests(name, words):
            requests.setdefault(request.key, replace(request, group=group))
    return list(requests.values())


def _requests(name: BoardName, settings: dict[str, str]) -> Iterator[BoardRequest]:
    if isinstance(name, Board):
        source = name.source
        file, options = ("", {}) if source is None else (source.file, dict(source.settings))
        yield BoardRequest(file, options, name, loaded=True)
        return
    try:
        path = path_of(name)
    except OptionError as error:
        yield BoardRequest("", settings, None, error)
        return
    try:
        job = read_job(path) if is_job(path) else None
    except JobError as error:
        yield BoardRequest(str(path), settings, None, error)
        return
    if job is None:
        yield from _requests_at(path, settings)
        return
    solve_options = job.solve_options(path)
    for entry in job.board:
        for file in entry.file:
            for variant in entry.variants:
                words = {**entry.settings, **variant, **settings}
                for request in _requests_at(_beside(path, file), words):
                    yield replace(
                        request, file=shown(request.file), solve_options=solve_options,
                        order=job.order,
                    )  # fmt: skip


def _requests_at(path: Path, settings: dict[str, str]) -> Iterator[BoardRequest]:
    if not path.is_dir():
        yield read_request(path, settings)
        return
    files = board_files(path)
    if not files:
        error = BoardError(f"{path}: has no board file; board files end in .toml")
        yield BoardRequest(str(path), settings, None, error)
    for file in files:
        request = read_request(file, settings)
        if request.error is None or not is_job(file):  # a job is run where it is named
            yield request


def read_request(path: Path, settings: dict[str, str]) -> BoardRequest:
    """A board file, read and checked."""
    try:
        return BoardRequest(name_of(path), settings, read_board(path, settings))
    except LuckbaseError as error:
        return BoardRequest(name_of(path), settings, None, error)


def board_files(folder: Path) -> list[Path]:
    """The .toml files below a folder, those in hidden folders left out, and pipes: to read one is
    to wait."""
    paths = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        boards = [f for f in files if f.endswith(".toml") and not f.startswith(".")]
        paths += [path for f in boards if not is_special(str(path := Path(parent) / f))]
    return sorted(paths)
