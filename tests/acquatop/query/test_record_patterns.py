"""Patterns over one stream, evaluated incrementally: the answers of SPARQL over whole windows."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.plan.bind import BoundQuery
from tests.support.queries.record_patterns import World, assert_right

STARS = (
    "?e :by ?u ; :n ?n",
    "?e :by ?u ; :n ?n ; :text ?t",
    "?e :by ?u ; :n ?n . ?e a :Post",
    "?e :by ?u ; :to ?u ; :n ?n",
    "?e :n ?n ; :m ?n",
    "?e :link ?e ; :n ?n",
    ":e\\/1 :by ?u ; :n ?n",
    "?e :n ?n ; :by :user\\/ann",
    "?e :n ?n ; :n ?o",
    "?e :n ?n ; :m ?m FILTER(?n > ?m)",
    "?e :n ?n ; :m ?m ; :d ?d FILTER(?n + ?m != 2)",
    "?e :n ?n . ?e :n ?n . ?e :by ?u",
)
worlds = st.builds(
    World,
    seed=st.integers(0, 2**32),
    pattern=st.sampled_from(STARS),
    score=st.sampled_from(["?n", "2 * ?n + 1", "-?n"]),
    events=st.integers(0, 60),
    subjects=st.sampled_from([1, 4, 30, 10**6]),
    richness=st.sampled_from([0.4, 0.8, 1.0]),
    width=st.integers(1, 12),
    slide=st.integers(1, 8),
    k=st.integers(1, 5),
)


FILTERED = (
    '?e :text ?t ; :n ?n FILTER(CONTAINS(LCASE(?t), "spark"))',
    '?e :text ?t ; :n ?n FILTER(REGEX(?t, "^[sr]", "i") && ?n > 0)',
    '?e :text ?t ; :n ?n FILTER(?t != "rain")',
    '?e :text ?t ; :n ?n FILTER(?t IN ("rain", "über", "a \\"quoted\\" \\\\ word"))',
    "?e :text ?t ; :n ?n FILTER(STRLEN(?t) > ?n + 3)",
    "?e :by ?u ; :n ?n FILTER(?u = <http://example.org/user/ann>)",
    "?e :by ?u ; :to ?v ; :n ?n FILTER(?u != ?v)",
    '?e :by ?u ; :n ?n FILTER(STRENDS(STR(?e), "1") || ?u < ?e || ?n = 2)',
    '?e :link ?l ; :n ?n FILTER(ISIRI(?l) && STRSTARTS(STR(?l), "http://example.org/"))',
    "?e :n ?n ; :d ?d FILTER(DATATYPE(?d) = xsd:double && BOUND(?n))",
    '?e :text ?t ; :n ?n FILTER(LANG(?t) = "" && !(?t = 3) && SUBSTR(?t, 1, 1) = "r")',
    '?e :text ?t ; :n ?n FILTER(COALESCE(xsd:integer(?t), 1) = 1 && IF(?n > 1, ?t > "s", true))',
    "?e :text ?t ; :n ?n FILTER(IRI(?t) != ?e)",
)
OUTSIDE = ("", "FILTER(?n > 0)", 'FILTER(CONTAINS(STR(?e), "2"))', 'FILTER(STR(?n) != "3")')


@settings(max_examples=60)
@given(
    worlds,
    st.sampled_from(FILTERED),
    st.sampled_from(OUTSIDE),
    st.sampled_from(["all", "all", "latest", "distinct"]),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_filters_on_values_of_any_type_are_decided_as_records_come(
    world: World, pattern: str, outside: str, arrivals: str, seed: int, restarts: bool
) -> None:
    world = replace(world, pattern=pattern, outside=outside, arrivals=arrivals)
    bound = world.bind()
    assert isinstance(bound, BoundQuery), bound.reason
    assert_right(world, bound, seed, restarts=restarts)


AGGREGATES = (
    "{ SELECT ?u (COUNT(*) AS ?s) WHERE { ?e :by ?u ; :n ?n } GROUP BY ?u }",
    "{ SELECT ?u (SUM(?n) AS ?s) WHERE { ?e :by ?u ; :n ?n ; :text ?t } GROUP BY ?u }",
    "{ SELECT ?u (MAX(?n) AS ?s) WHERE { ?e :by ?u ; :n ?n FILTER(?n < 4) } GROUP BY ?u }",
    "{ SELECT ?u (AVG(?d) AS ?s) WHERE { ?e :by ?u ; :d ?d FILTER(?d < 9) } GROUP BY ?u }",
    "{ SELECT ?e (MIN(?n) AS ?s) WHERE { ?e :n ?n ; a :Post } GROUP BY ?e }",
)


@settings(max_examples=30)
@given(worlds, st.sampled_from(AGGREGATES), st.integers(0, 2**32), st.booleans())
def test_aggregates_of_stars_have_the_answers_of_sparql_if_all_arrivals_count(
    world: World, pattern: str, seed: int, restarts: bool
) -> None:
    shown = " ".join(pattern.split()[2:3]) + " ?s"
    world = replace(world, pattern=pattern, shown=shown, score="2 * ?s")
    bound = world.bind()
    assert isinstance(bound, BoundQuery)
    assert_right(world, bound, seed, restarts=restarts)


@settings(max_examples=40)
@given(worlds, st.integers(0, 2**32), st.booleans())
def test_stars_have_the_answers_of_sparql_if_all_arrivals_count(
    world: World, seed: int, restarts: bool
) -> None:
    bound = world.bind()
    assert isinstance(bound, BoundQuery)
    rows = assert_right(world, bound, seed, restarts=restarts)
    hypothesis.event(f"rows: {min(rows, 1)}")
