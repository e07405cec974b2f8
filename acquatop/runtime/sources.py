"""Readers of connectors by the names that catalogs use."""

from __future__ import annotations

from typing import Any

from connectors.registry import CONNECTORS


def reader_of(connector: str, options: dict[str, str]) -> Any:
    """Return what reads a connector's stream: the class that Spark drives, whoever calls its methods."""
    return CONNECTORS[connector].data_source()(options).streamReader(None)  # type: ignore[arg-type]


def how_far(reader: Any, offset: Any, until_end: bool) -> tuple[int | None, int | None]:
    """Return how much of a recording has been read, and how much there is; nothing of what goes on and on."""
    return reader.progress(offset) if until_end else (None, None)
