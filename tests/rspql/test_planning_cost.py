"""Planning is cheap: its time grows with the number of tokens, and texts beyond it are refused."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator

import pytest

from rspql.ast import TriplePattern, walk
from rspql.compiler import Analysis, analyse
from rspql.diagnostics import QueryError
from rspql.explain import explain
from rspql.formatter import format_query
from rspql.grammar import grammar
from rspql.limits import BRACKETS, DEPTH, LENGTH, PATTERNS, TOKENS
from rspql.parser import parse
from tests.support.markers import THOROUGH

pytestmark = THOROUGH

WINDOW = "FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 9s]"
MOST_SECONDS = 10.0
"""Bound of one text's CPU time, several times what a slow machine needs."""

Text = Callable[[int], str]

WIDE: dict[str, Text] = {
    "rows of VALUES": lambda n: windowed(f"VALUES ?s {{{' <urn:a>' * n}}}"),
    "rows of two": lambda n: windowed(f"VALUES (?s ?o) {{{' (<urn:a> 1)' * n}}}"),
    "choices of IN": lambda n: windowed(f"FILTER(?o IN ({', '.join(['1'] * n)}))"),
    "arguments": lambda n: windowed(f"FILTER(CONCAT({', '.join(['?o'] * n)}) = '')"),
    "disjunctions": lambda n: windowed(f"FILTER({' || '.join(['?o'] * n)})"),
    "triple patterns": lambda n: windowed(" . ".join(f"?s <urn:p{at}> ?o" for at in range(n))),
    "properties": lambda n: windowed(f"?s {' ; '.join(f'<urn:p{at}> ?o' for at in range(n))}"),
    "objects": lambda n: windowed(f"?s <urn:p> {' , '.join(['?o'] * n)}"),
    "items of a collection": lambda n: windowed(f"?s <urn:p> ({' 1' * n})"),
    "alternatives": lambda n: windowed(f"?s {'|'.join(['<urn:p>'] * n)} ?o"),
    "unions": lambda n: windowed(" UNION ".join(["{ }"] * n)),
    "bindings": lambda n: windowed(" ".join(f"BIND(1 AS ?b{at})" for at in range(n))),
    "windows": lambda n: f"ASK {WINDOW * n} {{ }}",
    "prefixes": lambda n: " ".join(f"PREFIX p{at}: <urn:>" for at in range(n)) + windowed(""),
    "undeclared prefixes": lambda n: f"ASK {{ {' . '.join(f'p{at}:a ?p ?o' for at in range(n))} }}",
    "selected": lambda n: f"SELECT {' '.join(f'?v{at}' for at in range(n))} {WINDOW} {{ }}",
    "differences": lambda n: windowed(f"FILTER({'-'.join(['true'] * n)})"),
    "keys": lambda n: windowed("") + f" GROUP BY {' '.join(f'?v{at}' for at in range(n))}",
}
"""Texts whose number of tokens grows with a number."""

DEEP: dict[str, Text] = {
    "braces": lambda n: "SELECT * " + "{" * n + "}" * n,
    "braces without an end": lambda n: "SELECT * " + "{" * n,
    "parentheses": lambda n: "SELECT (" + "(" * n + "1" + ")" * n + " AS ?x) { }",
    "parentheses without an end": lambda n: "SELECT " + "(" * n,
    "blank nodes": lambda n: "ASK { ?s ?p " + "[ ?p " * n + "1" + "]" * n + "}",
    "collections": lambda n: "ASK { ?s ?p " + "(" * n + "1" + ")" * n + "}",
    "calls": lambda n: "SELECT (" + "ABS(" * n + "1" + ")" * n + " AS ?x) { }",
    "sub-queries": lambda n: "ASK " + "{ { SELECT * " * n + "{ }" + "} }" * n,
    "EXISTS": lambda n: "ASK { FILTER " + "EXISTS { FILTER " * n + "(1)" + "}" * n + "}",
    "paths": lambda n: "ASK { ?s " + "(" * n + "<p>" + ")*" * n + " ?o }",
    "after a comparison": lambda n: "ASK { FILTER(?a<" + "(" * n + "1" + ")" * n + ") }",
}
"""Texts whose brackets nest as deep as a number."""

LONG: dict[str, Text] = {
    "spaces": lambda n: " " * n,
    "comments": lambda n: "#a\n" * (n // 3),
    "a comment": lambda n: "#" * n,
    "an IRI without an end": lambda n: "ASK { ?s <" + "a" * n,
    "IRIs without an end": lambda n: "ASK { ?s " + "<a " * (n // 3),
    "a string without an end": lambda n: "ASK { ?s ?p '" + "a" * n,
    "a long string without an end": lambda n: "ASK { ?s ?p '''" + "a''" * (n // 3),
    "backslashes": lambda n: 'ASK { ?s ?p "' + "\\\\" * (n // 2),
    "escapes": lambda n: "ASK { ?s ?p '" + "\\u0041" * (n // 6) + "' }",
    "a name with dots": lambda n: "ASK { ?s ?p a" + "." * n,
    "a name with dots and dashes": lambda n: "ASK { ?s ?p " + "a.a-" * (n // 4),
    "a name with percents": lambda n: "ASK { ?s ?p a:" + "%a" * (n // 2),
    "a name with dots at its end": lambda n: "PREFIX a: <urn:> ASK { ?s ?p a:b" + "." * n,
    "a label of a blank node": lambda n: "ASK { ?s ?p _:anon" + "_" * n,
    "a variable": lambda n: "ASK { ?s ?p ?" + "a" * n + " }",
    "a keyword": lambda n: "SELECT" * (n // 6),
    "a language": lambda n: "ASK { ?s ?p 'a'@" + "a-" * (n // 2),
    "digits": lambda n: "ASK { ?s ?p " + "1" * n + " }",
    "digits and dots": lambda n: "ASK { ?s ?p " + "1." * (n // 2) + " }",
    "a duration": lambda n: "ASK FROM NAMED WINDOW <w> ON <s> [RANGE P" + "1" * n,
    "a duration without a unit": lambda n: "ASK FROM NAMED WINDOW <w> ON <s> [RANGE " + "1" * n,
    "exclamation marks": lambda n: "ASK { FILTER(" + "!" * n + "1) }",
    "signs": lambda n: "ASK { FILTER(" + "+-" * (n // 2) + "1) }",
    "mistakes": lambda n: "ASK { ?s ?p ?o " + "OPTONAL " * (n // 8),
    "nothing": lambda n: "\0" * n,
}
"""Texts as long as a number that have few tokens, or go wrong early."""


def windowed(body: str) -> str:
    """Return a query with something in its window."""
    return f"SELECT ?s {WINDOW} {{ WINDOW <urn:w> {{ ?s <urn:q> ?o . {body} }} }}"


def all_of(text: str) -> Analysis:
    """Do everything that the package does with a text; return its analysis."""
    analysis = analyse(text)
    if analysis.ok:
        explain(analysis)
    for found in analysis.diagnostics:
        found.render(text, "q")
    try:
        format_query(text)
    except QueryError:
        assert not analysis.ok
    return analysis


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """Return the least CPU time of this thread that some work takes."""
    least = float("inf")
    for _ in range(times):
        started = time.thread_time()
        work()
        least = min(least, time.thread_time() - started)
    return least


@pytest.fixture(autouse=True, scope="module")
def _steady() -> Iterator[None]:
    """Build the grammar's tables first, and keep collections of other tests' garbage out."""
    grammar().parse("ASK { }")
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def assert_linear(make: Text, size: int) -> None:
    """Assert that four times the text takes much less than sixteen times the time."""
    small, large = make(size), make(4 * size)
    for _ in range(3):
        floor = max(seconds(lambda: all_of(small), 3), 0.002)
        if seconds(lambda: all_of(large), 2) < 9 * floor:
            return
    raise AssertionError("the time grows faster than the text")


@pytest.mark.parametrize("name", WIDE)
def test_the_time_grows_with_the_width(name: str) -> None:
    assert_linear(WIDE[name], 400)


@pytest.mark.parametrize("name", LONG)
def test_the_time_grows_with_the_length(name: str) -> None:
    assert_linear(LONG[name], 50_000)


@pytest.mark.parametrize("name", WIDE)
def test_the_widest_text_is_refused_or_planned_in_bounded_time(name: str) -> None:
    make = WIDE[name]
    unit = (len(make(1_100)) - len(make(100))) // 1_000
    assert seconds(lambda: analyse(make(LENGTH.most // (unit + 5)))) < MOST_SECONDS


@pytest.mark.parametrize("name", LONG)
def test_the_longest_text_is_refused_or_planned_in_bounded_time(name: str) -> None:
    assert seconds(lambda: all_of(LONG[name](LENGTH.most - 100))) < MOST_SECONDS


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("depth", [BRACKETS.most + 1, 10_000, 100_000])
def test_the_deepest_text_is_refused_at_the_first_bracket_beyond(name: str, depth: int) -> None:
    text = DEEP[name](depth)[: LENGTH.most]
    (found,) = all_of(text).diagnostics
    assert (found.code, found.message) == ("nesting", "the query is nested too deeply")
    assert found.hint is not None
    assert found.hint.startswith(f"at most {BRACKETS.most} {BRACKETS.what} are supported; ")
    assert found.span is not None
    before = text[: found.span.end]
    assert sum(map(before.count, "{([")) - sum(map(before.count, "})]")) == BRACKETS.most + 1


@pytest.mark.parametrize("name", DEEP)
def test_refusing_a_deep_text_costs_the_same_whatever_its_depth(name: str) -> None:
    shallow, deep = DEEP[name](BRACKETS.most + 1), DEEP[name](LENGTH.most // 20)
    assert seconds(lambda: analyse(deep), 5) < 5 * max(seconds(lambda: analyse(shallow), 5), 0.002)


@pytest.mark.parametrize("value", [" 1", " UNDEF", "\n'a'"])
def test_the_first_token_beyond_the_limit_is_named(value: str) -> None:
    begin, end = "ASK { VALUES ?x {", "} }"
    most = TOKENS.most - 7
    assert "too-long" not in [each.code for each in analyse(begin + value * most + end).diagnostics]
    text = begin + value * (most + 3) + end
    (found,) = analyse(text).diagnostics
    assert (found.code, found.hint) == ("too-long", TOKENS.remedy)
    assert found.message == f"the query has more than {TOKENS.most} {TOKENS.what}"
    assert found.span is not None
    assert text[found.span.start : found.span.end] == value.strip()
    assert text[: found.span.start].count(value) == TOKENS.most - 5


def test_a_mistake_before_the_limit_is_named_first() -> None:
    (found,) = analyse("SELECT * WHERE WHERE " + "{" * 10_000).diagnostics
    assert (found.code, found.column) == ("syntax", 16)


def test_many_patterns_on_one_subject_are_wide_and_not_deep() -> None:
    # All of them share the node of their subject.
    for count in (DEPTH.most + 1, PATTERNS.most - 10):
        text = "ASK { ?s " + " ; ".join(f"<urn:p{at}> ?o{at}" for at in range(count)) + " }"
        assert [each.code for each in analyse(text).diagnostics] == ["too-wide"]


def test_descriptions_within_descriptions_are_written_out_in_source_order() -> None:
    query = parse("ASK { [ <urn:a> 1 ] <urn:b> ( 2 [ <urn:c> 3 ] ) , 4 }")
    triples = [each for each in walk(query) if isinstance(each, TriplePattern)]
    objects = [getattr(each.object, "lexical", None) for each in triples]
    assert objects == ["1", None, "2", None, None, "3", None, "4"]
