"""Object store behind the protocol of S3, by the library ``obstore``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any, TypeVar

from connectors.object_store.address import StoreAddress
from connectors.object_store.contract import (
    ObjectStore,
    StoredObject,
    StoreError,
    StoreUnavailableError,
    Version,
)

T = TypeVar("T")

CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_METADATA_ENDPOINT",
    "AWS_SKIP_SIGNATURE",
)
"""Variables of the environment, one of which names where keys come from."""

TIMEOUT = 60.0
"""Seconds that a request may take."""

_CONNECT_TIMEOUT = 5.0
_REMOVED_AT_ONCE = 1000
_STATUS = re.compile(r"status code: (\d{3})([^:\n]*)")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_REASON = re.compile(r"kind: (\w+)")
_TOO_MANY, _TIMEOUT, _CONFLICT, _SERVER = 429, 408, 409, 500


class S3Objects:
    """Objects in a bucket, reached as the process's environment says.

    One request per call, without repeats.

    Errors tell the store's status and code, never its text, which may quote keys.
    """

    def __init__(self, address: StoreAddress, timeout: float = TIMEOUT) -> None:
        import obstore
        from obstore.store import S3Store

        self._obstore = obstore
        self._address = address
        endpoint = _endpoint()
        client: dict[str, Any] = {
            "timeout": f"{timeout * 1000:.0f}ms",
            "connect_timeout": f"{min(timeout, _CONNECT_TIMEOUT) * 1000:.0f}ms",
        }
        # Who names an address without TLS wants none.
        client["allow_http"] = endpoint is not None and endpoint.startswith("http://")
        self._store = S3Store(
            address.bucket,
            prefix=address.prefix,
            config={} if endpoint is None else {"endpoint": endpoint},  # type: ignore[typeddict-item, unused-ignore]
            client_options=client,  # type: ignore[arg-type, unused-ignore]
            retry_config={"max_retries": 0},  # type: ignore[typeddict-item, unused-ignore]
        )

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
            some, left = left[:_REMOVED_AT_ONCE], left[_REMOVED_AT_ONCE:]
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
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
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


def open_objects(address: StoreAddress, *, timeout: float = TIMEOUT) -> ObjectStore:
    """Return the store at an address; raises :class:`StoreError`.

    ``timeout`` is the number of seconds that a request may take.
    """
    if find_spec("obstore") is None:
        raise StoreError(
            f"{address} needs a package that is not here: obstore\n"
            '  hint: pip install "acquatop[store]"'
        )
    if not any(os.environ.get(name) for name in CREDENTIALS):
        raise StoreError(
            f"there are no keys for {address}\n"
            f"  hint: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or one of "
            f"{', '.join(CREDENTIALS[1:])}"
        )
    return S3Objects(address, timeout)


def _endpoint() -> str | None:
    """Return the address of the server that the environment names; None for Amazon's own."""
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _version(meta: Any) -> Version:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None}


def _is_servers(status: int) -> bool:
    """Return True for a failure of the server; 501 is a refusal of what was asked."""
    return status >= _SERVER and status != _SERVER + 1
