"""Hashes of recent messages, in two sets that take turns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from connectors.message_identity import Hashes

MOST = 4_000_000
"""Number of hashes at which a set is full: the other one is then forgotten early."""


@dataclass
class HashSet:
    """Hashes noted since a time, as sorted arrays of growing length; 8 bytes each.

    ``name`` is that of the file that they are saved in.
    """

    since: float
    name: str = ""
    count: int = 0
    _levels: list[Hashes] = field(default_factory=list)
    _unsaved: list[Hashes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = self.name or f"seen-{int(self.since * 1_000_000)}"

    def has(self, hashes: Hashes) -> np.ndarray:
        """Return True for each hash that is in the set."""
        found = np.zeros(len(hashes), np.bool_)
        for level in self._levels:
            places = np.minimum(np.searchsorted(level, hashes), len(level) - 1)
            found |= level[places] == hashes
        return found

    def add(self, hashes: Hashes) -> None:
        """Add distinct hashes that are not in the set; amortized O(log of its length) each."""
        if not len(hashes):
            return
        levels = self._levels
        levels.append(np.sort(hashes))
        self._unsaved.append(hashes)
        self.count += len(hashes)
        while len(levels) > 1 and len(levels[-2]) < 2 * len(levels[-1]):
            last = levels.pop()
            levels[-1] = np.sort(np.concatenate([levels[-1], last]), kind="stable")

    def take_unsaved(self) -> Hashes:
        """Return the hashes added since the last call."""
        unsaved, self._unsaved = self._unsaved, []
        return np.concatenate([np.empty(0, np.uint64), *unsaved])


class RecentHashes:
    """The hashes of at least a time, and at most twice that time.

    >>> recent = RecentHashes(60.0)
    >>> recent.add(np.array([1, 2, 1], np.uint64), 0.0).tolist()
    [True, True, False]
    >>> recent.add(np.array([2, 3], np.uint64), 59.0).tolist()
    [False, True]
    >>> [recent.add(np.array([1], np.uint64), now).tolist() for now in (60.0, 130.0, 189.0)]
    [[False], [True], [False]]
    """

    def __init__(self, seconds: float, most: int = MOST) -> None:
        self._seconds = seconds
        self._most = most
        self.older: HashSet | None = None
        self.newer: HashSet | None = None
        self.is_cut_short = False
        """True if a set was forgotten early, because there were too many."""

    def add(self, hashes: Hashes, now: float) -> np.ndarray:
        """Add hashes; return True for each new one, and only for its first occurrence."""
        newer = self._turned(now)
        distinct, first = np.unique(hashes, return_index=True)
        unknown = ~newer.has(distinct)
        if self.older is not None:
            unknown &= ~self.older.has(distinct)
        newer.add(distinct[unknown])
        is_new = np.zeros(len(hashes), np.bool_)
        is_new[first[unknown]] = True
        return is_new

    def _turned(self, now: float) -> HashSet:
        """Return the set that takes new hashes now."""
        newer = self.newer
        if newer is None:
            self.newer = newer = HashSet(now)
        is_full = newer.count >= self._most
        if is_full or now - newer.since >= self._seconds:
            self.is_cut_short |= is_full and now - newer.since < self._seconds
            # After a long silence all of them are too old.
            is_old = now - newer.since >= 2 * self._seconds
            self.older, self.newer = (None if is_old else newer), HashSet(now)
        elif now < newer.since:
            # The clock was set back.
            newer.since = now
        assert self.newer is not None
        return self.newer
