"""Query whose windows count the elements of its stream."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from acquatop.catalog.catalog import Stream
from acquatop.plan.bound.query import BoundQuery
from acquatop.plan.bound.windowed import BoundWindowed
from acquatop.plan.strategy import Choice
from acquatop.plugins import family_of
from acquatop.topk.strategies import Family
from rspql.diagnostics import Diagnostic
from rspql.plan import Plan
from rspql.scoring.distance import Distance


@dataclass(frozen=True)
class BoundCounted:
    """Query whose windows count its stream's elements; ``query`` is the same over their positions.

    A ``hint`` names the structure that keeps candidates. It replaces the cheapest one, or the one
    that the catalog asks for.
    """

    name: str
    query: BoundQuery | BoundWindowed
    hint: str | None = None

    @property
    def plan(self) -> Plan:
        """Plan of the query."""
        return self.query.plan

    @property
    def stream(self) -> Stream:
        """Stream that the query reads."""
        (stream,) = self.query.streams
        return stream

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Stream that the query reads."""
        return (self.stream,)

    @property
    def counted_elements(self) -> int:
        """Number of elements that answers depend on."""
        return self.query.counted_elements

    @cached_property
    def nearest(self) -> Distance | None:
        """Distance that the query ranks by, if a grid finds the nearest."""
        query = self.query
        is_found = isinstance(query, BoundQuery) and query.is_nearest_over_positions(self.hint)
        return query.nearest if is_found and isinstance(query, BoundQuery) else None

    @property
    def can_share(self) -> bool:
        """True if queries that rank by a distance to other points may share its structure."""
        return self.nearest is not None

    @property
    def reason(self) -> Diagnostic | None:
        """Reason for another evaluation than the plan allows, if there is one."""
        return self.query.reason

    @property
    def structure(self) -> Choice | None:
        """Structure that keeps the candidates, and the reason.

        None for whole windows or aggregates.
        """
        return self.query.structure_over_positions(self.hint)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about a query that is legal but likely to cost more than expected."""
        structure = self.structure
        cheap = (Family.ELEMENTS, Family.NEAREST)
        is_cheap = structure is not None and family_of(structure.strategy) in cheap
        return () if is_cheap else self.query.warnings_of_open_windows()
