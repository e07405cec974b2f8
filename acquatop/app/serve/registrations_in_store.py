"""Storage of registered queries in an object store, which one service at a time may change."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from acquatop.app.serve.registrations import QueryRegistration
from acquatop.errors import EnvironmentProblem
from connectors.object_store.contract import ObjectStore, StoreError, Version

NAME = "queries.json"


class InStore:
    """Storage in one object, which is replaced only as long as nobody else has replaced it.

    :meth:`claim` replaces it too. So a service that was stopped, and wakes up when another has its
    state, changes nothing any more. Raises :class:`EnvironmentProblem` then, and if the store
    refuses.
    """

    def __init__(self, objects: ObjectStore, place: object) -> None:
        self._objects = objects
        self._place = place
        self._owner = uuid.uuid4().hex
        self._changes = 0
        self._version: Version | None = None
        self._queries: Sequence[QueryRegistration] = ()
        self._turn = threading.Lock()

    def read(self) -> list[QueryRegistration]:
        """Return all; raises :class:`EnvironmentProblem` for a malformed object."""
        with self._turn, self._explained("read the registered queries"):
            found = self._objects.get(NAME)
            if found is not None:
                self._version = found.version
                self._queries = self._decoded(found.content)
            return list(self._queries)

    def claim(self) -> None:
        """Keep others from changing what was read. The engine's state must be held by now."""
        with self._turn:
            self._replace(self._queries, "claim the registered queries")

    def write(self, registration: QueryRegistration) -> None:
        """Write all of them: one request."""
        with self._turn:
            others = [each for each in self._queries if each.id != registration.id]
            after = sorted([*others, registration], key=lambda each: (each.since_ms, each.id))
            self._replace(after, "keep the query")

    def remove(self, id: str) -> None:
        """Write all others: one request."""
        with self._turn:
            others = [each for each in self._queries if each.id != id]
            self._replace(others, "forget the query")

    def _replace(self, queries: Sequence[QueryRegistration], what: str) -> None:
        self._changes += 1
        # No two contents are equal: a write whose reply was lost is known by its content.
        said = {
            "writer": f"{self._owner} {self._changes}",
            "queries": [asdict(each) for each in queries],
        }
        content = json.dumps(said, indent=1).encode()
        with self._explained(what):
            if self._version is None:
                version = self._objects.put_new(NAME, content)
            else:
                version = self._objects.put_over(NAME, content, self._version)
        if version is None:
            raise EnvironmentProblem(
                f"cannot {what}: another service has changed those at {self._place}\n"
                "  hint: it has this state now; if it has not, start this one again"
            )
        self._version, self._queries = version, queries

    def _decoded(self, content: bytes) -> list[QueryRegistration]:
        try:
            return [QueryRegistration(**each) for each in json.loads(content)["queries"]]
        except (ValueError, TypeError, KeyError):
            raise EnvironmentProblem(
                f"{self._place}/{NAME}: these are not registered queries as the service writes "
                "them\n  hint: put the object back from a copy, or remove it; queries can be "
                "registered again"
            ) from None

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            raise EnvironmentProblem(
                f"cannot {what}: {error}\n"
                "  hint: see that the store answers, and that the keys may write there"
            ) from error
