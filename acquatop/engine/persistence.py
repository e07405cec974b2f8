"""What an engine keeps of itself: in which words, and when as a whole and when as an addition."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from acquatop.answer.answer import Answer
from acquatop.answer.codec import answer_from_document, answer_to_document
from acquatop.engine.observer import Kept, Observer, StateSeen
from acquatop.engine.state.directory import Recovered, StateDirectory
from acquatop.errors import EnvironmentProblem, UserError

_JOURNAL_BYTES = 64 << 20
"""How long a journal may grow before all is written anew: what it takes to read it bounds a restart."""


class KeptUnit(NamedTuple):
    """Queries that are evaluated together, and what they need to go on."""

    names: Sequence[str]
    snapshot: bytes


class EngineState:
    """A state directory, in an engine's words.

    After a batch that has brought answers all is written, with these answers; after others only what
    the batch has brought, until that is a lot. The first error ends it: what is there then is what is gone on from.
    """

    def __init__(self, path: Path, observer: Observer) -> None:
        self._path = path
        self._observer = observer
        self._directory: StateDirectory | None = None
        self._recovered: Recovered | None = None
        self._engine: Mapping[str, Any] = {}
        self._saved = False
        self._failure: BaseException | None = None
        self._turn = threading.RLock()
        self.is_behind = False
        """Whether something has changed since all was written."""

    def open(self, manifest: Mapping[str, str]) -> None:
        """Open the directory, and read what an engine before this one has left there."""
        self._directory = StateDirectory.open(self._path, manifest)
        started = time.perf_counter()
        self._recovered = self._directory.recover()
        if self._recovered is None:
            return
        self._saved = True
        self._engine = json.loads(self._recovered.parts["engine"])
        seconds = time.perf_counter() - started
        size = sum(map(len, self._recovered.parts.values()))
        self._see(Kept.RECOVERED, "", seconds, size, f"{len(self._recovered.journal)} batches after it")
        if self._recovered.problem is not None:
            self._see(Kept.DAMAGED, "", seconds, size, self._recovered.problem)

    def declare(self, manifest: Mapping[str, str]) -> None:
        """Say anew what it is for, as queries have come or gone; raises as :meth:`open` does."""
        if self._directory is not None:
            self._directory.declare(manifest)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold this while something changes that is kept. What goes wrong meanwhile ends all."""
        with self._turn:
            try:
                yield
            except BaseException as error:
                self.freeze(error)
                raise

    # What was there -------------------------------------------------------------------------------

    def part(self, key: str) -> bytes | None:
        """Return what there is of a unit."""
        return None if self._recovered is None else self._recovered.parts.get(_name(key))

    def check(self, query: str, key: str) -> None:
        """Raise :class:`UserError` if there is something of a query that the unit of a key cannot go on from."""
        if self.is_kept(query, key) is False:
            raise UserError(
                f"query {query} cannot go on from what {self._path} holds of it: the settings of its stream or service "
                "are such that it is evaluated in another way now\n"
                "  hint: take the old settings again (refill, solutions, strategy, or the version of AcquaTop), "
                "give the query another name to let it begin anew, or use another directory"
            )

    def is_kept(self, query: str, key: str) -> bool | None:
        """Say whether what there is of a query is the unit of a key; None if there is nothing."""
        known = self._engine.get("queries", {}).get(query)
        return None if known is None else known == _name(key)

    def stream(self, iri: str) -> Mapping[str, Any] | None:
        """Return how far a stream had come when all was written."""
        found: Mapping[str, Any] | None = self._engine.get("streams", {}).get(iri)
        return found

    def answers(self) -> list[Answer]:
        """Return the answers that were written last: they may not have been given out."""
        return [answer_from_document(each) for each in self._engine.get("answers", ())]

    def journal(self) -> Iterator[tuple[str, Mapping[str, bytes]]]:
        """Yield what batches have brought since, with their streams."""
        for entry in self._recovered.journal if self._recovered is not None else ():
            yield json.loads(entry["batch"])["stream"], entry

    def forget(self) -> None:
        """Let go of what was there, once it has been taken up: a query that comes now is a new one."""
        self._recovered, self._engine = None, {}

    def folder(self, stream: str) -> Path:
        """Return a folder for what a stream's carrier keeps."""
        assert self._directory is not None
        return self._directory.folder("stream_" + hashlib.sha256(stream.encode()).hexdigest()[:16])

    def keys_folder(self, key: str) -> Path:
        """Return a folder for what executors keep of a unit's keys."""
        assert self._directory is not None
        return self._directory.folder("keys_" + hashlib.sha256(key.encode()).hexdigest()[:16])

    # What is written ------------------------------------------------------------------------------

    def append(self, stream: str, entry: Mapping[str, bytes]) -> bool:
        """Add what a batch has brought; False where all has to be written."""
        assert self._directory is not None
        self._check_failure()
        size = sum(map(len, entry.values()))
        if not self._saved or self._directory.journal_length + size > _JOURNAL_BYTES:
            return False
        started = time.perf_counter()
        self._directory.append(entry)
        self.is_behind = True
        self._see(Kept.JOURNAL, stream, time.perf_counter() - started, size)
        return True

    def save(
        self, streams: Mapping[str, Mapping[str, Any]], units: Mapping[str, KeptUnit], answers: Sequence[Answer]
    ) -> None:
        """Write all."""
        assert self._directory is not None
        self._check_failure()
        started = time.perf_counter()
        engine = {
            "streams": dict(streams),
            "queries": {name: _name(key) for key, unit in units.items() for name in unit.names},
            "answers": [answer_to_document(each) for each in answers],
        }
        parts = {"engine": json.dumps(engine).encode(), **{_name(key): unit.snapshot for key, unit in units.items()}}
        self._directory.save(parts)
        self._saved, self.is_behind = True, False
        self._see(Kept.SNAPSHOT, "", time.perf_counter() - started, sum(map(len, parts.values())))

    def freeze(self, error: BaseException) -> None:
        """Write nothing more: what is there is what must be gone on from."""
        self._failure = self._failure or error
        self.is_behind = False

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise EnvironmentProblem(
                f"{self._path}: nothing is kept any more, since something has failed: {self._failure}\n"
                "  hint: mend that and start again; it goes on from before it failed"
            ) from self._failure

    def close(self) -> None:
        """Let others have the directory."""
        if self._directory is not None:
            self._directory.close()

    def _see(self, kind: Kept, stream: str, seconds: float, size: int, detail: str = "") -> None:
        self._observer.kept(StateSeen(kind=kind, stream=stream, seconds=seconds, bytes=size, detail=detail))


def _name(key: str) -> str:
    return "unit-" + hashlib.sha256(key.encode()).hexdigest()[:32]
