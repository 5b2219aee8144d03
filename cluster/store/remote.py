"""Tables in an object store or on a web server: `storage.Storage` with obstore.

Observed behaviour of obstore 0.12, and how this module handles it:

* Lists match whole segments of names and exclude the name itself.
* A range beyond the end returns fewer bytes without an error.
* A conditional put is not retried after a timeout but may have succeeded. The object is read back
  to learn who wrote it.
* A store may answer 409 although no object exists. The request is repeated.
* Reading from a missing bucket looks like reading a missing object. The text of the answer is
  examined.
* Without credentials, it queries the cloud's metadata address, which fails with an unhelpful error
  on other machines. `credentials` allows this only on a machine of that cloud.
* Its threads do not survive a fork (`Objects._store`).
* Its own retries give up after 2 s if a server is down. Here, a store that has answered before gets
  three minutes.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
from collections.abc import Iterator
from configparser import ConfigParser, Error
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import obstore
from obstore import exceptions
from obstore.store import AzureStore, GCSStore, HTTPStore, MemoryStore, S3Store

from luckbase.cluster.store.storage import READ_ONLY, Storage, Stored, attempt, check_small
from luckbase.solver.errors import CorruptTableError, StoreError

Store = Any  # one of obstore's
TIMEOUT = "120s"
"""Maximum time without a byte of an answer, from the start of a request."""
PATIENT = {"tries": 60, "seconds": 180.0}
FIRST = {"tries": 8, "seconds": 12.0}
"""Limits of retries; before a store has answered for the first time, the second ones."""
_SAID = re.compile(r"<Code>(\w+)</Code>|\(code: (\w+)\)")
_STATUS = re.compile(r"status code: (\d+)")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_KEYS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
         "AuthenticationFailed", "InvalidAuthenticationInfo")  # fmt: skip
_FULL = ("QuotaExceeded", "InsufficientStorage", "code: 507", "no space left", "StorageFull")
_NOISE = re.compile(r".* in [\d.]+\S?s - ")
_ENDPOINT = re.compile(r"https?://[\w.:\[\]-]+(/[\w./-]*)?", re.ASCII)
"""obstore panics at endpoints without a scheme."""
_SERVER_TIME = re.compile(r"<ServerTime>([^<]+)</ServerTime>")
_MINUTE = "%Y-%m-%d %H:%M"
_AWAY = ("error sending request", "timed out", "connection")
KEYS_HELP = "see docs/how-to/store.md for where keys are looked for"
_VENDOR = Path("/sys/class/dmi/id")
_OF_MACHINES = {"s3": "amazon", "gs": "google", "az": "microsoft"}
_S3 = {"access_key_id": "aws_access_key_id", "secret_access_key": "aws_secret_access_key",
       "session_token": "aws_session_token", "region": "region",
       "endpoint": "endpoint_url"}  # fmt: skip
_process = os.getpid()
_answered: set[tuple[str, str]] = set()


@cache
def _store(scheme: str, bucket: str, patient: bool, config: tuple[tuple[str, Any], ...]) -> Store:
    again = PATIENT if patient else FIRST
    backoff = {"init_backoff": timedelta(seconds=0.5), "max_backoff": timedelta(seconds=3)}
    how: dict[str, Any] = {
        "client_options": {"allow_http": True, "timeout": "1h", "read_timeout": TIMEOUT,
                           "connect_timeout": "5s"},
        "retry_config": {"max_retries": again["tries"], "backoff": {**backoff, "base": 1.5},
                         "retry_timeout": timedelta(seconds=again["seconds"])},
    }  # fmt: skip
    if scheme == "memory":
        return MemoryStore()
    if scheme in READ_ONLY:
        return HTTPStore(f"{scheme}://{bucket}", **how)
    kind = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}[scheme]
    return kind(bucket, **dict(config), **how)


class Objects(Storage):
    """Objects under a prefix of a bucket, or under a read-only web address."""

    anywhere = True

    def __init__(self, scheme: str, bucket: str, prefix: str = "") -> None:
        """Raises StoreError if there are no credentials."""
        self.scheme, self.bucket, self.prefix = scheme, bucket, prefix
        self.where = "/".join(filter(None, [f"{scheme}://{bucket}", prefix]))
        self.lists = scheme not in READ_ONLY
        self._config = tuple(credentials(scheme).items())
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def at(cls, path: Path) -> Objects:
        """Return the storage at a path that is a URI."""
        scheme, bucket, *prefix = path.parts
        return cls(scheme.rstrip(":"), bucket, "/".join(prefix))

    @property
    def _store(self) -> Store:
        if os.getpid() != _process:
            raise StoreError(
                "this process was forked from one that used a store, whose connections it has not; "
                "start it by multiprocessing's spawn"
            )
        place = self.scheme, self.bucket
        patient = self.scheme == "memory" or place in _answered  # there is only one memory store
        return _store(*place, patient, self._config)

    def _key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name

    @contextmanager
    def _errors(self, name: str, does: str = "read") -> Iterator[None]:
        """Convert obstore's errors to StoreError, or FileNotFoundError if the bucket exists."""
        try:
            yield
        except (FileNotFoundError, exceptions.BaseError, ValueError) as error:
            message = str(error)
            no_bucket = any(code in message for code in _NO_BUCKET)
            if isinstance(error, FileNotFoundError) and not no_bucket:
                _answered.add((self.scheme, self.bucket))
                where = f"{self.where}/{name}"
                raise FileNotFoundError(errno.ENOENT, "is not there", where) from None
            if any(word in message for word in ("code: 416", "InvalidRange", "StartTooLarge")):
                raise CorruptTableError(f"{self.where}/{name}: is shorter than it was") from None
            raise StoreError(f"{self.where}: {self._reason(message, does)}") from error
        _answered.add((self.scheme, self.bucket))

    def _reason(self, message: str, does: str) -> str:
        status = _STATUS.search(message)
        if self.scheme in READ_ONLY and status and status[1] in ("401", "403"):
            return f"its server lets nobody read there without a login ({status[1]})"
        if "RequestTimeTooSkewed" not in message:
            return _reason(message, does)
        now = datetime.now(UTC)
        stamps = _SERVER_TIME.findall(message) or [_date_of(dict(self._config).get("endpoint"))]
        with suppress(ValueError):
            clock = f"{datetime.fromisoformat(stamps[0]).astimezone(UTC):{_MINUTE}}"
            return (
                f"the clock of this machine says {now:{_MINUTE}} UTC, that of the store {clock}; "
                "set the wrong one, then again"
            )
        return (
            f"the clock of this machine says {now:{_MINUTE}} UTC, too far off for the store; set "
            "it, then again"
        )

    def check_writable(self) -> None:
        if self.scheme in READ_ONLY:
            raise StoreError(
                f"{self.where}: is only read; expected a folder, s3://, gs:// or az://"
            )

    # --- read ----------------------------------------------------------------------------------

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        with self._errors(name):
            if stop is None:
                return bytes(obstore.get(self._store, self._key(name)).bytes())[start:]
            if stop <= start:
                return b""
            content = bytes(obstore.get_range(self._store, self._key(name), start=start, end=stop))
        if len(content) != stop - start:
            ends = f"ends at byte {start + len(content)} and should have {stop}"
            raise CorruptTableError(f"{self.where}/{name}: {ends}")
        return content

    def read_tagged(self, name: str) -> tuple[bytes, str]:
        with self._errors(name):
            answer = obstore.get(self._store, self._key(name))
            check_small(f"{self.where}/{name}", answer.meta["size"])
            return bytes(answer.bytes()), str(answer.meta["e_tag"])

    def has(self, name: str) -> bool:
        try:
            with self._errors(name):  # `head` would not report a missing bucket
                obstore.get(self._store, self._key(name))
        except FileNotFoundError:
            return False
        return True

    def details(self, prefix: str = "") -> dict[str, Stored]:
        self._lists()
        folder = self._key(prefix).rpartition("/")[0]
        path, root = self._key(prefix), self._key("")
        details = {}
        with self._errors(prefix, "list"):
            for page in obstore.list(self._store, folder or None):
                for each in page:
                    if each["path"].startswith(path):
                        stored = Stored(each["size"], each["last_modified"].timestamp())
                        details[each["path"].removeprefix(root)] = stored
        return dict(sorted(details.items()))

    def names(self) -> list[str]:
        """Return the distinct first segments of the names."""
        self._lists()
        with self._errors("", "list"):
            listing = obstore.list_with_delimiter(self._store, self.prefix or None)
        paths = [*listing["common_prefixes"], *(each["path"] for each in listing["objects"])]
        return sorted({path.rpartition("/")[2] for path in paths})

    def _lists(self) -> None:
        if not self.lists:
            raise StoreError(
                f"{self.where}: a web server does not say what it has; expected the URI of one "
                "table that luckbase publish wrote there"
            )

    # --- write ---------------------------------------------------------------------------------

    def put(self, name: str, content: bytes | Path) -> None:
        self.check_writable()
        with self._errors(name, "write"):
            # A killed upload in several parts would leave them in the bucket, unseen.
            obstore.put(self._store, self._key(name), content, use_multipart=False)
        if isinstance(content, Path):
            content.unlink(missing_ok=True)

    def _alone(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()  # stores cannot delete conditionally

    def swap(self, name: str, content: bytes, tag: str | None) -> str | None:
        """As `Storage.swap`. If the answer is lost, the request may have succeeded. So after every
        answer except success, the object is read back. The request is repeated if the store refuses
        although no object exists (409), or if the object is unchanged after a lost answer.
        """
        self.check_writable()
        mode: Any = "create" if tag is None else {"e_tag": tag}
        end = time.monotonic() + PATIENT["seconds"]
        for tries in count():
            why = f"does not say whether {name} was written"
            refused = False
            try:
                done = obstore.put(self._store, self._key(name), content, mode=mode)
                _answered.add((self.scheme, self.bucket))
                return str(done["e_tag"])
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                refused = True
            except (FileNotFoundError, exceptions.BaseError) as error:
                if _is_final(error):
                    with self._errors(name, "write"):
                        raise
                why = self._reason(str(error), "write")
            try:
                stored, now = self.read_tagged(name)
            except FileNotFoundError:
                stored, now = None, ""
            if stored == content:
                return now
            if stored is None and refused and tag is not None:
                return None
            if stored is not None and (refused or now != tag):
                return None
            if time.monotonic() > end:
                raise StoreError(f"{self.where}: {why}")
            time.sleep(min(3.0, 0.1 * 1.5**tries))
        raise AssertionError

    def delete(self, name: str) -> None:
        self.check_writable()
        with suppress(FileNotFoundError), self._errors(name, "delete"):
            obstore.delete(self._store, self._key(name))

    def temporary(self, name: str) -> Path:
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="luckbase-")
        return Path(self._temporary.name) / f"{name.replace('/', ',')[-80:]}.{attempt()}.part"


def _date_of(endpoint: str | None) -> str:
    """Return a server's time as ISO 8601, from the date of an answer; "" if it has none."""
    import urllib.error  # also imports ssl and email: do so only if needed
    import urllib.request
    from email.utils import parsedate_to_datetime

    try:
        request = urllib.request.Request(endpoint or "", method="HEAD")
        with urllib.request.urlopen(request, timeout=5) as answer:
            date = answer.headers["Date"]
    except urllib.error.HTTPError as error:
        date = error.headers["Date"]
    except (OSError, ValueError):
        date = None
    return parsedate_to_datetime(date).isoformat() if date else ""


def _is_final(error: Exception) -> bool:
    message = str(error)
    status = next(iter(_STATUS.findall(message)), "")
    refused = status.startswith("4") and status not in ("408", "409", "429")
    return refused or any(word in message for word in _FULL)


def _reason(message: str, does: str) -> str:
    code = next((a or b for a, b in _SAID.findall(message)), "")
    status = next(iter(_STATUS.findall(message)), "")
    first = message.partition("\n\nDebug")[0]
    again = "the same command resumes once it does"
    reasons: list[tuple[bool, str]] = [
        (code in _NO_BUCKET, "there is no such bucket; make it first, or write another"),
        (code in _KEYS or status == "401",
         f"the store does not take the key ({code or status}); {KEYS_HELP}"),
        (code == "AccessDenied" or status == "403",
         f"the key may not {does} there; expected one that may"),
        (any(word in message for word in _FULL),
         "the store is full; make room there, then the same command resumes"),
        ("range" in first.lower() and "support" in first.lower(),
         "the server does not give parts of files; expected one that answers ranges"),
        ("InvalidCertificate" in message, "the certificate of its server is not trusted on this "
         "machine; expected one that is, or its authority's in a file that SSL_CERT_FILE names"),
        ("body error" in first, "an answer was cut off on its way; try again"),
        (any(w in message.lower() for w in _AWAY) and not status, f"does not answer; {again}"),
        (status.startswith("5") and does == "write",
         f"has answered {status} for a while, as many do that are full: make room there, or see "
         "its log; then the same command resumes"),
        (status.startswith("5"), f"has answered {status} for a while; {again}"),
    ]  # fmt: skip
    if sentence := next((text for applies, text in reasons if applies), ""):
        return sentence
    return " ".join(re.sub(r"<[^>]*>", " ", _NOISE.sub("", first)).split())[:200]


# --- keys, where the clouds' own tools take them: the environment, and the tools' files ----------


def _has(*names: str) -> bool:
    return any(os.environ.get(name) for name in names)


def _require(scheme: str, present: bool, expected: str) -> None:
    """Raise StoreError without credentials, unless this machine belongs to the cloud."""
    if present:
        return
    for name in ("sys_vendor", "product_name", "bios_vendor"):
        with suppress(OSError):
            if _OF_MACHINES[scheme] in (_VENDOR / name).read_text().lower():
                return
    raise StoreError(f"{scheme}://: no credentials here; expected {expected}; {KEYS_HELP}")


def _of_s3() -> dict[str, Any]:
    """Return the settings in ~/.aws, overridden by the environment. Raises StoreError."""
    config: dict[str, Any] = {}
    profile = os.environ.get("AWS_PROFILE", "default")
    for variable, name, section in (
        ("AWS_CONFIG_FILE", "config", profile if profile == "default" else f"profile {profile}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
    ):
        file, parser = os.environ.get(variable, f"~/.aws/{name}"), ConfigParser(interpolation=None)
        with suppress(OSError, Error):
            parser.read(Path(file).expanduser())
            if parser.has_section(section):
                config |= {ours: parser[section][their] for ours, their in _S3.items()
                          if their in parser[section]}  # fmt: skip
    if _has("AWS_ACCESS_KEY_ID"):
        config = {name: config[name] for name in ("region", "endpoint") if name in config}
    for name, variables in {
        "access_key_id": ["AWS_ACCESS_KEY_ID"],
        "secret_access_key": ["AWS_SECRET_ACCESS_KEY"],
        "session_token": ["AWS_SESSION_TOKEN"] * _has("AWS_ACCESS_KEY_ID"),
        "region": ["AWS_REGION", "AWS_DEFAULT_REGION"],
        "endpoint": ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
    }.items():
        if value := next(filter(None, map(os.environ.get, variables)), None):
            config[name] = value
    config.setdefault("region", "us-east-1")
    others = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE",
              "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
              "AWS_CONTAINER_CREDENTIALS_FULL_URI")  # fmt: skip
    present = _has(*others) or {"access_key_id", "secret_access_key"} <= config.keys()
    _require("s3", present, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws")
    return config


def _of_gs() -> dict[str, Any]:
    """Return no settings: obstore finds gcloud's own. Raises StoreError."""
    file = Path("~/.config/gcloud/application_default_credentials.json").expanduser()
    present = file.is_file() or _has(
        "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_SKIP_SIGNATURE",
    )  # fmt: skip
    _require("gs", present, "GOOGLE_APPLICATION_CREDENTIALS, or gcloud's own login")
    return {}


def _of_az() -> dict[str, Any]:
    """Return settings from a connection string or the Azure CLI's variables. Raises StoreError."""
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    parts = dict(each.split("=", 1) for each in text.split(";") if "=" in each)
    env = os.environ.get
    named = {
        "account_name": parts.get("AccountName") or env("AZURE_STORAGE_ACCOUNT"),
        "account_key": parts.get("AccountKey") or env("AZURE_STORAGE_KEY"),
        "sas_key": parts.get("SharedAccessSignature") or env("AZURE_STORAGE_SAS_TOKEN"),
        "endpoint": parts.get("BlobEndpoint"),
    }
    config: dict[str, Any] = {name: value for name, value in named.items() if value}
    present = "account_key" in config or "sas_key" in config or _has(
        "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_CLIENT_ID",
        "AZURE_FEDERATED_TOKEN_FILE", "AZURE_SKIP_SIGNATURE",
    )  # fmt: skip
    _require("az", present, "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or a connection string")
    return config


def credentials(scheme: str) -> dict[str, Any]:
    """Return the settings to open a store of this kind. Raises StoreError."""
    find = {"s3": _of_s3, "gs": _of_gs, "az": _of_az}.get(scheme)
    config = find() if find else {}
    endpoint = config.get("endpoint")
    if endpoint and not _ENDPOINT.fullmatch(endpoint):
        raise StoreError(
            f"{scheme}://: its endpoint is '{endpoint[:60]}'; expected one as http://HOST:PORT"
        )
    return config
