"""Classification of queries, and their plans."""

from __future__ import annotations

import math

import pyoxigraph
import pytest

from rspql import ast
from rspql.compiler import analyse, compile_query
from rspql.plan import PLACE, Finish, TopKPlan, WindowedPlan
from rspql.printer import expression_text, inside_text, query_text
from rspql.scoring import DEFAULT_FUNCTIONS, Direction, Interval, scoring_function
from tests.support.rspql.plans import SERVICE, WINDOW, alone, query, topk


def asked(plan: TopKPlan) -> list[str]:
    """Return what a plan asks of its remote, line by line."""
    assert plan.service is not None
    return inside_text(plan.service.group).split("\n")


def test_the_plan_of_a_top_k_query_is_the_papers_algebra() -> None:
    plan = topk(query())
    assert plan.stream_pattern == (
        ast.TriplePattern(ast.Variable("u"), ast.Iri("urn:m"), ast.Variable("m")),
    )
    assert asked(plan) == ["?u <urn:f> ?f ."]
    assert (plan.join_variables, plan.k, plan.offset, plan.output) == (("u",), 3, 0, "RSTREAM")
    assert expression_text(plan.score.expression) == "?m + ?f"
    assert (plan.score.variable, plan.score.descending) == ("score", True)
    assert (plan.score.stream_variables, plan.score.remote_variables) == (("m",), ("f",))
    assert plan.projection == ("u", "score")


@pytest.mark.parametrize(
    ("text", "expression", "variable"),
    [
        (query(select="?u", order="ORDER BY DESC(?m + ?f)"), "?m + ?f", None),
        (
            query(f"{WINDOW} {SERVICE} BIND(?m + ?f AS ?score)", select="?u ?score"),
            "?m + ?f",
            "score",
        ),
        (
            query(f"{WINDOW} {SERVICE} BIND(2 * ?m AS ?d)", select="?u (?d + ?f AS ?score)"),
            "2 * ?m + ?f",
            "score",
        ),
        (
            query(select="(norm(?m, 0, 9) AS ?n) (?n - ?f AS ?score)", order="ORDER BY ?score"),
            "norm(?m, 0, 9) - ?f",
            "score",
        ),
        (query(select="?u", order="ORDER BY ?m"), "?m", None),
        (query(select="*", order="ORDER BY DESC(least(?m, ?f))"), "least(?m, ?f)", None),
    ],
)
def test_where_a_score_may_stand(text: str, expression: str, variable: str | None) -> None:
    analysis = analyse(text)
    assert analysis.ok
    assert analysis.is_topk
    plan = topk(text)
    assert (expression_text(plan.score.expression), plan.score.variable) == (expression, variable)


def test_more_keys_and_distinct_rows_finish_an_answer() -> None:
    assert topk(query()).finish is None
    assert topk(query(select="REDUCED ?u (?m + ?f AS ?score)")).finish is None
    assert topk(query(select="DISTINCT ?u ?m ?f (?m + ?f AS ?score)")).finish is None
    assert topk(query(select="DISTINCT ?u (?m + ?f AS ?score)")).finish == Finish(is_distinct=True)
    keys = topk(query(order="ORDER BY DESC(?score) DESC(?m) STR(?u)")).finish
    assert keys is not None
    assert [each.descending for each in keys.keys] == [True, False]


def test_columns_besides_the_score_are_computed_of_the_results() -> None:
    binds = "BIND(?m + 1 AS ?more) BIND(?more * 2 AS ?hidden) BIND(?hidden + ?f AS ?unused)"
    plan = topk(
        query(
            f"{WINDOW} {SERVICE} {binds}",
            select="?u (UCASE(STR(?u)) AS ?name) (?m + ?f AS ?score) (?score / ?hidden AS ?share)",
        )
    )
    assert [each.variable.name for each in plan.computed] == ["more", "hidden", "name", "share"]
    assert plan.projection == ("u", "name", "score", "share")


def test_filters_go_to_where_they_can_be_decided() -> None:
    plan = topk(query(f"{WINDOW} {SERVICE} FILTER(?m > 1 && ?f > 2 && ?m < ?f) FILTER(?m != 5)"))
    assert [expression_text(each) for each in plan.stream_filters] == ["?m > 1", "?m != 5"]
    assert asked(plan) == ["?u <urn:f> ?f .", "FILTER (?f > 2)"]
    assert plan.score.condition is not None
    assert expression_text(plan.score.condition) == "?m < ?f"


def test_filters_within_the_parts_stay_there() -> None:
    plan = topk(
        query("WINDOW :w { ?u :m ?m FILTER(?m > 1) } SERVICE :p { ?u :f ?f FILTER(?f > 2) }")
    )
    assert [expression_text(each) for each in plan.stream_filters] == ["?m > 1"]
    assert "FILTER (?f > 2)" in asked(plan)


def test_braces_and_graph_are_other_spellings() -> None:
    assert topk(query(f"{{ GRAPH :w {{ ?u :m ?m }} }} {{ {SERVICE} }}")) == topk(query())


def test_an_offset_is_planned() -> None:
    assert topk(query(limit="LIMIT 3 OFFSET 2")).offset == 2


JOINED_HERE = [
    query(order="ORDER BY ?f", select="?u"),
    query(f"{WINDOW} BIND(2 * ?m + ?f AS ?score) {SERVICE}", select="?u ?score"),
    query(f"{WINDOW} OPTIONAL {{ {SERVICE} }}"),
    query("WINDOW :w { ?u :m ?m } SERVICE :p { ?u :f ?f ; :m ?m }"),
    query(f"{WINDOW} {SERVICE} SERVICE :q {{ ?u :g ?g }}"),
    query(select="?u (STRLEN(?m) + ?f AS ?score)"),
    query(f"{WINDOW} SERVICE :p {{ ?u :f ?f ; :g ?g }} FILTER(?m > 3 || ?f = ?g)"),
    query(f"{WINDOW} BIND(5 AS ?f) {SERVICE}"),
    query(f"{WINDOW} {SERVICE} FILTER(!BOUND(?zz))"),
    query(f"{WINDOW} {SERVICE} FILTER(sqrt(?f) > 2)"),
    query(select="?u (IF(BOUND(?f), ?m, 0) AS ?score)"),
    query(select="?u (IF(?f, ?m, 0) AS ?score)"),
    query(select="?u (IF(?f = ?m, ?m, 0) AS ?score)"),
    query(select="?u (COALESCE(?f, ?m) + 0 AS ?score)"),
    query(f"{WINDOW} {SERVICE} FILTER(?f != ?m)"),
    query(f"{WINDOW} {SERVICE} FILTER(!(?f = ?m))"),
    query(f"{WINDOW} {SERVICE} FILTER(?f NOT IN (?m, 3))"),
    query(f"{WINDOW} {SERVICE} FILTER(?f || ?m > 3)"),
    query(f"{WINDOW} {SERVICE} FILTER(COALESCE(?f = 4, ?m > 0))"),
]


@pytest.mark.parametrize("text", JOINED_HERE)
def test_what_columns_of_numbers_cannot_tell_is_joined_per_tuple(text: str) -> None:
    plan = topk(text)
    assert plan.join is not None
    assert plan.join_variables == plan.join.inputs
    assert plan.join.inputs[0] == "u"


@pytest.mark.parametrize(
    ("service", "records", "keys"),
    [
        ("?x :by ?u ; :at ?m ; :f ?f", [], ("u", "m")),
        ("?x :by ?u ; :at ?m ; :f ?f", ["urn:p"], ("u",)),
        ("?u :at ?m ; :f ?f", [], ("u",)),
    ],
)
def test_a_service_is_asked_by_a_subject_or_by_all_that_the_stream_gives(
    service: str, records: list[str], keys: tuple[str, ...]
) -> None:
    plan = analyse(query(f"{WINDOW} SERVICE :p {{ {service} }}"), records=records).plan
    assert isinstance(plan, TopKPlan)
    assert plan.join is not None
    assert [each.keys for each in plan.join.services] == [keys]


def test_a_service_is_asked_after_the_one_that_gives_its_keys() -> None:
    plan = topk(query(f"{WINDOW} SERVICE :q {{ ?c :f ?f }} SERVICE :p {{ ?u :city ?c }}"))
    assert plan.join is not None
    assert [(each.iri.value, each.keys, each.giver) for each in plan.join.services] == [
        ("urn:p", ("u",), None),
        ("urn:q", ("c",), 0),
    ]
    # What only an OPTIONAL binds may be unbound: then the other would have to be asked for all.
    maybe = "OPTIONAL { SERVICE :p { ?u :city ?c } } OPTIONAL { SERVICE :q { ?c :f ?f } }"
    analysis = analyse(query(f"{WINDOW} {maybe}"))
    assert analysis.reason is not None
    assert "shares no variable with what always binds one" in analysis.reason.message


@pytest.mark.parametrize(
    "pattern",
    [
        # What stands behind decides nothing about an OPTIONAL, nor what stands around its group.
        "OPTIONAL { SERVICE :q { ?c :f ?x } } SERVICE :p { ?u :city ?c }",
        "{ SERVICE :p { ?u :city ?c } OPTIONAL { SERVICE :q { ?m :f ?x } } }",
        "{ SERVICE :p { ?u :city ?c } MINUS { SERVICE :q { ?m :f ?x } } }",
    ],
)
def test_an_optional_service_is_asked_by_what_stands_before_it(pattern: str) -> None:
    analysis = analyse(query(f"{WINDOW} {pattern}", select="?u (?m AS ?score)"))
    assert analysis.reason is not None
    assert "shares no variable with what always binds one" in analysis.reason.message


NOT_INCREMENTAL = {
    "a key of ORDER BY may be very long": query(
        order='ORDER BY ?score REPLACE(STR(?u), "", STR(?u))'
    ),
    "it orders by RAND, which is another each time": query(order="ORDER BY ?score RAND()"),
    "a key of ORDER BY needs the whole window": query(
        order="ORDER BY ?score DESC(EXISTS { ?u :m 3 })"
    ),
    "the windows' patterns share no variable": query(
        f"{WINDOW} WINDOW :v {{ ?v :n ?n }} {SERVICE}",
        windows="FROM NAMED WINDOW :w ON :s [RANGE 9m] FROM NAMED WINDOW :v ON :t [RANGE 1m]",
    ),
    "it aggregates ?f, which a SERVICE says": query(select="?u (SUM(?f) AS ?score)").replace(
        "ORDER", "GROUP BY ?u ORDER"
    ),
    "there is more beside": query(f"{WINDOW} {SERVICE} MINUS {{ {WINDOW} }}"),
    "?fresh may be very long": query(
        select='?u (REPLACE(STR(?u), "", STR(?u)) AS ?fresh) (?m + ?f AS ?score)'
    ),
    "a text in a FILTER may be very long": query(
        f'WINDOW :w {{ ?u :m ?m FILTER(STRLEN(REPLACE(STR(?u), "", STR(?u))) > 3) }} {SERVICE}'
    ),
    "?t5 may be very long": query(
        "WINDOW :w { ?u :m ?m BIND(STR(?u) AS ?t0) "
        + " ".join(f"BIND(CONCAT(?t{at}, ?t{at}) AS ?t{at + 1})" for at in range(6))
        + f" }} {SERVICE}"
    ),
    "?name may be very long": query(
        f'{WINDOW} {SERVICE} BIND(STRLEN(REPLACE(STR(?u), "", STR(?f))) AS ?name)',
        select="?u ?name (?m AS ?score)",
    ),
    "RAND is another with each evaluation": query(select="?u (RAND() AS ?r) (?m + ?f AS ?score)"),
    "?known needs the whole window": query(
        select="?u (EXISTS { ?u :m 3 } AS ?known) (?m + ?f AS ?score)"
    ),
    "a path that may be empty begins anywhere": query(
        f"WINDOW :w {{ ?u :m ?m . ?x :a* ?y }} {SERVICE}"
    ),
    "the WINDOW and SERVICE patterns share no variable": query(
        f"{WINDOW} SERVICE :p {{ ?v :f ?f }}"
    ),
    "the SERVICE does not always bind ?u": query(
        f"{WINDOW} SERVICE :p {{ ?x :f ?f OPTIONAL {{ ?u :g ?x }} }}"
    ),
    "GRAPH with a variable is also of the windows": query(
        f"{WINDOW} {SERVICE} GRAPH ?g {{ ?u :x ?y }}",
        windows="FROM :g FROM NAMED WINDOW :w ON :s [RANGE 9m STEP 3m]",
    ),
    "a pattern matches neither a WINDOW nor a graph": query(f"{WINDOW} {SERVICE} ?u :x ?y"),
    "a filter in the WINDOW needs what is bound outside it": query(
        f"WINDOW :w {{ ?u :m ?m FILTER(?f > 1) }} {SERVICE}"
    ),
}


NOT_INCREMENTAL_EITHER = {
    query(f"BIND(5 AS ?m) {WINDOW} {SERVICE}"): "a BIND stands before what it is joined with",
    query(f"{WINDOW} {SERVICE} FILTER(?score > 10)"): "nothing binds ?score, which a filter needs",
    query(
        f"{WINDOW} {SERVICE} FILTER NOT EXISTS {{ ?f :g 10 }}"
    ): "a filter is decided at the window's close",
    query(f"{WINDOW} {SERVICE} FILTER(?m < RAND())"): "a filter is decided at the window's close",
    query(f"{WINDOW} {SERVICE} FILTER(?f < NOW())"): "a filter is decided at the window's close",
}


@pytest.mark.parametrize(("text", "reason"), NOT_INCREMENTAL_EITHER.items())
def test_what_would_mean_something_else_to_the_incremental_operators(
    text: str, reason: str
) -> None:
    test_top_k_queries_that_are_evaluated_window_by_window(reason, text)


@pytest.mark.parametrize(
    "condition",
    [
        "?m < ?f",
        "?m + ?f > 3 || ?m = 4",
        "?f <= ?m && ?f > 2",
        "?m = ?f",
        "!(?m > 3)",
        "?m IN (1, 2)",
        "BOUND(?m)",
    ],
)
def test_what_means_the_same_to_both(condition: str) -> None:
    assert isinstance(compile_query(query(f"{WINDOW} {SERVICE} FILTER({condition})")), TopKPlan)


def test_one_remote_part_in_two_places_is_asked_for_what_either_needs() -> None:
    clauses = "FROM NAMED WINDOW :w ON :s [RANGE 9m] FROM NAMED WINDOW :v ON :s [RANGE 9m]"
    other = "WINDOW :v { ?u :n ?n }"
    both = f"{{ {WINDOW} {SERVICE} }} UNION {{ {other} {SERVICE} }}"
    plan = compile_query(f"PREFIX : <urn:> ASK {clauses} {{ {both} }}")
    (part,) = plan.remotes if isinstance(plan, WindowedPlan) else ()
    assert part.key == "u"
    assert part.key_source is not None
    assert {"<urn:w>", "<urn:v>"} <= set(inside_text(part.key_source).split())
    whole = compile_query(f"PREFIX : <urn:> ASK {clauses} {{ {both} UNION {{ {SERVICE} }} }}")
    (part,) = whole.remotes if isinstance(whole, WindowedPlan) else ()
    assert (part.key, part.key_source) == (None, None)


def test_what_oxigraph_cannot_evaluate_is_written_in_other_words() -> None:
    clause = "FROM NAMED WINDOW :w ON :s [RANGE 9m]"
    text = (
        f"PREFIX : <urn:> ASK {clause} {{ WINDOW :w {{ ?u !() ?m }} %s }} GROUP BY (?m + 1 AS ?k)"
    )
    service = "SERVICE :p { SELECT ?j { ?e !() ?f } GROUP BY (?f AS ?j) }"
    plan = compile_query(text % service)
    assert isinstance(plan, WindowedPlan)
    (part,) = plan.remotes
    assert part.pattern in list(ast.walk(plan.query))
    assert "!()" in inside_text(part.pattern.group)
    alone = compile_query((text % "").replace("?m", "?one"))
    assert isinstance(alone, WindowedPlan)
    pyoxigraph.Store().query(query_text(alone.query))


def test_a_window_s_name_may_be_asked_for() -> None:
    clauses = (
        "FROM NAMED WINDOW :w ON :s [RANGE 9m] FROM NAMED WINDOW :v ON :s [RANGE 1m] FROM NAMED :g"
    )
    plan = compile_query(f"PREFIX : <urn:> SELECT ?x {clauses} {{ WINDOW ?x {{ ?u :m ?m }} }}")
    assert isinstance(plan, WindowedPlan)
    assert plan.query.where is not None
    assert inside_text(plan.query.where).replace("\n", " ").split("FILTER")[1].split() == [
        "(?x",
        "IN",
        "(<urn:w>,",
        "<urn:v>))",
        "}",
    ]


def test_names_without_a_window_are_never_answered() -> None:
    assert [
        each.code
        for each in analyse(query(SERVICE, select="?f", order="", limit="", windows="")).diagnostics
    ] == ["no-window"]


def test_a_filter_s_unknown_names_are_warned_of() -> None:
    (found,) = analyse(query(f"{WINDOW} {SERVICE} FILTER(?scoer > 10)")).diagnostics
    assert (found.code, found.severity) == ("unbound", "warning")
    (found,) = analyse(query(f"{WINDOW} {SERVICE} FILTER(?score > 10)")).diagnostics
    assert found.hint == "SELECT computes it only afterwards: use BIND"
    assert (
        analyse(
            query(f"{WINDOW} {SERVICE} FILTER NOT EXISTS {{ ?u :x ?y FILTER(?y > ?m) }}")
        ).diagnostics
        == ()
    )


@pytest.mark.parametrize(("reason", "text"), NOT_INCREMENTAL.items())
def test_top_k_queries_that_are_evaluated_window_by_window(reason: str, text: str) -> None:
    analysis = analyse(text)
    assert analysis.ok, [each.message for each in analysis.diagnostics]
    assert analysis.is_topk
    assert isinstance(analysis.plan, WindowedPlan)
    assert analysis.reason is not None
    assert reason in analysis.reason.message


GENERAL = {
    "its results are not ordered and limited": f"PREFIX : <urn:> ASK FROM NAMED WINDOW :w ON :s "
    f"[RANGE 9m] {{ {WINDOW} {SERVICE} }}",
    "DESCRIBE shows all that the windows say of a resource": "PREFIX : <urn:> DESCRIBE ?u "
    f"FROM NAMED WINDOW :w ON :s [RANGE 9m] {{ {WINDOW} {SERVICE} }} ORDER BY ?m LIMIT 3",
    "it has no WINDOW pattern": query("WINDOW ?w { ?u :m ?m }", order="ORDER BY ?m", select="?m"),
    "it has no ORDER BY": query(order="", limit=""),
    "it has no LIMIT": query(limit=""),
    "its LIMIT is 0": query(limit="LIMIT 0"),
}


@pytest.mark.parametrize(("reason", "text"), GENERAL.items())
def test_queries_that_are_not_top_k(reason: str, text: str) -> None:
    analysis = analyse(text)
    assert analysis.ok, [each.message for each in analysis.diagnostics]
    assert not analysis.is_topk
    assert analysis.reason is not None
    assert analysis.reason.message == reason


def test_without_a_service_the_score_is_the_stream_s_alone() -> None:
    plan = topk(alone(f"{WINDOW} FILTER(?m > 1)", limit="LIMIT 3 OFFSET 2"))
    assert (plan.service, plan.join_variables) == (None, ())
    assert (plan.score.stream_variables, plan.score.remote_variables) == (("m",), ())
    assert (plan.score.condition, [expression_text(each) for each in plan.stream_filters]) == (
        None,
        ["?m > 1"],
    )
    assert (plan.k, plan.offset, plan.projection) == (3, 2, ("u", "score"))


@pytest.mark.parametrize(
    ("text", "expression", "variable"),
    [
        (alone(select="?u", order="ORDER BY DESC(?m * ?m)"), "?m * ?m", None),
        (alone(select="*", order="ORDER BY ?m"), "?m", None),
        (
            alone("WINDOW :w { ?u :m ?m ; :n ?n }", select="?u (?m / ?n AS ?score)"),
            "?m / ?n",
            "score",
        ),
        (alone(f"{WINDOW} BIND(2 * ?m AS ?d)", select="?u", order="ORDER BY ?d"), "2 * ?m", "d"),
        (alone("GRAPH :w { ?u :m ?m }"), "2 * ?m", "score"),
    ],
)
def test_where_a_score_without_a_remote_may_stand(
    text: str, expression: str, variable: str | None
) -> None:
    plan = topk(text)
    assert (expression_text(plan.score.expression), plan.score.variable) == (expression, variable)


NOT_INCREMENTAL_ALONE = {
    "windows' patterns share no variable": alone(f"{WINDOW} WINDOW :w {{ ?v :n ?n }}"),
    "there is more beside the WINDOW": alone(f"{WINDOW} OPTIONAL {{ WINDOW :w {{ ?u :n ?n }} }}"),
    "a BIND stands before": alone(f"BIND(5 AS ?b) {WINDOW}"),
    "the pattern joins records of a window that nothing links": alone(
        "WINDOW :w { ?u :m ?m OPTIONAL { ?v :n ?x } }"
    ),
    "a filter is decided at the window's close": alone(f"{WINDOW} FILTER(?m > RAND())"),
}


@pytest.mark.parametrize(
    "score",
    ["STRLEN(?m)", "?m > 3", "IF(?m > 3, :a, :b)", "LCASE(STR(?u))", "COALESCE(?m, 'none')"],
)
def test_terms_of_the_stream_are_ranked_by_their_places(score: str) -> None:
    plan = analyse(alone(select=f"?u ({score} AS ?score)")).plan
    assert isinstance(plan, TopKPlan)
    assert (plan.score.only_place, plan.score.stream_variables) == (True, (PLACE,))
    assert plan.finish is not None
    assert [each.expression for each in plan.finish.keys] == [ast.Variable("score")]


def test_terms_that_need_a_remote_are_ordered_at_the_close() -> None:
    analysis = analyse(query(f"{WINDOW} {SERVICE}", select="?u (CONCAT(?f, STR(?u)) AS ?score)"))
    plan = analysis.plan
    assert isinstance(plan, TopKPlan)
    assert (plan.score.only_place, plan.score.term, plan.score.stream_variables) == (True, None, ())


def test_a_variable_of_the_stream_is_a_number_or_a_term() -> None:
    plan = analyse(alone(select="?u ?m", order="ORDER BY ?m")).plan
    assert isinstance(plan, TopKPlan)
    (by_term,) = plan.otherwise
    assert (plan.score.only_place, by_term.score.only_place) == (False, True)
    assert by_term.in_digits == plan.in_digits


@pytest.mark.parametrize(("reason", "text"), NOT_INCREMENTAL_ALONE.items())
def test_top_k_queries_without_a_service_that_are_evaluated_window_by_window(
    reason: str, text: str
) -> None:
    test_top_k_queries_that_are_evaluated_window_by_window(reason, text)


def test_where_nothing_is_asked_nothing_is_warned_of() -> None:
    assert analyse(alone(limit="")).diagnostics == ()
    assert analyse(alone(select="?u (ABS(?m - 5) AS ?score)")).diagnostics == ()
    assert [each.code for each in analyse(alone(order="")).diagnostics] == ["no-order"]
    (found,) = analyse(alone(select="?u (?m + ?mm AS ?score)")).diagnostics
    assert (found.code, found.is_error) == ("unbound", True)


@pytest.mark.parametrize(
    ("where", "key"),
    [
        (f"{WINDOW} {SERVICE}", "u"),
        (f"{SERVICE} {WINDOW}", "u"),
        (f"{WINDOW} OPTIONAL {{ {SERVICE} }}", "u"),
        (f"OPTIONAL {{ {SERVICE} }} {WINDOW}", None),
        (f"{WINDOW} OPTIONAL {{ ?u :x ?y OPTIONAL {{ {SERVICE} }} }}", None),
        (f"{WINDOW} {{ {{ ?u :x ?y }} UNION {{ {SERVICE} }} }}", "u"),
        (f"{WINDOW} MINUS {{ {SERVICE} }}", "u"),
        (f"{{ {WINDOW} }} UNION {{ {SERVICE} }}", None),
        (f"{WINDOW} {{ SELECT ?u ?f {{ {SERVICE} }} }}", None),
        (f"{{ SELECT ?u (COUNT(*) AS ?n) {{ {WINDOW} }} GROUP BY ?u }} {SERVICE}", "u"),
        (
            f"{{ SELECT ?n (COUNT(*) AS ?u) {{ WINDOW :w {{ ?v :m ?n }} }} GROUP BY ?n }} "
            f"{SERVICE}",
            None,
        ),
        (f"VALUES ?u {{ :ann }} {WINDOW} {SERVICE}", "u"),
        (f"VALUES ?u {{ UNDEF }} WINDOW :w {{ ?x :m ?m }} {SERVICE}", None),
        ("WINDOW :w { ?x :m ?m OPTIONAL { ?x :y ?u } } " + SERVICE, None),
        ("WINDOW :w { ?u :m ?m } SERVICE :p { ?x :f ?f OPTIONAL { ?x :y ?u } }", None),
    ],
)
def test_a_remote_is_asked_by_a_key_only_where_no_other_can_matter(
    where: str, key: str | None
) -> None:
    plan = compile_query(f"PREFIX : <urn:> ASK FROM NAMED WINDOW :w ON :s [RANGE 9m] {{ {where} }}")
    assert isinstance(plan, WindowedPlan)
    (part,) = plan.remotes
    assert part.key == key


def test_a_score_goes_up_and_down_with_its_variables() -> None:
    score = "norm(?m, 0, 10) - norm(?f, 0, 365)"
    analysis = analyse(query(select=f"?u ({score} AS ?score)"))
    assert analysis.directions == {"m": Direction.INCREASING, "f": Direction.DECREASING}
    assert analysis.diagnostics == ()


def test_filters_say_in_which_range_a_value_lies() -> None:
    product = query(select="?u (?m * ?f AS ?score)")
    assert [each.code for each in analyse(product).diagnostics] == ["not-monotone", "not-monotone"]
    filtered = analyse(
        product.replace(" } ORDER", " FILTER(?m >= 0 && 10 > ?f) FILTER(?f >= 2) } ORDER")
    )
    assert filtered.diagnostics == ()
    assert isinstance(filtered.plan, TopKPlan)
    assert filtered.plan.score.ranges == {"m": Interval(0, math.inf), "f": Interval(2, 10)}
    assert set(filtered.directions.values()) == {Direction.INCREASING}


def test_functions_of_one_s_own() -> None:
    halved = scoring_function(lambda value: value / 2, directions=(1,))
    functions = DEFAULT_FUNCTIONS.with_function("halved", halved).with_function(
        "urn:halved", halved
    )
    for call in ("Halved(?m)", "<urn:halved>(?m)"):
        text = query(select=f"?u ({call} + ?f AS ?score)")
        assert isinstance(compile_query(text, functions=functions), TopKPlan)
        assert [each.code for each in analyse(text).diagnostics] == ["unknown-function"]


def test_own_functions_become_what_any_engine_knows() -> None:
    text = query(f"{WINDOW} OPTIONAL {{ {SERVICE} }} FILTER(greatest(?m, 3) > 4)")
    plan = topk(text).windowed
    assert not [
        node
        for node in ast.walk(plan.query)
        if isinstance(node, ast.Call) and node.function == "greatest"
    ]


def test_several_mistakes_are_reported_together() -> None:
    text = query(
        select="?u (nrom(?m) + ?g AS ?score)", windows="FROM NAMED WINDOW :v ON :s [RANGE 9m]"
    )
    codes = [each.code for each in analyse(text).diagnostics]
    assert codes == ["unknown-function", "unused-window", "undeclared-window"]


def test_names_that_double_a_score_are_written_out_only_so_far() -> None:
    binds = " ".join(f"BIND(?x{at} + ?x{at} AS ?x{at + 1})" for at in range(60))
    text = query(f"{WINDOW} {SERVICE} BIND(?m AS ?x0) {binds}", select="?u (?x60 + ?f AS ?score)")
    analysis = analyse(text)
    assert isinstance(analysis.plan, WindowedPlan)
    assert analysis.reason is not None
    assert "too large" in analysis.reason.message


@pytest.mark.parametrize(
    "text",
    [
        alone(select="?u (STRLEN(?m) + 1 AS ?score)"),
        alone(f"{WINDOW} FILTER(!BOUND(?zz))"),
        alone(
            f"{WINDOW} ?x :y ?z", windows="FROM :g FROM NAMED WINDOW :w ON :s [RANGE 9m STEP 3m]"
        ),
    ],
)
def test_scores_of_terms_are_computed_for_each_distinct_tuple(text: str) -> None:
    plan = analyse(text).plan
    assert isinstance(plan, TopKPlan)
    assert plan.join is not None
    assert plan.join.is_constant
    assert plan.join.inputs == ("m",)
