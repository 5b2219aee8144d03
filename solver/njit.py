"""numba here: `njit` compiles a function when it is first called, and `Locator` says where compiled
code is kept.

numba itself compiles a function with a signature where it is defined, so a module that is imported
for one of its functions compiles them all: half of what a newcomer's first solve waited for. With
this `njit` a declared signature stays the only one: what does not fit it is refused, and nothing
compiles again. What such a function calls becomes part of its code, but for what is compiled
**apart**: that is code of its own, found by a name that is known beforehand, so callers need not
wait for it, another process may compile it (`compiled.beside`), and LLVM works on it once. Before
its first function numba asks SciPy for its linear algebra, which takes longer to import than numba
itself, for the day when somebody multiplies matrices. Here it asks on that day.

numba keeps compiled functions on disk by the file's path, and sees no change of a helper in another
file. So it asks `Locator` first (`solver.__init__`), in this process alone. The folder's name is a
hash of every source in `solver/`, of the versions of numba, llvmlite, numpy and Python, and of the
processor; in it each module has a folder. Another version compiles once more (`python -m
tests.bench compile`), and folders that nobody has used for `KEEP_DAYS` are removed. The name for a
game outside this package has a hash of its file too, and of the files that it imports from beside
it or from its package.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import io
import operator
import os
import shutil
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar, cast

import llvmlite
import numba as nb
import numpy as np
from llvmlite import binding
from numba import types
from numba.core import cgutils, compiler, config, errors, event, registry, sigutils
from numba.core.caching import CacheImpl, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.targetconfig import ConfigStack
from numba.core.typeconv import Conversion
from numba.core.types import abstract
from numba.core.typing import templates
from numba.extending import lower_builtin, lower_cast, models, register_model

from luckbase.solver.compiled import ahead, load_all, wait_for

P = ParamSpec("P")
R = TypeVar("R")
LOCATORS = "NUMBA_CACHE_LOCATOR_CLASSES"


def njit(
    signature: Any, returns: Any = None, **options: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As `numba.njit` with a signature and with `options` (kept on disk and without Python's lock
    where they do not say otherwise), compiled when it is first called, by Python or by another
    function that is compiled. returns: the type of what one returns that is compiled apart, for
    whatever arguments; only functions call it that are compiled too."""
    options = {"cache": True, "nogil": True} | options

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        made: Any = nb.njit(**options)(function)
        kept = getattr(getattr(made, "_cache", None), "_cache_file", None)
        if kept is not None:
            kept.__class__ = _CacheFile
        if isinstance(made, registry.CPUDispatcher):  # else numba is switched off
            made.__class__ = _Declared
            made.declared, made.returns = signature, returns
        return made

    return decorate


def tuple_type(of: type, *parts: Any) -> Any:
    """numba's type of a NamedTuple whose members are of these types."""
    if all(part == parts[0] for part in parts):  # numba tells the two apart
        return types.NamedUniTuple(parts[0], len(parts), of)
    return types.NamedTuple(parts, of)


class Indexed(types.Array):  # type: ignore[misc]
    """Of an array whose indices are never below 0.

    numba asks at every index whether it counts from the end, unless LLVM sees that it does not; and
    loops in which it is asked are not vectorized. Without it they take up to a third of the time.
    """

    def __init__(self, of: types.Array) -> None:
        self.of = of
        super().__init__(of.dtype, of.ndim, of.layout, not of.mutable, f"indexed({of})", of.aligned)

    @property
    def key(self) -> Any:
        return "indexed", self.of

    def can_convert_to(self, context: Any, other: Any) -> Any:
        """To the array that it is."""
        return Conversion.safe if other == self.of else None


register_model(Indexed)(models.ArrayModel)
lower_cast(Indexed, types.Array)(lambda context, builder, of, to, value: value)


def _unsigned(context: Any, builder: Any, kind: Any, index: Any) -> tuple[Any, Any]:
    """An index, or several, that numba takes as they are."""
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind, cgutils.unpack_tuple(builder, index, len(kind)), strict=True)
        found = [_unsigned(context, builder, *part) for part in parts]
        kinds = types.Tuple([kind for kind, _ in found])
        return kinds, context.make_tuple(builder, kinds, [number for _, number in found])
    if not getattr(kind, "signed", False):
        return kind, index
    number = context.cast(builder, index, kind, types.intp)
    return types.uintp, context.cast(builder, number, types.intp, types.uintp)


def _index(how: Any, context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Read an `Indexed` array, or write to it."""
    (array, kind, *rest), (value, index, *values) = sig.args, args
    kind, index = _unsigned(context, builder, kind, index)
    plain = sig.replace(args=(array.of, kind, *rest))
    return context.get_function(how, plain)(builder, (value, index, *values))


for _kind in (types.Integer, types.BaseTuple):
    lower_builtin(operator.getitem, Indexed, _kind)(partial(_index, operator.getitem))
    lower_builtin(operator.setitem, Indexed, _kind, types.Any)(partial(_index, operator.setitem))


@cache
def _without_scipy() -> None:
    """Have numba not import SciPy yet, which it looks for when it loads its functions of arrays: is
    there what multiplies matrices? It looks again when it compiles a function that does."""
    from numba.np import linalg

    name, ensure_blas = "numba.np.arraymath", getattr(linalg, "ensure_blas", None)
    if ensure_blas is None or name in sys.modules:
        return
    linalg.ensure_blas = lambda: None
    try:
        arraymath = importlib.import_module(name)
        arraymath.ensure_blas = ensure_blas  # type: ignore[attr-defined]
    finally:
        linalg.ensure_blas = ensure_blas


def _type_by_type() -> None:
    """Have two threads that make the same type at once get one: numba looks whether it is there and
    enters it in two steps, and a call whose arguments have the other "matches no definition"."""
    metaclass: Any = abstract._TypeMetaclass
    enter, one_by_one = metaclass._intern, threading.RLock()

    def enter_alone(cls: Any, made: Any) -> Any:
        with one_by_one:
            return enter(cls, made)

    metaclass._intern = enter_alone


_type_by_type()


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """Named by the signature, and there before the index names it. numba counts the files of a
    function, so that two processes which keep two signatures at once write both to one."""

    def save(self, key: Any, data: Any) -> None:
        name = self._data_name_pattern.replace("{number:d}", _digest(repr(key))[:12])
        self._save_data(name, data)
        self._save_index(self._load_index() | {key: name})


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """Linked into the code of functions that call it. LLVM works on it alone too: else the kernel
    of Press Your Luck is slower by an eighth."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _Whole(JITCodeLibrary):  # type: ignore[misc]
    """What Python calls."""

    def _finalize_final_module(self) -> None:
        load_all([load.args[0] for load in self._reload_init])  # what it calls by name
        super()._finalize_final_module()


class _Apart(_Whole):
    """What others call by name. Nothing of it is linked into their code."""

    def _get_module_for_linking(self) -> Any:
        return binding.parse_assembly("")


class _AsWhole(compiler.Compiler):  # type: ignore[misc]
    """Compiles what Python calls."""

    library = _Whole

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class _AsApart(_AsWhole):
    """Compiles what others call by a name that they know beforehand (`_Declared.named`)."""

    library = _Apart

    def define_pipelines(self) -> Any:
        _uncalled_by_python(self.state.flags)
        self.state.func_id.unique_id = 0
        return super().define_pipelines()


def _uncalled_by_python(flags: Any) -> Any:
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    return flags


class _AsPart(compiler.Compiler):  # type: ignore[misc]
    """Compiles what Python does not call."""

    def define_pipelines(self) -> Any:
        state, flags = self.state, self.state.flags  # numba has copied them for what this calls
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class _Declared(registry.CPUDispatcher):  # type: ignore[misc]
    """A function of one signature, whoever asks for whichever."""

    declared: Any = None  # where it was unpickled: as numba has it
    returns: Any = None

    @cached_property
    def parts(self) -> dict[Any, Any]:
        """What is compiled of it into functions that call it, by the types of the arguments."""
        return {}

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Called where another function that is compiled calls it."""
        signature, args = self._compiler.fold_argument_types(args, kws)
        types, returned = sigutils.normalize_signature(self.declared or args)
        with global_compiler_lock, self._compiling_counter:
            if types not in self.parts:
                _without_scipy()
                if self.returns is not None:
                    self.parts[types] = self._named(types)
                else:
                    self.parts[types] = self.overloads.get(types) or self._part(types, returned)
        name, found = self.py_func.__name__, [self.parts[types].signature]
        return templates.make_concrete_template(name, name, found), signature, args, {}

    def get_overload(self, sig: Any) -> Any:
        """What the caller's code knows it by."""
        part = self.parts.get(tuple(sigutils.normalize_signature(sig)[0]))
        return part.entry_point if part else super().get_overload(sig)

    def _part(self, args: Any, returned: Any) -> Any:
        """Compile it for functions that call it; nothing of it is kept."""
        part = self._compiled(_AsPart, args, returned)._replace(entry_point=object())
        self.targetctx.insert_user_function(part.entry_point, part.fndesc, [part.library])
        return part

    def _compiled(self, how: Any, args: Any, returned: Any) -> Any:
        options = self.targetdescr, self.targetoptions, self.locals
        made = type(self._compiler)(self.py_func, *options, how)
        told = {"dispatcher": self, "args": args, "return_type": returned}
        with event.trigger_event("numba:compile", data=told):
            return made.compile(args, returned)

    def _named(self, args: Any) -> Any:
        """What callers need to know of a function that is compiled apart."""
        flags, module, name = compiler.Flags(), self.py_func.__module__, self.py_func.__qualname__
        with ConfigStack().enter(compiler.DEFAULT_FLAGS.copy()):  # else it has a caller's options
            self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        known = PythonFunctionDescriptor(
            True, module, name, name, "", None, self.returns, None, (), (), self.targetctx.mangler,
            args, abi_tags=[_uncalled_by_python(flags).get_mangle_string()], uid=0,
        )  # fmt: skip
        ahead(getattr(sys.modules[module], name), types=args)
        there = _Apart(self.targetctx.codegen(), name)
        there._finalized = True
        there._reload_init.add(partial(_load, (module, name, args)))
        entry, typed = object(), templates.signature(self.returns, *args)
        self.targetctx.insert_user_function(entry, known, [there])
        return SimpleNamespace(entry_point=entry, signature=typed)

    def load(self, args: Any = None) -> None:
        """Compile it, unless that is kept; args: of one that is compiled apart, the types of the
        arguments."""
        key = ("apart", *(args or ()))
        if self.returns is None:
            self.compile(self.declared)
        elif args is not None and key not in self.parts:
            wait_for(self.py_func.__module__, self.py_func.__qualname__, args)
            found = self._cache.load_overload(key, self.targetctx)
            if found is None:
                with ConfigStack().enter(compiler.DEFAULT_FLAGS.copy()):
                    found = self._compiled(_AsApart, args, self.returns)
                self._cache.save_overload(key, found)
            self.parts[key] = found

    def is_kept(self, args: Any = None) -> bool:
        """Whether it is on disk (of one that is compiled apart, without `args`: for any), or never
        will be."""
        file = getattr(self._cache, "_cache_file", None)
        index = {} if file is None else file._load_index()
        if file is None or (self.returns is not None and args is None):
            return file is None or bool(index)
        key = self.declared if self.returns is None else ("apart", *args)
        return self._cache._index_key(key, self.targetctx.codegen()) in index

    def add_overload(self, cres: Any) -> None:
        """numba sets the environments, with which exceptions are made, of what is kept on disk."""
        for environment in cres._find_referenced_environments():
            cres.codegen.set_env(environment.env_name, environment)
        super().add_overload(cres)

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock:  # two threads may come for it at once
            _without_scipy()
            if self.declared is None:
                self._compiler.pipeline_class = _AsWhole
                return super().compile(sig)
            if self._can_compile:
                self._compiler.pipeline_class = _AsWhole
                wait_for(self.py_func.__module__, self.py_func.__qualname__)
                super().compile(self.declared)
                self.disable_compile()
            types, _ = sigutils.normalize_signature(self.declared)
            return self.overloads[tuple(types)].entry_point

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """Called where no overload fits; what it returns is called with the arguments."""
        if self.declared is None:
            return super()._compile_for_args(*args, **kws)
        self.compile(self.declared)
        return self  # now it looks whether they fit

    @cached_property
    def _numba_type_(self) -> Any:
        """Its type, which numba makes anew for every call that it is passed to."""
        return types.Dispatcher(self)

    def get_compile_result(self, sig: Any) -> Any:
        """Called whenever it is passed to another as a function of type `sig`."""
        results: dict[int, tuple[Any, Any]] = self.__dict__.setdefault("results", {})
        if id(sig) not in results:  # to compare types takes longer than many a call
            if self.declared is not None:
                self.compile(self.declared)
                if tuple(sig.args) not in self.overloads:
                    name = self.py_func.__name__
                    raise errors.TypingError(f"{name} is {self.declared}, not {sig}")
            found = super().get_compile_result(sig)
            library = found.library  # which numba asks for two addresses, each time anew
            library.get_pointer_to_function = cache(library.get_pointer_to_function)
            results[id(sig)] = sig, found
        return results[id(sig)][1]


def _load(name: tuple[str, str, Any]) -> None:
    """What is done before code is loaded that calls it."""
    load_all([name])


# --- where compiled code is kept -----------------------------------------------------------------

PACKAGE = Path(__file__).parents[1]
"""The folder of the package luckbase."""
KEEP_DAYS = 30
_DAY = 86400.0
USED: set[Path] = set()
"""The modules' folders that this process uses."""


class Locator:
    """What numba asks where a function's compiled code is (`numba.core.caching._CacheLocator`)."""

    def __init__(self, file: str, folder: Path, line: int) -> None:
        self._py_file, self._folder, self._line = file, folder, line  # numba reads the first

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Locator | None:
        """None where `key_of` gives none, or no folder can be written."""
        key = key_of(function.__module__, Path(file))
        root = key and next(filter(_usable, (root / key for root in cache_roots())), None)
        if not root:
            return None
        folder = root / function.__module__
        USED.add(folder)
        return cls(file, folder, function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        """Make the folder, should it have gone."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """The folder's name says which source it is."""
        return ""

    def get_disambiguator(self) -> str:
        """Which function of the file."""
        return str(self._line)


def _ask_locator_here_alone() -> None:
    """Take `Locator` out of the environment, now that numba has read it: processes have that which
    know no luckbase. numba reads it again when it changes, so it is told; and where a program sets
    another variable of numba's, it reads them all, and `Locator` stands among its own then."""
    CacheImpl._locator_classes = [Locator, *CacheImpl._locator_classes]
    if os.environ.get(LOCATORS, "").startswith(f"{__name__}.{Locator.__name__},"):
        for known in (os.environ, cast("Any", config)._env_reloader.old_environ):
            known.pop(LOCATORS, None)


_ask_locator_here_alone()


def cache_roots() -> Iterator[Path]:
    """Where folders of compiled code may be, the first that can be written to be taken."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / "luckbase"
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
                    name = "/".join((folder.parent.name, folder.name, path.name))
                    archive.writestr(name, path.read_bytes())
    return content.getvalue()


def unpack(content: bytes) -> int:
    """Put what `pack` gave where this process looks for it, but for modules that have something
    already; returns how many files. What is of another processor lies there unused."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        keys = {name.partition("/")[0] for name in names}
        root = next((r for r in cache_roots() if all(_usable(r / key) for key in keys)), None)
        if root is None:
            return 0
        folders = {os.path.dirname(name) for name in names}
        there = {folder for folder in folders if any((root / folder).glob("*.nbi"))}
        new = [name for name in names if os.path.dirname(name) not in there]
        for name in sorted(new, key=lambda name: name.endswith(".nbi")):  # an index goes last
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
            part.write_bytes(archive.read(name))
            part.replace(path)
    return len(new)


def prune(root: Path, days: float = KEEP_DAYS) -> None:
    """Remove what nobody has used for so many days. Folders are moved away first, so that no other
    process sees half of one; one that it takes from a process's hands is made again there."""
    before = time.time() - days * _DAY
    for path in root.glob("*"):
        try:
            if path.stat().st_mtime >= before:
                continue
            if path.is_dir():
                path = path.rename(root / f"old-{uuid.uuid4().hex}")
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        except OSError:
            continue  # another process was faster


def key_of(module: str, path: Path) -> str | None:
    """The name of the folder for the compiled functions of a module in a file; None where it is of
    an installed package that has nothing to do with this one, or in no file."""
    if module.partition(".")[0] == PACKAGE.name:
        return _own_key(module)
    try:
        files = _sources(module, path)
        if _is_installed(path) and not any(b"luckbase" in f.read_bytes() for f in files.values()):
            return None
    except (OSError, SyntaxError, ValueError, IndexError):
        return None  # such as a notebook's cell
    return _key(own_files(PACKAGE) | files)


def _is_installed(path: Path) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts)


@cache
def _own_key(module: str) -> str:
    return _key(own_files(PACKAGE))  # anew for each module: it may be imported late


def own_files(package: Path) -> dict[str, Path]:
    """The sources that compiled functions of the package in a folder may come from, by name."""
    found = package.glob("solver/**/*.py")
    return {f"luckbase/{file.relative_to(package)}": file for file in found}


_first_read: dict[Path, tuple[int, int]] = {}


def _key(files: dict[str, Path]) -> str:
    """Where a file was changed after this process has imported it, or something that imports it,
    what is compiled may be of two versions: then a name that nobody uses again."""
    stamps = {file: _stamp(file) for file in files.values()}
    changed = any(_first_read.setdefault(file, stamp) != stamp for file, stamp in stamps.items())
    return digest_of(files) + (f"-{uuid.uuid4().hex}" if changed else "")


def digest_of(files: dict[str, Path]) -> str:
    """A hash of the files, by name, and of what compiles them."""
    texts = sorted((name, _text_digest(file, _stamp(file))) for name, file in files.items())
    return _digest(repr([_made_with(), texts]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _stamp(file: Path) -> tuple[int, int]:
    """When it was changed last, in nanoseconds, and its bytes."""
    stat = file.stat()
    return stat.st_mtime_ns, stat.st_size


@cache
def _text_digest(file: Path, stamp: tuple[int, int]) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@cache
def _made_with() -> list[str]:
    """What compiles, and for which processor."""
    name, features = getattr(config, "CPU_NAME", None), getattr(config, "CPU_FEATURES", None)
    return [
        *(f"{module.__name__} {module.__version__}" for module in (nb, llvmlite, np)),
        sys.version.partition(" ")[0],
        binding.get_process_triple(),
        binding.get_host_cpu_name() if name is None else name,
        binding.get_host_cpu_features().flatten() if features is None else features,
    ]


def _sources(module: str, path: Path) -> dict[str, Path]:
    """A file outside this package, and all that it imports from beside it or from its package."""
    root = path.parents[module.count(".") + (path.name == "__init__.py")]
    found: dict[str, Path] = {}
    new = [(module, path)]
    while new:
        importer, file = new.pop()
        found[importer] = file
        for name in _imports(importer, file) - found.keys():
            top = name.partition(".")[0]
            if top != PACKAGE.name and (not _is_installed(path) or top == module.partition(".")[0]):
                place = root.joinpath(*name.split("."))
                files = place.with_suffix(".py"), place / "__init__.py"
                new += [(name, there) for there in files if there.is_file()]
    return found


def _imports(module: str, file: Path) -> set[str]:
    """The names, modules or not, that a module imports."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(name, package) if node.level else name
            names.update([base, *(f"{base}.{alias.name}" for alias in node.names)])
    return names
