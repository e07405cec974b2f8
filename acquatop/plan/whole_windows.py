"""Binding of a top-k query over whole windows: as older versions did, and to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_windowed
from acquatop.plan.bound import BoundQuery, BoundWindowed
from rspql.diagnostics import Diagnostic, QueryError


def whole_windows_of(bound: BoundQuery, catalog: Catalog) -> BoundWindowed:
    """Return a query that is evaluated incrementally as one over whole windows: the same answers.

    Its numbers have all their digits. Its services need not be able to answer it.
    """
    plan = bound.plan
    windowed = plan.windowed if plan.score.orders_terms else plan.in_digits
    return bind_windowed(windowed, catalog, text="", name=bound.name, asks=False)


def in_whole_windows(bound: BoundQuery, catalog: Catalog) -> Iterator[BoundWindowed]:
    """Yield the ways in which a query may have been evaluated window by window."""
    plan = bound.plan
    message = "an older version has left its state so; under another name it begins anew"
    reason = Diagnostic("kept", message, plan.window.name.span, severity="warning")
    for each in (plan.in_digits, plan.windowed):
        with suppress(QueryError):  # then its services could never answer it so
            yield replace(bind_windowed(each, catalog, text="", name=bound.name), reason=reason)
