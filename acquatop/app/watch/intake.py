"""Count of each stream's items, good and bad, for the terminal, the HTTP service and its page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acquatop.app.watch.bounded_labels import BoundedLabels
from acquatop.engine.observer import BatchSeen, Silent

if TYPE_CHECKING:
    from acquatop.ingest.place import Place

REASONS = 20
"""The number of reasons of a stream with a count of their own; the rest are counted together."""


@dataclass(frozen=True)
class ItemCounts:
    """Items of a stream so far: all, the bad ones by reason, and each reason's first place."""

    items: int = 0
    bad: Mapping[str, int] = field(default_factory=dict)
    bad_at: Mapping[str, Place] = field(default_factory=dict)

    @property
    def bad_items(self) -> int:
        """The number of bad items."""
        return sum(self.bad.values())

    @property
    def reasons(self) -> list[str]:
        """The reasons of the bad items, the commonest first."""
        return sorted(self.bad, key=lambda reason: (-self.bad[reason], reason))

    def since(self, before: ItemCounts) -> ItemCounts:
        """Return the items since an earlier time.

        >>> ItemCounts(5, {"not JSON": 3, "not UTF-8": 1}).since(ItemCounts(2, {"not UTF-8": 1}))
        ItemCounts(items=3, bad={'not JSON': 3}, bad_at={})
        """
        counts = {reason: count - before.bad.get(reason, 0) for reason, count in self.bad.items()}
        bad = {reason: count for reason, count in counts.items() if count}
        return ItemCounts(
            self.items - before.items,
            bad,
            {each: self.bad_at[each] for each in bad if each in self.bad_at},
        )


_NOTHING = ItemCounts()


class Intake(Silent):
    """Observer that counts items; ``told`` is called at each stream's first batch of bad items.

    The stream's own thread calls it. A batch costs O(1), memory is O(streams).
    """

    def __init__(self, told: Callable[[str, ItemCounts], None] = lambda stream, came: None) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._labels = BoundedLabels(REASONS)
        self._streams: dict[str, ItemCounts] = {}

    def batch(self, seen: BatchSeen) -> None:
        """Count a batch."""
        with self._lock:
            before = self.of(seen.stream)
            after = self._streams[seen.stream] = self._with(before, seen)
        if after.bad and not before.bad:
            self._told(seen.stream, after)

    def _with(self, before: ItemCounts, seen: BatchSeen) -> ItemCounts:
        if not seen.bad:
            return ItemCounts(before.items + seen.events, before.bad, before.bad_at)
        bad, bad_at = dict(before.bad), dict(before.bad_at)
        for reason, count in seen.bad.items():
            label = self._labels(seen.stream, reason)
            bad[label] = bad.get(label, 0) + count
            if reason in seen.bad_at:
                bad_at.setdefault(label, seen.bad_at[reason])
        return ItemCounts(before.items + seen.events, bad, bad_at)

    def of(self, stream: str) -> ItemCounts:
        """Return the items of one stream so far."""
        return self._streams.get(stream, _NOTHING)

    def streams(self) -> dict[str, ItemCounts]:
        """Return the items of all streams so far."""
        with self._lock:
            return dict(self._streams)

    @property
    def bad_items(self) -> int:
        """The number of bad items of all streams."""
        return sum(came.bad_items for came in self.streams().values())

    @property
    def is_all_bad(self) -> bool:
        """True if items have come, and all of them are bad."""
        came = list(self.streams().values())
        return any(each.bad for each in came) and all(each.items == each.bad_items for each in came)
