"""Scores of what may be unbound or no number, with and without a remote, judged by an engine."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.answer.answer import Status
from acquatop.answer.sinks.json_line import json_line
from tests.support.queries.remote_shapes import Shape, World

HEAD = "FROM NAMED WINDOW :w ON :stream [RANGE $w] WHERE {"
TAIL = "} ORDER BY $d(?score) LIMIT $k"
SOME = (
    "WINDOW :w { ?e :user ?user OPTIONAL { ?e :m ?m FILTER(?m > 4) } "
    "OPTIONAL { ?e :x ?x FILTER(?x < 2) } OPTIONAL { ?e :lang ?lang FILTER(?lang = 'de') } }"
)
PEOPLE = "SERVICE :a { ?user :f ?f ; :name ?name }"

SCORES = [
    # Beside a remote, which may be optional.
    f"SELECT ?e ?m ?f (?m + ?f AS ?score) {HEAD} {SOME} {PEOPLE} {TAIL}",
    f"SELECT ?e ?m ?f (COALESCE(?m, 2) + ?f AS ?score) {HEAD} {SOME} {PEOPLE} {TAIL}",
    f"SELECT ?e (COALESCE(?m, 1) * 2 + COALESCE(?f, 3) AS ?score) {HEAD} {SOME} "
    f"OPTIONAL {{ SERVICE :a {{ ?user :f ?f }} }} {TAIL}",
    f"SELECT ?e ?x ?f (COALESCE(?x, ?f) - IF(BOUND(?lang), 1, 0.5) AS ?score) {HEAD} {SOME} "
    f"{PEOPLE} {TAIL}",
    f"SELECT ?e ?f (?f AS ?score) {HEAD} {SOME} {PEOPLE} FILTER(!BOUND(?m) || ?m < ?f) {TAIL}",
    f"SELECT ?e ?f ?name (?f + COALESCE(?m, 0) AS ?score) {HEAD} {SOME} {PEOPLE} "
    f"FILTER(COALESCE(?lang, 'en') = LANG(?name)) {TAIL}",
    # Of the stream alone: doubles, texts, predicates that are variables.
    f"SELECT ?e ?x (COALESCE(?x, 0.25) AS ?score) {HEAD} {SOME} {TAIL}",
    f"SELECT ?e ?x (IF(BOUND(?x), ?x * 2, COALESCE(?m, 3)) AS ?score) {HEAD} {SOME} {TAIL}",
    f"SELECT ?e (COALESCE(?x + ?m, ?m, ?x, -1) * 2 AS ?score) {HEAD} {SOME} {TAIL}",
    # Of decimals, which no doubles hold.
    f"SELECT ?e ?d (?d * ?m - 0.3 AS ?score) {HEAD} WINDOW :w {{ ?e :d ?d ; :m ?m }} {TAIL}",
    f"SELECT ?e (?d * ?d + ABS(?d) AS ?score) {HEAD} WINDOW :w {{ ?e :d ?d }} "
    f"FILTER(?d * 2 > -1.5 && ?d != 0.07) {TAIL}",
    f"SELECT ?e ?f (COALESCE(?d, 1.5) * ?f AS ?score) {HEAD} "
    f"WINDOW :w {{ ?e :user ?user OPTIONAL {{ ?e :d ?d FILTER(?d < 3.25) }} }} {PEOPLE} {TAIL}",
    f"SELECT ?e ?p (?o + 1 AS ?score) {HEAD} WINDOW :w {{ ?e ?p ?o }} {TAIL}",
    f"SELECT ?e ?p (?o + ?f AS ?score) {HEAD} WINDOW :w {{ ?e :user ?user ; ?p ?o }} {PEOPLE} "
    f"{TAIL}",
]

KEYS = [
    "WINDOW :w { ?e :lang ?key }",
    "WINDOW :w { ?e ?p ?key }",
    "WINDOW :w { ?e :user ?key FILTER(?key != :nobody) }",
    "WINDOW :w { ?e :user ?user OPTIONAL { ?e :m ?key FILTER(?key > 4) } }",
    "WINDOW :w { ?e :user ?user OPTIONAL { ?e :x ?key FILTER(?key > 1) } }",
    "WINDOW :w { { ?e :m ?key } UNION { ?e :lang ?key } }",
    "WINDOW :w { ?e :user ?user ; :lang ?key } SERVICE :a { ?user :f ?f }",
]


def worlds(queries: list[str]) -> st.SearchStrategy[Shape]:
    return st.builds(
        Shape,
        seed=st.integers(0, 2**32),
        query=st.sampled_from(queries),
        events=st.integers(0, 60),
        width=st.integers(2, 20),
        slide=st.integers(1, 8),
        k=st.integers(1, 5),
        arrivals=st.sampled_from(["distinct", "latest", "all"]),
        load=st.booleans(),
        descending=st.booleans(),
        counts=st.booleans(),
        n=st.just(1000),
    )


@settings(max_examples=120)
@given(worlds(SCORES), st.sampled_from([1, 1000, 1000]))
def test_scores_of_any_terms(shape: Shape, items: int) -> None:
    world = World(replace(shape, items=items))
    assert world.is_incremental, world.bound.reason  # type: ignore[union-attr]
    for answer in world.answers():
        world.judge(answer)
        assert items == 1 or answer.status is Status.EXACT


@settings(max_examples=60)
@given(worlds(KEYS))
def test_results_are_in_the_order_of_the_stream_s_terms(shape: Shape) -> None:
    text = f"SELECT ?e ?key {HEAD} {shape.query} }} ORDER BY $d(?key) LIMIT $k"
    world = World(replace(shape, query=text))
    assert world.is_incremental, world.bound.reason  # type: ignore[union-attr]
    for answer in world.answers():
        world.judge_order(answer)
        assert answer.status is Status.EXACT


@settings(max_examples=20)
@given(worlds(SCORES), st.sampled_from([1, 1000]), st.integers(0, 99))
def test_a_restart_changes_nothing(shape: Shape, items: int, restarts: int) -> None:
    shape = replace(shape, items=items, counts=False)
    lines = [
        [json_line(answer.canonical()) for answer in World(shape).answers(chance)]
        for chance in (None, random.Random(restarts))
    ]
    assert lines[0] == lines[1]
