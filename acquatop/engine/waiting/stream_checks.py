"""Checks of one stream, in the order in which they explain why nothing comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acquatop.engine.stream_time import Phase
from acquatop.engine.waiting.kinds import Waiting, WaitingKind
from acquatop.engine.waiting.remedies import remedy_of
from acquatop.engine.waiting.time_units import suspicion
from acquatop.engine.waiting.view import StreamView
from acquatop.ingest.reduce.late_finder import TOO_FAR_AHEAD
from acquatop.instants import day_time_text
from connectors.source_status import SourceState, SourceStatus

QUIET_SECONDS, END_SECONDS = 30.0, 5.0
"""Silence after which a stream that has brought something is said to be silent; that of a file."""
BUSY_SECONDS = 1.0
"""Duration of a batch from which on it is worth a word."""

Check = Callable[[StreamView], Waiting | None]
_IDLE = 'set idle (such as "30s") for the stream, and the clock closes windows in a silence'


def why(view: StreamView) -> Waiting | None:
    """Return the first thing that explains why nothing comes of a stream; None if all is well."""
    found = (check(view) for check in CHECKS)
    return next((each for each in found if each is not None), None)


def _unreached(view: StreamView) -> Waiting | None:
    """Explain a source that has not been reached."""
    status = view.status
    if status is None or status.state not in _UNREACHED:
        return None
    kind, words = _UNREACHED[status.state]
    text = words.format(where=status.where) + _attempts(status)
    return _waiting(view, kind, status.since or view.facts.since, text, status.hint)


def _attempts(status: SourceStatus) -> str:
    tried = f"{status.attempts} attempt{'s' if status.attempts > 1 else ''} failed"
    return ": ".join(
        ["", *([tried] if status.attempts else []), *([status.problem] if status.problem else [])]
    )


_UNREACHED = {
    SourceState.CONNECTING: (WaitingKind.CONNECTING, "not connected to {where}"),
    SourceState.ABSENT: (WaitingKind.ABSENT, "there is no file or folder {where} yet"),
    SourceState.FULL: (WaitingKind.FULL, "the log of what was received from {where} is full"),
}


def _silent_so_far(view: StreamView) -> Waiting | None:
    """Explain a source of which nothing has come."""
    status, facts = view.status, view.facts
    if facts.items:
        return None
    if status is None:
        if view.has_status:
            return _waiting(view, WaitingKind.STARTING, facts.since, "the reader is starting")
        text = f"nothing has come of <{view.stream.iri}> yet"
        return _waiting(view, WaitingKind.SILENT, facts.since, text, "see that its source has data")
    since, hint = max(status.since, facts.since), status.hint
    if status.state is SourceState.EMPTY:
        return _waiting(
            view,
            WaitingKind.EMPTY,
            since,
            f"{status.where} has no {status.what} yet",
            hint or "see that the path is right, and that something is written there",
        )
    if status.state is SourceState.PRESENT:
        text = f"no {status.what} of {status.where} can be read yet"
        return _waiting(view, WaitingKind.SILENT, since, text, hint)
    text = f"connected to {status.where}, no {status.what} yet"
    return _waiting(view, WaitingKind.SILENT, since, text, hint or "see that something is sent")


def _all_unused(view: StreamView) -> Waiting | None:
    """Explain items of which none can be used."""
    facts = view.facts
    if not facts.unused or facts.unused_since is None:
        return None
    if not facts.bad:
        return _all_late(view)
    reason = max(facts.bad, key=lambda each: facts.bad[each])
    place = str(facts.bad_at.get(reason) or "")
    example = f"{reason} ({facts.bad[reason]:,}{f', the first at {place}' if place else ''})"
    more = len(facts.bad) - 1
    others = f", and {more} more reason{'s' if more > 1 else ''}" if more else ""
    late = f"; {facts.late:,} are late" if facts.late else ""
    text = (
        f"the last {facts.unused:,} items of <{view.stream.iri}> are bad: {example}{others}{late}"
    )
    kind = WaitingKind.AHEAD if reason == TOO_FAR_AHEAD else WaitingKind.BAD
    return _waiting(view, kind, facts.unused_since, text, remedy_of(reason, view.stream))


def _all_late(view: StreamView) -> Waiting:
    facts = view.facts
    assert facts.unused_since is not None
    reached = "" if view.watermark_ms is None else day_time_text(view.watermark_ms, view.now_ms)
    text = (
        f"the last {facts.late:,} items of <{view.stream.iri}> came too late: "
        f"windows up to {reached} are closed"
    )
    remedy = "see lateness in the catalog, and if one item's time was far ahead of the others'"
    return _waiting(view, WaitingKind.LATE, facts.unused_since, text, remedy)


def _wrong_units(view: StreamView) -> Waiting | None:
    """Explain times of January 1970."""
    found = None if view.newest_ms is None else suspicion(view.stream, view.newest_ms)
    if found is None:
        return None
    return _waiting(view, WaitingKind.UNITS, view.facts.since, *found)


def _busy(view: StreamView) -> Waiting | None:
    """Explain a batch that takes long."""
    since = view.facts.busy_since
    if since is None or view.now - since < BUSY_SECONDS:
        return None
    text = f"a batch of <{view.stream.iri}> is being evaluated"
    return _waiting(view, WaitingKind.EVALUATING, since, text)


def _standing(view: StreamView) -> Waiting | None:
    """Explain a watermark that no item moves, though some of them are good."""
    standstill = view.standstill
    if standstill is None:
        return None
    reached = "" if view.watermark_ms is None else day_time_text(view.watermark_ms, view.now_ms)
    text = (
        f"items of <{view.stream.iri}> come, but its time stands still at {reached}: most are "
        f"{standstill.main}"
    )
    remedy = "see if the clock of whoever sends stands still, and which field time names"
    since = (view.facts.heard_at or view.now) - standstill.seconds
    return _waiting(view, WaitingKind.STANDSTILL, since, text, remedy)


def _held(view: StreamView) -> Waiting | None:
    """Explain a stream that waits for others."""
    if view.phase is not Phase.HELD:
        return None
    text = f"<{view.stream.iri}> is ahead, and waits for the streams that it is joined with"
    return _waiting(view, WaitingKind.JOIN, view.facts.heard_at or view.facts.since, text)


def _silent_now(view: StreamView) -> Waiting | None:
    """Explain a stream of which nothing comes any more, and that no clock moves on."""
    facts, status = view.facts, view.status
    if facts.heard_at is None or view.stream.idle_ms is not None or not view.is_live:
        return None
    is_file = status is not None and status.state is SourceState.PRESENT
    if view.now - facts.heard_at < (END_SECONDS if is_file else QUIET_SECONDS):
        return None
    last = day_time_text(round(1000 * facts.heard_at), view.now_ms)
    if status is not None and is_file:
        text = f"{status.where} has been read to its end, nothing new since {last}"
        remedy = status.hint or f"--until-end closes the last windows of a recording; or {_IDLE}"
        return _waiting(view, WaitingKind.END, facts.heard_at, text, remedy)
    where = f"<{view.stream.iri}>" if status is None else status.where
    text = f"nothing has come from {where} since {last}"
    return _waiting(view, WaitingKind.SILENT, facts.heard_at, text, _IDLE)


CHECKS: Sequence[Check] = (
    _unreached,
    _silent_so_far,
    _busy,
    _all_unused,
    _wrong_units,
    _standing,
    _held,
    _silent_now,
)
"""Checks in their order: a new explanation is one function and one line here."""


def _waiting(
    view: StreamView, kind: WaitingKind, since: float, text: str, remedy: str | None = None
) -> Waiting:
    return Waiting(kind=kind, since=since, text=text, remedy=remedy or None, about=view.stream.iri)
