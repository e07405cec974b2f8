"""Names of the columns of partial aggregates, besides their keys' texts."""

from __future__ import annotations

FIRST, LAST, COUNT, NEWEST = "first", "last", "count", "newest"
"""Columns of a pane's windows, and of a key's number of events and its newest time there."""
HEAD, TAIL = "head", "tail"
"""Columns of a key's hash."""
