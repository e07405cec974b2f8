"""Readers of connectors by the names that catalogs use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acquatop.errors import UserError
from connectors.registry import CONNECTORS, PIPE


def reader_of(connector: str, options: dict[str, str]) -> Any:
    """Return what reads a connector's stream: the class that Spark drives, whoever calls its methods."""
    return CONNECTORS[connector].data_source()(options).streamReader(None)  # type: ignore[arg-type]


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
