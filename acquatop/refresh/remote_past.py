"""Values that a remote had before, as far as the looks at it tell: joined beside those of now."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from acquatop.topk.snapshot import reading
from replica.past_values import PastValues
from replica.store import SolutionStore
from rspql.plan import PastValue

PAST_SEEN = "past values are those last seen: the remote may have had others in between"


class RemotePast:
    """History of a replica's values by key, for the past values that a query needs.

    Time goes on by :meth:`go_to`. The value of some time ago is that of the last look up to then.
    Memory is O(keys + changes seen within the longest time that is looked back).
    """

    def __init__(self, past: Sequence[PastValue], store: SolutionStore) -> None:
        self._wanted = tuple(past)
        self._store = store
        self._variables = tuple(dict.fromkeys(each.variable for each in past))
        self._longest = max(each.back_ms for each in past) / 1000
        self._backs = sorted({each.back_ms / 1000 for each in past})
        self._values = PastValues(self._variables, self._longest)
        self._young: dict[str, float] = {}
        """First looks at the keys that are not known for the longest time yet."""
        self._coming: list[tuple[float, str]] = []
        """Times at which something seen becomes the past, and the keys; a heap."""

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def note(self, keys: Iterable[str]) -> None:
        """Note the replica's values of keys, if it knows them."""
        known = [key for key in keys if key in self._store]
        times = self._store.fetched_at(self._store.rows(known)).tolist()
        for key, time in zip(known, times, strict=True):
            is_new = key not in self._values
            if self._values.note(key, time, self._single(key)):
                for back in self._backs:
                    heapq.heappush(self._coming, (time + back, key))
            if is_new:
                self._young[key] = time

    def go_to(self, now: float) -> set[str]:
        """Let time go on; return the keys whose past values may be others than before."""
        moved: set[str] = set()
        while self._coming and self._coming[0][0] <= now:
            moved.add(heapq.heappop(self._coming)[1])
        self._values.forget(moved, now)
        self._young = {
            key: first for key, first in self._young.items() if first > now - self._longest
        }
        return moved

    def before(self, key: str, now: float) -> dict[str, str]:
        """Return the past values of a key, as N-Triples text by the names that they have."""
        found = {}
        for each in self._wanted:
            terms = self._values.at(key, now - each.back_ms / 1000)
            text = "" if terms is None else terms[self._variables.index(each.variable)]
            if text:
                found[each.name] = text
        return found

    def lacking(self) -> Iterable[str]:
        """Return the keys that have not been seen for the longest time, as of :meth:`go_to`."""
        return self._young.keys()

    def keep_held(self) -> None:
        """Drop the keys that the replica has dropped."""
        self._values.keep_only(self._store.__contains__)
        self._young = {key: at for key, at in self._young.items() if key in self._store}

    def _single(self, key: str) -> tuple[str, ...]:
        """Return a key's values, empty where it has none or several."""
        solutions = self._store.solutions(key)
        found = []
        for name in self._variables:
            values = {each[name] for each in solutions if name in each}
            found.append(values.pop() if len(values) == 1 else "")
        return tuple(found)

    def snapshot(self) -> bytes:
        """Return the whole state."""
        return self._values.snapshot()

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            self._values.resume(snapshot)
            changes = list(self._values.changes())
            self._coming = [(time + back, key) for key, time in changes for back in self._backs]
            heapq.heapify(self._coming)
            firsts: dict[str, float] = {}
            for key, time in changes:
                firsts.setdefault(key, time)
            self._young = firsts


def past_of(past: Sequence[PastValue], store: SolutionStore) -> RemotePast | None:
    """Return the history for some past values; None if there are none."""
    return RemotePast(past, store) if past else None
