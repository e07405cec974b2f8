"""Durable files: writes and names that survive a loss of power."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)
"""Command that empties a disk's own cache if ``fdatasync`` does not (macOS)."""


def write_at(file: int, offset: int, pieces: Iterable[bytes | pa.Buffer]) -> int:
    """Write pieces one after the other; return the offset after the last one."""
    for piece in pieces:
        left = memoryview(piece)
        while left:
            written = os.pwrite(file, left, offset)
            offset += written
            left = left[written:]
    return offset


def sync_file(file: int) -> None:
    """Wait until the content of a file would survive a loss of power."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(file, _FULL_SYNC)
    else:
        os.fdatasync(file)


def sync_folder(path: Path) -> None:
    """Wait until the names of a folder's files would survive a loss of power."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
