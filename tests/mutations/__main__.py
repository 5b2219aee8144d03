"""``python -m tests.mutations``: draw, try, and say which of them no test notices."""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Queue

from luckbase.solver.njit import cache_roots, digest_of, own_files
from tests.mutations.drawn import Mutation, draw
from tests.mutations.equivalent import reason
from tests.mutations.recorded import RECORD, Record, typed
from tests.places import IN_MEMORY, ROOT
from tests.test_rooms import import_graph, modules

ENOUGH = 0.9
"""The share that must die."""
SECONDS, LIMIT = 90.0, 300.0
"""Of tests for one mutation, by the times that were recorded; and of computing, after which it
counts as one that never ends (compiling what it changes is in it). One that waits for ever is given
as long, longer where others use the machine as well."""
NOT_IMPORTED = "the tests cannot be imported"


def record() -> None:
    """Run all tests once under coverage.py."""
    print("recording which test runs what: all tests, once", flush=True)
    shutil.rmtree(RECORD, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.mutations.recorded", "--no-header"], cwd=ROOT
    )


def importers() -> dict[str, set[str]]:
    """By module, all that import it, by way of others too."""
    graph = import_graph(modules())
    found: dict[str, set[str]] = {name: set() for name in graph}
    for name in graph:
        below, new = set(), {name}
        while new:
            below |= new
            new = set().union(*(graph[each] for each in new)) - below
        for each in below - {name}:
            found[each].add(name)
    return found


class Copy:
    """A copy of the checkout, with compiled code of its own that begins as what is there."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.root, self.temporary = folder / "checkout", temporary
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
        for name in files.stdout.decode().split("\0")[:-1]:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name, follow_symlinks=False)
        self.compiled = folder / "compiled"
        self.sound: set[str] = set()  # tests that were seen to pass without a mutation
        self.importers = importers()
        kept = next(cache_roots()) / self.code().name  # of this code: there may be many others
        if kept.is_dir():
            shutil.copytree(kept, self.code(), copy_function=_linked)

    def dies(self, mutation: Mutation, tests: list[str]) -> str:
        """What notices the mutation: a test that fails with it and not without it, or that it never
        ends; "" where nothing does."""
        file = self.root / mutation.file
        source = file.read_bytes()
        while tests:
            before = self.code()
            file.write_bytes(mutation.applied(source))
            if self.code() != before:
                self.keep_what_stays(mutation.file, before)
            failed = self.failed(tests)
            file.write_bytes(source)
            if failed not in tests or failed in self.sound or not self.failed([failed]):
                self.sound.add(failed)
                return failed
            tests = [test for test in tests if test != failed]  # it fails anyway
        return ""

    def code(self) -> Path:
        """The folder of what is compiled of `solver/` as it is now."""
        return self.compiled / "luckbase" / digest_of(own_files(self.root / "luckbase"))

    def keep_what_stays(self, mutated: str, before: Path) -> None:
        """Compiled code of the modules that neither are the mutated file nor import it."""
        name = ".".join(("luckbase", *Path(mutated).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        shutil.rmtree(self.code(), ignore_errors=True)
        for folder in before.glob("*"):
            if folder.name != name and folder.name not in self.importers[name]:
                shutil.copytree(folder, self.code() / folder.name, copy_function=_linked)

    def failed(self, tests: list[str]) -> str:
        """The first of some tests that fails, or what else ends them; "" if none does."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider",
                   "-m", "", "--basetemp", str(self.temporary),
                   *tests]  # fmt: skip
        paths = filter(None, [str(self.root), os.environ.get("PYTHONPATH")])
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(self.compiled),
                       "PYTHONPATH": os.pathsep.join(paths),  # also of what a test starts
                       "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        run = subprocess.Popen(
            command, cwd=self.root, env=environment, start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=_bound,
        )  # fmt: skip
        try:
            busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
            said = run.communicate(timeout=LIMIT * busy)[0]
        except subprocess.TimeoutExpired:
            return "it never ends"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
        if run.returncode == 0:
            return ""
        if run.returncode == -signal.SIGXCPU:
            return "it never ends"
        if run.returncode == 4:
            return NOT_IMPORTED
        named = re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", said, re.MULTILINE)
        return typed(named[1]) if named else f"exit code {run.returncode}"


def _linked(source: str, to: str) -> None:
    """A file a second time: a link where the file system allows it. One that is gone was about to
    get its name: somebody compiles meanwhile."""
    try:
        os.link(source, to)
    except FileNotFoundError:
        return
    except OSError:
        shutil.copy2(source, to)


def _bound() -> None:
    """A loop that never ends is ended by the time that it computes, however busy the machine is."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(LIMIT), int(LIMIT) + 10))


def main() -> int:
    """Exit code 0 where enough die."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="record the tests anew")
    parser.add_argument("--list", action="store_true", help="what is drawn, and try none of it")
    parser.add_argument("--of", type=int, nargs="*", help="only these, by their numbers")
    asked = parser.parse_args()
    if not asked.count:
        return 0
    if asked.record or not any(RECORD.glob("*.json")):
        record()
    known, began = Record(), time.monotonic()
    drawn = list(enumerate(draw(ROOT, asked.count, asked.seed), 1))
    if asked.of:
        drawn = [(n, mutation) for n, mutation in drawn if n in asked.of]
    survivors, equivalents = 0, 0
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as temporary,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        copies: Queue[Copy] = Queue()
        for k in map(str, range(0 if asked.list else os.cpu_count() or 1)):
            copies.put(Copy(Path(folder) / k, Path(temporary) / k))

        def tried(numbered: tuple[int, Mutation]) -> tuple[int, Mutation, str]:
            n, mutation = numbered
            same = reason(mutation, (ROOT / mutation.file).read_bytes())
            if same:
                return n, mutation, f"equivalent: {same}"
            tests = known.closest(mutation.file, mutation.function, mutation.name, SECONDS)
            if asked.list or not tests:
                return n, mutation, f"{len(tests)} tests" if tests else "SURVIVED: no test runs it"
            copy = copies.get()
            at = time.monotonic()
            try:
                killer = copy.dies(mutation, tests)
            finally:
                copies.put(copy)
            spent = f"{time.monotonic() - at:.0f} s, {len(tests)} tests"
            return n, mutation, f"died ({spent}): {killer}" if killer else f"SURVIVED ({spent})"

        for n, mutation, end in pool.map(tried, drawn):
            survivors += end.startswith("SURVIVED")
            equivalents += end.startswith("equivalent")
            before, after = mutation.shown((ROOT / mutation.file).read_bytes())
            where = f"{mutation.file}:{mutation.line} {mutation.function or 'module'}"
            print(f"{n:3d} {mutation.kind:10} {where}: {end}", flush=True)
            if not end.startswith("died"):
                print(f"      - {before}\n      + {after}", flush=True)
    counted = len(drawn) - equivalents
    died = counted - survivors
    print(f"seed {asked.seed}: {died} of {counted} died, {equivalents} are equivalent; "
          f"{(time.monotonic() - began) / 60:.0f} min")  # fmt: skip
    return 0 if died >= ENOUGH * counted else 1


if __name__ == "__main__":
    sys.exit(main())
