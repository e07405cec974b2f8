"""HDFS, as addresses and the process's environment name it."""

from __future__ import annotations

import getpass
import os

from connectors.object_store.address import StoreAddress
from connectors.object_store.contract import ObjectStore, StoreError
from connectors.object_store.hdfs_objects import HdfsObjects
from connectors.object_store.webhdfs import WebHdfs

ENDPOINT, USER = "WEBHDFS_ENDPOINT", "HADOOP_USER_NAME"
"""Variables: the NameNodes' servers of HTTP, with commas between them; the user."""

_PORT = 9870


def open_hdfs(address: StoreAddress, timeout: float) -> ObjectStore:
    """Return the objects below a folder; raises :class:`StoreError`.

    The port of an address is that of Hadoop's own protocol: only the host is used.
    """
    named = os.environ.get(ENDPOINT) or f"http://{address.bucket.partition(':')[0]}:{_PORT}"
    servers = [each.strip().rstrip("/") for each in named.split(",") if each.strip()]
    if not servers or not all(each.startswith(("http://", "https://")) for each in servers):
        raise StoreError(
            f"{ENDPOINT} names no server for {address}\n"
            f"  hint: set it to http://HOST:{_PORT}, of several NameNodes with commas between them"
        )
    return HdfsObjects(WebHdfs(servers, _user(), timeout, address), f"/{address.prefix}")


def _user() -> str:
    try:
        return os.environ.get(USER) or getpass.getuser()
    except (OSError, KeyError):
        raise StoreError(f"this process's user has no name\n  hint: set {USER}") from None
