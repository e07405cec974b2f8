"""Object store reached by the library ``obstore``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from connectors.object_store.address import StoreAddress
from connectors.object_store.contract import (
    StoredObject,
    StoreError,
    StoreUnavailableError,
    Version,
)

if TYPE_CHECKING:
    from obstore.store import AzureStore, S3Store

T = TypeVar("T")

_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_STATUS = re.compile(r"(?:status code|\(code): (\d{3})([^:\n)]*)")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_REASON = re.compile(r"kind: (\w+)")
_TOO_MANY, _TIMEOUT, _CONFLICT, _SERVER = 429, 408, 409, 500


class ObstoreObjects:
    """Objects in a bucket. One request per call, without repeats.

    ``removed_at_once`` objects may be named in one request. Errors tell the store's status and
    code, never its text, which may quote keys.
    """

    def __init__(
        self, address: StoreAddress, store: S3Store | AzureStore, removed_at_once: int
    ) -> None:
        import obstore

        self._obstore = obstore
        self._address = address
        self._store = store
        self._removed_at_once = removed_at_once

    def put_new(self, name: str, content: bytes) -> Version | None:
        """Write an object unless there is one of that name; return None if there is."""
        return self._put(name, content, "create")

    def put_over(self, name: str, content: bytes, version: Version) -> Version | None:
        """Replace an object that still has this version; return None if it has not."""
        return self._put(name, content, dict(version))

    def put(self, name: str, content: bytes) -> None:
        """Write an object, in place of any other of that name."""
        self._put(name, content, "overwrite")

    def get(self, name: str) -> StoredObject | None:
        """Return an object, None if there is none."""

        def read() -> StoredObject:
            found = self._obstore.get(self._store, name)
            return StoredObject(bytes(found.bytes()), _version(found.meta))

        return self._asked(read)

    def names(self) -> list[str]:
        """Return the names of all objects whose names have no slash, sorted."""
        found = self._asked(lambda: self._obstore.list_with_delimiter(self._store))
        return sorted(str(each["path"]) for each in found["objects"]) if found else []

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are missing are ignored."""
        left = list(names)
        while left:
            some, left = left[: self._removed_at_once], left[self._removed_at_once :]
            self._remove(some)

    def _remove(self, names: list[str]) -> None:
        self._asked(lambda: self._obstore.delete(self._store, names))

    def _put(self, name: str, content: bytes, mode: Any) -> Version | None:
        return self._asked(
            lambda: _version(
                self._obstore.put(self._store, name, content, mode=mode, use_multipart=False)
            )
        )

    def _asked(self, request: Callable[[], T]) -> T | None:
        """Return a request's result; None if an object is missing, or a condition not met."""
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        try:
            return request()
        except (AlreadyExistsError, PreconditionError):
            return None
        except (BaseError, OSError) as error:
            if isinstance(error, FileNotFoundError) and not _lacks_bucket(error):
                return None
            raise self._explained(error) from None

    def _explained(self, error: Exception) -> StoreError:
        text = str(error)
        status, code, reason = _STATUS.search(text), _CODE.search(text), _REASON.search(text)
        said = " ".join(
            [status[1] + status[2] if status else "no reply", *([code[1]] if code else [])]
        )
        if status is None and reason is not None:
            said = f"no reply ({reason[1].lower()})"
        message = f"{self._address}: {said}"
        if status is None and reason is None:
            return StoreError(f"{self._address}: {type(error).__name__}")
        is_passing = status is None or int(status[1]) in (_TOO_MANY, _TIMEOUT, _CONFLICT)
        if is_passing or (status is not None and _is_servers(int(status[1]))):
            return StoreUnavailableError(message)
        return StoreError(message)


def _version(meta: Any) -> Version:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None}


def _is_servers(status: int) -> bool:
    """Return True for a failure of the server; 501 is a refusal of what was asked."""
    return status >= _SERVER and status != _SERVER + 1


def _lacks_bucket(error: Exception) -> bool:
    return any(code in str(error) for code in _NO_BUCKET)
