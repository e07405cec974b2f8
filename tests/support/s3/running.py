"""Servers of objects for the tests, started and ended, and looks at what they hold."""

from __future__ import annotations

import base64
import hmac
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import requests

from acquatop.engine.state.place import RemotePlace, state_place
from connectors.object_store.address import HDFS, StoreAddress
from connectors.object_store.opening import PROVIDERS
from tests.support.hdfs.files import files_below

SERVER = Path(__file__).with_name("server.py")
BUCKET = "bucket"
KEY, SECRET = "AKIDEXAMPLE", "xyzzy/plugh+SECRET"

AZURITE = os.environ.get("ACQUATOP_AZURITE")
"""The program of Azurite (``dist/src/blob/main.js`` of its npm package), if it is there."""
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""Azurite's own account, whose key it publishes."""

PACKAGES = Path(os.environ.get("ACQUATOP_S3_SERVER") or Path(sys.prefix, "s3"))
"""Folder of the server's packages, in which ``./run test`` installs them (``locks/s3.lock``)."""
MISSING = [
    *([] if find_spec("obstore") else ["obstore"]),
    *([] if (PACKAGES / "moto").is_dir() else ["moto"]),
]
"""Packages that the server and its clients need, and that are not here."""


def environment(port: int) -> dict[str, str]:
    """Return the variables that name a server of any protocol, and keys."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port}/{ACCOUNT}",
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
        "WEBHDFS_ENDPOINT": f"http://127.0.0.1:{port}",
    }


@contextmanager
def s3_server() -> Iterator[int]:
    """Run a server with an empty bucket, and yield its port."""
    command, own = [sys.executable, SERVER], {"PYTHONPATH": str(PACKAGES)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **own}
    ) as server:
        try:
            assert server.stdout is not None
            yield int(server.stdout.readline())
        finally:
            server.kill()


@contextmanager
def azure_server() -> Iterator[int]:
    """Run Azurite with an empty container, and yield its port."""
    assert AZURITE is not None, "the fixture skips"
    options = ["--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    command = [shutil.which("node") or "node", AZURITE, "--blobPort", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = next(line for line in server.stdout if "successfully listens" in line)
            port = int(said.rstrip().rpartition(":")[2])
            _make_container(port)
            yield port
        finally:
            server.kill()


def _make_container(port: int) -> None:
    """Make a container by a request of Azure's protocol, which the library cannot make."""
    path, version = f"/{ACCOUNT}/{BUCKET}", "2021-08-06"
    date = formatdate(usegmt=True)
    signed = (
        "PUT" + 12 * "\n" + f"x-ms-date:{date}\nx-ms-version:{version}\n"
        f"/{ACCOUNT}{path}\nrestype:container"
    )
    digest = hmac.digest(base64.b64decode(ACCOUNT_KEY), signed.encode(), "sha256")
    signature = base64.b64encode(digest).decode()
    made = requests.put(
        f"http://127.0.0.1:{port}{path}?restype=container",
        headers={
            "x-ms-date": date,
            "x-ms-version": version,
            "Authorization": f"SharedKey {ACCOUNT}:{signature}",
        },
        timeout=30,
    )
    made.raise_for_status()


@contextmanager
def pointing_to(port: int) -> Iterator[None]:
    """Let this process's environment, and that of programs it starts, name a server."""
    with patch.dict(os.environ, environment(port)):
        yield


def new_place(lease: str = "1s", scheme: str = "s3") -> RemotePlace:
    """Return a place in the bucket that nobody has used."""
    found = state_place(f"{scheme}://{BUCKET}/tests/{uuid.uuid4().hex}?lease={lease}")
    assert isinstance(found, RemotePlace)
    return found


def held(address: StoreAddress) -> dict[str, bytes]:
    """Return all objects below an address, by name."""
    if address.scheme == HDFS:
        return files_below(address)
    import obstore

    provider = PROVIDERS[address.scheme]
    endpoint = next(os.environ[name] for name in provider.endpoints if name in os.environ)
    store = provider.open(address, endpoint, {"client_options": {"allow_http": True}})
    names = [each["path"] for each in obstore.list(store).collect()]
    return {name: bytes(obstore.get(store, name).bytes()) for name in names}
