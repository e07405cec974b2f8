"""Filters on a stream's values of any type, decided once for all records that say the same."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from acquatop.ingest.different_rows import different_rows
from acquatop.ingest.rows_as_graph import rows_as_graph, rows_selected, values_text
from acquatop.ingest.scoring import BoolArray
from connectors.coded import distinct, plain
from rspql import ast
from rspql.printer import base_text, expression_text
from rspql.scoring import variables_in

_MOST = 1 << 14
"""Number of different values that are looked at together."""


class TermFilter:
    """Condition on terms, decided by a SPARQL engine once for each different set of values.

    ``condition`` is as :func:`~rspql.term_conditions.term_condition` returns it.
    """

    def __init__(self, condition: ast.Expression) -> None:
        self.variables = tuple(variables_in(condition))
        base = ast.base_of(condition)
        self._base = "" if base is None else base_text(base)
        self._pattern = f"{values_text(self.variables)} FILTER({expression_text(condition)})"

    def holds(self, values: Mapping[str, pa.Array]) -> BoolArray:
        """Return a mask of the rows of terms for which the condition holds."""
        columns = [distinct(values[name]) for name in self.variables]
        rows, which = different_rows([np.asarray(each.indices.to_numpy()) for each in columns])
        terms = [plain(each.take(pa.array(rows))) for each in columns]
        held = np.zeros(len(rows), dtype=np.bool_)
        for start in range(0, len(rows), _MOST):
            graph = rows_as_graph([each.slice(start, _MOST) for each in terms])
            held[start + rows_selected(graph, self._pattern, self._base)] = True
        return held[which]
