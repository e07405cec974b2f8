"""Base of all stores: keys, rows, histories and eviction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from replica.freshness.history import History
from replica.snapshot import Columns, SnapshotError, State
from replica.store.contract import NEVER, BoolArray, FloatArray, IntArray, Solution, Stored
from replica.store.key_index import KeyIndex
from replica.store.recency import Recency


class KeyedStore(ABC):
    """Keys with rows, their histories, and eviction beyond a limit.

    **Eviction**: with a ``limit``, ``touch`` marks the rows that an evaluation needs, and
    ``evict``, called once per evaluation, removes the least recently needed keys until ``limit``
    are left. Keys needed since the previous call always stay; keys that were asked for count as
    needed. So the store holds ``limit`` keys, or as many as one evaluation needs if these are more.
    A key that was not asked for is only added below the limit. All knowledge of a removed key is
    gone, and its row may be reused.

    ``numbers`` are the variables whose changes the history learns from.
    """

    def __init__(
        self,
        key_variable: str | None,
        variables: tuple[str, ...],
        *,
        numbers: tuple[str, ...],
        limit: int | None,
    ) -> None:
        self.key_variable = key_variable
        self.variables = variables
        self.limit = limit
        self.forgotten = 0
        """Number of times that a known key has become unknown."""
        self.history = History(numbers)
        self._index = KeyIndex()
        self._recency = Recency()
        self._capacity = 0

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of known keys."""

    @abstractmethod
    def put(
        self,
        asked: Iterable[str],
        solutions: Iterable[Solution],
        now: float,
        *,
        pushed: bool = False,
    ) -> Stored:
        """Store an answer to a question sent at ``now`` about ``asked``, or a pushed change."""

    @abstractmethod
    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""

    @abstractmethod
    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot of a store of the same variables; else raises SnapshotError.

        The limit stays as it is.
        """

    @property
    def held(self) -> int:
        """Number of keys held, including those that the remote does not have."""
        return len(self._index)

    @property
    def nbytes(self) -> int:
        """Size in bytes, including the keys' texts."""
        return self._index.nbytes + self._recency.nbytes + self.history.nbytes

    @property
    def text_bytes(self) -> int:
        """Size of the keys' texts in bytes."""
        return self._index.text_bytes

    def rows(self, keys: Sequence[str]) -> IntArray:
        """Return each key's row, -1 if the key is unknown. A key has its row while it is held."""
        return self._index.find(keys)

    def keys(self, rows: IntArray) -> list[str]:
        """Return the keys of rows that have one."""
        return self._index.keys(rows)

    def are_held(self, rows: IntArray) -> BoolArray:
        """Return True for each row that has a key."""
        return self._index.are_held(rows)

    def all_rows(self) -> IntArray:
        """Return the rows of all keys, ascending."""
        return self._index.all_rows()

    def fetched_at(self, rows: IntArray) -> FloatArray:
        """Return the time of each row's last fetch, ``NEVER`` for row -1."""
        return self._times(self.history.fetched_at, rows)

    def changed_at(self, rows: IntArray) -> FloatArray:
        """Return when each row was last found changed; ``NEVER`` if it was not, and for row -1."""
        return self._times(self.history.changed_at, rows)

    def touch(self, rows: IntArray) -> None:
        """Mark rows as needed by an evaluation; row -1 is ignored."""
        self._recency.need(rows[rows >= 0])

    def evict(self) -> int:
        """Remove the least recently needed keys beyond the limit; return how many. O(held)."""
        excess = 0 if self.limit is None else max(0, self.held - self.limit)
        rows = (
            self._recency.longest_ago(self.all_rows(), excess) if excess else np.empty(0, np.int64)
        )
        if len(rows):
            self._forget(rows)
        self._recency.end_round()
        return len(rows)

    def _times(self, times: FloatArray, rows: IntArray) -> FloatArray:
        return np.where(rows >= 0, times[rows], NEVER) if len(times) else np.full(len(rows), NEVER)

    def _rows_to_store(self, keys: Sequence[str], asked: int) -> tuple[IntArray, IntArray]:
        """Return the places of the keys to store, those asked for first, and their rows."""
        rows = self._index.find(keys)
        new = np.flatnonzero(rows < 0)
        if self.limit is not None:
            room = max(0, self.limit - self.held - int(np.searchsorted(new, asked)))
            new = np.concatenate([new[new < asked], new[new >= asked][:room]])
        if len(new):
            rows[new] = self._index.add([keys[at] for at in new.tolist()])
            if self._index.capacity > self._capacity:
                self._make_room(self._index.capacity)
            self._recency.begin(rows[new])
        self._recency.need(rows[:asked])
        places = np.flatnonzero(rows >= 0)
        return places, rows[places]

    def _make_room(self, capacity: int) -> None:
        self._capacity = capacity
        self._recency.make_room(capacity)
        self.history.grow(capacity)

    def _forget(self, rows: IntArray) -> None:
        self._index.remove(rows)
        self.history.clear(rows)
        self.forgotten += len(rows)

    def _settings(self) -> dict[str, Any]:
        return {
            "key_variable": self.key_variable,
            "variables": self.variables,
            "limit": self.limit,
            "round": self._recency.round,
        }

    def _tables(self, used: int) -> dict[str, Columns]:
        return {
            "keys": self._index.state(),
            "recency": self._recency.state(used),
            "history": self.history.state(used),
        }

    def _become(self, other: KeyedStore) -> None:
        """Take over the state of another store, which must not be used again."""
        self._index, self._recency, self._capacity = other._index, other._recency, other._capacity
        self.history.become(other.history)

    def _resume(self, state: State) -> int:
        """Load a state into a new store and return its number of rows.

        Raises SnapshotError for the state of a store of other variables, and ValueError if it is
        invalid.
        """
        names = state.settings["key_variable"], tuple(state.settings["variables"])
        if names != (self.key_variable, self.variables):
            raise SnapshotError(f"this is a snapshot of a store of {', '.join(names[1])}")
        self._index.resume(state.tables["keys"])
        used = self._index.used
        self.history.resume(state.tables["history"])
        if len(self.history.fetched_at) < used:
            raise ValueError("the history has too few rows")
        self._make_room(self._index.capacity)
        self._recency.round = _whole(state.settings, "round")
        self._recency.resume(state.tables["recency"], used)
        return used


def _whole(settings: Mapping[str, Any], name: str) -> int:
    value = settings[name]
    if not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"{name} is {value!r}")
    return value
