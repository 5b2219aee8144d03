"""The page on clusters, word for word: in one command, by hand on hosts of this machine, and under
Slurm."""

import re
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

from tests.e2e.hosts import NET, ROOT, SHORTER, Hosts, missing
from tests.e2e.test_hosts import DENSE, digests

PAGE = ROOT / "docs/how-to/cluster.md"
NO_SLURM = "needs slurmctld, slurmd and munged (Debian: slurm-wlm, munge)"
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


@pytest.mark.slow
@pytest.mark.skipif(not all(map(shutil.which, ("slurmctld", "slurmd", "munged"))), reason=NO_SLURM)
def test_by_slurm(hosts, table_of):
    """As root, without accounts: Slurm's daemons on the hosts, one munged for all."""
    folder, home = hosts.folder / "slurm", hosts.folder / "home"
    folder.mkdir(mode=0o755)
    names = [f"test-{name}" for name in ("head", "node1", "node2")]
    (folder / "key").write_bytes(b"k" * 128)
    (folder / "key").chmod(0o600)
    munged = subprocess.Popen(
        ["munged", "--foreground", "--force", f"--key-file={folder}/key",
         f"--socket={folder}/munge", f"--pid-file={folder}/munged.pid",
         f"--seed-file={folder}/seed", f"--log-file={folder}/munged.log"],
    )  # fmt: skip
    conf = folder / "slurm.conf"
    conf.write_text(
        f"ClusterName=test\nSlurmctldHost=test-head({NET}.1)\nSlurmUser=root\nSlurmdUser=root\n"
        f"AuthType=auth/munge\nAuthInfo=socket={folder}/munge\nMpiDefault=none\n"
        f"StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/%n\n"
        f"SlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/%n.pid\n"
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nReturnToService=2\n"
        "SelectType=select/cons_tres\nSlurmdParameters=config_overrides\n"
        + "".join(f"NodeName={name} NodeAddr={NET}.{i + 1} CPUs=1 State=UNKNOWN\n"
                  for i, name in enumerate(names))
        + "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
    )  # fmt: skip
    env = ["env", f"SLURM_CONF={conf}"]
    daemons = [hosts.start("head", [*env, "slurmctld", "-D"], folder / "ctld.log")]
    try:
        for name, host in zip(names, ("head", "node1", "node2"), strict=True):
            command = [*env, "slurmd", "-D", "-N", name]
            daemons.append(hosts.start(host, command, folder / f"{name}.log"))
        script(hosts, "head", blocks("By hand")[1].splitlines()[0])  # the token
        (home / "solve.sh").write_text(blocks("By Slurm")[0])
        began = time.monotonic()
        while True:
            send = f"cd && SLURM_CONF={conf} sbatch --wait solve.sh"
            done = hosts.run("head", ["bash", "-c", send], timeout=300)
            if "Submitted" in done.stdout or time.monotonic() - began > 30:
                break
            time.sleep(1)
        logs = "".join(path.read_text() for path in [*home.glob("slurm-*.out"),
                                                     *folder.glob("*.log")])  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr + logs
    finally:
        for daemon in daemons:
            daemon.kill()
        munged.kill()
        munged.wait()
    clean = table_of(ROOT / f"boards/{DENSE[0]}.toml", **DENSE[1])
    assert digests(home / "results") == digests(clean), logs
    assert sys.platform == "linux"
