"""Observers of the engine: logs, metrics, and counts for the terminal and the HTTP service.

The interface, re-exported here, is defined by the engine. ``prometheus``, ``log`` and ``intake``
implement it. Import each where it is used, as their dependencies take time to load.
"""

from __future__ import annotations

from acquatop.engine.observer import (
    AnswerSeen,
    BatchSeen,
    Kept,
    Observer,
    QueryState,
    Several,
    Silent,
    StateSeen,
)

__all__ = [
    "AnswerSeen",
    "BatchSeen",
    "Kept",
    "Observer",
    "QueryState",
    "Several",
    "Silent",
    "StateSeen",
]
