"""Vectorised parser of xsd:dateTime texts to milliseconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.text_slices import TextSlices

EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Range of valid times, in milliseconds since the epoch: the years 1 to 9999."""

_WRITTEN = (
    r"^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]+)?(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?$"
)
_LENGTH = len("2000-01-01T00:00:00")
_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def milliseconds(texts: pa.StringArray) -> pa.Int64Array:
    """Return texts in milliseconds since the epoch, null for those that are not xsd:dateTime.

    A text without a zone is in UTC. Years have four digits; the part finer than milliseconds is cut
    off.

    >>> milliseconds(
    ...     pa.array(["1970-01-01T01:00:00.0019+01:00", "1970-02-29T00:00:00Z"])
    ... ).to_pylist()
    [1, None]
    """
    written = pc.fill_null(pc.match_substring_regex(texts, _WRITTEN), False).to_numpy(
        zero_copy_only=False
    )
    found = np.zeros(len(texts), np.int64)
    known = np.flatnonzero(written)
    if len(known):
        found[known], written[known] = _read(texts.take(pa.array(known)))
    return pa.array(found, mask=~written)


def is_time(times: pa.Array) -> pa.Array:
    """Return True for each time in milliseconds since the epoch within the years 1 to 9999."""
    return pc.and_(pc.greater_equal(times, EARLIEST_MS), pc.less_equal(times, LATEST_MS))


def _read(texts: pa.StringArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the milliseconds of well-formed texts, and True for each date that exists."""
    slices = TextSlices(texts)
    digits = slices.bytes_at(slices.starts, _LENGTH).astype(np.int64) - ord("0")

    def number(first: int, last: int) -> npt.NDArray[np.int64]:
        return np.asarray(digits[:, first:last] @ 10 ** np.arange(last - first)[::-1])

    year, month, day = number(0, 4), number(5, 7), number(8, 10)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    exists = (year > 0) & (day <= _DAYS[month] + (leap & (month == 2)))
    dates = (year - 1970).astype("M8[Y]").astype("M8[M]") + (month - 1)
    days = dates.astype("M8[D]").astype(np.int64) + day - 1
    seconds = ((days * 24 + number(11, 13)) * 60 + number(14, 16)) * 60 + number(17, 19)
    rest = slices.between(slices.starts + _LENGTH, slices.ends)
    rest = pc.replace_substring_regex(rest, r"^(\.[0-9]{3})[0-9]+", r"\1").dictionary_encode()
    offsets = np.array([_rest_ms(each) for each in rest.dictionary.to_pylist()], np.int64)
    return seconds * 1000 + offsets[rest.indices.to_numpy()], exists


def _rest_ms(rest: str) -> int:
    """Return the milliseconds that a fraction and a zone add to the seconds of an instant."""
    zone_at = max(rest.find("+"), rest.find("-"))
    fraction = rest[1:] if zone_at < 0 else rest[1:zone_at]
    zone = "" if zone_at < 0 else rest[zone_at:]
    milliseconds = int((fraction.rstrip("Z") + "000")[:3]) if rest.startswith(".") else 0
    if not zone:
        return milliseconds
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return milliseconds - (minutes if zone[0] == "+" else -minutes) * 60_000
