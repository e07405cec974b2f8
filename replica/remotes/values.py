"""RDF terms of values from JSON, tables and Python objects: equal values have equal terms."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from urllib.parse import unquote

import numpy as np

from replica.terms import is_blank, is_term, literal_text

XSD = "http://www.w3.org/2001/XMLSchema#"
IRI = "iri"
"""Datatype of fields that hold a full IRI."""

TermMaker = Callable[[object], str | None]
"""Function from a value to a term, None for a value of another type."""

_MOST_DIGITS = 4300
"""Python's own limit of digits; a longer exponent could need any amount of memory."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = r"-?(?:[1-9][0-9]{4,}|[0-9]{4})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?"
_ZONE = "(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])"
_DATE_TIME = re.compile(rf"{_DATE}T{_TIME}{_ZONE}?")
_HOURS = r"(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?"
_WRITTEN: Mapping[str, re.Pattern[str]] = {
    XSD + "dateTimeStamp": re.compile(rf"{_DATE}T{_TIME}{_ZONE}"),
    XSD + "date": re.compile(rf"{_DATE}{_ZONE}?"),
    XSD + "time": re.compile(rf"{_TIME}{_ZONE}?"),
    XSD + "duration": re.compile(
        rf"-?P(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?(?:T{_HOURS})?"
    ),
    XSD + "dayTimeDuration": re.compile(rf"-?P(?=[0-9T])(?:[0-9]+D)?(?:T{_HOURS})?"),
    XSD + "yearMonthDuration": re.compile("-?P(?=[0-9])(?:[0-9]+Y)?(?:[0-9]+M)?"),
    XSD + "anyURI": re.compile(r'[^\x00-\x20<>"{}|\\^`]*'),
}
"""Datatypes whose values are texts, with their syntax."""
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, math.inf),
    "positiveInteger": (1, math.inf),
    "nonPositiveInteger": (-math.inf, 0),
    "negativeInteger": (-math.inf, -1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}
"""Least and greatest value of the integer datatypes."""
# Other characters beyond ASCII are checked by is_term, which refuses those not allowed in IRIs.
_UNFIT = re.compile(r"[^A-Za-z0-9._~!$&'()*+,;=:@/?\x80-\U0010ffff-]")


@dataclass(frozen=True)
class IriTemplate:
    """IRI with one field of a record: ``http://example.org/user/{id}``; ``{iri}`` is a full IRI.

    Characters not allowed in a path or query of an IRI are percent-encoded, and so are ``%`` and
    ``#``. So every value has one IRI, and every IRI made by :meth:`term` stands for one value.
    Other spellings, such as ``user/%41`` for ``user/A``, stand for none. Full IRIs are used
    unchanged.

    >>> users = IriTemplate.parse("http://example.org/user/{id}")
    >>> users.term("a b/100%"), users.term(42), users.term("")
    ('<http://example.org/user/a%20b/100%25>', '<http://example.org/user/42>', None)
    >>> users.value("<http://example.org/user/a%20b/100%25>"), users.value("<http://example.org/user/%41>")
    ('a b/100%', None)
    """

    prefix: str
    path: str
    suffix: str

    @staticmethod
    def parse(text: str) -> IriTemplate:
        """Parse a template; raises ValueError unless it has one ``{field}`` and makes IRIs."""
        match = re.fullmatch(r"([^{}]*)\{([^{}]+)\}([^{}]*)", text)
        if match is None:
            raise ValueError(
                f'"{text}" must have one {{field}} in it, such as "http://example.org/user/{{id}}"'
            )
        if match[1] and not is_term(f"<{match[1]}1{match[3]}>"):
            raise ValueError(f'"{text}" does not make IRIs')
        return IriTemplate(match[1], match[2], match[3])

    def term(self, value: object) -> str | None:
        """Return the IRI of a text or a whole number, None if it has none."""
        text = _plain(value)
        if not text:
            return None
        term = f"<{self.prefix}{_UNFIT.sub(_percent, text) if self.prefix else text}{self.suffix}>"
        return term if is_term(term) else None

    def value(self, term: str) -> str | None:
        """Return the text that an IRI stands for, None if this template does not make that IRI."""
        begin, end = f"<{self.prefix}", f"{self.suffix}>"
        if not (term.startswith(begin) and term.endswith(end)) or is_blank(term):
            return None
        inner = term[len(begin) : -len(end)]
        try:
            text = unquote(inner, errors="strict") if self.prefix else inner
        except UnicodeDecodeError:
            return None
        return text if self.term(text) == term else None


def term_maker(datatype: str) -> TermMaker:
    """Return the term maker of a datatype: an XSD IRI, ``iri``, an IRI template, or a language.

    A language is written ``@en``.

    Raises ValueError for other datatypes.

    >>> make = term_maker("http://www.w3.org/2001/XMLSchema#double")
    >>> make(7), make("7"), make(float("nan"))
    ('"7.0"^^<http://www.w3.org/2001/XMLSchema#double>', None, None)
    >>> term_maker("http://example.org/machine/{}")("press-1")
    '<http://example.org/machine/press-1>'
    """
    if datatype == IRI:
        return _whole_iri
    if datatype.startswith("@"):
        return lambda value: (
            None if _string(value) is None else literal_text(str(value), language=datatype[1:])
        )
    if "{" in datatype:
        template = IriTemplate.parse(datatype.replace("{}", "{value}"))
        return lambda value: template.term(_unboxed(value))
    lexical = _LEXICAL.get(datatype)
    if lexical is None:
        known = ", ".join(each.replace(XSD, "xsd:") for each in _LEXICAL)
        raise ValueError(
            f'the datatype "{datatype}" is not supported: use {known}, "{IRI}" or a '
            "template of IRIs"
        )

    def make(value: object) -> str | None:
        text = lexical(_unboxed(value))
        return None if text is None else literal_text(text, datatype)

    return make


def parsed(text: object, datatype: str) -> object:
    """Return the value of a text, such as in CSV; the text itself if it is invalid.

    >>> parsed("007", XSD + "integer"), parsed("1.50", XSD + "double"), parsed("x", XSD + "integer")
    (7, Decimal('1.50'), 'x')
    """
    if not isinstance(text, str):
        return text
    if (
        datatype.removeprefix(XSD) in ("integer", *_BOUNDS)
        and _WHOLE.fullmatch(text)
        and len(text) <= _MOST_DIGITS
    ):
        return int(text)
    if datatype in (XSD + "decimal", XSD + "double", XSD + "float") and _NUMBER.fullmatch(text):
        try:
            return Decimal(text)
        except InvalidOperation:  # exponent too large
            return text
    if datatype == XSD + "boolean":
        return {"true": True, "1": True, "false": False, "0": False}.get(text, text)
    return text


def _unboxed(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _plain(value: object) -> str | None:
    value = _unboxed(value)
    return value if isinstance(value, str) else _integer(value)


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _whole_iri(value: object) -> str | None:
    term = f"<{value}>" if isinstance(value, str) else ""
    return term if is_term(term) and not is_blank(term) else None


def _integer(value: object) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    try:
        return str(value)
    except ValueError:  # more digits than Python converts
        return None


def _double(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    # Adding zero turns -0.0 into 0.0.
    return repr(number + 0.0) if math.isfinite(number) else None


def _float(value: object) -> str | None:
    text = _double(value)
    if text is None:
        return None
    with np.errstate(over="ignore"):
        number = np.float32(float(text))
    return str(number) if np.isfinite(number) else None


def _within(name: str) -> Callable[[object], str | None]:
    least, most = _BOUNDS[name]

    def write(value: object) -> str | None:
        text = _integer(value)
        return text if text is not None and least <= int(text) <= most else None

    return write


def _of_syntax(datatype: str) -> Callable[[object], str | None]:
    def write(value: object) -> str | None:
        if isinstance(value, datetime.date | datetime.time):
            value = value.isoformat().replace("+00:00", "Z")
        return value if isinstance(value, str) and _WRITTEN[datatype].fullmatch(value) else None

    return write


def _decimal(value: object) -> str | None:
    if isinstance(value, float):
        value = Decimal(repr(value))  # shortest notation of that number
    if not isinstance(value, Decimal):
        return _integer(value)
    # A number may have few digits, but an exponent so large that its text would fill the memory.
    if not value.is_finite() or len(value.as_tuple().digits) + abs(value.adjusted()) > _MOST_DIGITS:
        return None
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text if text.strip("-0.") else "0"


def _boolean(value: object) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None


def _string(value: object) -> str | None:
    # JSON escapes can write half a surrogate pair, which no text can hold.
    is_text = isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value)
    return str(value) if is_text else None


def _date_time(value: object) -> str | None:
    if isinstance(value, datetime.datetime):
        text = value.isoformat()
        return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
    return value if isinstance(value, str) and _DATE_TIME.fullmatch(value) else None


_LEXICAL: Mapping[str, Callable[[object], str | None]] = {
    XSD + "integer": _integer,
    XSD + "double": _double,
    XSD + "decimal": _decimal,
    XSD + "string": _string,
    XSD + "boolean": _boolean,
    XSD + "dateTime": _date_time,
    XSD + "float": _float,
    **{XSD + name: _within(name) for name in _BOUNDS},
    **{each: _of_syntax(each) for each in _WRITTEN},
}
