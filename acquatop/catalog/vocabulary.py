"""Names that a catalog may use for strategies and proposers, without the code behind them."""

from __future__ import annotations

import enum

PROPOSERS = ("AT", "ANY", "WSJ", "ALL")
"""The Super-MTK+N list (AcquaTop), any possible result, the window's join, and the whole replica."""


class Strategy(enum.StrEnum):
    """A way to answer, by the name that a hint uses for it."""

    EACH = "pane-dominance"
    """``topk/pane_dominance.py``: one structure per query."""
    SHARED = "shared-skyline"
    """``topk/shared/shared_skyline.py``: one structure for all queries, if scores never change."""
    BLOCKS = "block-skyline"
    """``topk/sliding/block_skyline.py``: one structure per query whose windows count arrivals."""
    REFILLED = "refilled"
    """``topk/refill/refilled.py``: one structure per query, with the windows' content."""
