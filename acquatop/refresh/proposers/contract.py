"""Contract of proposers: the keys that may be refreshed in an evaluation, with facts about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from acquatop.ingest.panes import Pane
from acquatop.topk.contract import FloatArray, IntArray


@dataclass(frozen=True)
class Proposed:
    """Keys, each once, the best first; their merits, if known, and the last window of each.

    ``parts`` are the stream's numbers that went into the merits, if there are any.
    """

    keys: tuple[str, ...]
    merits: FloatArray
    lasts: IntArray
    parts: tuple[FloatArray, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)

    def and_then(self, keys: Iterable[str], lasts: IntArray) -> Proposed:
        """Return these keys, then those of some more keys that are not among them, without merits.

        >>> first = Proposed(("b",), np.array([7.0]), np.array([3]))
        >>> first.and_then(["a", "b", "c"], np.array([1, 2, 4])).lasts.tolist()
        [3, 1, 4]
        """
        mine = set(self.keys)
        new = [
            (key, last) for key, last in zip(keys, lasts.tolist(), strict=True) if key not in mine
        ]
        return Proposed(
            (*self.keys, *(key for key, _ in new)),
            np.concatenate([self.merits, np.full(len(new), np.nan)]),
            np.concatenate([self.lasts, np.array([last for _, last in new], dtype=np.int64)]),
            tuple(np.concatenate([part, np.full(len(new), np.nan)]) for part in self.parts),
        )


NOTHING_PROPOSED = Proposed((), np.empty(0), np.empty(0, dtype=np.int64))


class Proposer(Protocol):
    """Proposer of keys, which follows a query's panes if it has to."""

    @property
    def looks_at_panes(self) -> bool:
        """True if it must see all solutions of panes: they may not be reduced to the best then."""

    @property
    def includes_dropped(self) -> bool:
        """True if it also needs others of a window's best that could become results."""

    def add_pane(self, pane: Pane) -> None:
        """See the solutions of one pane."""

    def propose(self, window: int, candidates: Proposed) -> Proposed:
        """Return the keys that may be refreshed when a window closes: candidates, and others."""

    def close_before(self, window: int) -> None:
        """Release data that lies only in earlier windows."""

    def snapshot(self) -> bytes:
        """Return the whole state."""

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
