"""An iterator of messages as a feed, for sources that no protocol covers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from random import Random

from replica.clocks import Clock
from replica.feeds.contract import ChangeSink
from replica.feeds.record_forwarder import RecordForwarder
from replica.feeds.retry_pauses import RetryPauses
from replica.remotes.records import RecordReader

Messages = Callable[[], Iterable[bytes]]
"""Function that connects, and returns what comes: each message is a record in JSON."""

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0


class IteratedFeed:
    """Feed that passes on what an iterator yields, and asks for another one when that has ended.

    An iterator that fails, or yields nothing, is asked for again after a wait, which doubles each
    time. What stops the feed does not interrupt an iterator that waits.
    """

    def __init__(
        self,
        name: str,
        messages: Messages,
        reader: RecordReader,
        *,
        clock: Clock,
        random: Random,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self.failure: str | None = "not connected yet"
        self._name = name
        self._messages = messages
        self._forwarder = RecordForwarder(reader, "deleted", clock)
        self._pauses = RetryPauses(_FIRST_WAIT, _LONGEST_WAIT, random)
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait

    def start(self, sink: ChangeSink) -> None:
        """Start asking for messages."""
        self._forwarder.start(sink)
        threading.Thread(target=self._run, name=f"following {self._name}", daemon=True).start()

    def stop(self) -> None:
        """Stop; no call of the sink follows."""
        self._ended.set()
        self._forwarder.stop()

    def _run(self) -> None:
        in_vain = 0
        while not self._ended.is_set():
            in_vain = 0 if self._pass_on() else in_vain + 1
            if self._wait(self._pauses.after(in_vain)):
                return

    def _pass_on(self) -> bool:
        """Pass on the messages of one iterator; return whether there were any."""
        has_come = False
        try:
            for message in self._messages():
                if self._ended.is_set():
                    break
                has_come, self.failure = True, None
                self._forwarder.forward([message])
        except Exception as error:
            # Whatever it is, it is the extension's, and another attempt may succeed.
            self.failure = f"{self._name}: {type(error).__name__}: {error}"
        else:
            self.failure = None
        return has_come
