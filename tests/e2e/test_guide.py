"""The page on clusters, word for word: in one command, and by hand on hosts of this machine; of the
script for Slurm, the settings."""

import re
import shutil
import subprocess
from importlib.util import find_spec

import pytest

from tests.e2e.hosts import NET, ROOT, SHORTER, Hosts, missing
from tests.e2e.test_hosts import DENSE, digests

PAGE = ROOT / "docs/how-to/cluster.md"
DASHBOARD = ("aiohttp", "aiohttp_cors", "opencensus")
NO_DASHBOARD = (
    "needs the packages of Ray's dashboard: pip install -c constraints.txt 'ray[default]'"
)
pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def blocks(heading):
    """The blocks of commands below a heading of the page, but the installation."""
    part = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    result = re.findall(r"^```sh\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    return [block for block in result if "pip install" not in block]


def test_the_settings_of_the_page_are_those_of_the_tests():
    for block in (blocks("By hand")[0], blocks("By Slurm")[0]):
        assert dict(re.findall(r"\b(RAY_[a-z_]+ms|RAY_[a-z_]+threshold)=(\d+)", block)) == SHORTER
        subprocess.run(["bash", "-n"], input=block, text=True, check=True)


@pytest.fixture
def hosts(on_disk):
    """Three hosts that share a home folder, in which `boards` lies; Ray is not started."""
    created = Hosts(on_disk)
    try:
        home = on_disk / "home"
        home.mkdir()
        (home / "boards").symlink_to(ROOT / "boards")
        for name in ("head", "node1", "node2"):
            created.make(
                name, env={"HOME": str(home), "RAY_AUTH_MODE": "", "RAY_AUTH_TOKEN_PATH": ""}
            )
        yield created
    finally:
        created.down()


def script(hosts, name, *texts, timeout=600):
    """Blocks of the page as one script on a host."""
    text = "cd\n" + "\n".join(texts).replace("192.0.2.10", f"{NET}.1")
    done = hosts.run(name, ["bash", "-euo", "pipefail", "-c", text], timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.mark.slow
def test_by_hand(hosts, table_of):
    settings, head, other, solve, stop = blocks("By hand")
    script(hosts, "head", settings, head)
    script(hosts, "node1", settings, other)
    script(hosts, "node2", settings, other)
    text = script(hosts, "head", settings, solve)
    assert "complete" in text
    clean = table_of(ROOT / f"boards/{DENSE[0]}.toml", **DENSE[1])
    assert digests(hosts.folder / "home/results") == digests(clean)
    for name in ("node1", "node2", "head"):
        script(hosts, name, stop)


@pytest.mark.slow
@pytest.mark.skipif(not all(map(find_spec, DASHBOARD)), reason=NO_DASHBOARD)
def test_in_one_command(on_disk, table_of):
    """Sent to the dashboard of a host that listens on its loopback address alone. The home folder
    has the token and the boards; with another token nothing is sent."""
    hosts, home = Hosts(on_disk), on_disk / "head/home"
    job = blocks("In one command")[0]
    try:
        hosts.make("head", compiled=True, env={"FIRST": "127.0.0.1", "RESULTS": f"{on_disk}/job"})
        (home / "boards").symlink_to(ROOT / "boards")
        (home / ".ray").mkdir()
        shutil.copy(on_disk / "token", home / ".ray/auth_token")
        start = blocks("By hand")[1].splitlines()[1]
        assert "--include-dashboard=false" in start
        script(
            hosts, "head", start.replace("--include-dashboard=false", '--dashboard-host="$FIRST"')
        )
        text = script(hosts, "head", job)
        assert "succeeded" in text and "42.9 million states" in text
        (home / ".ray/auth_token").write_text("f" * 48)
        with pytest.raises(AssertionError, match="Invalid authentication token"):
            script(hosts, "head", job)
    finally:
        hosts.down()
    clean = table_of(ROOT / f"boards/{DENSE[0]}.toml", **DENSE[1])
    assert digests(on_disk / "job") == digests(clean)
