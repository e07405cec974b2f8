"""Values of every datatype, in every format, are those that rdflib reads in the same triples."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rdflib import Graph, Literal, URIRef
from rdflib.term import Node

from acquatop import Answer, Engine, Status
from acquatop.catalog.catalog import Catalog
from acquatop.errors import UserError
from acquatop.plan.check import check_query

NS, XSD = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
VALUES: Mapping[str, tuple[Any, ...]] = {
    "integer": (7, -(2**63), 2**63 - 1),
    "long": (2**62, -1, 0),
    "int": (2**31 - 1, 0, -5),
    "short": (-(2**15), 9, 1),
    "byte": (127, -128, 0),
    "nonNegativeInteger": (0, 3, 2**53 + 1),
    "positiveInteger": (1, 2, 3),
    "nonPositiveInteger": (0, -1, -2),
    "negativeInteger": (-1, -2, -3),
    "unsignedLong": (0, 2**63 - 1, 5),
    "unsignedInt": (2**32 - 1, 0, 1),
    "unsignedShort": (65535, 0, 1),
    "unsignedByte": (255, 0, 1),
    "decimal": (Decimal("0.1"), Decimal("123456789012345.678"), Decimal("-0.50")),
    "double": (0.1, -1e300, 5e-324),
    "float": (0.5, -3.25, 16777216.0),
    "boolean": (True, False, True),
    "string": ("a", 'b "c" \\ é', "x\ty"),
    "anyURI": ("http://example.org/a", "mailto:a@b", "x/y"),
    "dateTime": ("2020-02-29T12:00:00Z", "1999-12-31T23:59:59.125+05:30", "2024-01-01T00:00:00"),
    "dateTimeStamp": ("2020-02-29T12:00:00Z", "2020-03-01T00:00:00+01:00", "1970-01-01T00:00:00Z"),
    "date": ("2020-02-29", "2024-12-31", "1970-01-01"),
    "time": ("12:00:00", "23:59:59", "00:00:01"),
    "duration": ("P1Y2M3DT4H5M6.7S", "-P1Y", "PT0.5S"),
    "dayTimeDuration": ("P1DT2H", "-PT0.5S", "PT36H"),
    "yearMonthDuration": ("P1Y2M", "-P14M", "P3Y"),
    "gYear": ("2020", "1999", "0001"),
    "gYearMonth": ("2020-02", "1999-12", "2000-01"),
    "gMonth": ("--02", "--12", "--01"),
    "gMonthDay": ("--02-29", "--12-31", "--01-01"),
    "gDay": ("---01", "---31", "---15"),
}
"""Values of three records, by datatype: as JSON has them, and texts where it has none."""
UNFIT: Mapping[str, Any] = {
    "byte": 128,
    "positiveInteger": 0,
    "unsignedInt": -1,
    "float": 1e39,
    "decimal": "1,5",
    "boolean": "yes",
    "dateTime": "2021-02-29T00:00:00Z",
    "date": "2020-04-31",
    "time": "25:00:00",
    "duration": "P",
    "anyURI": "a b",
    "gDay": "---32",
}
FORMATS = ("json", "csv", "columns", "ntriples", "rdf")


def text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_json(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def write_json(file: Path, records: Sequence[Mapping[str, Any]]) -> None:
    lines = (
        ", ".join(f'"{name}": {as_json(value)}' for name, value in each.items()) for each in records
    )
    file.write_text("".join(f"{{{line}}}\n" for line in lines), "utf-8")


def write_csv(file: Path, records: Sequence[Mapping[str, Any]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: text_of(value) for name, value in each.items()} for each in records)
    file.write_text(text.getvalue(), "utf-8")


def write_columns(file: Path, records: Sequence[Mapping[str, Any]]) -> None:
    columns = {name: [each[name] for each in records] for name in records[0]}
    pq.write_table(pa.table(columns), file)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def triples_of(record: Mapping[str, Any]) -> list[str]:
    subject = f"<{NS}{record['id']}>"
    said = [f'{subject} <{NS}t> "{record["t"]}"^^<{XSD}integer> .']
    for name, value in record.items():
        if name not in ("id", "t"):
            said.append(f"{subject} <{NS}{name}> {quoted(text_of(value))}^^<{XSD}{name}> .")
    return said


def write_ntriples(file: Path, records: Sequence[Mapping[str, Any]]) -> None:
    file.write_text(
        "\n".join(line for each in records for line in triples_of(each)) + "\n\n", "utf-8"
    )


def write_documents(folder: Path, records: Sequence[Mapping[str, Any]]) -> None:
    folder.mkdir()
    for number, each in enumerate(records):
        (folder / f"{number}.ttl").write_text("\n".join(triples_of(each)), "utf-8")


WRITERS: Mapping[str, Callable[[Path, Sequence[Mapping[str, Any]]], None]] = {
    "json": write_json,
    "csv": write_csv,
    "columns": write_columns,
    "ntriples": write_ntriples,
    "rdf": write_documents,
}
CONNECTORS = {"columns": "parquet", "rdf": "files"}


def catalog(folder: Path, format_: str, properties: str, arrivals: str = "all") -> Catalog:
    is_of_statements = format_ in ("ntriples", "rdf")
    text = f"""
[prefixes]
"" = "{NS}"
[streams.":s"]
connector = "{CONNECTORS.get(format_, "lines")}"
options = {{ path = "in" }}
arrivals = "{arrivals}"
[streams.":s".mapping]
format = "{format_}"
time = "{":t" if is_of_statements else "t"}"
{"" if is_of_statements else f'subject = "{NS}{{id}}"'}
[streams.":s".mapping.properties]
{properties}
"""
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def of_datatypes(format_: str, names: Sequence[str]) -> str:
    field = "" if format_ in ("ntriples", "rdf") else 'field = "{name}", '
    return "".join(
        f'":{name}" = {{ {field.format(name=name)}datatype = "xsd:{name}" }}\n' for name in names
    )


def query(where: str, ending: str = "") -> str:
    return f"""PREFIX : <{NS}> PREFIX rdf: <{RDF}> SELECT * FROM NAMED WINDOW :w ON :s [RANGE 10s]
    WHERE {{ WINDOW :w {{ {where} }} }} {ending}"""


def answered(found: Catalog, *texts: str) -> list[Answer]:
    """Return the one answer to each query."""
    with Engine(found, runtime="local", until_end=True, autostart=False) as engine:
        handles = [engine.register(text) for text in texts]
        engine.start()
        answers = [list(each) for each in handles]
    return [answer for (answer,) in answers]


Objects = dict[str, dict[str, Node]]
"""Objects by subject and predicate, without the namespace."""


def in_triples(answer: Answer) -> Objects:
    """Return what a query for all triples shows."""
    found: Objects = {}
    for row in answer.rows:
        subject, predicate = (str(row.bindings[name]).removeprefix(NS) for name in "ep")
        found.setdefault(subject, {})[predicate] = row.bindings["v"]
    return found


def in_columns(answer: Answer) -> Objects:
    """Return what a query with a variable for each property shows."""
    return {
        str(row.bindings["e"]).removeprefix(NS): {
            name: term for name, term in row.bindings.items() if name != "e"
        }
        for row in answer.rows
    }


def is_same(shown: Any, sent: Literal) -> bool:
    """Return True if two literals have the same value; those of integers may differ in datatype."""
    if sent.value is None or shown.value is None or isinstance(sent.value, str):
        return str(shown) == str(sent)
    return bool(shown.value == sent.value) and (
        shown.datatype == sent.datatype or isinstance(sent.value, int)
    )


@pytest.mark.parametrize("format_", FORMATS)
def test_each_datatype_comes_as_it_was_sent_on_both_roads(format_: str, tmp_path: Path) -> None:
    records = [
        {"id": f"e{at}", "t": 1000 + at, **{name: each[at] for name, each in VALUES.items()}}
        for at in range(3)
    ]
    WRITERS[format_](tmp_path / "in", records)
    properties = of_datatypes(format_, list(VALUES))
    whole = query("?e ?p ?v")
    star = "?e " + " ; ".join(f":{name} ?{name}" for name in VALUES)
    incremental = query(star, "ORDER BY DESC(?integer) LIMIT 5")
    (first,) = answered(catalog(tmp_path, format_, properties), whole)
    (second,) = answered(catalog(tmp_path, format_, properties, "distinct"), incremental)
    for answer, shown in ((first, in_triples(first)), (second, in_columns(second))):
        assert not answer.counts.bad
        for at, each in enumerate(records):
            for name in VALUES:
                sent = Literal(text_of(each[name]), datatype=URIRef(XSD + name))
                assert not sent.ill_typed
                assert is_same(shown[f"e{at}"][name], sent), (name, shown[f"e{at}"][name], sent)


@pytest.mark.parametrize("format_", [each for each in FORMATS if each != "columns"])
def test_a_value_that_does_not_fit_makes_a_bad_item(format_: str, tmp_path: Path) -> None:
    good = {name: VALUES[name][0] for name in UNFIT}
    rows = [{"id": "good", "t": 1000, **good}]
    rows += [{"id": name, "t": 1000, **good, name: value} for name, value in UNFIT.items()]
    WRITERS[format_](tmp_path / "in", rows)
    (answer,) = answered(
        catalog(tmp_path, format_, of_datatypes(format_, list(UNFIT))), query("?e ?p ?v")
    )
    assert set(in_triples(answer)) == {"good"}
    assert sum(answer.counts.bad.values()) == len(UNFIT)


EVENTS = (
    {"id": 1, "t": 1000, "tags": ["a", "b"], "sizes": [1, 2], "said": "hi", "lang": "EN-gb"},
    {"id": 2, "t": 2000, "tags": "c", "sizes": 3, "said": "salut", "m": 5},
    {"id": 3, "t": 3000, "tags": [], "said": "ciao", "lang": "it", "m": True},
    {"id": 6, "t": 6000, "said": "", "lang": "it", "m": "five"},
    {"id": 4, "t": 4000, "said": "bad", "lang": "not a language"},
    {"id": 5, "t": 5000, "m": {"nested": 1}},
)
WIDE = f"""
":tag" = {{ field = "tags" }}
":size" = {{ field = "sizes", datatype = "xsd:integer" }}
":said" = {{ field = "said", language = "{{lang}}" }}
":fixed" = {{ field = "said", language = "en" }}
":mixed" = {{ field = "m", datatype = ["xsd:integer", "xsd:boolean", "xsd:string"] }}
":number" = {{ field = "id", datatype = "xsd:integer" }}
":of" = {{ field = "id", datatype = "{NS}part/{{}}" }}
":when" = {{ field = "t", datatype = "xsd:integer" }}
"rdf:type" = {{ value = ":Event", datatype = "iri" }}
":unit" = {{ value = 7, datatype = "xsd:decimal" }}
"""


def turtle(text: str) -> set[tuple[Node, ...]]:
    graph = Graph().parse(data=f"@prefix : <{NS}> . {text}", format="turtle")
    return {tuple(each) for each in graph}


def triples_in(answer: Answer) -> set[tuple[Node, ...]]:
    return {tuple(row.bindings[name] for name in "epv") for row in answer.rows}


def of_all(number: int) -> str:
    of = f":number {number} ; :of <{NS}part/{number}> ; :when {number}000"
    return f"{of} ; a :Event ; :unit '7'^^<{XSD}decimal>"


def test_lists_languages_constants_and_mixed_datatypes_are_triples(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(json.dumps(each) + "\n" for each in EVENTS))
    (answer,) = answered(catalog(tmp_path, "json", WIDE), query("?e ?p ?v"))
    expected = turtle(f"""
        :1 :tag "a", "b" ; :size 1, 2 ; :said "hi"@en-gb ; :fixed "hi"@en ; {of_all(1)} .
        :2 :tag "c" ; :size 3 ; :said "salut" ; :fixed "salut"@en ; :mixed 5 ; {of_all(2)} .
        :6 :said ""@it ; :fixed ""@en ; :mixed "five" ; {of_all(6)} .
        :3 :said "ciao"@it ; :fixed "ciao"@en ; :mixed true ; {of_all(3)} .
    """)
    assert triples_in(answer) == expected
    assert answer.counts.bad == {
        'the field "lang" is not a language': 1,
        'the field "m" is not a single value': 1,
    }


def test_each_value_of_a_list_meets_the_other_properties(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(json.dumps(each) + "\n" for each in EVENTS))
    star = query("?e :tag ?v ; :size ?size ; :number ?n", "ORDER BY DESC(?size) ?v LIMIT 9")
    top = query("?e :tag ?v ; :size ?size ; :number ?n", "ORDER BY DESC(?size) LIMIT 9")
    expected = {("a", 1, 1), ("a", 2, 1), ("b", 1, 1), ("b", 2, 1), ("c", 3, 2)}
    for answer in answered(catalog(tmp_path, "json", WIDE), star, top):
        shown = {
            tuple(row.bindings[name].value for name in ("v", "size", "n")) for row in answer.rows
        }
        assert shown == expected
        assert len(answer.rows) == len(expected)


def test_whole_terms_are_read_as_they_are_recorded(tmp_path: Path) -> None:
    terms = [f"<{NS}a>", '"x"@en', '"a \\"b\\""', f'"5"^^<{XSD}decimal>', '"open', "bare"]
    rows = [{"id": f"e{at}", "t": 1000, "p": each} for at, each in enumerate(terms)]
    write_json(tmp_path / "in", rows)
    properties = '":p" = { field = "p", datatype = "term" }'
    (answer,) = answered(catalog(tmp_path, "json", properties), query("?e :p ?v"))
    shown = {
        str(row.bindings["e"]).removeprefix(f"{NS}e"): row.bindings["v"] for row in answer.rows
    }
    assert {number: term.n3() for number, term in shown.items()} == {
        str(at): terms[at] for at in range(4)
    }
    assert sum(answer.counts.bad.values()) == 2


@pytest.mark.parametrize("arrivals", ["latest", "distinct"])
def test_a_list_is_bad_where_a_subject_has_one_object(tmp_path: Path, arrivals: str) -> None:
    (tmp_path / "in").write_text("".join(json.dumps(each) + "\n" for each in EVENTS[:3]))
    properties = '":tag" = { field = "tags" }'
    (answer,) = answered(catalog(tmp_path, "json", properties, arrivals), query("?e :tag ?v"))
    assert [str(row.bindings["v"]) for row in answer.rows] == ["c"]
    assert answer.counts.bad == {
        'more than one value in the field "tags" needs arrivals = "all"': 1
    }


def test_columns_have_types_of_their_own(tmp_path: Path) -> None:
    instant = datetime(2020, 2, 29, 12, 30, 15, 500_000, UTC)
    row = {
        "id": "a",
        "t": instant,
        "day": instant.date(),
        "hour": instant.time(),
        "long": timedelta(seconds=90.5),
        "many": [Decimal("1.50"), Decimal("2.25")],
        "flag": True,
    }
    write_columns(tmp_path / "in", [row])
    properties = """
":at" = { field = "t", datatype = "xsd:dateTime" }
":day" = { field = "day", datatype = "xsd:date" }
":hour" = { field = "hour", datatype = "xsd:time" }
":long" = { field = "long", datatype = "xsd:dayTimeDuration" }
":many" = { field = "many", datatype = "xsd:decimal" }
":flag" = { field = "flag", datatype = ["xsd:boolean", "xsd:string"] }
"""
    (answer,) = answered(catalog(tmp_path, "columns", properties), query("?e ?p ?v"))
    shown = {(str(p).removeprefix(NS), v.value) for _, p, v in triples_in(answer)}
    assert shown == {
        ("at", instant),
        ("day", instant.date()),
        ("hour", instant.time()),
        ("long", timedelta(seconds=90.5)),
        ("many", Decimal("1.5")),
        ("many", Decimal("2.25")),
        ("flag", True),
    }


@pytest.mark.parametrize("of", ["decimal", "dateTime", "float"])
def test_digits_and_times_are_ordered_as_terms(tmp_path: Path, of: str) -> None:
    """The answer has all digits."""
    values = [*VALUES[of], *VALUES[of][:1]]
    lines = (
        f'{{"id": "e{at}", "t": 1, "{of}": {as_json(each)}}}' for at, each in enumerate(values)
    )
    (tmp_path / "in").write_text("\n".join(lines) + "\n")
    found = catalog(tmp_path, "json", of_datatypes("json", [of]), "distinct")
    text = query(f"?e :{of} ?v", "ORDER BY DESC(?v) LIMIT 2")
    assert check_query(text, catalog=found).reason is None
    (answer,) = answered(found, text)
    assert answer.status is Status.EXACT
    sent = [Literal(text_of(each), datatype=URIRef(XSD + of)) for each in VALUES[of][:3]]
    if of != "dateTime":
        best = sorted([*sent, sent[0]], key=lambda each: each.value, reverse=True)[:2]
        assert [row.bindings["v"].value for row in answer.rows] == [each.value for each in best]


@pytest.mark.parametrize("format_", FORMATS)
def test_decimals_add_up_exactly(format_: str, tmp_path: Path) -> None:
    values = [Decimal("0.1"), Decimal("0.2"), Decimal("-0.3"), Decimal("1e-18")]
    rows = [{"id": f"e{at}", "t": 1000, "decimal": each} for at, each in enumerate(values)]
    if format_ != "columns":
        rows = [{**each, "decimal": Decimal(f"{each['decimal']:f}")} for each in rows]
    WRITERS[format_](tmp_path / "in", rows)
    text = f"""PREFIX : <{NS}> SELECT (SUM(?v) AS ?sum) FROM NAMED WINDOW :w ON :s [RANGE 10s]
    WHERE {{ WINDOW :w {{ ?e :decimal ?v }} }}"""
    (answer,) = answered(catalog(tmp_path, format_, of_datatypes(format_, ["decimal"])), text)
    assert answer.rows[0].bindings["sum"].value == Decimal("1e-18")


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ('{ field = "x", datatype = "xsd:hexBinary" }', "use xsd:integer, "),
        ('{ field = "x", datatype = "rdf:langString" }', 'write language = "en", or'),
        ('{ field = "x", language = "no tag" }', 'write a tag such as "en-GB"'),
        ('{ field = "x", language = "en", datatype = "xsd:date" }', "leave the datatype out"),
        ('{ field = "x", value = "y" }', 'either "field" or "value"'),
        ('{ value = "x", datatype = "xsd:date" }', 'the value "x" is not an xsd:date'),
        ('{ field = "x", datatype = [] }', "there is no datatype in the list"),
    ],
)
def test_what_a_mapping_cannot_say_has_a_remedy(tmp_path: Path, written: str, remedy: str) -> None:
    with pytest.raises(UserError, match=re.escape(remedy)):
        catalog(tmp_path, "json", f'":x" = {written}')


@pytest.mark.spark
def test_the_rate_source_of_spark_can_be_mapped(spark: SparkSession) -> None:
    text = f"""
[prefixes]
"" = "{NS}"
[streams.":s"]
connector = "spark"
[streams.":s".options]
format = "rate-micro-batch"
rowsPerBatch = 5
startTimestamp = 1000
advanceMillisPerBatch = 1000
[streams.":s".mapping]
format = "columns"
subject = "{NS}tick/{{value}}"
time = "timestamp"
[streams.":s".mapping.properties]
":n" = {{ field = "value", datatype = "xsd:integer" }}
":at" = {{ field = "timestamp", datatype = "xsd:dateTime" }}
"""
    found = Catalog.parse(text, file=Path("catalog.toml"), variables={})
    wanted = """PREFIX : <http://example.org/> SELECT * FROM NAMED WINDOW :w ON :s [RANGE 2s]
    WHERE { WINDOW :w { ?e :n ?n ; :at ?at } }"""
    with Engine(found, spark=spark) as engine:
        answer = next(iter(engine.register(wanted)))
    shown = {row.bindings["n"].value: row.bindings["at"].value for row in answer.rows}
    assert shown
    for number, at in shown.items():
        assert at == datetime.fromtimestamp(1 + number // 5, UTC)
