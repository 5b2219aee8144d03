"""Functions that numba compiles on their first call, and the folder that caches their code.

Importing numba takes 0.2 s, and loading the first cached function takes 0.15 s. That is longer than
a whole query. Compiling takes seconds. So a declared function imports numba when it is first
called, and stays plain Python inside `in_python`.

**Declarations.** `njit` declares a function that Python calls, and `jitable` a function that only
compiled functions call.

**Code on disk.** numba compiles a cached function again if its file changes, but not if a helper in
another file does. So every version of luckbase has its own folder, named by a hash of all files in
`solver/` and of the versions of numba, numpy and Python. Folders not used for `KEEP_DAYS` days are
removed. Compiled code is executed, so luckbase only uses folders that belong to this user and that
only this user can write to.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_in_python = _beside = False


# --- numba's types, by name ----------------------------------------------------------------------

_types_lock = threading.RLock()
"""Without it, two threads that need a type at the same time may make numba create it twice."""


class LazyType:
    """A numba type or signature that is `made` when a function first needs it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @property
    def made(self) -> Any:
        """The numba type."""
        with _types_lock:
            if "_made" not in self.__dict__:
                self.__dict__["_made"] = self._make()
            return self.__dict__["_made"]

    def __getattr__(self, name: str) -> LazyType:
        if name.startswith("_"):
            raise AttributeError(name)
        return LazyType(lambda: getattr(self.made, name))

    def __getitem__(self, index: Any) -> LazyType:
        return LazyType(lambda: self.made[index])

    def __call__(self, *parts: Any, **options: Any) -> LazyType:
        return LazyType(lambda: self.made(*map(_made, parts), **options))


def _made(part: Any) -> Any:
    if isinstance(part, LazyType):
        return part.made
    return tuple(map(_made, part)) if type(part) is tuple else part


types: Any = LazyType(lambda: import_module("numba").types)
"""numba's types, for example ``types.int64[::1]``."""


def tuple_type(of: type, *parts: Any) -> Any:
    """Return numba's type of a NamedTuple whose members have these types."""

    def make() -> Any:
        made, numba_types = [_made(part) for part in parts], types.made
        if all(part == made[0] for part in made):  # numba distinguishes the two
            return numba_types.NamedUniTuple(made[0], len(made), of)
        return numba_types.NamedTuple(made, of)

    return LazyType(make)


# --- functions -----------------------------------------------------------------------------------


class LazyFunction:
    """A function that Python and other compiled functions call; plain: the Python function."""

    def __init__(self, plain: Callable[..., Any], signature: Any, options: dict[str, Any]) -> None:
        self.plain, self._signature, self._options = plain, signature, options
        self._is_compiled = False
        update_wrapper(self, plain)

    @property
    def made(self) -> Any:
        """numba's dispatcher; a function with a signature is compiled here.

        No lock is held: numba has its own, and two locks could deadlock.
        """
        if "_made" not in self.__dict__:
            made = compiled(self.plain, self._signature, **self._options)
            self.__dict__.setdefault("_made", made)
        return self.__dict__["_made"]

    @property
    def is_compiled(self) -> bool:
        """True if Python can call it without compiling it first."""
        if not self._is_compiled:  # numba lists its signatures anew each time
            self._is_compiled = bool(getattr(self.__dict__.get("_made"), "signatures", ()))
        return self._is_compiled

    def __call__(self, *parts: Any, **named: Any) -> Any:
        there = self.is_compiled
        if _in_python and ("numba" not in sys.modules or (_beside and not there)):
            return self.plain(*parts, **named)
        given = [part.made if type(part) is LazyFunction else part for part in parts]
        if there:
            return self.made(*given, **named)
        with _compiling():
            return self.made(*given, **named)

    def __reduce__(self) -> str:
        return self.plain.__qualname__  # pickled by its name


_new_parts: list[Part] = []
"""Parts that are not yet registered with numba."""


class Part:
    """A function that becomes part of the compiled functions that call it, and that Python runs
    unchanged."""

    def __init__(
        self,
        plain: Callable[..., Any],
        options: dict[str, Any],
        typed: Callable[..., Any] | None = None,
    ) -> None:
        """typed: function from argument types to the function to compile, if not `plain`."""
        self.plain, self.options = plain, options
        self.typed = typed or (lambda *parts, **named: plain)
        update_wrapper(self, plain)
        _new_parts.append(self)

    def __call__(self, *parts: Any, **named: Any) -> Any:
        return self.plain(*parts, **named)

    def __repr__(self) -> str:
        return self.plain.__name__  # in numba's messages

    def __reduce__(self) -> str:
        return self.plain.__qualname__


def njit(signature: Any = None, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function as `numba.njit` does, cached on disk and called without the GIL.

    signature: of the types in `types`; None to compile the function for the types of each call.
    options: more options of `numba.njit`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return cast("Callable[P, R]", LazyFunction(function, signature, options))

    return decorate


def jitable(**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function that becomes part of the compiled functions that call it (`Part`)."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return cast("Callable[P, R]", Part(function, options))

    return decorate


inlined = jitable(forceinline=True)
"""Declares a function whose code replaces each call."""


def _borrow(part: Any) -> Any:
    """Return the function that numba compiles for `borrowed` and an argument of this type."""
    import numba

    if isinstance(part, numba.types.NamedTuple | numba.types.NamedUniTuple):
        borrowed_parts = ", ".join(f"borrowed(part[{i}])" for i in range(len(part)))
        names = {"borrowed": borrowed, "of": part.instance_class}
        return eval(f"lambda part: of({borrowed_parts})", names)
    if not isinstance(part, numba.types.Array):
        return lambda part: part
    pointer = numba.types.CPointer(part.dtype)
    address = numba.njit(pointer(pointer))(lambda at: at)
    return lambda part: numba.carray(address(part.ctypes), part.shape)


def _same(part: Any) -> Any:
    """Return an array of a compiled function, or a NamedTuple of arrays, without reference counts.

    numba counts references, atomically, whenever an array is taken out of a tuple or passed on.
    Without it, the rules of Press Your Luck take half the time. The array must not outlive the
    call.
    """
    return part


borrowed: Any = Part(_same, {"forceinline": True}, _borrow)


def compiled(function: Callable[..., Any], signature: Any = None, **options: Any) -> Any:
    """Return numba's dispatcher of a function, compiled if there is a signature."""
    import numba

    tell_numba()
    folder = cache_folder()
    if folder is None:
        options = options | {"cache": False}
    else:
        numba.config.CACHE_DIR = str(folder)
    options = {"cache": True, "nogil": True} | options
    if signature is None:
        return numba.njit(**options)(function)
    with _compiling():
        return numba.njit(_made(signature), **options)(function)


def tell_numba() -> None:
    """Register the declared functions with numba, so that compiled functions may call them."""
    from numba import extending, typeof

    with _types_lock:
        if LazyFunction not in extending.typeof_impl.registry:
            extending.typeof_impl.register(LazyFunction)(lambda each, context: typeof(each.made))
        while _new_parts:
            part = _new_parts.pop()
            extending.overload(part, jit_options=part.options, strict=False)(part.typed)


def compile_all(*functions: Any) -> None:
    """Compile functions with signatures, or load them."""
    for function in functions:
        _ = function.made


@contextmanager
def in_python(few: bool = True, beside: bool = False) -> Iterator[None]:
    """Run declared functions as plain Python if numba is not imported.

    few: False to change nothing.
    beside: use functions that are already compiled, and compile no others even if numba is
        imported.
    """
    import numpy as np

    global _in_python, _beside
    before, _in_python, _beside = (_in_python, _beside), few, beside
    try:
        with np.errstate(over="ignore"):  # numba wraps without a warning
            yield
    finally:
        _in_python, _beside = before


def compile_on() -> None:
    """End `in_python`, because there are many states."""
    global _in_python
    _in_python = False


# --- compilation time ----------------------------------------------------------------------------

_begun: list[float] = []
"""Start times of the compilations in progress, the outermost first."""
_total = 0.0


@contextmanager
def _compiling() -> Iterator[None]:
    global _total
    _begun.append(time.monotonic())
    try:
        yield
    finally:
        began = _begun.pop()
        if not _begun:
            _total += time.monotonic() - began


def compiling_seconds() -> float:
    """Return the seconds that this process has spent compiling or loading functions."""
    began = _begun[:1]
    return _total + (time.monotonic() - began[0] if began else 0.0)


# --- the cache of compiled code ------------------------------------------------------------------

KEEP_DAYS = 30
_DAY = 86400.0
_STARTED = time.time()


def cache_roots() -> Iterator[Path]:
    """Yield the folders that can hold one folder for each version, the preferred one first."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / "luckbase"
    yield Path("~/.cache/luckbase/compiled").expanduser()
    yield Path(tempfile.gettempdir()) / f"luckbase-{os.getuid()}"


@cache
def cache_folder() -> Path | None:
    """Return the folder of this version, marked as used today; the first use removes old folders.

    None if no folder is safe, or if a source file has changed since this process started: then the
    code may mix two versions and must not be cached.
    """
    sources, now = sorted(Path(__file__).parent.rglob("*.py")), time.time()
    if any(_STARTED < file.stat().st_mtime <= now for file in sources):
        return None
    name = version_hash(sources)
    for root in cache_roots():
        if not _is_safe(root):
            continue
        folder = root / name
        is_new = not folder.exists()
        if _is_safe(folder):
            if is_new:
                prune(root)
            elif folder.stat().st_mtime < now - _DAY:
                os.utime(folder)
            return folder
    return None


def version_hash(sources: list[Path]) -> str:
    """Return a hash of the sources in `solver/` and of the versions of numba, numpy and Python."""
    import numba
    import numpy as np

    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    for file in sources:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(Path(__file__).parent).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:20]


def _is_safe(folder: Path) -> bool:
    """Make a folder if it is missing. Return whether only this user owns it and can write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            return False
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def prune(root: Path) -> None:
    """Remove folders that were not used for `KEEP_DAYS` days."""
    before = time.time() - KEEP_DAYS * _DAY
    for folder in root.glob("*"):
        with suppress(OSError):  # another process was faster
            if folder.stat().st_mtime < before:
                shutil.rmtree(folder)
