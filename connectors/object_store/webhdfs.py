"""Client of HDFS over HTTP, as NameNodes offer it (WebHDFS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from urllib.parse import quote

import requests
from requests.exceptions import ChunkedEncodingError

from connectors.object_store.contract import StoreError, StoreUnavailableError

_CONNECT_TIMEOUT = 5.0
_ABSENT = "FileNotFoundException"
_EXISTS = "FileAlreadyExistsException"
_PASSING = {
    "IOException",
    "StandbyException",
    "SafeModeException",
    "RetriableException",
    "LeaseExpiredException",
    "ConnectException",
    "EOFException",
    "NullPointerException",
}
"""Errors of servers that start, change places, or miss each other."""

_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)


@dataclass(frozen=True)
class HdfsFile:
    """A file or a folder in a folder, and the time of its last change in seconds."""

    name: str
    is_folder: bool
    changed_at: float


class WebHdfs:
    """Files of a file system, by absolute paths. One request per call, and one of a DataNode.

    ``servers`` are NameNodes' addresses, of which one is active; after an error the next call goes
    to the next of them. Errors tell the status and the name of the error. Any thread may call.
    """

    def __init__(self, servers: Sequence[str], user: str, timeout: float, place: object) -> None:
        self._servers = servers
        self._at = 0
        self._user = user
        self._timeout = (min(timeout, _CONNECT_TIMEOUT), timeout)
        self._place = place
        self._session = requests.Session()
        # Cookies would name the user of another store; and threads share the session.
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def create(self, path: str, content: bytes) -> None:
        """Write a new file and the folders above it. It can be seen before it is whole."""
        found = self._ask("PUT", path, "CREATE", {"overwrite": "false"})
        place = found.headers.get("Location")
        if place is None:
            raise StoreError(f"{self._place}: no DataNode was named for a new file")
        self._checked(self._sent("PUT", place, content=content))

    def read(self, path: str) -> bytes | None:
        """Return a file's content, None if there is no file."""
        found = self._ask("GET", path, "OPEN", fine=(_ABSENT,))
        place = found.headers.get("Location")
        if place is not None:
            found = self._checked(self._sent("GET", place), fine=(_ABSENT,))
        return None if _error(found) == _ABSENT else found.content

    def rename(self, source: str, target: str, *, over: bool = False) -> bool:
        """Rename a file, atomically; return False if there is a target, unless it goes ``over``.

        A missing source is an error that may be gone when all is done again.
        """
        how = {"destination": target, "renameoptions": "OVERWRITE" if over else "NONE"}
        found = self._ask("PUT", source, "RENAME", how, fine=(_ABSENT, _EXISTS))
        if _error(found) == _ABSENT:
            raise StoreUnavailableError(f"{self._place}: {_ABSENT} at a renaming")
        if _error(found) == _EXISTS:
            return False
        if found.content:
            # The older way of renaming, which cannot replace, and moves files into folders.
            raise StoreError(f"{self._place}: this server ignores renameoptions, as HttpFS does")
        return True

    def remove(self, path: str) -> None:
        """Remove a file; a missing one is ignored."""
        self._ask("DELETE", path, "DELETE", {"recursive": "false"})

    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it, unless they are there."""
        self._ask("PUT", path, "MKDIRS")

    def list(self, path: str) -> Sequence[HdfsFile]:
        """Return what a folder holds; nothing if there is no folder."""
        found = self._ask("GET", path, "LISTSTATUS", fine=(_ABSENT,))
        if _error(found) == _ABSENT:
            return ()
        try:
            entries = found.json()["FileStatuses"]["FileStatus"]
            return [
                HdfsFile(
                    each["pathSuffix"], each["type"] == "DIRECTORY", each["modificationTime"] / 1000
                )
                for each in entries
            ]
        except (ValueError, KeyError, TypeError):
            raise StoreError(f"{self._place}: this is no server of WebHDFS") from None

    def _ask(
        self,
        method: str,
        path: str,
        operation: str,
        more: Mapping[str, str] | None = None,
        *,
        fine: Sequence[str] = (),
    ) -> requests.Response:
        """Return the reply of the NameNode; errors that are ``fine`` are results."""
        server = self._servers[self._at]
        parameters = {"op": operation, "user.name": self._user, **(more or {})}
        try:
            reply = self._sent(method, f"{server}/webhdfs/v1{quote(path)}", parameters)
            return self._checked(reply, fine=fine)
        except StoreUnavailableError:
            if server == self._servers[self._at]:
                self._at = (self._at + 1) % len(self._servers)
            raise

    def _sent(
        self,
        method: str,
        url: str,
        parameters: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> requests.Response:
        try:
            return self._session.request(
                method,
                url,
                params=parameters,
                data=content,
                timeout=self._timeout,
                # The reply names the place that content goes to or comes from.
                allow_redirects=False,
            )
        except (requests.ConnectionError, requests.Timeout, ChunkedEncodingError) as error:
            said = f"no reply ({type(error).__name__})"
            raise StoreUnavailableError(f"{self._place}: {said}") from None
        except requests.RequestException as error:
            raise StoreError(f"{self._place}: {type(error).__name__}") from None

    def _checked(self, reply: requests.Response, *, fine: Sequence[str] = ()) -> requests.Response:
        error = _error(reply)
        if reply.status_code < HTTPStatus.BAD_REQUEST or error in fine:
            return reply
        said = " ".join(each for each in (str(reply.status_code), reply.reason, error) if each)
        is_servers = reply.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
        if error in _PASSING or is_servers or reply.status_code in _BUSY:
            raise StoreUnavailableError(f"{self._place}: {said}")
        raise StoreError(f"{self._place}: {said}")


def _error(reply: requests.Response) -> str:
    """Return the name of a refusal's error; "" if it has none."""
    if reply.status_code < HTTPStatus.BAD_REQUEST:
        return ""
    try:
        name = reply.json()["RemoteException"]["exception"]
    except (ValueError, KeyError, TypeError):
        return ""
    return name if isinstance(name, str) and name.isidentifier() else ""
