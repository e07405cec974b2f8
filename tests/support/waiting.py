"""Waiting until something has happened, and positions in a log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from connectors.live import LiveReader
from connectors.read_limits import ReadAllAvailable, ReadLimit

PATIENCE = 240.0
"""Seconds to wait at most."""

Offset = dict[str, Any]


def until(happened: Callable[[], bool]) -> None:
    """Wait for something that will happen."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.005)):
        if happened():
            return
        pause.wait(0.005)
    raise AssertionError("it has not happened")


def without_waits(said: str) -> str:
    """Return a standard error without the lines about waits, which a slow machine has, too."""
    return "".join(line for line in said.splitlines(keepends=True) if ": waiting: " not in line)


def offset_at(
    reader: LiveReader, record: int, start: Offset, limit: ReadLimit | None = None
) -> Offset:
    """Return the offset behind a record once it is there."""
    limit = limit or ReadAllAvailable()
    until(lambda: reader.latestOffset(start, limit)["record"] >= record)
    return reader.latestOffset(start, limit)
