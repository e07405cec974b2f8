from __future__ import annotations

import pytest

from rspql import ast, compile_query
from rspql.diagnostics import QueryError
from rspql.parser import parse

LISTING_1 = """REGISTER STREAM :TopkUsersToContact AS
SELECT ?user
F(?mentionCount,?followerCount) as ?score
FROM NAMED WINDOW :W ON :S [RANGE 9m STEP 3m]
WHERE{
WINDOW :W {?user :hasMentions ?mentionCount}
SERVICE :BKG {?user :hasFollowers ?followerCount}
}
ORDER BY DESC (?score)
LIMIT 1
"""


def expression(text: str) -> ast.Expression:
    query = parse(f"SELECT ?x ({text} AS ?e) {{ }}")
    assert isinstance(query.form, ast.Select)
    item = query.form.projection[1]
    assert isinstance(item, ast.Assignment)
    return item.expression


def integer(text: str) -> ast.Literal:
    return ast.Literal(text, ast.XSD + "integer")


def elements(query: ast.Query) -> tuple[ast.Pattern, ...]:
    assert query.where is not None
    return query.where.elements


X, Y = ast.Variable("x"), ast.Variable("y")


def test_listing_1_of_the_paper_as_printed() -> None:
    query = parse(LISTING_1, prefixes={"": "http://example.org/"})
    assert query.registration == ast.Registration(
        ast.Iri("http://example.org/TopkUsersToContact"), "RSTREAM"
    )
    assert query.windows == (
        ast.WindowClause(
            ast.Iri("http://example.org/W"), ast.Iri("http://example.org/S"), 540_000, 180_000
        ),
    )
    assert query.order == (ast.OrderCondition(ast.Variable("score"), True),)
    assert query.limit == 1


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("?x + ?y * 2", ast.Binary("+", X, ast.Binary("*", Y, integer("2")))),
        ("(?x + ?y) * 2", ast.Binary("*", ast.Binary("+", X, Y), integer("2"))),
        ("?x - ?y - 2", ast.Binary("-", ast.Binary("-", X, Y), integer("2"))),
        ("?x -1", ast.Binary("+", X, integer("-1"))),
        ("?x -1*?y", ast.Binary("+", X, ast.Binary("*", integer("-1"), Y))),
        ("-?x / ?y", ast.Binary("/", ast.Unary("-", X), Y)),
        ("?x < 1 && !?y", ast.Binary("&&", ast.Binary("<", X, integer("1")), ast.Unary("!", Y))),
        ("abs(?x)", ast.Call("abs", (X,))),
        (
            "norm(?x, 0, 1.5)",
            ast.Call("norm", (X, integer("0"), ast.Literal("1.5", ast.XSD + "decimal"))),
        ),
        (
            "<urn:f>(?x, 1e3)",
            ast.Call(ast.Iri("urn:f"), (X, ast.Literal("1e3", ast.XSD + "double"))),
        ),
        ("'a\\'b'@EN-gb", ast.Literal("a'b", ast.RDF + "langString", "en-gb")),
        ('"""two\n"quoted" lines"""', ast.Literal('two\n"quoted" lines')),
        ('"1"^^<urn:t>', ast.Literal("1", "urn:t")),
        ("true", ast.Literal("true", ast.XSD + "boolean")),
    ],
)
def test_expressions(text: str, meaning: ast.Expression) -> None:
    assert expression(text) == meaning


def test_keywords_do_not_break_names_and_names_do_not_break_keywords() -> None:
    query = parse(
        """prefix step: <urn:step/> PREFIX a: <urn:a/>
        select ?range from named window a:Step on stream step:STEP [ range PT9M slide 3 min ]
        where { window a:Step { ?range a a:select ; a:b ?x , ?y . } } order by ?range limit 2"""
    )
    assert query.windows[0].slide == 180_000
    window = elements(query)[0]
    assert isinstance(window, ast.WindowPattern)
    assert [
        triple.predicate
        for triple in window.group.elements
        if isinstance(triple, ast.TriplePattern)
    ] == [
        ast.Iri(ast.RDF + "type"),
        ast.Iri("urn:a/b"),
        ast.Iri("urn:a/b"),
    ]


def test_dataset_clauses_may_stand_after_the_pattern() -> None:
    query = parse("SELECT * WHERE { } FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 5s] LIMIT 1")
    assert query.windows[0].width == query.windows[0].slide == 5_000


def test_comments_and_base() -> None:
    query = parse(
        "BASE <http://example.org/x/> # here\nSELECT ?x { SERVICE <../y> { ?x <p#q> 1 } }"
    )
    service = elements(query)[0]
    assert isinstance(service, ast.ServicePattern)
    assert isinstance(service.service, ast.Iri)
    assert service.service.value == "http://example.org/y"


def test_spans_say_where_a_node_stands() -> None:
    query = parse(LISTING_1, prefixes={"": "urn:"})
    window = elements(query)[0]
    assert window.span is not None
    assert (
        LISTING_1[window.span.start : window.span.end]
        == "WINDOW :W {?user :hasMentions ?mentionCount}"
    )
    assert (window.span.line, window.span.column) == (6, 1)


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT ?x FROM NAMED WINDOW a:w ON b:s [RANGE 9 parsecs] { }")
    assert [found.code for found in caught.value.diagnostics] == [
        "undeclared-prefix",
        "undeclared-prefix",
        "duration",
    ]


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        compile_query(f"SELECT ?x ({'abs(' * 5000}1{')' * 5000} AS ?e) {{ }}")
