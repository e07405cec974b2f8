"""Answers: the reports of the engine at every window close."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rdflib import BNode, Literal, URIRef
from rdflib.term import Identifier

from acquatop.answer.estimate import Estimate
from acquatop.answer.why import Evidence, Why, explain
from acquatop.answer.window_lists import WindowLists
from acquatop.catalog.quality_target import QualityTarget
from acquatop.instants import instant_text
from replica.budget import Budget, Spending

if TYPE_CHECKING:
    import pyarrow as pa


class Status(enum.StrEnum):
    """Degree to which an answer can be trusted."""

    EXACT = "exact"
    """Only possible answer: every value that could matter was fetched now, each the only one."""
    CERTIFIED = "certified"
    """Right answer for the replica's values: some are older, or were chosen out of several."""
    PROBABILISTIC = "probabilistic"
    """Answer that misses a result by chance, as few do, and the catalog accepts: the reason says
    how few."""
    APPROXIMATE = "approximate"
    """Possibly wrong answer: something unscored or already dropped might belong in it.

    The reason says what.
    """


@dataclass(frozen=True)
class Row:
    """Result: its rank from 1, the selected variables, and the freshness of the remote's part.

    ``score`` is None if the query has none. Freshness is None if it is unknown which of the
    remote's values went into the row.
    """

    rank: int
    bindings: Mapping[str, Identifier]
    score: float | None
    refreshed: bool | None
    age_seconds: float | None


@dataclass(frozen=True)
class Shown:
    """Content of one of several windows as an answer shows it: that of the window's last close."""

    window: str
    index: int
    opens_ms: int
    closes_ms: int


@dataclass(frozen=True)
class Counts:
    """Counts of events since the last answer.

    ``unscored`` are the window's solutions without a score, ``bad`` are the stream's records that
    could not be used, ``rejected`` the remotes' records, both by reason. ``ambiguous`` are the
    remote's solutions beyond the one used for a key; with any of them no answer is exact.
    """

    events: int = 0
    late: int = 0
    bad: Mapping[str, int] = field(default_factory=dict)
    unscored: int = 0
    ambiguous: int = 0
    skipped: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)

    def with_unscored(self, unscored: int) -> Counts:
        """Return the same counts, with the unscored solutions of one query."""
        return replace(self, unscored=unscored)


@dataclass(frozen=True)
class Answer:
    """Answer of a query at a window's close, with everything needed to judge it.

    A ``select`` has rows, an ``ask`` a boolean, a ``construct`` or ``describe`` has triples,
    sorted, each a line of N-Triples; ``variables`` are those that rows may bind. ``opens_ms``
    (excluded) and ``closes_ms`` (included) are event times, ``emitted_ms`` is the wall clock's.
    ``latency_seconds`` is the time from when the engine could know that the window had closed until
    the answer was ready. If a query has several windows, the bounds are those of the first that
    closes now, and ``windows`` says what each shows. If a top-k answer is approximate, nothing
    missing scores beyond ``bound`` (infinite if nothing is known). ``expected`` is the precision
    and the nDCG that a top-k answer can be expected to have against the remote's present values;
    None if nothing is estimated.
    """

    query: str
    window: int
    opens_ms: int
    closes_ms: int
    rows: tuple[Row, ...]
    status: Status
    reason: str | None
    spending: Spending
    budget: Budget
    refreshed: tuple[Identifier, ...]
    failure: str | None
    counts: Counts
    latency_seconds: float
    emitted_ms: int
    score_variable: str | None = None
    variables: tuple[str, ...] = ()
    form: str = "select"
    boolean: bool | None = None
    triples: tuple[str, ...] = ()
    windows: tuple[Shown, ...] = ()
    bound: float | None = None
    expected: Estimate | None = None
    target: QualityTarget | None = None
    """Quality that its budget is spent for, if the catalog sets one."""
    counts_elements: bool = False
    """True if windows count elements: then several windows may close at one time."""
    lists: tuple[WindowLists, ...] | None = field(
        default=None, compare=False, repr=False, metadata={"is_stored": False}
    )
    """Candidates held of the open windows when it was made, if the engine shows them."""
    evidence: Evidence | None = field(
        default=None, compare=False, repr=False, metadata={"is_stored": False}
    )
    """Memory of how the answer was made, which :meth:`why` reads; only that of the last is kept."""

    @property
    def reaches_target(self) -> bool | None:
        """True if the expected quality reaches the target; None if either is missing."""
        if self.target is None or self.expected is None:
            return None
        return bool(getattr(self.expected, self.target.metric) >= self.target.least)

    def why(self, key: str | Identifier) -> Why:
        """Return why a key is in the answer, or is not, and what one more request would buy.

        A key is an IRI, a term as N-Triples text, the text of a literal, or an IRI's last part.
        """
        return explain(self, key)

    def over_elements(
        self, opens_ms: int, closes_ms: int, counts: Counts, windows: tuple[Shown, ...]
    ) -> Answer:
        """Return the answer with times in place of positions, and with other counts.

        If it is of several windows, its own number is the position of the element that closed one:
        the windows' own numbers may meet.
        There may be an answer for every element: ``replace`` costs ten times as much.
        """
        made = object.__new__(Answer)
        made.__dict__.update(
            self.__dict__,
            opens_ms=opens_ms,
            closes_ms=closes_ms,
            counts=counts,
            windows=windows,
            window=self.closes_ms if windows else self.window,
            counts_elements=True,
        )
        return made

    def __repr__(self) -> str:
        """Return what tells answers apart at a glance."""
        return f"<Answer {self.query} {self.window}: {self.status}, {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        from acquatop.answer.notebook import html_of

        return html_of(self)

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table; :func:`acquatop.to_arrow` does that with many answers."""
        from acquatop.answer.notebook import to_arrow

        return to_arrow([self])

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        from acquatop.answer.notebook import to_pandas

        return to_pandas([self])

    def to_polars(self) -> Any:
        """Return the rows as a polars DataFrame."""
        from acquatop.answer.notebook import to_polars

        return to_polars([self])

    def canonical(self) -> dict[str, Any]:
        """Return the parts that depend on the data alone, as JSON: equal for equal input."""
        return {
            "query": self.query,
            "form": self.form,
            "window": {
                "index": self.window,
                "opens": instant_text(self.opens_ms),
                "closes": instant_text(self.closes_ms),
            },
            **self._windows_json(),
            "results": [
                {
                    "rank": row.rank,
                    "score": row.score,
                    "bindings": {name: term_json(term) for name, term in row.bindings.items()},
                }
                for row in self.rows
            ],
            **({} if self.boolean is None else {"boolean": self.boolean}),
            **({"triples": list(self.triples)} if self.form in ("construct", "describe") else {}),
            "status": str(self.status),
            "reason": self.reason,
            **(
                {}
                if self.bound is None
                else {"bound": self.bound if math.isfinite(self.bound) else None}
            ),
        }

    def _windows_json(self) -> dict[str, Any]:
        windows = [
            {
                "name": each.window,
                "index": each.index,
                "opens": instant_text(each.opens_ms),
                "closes": instant_text(each.closes_ms),
            }
            for each in self.windows
        ]
        return {"windows": windows} if windows else {}

    def _target_json(self) -> dict[str, Any]:
        target = self.target
        if target is None:
            return {}
        return {"target": {target.metric: target.least, "reached": self.reaches_target}}

    def to_json(self) -> dict[str, Any]:
        """Return the whole answer as JSON; terms are written as in SPARQL Results JSON."""
        document = self.canonical()
        for result, row in zip(document["results"], self.rows, strict=True):
            result["refreshed"] = row.refreshed
            result["age_seconds"] = None if row.age_seconds is None else round(row.age_seconds, 3)
        return {
            **document,
            "refreshed": [term_json(term) for term in self.refreshed],
            "spent": {
                "items": self.spending.items,
                "requests": self.spending.requests,
                "seconds": round(self.spending.seconds, 4),
                "failed": self.spending.failed,
                **({"shared_by": self.spending.shared_by} if self.spending.shared_by > 1 else {}),
            },
            "allowed": {
                "items": self.budget.items,
                "requests": self.budget.requests,
                "seconds": self.budget.seconds,
            },
            "expected": (
                None
                if self.expected is None
                else {
                    "precision": round(self.expected.precision, 4),
                    "ndcg": round(self.expected.ndcg, 4),
                }
            ),
            **self._target_json(),
            "failure": self.failure,
            "events": self.counts.events,
            "late": self.counts.late,
            "bad": dict(self.counts.bad),
            "unscored": self.counts.unscored,
            "ambiguous": self.counts.ambiguous,
            "skipped": self.counts.skipped,
            "rejected": dict(self.counts.rejected),
            "latency_ms": round(1000 * self.latency_seconds, 1),
            "emitted": instant_text(self.emitted_ms),
            **({} if self.lists is None else {"lists": [each.to_json() for each in self.lists]}),
        }


def term_json(term: Identifier) -> dict[str, str]:
    """Return a term as in SPARQL Results JSON.

    >>> term_json(URIRef("http://example.org/ann"))
    {'type': 'uri', 'value': 'http://example.org/ann'}
    """
    if isinstance(term, URIRef):
        return {"type": "uri", "value": str(term)}
    if isinstance(term, BNode):
        return {"type": "bnode", "value": str(term)}
    document = {"type": "literal", "value": str(term)}
    if isinstance(term, Literal) and term.language:
        document["xml:lang"] = term.language
    elif isinstance(term, Literal) and term.datatype:
        document["datatype"] = str(term.datatype)
    return document
