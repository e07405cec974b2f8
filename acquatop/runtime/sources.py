"""Readers of connectors, by connector name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acquatop.errors import UserError
from acquatop.plugins import CONNECTORS
from connectors import ConnectorError
from connectors.live import LiveReader
from connectors.registry import PIPE
from connectors.source_status import SourceStatus, TellsStatus


def reader_of(connector: str, options: dict[str, str]) -> Any:
    """Return the reader of a connector's stream: the class that Spark drives, for any runtime."""
    source = CONNECTORS[connector].data_source()(source_options(connector, options))
    return source.streamReader(None)  # type: ignore[arg-type]


def source_options(connector: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return a source's options for use by an engine: only the engine releases received data."""
    return (
        {**options, "commits": "owner"}
        if "commits" in CONNECTORS[connector].options
        else dict(options)
    )


def release_data(reader: Any, offset: Any) -> None:
    """Tell a source that keeps received data that nothing before an offset will be read again."""
    if isinstance(reader, LiveReader):
        reader.release(offset)


def log_nearly_full(reader: Any, offset: Any) -> bool:
    """Return True if a source holds so much data already read that it should be released soon."""
    return isinstance(reader, LiveReader) and reader.log_nearly_full(offset)


class RepeatedMessages:
    """Count of the messages that a source has dropped because they had come already."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._before = self._total()

    def since_last(self) -> int:
        """Return their number since the last call."""
        before, self._before = self._before, self._total()
        return max(0, self._before - before)

    def _total(self) -> int:
        return self._reader.repeated() if isinstance(self._reader, LiveReader) else 0


def for_other_processes(connector: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return a connector's options for other processes on this machine.

    Raises :class:`~acquatop.errors.UserError` if they would mean something else there.
    """
    if connector != PIPE.name or options["path"] != "-":
        return options
    place = Path(f"/proc/{os.getpid()}/fd/0")
    if not place.exists():
        hint = 'use the runtime "local", or a named pipe'
        raise UserError(
            "Spark's processes cannot read this one's standard input on this system\n  hint: "
            f"{hint}"
        )
    return {**options, "path": str(place)}


def status_of(reader: Any) -> SourceStatus | None:
    """Return the status of a reader's source, None if it is unknown."""
    if not isinstance(reader, TellsStatus):
        return None
    try:
        return reader.status()
    except (OSError, ConnectorError):
        # The reader itself will tell, as it needs the same files.
        return None


def how_far(reader: Any, offset: Any, until_end: bool) -> tuple[int | None, int | None]:
    """Return the size read so far and the size of all for a recording, Nones for other streams."""
    return reader.progress(offset) if until_end else (None, None)
