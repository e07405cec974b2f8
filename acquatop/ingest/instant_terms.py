"""Instants that terms name, in milliseconds since the epoch."""

from __future__ import annotations

import math
import re

import numpy as np
import pyarrow as pa

from acquatop.topk.contract import FloatArray
from connectors.coded import distinct, plain
from replica.terms import number_of
from rspql.ast import XSD
from rspql.durations import epoch_ms

_FINER = re.compile(r"(\.[0-9]{3})[0-9]+")
"""Fraction of a second with more than its milliseconds."""
_DATE_TIME = re.compile(rf'"(.*)"\^\^<{re.escape(XSD)}dateTime>')
_INTEGER = f"^^<{XSD}integer>"


def instants_of(terms: pa.Array) -> FloatArray:
    """Return the instants of N-Triples terms: an xsd:dateTime, or whole milliseconds.

    NaN for other terms; finer parts are cut off. O(different terms).

    >>> from rspql.ast import XSD
    >>> terms = [f'"1970-01-01T00:00:02.0059Z"^^<{XSD}dateTime>', f'"7"^^<{XSD}integer>', '"x"']
    >>> instants_of(pa.array(terms))
    array([2005.,    7.,   nan])
    """
    coded = distinct(terms)
    known = plain(coded.dictionary).to_pylist()
    found = np.array([_instant(each) for each in known], dtype=np.float64)
    return found[np.asarray(coded.indices.to_numpy())] if len(terms) else np.empty(0)


def milliseconds(lexical: str) -> int:
    """Return the instant of an xsd:dateTime's text; raise ``ValueError`` for another text."""
    return epoch_ms(_FINER.sub(r"\1", lexical))


def _instant(term: str) -> float:
    if term.endswith(_INTEGER):
        return number_of(term)
    date_time = _DATE_TIME.fullmatch(term)
    try:
        return float(milliseconds(date_time[1])) if date_time else math.nan
    except ValueError:
        return math.nan
