from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acquatop.ingest.panes import PaneBuffer
from acquatop.ingest.solution_columns import IDENTITY
from acquatop.windows import Windows
from connectors.mapping import TIME
from tests.support.worlds import Event, bound, catalog_text, query_text, records

BOUND = bound(query_text(), catalog_text(arrivals="all"))


@given(
    st.builds(Windows, st.integers(1, 12), st.integers(1, 12)),
    st.lists(
        st.builds(Event, st.integers(0, 40), st.sampled_from("abc"), st.integers(0, 2)), max_size=40
    ),
)
def test_every_event_within_a_window_comes_out_once_in_its_pane(
    windows: Windows, events: list[Event]
) -> None:
    buffer = PaneBuffer(windows)
    buffer.add(BOUND.matcher.match(records(BOUND, events)))
    panes = list(buffer.take_until(40))
    assert buffer.earliest_ms() is None
    assert [(pane.first, pane.last) for pane in panes] == sorted(
        {(pane.first, pane.last) for pane in panes}
    )
    for pane in panes:
        for time, identity in zip(
            *(pane.solutions.column(name).to_pylist() for name in (TIME, IDENTITY)), strict=True
        ):
            assert (windows.first(time), windows.last(time)) == (pane.first, pane.last)
            same = [
                each
                for each in events
                if f"/{each.user}>" in identity and f'"{each.mentions}"' in identity
            ]
            assert time == max(
                each.t
                for each in same
                if (windows.first(each.t), windows.last(each.t)) == (pane.first, pane.last)
            )
    held = {
        (each.user, each.mentions)
        for each in events
        if windows.first(each.t) <= windows.last(each.t)
    }
    assert len(
        {identity for pane in panes for identity in pane.solutions.column(IDENTITY).to_pylist()}
    ) == len(held)


@given(
    st.lists(
        st.builds(Event, st.integers(0, 40), st.sampled_from("abc"), st.integers(0, 2)), max_size=40
    )
)
def test_panes_do_not_depend_on_the_order_of_arrival(events: list[Event]) -> None:
    in_order = sorted(events, key=lambda each: each.t)
    buffers = PaneBuffer(Windows(6, 3)), PaneBuffer(Windows(6, 3))
    for buffer, several in zip(buffers, (events, in_order), strict=True):
        half = len(several) // 2
        buffer.add(BOUND.matcher.match(records(BOUND, several[:half])))
        len(buffer)  # sorts what has come
        buffer.add(BOUND.matcher.match(records(BOUND, several[half:])))
    found, expected = (
        [(pane.first, pane.last, pane.solutions.to_pylist()) for pane in buffer.take_until(45)]
        for buffer in buffers
    )
    assert found == expected


def test_what_comes_after_its_window_has_closed_is_late() -> None:
    buffer = PaneBuffer(Windows(10, 10))
    assert (
        len(buffer.add(BOUND.matcher.match(records(BOUND, [Event(5, "a", 1), Event(12, "b", 1)]))))
        == 0
    )
    assert len(list(buffer.take_until(10))) == 1
    assert (
        len(buffer.add(BOUND.matcher.match(records(BOUND, [Event(10, "c", 1), Event(11, "d", 1)]))))
        == 1
    )
    assert (buffer.earliest_ms(), buffer.latest_ms()) == (11, 12)
