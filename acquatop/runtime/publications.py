"""Sending of work to executors: large parts once to each, of published values only the changes."""

from __future__ import annotations

import io
import itertools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.cloudpickle import Pickler

from acquatop.ingest.reduce.published import Published
from acquatop.runtime.kept_values import Pack, SentWork

if TYPE_CHECKING:
    from pyspark.core.broadcast import Broadcast

LARGE = 1 << 20
"""Bytes from which on work is broadcast: sent to each executor only once."""
MANY = 1 << 17
"""Bytes from which on changes are broadcast, and do not go with each work any more."""


Broadcasting = Callable[[Any], "Broadcast[Any]"]
"""Function that broadcasts data, such as a Spark context's."""


class SentValues:
    """Published values of some work as they were when the work was made."""

    def __init__(self, published: Sequence[Published], packs: Mapping[str, Sequence[Pack]]) -> None:
        self._published = published
        self.packs = packs

    @property
    def are_current(self) -> bool:
        """False if what is made with them is of no use any more."""
        return all(each.is_current for each in self._published)


class Publications:
    """Sender of a stream's work. Used by one thread, one work at a time.

    The changes of a value go with the work while they are few. Many are broadcast, and the
    broadcast stays while works refer to it. Once the changes are larger than the whole, the whole
    is sent again.
    """

    def __init__(self, broadcast: Broadcasting) -> None:
        self._broadcast = broadcast
        self._name = uuid4().hex
        self._numbers = itertools.count()
        self._of: dict[str, _Sent] = {}

    def values_in(self, work: Any) -> SentValues:
        """Return the values in some work as they are now, for work with the same ones.

        Valid until other work is sent.
        """
        return self._present(_pickled(work)[1])

    @contextmanager
    def sent(self, work: Any, present: SentValues | None = None) -> Iterator[SentWork]:
        """Yield work in the form in which it is sent, with the values as they are now.

        Others may be changing them now: then they are given as they are ``present``.
        """
        data, published = _pickled(work)
        values = dict((present or self._present(published)).packs)
        if len(data) < LARGE:
            yield SentWork(self._name, data, values)
            return
        # PySpark would do so by itself, but leave a file behind for every batch until the session
        # ends.
        broadcast = self._broadcast(data)
        try:
            yield SentWork(self._name, broadcast, values)
        finally:
            broadcast.destroy()

    def close(self) -> None:
        """Remove all broadcasts. No work may be under way."""
        for each in self._of.values():
            each.destroy()
        self._of.clear()

    def _present(self, published: Mapping[str, Published]) -> SentValues:
        for name in self._of.keys() - published.keys():
            self._of.pop(name).destroy()
        packs = {name: self._packs(each) for name, each in published.items()}
        return SentValues(list(published.values()), packs)

    def _packs(self, value: Published) -> Sequence[Pack]:
        sent = self._of.get(value.name)
        changes = value.changes(None if sent is None else sent.version)
        if changes is None:
            assert sent is not None, "the first change is the whole"
            return sent.packs()
        if sent is not None and (changes.is_whole or sent.is_worn):
            sent.destroy()
            changes, sent = value.changes(None) if sent.is_worn else changes, None
            assert changes is not None, "the whole is never nothing"
        sent = self._of[value.name] = sent or _Sent(self._broadcast)
        sent.add(next(self._numbers), pickle.dumps(changes.change), changes.version)
        return sent.packs()


class _Sent:
    """Changes of a value that executors have been sent."""

    def __init__(self, broadcast: Broadcasting) -> None:
        self.version: Any = None
        self._broadcast = broadcast
        self._broadcasts: list[tuple[list[int], Broadcast[Sequence[bytes]]]] = []
        self._inline: list[tuple[int, bytes]] = []
        self._whole = 0
        self._changes = 0

    def add(self, number: int, change: bytes, version: Any) -> None:
        """Add a change; the first one is the whole."""
        self.version = version
        if self._broadcasts or self._inline:
            self._changes += len(change)
        else:
            self._whole = len(change)
        self._inline.append((number, change))
        if sum(len(each) for _, each in self._inline) >= MANY:
            numbers, changes = zip(*self._inline, strict=True)
            self._broadcasts.append((list(numbers), self._broadcast(changes)))
            self._inline = []

    @property
    def is_worn(self) -> bool:
        """True if the whole is smaller than its changes, and many bytes could be saved."""
        return self._changes > max(self._whole, 2 * MANY)

    def packs(self) -> Sequence[Pack]:
        """Return the changes from the whole on."""
        packs = [Pack(numbers, changes) for numbers, changes in self._broadcasts]
        if self._inline:
            numbers, inline = zip(*self._inline, strict=True)
            packs.append(Pack(numbers, inline))
        return packs

    def destroy(self) -> None:
        """Remove the broadcasts."""
        for _, each in self._broadcasts:
            each.destroy()
        self._broadcasts = []


def _pickled(work: Any) -> tuple[bytes, dict[str, Published]]:
    """Return work without the published values in it, and these by their names."""
    file, published = io.BytesIO(), dict[str, Published]()

    class WithoutValues(Pickler):
        def persistent_id(self, value: Any) -> str | None:
            if not isinstance(value, Published):
                return None
            published[value.name] = value
            return value.name

    WithoutValues(file).dump(work)  # type: ignore[no-untyped-call]
    return file.getvalue(), published
