"""Contract of object stores, and their errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from connectors import ConnectorError

Version = Mapping[str, str]
"""Identity of an object's content (on S3 the ETag)."""


class StoreError(ConnectorError):
    """Error of an object store that would come again; the message says what refused, and why."""


class StoreUnavailableError(StoreError):
    """Error that may be gone when the request is made again: the store is away, slow or busy."""


@dataclass(frozen=True)
class StoredObject:
    """An object's content and version."""

    content: bytes
    version: Version


class ObjectStore(Protocol):
    """Objects by name under one address: each is written, replaced and read as a whole.

    There is no renaming, appending, locking or syncing. An object is durable, and seen by all, when
    a call that writes it returns. Conditions are checked by the store, atomically with the write.
    An object that is once replaced under a condition is neither ``put`` nor removed. Any thread may
    call.
    """

    def put_new(self, name: str, content: bytes) -> Version | None:
        """Write an object unless there is one of that name; return None if there is."""
        ...

    def put_over(self, name: str, content: bytes, version: Version) -> Version | None:
        """Replace an object that still has this version; return None if it has not."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Write an object, in place of any other of that name."""
        ...

    def get(self, name: str) -> StoredObject | None:
        """Return an object, None if there is none."""
        ...

    def names(self) -> list[str]:
        """Return the names of all objects whose names have no slash, sorted."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are missing are ignored."""
        ...
