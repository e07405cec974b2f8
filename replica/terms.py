"""RDF terms as N-Triples text: the form in which keys and values travel."""

from __future__ import annotations

import re
from collections.abc import Mapping

_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMERIC = frozenset(
    _XSD + name
    for name in (
        "integer decimal double float long int short byte nonNegativeInteger positiveInteger "
        "nonPositiveInteger negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte".split()
    )
)
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})

# An absolute IRI after RFC 3987, without IP literals: what a server would refuse must not be sent to it,
# as one such key would cost the whole request.
_UCS = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14)
)
_UNIT = rf"(?:[A-Za-z0-9._~!$&'()*+,;={_UCS}-]|%[0-9A-Fa-f]{{2}})"
_PATH = rf"(?:{_UNIT}|[:@/])*"
_AUTHORITY = rf"//(?:(?:{_UNIT}|:)*@)?{_UNIT}*(?::[0-9]*)?(?:/{_PATH})?"
_IRI = rf"<[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|(?!//){_PATH})(?:\?(?:{_UNIT}|[:@/?])*)?(?:#(?:{_UNIT}|[:@/?])*)?>"
_SAFE = re.compile(rf'{_IRI}|"(?:[^"\\\n\r]|\\[tbnrf"\\])*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^{_IRI})?')


def is_term(text: str) -> bool:
    """Say whether a text is one IRI or literal and nothing else, so that it is safe within a query.

    >>> is_term("<http://example.org/ann>"), is_term("<http://x> } DROP ALL #")
    (True, False)
    """
    return _SAFE.fullmatch(text) is not None


def from_json(binding: Mapping[str, str]) -> str | None:
    """Return the N-Triples text of a SPARQL Results JSON term; None for blank nodes and nonsense.

    >>> from_json({"type": "literal", "value": "3", "datatype": "http://www.w3.org/2001/XMLSchema#integer"})
    '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    kind, value = binding.get("type"), binding.get("value")
    if not isinstance(value, str):
        return None
    if kind == "uri":
        text = f"<{value}>"
    elif kind in ("literal", "typed-literal"):
        text = f'"{value.translate(_ESCAPES)}"' + _suffix(binding)
    else:
        return None
    return text if is_term(text) else None


def number_of(term: str) -> float:
    """Return the number that a term stands for, NaN when it is none.

    >>> number_of('"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'), number_of('"2.5"')
    (2.5, nan)
    """
    if not term.startswith('"') or not term.endswith(">"):
        return float("nan")
    lexical, _, datatype = term[1:-1].rpartition('"^^<')
    if datatype not in _NUMERIC or "_" in lexical:
        return float("nan")
    try:
        return float(lexical)
    except ValueError:
        return float("nan")


def _suffix(binding: Mapping[str, str]) -> str:
    if "xml:lang" in binding:
        return "@" + binding["xml:lang"]
    datatype = binding.get("datatype", _XSD + "string")
    return "" if datatype == _XSD + "string" else f"^^<{datatype}>"
