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
