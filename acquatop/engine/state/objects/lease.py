"""Lease of a state in an object store: one engine at a time, another after it has run out."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from acquatop.errors import EnvironmentProblem
from connectors.object_store.contract import ObjectStore, StoreError, Version

NAME = "lease.json"
SECONDS = 15.0
"""Seconds without a renewal after which another engine may take a lease over."""

_RENEWALS = 3
"""Number of renewals within the time of a lease."""
_LOOKS = 10
"""Number of times that a waiting engine looks within the time of a lease."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """Holder of a lease, as the lease's object describes it.

    ``owner`` is different for each that ever held one, and ``beat`` for each renewal.
    """

    owner: str
    pid: int
    host: str
    since: str
    seconds: float
    beat: int = 0
    is_free: bool = False

    @classmethod
    def this_process(cls, seconds: float) -> Holder:
        """Return a new holder: this process."""
        since = datetime.now(UTC).isoformat(" ", "seconds")
        return cls(uuid.uuid4().hex, os.getpid(), socket.gethostname(), since, seconds)

    @property
    def content(self) -> bytes:
        """The content of the lease's object."""
        return json.dumps(asdict(self)).encode() + b"\n"

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (since {self.since})"


@dataclass(frozen=True)
class LeaseTiming:
    """Length of a lease, and the clock and the waiting by which it is measured."""

    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], object] = time.sleep


class Lease:
    """Lease held by this process, renewed by a thread until :meth:`release`.

    No clocks are compared: a lease has run out for an engine that has seen no renewal for its time,
    by its own clock. All changes are conditional on what was there before, so only one can win.
    The lease keeps engines apart; that a stale one cannot write is up to the chain of records.
    """

    def __init__(
        self, objects: ObjectStore, holder: Holder, version: Version, timing: LeaseTiming, at: float
    ) -> None:
        self.holder = holder
        self._objects = self._renewed_by = objects
        self._version = version
        self._place: object = None
        self._timing = timing
        self._renewed_at = at
        self._lost: str | None = None
        self._turn = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(
            target=self._renew_until_end, name="acquatop-lease", daemon=True
        )

    @classmethod
    def take(cls, objects: ObjectStore, place: object, timing: LeaseTiming) -> Lease:
        """Take the lease; wait for one to run out that nobody renews.

        Raises :class:`EnvironmentProblem` with the name of the holder if that renews it.
        """
        own, watch = Holder.this_process(timing.seconds), _Watch(place, timing)
        while True:
            at = timing.clock()
            found = objects.get(NAME)
            if found is None:
                version = objects.put_new(NAME, own.content)
            elif watch.has_run_out(found.content):
                version = objects.put_over(NAME, own.content, found.version)
            else:
                watch.wait()
                continue
            if version is not None:
                return cls(objects, own, version, timing, at)

    def start(self, objects: ObjectStore, place: object) -> None:
        """Begin to renew it, by these objects; say so if it is lost."""
        self._renewed_by = objects
        self._place = place
        self._thread.start()

    def prove_conditions(self, place: object) -> None:
        """Raise :class:`EnvironmentProblem` if the store writes whatever the condition."""
        wrong = {key: f'"{uuid.uuid4().hex}"' for key in self._version}
        written = self._objects.put_new(NAME, b"probe 1\n")
        if written is None:
            written = self._objects.put_over(NAME, b"probe 2\n", wrong)
        if written is not None:
            self._objects.put_over(NAME, replace(self.holder, is_free=True).content, written)
            raise EnvironmentProblem(
                f"{place}: this store ignores conditions of writes (If-None-Match, If-Match), so "
                "two engines could not be kept apart\n"
                "  hint: use a newer version of its server, or another store"
            )

    def check(self, place: object) -> None:
        """Raise :class:`EnvironmentProblem` if another engine has taken it over.

        If it has not been renewed in time, as in a process that was stopped, the store is asked.
        """
        if (
            self._lost is None
            and self._timing.clock() - self._renewed_at > self._timing.seconds / _RENEWALS * 2
        ):
            self.renew(self._objects)
        if self._lost is not None:
            raise lost(place, self._lost)

    def renew(self, objects: ObjectStore) -> None:
        """Renew it by these objects, or note that it is lost.

        Raises :class:`StoreError` if the store is away.
        """
        with self._turn:
            if self._lost is not None:
                return
            at = self._timing.clock()
            self.holder = replace(self.holder, beat=self.holder.beat + 1)
            version = objects.put_over(NAME, self.holder.content, self._version)
            if version is None:
                self._lost = self._other(objects)
            else:
                self._version, self._renewed_at = version, at

    def release(self, objects: ObjectStore) -> None:
        """Let the next engine have it at once, by these objects."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._turn:
            if self._lost is None:
                self._lost = "this engine, which has ended"
                free = replace(self.holder, is_free=True)
                try:
                    objects.put_over(NAME, free.content, self._version)
                except StoreError as error:
                    _LOG.warning("the next engine has to wait: %s", error)

    def _renew_until_end(self) -> None:
        while not self._ending.wait(self._timing.seconds / _RENEWALS) and self._lost is None:
            try:
                self.renew(self._renewed_by)
            except StoreError as error:
                _LOG.warning("the lease could not be renewed: %s", error)
        if self._lost is not None and not self._ending.is_set():
            # An engine whose streams are silent would say it at the next record.
            _LOG.warning("%s", lost(self._place, self._lost))

    def _other(self, objects: ObjectStore) -> str:
        found = objects.get(NAME)
        if found is None:
            return "somebody who has removed its lease"
        return str(_holder(found.content, self._timing.seconds))


class _Watch:
    """Watch of somebody's lease, from the first look on."""

    def __init__(self, place: object, timing: LeaseTiming) -> None:
        self._place = place
        self._timing = timing
        self._seen: bytes | None = None
        self._since = 0.0

    def has_run_out(self, content: bytes) -> bool:
        """Return True if nobody renews the lease; raises :class:`EnvironmentProblem` if one does.

        ``content`` is what its object holds now.
        """
        other, now = _holder(content, self._timing.seconds), self._timing.clock()
        if other.is_free:
            return True
        if self._seen is None:
            self._seen, self._since = content, now
            _LOG.warning(
                "%s was in use by %s: waiting for up to %.0f s to see if it still is",
                self._place,
                other,
                other.seconds,
            )
        if content != self._seen:
            raise EnvironmentProblem(
                f"{self._place} is in use by {other}\n  hint: stop it, or use another prefix"
            )
        return now - self._since >= other.seconds

    def wait(self) -> None:
        """Wait until the next look."""
        self._timing.pause(self._timing.seconds / _LOOKS)


def lost(place: object, other: str) -> EnvironmentProblem:
    """Return the error of an engine whose state another has now."""
    return EnvironmentProblem(
        f"{place} has been taken over by {other}: this engine writes nothing more\n"
        "  hint: it was stopped, or away from the store, for longer than its lease; the other "
        "goes on in its place"
    )


def _holder(content: bytes, seconds: float) -> Holder:
    """Return the holder that a lease's object describes, whatever it holds."""
    try:
        said: Mapping[str, Any] = json.loads(content)
        return Holder(**said)
    except (ValueError, TypeError):
        return Holder("", 0, "an unknown host", "an unknown time", seconds)
