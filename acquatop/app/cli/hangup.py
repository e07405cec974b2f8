"""Work at each SIGHUP, the usual request to read settings again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType
from typing import Self

SIGHUP: int | None = getattr(signal, "SIGHUP", None)
"""The signal's number; None on systems that do not have it."""


class Hangup:
    """Context in which SIGHUP leads to some work, in a thread of its own; for the main thread."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        # Its put may interrupt itself, as a handler does.
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="acquatop-hangup", daemon=True)

    def __enter__(self) -> Self:
        if SIGHUP is not None:
            self._before = signal.signal(SIGHUP, self._handle)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if SIGHUP is not None:
            signal.signal(SIGHUP, self._before)
            self._asked.put(False)
            self._thread.join()

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._asked.put(True)

    def _run(self) -> None:
        while self._asked.get():
            self._work()
