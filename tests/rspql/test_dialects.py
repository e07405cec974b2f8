"""RSP-QL as it is written elsewhere: what is understood, and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from rspql import ast
from rspql.diagnostics import QueryError
from rspql.parser import parse

WHERE = "WHERE { WINDOW :w { ?s ?p ?o } }"
DOCUMENT = (Path(__file__).parents[2] / "docs" / "language.md").read_text("utf-8")


def window(clause: str, **options: str) -> ast.WindowClause:
    (found,) = parse(
        f"PREFIX : <urn:> SELECT * {clause} {WHERE}", bare_unit=options.get("unit")
    ).windows
    return found


MINUTES = (540_000, 180_000)


@pytest.mark.parametrize(
    ("clause", "width", "slide"),
    [
        ("FROM NAMED WINDOW :w ON :s [RANGE 9m STEP 3m]", *MINUTES),
        ("FROM NAMED WINDOW :w ON STREAM :s [RANGE 9m SLIDE 3m]", *MINUTES),
        ("from named window :w on stream :s [ range PT9M step PT3M ]", *MINUTES),
        ("FROM NAMED WINDOW :w ON :s [RANGE pt9m STEP PT180S]", *MINUTES),
        ("FROM NAMED WINDOW :w [RANGE 9 m, SLIDE 3 min] ON STREAM :s", *MINUTES),
        ("FROM NAMED WINDOW ON STREAM :s [RANGE 9m STEP 3m] AS :w", *MINUTES),
        ("FROM NAMED WINDOW :w ON s [RANGE 9m STEP 3m]", *MINUTES),
        (
            "FROM NAMED WINDOW :w ON :s [SLIDING 9m SLIDE 3m REPORT ON_WINDOW_CLOSE "
            "TICK TIME_DRIVEN]",
            *MINUTES,
        ),
        ("FROM NAMED WINDOW :w ON :s [TUMBLING 9m]", 540_000, 540_000),
        ("FROM NAMED WINDOW :w ON :s [RANGE 9m TUMBLING]", 540_000, 540_000),
        ("FROM NAMED WINDOW :w ON :s [RANGE P1DT0.5S]", 86_400_500, 86_400_500),
        (
            'FROM NAMED WINDOW :w ON :s [RANGE "PT9M"^^xsd:duration '
            'STEP "PT3M"^^xsd:dayTimeDuration]',
            *MINUTES,
        ),
    ],
)
def test_spellings_of_one_window(clause: str, width: int, slide: int) -> None:
    found = window(clause)
    assert (found.width, found.slide, found.counts) == (width, slide, False)
    assert found.stream.value.endswith("s")


@pytest.mark.parametrize(
    ("spec", "width", "slide"),
    [
        ("[ELEMENTS 10 STEP 5]", 10, 5),
        ("[ITEM 10]", 10, 10),
        ("[TRIPLES 10 SLIDE 2]", 10, 2),
        ("[RANGE TRIPLES 10]", 10, 10),
        ("[ROWS 7 TUMBLING]", 7, 7),
    ],
)
def test_windows_that_count(spec: str, width: int, slide: int) -> None:
    found = window(f"FROM NAMED WINDOW :w ON :s {spec}")
    assert (found.width, found.slide, found.counts) == (width, slide, True)


@pytest.mark.parametrize(("unit", "width"), [("s", 9_000), ("ms", 9), ("m", 540_000)])
def test_numbers_without_a_unit_need_one_from_outside(unit: str, width: int) -> None:
    assert window("FROM NAMED WINDOW :w ON :s [RANGE 9]", unit=unit).width == width
    with pytest.raises(QueryError, match="has no unit"):
        window("FROM NAMED WINDOW :w ON :s [RANGE 9]")


@pytest.mark.parametrize(
    ("written", "start_ms"),
    [
        ('"1970-01-01T00:00:01Z"^^xsd:dateTime', 1_000),
        ('"1970-01-01T00:00:01"', 1_000),
        ('"1970-01-01T01:00:00.25+01:00"', 250),
        ('"2025-12-31T24:00:00Z"', 1_767_225_600_000),
        ('"9999-12-31T23:59:59.999Z"', 253_402_300_799_999),
        ('"0001-01-01T00:00:00Z"', -62_135_596_800_000),
        ('"0001-01-01T00:00:00.001-00:00"', -62_135_596_799_999),
    ],
)
def test_the_start_of_the_first_window(written: str, start_ms: int) -> None:
    assert (
        window(f"FROM NAMED WINDOW :w ON :s [RANGE 9m STEP 3m START {written}]").start_ms
        == start_ms
    )


@pytest.mark.parametrize(
    ("header", "output", "every"),
    [
        ("", None, None),
        ("REGISTER STREAM :out AS", "RSTREAM", None),
        ("REGISTER RStream <urn:out> AS", "RSTREAM", None),
        ("REGISTER IStream :out AS", "ISTREAM", None),
        ("register dstream :out as", "DSTREAM", None),
        ("REGISTER QUERY out COMPUTED EVERY 3m AS PREFIX x: <urn:x>", "RSTREAM", 180_000),
    ],
)
def test_headers(header: str, output: str | None, every: int | None) -> None:
    query = parse(
        f"PREFIX : <urn:> {header} SELECT * FROM NAMED WINDOW :w ON :s [RANGE 3m] {WHERE}"
    )
    found = query.registration
    assert (found and found.output, found and found.every_ms) == (output, every)
    assert found is None or found.name.value == "urn:out"


@pytest.mark.parametrize("operator", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_the_operator_may_stand_behind_the_form(operator: str) -> None:
    assert parse(f"SELECT {operator.lower()} ?s {{ ?s ?p ?o }}").output == operator
    assert parse(f"CONSTRUCT {operator} {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }}").output == operator


def test_clauses_may_stand_before_the_form_and_after_the_pattern() -> None:
    clauses = [f"FROM NAMED WINDOW <urn:{name}> ON <urn:s> [RANGE 1s]" for name in "abc"]
    query = parse(
        f"{clauses[0]} SELECT * {clauses[1]} FROM <urn:g> WHERE {{ }} {clauses[2]} LIMIT 1"
    )
    assert [
        str(each.window.value) for each in query.windows if isinstance(each.window, ast.Iri)
    ] == [
        "urn:a",
        "urn:b",
        "urn:c",
    ]
    assert query.default_graphs == (ast.Iri("urn:g"),)


def test_expressions_in_select_need_no_parentheses() -> None:
    texts = ["F(?x) AS ?y", "<urn:f>(?x) AS ?y", "COUNT(?x) AS ?y", "(?x + 1) AS ?y"]
    for text in texts:
        (item,) = getattr(parse(f"SELECT {text} {{ ?x ?p ?o }}").form, "projection")  # noqa: B009 (Select alone has it)
        assert item.variable == ast.Variable("y")


def test_usual_prefixes_need_no_declaration_in_rsp_ql_alone() -> None:
    query = parse(
        f"SELECT * FROM NAMED WINDOW :w ON :s [RANGE 9m] {WHERE} VALUES ?o "
        f"{{ xsd:string rdf:type }}"
    )
    assert query.windows[0].stream == ast.Iri("urn:rspql:s")
    for text in ("SELECT * { ?s rdf:type ?o }", "SELECT * { ?s ?p :o }"):
        with pytest.raises(QueryError, match="is not declared"):
            parse(text)


@pytest.mark.parametrize(
    "written",
    [
        '"2026-W05-6"',
        '"20260131"',
        '"2026-01-31"',
        '"2026-01-31T24:00:01Z"',
        '"2026-01-31T12:00:00.0001Z"',
        '"0001-01-01T00:00:00+00:01"',
        '"9999-12-31T24:00:00Z"',
        '"x"^^<urn:t>',
    ],
)
def test_what_is_no_start(written: str) -> None:
    with pytest.raises(QueryError) as caught:
        window(f"FROM NAMED WINDOW :w ON :s [RANGE 9m START {written}]")
    assert [found.code for found in caught.value.diagnostics] == ["start"]


@pytest.mark.parametrize("length", ["9" * 400 + "m", "1" * 5000, "P" + "9" * 30 + "D", "0s", "-1s"])
def test_lengths_that_cannot_be(length: str) -> None:
    with pytest.raises(QueryError):
        window(f"FROM NAMED WINDOW :w ON :s [RANGE {length}]", unit="s")


def test_prefixes_that_look_like_other_languages() -> None:
    text = "PREFIX add: <urn:> PREFIX rule: <urn:> SELECT * { ?s ?p ?o add:x rule:y 1 }"
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert [found.code for found in caught.value.diagnostics] == ["syntax"]


REFUSED = {
    "FROM STREAM :s [RANGE 1s]": "FROM STREAM of C-SPARQL",
    "FROM NAMED STREAM :s [NOW]": "FROM NAMED STREAM of C-SPARQL",
    "FROM NAMED WINDOW :w ON :s [LANDMARK 1s]": "landmark windows",
    "FROM NAMED WINDOW :w ON :s [NOW]": r"\[NOW\] and \[ALL\] windows",
    "FROM NAMED WINDOW :w ON :s [FROM NOW-PT1H TO NOW]": "windows over a stretch of the past",
    "FROM NAMED WINDOW :w ON :s [START 1000 END 2000]": "windows over a stretch of the past",
    "FROM NAMED WINDOW :w ON :s [OFFSET 10 RANGE 10 STEP 5]": "windows with an OFFSET into "
    "the past",
    "FROM NAMED WINDOW :w ON LOG :s [RANGE 1s]": "windows over a LOG",
    "FROM NAMED WINDOW :w ON ?s [RANGE 1s]": "queries with parameters",
    "FROM NAMED WINDOW :w ON :s [RANGE ?r]": "queries with parameters",
    "FROM NAMED WINDOW :w ON :s RANGE 1s": "must stand in brackets",
    "FROM WINDOW [RANGE 1s] ON STREAM :s": "windows without a name",
    "FROM NAMED WINDOW :w ON :s [RANGE 1s REPORT PERIODIC]": "report or tick strategy",
    "FROM NAMED WINDOW :w ON :s [RANGE 1s] WITH POLICY wait": "policies of Kolibrie",
    "WHERE { STREAM :s [RANGE 1s] { ?s ?p ?o } }": "STREAM patterns of CQELS",
    "WHERE { << ?s ?p ?o >> :p :o }": "RDF-star",
    "WHERE { LATERAL { } }": "LATERAL",
    "WHERE { ?s ?p ?o {| :p :o |} }": "RDF-star's annotations",
    "FROM NAMED WINDOW :w ON :s [RANGE P1M]": "years, months and weeks",
    "FROM NAMED WINDOW :w ON :s [OFFSET 9m\n RANGE 3m]": "windows with an OFFSET",
}


@pytest.mark.parametrize(("clause", "named"), REFUSED.items())
def test_what_is_not_supported_is_named(clause: str, named: str) -> None:
    with pytest.raises(QueryError, match=named) as caught:
        parse(f"PREFIX : <urn:> SELECT * {clause} WHERE {{ }}")
    assert [found.code for found in caught.value.diagnostics] == ["unsupported"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("INSERT DATA { }", "updates are not supported"),
        ("RETRIEVE SOME ACTIVE STREAM ?s", "RETRIEVE of Kolibrie"),
        ("RULE :r :- CONSTRUCT { } { }", "rules and machine-learning"),
        ("REGISTER STREAM :s FROM <f> SELECT * { }", "stream definitions of Kolibrie"),
        ("REGISTER STREAM :s UNDER ENTAILMENT REGIME <x> AS SELECT * { }", "entailment regimes"),
        ("CONSTRUCT { ?s ?p ?o . GRAPH :g { } } { }", "quads in a CONSTRUCT template"),
        ("DEFINE BASELINE :b ON WINDOW :w AS SELECT * { }", "baselines of Janus"),
    ],
)
def test_what_other_languages_say_is_named(text: str, named: str) -> None:
    with pytest.raises(QueryError, match=named):
        parse(f"PREFIX : <urn:> {text}")


def test_every_form_that_is_accepted_or_refused_is_documented() -> None:
    for word in (
        "ELEMENTS",
        "ITEM",
        "TRIPLES",
        "ROWS",
        "TUMBLING",
        "SLIDING",
        "START",
        "COMPUTED EVERY",
        "LANDMARK",
    ):
        assert word in DOCUMENT
