"""Maintainer: keeps the replica as fresh as its budget allows and never waits past the deadline."""

from __future__ import annotations

import contextlib
import itertools
import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from replica.access import Access
from replica.budget import Budget, Spending
from replica.clocks import Clock, EventTime, SteadyTime
from replica.feeds.subscription import Subscription
from replica.key_tuples import terms_in
from replica.remotes import Rejecting, Remote, RemoteError
from replica.shared_facts import FactsInbox, Hear, RequestUnderWay, ToldReply
from replica.snapshot import State, pack, pack_parts, reading, unpack, unpack_parts
from replica.spending.account import Account
from replica.spending.allowance import SPEND_ALL, ItemAllowance
from replica.spending.ledger import LedgerError
from replica.spending.quota import Quota
from replica.store import Solution
from replica.store.keyed_store import KeyedStore

_KIND, _VERSION = "maintainer", 1


StoreT = TypeVar("StoreT", bound=KeyedStore, covariant=True)

_MOST_PUSHED = 5_000
"""Most pushed keys that one evaluation takes in; the others wait for the next one."""

_LOADING_TIMEOUT = 30.0
"""Least timeout of a page while loading, in seconds: no answer is due yet."""


@dataclass(frozen=True)
class Refreshed:
    """Result of a refresh: keys fetched in time, keys whose values changed (late answers included).

    ``ambiguous`` counts the solutions beyond the one used for a key, among those fetched or pushed.
    ``failure`` says what went wrong, or why less was asked than the evaluation's budget allows.
    """

    fetched: frozenset[str]
    changed: tuple[str, ...]
    spending: Spending
    ambiguous: int
    failure: str | None
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Number of rejected records by reason, since the previous refresh."""
    parts: tuple[frozenset[str], ...] = ()
    """Keys fetched from each of several remotes, if ``fetched`` has tuples that depend on them."""
    first: frozenset[str] = frozenset()
    """Changed keys that were unknown until this refresh."""

    @property
    def keys(self) -> frozenset[str]:
        """Terms of the keys fetched in time, from all remotes."""
        if not self.parts:
            return self.fetched
        return frozenset(term for part in self.parts for key in part for term in terms_in(key))


@dataclass(frozen=True)
class _Delivery:
    number: int
    keys: Sequence[str]
    solutions: list[Solution]
    error: RemoteError | None
    fetched_at: float
    """Time at which the request was sent; the answer says nothing of later times."""
    is_own: bool = True
    """False if another replica has paid for the request."""


@dataclass
class InFlight:
    """State of one refresh: requests under way, keys still to ask for, and answers so far."""

    started: float
    pending: list[str]
    under_way: set[int] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)
    late: list[_Delivery] = field(default_factory=list)
    on_time: list[_Delivery] = field(default_factory=list)
    items: int = 0
    requests: int = 0
    refusal: str | None = None


class Maintainer(Generic[StoreT]):
    """Refresher of a replica from its remote.

    A refresh returns at its deadline with the answers that have arrived; the next refresh stores
    later ones. Requests run in threads shared by all callers of the remote
    (:class:`~replica.access.Access`), so their number limits the requests to a remote that hangs. A
    key is not asked for again while a request for it is under way. The account decides what may be
    spent; several maintainers may share one.

    ``clock`` measures waiting. ``now`` dates values: by the time of day, or by the time of the
    evaluation if it is an :class:`~replica.clocks.EventTime`. ``feed`` delivers the changes that
    the remote pushes, and ``facts`` what others have fetched. Not safe for use by several threads
    at once.
    """

    def __init__(
        self,
        store: StoreT,
        remote: Remote,
        account: Account | Budget,
        *,
        access: Access | None = None,
        feed: Subscription | None = None,
        facts: FactsInbox | None = None,
        clock: Clock = time.monotonic,
        now: Clock | None = None,
        request_timeout: float = 30.0,
    ) -> None:
        self.store = store
        self.facts = facts
        self.account = (
            Account(account, quota=Quota(), clock=clock) if isinstance(account, Budget) else account
        )
        self.now = now or SteadyTime()
        self._remote = remote
        self._access = access or Access(block_size=max(1, remote.block_size), clock=clock)
        self._feed = feed
        self._clock = clock
        self._timeout = request_timeout
        self._deliveries: queue.SimpleQueue[_Delivery] = self._access.workers.mailbox()
        self._numbers = itertools.count()
        self._under_way: dict[int, Sequence[str]] = {}
        self._keys_under_way: Counter[str] = Counter()
        self._trouble: str | None = None
        self._rejected: Counter[str] = Counter()
        self._owed: Counter[str] = Counter()
        """Rejections counted by another process and not reported yet."""
        self._loads_later = False
        self._changed: dict[str, None] = {}
        """Keys whose values have changed, besides those of the next refresh."""
        self._first: set[str] = set()
        """Those of them that were unknown before."""
        self._ambiguous = 0
        """Number of pushed solutions beyond those used, since the previous refresh."""

    @property
    def budget(self) -> Budget:
        """Budget of one evaluation."""
        return self.account.allowed

    def allowance(self, seconds: float) -> ItemAllowance:
        """Return the items that may be asked for, now and later, if evaluations are so far apart.

        If the ledger cannot be read nothing is known, and so nothing is saved.
        """
        size = min(self._access.block_size.now, self._remote.block_size)
        try:
            return self.account.allowance(seconds, size)
        except LedgerError:
            return SPEND_ALL

    @property
    def requests_left(self) -> int:
        """Number of requests that may be sent now; nothing is known without the ledger."""
        try:
            return self.account.left.requests
        except LedgerError:
            return 0

    @property
    def under_way(self) -> int:
        """Number of requests sent and not answered yet."""
        return len(self._under_way)

    def load(self, progress: Callable[[int], None] | None = None) -> int:
        """Fill the replica with the remote's data, if there is room; return how many keys it holds.

        Waits until the load is complete, and passes the number of keys so far to ``progress``. Each
        request counts as one towards the limits over time; if they allow no more, the load ends
        with the pages received by then. Raises :class:`RemoteError`.
        """
        now, quota = self.now(), self.account.quota
        pages = self._remote.load(max(self._timeout, _LOADING_TIMEOUT), lambda: quota.take(0, 1))
        while self._has_room() and (page := next(pages, None)) is not None:
            stored = self.store.put((), page, now)
            if self._loads_later:
                self._changed.update(dict.fromkeys(stored.changed))
                self._first.update(stored.first)
            if progress is not None:
                progress(len(self.store))
        return len(self.store)

    def load_later(self) -> None:
        """Fill the replica when the first evaluation begins: a replay has no time before that."""
        self._loads_later = True

    def _has_room(self) -> bool:
        return self.store.limit is None or len(self.store) < self.store.limit

    def refresh(
        self, keys: Sequence[str], *, evaluation: int | None = None, longest_wait: float = math.inf
    ) -> Refreshed:
        """Fetch the first of ``keys`` that the account allows and wait for them until the deadline.

        The wait ends sooner if all answers that this refresh asked for have arrived, or after
        ``longest_wait`` seconds. ``evaluation`` is its time in milliseconds. An evaluation with
        such a number spends its budget once, even if it is repeated.
        """
        self.begin(evaluation)
        return self.fetch(keys, longest_wait)

    def fetch(self, keys: Sequence[str], longest_wait: float = math.inf) -> Refreshed:
        """Do the same as :meth:`refresh`, in an evaluation that has begun."""
        until = self._clock() + longest_wait
        return self.gather(self.ask(keys), until)

    @property
    def keys_under_way(self) -> int:
        """Number of keys requested and not answered yet."""
        return len(self._keys_under_way)

    def is_under_way(self, key: str) -> bool:
        """Return True if a key has been asked for and not been answered yet."""
        return key in self._keys_under_way

    def close(self) -> None:
        """Stop the feed, and hear nothing of others any more; nothing else needs to be closed."""
        if self._feed is not None:
            self._feed.stop()
        if self.facts is not None:
            self.facts.leave()

    def begin(self, evaluation: int | None) -> None:
        """Begin an evaluation; :meth:`ask` and :meth:`gather` are parts of it."""
        if evaluation is not None and isinstance(self.now, EventTime):
            self.now.show(evaluation)
        try:
            if self._loads_later:
                self.load()
                self._loads_later = False
            self.account.begin(evaluation)
        except (LedgerError, RemoteError) as error:
            # Nothing may be spent then, but the answer is still due.
            self._trouble = str(error)
        self._store_pushed()
        self._store_told()

    def ask(self, keys: Sequence[str]) -> InFlight:
        """Send requests for the first of ``keys`` that the account allows, as many as can run."""
        asked = InFlight(self._clock(), [], late=self._arrived(), refusal=self._trouble)
        self._trouble = None
        is_none = self.account.allowed.items == 0 < self.account.budget.items
        if keys and is_none and self.account.was_spent_before:
            asked.refusal = asked.refusal or "what this evaluation may spend has been spent before"
        free = [key for key in keys if key not in self._keys_under_way]
        heard = self._listen(free[: self.account.budget.items], asked)
        unheard = (key for key in free if key not in heard)
        asked.pending = list(itertools.islice(unheard, self.account.allowed.items))
        asked.pending.reverse()  # the next is taken from the end
        self._send_more(asked, wait=0.0)
        return asked

    def gather(self, asked: InFlight, until: float = math.inf) -> Refreshed:
        """Wait for answers until ``until`` or the account's deadline at most, and store them."""
        while self.waits(asked, until):
            pass
        for delivery in self._arrived():
            (asked.on_time if delivery.number in asked.sent else asked.late).append(delivery)
        if self._under_way:
            asked.refusal = (
                asked.refusal
                or "no answer within the deadline; what comes later is used by the next one"
            )
        return self._store(asked)

    def waits(self, asked: InFlight, until: float, most: float = math.inf) -> bool:
        """Wait for an answer to one of the requests; return True if there is more to wait for.

        Waits at most ``most`` seconds, and not beyond ``until`` or the account's deadline.
        """
        rest = min(until, self.account.deadline) - self._clock()
        if rest > 0 and asked.under_way:
            self._receive(asked, min(rest, most))
        elif rest > 0 and asked.pending:
            # Other callers, or earlier requests, occupy all workers.
            self._send_more(asked, wait=min(rest, most))
        return rest > 0 and bool(asked.under_way or asked.pending)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return all state needed to continue: the replica, the spending, the state of the remote.

        Requests under way, and pushed changes that are not stored yet, are not included.
        """
        settings = {
            "now": self.now(),
            "changed": list(self._changed),
            "ambiguous": self._ambiguous,
            "loads later": self._loads_later,
            "trouble": self._trouble,
            "rejected": dict(self._owed + (self._rejected_so_far() - self._rejected)),
            "told": {} if self.facts is None else self.facts.state(),
        }
        return pack_parts(
            {
                "state": pack(_KIND, _VERSION, State(settings, {})),
                "store": self.store.snapshot(),
                "account": self.account.snapshot(),
                "access": self._access.snapshot(),
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot; raises SnapshotError for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            settings = unpack(_KIND, _VERSION, parts["state"]).settings
            changed, owed = dict.fromkeys(settings["changed"]), Counter(settings["rejected"])
            self.store.resume(parts["store"])
            self.account.resume(parts["account"])
            self._access.resume(parts["access"])
            self._go_on_from(settings["now"])
            ambiguous = int(settings.get("ambiguous", 0))  # older snapshots have none
            self._loads_later, self._trouble = settings["loads later"], settings["trouble"]
            if self.facts is not None:
                self.facts.resume(settings.get("told", {}))  # older snapshots have none
        self._changed, self._ambiguous = changed, ambiguous
        self._owed, self._rejected = owed, self._rejected_so_far()

    def _go_on_from(self, seconds: float) -> None:
        """Show no time before that of a snapshot, so that a new question is not dated earlier."""
        if isinstance(self.now, EventTime | SteadyTime):
            self.now.go_on_from(seconds)

    # Requests -------------------------------------------------------------------------------------

    def _send_more(self, asked: InFlight, wait: float) -> None:
        while asked.pending and self._access.workers.reserve(0.0 if asked.under_way else wait):
            block = self._take_block(asked)
            if not block:
                self._access.workers.release()
                asked.pending.clear()
                return
            self._send(block, asked)

    def _take_block(self, asked: InFlight) -> list[str]:
        """Return the keys of the next request, paid for; an empty list if none may be sent."""
        if not self._access.breaker.allowed():
            asked.refusal = self._access.refusal
            return []
        try:
            left = self.account.left
            size = min(left.items, self._access.block_size.now, self._remote.block_size)
            block = asked.pending[-size:][::-1] if size > 0 else []
            if not block or not self.account.take(len(block), 1):
                asked.refusal = self._shortage()
                return []
        except LedgerError as error:
            asked.refusal = str(error)
            return []
        del asked.pending[-len(block) :]
        asked.items += len(block)
        return block

    def _shortage(self) -> str | None:
        """Say for how long the limits over time allow nothing more, if they ended the asking."""
        wait = self.account.quota.wait(1, 1)
        return (
            f"the limits over time allow no request for another {wait:.0f} s" if wait > 0 else None
        )

    def _send(self, block: list[str], asked: InFlight) -> None:
        number, sent_at, request = (
            self._expect(block, asked),
            self.now(),
            self._access.breaker.sent(),
        )
        asked.requests += 1
        told = None if self.facts is None else self.facts.send(block)
        self._access.workers.start(lambda: self._fetch(number, request, block, sent_at, told))

    def _expect(self, keys: Sequence[str], asked: InFlight) -> int:
        """Expect a reply about some keys; return its number."""
        number = next(self._numbers)
        self._under_way[number] = keys
        self._keys_under_way.update(keys)
        asked.under_way.add(number)
        asked.sent.add(number)
        return number

    def _listen(self, keys: Sequence[str], asked: InFlight) -> set[str]:
        """Expect the replies to others' requests for some of the keys; return these keys."""

        def listen(some: list[str]) -> Hear:
            number = self._expect(some, asked)
            return lambda reply: self._deliveries.put(
                _Delivery(number, some, reply.solutions, reply.error, reply.fetched_at, False)
            )

        return set() if self.facts is None else self.facts.listen(keys, listen)

    def _fetch(
        self,
        number: int,
        request: int,
        block: list[str],
        sent_at: float,
        told: RequestUnderWay | None,
    ) -> None:
        solutions: list[Solution] = []
        failure: RemoteError | None = None
        try:
            solutions = self._remote.fetch(block, self._timeout)
        except RemoteError as error:
            failure = error
        except BaseException as error:
            # A defect in a remote must cost one request, not end the thread silently.
            failure = RemoteError(f"{type(error).__name__}: {error}")
        if failure is None:
            self._access.succeeded(request, len(block))
        else:
            self._access.failed(request, len(block), failure)
        self._deliveries.put(_Delivery(number, block, solutions, failure, sent_at))
        if self.facts is not None and told is not None:
            self.facts.land(told, ToldReply(block, solutions, sent_at, failure))

    def _receive(self, asked: InFlight, wait: float) -> None:
        """Wait for a delivery, then send the requests that it makes possible."""
        try:
            delivery = self._deliveries.get(timeout=min(wait, threading.TIMEOUT_MAX))
        except queue.Empty:
            return
        self._arrive(delivery)
        (asked.on_time if delivery.number in asked.sent else asked.late).append(delivery)
        asked.under_way.discard(delivery.number)
        self._send_more(asked, wait=0.0)

    def _arrived(self) -> list[_Delivery]:
        """Return the deliveries since the last call."""
        found = []
        while not self._deliveries.empty():
            found.append(self._deliveries.get())
            self._arrive(found[-1])
        return found

    def _arrive(self, delivery: _Delivery) -> None:
        keys = self._under_way.pop(delivery.number)
        self._keys_under_way.subtract(keys)
        self._keys_under_way += Counter()  # keeps those above zero

    # Answers --------------------------------------------------------------------------------------

    def _store(self, asked: InFlight) -> Refreshed:
        changed, self._changed = self._changed, {}
        first, self._first = self._first, set()
        ambiguous, self._ambiguous = self._ambiguous, 0
        fetched: set[str] = set()
        arrived = sorted([*asked.late, *asked.on_time], key=lambda each: each.number)
        failures = [str(delivery.error) for delivery in arrived if delivery.error is not None]
        # Requests sent at one time are stored in one step, however many they were.
        good = [delivery for delivery in arrived if delivery.error is None]
        for fetched_at, together in itertools.groupby(good, key=lambda each: each.fetched_at):
            deliveries = list(together)
            keys = [key for delivery in deliveries for key in delivery.keys]
            solutions = [solution for delivery in deliveries for solution in delivery.solutions]
            with self._changing():
                stored = self.store.put(keys, solutions, fetched_at)
            for each in deliveries:
                if self.facts is not None and each.is_own:
                    self.facts.tell(each.keys, each.solutions, fetched_at)
            changed.update(dict.fromkeys(stored.changed))
            first.update(stored.first)
            ambiguous += stored.ambiguous
            fetched.update(
                key
                for delivery in deliveries
                if delivery.number in asked.sent
                for key in delivery.keys
            )
        with self._changing():
            self.store.evict()
        failed = sum(delivery.is_own for delivery in arrived if delivery.error is not None)
        spending = Spending(asked.items, asked.requests, self._clock() - asked.started, failed)
        failure = (
            failures[0]
            if failures
            else asked.refusal or (self._feed.failure if self._feed else None)
        )
        return Refreshed(
            frozenset(fetched),
            tuple(changed),
            spending,
            ambiguous,
            failure,
            dict(self._newly_rejected()),
            first=frozenset(first),
        )

    def _newly_rejected(self) -> Counter[str]:
        rejected = self._rejected_so_far()
        newly, self._rejected, self._owed = (
            self._owed + (rejected - self._rejected),
            rejected,
            Counter(),
        )
        return newly

    def _rejected_so_far(self) -> Counter[str]:
        rejected: Counter[str] = Counter()
        if isinstance(self._remote, Rejecting):
            rejected.update(dict(self._remote.rejected))  # copied in one step: requests go on
        if self._feed is not None:
            rejected.update(self._feed.rejected)
        return rejected

    def _store_pushed(self) -> None:
        """Store pushed changes; those of new keys only if there is room."""
        for each in self._feed.drain(_MOST_PUSHED) if self._feed is not None else ():
            self._store_unasked(each.asked, each.solutions, each.now, pushed=True)

    def _store_told(self) -> None:
        """Store what others have fetched; of new keys only if there is room."""
        for told in self.facts.take() if self.facts is not None else ():
            self._store_unasked(told.keys, told.solutions, told.fetched_at, pushed=False)

    def _store_unasked(
        self, keys: list[str], solutions: Sequence[Solution], now: float, *, pushed: bool
    ) -> None:
        if self.store.limit is not None:
            keys = [keys[at] for at in np.flatnonzero(self.store.rows(keys) >= 0).tolist()]
        with self._changing():
            stored = self.store.put(keys, solutions, now, pushed=pushed)
        self._changed.update(dict.fromkeys(stored.changed))
        self._first.update(stored.first)
        self._ambiguous += stored.ambiguous

    def with_told(self, refreshed: Refreshed, fetched: frozenset[str]) -> Refreshed:
        """Return the result of a refresh with what others fetched in it; ``fetched`` is by all."""
        self._store_told()
        changed, self._changed = self._changed, {}
        first, self._first = self._first, set()
        ambiguous, self._ambiguous = self._ambiguous, 0
        return replace(
            refreshed,
            fetched=fetched,
            changed=tuple({**dict.fromkeys(refreshed.changed), **changed}),
            ambiguous=refreshed.ambiguous + ambiguous,
            first=refreshed.first | first,
        )

    def _changing(self) -> AbstractContextManager[object]:
        """Return the context in which the store may change."""
        return contextlib.nullcontext() if self.facts is None else self.facts.facts.lock
