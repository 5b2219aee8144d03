"""Functions that numba compiles when they are first called, and its types, without importing numba.

numba takes .2 s to import and .15 s to call the first function that it has kept on disk: longer
than all else that the answer to one state takes; and seconds to compile what that calls. So a
declared function imports it when it is called, and not at all while `in_python` lasts, where it
runs as the Python that it is. How it is compiled says `solver.njit`.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial, update_wrapper
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_making = threading.RLock()
_in_python = _beside = False


class Later:
    """A type of numba's, or what is made of some, by name: `made` when a function needs it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def made(self) -> Any:
        """What it is to numba."""
        return self._make()

    def __getattr__(self, name: str) -> Later:
        if name.startswith("_"):
            raise AttributeError(name)
        return Later(lambda: getattr(self.made, name))

    def __getitem__(self, index: Any) -> Later:
        return Later(lambda: self.made[index])

    def __call__(self, *parts: Any, **options: Any) -> Later:
        return Later(lambda: self.made(*map(_made, parts), **options))


def _made(part: Any) -> Any:
    if isinstance(part, Later):
        return part.made
    return tuple(map(_made, part)) if type(part) is tuple else part


types: Any = Later(lambda: import_module("numba.core.types"))
"""numba's types: ``types.int64[::1]``."""


def tuple_type(of: type, *parts: Any) -> Any:
    """numba's type of a NamedTuple whose members are of these types."""
    return Later(lambda: import_module("luckbase.solver.njit").tuple_type(of, *map(_made, parts)))


class Function:
    """A function of Python's that numba compiles when it is first called. plain: that function;
    make: makes numba's of it."""

    def __init__(self, plain: Callable[..., Any], make: Callable[[], Any]) -> None:
        self.plain, self._make = plain, make
        update_wrapper(self, plain)

    @cached_property
    def made(self) -> Any:
        """What it is to numba: a dispatcher, all of whose attributes it has."""
        with _making:
            if "made" not in self.__dict__:  # from Python 3.12 on a property has no lock
                self.__dict__["made"] = self._make()
            return self.__dict__["made"]

    @property
    def _numba_type_(self) -> Any:
        """What numba asks where another function calls it."""
        if hasattr(self.made, "_numba_type_"):
            return self.made._numba_type_
        context: Any = import_module("numba.core.registry").cpu_target.typing_context
        context.refresh()  # it has been made since numba looked last
        return context.resolve_value_type(self.made)

    def __call__(self, *parts: Any, **named: Any) -> Any:
        if _in_python and ("numba" not in sys.modules or (_beside and not self._is_compiled)):
            return self.plain(*parts, **named)
        return self.made(
            *[part.made if type(part) is Function else part for part in parts], **named
        )

    @property
    def _is_compiled(self) -> bool:
        """Whether it is there, for Python to call."""
        made: Any = self.__dict__.get("made")
        return getattr(made, "declared", None) is not None and bool(made.overloads)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """By its name; one that has none goes as numba's."""
        module = sys.modules.get(self.__module__)
        if getattr(module, self.__name__, None) is self:
            return _named, (self.__module__, self.__name__)
        return _of, (self.made,)


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _of(made: Any) -> Function:
    return Function(made.py_func, lambda: made)


def njit(signature: Any = None, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As `solver.njit.njit`, which is asked when the function is first called; without a signature
    it is compiled for each that it is called with."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        def make() -> Any:
            made = {name: _made(option) for name, option in options.items()}
            return import_module("luckbase.solver.njit").njit(_made(signature), **made)(function)

        return cast("Callable[P, R]", Function(function, make))

    return decorate


def jitable(function: Callable[P, R]) -> Callable[P, R]:
    """As numba's `register_jitable`: Python's own, and part of functions that are compiled."""
    made = partial(_extended, "register_jitable", function)
    return cast("Callable[P, R]", Function(function, made))


def intrinsic(function: Callable[P, R], typed: Callable[..., Any]) -> Callable[P, R]:
    """As numba's, made of `typed`; in Python what the function does."""
    return cast("Callable[P, R]", Function(function, partial(_extended, "intrinsic", typed)))


def _extended(how: str, function: Callable[..., Any]) -> Any:
    return getattr(import_module("numba.extending"), how)(function)


def _uncounted(_: Any, array: Any) -> Any:
    """Of `uncounted`, the type of what it returns, and the code."""
    null = import_module("numba.core.cgutils").get_null_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = context.make_array(array)(context, builder, value=args[0])
        found.meminfo, found.parent = null(found.meminfo.type), null(found.parent.type)
        return found._getvalue()

    return (array(array), generate) if isinstance(array, types.Array.made) else None


@partial(intrinsic, typed=_uncounted)
def uncounted(array: Any) -> Any:
    """The array without an owner, which must outlive it: an argument of the function that borrows.

    numba counts references, atomically, wherever an array is taken out of a tuple or handed to
    another function, inlined or not. Of an array without an owner nothing is counted, and LLVM sees
    it, so what is inlined costs nothing more.
    """
    return array


def _borrowed(context: Any, array: Any) -> Any:
    """Of `borrowed`, the type of what it returns, and the code."""
    found, of = _uncounted(context, array), import_module("luckbase.solver.njit").Indexed
    return (of(array)(array), found[1]) if found else None


@partial(intrinsic, typed=_borrowed)
def borrowed(array: Any) -> Any:
    """`uncounted`, and indexed from its first element on: no index is below 0 (`njit.Indexed`)."""
    return array


def _fetched(_: Any, array: Any, row: Any) -> Any:
    """Of `fetch`, the type of what it returns, and the code."""
    cgutils: Any = import_module("numba.core.cgutils")
    ir: Any = import_module("llvmlite.ir")
    numba_types: Any = import_module("numba.core.types")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = context.make_array(array)(context, builder, value=args[0])
        step = cgutils.unpack_tuple(builder, found.strides, array.ndim)[0]
        number = ir.IntType(32)
        place = builder.bitcast(found.data, cgutils.voidptr_t)
        place = builder.gep(place, [builder.mul(step, args[1])])
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        name = "llvm.prefetch.p0i8"
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(function, [place, number(0), number(3), number(1)])  # to read, every cache
        return context.get_dummy_value()

    return (numba_types.void(array, numba_types.intp), generate)


@partial(intrinsic, typed=_fetched)
def fetch(array: Any, row: Any) -> None:
    """Have the row of an array brought into the cache, for it will be read soon: nobody waits for
    it, so many cache misses are under way at once. Of a row that is not there nothing comes."""


def _counted(_: Any, bits: Any) -> Any:
    """Of `bits_in`, the type of what it returns, and the code."""
    return types.int64.made(bits), lambda _context, builder, _signature, args: builder.ctpop(
        args[0]
    )


@partial(intrinsic, typed=_counted)
def bits_in(bits: Any) -> int:
    """How many of the 64 bits of a number are set."""
    return int(bits).bit_count()


@contextmanager
def in_python(few: bool = True, beside: bool = False) -> Iterator[None]:
    """While this lasts, and there are `few` states, nothing is compiled, unless numba is there
    anyway; nor then, if `beside`: what is compiled already is used, the rest is Python."""
    import numpy as np

    global _in_python, _beside
    before, _in_python, _beside = (_in_python, _beside), few, beside
    try:
        with np.errstate(over="ignore"):  # as numba counts
            yield
    finally:
        _in_python, _beside = before


def compile_on() -> None:
    """End `in_python`: here are many states."""
    global _beside
    _beside = False
    import_module("numba")


# --- in another process, too ---------------------------------------------------------------------

_Name = tuple[str, str, Any]
"""A function: its module, its name, the types of the arguments of one that is compiled apart."""


class _Beside:
    """Another process, on a core of its own, that compiles functions one after the other as they
    are named to it. It keeps them on disk, where this process looks: so whatever becomes of it,
    this one compiles the rest. It ends when its input does."""

    def __init__(self) -> None:
        self.wanted, self.now, self.over = list[_Name](), cast("_Name | None", None), False
        self.changed, pipe = threading.Condition(), subprocess.PIPE
        code = f"import sys; sys.path[:] = {sys.path}; from {__name__} import _serve; _serve()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
        self.thread = threading.Thread(target=self._hand_out, name="luckbase beside", daemon=True)
        self.thread.start()

    def _hand_out(self) -> None:
        requests, idle = cast("Any", self.process.stdin), cast("Any", self.process.stdout)
        with suppress(OSError):
            for _ in idle:  # a line whenever it has nothing to do
                with self.changed:
                    self.now = None
                    self.changed.notify_all()
                    self.changed.wait_for(lambda: self.wanted or self.over)
                    if self.over:
                        break
                    self.now = self.wanted.pop(0)
                requests.write(pickle.dumps(self.now))
                requests.flush()
        with self.changed:
            self.now = None
            self.changed.notify_all()

    def ask(self, wanted: list[_Name]) -> None:
        """Have it compile these, too."""
        with self.changed:
            self.wanted += wanted
            self.changed.notify_all()

    def wait(self, wanted: _Name) -> None:
        """Until it has compiled a function, if it is at it; else it leaves it to this process."""
        with self.changed:
            if wanted in self.wanted:
                self.wanted.remove(wanted)
            self.changed.wait_for(lambda: self.now != wanted)

    def end(self) -> None:
        """Whatever it is at."""
        with self.changed:
            self.over = True
            self.changed.notify_all()
        self.process.kill()
        self.process.wait()
        self.thread.join()


def _serve() -> None:
    """What that process does."""
    import_module("numba.core.registry").cpu_target.target_context.refresh()
    with suppress(EOFError):
        while True:
            print(flush=True)
            module, name, types = pickle.load(sys.stdin.buffer)
            with suppress(Exception):
                _named(module, name).made.load(types)


IMPORTED = {__name__.partition(".")[0]}
"""The packages whose functions it compiles: to import another might start who knows what."""
_other: _Beside | None = None
_may_start = False


@contextmanager
def beside(cores: int) -> Iterator[None]:
    """While this lasts, and there is a second core, another process may compile a part of what is
    not compiled yet (`ahead`)."""
    global _other, _may_start
    _may_start = cores > 1
    try:
        yield
    finally:
        other, _other, _may_start = _other, None, False
        if other is not None:
            other.end()


def ahead(*functions: Any, types: Any = None) -> None:
    """Say that functions will be needed; types: those of the arguments of one that is compiled
    apart, None where they are not known yet: then its module is imported ahead."""
    global _other, _may_start
    if not _may_start:
        return
    ours = [f for f in functions if f.__module__.partition(".")[0] in IMPORTED]
    missing = [f for f in ours if hasattr(f.made, "is_kept") and not f.made.is_kept(types)]
    if missing:
        try:
            _other = _other or _Beside()
        except OSError:  # no process more, or nobody knows where Python is
            _may_start = False
        else:
            _other.ask([(f.__module__, f.__name__, types) for f in missing])


def compile_all(*functions: Any) -> None:
    """Compile functions with signatures, or load them."""
    ahead(*functions)
    compiled = (f for f in functions if hasattr(f.made, "load"))  # else numba is switched off
    load_all([(f.__module__, f.__name__, None) for f in compiled])


def load_all(names: list[_Name]) -> None:
    """Compile them, or load them; what another process is at comes last."""
    while names:
        name = min(names, key=lambda name: _other is not None and name not in _other.wanted)
        names.remove(name)
        _named(*name[:2]).made.load(name[2])


def wait_for(module: str, name: str, types: Any = None) -> None:
    """Until another process has compiled a function, if it is at it."""
    if _other is not None:
        _other.wait((module, name, types))
