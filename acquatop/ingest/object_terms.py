"""The objects of a property as terms."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from connectors.mapping import DATATYPES, IRI, TERM
from connectors.objects import quoted
from rspql import ast


def terms_of(values: pa.Array, datatype: str) -> pa.Array:
    """Return a column of a property's objects as N-Triples terms."""
    if pa.types.is_dictionary(values.type):
        return terms_of(values.dictionary, datatype).take(values.indices)
    if datatype in (IRI, TERM):
        return values
    if DATATYPES[datatype] == pa.string():
        return quoted(values)
    values = values.cast(pa.float32()) if datatype == ast.XSD + "float" else values
    return pc.binary_join_element_wise('"', pc.cast(values, pa.string()), f'"^^<{datatype}>', "")
