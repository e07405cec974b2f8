"""What a proposer is asked: which keys may be refreshed in an evaluation, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from acquatop.ingest.panes import Pane
from acquatop.topk.contract import FloatArray, IntArray


@dataclass(frozen=True)
class Proposed:
    """Keys, each once, the best first; the merits of those that have one, and the last window that each lies in.

    ``parts`` are the stream's numbers that went into the merits, as far as there are any.
    """

    keys: tuple[str, ...]
    merits: FloatArray
    lasts: IntArray
    parts: tuple[FloatArray, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)

    def and_then(self, keys: Iterable[str], lasts: IntArray) -> Proposed:
        """Return these, and then those of some more keys that are not among them, without merits.

        >>> first = Proposed(("b",), np.array([7.0]), np.array([3]))
        >>> first.and_then(["a", "b", "c"], np.array([1, 2, 4])).lasts.tolist()
        [3, 1, 4]
        """
        mine = set(self.keys)
        new = [(key, last) for key, last in zip(keys, lasts.tolist(), strict=True) if key not in mine]
        return Proposed(
            (*self.keys, *(key for key, _ in new)),
            np.concatenate([self.merits, np.full(len(new), np.nan)]),
            np.concatenate([self.lasts, np.array([last for _, last in new], dtype=np.int64)]),
            tuple(np.concatenate([part, np.full(len(new), np.nan)]) for part in self.parts),
        )


NOTHING_PROPOSED = Proposed((), np.empty(0), np.empty(0, dtype=np.int64))


class Proposer(Protocol):
    """Follows a query's panes as far as it has to, and proposes."""

    @property
    def looks_at_panes(self) -> bool:
        """Whether it has to be shown the panes' solutions: they must not be reduced to the best then."""

    @property
    def looks_beyond_candidates(self) -> bool:
        """Whether it is to be shown, with the candidates, others of a window's best that could become results."""

    def add_pane(self, pane: Pane) -> None:
        """Take note of one pane's solutions."""

    def propose(self, window: int, held: Proposed) -> Proposed:
        """Return what may be refreshed when a window closes; ``held`` is what could be a result."""

    def close_before(self, window: int) -> None:
        """Let go of all that lies only in windows before this one."""

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on from here."""

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot; raises ``SnapshotError`` for any other bytes."""
