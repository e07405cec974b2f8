"""Storage of registered queries, one file each, for restarts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from acquatop.catalog.catalog import Catalog
from acquatop.engine.state.folder import Folder, make_folder, write_file
from acquatop.engine.state.problems import explained
from acquatop.errors import EnvironmentProblem
from acquatop.plan.reading_order import ReadInACircle, reading_order
from rspql import ast
from rspql.diagnostics import QueryError
from rspql.parser import parse

_SUFFIX = ".json"
_UNFINISHED = ".new"


@dataclass(frozen=True)
class QueryRegistration:
    """Registration of a query: its text, the name of its answers, and its paused flag.

    ``id`` names it in URLs. ``since_ms`` is the time of day at which it was registered; ``weight``
    counts among the queries that share a budget.
    """

    id: str
    name: str
    text: str
    since_ms: int
    paused: bool = False
    weight: float = 1.0


def in_reading_order(
    registrations: Sequence[QueryRegistration], catalog: Catalog
) -> list[QueryRegistration]:
    """Return registrations, each after those whose answers it reads, else as they are.

    Texts that cannot be read, and circles, are left to their registration.
    """
    try:
        order = reading_order(
            [_parsed(each.text, catalog) for each in registrations], catalog.streams
        )
    except ReadInACircle:
        return list(registrations)
    return [registrations[at] for at in order]


def _parsed(text: str, catalog: Catalog) -> ast.Query | None:
    try:
        return parse(text, prefixes=catalog.prefixes)
    except QueryError:
        return None


class Registrations(Protocol):
    """Storage of registrations."""

    def read(self) -> list[QueryRegistration]:
        """Return all, in the order of registration."""

    def claim(self) -> None:
        """Keep others from changing what was read; called once the engine holds its state."""

    def write(self, registration: QueryRegistration) -> None:
        """Store one, replacing one with the same id; it is durable on return."""

    def remove(self, id: str) -> None:
        """Remove one."""


class InMemory:
    """Storage that keeps nothing: after a restart there are no queries."""

    def read(self) -> list[QueryRegistration]:
        """Return nothing."""
        return []

    def claim(self) -> None:
        """Do nothing."""

    def write(self, registration: QueryRegistration) -> None:
        """Do nothing."""

    def remove(self, id: str) -> None:
        """Do nothing."""


class InFolder:
    """Storage in a folder that survives kills and power failures.

    A file is written as a whole or not at all. The state directory's lock keeps other processes
    out, and nothing is written before it is held. Raises :class:`EnvironmentProblem` with a remedy
    if the system refuses.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[QueryRegistration]:
        """Return all; raises :class:`EnvironmentProblem` for a malformed file."""
        with explained(self._path, "read the registered queries"):
            files = sorted(self._path.glob(f"*{_SUFFIX}")) if self._path.is_dir() else []
            found = [self._one(file) for file in files]
        return sorted(found, key=lambda each: (each.since_ms, each.id))

    def _one(self, file: Path) -> QueryRegistration:
        try:
            return QueryRegistration(**json.loads(file.read_bytes()))
        except (ValueError, TypeError):
            raise EnvironmentProblem(
                f"{file}: this is not a registered query as the service writes them\n"
                "  hint: put the file back from a copy, or remove it; the query can be "
                "registered again"
            ) from None

    def claim(self) -> None:
        """Do nothing: the lock of the state directory keeps others out."""

    def write(self, registration: QueryRegistration) -> None:
        """Write its file: O(length of its text), two syncs of the disk."""
        name, beside = registration.id + _SUFFIX, registration.id + _UNFINISHED
        with explained(self._path, "keep the query"), _Opened(self._path) as folder:
            (self._path / beside).unlink(missing_ok=True)
            write_file(folder, beside, [json.dumps(asdict(registration), indent=1).encode()])
            folder.rename(beside, name)
            folder.sync_names()

    def remove(self, id: str) -> None:
        """Remove its file."""
        with explained(self._path, "forget the query"), _Opened(self._path) as folder:
            (self._path / (id + _SUFFIX)).unlink(missing_ok=True)
            folder.sync_names()


class _Opened:
    """Open folder as a context manager; the folder is made if it does not exist."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Folder:
        make_folder(self._path)
        self._folder = Folder(self._path)
        return self._folder

    def __exit__(self, *_: object) -> None:
        self._folder.close()
