"""Keys whose texts the driver knows: those that send it sums of them leave the texts out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from acquatop.ingest.held_hashes import HeldHashes
from acquatop.ingest.identity_hash import Hashes
from acquatop.ingest.key_codes import KeyCodes
from acquatop.ingest.reduce.published import Published, SentChanges
from acquatop.ingest.scoring import BoolArray


class _Version(NamedTuple):
    releases: int
    added: int


class KnownKeys(Published):
    """Keys that have a code. Whoever publishes them must not release any before the next job.

    Within the driver's process texts cost nothing, and all are passed on.
    """

    def __init__(self, codes: KeyCodes) -> None:
        super().__init__()
        self.is_published = False
        self._codes = codes

    def mask(self, hashes: Hashes) -> BoolArray | None:
        """Return None: no text is to be left out here."""
        return None

    def changes(self, since: _Version | None) -> SentChanges | None:
        """Return the keys that are new since a version, or all if any was released since."""
        self.is_published = True
        codes = self._codes
        present = _Version(codes.releases, len(codes.added))
        if since == present:
            return None
        is_whole = since is None or since.releases != present.releases
        new = codes.added[0 if since is None or is_whole else since.added :]
        return SentChanges(NewKeys(codes.hashes_of(new), is_whole), present, is_whole)


@dataclass(frozen=True)
class NewKeys:
    """Hashes of keys that the driver knows now, or of all that it knows."""

    hashes: Hashes
    is_whole: bool

    def apply(self, kept: HeldKeys | None) -> HeldKeys:
        """Add the keys to those known before."""
        held = HeldKeys() if self.is_whole or kept is None else kept
        held.add(self.hashes)
        return held


class HeldKeys:
    """Hashes of the keys that the driver knows, as an executor holds them. O(keys)."""

    def __init__(self) -> None:
        self._index = HeldHashes()
        self._count = 0

    def add(self, hashes: Hashes) -> None:
        """Add keys that are not held."""
        first, self._count = self._count, self._count + len(hashes[0])
        self._index.put(np.arange(first, self._count), hashes)

    def mask(self, hashes: Hashes) -> BoolArray | None:
        """Return a mask of the keys that the driver knows."""
        found: BoolArray = self._index.find(hashes) >= 0
        return found
