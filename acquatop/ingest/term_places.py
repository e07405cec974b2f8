"""Places of terms in SPARQL's order, as numbers: the first digits of each, which may tie.

A term before another in the order has no greater place, so terms are ranked as numbers are. Only
those with equal places have to be compared.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from collections.abc import Callable, Mapping
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.terms import to_ast
from acquatop.topk.contract import FloatArray
from connectors.coded import distinct, plain
from connectors.lexical import INTEGERS
from rspql import ast
from rspql.ast import XSD

_WITHIN = 1 << 49
"""Number of places of each kind: with all kinds, doubles hold every place."""
_MIDDLE = _WITHIN // 2
_BYTES = 6
"""Number of first bytes of a text that its place tells."""
_DROPPED = 15
"""Number of last bits of a double that its place does not tell."""
_MS_OF_DAY = 86_400_000
_MS_OF_MONTH = 2_629_746_000
"""Mean over 400 years. In the years by which XSD compares, months are both longer and shorter."""
_REMEMBERED = 1 << 14


class _Kind(IntEnum):
    """Kinds of terms in their order, of which SPARQL says only that literals are the last."""

    UNBOUND = 0
    BLANK = 1
    IRI = 2
    NUMBER = 3
    BOOLEAN = 4
    INSTANT = 5
    TIME = 6
    PART_OF_DATE = 7
    DURATION = 8
    TEXT = 9


def places_of(terms: pa.Array) -> FloatArray:
    """Return the places of N-Triples terms; null and ``""`` are unbound, NaN has no place.

    >>> few = pa.array(['"b"', "", '"10"^^<http://www.w3.org/2001/XMLSchema#integer>', "<urn:a>"])
    >>> np.argsort(places_of(few)).tolist()
    [1, 3, 2, 0]
    """
    each = distinct(pc.fill_null(plain(terms), ""))
    known = np.array([place_of(text) for text in each.dictionary.to_pylist()], dtype=np.float64)
    return known[np.asarray(each.indices.to_numpy())] if len(each) else np.empty(0)


@functools.lru_cache(maxsize=_REMEMBERED)
def place_of(text: str) -> float:
    """Return the place of an N-Triples term.

    >>> place_of('"Ann"') < place_of('"Bob"@en') < place_of('"Bobby"')
    True
    """
    if not text.startswith('"'):
        return _at(*_of_resource(text))
    if text.endswith('"') and "\\" not in text:
        return _at(_Kind.TEXT, _of_text(text[1:-1]))
    literal = to_ast(text)
    assert isinstance(literal, ast.Literal)
    read = _READERS.get(literal.datatype)
    found = None if read is None else read(literal.lexical)
    if found is None:
        return _at(_Kind.TEXT, _of_text(literal.lexical))
    kind, within = found
    return math.nan if math.isnan(within) else _at(kind, within)


def _at(kind: _Kind, within: float) -> float:
    return float(kind * _WITHIN + min(max(int(within), 0), _WITHIN - 1))


def _of_resource(text: str) -> tuple[_Kind, float]:
    if not text:
        return _Kind.UNBOUND, 0
    if text.startswith("<"):
        return _Kind.IRI, _of_text(text[1:-1])
    return _Kind.BLANK, 0


def _of_text(text: str) -> int:
    """Return the first bytes in UTF-8, which keep the order of code points."""
    first = text[:_BYTES].encode("utf-8", "surrogatepass")[:_BYTES]
    return int.from_bytes(first.ljust(_BYTES, b"\0"), "big")


_Found = tuple[_Kind, float] | None
"""Kind and place in it; None for a text that its datatype does not have."""


def _number(text: str) -> _Found:
    if not _NUMBER.fullmatch(text):
        return None
    return _Kind.NUMBER, _of_double(float(text.replace("INF", "inf")))


def _single(text: str) -> _Found:
    if not _NUMBER.fullmatch(text):
        return None
    with np.errstate(over="ignore"):
        return _Kind.NUMBER, _of_double(float(np.float32(text.replace("INF", "inf"))))


def _of_double(value: float) -> float:
    """Return the first bits of a double: as whole numbers, those of positive ones keep the order.

    Those of negative ones are in the opposite order.
    """
    if math.isnan(value):
        return value
    (bits,) = struct.unpack("<q", struct.pack("<d", abs(value)))
    size: int = bits >> _DROPPED
    return _MIDDLE + size if value > 0 else _MIDDLE - size


def _boolean(text: str) -> _Found:
    known = {"false": 0, "0": 0, "true": 1, "1": 1}
    return (_Kind.BOOLEAN, known[text]) if text in known else None


def _instant(text: str) -> _Found:
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    day = _days(int(found["year"]), int(found["month"]), int(found["day"]))
    return _Kind.INSTANT, _MIDDLE + day * _MS_OF_DAY + _ms_of(found)


def _time(text: str) -> _Found:
    found = _TIME.fullmatch(text)
    return None if found is None else (_Kind.TIME, _MIDDLE + _ms_of(found))


def _ms_of(found: re.Match[str]) -> int:
    """Return the milliseconds since midnight in UTC; a time without a zone is taken for one."""
    hours, minutes, seconds, zone = (
        found[name] for name in ("hours", "minutes", "seconds", "zone")
    )
    ms = (int(hours or 0) * 60 + int(minutes or 0)) * 60_000 + _ms(seconds or "0")
    if zone and zone != "Z":
        offset = int(zone[1:3]) * 60 + int(zone[4:6])
        ms += (offset if zone[0] == "-" else -offset) * 60_000
    return ms


def _ms(seconds: str) -> int:
    whole, _, rest = seconds.partition(".")
    return int(whole or 0) * 1000 + int(rest[:3].ljust(3, "0"))


def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 in the Gregorian calendar, of any year.

    >>> _days(1970, 1, 1), _days(2000, 3, 1), _days(0, 12, 31)
    (0, 11017, -719163)
    """
    year -= month <= 2
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + of_year - 719_468


def _duration(text: str) -> _Found:
    found = _DURATION.fullmatch(text)
    if found is None or text[-1] in "PT":
        return None
    years, months, days, hours, minutes = (int(found[at] or 0) for at in range(2, 7))
    ms = (12 * years + months) * _MS_OF_MONTH + days * _MS_OF_DAY
    ms += (60 * hours + minutes) * 60_000 + _ms(found[7] or "0")
    return _Kind.DURATION, _MIDDLE + (-ms if found[1] else ms)


def _part_of_date(text: str) -> _Found:
    return _Kind.PART_OF_DATE, 0


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_CLOCK = r"(?P<hours>[0-9]{2}):(?P<minutes>[0-9]{2}):(?P<seconds>[0-9]{2}(?:\.[0-9]+)?)"
_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_INSTANT = re.compile(
    rf"(?P<year>-?[0-9]{{4,}})-(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}})(?:T{_CLOCK})?{_ZONE}"
)
_TIME = re.compile(_CLOCK + _ZONE)
_DURATION = re.compile(
    r"(-)?P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
)

_READERS: Mapping[str, Callable[[str], _Found]] = {
    **dict.fromkeys((*INTEGERS, XSD + "decimal", XSD + "double"), _number),
    XSD + "float": _single,
    XSD + "boolean": _boolean,
    **dict.fromkeys((XSD + "dateTime", XSD + "dateTimeStamp", XSD + "date"), _instant),
    XSD + "time": _time,
    **{XSD + name: _duration for name in ("duration", "dayTimeDuration", "yearMonthDuration")},
    **{
        XSD + name: _part_of_date for name in ("gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay")
    },
}
