"""One solve of a table at a time: who is at it, and who may take it over.

``lock.json`` says who holds the table. It is made where there is none, and replaced only by whoever
has read what is replaced. The holder replaces it every few seconds, which changes its tag. Whoever
finds it held watches the tag: once it has not changed for a lease by their own clock, the holder is
taken for dead. No clocks are compared. A holder on this machine need not be watched: the system
says whether its process is there.

The lock only keeps two solves from getting in each other's way. Whoever is taken for dead and is
not, finds a fence in the ledger (`cluster.table.entries`), and stops.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from luckbase.cluster.table.place import storage_at
from luckbase.cluster.table.storage import Storage, attempt
from luckbase.solver.errors import LuckbaseError, RequestError

LOCK = "lock.json"
LEASE, BEATS = 15.0, 3
"""Seconds that a holder may say nothing; how often they say something in that time."""
WATCH_SECONDS = 0.25
_nonces: set[str] = set()
"""Of the locks that this process holds or takes, their nonces."""


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
            "host": socket.gethostname(), "process": os.getpid(), "machine": _machine(),
            "started": _started(os.getpid()), "nonce": os.urandom(8).hex(),
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
    machine = _machine()
    if not machine or record.get("machine") != machine:
        return None
    if _started(record["process"]) != record["started"]:
        return True
    return record["process"] == os.getpid() and record["nonce"] not in _nonces  # could not be freed


def _describe(record: dict[str, Any]) -> str:
    if "process" not in record:
        return "somebody whom its lock.json does not name"
    return f"process {record['process']} on {record['host']} since {record['since']}"


def _machine() -> str:
    """What only processes that see each other's numbers have in common; "" where the system does
    not say."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def _started(process: int) -> str:
    """When a process of this machine began, in the system's count; "" where there is none."""
    with suppress(OSError, IndexError):
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else rest[18]
    return ""
