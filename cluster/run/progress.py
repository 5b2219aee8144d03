"""What a solve says: to whoever started it how far it is and what it did, and to all others, in the
table's place, who is at it and how far.

While a solve runs, ``running.json`` in the table's folder is rewritten every second; for good there
is ``log/<time>.log``: a line for each node that comes, goes or is left out, each fault, and how far
it was every minute.

**The lock**, ``lock.json``, says who holds the table. It is made where there is none, and replaced
only by whoever has read what is replaced. The holder replaces it every few seconds, which changes
its tag. Whoever finds it held watches the tag: once it has not changed for a lease by their own
clock, the holder is taken for dead. No clocks are compared. A holder on this machine need not be
watched: the system says whether its process is there.

It only keeps two solves from getting in each other's way. Whoever is taken for dead and is not,
finds a fence in the ledger (`cluster.table.entries`), and stops.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, computed_field

from luckbase.cluster.machine import machine_id, process_ended, resident_memory, started
from luckbase.cluster.table import LOCK, RUNNING
from luckbase.cluster.table.ledger import FileEntry, Goal, Ledger, Origin
from luckbase.cluster.table.storage import Storage, attempt, storage_at
from luckbase.solver import sentences
from luckbase.solver.errors import LuckbaseError, RequestError, StoreError
from luckbase.solver.result import AsText, Flat, OrNull, PythonOnly, Result, Rounded
from luckbase.solver.sentences import html_facts, many

WRITE_SECONDS = 1.0
LOG_SECONDS = 60.0
LOGS = 20
"""Logs that are kept of a table."""
MIN_SHARE = 0.01
"""Of the work, after which there is a pace to go by: the first shards are the smallest."""
LEASE, BEATS = 15.0, 3
"""Seconds that a holder may say nothing; how often they say something in that time."""
WATCH_SECONDS = 0.25
_nonces: set[str] = set()
"""Of the locks that this process holds or takes, their nonces."""
Seconds = Annotated[float, PlainSerializer(lambda value: round(value, 3), return_type=float)]


@dataclass(frozen=True)
class Progress(Result):
    """How far a solve is: shards and rows of this run, seconds since it started."""

    shards: int
    shards_total: int
    rows: Annotated[int, Field(serialization_alias="states")]
    """Of a search that does not know yet how many states there are, those found."""
    rows_total: Annotated[int, Field(serialization_alias="states_total")]
    seconds: Rounded
    compiling: PythonOnly[bool] = False
    """It has not begun, all else is 0."""
    finding: OrNull[str] = ""
    """Of such a search: where it is."""
    of: PythonOnly[str] = "tiers"
    """What a shard is called."""
    before: PythonOnly[int] = 0
    """Rows that were there when it started."""
    json_order = (
        "shards", "shards_total", "states", "states_total", "seconds", "states_a_second",
        "finding", "seconds_left",
    )  # fmt: skip

    @property
    def rate(self) -> float:
        """Rows a second of this run."""
        return (self.rows - self.before) / self.seconds if self.seconds > 0 else 0.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def states_a_second(self) -> int:
        """The same, as a whole number."""
        return round(self.rate)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def seconds_left(self) -> float | None:
        """Until it is done, about; None where that is not known."""
        left = self.left() if self.rows_total else None
        return None if left is None else round(left, 1)

    @property
    def parts(self) -> tuple[int, int]:
        """Done and in all: states, or shards where nobody knows how many states there are."""
        known = (self.rows, self.rows_total)
        return known if self.rows_total else (self.shards, self.shards_total)

    def left(self, compiled: float = 0.0) -> float | None:
        """Seconds that are left at the pace so far, those that it `compiled` left out; None before
        there is a pace."""
        done, total = self.parts
        working, new = self.seconds - compiled, done - (self.before if self.rows_total else 0)
        if not total or new < MIN_SHARE * total or working <= 0:
            return None
        return working * max(0, total - done) / new


@dataclass(frozen=True)
class Solved(Result):
    """What a solve did; 0 or empty where all was there. Numbers are of states."""

    origin: Flat[Origin]
    table: AsText[Path]
    ledger: PythonOnly[Ledger]
    goal: PythonOnly[Goal]
    """What was wanted."""
    kept: int = 0
    """Were there."""
    states: Annotated[int, Field(serialization_alias="solved_now")] = 0
    """New ones."""
    damaged: tuple[str, ...] = ()
    """Files that were not as they should be and were made again, a sentence each."""
    shards: int = 0
    """Handed out."""
    seconds: Seconds = 0.0
    """From the first shard handed out to the last commit, starting Ray included."""
    solve_seconds: Seconds = 0.0
    """Of the workers, added up."""
    peak_memory: int = 0
    """Bytes, of this process and of the workers' together (`memory_used`)."""
    workers: int = 1
    ray: bool = False

    @property
    def searched(self) -> bool:
        """Whether it was a search, not the solve of a full table."""
        return self.goal.roots is not None

    @property
    def files(self) -> list[FileEntry]:
        """Of the table; of a search those of its part."""
        ledger = self.ledger
        return ledger.of_part(self.goal.part) if self.searched else [*ledger.files.values()]

    @computed_field(alias="states")  # type: ignore[prop-decorator]
    @property
    def rows(self) -> int:
        """States in them, each once."""
        return sum(entry.rows for entry in self.files) if self.searched else self.ledger.rows

    @computed_field  # type: ignore[prop-decorator]
    @property
    def bytes(self) -> int:
        """Of them."""
        return sum(entry.bytes for entry in self.files)

    def _repr_html_(self) -> str:
        ledger = self.ledger
        how = many(self.workers, "Ray worker" if self.ray else "thread")
        rows = [("states", f"{self.states:,} solved now, {self.kept:,} were there"),
                ("table", f"{many(ledger.rows, 'state')} in {many(len(ledger.files), 'file')}, "
                          f"{sentences.size(ledger.bytes)}"),
                ("time", f"{sentences.duration(self.seconds)} with {how}" * bool(self.shards)),
                ("memory", sentences.size(self.peak_memory) * bool(self.peak_memory)),
                ("payoffs within", sentences.bound(ledger.error(self.goal.part))),
                ("where", str(self.table))]  # fmt: skip
        return html_facts(f"{ledger.head.board} is solved", rows)


@dataclass(frozen=True)
class SolvedTiers(Solved):
    """What the solve of a full table did."""

    shards: PythonOnly[int] = 0
    solve_seconds: Annotated[Seconds, Field(serialization_alias="kernel_seconds")] = 0.0
    again: Annotated[int, Field(serialization_alias="solved_again")] = 0
    """Solved again for those that read them."""
    read: Annotated[int, Field(serialization_alias="read_back")] = 0
    """Read back for them."""
    again_seconds: PythonOnly[float] = 0.0
    """Of the kernel."""
    compile_seconds: Seconds = 0.0
    """Before the first shard."""
    json_order = (
        "board", "options", "solve_id", "stale", "table", "states", "tiers", "bytes", "kept",
        "solved_again", "read_back", "solved_now", "damaged", "seconds", "states_per_second",
        "compile_seconds", "kernel_seconds", "peak_memory", "workers", "ray",
    )  # fmt: skip

    @computed_field  # type: ignore[prop-decorator]
    @property
    def tiers(self) -> int:
        """Files in the table."""
        return len(self.ledger.files)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def states_per_second(self) -> int | None:
        """From end to end."""
        done = self.states + self.again + self.read
        return round(done / self.seconds) if self.seconds else None


@dataclass(frozen=True)
class SolvedSearch(Solved):
    """What a search did."""

    edges: int = 0
    """Expanded."""
    levels: int = 0
    """By which it went; 0 where it was one piece."""
    stages: int = 0
    bytes_a_state: Rounded = 0.0
    """Of its arrays, where it was one piece."""
    json_order = (
        "board", "options", "solve_id", "stale", "table", "states", "bytes", "kept", "solved_now",
        "damaged", "edges", "overlap", "levels", "stages", "shards", "seconds", "solve_seconds",
        "bytes_a_state", "peak_memory", "workers", "ray",
    )  # fmt: skip

    @computed_field  # type: ignore[prop-decorator]
    @property
    def overlap(self) -> float:
        """States solved over distinct states: no two shards solve the same one."""
        return 1.0


def _now() -> datetime:
    return datetime.now().astimezone()


class Watch:
    """Writes the progress of a solve to its folder; a context manager."""

    def __init__(
        self, table: Path, on_progress: Callable[[Progress], None], on_note: Callable[[str], None]
    ) -> None:
        self.table, self.on_progress, self.on_note = table, on_progress, on_note
        self.began, self.last_note = _now(), ""
        self._written = self._logged = float("-inf")
        self._storage, self._text = storage_at(table), ""
        self._log = f"log/{self.began:%Y%m%dT%H%M%S.%f}-{os.getpid()}.log"

    def __enter__(self) -> Watch:
        if not self._storage.anywhere:
            (self.table / self._log).parent.mkdir(parents=True, exist_ok=True)
        for old in [n for n in self._storage.list("log/") if n.endswith(".log")][: -LOGS + 1]:
            with suppress(OSError):
                self._storage.delete(old)
        self.note(f"a solve begins: process {os.getpid()} on {socket.gethostname()}", tell=False)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        end = "the solve is done" if error is None else f"the solve ends: {error!s}"
        self.note(end, tell=False)
        with suppress(OSError, StoreError):
            if self._storage.anywhere:  # to which nothing can be added
                self._storage.put(self._log, self._text.encode())
            self._storage.delete(RUNNING)

    def note(self, text: str, *, tell: bool = True) -> None:
        """Something happened that a person should know; without `tell`, the log only."""
        now = _now()
        if tell:
            self.last_note = f"{now:%H:%M:%S} {text}"
            self.on_note(text)
        line = f"{now.isoformat(timespec='seconds')} {text}\n"
        if self._storage.anywhere:
            self._text += line
            return
        with suppress(OSError), (self.table / self._log).open("a", encoding="utf-8") as file:
            file.write(line)

    def show(self, progress: Progress, doing: list[dict[str, Any]]) -> None:
        """How far it is, and what each machine does."""
        self.on_progress(progress)
        now = time.monotonic()
        if now - self._written < WRITE_SECONDS:
            return
        self._written = now
        content = {
            "host": socket.gethostname(), "process": os.getpid(),
            "since": self.began.isoformat(timespec="seconds"),
            "at": _now().isoformat(timespec="seconds"),
            **progress.as_json(), "nodes": doing, "memory": resident_memory(),
            "last_note": self.last_note,
        }  # fmt: skip
        self._write(json.dumps(content))
        if now - self._logged >= LOG_SECONDS:
            self._logged = now
            at = f"{progress.shards} of {many(progress.shards_total, 'shard')}"
            self.note(
                f"{at}, {many(progress.rows, 'state')}, {many(len(doing), 'node')}", tell=False
            )

    def _write(self, content: str) -> None:
        with suppress(OSError, StoreError):  # a full disk stops the solve elsewhere, in a sentence
            if self._storage.anywhere:
                self._storage.put(RUNNING, content.encode())
                return
            beside = self.table / f".{RUNNING}.{os.getpid()}"  # not flushed: it is worth nothing
            beside.write_text(content)
            beside.replace(self.table / RUNNING)


# --- the lock ------------------------------------------------------------------------------------


class Lock:
    """The lock of one table, as this process sees it; `tag` is there while it holds it."""

    def __init__(self, storage: Storage, where: Path, lease: float = LEASE) -> None:
        """where: the table, for people."""
        self.storage, self.where, self.lease = storage, where, lease
        self.tag: str | None = None
        self.lapsed = False
        """Whether an earlier holder may yet live: one ceased to beat, once, and was not seen to
        end. A store may even have requests under way of one that was killed."""
        self.epoch = self.beat = 0
        self._own = {
            "host": socket.gethostname(), "process": os.getpid(), "machine": machine_id(),
            "started": started(os.getpid()), "nonce": os.urandom(8).hex(),
            "since": datetime.now().astimezone().isoformat(timespec="seconds"),
        }  # fmt: skip
        self._stop, self._thread = threading.Event(), threading.Thread(
            target=self._keep, daemon=True, name="luckbase lock"
        )  # fmt: skip

    @property
    def holder(self) -> str:
        """This process, for people."""
        return _describe(self._own)

    def take(self, on_note: Callable[[str], None] = lambda text: None) -> None:
        """Take it. Raises RequestError where somebody else holds it."""
        seen, until = "", 0.0
        _nonces.add(str(self._own["nonce"]))  # before anybody of this process can read it
        while self.tag is None:
            try:
                content, tag = self.storage.read_tagged(LOCK)
            except FileNotFoundError:
                self.storage.put_if_absent(LOCK, self._content())
                continue
            if content == self._content():  # it is this one's that has been made
                self.tag = tag
                break
            record = _parse(content)
            now, away = time.monotonic(), _is_gone(record)
            if not seen:
                seen, until = tag, now + record.get("lease", self.lease)
                if away is None:
                    on_note(f"it is held by {_describe(record)}: waiting whether that still runs")
            if away is False or (tag != seen and not away):
                raise RequestError(
                    f"{self.where}: another solve of this table is running: {_describe(record)}"
                )
            if away or now >= until:
                self.epoch = record.get("epoch", 0) + 1
                ended = away and (record.get("free") or not self.storage.anywhere)
                self.lapsed = record.get("lapsed", False) or not ended
                self.tag = self.storage.put_if_match(LOCK, self._content(), tag)
                seen = ""
            else:
                time.sleep(WATCH_SECONDS)
        self._thread.start()

    def release(self) -> None:
        """Let others have it at once, if it is there."""
        self.stop()
        with suppress(LuckbaseError, OSError):
            self.storage.read_tagged(LOCK)
            self.storage.put_if_match(LOCK, self._content(free=True), self.tag or "")

    def check(self) -> None:
        """Raises RequestError where another has taken it over."""
        record = dict[str, Any]()
        with suppress(FileNotFoundError):
            record = _parse(self.storage.read(LOCK))
        if record.get("nonce") != self._own["nonce"]:
            by = _describe(record) if record else "somebody"
            raise RequestError(f"{self.where}: another solve of this table has begun: {by}")

    def stop(self) -> None:
        """Say no more that this process holds it."""
        self._stop.set()
        self._thread.join()
        _nonces.discard(str(self._own["nonce"]))

    def _content(self, free: bool = False) -> bytes:
        record = {"holder": None if free else self._own, "epoch": self.epoch, "beat": self.beat,
                "lease": self.lease, "lapsed": self.lapsed}  # fmt: skip
        return json.dumps(record).encode()

    def _keep(self) -> None:
        while not self._stop.wait(self.lease / BEATS):
            self.beat += 1
            try:
                tag = self.storage.put_if_match(LOCK, self._content(), self.tag or "")
            except (LuckbaseError, OSError):
                continue  # a store that is away: the ledger says whether it was taken over
            if tag is None:
                return  # taken over
            self.tag = tag


def suspended(storage: Storage) -> tuple[str, float] | None:
    """Who may yet live of those who held a table, for people, and the seconds since, by the clock
    of the place, the lock was changed; None where all have ended, or run on this machine."""
    try:
        record = _parse(storage.read(LOCK))
    except FileNotFoundError:
        return None
    if not record.get("lapsed") and _is_gone(record) is not None:
        return None
    name = f".{LOCK}.{attempt()}"
    storage.put(name, b"")
    put_at = {each: stored.put_at for each, stored in storage.details(f".{LOCK}.").items()}
    storage.delete(name)
    then = [stored.put_at for stored in storage.details(LOCK).values()]
    who = "an earlier solve of it" if record.get("free") else _describe(record)
    return who, put_at[name] - min(then, default=put_at[name])


@contextmanager
def lock(table: Path, on_note: Callable[[str], None] = lambda text: None) -> Iterator[Lock]:
    """One solve of a table at a time. Raises RequestError where another is running, with who."""
    lease = Lock(storage_at(table), table)
    lease.take(on_note)
    try:
        yield lease
    finally:
        lease.release()


def _parse(content: bytes) -> dict[str, Any]:
    """Who holds it, with `epoch` and `lease`; what cannot be read is held by somebody unknown."""
    with suppress(ValueError, KeyError, TypeError):
        data = json.loads(content)
        record: dict[str, Any] = {"epoch": int(data["epoch"]), "lease": float(data["lease"])}
        record["lapsed"] = bool(data.get("lapsed"))
        if data["holder"] is None:
            return {**record, "free": True}
        holder = data["holder"]
        names = "host", "machine", "started", "since"
        record |= {name: str(holder[name]) for name in names}
        return {**record, "process": int(holder["process"]), "nonce": str(holder.get("nonce", ""))}
    return {}


def _is_gone(record: dict[str, Any]) -> bool | None:
    """Whether who held it does not any more; None where that is not known here."""
    if record.get("free"):
        return True
    ended = process_ended(record)
    if ended is not False:
        return ended
    return record["process"] == os.getpid() and record["nonce"] not in _nonces  # could not be freed


def _describe(record: dict[str, Any]) -> str:
    if "process" not in record:
        return "somebody whom its lock.json does not name"
    return f"process {record['process']} on {record['host']} since {record['since']}"
