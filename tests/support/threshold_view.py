"""Top k of keys by a windowed aggregate if few keys change per window: only these are rescored."""

from __future__ import annotations

from collections.abc import Sequence

from acquatop.topk.aggregates.keyed_aggregate import KeyedAggregate
from acquatop.topk.aggregates.partials import Partial
from acquatop.topk.contract import IntArray


class ThresholdView(KeyedAggregate):
    """Structure that rescores only keys that can have crossed the view's bar.

    A close takes O(keys in the panes that come and go, and keys with changed remote values), and
    O(keys) for a refill.
    """

    @property
    def refills(self) -> int:
        return self._view.refills

    @property
    def members(self) -> int:
        return len(self._view)

    def _bring_up_to_date(self, touched: Sequence[Partial | IntArray]) -> None:
        self._score_touched(touched)
