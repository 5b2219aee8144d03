"""Job files: which boards a night solves, with which options, in which order.

A job file is TOML; `jobs/nights/example.toml` is one::

    order = "shortest"            # or "listed", as they stand
    workers = 2
    memory = 4                    # GB

    [[board]]
    file = "../boards/mine.toml"  # or a folder, or a list of both; from the job file's own folder
    set = { frontier = 2 }        # as --set
    variants = [{ max_whammies = 3 }, { max_whammies = 4 }]
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from luckbase.cluster.words import check_folder
from luckbase.solver.board.file import as_words, sentence_of
from luckbase.solver.board.model import Section, mistake
from luckbase.solver.board.toml_file import read_toml, show_path
from luckbase.solver.errors import BoardError, JobError, OptionError
from luckbase.solver.sentences import nearest, show

LEAST_GIGABYTES = 0.01


def _listed(value: Any) -> Any:
    """A file alone is a list of one."""
    return [value] if isinstance(value, str) else value


def _text(value: Any) -> str:
    """The value of an option, as ``--set`` has it."""
    if not isinstance(value, bool | int | str):
        raise mistake(f"{show(value)} is no value of an option; write a number, true, false, text")
    return as_words({"": value})[""]


def _folder(text: str) -> str:
    try:
        check_folder(text)
    except OptionError as error:
        raise mistake(str(error).removeprefix("results: ")) from None
    return text


Files = Annotated[
    list[Annotated[str, Field(strict=True)]], BeforeValidator(_listed), Field(min_length=1)
]
Gigabytes = Annotated[float, Field(ge=LEAST_GIGABYTES, allow_inf_nan=False, strict=True)]
Settings = dict[str, Annotated[str, BeforeValidator(_text)]]


class Entry(Section):
    """Boards with their options: every file with every variant.

    file: files and folders. settings: options of all of them. variants: options of each, beside
    those.
    """

    file: Files
    settings: Settings = Field({}, alias="set")
    variants: Annotated[list[Settings], Field(min_length=1)] = [{}]  # noqa: RUF012


class Job(Section):
    """What a job file says. memory: in GB. results: the folder of tables."""

    title: str = ""
    order: Literal["listed", "shortest"] = "listed"
    results: Annotated[str, AfterValidator(_folder), Field(min_length=1, strict=True)] | None = None
    workers: Annotated[int, Field(ge=1, strict=True)] | None = None
    memory: Gigabytes | None = None
    margin: Annotated[bool, Field(strict=True)] = False
    board: Annotated[list[Entry], Field(min_length=1)]


def is_job(path: Path) -> bool:
    """Whether a file is a job, not a board: it lists boards and names no game."""
    if not path.is_file():
        return False  # nor is a pipe, which can be read but once
    try:
        data = read_toml(path, "")
    except BoardError:
        return False
    return "board" in data and "game" not in data


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
    said = sentence_of(first)
    if first["type"] == "extra_forbidden":
        key = location.pop()
        said = f"unknown key {show(str(key))}; {nearest(str(key), _keys(len(location) > 1))}"
    words = [f"item {one + 1}" if isinstance(one, int) else one for one in location]
    raise JobError(": ".join([where, *([", ".join(words)] if words else []), said]))


def _keys(of_board: bool) -> list[str]:
    """The keys of a job file, or of one of its boards."""
    model: type[Section] = Entry if of_board else Job
    return [field.alias or name for name, field in model.model_fields.items()]


def place_of(job: Path, name: str) -> Path:
    """Where a file is that a job names: as seen from the job file's own folder."""
    path = job.parent / Path(name).expanduser()
    folder = Path(os.path.realpath(path if path.is_dir() else path.parent))
    return folder if path.is_dir() else folder / path.name
