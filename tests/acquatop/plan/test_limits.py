"""Each construct runs in the engine at its limit; the first one beyond is refused."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from acquatop import Engine
from acquatop.app.cli import main
from acquatop.plan.check import check_query
from rspql.diagnostics import Diagnostic
from rspql.limits import (
    ALTERNATIVES,
    BRACKETS,
    COLUMNS,
    DEPTH,
    GROUP_KEYS,
    JOINED,
    LENGTH,
    LIMITS,
    NESTED_STEPS,
    OPTIONALS,
    ORDER_KEYS,
    PATTERNS,
    TOKENS,
    SizeLimit,
)
from tests.support.windowed import PREFIX, Record, catalog

WINDOW = "FROM NAMED WINDOW :v ON :a [RANGE 10s]"
SLACK = 8
"""So much of a limit may be used up by what stands around a construct, and by what stands in it."""


def query(select: str = "?s", body: str = "", tail: str = "", head: str = "SELECT") -> str:
    return f"{head} {select} {WINDOW} WHERE {{ WINDOW :v {{ ?s :p ?p . {body} }} }} {tail}"


def within(items: str) -> str:
    return query(body=items)


@dataclass(frozen=True)
class Wide:
    """A construct of which there may be so many: an item, numbered by $, again and again."""

    limit: SizeLimit
    make: Callable[[str], str]
    item: str
    between: str = " "

    def text(self, count: int) -> str:
        return PREFIX + self.make(
            self.between.join(self.item.replace("$", str(at)) for at in range(count))
        )

    def place(self, at: int) -> int:
        """Return where an item begins."""
        mark = "\N{BLACK STAR}"
        before = (self.item.replace("$", str(each)) + self.between for each in range(at))
        return len(PREFIX) + self.make(mark).index(mark) + sum(map(len, before))

    def said(self, count: int) -> list[Diagnostic]:
        return [each for each in check_query(self.text(count)).diagnostics if each.is_error]

    @property
    def most(self) -> int:
        """Number that is accepted."""
        return bisect_left(
            range(1, 2 * self.limit.most), True, key=lambda count: bool(self.said(count))
        )


WIDE = {
    "computed columns": Wide(COLUMNS, query, "(1 + 1 AS ?a$)"),
    "columns": Wide(COLUMNS, query, "?a$"),
    "columns of aggregates": Wide(
        COLUMNS, lambda items: query(items, tail="GROUP BY ?s"), "(SUM(?p + $) AS ?a$)"
    ),
    "columns of VALUES": Wide(
        COLUMNS, lambda items: query(body=f"VALUES ( {items} ) {{ }}"), "?a$"
    ),
    "variables of a template": Wide(
        COLUMNS,
        lambda items: query(f"{{ ?s :p {items} }}", head="CONSTRUCT", tail="LIMIT 3"),
        "?a$",
        " , ",
    ),
    "what is described": Wide(
        COLUMNS, lambda items: query(items, head="DESCRIBE", tail="LIMIT 3"), "?a$"
    ),
    "keys of ORDER BY": Wide(ORDER_KEYS, lambda items: query(tail=f"ORDER BY {items}"), "(?p + $)"),
    "keys of GROUP BY": Wide(
        GROUP_KEYS,
        lambda items: query("(COUNT(*) AS ?n)", tail=f"GROUP BY {items}"),
        "(?p + $ AS ?a$)",
    ),
    "triple patterns": Wide(JOINED, within, "?s :p ?o$ ."),
    "objects": Wide(JOINED, lambda items: query(body=f"?s :p {items} ."), "?p", " , "),
    "braces": Wide(JOINED, within, "{ ?s :p ?p }"),
    "unions": Wide(JOINED, within, "{ ?s :p ?p } UNION { ?s :q ?p }"),
    "sub-queries": Wide(JOINED, within, "{ SELECT ?s { ?s :p ?p } LIMIT 3 }"),
    "blocks of VALUES": Wide(JOINED, within, "VALUES ?p { 1 2 3 }"),
    "windows": Wide(
        JOINED, lambda items: f"SELECT ?s {WINDOW} WHERE {{ {items} }}", "WINDOW :v { ?s :p ?p }"
    ),
    "repeated paths": Wide(JOINED, within, "?s :p* ?s ."),
    "steps": Wide(JOINED, lambda items: query(body=f"OPTIONAL {{ ?s {items} ?o }}"), ":p", "/"),
    "steps, inverted": Wide(
        JOINED, lambda items: query(body=f"OPTIONAL {{ ?s ^( {items} ) ?o }}"), ":p", "/"
    ),
    "steps of a repeated path": Wide(
        NESTED_STEPS, lambda items: query(body=f"?s ( {items} )* ?o"), ":p", "/"
    ),
    "steps of an alternative": Wide(
        NESTED_STEPS, lambda items: query(body=f"?s :p|{items} ?o"), ":p", "/"
    ),
    "alternatives": Wide(ALTERNATIVES, lambda items: query(body=f"?s {items} ?o"), ":p", "|"),
    "repeated alternatives": Wide(
        ALTERNATIVES, lambda items: query(body=f"?s ( {items} )+ ?o"), ":p", "|"
    ),
    "braces in UNION": Wide(PATTERNS, within, "{ }", " UNION "),
    "branches": Wide(PATTERNS, within, "{ ?s :p ?p }", " UNION "),
    "BIND": Wide(DEPTH, within, "BIND(?p + $ AS ?a$)"),
    "OPTIONAL": Wide(OPTIONALS, within, "OPTIONAL { ?s :q ?a$ }"),
    "OPTIONAL that is there": Wide(OPTIONALS, within, "OPTIONAL { ?s :p ?a$ }"),
    "MINUS": Wide(DEPTH, within, "MINUS { ?s :q ?p }"),
    "FILTER": Wide(DEPTH, within, "FILTER(?p != $00)"),
    "FILTER EXISTS": Wide(DEPTH, within, "FILTER EXISTS { ?s :p ?p }"),
    "FILTER NOT EXISTS": Wide(DEPTH, within, "FILTER NOT EXISTS { ?s :q ?p }"),
    "HAVING": Wide(
        DEPTH, lambda items: query(tail=f"GROUP BY ?s HAVING {items}"), "(COUNT(*) != $00)"
    ),
    "&&": Wide(DEPTH, lambda items: query(body=f"FILTER( {items} )"), "?p", " && "),
    "||": Wide(DEPTH, lambda items: query(body=f"FILTER( {items} )"), "?p = $", " || "),
    "+": Wide(DEPTH, lambda items: query(f"( {items} AS ?sum)"), "?p", " + "),
    "*": Wide(DEPTH, lambda items: query(f"( {items} AS ?product)"), "?p", " * "),
    "sums of aggregates": Wide(
        DEPTH, lambda items: query(f"( {items} AS ?n)", tail="GROUP BY ?s"), "SUM(?p)", " + "
    ),
}
"""Limited constructs, by name."""

DEEP: dict[str, Callable[[int], str]] = {
    "braces": lambda depth: query(body="{ " * depth + "?s :p ?p" + " }" * depth),
    "OPTIONAL": lambda depth: query(body="OPTIONAL { ?s :p ?p " * depth + " }" * depth),
    "MINUS": lambda depth: query(body="MINUS { ?s :q ?p " * depth + " }" * depth),
    "UNION": lambda depth: query(body="{ ?s :q ?p } UNION { " * depth + "?s :p ?p" + " }" * depth),
    "EXISTS": lambda depth: query(body="FILTER EXISTS { ?s :p ?p " * depth + " }" * depth),
    "sub-queries": lambda depth: query(body="{ SELECT ?s { ?s :p ?p " * depth + " } }" * depth),
    "calls": lambda depth: query("(" + "ABS(" * depth + "?p" + ")" * depth + " AS ?x)"),
    "choices": lambda depth: query("(" + "IF(true, " * depth + "?p" + ", 1)" * depth + " AS ?x)"),
    "IN": lambda depth: query(body="FILTER(" + "(?p IN (" * depth + "?p" + "))" * depth + ")"),
    "paths": lambda depth: query(body="?s " + "(" * depth + ":p" + ")+" * depth + " ?o"),
    # What is in rows and deep at once.
    "all of them": lambda depth: query(
        " ".join(f"(?p + {at} AS ?a{at})" for at in range(99)),
        "OPTIONAL { ?s :p ?p " * (depth // 2) + "BIND(1 AS ?one) " + " }" * (depth // 2),
        "ORDER BY " + " ".join(f"(?p * {at})" for at in range(50)),
    ).replace(
        "BIND(1 AS ?one)", " ".join(f"BIND({at} AS ?b{at})" for at in range(max(1, depth // 4)))
    ),
}
LONG = {
    "IN": query(body=f"FILTER(?p IN ({', '.join(f'?p + {at}' for at in range(8_000))}))"),
    "CONCAT": query(f"(CONCAT({', '.join(['STR(?p)'] * 9_000)}) AS ?x)"),
    "COALESCE": query(f"(COALESCE({', '.join(['?z'] * 20_000)}, ?p) AS ?x)"),
    "VALUES": query(body=f"VALUES ?p {{ {' '.join(map(str, range(45_000)))} }}"),
    "negated": query(body=f"?s !({'|'.join(f':n{at}' for at in range(15_000))}) ?o"),
    "templates": query("{" + "?s :p ?p . " * 5_000 + "}", head="CONSTRUCT"),
    "descriptions": query(" ".join(f":s{at}" for at in range(10_000)), head="DESCRIBE"),
    "sums": query(
        " ".join(f"({' + '.join(['SUM(?p)'] * 90)} AS ?n{at})" for at in range(100)),
        tail="GROUP BY ?s",
    ),
}
"""Wide and harmless constructs: only the number of tokens limits them."""


def answered(text: str, folder: Path) -> int:
    """Return how many answers a query has, in an engine whose thread evaluates it."""
    records = [Record(1_000, "k", 1), Record(2_000, "l", 2), Record(3_000, "m", 1, 2.0, "x")]
    (folder / "a").write_bytes(b"".join(record.line() + b"\n" for record in records))
    engine = Engine(catalog(folder=folder, start="start_ms = 0"), runtime="local", until_end=True)
    try:
        return len(list(engine.register(PREFIX + text.removeprefix(PREFIX))))
    finally:
        engine.stop()


@pytest.mark.parametrize("name", WIDE)
def test_what_is_as_wide_as_allowed_is_evaluated_and_the_first_beyond_is_named(
    name: str, tmp_path: Path
) -> None:
    wide = WIDE[name]
    most = wide.most
    assert wide.limit.most - SLACK <= most * (2 if name == "branches" else 1) <= wide.limit.most + 1
    for count in (most + 1, most + 2, most + most // 2):
        (found, *_) = wide.said(count)
        assert found.code == ("nesting" if wide.limit is DEPTH else "too-wide")
        assert str(wide.limit.most) in found.message + (found.hint or "")
        assert wide.limit.remedy in (found.hint or "")
        assert found.span is not None
        assert wide.place(most) <= found.span.start < wide.place(most + 1)
    assert answered(wide.text(most), tmp_path) == 1


@pytest.mark.parametrize("name", DEEP)
def test_what_is_as_deep_as_allowed_is_evaluated(name: str, tmp_path: Path) -> None:
    deep = bisect_left(
        range(1, 2 * DEPTH.most), True, key=lambda at: not check_query(PREFIX + DEEP[name](at)).ok
    )
    assert deep > DEPTH.most // 5
    assert [each.code for each in check_query(PREFIX + DEEP[name](2 * DEPTH.most)).diagnostics] == [
        "nesting"
    ]
    assert answered(DEEP[name](deep), tmp_path) == 1


@pytest.mark.parametrize("name", LONG)
def test_what_is_long_and_harmless_is_evaluated(name: str, tmp_path: Path) -> None:
    assert answered(LONG[name], tmp_path) == 1


def test_what_a_star_stands_for_counts_as_columns() -> None:
    optional = " ".join(f"OPTIONAL {{ ?s :q ?a{at} , ?b{at} }}" for at in range(COLUMNS.most // 2))
    (found,) = check_query(PREFIX + query("*", optional)).diagnostics
    assert (found.code, found.column, found.line) == ("too-wide", 1, 2)
    assert check_query(PREFIX + query("?s", optional)).ok
    assert check_query(PREFIX + query("*", optional, head="DESCRIBE")).ok
    assert not check_query(PREFIX + query("*", optional, head="DESCRIBE", tail="LIMIT 1")).ok
    inner = f"{{ SELECT * {{ {optional} }} }}"
    assert check_query(PREFIX + query("?s", inner)).ok
    assert not check_query(PREFIX + query("?s", inner.replace("} }", "} LIMIT 3 }", 1))).ok


def test_each_limit_is_tried() -> None:
    assert {wide.limit for wide in WIDE.values()} == {*LIMITS} - {LENGTH, TOKENS, BRACKETS}


def test_several_limits_are_complained_about_together() -> None:
    text = query(" ".join(f"?a{at}" for at in range(101)), tail="ORDER BY " + " ".join(["?s"] * 51))
    assert [each.code for each in check_query(PREFIX + text).diagnostics] == [
        "too-wide",
        "too-wide",
    ]


def test_check_and_run_refuse_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wide.rspql").write_text(WIDE["BIND"].text(3_000), "utf-8")
    (tmp_path / "catalog.toml").write_text("", "utf-8")
    said = []
    for arguments in (["check"], ["run", "--catalog", str(tmp_path / "catalog.toml")]):
        assert main([*arguments, str(tmp_path / "wide.rspql")]) == 2
        captured = capsys.readouterr()
        said.append(captured.out + captured.err)
    assert all(
        "wide.rspql:2:" in each and "the query is nested too deeply" in each for each in said
    )
