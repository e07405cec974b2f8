"""Evaluation by the SPARQL engine: the same content gives the same result."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquatop.errors import EvaluationError
from acquatop.query.sparql.engine import EngineFunction, LocalEngine
from acquatop.query.sparql.evaluate import Evaluator, SparqlResult
from acquatop.query.sparql.functions import called_functions
from replica.terms import blank_iri, blank_label
from rspql import ast
from rspql.parser import parse
from rspql.plan import RemotePart
from rspql.scoring import DEFAULT_FUNCTIONS, scoring_function

PREFIX = "PREFIX : <urn:> PREFIX math: <http://www.w3.org/2005/xpath-functions/math#> "
WINDOW = ox.NamedNode("urn:w")


def stored(
    turtle: str, seed: int = 0, functions: Mapping[str, EngineFunction] | None = None
) -> LocalEngine:
    """Return an engine with a window's triples, put in in the order of chance."""
    triples = list(ox.parse(f"@prefix : <urn:> . {turtle}", ox.RdfFormat.TURTLE))
    random.Random(seed).shuffle(triples)
    engine = LocalEngine(functions=functions)
    for triple in triples:
        engine.store.add(ox.Quad(triple.subject, triple.predicate, triple.object, WINDOW))
    return engine


def evaluate(query: str, store: LocalEngine) -> SparqlResult:
    return Evaluator(parse(PREFIX + query), store, windows=["urn:w"]).evaluate({}, 0)


def cells(result: SparqlResult) -> list[list[str]]:
    return [[str(term) for term in row.values()] for row in result.rows]


MIXED = (
    ':k :p 1 , 1.0 , 1e0 , "1" , "a"@en , "a"@fr , "a" , true , :k , :l . :l :p 1 , "b" . :m :p 2 .'
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { GRAPH :w { ?s :p ?o } }",
        "SELECT ?o { GRAPH :w { ?s :p ?o } } ORDER BY DESC(?s) LIMIT 7",
        "SELECT DISTINCT ?o { GRAPH :w { ?s :p ?o } } OFFSET 2",
        "SELECT ?s (COUNT(*) AS ?n) { GRAPH :w { ?s :p ?o } } GROUP BY ?s LIMIT 2",
        "SELECT ?o { { SELECT ?o { GRAPH :w { ?s :p ?o } } LIMIT 3 } }",
        "SELECT (COUNT(*) AS ?n) { { SELECT * { GRAPH :w { ?s :p ?o } } LIMIT 3 } "
        "FILTER(isIRI(?s)) FILTER(?s = :k) }",
        "CONSTRUCT { ?s :has [ :value ?o ] } { GRAPH :w { ?s :p ?o } } LIMIT 5",
        "CONSTRUCT { ?o :of ?s . ?s ?o ?s } { GRAPH :w { ?s :p ?o } }",
        "DESCRIBE ?o { GRAPH :w { ?s :p ?o } } LIMIT 8",
    ],
)
@given(st.integers(0, 2**32))
def test_the_order_in_which_triples_came_changes_nothing(query: str, seed: int) -> None:
    assert evaluate(query, stored(MIXED, seed)) == evaluate(query, stored(MIXED))


def test_limit_without_order_takes_the_least_terms() -> None:
    assert cells(evaluate("SELECT ?o { GRAPH :w { :k :p ?o } } LIMIT 2", stored(MIXED))) == [
        ["<urn:k>"],
        ["<urn:l>"],
    ]


def test_blank_nodes_that_the_engine_makes_up_are_named_in_order() -> None:
    result = evaluate(
        "SELECT ?s (BNODE() AS ?b) { GRAPH :w { ?s :p ?o } } ORDER BY ?s LIMIT 2",
        stored(":k :p 1 . :l :p 1 ."),
    )
    assert cells(result) == [["<urn:k>", "_:b0"], ["<urn:l>", "_:b1"]]


def test_a_template_makes_a_blank_node_for_each_solution_and_skips_what_is_no_triple() -> None:
    query = """CONSTRUCT { [] :is ?o ; :of ?s . ?o :x ?s . ?s ?o :y . ?s :z ?unbound }
               { GRAPH :w { ?s :p ?o } }"""
    triples = evaluate(query, stored(':k :p :l , "text" . :l :p :l .')).triples
    assert sum(" <urn:is> " in line for line in triples) == 3
    assert len({line.split()[0] for line in triples if line.startswith("_:")}) == 3
    assert "<urn:l> <urn:x> <urn:k> ." in triples
    assert "<urn:k> <urn:l> <urn:y> ." in triples
    assert not any(line.startswith('"') or "urn:z" in line for line in triples)
    assert (
        "_:"
        not in evaluate(
            "CONSTRUCT { :a :b :c } { GRAPH :w { ?s :p ?o } }", stored(":k :p 1 .")
        ).triples[0]
    )


def test_construct_may_group() -> None:
    query = (
        "CONSTRUCT { ?s :is ?o , 1 } { GRAPH :w { ?s :p ?o } } GROUP BY ?s HAVING (COUNT(*) > 5)"
    )
    assert [line.split()[0] for line in evaluate(query, stored(MIXED)).triples] == ["<urn:k>"]


@pytest.mark.parametrize(
    "query",
    [
        "{}",
        "{} ORDER BY DESC(?m + 1) LIMIT 2 WITH TIES",
        "{} ORDER BY DESC(?n) LIMIT 1 PER ?s WITH TIES",
        "SELECT * {{ {{ {} }} }}",
    ],
)
def test_columns_of_groups_may_name_each_other(query: str) -> None:
    groups = (
        "SELECT ?s (SUM(?o) AS ?n) (?n * 2 AS ?m) (?m + ?n AS ?k) "
        "{ GRAPH :w { ?s :p ?o } } GROUP BY ?s"
    )
    rows = evaluate(query.format(groups), stored(":a :p 1 , 2 . :b :p 5 .")).rows
    found = {tuple(row[name].value for name in "nmk") for row in rows}
    assert found == {("3", "6", "9"), ("5", "10", "15")}


def test_names_that_double_are_not_written_out_without_end() -> None:
    columns = " ".join(f"(?c{at} + ?c{at} AS ?c{at + 1})" for at in range(40))
    query = f"SELECT (COUNT(*) AS ?c0) {columns} {{ GRAPH :w {{ ?s :p ?o }} }}"
    with pytest.raises(EvaluationError):
        evaluate(query, stored(":a :p 1 ."))


def test_describe_takes_iris_variables_or_all_and_follows_blank_nodes() -> None:
    store = stored(":k :p [ :q [ :r 1 ] ] ; :s :l . :l :p 2 .")
    assert len(evaluate("DESCRIBE :k", store).triples) == 4
    assert len(evaluate("DESCRIBE ?x :k { GRAPH :w { ?x :p 2 } }", store).triples) == 5
    assert len(evaluate("DESCRIBE * { GRAPH :w { ?x :p 2 } }", store).triples) == 1
    assert evaluate("DESCRIBE ?x { GRAPH :w { ?x :p 3 } }", store).triples == ()


def test_ask_says_whether_there_is_a_solution() -> None:
    assert evaluate("ASK { GRAPH :w { ?x :p 2 } }", stored(MIXED)).boolean is True
    assert evaluate("ASK { ?x :p 2 }", stored(MIXED)).boolean is False


def test_functions_of_one_s_own_are_called_by_their_iris() -> None:
    functions = DEFAULT_FUNCTIONS.with_function(
        "urn:twice", scoring_function(lambda x: 2 * x, (1,))
    )
    query = parse(
        PREFIX + "SELECT (:twice(?o) AS ?x) (math:sqrt(?o) AS ?y) { GRAPH :w { :k :p ?o } }"
    )
    engine = stored(':k :p 9 , "nine" .', functions=called_functions(query, functions))
    evaluator = Evaluator(query, engine, windows=["urn:w"])
    rows = evaluator.evaluate({}, 0).rows
    assert [{name: term.value for name, term in row.items()} for row in rows] == [
        {},
        {"x": "18", "y": "3"},
    ]


def test_keys_are_sorted_terms_without_blank_nodes() -> None:
    evaluator = Evaluator(
        parse("ASK {}"), stored(':k :p [] , :l , "a\\n\\"b\\""@en , 1 , 1 .'), windows=["urn:w"]
    )
    source = parse(PREFIX + "ASK { GRAPH :w { ?s :p ?o } }").where
    assert source is not None
    integer = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert evaluator.keys("o", source, {}, 0) == sorted([integer, '"a\\n\\"b\\""@en', "<urn:l>"])


def test_the_keys_of_a_cut_sub_select_are_those_that_the_query_uses() -> None:
    store = stored(" ".join(f":{name} :p 1 ." for name in "zyxwvutsrqponmlkjihgfedcba"))
    query = PREFIX + "SELECT ?s { { SELECT ?s { GRAPH :w { ?s :p ?o } } ORDER BY ?o LIMIT 2 } }"
    where = parse(query).where
    assert where is not None
    used = [
        f"<{term}>"
        for row in evaluate(query.removeprefix(PREFIX), store).rows
        for term in (row["s"].value,)
    ]
    assert Evaluator(parse("ASK {}"), store, windows=["urn:w"]).keys("s", where, {}, 0) == sorted(
        used
    )


@pytest.mark.parametrize(
    "inner", ["{ SELECT ?s { ?s :p ?o } LIMIT 2 }", "SERVICE :other { ?s :p ?o }"]
)
def test_what_a_remote_answers_is_not_touched(inner: str) -> None:
    query = parse(PREFIX + f"SELECT * {{ SERVICE :r {{ {inner} }} }}")
    assert query.where is not None
    (pattern,) = query.where.elements
    assert isinstance(pattern, ast.ServicePattern)
    part = RemotePart(pattern, ast.Iri("urn:r"), ("s",), None, None)
    evaluator = Evaluator(query, LocalEngine(), remotes=[part])
    known = ast.Values((ast.Variable("s"),), ((ast.Iri("urn:k"),),))
    assert cells(evaluator.evaluate({pattern: known}, 0)) == [["<urn:k>"]]


def test_a_template_shows_a_remote_s_blank_nodes_as_such() -> None:
    iri = blank_iri("<urn:k>", "b0")
    query = (
        f"CONSTRUCT {{ ?s :is ?b . ?s ?b ?s }} {{ GRAPH :w {{ ?s :p ?o }} BIND(<{iri}> AS ?b) }}"
    )
    (triple,) = evaluate(query, stored(":k :p 1 .")).triples
    assert triple == f"<urn:k> <urn:is> _:{blank_label(iri)} ."


def test_a_service_that_nobody_answers_is_never_asked_for() -> None:
    query = parse(PREFIX + "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s :p ?o } }")
    with pytest.raises(KeyError):
        Evaluator(query, LocalEngine())


def test_an_error_is_named() -> None:
    with pytest.raises(EvaluationError, match="custom function <urn:nobody> is not supported"):
        evaluate("SELECT (:nobody(?o) AS ?x) { ?s :p ?o }", LocalEngine())
