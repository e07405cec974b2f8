"""Queries that join a stream with static graphs, with remotes beside, judged by a SPARQL engine."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.answer.answer import Status
from acquatop.answer.sinks.json_line import json_line
from tests.support.queries.remote_shapes import Shape, World

HEAD = "FROM NAMED WINDOW :w ON :stream [RANGE $w] FROM :static WHERE {"
TAIL = "} ORDER BY $d(?score) LIMIT $k"
USERS = "WINDOW :w { ?e :user ?user ; :m ?m }"
ORDER = "ORDER BY $d(?score) LIMIT $k"
COUNTED = f"{{ SELECT ?user (COUNT(*) AS ?n) WHERE {{ {USERS} }} GROUP BY ?user }}"

ALONE = [
    # As a filter.
    f"SELECT ?e (?m AS ?score) {HEAD} {USERS} ?user :city :c1 {TAIL}",
    f"SELECT ?e (?m AS ?score) {HEAD} ?user :open true . {USERS} {TAIL}",
    f"SELECT ?e (?m AS ?score) {HEAD} {USERS} FILTER NOT EXISTS {{ ?user :city :c1 }} {TAIL}",
    f"SELECT ?e (?m AS ?score) {HEAD} {USERS} "
    f"FILTER(?m > 2 && EXISTS {{ ?user :f ?f FILTER(?f > ?m) }}) {TAIL}",
    f"SELECT ?e (?m AS ?score) {HEAD} {USERS} MINUS {{ ?user :open true }} {TAIL}",
    # With values in the score, and other columns.
    f"SELECT ?e ?f (2 * ?m + ?f AS ?score) {HEAD} {USERS} ?user :f ?f {TAIL}",
    f"SELECT ?e ?f ?name (?f - ?m AS ?score) {HEAD} {USERS} ?user :f ?f ; :name ?name "
    f"FILTER(LANG(?name) = 'de' || ?f > 9) {TAIL}",
    f"SELECT ?e (?m + COALESCE(?f, 3) AS ?score) {HEAD} {USERS} OPTIONAL {{ ?user :f ?f }} {TAIL}",
    f"SELECT ?e ?f (?f AS ?score) {HEAD} {USERS} ?user :f ?f {TAIL}",
    f"SELECT ?e ?f (?f + ?m AS ?score) {HEAD} {USERS} "
    f"{{ ?user :f ?f }} UNION {{ ?user :tool/:f ?f }} {TAIL}",
    f"SELECT ?e (?m * IF(EXISTS {{ ?user :tool ?t }}, 2, 1) AS ?score) {HEAD} {USERS} {TAIL}",
    f"SELECT ?e ?p (?m AS ?score) {HEAD} {USERS} ?user ?p :c1 {TAIL}",
    # On several variables, by several patterns.
    f"SELECT ?e ?f (?f + ?m AS ?score) {HEAD} WINDOW :w {{ ?e :user ?user ; :city ?city ; :m ?m }} "
    f"?user :f ?f ; :city ?city {TAIL}",
    f"SELECT ?e ?f ?g (?f + ?g + ?m AS ?score) {HEAD} "
    f"WINDOW :w {{ ?e :user ?user ; :city ?city ; :m ?m }} ?user :f ?f . ?city :f ?g {TAIL}",
    # Of named graphs.
    f"SELECT ?e ?f (?f + ?m AS ?score) {HEAD.replace('FROM :static', 'FROM NAMED :static')} "
    f"{USERS} GRAPH :static {{ ?user :f ?f }} {TAIL}",
    # Of each group, with ties, distinct.
    f"SELECT ?e ?city (?m AS ?score) {HEAD} {USERS} ?user :city ?city {TAIL} PER ?city WITH TIES",
    f"SELECT DISTINCT ?f (?f - ?m AS ?score) {HEAD} {USERS} ?user :f ?f {TAIL}",
    # Aggregates, and groups of the join.
    f"SELECT ?user ?f (?n * ?f AS ?score) {HEAD} {COUNTED} ?user :f ?f {TAIL}",
    f"SELECT ?user ?n (?n AS ?score) {HEAD} {COUNTED} FILTER EXISTS {{ ?user :open true }} {TAIL}",
    f"SELECT ?city (SUM(?m) AS ?score) {HEAD} {USERS} ?user :city ?city }} GROUP BY ?city {ORDER}",
    f"SELECT (COUNT(*) AS ?score) {HEAD} {USERS} ?user :f ?f FILTER(?f > 5) }} {ORDER}",
]

BESIDE = [
    f"SELECT ?e ?f (?f + ?m AS ?score) {HEAD} {USERS} SERVICE :a {{ ?user :f ?f }} "
    f"?user :city :c1 {TAIL}",
    f"SELECT ?e ?f ?g (?f + ?g AS ?score) {HEAD} {USERS} SERVICE :a {{ ?user :f ?f }} "
    f"?user :f ?g {TAIL}",
    f"SELECT ?e ?city ?f (?f + ?m AS ?score) {HEAD} {USERS} SERVICE :a {{ ?user :city ?city }} "
    f"?city :f ?f {TAIL}",
    f"SELECT ?e ?f (?m + COALESCE(?f, 2) AS ?score) {HEAD} {USERS} "
    f"OPTIONAL {{ SERVICE :a {{ ?user :f ?f }} ?user :open true }} {TAIL}",
    f"SELECT ?e ?f (?m + ?f AS ?score) {HEAD} {USERS} SERVICE :a {{ ?user :f ?f ; :city ?city }} "
    f"FILTER NOT EXISTS {{ ?user :city ?city }} {TAIL}",
    f"SELECT ?user ?f (?n * ?f AS ?score) {HEAD} {COUNTED} SERVICE :a {{ ?user :f ?f }} "
    f"MINUS {{ ?user :open true }} {TAIL}",
    f"SELECT ?f (SUM(?m) AS ?score) {HEAD} {USERS} SERVICE :a {{ ?user :city ?city }} "
    f"?city :f ?f }} GROUP BY ?f {ORDER}",
]


def worlds(queries: list[str]) -> st.SearchStrategy[Shape]:
    return st.builds(
        Shape,
        seed=st.integers(0, 2**32),
        query=st.sampled_from(queries),
        events=st.integers(0, 80),
        width=st.integers(2, 20),
        slide=st.integers(1, 8),
        k=st.integers(1, 5),
        arrivals=st.sampled_from(["distinct", "latest", "all"]),
        load=st.booleans(),
        descending=st.booleans(),
        counts=st.booleans(),
        policy=st.sampled_from(["", "AT-TSM", "WSJ-LRU"]),
        refill=st.booleans(),
        n=st.just(1000),
    )


def run(shape: Shape) -> list[Status]:
    world = World(shape)
    assert world.is_incremental, world.bound.reason  # type: ignore[union-attr]
    statuses = []
    for answer in world.answers():
        world.judge(answer)
        statuses.append(answer.status)
    return statuses


@settings(max_examples=100)
@given(worlds(ALONE + BESIDE))
def test_answers_are_those_of_the_graph(shape: Shape) -> None:
    assert all(status is Status.EXACT for status in run(shape))


@settings(max_examples=40)
@given(worlds(BESIDE), st.sampled_from([0, 1, 3]), st.sampled_from([0.0, 0.3]))
def test_tight_budgets_and_faults_of_remotes_beside_are_said(
    shape: Shape, items: int, failures: float
) -> None:
    run(replace(shape, items=items, n=3, failures=failures))


@settings(max_examples=40)
@given(worlds(ALONE + BESIDE), st.sampled_from([1, 1000]), st.integers(0, 99))
def test_a_restart_changes_nothing(shape: Shape, items: int, restarts: int) -> None:
    shape = replace(shape, items=items)
    lines = [
        [json_line(answer.canonical()) for answer in World(shape).answers(chance)]
        for chance in (None, random.Random(restarts))
    ]
    assert lines[0] == lines[1]


@settings(max_examples=60)
@given(worlds(ALONE + BESIDE), st.integers(0, 9))
def test_a_file_that_changed_while_nothing_ran_counts_from_the_restart_on(
    shape: Shape, before: int
) -> None:
    world = World(replace(shape, width=8, slide=4, events=120, counts=False))
    answers = world.answers()
    for _ in range(before):
        next(answers)
    world.write_graph()
    world.restart()
    statuses = []
    for answer in answers:
        world.judge(answer)
        statuses.append(answer.status)
    assert all(status is Status.EXACT for status in statuses[3:])


def test_more_solutions_than_wait_without_a_partner_in_the_graph_leave_answers_exact() -> None:
    query = f"SELECT ?e (?m AS ?score) {HEAD} {USERS} ?user :city :c1 {TAIL}"
    shape = Shape(5, query, events=26_000, users=20_000, width=20, slide=20)
    assert all(status is Status.EXACT for status in run(shape))
