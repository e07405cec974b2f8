"""Shutdown on a signal: gracefully at the first, immediately at the second."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import NoReturn, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_SHOW_CURSOR = b"\x1b[?25h"


class Shutdown:
    """Context manager that calls ``stop`` exactly once, in whatever way its block ends.

    A first SIGINT or SIGTERM raises :class:`KeyboardInterrupt` while the run is being set up. After
    :meth:`gently` it calls ``stop`` in a thread of its own instead: the main thread is not
    interrupted, and if it waits for answers it gets their end. A second signal ends the process
    immediately, with exit code 130 or 143. ``told`` is called after the first. An error of ``stop``
    is raised at the end of the block. For the main thread only.
    """

    def __init__(
        self,
        stop: Callable[[], None],
        *,
        told: Callable[[], None] = lambda: None,
        at_once: Callable[[int], None] | None = None,
    ) -> None:
        self.asked = False
        self._stop = stop
        self._told = told
        self._at_once = at_once or _end_at_once
        self._gentle = False
        self._leaving = False
        self._stopping = threading.Lock()
        self._stopped = False
        self._error: BaseException | None = None
        # The only queue that a signal handler may put into at any point of the main thread.
        self._signals: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._wait, name="acquatop-ending", daemon=True)

    def __enter__(self) -> Self:
        self._before = {each: signal.signal(each, self._handle) for each in SIGNALS}
        return self

    def gently(self) -> None:
        """Finish the batch at hand at a signal from now on.

        Call it when all runs: Spark sets signal handlers of its own.
        """
        for each in SIGNALS:
            signal.signal(each, self._handle)
        self._gentle = True
        self._thread.start()

    def end(self) -> None:
        """End as at a first signal. For any thread, after :meth:`gently`; returns at once."""
        self._signals.put(signal.SIGTERM)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._gentle = self._leaving = True
        try:
            self._stop_once()
        finally:
            if self._thread.ident is not None:
                self._signals.put(None)
                self._thread.join()
            for each, handler in self._before.items():
                signal.signal(each, handler)
        if self._error is not None:
            raise self._error

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        # A handler runs between any two steps of the main thread. It must not wait for a lock that
        # the main thread may hold.
        if self._error is not None and not self._leaving:
            raise KeyboardInterrupt
        if self.asked:
            self._at_once(number)
        self.asked = True
        if not self._gentle:
            raise KeyboardInterrupt
        self._signals.put(number)

    def _wait(self) -> None:
        if self._signals.get() is None:
            return
        try:
            self._told()
            self._stop_once()
        except BaseException as error:
            self._error = error
            if not self._leaving:
                # The main thread may wait for answers that will never come.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def _stop_once(self) -> None:
        with self._stopping:
            if not self._stopped:
                self._stopped = True
                self._stop()


def _end_at_once(number: int) -> NoReturn:
    if sys.stdout is not None and os.isatty(1):
        os.write(1, _SHOW_CURSOR)
    os._exit(128 + number)
