"""Patterns over one stream, evaluated incrementally: the answers of SPARQL over whole windows."""

from __future__ import annotations

import re
from dataclasses import replace

import hypothesis
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acquatop.errors import EvaluationError
from acquatop.plan.bound import BoundQuery, BoundWindowed
from acquatop.plan.check import check_query
from acquatop.query.evaluation import TopKEvaluation
from tests.support.fed import Fed
from tests.support.queries.record_patterns import World, assert_right
from tests.support.worlds import STREAM

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
    "{ SELECT ?u ?v (SUM(?n) AS ?s) WHERE { ?e :by ?u ; :to ?v ; :n ?n } GROUP BY ?u ?v }",
)


@settings(max_examples=40)
@given(
    worlds,
    st.sampled_from(AGGREGATES),
    st.sampled_from(["all", "all", "latest", "distinct"]),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_aggregates_of_stars_have_the_answers_of_sparql(
    world: World, pattern: str, arrivals: str, seed: int, restarts: bool
) -> None:
    shown = " ".join(pattern.split()[2:3]) + " ?s"
    world = replace(world, pattern=pattern, shown=shown, score="2 * ?s", arrivals=arrivals)
    bound = world.bind()
    assert isinstance(bound, BoundQuery)
    assert_right(world, bound, seed, restarts=restarts)


@settings(max_examples=40)
@given(worlds, st.integers(0, 2**32), st.booleans())
@example(World(1, STARS[0], "?n", events=9, subjects=1, richness=1.0, width=7, slide=1), 0, False)
def test_stars_have_the_answers_of_sparql_if_all_arrivals_count(
    world: World, seed: int, restarts: bool
) -> None:
    bound = world.bind()
    assert isinstance(bound, BoundQuery)
    rows = assert_right(world, bound, seed, restarts=restarts)
    hypothesis.event(f"rows: {min(rows, 1)}")


GENERAL = (
    ("?e :n ?n OPTIONAL { ?e :text ?t }", "?n"),
    ("?e :n ?n OPTIONAL { ?e :text ?t FILTER(STRLEN(?t) > 4) }", "?n"),
    ("?e :n ?n OPTIONAL { ?e :m ?m FILTER(?m > ?n) } OPTIONAL { ?e :by ?u ; :to ?v }", "?n"),
    ('?e :n ?n OPTIONAL { ?e :text ?t } FILTER(!BOUND(?t) || ?t != "rain")', "?n"),
    ("{ ?e :by ?u } UNION { ?e :to ?u } ?e :n ?n", "?n"),
    ("{ ?e :n ?n } UNION { ?f :m ?n }", "2 * ?n"),
    ("?e :n ?n MINUS { ?e a :Post }", "?n"),
    ("?e :n ?n FILTER NOT EXISTS { ?e :to ?_u FILTER(?n > 1) }", "?n"),
    ("?e :n ?n FILTER EXISTS { ?e :by ?_u ; :to ?_u }", "?n"),
    ("?e :n ?n ; :by ?u VALUES ?u { :user\\/ann :user\\/bob }", "?n"),
    ("?e :n ?n ; (:by|:to) ?u", "?n"),
    ("?e :n ?n ; !(:by|:to) ?v", "?n"),
    ("?e :n ?n . ?u ^:by ?e", "?n"),
    ("[] :n ?n ; :text ?t", "?n"),
    ("?e ?p ?v ; :n ?n", "?n"),
    ("?e :n ?n ; :text ?t BIND(UCASE(?t) AS ?x) FILTER(STRLEN(?x) > 4)", "?n"),
    ("?e :n ?n ; :m ?m BIND(?n + ?m AS ?x)", "2 * ?x"),
    ("?e :text ?t ; :by ?u BIND(STRLEN(?t) AS ?x)", "?x"),
    ("?e :by ?u OPTIONAL { ?e :n ?n }", "2 * ?n"),
    ("?e :by ?u OPTIONAL { ?e :n ?n }", "COALESCE(?n, 0)"),
    ("?e :by ?u OPTIONAL { ?e :n ?n } OPTIONAL { ?e :m ?m }", "IF(BOUND(?n), ?n, COALESCE(?m, 1))"),
    ("{ ?e :by ?u ; :n ?n } UNION { ?e :by ?u ; :m ?m }", "COALESCE(?n + 1, 2 * ?m)"),
    ("?e :by ?u OPTIONAL { ?e :d ?d }", "2 * ?d"),
)


@settings(max_examples=80)
@given(
    worlds,
    st.sampled_from(GENERAL),
    st.sampled_from(OUTSIDE),
    st.sampled_from(["all", "all", "latest", "distinct"]),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_patterns_about_one_subject_are_answered_as_records_come(
    world: World,
    pattern: tuple[str, str],
    outside: str,
    arrivals: str,
    seed: int,
    restarts: bool,
) -> None:
    text, score = pattern
    names = set(re.findall(r"\?\w+", outside))
    outside = outside if names <= set(re.findall(r"\?\w+", text)) else ""
    world = replace(world, pattern=text, score=score, outside=outside, arrivals=arrivals)
    bound = world.bind()
    assert isinstance(bound, BoundQuery), bound.reason
    assert_right(world, bound, seed, restarts=restarts)


OF_TERMS = (
    ("?e :text ?t", "?t"),
    ("?e :text ?t ; :by ?u", "LCASE(?t)"),
    ("?e :link ?l ; :text ?t", "?l"),
    ("{ ?e :by ?u } UNION { ?e :to ?u }", "?u"),
    ("?e ?p ?u FILTER(ISIRI(?u))", "?u"),
    ("?e :text ?t ; :n ?n", "IF(?n > 1, ?t, ?e)"),
    ("?e :d ?d ; :n ?n", "STR(?d)"),
)


@settings(max_examples=60)
@given(
    worlds,
    st.sampled_from(OF_TERMS),
    st.sampled_from(["all", "all", "latest", "distinct"]),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_terms_of_any_kind_order_solutions_also_after_a_restart(
    world: World, ordered: tuple[str, str], arrivals: str, seed: int, restarts: bool
) -> None:
    pattern, score = ordered
    world = replace(world, pattern=pattern, score=score, arrivals=arrivals)
    bound = world.bind()
    assert isinstance(bound, BoundQuery), bound.reason
    assert_right(world, bound, seed, restarts=restarts)


GENERAL_AGGREGATES = (
    "{ SELECT ?u (SUM(?n) AS ?s) "
    "WHERE { { ?e :by ?u } UNION { ?e :to ?u } ?e :n ?n } GROUP BY ?u }",
    "{ SELECT ?u (SUM(?n) AS ?s) WHERE { { ?e :by ?u ; :n ?n } UNION { ?e :by ?u ; :m ?n } } "
    "GROUP BY ?u }",
    "{ SELECT ?u (SUM(?n) AS ?s) WHERE { ?e :by ?u ; :n ?n ; :to [] } GROUP BY ?u }",
    "{ SELECT ?u (COUNT(*) AS ?s) WHERE { ?e :by ?u MINUS { ?e :to ?u } } GROUP BY ?u }",
    "{ SELECT ?u (MAX(?n) AS ?s) WHERE { ?e :by ?u ; :n ?n OPTIONAL { ?e :m ?m } } GROUP BY ?u }",
    "{ SELECT ?p (COUNT(?v) AS ?s) "
    "WHERE { ?e ?p ?v FILTER NOT EXISTS { ?e a :Post } } GROUP BY ?p }",
)


@settings(max_examples=40)
@given(
    worlds,
    st.sampled_from(GENERAL_AGGREGATES),
    st.sampled_from(["all", "all", "latest", "distinct"]),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_aggregates_of_patterns_about_one_subject(
    world: World, pattern: str, arrivals: str, seed: int, restarts: bool
) -> None:
    shown = " ".join(pattern.split()[2:3]) + " ?s"
    world = replace(world, pattern=pattern, shown=shown, score="2 * ?s", arrivals=arrivals)
    bound = world.bind()
    assert isinstance(bound, BoundQuery), bound.reason
    assert_right(world, bound, seed, restarts=restarts)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("?e :by ?u . ?f :to ?u ; :n ?n", "each is about one subject"),
        ("?e :n ?n OPTIONAL { ?f :n ?n ; :m ?m }", "each is about one subject"),
        ("?e :n ?n MINUS { ?f :m ?m }", "that nothing links"),
        ("OPTIONAL { ?e :m ?m } ?e :n ?n", "that nothing links"),
        ("?e :link/:n ?n", "each is about one subject"),
        ("?e :n ?n . ?f :link* ?g", "begins anywhere"),
        ("?e ?p ?x . ?f :m ?x ; :n ?n", "values of any property"),
        ("?e :n ?n FILTER EXISTS { ?f :m ?m }", "that nothing links"),
        ("?e :n ?n BIND(NOW() AS ?x)", "at the window's close"),
        ("{ ?e :by ?u } UNION { ?f :to ?u } ?e :n ?n", "that nothing links"),
        ("?e :n ?n OPTIONAL { ?e :m ?m } FILTER(sqrt(?m) > 1)", "what may be unbound"),
        ("?e :n ?n ; ?p ?v ; ?q ?w ; ?r ?x ; ?s ?y", "very many solutions"),
        ("?e :n ?n ; :text ?t FILTER(STRLEN(REPLACE(?t, '', ?t)) > 3)", "may be very long"),
    ],
)
def test_it_is_said_why_a_pattern_needs_whole_windows(pattern: str, said: str) -> None:
    score = "COALESCE(?n, 0) + 1" if ":d ?n" in pattern else "2 * ?n"
    bound = World(0, pattern, score).bind()
    assert isinstance(bound, BoundWindowed)
    analysis = check_query(World(0, pattern, "2 * ?n").text, catalog=World(0, "", "").catalog())
    assert analysis.reason is not None
    assert said in analysis.reason.message


COMPUTED = (
    # A BIND sees what stands before it.
    "BIND(?m + 1 AS ?n) ?e :m ?m",
    "?e :by ?u OPTIONAL { ?e :m ?m } BIND(?m + 1 AS ?n) ?e :m ?m",
    "{ ?e :m ?x BIND(1 AS ?n) } UNION { ?e :m ?x BIND(?x AS ?n) }",
    "?e :by ?u OPTIONAL { ?e :d ?n }",
    "?e ?p ?n",
)


@settings(max_examples=40)
@given(
    st.sampled_from(COMPUTED),
    st.sampled_from(["2 * ?n", "COALESCE(?n, 0) + 1", "IF(BOUND(?n), ?n, 3) - 1"]),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_values_that_only_matching_tells_are_scored(
    pattern: str, score: str, seed: int, restarts: bool
) -> None:
    world = World(seed, pattern, score)
    bound = world.bind()
    assert isinstance(bound, BoundQuery), bound.reason
    assert_right(world, bound, seed, restarts=restarts)


@pytest.mark.parametrize("optional", ["", "OPTIONAL { ?e :text ?t }"])
def test_records_that_make_very_many_solutions_end_their_query_alone(optional: str) -> None:
    world = World(0, f"?e :n ?n ; :n ?a ; :n ?b ; :n ?c {optional}", "?n", subjects=1)
    bound = world.bind()
    records = [{"t": 1, "id": "1", "n": number} for number in range(100)]
    query = Fed(TopKEvaluation(bound, None), bound)  # type: ignore[arg-type]
    query.evaluation.join(bound, {})
    query.add(STREAM, world.decoded(bound, records))
    with pytest.raises(EvaluationError, match=r"may make 1e\+08 solutions together"):
        list(query.advance(STREAM, 100))
