"""Interface between an engine and the recording of its stream and its remote."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from acquatop.engine.side_outputs.growing_file import SideOutputFile
from acquatop.refresh.remote_recorder import RemoteRecorder


class Recorder(RemoteRecorder, Protocol):
    """Recorder of one stream and one remote."""

    @property
    def stream(self) -> SideOutputFile:
        """The file of the stream's records; its length is part of the engine's state."""

    def add(self, tables: list[pa.Table], *, durable: bool) -> None:
        """Record the records of a batch."""
