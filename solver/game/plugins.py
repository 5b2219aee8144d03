"""Games in somebody's own file: loaded by its path, and carried to where the work is done.

A board file never names code. A person does, with ``--game FILE.py`` or `load_game_file`: the file
is run once, and calls `luckbase.register` for each of its games.

* **Another process, another machine.** A board of such a game is pickled with the file's text, so
  that a worker which has never seen the file can run it.
* **A changed file.** The rules version of such a game holds a hash of the file's code (comments and
  docstrings left out), so a table that an older text has solved is stale and answers nothing.
"""

from __future__ import annotations

import ast
import copyreg
import hashlib
import importlib.util
import os
import re
import sys
import traceback
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from luckbase.solver.board import registry
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.board.model import Board, Source, canonical
from luckbase.solver.board.registry import GameFile
from luckbase.solver.compiled import cache_roots
from luckbase.solver.errors import OptionError
from luckbase.solver.game.fields import Field
from luckbase.solver.game.rules import Rules
from luckbase.solver.sentences import shorten

_NUMBA = re.compile(
    r"Failed in nopython mode pipeline .*\n|\x1b\[\d*m| found for signature:\s+>>>"
    r"|Function\(<.*?>\)"
)


def stamp(text: str) -> int:
    """A number of 32 bits of a file's code, another one for other code. Raises SyntaxError."""
    tree = _WithoutWords().visit(ast.parse(text.encode()))
    return int(hashlib.sha256(ast.dump(tree, annotate_fields=False).encode()).hexdigest()[:8], 16)


class _WithoutWords(ast.NodeTransformer):
    """Drops docstrings, and what is for the reader of types only."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return node.orelse if typing else node


def load_game_file(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Run a file that registers games; returns their names. The same text is run once.

    Raises OptionError, in one sentence: a file that can not be read or run, with the line, or that
    registers nothing.
    """
    where = Path(path)
    try:
        text = where.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise OptionError(f"--game: {where}: {reason}") from None
    return _run(GameFile(str(where.absolute()), text), where)


def _run(file: GameFile, where: Path) -> tuple[str, ...]:
    names = registry.of_file(file)
    if names:
        return names
    name = f"luckbase_game_{hashlib.sha256(file.text.encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, where)
    if spec is None or spec.loader is None:
        raise OptionError(f"--game: {where}: is not a Python file; name one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pydantic looks its models' modules up
    with registry.entering() as entered:
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise OptionError(f"--game: {where}{fault_in(where, error)}") from None
    if not entered:
        raise OptionError(f"--game: {where}: registers no game; end it in luckbase.register(…)")
    for entry in entered.values():
        registry.enter(replace(entry, stamp=stamp(file.text), file=file))
        copyreg.pickle(entry.model(), _reduced)
    return tuple(entered)


def fault_in(where: Path, error: BaseException) -> str:
    """What went wrong in a game's file, behind its name: with the line."""
    said = str(error)
    wrong = re.search(r"unexpected keyword argument '(\w+)'", said)
    if type(error).__module__.startswith("numba"):  # its own words come first, and last
        said = re.split(r"\n\s*(?:There are|During:|File )", _NUMBA.sub("", said).strip())[0]
        said = re.sub(r"Edges\([^>]*?\)\)", "edges", said)
    elif isinstance(error, TypeError) and wrong is not None:
        close = get_close_matches(wrong[1], [*Rules.__annotations__, *Field.__annotations__], n=1)
        said += f"; did you mean '{close[0]}'?" if close else ""
    if not re.match(r"\w+Error: ", said):
        said = f"{type(error).__name__}: {said.replace('.__init__()', '()')}"
    return f"{line_of(error, str(where.absolute()))}: {shorten(said, 240)}"


def line_of(error: BaseException, file: str) -> str:
    """ ", line N" where an error comes from a line of a file, the innermost; else nothing."""
    there = re.findall(rf'File "[^"\n]*{re.escape(Path(file).name)}", line (\d+)', str(error))
    lines = [int(there[-1])] if there else [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]  # fmt: skip
    at = getattr(error, "lineno", None) or (lines[-1] if lines else None)
    name = re.search(r"name '(\w+)' is not defined", str(error))
    if at is not None and name is not None:  # numba names the function's line, not its own
        rest = Path(file).read_text(encoding="utf-8").splitlines()[at - 1 :]
        at += next((i for i, text in enumerate(rest) if re.search(rf"\b{name[1]}\b", text)), 0)
    return "" if at is None else f", line {at}"


def _reduced(board: Board) -> tuple[Any, ...]:
    """A board of such a game, as it is pickled."""
    return revive, (registry.find(board.game).file, board.name, canonical(board), board.source)


def revive(file: GameFile, name: str, form: dict[str, Any], source: Source | None) -> Board:
    """The board again, in a process that may not know its game, on a machine that may not have the
    file."""
    if not registry.of_file(file):
        where = Path(file.path)
        if not where.is_file() or where.read_text(encoding="utf-8") != file.text:
            where = _written(file)
        _run(file, where)
    return board_from_canonical(name, form).read_from(source)


def _written(file: GameFile) -> Path:
    """The text in a file of this machine, in a folder of its own."""
    folder = next(cache_roots()) / "games" / hashlib.sha256(file.text.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / Path(file.path).name
    beside = place.with_suffix(f".{os.getpid()}.part")
    beside.write_text(file.text, encoding="utf-8")
    beside.replace(place)
    return place
