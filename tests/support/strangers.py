"""Clients that say what they like: raw sockets, and the memory of the process that they talk to."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.staged import LIMIT


class Raw:
    """Connection on which a test sends any bytes."""

    def __init__(self, url: str, *, limit: float = LIMIT) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self.host = host
        self.socket = socket.create_connection((host, int(port.partition("/")[0])), limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> bool:
        """Send bytes; return False if the other side has closed the connection."""
        try:
            self.socket.sendall(data)
        except (ConnectionError, TimeoutError):
            return False
        return True

    def all(self) -> bytes:
        """Return all that comes until the other side ends."""
        found = b""
        with suppress(ConnectionError):
            while part := self.socket.recv(1 << 16):
                found += part
        return found

    def some(self) -> bytes:
        """Return what comes next."""
        with suppress(ConnectionError):
            return self.socket.recv(1 << 16)
        return b""


def asked(url: str, *parts: bytes) -> bytes:
    """Return all that comes back for some bytes."""
    with Raw(url) as raw:
        for part in parts:
            if not raw.send(part):
                break
        return raw.all()


def statuses(reply: bytes) -> list[int]:
    """Return the statuses of the responses in some bytes."""
    return [int(each) for each in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", reply)]


def resident(pid: int) -> int:
    """Return the bytes of memory that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s*([0-9]+) kB", status)
    assert found
    return 1024 * int(found[1])
