"""Words about the window that is open: its times, and the moment at which it closes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from acquatop.engine.waiting.kinds import Waiting, WaitingKind
from acquatop.engine.waiting.view import StreamView
from acquatop.instants import day_time_text, span_text
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery
from acquatop.windows import Windows

_Reached = tuple[StreamView, int]


def open_window(
    bound: Bound, views: Sequence[StreamView], joined_after: Mapping[str, int]
) -> Waiting:
    """Return the words about the window of a query that closes next.

    ``joined_after`` has the time of each stream at which the query joined it. Without a stream that
    has a time, no window is open.
    """
    if isinstance(bound, BoundCounted):
        text = "the next window closes with further elements: windows count them"
        return _waiting(views[0], text)
    reached = [(view, view.watermark_ms) for view in views if view.watermark_ms is not None]
    if not reached:
        return _waiting(views[0], "no window is open yet")
    slowest = min(reached, key=lambda each: each[1])
    opens, closes = _next_window(bound, reached, slowest[1], joined_after)
    return _behind(reached, slowest, opens, closes) or _of_one(slowest, opens, closes)


def _next_window(
    bound: Bound, reached: Sequence[_Reached], time_ms: int, joined_after: Mapping[str, int]
) -> tuple[int, int]:
    """Return the bounds of the window that closes first after a time."""
    known = {view.stream.iri for view, _ in reached}
    after_ms = max(joined_after.values(), default=None)
    found = [
        windows.bounds(_index(windows, time_ms, after_ms))
        for iri, windows in _windows(bound)
        if iri in known
    ]
    return min(found, key=lambda bounds: bounds[1])


def _index(windows: Windows, time_ms: int, after_ms: int | None) -> int:
    closing = windows.first(time_ms + 1)
    return closing if after_ms is None else max(closing, windows.opening_from(after_ms))


def _windows(bound: Bound) -> Iterator[tuple[str, Windows]]:
    if isinstance(bound, BoundQuery):
        yield bound.stream.iri, bound.windows
    elif not isinstance(bound, BoundCounted):
        for window in bound.windows:
            yield window.stream.iri, window.windows


def _behind(
    reached: Sequence[_Reached], slowest: _Reached, opens: int, closes: int
) -> Waiting | None:
    """Return the words about a window that only the slowest stream holds up."""
    ahead = [view for view, time_ms in reached if time_ms >= closes]
    if not ahead or slowest[0].is_idle:
        return None
    view, time_ms = slowest
    text = (
        f"window {span_text(opens, closes, view.now_ms)} waits for <{view.stream.iri}>, which is "
        f"at {day_time_text(time_ms, view.now_ms)}; <{ahead[0].stream.iri}> has passed it"
    )
    return _waiting(view, text, WaitingKind.JOIN)


def _of_one(slowest: _Reached, opens: int, closes: int) -> Waiting:
    view, time_ms = slowest
    now = view.now_ms
    lateness = view.stream.lateness_ms
    slack = f", lateness {lateness / 1000:g} s" if lateness else ""
    text = (
        f"window {span_text(opens, closes, now)} closes when the stream's time passes "
        f"{day_time_text(closes, now)} (now at {day_time_text(time_ms, now)}{slack})"
    )
    return _waiting(view, text)


def _waiting(view: StreamView, text: str, kind: WaitingKind = WaitingKind.WINDOW) -> Waiting:
    return Waiting(kind=kind, since=view.facts.since, text=text, about=view.stream.iri)
