"""What matches a pattern: where a newer arrival may replace an older one, more cannot be known in one place."""

from __future__ import annotations

import pyarrow as pa

from acquatop.ingest.match import Found, Matcher
from acquatop.windows import Windows


class Solutions:
    """Hands on a pattern's solutions."""

    def __init__(self, matcher: Matcher, windows: Windows | None) -> None:
        self.matcher = matcher
        self.windows = windows

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the solutions, as columns."""
        assert found is not None
        return self.matcher.table(found)
