"""Patterns about several subjects, evaluated incrementally: the answers of SPARQL over windows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.ingest.linked_matcher import LinkedGraphMatcher
from acquatop.plan.bound import BoundQuery, BoundWindowed
from tests.support.queries.documents import Documents
from tests.support.queries.record_patterns import assert_right

LINKED = (
    ("?e :link ?f . ?f :n ?n", "?n"),
    ("?e :link/:n ?n", "?n"),
    ("?e :link [ :n ?n ; :m ?m ]", "?n - ?m"),
    ("?e :by ?u . ?f :to ?u ; :n ?n", "?n"),
    ("?e :by/^:to ?f . ?f :n ?n", "2 * ?n"),
    ("?e :n ?n ; :link+ ?f", "?n"),
    ("?e :n ?n ; :link* ?f", "?n"),
    ("?f :m ?m . ?e :link? ?f ; :n ?n", "?n"),
    ("?e (:link|:by)/:m ?m ; :n ?n", "?n + ?m"),
    ("?e :n ?n OPTIONAL { ?f :link ?e ; :m ?m }", "?n"),
    ("?e :n ?n OPTIONAL { ?e :link ?f OPTIONAL { ?f :text ?t } }", "?n"),
    ("?e :n ?n MINUS { ?e :link/:n ?_m }", "?n"),
    ("?e :n ?n FILTER NOT EXISTS { ?_f :link ?e FILTER(?n > 0) }", "?n"),
    ("?e :n ?n BIND(EXISTS { ?_f :link ?e } AS ?is)", "?n"),
    ("?f :n ?n { ?e :link ?f } UNION { ?f :link ?e }", "?n"),
    ("{ ?e :link ?f . ?f :n ?n } UNION { ?e :m ?n }", "?n"),
    ("?e :n ?x . ?f :m ?x ; :n ?n", "?n + ?x"),
    ("?e ?p ?f . ?f :n ?n", "?n"),
    ('?e :n ?n ; :link ?f . ?f :text ?t FILTER(CONTAINS(?t, "a"))', "?n"),
)
documents = st.builds(
    Documents,
    seed=st.integers(0, 2**32),
    pattern=st.just(""),
    score=st.just("?n"),
    events=st.integers(0, 40),
    subjects=st.sampled_from([3, 8, 30]),
    richness=st.sampled_from([0.4, 0.8]),
    width=st.integers(1, 12),
    slide=st.integers(1, 8),
    k=st.integers(1, 5),
    arrivals=st.sampled_from(["all", "all", "distinct"]),
    syntax=st.sampled_from(["turtle", "nquads", "jsonld"]),
)


@settings(max_examples=80)
@given(documents, st.sampled_from(LINKED), st.integers(0, 2**32), st.booleans())
def test_documents_of_several_subjects_are_answered_as_they_come(
    world: Documents, pattern: tuple[str, str], seed: int, restarts: bool
) -> None:
    text, score = pattern
    world = replace(world, pattern=text, score=score)
    bound = world.bind()
    assert isinstance(bound, BoundQuery), bound.reason
    assert isinstance(bound.matcher, LinkedGraphMatcher)
    assert_right(world, bound, seed, restarts=restarts)


AGGREGATES = (
    "{ SELECT ?u (SUM(?n) AS ?s) WHERE { ?e :by ?u ; :link/:n ?n } GROUP BY ?u }",
    "{ SELECT ?u (COUNT(*) AS ?s) WHERE { ?f :by ?u MINUS { ?e :link ?f } } GROUP BY ?u }",
)


@settings(max_examples=25)
@given(documents, st.sampled_from(AGGREGATES), st.integers(0, 2**32), st.booleans())
def test_aggregates_of_linked_records(
    world: Documents, pattern: str, seed: int, restarts: bool
) -> None:
    world = replace(world, pattern=pattern, shown="?u ?s", score="2 * ?s")
    bound = world.bind()
    assert isinstance(bound, BoundQuery), bound.reason
    assert_right(world, bound, seed, restarts=restarts)


def test_a_newer_arrival_would_replace_a_part_of_a_solution() -> None:
    bound = Documents(0, LINKED[0][0], "?n", arrivals="latest").bind()
    assert isinstance(bound, BoundWindowed)
    assert bound.reason is not None
    assert "would replace one" in bound.reason.message
