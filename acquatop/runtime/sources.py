"""Readers of connectors by the names that catalogs use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acquatop.errors import UserError
from connectors.live import LiveReader
from connectors.registry import CONNECTORS, PIPE


def reader_of(connector: str, options: dict[str, str]) -> Any:
    """Return what reads a connector's stream: the class that Spark drives, whoever calls its methods."""
    return CONNECTORS[connector].data_source()(source_options(connector, options)).streamReader(None)  # type: ignore[arg-type]


def source_options(connector: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return options as an engine gives them to a source: what is received once is let go by the engine alone."""
    return {**options, "commits": "owner"} if "commits" in CONNECTORS[connector].options else dict(options)


def let_go(reader: Any, offset: Any) -> None:
    """Tell a source that keeps what it has received that nothing before an offset will be asked for again."""
    if isinstance(reader, LiveReader):
        reader.release(offset)


def is_pressing(reader: Any, offset: Any) -> bool:
    """Say whether a source keeps so much of what has been read that it should be let go soon."""
    return isinstance(reader, LiveReader) and reader.is_pressing(offset)


def for_other_processes(connector: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return a connector's options as other processes on this machine must be given them.

    Raises :class:`~acquatop.errors.UserError` where they would mean something else there.
    """
    if connector != PIPE.name or options["path"] != "-":
        return options
    place = Path(f"/proc/{os.getpid()}/fd/0")
    if not place.exists():
        hint = 'use the runtime "local", or a named pipe'
        raise UserError(f"Spark's processes cannot read this one's standard input on this system\n  hint: {hint}")
    return {**options, "path": str(place)}


def how_far(reader: Any, offset: Any, until_end: bool) -> tuple[int | None, int | None]:
    """Return how much of a recording has been read, and how much there is; nothing of what goes on and on."""
    return reader.progress(offset) if until_end else (None, None)
