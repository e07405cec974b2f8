"""Conversion of columns of RDF terms to values: numbers, texts, IRIs and instants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.coded import coded
from connectors.escapes import unescaped
from connectors.instants import milliseconds
from connectors.lexical import INTEGERS
from connectors.number_texts import finite, whole, whole_numbers
from connectors.properties import IRI, XSD_DOUBLE, Property, TermProperty
from connectors.text_slices import TextSlices

_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGERS = (
    "integer|long|int|short|byte|nonNegativeInteger|positiveInteger|nonPositiveInteger|negativeInteger|"
    "unsignedLong|unsignedInt|unsignedShort|unsignedByte"
)
_INTEGER = rf'^"[+-]?[0-9]+"\^\^<{_XSD}(?:{_INTEGERS})>$'
_NUMBER = (
    rf'^"(?:[+-]?[0-9]+"\^\^<{_XSD}(?:{_INTEGERS})|[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"\^\^<{_XSD}decimal'
    rf'|[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"\^\^<{_XSD}(?:double|float))>$'
)
_INSTANT = rf'^"[0-9T:.Z+-]+"\^\^<{_XSD}dateTime(?:Stamp)?>$'


def objects_of(terms: pa.StringArray, about: Property) -> pa.Array:
    """Return the values of terms in the column of a property, null for those that do not fit."""
    if not isinstance(about, TermProperty):
        return values_of(terms, about.datatype)
    each = coded(terms)
    return about.objects.among(each.dictionary).take(each.indices)


def values_of(terms: pa.StringArray, datatype: str) -> pa.Array:
    """Return the values of terms in a column of a datatype, null for terms of another kind.

    Numbers of all numeric XSD datatypes are valid doubles; those of the integer types are valid
    integers, if 64 bits can hold them. A text with a language is not an xsd:string.

    >>> values_of(
    ...     pa.array(['"7"^^<http://www.w3.org/2001/XMLSchema#int>', '"7"']), XSD_DOUBLE
    ... ).to_pylist()
    [7.0, None]
    """
    return _READERS[datatype](terms)


def times_of(terms: pa.StringArray) -> pa.Int64Array:
    """Return terms in milliseconds since the epoch; they are integers or instants.

    >>> times_of(
    ...     pa.array(['"1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'])
    ... ).to_pylist()
    [1000]
    """
    numbers = _integers(terms)
    if not numbers.null_count:
        return numbers
    return pc.coalesce(numbers, milliseconds(_lexical(terms, _INSTANT)))


def times_in(texts: pa.StringArray) -> pa.Int64Array:
    """Return bare texts in milliseconds since the epoch; they are integers or instants.

    >>> times_in(pa.array(["7", "1970-01-01T00:00:01Z", "soon"])).to_pylist()
    [7, 1000, None]
    """
    return pc.coalesce(whole_numbers(texts), milliseconds(texts))


def _integers(terms: pa.StringArray) -> pa.Int64Array:
    return whole(_lexical(terms, _INTEGER))


def _whole_within(datatype: str) -> Callable[[pa.StringArray], pa.Int64Array]:
    least, most = INTEGERS[datatype]

    def read(terms: pa.StringArray) -> pa.Int64Array:
        numbers = _integers(terms)
        within = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))
        return pc.if_else(within, numbers, None)

    return read


def _singles(terms: pa.StringArray) -> pa.DoubleArray:
    values = _doubles(terms).cast(pa.float32(), safe=False).cast(pa.float64())
    return pc.if_else(pc.is_finite(values), values, None)


def _doubles(terms: pa.StringArray) -> pa.DoubleArray:
    return finite(_lexical(terms, _NUMBER))


def _strings(terms: pa.StringArray) -> pa.StringArray:
    terms = pc.replace_substring_regex(terms, rf'"\^\^<{_XSD}string>$', '"')
    fit = pc.and_(pc.starts_with(terms, '"'), pc.ends_with(terms, '"'))
    return _unescaped(pc.utf8_slice_codeunits(pc.if_else(fit, terms, None), 1, -1))


def _iris(terms: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.starts_with(terms, "<"), terms, None)


_READERS: Mapping[str, Callable[[pa.StringArray], pa.Array]] = {
    **{_XSD + each: _whole_within(_XSD + each) for each in _INTEGERS.split("|")},
    _XSD + "integer": _integers,
    XSD_DOUBLE: _doubles,
    _XSD + "float": _singles,
    _XSD + "string": _strings,
    IRI: _iris,
}


def _lexical(terms: pa.StringArray, written: str) -> pa.StringArray:
    """Return the text between the quotes of literals that match a pattern, null for other terms."""
    fit = pc.match_substring_regex(terms, written).to_numpy(zero_copy_only=False)
    slices = TextSlices(terms)
    quotes = slices.places_of('"')
    # The first quote in a literal opens it. Numbers and instants contain none, so the next one
    # closes it.
    closing = quotes[np.minimum(np.searchsorted(quotes, slices.starts) + 1, len(quotes) - 1)]
    closing = np.where(fit, closing, slices.starts)
    texts = slices.between(np.where(fit, slices.starts + 1, slices.starts), closing)
    return texts if fit.all() else pc.if_else(pa.array(fit), texts, None)


def _unescaped(texts: pa.StringArray) -> pa.StringArray:
    """Return texts without N-Triples escapes; only texts that contain some cost Python objects."""
    escaped = pc.fill_null(pc.match_substring(texts, "\\"), False)
    plain = [unescaped(each) for each in texts.filter(escaped).to_pylist()]
    return pc.replace_with_mask(texts, escaped, pa.array(plain, pa.string())) if plain else texts
