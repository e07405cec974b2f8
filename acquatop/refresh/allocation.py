"""Allocation of a budget to the queries that are due, by worth and weight, with a floor."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)

FLOOR = 0.25
"""Part of a query's share, by weight, that it gets on average, whatever its keys are worth."""


@dataclass(frozen=True)
class Bid(Generic[KeyT]):
    """Keys that one query wants, in its order, and what its answer is expected to gain by each."""

    query: str
    weight: float
    keys: Sequence[KeyT]
    worths: Sequence[float]


class Allocation:
    """Order in which to ask for what several queries want.

    A key is worth the sum of what it is worth to the queries, times their weights. Worth is a
    guess, so each query that wants something is owed a part of its share: over time it gets that
    even if all that others want is worth more. A key counts for all that want it.

    >>> def bid(query, worth, weight=1.0):
    ...     return Bid(query, weight, [f"{query}1", "both"], [worth, worth / 2])
    >>> Allocation().order([bid("a", 0.9), bid("b", 0.6)], 2)
    ['a1', 'both', 'b1']
    >>> Allocation().order([bid("a", 0.9), bid("b", 0.6, weight=2.0)], 2)
    ['b1', 'both', 'a1']
    """

    def __init__(self) -> None:
        self._owed: dict[str, float] = {}

    def order(self, bids: Sequence[Bid[KeyT]], most: int) -> list[KeyT]:
        """Return all keys, each once, in the order in which to ask for ``most`` of them."""
        bids = [bid for bid in bids if bid.keys]
        if len(bids) == 1:
            self._pay(bids[0].query, min(most, len(bids[0].keys)))
            return list(bids[0].keys)
        worth = dict.fromkeys(in_turn([bid.keys for bid in bids]), 0.0)
        for bid in bids:
            for key, each in zip(bid.keys, bid.worths, strict=True):
                worth[key] += bid.weight * each
        best = sorted(worth, key=lambda key: -worth[key])
        if len(best) <= most:
            return best
        owed = in_turn([bid.keys[: self._due_to(bid, bids, most)] for bid in bids])
        order = list(dict.fromkeys([*owed[:most], *best]))
        self._note(bids, frozenset(order[:most]))
        return order

    def _due_to(self, bid: Bid[KeyT], bids: Sequence[Bid[KeyT]], most: int) -> int:
        """Add a query's part to what it is owed; return the number of whole keys."""
        share = bid.weight / sum(each.weight for each in bids)
        owed = self._owed[bid.query] = self._owed.get(bid.query, 0.0) + FLOOR * share * most
        return int(owed)

    def _note(self, bids: Sequence[Bid[KeyT]], chosen: frozenset[KeyT]) -> None:
        for bid in bids:
            self._pay(bid.query, sum(key in chosen for key in bid.keys))

    def _pay(self, query: str, keys: int) -> None:
        if query in self._owed:
            self._owed[query] = max(0.0, self._owed[query] - keys)

    def kept(self, to_come: Mapping[str, float], bids: Sequence[Bid[KeyT]], most: int) -> int:
        """Return how many of ``most`` keys to keep for queries that bid later, by their weights.

        What they will want cannot be compared yet, so each is owed its whole share.

        >>> Allocation().kept({"late": 1.0}, [Bid("now", 3.0, ["k"], [1.0])], 8)
        2
        """
        weight = sum({bid.query: bid.weight for bid in bids}.values()) + sum(to_come.values())
        kept = 0
        for query, each in to_come.items():
            share = most * each / weight
            self._owed[query] = min(self._owed.get(query, 0.0) + share, share + 1)
            kept += int(self._owed[query])
        return min(kept, most)

    def forget(self, query: str) -> None:
        """Owe nothing to a query that has left."""
        self._owed.pop(query, None)

    def state(self) -> Mapping[str, float]:
        """Return what is owed, as JSON."""
        return {query: owed for query, owed in self._owed.items() if owed}

    def resume(self, state: Mapping[str, float]) -> None:
        """Restore a state."""
        self._owed = dict(state)


def in_turn(orders: Iterable[Sequence[KeyT]]) -> list[KeyT]:
    """Return keys in the order in which to ask: the first of each list, then the second, each once.

    >>> in_turn([["a", "b", "c"], ["d", "a"]])
    ['a', 'd', 'b', 'c']
    """
    rows = zip_longest(*([(key,) for key in order] for order in orders), fillvalue=())
    return list(dict.fromkeys(key for row in rows for entry in row for key in entry))
