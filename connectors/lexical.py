"""Lexical forms of XSD's datatypes: the check of texts, and the one text for equal numbers."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from connectors.number_texts import finite_numbers, whole_numbers

XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGERS: Mapping[str, tuple[int, int]] = {
    XSD + "integer": (-(2**63), 2**63 - 1),
    XSD + "long": (-(2**63), 2**63 - 1),
    XSD + "int": (-(2**31), 2**31 - 1),
    XSD + "short": (-(2**15), 2**15 - 1),
    XSD + "byte": (-128, 127),
    XSD + "nonNegativeInteger": (0, 2**63 - 1),
    XSD + "positiveInteger": (1, 2**63 - 1),
    XSD + "nonPositiveInteger": (-(2**63), 0),
    XSD + "negativeInteger": (-(2**63), -1),
    XSD + "unsignedLong": (0, 2**63 - 1),
    XSD + "unsignedInt": (0, 2**32 - 1),
    XSD + "unsignedShort": (0, 2**16 - 1),
    XSD + "unsignedByte": (0, 255),
}
"""Least and greatest value of each integer datatype, as far as 64 bits hold them."""
MOST_DIGITS = 4300
"""Most digits of a decimal: an exponent could ask for any amount of memory."""

_YEAR = "-?(?:[1-9][0-9]{4,}|[0-9]{4})"
_MONTH = "(?:0[1-9]|1[0-2])"
_DAY = "(?:0[1-9]|[12][0-9]|3[01])"
_MONTH_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|[12][0-9]))"
)
_TIME = r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?|24:00:00(?:\.0+)?)"
_ZONE = "(?:Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))"
_DATE = f"{_YEAR}-{_MONTH_DAY}"
_HOURS = r"(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?"
_WRITTEN: Mapping[str, str] = {
    "dateTime": f"{_DATE}T{_TIME}{_ZONE}?",
    "dateTimeStamp": f"{_DATE}T{_TIME}{_ZONE}",
    "date": f"{_DATE}{_ZONE}?",
    "time": f"{_TIME}{_ZONE}?",
    "gYear": f"{_YEAR}{_ZONE}?",
    "gYearMonth": f"{_YEAR}-{_MONTH}{_ZONE}?",
    "gMonth": f"--{_MONTH}{_ZONE}?",
    "gMonthDay": f"--{_MONTH_DAY}{_ZONE}?",
    "gDay": f"---{_DAY}{_ZONE}?",
    "duration": f"-?P(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?(?:T{_HOURS})?",
    "dayTimeDuration": f"-?P(?:[0-9]+D)?(?:T{_HOURS})?",
    "yearMonthDuration": "-?P(?:[0-9]+Y)?(?:[0-9]+M)?",
}
_WITH_DAYS = ("dateTime", "dateTimeStamp", "date")
_DURATIONS = ("duration", "dayTimeDuration", "yearMonthDuration")
_DECIMAL = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?$"


def canonical(texts: pa.StringArray, datatype: str) -> pa.StringArray:
    """Return texts as a datatype's literals write them, null for those that it does not have.

    Numbers and booleans get the one text of their value; other texts stay as they are.

    >>> canonical(pa.array(["+07.50", ".5", "1e2", "x"]), XSD + "decimal").to_pylist()
    ['7.5', '0.5', '100', None]
    >>> canonical(pa.array(["2023-02-29", "2024-02-29Z"]), XSD + "date").to_pylist()
    [None, '2024-02-29Z']
    """
    return _FORMS[datatype](texts)


def _matching(texts: pa.StringArray, pattern: str) -> pa.StringArray:
    return pc.if_else(pc.match_substring_regex(texts, pattern), texts, None)


def _in_range(datatype: str) -> Callable[[pa.StringArray], pa.StringArray]:
    least, most = INTEGERS[datatype]

    def read(texts: pa.StringArray) -> pa.StringArray:
        numbers = whole_numbers(texts)
        within = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))
        return pc.if_else(within, numbers, None).cast(pa.string())

    return read


def _decimals(texts: pa.StringArray) -> pa.StringArray:
    texts = _matching(texts, _DECIMAL)
    powers = pc.fill_null(pc.match_substring_regex(texts, "[eE]"), False)
    if pc.any(powers, min_count=0).as_py():
        plain = [_without_power(each) for each in texts.filter(powers).to_pylist()]
        texts = pc.replace_with_mask(texts, powers, pa.array(plain, pa.string()))
    for pattern, then in (
        (r"^\+", ""),
        (r"^(-?)\.", r"\g<1>0."),
        (r"^(-?)0+([0-9])", r"\1\2"),
        (r"(\.[0-9]*[1-9])0+$", r"\1"),
        (r"\.0*$", ""),
        ("^-0$", "0"),
    ):
        texts = pc.replace_substring_regex(texts, pattern, then.replace(r"\g<1>", r"\1"))
    return texts


def _without_power(text: str) -> str | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if len(value.as_tuple().digits) + abs(value.adjusted()) > MOST_DIGITS:
        return None
    return format(value, "f")


def _floating(type_: pa.DataType) -> Callable[[pa.StringArray], pa.StringArray]:
    def read(texts: pa.StringArray) -> pa.StringArray:
        numbers = finite_numbers(texts).cast(type_)
        return pc.if_else(pc.is_finite(numbers), numbers, None).cast(pa.string())

    return read


def _booleans(texts: pa.StringArray) -> pa.StringArray:
    values = pa.array(["true", "false", "true", "false"], pa.string())
    return values.take(pc.index_in(texts, pa.array(["true", "false", "1", "0"], pa.string())))


def _written(name: str) -> Callable[[pa.StringArray], pa.StringArray]:
    def read(texts: pa.StringArray) -> pa.StringArray:
        texts = _matching(texts, f"^{_WRITTEN[name]}$")
        if name in _DURATIONS:
            return _matching(texts, "[YMDHS]$")
        return _existing(texts) if name in _WITH_DAYS else texts

    return read


def _existing(texts: pa.StringArray) -> pa.StringArray:
    """Return texts of dates without those of a 29 February that is not."""
    leaping = pc.fill_null(pc.match_substring(texts, "-02-29"), False)
    if not pc.any(leaping, min_count=0).as_py():
        return texts
    kept = [
        text if calendar.isleap(int(text.rpartition("-02-29")[0][-4:])) else None
        for text in texts.filter(leaping).to_pylist()
    ]
    return pc.replace_with_mask(texts, leaping, pa.array(kept, pa.string()))


_FORMS: Mapping[str, Callable[[pa.StringArray], pa.StringArray]] = {
    **{each: _in_range(each) for each in INTEGERS},
    XSD + "decimal": _decimals,
    XSD + "double": _floating(pa.float64()),
    XSD + "float": _floating(pa.float32()),
    XSD + "boolean": _booleans,
    XSD + "string": lambda texts: texts,
    XSD + "anyURI": lambda texts: _matching(texts, r"^[^\x00-\x20<>\"{}|\\^`]*$"),
    **{XSD + each: _written(each) for each in _WRITTEN},
}
NUMBERS = (*INTEGERS, XSD + "decimal", XSD + "double", XSD + "float")
"""Datatypes of numbers."""
KNOWN = tuple(_FORMS)
"""Datatypes of literals that a mapping may declare."""
