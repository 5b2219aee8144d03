"""Several hosts on one machine, for tests of a Ray cluster: Linux namespaces, joined by a bridge.

A host has network, processes, mounts and a name of its own, its own ``/tmp/ray``, ``/dev/shm``,
``TMPDIR`` and home folder, and if asked its own disk in the place of the shared folder. The bridge
lies in a namespace of its own, so nothing is added to the machine's network, and a host is killed
by killing its init: nothing else is touched. Needs root, iproute2 and util-linux; `missing` says
what lacks.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from luckbase.solver.compiled import cache_folder
from tests.places import ROOT
from tests.shared import RAY

NET, PORT = "10.78.0", 6379
SHORTER = {
    "RAY_grpc_client_keepalive_time_ms": "5000",
    "RAY_grpc_client_keepalive_timeout_ms": "5000",
    "RAY_health_check_period_ms": "2000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "3",
}
"""The settings that the guide gives (docs/how-to/cluster.md), with which a host that was cut off is
given up sooner."""


def missing():
    """Why there can be no hosts here; "" where there can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "hosts are made of Linux namespaces, by root"
    for tool in ("ip", "nsenter", "unshare"):
        if shutil.which(tool) is None:
            return f"hosts need {tool} (iproute2, util-linux)"
    tried = subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True)
    return "" if tried.returncode == 0 else "hosts need the right to make namespaces"


class Hosts:
    """The hosts of a cluster, by name; `head` has Ray's head. shared: the folder that all see, or
    see their own of where `private`."""

    def __init__(self, folder, *, private=False, env={}):
        self.folder, self.shared, self.private = folder, folder / "results", private
        self.env = dict(env)
        self.inits = {}
        self.pids = {}
        self.started = []
        self.numbers = {}
        self.envs = {}
        self.cores = {}
        self.shared.mkdir(parents=True, exist_ok=True)
        (folder / "token").write_text(secrets.token_hex(24))
        (folder / "token").chmod(0o600)
        (folder / "hosts").write_text("127.0.0.1 localhost\n")
        self._spawn("switch", "--net")
        self._inside_net(
            "switch", "ip link set lo up; ip link add br0 type bridge; ip link set br0 up"
        )

    @property
    def address(self):
        return f"{NET}.1:{PORT}"

    # --- hosts -------------------------------------------------------------------------------

    def _spawn(self, name, *flags):
        idle = "trap : HUP INT TERM; while :; do sleep 3600; done"
        if "--pid" not in flags:  # what it starts would outlive it
            idle = "exec sleep infinity"
        init = subprocess.Popen(
            ["unshare", *flags, "--fork", "--kill-child", "bash", "-c", idle],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self.inits[name] = init
        children = Path(f"/proc/{init.pid}/task/{init.pid}/children")
        mine = os.readlink("/proc/self/ns/net")
        for _ in range(3000):
            result = children.read_text().split()
            if result and os.readlink(f"/proc/{result[0]}/ns/net") != mine:
                self.pids[name] = int(result[0])
                return
            time.sleep(0.02)
        raise RuntimeError(f"{name}: its namespaces did not come up")

    def _inside_net(self, name, script):
        subprocess.run(
            ["nsenter", "-t", str(self.pids[name]), "-n", "sh", "-ec", script],
            check=True, capture_output=True,
        )  # fmt: skip

    def make(self, name, *, env={}, private=None, compiled=False, core=None):
        """A host without Ray. private: with a disk of its own (as all). compiled: with what is
        compiled on this machine, where it keeps what it compiles. core: the one core of this
        machine that it runs on."""
        if core is not None:
            self.cores[name] = core
        number = self.numbers.setdefault(name, len(self.numbers) + 1)
        self._spawn(name, "--net", "--pid", "--mount", "--uts", "--mount-proc")
        pid, link = self.pids[name], f"v{number}"
        self.envs[name] = dict(env)
        subprocess.run(
            ["nsenter", "-t", str(self.pids["switch"]), "-n", "ip", "link", "del", link],
            capture_output=True,
        )  # fmt: skip
        self._inside_net("switch", f"ip link add {link} type veth peer name eth0 netns {pid}; "
                         f"ip link set {link} master br0 up")  # fmt: skip
        self._inside_net(name, f"ip link set lo up; ip addr add {NET}.{number}/24 dev eth0; "
                         "ip link set eth0 up")  # fmt: skip
        own = self.folder / name
        for inner in ("disk", "home", "tmp"):
            (own / inner).mkdir(parents=True, exist_ok=True)
        Path("/tmp/ray").mkdir(exist_ok=True)
        with (self.folder / "hosts").open("a") as file:
            file.write(f"{NET}.{number} test-{name}\n")
        mounts = (
            f"hostname test-{name}; mount --make-rprivate /; "
            f"mount --bind {self.folder / 'hosts'} /etc/hosts; "
            "mount -t tmpfs -o size=2g,mode=1777 tmpfs /dev/shm; "
            "mount -t tmpfs -o size=6g tmpfs /tmp/ray; "
        )
        if self.private if private is None else private:
            mounts += f"mount --bind {own / 'disk'} {self.shared}; "
        if compiled:
            here = cache_folder()  # of this version; others have hundreds of megabytes
            there = own / "home/.cache/luckbase/compiled" / here.name
            there.mkdir(parents=True, exist_ok=True)
            mounts += f"mount --bind {here} {there}"
        subprocess.run(
            ["nsenter", "-t", str(pid), "-m", "-u", "sh", "-ec", mounts], check=True,
            capture_output=True,
        )  # fmt: skip

    def ray(self, name, cpus, store=200_000_000):
        """Start Ray on a host; on `head` its head."""
        words = ["--head", f"--port={PORT}", "--include-dashboard=false", "--no-monitor"]
        if name != "head":
            words = [f"--address={self.address}"]
        done = self.run(
            name, ["ray", "start", f"--node-ip-address={NET}.{self.numbers[name]}",
                   f"--num-cpus={cpus}", f"--object-store-memory={store}",
                   "--disable-usage-stats", "--include-log-monitor=false", *words],
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(
                f"{name}: ray did not start: {done.stdout[-600:]} {done.stderr[-600:]}"
            )

    def add(self, name, cpus=1, **how):
        """A host with Ray."""
        self.make(name, **how)
        self.ray(name, cpus)

    def down(self):
        """End everything that was made."""
        for init in self.inits.values():
            init.kill()
        for pid in self.pids.values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for init in self.inits.values():
            init.wait()

    # --- commands ----------------------------------------------------------------------------

    def _words(self, name, command):
        env = {
            "HOME": str(self.folder / name / "home"), "RAY_AUTH_MODE": "token",
            "TMPDIR": str(self.folder / name / "tmp"), "RAY_TMPDIR": "/tmp",  # short, for sockets
            "RAY_AUTH_TOKEN_PATH": str(self.folder / "token"), "LANG": "C.UTF-8",
            "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **RAY, **self.env, **self.envs[name],
        }  # fmt: skip
        text = [f"{key}={value}" for key, value in env.items() if value]
        inside = ["-t", str(self.pids[name]), "-n", "-m", "-p", "-u", f"--wd={self.folder}"]
        core = ["taskset", "-c", str(self.cores[name])] if name in self.cores else []
        return ["nsenter", *inside, "--", *core, "env", "-i", *text, *command]

    def run(self, name, command, timeout=600):
        """A command on a host, to its end."""
        return subprocess.run(
            self._words(name, command), capture_output=True, text=True, timeout=timeout,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self, name, command, log):
        """A command on a host that goes on; what it prints goes to `log`."""
        with log.open("wb") as out:
            process = subprocess.Popen(
                self._words(name, command), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        self.started.append(process)
        return process

    def disk(self, name):
        """What the host has in the place of the shared folder, as this machine sees it."""
        return self.folder / name / "disk" if self.private else self.shared

    def stage_files(self, name):
        """The stage files on a host's own disk."""
        return [path.name for path in (self.folder / name / "tmp").rglob("*.arrow")]

    def processes(self, name):
        """What runs on a host, by this machine's numbers."""
        own = os.readlink(f"/proc/{self.pids[name]}/ns/pid")
        result = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(path / "ns/pid") == own:
                    result.append(int(path.name))
            except OSError:
                continue
        return result

    # --- faults ------------------------------------------------------------------------------

    def leave(self, name):
        """Ray on a host ends in good order, so that the head knows at once."""
        for pid in self.processes(name):
            with suppress(OSError):
                while Path(f"/proc/{pid}/comm").read_text() == "raylet\n":
                    os.kill(pid, signal.SIGTERM)
                    time.sleep(0.2)

    def kill(self, name):
        """All of the host ends at once; its peers see connections close."""
        os.kill(self.pids[name], signal.SIGKILL)
        self.inits[name].wait()

    def link(self, name, state):
        """Take a host's link down or up."""
        self._inside_net("switch", f"ip link set v{self.numbers[name]} {state}")

    def power_off(self, name):
        """As a power cut: its peers hear nothing."""
        self.link(name, "down")
        self.kill(name)

    def stop(self, name, *, go_on=False):
        """Suspend all of a host, or let it go on."""
        for _ in range(3):  # again: a process may have been born meanwhile
            for pid in self.processes(name):
                try:
                    os.kill(pid, signal.SIGCONT if go_on else signal.SIGSTOP)
                except ProcessLookupError:
                    continue
        for process in self.started if go_on else ():  # nsenter stops with what it waits for
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)


@contextmanager
def cluster(folder, nodes=("node1", "node2"), *, compiled=False, **how):
    """A head and nodes of one core each, for as long as this lasts; the head has what is compiled
    on this machine, the nodes if `compiled`. nodes: by name, or how each is made too."""
    hosts = Hosts(folder, **how)
    try:
        hosts.add("head", compiled=True)
        plain = {name: {"compiled": compiled} for name in nodes}
        created = nodes if isinstance(nodes, Mapping) else plain
        for name, each in created.items():
            hosts.make(name, **each)
        with ThreadPoolExecutor() as pool:  # they mostly wait for the head
            list(pool.map(lambda name: hosts.ray(name, 1), nodes))
        yield hosts
    finally:
        hosts.down()
