"""Detection of seconds that are read as milliseconds: their times are of January 1970."""

from __future__ import annotations

from acquatop.catalog.catalog import Stream
from acquatop.engine.waiting.remedies import SECONDS, time_as
from acquatop.instants import date_text

EARLIEST_MS, LATEST_MS = 631_152_000, 4_102_444_800
"""Range of suspicious times: as seconds they are of the years 1990 to 2099."""


def are_seconds(time_ms: int) -> bool:
    """Return True if a time in milliseconds looks like a present one in seconds.

    >>> are_seconds(1_750_000_000), are_seconds(1_750_000_000_000), are_seconds(10_000)
    (True, False, False)
    """
    return EARLIEST_MS <= time_ms <= LATEST_MS


def suspicion(stream: Stream, time_ms: int) -> tuple[str, str] | None:
    """Return the words about a suspicious time, and the remedy; None for any other time."""
    written_as = time_as(stream)
    if not are_seconds(time_ms) or written_as in ("seconds", "dateTime"):
        return None
    remedy = SECONDS if written_as else "multiply the times by 1000: they are read as milliseconds"
    return f"the times of <{stream.iri}> are of {date_text(time_ms)}", remedy
