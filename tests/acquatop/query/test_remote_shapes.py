"""Queries of every shape on remotes, judged by a SPARQL engine, close by close."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from acquatop.answer.answer import Status
from acquatop.answer.sinks.json_line import json_line
from acquatop.refresh.join_refresh import JoinedReplicas
from tests.support.queries.remote_shapes import Shape, World

HEAD = "FROM NAMED WINDOW :w ON :stream [RANGE $w] WHERE {"
TAIL = "} ORDER BY $d(?score) LIMIT $k"
USERS = "WINDOW :w { ?e :user ?user ; :m ?m }"

SEVERAL = [
    f"SELECT ?e ?f (2 * ?m + ?f AS ?score) {HEAD} {USERS} SERVICE :a {{ ?user :f ?f }} {TAIL}",
    f"SELECT ?e ?tool ?f (?f - ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f ; :tool ?tool }} {TAIL}",
    f"SELECT ?e ?f (norm(?f, 0, 20) + ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f }} FILTER(?f + ?m > 8) {TAIL}",
    f"SELECT ?e ?f ?name (?f * ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f ; :name ?name }} FILTER(STRLEN(?name) > 2) {TAIL}",
    f"SELECT DISTINCT ?f (?f - ?m AS ?score) {HEAD} {USERS} SERVICE :a {{ ?user :f ?f }} {TAIL}",
    f"SELECT ?e ?f ?tool (?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f ; :tool ?tool }} }} ORDER BY $d(?score) DESC(?f) LIMIT $k",
    f"SELECT ?user ?n ?f (?n * ?f AS ?score) {HEAD} {{ SELECT ?user (COUNT(*) AS ?n) WHERE "
    f"{{ {USERS} }} GROUP BY ?user }} SERVICE :a {{ ?user :f ?f }} {TAIL}",
    # Of each group, and with what ties.
    f"SELECT ?e ?user ?f (?f - ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f }} {TAIL} PER ?user",
    f"SELECT ?e ?tool ?f (?f - ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f ; :tool ?tool }} {TAIL} PER ?tool WITH TIES",
    f"SELECT ?user ?n ?f (?n * ?f AS ?score) {HEAD} {{ SELECT ?user (COUNT(*) AS ?n) WHERE "
    f"{{ {USERS} }} GROUP BY ?user }} SERVICE :a {{ ?user :f ?f }} {TAIL} PER ?n WITH TIES",
]

JOINED = [
    # Several services by one key.
    f"SELECT ?e ?f ?name (2 * ?m + ?f AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f }} SERVICE :b {{ ?user :name ?name }} {TAIL}",
    f"SELECT ?e ?f ?g (?f - ?g + ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f }} SERVICE :b {{ ?user :f ?g }} FILTER(?f != ?g) {TAIL}",
    # Optional ones, alone and together.
    f"SELECT ?e ?f (?m + COALESCE(?f, 3) AS ?score) {HEAD} {USERS} "
    f"OPTIONAL {{ SERVICE :a {{ ?user :f ?f }} }} {TAIL}",
    f"SELECT ?e ?tool (?m * IF(BOUND(?tool), 2, 1) AS ?score) {HEAD} {USERS} "
    f"OPTIONAL {{ SERVICE :a {{ ?user :tool ?tool }} }} {TAIL}",
    f"SELECT ?e ?f ?name (?m + COALESCE(STRLEN(?name), ?f) AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f }} "
    f"OPTIONAL {{ SERVICE :b {{ ?user :name ?name }} FILTER(LANG(?name) = 'de') }} {TAIL}",
    # By different variables of the stream.
    f"SELECT ?e ?f ?g (?f + ?g + ?m AS ?score) {HEAD} "
    f"WINDOW :w {{ ?e :user ?user ; :city ?city ; :m ?m }} "
    f"SERVICE :a {{ ?user :f ?f }} SERVICE :b {{ ?city :f ?g }} {TAIL}",
    # On several variables.
    f"SELECT ?e ?f (?f + ?m AS ?score) {HEAD} "
    f"WINDOW :w {{ ?e :user ?user ; :city ?city ; :m ?m }} "
    f"SERVICE :a {{ ?user :f ?f ; :city ?city }} {TAIL}",
    f"SELECT ?e ?f (?f + ?m AS ?score) {HEAD} "
    f"WINDOW :w {{ ?e :user ?user ; :city ?city ; :lang ?lang ; :m ?m }} "
    f"SERVICE :a {{ ?x :city ?city ; :name ?lang ; :f ?f }} {TAIL}",
    # The second is asked by what the first has said.
    f"SELECT ?e ?tool ?f (?f - ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :tool ?tool }} SERVICE :b {{ ?tool :f ?f }} {TAIL}",
    f"SELECT ?e ?city ?f (?m + COALESCE(?f, 5) AS ?score) {HEAD} {USERS} "
    f"OPTIONAL {{ SERVICE :a {{ ?user :city ?city }} SERVICE :b {{ ?city :f ?f }} }} {TAIL}",
    # Terms of any type, and of the stream.
    f"SELECT ?e ?since (?m + YEAR(?since) + MONTH(?since) AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :since ?since ; :open ?open }} FILTER(?open) {TAIL}",
    f"SELECT ?e ?name (?m AS ?score) {HEAD} "
    f"WINDOW :w {{ ?e :user ?user ; :lang ?lang ; :m ?m }} "
    f"SERVICE :a {{ ?user :name ?name }} FILTER(LANG(?name) = ?lang || STR(?name) = ?lang) {TAIL}",
    f"SELECT ?e ?f ?label (?m + ?f AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f ; :name ?name }} BIND(UCASE(?name) AS ?label) {TAIL}",
    # Alternatives, and what is taken away.
    f"SELECT ?e ?f (?m + ?f AS ?score) {HEAD} {USERS} "
    f"{{ SERVICE :a {{ ?user :f ?f }} }} UNION {{ SERVICE :b {{ ?user :f ?f }} }} {TAIL}",
    f"SELECT ?e ?f ?g (2 * ?f + ?g + ?m AS ?score) {HEAD} "
    f"WINDOW :w {{ ?e :user ?user ; :city ?city ; :m ?m }} "
    f"SERVICE :a {{ ?user :f ?f }} SERVICE :b {{ ?city :f ?g }} {TAIL} WITH TIES",
    f"SELECT ?e ?f (?m + ?f AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f }} MINUS {{ SERVICE :b {{ ?user :open true }} }} {TAIL}",
    # Values of the remote's, or else of the query's.
    f"SELECT ?e ?f (?m + ?f AS ?score) {HEAD} {USERS} SERVICE :b {{ ?user :name ?name }} "
    f"{{ SERVICE :a {{ ?user :f ?f }} }} UNION {{ BIND(7 AS ?f) }} {TAIL}",
    f"BASE <http://b.org/> SELECT ?e ?i (?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :name ?name }} BIND(IRI(STR(?name)) AS ?i) {TAIL}",
    # What an OPTIONAL adds within braces does not depend on what stands around them.
    f"SELECT ?e ?tool ?f (?m AS ?score) {HEAD} "
    f"WINDOW :w {{ ?e :user ?user ; :city ?city ; :m ?m }} {{ SERVICE :a {{ ?user :tool ?tool }} "
    f"OPTIONAL {{ SERVICE :b {{ ?tool :f ?f ; :city ?city }} }} }} {TAIL}",
    # In the order of the remote's terms.
    f"SELECT ?e (?f AS ?score) {HEAD} {USERS} SERVICE :a {{ ?user :f ?f }} {TAIL}",
    # Aggregates of the stream.
    f"SELECT ?user ?n ?f (?n * ?f + STRLEN(?name) AS ?score) {HEAD} "
    f"{{ SELECT ?user (COUNT(*) AS ?n) WHERE {{ {USERS} }} GROUP BY ?user }} "
    f"SERVICE :a {{ ?user :f ?f }} SERVICE :b {{ ?user :name ?name }} {TAIL}",
]

ORDER = "ORDER BY $d(?score) LIMIT $k"
CITIES = "SERVICE :a { ?user :city ?city }"
GROUPED = [
    # Groups of the join: by what one remote says, by the stream's too, by all, by what is computed.
    f"SELECT ?city (SUM(?m) AS ?score) {HEAD} {USERS} {CITIES} }} GROUP BY ?city {ORDER}",
    f"SELECT ?tool (COUNT(*) AS ?score) (MAX(?m) AS ?most) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :tool ?tool ; :f ?f }} FILTER(?f > 4) }} "
    f"GROUP BY ?tool HAVING(MIN(?m) < 7) {ORDER}",
    f"SELECT ?f (SUM(?m * ?m) - COUNT(*) AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f }} FILTER(?m > 1) }} GROUP BY ?f {ORDER}",
    f"SELECT ?lang ?city (SUM(?m) AS ?score) {HEAD} "
    f"WINDOW :w {{ ?e :user ?user ; :lang ?lang ; :m ?m }} {CITIES} }} "
    f"GROUP BY ?lang ?city {ORDER}",
    f"SELECT (SUM(?m) AS ?score) (COUNT(*) AS ?n) {HEAD} {USERS} {CITIES} }} {ORDER}",
    f"SELECT ?label (SUM(?m) AS ?score) {HEAD} {USERS} SERVICE :a {{ ?user :name ?name }} }} "
    f"GROUP BY (UCASE(?name) AS ?label) {ORDER}",
    f"SELECT ?city (SUM(?m) AS ?score) {HEAD} {USERS} OPTIONAL {{ {CITIES} }} }} "
    f"GROUP BY ?city {ORDER}",
    f"SELECT ?f (SUM(?m) AS ?score) {HEAD} {USERS} {CITIES} SERVICE :b {{ ?city :f ?f }} }} "
    f"GROUP BY ?f {ORDER}",
    # Several keys, joined on one of them.
    f"SELECT ?user ?lang ?f (?n * ?f AS ?score) {HEAD} "
    f"{{ SELECT ?user ?lang (SUM(?m) AS ?n) WHERE "
    f"{{ WINDOW :w {{ ?e :user ?user ; :lang ?lang ; :m ?m }} }} GROUP BY ?user ?lang }} "
    f"SERVICE :a {{ ?user :f ?f }} {TAIL}",
]

worlds = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    query=st.sampled_from(SEVERAL + JOINED + GROUPED),
    events=st.integers(0, 80),
    width=st.integers(2, 20),
    slide=st.integers(1, 8),
    k=st.integers(1, 5),
    changes=st.sampled_from([0, 0.3, 2]),
    arrivals=st.sampled_from(["distinct", "latest"]),
    load=st.booleans(),
    descending=st.booleans(),
    counts=st.booleans(),
    more=st.sampled_from(["", "", "capacity = 2"]),
)


def run(shape: Shape) -> list[Status]:
    world = World(shape)
    assert world.is_incremental, world.bound.reason  # type: ignore[union-attr]
    statuses = []
    for answer in world.answers():
        world.judge(answer)
        statuses.append(answer.status)
    return statuses


@settings(max_examples=40)
@given(worlds)
def test_generous_budgets_give_exact_answers(shape: Shape) -> None:
    assert all(status is Status.EXACT for status in run(replace(shape, n=1000)))


@settings(max_examples=60)
@given(
    worlds,
    st.sampled_from([0, 1, 3]),
    st.sampled_from(["", "AT-TSM", "AT-BSM", "WSJ-LRU", "WSJ-WBM", "ALL-RND"]),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
)
def test_tight_budgets_and_faults_are_said(
    shape: Shape, items: int, policy: str, refill: bool, failures: float
) -> None:
    run(replace(shape, items=items, policy=policy, refill=refill, failures=failures))


@settings(max_examples=40)
@given(worlds, st.integers(0, 3), st.sampled_from([6, 20]))
def test_what_becomes_known_is_an_arrival(shape: Shape, n: int, users: int) -> None:
    """Nothing changes at the remotes, so no candidate that was dropped can have become better."""
    shape = replace(shape, n=n, users=users, changes=0, arrivals="distinct", more="")
    assert Status.APPROXIMATE not in run(shape)


CHAINED = next(each for each in JOINED if "SERVICE :b { ?tool :f ?f }" in each)


@settings(max_examples=60)
@given(
    worlds,
    st.sampled_from(SEVERAL[:4] + JOINED),
    st.sampled_from([2, 4, 1000]),
    st.sampled_from([1, 2]),
)
@example(Shape(230, "", 80, slide=3, k=2), CHAINED, 4, 2)
def test_what_is_known_again_may_have_changed(
    shape: Shape, query: str, items: int, capacity: int
) -> None:
    """A replica forgets keys whose candidates were dropped, and knows them again."""
    more = f"capacity = {capacity}"
    run(replace(shape, query=query, items=items, n=0, arrivals="distinct", more=more))


ORDERED = [
    "SERVICE :a { ?user :name ?key }",
    "SERVICE :a { ?user :since ?key }",
    "SERVICE :a { ?user :f ?f } OPTIONAL { SERVICE :b { ?user :tool ?key } }",
    "{ SERVICE :a { ?user :f ?key } } UNION { SERVICE :b { ?user :tool ?key } }",
]


@settings(max_examples=20)
@given(worlds, st.sampled_from(ORDERED), st.sampled_from([1, 1000]))
def test_results_are_in_the_order_of_the_remote_s_terms(
    shape: Shape, services: str, items: int
) -> None:
    text = f"SELECT ?e ?key {HEAD} {USERS} {services} }} ORDER BY $d(?key) LIMIT $k"
    world = World(replace(shape, query=text, n=1000, items=items))
    assert world.is_incremental, world.bound.reason  # type: ignore[union-attr]
    for answer in world.answers():
        world.judge_order(answer)
        assert items == 1 or answer.status is Status.EXACT


def test_replicas_of_limited_capacity_hold_what_open_windows_need() -> None:
    # Aggregates give up keys of closed windows many at a time.
    for query in [each for each in JOINED if "COUNT(*)" not in each]:
        shape = Shape(
            7, query, events=300, users=150, width=4, slide=2, n=1000, more="capacity = 5"
        )
        world = World(shape)
        most = 0
        for answer in world.answers():
            world.judge(answer)
            assert answer.status is Status.EXACT
            keeper = world.keeper
            parts = keeper.maintainers if isinstance(keeper, JoinedReplicas) else ()
            held = [keeper.store.held, *(each.store.held for each in parts)]
            most = max(most, *held)
        assert most < 60, query


@settings(max_examples=25)
@given(worlds, st.sampled_from([1, 3, 1000]), st.sampled_from([0.0, 0.3]), st.integers(0, 99))
def test_a_restart_changes_nothing(
    shape: Shape, items: int, failures: float, restarts: int
) -> None:
    shape = replace(shape, items=items, failures=failures)
    lines = [
        [json_line(answer.canonical()) for answer in World(shape).answers(chance)]
        for chance in (None, random.Random(restarts))
    ]
    assert lines[0] == lines[1]
