"""A recorded remote that many replays ask the same: what it has said at a time, it need not look up again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from replica.remotes import MayAsk, always
from replica.remotes.table import TableRemote
from replica.store import Solution

_ROOM = 1 << 16
"""How many keys' answers are remembered at most: then all are forgotten. An answer takes some 300 bytes."""


class RememberedRemote:
    """Says what a table says, which is the same for the same key and the same time."""

    def __init__(self, table: TableRemote, key_variable: str, now_ms: Callable[[], int]) -> None:
        self.block_size = table.block_size
        self._table = table
        self._key_variable = key_variable
        self._now_ms = now_ms
        self._said: dict[tuple[int, str], list[Solution]] = {}

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return what holds now for some keys."""
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
        """Return what holds now, when the first page is asked for, in pages."""
        return self._table.load(timeout, may_ask)
