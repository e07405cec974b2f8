"""Aggregates of a query, computed from those kept per key: numbers for scores, terms for rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from acquatop.ingest.derived import INTEGER, ColumnKind
from acquatop.ingest.gaps import gaps_in
from acquatop.ingest.terms import score_literal
from acquatop.topk.aggregates.aggregate_totals import AggregateKind
from acquatop.topk.aggregates.multi_aggregate import Columnwise
from acquatop.topk.contract import FloatArray
from rspql.ast import XSD
from rspql.plan import AggregateColumn, gap_of
from rspql.scoring.exact import text_of
from rspql.scoring.ratios import Ratio

_INTEGERS = 2.0**63
"""Limit of a SPARQL engine's integers: a sum of this size or more is an error."""
_DOUBLE = XSD + "double"


class AggregateColumns:
    """Aggregates of a query, and the few kept aggregates that they are computed from.

    The count is always kept. An average is a sum divided by the count. Of ``uncertain`` variables
    the marks of their gaps are added up, too. ``kinds`` are those of the variables' numbers.
    """

    def __init__(
        self,
        columns: Sequence[AggregateColumn],
        kinds: Mapping[str, ColumnKind | None],
        uncertain: Collection[str] = (),
    ) -> None:
        self._columns = {each.variable: each for each in columns}
        self._kinds = kinds
        self._uncertain = uncertain
        needed = (pair for each in columns for pair in self._needed(each))
        self._kept = list(dict.fromkeys([(AggregateKind.COUNT, None), *needed]))

    def _needed(self, column: AggregateColumn) -> Iterator[tuple[AggregateKind, str | None]]:
        if column.of is not None and column.function != "count":
            yield _kept(column), column.of
        if column.of is not None and column.of in self._uncertain:
            yield AggregateKind.SUM, gap_of(column.of)

    @property
    def aggregates(self) -> list[AggregateKind]:
        """Aggregates to keep."""
        return [aggregate for aggregate, _ in self._kept]

    @property
    def of(self) -> list[str | None]:
        """Column of numbers that each kept aggregate is of; None for the count."""
        return [of for _, of in self._kept]

    @property
    def variables(self) -> list[str]:
        """Columns of numbers that the kept aggregates are of, each once."""
        return list(dict.fromkeys(of for _, of in self._kept if of is not None))

    @property
    def whole(self) -> list[bool]:
        """For each of these, True if its numbers are integers."""
        gaps = {gap_of(each) for each in self._uncertain}
        return [of in gaps or self._scale_of(of) is not None for of in self.variables]

    def numbers(self, name: str, kept: Columnwise) -> FloatArray:
        """Return one of the query's aggregates, computed from those kept; NaN for an error."""
        column = self._columns[name]
        if column.function == "count":
            return kept[0] if column.of not in self._uncertain else kept[0] - self._gaps(name, kept)
        scale = self._scale(column)
        values: FloatArray = self._total(column, kept)
        if scale is not None and column.function in ("sum", "avg"):
            values = np.where(np.abs(values) < _INTEGERS, values, np.nan)
        if column.of in self._uncertain:
            values = np.where(self._marks(column, kept) > 0, np.nan, values)
        # A key that has left the window has a count of zero, but is scored along with the others.
        if column.function == "avg":
            values = values / (np.maximum(kept[0], 1) * (scale or 1))
        elif scale not in (None, 1):
            values = values / scale
        return values

    def ratios(self, kept: Columnwise) -> dict[str, Ratio]:
        """Return the aggregates that are decimals, by variable."""
        found: dict[str, Ratio] = {}
        for name, column in self._columns.items():
            scale = self._scale(column)
            if scale is not None and column.function == "avg":
                found[name] = self._total(column, kept), np.maximum(kept[0], 1) * scale
            elif self._is_decimal(column):
                found[name] = self._total(column, kept), np.full(len(kept[0]), float(scale or 1))
        return found

    def averages(self, kept: Columnwise, at: int) -> dict[str, Fraction]:
        """Return the decimals of one key whose terms may be cut off, by variable."""
        averaged = (name for name, each in self._columns.items() if each.function == "avg")
        return {
            name: Fraction(int(total), int(kept[0][at]) * scale)
            for name in averaged
            if (scale := self._scale(self._columns[name])) is not None
            and kept[0][at]
            and abs(total := self._total(self._columns[name], kept)[at]) < _INTEGERS
        }

    def greatest(self, kept: Columnwise) -> dict[str, tuple[float, float]]:
        """Return by variable the greatest magnitude of integers, and the greatest denominator."""
        found = {}
        for name, column in self._columns.items():
            scale = self._scale(column)
            if column.function == "count" or scale is not None:
                values = kept[0] if column.function == "count" else self._total(column, kept)
                # These pass over NaN, and need no column of magnitudes.
                least, most = (
                    np.fmin.reduce(values, initial=0.0),
                    np.fmax.reduce(values, initial=0.0),
                )
                counts = float(kept[0].max(initial=1.0)) if column.function == "avg" else 1.0
                found[name] = max(-float(least), float(most)), counts * (scale or 1)
        return found

    def terms(self, kept: Columnwise, at: int) -> dict[str, str]:
        """Return the N-Triples terms of one key's aggregates, without those that are errors."""
        numbers = tuple(np.asarray(column[at : at + 1], dtype=np.float64) for column in kept)
        terms = ((name, self._term(column, numbers)) for name, column in self._columns.items())
        return {name: term for name, term in terms if term is not None}

    def _term(self, column: AggregateColumn, kept: Columnwise) -> str | None:
        if column.function == "count":
            return _literal(str(int(self.numbers(column.variable, kept)[0])), "integer")
        if column.of in self._uncertain and self._gaps(column.variable, kept)[0]:
            return None
        count, value = int(kept[0][0]), float(self._total(column, kept)[0])
        if not count:
            return _literal("0", "integer") if column.function in ("sum", "avg") else None
        scale = self._scale(column)
        if scale is None:
            is_nan = column.of in self._uncertain and self._marks(column, kept)[0] > 0
            value = math.nan if is_nan else value / count if column.function == "avg" else value
            return _literal(str(score_literal(value + 0.0)), "double")
        if abs(value) >= _INTEGERS:
            return None
        if column.function == "avg":
            return _literal(text_of(Fraction(int(value), count * scale)), "decimal")
        if self._is_decimal(column):
            return _literal(text_of(Fraction(int(value), scale)), "decimal")
        return _literal(str(int(value)), "integer")

    def _total(self, column: AggregateColumn, kept: Columnwise) -> FloatArray:
        return kept[self._kept.index((_kept(column), column.of))]

    def _marks(self, column: AggregateColumn, kept: Columnwise) -> FloatArray:
        assert column.of is not None
        return kept[self._kept.index((AggregateKind.SUM, gap_of(column.of)))]

    def _gaps(self, name: str, kept: Columnwise) -> FloatArray:
        """Return the number of solutions without a value for an aggregate."""
        return gaps_in(self._marks(self._columns[name], kept))

    def _scale(self, column: AggregateColumn) -> int | None:
        """Return what the integers that are kept are divided by; None for doubles."""
        return None if column.function == "count" else self._scale_of(column.of)

    def _scale_of(self, of: str | None) -> int | None:
        kind = self._kinds.get(of or "")
        return None if kind is None or kind.datatype == _DOUBLE else kind.scale

    def _is_decimal(self, column: AggregateColumn) -> bool:
        kind = self._kinds.get(column.of or "")
        return kind is not None and kind.datatype not in (_DOUBLE, INTEGER)


def _kept(column: AggregateColumn) -> AggregateKind:
    return AggregateKind.SUM if column.function == "avg" else AggregateKind(column.function)


def _literal(text: str, datatype: str) -> str:
    return f'"{text}"^^<{XSD}{datatype}>'
