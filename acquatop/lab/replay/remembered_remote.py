"""Recorded remote with a cache, for many replays that request the same values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from replica.remotes import MayAsk, always
from replica.remotes.table import TableRemote
from replica.store import Solution

_ROOM = 1 << 16
"""Largest number of cached keys; then the cache is cleared. An answer takes some 300 bytes."""


class RememberedRemote:
    """Table with a cache: its reply is the same for the same key and the same time."""

    def __init__(self, table: TableRemote, key_variable: str, now_ms: Callable[[], int]) -> None:
        self.block_size = table.block_size
        self._table = table
        self._key_variable = key_variable
        self._now_ms = now_ms
        self._said: dict[tuple[int, str], list[Solution]] = {}

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the present solutions for some keys."""
        now, said = self._now_ms(), self._said
        new = [key for key in keys if (now, key) not in said]
        if new:
            if len(said) > _ROOM:
                said.clear()
                new = list(keys)
            said.update(((now, key), []) for key in new)
            for solution in self._table.fetch(new, timeout):
                said[now, solution[self._key_variable]].append(solution)
        return [solution for key in keys for solution in said[now, key]]

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield the solutions at the time of the first page, in pages."""
        return self._table.load(timeout, may_ask)
