"""A remote and a feed whose solutions are recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from acquatop.lab.record.remote_log import PatternTape
from replica.clocks import Clock
from replica.feeds.contract import ChangeSink, Feed
from replica.remotes import MayAsk, Rejecting, Remote, always
from replica.store import Solution


class RecordedRemote:
    """Wrapper of a remote that records its solutions, dated by the sending of the request."""

    def __init__(self, remote: Remote, tape: PatternTape, now: Clock) -> None:
        self.block_size = remote.block_size
        self.rejected: Counter[str] = (
            remote.rejected if isinstance(remote, Rejecting) else Counter()
        )
        self._remote = remote
        self._tape = tape
        self._now = now

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys."""
        sent_ms = milliseconds(self._now)
        solutions = self._remote.fetch(keys, timeout)
        self._tape.add(keys, solutions, sent_ms)
        return solutions

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield all solutions, page by page."""
        sent_ms = milliseconds(self._now)
        for page in self._remote.load(timeout, may_ask):
            self._tape.add((), page, sent_ms)
            yield page


class RecordedFeed:
    """Wrapper of a feed that records its solutions, dated by their arrival."""

    def __init__(self, feed: Feed, tape: PatternTape, now: Clock) -> None:
        self._feed = feed
        self._tape = tape
        self._now = now

    @property
    def failure(self) -> str | None:
        """Reason that the feed cannot reach its source at present."""
        return self._feed.failure

    def start(self, sink: ChangeSink) -> None:
        """Start calling ``sink``."""
        self._feed.start(_written(sink, self._tape, self._now))

    def stop(self) -> None:
        """Stop."""
        self._feed.stop()


def _written(sink: ChangeSink, tape: PatternTape, clock: Clock) -> ChangeSink:
    def take(said: Mapping[str, Sequence[Solution]], now: float) -> None:
        tape.add(
            said, [each for solutions in said.values() for each in solutions], milliseconds(clock)
        )
        sink(said, now)

    return take


def milliseconds(now: Clock) -> int:
    """Return a clock's time in milliseconds."""
    return round(1000 * now())
