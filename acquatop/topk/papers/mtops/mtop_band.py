"""MTopBand (Shastri et al., CIKM 2011, section 5): predicted top k of every view, in own lists.

For scores that never change, and identities that never come again. As in the paper, there is one
copy of an object, and one reference to it for each view that it is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from sortedcontainers import SortedKeyList

from acquatop.topk.contract import Scoring
from acquatop.topk.papers.mtops.predicted_views import Entry, PredictedViews, rank_of


class MTopBand(PredictedViews):
    """The predicted top k of every view in a sorted list.

    An arrival takes O(V) for the V views that it lies in, and O(log k) for each that it enters. At
    most k references are held for each view.

    >>> import numpy as np
    >>> from acquatop.topk.contract import Rows
    >>> from acquatop.topk.shared.contract import TopKRequest
    >>> from acquatop.windows import Windows
    >>> held, at = MTopBand(since=0), np.arange(1, 5)
    >>> (
    ...     held.join("wide", TopKRequest(Windows(4, 4, 0), 2)),
    ...     held.join("narrow", TopKRequest(Windows(2, 2, 0), 1)),
    ... )
    (0, 0)
    >>> _ = held.add(Rows(at, at, at, (np.array([9.0, 7.0, 1.0, 2.0]),)))
    >>> [(name, top.merits.tolist()) for name, top in held.advance(4)]
    [('narrow', [9.0]), ('wide', [9.0, 7.0]), ('narrow', [2.0])]
    """

    def __init__(self, since: int, scoring: Scoring | None = None) -> None:
        super().__init__(since, scoring)
        self._lists: dict[int, SortedKeyList[Entry]] = {}

    def _open(self, opens: int) -> None:
        self._lists[opens] = SortedKeyList(key=rank_of)

    def _insert(self, entry: Entry, views: Iterable[int]) -> None:
        for opens in views:
            members, k = self._lists[opens], self._ks[opens]
            if len(members) == k:
                if members[-1].rank < entry.rank:
                    continue
                self._let_go(members.pop())
            members.add(entry)
            entry.views += 1

    def _shrink(self, opens: int, k: int) -> None:
        members = self._lists[opens]
        while len(members) > k:
            self._let_go(members.pop())
        if not k:
            del self._lists[opens]

    def _best(self, opens: int, count: int) -> Iterator[Entry]:
        return islice(self._lists[opens], count)
