"""Object store that asks again while the one behind it is away, and knows its own writes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from connectors.object_store.contract import (
    ObjectStore,
    StoredObject,
    StoreUnavailableError,
    Version,
)

T = TypeVar("T")

PATIENCE = 300.0
"""Maximum number of seconds for which a request is made again and again."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_SAID_EVERY = 10.0
_LOG = logging.getLogger(__name__)


class PatientObjects:
    """Object store with repeats. A write whose reply was lost counts as done if it is there.

    So contents that are written under conditions must differ between writers. While it waits it
    says so, every ten seconds. ``pause`` waits some seconds.
    """

    def __init__(
        self,
        objects: ObjectStore,
        place: str,
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._objects = objects
        self._place = place
        self._patience = patience
        self._clock = clock
        self._pause = pause

    def put_new(self, name: str, content: bytes) -> Version | None:
        """Write an object unless there is another of that name; return None if there is."""
        version = self._until_done(lambda: self._objects.put_new(name, content))
        return version or self._own(name, content)

    def put_over(self, name: str, content: bytes, version: Version) -> Version | None:
        """Replace an object that still has this version; return None if it has not."""
        replaced = self._until_done(lambda: self._objects.put_over(name, content, version))
        return replaced or self._own(name, content)

    def put(self, name: str, content: bytes) -> None:
        """Write an object, in place of any other of that name."""
        self._until_done(lambda: self._objects.put(name, content))

    def get(self, name: str) -> StoredObject | None:
        """Return an object, None if there is none."""
        return self._until_done(lambda: self._objects.get(name))

    def names(self) -> list[str]:
        """Return the names of all objects whose names have no slash, sorted."""
        return self._until_done(self._objects.names)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are missing are ignored."""
        removed = list(names)
        self._until_done(lambda: self._objects.remove(removed))

    def _own(self, name: str, content: bytes) -> Version | None:
        """Return the version of an object that has this content, which only we write."""
        found = self.get(name)
        return found.version if found is not None and found.content == content else None

    def _until_done(self, request: Callable[[], T]) -> T:
        began, said_at, pause = self._clock(), None, _FIRST_PAUSE
        while True:
            try:
                done = request()
            except StoreUnavailableError as error:
                waited = self._clock() - began
                if waited >= self._patience:
                    raise
                if said_at is None or self._clock() - said_at >= _SAID_EVERY:
                    said_at = self._clock()
                    _LOG.warning("waiting for the object store, for %.0f s: %s", waited, error)
                self._pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                if said_at is not None:
                    _LOG.warning(
                        "%s answers again, after %.0f s", self._place, self._clock() - began
                    )
                return done
