"""Limits of one evaluation of a whole window by the SPARQL engine."""

from __future__ import annotations

from dataclasses import dataclass

from acquatop.catalog.section import Section

LEAST_MEMORY_BYTES = 16 << 20
"""Less does not suffice for an empty store."""


@dataclass(frozen=True)
class EvaluationLimits:
    """Limits of one evaluation, and the number of lost answers in a row that end the query.

    ``memory_bytes`` counts what a query's process may use beyond an empty one. ``seconds`` is the
    time from request to result. ``result_bytes`` is the size of one result.
    """

    memory_bytes: int = 2 << 30
    seconds: float = 60.0
    failures: int = 3
    result_bytes: int = 256 << 20


DEFAULT_LIMITS = EvaluationLimits()


def read_limits(section: Section) -> EvaluationLimits:
    """Return the limits of a catalog's table ``evaluation``."""
    section.allow("memory_bytes", "timeout", "failures", "result_bytes")
    usual = DEFAULT_LIMITS
    timeout_ms = section.duration_ms("timeout", default=round(1000 * usual.seconds), zero=False)
    return EvaluationLimits(
        section.whole("memory_bytes", default=usual.memory_bytes, least=LEAST_MEMORY_BYTES),
        timeout_ms / 1000,
        section.whole("failures", default=usual.failures, least=1),
        section.whole("result_bytes", default=usual.result_bytes, least=1),
    )
