"""Two evaluations of one query side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_windowed
from acquatop.query.sparql.evaluation import SparqlEvaluation
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.remotes import Remote
from replica.store import SolutionStore
from tests.support.fed import Fed
from tests.support.queries.joined import Replay
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import (
    catalog_text,
)


@dataclass
class Both:
    """Two queries at work on the same events, their answers side by side."""

    incremental: ContinuousQuery
    windowed: Fed

    def add(self, stream: str, records: pa.RecordBatch) -> None:
        self.incremental.add(stream, records)
        self.windowed.add(stream, records)

    def advance(self, stream: str, watermark_ms: int) -> Iterator[tuple[Answer, Answer]]:
        ways = (
            self.incremental.advance(stream, watermark_ms),
            self.windowed.advance(stream, watermark_ms),
        )
        yield from zip(*ways, strict=True)


def windowed(replay: Replay, remote: Remote | None = None, *, whole: bool = True) -> Fed:
    """Return a replay's query window by window; its mentions are integers if they are ``whole``."""
    start = "" if replay.shape.start is None else f"start_ms = {replay.shape.start}"
    text = catalog_text(arrivals=replay.shape.arrivals, start=start)
    text = text if whole else text.replace("xsd:integer", "xsd:double")
    catalog = Catalog.parse(text, file=Path("c.toml"), variables={})
    found = bind_windowed(replay.bound.plan.in_digits, catalog, text="")
    (part,) = found.plan.remotes
    keeper = Maintainer(
        SolutionStore(part.key, part.variables), remote or replay.remote, Budget(1000, 1000, 5.0)
    )
    return Fed(SparqlEvaluation(found, [keeper]), found)
