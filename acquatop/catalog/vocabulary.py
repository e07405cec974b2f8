"""Names that a catalog may use for strategies and proposers, without the code behind them."""

from __future__ import annotations

import enum

PROPOSERS = ("AT", "ANY", "WSJ", "ALL")
"""Names for the Super-MTK+N list (AcquaTop), any possible result, the window's join, all keys."""


class Strategy(enum.StrEnum):
    """Strategy for answering queries, by the name that a hint uses for it."""

    EACH = "pane-dominance"
    """Structure per query: ``topk/pane_dominance.py``."""
    SHARED = "shared-skyline"
    """Structure for all queries, if scores never change: ``topk/shared/shared_skyline.py``."""
    BLOCKS = "block-skyline"
    """Structure per query whose windows count arrivals: ``topk/sliding/block_skyline.py``."""
    REFILLED = "refilled"
    """Structure per query, with the windows' content: ``topk/refill/refilled.py``."""
    RETAINED = "retained"
    """Windows' content alone, ranked at every close: ``topk/retained.py``."""
