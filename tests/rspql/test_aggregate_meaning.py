"""Aggregates of a plan, compared with a SPARQL engine: identities, rows, datatypes."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rspql.ast import XSD
from rspql.compiler import compile_query
from rspql.parser import parse
from rspql.passes.normalise import normalise
from rspql.passes.plan_windowed import plan_windowed
from rspql.passes.recognise_topk import Ranking, recognise_topk
from rspql.passes.split_sources import split_sources
from rspql.plan import TopKPlan
from rspql.printer import query_text
from rspql.scoring import DEFAULT_FUNCTIONS, vectorise_condition
from tests.support.rspql.grouped import grouped
from tests.support.rspql.meaning import Rows, meant
from tests.support.rspql.plans import alone, topk

COLUMNS = (
    "(COUNT(*) AS ?n) (SUM(?x) AS ?sum) (AVG(?x) AS ?avg) (MIN(?x) AS ?least) (MAX(?x) AS ?most)"
)


def found(
    query: str, key: str, columns: Iterable[str], records: Iterable[tuple[str, str, Any]]
) -> Rows:
    """Return what a SPARQL engine makes of the same, over a window's triples."""
    store = ox.Store()
    for subject, predicate, value in records:
        triple = (
            ox.NamedNode(f"urn:{subject}"),
            ox.NamedNode(f"urn:{predicate}"),
            ox.Literal(value),
        )
        store.add(ox.Quad(*triple, ox.NamedNode("urn:w")))
    results: Any = store.query(query)
    return {_python(row[key])[0]: tuple(_python(row[name]) for name in columns) for row in results}


def _python(term: Any) -> tuple[Any, str]:
    if isinstance(term, ox.NamedNode):
        return term.value.removeprefix("urn:"), "iri"
    datatype = term.datatype.value.removeprefix(XSD)
    value = {"integer": int, "double": float, "decimal": Decimal}.get(datatype, str)(term.value)
    return value, datatype


def assert_same(some: Rows, others: Rows) -> None:
    assert some.keys() == others.keys()
    for key in some:
        for (value, datatype), (other, of_other) in zip(some[key], others[key], strict=True):
            assert datatype == of_other
            assert value == (
                pytest.approx(other, rel=1e-12, abs=1e-12) if datatype == "double" else other
            )


numbers = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), max_size=12)
FORMS = {
    "within": "WINDOW :w {{ SELECT ?{key} {columns} {{ ?p :x ?x {filter} }} GROUP BY ?{key} }}",
    "around": "{{ SELECT ?{key} {columns} {{ WINDOW :w {{ ?p :x ?x }} {filter} }} "
    "GROUP BY ?{key} }}",
}


@pytest.mark.parametrize("form", [*FORMS, "by itself"])
@pytest.mark.parametrize("key", ["p", "x"])
@given(values=numbers, doubles=st.booleans(), filtered=st.booleans())
def test_the_same_triple_twice_is_one_solution(
    form: str, key: str, values: list[tuple[str, int]], doubles: bool, filtered: bool
) -> None:
    values = [(subject, value / 4 if doubles else value) for subject, value in values]  # type: ignore[misc]
    where = "FILTER(?x > 0)" if filtered else ""
    if form == "by itself":
        text = grouped(
            f"?{key} {COLUMNS}", f"WINDOW :w {{ ?p :x ?x }} {where}", group=f"GROUP BY ?{key}"
        )
    else:
        text = alone(
            FORMS[form].format(key=key, columns=COLUMNS, filter=where),
            select="*",
            order="ORDER BY ?n",
        )
    plan = topk(text.replace("LIMIT 3", "LIMIT 99"))
    assert plan.aggregate is not None
    passes = [vectorise_condition(each) for each in plan.stream_filters]
    solutions = [
        {"p": subject, "x": value}
        for subject, value in values
        if all(each({"x": np.array([float(value)])}).all() for each in passes)
    ]
    records = [(subject, "x", value) for subject, value in values]
    names = [column.variable for column in plan.aggregate.columns]
    rows = found(query_text(plan.windowed.query), plan.aggregate.key, names, records)
    assert_same(meant(plan.aggregate, solutions), rows)


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.tuples(st.sampled_from("uv") | st.none(), st.integers(-9, 9) | st.none()),
    )
)
def test_of_a_star_a_subject_has_one_solution_where_its_latest_arrival_counts(
    latest: dict[str, tuple[str | None, int | None]],
) -> None:
    plan = topk(
        grouped(f"?u {COLUMNS}", "WINDOW :w { ?p :mentions ?u ; :x ?x }").replace(
            "LIMIT 3", "LIMIT 99"
        )
    )
    assert plan.aggregate is not None
    assert plan.aggregate.identity == ("p", "u", "x")
    said = [
        (p, name, each)
        for p, (u, x) in latest.items()
        for name, each in (("mentions", u), ("x", x))
    ]
    solutions = [
        {"p": p, "u": u, "x": x} for p, (u, x) in latest.items() if u is not None and x is not None
    ]
    names = [column.variable for column in plan.aggregate.columns]
    records = [each for each in said if each[2] is not None]
    assert_same(
        meant(plan.aggregate, solutions),
        found(query_text(plan.windowed.query), "u", names, records),
    )


SCORES = (
    "?n",
    "(?n + 2 * ?most)",
    "(SUM(?x) / 2)",
    "(MAX(?x) - MIN(?x))",
    "(?sum - COUNT(*))",
    "?p",
    "(1 / ?sum)",
)


@pytest.mark.parametrize("score", SCORES)
@given(values=numbers, having=st.booleans())
def test_groups_in_a_sub_query_are_the_same_groups(
    score: str, values: list[tuple[str, int]], having: bool
) -> None:
    columns = COLUMNS.replace("(SUM(?x) AS ?sum)", "(SUM(?x) AS ?sum) (SUM(?x) AS ?again)")
    group = "GROUP BY ?p HAVING (COUNT(*) > 1)" if having else "GROUP BY ?p"
    names = ["n", "sum", "again", "avg", "least", "most"]
    text = grouped(f"?p {columns}", "WINDOW :w { ?p :x ?x }", order=f"DESC{score}", group=group)
    text = text.replace("DESC?", "?").replace("LIMIT 3", "LIMIT 99")
    records = [(subject, "x", value) for subject, value in values]
    plain = normalise(parse(text))
    ranking = recognise_topk(plain, [])
    assert isinstance(ranking, Ranking)
    as_it_was = plan_windowed(
        plain, split_sources(plain, []), ranking, "RSTREAM", DEFAULT_FUNCTIONS
    )
    plan = compile_query(text)
    nested = plan.windowed.query if isinstance(plan, TopKPlan) else plan.query
    assert not nested.group_by
    rows = found(query_text(nested), "p", names, records)
    before = found(query_text(as_it_was.query), "p", names, records)
    # A score that is an error makes its group no result; SPARQL puts the group last.
    wrong = {key for key, columns in before.items() if score == "(1 / ?sum)" and columns[1][0] == 0}
    assert rows == {key: columns for key, columns in before.items() if key not in wrong}
