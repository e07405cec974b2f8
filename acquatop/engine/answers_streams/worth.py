"""Worth of a query's answers, and its limit on the answers of the queries that read them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from acquatop.answer.answer import Answer, Status
from acquatop.answer.unanswered import Unanswered
from acquatop.windows import Windows

MOST_KEPT = 10_000
"""Number of notes from which on the two oldest become one."""

_ORDER = (Status.EXACT, Status.CERTIFIED, Status.PROBABILISTIC, Status.APPROXIMATE)


class Note(NamedTuple):
    """Status, if not exact, of what a stream has from one time to another, and the reason."""

    first_ms: int
    last_ms: int
    status: Status
    reason: str | None

    def joined(self, other: Note) -> Note:
        """Return a note on all that two notes are about: the worse of them, if equal the first."""
        worst = max(self, other, key=lambda each: _ORDER.index(each.status))
        return worst._replace(first_ms=self.first_ms, last_ms=other.last_ms)


_UNKNOWN = Note(0, 0, Status.APPROXIMATE, "what it differs from was answered before it was read")


class Worth:
    """Notes on the answers of one query that are not exact, oldest first.

    With ``compares``, an element follows from two answers, as of ISTREAM: it is worth as much as
    the worse one. Memory grows with the answers since the oldest window that may hold them, up to
    ``MOST_KEPT`` notes; beyond, the oldest times are judged together.
    """

    def __init__(self, stream: str, *, compares: bool) -> None:
        self._stream = stream
        self._compares = compares
        self._notes: deque[Note] = deque()
        self._before: Note | None = None

    def note(self, made: Answer | Unanswered) -> None:
        """Note an answer, or a window without one."""
        own = _note_on(made)
        found = own
        if self._compares and self._before is not None:
            before = self._before._replace(first_ms=made.closes_ms, last_ms=made.closes_ms)
            found = before if own is None else own.joined(before)
        if self._compares:
            self._before = own
        if found is None:
            return
        self._notes.append(found)
        if len(self._notes) > MOST_KEPT:
            first, second = self._notes.popleft(), self._notes.popleft()
            self._notes.appendleft(first.joined(second))

    def pass_by(self, made: Answer | Unanswered | None) -> None:
        """Note an answer that nobody reads: the next change follows from it; None if unknown."""
        if self._compares:
            self._before = _UNKNOWN if made is None else _note_on(made)

    def forget_until(self, time_ms: float) -> None:
        """Forget what no window holds any more: all up to a time."""
        while self._notes and self._notes[0].last_ms <= time_ms:
            self._notes.popleft()

    def within(self, opens_ms: float, closes_ms: float) -> Note | None:
        """Return the worst note on a window's content, the oldest of equal ones; None if exact."""
        found = (
            each for each in self._notes if each.last_ms > opens_ms and each.first_ms <= closes_ms
        )
        worst = max(found, key=lambda each: _ORDER.index(each.status), default=None)
        return None if worst is None else worst._replace(reason=self._words(worst))

    def _words(self, note: Note) -> str:
        reason = "" if note.reason is None else f": {note.reason}"
        return f"an answer of <{self._stream}> in the window is {note.status}{reason}"

    def state(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {"notes": list(self._notes), "before": self._before}

    def resume(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self._notes = deque(map(_read, state["notes"]))
        self._before = None if state["before"] is None else _read(state["before"])


def _note_on(made: Answer | Unanswered) -> Note | None:
    at = made.closes_ms
    if isinstance(made, Unanswered):
        return Note(at, at, Status.APPROXIMATE, f"it was lost: {made.message}")
    if made.status is Status.EXACT:
        return None
    return Note(at, at, made.status, made.reason)


def _read(note: Sequence[Any]) -> Note:
    first_ms, last_ms, status, reason = note
    return Note(first_ms, last_ms, Status(status), reason)


class Held(NamedTuple):
    """Stream of answers in windows: its worth, and the windows, maybe of elements."""

    worth: Worth
    windows: Windows
    counts: bool = False

    def note(self, index: int, opens_ms: float, closes_ms: float) -> Note | None:
        """Return the worst note on what a window shows in an answer."""
        if self.counts and self.windows.bounds(index)[0] < 0:
            opens_ms = -math.inf  # there is room for all that should have come before
        return self.worth.within(opens_ms, closes_ms)

    def note_before(self, time_ms: int) -> Note | None:
        """Return the worst note on the last window that closes up to a time."""
        return self.worth.within(*self.windows.bounds(self.windows.first(time_ms + 1) - 1))


class Inheritance:
    """Limit of the worth of one query's answers, by those that it reads.

    ``read`` has what is held of each stream of answers, by the names of the windows over it; the
    name is None for a query with one window. ``backs_ms`` are the times back to the values that an
    answer compares with. ``late_bound`` is the bound of a score that an answer may lack if
    something is missing in a window.
    """

    def __init__(
        self,
        read: Mapping[str | None, Held],
        late_bound: float | None,
        backs_ms: Sequence[int] = (),
    ) -> None:
        self._read = read
        self._late_bound = late_bound
        self._backs_ms = backs_ms

    @property
    def looks_back_ms(self) -> int:
        """Time before the windows that are shown in which others open that they depend on."""
        if not self._backs_ms:
            return 0
        return max(self._backs_ms) + max(each.windows.slide_ms for each in self._read.values())

    def judged(self, answer: Answer) -> Answer:
        """Return an answer with a status that is no better than those of the answers it is from."""
        notes = [note for each in self._notes(answer) if (note := each) is not None]
        if not notes:
            return answer
        worst = max(notes, key=lambda each: _ORDER.index(each.status))
        reasons = [] if answer.reason is None else [answer.reason]
        if _ORDER.index(worst.status) >= _ORDER.index(answer.status):
            reasons.append(worst.reason or "")
        may_miss = _ORDER.index(worst.status) >= _ORDER.index(Status.PROBABILISTIC)
        is_missing = may_miss and self._late_bound is not None
        return replace(
            answer,
            status=max(answer.status, worst.status, key=_ORDER.index),
            reason="; ".join(reasons),
            bound=self._late_bound if is_missing else answer.bound,
            expected=None,
        )

    def _notes(self, answer: Answer) -> Iterator[Note | None]:
        shown = {each.window: each for each in answer.windows}
        for name, held in self._read.items():
            if not shown:
                yield held.note(answer.window, answer.opens_ms, answer.closes_ms)
            elif (window := shown.get(name or "")) is not None:
                yield held.note(window.index, window.opens_ms, window.closes_ms)
            for back_ms in self._backs_ms:
                yield held.note_before(answer.closes_ms - back_ms)
