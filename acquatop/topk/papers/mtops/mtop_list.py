"""MTopList (Shastri et al., CIKM 2011, section 6): predicted top k of all views in one list.

For scores that never change, and identities that never come again. Each candidate is in the list
once, however many views it is in, and each full view points to the last of its top k.

The paper is wrong in some points. Differences:

- Marks of a candidate's first and last window do not tell its windows: with different k, a view in
  between may lack it (the paper's Observation 2), and a mark that is then counted up means nothing.
  Here a candidate counts the views that it is in. The views themselves need not be known: the
  members of a view are all candidates that came after its opening and rank no lower than its
  pointer.
- With different widths the view that ends is often not the oldest. Counts are then reduced for the
  members of that view, wherever they are.
- A view that holds fewer than k has no pointer, and takes every arrival.
- The pointer moves up to the next entry of the same view, not to the next in the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from sortedcontainers import SortedKeyList

from acquatop.topk.contract import Scoring
from acquatop.topk.papers.mtops.predicted_views import Entry, PredictedViews, rank_of


class MTopList(PredictedViews):
    """The predicted top k of all views in one sorted list, with a pointer to the last of each.

    With L candidates and V views that an arrival lies in, it takes O(V + log L), and for each view
    that it enters a walk up to the view's next to last. An answer takes O(L). L counts MTopBand's
    entries, each once.

    >>> import numpy as np
    >>> from acquatop.topk.contract import Rows
    >>> from acquatop.topk.shared.contract import TopKRequest
    >>> from acquatop.windows import Windows
    >>> held, at = MTopList(since=0), np.arange(1, 5)
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
        self._list: SortedKeyList[Entry] = SortedKeyList(key=rank_of)
        self._counts: dict[int, int] = {}
        self._pointers: dict[int, Entry] = {}

    def _open(self, opens: int) -> None:
        self._counts[opens] = 0

    def _insert(self, entry: Entry, views: Iterable[int]) -> None:
        entered = [opens for opens in views if self._enters(entry, opens)]
        if not entered:
            return
        entry.views = len(entered)
        self._list.add(entry)
        for opens in entered:
            if opens in self._pointers:
                self._push_out_last(opens)
            else:
                self._count_up(opens)

    def _enters(self, entry: Entry, opens: int) -> bool:
        last = self._pointers.get(opens)
        return last is None or entry.rank < last.rank

    def _count_up(self, opens: int) -> None:
        self._counts[opens] += 1
        if self._counts[opens] == self._ks[opens]:
            self._pointers[opens] = next(self._upwards(opens, len(self._list)))

    def _push_out_last(self, opens: int) -> None:
        leaving = self._pointers[opens]
        self._pointers[opens] = next(self._upwards(opens, self._list.index(leaving)))
        self._take_back(leaving)

    def _upwards(self, opens: int, before: int) -> Iterator[Entry]:
        """Yield the entries of a view before a position in the list, lowest first."""
        above = self._list.islice(0, before, reverse=True)
        return (entry for entry in above if entry.time > opens)

    def _take_back(self, entry: Entry) -> None:
        if self._let_go(entry):
            self._list.remove(entry)

    def _shrink(self, opens: int, k: int) -> None:
        members = list(self._best(opens, self._counts[opens]))
        for entry in members[k:]:
            self._take_back(entry)
        self._counts[opens] = min(len(members), k)
        self._pointers.pop(opens, None)
        if not k:
            del self._counts[opens]
        elif len(members) >= k:
            self._pointers[opens] = members[k - 1]

    def _best(self, opens: int, count: int) -> Iterator[Entry]:
        covering = (entry for entry in self._list if entry.time > opens)
        return islice(covering, min(count, self._counts[opens]))

    def _check(self) -> None:
        """Assert every invariant."""
        super()._check()
        assert list(self._list) == sorted(self._entries.values(), key=rank_of)
        assert set(self._counts) == set(self._ks)
        for opens, k in self._ks.items():
            members = list(self._best(opens, k))
            assert self._counts[opens] == len(members)
            assert self._pointers.get(opens) is (members[-1] if len(members) == k else None)
