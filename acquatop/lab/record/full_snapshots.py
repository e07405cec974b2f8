"""Full snapshots: all known keys are requested from time to time, whatever evaluations request."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

from acquatop.lab.record.remote_log import PatternTape
from replica.clocks import Clock, EventTime
from replica.remotes import Remote, RemoteError
from replica.spending.ledger import LedgerError
from replica.spending.quota import Quota


@dataclass(frozen=True)
class SnapshotBudget:
    """Interval between full snapshots, in the stream's time, and the most requests of each."""

    every_ms: int
    requests: int


class FullSnapshots:
    """Requests of all known keys from a remote, those not requested for longest first.

    Keys that the budget or the remote's ``quota`` does not allow are left for the next snapshot. A
    snapshot ends with the first request that fails. It sends no request after half of the interval,
    because the stream waits for it and must not fall behind for good; if several patterns are
    asked, each has its ``share`` of that. ``requests`` counts the requests sent, ``failures`` the
    failed snapshots by reason.
    """

    def __init__(
        self,
        budget: SnapshotBudget,
        remote: Remote,
        tape: PatternTape,
        quota: Quota,
        timeout: float,
        *,
        share: float = 1.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self.requests = 0
        self.failures: Counter[str] = Counter()
        self._budget = budget
        self._remote = remote
        self._tape = tape
        self._quota = quota
        self._timeout = timeout
        self._share = share
        self._clock = clock
        self._last_ms: int | None = None

    def evaluate(self, time_ms: int) -> None:
        """Take a snapshot for an evaluation if one is due."""
        if self._last_ms is not None and time_ms - self._last_ms < self._budget.every_ms:
            return
        self._last_ms = time_ms
        try:
            self._take(time_ms)
        except (RemoteError, LedgerError) as error:
            self.failures[str(error)] += 1

    def _take(self, time_ms: int) -> None:
        until = self._clock() + self._share * self._budget.every_ms / 2000
        for _ in range(self._budget.requests):
            keys = self._tape.due(self._remote.block_size, time_ms)
            if not keys or self._clock() >= until or not self._quota.take(len(keys), 1):
                return
            self.requests += 1
            self._remote.fetch(keys, self._timeout)


class SnapshotTime(EventTime):
    """Time of the current evaluation. Due snapshots are taken before an evaluation begins."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshots: list[FullSnapshots] = []

    def show(self, time_ms: int) -> None:
        """Advance to the time of an evaluation."""
        super().show(time_ms)
        for each in self.snapshots:
            each.evaluate(time_ms)
