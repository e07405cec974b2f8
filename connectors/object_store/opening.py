"""Opening of the object store at an address."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from connectors.object_store import address as schemes
from connectors.object_store.address import StoreAddress
from connectors.object_store.azure import AZURE
from connectors.object_store.contract import ObjectStore, StoreError
from connectors.object_store.hdfs import open_hdfs
from connectors.object_store.obstore_objects import ObstoreObjects
from connectors.object_store.s3 import S3

TIMEOUT = 60.0
"""Seconds that a request may take."""

PROVIDERS = {"s3": S3, **dict.fromkeys(schemes.AZURE, AZURE)}
"""Providers of the schemes of addresses that the library ``obstore`` serves."""

_CONNECT_TIMEOUT = 5.0


def open_objects(address: StoreAddress, *, timeout: float = TIMEOUT) -> ObjectStore:
    """Return the store at an address; raises :class:`StoreError`.

    ``timeout`` is the number of seconds that a request may take.
    """
    if address.scheme == schemes.HDFS:
        return open_hdfs(address, timeout)
    if find_spec("obstore") is None:
        raise StoreError(
            f"{address} needs a package that is not here: obstore\n  hint: pip install obstore"
        )
    provider = PROVIDERS[address.scheme]
    if not any(os.environ.get(name) for name in provider.credentials):
        raise StoreError(
            f"there are no keys for {address}\n"
            f"  hint: set {provider.needed}, or one of {', '.join(provider.credentials[1:])}"
        )
    named = (os.environ[name] for name in provider.endpoints if os.environ.get(name))
    endpoint = next(named, None)
    client: dict[str, Any] = {
        "timeout": f"{timeout * 1000:.0f}ms",
        "connect_timeout": f"{min(timeout, _CONNECT_TIMEOUT) * 1000:.0f}ms",
        # Who names an address without TLS wants none.
        "allow_http": endpoint is not None and endpoint.startswith("http://"),
    }
    common = {"client_options": client, "retry_config": {"max_retries": 0}}
    store = provider.open(address, endpoint, common)
    return ObstoreObjects(address, store, provider.removed_at_once)
