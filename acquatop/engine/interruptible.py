"""Waits of the main thread that a signal always interrupts."""

from __future__ import annotations

from collections.abc import Callable

_SECONDS = 0.5


def wait_until(done: Callable[[float], bool]) -> None:
    """Return once ``done``, a wait of at most the seconds that it is given, returns true.

    Python runs the handler of a signal in the main thread, at its next step. The system may give
    the signal to any other thread, or to the main thread just before it falls asleep. A wait
    without an end would then never take that step: Ctrl-C and SIGTERM would do nothing.
    """
    while not done(_SECONDS):
        pass
