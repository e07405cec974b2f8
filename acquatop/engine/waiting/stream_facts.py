"""IntakeFacts of one stream since it has been read, as far as they explain a silence."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from acquatop.engine.observer import BatchSeen
from acquatop.ingest.place import Place

REASONS = 20
"""Number of reasons of bad items that are told apart; others are counted together."""
OTHER = "other"


@dataclass(frozen=True)
class IntakeFacts:
    """IntakeFacts of a stream.

    ``items`` counts all items. ``unused`` counts those since the last one that was of use, ``bad``
    and ``late`` say why; ``bad_at`` has the place of the first of each reason. ``heard_at`` is the
    time of day of the last items, ``unused_since`` that of the first unused ones, ``busy_since``
    that at which the present batch began.
    """

    since: float
    items: int = 0
    unused: int = 0
    bad: dict[str, int] = field(default_factory=dict)
    bad_at: dict[str, Place] = field(default_factory=dict)
    late: int = 0
    heard_at: float | None = None
    unused_since: float | None = None
    busy_since: float | None = None


class StreamFacts:
    """Counter of a stream's facts; any thread may read :attr:`now`. A batch costs O(reasons)."""

    def __init__(self, since: float) -> None:
        self.now = IntakeFacts(since)
        self._lock = threading.Lock()

    def begin(self, since: float) -> None:
        """Note that a batch is under way."""
        with self._lock:
            self.now = replace(self.now, busy_since=since)

    def end(self) -> None:
        """Note that the batch is over."""
        with self._lock:
            self.now = replace(self.now, busy_since=None)

    def note(self, seen: BatchSeen, at: float) -> None:
        """Note the items of a batch."""
        if not seen.events:
            return
        with self._lock:
            self.now = _with_batch(self.now, seen, at)


def _with_batch(before: IntakeFacts, seen: BatchSeen, at: float) -> IntakeFacts:
    heard = replace(before, items=before.items + seen.events, heard_at=at)
    if seen.events > sum(seen.bad.values()) + seen.late:
        return replace(heard, unused=0, bad={}, bad_at={}, late=0, unused_since=None)
    bad, bad_at = dict(before.bad), dict(before.bad_at)
    for reason, count in seen.bad.items():
        name = reason if reason in bad or len(bad) < REASONS else OTHER
        bad[name] = bad.get(name, 0) + count
        if reason in seen.bad_at:
            bad_at.setdefault(name, seen.bad_at[reason])
    since = at if before.unused_since is None else before.unused_since
    unused, late = before.unused + seen.events, before.late + seen.late
    return replace(heard, unused=unused, bad=bad, bad_at=bad_at, late=late, unused_since=since)
