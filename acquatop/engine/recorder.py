"""Interface between an engine and the recording of its streams and its remotes."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from acquatop.engine.side_outputs.growing_file import SideOutputFile
from acquatop.refresh.remote_recorder import RemoteRecorder


class Recorder(RemoteRecorder, Protocol):
    """Recorder of the streams and the remotes of one query."""

    def file_of(self, stream: str) -> SideOutputFile:
        """Return the file of a stream's records; its length is part of the engine's state."""

    def add(self, stream: str, tables: list[pa.Table], *, durable: bool) -> None:
        """Record the records of a stream's batch."""
