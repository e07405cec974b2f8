"""Kinds of waiting, and the value that all displays show."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from acquatop.instants import instant_text


class WaitingKind(enum.StrEnum):
    """Kinds of things that a query waits for."""

    STARTING = "starting"
    """The runtime starts, or the reader of a stream."""
    CONNECTING = "connecting"
    """The source of a stream has not been reached, or was lost."""
    ABSENT = "absent"
    """There is no such file."""
    EMPTY = "empty"
    """The file is empty."""
    END = "end"
    """The file has been read to its end, and does not grow."""
    FULL = "full"
    """The log of received data is full."""
    SILENT = "silent"
    """The source is connected, and nothing comes."""
    BAD = "bad"
    """All items are bad."""
    AHEAD = "ahead"
    """All items are bad, as their times are too far ahead of the clock."""
    LATE = "late"
    """All items are too late for every window."""
    UNITS = "units"
    """Times are of January 1970: seconds are read as milliseconds."""
    STANDSTILL = "standstill"
    """Items come, but none is newer than those before."""
    JOIN = "join"
    """Another stream of the join is behind."""
    EVALUATING = "evaluating"
    """A batch is under way, maybe with requests to remotes."""
    WINDOW = "window"
    """The present window is open."""


UNREACHED = frozenset({WaitingKind.CONNECTING, WaitingKind.FULL})
"""Kinds that hold up even a recording."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Thing that a query waits for.

    ``since`` is the time of day at which the wait began, in seconds. ``text`` has no durations, so
    that it changes only with the facts. ``remedy`` is None if all is well. ``about`` tells waits of
    one kind apart: it is the stream's IRI.
    """

    kind: WaitingKind
    since: float
    text: str
    remedy: str | None = None
    about: str = ""

    @property
    def is_trouble(self) -> bool:
        """True if something should be mended."""
        return self.remedy is not None

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the wait: the text may change meanwhile."""
        return str(self.kind), self.about

    def words(self, now: float) -> str:
        """Return the text with the duration up to a time of day, and the remedy.

        >>> wait = Waiting(kind=WaitingKind.EMPTY, since=0.0, text="x is empty", remedy="fill it")
        >>> wait.words(12.0)
        'x is empty (12 s); fill it'
        """
        seconds = max(0, round(now - self.since))
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.text} ({duration_text(seconds)}){remedy}"

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON."""
        since = instant_text(round(1000 * self.since))
        return {"kind": str(self.kind), "since": since, "text": self.text, "remedy": self.remedy}


def duration_text(seconds: int) -> str:
    """Return a duration in words.

    >>> duration_text(119), duration_text(600), duration_text(90_000)
    ('119 s', '10 min', '25 h')
    """
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
