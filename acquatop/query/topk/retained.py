"""Top-k over all solutions of the open windows, for answers that need more than the best k."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.pane_best import PaneSummary
from acquatop.query.topk.ranking import TopKN
from acquatop.topk.contract import FloatArray, Rows, Top
from acquatop.topk.retained import Retained


class RetainedTopKN(TopKN[Retained]):
    """Solutions of a query, none of which is dropped: any number of the best can be had."""

    def _new_list(self, n: int) -> Retained:
        return Retained(self.k, self.scoring, distinct=self._distinct)

    def best(self, window: int, count: int) -> Top:
        """Return the best ``count`` of a window, and all that tie with the last of them."""
        return self.list.best(window, count)

    def column(self, rows: Rows, name: str) -> Sequence[str] | None:
        """Return the terms of a variable of the stream."""
        if name not in self._terms:
            return None
        terms: list[str] = rows.carried[self._terms.index(name)].tolist()
        return terms

    def _add(self, pane: Pane, solutions: pa.Table, parts: tuple[FloatArray, ...]) -> None:
        arrivals = self._rows(solutions, parts, np.arange(len(solutions)))
        self._take(arrivals, self.list.add(pane.first, pane.last, arrivals))

    def _note_pruned(self, first: int, last: int, summary: PaneSummary) -> None:
        raise AssertionError("nothing is reduced before it comes here")

    def _kept_keys(self) -> Iterable[str]:
        keys: Iterable[str] = self.list.held().keys.tolist()
        return keys
