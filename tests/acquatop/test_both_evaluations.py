"""A top-k query evaluated incrementally and window by window: the same scores, close by close."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.answer import Answer, Status
from acquatop.binding import bind_windowed
from acquatop.catalog import Catalog
from acquatop.query import ContinuousQuery
from acquatop.windowed_query import WindowedQuery
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.solutions import SolutionStore
from tests.acquatop.test_continuous_query import Replay, Shape, shapes
from tests.worlds import catalog_text


@dataclass
class Both:
    """Two queries at work on the same events, their answers side by side."""

    incremental: ContinuousQuery
    windowed: WindowedQuery

    def add(self, stream: str, records: pa.RecordBatch) -> None:
        self.incremental.add(stream, records)
        self.windowed.add(stream, records)

    def advance(self, stream: str, watermark_ms: int) -> Iterator[tuple[Answer, Answer]]:
        ways = (self.incremental.advance(stream, watermark_ms), self.windowed.advance(stream, watermark_ms))
        yield from zip(*ways, strict=True)


def windowed(replay: Replay) -> WindowedQuery:
    start = f"start_ms = {replay.shape.start}"
    catalog = Catalog.parse(
        catalog_text(arrivals=replay.shape.arrivals, start=start), file=Path("c.toml"), variables={}
    )
    bound = bind_windowed(replay.bound.plan.windowed, catalog, text="")
    (part,) = bound.plan.remotes
    keeper = Maintainer(SolutionStore(part.key, part.variables), replay.remote, Budget(1000, 1000, 5.0))
    return WindowedQuery(bound, [keeper])


@settings(max_examples=100)
@given(shapes, st.integers(0, 10))
def test_both_give_the_same_scores(shape: Shape, start: int) -> None:
    replay = Replay(replace(shape, items=1000, n=1000, policy="AT-TSM", start=start))
    replay.query = Both(replay.query, windowed(replay))  # type: ignore[assignment]
    for one, other in replay.answers():  # type: ignore[misc]
        assert (one.window, one.opens_ms, one.closes_ms) == (other.window, other.opens_ms, other.closes_ms)
        assert [row.score for row in other.rows] == pytest.approx([row.score for row in one.rows])
        assert [set(row.bindings) for row in other.rows] == [set(row.bindings) for row in one.rows]
        assert one.status is other.status is Status.EXACT
        assert one.score_variable == other.score_variable
