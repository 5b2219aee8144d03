"""Keys of clouds, where their own tools take them: the environment, the tools' files, and the
metadata address of the cloud's machines, which is asked on a machine of that cloud alone: anywhere
else it does not answer, and the error of that says nothing.
"""

from __future__ import annotations

import os
from configparser import ConfigParser, Error
from contextlib import suppress
from pathlib import Path
from typing import Any

from luckbase.solver.errors import StoreError

HELP = "see docs/how-to/store.md for where keys are looked for"
_VENDOR = Path("/sys/class/dmi/id")
_OF_MACHINES = {"s3": "amazon", "gs": "google", "az": "microsoft"}
_S3 = {"access_key_id": "aws_access_key_id", "secret_access_key": "aws_secret_access_key",
       "session_token": "aws_session_token", "region": "region",
       "endpoint": "endpoint_url"}  # fmt: skip


def _has(*names: str) -> bool:
    return any(os.environ.get(name) for name in names)


def _require(scheme: str, found: bool, expected: str) -> None:
    """Raises StoreError where there are no credentials and this is no machine of the cloud."""
    if found:
        return
    for name in ("sys_vendor", "product_name", "bios_vendor"):
        with suppress(OSError):
            if _OF_MACHINES[scheme] in (_VENDOR / name).read_text().lower():
                return
    raise StoreError(f"{scheme}://: no credentials here; expected {expected}; {HELP}")


def _of_s3() -> dict[str, Any]:
    """What the profile in ~/.aws says, and the environment, which counts. Raises StoreError."""
    found: dict[str, Any] = {}
    profile = os.environ.get("AWS_PROFILE", "default")
    for variable, name, section in (
        ("AWS_CONFIG_FILE", "config", profile if profile == "default" else f"profile {profile}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
    ):
        file, read = os.environ.get(variable, f"~/.aws/{name}"), ConfigParser(interpolation=None)
        with suppress(OSError, Error):
            read.read(Path(file).expanduser())
            if read.has_section(section):
                found |= {ours: read[section][their] for ours, their in _S3.items()
                          if their in read[section]}  # fmt: skip
    if _has("AWS_ACCESS_KEY_ID"):
        found = {name: found[name] for name in ("region", "endpoint") if name in found}
    for name, variables in {
        "access_key_id": ["AWS_ACCESS_KEY_ID"],
        "secret_access_key": ["AWS_SECRET_ACCESS_KEY"],
        "session_token": ["AWS_SESSION_TOKEN"] * _has("AWS_ACCESS_KEY_ID"),
        "region": ["AWS_REGION", "AWS_DEFAULT_REGION"],
        "endpoint": ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
    }.items():
        if value := next(filter(None, map(os.environ.get, variables)), None):
            found[name] = value
    found.setdefault("region", "us-east-1")
    others = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE",
              "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
              "AWS_CONTAINER_CREDENTIALS_FULL_URI")  # fmt: skip
    there = _has(*others) or "access_key_id" in found
    _require("s3", there, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws")
    return found


def _of_gs() -> dict[str, Any]:
    """Nothing: obstore looks where gcloud puts them. Raises StoreError."""
    file = Path("~/.config/gcloud/application_default_credentials.json").expanduser()
    there = file.is_file() or _has(
        "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_SKIP_SIGNATURE",
    )  # fmt: skip
    _require("gs", there, "GOOGLE_APPLICATION_CREDENTIALS, or gcloud's own login")
    return {}


def _of_az() -> dict[str, Any]:
    """What a connection string says, and the names that Azure's tool has. Raises StoreError."""
    said = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    parts = dict(each.split("=", 1) for each in said.split(";") if "=" in each)
    env = os.environ.get
    named = {
        "account_name": parts.get("AccountName") or env("AZURE_STORAGE_ACCOUNT"),
        "account_key": parts.get("AccountKey") or env("AZURE_STORAGE_KEY"),
        "sas_key": parts.get("SharedAccessSignature") or env("AZURE_STORAGE_SAS_TOKEN"),
        "endpoint": parts.get("BlobEndpoint"),
    }
    found: dict[str, Any] = {name: value for name, value in named.items() if value}
    there = "account_key" in found or "sas_key" in found or _has(
        "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_CLIENT_ID",
        "AZURE_FEDERATED_TOKEN_FILE", "AZURE_SKIP_SIGNATURE",
    )  # fmt: skip
    _require("az", there, "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or a connection string")
    return found


def of(scheme: str) -> dict[str, Any]:
    """How a store of this kind is opened here. Raises StoreError."""
    found = {"s3": _of_s3, "gs": _of_gs, "az": _of_az}.get(scheme)
    return found() if found else {}
