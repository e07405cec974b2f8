"""Values that somebody may send: plain ones, odd ones and absurd ones, of each datatype."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
from rdflib import Literal, URIRef

XSD = "http://www.w3.org/2001/XMLSchema#"
NS = "http://example.org/"
IN_TEMPLATE = "template"
"""Mark of a property whose values become parts of IRIs."""


@dataclass(frozen=True)
class Value:
    """Value as somebody sends it: a number by its text, a text, or another piece of JSON.

    ``verdict`` is True if it must be used, False if its item must be bad, None if either is right.
    """

    text: str
    verdict: bool | None
    kind: str = "text"


def number(text: str, verdict: bool | None) -> Value:
    """Return a number, or what looks like one."""
    return Value(text, verdict, "number")


WHOLE = ("0", "7", "-7", "42", str(2**53 + 1), str(2**63 - 1), str(-(2**63)), str(10**18))
BEYOND = (str(2**63), str(-(2**63) - 1), "9" * 40, "-" + "9" * 40, "9" * 5_000)
FINITE = ("0.5", "-0.25", "1e300", "-1e300", "5e-324", "1e-400", "1.7976931348623157e308", "0.1")
ODD_NUMBERS = ("-0", "1.0", "1e2", "-0.0", "1E5", "1e400", "-1e400", "0e999999999", "1e-999999999")
NO_NUMBERS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "INF",
    "+1",
    "007",
    ".5",
    "5.",
    "0x10",
    "1_000",
    "--1",
)
OTHER_JSON = (
    *("true", "false", "[]", "{}", "[1]", '{"a":{"a":1}}', "[" * 90 + "]" * 90),
    *("[" * 3_000 + "]" * 3_000, "[" * 60_000, '{"":' * 2_000 + "1" + "}" * 2_000, "tru", "nul"),
)
ODD_TEXTS = (
    *("", " ", "\x00", "a\x00b", "\t", "\r", "a\rb", "a\nb", "\r\n", "\x0b\x0c\x1c\x1d\x1e\x85"),
    *("\u2028\u2029", "\u202eabc\u202c", "\u200f\u061c", "\ufeff", "\ufffe\uffff", "\U0010ffff"),
    *("e\u0301", "\u0635\u0628\u0627\u062d", "\U0001f468\u200d\U0001f469", "\u7530\u4e2d", "ß"),
    *('"', '""', "'", "\\", "\\u0041", "\\n", '"@en', '"^^<x>', "a,b", "a;b", "a\tb", "=1+1", "@x"),
    *(
        "<urn:a>",
        "<a b>",
        "%",
        "%zz",
        "%00",
        "{x}",
        "${X}",
        "null",
        "NULL",
        "NaN",
        "true",
        "-",
        "#",
    ),
    *(
        "yes",
        "TRUE",
        "P1D",
        "-P1Y2M",
        "PT0.5S",
        "12345-01-01",
        "en-GB",
        "_:b0",
        "a . b",
        "]]>",
        "&",
    ),
    *("\x7f\x80\x9f", "\x1b[31m", "\x01\x02", "a" * 70_000, "\u00e9" * 9_000, " x ", "$1", "\\1"),
)
HALVES = ("\ud800", "a\udfffb", "\udc00\ud800", "\ud83d")
GOOD_IRIS = ("urn:a", "http://e/x?y=1#z", "http://e/%C3%A9", "http://e/\u00e9", "x:", "mailto:a@b")
NO_IRIS = (
    *(
        "",
        "a",
        "a b",
        "urn:a b",
        "urn:a\nb",
        'urn:"',
        "urn:<>",
        "urn:\\",
        "urn:{}",
        "urn:^",
        "urn:`",
    ),
    *("urn:\x00", "urn:%zz", "urn:\ue000", ":a", "1:a", "//e/x", "urn:\ufffe", "urn:|"),
)
_WORD = re.compile(r"[A-Za-z0-9._~-]+")


def _integer(random: Random) -> Value:
    if random.random() < 0.6:
        return number(random.choice(WHOLE), True)
    text = random.choice((*BEYOND, *ODD_NUMBERS, *NO_NUMBERS, *FINITE))
    return number(text, False if text in BEYOND else None)


def _double(random: Random) -> Value:
    if random.random() < 0.6:
        text = random.choice((*FINITE, repr(random.uniform(-1e6, 1e6)), *WHOLE))
        return number(text, True)
    text = random.choice((*ODD_NUMBERS, *NO_NUMBERS, *BEYOND))
    try:
        is_finite = math.isfinite(float(text))
    except ValueError:
        is_finite = True
    return number(text, None if is_finite else False)


def _string(random: Random) -> Value:
    if random.random() < 0.06:
        return Value(random.choice(HALVES), False)
    if random.random() < 0.3:
        return Value(f"w{random.randrange(4)}", True)
    if random.random() < 0.1:
        return Value(
            "".join(
                chr(random.choice((random.randrange(1, 0xD800), 65, 0x1F600)))
                for _ in range(random.randrange(9))
            ),
            True,
        )
    return Value(random.choice(ODD_TEXTS), True)


def _iri(random: Random) -> Value:
    if random.random() < 0.7:
        return Value(random.choice(GOOD_IRIS), True)
    return Value(random.choice(NO_IRIS), None)


def _part(random: Random) -> Value:
    if random.random() < 0.6:
        return Value(random.choice(("a", "b", "a-b", "~", "x.y")), True)
    if random.random() < 0.2:
        return number(random.choice((*WHOLE, *BEYOND)), None)
    text = random.choice((*NO_IRIS, *ODD_TEXTS, *HALVES))
    return Value(text, None)


_LEXICAL: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "dateTime": (
        ("2020-02-29T12:00:00Z", "1999-12-31T23:59:59.125+05:30", "2024-01-01T00:00:00"),
        (
            "2021-02-29T00:00:00Z",
            "2020-13-01T00:00:00Z",
            "2020-01-01",
            "now",
            "2020-01-01T25:00:00",
        ),
    ),
    "date": (
        ("2020-02-29", "2024-12-31Z", "1970-01-01+01:00"),
        ("2023-02-29", "1900-02-29", "2020-1-1", "2020-04-31", "2020-01-01T00:00:00"),
    ),
    "time": (("12:00:00", "23:59:59.5Z", "00:00:01-05:00"), ("25:00:00", "12:00", "12:60:00")),
    "duration": (
        ("P1D", "-P1Y2M", "PT0.5S", "P1Y2M3DT4H5M6.7S", "PT36H"),
        ("P", "PT", "1D", "P1S", "P1D2H", "P1.5D"),
    ),
}
"""Texts that a datatype has, and such that it has not."""
DECIMALS = ("0.1", "12.50", "-0.000001", "123456789012345.678", "0", "-7", "99999999999999999.1")


def _lexical(name: str) -> Callable[[Random], Value]:
    good, bad = _LEXICAL[name]

    def make(random: Random) -> Value:
        is_good = random.random() < 0.7
        return Value(random.choice(good if is_good else bad), is_good)

    return make


def _decimal(random: Random) -> Value:
    if random.random() < 0.7:
        return number(random.choice(DECIMALS), True)
    return number(random.choice((*ODD_NUMBERS, *NO_NUMBERS)), None)


def _boolean(random: Random) -> Value:
    return Value(random.choice(("true", "false")), True, "json")


def _byte(random: Random) -> Value:
    text = random.choice(("0", "127", "-128", "128", "-129", str(2**63 - 1), str(2**63)))
    return number(text, -128 <= int(text) <= 127)


def _float(random: Random) -> Value:
    text = random.choice(("0.1", "-2.5", "16777217", "3.4e38", "1e39", "1e-50", "7"))
    return number(text, text != "1e39")


GENERATORS: Mapping[str, Callable[[Random], Value]] = {
    XSD + "integer": _integer,
    XSD + "double": _double,
    XSD + "string": _string,
    "iri": _iri,
    **{XSD + name: _lexical(name) for name in _LEXICAL},
    XSD + "decimal": _decimal,
    XSD + "boolean": _boolean,
    XSD + "byte": _byte,
    XSD + "float": _float,
    IN_TEMPLATE: _part,
}
"""Makers of a value, by the datatype of a property."""


def value_of(datatype: str, random: Random) -> Value | None:
    """Return a value of a datatype, of another one now and then; None if it is missing."""
    if random.random() < 0.05:
        return None
    if random.random() < 0.04:
        return Value(random.choice(OTHER_JSON), None, "json")
    if random.random() < 0.04:
        wrong = GENERATORS[random.choice(list(GENERATORS))](random)
        return Value(wrong.text, None, wrong.kind)
    return GENERATORS[datatype](random)


def is_faithful(value: Value, datatype: str, shown: Mapping[str, str]) -> bool:
    """Return True if a term of an answer, as SPARQL's JSON, says what was sent."""
    said = shown["value"]
    if datatype in ("iri", IN_TEMPLATE):
        prefix = f"{NS}part/" if datatype == IN_TEMPLATE else ""
        return shown["type"] == "uri" and said == prefix + plain_whole(value)
    if shown["type"] != "literal":
        return False
    if datatype not in (XSD + "integer", XSD + "double", XSD + "string"):
        return _is_same(value.text, shown, datatype)
    if shown.get("datatype", XSD + "string") != datatype:
        return False
    if datatype == XSD + "string":
        return said == value.text
    try:
        if datatype == XSD + "integer":
            return (
                Fraction(said) == Fraction(value.text)
                and re.fullmatch("-?[0-9]+", said) is not None
            )
        return float(said) == float(value.text)
    except (ValueError, ZeroDivisionError):
        return False


def _is_same(sent: str, shown: Mapping[str, str], datatype: str) -> bool:
    """Return True if rdflib reads the same value in what was sent and in what is shown.

    Whole windows show integers of all kinds as xsd:integer.
    """
    kinds = {datatype, XSD + "integer"} if datatype == XSD + "byte" else {datatype}
    if shown.get("datatype") not in kinds:
        return False
    if datatype == XSD + "float":
        return bool(np.float32(float(sent)) == np.float32(float(shown["value"])))
    if datatype == XSD + "decimal":
        return Decimal(sent) == Decimal(shown["value"])
    before, after = (Literal(each, datatype=URIRef(datatype)) for each in (sent, shown["value"]))
    return not before.ill_typed and bool(before.value == after.value)


def plain_whole(value: Value) -> str:
    """Return the text of a value; that of a whole number is written without ado."""
    if value.kind == "number" and re.fullmatch(r"[+-]?[0-9]{1,4000}", value.text):
        return str(int(value.text))
    return value.text
