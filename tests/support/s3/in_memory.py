"""Object store in memory, which fails where a test wants it to."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from connectors.object_store.contract import StoredObject, StoreUnavailableError, Version

T = TypeVar("T")


class InMemory:
    """Objects in memory, with one version per write."""

    def __init__(self) -> None:
        self.objects: dict[str, StoredObject] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def put_new(self, name: str, content: bytes) -> Version | None:
        with self._lock:
            return None if name in self.objects else self._write(name, content)

    def put_over(self, name: str, content: bytes, version: Version) -> Version | None:
        with self._lock:
            found = self.objects.get(name)
            met = found is not None and found.version == version
            return self._write(name, content) if met else None

    def put(self, name: str, content: bytes) -> None:
        with self._lock:
            self._write(name, content)

    def get(self, name: str) -> StoredObject | None:
        return self.objects.get(name)

    def names(self) -> list[str]:
        return sorted(name for name in self.objects if "/" not in name)

    def remove(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                self.objects.pop(name, None)

    def _write(self, name: str, content: bytes) -> Version:
        version = {"e_tag": f'"{next(self._numbers)}"'}
        self.objects[name] = StoredObject(content, version)
        return version


class Careless(InMemory):
    """Store that knows no conditions, as servers of some years ago."""

    def put_new(self, name: str, content: bytes) -> Version | None:
        return self._write(name, content)


class Lossy:
    """Store whose requests fail as a function of their number says, before or after their effect.

    ``fails`` returns "before", "after" or None.
    """

    def __init__(self, objects: InMemory, fails: Callable[[int], str | None]) -> None:
        self._objects = objects
        self._fails = fails
        self.count = 0

    def put_new(self, name: str, content: bytes) -> Version | None:
        return self._done(lambda: self._objects.put_new(name, content))

    def put_over(self, name: str, content: bytes, version: Version) -> Version | None:
        return self._done(lambda: self._objects.put_over(name, content, version))

    def put(self, name: str, content: bytes) -> None:
        self._done(lambda: self._objects.put(name, content))

    def get(self, name: str) -> StoredObject | None:
        return self._done(lambda: self._objects.get(name))

    def names(self) -> list[str]:
        return self._done(self._objects.names)

    def remove(self, names: Iterable[str]) -> None:
        removed = list(names)
        self._done(lambda: self._objects.remove(removed))

    def _done(self, request: Callable[[], T]) -> T:
        self.count += 1
        fails = self._fails(self.count)
        if fails == "before":
            raise StoreUnavailableError("memory: 503 Service Unavailable SlowDown")
        done = request()
        if fails == "after":
            raise StoreUnavailableError("memory: no reply (timeout)")
        return done
