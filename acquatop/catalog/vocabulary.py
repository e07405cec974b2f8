"""Names that a catalog may use for strategies, without the code behind them."""

from __future__ import annotations

import enum


class Strategy(enum.StrEnum):
    """Strategy for answering queries, by the name that a hint uses for it."""

    EACH = "pane-dominance"
    """Structure per query: ``topk/pane_dominance.py``."""
    SHARED = "shared-skyline"
    """Structure for all queries, if scores never change: ``topk/shared/shared_skyline.py``."""
    BLOCKS = "block-skyline"
    """Structure per query whose windows count arrivals: ``topk/sliding/block_skyline.py``."""
    GRID = "nearest-grid"
    """Grid for all queries that rank by a distance to a point: ``topk/sliding/nearest.py``."""
    REFILLED = "refilled"
    """Structure per query, with the windows' content: ``topk/refill/refilled.py``."""
    RETAINED = "retained"
    """Windows' content alone, ranked at every close: ``topk/retained.py``."""


class TableStrategy(enum.StrEnum):
    """Strategy for the top k of a table that changes, by the name that a hint uses for it."""

    VIEW = "materialised-view"
    """The best rows and some more, kept up to date: ``topk/papers/views/table_view.py``."""
    RECOMPUTE = "recompute"
    """The best rows alone, asked for anew each time."""
