"""Lane of a service's pool: evaluations that one thread takes through the closes of windows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from acquatop.refresh.allocation import Allocation, Bid
from acquatop.refresh.flow import KeyRequest, fetch
from acquatop.topk.snapshot import State, pack, reading, unpack
from acquatop.windows import Windows
from replica.budget import NO_PART, Spending
from replica.maintainer import Maintainer, Refreshed
from replica.shared_facts import SharedFacts
from replica.spending.account import Account
from replica.store import JoinedStore, SolutionStore

_POOL, _VERSION = "pool", 1

FactsOf = Callable[[Hashable], SharedFacts]
"""Function that returns the facts about a question."""

AnyKeeper = Maintainer[JoinedStore] | Maintainer[SolutionStore]
"""Maintainer of a replica of any kind."""


def _own_facts(question: Hashable) -> SharedFacts:
    """Return facts that nobody shares."""
    return SharedFacts()


@dataclass(frozen=True)
class _Offer:
    """Bids of one evaluation for keys of its replica."""

    keeper: AnyKeeper
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

    def __init__(
        self, account: Account, facts_of: FactsOf = lambda question: SharedFacts()
    ) -> None:
        self.account = account
        self.facts_of = _own_facts if facts_of is None else facts_of
        self._members: Mapping[str, _Member] = {}
        self._joining = threading.Lock()
        self._allocation = Allocation()
        self._closes_ms: int | None = None
        self._expected = 0.0
        self._offers: list[_Offer] = []
        self._to_come: dict[str, float] = {}
        """Weights of queries that have announced offers."""
        self._asked: list[_Offer] = []
        """Offers that are being settled, by ``_requests``."""
        self._requests: Sequence[KeyRequest] = []
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

    def offer(self, closes_ms: int, keeper: AnyKeeper, bids: Sequence[Bid[str]]) -> None:
        """Take the bids of an evaluation for the windows that close at a time."""
        self._go_to(closes_ms)
        self._offers.append(_Offer(keeper, bids))

    def announce(self, closes_ms: int, query: str, weight: float) -> None:
        """Keep a query's share of this close: its keys follow from what is asked first."""
        self._go_to(closes_ms)
        self._to_come[query] = weight

    def _go_to(self, closes_ms: int) -> None:
        if closes_ms != self._closes_ms:
            self._closes_ms, self._offers, self._results = closes_ms, [], {}
            self._to_come = {}

    def state(self) -> Mapping[str, float]:
        """Return what queries are owed, as JSON."""
        return self._allocation.state()

    def resume(self, state: Mapping[str, float]) -> None:
        """Restore a state."""
        self._allocation.resume(state)

    def _settle(self, refreshed: Sequence[Refreshed]) -> None:
        """Note the results of the requests: each evaluation gets what was fetched for all."""
        offers, self._asked = self._asked, []
        spent = sum((each.spending for each in refreshed), Spending())
        seconds = max((each.spending.seconds for each in refreshed), default=0.0)
        answers = len({bid.query for each in offers for bid in each.bids})
        spent = replace(spent, seconds=seconds).for_answers(answers)
        failure = next((each.failure for each in refreshed if each.failure), None)
        fetched: dict[Hashable, frozenset[str]] = {}
        pairs = zip(self._requests, refreshed, strict=True)
        by_keeper = {id(each.maintainer): found for each, found in pairs}
        for offer in offers:
            known = fetched.get(offer.question, frozenset())
            fetched[offer.question] = known | by_keeper[id(offer.keeper)].fetched
        for offer in offers:
            self._results[id(offer.keeper)] = replace(
                offer.keeper.with_told(by_keeper[id(offer.keeper)], fetched[offer.question]),
                # Whoever asks for nothing has no part in it.
                spending=spent if offer.bids else replace(spent, part=NO_PART),
                failure=failure,
            )

    def _ask(self) -> Sequence[KeyRequest]:
        """Return the requests for the keys that are worth most to all who have made offers."""
        self._asked, self._offers, self._expected = self._offers, [], 0.0
        self._requests = self._chosen(self._asked) if self._asked else []
        return self._requests

    def _chosen(self, offers: Sequence[_Offer]) -> list[KeyRequest]:
        """Return the keys to ask for: the first replica of each question asks for all."""
        keepers: dict[Hashable, list[AnyKeeper]] = {}
        for offer in offers:
            keepers.setdefault(offer.question, []).append(offer.keeper)
        for query in {bid.query for offer in offers for bid in offer.bids}:
            self._to_come.pop(query, None)
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
        allowed = offers[0].keeper.allowance(0.0).now
        most = allowed - self._allocation.kept(self._to_come, bids, allowed)
        order = self._allocation.order(bids, most)
        free = [
            (question, key)
            for question, key in order
            if not any(each.is_under_way(key) for each in keepers[question])
        ]
        if len(keepers) > 1 or self._to_come:
            # If nothing is allowed, whoever is asked nevertheless says why.
            free = _within(offers[0].keeper.requests_left, free)[: most if allowed else 1]
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


def _within(requests: int, order: Sequence[tuple[Hashable, str]]) -> list[tuple[Hashable, str]]:
    """Return the keys of as many questions as there are requests: each needs one of its own."""
    questions = [*dict.fromkeys(question for question, _ in order)][: max(1, requests)]
    return [each for each in order if each[0] in questions]


def fetch_of(wanted: Sequence[tuple[PoolLane, AnyKeeper]], until: float) -> list[Refreshed]:
    """Return what was fetched for evaluations that have made offers, of one lane or of several.

    All lanes are asked at the same time.
    """
    lanes = {id(lane): lane for lane, keeper in wanted if id(keeper) not in lane._results}
    asked = [(lane, lane._ask()) for lane in lanes.values()]
    refreshed = iter(fetch((each for _, requests in asked for each in requests), until))
    for lane, requests in asked:
        lane._settle([next(refreshed) for _ in requests])
    return [lane._results.pop(id(keeper)) for lane, keeper in wanted]


def lanes_of(
    services: Sequence[str], keepers: Sequence[AnyKeeper], lanes: Mapping[str, PoolLane]
) -> list[PoolLane]:
    """Return the lane of each replica, by its service's IRI; one of its own for other accounts."""
    known: dict[int, PoolLane] = {}
    return [
        lanes.get(service) or known.setdefault(id(keeper.account), PoolLane(keeper.account))
        for service, keeper in zip(services, keepers, strict=True)
    ]


def pack_lanes(lanes: Sequence[PoolLane]) -> dict[str, bytes]:
    """Return what the queries of lanes are owed, as parts of a snapshot."""
    states = (pack(_POOL, _VERSION, State({"owed": each.state()}, {})) for each in lanes)
    return {f"{_POOL}{at or ''}": state for at, state in enumerate(states)}


def resume_lanes(lanes: Sequence[PoolLane], parts: Mapping[str, bytes]) -> None:
    """Restore these parts; older snapshots have none."""
    with reading():
        for at, lane in enumerate(lanes):
            state = parts.get(f"{_POOL}{at or ''}")
            if state is not None:
                lane.resume(unpack(_POOL, _VERSION, state).settings["owed"])
