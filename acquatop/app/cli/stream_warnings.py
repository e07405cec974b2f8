"""Warnings of ``acquatop check`` about the first records of a query's streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from acquatop.engine.waiting.remedies import remedy_of
from acquatop.engine.waiting.time_units import suspicion
from acquatop.runtime.sample import sample_of
from rspql.compiler import Analysis
from rspql.diagnostics import Diagnostic

if TYPE_CHECKING:
    from acquatop.catalog.catalog import Catalog, Stream


def with_stream_warnings(analysis: Analysis, catalog: Catalog) -> Analysis:
    """Return an analysis with warnings about the records of the query's streams in files."""
    if analysis.plan is None:
        return analysis
    found = [
        warning
        for window in _windows(analysis.plan)
        # The clock's stream is in no catalog.
        if window.stream.value in catalog.streams
        for warning in _warnings(catalog.streams[window.stream.value], window)
    ]
    return replace(analysis, diagnostics=(*analysis.diagnostics, *found))


def _windows(plan: Any) -> Sequence[Any]:
    return getattr(plan, "windows", None) or [plan.window]


def _warnings(stream: Stream, window: Any) -> Iterator[Diagnostic]:
    sample = sample_of(stream)
    if sample is None:
        return
    span = window.stream.span
    suspicious = None if sample.newest_ms is None else suspicion(stream, sample.newest_ms)
    if suspicious is not None:
        message, hint = suspicious
        yield Diagnostic("time-unit", message, span, hint, severity="warning")
    if sample.items and sum(sample.bad.values()) == sample.items:
        reason = max(sample.bad, key=lambda each: sample.bad[each])
        message = f"the first {sample.items:,} items of <{stream.iri}> are bad: {reason}"
        yield Diagnostic("bad-items", message, span, remedy_of(reason, stream), severity="warning")
