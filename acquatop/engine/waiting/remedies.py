"""Remedies for bad items, by the reason that decoders give."""

from __future__ import annotations

from acquatop.catalog.catalog import Stream
from acquatop.ingest.reduce.late_finder import TOO_FAR_AHEAD

SECONDS = 'did you mean time_as = "seconds"?'
_NAMES = "see which fields the catalog names (mapping: time, subject)"
_FORM = "see which format the catalog names (mapping: format)"
_UNITS = "write time_as as the records have their times: milliseconds, seconds or dateTime"
_ANY = "see the stream's mapping in the catalog; dead_letters keeps the bad items"


def remedy_of(reason: str, stream: Stream) -> str:
    """Return the remedy if most items of a stream are bad for a reason."""
    if reason == TOO_FAR_AHEAD:
        return (
            "see the unit of the times (time_as) and the clocks; "
            'for recordings read as a live stream set ahead = "off"'
        )
    if "not in the years 1 to 9999" in reason:
        return _of_large_numbers(stream)
    for words, remedy in (
        ("is not a time in", _UNITS),
        ("is not an xsd:dateTime", _UNITS),
        ("no time", _NAMES),
        ("no subject", _NAMES),
        ("not JSON", _FORM),
    ):
        if words in reason:
            return remedy
    return _ANY


def _of_large_numbers(stream: Stream) -> str:
    if time_as(stream) == "seconds":
        return 'did you mean time_as = "milliseconds"?'
    return "times are in milliseconds: divide microseconds by 1000, nanoseconds by 1000000"


def time_as(stream: Stream) -> str | None:
    """Return the form of the stream's times; None if its format has no such choice."""
    found = getattr(stream.mapping, "time_as", None)
    return found if isinstance(found, str) else None
