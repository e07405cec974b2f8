"""Windows of several streams that are joined, where one begins later than the other."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_query, bind_windowed
from acquatop.plan.bound import Bound, BoundQuery
from acquatop.query.contract import Tick
from acquatop.query.kinds import Resources, open_evaluation
from acquatop.refresh.open_replicas import Replicas
from replica.rankers import DEFAULT_RANKERS

NS = "http://example.org/"
A, B = NS + "a", NS + "b"
CATALOG = "".join(
    f"""
[streams."{iri}"]
connector = "lines"
options = {{ path = "{iri[-1]}" }}
mapping = {{ subject = "http://example.org/{{s}}", time = "t", \
properties = {{ "http://example.org/{iri[-1]}" = {{ field = "p", datatype = "xsd:integer" }} }} }}
"""
    for iri in (A, B)
)
TEXT = """PREFIX : <http://example.org/>
SELECT ?s (?p + ?q AS ?score)
FROM NAMED WINDOW :w ON :a [RANGE 10ms STEP 5ms] FROM NAMED WINDOW :x ON :b [RANGE 10ms STEP 5ms]
WHERE { WINDOW :w { ?s :a ?p } WINDOW :x { ?s :b ?q } } ORDER BY DESC(?score) LIMIT 3"""

SUMS = TEXT.replace("?s :a ?p", "SELECT ?s (SUM(?n) AS ?p) { ?s :a ?n } GROUP BY ?s")


def bound(road: str) -> Bound:
    """Return the query on one of its roads."""
    catalog = Catalog.parse(CATALOG, file=Path("catalog.toml"), variables={})
    text = SUMS if road == "sums" else TEXT
    joined = bind_query(text, catalog, name="q")
    assert isinstance(joined, BoundQuery)
    if road != "whole":
        return joined
    return bind_windowed(joined.plan.windowed, catalog, text=text, name="q")


class Played:
    """Evaluation of the query that is handed records and watermarks."""

    def __init__(self, road: str, folder: Path, after_ms: dict[str, int] | None = None) -> None:
        self._bound = bound(road)
        resources = Resources(
            Replicas(),
            lambda: 0.0,
            DEFAULT_RANKERS,
            lambda task, buckets: [task(bucket) for bucket in buckets],
            lambda key: folder,
            durable=True,
        )
        self._evaluation = open_evaluation(self._bound, "key", resources, load=False, shared=False)
        self._evaluation.join(self._bound, after_ms or {})

    def add(self, stream: str, *times: int, are_same: bool = True) -> None:
        """Hand in a record of one subject for each time: they say the same, or their times."""
        values = [(time, 1 if are_same else time) for time in times]
        lines = [json.dumps({"t": time, "s": "s", "p": value}).encode() for time, value in values]
        batch = pa.record_batch([pa.array(lines, pa.binary())], ["value"])
        mapping = next(each.mapping for each in self._bound.streams if each.iri == stream)
        parts = list(Job(mapping, self._evaluation.reducers(stream))([batch]))
        self._evaluation.add(stream, parts, self._evaluation.names)

    def advance(self, stream: str, watermark_ms: int) -> list[Answer]:
        """Return the answers that are due."""
        return [
            each
            for each in self._evaluation.advance(Tick(stream, watermark_ms, 0.0))
            if isinstance(each, Answer)
        ]


each_road = pytest.mark.parametrize("road", ["joined", "sums", "whole"])


@each_road
def test_a_query_that_joins_later_begins_where_it_has_seen_all_streams(
    road: str, tmp_path: Path
) -> None:
    """One stream is read from its beginning; the other has reached 23 already."""
    played = Played(road, tmp_path, {B: 23})
    played.add(A, 3, 12, 26, 31)
    played.add(B, 27, 32)
    answers = [*played.advance(A, 40), *played.advance(B, 40)]
    assert [(each.opens_ms, each.closes_ms, each.status) for each in answers] == [
        (25, 35, Status.EXACT),
        (30, 40, Status.EXACT),
    ]
    assert [len(each.rows) for each in answers] == [1, 1]


@each_road
def test_records_from_before_the_first_window_are_left_out(road: str, tmp_path: Path) -> None:
    played = Played(road, tmp_path, {A: 23, B: 23})
    played.add(A, 3, 17, 24, 26, are_same=False)
    played.add(B, 27, 13, 4, 31, are_same=False)
    answers = [*played.advance(A, 40), *played.advance(B, 40)]
    assert [(each.opens_ms, each.closes_ms, each.status) for each in answers] == [
        (25, 35, Status.EXACT),
        (30, 40, Status.EXACT),
    ]
    scores = [[str(row.bindings["score"]) for row in each.rows] for each in answers]
    assert scores == [["57", "53"], []]


@each_road
def test_a_window_that_has_not_begun_may_lack_what_came_late(road: str, tmp_path: Path) -> None:
    played = Played(road, tmp_path)
    played.add(A, 3, 8)
    assert [each.closes_ms for each in (*played.advance(A, 10), *played.advance(B, 10))] == [5, 10]
    # It lies in the window that closes at 15, too, and is left out of all.
    played.add(B, 7)
    later = [*played.advance(A, 20), *played.advance(B, 20)]
    assert [(each.closes_ms, each.status, len(each.rows)) for each in later] == [
        (15, Status.APPROXIMATE, 0),
        (20, Status.EXACT, 0),
    ]
    assert [each.counts.late for each in later] == [1, 0]
