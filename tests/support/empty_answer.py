"""Answer without any rows."""

from __future__ import annotations

from acquatop.answer.answer import Answer, Counts, Status
from replica.budget import Budget, Spending

NOTHING = Answer(
    query="q",
    window=0,
    opens_ms=0,
    closes_ms=1,
    rows=(),
    status=Status.EXACT,
    reason=None,
    spending=Spending(),
    budget=Budget(0, 0, 0.0),
    refreshed=(),
    failure=None,
    counts=Counts(),
    latency_seconds=0.0,
    emitted_ms=0,
)
