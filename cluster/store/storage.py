"""Storage of a table's objects: put, read ranges, list, delete.

It is a folder, memory, or an object store at a URI (`cluster.store.remote`); `storage_at` returns
the right one.

Names are relative, with ``/`` as separator. `put` is atomic and durable: bytes are written under a
unique temporary name, flushed, renamed, and the folder is flushed.

A `Place` is a `Path` whose text is a URI: ``s3://bucket/prefix``, ``gs://``, ``az://`` or read-only
``https://``. All code that joins names to the path of a table or of results accepts one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import stat
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path, PosixPath
from pkgutil import resolve_name
from typing import IO, Any, NamedTuple, TypeVar
from urllib.parse import unquote

from luckbase.solver.errors import CorruptTableError, OptionError, StoreError, need

READ_ONLY = ("https", "http")
"""Schemes of URIs that can neither be written nor listed."""
MAX_TAGGED = 64 << 20
"""Maximum bytes of an object that is replaced by compare-and-swap."""
PARALLEL = 16
"""Maximum number of concurrent requests to a store."""
LOCK_SECONDS = 30.0
"""Seconds to wait for a lock. Other processes hold it while they write a small file."""
LOCAL_LOCKS = {"nolock", "local_lock=all", "local_lock=flock", "local_lock=posix", "localflock"}
"""Mount options (NFS, Lustre) with which locks are visible only on this host."""
SCHEMES = ("s3", "gs", "az", "https", "http", "memory")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_BUCKET = re.compile(r"[\w.:@%~\[\]-]+", re.ASCII)
"""Name of a bucket or web server. obstore panics at other names."""
OBJECTS = "luckbase.cluster.store.remote:Objects"
"""The storage class for URIs, loaded on first use because it imports obstore."""
_attempts = count()
S = TypeVar("S")
R = TypeVar("R")


class Stored(NamedTuple):
    """An object's size, and when it was written, in seconds since 1970 by the storage's clock."""

    size: int
    put_at: float


class Storage(ABC):
    """The operations that a table needs from its storage."""

    anywhere = False
    """True if every machine can reach it by its name; each request then has a latency."""
    lists = True
    """True if it can list its objects."""

    def check_writable(self) -> None:  # noqa: B027  # most are
        """Raise StoreError if the storage is not writable."""

    @abstractmethod
    def put(self, name: str, content: bytes | Path) -> None:
        """Store an object. A Path must come from `temporary`; the file is moved."""

    @abstractmethod
    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return bytes [start, stop) of an object. Raises FileNotFoundError; CorruptTableError if
        there are fewer bytes or it is not a regular file."""

    def swap(self, name: str, content: bytes, tag: str | None) -> str | None:
        """Replace an object that has this tag; if `tag` is None, create it. Return its new tag;
        None if the object has another tag or does not exist.

        If an answer is lost, the content is read back to learn the result. So content that must not
        be confused with another writer's needs a nonce.
        """
        with self._alone(name):
            now = None
            with suppress(FileNotFoundError):
                now = self.read_tagged(name)[1]
            if now != tag:
                return None
            self.put(name, content)
        return tag_of(content)

    def read_tagged(self, name: str) -> tuple[bytes, str]:
        """Return all bytes of a small object and its tag, which is unique to this content. Raises
        FileNotFoundError; CorruptTableError for more than `MAX_TAGGED` bytes."""
        content = self.read(name)
        return content, tag_of(content)

    def delete_tagged(self, name: str, tag: str) -> bool:
        """Delete an object if it has this tag; return True if it had."""
        with self._alone(name):
            try:
                same = self.read_tagged(name)[1] == tag
            except FileNotFoundError:
                same = False
            if same:
                self.delete(name)
        return same

    def _alone(self, name: str) -> AbstractContextManager[object]:
        """Lock an object, in a storage without tags of its own."""
        raise NotImplementedError

    @abstractmethod
    def details(self, prefix: str = "") -> dict[str, Stored]:
        """Return the objects whose names begin with a prefix, sorted by name."""

    def list(self, prefix: str = "") -> dict[str, int]:
        """Return the sizes of the objects whose names begin with a prefix, sorted by name."""
        return {name: stored.size for name, stored in self.details(prefix).items()}

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete an object if it exists."""

    @abstractmethod
    def temporary(self, name: str) -> Path:
        """Return a new path on this machine for writing the bytes of `name`."""

    def written(self, name: str, content: bytes) -> Path:
        """Write bytes for `name` to a temporary file and flush it."""
        path = self.temporary(name)
        try:
            with path.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return path


class Folder(Storage):
    """A folder on this machine, possibly shared with others."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._flushed: set[Path] = set()

    def check_writable(self) -> None:
        """Raise StoreError if the folder's name is not UTF-8, because pyarrow cannot write there,
        or if other hosts would not see its locks."""
        try:
            os.fspath(self.path).encode()
        except UnicodeEncodeError:
            name = os.fsencode(self.path)
            raise StoreError(
                f"{name!r}: not UTF-8; expected a folder whose name is UTF-8"
            ) from None
        mount, options = _mount_of(os.path.realpath(self.path))
        if local := options & LOCAL_LOCKS:
            raise StoreError(
                f"{self.path}: {mount} is mounted with {min(local)}, so other hosts do not see "
                "locks there; expected a mount without it, or an object store"
            )

    def path_to(self, name: str) -> Path:
        """Return the path of a file to write, and create its folder. Raises StoreError if the
        folder is a link, because files behind it do not belong to the table."""
        path = self.path / name
        for folder in path.parents[: len(Path(name).parts) - 1]:
            if folder.is_symlink():
                raise StoreError(f"{folder}: is a link; expected a folder of the table's own")
        make_folder(path.parent)
        return path

    def put(self, name: str, content: bytes | Path) -> None:
        final = self.path_to(name)
        written = self.written(name, content) if isinstance(content, bytes) else content
        try:
            os.replace(written, final)
        except OSError:
            written.unlink(missing_ok=True)
            raise
        self._flush_folder(final.parent)

    def _flush_folder(self, folder: Path) -> None:
        flush_folder(folder)
        # Also flush each folder's own name once, up to the table's folder, because a folder may be
        # newer than its siblings.
        while folder != self.path and folder not in self._flushed:
            self._flushed.add(folder)
            folder = folder.parent
            flush_folder(folder)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        path, pieces, position = self.path / name, [], start
        with _opened(path) as file:
            if stop is None:
                return file.read()[start:]
            while position < stop:
                pieces.append(os.pread(file.fileno(), stop - position, position))
                if not pieces[-1]:
                    raise CorruptTableError(
                        f"{path}: ends at byte {position} and should have {stop}"
                    )
                position += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_tagged(self, name: str) -> tuple[bytes, str]:
        path = self.path / name
        with _opened(path) as file:
            content = file.read(MAX_TAGGED + 1)
        check_small(path, len(content))
        return content, tag_of(content)

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:  # excludes all processes on all hosts
        while True:
            lock = self.path_to(f"{name}.lock")
            with _lock_file(lock) as file:
                _lock(file, lock)
                if _is_at(file, lock):
                    yield
                    return
            # otherwise luckbase clean has deleted the file, and other processes would lock a new
            # one

    def details(self, prefix: str = "") -> dict[str, Stored]:
        details: dict[str, Stored] = {}
        for folder, inner, names in os.walk(self.path, onerror=_unless_gone):
            relative = f"{folder}/".removeprefix(f"{self.path}/")
            links = [each for each in inner if os.path.islink(f"{folder}/{each}")]
            below = [(each, f"{relative}{each}/") for each in inner]
            inner[:] = [each for each, path in below
                        if path.startswith(prefix) or prefix.startswith(path)]  # fmt: skip
            for name in (*names, *links):  # links are not followed
                if f"{relative}{name}".startswith(prefix):
                    path = f"{folder}/{name}"
                    with suppress(OSError):  # a running solve has just moved it
                        stat = os.stat(path) if os.path.exists(path) else os.lstat(path)
                        details[f"{relative}{name}"] = Stored(stat.st_size, stat.st_mtime)
        return dict(sorted(details.items()))

    def delete(self, name: str) -> None:
        path = self.path / name
        folders = path.parents[: len(Path(name).parts) - 1]
        if not any(folder.is_symlink() for folder in folders):  # a link's target is not ours
            path.unlink(missing_ok=True)

    def temporary(self, name: str) -> Path:
        return self.path_to(f"{name}.{attempt()}.part")


class Memory(Storage):
    """Objects in this process only: files written by a worker that does not share the table's
    folder, and files sent to it. Temporary files have no name."""

    def __init__(self, objects: Mapping[str, bytes] = {}) -> None:
        self.objects = dict(objects)
        self._put_at: dict[str, float] = {}
        self._changing = threading.Lock()
        self._files: list[IO[bytes]] = []

    def put(self, name: str, content: bytes | Path) -> None:
        self.objects[name] = content if isinstance(content, bytes) else content.read_bytes()
        self._put_at[name] = time.time()

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        if name not in self.objects:
            raise FileNotFoundError(name)
        content = bytes(self.objects[name][start:stop])
        if stop is not None and len(content) < stop - start:
            ends = f"ends at byte {start + len(content)} and should have {stop}"
            raise CorruptTableError(f"{name}: {ends}")
        return content

    def _alone(self, name: str) -> AbstractContextManager[object]:
        return self._changing

    def details(self, prefix: str = "") -> dict[str, Stored]:
        details = {
            name: Stored(len(content), self._put_at.get(name, 0.0))
            for name, content in self.objects.items()
            if name.startswith(prefix)
        }
        return dict(sorted(details.items()))

    def delete(self, name: str) -> None:
        self.objects.pop(name, None)

    def temporary(self, name: str) -> Path:
        if hasattr(os, "memfd_create"):
            file: IO[bytes] = os.fdopen(os.memfd_create("luckbase"), "w+b")
        else:  # not on Linux
            file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the rest
        self._files.append(file)
        return Path(f"/dev/fd/{file.fileno()}")

    def close(self) -> None:
        while self._files:
            self._files.pop().close()


def _opened(path: Path) -> IO[bytes]:
    """Open a file for reading. Raises CorruptTableError for a pipe or a device."""
    from luckbase.solver.board.file import SPECIAL, open_regular  # and pydantic

    try:
        return open(path, "rb", buffering=0, opener=open_regular)
    except OSError as error:
        if error.strerror == SPECIAL:
            raise CorruptTableError(f"{path}: {SPECIAL}") from None
        raise


def check_small(path: object, size: int) -> None:
    """Raise CorruptTableError if an object is larger than `MAX_TAGGED`."""
    if size > MAX_TAGGED:
        raise CorruptTableError(f"{path}: is larger than any that luckbase writes")


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _lock_file(path: Path) -> IO[str]:
    """Open the file of a lock. Raises StoreError for a link, a pipe or a device."""
    from luckbase.solver.board.file import open_regular  # and pydantic

    def opener(name: str, flags: int) -> int:
        return open_regular(name, flags | os.O_NOFOLLOW)

    try:
        return open(path, "a", encoding="utf-8", opener=opener)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL, errno.EISDIR):
            raise StoreError(f"{path}: is not a file of luckbase; remove it") from None
        raise


def _lock(file: IO[Any], path: Path) -> None:
    """Lock a file for this process. Raises StoreError if it stays locked for too long, or if the
    file system does not support locks."""
    import fcntl

    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreError(
                    f"{path}: has been locked by another process for {LOCK_SECONDS:.0f} seconds; "
                    "try again"
                ) from None
            time.sleep(0.02)
        except OSError as error:
            raise StoreError(
                f"{path}: its file system has no locks ({error.strerror}); expected one that has "
                "flock, or an object store"
            ) from None


def _is_at(file: IO[Any], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _mount_of(path: str) -> tuple[str, set[str]]:
    """Return the mount that contains a path, and its options; empty if unknown."""
    mount: tuple[str, set[str]] = "", set()
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            before, _, after = line.partition(" - ")
            point = before.split()[4].encode().decode("unicode_escape")
            if path == point or path.startswith(f"{point.rstrip('/')}/"):
                options = f"{before.split()[5]},{after.split()[-1]}".split(",")
                mount = max(mount, (point, {*options}), key=lambda each: len(each[0]))
    return mount


# --- what a name means ---


def is_uri(name: str | os.PathLike[str]) -> bool:
    """True if a name is a URI rather than a path on this machine."""
    match = _URI.match(os.fspath(name))
    return match is not None and match[1] in SCHEMES


def results_of(path: Path) -> Path | None:
    """Return the results folder that contains a table, in the form in which the table was named;
    None if there is none."""
    if is_uri(path):
        return path.parents[2] if len(path.parts) > 4 else None
    for each in (path, Path(os.path.abspath(path))):
        if len(each.parts) > 3:
            return each.parents[2]
    return None


def place_of(name: str | os.PathLike[str]) -> Path:
    """Return the path that a user names: a URI, a file or a folder, as `path_of` does. Raises
    OptionError for another kind of URI or one without a bucket."""
    from luckbase.solver.board.file import path_of  # also imports pydantic

    text = os.fspath(name)
    if not is_uri(text):
        match = _URI.match(text)
        if match is None or not text.startswith(f"{match[0]}/") or os.path.exists(text):
            return path_of(name)
        raise OptionError(
            f"'{text[:60]}' cannot hold tables; expected a folder, s3://, gs://, az:// or https://"
        )
    read_only = text.startswith(READ_ONLY)  # a URL as shown by a browser
    place = Place(unquote(text) if read_only else text)
    if not _BUCKET.fullmatch("".join(place.parts[1:2])) or {*text} & {*"?#"} or ".." in place.parts:
        raise OptionError(f"{text[:80]}: expected {place.scheme}://BUCKET/PREFIX")
    return place


def storage_at(path: Path) -> Storage:
    """Return the storage of the table at a path. Raises StoreError without credentials, OptionError
    if obstore is not installed."""
    return _objects(path) if is_uri(path) else Folder(path)


def _objects(path: Path) -> Any:
    need(f"{os.fspath(path)[:60]}", "obstore", extra="cloud")
    return resolve_name(OBJECTS).at(path)


class Place(PosixPath):
    """A URI as a path. Joining names makes no request, and every prefix counts as a folder, whether
    or not it contains objects."""

    def __str__(self) -> str:
        scheme, *rest = self.parts or (".",)
        return f"{scheme}//{'/'.join(rest)}" if scheme.endswith(":") else "/".join(self.parts)

    def __fspath__(self) -> str:
        return str(self)

    @property
    def scheme(self) -> str:
        return self.parts[0].rstrip(":")

    @property
    def read_only(self) -> bool:
        return self.scheme in READ_ONLY

    def is_dir(self, **_: Any) -> bool:
        return True

    def is_file(self, **_: Any) -> bool:
        return len(self.parts) > 2 and _objects(self.parent).has(self.name)

    def exists(self, **_: Any) -> bool:
        if len(self.parts) < 3:  # the first request reports a missing bucket
            return True
        return self.is_file() or (not self.read_only and bool(_objects(self).names()))

    def absolute(self) -> Place:
        return self

    def samefile(self, other: Any) -> bool:
        return str(self) == str(os.fspath(other))

    def mkdir(self, *_: Any, **__: Any) -> None:
        raise StoreError(f"{self}: cannot be made as a folder; expected a path on this machine")

    def glob(self, pattern: str, **_: Any) -> Iterator[Place]:  # type: ignore[override]
        """Yield matching paths, segment by segment; none if listing is impossible."""
        first, _slash, rest = pattern.partition("/")
        if not rest and "*" not in first:
            child = self / first
            if child.is_file() or (not self.read_only and _objects(child).names()):
                yield child
        elif "*" not in first:
            yield from (self / first).glob(rest)
        elif not self.read_only:
            for name in _objects(self).names():
                if fnmatchcase(name, first):
                    yield from (self / name).glob(rest) if rest else (self / name,)


# --- what places have in common ---


def in_threads(do: Callable[[S], R], each: Iterable[S], threads: int) -> Iterator[R]:
    """Yield do(item) for each item, in order, computed in threads a few items ahead."""
    ahead: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in each:
                ahead.append(pool.submit(do, item))
                if len(ahead) > threads + 1:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


def tag_of(content: bytes) -> str:
    """Return the tag of an object in a storage without tags of its own."""
    return hashlib.sha256(content).hexdigest()


def attempt() -> str:
    """Return a name for one attempt; it is unique among all processes on all hosts."""
    host = socket.gethostname().replace("/", "-")
    return f"{host}-{os.getpid()}-{os.urandom(4).hex()}-{next(_attempts)}"


def is_special(out: str) -> bool:
    """True if a name exists and is not a regular file: a pipe, a device or a folder."""
    try:
        return not stat.S_ISREG(os.stat(out).st_mode)
    except OSError:
        return False  # it does not exist


def make_folder(folder: Path) -> None:
    """Create a folder and its parents if they do not exist, and flush their names to disk."""
    if folder.is_dir():  # a quick check, because every written file calls this
        return
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in new:
        flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Flush a folder's names to disk, if the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
