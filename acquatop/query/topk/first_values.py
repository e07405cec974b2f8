"""First values of keys: none of their solutions can have been dropped."""

from __future__ import annotations

import json

from replica.store import JoinedStore

_BEFORE_ALL, _AFTER_ALL = -(2**63), 2**63


class FirstValues:
    """Test of keys that have just become known: has no open window known them before?

    Solutions are dropped for their scores alone, so none is dropped whose key was never known: a
    first value is an arrival, and no change of what is held. A replica that has forgotten keys may
    take one for new that had a value when its solutions were dropped. So whenever it has forgotten
    any, no key is taken for new until all windows have closed that had solutions by then.
    """

    def __init__(self, store: JoinedStore | None) -> None:
        self._store = store
        self._forgotten = 0 if store is None else store.forgotten
        self._newest = _BEFORE_ALL
        self._doubted_until = _BEFORE_ALL

    def note(self, last: int) -> None:
        """Note that solutions have come, the last window of which is given."""
        self._newest = max(self._newest, last)

    def among(self, keys: frozenset[str], open_from: int) -> frozenset[str]:
        """Return the keys of which no solution can have been dropped, given the first open window.

        ``keys`` have become known since the last call.
        """
        self._look()
        return keys if self._doubted_until < open_from else frozenset()

    def _look(self) -> None:
        if self._store is not None and self._store.forgotten != self._forgotten:
            self._forgotten = self._store.forgotten
            self._doubted_until = self._newest

    def snapshot(self) -> bytes:
        """Return the whole state."""
        self._look()
        return json.dumps([self._newest, self._doubted_until]).encode()

    def resume(self, snapshot: bytes | None) -> None:
        """Restore a snapshot; without one, nothing is known of what was dropped before it."""
        if snapshot is None:
            self._doubted_until = _AFTER_ALL
        else:
            self._newest, self._doubted_until = json.loads(snapshot)
        self._forgotten = 0 if self._store is None else self._store.forgotten
