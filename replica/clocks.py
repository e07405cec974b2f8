"""Clocks of a replica: a machine's clock, a steady time of day, and event time."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

Clock = Callable[[], float]
"""Clock in seconds: monotonic (:func:`time.monotonic`) for waits, a time of day to date values."""


_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = Path("/proc/self/ns/time")


@dataclass(frozen=True)
class MachineClock:
    """Clock that nobody can set, the same for all processes of one boot of a machine.

    Its seconds can be compared only with those of an equal ``boot``.
    """

    boot: str
    seconds: Clock

    @classmethod
    def of_this_machine(cls) -> MachineClock:
        """Return the machine's clock; without a boot ID (not Linux), a clock of this process."""
        try:
            boot = _BOOT.read_text("ascii").strip()
            # Containers may have clocks of their own.
            namespace = _TIME_NAMESPACE.readlink() if _TIME_NAMESPACE.is_symlink() else ""
        except OSError:
            return cls(secrets.token_hex(16), time.monotonic)
        return cls(f"{boot} {namespace}", partial(time.clock_gettime, time.CLOCK_BOOTTIME))


class SteadyTime:
    """Time of day that advances steadily from its creation, even if the machine's clock is set.

    A later observation must never look older than an earlier one.

    >>> steady = iter([50.0, 53.0])
    >>> time = SteadyTime(wall=lambda: 1000.0, steady=lambda: next(steady))
    >>> time()
    1003.0
    """

    def __init__(self, wall: Clock = time.time, steady: Clock = time.monotonic) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def __call__(self) -> float:
        """Return seconds since the epoch."""
        return self._offset + self._steady()

    def go_on_from(self, seconds: float) -> None:
        """Never show a time before ``seconds``, as seen by another process with a faster clock."""
        self._offset += max(0.0, seconds - self())


class EventTime:
    """Clock that shows the time of the evaluation under way, for remotes replayed with the stream.

    >>> time = EventTime()
    >>> time.show(1500)
    >>> time()
    1.5
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def __call__(self) -> float:
        """Return seconds since the epoch."""
        return self._seconds

    def show(self, time_ms: int) -> None:
        """Set the clock to a time."""
        self._seconds = time_ms / 1000

    def go_on_from(self, seconds: float) -> None:
        """Show the last time that another process has shown."""
        self._seconds = seconds
