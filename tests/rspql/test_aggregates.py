"""Top-k queries over what a window's solutions add up to, key by key:
which are planned, and what the plans mean.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from rspql.compiler import analyse
from rspql.plan import AggregateColumn, Aggregation, RollUp, TopKPlan, WindowedPlan
from rspql.printer import expression_text, inside_text
from rspql.scoring import Interval
from tests.support.rspql.grouped import PATTERN, grouped
from tests.support.rspql.plans import SERVICE, alone, query, topk

GROUPED = "SELECT ?u (COUNT(*) AS ?n) { %s } GROUP BY ?u"
WITHIN = f"WINDOW :w {{ {GROUPED % PATTERN} }}"
AROUND = f"{{ {GROUPED % f'WINDOW :w {{ {PATTERN} }}'} }}"
COUNTED = Aggregation("u", (AggregateColumn("n", "count", None),), ("post", "u"))


def aggregated(
    sub: str, *, select: str = "*", order: str = "ORDER BY DESC(?n + ?f)", more: str = ""
) -> str:
    """Return a query that joins a sub-query with a SERVICE."""
    return query(f"{sub} {SERVICE} {more}", select=select, order=order)


@pytest.mark.parametrize(
    "sub", [WITHIN, AROUND, f"{{ {WITHIN} }}", f"WINDOW :w {{ {{ {GROUPED % PATTERN} }} }}"]
)
def test_a_sub_query_may_stand_within_the_window_or_around_it(sub: str) -> None:
    plan = topk(aggregated(sub, select="?u ?n (?n + ?f AS ?score)", order="ORDER BY DESC(?score)"))
    assert plan.aggregate == COUNTED
    assert (plan.stream_variables, plan.join_variables) == (("post", "u"), ("u",))
    assert (plan.score.stream_variables, plan.score.remote_variables) == (("n",), ("f",))
    assert plan.projection == ("u", "n", "score")
    assert plan.score.ranges == {"n": Interval(1, math.inf)}


@pytest.mark.parametrize("sub", [WITHIN, AROUND])
def test_a_sub_query_needs_no_service(sub: str) -> None:
    plan = topk(alone(sub, select="*", order="ORDER BY DESC(?n)"))
    assert (plan.aggregate, plan.service, plan.join_variables) == (COUNTED, None, ())
    assert plan.projection == ("u", "n")


def test_without_a_service_a_query_may_group_by_itself() -> None:
    plan = topk(grouped("?u (COUNT(?post) AS ?n)", f"WINDOW :w {{ {PATTERN} }}"))
    assert plan.aggregate == COUNTED
    assert (expression_text(plan.score.expression), plan.score.variable, plan.projection) == (
        "?n",
        None,
        ("u", "n"),
    )


@pytest.mark.parametrize(
    ("text", "score", "variable", "columns"),
    [
        (grouped("?u", order="DESC(COUNT(*))"), "?count", None, "count=COUNT(*)"),
        (grouped("?u (SUM(?x) / 2 AS ?n)"), "?sum / 2", "n", "sum=SUM(?x)"),
        (grouped("?u (SUM(?x) AS ?n) (?n - 1 AS ?s)", order="?s"), "?n - 1", "s", "n=SUM(?x)"),
        (
            grouped("?u (MAX(?x) AS ?a)", order="(MAX(?x) - MIN(?x))"),
            "?a - ?min",
            None,
            "a=MAX(?x) min=MIN(?x)",
        ),
        (
            grouped("?u (AVG(?x) AS ?avg)", order="(AVG(?x) + SUM(?x))"),
            "?avg + ?sum",
            None,
            "avg=AVG(?x) sum=SUM(?x)",
        ),
        (
            grouped("(MAX(?x) AS ?sum) (MAX(?x) AS ?b)", order="SUM(?x)"),
            "?sum2",
            None,
            "sum=MAX(?x) b=MAX(?x) sum2=SUM(?x)",
        ),
    ],
)
def test_what_is_computed_of_aggregates_is_the_score(
    text: str, score: str, variable: str | None, columns: str
) -> None:
    plan = topk(text)
    assert plan.aggregate is not None
    assert (expression_text(plan.score.expression), plan.score.variable) == (score, variable)
    shown = (
        f"{each.variable}={each.function.upper()}({f'?{each.of}' if each.of else '*'})"
        for each in plan.aggregate.columns
    )
    assert " ".join(shown) == columns


@pytest.mark.parametrize("sub", [WITHIN, AROUND])
def test_filters_on_aggregates_are_conditions_of_the_score(sub: str) -> None:
    plan = topk(aggregated(sub, more="FILTER(?n > 2 && ?f > 3) FILTER(?n < ?f)"))
    assert plan.score.condition is not None
    assert expression_text(plan.score.condition) == "?n > 2 && ?n < ?f"
    assert plan.service is not None
    assert "FILTER (?f > 3)" in inside_text(plan.service.group)
    assert plan.stream_filters == ()
    assert plan.score.ranges == {"n": Interval(2, math.inf), "f": Interval(3, math.inf)}


def test_filters_before_grouping_and_on_the_key_are_decided_on_arrival() -> None:
    around = (
        "{ SELECT ?u (SUM(?x) AS ?n) { WINDOW :w { ?p :x ?x ; :u ?u FILTER(?x > 0) } "
        "FILTER(?x < 9) } GROUP BY ?u }"
    )
    plan = topk(aggregated(around, more="FILTER(?u != 5)"))
    assert sorted(expression_text(each) for each in plan.stream_filters) == [
        "?u != 5",
        "?x < 9",
        "?x > 0",
    ]
    within = (
        "WINDOW :w { { SELECT ?u (MIN(?x) AS ?n) { ?p :x ?x ; :u ?u FILTER(?x > 2) } "
        "GROUP BY ?u } FILTER(?n < 9) }"
    )
    plan = topk(aggregated(within))
    assert [expression_text(each) for each in plan.stream_filters] == ["?x > 2"]
    assert plan.score.condition is not None
    assert expression_text(plan.score.condition) == "?n < 9"
    assert plan.score.ranges == {"n": Interval(2, 9)}


def within(select: str, pattern: str = f"{PATTERN} ; :x ?x", group: str = "GROUP BY ?u") -> str:
    return aggregated(f"WINDOW :w {{ SELECT {select} {{ {pattern} }} {group} }}")


def test_having_is_a_condition_on_aggregates() -> None:
    plan = topk(
        within("?u (SUM(?x) AS ?n)", group="GROUP BY ?u HAVING (COUNT(*) > 1) (SUM(?x) > 2)")
    )
    assert plan.aggregate is not None
    assert [(each.variable, each.function, each.of) for each in plan.aggregate.columns] == [
        ("n", "sum", "x"),
        ("COUNT(*)", "count", None),
    ]
    assert plan.score.condition is not None
    assert expression_text(plan.score.condition) == "?COUNT(*) > 1 && ?n > 2"


def test_groups_may_have_several_keys() -> None:
    plan = topk(grouped("?u ?x (COUNT(*) AS ?n)", group="GROUP BY ?u ?x ?u"))
    assert plan.aggregate is not None
    assert plan.aggregate.keys == ("u", "x")
    assert "more_keys=('x',)" in repr(plan.aggregate)


def test_distinct_values_are_solutions_of_the_key_and_one_variable() -> None:
    plan = topk(grouped("?u (COUNT(DISTINCT ?x) AS ?n) (MIN(?x) AS ?m)"))
    assert plan.aggregate is not None
    assert plan.aggregate.is_distinct
    assert plan.aggregate.identity == ("u", "x")
    assert [each.of for each in plan.aggregate.columns] == [None, "x"]


REFUSED = {
    "GROUP_CONCAT is not kept up to date": within("?u (GROUP_CONCAT(?x) AS ?n)"),
    "SAMPLE is not kept up to date": within("?u (SAMPLE(?x) AS ?n)"),
    "an expression has no variable of the WINDOW": within("?u (SUM(1) AS ?n)"),
    "it is computed at the window's close": within("?u (MAX(YEAR(NOW()) - ?x) AS ?n)"),
    "the WINDOW binds ?zz, which COUNT is of": within("?u (COUNT(?zz) AS ?n)"),
    "the WINDOW always binds ?u, which it groups by": within("?u (COUNT(*) AS ?n)", "?post :x ?x"),
    "it groups by an expression without a name": within(
        "?u (COUNT(*) AS ?n)", "?post :m ?u", "GROUP BY ?u STR(?post)"
    ),
    "it joins on ?u, which is an aggregate": within(
        "(MAX(?x) AS ?u) (COUNT(*) AS ?n)", "?post :x ?x", ""
    ),
    "it selects in a query of its own, without GROUP BY": within("?u ?n", "?u :x ?n", group=""),
    "it groups, but aggregates nothing": within("?u", group="GROUP BY ?u").replace(
        "?n + ?f", "0 + ?f"
    ),
    "the sub-query does not select ?x, which it groups by": within(
        "(MAX(?u) AS ?n)", group="GROUP BY ?x"
    ),
    "the sub-query computes ?n, which is not an aggregate alone": within("?u (COUNT(*) + 1 AS ?n)"),
    "the sub-query computes ?k, which is not an aggregate alone": within(
        "?u (COUNT(*) AS ?n) (?u AS ?k)"
    ),
    "HAVING needs ?x": within("?u (COUNT(*) AS ?n)", group="GROUP BY ?u HAVING (?x > 1)"),
    "it selects DISTINCT groups": within("DISTINCT ?u (COUNT(*) AS ?n)"),
    "the sub-query orders or cuts": within("?u (COUNT(*) AS ?n)", group="GROUP BY ?u LIMIT 5"),
    "it also needs static data": within(
        "?u (COUNT(*) AS ?n)", group="GROUP BY ?u VALUES ?u { :ann }"
    ),
    "a filter in the WINDOW needs what is bound outside": within(
        "?u (COUNT(*) AS ?n)", f"{PATTERN} FILTER(?f > 1)"
    ),
    "a filter is decided at the window's close": within(
        "?u (SUM(?x) AS ?n)", "?u :x ?x FILTER(?x > RAND())"
    ),
    "a sub-query stands within another": aggregated(
        "{ SELECT ?u (SUM(?m) AS ?n) { WINDOW :w { SELECT ?u (MAX(?x) AS ?m) { ?u :x ?x } "
        "GROUP BY ?u } } GROUP BY ?u }"
    ),
    "there is more than a sub-query and filters in the WINDOW": aggregated(
        f"WINDOW :w {{ {{ {GROUPED % PATTERN} }} ?u :y ?y }}"
    ),
    "there is more than a WINDOW and filters in the sub-query": aggregated(
        "{ SELECT ?u (SUM(?d) AS ?n) { WINDOW :w { ?u :x ?x } BIND(2 * ?x AS ?d) } GROUP BY ?u }"
    ),
    "there is more than a sub-query within the braces": aggregated(
        f"{{ {AROUND} FILTER(?n > 2) }}"
    ),
    "a sub-query must have one WINDOW": aggregated(
        "{ SELECT ?u (COUNT(*) AS ?n) { WINDOW :w { ?p :m ?u } WINDOW :w { ?p :x ?x } } "
        "GROUP BY ?u }"
    ),
    "it aggregates or selects after the join with the SERVICE": query(
        f"{{ SELECT ?u (SUM(?f) AS ?n) {{ WINDOW :w {{ {PATTERN} }} {SERVICE} }} GROUP BY ?u }}",
        select="*",
        order="ORDER BY ?n",
    ),
    "it aggregates ?f, which a SERVICE says": query(
        f"WINDOW :w {{ {PATTERN} }} {SERVICE}",
        select="?u (SUM(?f) AS ?n)",
        order="GROUP BY ?u ORDER BY ?n",
    ),
    "the windows' patterns share no variable": aggregated(f"{WITHIN} WINDOW :w {{ ?y :y ?z }}"),
    "it aggregates distinct values of a join's groups": query(
        f"WINDOW :w {{ {PATTERN} }} {SERVICE}",
        select="?f (COUNT(DISTINCT ?x) AS ?n)",
        order="GROUP BY ?f ORDER BY ?n",
    ),
    "SAMPLE of a join's groups is not kept up to date": query(
        f"WINDOW :w {{ {PATTERN} }} {SERVICE}",
        select="?f (SAMPLE(?x) AS ?y) (COUNT(*) AS ?n)",
        order="GROUP BY ?f ORDER BY ?n",
    ),
    "?x within the sub-query is not the ?x outside it": aggregated(
        "WINDOW :w { SELECT ?u (SUM(?x) AS ?n) { ?u :x ?x } GROUP BY ?u }",
        more="BIND(2 * ?f AS ?x)",
    ),
    "?f within the sub-query is not the ?f outside it": within("?u (SUM(?f) AS ?n)", "?u :f ?f"),
    "?u, which it groups by, is no part of a score": aggregated(
        WITHIN, order="ORDER BY DESC(?n + ?f + ?u)"
    ),
    "?u, which it groups by, is no part of a score or of a filter": aggregated(
        WITHIN, more="FILTER(?n > ?u)"
    ),
    "it joins on more than one variable (?u, ?n)": query(
        f"{WITHIN} SERVICE :p {{ ?u :f ?f ; :n ?n }}", select="*", order="ORDER BY DESC(?n)"
    ),
    "it joins on ?n, which is an aggregate": query(
        f"{WITHIN} SERVICE :p {{ ?y :n ?n }}", select="*", order="ORDER BY DESC(?n)"
    ),
    "the WINDOW and SERVICE patterns share no": query(
        f"{WITHIN} SERVICE :p {{ ?y :f ?f }}", select="*", order="ORDER BY ?n"
    ),
    "UUID is another with each evaluation": aggregated(WITHIN, select="?u (UUID() AS ?twice)"),
    "the remote's value need not be a number": aggregated(WITHIN, more="FILTER(?n != ?f)"),
}


@pytest.mark.parametrize(("reason", "text"), REFUSED.items())
def test_what_aggregates_are_not_kept_up_to_date(reason: str, text: str) -> None:
    analysis = analyse(text)
    assert analysis.ok, [each.message for each in analysis.diagnostics]
    assert analysis.is_topk
    assert isinstance(analysis.plan, WindowedPlan)
    assert analysis.reason is not None
    assert reason in analysis.reason.message


REFUSED_BY_ITSELF = {
    "HAVING needs ?n, which is neither grouped by": grouped(group="GROUP BY ?u HAVING (?n > 1)"),
    "an expression needs the whole window": grouped(
        group="GROUP BY ?u HAVING (EXISTS { ?u :x 3 } || COUNT(*) > 2)"
    ),
    "it groups, but aggregates nothing": grouped("?u", order="?u"),
    "it orders groups by what is neither grouped by nor aggregated": grouped(order="?x"),
    "it aggregates distinct values beside others": grouped(
        "?u (SUM(DISTINCT ?x) AS ?n) (COUNT(*) AS ?m)"
    ),
    "COUNT(DISTINCT *) is not kept up": grouped("?u (COUNT(DISTINCT *) AS ?n)"),
    "SAMPLE is not kept up": grouped("?u (SAMPLE(?x) + 1 AS ?n)"),
    "there is more than a WINDOW and filters": grouped(
        where=f"WINDOW :w {{ {PATTERN} }} BIND(5 AS ?x)"
    ),
    "VALUES stands behind the query": grouped() + " VALUES ?u { 1 }",
    "STRLEN is not computed on numbers alone": grouped("?u (STRLEN(STR(COUNT(*))) + 1 AS ?n)"),
}


@pytest.mark.parametrize(
    "text",
    [
        aggregated(WITHIN, order="ORDER BY ?u"),
        aggregated(WITHIN, order="ORDER BY DESC(?n > ?f)"),
        grouped("?u (STR(COUNT(*)) AS ?n)"),
    ],
)
def test_groups_are_ordered_by_terms_at_the_close(text: str) -> None:
    plan = analyse(text).plan
    assert isinstance(plan, TopKPlan)
    assert (plan.score.only_place, plan.score.stream_variables) == (True, ())


@pytest.mark.parametrize(("reason", "text"), REFUSED_BY_ITSELF.items())
def test_what_groups_of_a_window_alone_are_not_kept_up_to_date(reason: str, text: str) -> None:
    test_what_aggregates_are_not_kept_up_to_date(reason, text)


def test_groups_that_are_no_top_k_query_stay_as_they_are() -> None:
    for text in (
        grouped().replace("LIMIT 3", ""),
        grouped(order="?x"),
        grouped().replace("LIMIT 3", "LIMIT 0"),
    ):
        plan = analyse(text).plan
        assert isinstance(plan, WindowedPlan)
        assert len(plan.query.group_by) == 1


def test_the_aggregate_in_the_documents_is_planned() -> None:
    shown = (Path(__file__).parents[2] / "docs" / "language.md").read_text("utf-8")
    (text,) = (
        each
        for each in re.findall(r"```rspql\n(.*?)```", shown, re.DOTALL)
        if "GROUP BY" in each and "SERVICE" in each
    )
    assert topk(text).aggregate is not None


def test_groups_of_a_join_are_added_up_from_its_keys() -> None:
    plan = topk(
        query(
            f"WINDOW :w {{ {PATTERN} ; :x ?x }} {SERVICE}",
            select="?f (SUM(?x) AS ?n)",
            order="GROUP BY ?f ORDER BY ?n",
        )
    )
    assert plan.aggregate is not None
    assert (plan.aggregate.keys, plan.roll_up) == (("u",), RollUp(("f",)))


def test_what_is_computed_of_each_solution_has_a_name() -> None:
    plan = topk(within("?u (SUM(2 * ?x) AS ?n)", f"{PATTERN} ; :x ?x OPTIONAL {{ ?post :y ?y }}"))
    assert plan.aggregate is not None
    assert [each.variable.name for each in plan.aggregate.derived] == ["2 * ?x"]
    assert plan.aggregate.columns[0].of == "2 * ?x"
    assert plan.aggregate.uncertain == ("2 * ?x",)


def test_what_every_solution_binds_is_counted_with_the_solutions() -> None:
    pattern = f"{PATTERN} OPTIONAL {{ ?post :y ?y }}"
    for of, counted in {"?u": None, "*": None, "1": None, "?y": "y"}.items():
        plan = topk(within(f"?u (COUNT({of}) AS ?n)", pattern))
        assert plan.aggregate is not None
        assert [each.of for each in plan.aggregate.columns] == [counted]
        assert plan.aggregate.uncertain == (() if counted is None else (counted,))


def test_a_window_without_keys_is_one_group() -> None:
    plan = topk(grouped("(COUNT(*) AS ?n)", group=""))
    assert plan.aggregate is not None
    assert plan.aggregate.keys == ()


def test_several_keys_are_joined_on_one_of_them_here() -> None:
    plan = topk(within("?u ?x (COUNT(*) AS ?n)", group="GROUP BY ?u ?x"))
    assert plan.join is not None
    assert plan.join.inputs == ("u", "x")


def test_the_text_that_state_directories_contain_does_not_change() -> None:
    column = "AggregateColumn(variable='n', function='count', of=None)"
    said = f"Aggregate(key='u', columns=({column},), identity=('post', 'u'))"
    assert repr(COUNTED) == said
