"""Spans: a window of many panes is read as few chunks, whatever the panes are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquatop.ingest.buckets.task import Pane, PaneSpan
from acquatop.query.aggregates import spans
from acquatop.query.aggregates.spans import Spans


def windows(width: int, present: Sequence[bool]) -> list[tuple[int, list[Pane]]]:
    """Return the windows of some panes, one of which ends with each, and the panes that exist."""
    panes = [(at, at + width - 1) for at, is_there in enumerate(present) if is_there]
    return [
        (window, [(first, last) for first, last in panes if first <= window <= last])
        for window in range(len(present))
    ]


def read(held: Spans, window: int, panes: list[Pane]) -> int:
    """Read a window, make what is to be made, and return the number of chunks read.

    A chunk's file names the panes in it.
    """
    cover = held.cover(panes, window)
    (texts,) = [held.chunks(cover.spans, 0)]
    inside = [pane for span in cover.spans for pane in eval(texts[span][0])] + [*cover.panes]
    assert sorted(inside) == sorted(panes)
    made = {}
    for span, parts in cover.made.items():
        own = [
            pane
            for part in parts
            for pane in (eval(texts[part][0]) if isinstance(part, PaneSpan) else [part])
        ]
        assert own == sorted(own)
        assert len(own) == span.stop - span.start
        made[span] = (repr(own), 0)
    held.note(cover.made, [(0, made)])
    return len(cover.panes) + len(cover.spans)


@given(st.integers(1, 20), st.lists(st.booleans(), max_size=60), st.integers(1, 5))
def test_a_window_is_read_whole_and_nothing_twice(
    width: int, present: list[bool], uses: int
) -> None:
    held = Spans()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "USES", uses)
        for window, panes in windows(width, present):
            read(held, window, panes)
            # Another look at the same window makes nothing more.
            assert held.cover(panes, window).made == {}
            held.close_before(window + 1)
    held.close_before(len(present) + width)
    assert held.close_before(10**9) == []


def test_of_many_panes_few_chunks_are_read_and_few_panes_have_no_spans() -> None:
    counts = {}
    for width in (3, 60):
        held = Spans()
        counts[width] = []
        for window, panes in windows(width, [True] * 300):
            counts[width].append(read(held, window, panes))
            held.close_before(window + 1)
    assert set(counts[3][2:]) == {3}
    assert max(counts[60][60:]) <= 14
