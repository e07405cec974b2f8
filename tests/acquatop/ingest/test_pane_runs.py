from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acquatop.ingest.reduce.panes import by_pane, spans_of
from acquatop.windows import Windows


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.none() | st.integers(-5, 40)),
    st.lists(st.integers(-40, 80), max_size=6),
    st.integers(1, 200),
    st.booleans(),
)
def test_panes_are_those_of_each_time_alone_in_order_or_not(
    shape: tuple[int, int, int | None], moments: list[int], repeats: int, in_order: bool
) -> None:
    windows = Windows(*shape)
    times = np.repeat(np.array(sorted(moments) if in_order else moments, dtype=np.int64), repeats)
    expected: dict[tuple[int, int], list[int]] = {}
    for at, time_ms in enumerate(times.tolist()):
        expected.setdefault((windows.first(time_ms), windows.last(time_ms)), []).append(at)
    assert spans_of(windows, times).tolist() == [list(span) for span in sorted(expected)]
    positions = np.arange(len(times))
    found = [((first, last), positions[at].tolist()) for first, last, at in by_pane(windows, times)]
    assert found == [(span, at) for span, at in sorted(expected.items()) if span[0] <= span[1]]
