"""Feed that tells what a test wants."""

from __future__ import annotations

from replica.feeds.contract import ChangeSink


class Told:
    """A feed that says what the test says."""

    failure: str | None = None

    def start(self, sink: ChangeSink) -> None:
        self.sink = sink

    def stop(self) -> None:
        pass
