"""Column of a recorded remote: a predicate's objects as JSON, and their common datatype."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from rdflib import URIRef

from acquatop.ingest.terms import to_rdflib
from replica.remotes.values import IRI, XSD, term_maker
from replica.terms import is_blank, number_of

_NUMBERS = [XSD + name for name in ("integer", "decimal", "double")]
"""Datatypes of numbers; each holds the numbers of those before it."""
_OTHERS = {XSD + name for name in ("string", "boolean", "dateTime")}
_MOST_DIGITS = 1_000


class UnwritableError(ValueError):
    """Term that a table cannot hold beside the others of its column; the message says why."""


@dataclass
class TableColumn:
    """Column of a predicate's objects: those of a ``variable``, or always the same ``constant``.

    A variable of a pattern that is no star has no predicate, and may be unbound (``is_optional``).
    ``datatype`` is the narrowest that fits all terms written so far; None before the first.
    """

    field: str
    predicate: str
    variable: str | None = None
    constant: str | None = None
    datatype: str | None = None
    is_optional: bool = False

    def write(self, term: str) -> str:
        """Return a term as JSON, widening the datatype if needed; raise :class:`UnwritableError`.

        >>> column = TableColumn("p0", "urn:p", "x")
        >>> column.write('"07"^^<http://www.w3.org/2001/XMLSchema#int>'), column.datatype
        ('7', 'http://www.w3.org/2001/XMLSchema#integer')
        >>> column.write('"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'), column.datatype
        ('1.50', 'http://www.w3.org/2001/XMLSchema#decimal')
        """
        datatype, written = _written(term)
        self.datatype = _common(self.datatype, datatype)
        return written


def _written(term: str) -> tuple[str, str]:
    """Return the datatype under which a table holds a term, and the term as JSON."""
    if is_blank(term):
        raise UnwritableError("a blank node means nothing outside of the reply that it is in")
    found = to_rdflib(term)
    if isinstance(found, URIRef):
        return IRI, json.dumps(str(found))
    language, datatype = (
        getattr(found, "language", None),
        str(getattr(found, "datatype", None) or XSD + "string"),
    )
    if language is not None:
        raise UnwritableError("a text in a language")
    number = number_of(term)
    if math.isfinite(number):
        return _number(str(found), number, datatype)
    if datatype not in _OTHERS:
        raise UnwritableError(
            f"the datatype {datatype.replace(XSD, 'xsd:')} or what is written in it"
        )
    value = (
        {"true": True, "1": True}.get(str(found), False)
        if datatype == XSD + "boolean"
        else str(found)
    )
    if term_maker(datatype)(value) is None:
        raise UnwritableError(f"what is no {datatype.replace(XSD, 'xsd:')}")
    return datatype, json.dumps(value)


def _number(lexical: str, number: float, datatype: str) -> tuple[str, str]:
    if datatype in (XSD + "double", XSD + "float"):
        return XSD + "double", repr(number)
    try:
        exact = Decimal(lexical)
    except InvalidOperation:
        raise UnwritableError("a number that is not written as one") from None
    if len(exact.as_tuple().digits) > _MOST_DIGITS:
        raise UnwritableError(f"a number with more than {_MOST_DIGITS} digits")
    return XSD + ("decimal" if datatype == XSD + "decimal" else "integer"), format(exact, "f")


def _common(held: str | None, new: str) -> str:
    """Return a datatype for values of both.

    >>> _common(XSD + "integer", XSD + "double") == XSD + "double"
    True
    """
    if held is None or held == new:
        return new
    if held in _NUMBERS and new in _NUMBERS:
        return _NUMBERS[max(_NUMBERS.index(held), _NUMBERS.index(new))]
    raise UnwritableError(f"{_short(new)} beside {_short(held)}")


def _short(datatype: str) -> str:
    return datatype.replace(XSD, "xsd:")
