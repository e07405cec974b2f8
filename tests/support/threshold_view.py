"""The top k of keys by a windowed aggregate, where few keys change with every window: only these are scored anew."""

from __future__ import annotations

from collections.abc import Sequence

from acquatop.topk.aggregates.keyed_aggregate import KeyedAggregate
from acquatop.topk.aggregates.partials import Partial
from acquatop.topk.contract import IntArray


class ThresholdView(KeyedAggregate):
    """A close takes O(keys in the panes that come and go, and whose remote values changed), and O(keys) for a refill.

    Which of all keys must be looked at is known: only these can have crossed the view's bar.
    """

    def _bring_up_to_date(self, touched: Sequence[Partial | IntArray]) -> None:
        self._score_touched(touched)
