"""Certificates of answers: the degree to which an answer can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from acquatop.answer.answer import Status


@dataclass(frozen=True)
class Certificate:
    """Status of an answer; if approximate, also the reason and a bound.

    The ``bound`` is the best merit that anything missing could have.
    """

    status: Status
    reason: str | None = None
    bound: float | None = None
