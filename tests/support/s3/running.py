"""S3 server of the tests, started and ended, and looks at what it holds."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from acquatop.engine.state.place import RemotePlace, state_place
from connectors.object_store.address import StoreAddress

SERVER = Path(__file__).with_name("server.py")
BUCKET = "bucket"
KEY, SECRET = "AKIDEXAMPLE", "xyzzy/plugh+SECRET"

PACKAGES = Path(os.environ.get("ACQUATOP_S3_SERVER") or Path(sys.prefix, "s3"))
"""Folder of the server's packages, in which ``./run test`` installs them (``locks/s3.lock``)."""
MISSING = [
    *([] if find_spec("obstore") else ["obstore"]),
    *([] if (PACKAGES / "moto").is_dir() else ["moto"]),
]
"""Packages that the server and its clients need, and that are not here."""


def environment(port: int) -> dict[str, str]:
    """Return the variables that name a server, and keys."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
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
def pointing_to(port: int) -> Iterator[None]:
    """Let this process's environment, and that of programs it starts, name a server."""
    with patch.dict(os.environ, environment(port)):
        yield


def new_place(lease: str = "1s") -> RemotePlace:
    """Return a place in the bucket that nobody has used."""
    found = state_place(f"s3://{BUCKET}/tests/{uuid.uuid4().hex}?lease={lease}")
    assert isinstance(found, RemotePlace)
    return found


def held(address: StoreAddress) -> dict[str, bytes]:
    """Return all objects below an address, by name."""
    import obstore
    from obstore.store import S3Store

    store = S3Store(
        address.bucket,
        prefix=address.prefix,
        endpoint=os.environ["AWS_ENDPOINT_URL"],
        client_options={"allow_http": True},
    )
    names = [each["path"] for each in obstore.list(store).collect()]
    return {name: bytes(obstore.get(store, name).bytes()) for name in names}
