"""A growing file of JSON lines as a feed."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import BinaryIO

from replica.clocks import Clock
from replica.feeds.contract import Sink
from replica.feeds.framing import Lines
from replica.feeds.teller import Teller
from replica.remotes.records import RecordReader

_PIECE = 1 << 16


class LinesFeed:
    """Follows a file from its beginning, and each file that comes in its place.

    A line counts when its line break is written. A file that is replaced is read to its end first, and the end then
    ends its last line; one that becomes shorter is read from its beginning again. (One that is cut and has grown
    beyond where it was before anybody looks again is not seen to have been cut.) There need not be a file yet.
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
        self._teller = Teller(reader, deleted, clock)
        self._lines = Lines()
        self._file: BinaryIO | None = None
        self._ended = threading.Event()

    def start(self, sink: Sink) -> None:
        """Begin to follow the file."""
        self._teller.start(sink)
        threading.Thread(target=self._run, name=f"following {self.path.name}", daemon=True).start()

    def stop(self) -> None:
        """End; nothing is said after this."""
        self._ended.set()
        self._teller.stop()

    def poll(self) -> None:
        """Tell all that has been written since the last time. What is wrong is ``failure``'s to say."""
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
                # Whoever replaced it may have written to it until then.
                self._read(self._file)
                self._teller.tell([self._lines.end()])
                self._close()
                self._file = self.path.open("rb")
            else:
                self._lines.end()
                self._file.seek(0)
            self._read(self._file)

    def _is_other(self, file: BinaryIO) -> bool | None:
        """Say whether there is another file now, or the same one has become shorter; None if neither."""
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
            self._teller.tell(self._lines.feed(piece))

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
