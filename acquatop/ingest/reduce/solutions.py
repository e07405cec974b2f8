"""Reducer that keeps all matches of a pattern: one partition cannot tell which are replaced."""

from __future__ import annotations

import pyarrow as pa

from acquatop.ingest.match import Found, Matcher
from acquatop.windows import Windows


class Solutions:
    """Reducer that passes on a pattern's solutions."""

    def __init__(self, matcher: Matcher, windows: Windows | None) -> None:
        self.matcher = matcher
        self.windows = windows

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the solutions, as columns."""
        assert found is not None
        return self.matcher.table(found)
