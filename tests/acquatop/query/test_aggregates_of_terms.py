"""Random queries that aggregate terms of any kind: each answer as a SPARQL engine gives it."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from acquatop import Answer, Engine, Status
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundCounted, BoundQuery
from tests.support.markers import THOROUGH
from tests.support.queries import record_patterns
from tests.support.queries.shaped import NS, ShapedQuery, World, value_of

SAID: Mapping[str, Sequence[str]] = {
    "city": ["Como", "como", "Bari", "", "a b", 'Como \\ "x"'],
    "at": ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00+02:00", "1969-12-31T23:59:59.999Z"],
    "price": ["0.1", "0.10000000000001", "-3", "12345678901.5"],
}
ARRIVALS = st.sampled_from([None, None, "distinct", "latest"])
WINDOWS = st.sampled_from(["RANGE 10ms STEP 4ms", "RANGE 6ms STEP 6ms", "ELEMENTS 6 STEP 2"])
SURE = ("MIN({})", "MAX({})", "MIN(STR({}))")
ANY = (
    *("SAMPLE({})", "GROUP_CONCAT({})", "GROUP_CONCAT(DISTINCT {} ; SEPARATOR='|')"),
    "GROUP_CONCAT(UCASE(STR({})) ; SEPARATOR=', ')",
)
"""Aggregates of which SPARQL allows several values."""
HAVING = (
    "HAVING(MIN(STR({})) > 'B')",
    "HAVING(MIN({0}) != MAX({0}))",
    "HAVING(COUNT(*) > 1 && MAX(STR({})) < 'q') (MAX(?n) > 0)",
    "HAVING(STRLEN(GROUP_CONCAT(STR({}))) > 20)",
)


@dataclass(frozen=True)
class Grouped:
    """Query that groups, and counts."""

    names: str
    aggregate: str
    of: str
    pattern: str
    beside: str
    key: str
    k: int
    window: str
    having: str = ""

    @property
    def made(self) -> str:
        return self.aggregate.format(self.of)

    @property
    def select(self) -> str:
        return f"{self.names} (COUNT(*) AS ?a) ({self.made} AS ?made) (MAX(?n) AS ?m)"

    @property
    def text(self) -> str:
        group = f"GROUP BY {self.names}" if self.names else ""
        where = f"WINDOW :w {{ {self.pattern} }}"
        select = self.select
        if self.beside:
            where = (
                f"WINDOW :w {{ SELECT {select} WHERE {{ {self.pattern} }} {group} }} {self.beside}"
            )
            select, group = f"{self.names} ?a ?made ?m ?home", ""
        return (
            f"SELECT {select} FROM NAMED WINDOW :w ON :posts [{self.window}] WHERE {{ {where} }} "
            f"{group} {self.having} ORDER BY {self.key} LIMIT {self.k}"
        )

    @property
    def plain(self) -> str:
        """All groups with all values of what is aggregated."""
        group = f"GROUP BY {self.names}" if self.names else ""
        inner = f"GRAPH :w {{ {self.pattern} }}"
        beside = self.beside.replace("SERVICE", "GRAPH")
        return (
            f"PREFIX : <{NS}> SELECT * WHERE {{ {{ SELECT {self.select} "
            f"(GROUP_CONCAT(STR({self.of}) ; SEPARATOR='\\n') AS ?all) WHERE {{ {inner} }} {group} "
            f"{self.having} }} {beside} }} ORDER BY {self.key}"
        )


def posts(arrivals: str | None) -> Any:
    """Return what a stream says; some records lack some properties."""
    ids = st.integers(0, 999) if arrivals == "distinct" else st.integers(0, 5)
    fields = {name: st.sampled_from([*several, None]) for name, several in SAID.items()}
    record = st.fixed_dictionaries(
        {
            **fields,
            "id": ids.map("p{}".format),
            "by": st.sampled_from("abcd"),
            "n": st.integers(-2, 5),
        }
    ).map(lambda each: {name: value for name, value in each.items() if value is not None})
    unique = (lambda each: each["id"]) if arrivals == "distinct" else None
    found = st.lists(record, min_size=1, max_size=25, unique_by=unique)
    return found.map(lambda some: [{"t": 1 + 2 * at, **each} for at, each in enumerate(some)])


PEOPLE = [{"user": name, "followers": 3, "home": "Como"} for name in "abc"]


@st.composite
def grouped(draw: st.DrawFn) -> Grouped:
    of = draw(st.sampled_from(["?city", "?at", "?price", "?post", "?by"]))
    names = draw(st.sampled_from(["?by", "?by", "?by ?n", ""]))
    more = f"; :{of[1:]} {of}" if of[1:] in SAID else ""
    if more and draw(st.booleans()):
        more = f"OPTIONAL {{ ?post :{of[1:]} {of} }}"
    beside = "SERVICE :people { ?by :home ?home }" if names == "?by" and draw(st.booleans()) else ""
    window = draw(WINDOWS)
    beside = beside if "RANGE" in window else ""
    having = "" if beside else draw(st.sampled_from(["", "", *HAVING]))
    return Grouped(
        names,
        draw(st.sampled_from([*SURE, *ANY])),
        of,
        f"?post :by ?by ; :n ?n {more}",
        beside,
        draw(st.sampled_from(["DESC(?a)", "?m", "DESC(?a + ?m)", *(["?by"] if names else [])])),
        draw(st.integers(1, 4)),
        window,
        having.format(of),
    )


def answers(world: World, query: Grouped, folder: Path, **options: Any) -> list[Answer]:
    """Return the answers of a query that is evaluated incrementally."""
    catalog = world.write(folder)
    bound = bind_query(query.text, catalog)
    inner = bound.query if isinstance(bound, BoundCounted) else bound
    assert isinstance(inner, BoundQuery), inner.reason
    given = {"runtime": "local", **options}
    with Engine(catalog, **given, until_end=True, autostart=False, clock=lambda: 0.0) as engine:
        handle = engine.register(query.text, name="q")
        engine.start()
        return list(handle)


def judge(world: World, query: Grouped, answer: Answer) -> None:
    """Check an answer's groups, and their aggregates as far as SPARQL says them."""
    shaped = ShapedQuery("", "", (), window=query.window)
    results: Any = world.store(world.inside(shaped, answer)).query(query.plain)
    names = [each.value for each in results.variables]
    right = [{name: row[name] for name in names if row[name] is not None} for row in results]
    keys = re.findall(r"\?(\w+)", query.key)
    # An order by an error is none; a term may be unbound.
    right = [each for each in right if all(name in each for name in keys if name != "made")]
    shown = [row.bindings for row in answer.rows]
    assert [_said(each, keys) for each in shown] == [_said(each, keys) for each in right[: query.k]]
    by_group = {_said(each, _names(query)): each for each in right}
    for row in shown:
        group = by_group[_said(row, _names(query))]
        assert _said(row, ["a", "m", "home"]) == _said(group, ["a", "m", "home"])
        if query.aggregate in SURE:
            assert _said(row, ["made"]) == _said(group, ["made"]), query.text
        else:
            _judge_any(query, row.get("made"), group)


def _judge_any(query: Grouped, made: Any, group: Mapping[str, Any]) -> None:
    assert (made is None) == ("made" not in group), query.text
    if made is None:
        return
    if "all" not in group:
        return
    values = group["all"].value.split("\n")
    if query.aggregate.startswith("SAMPLE"):
        assert str(made) in values or query.of == "?price"
    elif "DISTINCT" in query.aggregate:
        assert Counter(str(made).split("|")) == Counter(group["made"].value.split("|"))
    elif "," in query.aggregate:
        assert Counter(str(made).split(", ")) == Counter(group["made"].value.split(", "))
    else:
        assert Counter(str(made)) == Counter(group["made"].value)


def _names(query: Grouped) -> list[str]:
    return re.findall(r"\w+", query.names)


def _said(row: Mapping[str, Any], names: Sequence[str]) -> tuple[object, ...]:
    return tuple(value_of(row[name]) if name in row else None for name in names)


@THOROUGH
@settings(max_examples=35)
@given(st.data(), ARRIVALS)
def test_aggregates_of_terms(data: st.DataObject, arrivals: str | None) -> None:
    world = World(data.draw(posts(arrivals)), PEOPLE, arrivals=arrivals)
    query = data.draw(grouped())
    with tempfile.TemporaryDirectory() as folder:
        found = answers(world, query, Path(folder))
    assert {each.status for each in found} <= {Status.EXACT}
    for each in found:
        judge(world, query, each)


@THOROUGH
@settings(max_examples=35)
@given(
    st.data(),
    ARRIVALS,
    st.sampled_from(SURE),
    st.sampled_from(["?made", "DESC(?made)", "?made DESC(?a)", "DESC(?a) ?made"]),
)
def test_groups_in_the_order_of_their_terms(
    data: st.DataObject, arrivals: str | None, aggregate: str, key: str
) -> None:
    """A least or greatest term is the first key: unbound ones are lowest."""
    world = World(data.draw(posts(arrivals)), PEOPLE, arrivals=arrivals)
    query = replace(data.draw(grouped()), aggregate=aggregate, key=key)
    with tempfile.TemporaryDirectory() as folder:
        found = answers(world, query, Path(folder))
    assert {each.status for each in found} <= {Status.EXACT}
    for each in found:
        judge(world, query, each)


PATTERN = "{{ SELECT ?u (COUNT(*) AS ?s) ({} AS ?x) WHERE {{ ?e :by ?u ; :text ?t }} GROUP BY ?u }}"
worlds = st.builds(
    record_patterns.World,
    seed=st.integers(0, 2**32),
    pattern=st.just(""),
    score=st.just("2 * ?s"),
    shown=st.just("?u ?s ?x"),
    arrivals=st.sampled_from(["all", "all", "latest", "distinct"]),
    events=st.integers(0, 60),
    subjects=st.sampled_from([1, 4, 30]),
    width=st.integers(1, 12),
    slide=st.integers(1, 8),
)


@settings(max_examples=25)
@given(worlds, st.sampled_from(SURE), st.integers(0, 2**32), st.booleans())
def test_least_terms_after_a_restart(
    world: record_patterns.World, aggregate: str, seed: int, restarts: bool
) -> None:
    world = replace(world, pattern=PATTERN.format(aggregate.format("?t")))
    bound = world.bind()
    assert isinstance(bound, BoundQuery), bound.reason
    record_patterns.assert_right(world, bound, seed, restarts=restarts)


@settings(max_examples=25)
@given(worlds, st.sampled_from(ANY), st.integers(0, 2**32), st.integers(0, 2**32))
def test_what_is_concatenated_depends_on_no_cut_into_batches(
    world: record_patterns.World, aggregate: str, one: int, other: int
) -> None:
    world = replace(world, pattern=PATTERN.format(aggregate.format("?t")))
    bound = world.bind()
    shown = [
        [
            [dict(row.bindings) for row in answer.rows]
            for answer in record_patterns.Run(world, bound, restarts).answers(seed)
        ]
        for seed, restarts in ((one, False), (other, False), (other, True))
    ]
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize("arrivals", [None, "distinct"])
def test_aggregates_of_terms_on_spark(
    tmp_path: Path, arrivals: str | None, spark: SparkSession
) -> None:
    said = [
        {"t": 1 + 2 * at, "id": f"p{at % 8 if arrivals is None else at}", "by": "abcd"[at % 4],
         "n": at % 5 - 1, **{name: several[at % len(several)] for name, several in SAID.items()}}
        for at in range(14)
    ]  # fmt: skip
    world = World(said, PEOPLE, arrivals)
    pattern = "?post :by ?by ; :n ?n ; :city ?city"
    service = "SERVICE :people { ?by :home ?home }"
    for number, beside in enumerate(["", service]):
        query = Grouped(
            "?by", "MIN({})", "?city", pattern, beside, "DESC(?a)", 3, "RANGE 10ms STEP 4ms"
        )
        folder = tmp_path / str(number)
        folder.mkdir()
        found = answers(world, query, folder, runtime="spark", spark=spark)
        assert {each.status for each in found} == {Status.EXACT}
        for each in found:
            judge(world, query, each)
