"""Terms that a SPARQL engine computes of terms, once for all rows that say the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import QuerySolutions, RdfFormat, Store

from acquatop.ingest.different_rows import different_rows
from acquatop.ingest.solutions_table import columns_of
from connectors.coded import distinct, plain
from rspql import ast
from rspql.printer import base_text, expression_text

ColumnOf = Callable[[str], pa.Array]
"""Function that returns the column of a variable: its numbers, or its terms."""
_ROW, _COLUMN, _IS = "urn:row:", "urn:column:", "urn:is"
_MOST = 1 << 14
"""Number of different rows that are looked at together."""


class ComputedTerms:
    """Terms of an expression, as :func:`~rspql.term_conditions.term_value` returns it.

    Equal values that the engine computes are equal terms.
    """

    kind = None

    def __init__(self, expression: ast.Expression, variables: tuple[str, ...]) -> None:
        self._variables = variables
        base = ast.base_of(expression)
        prologue = "" if base is None else base_text(base)
        row, value = (_fresh(stem, variables) for stem in ("row", "value"))
        bound = " ".join(
            f"OPTIONAL {{ ?{row} <{_COLUMN}{at}> ?{name} }}" for at, name in enumerate(variables)
        )
        self._text = (
            f"{prologue} SELECT ?{row} ?{value} WHERE {{ ?{row} <{_IS}> <{_IS}> . {bound} "
            f"BIND({expression_text(expression)} AS ?{value}) }}"
        )

    def numbers(self, count: int, values: ColumnOf, terms: ColumnOf) -> pa.Array:
        """Return no numbers: nothing is added up."""
        return pa.nulls(count, pa.int64())

    def terms(self, count: int, values: ColumnOf, terms: ColumnOf) -> pa.Array:
        """Return the terms; ``""`` for an error."""
        columns = [distinct(pc.fill_null(plain(terms(name)), "")) for name in self._variables]
        rows, which = different_rows([np.asarray(each.indices.to_numpy()) for each in columns])
        known = [plain(each.take(pa.array(rows))) for each in columns]
        found = [
            self._computed([each.slice(start, _MOST) for each in known])
            for start in range(0, len(rows), _MOST)
        ]
        return pa.chunked_array(found, pa.string()).combine_chunks().take(pa.array(which))

    def _computed(self, columns: Sequence[pa.Array]) -> pa.StringArray:
        store = Store()
        # Leniently: an IRI or a language may be invalid, which was accepted when it came.
        store.load(_statements(columns), format=RdfFormat.N_TRIPLES, lenient=True)
        results = store.query(self._text)
        assert isinstance(results, QuerySolutions)
        names, values = columns_of(results)
        numbers = pc.replace_substring_regex(names.dictionary, f"^<{_ROW}|>$", "").cast(pa.int64())
        order = np.argsort(numbers.to_numpy()[names.indices.to_numpy()])
        return plain(values.take(pa.array(order)))


def _statements(columns: Sequence[pa.Array]) -> bytes:
    """Return a statement for each row, and one for each of its values that is bound."""
    numbers = pa.array(np.arange(len(columns[0]))).cast(pa.string())
    rows = pc.binary_join_element_wise(f"<{_ROW}", numbers, ">", "")
    lines = pc.binary_join_element_wise(rows, f"<{_IS}> <{_IS}> .\n", " ").to_pylist()
    for at, values in enumerate(columns):
        bound = pc.if_else(pc.equal(values, ""), None, values)
        said = pc.binary_join_element_wise(rows, f"<{_COLUMN}{at}>", bound, ".\n", " ")
        lines += said.drop_null().to_pylist()
    return "".join(lines).encode()


def _fresh(stem: str, taken: Sequence[str]) -> str:
    while stem in taken:
        stem += "_"
    return stem
