"""numba's `njit` with a declared signature, compiled (or loaded) when it is first called.

numba itself compiles a function with a signature where it is defined, so a module that is imported
for one of its functions compiles them all: half of what a newcomer's first solve waited for. A
declared signature stays the only one: what does not fit it is refused, and nothing compiles again.

Before its first function numba asks SciPy for its linear algebra, which takes longer to import than
numba itself, for the day when somebody multiplies matrices. Here it asks on that day.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar

import numba as nb
from numba import types
from numba.core import errors, registry, sigutils
from numba.core.compiler_lock import global_compiler_lock

P = ParamSpec("P")
R = TypeVar("R")
_Dispatcher: Any = registry.CPUDispatcher
_arguments: Any = sigutils.normalize_signature


def njit(signature: Any, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As `numba.njit` with a signature and with `options`, compiled when it is first called, by
    Python or by another function that is compiled."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        made: Any = nb.njit(**options)(function)
        if isinstance(made, _Dispatcher):  # else numba is switched off
            made.__class__ = _Declared
            made.declared = signature
        return made  # type: ignore[no-any-return]

    return decorate


def tuple_type(of: type, *parts: Any) -> Any:
    """numba's type of a NamedTuple whose members are of these types."""
    typed: Any = types
    if all(part == parts[0] for part in parts):  # numba tells the two apart
        return typed.NamedUniTuple(parts[0], len(parts), of)
    return typed.NamedTuple(parts, of)


@cache
def _without_scipy() -> None:
    """Have numba not import SciPy yet, which it looks for when it loads its functions of arrays: is
    there what multiplies matrices? It looks again when it compiles a function that does."""
    from numba.np import linalg

    name, asked = "numba.np.arraymath", getattr(linalg, "ensure_blas", None)
    if asked is None or name in sys.modules:
        return
    linalg.ensure_blas = lambda: None
    try:
        arraymath = importlib.import_module(name)
        arraymath.ensure_blas = asked  # type: ignore[attr-defined]
    finally:
        linalg.ensure_blas = asked


class _Declared(_Dispatcher):  # type: ignore[misc]
    """A function of one signature, whoever asks for whichever."""

    declared: Any = None  # where it was unpickled: as numba has it

    def compile(self, sig: Any) -> Any:
        if self.declared is None:
            return super().compile(sig)
        with global_compiler_lock:  # two threads may come for it at once
            if self._can_compile:
                _without_scipy()
                super().compile(self.declared)
                self.disable_compile()
            return self.overloads[tuple(_arguments(self.declared)[0])].entry_point

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """Called where no overload fits; what it returns is called with the arguments."""
        if self.declared is None:
            return super()._compile_for_args(*args, **kws)
        self.compile(self.declared)
        return self  # now it looks whether they fit

    def get_compile_result(self, sig: Any) -> Any:
        """Called where it is passed to another as a function of type `sig`."""
        if self.declared is not None:
            self.compile(self.declared)
            if tuple(sig.args) not in self.overloads:
                raise errors.TypingError(f"{self.py_func.__name__} is {self.declared}, not {sig}")
        return super().get_compile_result(sig)
