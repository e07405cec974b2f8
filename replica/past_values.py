"""Values of keys at earlier times, as far as the looks at them tell."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from replica.snapshot import State, pack, reading, unpack

_KIND, _VERSION = "past values", 1

Terms = tuple[str, ...]
"""Values of the variables, in N-Triples syntax; empty for none."""


class PastValues:
    """Changes that were seen of keys' values, back to the longest time that is looked back.

    A change counts from the look that found it. Older ones are dropped but for the last, which is
    the value before the others. Memory is O(keys + changes within that time).

    >>> past = PastValues(("f",), longest=10.0)
    >>> [
    ...     past.note("<urn:a>", time, (value,))
    ...     for time, value in ((0.0, "5"), (4.0, "7"), (9.0, "7"))
    ... ]
    [True, True, False]
    >>> past.at("<urn:a>", 3.0), past.at("<urn:a>", 9.0), past.at("<urn:a>", -1.0)
    (('5',), ('7',), None)
    """

    def __init__(self, variables: Sequence[str], longest: float) -> None:
        self.variables = tuple(variables)
        self.longest = longest
        self._times: dict[str, list[float]] = {}
        self._terms: dict[str, list[Terms]] = {}

    def __len__(self) -> int:
        """Return the number of changes held."""
        return sum(map(len, self._times.values()))

    def __contains__(self, key: str) -> bool:
        """Return True if anything is known of a key."""
        return key in self._times

    def note(self, key: str, time: float, terms: Terms) -> bool:
        """Note a look at a key; return True if it tells a change.

        One that is not newer than the newest says nothing.
        """
        times, known = self._times.setdefault(key, []), self._terms.setdefault(key, [])
        if times and (time <= times[-1] or known[-1] == terms):
            return False
        times.append(time)
        known.append(terms)
        return True

    def at(self, key: str, time: float) -> Terms | None:
        """Return the values at the last look up to a time; None if there was none."""
        before = bisect_right(self._times.get(key, ()), time)
        return self._terms[key][before - 1] if before else None

    def forget(self, keys: Iterable[str], now: float) -> None:
        """Drop changes of keys that nothing looks back to from now on."""
        for key in keys:
            kept = bisect_right(self._times.get(key, ()), now - self.longest) - 1
            if kept > 0:
                del self._times[key][:kept], self._terms[key][:kept]

    def changes(self) -> Iterator[tuple[str, float]]:
        """Yield each change that is held: its key and its time, a key's in their order."""
        for key, times in self._times.items():
            yield from ((key, time) for time in times)

    def keys(self) -> Iterable[str]:
        """Return the keys whose values are known."""
        return self._times.keys()

    def drop_empty(self, now: float) -> None:
        """Drop the keys that have had no value for all the time that is looked back."""
        for key, terms in list(self._terms.items()):
            if not any(map(any, terms)) and self._times[key][0] <= now - self.longest:
                del self._times[key], self._terms[key]

    def keep_only(self, is_held: Callable[[str], bool]) -> None:
        """Drop the keys that the replica has dropped."""
        for key in [key for key in self._times if not is_held(key)]:
            del self._times[key], self._terms[key]

    def snapshot(self) -> bytes:
        """Return the whole state."""
        keys = sorted(self._times)
        terms = [each for key in keys for each in self._terms[key]]
        tables = {
            "keys": {
                "key": np.array(keys, dtype=object),
                "size": np.array([len(self._times[key]) for key in keys], dtype=np.int64),
            },
            "changes": {
                "time": np.array([time for key in keys for time in self._times[key]], np.float64),
                **{
                    f"terms{at}": np.array([each[at] for each in terms], dtype=object)
                    for at in range(len(self.variables))
                },
            },
        }
        return pack(_KIND, _VERSION, State({"variables": list(self.variables)}, tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            state = unpack(_KIND, _VERSION, snapshot)
            assert tuple(state.settings["variables"]) == self.variables
            sizes = state.tables["keys"]["size"].tolist()
            times = iter(state.tables["changes"]["time"].tolist())
            columns = [state.tables["changes"][f"terms{at}"] for at in range(len(self.variables))]
            terms = iter(list(zip(*(each.tolist() for each in columns), strict=True)))
            found = {}
            for key, size in zip(state.tables["keys"]["key"].tolist(), sizes, strict=True):
                found[key] = [(next(times), next(terms)) for _ in range(size)]
        self._times = {key: [time for time, _ in each] for key, each in found.items()}
        self._terms = {key: [said for _, said in each] for key, each in found.items()}
