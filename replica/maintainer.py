"""Keeps the replica as fresh as its budget allows, and never makes anyone wait past the deadline."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from replica.budget import Budget, Spending
from replica.remotes import Remote, RemoteError
from replica.store import Solution, Stored

Clock = Callable[[], float]
"""Seconds that only go forward, such as :func:`time.monotonic`."""

Start = Callable[[Callable[[], None]], None]
"""Has some work done, now or at any later time, and does not wait for it."""


def in_a_thread(work: Callable[[], None]) -> None:
    """Start work in a thread of its own, which does not keep the process alive."""
    threading.Thread(target=work, name="acquatop-refresh", daemon=True).start()


class Store(Protocol):
    """Where what the remote said is kept."""

    def __len__(self) -> int:
        """Return how many keys are known."""
        ...

    def put(self, asked: Iterable[str], solutions: Iterable[Solution], now: float) -> Stored:
        """Store what the remote answered to a question sent at ``now`` about the keys ``asked``."""
        ...


StoreT = TypeVar("StoreT", bound=Store)


@dataclass(frozen=True)
class Refreshed:
    """What came of one refresh: keys fetched in time, keys whose values changed (late answers included)."""

    fetched: frozenset[str]
    changed: tuple[str, ...]
    spending: Spending
    ambiguous: int
    failure: str | None


@dataclass(frozen=True)
class _Delivery:
    keys: list[str]
    solutions: list[Solution]
    error: RemoteError | None
    fetched_at: float
    """When the request was sent: what was true then is the most that the answer can say."""


class Maintainer(Generic[StoreT]):
    """Refreshes a replica from its remote.

    Requests run in threads of their own, or as ``start`` says. A refresh returns at its deadline with what has
    arrived; what arrives later is stored by the next one. As long as requests are under way,
    they count against the next refreshes' allowance, so a remote that hangs is never asked by
    more than ``budget.requests`` requests at once.
    """

    def __init__(
        self,
        store: StoreT,
        remote: Remote,
        budget: Budget,
        *,
        clock: Clock = time.monotonic,
        request_timeout: float = 30.0,
        start: Start = in_a_thread,
    ) -> None:
        self.store = store
        self.budget = budget
        self._remote = remote
        self._clock = clock
        self._timeout = request_timeout
        self._start = start
        self._deliveries: queue.SimpleQueue[_Delivery] = queue.SimpleQueue()
        self._under_way: list[float] = []

    def load(self) -> int:
        """Fill the replica with all that the remote has and return how many keys that is.

        Waits as long as it takes and spends no budget. Raises :class:`RemoteError`.
        """
        now = self._clock()
        for page in self._remote.load(self._timeout):
            self.store.put((), page, now)
        return len(self.store)

    @property
    def under_way(self) -> int:
        """How many requests have been sent and not been answered yet."""
        return len(self._under_way)

    def refresh(
        self, keys: Sequence[str], *, longest_wait: float = math.inf, budget: Budget | None = None
    ) -> Refreshed:
        """Fetch the first of ``keys`` that the budget allows and wait for them until the deadline.

        The wait ends sooner when all has arrived that this refresh has asked for, or after
        ``longest_wait`` seconds. ``budget`` is given where several share one: what is left of it.
        """
        budget = budget or self.budget
        started = self._clock()
        late = self._collect(since=None, deadline=started)
        blocks = budget.blocks(list(keys), self._remote.block_size, budget.requests - len(self._under_way))
        for block in blocks:
            self._send(block)
        on_time = self._collect(since=started, deadline=started + min(budget.seconds, longest_wait))
        return self._store([*late, *on_time], blocks, started)

    def _send(self, block: list[str]) -> None:
        sent_at = self._clock()
        self._under_way.append(sent_at)
        self._start(lambda: self._fetch(block, sent_at))

    def _fetch(self, block: list[str], sent_at: float) -> None:
        try:
            solutions, failure = self._remote.fetch(block, self._timeout), None
        except RemoteError as error:
            solutions, failure = [], error
        except Exception as error:
            # A defect in a remote must cost one request, not the thread's silent death.
            solutions, failure = [], RemoteError(f"{type(error).__name__}: {error}")
        self._deliveries.put(_Delivery(block, solutions, failure, sent_at))

    def _collect(self, since: float | None, deadline: float) -> list[_Delivery]:
        """Return what has arrived; until the deadline wait for what was asked for ``since`` then."""
        found: list[_Delivery] = []
        while self._under_way:
            is_awaited = since is not None and any(sent_at >= since for sent_at in self._under_way)
            wait = max(0.0, deadline - self._clock()) if is_awaited else 0.0
            try:
                found.append(self._deliveries.get(block=wait > 0, timeout=wait or None))
            except queue.Empty:
                break
            self._under_way.remove(found[-1].fetched_at)
        return found

    def _store(self, deliveries: list[_Delivery], blocks: list[list[str]], started: float) -> Refreshed:
        changed: dict[str, None] = {}
        fetched: set[str] = set()
        ambiguous, failures = 0, []
        for delivery in sorted(deliveries, key=lambda each: (each.fetched_at, each.keys)):
            if delivery.error is not None:
                failures.append(str(delivery.error))
                continue
            stored = self.store.put(delivery.keys, delivery.solutions, delivery.fetched_at)
            changed.update(dict.fromkeys(stored.changed))
            ambiguous += stored.ambiguous
            if delivery.fetched_at >= started:
                fetched.update(delivery.keys)
        spending = Spending(
            items=sum(map(len, blocks)),
            requests=len(blocks),
            seconds=self._clock() - started,
            failed=len(failures),
        )
        return Refreshed(frozenset(fetched), tuple(changed), spending, ambiguous, failures[0] if failures else None)
