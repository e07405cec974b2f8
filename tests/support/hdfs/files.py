"""Looks at what a folder of HDFS holds."""

from __future__ import annotations

import getpass
import os

from connectors.object_store.address import StoreAddress
from connectors.object_store.hdfs import ENDPOINT
from connectors.object_store.hdfs_objects import UNFINISHED
from connectors.object_store.webhdfs import WebHdfs


def files_below(address: StoreAddress) -> dict[str, bytes]:
    """Return all whole files below an address, by their names from there."""
    client = WebHdfs([os.environ[ENDPOINT]], getpass.getuser(), 60.0, address)
    root, found, folders = f"/{address.prefix}", dict[str, bytes](), [""]
    for folder in folders:
        for each in client.list(f"{root}/{folder}"):
            name = f"{folder}{each.name}"
            if not each.is_folder:
                found[name] = client.read(f"{root}/{name}") or b""
            elif each.name != UNFINISHED:
                folders.append(f"{name}/")
    return found
