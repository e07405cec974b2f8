"""Contract of the places where an engine's state is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Recovered:
    """Newest complete state: a snapshot, and the journal after it.

    ``problem`` describes the damage of a newer snapshot, if there is one. It is reported until the
    next save or append. The parts themselves tell the position of the state.
    """

    parts: Mapping[str, bytes]
    journal: Sequence[Mapping[str, bytes]]
    problem: str | None = None


class StateStore(Protocol):
    """Snapshots and a journal in one place, for one engine at a time; its threads take turns.

    After :meth:`save` or :meth:`append` has returned, :meth:`recover` finds their data, whatever
    ends then. The data of an interrupted call is found as a whole or not at all.
    """

    def declare(self, manifest: Mapping[str, str]) -> None:
        """Update the texts of queries and streams after a change of queries."""
        ...

    def recover(self) -> Recovered | None:
        """Return the newest complete snapshot, and the journal after it; None if there is none."""
        ...

    def save(self, parts: Mapping[str, bytes]) -> None:
        """Write a new snapshot, which is durable on return, and begin a new journal."""
        ...

    def append(self, parts: Mapping[str, bytes]) -> None:
        """Append an entry to the journal of the newest snapshot; it is durable on return."""
        ...

    @property
    def journal_length(self) -> int:
        """The bytes of the journal since the newest snapshot."""
        ...

    def check_right(self) -> None:
        """Raise :class:`EnvironmentProblem` if another engine has the place now."""
        ...

    def folder(self, name: str) -> Path:
        """Return a local folder for other data, made if missing."""
        ...

    def close(self) -> None:
        """Release the place for another engine. May be called again."""
        ...
