"""Top k of keys by a windowed aggregate if most keys change per window: all are rescored."""

from __future__ import annotations

from collections.abc import Sequence

from acquatop.topk.aggregates.keyed_aggregate import KeyedAggregate
from acquatop.topk.aggregates.partials import Partial
from acquatop.topk.contract import IntArray


class DenseAggregate(KeyedAggregate):
    """Structure that rescores all keys: a close takes O(keys), in whole columns."""

    def _bring_up_to_date(self, touched: Sequence[Partial | IntArray]) -> None:
        self._score_all()
