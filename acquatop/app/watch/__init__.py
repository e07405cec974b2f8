"""The engine seen from outside: what it tells of its work, and what is made of that.

``observer`` is what the engine knows of; ``prometheus``, ``log``, ``live`` and ``replay`` are observers. Each is
imported where it is used, as what they need takes time to load.
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

__all__ = ["AnswerSeen", "BatchSeen", "Kept", "Observer", "QueryState", "Several", "Silent", "StateSeen"]
