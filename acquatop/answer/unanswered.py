"""Window without an answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unanswered:
    """Window of a query whose evaluation gave no answer.

    ``reason`` is one word for counters, ``message`` is for people.
    """

    query: str
    opens_ms: int
    closes_ms: int
    reason: str
    message: str
