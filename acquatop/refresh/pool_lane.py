"""Lane of a service's pool: evaluations that one thread takes through the closes of windows."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from acquatop.refresh.allocation import Allocation, Bid
from acquatop.refresh.flow import KeyRequest, fetch
from acquatop.windows import Windows
from replica.budget import Spending
from replica.maintainer import Maintainer, Refreshed
from replica.spending.account import Account
from replica.store import JoinedStore

Keeper = Maintainer[JoinedStore]


@dataclass(frozen=True)
class _Offer:
    """Bids of one evaluation for keys of its replica."""

    keeper: Keeper
    bids: Sequence[Bid[str]]

    @property
    def question(self) -> Hashable:
        """Identity of what is asked: replicas with the same one tell each other the replies."""
        facts = self.keeper.facts
        return id(self.keeper if facts is None else facts.facts)


@dataclass(frozen=True)
class _Member:
    """Query in a lane: its weight, and its windows; none if their closes are not known ahead."""

    weight: float
    windows: Sequence[Windows]


class PoolLane:
    """Budget of one service for queries on a stream; windows that close together share it.

    Each evaluation that is due offers its bids. The first that fetches has all of them settled: the
    budget is spent on what is worth most to all, a key that several want is asked for once, and
    each gets what was fetched for the others. So nothing depends on who comes first. Not
    thread-safe, but for who joins and leaves; the account may share its budget with other lanes.
    """

    def __init__(self, account: Account) -> None:
        self.account = account
        self._members: Mapping[str, _Member] = {}
        self._joining = threading.Lock()
        self._allocation = Allocation()
        self._closes_ms: int | None = None
        self._expected = 0.0
        self._offers: list[_Offer] = []
        self._results: dict[int, Refreshed] = {}

    @property
    def is_used(self) -> bool:
        """True if any query is in it."""
        return bool(self._members)

    def join(self, query: str, weight: float = 1.0, windows: Sequence[Windows] = ()) -> None:
        """Let a query share the budget."""
        with self._joining:
            self._set({**self._members, query: _Member(weight, tuple(windows))})
            self.account.add(query)

    def leave(self, query: str) -> None:
        """Release what only one query needs."""
        with self._joining:
            self._set({name: each for name, each in self._members.items() if name != query})
            self._allocation.forget(query)
            self.account.remove(query)
            if not self.is_used:
                self.account.close()

    def _set(self, members: Mapping[str, _Member]) -> None:
        self._members = members
        windows = {window for each in members.values() for window in each.windows}
        spender = self.account.spender
        spender.is_due = lambda time_ms: any(each.closes_at(time_ms) for each in windows)
        spender.weight = sum(each.weight for each in members.values())

    def expect(self, weight: float) -> None:
        """Note that queries of some weight are due at the close that is settled next."""
        self._expected += weight

    def share(self, weight: float, own: float) -> float:
        """Return the share of a query, by weight, of those due; ``own`` is its evaluation's."""
        whole = max(self._expected, own)
        return weight / whole if whole > 0 else 1.0

    def offer(self, closes_ms: int, keeper: Keeper, bids: Sequence[Bid[str]]) -> None:
        """Take the bids of an evaluation for the windows that close at a time."""
        if closes_ms != self._closes_ms:
            self._closes_ms, self._offers, self._results = closes_ms, [], {}
        self._offers.append(_Offer(keeper, bids))

    def fetch(self, keeper: Keeper, until: float) -> Refreshed:
        """Return what was fetched for an evaluation that has offered its bids."""
        if id(keeper) not in self._results:
            offers, self._offers, self._expected = self._offers, [], 0.0
            self._results = self._settled(offers, until)
        return self._results.pop(id(keeper))

    def state(self) -> Mapping[str, float]:
        """Return what queries are owed, as JSON."""
        return self._allocation.state()

    def resume(self, state: Mapping[str, float]) -> None:
        """Restore a state."""
        self._allocation.resume(state)

    def _settled(self, offers: Sequence[_Offer], until: float) -> dict[int, Refreshed]:
        requests = self._requests(offers)
        refreshed = fetch(requests, until)
        spent = sum((each.spending for each in refreshed), Spending())
        seconds = max((each.spending.seconds for each in refreshed), default=0.0)
        answers = sum(len(each.bids) for each in offers)
        spent = replace(spent, seconds=seconds, shared_by=max(1, answers))
        failure = next((each.failure for each in refreshed if each.failure), None)
        fetched: dict[Hashable, frozenset[str]] = {}
        pairs = zip(requests, refreshed, strict=True)
        by_keeper = {id(each.maintainer): found for each, found in pairs}
        for offer in offers:
            known = fetched.get(offer.question, frozenset())
            fetched[offer.question] = known | by_keeper[id(offer.keeper)].fetched
        return {
            id(offer.keeper): replace(
                offer.keeper.with_told(by_keeper[id(offer.keeper)], fetched[offer.question]),
                spending=spent,
                failure=failure,
            )
            for offer in offers
        }

    def _requests(self, offers: Sequence[_Offer]) -> list[KeyRequest]:
        """Return the keys to ask for: the first replica of each question asks for all."""
        keepers: dict[Hashable, list[Keeper]] = {}
        for offer in offers:
            keepers.setdefault(offer.question, []).append(offer.keeper)
        most = offers[0].keeper.allowance(0.0).now
        bids = [
            Bid(
                bid.query,
                bid.weight,
                [(offer.question, key) for key in bid.keys],
                bid.worths,
            )
            for offer in offers
            for bid in offer.bids
        ]
        order = self._allocation.order(bids, most)
        free = [
            (question, key)
            for question, key in order
            if not any(each.is_under_way(key) for each in keepers[question])
        ]
        if len(keepers) > 1:
            free = free[:most]
        keys: dict[Hashable, list[str]] = {}
        for question, key in free:
            keys.setdefault(question, []).append(key)
        asking = [KeyRequest(keepers[question][0], each) for question, each in keys.items()]
        others = [
            KeyRequest(each, ())
            for question, several in keepers.items()
            for each in several[question in keys :]
        ]
        return [*asking, *others]
