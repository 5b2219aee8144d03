"""The folder that ``--results`` names, in every command that takes it."""

from __future__ import annotations

from pathlib import Path

from luckbase.cluster.words import check_folder
from luckbase.solver.errors import OptionError


def read_results(text: str | Path) -> Path:
    """The folder, there or not yet. Raises OptionError where it can be none."""
    if not str(text).strip():
        raise OptionError("--results: '' is no folder; write one, such as --results results")
    check_folder(text, "--results")
    path = found = Path(text)
    while not found.exists() and found != found.parent:
        found = found.parent
    if not found.is_dir():
        raise OptionError(f"--results: {found} is a file; write a folder, such as results")
    return path
