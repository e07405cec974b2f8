"""Differences between providers of object stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectors.object_store.address import StoreAddress

if TYPE_CHECKING:
    from obstore.store import AzureStore, S3Store

Opened = Callable[[StoreAddress, str | None, Mapping[str, Any]], "S3Store | AzureStore"]


@dataclass(frozen=True)
class Provider:
    """Provider of object stores.

    ``needed`` are the variables of the environment that most users set. One of the ``credentials``
    names where keys come from. The ``endpoints`` name a server that is not the provider's own.
    ``open`` returns the library's store at an address, at such a server, with common settings.
    """

    needed: str
    credentials: tuple[str, ...]
    endpoints: tuple[str, ...]
    removed_at_once: int
    open: Opened
