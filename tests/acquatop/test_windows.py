from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acquatop.windows import Windows

windows = st.builds(
    Windows, st.integers(1, 50), st.integers(1, 50), st.none() | st.integers(-100, 100)
)


@given(windows, st.integers(-500, 500))
def test_first_and_last_span_exactly_the_windows_that_hold_a_time(
    windows: Windows, time: int
) -> None:
    earliest = 0 if windows.t0_ms is not None else -700
    holding = [
        index
        for index in range(earliest, 700)
        if windows.bounds(index)[0] < time <= windows.bounds(index)[1]
    ]
    assert list(range(windows.first(time), windows.last(time) + 1)) == holding


@given(windows, st.lists(st.integers(-500, 500)))
def test_many_times_at_once_are_the_same_as_one_by_one(windows: Windows, times: list[int]) -> None:
    first, last = windows.spans(np.array(times, dtype=np.int64))
    assert first.tolist() == [windows.first(time) for time in times]
    assert last.tolist() == [windows.last(time) for time in times]


def test_the_windows_of_the_paper_s_example() -> None:
    windows = Windows(width_ms=9, slide_ms=3, t0_ms=1)
    assert [windows.bounds(index) for index in range(4)] == [(1, 10), (4, 13), (7, 16), (10, 19)]
