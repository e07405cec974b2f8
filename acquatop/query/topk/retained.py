"""Top-k over all solutions of the open windows, for answers that need more than the best k."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.pane_best import PaneSummary
from acquatop.query.contenders import Contenders
from acquatop.query.tie_breaking import ranks_of
from acquatop.query.topk.ranking import TopKN
from acquatop.topk.contract import AnyArray, FloatArray, Rows, Top
from acquatop.topk.retained import ColumnOf, Retained
from rspql import ast

THINNED_FROM = 4_096
"""Number of solutions from which on those that can be no result are dropped."""


class RetainedTopKN(TopKN[Retained]):
    """Solutions of a query: any number of the best can be had.

    None is dropped until :meth:`drop_outlived` is called: only if scores never change, and rows
    need not be distinct. Then, from time to time, those are dropped that k others of their group
    outlive with better scores: memory is O(what can still be in an answer, and what ties with
    that), and at most twice as much in between.
    """

    _room: int | None = None
    """Number of solutions at which to thin them out; None if none may be dropped."""
    _grouped_by: tuple[int, ...] = ()
    _tied_by: int | None = None
    """Column of the terms that order equal scores; None if that is not known of terms alone."""
    _is_descending = False

    def drop_outlived(self, per: Sequence[str], keys: Sequence[ast.OrderCondition] = ()) -> None:
        """Drop solutions that can be no results, in groups by some variables of the stream.

        Of equal scores, those are results that the first of ``keys`` puts first.
        """
        self._room = THINNED_FROM
        self._grouped_by = tuple(map(self._terms.index, per))
        key = keys[0] if keys else None
        if key and isinstance(key.expression, ast.Variable) and key.expression.name in self._terms:
            self._tied_by = self._terms.index(key.expression.name)
            self._is_descending = key.descending

    def _new_list(self, n: int) -> Retained:
        return Retained(self.k, self.scoring, distinct=self._distinct)

    def best(self, window: int, count: int) -> Top:
        """Return the best ``count`` of a window, and all that tie with the last of them."""
        return self.list.best(window, count)

    def best_of_groups(self, window: int, count: int, per: Sequence[str]) -> Top | None:
        """Return the best ``count`` of each group, and all that tie; None if others group them."""
        if not all(name in self._terms for name in per):
            return None
        return self.list.best_of_groups(window, count, [self._terms.index(name) for name in per])

    def contenders(self, window: int, most: int) -> Contenders:
        """Return the best solutions, and some that wait for a score."""
        # One more than wanted tells if there are others.
        found = self.best(window, most + 1)
        held, merits = found.rows.take(slice(most + 1)), found.merits[: most + 1]
        is_whole = self._room is None and self.list.lost(window) is None
        return self._with_waiting(window, held, merits, most, is_whole=is_whole)

    def everything(self, window: int) -> Rows:
        """Return all solutions of a window, in no order."""
        return self.list.inside(window)

    def of_keys(self, window: int, keys: AnyArray) -> Rows:
        """Return the solutions of a window that have some keys, in no order. O(solutions)."""
        return self.list.of_keys(window, keys)

    def terms_of(self, rows: Rows, name: str) -> pa.Array:
        """Return the terms of a variable."""
        terms = rows.carried[self._terms.index(name)] if len(rows) else rows.keys
        return pa.array(terms, pa.string())

    def numbers_of(self, rows: Rows, name: str) -> FloatArray:
        """Return the numbers of a variable that a score needs."""
        return rows.parts[self._numbers.index(name)] if len(rows) else np.empty(0)

    def is_uncertain(self, window: int) -> bool:
        """Return True if a window lacks a late solution."""
        return self.list.lost(window) is not None

    def column(self, rows: Rows, name: str) -> Sequence[str] | None:
        """Return the terms of a variable of the stream."""
        if name not in self._terms:
            return None
        if not len(rows):
            return []
        terms: list[str] = rows.carried[self._terms.index(name)].tolist()
        return terms

    def _add(self, pane: Pane, solutions: pa.Table, parts: tuple[FloatArray, ...]) -> None:
        arrivals = self._rows(solutions, parts, np.arange(len(solutions)))
        self._take(arrivals, self.list.add(pane.first, pane.last, arrivals))
        if self._room is not None and len(self.list) >= self._room:
            self.list.thin_out(self.k, self._grouped_by, self._ties)
            self._room = max(THINNED_FROM, 2 * len(self.list))

    def _ties(self, column_of: ColumnOf) -> FloatArray | None:
        if self._tied_by is None:
            return None
        return ranks_of(column_of(self._tied_by).tolist(), descending=self._is_descending)

    def _note_pruned(self, first: int, last: int, summary: PaneSummary) -> None:
        raise AssertionError("nothing is reduced before it comes here")

    def _kept_keys(self) -> Iterable[str]:
        keys: Iterable[str] = self.list.held().keys.tolist()
        return keys
