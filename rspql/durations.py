"""Durations and instants as written in windows and catalogs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

_UNITS_MS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"
_LONGEST_MS = 10**15
_SHORT = re.compile(rf"{_NUMBER}[ \t]*([A-Za-z]+)")
_ISO = re.compile(rf"P(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?")
_DATE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d)(:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999 in UTC: no event happens before or after them."""
_ISO_MS = (86_400_000, 3_600_000, 60_000, 1_000)


def milliseconds(text: str) -> int:
    """Return the length of a duration in milliseconds; raise ValueError if it is not one.

    Accepts short forms (``9m``, ``3 sec``, ``500ms``) and ISO 8601 (``PT9M``, ``P1D``, ``PT0.5S``).

    >>> [milliseconds(text) for text in ("9m", "0.5 sec", "PT1M30S", "P1D", "250ms")]
    [540000, 500, 90000, 86400000, 250]
    >>> milliseconds("9 parsecs")
    Traceback (most recent call last):
    ...
    ValueError: unknown unit "parsecs" in "9 parsecs": use ms, s, m, h or d
    """
    total = _iso(text.upper()) if text[:1] in ("P", "p") else _short(text)
    if total.denominator != 1:
        raise ValueError(f'"{text}" is not a whole number of milliseconds')
    if total > _LONGEST_MS:
        raise ValueError(f'"{text}" is longer than thirty thousand years')
    if total <= 0:
        raise ValueError(f'"{text}" is not longer than nothing')
    return int(total)


def epoch_ms(text: str) -> int:
    """Return an xsd:dateTime in milliseconds since the epoch, in UTC if it names no zone.

    >>> epoch_ms("1970-01-01T01:00:00.25+01:00"), epoch_ms("1969-12-31T24:00:00")
    (250, 0)
    >>> epoch_ms("1970-01-01")
    Traceback (most recent call last):
    ...
    ValueError: "1970-01-01" is not a date and time
    """
    match = _DATE_TIME.fullmatch(text)
    problem = f'"{text}" is not a date and time'
    if match is None:
        raise ValueError(problem)
    day, hour, rest, fraction, zone = match.groups()
    if len((fraction or "").rstrip("0")) > 3:
        raise ValueError(f'"{text}" is not a whole number of milliseconds')
    is_midnight = hour == "24" and rest == ":00:00" and not (fraction or "").strip("0")
    try:
        instant = datetime.fromisoformat(
            f"{day}T{'00' if is_midnight else hour}{rest}{zone or 'Z'}"
        )
    except ValueError:
        raise ValueError(problem) from None
    whole = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    whole += int(f"{fraction or 0:0<3}"[:3]) + (86_400_000 if is_midnight else 0)
    if not _EARLIEST_MS <= whole <= _LATEST_MS:
        raise ValueError(f'"{text}" is not in the years 1 to 9999, in UTC')
    return whole


def _iso(text: str) -> Fraction:
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError(
            f'"{text}" is not an ISO 8601 duration of days, hours, minutes and seconds'
        )
    return sum(
        (Fraction(part) * unit for part, unit in zip(match.groups(), _ISO_MS, strict=True) if part),
        Fraction(0),
    )


def _short(text: str) -> Fraction:
    match = _SHORT.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f'"{text}" is not a duration: write a number and a unit, such as 9m, 30s or PT9M'
        )
    unit = _UNITS_MS.get(match[2].lower())
    if unit is None:
        raise ValueError(f'unknown unit "{match[2]}" in "{text}": use ms, s, m, h or d')
    return Fraction(match[1]) * unit
