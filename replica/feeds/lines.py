"""A growing file of JSON lines as a feed."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import BinaryIO

from replica.clocks import Clock
from replica.feeds.contract import ChangeSink
from replica.feeds.framing import Lines
from replica.feeds.record_forwarder import RecordForwarder
from replica.remotes.records import RecordReader

_PIECE = 1 << 16


class LinesFeed:
    """Feed that follows a file from its beginning, and each file that replaces it.

    A line counts once its line break is written. A replaced file is first read to its end, which
    completes its last line. A file that becomes shorter is read from its beginning again. (A file
    that is truncated and grows beyond its old length between two polls is not recognised as
    truncated.) The file need not exist yet.
    """

    def __init__(
        self,
        path: str | Path,
        reader: RecordReader,
        *,
        clock: Clock,
        deleted: str = "deleted",
        poll_seconds: float = 0.5,
    ) -> None:
        self.path = Path(path)
        self.failure: str | None = None
        self._poll_seconds = poll_seconds
        self._forwarder = RecordForwarder(reader, deleted, clock)
        self._lines = Lines()
        self._file: BinaryIO | None = None
        self._ended = threading.Event()

    def start(self, sink: ChangeSink) -> None:
        """Start following the file."""
        self.listen(sink)
        threading.Thread(target=self._run, name=f"following {self.path.name}", daemon=True).start()

    def listen(self, sink: ChangeSink) -> None:
        """Call ``sink`` from now on, whenever :meth:`poll` is called: a start without a thread."""
        self._forwarder.start(sink)

    def stop(self) -> None:
        """Stop; no call of the sink follows."""
        self._ended.set()
        self._forwarder.stop()

    def poll(self) -> None:
        """Pass on everything written since the last poll. Problems are reported in ``failure``."""
        try:
            self._follow()
        except OSError as error:
            self.failure = f"{self.path} cannot be read: {error.strerror or error}"
        else:
            self.failure = None

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self.poll()
                self._ended.wait(self._poll_seconds)
        except Exception as error:
            self.failure = f"{self.path} is followed no longer: {type(error).__name__}: {error}"
            raise
        finally:
            self._close()

    def _follow(self) -> None:
        if self._file is None:
            self._file = self.path.open("rb")
        self._read(self._file)
        while not self._ended.is_set() and (is_other := self._is_other(self._file)) is not None:
            if is_other:
                # The replaced file may have been written to until then.
                self._read(self._file)
                self._forwarder.forward([self._lines.end()])
                self._close()
                self._file = self.path.open("rb")
            else:
                self._lines.end()
                self._file.seek(0)
            self._read(self._file)

    def _is_other(self, file: BinaryIO) -> bool | None:
        """Return True for another file, False if the same one is shorter, None for neither."""
        held = os.fstat(file.fileno())
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return None  # it is being replaced
        if (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino):
            return True
        return False if held.st_size < file.tell() else None

    def _read(self, file: BinaryIO) -> None:
        while not self._ended.is_set() and (piece := file.read(_PIECE)):
            self._forwarder.forward(self._lines.feed(piece))

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
