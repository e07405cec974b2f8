"""Remote that is asked for its best rows, within a budget, a deadline, and what spares it."""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from replica.access import Access
from replica.budget import Budget, Spending
from replica.clocks import Clock
from replica.remotes import RemoteError
from replica.remotes.best import BestRemote, BestRows
from replica.spending.account import Account
from replica.spending.ledger import LedgerError


@dataclass(frozen=True)
class BestReply:
    """Rows that a remote has sent; what it was asked for, and the seconds that it took."""

    rows: BestRows
    count: int
    seconds: float


class RankedRemote:
    """Remote with one request under way at a time; a reply after the deadline serves the next look.

    A row counts as an item. Not thread-safe; requests run in the threads of ``access``.
    """

    def __init__(
        self,
        remote: BestRemote,
        account: Account,
        access: Access,
        *,
        clock: Clock,
        timeout: float,
        rejected: Callable[[], Counter[str]] = Counter,
    ) -> None:
        self.is_asked = False
        """True if a request is under way."""
        self.failure: str | None = None
        """Reason why the last look got less than it wanted."""
        self._remote = remote
        self._account = account
        self._access = access
        self._clock = clock
        self._timeout = timeout
        self._rejected = rejected
        self._told: Counter[str] = Counter()
        self._replies: queue.SimpleQueue[BestReply | RemoteError] = access.workers.mailbox()
        self._spent = Spending()

    @property
    def budget(self) -> Budget:
        """Budget of one look."""
        return self._account.budget

    def begin(self, at_ms: int) -> None:
        """Begin a look at a time; its deadline counts from now."""
        self.failure = None
        try:
            self._account.begin(at_ms)
        except LedgerError as error:
            self.failure = str(error)

    def ask(self, count: int) -> bool:
        """Ask for the best ``count`` rows, or as many as allowed; return True if that is sent."""
        if self.is_asked or self.failure is not None:
            return False
        try:
            size = min(count, self._account.left.items)
            self.failure = self._refusal(size)
            if self.failure is not None:
                return False
        except LedgerError as error:
            self.failure = str(error)
            return False
        self.is_asked = True
        self._spent += Spending(size, 1)
        request, sent_at = self._access.breaker.sent(), self._clock()
        self._access.workers.start(lambda: self._fetch(request, size, sent_at))
        return True

    def _refusal(self, size: int) -> str | None:
        """Pay for a request, and reserve a thread for it, or return why that is not possible."""
        if not self._access.breaker.allowed():
            return self._access.refusal
        if not self._access.workers.reserve(0.0):
            return "all requests that may be under way are"
        is_paid = False
        try:
            is_paid = size > 0 and self._account.take(size, 1)
        finally:
            if not is_paid:
                self._access.workers.release()
        return None if is_paid else "what this evaluation may spend has been spent"

    def _fetch(self, request: int, size: int, sent_at: float) -> None:
        try:
            rows = self._remote.best(size, self._timeout)
        except RemoteError as error:
            self._access.failed(request, 1, error)
            self._replies.put(error)
        except BaseException as error:
            # A defect in a remote must cost one request, not end the thread silently.
            failure = RemoteError(f"{type(error).__name__}: {error}")
            self._access.failed(request, 1, failure)
            self._replies.put(failure)
        else:
            self._access.succeeded(request, 1)
            self._replies.put(BestReply(rows, size, self._clock() - sent_at))

    def reply(self, longest_wait: float) -> BestReply | None:
        """Return the reply to the request under way, once it comes; None after the deadline."""
        if not self.is_asked:
            return None
        wait = max(0.0, min(longest_wait, self._account.deadline - self._clock()))
        try:
            found = self._replies.get(timeout=wait) if wait else self._replies.get_nowait()
        except queue.Empty:
            self.failure = "no answer within the deadline; what comes later is used by the next one"
            return None
        self.is_asked = False
        if isinstance(found, RemoteError):
            self._spent += Spending(failed=1)
            self.failure = str(found)
            return None
        return found

    def take_spending(self) -> Spending:
        """Return what has been spent since the last call."""
        spent, self._spent = self._spent, Spending()
        return spent

    def take_rejected(self) -> Counter[str]:
        """Return the rows that could not be used since the last call, by reason."""
        now = self._rejected()
        rejected, self._told = now - self._told, Counter(now)
        return rejected

    def snapshot(self) -> bytes:
        """Return the state of the spending."""
        return self._account.snapshot()

    def resume(self, snapshot: bytes) -> None:
        """Continue from a state."""
        self._account.resume(snapshot)
