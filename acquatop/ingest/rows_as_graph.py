"""Rows of values as RDF, for a SPARQL engine that looks at many rows at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import QueryResultsFormat, QuerySolutions, RdfFormat, Store

from acquatop.topk.contract import IntArray

_ROW, _COLUMN = "urn:row:", "urn:column:"


def rows_as_graph(columns: Sequence[pa.Array]) -> Store:
    """Return a store in which each row has a value of each column, given as N-Triples terms.

    The values are parsed as data, so none can be read as anything else.
    """
    count = len(columns[0]) if columns else 0
    rows = pc.binary_join_element_wise(
        f"<{_ROW}", pa.array(np.arange(count)).cast(pa.string()), ">", ""
    )
    lines = [
        pc.binary_join_element_wise(rows, f"<{_COLUMN}{at}>", values, ".\n", " ")
        for at, values in enumerate(columns)
    ]
    store = Store()
    for each in lines:
        text = "".join(each.to_pylist())
        # Leniently: an IRI or a language may be invalid, which was accepted when it came.
        store.load(text.encode(), format=RdfFormat.N_TRIPLES, lenient=True)
    return store


def values_text(names: Sequence[str]) -> str:
    """Return the pattern that binds ``?row`` and a variable for each column."""
    bound = " ; ".join(f"<{_COLUMN}{at}> ?{name}" for at, name in enumerate(names))
    return f"?row {bound} ."


def rows_selected(store: Store, pattern: str, prologue: str = "") -> IntArray:
    """Return the rows that a pattern binds to ``?row``."""
    found = store.query(f"{prologue} SELECT ?row WHERE {{ {pattern} }}")
    assert isinstance(found, QuerySolutions)
    text = found.serialize(format=QueryResultsFormat.CSV)
    assert text is not None
    names = text.decode().split()[1:]
    return np.array([int(name.removeprefix(_ROW)) for name in names], dtype=np.int64)
