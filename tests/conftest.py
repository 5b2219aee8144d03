"""Settings of the test run: no deadlines, which only say how busy the machine is, and no word of
compiling; and what all tests of a run share.

Hypothesis draws the same examples in every run of the same test, so that a run fails where
something is wrong and not by chance; ``--hypothesis-profile=random`` draws others each time.
"""

import gc
import importlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from luckbase.cluster.machine import cores
from tests import shared
from tests.places import BOARDS, IN_MEMORY, ROOT
from tests.stores import BUCKET, Seaweed

DRAWN = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "luckbase", max_examples=50, deadline=None, derandomize=True, database=None,
    suppress_health_check=DRAWN,
)  # fmt: skip
settings.register_profile(
    "random", settings.get_profile("luckbase"), max_examples=100, derandomize=False
)
settings.load_profile("luckbase")

LOUD = (
    "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "LINES",
    "LUCKBASE_ADDRESS", "LUCKBASE_GAME", "LUCKBASE_RESULTS", "NO_COLOR", "PYTHONDEVMODE",
    "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONWARNINGS", "PY_COLORS", "TERMINAL_WIDTH",
    "TTY_COMPATIBLE", "TTY_INTERACTIVE",
)  # fmt: skip
"""Variables of whoever runs the tests that change what a command prints, or have every process of
a test read the product's text again; tests set their own."""

HOSTS = "tests/e2e/test_hosts.py"
LONG = (
    "tests/jobs/test_help.py::test_the_examples_work",
    "tests/cluster/search/test_memory_limit.py",
    "tests/solver/games/test_press_your_luck_choosing.py",
    "tests/test_one_name.py",
    "tests/solver/test_compiled_cache.py",
    "tests/cluster/store/test_hostile.py",
    "tests/e2e/test_store_faults.py",
    "tests/jobs/test_process.py",
)
MANY = 1000
"""So many tests need most of the solver's compiled functions."""
ROOM = 8 << 30
"""Tests write to memory where so many bytes are free there."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """The run's own process, its folder, and a token without which nobody can use its Ray; pytest's
    workers inherit them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as where it is started with "&"
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as where it is started with nohup
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.umask(0o022)
    gc.disable()  # until all is imported
    if hasattr(config, "workerinput"):
        shared.compile_in_turn(Path(os.environ["LUCKBASE_TEST_LOCKS"]))
        return
    for name in LOUD:
        os.environ.pop(name, None)
    sys.dont_write_bytecode = False
    near = ("127.0.0.1", "127.0.0.2", "localhost", *filter(None, [os.environ.get("NO_PROXY")]))
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = ",".join(near)
    locks = os.environ["LUCKBASE_TEST_LOCKS"] = tempfile.mkdtemp(prefix="luckbase-locks-")
    config.add_cleanup(lambda: shutil.rmtree(locks, ignore_errors=True))
    os.environ["LUCKBASE_TEST_RUN"] = str(os.getpid())
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    if not config.option.basetemp and IN_MEMORY and shutil.disk_usage(IN_MEMORY).free >= ROOM:
        config.option.basetemp = tempfile.mkdtemp(prefix="luckbase-tests-", dir=IN_MEMORY)
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Each of pytest's workers first imports a share of the test modules: what pytest writes into
    their assertions, which takes longer than all else of an import, the others read on the disk,
    once all have done their share."""
    own = getattr(session.config, "workerinput", None)
    if own is None:
        return
    named = [Path(each.partition("::")[0]).resolve() for each in session.config.args]
    files = sorted({file for each in named for file in [each, *each.rglob("test_*.py")]})
    modules = [file for file in files if file.is_file() and file.is_relative_to(ROOT)]
    for file in modules[int(own["workerid"][2:]) :: own["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # said when it is collected
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    here = Path(os.environ["LUCKBASE_TEST_LOCKS"])
    (here / f"{own['workerid']}.imported").touch()
    end = time.monotonic() + 60
    while len([*here.glob("*.imported")]) < own["workercount"] and time.monotonic() < end:
        time.sleep(0.05)


def pytest_collection_modifyitems(config, items):
    """What takes long first, so that nothing is left to do beside it at the end. The share of the
    first worker (a run of items, by xdist's worksteal) begins with what waits for hosts and the
    run's Ray cluster more than it computes, and those of the others with the rest of it."""
    workers = max(2, getattr(config, "workerinput", {}).get("workercount", 1))
    waiting, short = list[pytest.Item](), list[pytest.Item]()
    long = {name: list[pytest.Item]() for name in LONG}  # what a module remembers is of one worker
    for item in items:
        waits = HOSTS in item.nodeid or "ray_cluster" in getattr(item, "fixturenames", ())
        name = next((name for name in LONG if item.nodeid.startswith(name)), "")
        (waiting if waits else long.get(name, short)).append(item)
    created = list[pytest.Item]()
    for k in range(workers):
        values = [*long.values()][k - 1 :: workers - 1] if k else [waiting]
        first = [item for part in values for item in part]
        rest = max(0, (len(items) - len(created)) // (workers - k) - len(first))
        created += first + short[:rest]
        del short[:rest]
    assert len(created) == len(items) and not short  # none is left out
    items[:] = created


def pytest_collection_finish(session):
    """What is there once all is imported is never gone through for garbage, nor is what comes as
    often as Python would: of a tenth of a run's processor time little is left. A run of all tests
    first compiles the solver."""
    if hasattr(session.config, "workerinput") and len(session.items) > MANY:
        shared.compile_first(Path(os.environ["LUCKBASE_TEST_LOCKS"]))
    gc.enable()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_xdist_auto_num_workers(config):
    """One more than there are cores: tests of clusters and of stops wait more than they compute."""
    return cores() + 1


def _run_folder(factory, worker):
    base = factory.getbasetemp()
    return base.parent if worker else base


def pytest_sessionfinish(session):
    """Nothing is left running, however the run ends."""
    if not hasattr(session.config, "workerinput"):
        factory = session.config._tmp_path_factory
        shared.end_cluster(_run_folder(factory, worker=False))


@pytest.fixture(scope="session")
def run_folder(request, tmp_path_factory):
    """The folder that all of pytest's workers see."""
    return _run_folder(tmp_path_factory, hasattr(request.config, "workerinput"))


@pytest.fixture
def on_disk():
    """A folder of a test whose claim is about files on a disk."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def table_of(run_folder):
    """The full table of a board with settings, solved once a run: to be looked at only."""
    return lambda board, **settings: shared.tables_of(run_folder, (board, settings))[0]


@pytest.fixture(scope="session")
def results_of(run_folder):
    """A results folder with the full tables of boards, each a path and its settings, solved once a
    run: to be looked at only."""
    return lambda *boards: shared.tables_of(run_folder, *boards)[0].parents[2]


@pytest.fixture
def command(capsys):
    """Runs a command in this process: exit code, stdout, stderr."""
    from luckbase.jobs.app import run

    def call(*words):
        capsys.readouterr()
        code = run(list(map(str, words)))
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def own_games(monkeypatch):
    """Games that a test registers are known to it alone; there is no public way to forget one."""
    from luckbase.solver.board import registry

    monkeypatch.setattr(registry, "entries", {})


@pytest.fixture
def every_line(monkeypatch):
    """Progress is printed at every step; no option says how often."""
    monkeypatch.setattr("luckbase.jobs.terminal.LINE_SECONDS", 0.0)


@pytest.fixture(scope="session")
def web_results(results_of):
    """A results folder with every game's tiny table; to be looked at only."""
    from tests.jobs.web import serving

    return results_of(*[
        (BOARDS / game / "tiny.toml", {"frontier": 2} if game == "press-your-luck" else {})
        for game in serving.GAMES
    ])  # fmt: skip


@pytest.fixture(scope="module")
def client(web_results):
    """A client of a server of all of them."""
    from tests.jobs.web import serving

    with serving.asking(web_results, open_tables=len(serving.GAMES)) as result:
        yield result


@pytest.fixture(scope="session")
def ray_cluster(run_folder):
    """The address of the run's one Ray cluster."""
    return shared.cluster_of(run_folder, int(os.environ["LUCKBASE_TEST_RUN"]))


@pytest.fixture(autouse=True)
def _no_word_of_compiling(request, monkeypatch):
    """What a command says must not depend on which test is the first to compile something."""
    if request.module.__name__ != "tests.jobs.test_process":
        monkeypatch.setattr("luckbase.jobs.terminal.MOMENT_SECONDS", float("inf"))
        monkeypatch.setattr("luckbase.jobs.terminal.A_MOMENT", float("inf"))


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory):
    """An object store of this process; one that is killed and paused is a test's own."""
    server = Seaweed(tmp_path_factory.mktemp("seaweed"))
    server.start(again=3)
    yield server
    server.kill()


@pytest.fixture
def bucket(seaweed, monkeypatch):
    """A URI under which there is nothing yet, in a real store; its keys are in the environment."""
    for name, value in seaweed.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{secrets.token_hex(6)}"
