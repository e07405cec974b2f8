"""Requests in simulated time: sent at once, answered when the schedule says so."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from replica.workers import Work, Workers
from tests.support.simulation.schedule import Schedule


class SimulatedWorkers(Workers):
    """Workers without threads. Work is done when it starts; its result arrives later.

    ``latency`` returns the seconds that the request under way takes, once it has been answered.
    """

    def __init__(self, most: int, schedule: Schedule, latency: Callable[[], float]) -> None:
        super().__init__(most)
        self._schedule = schedule
        self._latency = latency
        self._left = most
        self._brought: list[tuple[SimulatedMailbox, Any]] | None = None
        self._on_the_way: list[list[tuple[SimulatedMailbox, Any]]] = []

    def mailbox(self) -> queue.SimpleQueue[Any]:
        """Return a queue that is filled in simulated time."""
        return SimulatedMailbox(self._schedule, self)  # type: ignore[return-value]

    def reserve(self, timeout: float) -> bool:
        """Reserve a worker; let the network go on meanwhile."""
        if self._schedule.wait(lambda: self._left > 0, max(0.0, timeout)):
            self._left -= 1
            return True
        return False

    def release(self) -> None:
        """Give back a reservation."""
        self._left += 1

    def start(self, work: Work) -> None:
        """Do the work, and let its result arrive after the request's latency."""
        self._brought = []
        work()
        brought, self._brought = self._brought, None
        self._on_the_way.append(brought)

        def arrive() -> None:
            for mailbox, item in brought:
                mailbox.items.append(item)
            brought.clear()
            self._left += 1

        self._schedule.after(self._latency(), arrive, network=True)

    def end(self) -> None:
        """Let nothing arrive any more: the process is gone."""
        for brought in self._on_the_way:
            brought.clear()

    def bring(self, mailbox: SimulatedMailbox, item: Any) -> None:
        """Note what the work under way brings."""
        assert self._brought is not None, "only work brings something"
        self._brought.append((mailbox, item))


class SimulatedMailbox:
    """Queue between work and its owner, with the methods of ``SimpleQueue`` that are used."""

    def __init__(self, schedule: Schedule, workers: SimulatedWorkers) -> None:
        self.items: list[Any] = []
        self._schedule = schedule
        self._workers = workers

    def put(self, item: Any) -> None:
        """Bring something, later."""
        self._workers.bring(self, item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Return the first item; let the network go on until there is one, or time is over."""
        if not self._schedule.wait(lambda: bool(self.items), timeout or 0.0):
            raise queue.Empty
        return self.items.pop(0)

    def empty(self) -> bool:
        """Return True if nothing has arrived."""
        return not self.items
