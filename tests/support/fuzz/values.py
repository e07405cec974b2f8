"""Values that somebody may send: plain ones, odd ones and absurd ones, of each datatype."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random

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


GENERATORS: Mapping[str, Callable[[Random], Value]] = {
    XSD + "integer": _integer,
    XSD + "double": _double,
    XSD + "string": _string,
    "iri": _iri,
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
    if shown["type"] != "literal" or shown.get("datatype", XSD + "string") != datatype:
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


def plain_whole(value: Value) -> str:
    """Return the text of a value; that of a whole number is written without ado."""
    if value.kind == "number" and re.fullmatch(r"[+-]?[0-9]{1,4000}", value.text):
        return str(int(value.text))
    return value.text
