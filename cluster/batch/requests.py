"""Which boards are meant by files, folders and job files: each read and checked.

A folder means every board file below it, in the order of their names; a job file what it lists
(docs/how-to/nights.md; `jobs/nights/example.toml` is one). What can not be read is listed too, with
its sentence, so that it stops nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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
    unfiled,
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
    def rules(self) -> str:
        """A hash of the board; "" of one that can not be read."""
        return "" if self.board is None else board_hash(self.board)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for the same file with the same options, or the same board passed."""
        if self.loaded and self.board is not None:
            return (self.board.name, self.rules)
        return (os.path.realpath(self.file), *sorted(self.settings.items()))


BoardName = BoardRequest | Board | str | os.PathLike[str]
"""A board: its file, a folder of them, a job file; one loaded; a request made before."""


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
    if unfiled(name):
        return Path(name)
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
    if isinstance(name, BoardRequest):
        yield name
        return
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


def files_of(names: Sequence[BoardName]) -> list[Path]:
    """Every file that decides what `names` mean: board files, job files and theirs."""
    files: list[Path] = []
    for name in names:
        if isinstance(name, BoardRequest | Board):
            continue
        paths = [path_of(name)]
        if is_job(paths[0]):
            with suppress(JobError):
                job = read_job(paths[0])
                paths += [_beside(paths[0], file) for entry in job.board for file in entry.file]
        files += [f for path in paths for f in (board_files(path) if path.is_dir() else [path])]
    return list(dict.fromkeys(files))


# --- which of them are saved -------------------------------------------------------------------

FileTimes = dict[str, tuple[int, int, int]]
"""Of each file: when it was changed (ns), its size, its inode."""


class SavedBoards:
    """The boards behind some names, and which of them were saved since they were read.

    names, settings: as for `requests_for`. on_note: called with a sentence on what is waited for.
    """

    def __init__(
        self, names: Sequence[BoardName], settings: Mapping[str, object] = {},
        on_note: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        self.names, self.settings, self.on_note = names, settings, on_note
        self._hashes: dict[tuple[Any, ...], str] = {}  # of deleted ones too: they may return
        self._requests: list[BoardRequest] = []
        self._handled = self._latest = self._file_times()

    @property
    def boards(self) -> int:
        """How many boards are watched that can be read."""
        return sum(request.board is not None for request in self._requests)

    def read_all(self) -> list[BoardRequest]:
        """All boards, as they are now."""
        self._handled = self._latest = self._file_times()  # before they are read, to miss no save
        self._requests = requests_for(self.names, self.settings)
        self._hashes = {request.key: request.rules for request in self._requests}
        return self._requests

    def poll(self) -> list[BoardRequest]:
        """The boards that were saved since the last poll, with other rules or for the first time;
        none while some file still changes."""
        now = self._file_times()
        changing, self._latest = now != self._latest, now
        saved = [file for file in now if now[file] != self._handled.get(file)]
        deleted = [file for file in self._handled if not os.path.exists(file)]
        if changing or not (saved or deleted):
            return []
        for file in deleted:
            self.on_note(f"{file}: is gone; its tables stay, luckbase clean lists them")
            del self._handled[file]
        self._handled |= now
        self._requests = requests_for(self.names, self.settings)
        for file in saved:
            self._report(file)
        changed = [r for r in self._requests if r.board is not None and self._is_new(r)]
        self._hashes |= {request.key: request.rules for request in changed}
        return changed

    def _is_new(self, request: BoardRequest) -> bool:
        return self._hashes.get(request.key) != request.rules

    def _report(self, file: str) -> None:
        requests = [r for r in self._requests if os.path.realpath(r.file) == file]
        errors = [str(request.error) for request in requests if request.error is not None]
        for error in dict.fromkeys(errors):
            self.on_note(f"waiting for it to be saved again: {error}")
        if requests and not errors and not any(map(self._is_new, requests)):
            self.on_note(f"{requests[0].file}: was saved, and its rules are as they were")

    def _file_times(self) -> FileTimes:
        times: FileTimes = {}
        for path in files_of(self.names):
            try:
                stat = path.stat()
            except OSError:
                continue
            times[os.path.realpath(path)] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        return times
