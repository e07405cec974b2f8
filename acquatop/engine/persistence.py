"""Persistence of an engine's state: its encoding, and the choice between snapshot and journal."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from acquatop.answer.answer import Answer
from acquatop.answer.codec import answer_from_document, answer_to_document
from acquatop.engine.observer import Kept, Observer, StateSeen
from acquatop.engine.state.contract import Recovered, StateStore
from acquatop.engine.state.folder import Folder
from acquatop.engine.state.place import RemotePlace, StatePlace, open_state
from acquatop.errors import EnvironmentProblem, UserError
from connectors.object_store.address import StoreAddress

_JOURNAL_BYTES = 64 << 20
"""Length of the journal from which on a snapshot is written: reading it bounds a restart."""


class KeptSlot(NamedTuple):
    """Queries that are evaluated together, and their snapshot."""

    names: Sequence[str]
    snapshot: bytes


class EngineState:
    """State of an engine, stored in one place.

    After a batch with answers, a snapshot with these answers is written. After other batches, only
    the batch is appended to the journal, up to its limit. After the first error nothing is written
    any more: the engine resumes from the state before it.
    """

    def __init__(
        self,
        place: StatePlace,
        observer: Observer,
        folder: Callable[[Path], Folder] = Folder,
    ) -> None:
        self.place = place
        self._folder = folder
        self._observer = observer
        self._directory: StateStore | None = None
        self._recovered: Recovered | None = None
        self._engine: Mapping[str, Any] = {}
        self._has_snapshot = False
        self._failure: BaseException | None = None
        self._lock = threading.RLock()
        self.is_remote = isinstance(place, RemotePlace)
        """True if other machines reach it."""
        self.is_behind = False
        """True if the journal has entries after the last snapshot."""

    def open(self, manifest: Mapping[str, str]) -> None:
        """Open the directory, and read the state of a former engine."""
        self._directory = open_state(self.place, manifest, self._folder)
        started = time.perf_counter()
        self._recovered = self._directory.recover()
        if self._recovered is None:
            return
        self._has_snapshot = True
        self._engine = json.loads(self._recovered.parts["engine"])
        seconds = time.perf_counter() - started
        size = sum(map(len, self._recovered.parts.values()))
        self._see(
            Kept.RECOVERED, "", seconds, size, f"{len(self._recovered.journal)} batches after it"
        )
        if self._recovered.problem is not None:
            self._see(Kept.DAMAGED, "", seconds, size, self._recovered.problem)

    def declare(self, manifest: Mapping[str, str]) -> None:
        """Write a new manifest after a change of queries; raises the errors of :meth:`open`."""
        if self._directory is not None:
            self._directory.declare(manifest)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold this during changes of state that is kept. An error in between ends all writing."""
        with self._lock:
            try:
                yield
            except BaseException as error:
                self.freeze(error)
                raise

    # Recovery -------------------------------------------------------------------------------------

    def part(self, key: str) -> bytes | None:
        """Return the recovered snapshot of a slot, or None."""
        return None if self._recovered is None else self._recovered.parts.get(_name(key))

    def check(self, query: str, key: str) -> None:
        """Raise :class:`UserError` if a query has state that the key's slot cannot resume from."""
        if self.is_kept(query, key) is False:
            raise UserError(
                f"query {query} cannot go on from what {self.place} holds of it: the settings "
                "of its stream or service "
                "are such that it is evaluated in another way now\n"
                "  hint: take the old settings again (refill, solutions, strategy, or the "
                "version of AcquaTop), "
                "give the query another name to let it begin anew, or use another directory"
            )

    def has_state(self, query: str) -> bool:
        """Return True if there is state of a query."""
        return query in self._engine.get("queries", {})

    def is_kept(self, query: str, key: str) -> bool | None:
        """Return True if a query's state is that of a key's slot; None if there is no state."""
        known = self._engine.get("queries", {}).get(query)
        return None if known is None else known == _name(key)

    def stream(self, iri: str) -> Mapping[str, Any] | None:
        """Return the state of a stream in the snapshot."""
        found: Mapping[str, Any] | None = self._engine.get("streams", {}).get(iri)
        return found

    def answers(self) -> list[Answer]:
        """Return the answers of the last snapshot: they may not have been given out."""
        return [answer_from_document(each) for each in self._engine.get("answers", ())]

    def journal(self) -> Iterator[tuple[str, Mapping[str, bytes]]]:
        """Yield the batches after the snapshot, with their streams."""
        for entry in self._recovered.journal if self._recovered is not None else ():
            yield json.loads(entry["batch"])["stream"], entry

    def forget(self) -> None:
        """Drop the recovered state after resuming: a query that is registered later is new."""
        self._recovered, self._engine = None, {}

    def folder(self, stream: str) -> Path:
        """Return the folder for a stream's carrier."""
        assert self._directory is not None
        return self._directory.folder("stream_" + hashlib.sha256(stream.encode()).hexdigest()[:16])

    def keys_folder(self, key: str) -> Path | StoreAddress:
        """Return the folder, or the address, for the executors' data on a slot's keys."""
        assert self._directory is not None
        name = "keys_" + hashlib.sha256(key.encode()).hexdigest()[:16]
        if isinstance(self.place, RemotePlace):
            return self.place.address / name
        return self._directory.folder(name)

    # Writing --------------------------------------------------------------------------------------

    def append(self, stream: str, entry: Mapping[str, bytes]) -> bool:
        """Append a batch to the journal; return False if a snapshot is needed instead."""
        assert self._directory is not None
        self.check_failure()
        size = sum(map(len, entry.values()))
        if not self._has_snapshot or self._directory.journal_length + size > _JOURNAL_BYTES:
            return False
        started = time.perf_counter()
        self._directory.append(entry)
        self.is_behind = True
        self._see(Kept.JOURNAL, stream, time.perf_counter() - started, size)
        return True

    def save(
        self,
        streams: Mapping[str, Mapping[str, Any]],
        slots: Mapping[str, KeptSlot],
        answers: Sequence[Answer],
    ) -> None:
        """Write a snapshot."""
        assert self._directory is not None
        self.check_failure()
        started = time.perf_counter()
        engine = {
            "streams": dict(streams),
            "queries": {name: _name(key) for key, slot in slots.items() for name in slot.names},
            "answers": [answer_to_document(each) for each in answers],
        }
        parts = {
            "engine": json.dumps(engine).encode(),
            **{_name(key): slot.snapshot for key, slot in slots.items()},
        }
        self._directory.save(parts)
        self._has_snapshot, self.is_behind = True, False
        self._see(Kept.SNAPSHOT, "", time.perf_counter() - started, sum(map(len, parts.values())))

    def freeze(self, error: BaseException) -> None:
        """Write nothing more: the engine must resume from the present state."""
        self._failure = self._failure or error
        self.is_behind = False

    def check_failure(self) -> None:
        """Raise the first error, if there was any: nothing is kept after it."""
        if self._failure is not None:
            raise EnvironmentProblem(
                f"{self.place}: nothing is kept any more, since something has failed: "
                f"{self._failure}\n"
                "  hint: mend that and start again; it goes on from before it failed"
            ) from self._failure

    def check_right(self) -> None:
        """Raise an error if nothing may be written: after the first error, or if another engine
        has the place now.
        """
        self.check_failure()
        if self._directory is not None:
            self._directory.check_right()

    def close(self) -> None:
        """Release the directory for other processes."""
        if self._directory is not None:
            self._directory.close()

    def _see(self, kind: Kept, stream: str, seconds: float, size: int, detail: str = "") -> None:
        self._observer.kept(
            StateSeen(kind=kind, stream=stream, seconds=seconds, bytes=size, detail=detail)
        )


def _name(key: str) -> str:
    return "unit-" + hashlib.sha256(key.encode()).hexdigest()[:32]
