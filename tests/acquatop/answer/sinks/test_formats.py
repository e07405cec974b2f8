"""Files of answers, read back by independent programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
from rdflib import Literal, URIRef
from rdflib.term import Identifier

from acquatop.answer.answer import Answer
from acquatop.answer.sinks import (
    CallbackSink,
    StdoutSink,
    ntriples,
    parquet,
    results_csv,
    results_json,
    results_tsv,
    turtle,
)
from acquatop.answer.sinks.table import answers_table
from acquatop.errors import UserError
from acquatop.ingest.terms import to_rdflib
from tests.support.sink_samples import answer, odd_terms, row, typed

ENCODERS = {
    "srj": (results_json.encode, ("select", "ask")),
    "csv": (results_csv.encode, ("select",)),
    "tsv": (results_tsv.encode, ("select",)),
    "nt": (ntriples.encode, ("construct", "describe")),
    "ttl": (turtle.encode, ("construct", "describe")),
    "parquet": (parquet.encode, ("select", "ask", "construct", "describe")),
}
WELL_FORMED = [
    term
    for term in odd_terms()
    if "<" not in term and term != "no number" and not str(term).startswith("half")
]


def table() -> Answer:
    return answer(rows=tuple(row(at + 1, user=term) for at, term in enumerate(WELL_FORMED)))


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("form", ["select", "ask", "construct", "describe"])
def test_a_form_that_a_kind_has_no_place_for_is_refused_with_kinds_that_have(
    kind: str, form: str
) -> None:
    encode, forms = ENCODERS[kind]
    if form in forms:
        assert encode(answer(2, form=form))
    else:
        with pytest.raises(
            UserError, match=rf"out is a query with {form.upper()};[^~]*hint: use "
        ) as refused:
            encode(answer(2, form=form))
        others = str(refused.value).rpartition("use ")[2].replace(" or ", ", ").split(", ")
        known = [other for other in others if other in ENCODERS and form in ENCODERS[other][1]]
        assert known or "ndjson" in others


@pytest.mark.parametrize(
    ("encode", "format_"),
    [
        (results_json.encode, ox.QueryResultsFormat.JSON),
        (results_tsv.encode, ox.QueryResultsFormat.TSV),
    ],
    ids=["json", "tsv"],
)
def test_another_program_reads_the_same_terms(
    encode: Callable[[Answer], bytes], format_: ox.QueryResultsFormat
) -> None:
    found = ox.parse_query_results(encode(table()), format=format_)
    assert isinstance(found, ox.QuerySolutions)
    assert [variable.value for variable in found.variables] == ["user", "n"]
    terms = [(solution["user"], solution["n"]) for solution in found]
    assert [text_of(user) for user, _ in terms] == [
        results_tsv.turtle_text(term) for term in WELL_FORMED
    ]
    assert all(n is None for _, n in terms)


def text_of(term: ox.Term | None) -> str:
    if isinstance(term, ox.Literal):
        assert term.datatype is not None
        datatype = None if term.language else URIRef(term.datatype.value)
        return results_tsv.turtle_text(
            Literal(term.value, lang=term.language, datatype=datatype, normalize=False)
        )
    return str(term)


def test_a_csv_reader_reads_the_values() -> None:
    content = results_csv.encode(table())
    assert content.startswith(b"user,n\r\n")
    assert b'"http://example.org/a,b",\r\n_:r0,\r\n,\r\n' in content
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))[1:]
    assert [user.removeprefix("_:") for user, _ in rows] == [str(term) for term in WELL_FORMED]


def test_what_is_no_iri_takes_no_line_apart() -> None:
    (line,) = (
        results_tsv.encode(answer(rows=(row(1, user=URIRef('a\tb\n<">')),)))
        .decode()
        .splitlines()[1:]
    )
    assert line == "<a\\u0009b\\u000A\\u003C\\u0022\\u003E>\t"


def test_the_bytes_of_small_answers() -> None:
    one = answer(rows=(row(1, user=URIRef("urn:a"), n=typed("03", "integer")),))
    assert results_json.encode(answer(2, form="ask")) == b'{"head": {}, "boolean": true}\n'
    assert json.loads(results_json.encode(one)) == {
        "head": {"vars": ["user", "n"]},
        "results": {
            "bindings": [
                {
                    "user": {"type": "uri", "value": "urn:a"},
                    "n": {
                        "type": "literal",
                        "value": "03",
                        "datatype": "http://www.w3.org/2001/XMLSchema#integer",
                    },
                }
            ]
        },
    }
    assert results_csv.encode(one) == b"user,n\r\nurn:a,03\r\n"
    assert (
        results_tsv.encode(one)
        == b'?user\t?n\n<urn:a>\t"03"^^<http://www.w3.org/2001/XMLSchema#integer>\n'
    )
    made = answer(2, form="construct")
    assert ntriples.encode(made) == b'<urn:u2> <urn:p> "2" .\n<urn:u2> <urn:q> _:b .\n'
    assert turtle.encode(made) == b'<urn:u2> <urn:p> "2" ;\n\t<urn:q> _:b .\n'
    assert (
        turtle.encode(replace(made, triples=("<no iri> <urn:p> _:x .",)))
        == b"<no iri> <urn:p> _:x .\n"
    )
    assert (
        turtle.encode(replace(made, triples=()))
        == ntriples.encode(replace(made, triples=()))
        == b""
    )


def test_a_parquet_file_holds_every_term(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet.encode(table()))
    rows = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert [term_of(each) for each in rows] == WELL_FORMED
    assert rows[0] == {
        "query": "http://example.org/out",
        "window": 0,
        "opens": datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        "closes": datetime(1970, 1, 1, tzinfo=UTC),
        "rank": 1,
        "score": None,
        "status": "certified",
        "user": "http://example.org/a,b",
        "n": None,
        "boolean": None,
        "terms": [("user", {"type": "uri", "datatype": None, "lang": None})],
        "facts": '{"form": "select", "reason": null}',
    }


def term_of(record: dict[str, object]) -> Identifier:
    ((name, term),) = record["terms"]  # type: ignore[misc]  # a list of pairs
    value = record[name]
    if term["type"] == "literal":
        datatype = term["datatype"] and URIRef(term["datatype"])
        return Literal(value, lang=term["lang"], datatype=datatype, normalize=False)
    return to_rdflib(f"<{value}>") if term["type"] == "uri" else type(WELL_FORMED[1])(value)


def test_tables_of_other_forms() -> None:
    (asked,) = answers_table([answer(2, form="ask")]).to_pylist()
    assert (asked["boolean"], asked["rank"], asked["terms"]) == (True, None, [])
    made = answers_table([answer(2, form="describe"), answer(3)])
    assert made.column_names[7:-3] == ["subject", "predicate", "object", "user", "n"]
    assert [each["object"] for each in made.to_pylist()] == ["2", "b"]
    assert answers_table([]).schema.field("closes").type == pa.timestamp("ms", tz="UTC")


def test_lines_of_json_on_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    StdoutSink().write([answer(1), answer(2, form="ask")])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["window"]["index"] for line in lines] == [1, 2]


def test_a_function_is_called_with_every_answer() -> None:
    called: list[Answer] = []
    CallbackSink(called.append).write([answer(1), answer(2)])
    assert [each.window for each in called] == [1, 2]
    with pytest.raises(ZeroDivisionError):
        CallbackSink(lambda _: 1 / 0).write([answer(1)])
