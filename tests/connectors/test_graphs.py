"""Documents as records: each a small graph that happened at one time."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.graphs import BLANK, SYNTAXES, GraphMapping
from connectors.mapping import ARRIVAL, IRI, Property, Template

XSD = "http://www.w3.org/2001/XMLSchema#"
PROPERTIES = {
    "urn:mentions": Property("urn:mentions", XSD + "integer"),
    "urn:knows": Property("urn:knows", IRI),
}
ONE = GraphMapping("urn:at", PROPERTIES, syntax="turtle")
Row = tuple[object, ...]


def rows_of(mapping: GraphMapping, *documents: bytes, **columns: object) -> list[Row]:
    batch = pa.record_batch({"value": pa.array(documents, pa.binary()), **columns})
    return [tuple(row.values()) for row in mapping.records(batch).to_pylist()]


def test_a_document_has_a_record_for_each_subject_and_one_time_for_all() -> None:
    document = b"""
        <urn:a> <urn:mentions> 3 ; <urn:knows> <urn:b> .
        <urn:b> <urn:mentions> 4 .
        <urn:event> <urn:at>
            "1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> ."""
    assert rows_of(ONE, b"", document) == [
        (1000, "<urn:a>", 3, "<urn:b>", None, 1),
        (1000, "<urn:b>", 4, None, None, 1),
        (1000, "<urn:event>", None, None, None, 1),
    ]


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_every_syntax_says_the_same(syntax: str) -> None:
    quads = [
        ox.Quad(ox.NamedNode("urn:a"), ox.NamedNode(predicate), ox.Literal(7))
        for predicate in ("urn:mentions", "urn:at")
    ]
    written = ox.serialize(quads, format=SYNTAXES[syntax].format)
    assert written is not None
    expected = [(7, "<urn:a>", 7, None, None, 0)]
    assert rows_of(GraphMapping("urn:at", PROPERTIES, syntax=syntax), written) == expected
    any_syntax = GraphMapping("urn:at", PROPERTIES)
    types, endings = SYNTAXES[syntax].content_types, SYNTAXES[syntax].endings
    for type_ in types:
        assert (
            rows_of(any_syntax, written, content_type=[f"{type_.upper()}; charset=utf-8"])
            == expected
        )
    for ending in endings:
        assert rows_of(any_syntax, written, file=[f"event{ending}"]) == expected


def test_blank_nodes_keep_their_names_and_have_others_in_another_document() -> None:
    document = b"[] <urn:knows> [ <urn:mentions> 3 ], _:x ; <urn:at> 5 . _:x <urn:mentions> 4 ."
    several = GraphMapping("urn:at", PROPERTIES, several=True, syntax="turtle")
    first, second = (rows_of(several, document, file=["f"], position=[at]) for at in (0, 7))
    assert first == rows_of(several, document, file=["f"], position=[0])
    assert {row[1] for row in first}.isdisjoint(row[1] for row in second)
    assert all(str(row[1]).startswith(f"<{BLANK}") for row in first)
    known = {row[3] for row in first} - {None}
    assert known <= {row[1] for row in first}
    assert len(known) == 2


def test_the_time_may_be_the_graph_s_name_or_the_arrival() -> None:
    in_name = GraphMapping(Template.parse("urn:time:{ms}"), PROPERTIES, syntax="trig")
    assert rows_of(in_name, b"<urn:time:5> { <urn:a> <urn:mentions> 3 }") == [
        (5, "<urn:a>", 3, None, None, 0)
    ]
    assert (
        rows_of(in_name, b"<urn:x:5> { <urn:a> <urn:mentions> 3 }")[0][-2]
        == "no time in the graph's name"
    )
    came = GraphMapping(ARRIVAL, PROPERTIES, syntax="turtle")
    received = pa.array([datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert rows_of(came, b"<urn:a> <urn:mentions> 3 .", received=received)[0][0] == 2000


def test_contexts_are_those_that_are_known_and_none_is_fetched() -> None:
    contexts = {
        "https://example.org/c": '{"mentions": {"@id": "urn:mentions"}, "at": {"@id": "urn:at"}}'
    }
    mapping = GraphMapping("urn:at", PROPERTIES, syntax="jsonld", contexts=contexts)
    known = b'{"@context": "https://example.org/c", "@id": "urn:a", "mentions": 3, "at": 5}'
    mixed = (
        b'{"@context": ["https://example.org/c", {"n": "urn:mentions"}], "@id": "urn:a", "n": '
        b'3, "at": 5}'
    )
    unknown = known.replace(b"/c", b"/d")
    fault = "not JSON-LD with contexts that are known here"
    assert [row[2] for row in rows_of(mapping, known, mixed)] == [3, 3]
    assert [row[-2] for row in rows_of(mapping, unknown, b"{", b'{"@id": "urn:a"')] == [fault] * 3


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (b"<urn:a> <urn:mentions>", "not Turtle"),
        (b"\xff", "not UTF-8"),
        (b"# nothing", "no statement in it"),
        (b"<urn:a> <urn:mentions> 3 .", "no time in <urn:at>"),
        (b"<urn:a> <urn:at> 1, 2 .", "more than one time in <urn:at>"),
        (b'<urn:a> <urn:at> "soon" .', "no time in its document"),
        (
            b"<urn:a> <urn:at> 999999999999999999 .",
            "the time in its document is not in the years 1 to 9999",
        ),
        (
            b'<urn:a> <urn:at> 1 ; <urn:mentions> "x" .',
            "the object of <urn:mentions> is not a whole number",
        ),
        (b"<urn:a> <urn:at> 1 ; <urn:mentions> 1, 2 .", "more than one object of <urn:mentions>"),
    ],
)
def test_faults_are_named_and_cost_only_their_own_document(document: bytes, fault: str) -> None:
    fine = b"<urn:b> <urn:at> 1 ."
    rows = rows_of(ONE, fine, document, fine)
    assert [row[-2] for row in rows] == [None, fault, None]
    assert [row[-1] for row in rows] == [0, 1, 2]


def test_what_nobody_says_the_syntax_of_is_bad_and_so_is_what_its_source_could_not_read() -> None:
    fault = "neither its content type nor its file's ending says how it is written"
    assert rows_of(GraphMapping("urn:at", PROPERTIES), b"x", file=["x.txt"])[0][-2] == fault
    assert rows_of(ONE, b"", _misfit=["longer than 3 bytes"])[0][-2] == "longer than 3 bytes"
    fine = b"<urn:b> <urn:at> 1 ."
    assert [row[-2] for row in rows_of(ONE, fine, fine, size=[20, 21])] == [
        None,
        "only its beginning was kept",
    ]


@settings(max_examples=80)
@given(
    st.lists(
        st.binary(max_size=20) | st.text('<urn:ab> ."@{}[]1', max_size=20).map(str.encode),
        max_size=4,
    )
)
def test_any_bytes_are_a_record_or_counted(documents: list[bytes]) -> None:
    for syntax in SYNTAXES:
        rows = rows_of(GraphMapping("urn:at", PROPERTIES, syntax=syntax), *documents)
        assert {row[-1] for row in rows} == {
            at for at, each in enumerate(documents) if each.strip()
        }
        assert all((row[0] is None) == (row[-2] is not None) for row in rows)
