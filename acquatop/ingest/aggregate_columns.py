"""Aggregates of a query, computed from those kept per key: numbers for scores, terms for rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from acquatop.ingest.terms import score_literal
from acquatop.topk.aggregates.aggregate_totals import AggregateKind
from acquatop.topk.aggregates.multi_aggregate import Columnwise
from acquatop.topk.contract import FloatArray
from rspql.ast import XSD
from rspql.plan import AggregateColumn
from rspql.scoring.ratios import Ratio

_INTEGERS = 2.0**63
"""Limit of a SPARQL engine's integers: a sum of this size or more is an error."""
_DIGITS = 18
"""Maximum number of a decimal's digits after the point."""


class AggregateColumns:
    """Aggregates of a query, and the few kept aggregates that they are computed from.

    The count is always kept. An average is a sum divided by the count.
    """

    def __init__(
        self, columns: Sequence[AggregateColumn], datatypes: Mapping[str, str | None]
    ) -> None:
        self._columns = {each.variable: each for each in columns}
        self._datatypes = datatypes
        needed = ((_kept(each), each.of) for each in columns if each.of is not None)
        self._kept = list(dict.fromkeys([(AggregateKind.COUNT, None), *needed]))

    @property
    def aggregates(self) -> list[AggregateKind]:
        """Aggregates to keep."""
        return [aggregate for aggregate, _ in self._kept]

    @property
    def of(self) -> list[str | None]:
        """Stream variable of each kept aggregate; None for the count."""
        return [of for _, of in self._kept]

    @property
    def variables(self) -> list[str]:
        """Stream variables of the kept aggregates, each once."""
        return list(dict.fromkeys(of for _, of in self._kept if of is not None))

    @property
    def whole(self) -> list[bool]:
        """For each of these variables, True if its values are integers."""
        return [self._datatypes[of] == XSD + "integer" for of in self.variables]

    def numbers(self, name: str, kept: Columnwise) -> FloatArray:
        """Return one of the query's aggregates, computed from those kept; NaN for an error."""
        column = self._columns[name]
        if column.of is None:
            return kept[0]
        values = kept[self._place(column)]
        if self._is_whole(column) and column.function in ("sum", "avg"):
            values = np.where(np.abs(values) < _INTEGERS, values, np.nan)
        # A key that has left the window has a count of zero, but is scored along with the others.
        return values / np.maximum(kept[0], 1) if column.function == "avg" else values

    def ratios(self, kept: Columnwise) -> dict[str, Ratio]:
        """Return the averages of integers, which are decimals, by variable."""
        return {
            name: (kept[self._place(column)], np.maximum(kept[0], 1))
            for name, column in self._columns.items()
            if column.function == "avg" and self._is_whole(column)
        }

    def averages(self, kept: Columnwise, at: int) -> dict[str, Fraction]:
        """Return the averages of integers of one key, by variable."""
        averaged = (name for name, each in self._columns.items() if each.function == "avg")
        return {
            name: Fraction(int(total), int(kept[0][at]))
            for name in averaged
            if self._is_whole(self._columns[name])
            and abs(total := kept[self._place(self._columns[name])][at]) < _INTEGERS
        }

    def greatest(self, kept: Columnwise) -> dict[str, tuple[float, float]]:
        """Return by variable the greatest magnitude of integers, and the greatest denominator."""
        found = {}
        for name, column in self._columns.items():
            if column.of is None or self._is_whole(column):
                values = kept[0] if column.of is None else kept[self._place(column)]
                # These pass over NaN, and need no column of magnitudes.
                least, most = (
                    np.fmin.reduce(values, initial=0.0),
                    np.fmax.reduce(values, initial=0.0),
                )
                scale = float(kept[0].max(initial=1.0)) if column.function == "avg" else 1.0
                found[name] = max(-float(least), float(most)), scale
        return found

    def terms(self, kept: Columnwise, at: int) -> dict[str, str]:
        """Return the N-Triples terms of one key's aggregates, without those that are errors."""
        numbers = [float(column[at]) for column in kept]
        terms = ((name, self._term(column, numbers)) for name, column in self._columns.items())
        return {name: term for name, term in terms if term is not None}

    def _term(self, column: AggregateColumn, kept: list[float]) -> str | None:
        if column.of is None:
            return _literal(str(int(kept[0])), "integer")
        value = kept[self._place(column)]
        if not self._is_whole(column):
            value = value / kept[0] if column.function == "avg" else value
            return _literal(str(score_literal(value + 0.0)), "double")
        if abs(value) >= _INTEGERS:
            return None
        if column.function == "avg":
            return _literal(_quotient(int(value), int(kept[0])), "decimal")
        return _literal(str(int(value)), "integer")

    def _place(self, column: AggregateColumn) -> int:
        return self._kept.index((_kept(column), column.of))

    def _is_whole(self, column: AggregateColumn) -> bool:
        return column.of is not None and self._datatypes[column.of] == XSD + "integer"


def _kept(column: AggregateColumn) -> AggregateKind:
    return AggregateKind.SUM if column.function == "avg" else AggregateKind(column.function)


def _literal(text: str, datatype: str) -> str:
    return f'"{text}"^^<{XSD}{datatype}>'


def _quotient(total: int, count: int) -> str:
    """Return a quotient as a decimal, truncated after ``_DIGITS`` digits.

    >>> _quotient(5, 3), _quotient(-5, 2), _quotient(4, 2), _quotient(0, 7)
    ('1.666666666666666666', '-2.5', '2', '0')
    """
    whole, rest = divmod(abs(total) * 10**_DIGITS // count, 10**_DIGITS)
    sign = "-" if total < 0 and (whole or rest) else ""
    return f"{sign}{whole}.{rest:0{_DIGITS}}".rstrip("0").removesuffix(".")
