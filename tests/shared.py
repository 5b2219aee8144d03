"""What all tests of a run share, whichever of pytest's workers they run in: tables that several
modules look at, and one Ray cluster. Each is made by the first test that asks."""

import fcntl
import hashlib
import importlib
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from numba.core.compiler_lock import global_compiler_lock

import luckbase
from luckbase.cluster.answers.actions import answer_at, every_action
from luckbase.cluster.store.parquet import Writer
from luckbase.cluster.store.storage import Folder, storage_at
from luckbase.cluster.store.writer import Writer as TableWriter
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver import compiled as layer
from tests.places import ROOT

RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",  # at Ray's 15 a worker waits for all tests that run beside it
    "RAY_num_workers_soft_limit": "8",  # else whoever idles for a second ends, and starts again
    "RAY_memory_monitor_refresh_ms": "0",  # what others use of the memory ends no worker
    "NUMBA_CACHE_LOCATOR_CLASSES": "tests.locator.AsInCheckout",
}
"""The settings of Ray's processes in tests."""
FIRST_CODE = "first-code"
"""The folder of what the first of `first_solves` compiled."""
CLUSTER = "cluster"
"""The file that says where the run's Ray cluster is; the cluster ends when it goes."""


def answers_of(table, states):
    """The answers to canonical states (n, fields) that a table holds, or whose children it does,
    all looked up together."""
    found, there = every_action(table, states)
    assert there.all()
    described = table.game.fields.describe_all(states)
    return [answer_at(found, x, table.origin, state) for x, state in enumerate(described)]


def answer_by_search(table, state, max_states):
    """The answer that a search down to a table gives to a canonical state (fields,)."""
    states = state.reshape(1, -1)
    return table.search(states, table.game.fields.values(states), max_states)[0]


def taken(table):
    """A context manager: another solve of the table runs meanwhile, in this process."""
    storage = storage_at(table)
    return TableWriter(storage, table, read_manifest(storage, table).head).take()


def commit_at_once(patch):
    """From now on a driver commits after every shard."""
    patch.setattr("luckbase.cluster.store.writer.COMMIT_SECONDS", 0.0)
    patch.setattr("luckbase.cluster.store.writer.SHARE", float("inf"))


def plain(name):
    """The name of a file without the id of its writer and the hash of its content."""
    return re.sub(r"\.[0-9a-f]{8}(\.[0-9a-f]{12})?(?=\.(parquet|arrow)$)", "", str(name))


def files_of(table, pattern="*.parquet"):
    """The bytes of every file of a table, by name."""
    found = sorted(table.rglob(pattern))
    return {plain(path.relative_to(table)): path.read_bytes() for path in found}


def lines_of(manifest):
    """What a manifest has, without writers and times."""
    files = [replace(manifest.files[n], at="", seconds={}) for n in sorted(manifest.files)]
    return [*manifest.goals, manifest.done, manifest.levels, *files]


def rewrite(table, manifest):
    """Make a table's manifest say what this one says."""
    with TableWriter(Folder(table), table, manifest.head).take() as writer:
        now = writer.manifest
        now.goals, now.done = manifest.goals, manifest.done
        now.levels, now.files = manifest.levels, manifest.files


def write_rows(table, entry, rows):
    """Write other rows (a pyarrow table) into a file, as luckbase writes files; its new entry."""
    schema = pq.read_schema(table / entry.place)
    with Writer(table / entry.place, schema, {}, use_dictionary=False) as writer:
        for start in range(0, max(1, len(rows)), entry.row_group_rows):
            writer.write(rows.slice(start, entry.row_group_rows).cast(schema))
    return replace(entry, **writer.sums)


def python(*words, check=True, env=(), **how):
    """Run Python in a process of its own, such as ``python("-m", "luckbase", "status")``; env: more
    variables of the environment; how: as `subprocess.run` takes it."""
    how = {"cwd": ROOT, "capture_output": True, "text": True, **how}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **dict(env)}
    return subprocess.run([sys.executable, *map(str, words)], check=check, env=environment, **how)


@contextmanager
def only_one(path):
    """While this lasts, no other process of the run is here with the same path."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def tables_of(folder, *boards):
    """The full tables of boards, each a path and its settings, in one results folder, solved once a
    run. Not to be changed."""
    asked = [(str(board), sorted(settings.items())) for board, settings in boards]
    name = hashlib.sha256(repr(asked).encode()).hexdigest()[:16]
    results, done = folder / "tables" / name, folder / f"tables/{name}.done"
    done.parent.mkdir(exist_ok=True)
    with only_one(folder / f"tables/{name}.lock"):
        if not done.exists():
            made = [luckbase.load_board(board, **settings) for board, settings in boards]
            tables = [str(luckbase.solve(board, results=results).table) for board in made]
            done.write_text("\n".join(tables))
    return [Path(table) for table in done.read_text().splitlines()]


def compile_in_turn(locks):
    """Have no two of pytest's workers compile the same function at once: who comes later waits, and
    reads from the disk what the first has compiled."""
    compile_now = layer.compiled

    def compile_alone(function, signature=None, **options):
        if signature is None:
            return compile_now(function, **options)
        code = function.__code__
        name = hashlib.sha256(f"{code.co_filename} {code.co_firstlineno}".encode()).hexdigest()
        with global_compiler_lock, only_one(locks / name):
            return compile_now(function, signature, **options)

    layer.compiled = compile_alone


def compile_first(locks):
    """Compile the functions of the solver, each in one of pytest's workers: no test waits for the
    compiling of another one, and no process that a test starts compiles them too."""
    found = {}
    for info in pkgutil.walk_packages(luckbase.solver.__path__, "luckbase.solver."):
        for each in vars(importlib.import_module(info.name)).values():
            if type(each) is layer.LazyFunction and each._signature is not None:
                found[f"{each.plain.__module__}.{each.plain.__qualname__}"] = each
    for name in sorted(found, key=lambda name: -len(found[name].plain.__code__.co_code)):
        with suppress(Exception):  # another worker has it; what does not compile, a test says
            (locks / f"{name}.begun").touch(exist_ok=False)
            layer.compile_all(found[name])


FIRST_SOLVES = """
import sys
import numba.core.event as event
compiled = []
class Listener(event.Listener):
    def on_start(self, what):
        function = what.data["dispatcher"].py_func
        compiled.append(f"{function.__module__}.{function.__name__}")
    def on_end(self, what):
        pass
event.register("numba:compile", Listener())
from luckbase.jobs.app import run
assert run(["solve", sys.argv[1], "--set", "frontier=1", "--force", "--results", sys.argv[2]]) == 0
print(*compiled)
"""
"""A solve of a small full table; its last line says what was compiled."""


def first_solves(folder):
    """What is said, stdout and stderr, by the first solve of a newcomer and by the one after it, of
    ``press-your-luck/tiny``; once a run."""
    done = folder / "first-solves.json"
    with only_one(folder / "first-solves.lock"):
        if not done.exists():
            said = []
            for _ in range(2):
                made = subprocess.run(
                    [sys.executable, "-c", FIRST_SOLVES,
                     str(ROOT / "boards/press-your-luck/tiny.toml"), str(folder / "first")],
                    cwd=ROOT, env={**os.environ, "NUMBA_CACHE_DIR": str(folder / FIRST_CODE)},
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                said.append({"out": made.stdout, "err": made.stderr})
            done.write_text(json.dumps(said))
    return json.loads(done.read_text())


def cluster_of(folder, run):
    """The address of the run's Ray cluster of two workers; `run` is the process that it ends with,
    at the latest."""
    said = folder / CLUSTER
    with only_one(folder / f"{CLUSTER}.lock"):
        if not said.exists():
            with open(folder / f"{CLUSTER}.log", "w") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.shared", str(said), str(run)], cwd=ROOT,
                    start_new_session=True, stdout=log, stderr=log,
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                )  # fmt: skip
            deadline = time.monotonic() + 600
            while not said.exists():
                assert process.poll() is None and time.monotonic() < deadline, log.name
                time.sleep(0.05)
    return said.read_text().split()[0]


def end_cluster(folder):
    """End the run's cluster, if there is one."""
    said = folder / CLUSTER
    if not said.exists():
        return
    process = int(said.read_text().split()[1])
    said.unlink()
    with suppress(ProcessLookupError):
        for _ in range(300):
            os.kill(process, 0)
            time.sleep(0.1)
        os.kill(process, signal.SIGKILL)  # Ray's processes end with the one that started them


def _keep_cluster(said, run):
    """Ray's head, until its file or the run goes."""
    os.environ.update(RAY)
    import ray
    from ray._private.node import Node

    # One looks at every log ten times a second, and nothing here needs the other two.
    Node.start_log_monitor = Node.start_monitor = lambda node: None
    Node.start_api_server = lambda node, **options: None
    started = ray.init(
        address="local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20,
        log_to_driver=False, _node_ip_address="127.0.0.1",
    )  # fmt: skip
    part = said.with_suffix(".part")
    part.write_text(f"{started.address_info['gcs_address']} {os.getpid()}")
    part.replace(said)
    with suppress(ProcessLookupError):
        while said.exists():
            os.kill(run, 0)
            time.sleep(0.2)
    ray.shutdown()


if __name__ == "__main__":
    _keep_cluster(Path(sys.argv[1]), int(sys.argv[2]))
