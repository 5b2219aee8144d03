"""Where compiled code is kept: a folder a module, named by what was compiled and nothing else.

numba keeps compiled functions on disk, but by the file's path, and it sees no change of a helper in
another file. So it asks `Locator` here where a module's compiled functions are. The name has a hash
of the module's source and of all that it imports of ours (or of its author's), as syntax trees
without docstrings, and of the versions and the processor that code is compiled by and for:

* another comment, docstring, path or date of a file: the same folder, nothing is compiled;
* another line of code in the module or in what it imports, another numba, llvmlite, numpy, Python
  or processor: another folder. Folders that nobody has used for `KEEP_DAYS` are removed.

A game's file outside this package, and the helpers beside it, are kept so too.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
"""The folder of the package luckbase."""
KEEP_DAYS = 30
CLASSES = "NUMBA_CACHE_LOCATOR_CLASSES"
OTHERS = "UserProvided", "InTree", "UserWide", "IPython", "Zip"
"""numba's own locators, in its order, for functions that are not ours."""
_DAY = 86400.0


def keep_compiled_code_here() -> None:
    """Have numba ask `Locator` first: before it is imported, or after; processes that this one
    starts inherit it."""
    ours = f"{__name__}.Locator"
    given = os.environ.get(CLASSES) or ",".join(f"{name}CacheLocator" for name in OTHERS)
    if ours not in given.split(","):
        os.environ[CLASSES] = f"{ours},{given}"
    if "numba.core.config" in sys.modules:
        sys.modules["numba.core.config"].CACHE_LOCATOR_CLASSES = os.environ[CLASSES]  # type: ignore[attr-defined]


USED: set[Path] = set()
"""The folders that this process has asked for."""


class Locator:
    """What numba asks where a function's compiled code is (`numba.core.caching._CacheLocator`)."""

    def __init__(self, file: str, folder: Path, number: int) -> None:
        self._py_file, self._folder, self._number = file, folder, number  # numba reads the first

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Locator | None:
        """None where the function is not ours, or no folder can be written."""
        module = function.__module__
        key = _own_key(module) if _is_ours(module) else _key(module, Path(file))
        folder = key and next(filter(_usable, (home / key for home in homes())), None)
        if not folder:
            return None
        starts = read_source(Path(file).read_bytes()).starts
        USED.add(folder)
        return cls(file, folder, bisect_left(starts, function.__code__.co_firstlineno))

    def ensure_cache_path(self) -> None:
        """Make the folder, should it have gone."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """The folder's name says which source it is."""
        return self._folder.name

    def get_disambiguator(self) -> str:
        """Which function of the file: counted, for its line changes with a comment above it."""
        return str(self._number)


def homes() -> Iterator[Path]:
    """Where folders of compiled code may be, the first that can be written to be taken."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        yield Path(given) / "luckbase"
    yield Path("~/.cache/luckbase/compiled").expanduser()
    private = Path(tempfile.gettempdir()) / f"luckbase-{os.getuid()}"
    try:
        private.mkdir(mode=0o700, exist_ok=True)
        if private.lstat().st_uid == os.getuid():  # what is read there is run
            yield private / "compiled"
    except OSError:
        return


@cache
def _usable(folder: Path) -> bool:
    """Make the folder and mark it as used today; whoever makes a new one removes old ones."""
    try:
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        if not new and folder.stat().st_mtime < time.time() - _DAY:
            os.utime(folder)
    except OSError:
        return False
    if new:
        prune(folder.parent)
    return True


def pack() -> bytes:
    """What is compiled of what this process uses, for another machine (`unpack`): a ZIP file."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for folder in sorted(USED):
            for path in sorted(folder.glob("*.nb[ci]")):
                with suppress(OSError):
                    archive.writestr(f"{folder.name}/{path.name}", path.read_bytes())
    return content.getvalue()


def unpack(content: bytes) -> int:
    """Put what `pack` gave where this process looks for it, but for folders that have something
    already; returns how many files. What is of another processor lies there unused."""
    home = next((home for home in homes() if _usable(home / "sources")), None)
    if home is None:
        return 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        there = {folder for folder in {name.partition("/")[0] for name in names}
                 if any((home / folder).glob("*.nbi"))}  # fmt: skip
        new = [name for name in names if name.partition("/")[0] not in there]
        for name in sorted(new, key=lambda name: name.endswith(".nbi")):  # an index goes last
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
            part.write_bytes(archive.read(name))
            part.replace(path)
    return len(new)


def prune(home: Path, days: float = KEEP_DAYS) -> None:
    """Remove what nobody has used for so many days. Folders are moved away first, so that no other
    process sees half of one; one that it takes from a process's hands is made again there."""
    before = time.time() - days * _DAY
    for path in [*home.glob("*"), *home.glob("sources/*")]:
        try:
            if path.name == "sources" or path.stat().st_mtime >= before:
                continue
            if path.is_dir():
                path = path.rename(home / f"old-{uuid.uuid4().hex}")
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        except OSError:
            continue  # another process was faster


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE.name


@cache
def _own_key(module: str) -> str | None:
    """A key of a module of this package: made once, for what is imported once stays as it is."""
    path = _own_file(module)
    return _key(module, path) if path else None


def _key(module: str, path: Path) -> str | None:
    """The name of the folder of a module's compiled functions; None where it has nothing to do with
    this package."""
    try:
        sources = {name: _digest(name, file) for name, file in _closure(module, path).items()}
    except (OSError, SyntaxError):
        return None  # such as a notebook's cell
    if not any(map(_is_ours, sources)) and not _helps_a_game(module, path):
        return None
    digest = hashlib.sha256(json.dumps([_made_with(), sorted(sources.items())]).encode())
    return f"{module}-{digest.hexdigest()[:20]}"


def _helps_a_game(module: str, path: Path) -> bool:
    """Whether a module that imports this package is of the same author."""
    for name, other in list(sys.modules.items()):
        file = vars(other).get("__file__") or ""
        if file.endswith(".py") and not _is_ours(name) and _same_author(module, path, name, file):
            with suppress(OSError, SyntaxError):
                if any(map(_is_ours, read_source(Path(file).read_bytes()).imports)):
                    return True
    return False


def _same_author(module: str, path: Path, other: str, file: str) -> bool:
    """Whether two modules lie beside each other or are of one package."""
    return Path(file).parent == path.parent or other.split(".")[0] == module.split(".")[0]


@cache
def _made_with() -> list[str]:
    """What compiles, and for which processor."""
    import llvmlite
    import numba
    import numpy as np
    from llvmlite import binding

    config = sys.modules["numba.core.config"]
    name, features = getattr(config, "CPU_NAME", None), getattr(config, "CPU_FEATURES", None)
    return [
        *(f"{module.__name__} {module.__version__}" for module in (numba, llvmlite, np)),
        sys.version.partition(" ")[0],
        binding.get_process_triple(),
        binding.get_host_cpu_name() if name is None else name,
        binding.get_host_cpu_features().flatten() if features is None else features,
    ]


@dataclass(frozen=True)
class Source:
    """What counts of a source file: a hash of its code; the names it may import, relative ones with
    their dots; the lines that its functions start in, in order."""

    digest: str
    imports: list[str]
    starts: list[int]


def read_source(text: bytes) -> Source:
    """What counts of a source file, from the notes of an earlier run where there are any: to parse
    all files takes longer than to import them. Raises SyntaxError."""
    version = "{}{}".format(*sys.version_info)
    name = f"sources/{hashlib.sha256(text).hexdigest()[:32]}.py{version}"
    for home in homes():
        note = home / name
        try:
            return Source(**json.loads(note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            source = _parse(text)
            try:
                note.parent.mkdir(parents=True, exist_ok=True)
                part = note.with_name(f"{note.name}.{uuid.uuid4().hex}")
                part.write_text(json.dumps(vars(source)), encoding="utf-8")
                part.replace(note)
            except OSError:
                continue
            return source
    return _parse(text)


def _parse(text: bytes) -> Source:
    imports: set[str] = set()
    starts: list[int] = []
    tree = _WithoutWords().visit(ast.parse(text))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            dot = "." * (not module.endswith("."))
            imports.update([module, *(f"{module}{dot}{alias.name}" for alias in node.names)])
        elif isinstance(node, ast.FunctionDef | ast.Lambda):
            above = getattr(node, "decorator_list", [])
            starts.append(min(each.lineno for each in [node, *above]))
    digest = hashlib.sha256(ast.dump(tree, annotate_fields=False).encode()).hexdigest()
    return Source(digest, sorted(imports), sorted(starts))


class _WithoutWords(ast.NodeTransformer):
    """Drops docstrings, and what is for the reader of types only."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return node.orelse if typing else node


def _digest(module: str, path: Path) -> str:
    return (_own_source(path) if _is_ours(module) else read_source(path.read_bytes())).digest


@cache
def _own_source(path: Path) -> Source:
    return read_source(path.read_bytes())


def _closure(module: str, path: Path) -> dict[str, Path]:
    """A module and all that it imports of this package, or of its own author: names and files."""
    found, new = {module: path}, [module]
    while new:
        name = new.pop()
        file = found[name]
        own = _is_ours(name)
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        for said in (_own_source(file) if own else read_source(file.read_bytes())).imports:
            bare = said.lstrip(".")
            levels = len(said) - len(bare)
            up = package.split(".")[: len(package.split(".")) - levels + 1] if levels else []
            other = ".".join(filter(None, [*up, bare]))
            there = None if other in found else _file(other, name, file)
            if there:
                found[other] = there
                new.append(other)
    return found


def _file(module: str, importer: str, importer_file: Path) -> Path | None:
    """The file of a module that another imports, where it is of this package, of the importer's, or
    lies beside it; others (numpy) do not change without their version."""
    if _is_ours(module):
        return _own_file(module)
    path = getattr(sys.modules.get(module), "__file__", None)
    if not path or not path.endswith(".py"):
        return None
    return Path(path) if _same_author(importer, importer_file, module, path) else None


@cache
def _own_file(module: str) -> Path | None:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    files = path.with_name(f"{path.name}.py"), path / "__init__.py"
    return next(filter(Path.is_file, files if path != PACKAGE else files[1:]), None)
