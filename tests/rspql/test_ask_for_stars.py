"""Parts of a SERVICE of records besides triple patterns, which are computed here."""

from __future__ import annotations

import pytest

from rspql import ast
from rspql.compiler import analyse
from rspql.plan import TopKPlan

HEAD = """PREFIX : <urn:>
SELECT ?u ?m ?f (?m + ?f AS ?score) FROM NAMED WINDOW :w ON :s [RANGE 9m STEP 3m]
WHERE { WINDOW :w { ?u :m ?m } """
TAIL = " } ORDER BY DESC(?score) LIMIT 3"


@pytest.mark.parametrize(
    "where",
    [
        "SERVICE :r { ?u :f ?f } FILTER(?f < 10000)",
        "SERVICE :r { ?u :f ?f FILTER(?f < 10000) }",
        "SERVICE :r { ?u :f ?f FILTER(?f < 10000) FILTER(?f > 3) }",
    ],
)
def test_filters_on_records_are_decided_here_and_incrementally(where: str) -> None:
    plan = analyse(HEAD + where + TAIL, records=["urn:r"]).plan
    assert isinstance(plan, TopKPlan)
    assert plan.service is not None
    assert [type(each) for each in plan.service.group.elements] == [ast.TriplePattern]
    assert plan.score.condition is not None
    assert plan.score.ranges["f"].high == 10000
    # A SPARQL endpoint decides them itself.
    sent = analyse(HEAD + where + TAIL).plan
    assert isinstance(sent, TopKPlan)
    assert sent.service is not None
    assert sent.score.condition is None
    assert any(isinstance(each, ast.Filter) for each in sent.service.group.elements)


@pytest.mark.parametrize(
    ("where", "braces"),
    [
        ("SERVICE :r { ?u :n ?n FILTER(STRLEN(?n) > 3) BIND(STRLEN(?n) AS ?f) }", False),
        # ?m is not bound within the SERVICE: there the filter is an error for every solution.
        ("SERVICE :r { ?u :f ?f FILTER(?m < ?f) }", True),
        # The BIND is joined with what the WINDOW binds.
        ("SERVICE :r { ?u :f ?f BIND(?f + 1 AS ?m) }", True),
        ("SERVICE :r { ?u :n ?f VALUES ?f { 1 2 } }", False),
    ],
)
def test_what_moves_out_of_a_service_means_the_same(where: str, braces: bool) -> None:
    plan = analyse(HEAD + where + TAIL, records=["urn:r"]).plan
    assert isinstance(plan, TopKPlan)
    assert plan.join is not None
    (asked,) = plan.join.services
    (part,) = plan.windowed.remotes
    for each in (asked.pattern, part.pattern):
        assert all(isinstance(node, ast.TriplePattern) for node in each.group.elements)
    assert (part.key, asked.keys) == ("u", ("u",))
    around = [
        node
        for node in ast.walk(plan.windowed.query)
        if isinstance(node, ast.Group) and part.pattern in node.elements
    ]
    assert len(around) == 1
    assert braces == all(not isinstance(each, ast.GraphPattern) for each in around[0].elements)


def test_a_filter_that_needs_the_records_stays() -> None:
    where = "SERVICE :r { ?u :f ?f FILTER EXISTS { ?u :g ?g } }"
    plan = analyse(HEAD + where + TAIL, records=["urn:r"]).plan
    windowed = plan.windowed if isinstance(plan, TopKPlan) else plan
    assert windowed is not None
    (part,) = windowed.remotes
    assert len(part.pattern.group.elements) == 2
