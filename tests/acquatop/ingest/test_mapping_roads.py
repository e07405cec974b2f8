"""Patterns matched against a mapping's columns find what SPARQL finds in the triples that the
mapping stands for.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop import Engine
from acquatop.catalog.catalog import Catalog
from tests.support.disks import quick_folder

NS = "http://example.org/"
WIDTH_MS = 4000
XSD = "http://www.w3.org/2001/XMLSchema#"
DATATYPES = {
    "p": "xsd:integer",
    "q": "xsd:double",
    "r": "xsd:string",
    "k": NS + "key/{}",
    "i": "iri",
}
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "{connector}"
arrivals = "distinct"
options = {{ path = "{file}" }}
[streams.":s".mapping]
format = "{format}"
subject = "{subject}"
time = "{time}"
time_as = "{time_as}"
properties = {{ {properties} }}
"""
PATTERNS = (
    "?s :p ?v",
    "?s :q ?v ; :p ?p",
    "?s :p ?v ; :k ?k FILTER(?v > 1)",
    '?s :r "x" ; :q ?v',
    f"?s :k <{NS}key/1> ; :p ?v ; :r ?r",
    "?s :i ?i ; :q ?v FILTER(?v * 2 < 5)",
    "?s :i <urn:one> ; :p ?v",
)


@dataclass(frozen=True)
class Layout:
    """Format and mapping of records; a path has dots if fields are nested."""

    format: str
    subject: str
    time_as: str
    paths: Mapping[str, str]

    def catalog(self, folder: Path) -> Catalog:
        properties = ", ".join(
            f'":{name}" = {{ field = "{path}", datatype = "{DATATYPES[name]}" }}'
            for name, path in self.paths.items()
            if name in DATATYPES
        )
        text = CATALOG.format(
            connector="parquet" if self.format == "columns" else "lines",
            file="events",
            format=self.format,
            subject=self.subject.format(self.paths["id"]),
            time=self.paths["t"],
            time_as=self.time_as,
            properties=properties,
        )
        return Catalog.parse(text, file=folder / "catalog.toml", variables={})

    def time(self, seconds: int) -> Any:
        match self.time_as:
            case "milliseconds":
                return seconds * 1000
            case "seconds":
                return seconds
            case _:
                return datetime.fromtimestamp(seconds, UTC).isoformat()

    def write(self, file: Path, records: Sequence[Mapping[str, Any]]) -> None:
        rows = [{**record, "t": self.time(record["t"])} for record in records]
        if self.format == "columns":
            columns = {self.paths[name]: [row.get(name) for row in rows] for name in self.paths}
            pq.write_table(pa.table(columns), file)
        elif self.format == "csv":
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, list(self.paths.values()), lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {self.paths[name]: value for name, value in row.items()} for row in rows
            )
            file.write_text(text.getvalue(), "utf-8")
        else:
            lines = (
                json.dumps(nested({self.paths[name]: each for name, each in row.items()}))
                for row in rows
            )
            file.write_text("".join(line + "\n" for line in lines), "utf-8")


def nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, value in fields.items():
        *parents, last = path.split(".")
        place = found
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return found


def triples_of(number: int, record: Mapping[str, Any]) -> Iterable[ox.Triple]:
    """Return what a record says, its subject by its number: which name that has does not matter
    here.
    """
    subject = ox.NamedNode(f"urn:record:{number}")
    terms = {
        "p": ox.Literal,
        "q": ox.Literal,
        "r": ox.Literal,
        "k": lambda value: ox.NamedNode(f"{NS}key/{value}"),
        "i": ox.NamedNode,
    }
    for name, term in terms.items():
        if record.get(name) is not None:
            yield ox.Triple(subject, ox.NamedNode(NS + name), term(record[name]))


def over_triples(
    records: Sequence[Mapping[str, Any]], opens: int, closes: int, pattern: str
) -> list[dict[str, Any]]:
    inside = [(at, each) for at, each in enumerate(records) if opens < each["t"] * 1000 <= closes]
    store = ox.Store()
    store.extend(ox.Quad(*triple) for at, each in inside for triple in triples_of(at, each))
    results: Any = store.query(f"PREFIX : <{NS}> SELECT * {{ {pattern} }}")
    names = [variable.value for variable in results.variables if variable.value != "s"]
    return [{name: value_of(row[name].value) for name in names} for row in results]


def value_of(term: object) -> object:
    """Return a number where a term's text is one, however it is written."""
    try:
        return float(str(term))
    except ValueError:
        return str(term)


record = st.fixed_dictionaries(
    {"t": st.integers(0, 12)},
    optional={
        "p": st.integers(-3, 5),
        "q": st.floats(-3, 5).map(lambda number: round(number, 3) + 0.0),
        "r": st.sampled_from(["x", "y z", 'a "quoted", \\ one', "é"]),
        "k": st.integers(0, 2),
        "i": st.sampled_from(["urn:one", "http://example.org/two?x=1#y"]),
    },
)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    format_ = draw(st.sampled_from(["json", "csv", "columns"]))
    names = ["t", "id", *DATATYPES]
    above = st.sampled_from(["", "v.", "v.w."]) if format_ == "json" else st.just("")
    times = ["milliseconds"] if format_ == "columns" else ["milliseconds", "seconds", "dateTime"]
    return Layout(
        format_,
        draw(st.sampled_from(["http://example.org/event/{{{}}}", "http://example.org/event/{{}}"])),
        draw(st.sampled_from(times)),
        {name: f"{draw(above)}f-{name}" for name in names},
    )


@settings(max_examples=35)
@given(
    layouts(),
    st.lists(record, min_size=1, max_size=12),
    st.sampled_from(PATTERNS),
    st.integers(1, 4),
)
def test_both_roads_find_the_same(
    layout: Layout, records: list[dict[str, Any]], where: str, k: int
) -> None:
    in_order = sorted(records, key=lambda each: each["t"])
    records = [{**each, "id": number} for number, each in enumerate(in_order)]
    query = f"""PREFIX : <{NS}> SELECT * FROM NAMED WINDOW :w ON :s [RANGE {WIDTH_MS}ms]
    WHERE {{ WINDOW :w {{ {where} }} }} ORDER BY DESC(?v) LIMIT {k}"""
    with quick_folder() as folder:
        layout.write(folder / "events", records)
        with Engine(layout.catalog(folder), runtime="local", until_end=True) as engine:
            answers = list(engine.register(query))
    assert sum(answer.counts.events for answer in answers) == len(records)
    assert not any(answer.counts.bad for answer in answers)
    for answer in answers:
        expected = over_triples(records, answer.opens_ms, answer.closes_ms, where)
        found = [
            {name: value_of(term) for name, term in row.bindings.items() if name != "s"}
            for row in answer.rows
        ]
        best = sorted((row["v"] for row in expected), reverse=True)[:k]
        assert [row["v"] for row in found] == best
        assert counted(found) <= counted(expected)
        assert len({str(row.bindings["s"]) for row in answer.rows}) == len(found)


def counted(rows: Iterable[Mapping[str, Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)
