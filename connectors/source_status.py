"""Status of a source for people: reached or not, and if so, with or without data."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


class SourceState(enum.StrEnum):
    """States of a source."""

    CONNECTING = "connecting"
    """It has not been reached, or the connection was lost."""
    CONNECTED = "connected"
    FULL = "full"
    """Its log is full: nothing is received until something is released."""
    ABSENT = "absent"
    """There is no such file or folder."""
    EMPTY = "empty"
    """There is nothing in the file or folder."""
    PRESENT = "present"
    """There is something in the file or folder."""


@dataclass(frozen=True)
class SourceStatus:
    """Status of a source, without secrets.

    ``where`` names the source, ``what`` the things that it sends. ``since`` is the time of day at
    which the state began, in seconds; 0 if that is unknown. ``attempts`` counts the failures since
    then, and ``problem`` is the last one. ``hint`` is the remedy if nothing comes.
    """

    state: SourceState
    where: str
    what: str = "line"
    since: float = 0.0
    attempts: int = 0
    problem: str = ""
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the status as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(said: dict[str, Any]) -> SourceStatus:
        """Return the status of such values."""
        return SourceStatus(**{**said, "state": SourceState(said["state"])})


@runtime_checkable
class TellsStatus(Protocol):
    """Reader that tells the status of its source, at any time and in any thread."""

    def status(self) -> SourceStatus | None:
        """Return the status; None before the source was opened."""
        ...


class Link:
    """Connection of a live source as people see it: the source notes each change.

    >>> link = Link("127.0.0.1:9", wall_clock=lambda: 5.0)
    >>> link.failed("Connection refused", "see that it is running")
    >>> link.failed("Connection refused", "see that it is running")
    >>> link.status.attempts, link.status.problem
    (2, 'Connection refused')
    >>> link.made()
    >>> link.status.state, link.status.since
    (<SourceState.CONNECTED: 'connected'>, 5.0)
    """

    def __init__(
        self,
        where: str,
        *,
        what: str = "line",
        silence_hint: str = "",
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._silence_hint = silence_hint
        self._wall_clock = wall_clock
        self.status = SourceStatus(SourceState.CONNECTING, where, what, wall_clock())

    def made(self) -> None:
        """Note that the source has been reached."""
        if self.status.state is not SourceState.CONNECTED:
            self._enter(SourceState.CONNECTED, self._silence_hint)

    def failed(self, problem: str, hint: str = "", *, is_attempt: bool = True) -> None:
        """Note a failed attempt, or the loss of the connection."""
        if self.status.state is not SourceState.CONNECTING:
            self._enter(SourceState.CONNECTING, hint)
        attempts = self.status.attempts + is_attempt
        self.status = replace(self.status, attempts=attempts, problem=problem, hint=hint)

    def _enter(self, state: SourceState, hint: str) -> None:
        self.status = replace(
            self.status,
            state=state,
            since=self._wall_clock(),
            attempts=0,
            problem="",
            hint=hint,
        )


def status_of_files(
    path: Path, files: Iterable[Path], *, what: str = "line", hint: str = ""
) -> SourceStatus:
    """Return the status of a file or a folder, of which some files are read."""
    if not path.exists():
        return SourceStatus(
            SourceState.ABSENT, str(path), what, hint="see that the path is right (path)"
        )
    try:
        has_content = any(file.stat().st_size for file in files)
    except OSError as error:
        return SourceStatus(SourceState.PRESENT, str(path), what, problem=str(error.strerror))
    state = SourceState.PRESENT if has_content else SourceState.EMPTY
    return SourceStatus(state, str(path), what, hint=hint)
