"""Lines of CSV, beside what Python's own reader makes of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.delimited import CsvMapping, Dialect
from connectors.fields import ROW
from connectors.lines import LinesDataSource, LinesReader
from connectors.mapping import Property, Template
from connectors.read_limits import ReadAllAvailable

XSD = "http://www.w3.org/2001/XMLSchema#"
SUBJECT = Template.parse("http://example.org/user/{user}")
PROPERTIES = {
    "urn:mentions": Property("mentions", XSD + "integer"),
    "urn:mood": Property("mood", XSD + "double"),
    "urn:name": Property("name", XSD + "string"),
}
COLUMNS = ("t", "user", "mentions", "mood", "name")
Row = tuple[object, ...]


def rows_of(
    lines: Sequence[bytes], *, header: bytes | None = None, dialect: Dialect | None = None
) -> list[Row]:
    columns = {"value": pa.array(lines, pa.binary())}
    if header is not None:
        columns["header"] = pa.array([header] * len(lines), pa.binary())
    mapping = CsvMapping(
        SUBJECT, "t", PROPERTIES, columns=() if header else COLUMNS, dialect=dialect or Dialect()
    )
    return [tuple(row.values()) for row in mapping.records(pa.record_batch(columns)).to_pylist()]


texts = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=6)
good = st.tuples(
    st.integers(0, 10**9),
    st.sampled_from(["ann", "bob"]),
    st.none() | st.integers(-5, 5),
    st.none() | st.floats(-5, 5),
    texts,
)


@settings(max_examples=150)
@given(
    st.lists(good, max_size=5),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(['"', "'"]),
    st.booleans(),
)
def test_what_python_writes_is_read(
    rows: list[Row], delimiter: str, quote: str, windows: bool
) -> None:
    lines = []
    for row in rows:
        file = io.StringIO(newline="")
        csv.writer(
            file, delimiter=delimiter, quotechar=quote, lineterminator="\r" if windows else ""
        ).writerow(row)
        lines.append(file.getvalue().encode())
    expected = [
        (t, f"<http://example.org/user/{user}>", mentions, mood, name or None, None, at)
        for at, (t, user, mentions, mood, name) in enumerate(rows)
    ]
    assert rows_of(lines, dialect=Dialect(delimiter, quote)) == expected


odd = st.one_of(
    st.binary(max_size=12).filter(lambda line: b"\n" not in line),
    st.text('1a",;\r', max_size=16).map(str.encode),
    good.map(lambda row: ",".join("" if each is None else str(each) for each in row).encode()),
)


@settings(max_examples=150)
@given(st.lists(odd, max_size=5))
def test_a_line_is_read_the_same_whatever_stands_beside_it(lines: list[bytes]) -> None:
    one_by_one = [(*row[:-1], at) for at, line in enumerate(lines) for row in rows_of([line])]
    assert rows_of(lines) == one_by_one
    assert {row[-1] for row in one_by_one} >= {at for at, line in enumerate(lines) if line.strip()}


@settings(max_examples=100)
@given(st.text('1a", ', min_size=1, max_size=12))
def test_a_line_that_is_well_written_has_the_fields_that_python_finds(line: str) -> None:
    try:
        (expected,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError):
        return
    mapping = CsvMapping(
        Template.parse("urn:{0}"), "0", {}, columns=tuple(map(str, range(len(expected))))
    )
    (faults,) = [
        [
            row["bad"]
            for row in mapping.records(pa.record_batch({"value": [line.encode()]})).to_pylist()
        ]
    ]
    assert not any("fields" in (fault or "") for fault in faults)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"\xff,a,1,1,x", "not UTF-8"),
        (b'1,a,1,1,"x', "not CSV"),
        (b'1,a,1,1,x"y"', "not CSV"),
        (b"1,a\rb,1,1,x", "not CSV"),
        (b"1,a,1,1", "not as many fields as columns, which are 5"),
        (b",a,1,1,x", 'no time in the field "t"'),
        (b"1,,1,1,x", 'no subject in the field "user"'),
        (b"1,a b,1,1,x", 'the field "user" does not fit into an IRI'),
        (b"soon,a,1,1,x", 'the field "t" is not a whole number'),
        (b"1,a,1.0,1,x", 'the field "mentions" is not a whole number'),
        (b"1,a,99999999999999999999,1,x", 'the field "mentions" is not a whole number'),
        (b"1,a,1,nan,x", 'the field "mood" is not a number'),
        (b"1,a,1,1e999,x", 'the field "mood" is not a number'),
    ],
)
def test_faults_are_named_and_cost_only_their_own_line(line: bytes, fault: str) -> None:
    fine = b"1,a,1,1,x"
    assert [row[-2] for row in rows_of([fine, line, fine])] == [None, fault, None]


def test_a_first_line_names_the_columns_in_any_order() -> None:
    (row,) = rows_of([b"x,7,a"], header=b"\xef\xbb\xbfname,t,user\r")
    assert row == (7, "<http://example.org/user/a>", None, None, "x", None, 0)
    assert rows_of([b"7,a"], header=b'"')[0][-2] == "not as many fields as columns, which are 0"


def test_each_file_has_a_first_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"t,user\n1,ann\n2,bob\n")
    (tmp_path / "b.csv").write_bytes(b"user,t\ncid,3\n")
    reader = LinesDataSource({"path": str(tmp_path), "header": "true"}).streamReader(None)  # type: ignore[arg-type]
    assert isinstance(reader, LinesReader)
    end = reader.latestOffset({}, ReadAllAvailable())
    mapping = CsvMapping(SUBJECT, "t")
    batches = [batch for part in reader.partitions({}, end) for batch in reader.read(part)]
    assert batches[0].column("position").to_pylist() == [7, 13]
    together = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    rows = [(row["time_ms"], row[ROW]) for row in mapping.records(together).to_pylist()]
    assert rows == [(1, 0), (2, 1), (3, 2)]


def test_a_file_that_grows_keeps_its_first_line(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"t,user\n")
    reader = LinesReader(file, 1000, has_header=True)
    first = reader.latestOffset({}, ReadAllAvailable())
    assert [len(batch) for part in reader.partitions({}, first) for batch in reader.read(part)] == [
        0
    ]
    with file.open("ab") as stream:
        stream.write(b"1,ann\n")
    end = reader.latestOffset(first, ReadAllAvailable())
    (batch,) = (batch for part in reader.partitions(first, end) for batch in reader.read(part))
    assert batch.column("header").to_pylist() == [b"t,user"]
    assert batch.column("value").to_pylist() == [b"1,ann"]
