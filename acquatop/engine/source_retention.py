"""Retention of a source's data: until no snapshot that may be read needs it."""

from __future__ import annotations

from acquatop.runtime import Carrier, Position


class SourceRetention:
    """Retention of one stream's data, as long as the snapshot before the last one needs it.

    The last snapshot may turn out damaged. Then the engine resumes from the one before.
    """

    def __init__(self) -> None:
        self._carrier: Carrier | None = None
        self._committed: Position | None = None

    def attach(self, carrier: Carrier) -> None:
        """Note the carrier of the stream."""
        self._carrier = carrier

    def resume(self, position: Position | None) -> None:
        """Note the position of the snapshot that the engine has resumed from."""
        self._committed = position

    def snapshot_committed(self, position: Position | None) -> None:
        """Note the position of a new snapshot; release data before that of the previous one."""
        if self._committed is not None and self._carrier is not None:
            self._carrier.forget(self._committed)
        self._committed = position
