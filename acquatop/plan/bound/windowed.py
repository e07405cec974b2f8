"""Query that is evaluated window by window, with everything that it names found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from acquatop.catalog.catalog import Service, Stream
from acquatop.catalog.graphs import StaticGraph
from acquatop.plan.strategy import Choice
from acquatop.windows import Windows
from rspql.diagnostics import Diagnostic
from rspql.plan import RemotePart, WindowedPlan


@dataclass(frozen=True)
class BoundWindow:
    """Window, the stream that fills it, and the times at which it opens and closes."""

    name: str
    stream: Stream
    windows: Windows


@dataclass(frozen=True)
class BoundRemote:
    """Part of a query that a remote answers, and the remote."""

    part: RemotePart
    service: Service


@dataclass(frozen=True)
class BoundWindowed:
    """Plan of a query that is evaluated window by window, with everything it names found.

    ``reason`` says why this catalog prevents the incremental evaluation of a plan that allows it.
    Of a budget that it shares it gets a part by its ``weight``.
    """

    name: str
    plan: WindowedPlan
    windows: tuple[BoundWindow, ...]
    remotes: tuple[BoundRemote, ...]
    graphs: tuple[StaticGraph, ...]
    reason: Diagnostic | None = None
    weight: float = 1.0

    can_share: ClassVar[bool] = False
    late_bound: ClassVar[float | None] = None

    @property
    def structure(self) -> Choice | None:
        """Structure that keeps candidates: none."""
        return None

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings: none."""
        return ()

    def structure_over_positions(self, hint: str | None) -> Choice | None:
        """Return None: there are no candidates."""
        return None

    @property
    def counted_elements(self) -> int:
        """Number of elements that answers depend on, if the query counts them.

        Of several windows each shows its content until its next close.
        """
        each = [window.windows for window in self.windows]
        kept = (of.width_ms + (of.slide_ms if len(each) > 1 else 0) for of in each)
        return max(kept, default=0)

    def warnings_of_open_windows(self) -> tuple[Diagnostic, ...]:
        """Return no warning: only the window that closes costs something."""
        return ()

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Streams that the query reads, each once."""
        return tuple({window.stream.iri: window.stream for window in self.windows}.values())
