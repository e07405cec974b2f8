"""Durations as they are written in windows and catalogs."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS_MS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_SHORT = re.compile(r"([0-9]+(?:\.[0-9]+)?)[ \t]*([A-Za-z]+)")
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_ISO = re.compile(rf"P(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?")
_ISO_MS = (86_400_000, 3_600_000, 60_000, 1_000)


def milliseconds(text: str) -> int:
    """Return a duration's length in milliseconds; ValueError says what is wrong with it.

    Short forms (``9m``, ``3 sec``, ``500ms``) and ISO 8601 (``PT9M``, ``P1D``, ``PT0.5S``).

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
    if total <= 0:
        raise ValueError(f'"{text}" is not longer than nothing')
    return int(total)


def _iso(text: str) -> Fraction:
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not an ISO 8601 duration of days, hours, minutes and seconds')
    return sum((Fraction(part) * unit for part, unit in zip(match.groups(), _ISO_MS, strict=True) if part), Fraction(0))


def _short(text: str) -> Fraction:
    match = _SHORT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is not a duration: write a number and a unit, such as 9m, 30s or PT9M')
    unit = _UNITS_MS.get(match[2].lower())
    if unit is None:
        raise ValueError(f'unknown unit "{match[2]}" in "{text}": use ms, s, m, h or d')
    return Fraction(match[1]) * unit
