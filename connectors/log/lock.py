"""Lock for one writer at a time. It ends with the process that holds it, however that ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from connectors import ConnectorError
from connectors.process_lock import ProcessLock

NAME = "log.lock"
_RETRY_SECONDS = 0.05


class WriterLock:
    """System lock on a file of the log's folder.

    The file stays. A forked copy of the process releases its lock at once.
    """

    def __init__(
        self,
        folder: Path,
        patience_seconds: float,
        stopping: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wait for the lock. A killed holder, and programs it started, may take seconds to exit."""
        file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o666)
        until = clock() + patience_seconds
        while True:
            try:
                self._lock = ProcessLock(file)
                break
            except BlockingIOError:
                if stopping.wait(_RETRY_SECONDS) or clock() >= until:
                    holder = os.pread(file, 20, 0).decode("ascii", "replace") or "?"
                    os.close(file)
                    raise ConnectorError(
                        f"the log in {folder} is in use by process {holder}\n"
                        "  hint: one stream writes a log; stop the other, or give each a "
                        "folder of its own"
                    ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Release the lock for the next writer."""
        self._lock.release()
