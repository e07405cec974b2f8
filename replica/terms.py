"""RDF terms as N-Triples text, the form of keys and values. Each term has exactly one text."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Mapping

_XSD = "http://www.w3.org/2001/XMLSchema#"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(rf"{_DECIMAL.pattern}(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_INTEGERS = (
    "integer long int short byte nonNegativeInteger positiveInteger nonPositiveInteger "
    "negativeInteger "
    "unsignedLong unsignedInt unsignedShort unsignedByte".split()
)
_NUMERIC = {
    **{_XSD + name: _WHOLE for name in _INTEGERS},
    _XSD + "decimal": _DECIMAL,
    _XSD + "double": _DOUBLE,
    _XSD + "float": _DOUBLE,
}
"""Numeric datatypes, and the syntax of their numbers."""
FLOAT = _XSD + "float"
_FLOATING = (FLOAT, _XSD + "double")
NOT_A_NUMBER: float = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]
"""The number NaN of xsd:float and xsd:double among numbers; every other NaN means no number."""
_BLANK = "urn:acquatop:blank:"
_BLANK_IRI = re.compile(re.escape(_BLANK) + "([0-9a-f]{32})")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})

# An absolute IRI by RFC 3987, without IP literals. A term that a server would refuse must not be
# sent: one such key would cost the whole request.
_UCS = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14)
)
_UNIT = rf"(?:[A-Za-z0-9._~!$&'()*+,;={_UCS}-]|%[0-9A-Fa-f]{{2}})"
_PATH = rf"(?:{_UNIT}|[:@/])*"
_AUTHORITY = rf"//(?:(?:{_UNIT}|:)*@)?{_UNIT}*(?::[0-9]*)?(?:/{_PATH})?"
_REST = rf"(?:{_UNIT}|[:@/?])*"
_IRI = rf"<[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|(?!//){_PATH})(?:\?{_REST})?(?:#{_REST})?>"
_SAFE = re.compile(
    rf'{_IRI}|"(?:[^"\\\n\r\ud800-\udfff]|\\[tbnrf"\\])*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^{_IRI})?'
)

_LANGUAGE = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?"
    r"|x(?:-[a-z0-9]{1,8})+",
    re.IGNORECASE,
)
"""Language tag: language, script, region, variants, extensions, private use."""


def is_term(text: str) -> bool:
    """Return True if a text is exactly one IRI or literal, so that it is safe within a query.

    A language has to be valid by RFC 5646: a server refuses the whole request for one that is not.

    >>> is_term("<http://example.org/ann>"), is_term("<http://x> } DROP ALL #")
    (True, False)
    >>> is_term('"a"@en-GB'), is_term('"a"@e'), is_term('"a"^^<urn:b>')
    (True, False, True)
    """
    if _SAFE.fullmatch(text) is None:
        return False
    has_language = text.startswith('"') and not text.endswith((">", '"'))
    return not has_language or is_language(text[text.rindex("@") + 1 :])


def is_language(tag: str) -> bool:
    """Return True if a text is a language's tag by RFC 5646."""
    return _LANGUAGE.fullmatch(tag) is not None


def can_be_asked(text: str) -> bool:
    """Return True if a text is a term that a server may know: no blank node.

    >>> can_be_asked("<urn:a>"), can_be_asked(f"<{blank_iri('<urn:a>', 'b0')}>")
    (True, False)
    """
    return is_term(text) and not is_blank(text)


def literal_text(lexical: str, datatype: str | None = None, language: str | None = None) -> str:
    r"""Return the text of a literal: minimal escapes, language in lower case.

    >>> print(
    ...     literal_text('a\n"b"', language="en-GB"),
    ...     literal_text("a", "http://www.w3.org/2001/XMLSchema#string"),
    ... )
    "a\n\"b\""@en-gb "a"
    """
    text = f'"{lexical.translate(_ESCAPES)}"'
    if language:
        return f"{text}@{language.lower()}"
    return text if datatype in (None, _XSD + "string") else f"{text}^^<{datatype}>"


def blank_iri(owner: str, label: str) -> str:
    """Return the IRI of a blank node in a remote's solution; ``owner`` is the query and its key.

    Labels are valid only within the answer that contains them: labels of different owners never
    clash.

    >>> blank_label(blank_iri("<urn:a>", "b0")) == blank_label(blank_iri("<urn:b>", "b0"))
    False
    """
    return _BLANK + hashlib.sha256(f"{owner} {label}".encode(errors="replace")).hexdigest()[:32]


def blank_label(iri: str) -> str | None:
    """Return the label of the blank node that an IRI stands for, None for an ordinary IRI.

    >>> blank_label("urn:acquatop:blank:00112233445566778899aabbccddeeff"), blank_label("urn:a")
    ('r00112233445566778899aabbccddeeff', None)
    """
    match = _BLANK_IRI.fullmatch(iri)
    return f"r{match[1]}" if match else None


def iri_of_label(label: str) -> str | None:
    """Return the IRI that stands for the blank node of a label from :func:`blank_label`, or None.

    >>> iri_of_label("r00112233445566778899aabbccddeeff"), iri_of_label("b0")
    ('urn:acquatop:blank:00112233445566778899aabbccddeeff', None)
    """
    iri = _BLANK + label[1:]
    return iri if blank_label(iri) == label else None


def is_blank(term: str) -> bool:
    """Return True if a term is an IRI that stands for a blank node; no remote knows such an IRI."""
    return term.startswith("<") and blank_label(term[1:-1]) is not None


def from_json(binding: Mapping[str, str], owner: str | None = None) -> str | None:
    """Return the N-Triples text of a SPARQL Results JSON term; None if it is invalid.

    A blank node becomes an IRI that belongs to its ``owner``, or None if there is no owner.

    >>> from_json(
    ...     {
    ...         "type": "literal",
    ...         "value": "3",
    ...         "datatype": "http://www.w3.org/2001/XMLSchema#integer",
    ...     }
    ... )
    '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    kind, value = binding.get("type"), binding.get("value")
    if not isinstance(value, str):
        return None
    if kind == "uri":
        text = f"<{value}>"
    elif kind in ("literal", "typed-literal"):
        text = literal_text(value, binding.get("datatype"), binding.get("xml:lang"))
    elif kind == "bnode" and owner is not None:
        text = f"<{blank_iri(owner, value)}>"
    else:
        return None
    return text if is_term(text) else None


def number_of(term: str) -> float:
    """Return the number that a term stands for; NaN if it has none or is invalid for its datatype.

    The number NaN has a form of its own, :data:`NOT_A_NUMBER`. An xsd:float has its precision.

    >>> number_of('"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'), number_of('"2.5"')
    (2.5, nan)
    """
    if not term.startswith('"') or not term.endswith(">"):
        return float("nan")
    lexical, _, datatype = term[1:-1].rpartition('"^^<')
    written = _NUMERIC.get(datatype)
    if written is None or not written.fullmatch(lexical):
        return float("nan")
    if lexical == "NaN":
        return NOT_A_NUMBER
    return single(float(lexical)) if datatype == FLOAT else float(lexical)


def is_not_a_number(number: float) -> bool:
    """Return True for the number NaN, which is not the NaN of a missing number."""
    return struct.pack("d", number) == struct.pack("d", NOT_A_NUMBER)


def is_floating(term: str) -> bool:
    """Return True if a term is a literal of xsd:float or xsd:double.

    >>> is_floating('"7"^^<http://www.w3.org/2001/XMLSchema#double>'), is_floating('"7"')
    (True, False)
    """
    return term.rpartition('"^^<')[2][:-1] in _FLOATING


def single(value: float) -> float:
    """Return the xsd:float that is nearest to a number.

    >>> single(0.1) == 0.1, single(0.5) == 0.5, single(-1e40)
    (False, True, -inf)
    """
    try:
        found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found
