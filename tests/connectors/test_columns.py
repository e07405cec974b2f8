from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.casts import fitted
from connectors.columns import MISFIT, ColumnsMapping
from connectors.mapping import IRI, JsonMapping, Property, Template

XSD = "http://www.w3.org/2001/XMLSchema#"
MAPPING = ColumnsMapping(
    Template.parse("http://example.org/user/{user}"),
    "t",
    {
        "urn:mentions": Property("mentions", XSD + "integer"),
        "urn:mood": Property("mood", XSD + "double"),
        "urn:name": Property("name", XSD + "string"),
        "urn:knows": Property("knows", IRI),
    },
)


def rows_of(mapping: ColumnsMapping = MAPPING, **columns: pa.Array) -> list[tuple[object, ...]]:
    return [
        tuple(row.values())[:-1]
        for row in mapping.records(pa.RecordBatch.from_pydict(columns)).to_pylist()
    ]


def test_a_row_is_an_item_whatever_the_types_of_its_columns() -> None:
    moment = datetime(1970, 1, 1, 0, 0, 1, 2999, UTC)
    expected = (1002, "<http://example.org/user/7>", 3, 0.5, "x", "<urn:b>", None)
    for times in (
        [
            pa.array([1002], type_)
            for type_ in (pa.int64(), pa.int32(), pa.uint64(), pa.float64(), pa.decimal128(9, 2))
        ]
        + [
            pa.array([moment], pa.timestamp(unit, zone))
            for unit in ("ms", "us", "ns")
            for zone in (None, "Asia/Tokyo")
        ]
        + [pa.array([1002], pa.int64()).dictionary_encode()]
    ):
        for users in (
            pa.array([7], pa.int16()),
            pa.array(["7"]),
            pa.array(["7"], pa.large_string()).dictionary_encode(),
        ):
            assert rows_of(
                t=times,
                user=users,
                mentions=pa.array([3.0], pa.float32()),
                mood=pa.array([Decimal("0.5")]),
                name=pa.array(["x"], pa.string_view()),
                knows=pa.array(["urn:b"]),
                more=pa.array([1]),
            ) == [expected]


def test_seconds_and_dates_are_times() -> None:
    assert fitted(pa.array([-1, 2**62], pa.timestamp("s")), pa.int64()).to_pylist()[0] == -1000
    assert fitted(pa.array([-1], pa.timestamp("us")), pa.int64()).to_pylist() == [-1]
    assert fitted(pa.array([date(1970, 1, 2), None]), pa.int64()).to_pylist() == [86_400_000, None]
    (row,) = rows_of(t=pa.array([2**62], pa.timestamp("s")), user=pa.array(["a"]))
    assert row[-1] == 'the time in the field "t" is not in the years 1 to 9999'


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({}, None),
        ({"t": pa.array([None], pa.int64())}, 'no time in the field "t"'),
        ({"t": pa.array(["1"])}, 'the field "t" is not a whole number'),
        ({"t": pa.array([1.5])}, 'the field "t" is not a whole number'),
        ({"t": pa.array([float("nan")])}, 'the field "t" is not a whole number'),
        ({"t": pa.array([2**63], pa.uint64())}, 'the field "t" is not a whole number'),
        ({"t": pa.array([Decimal("1.5")])}, 'the field "t" is not a whole number'),
        ({"t": pa.array([True])}, 'the field "t" is not a whole number'),
        ({"t": pa.array([2**60])}, 'the time in the field "t" is not in the years 1 to 9999'),
        ({"user": pa.array([None], pa.string())}, 'no subject in the field "user"'),
        ({"user": pa.array([1.5])}, 'the field "user" is not a string'),
        ({"user": pa.array(["a b"])}, 'the field "user" does not fit into an IRI'),
        ({"mentions": pa.array(["3"])}, 'the field "mentions" is not a whole number'),
        ({"mood": pa.array([float("inf")])}, 'the field "mood" is not a number'),
        ({"mood": pa.array(["x"])}, 'the field "mood" is not a number'),
        ({"name": pa.array([b"x"])}, 'the field "name" is not a string'),
        ({"knows": pa.array(["x"])}, 'the field "knows" is not an IRI'),
        ({"mentions": pa.array([None])}, None),
        ({MISFIT: pa.array(["said before"])}, "said before"),
    ],
)
def test_faults_are_named(columns: dict[str, pa.Array], fault: str | None) -> None:
    good = {"t": pa.array([1]), "user": pa.array(["a"]), **columns}
    expected = (
        (1, "<http://example.org/user/a>", *[None] * 5) if fault is None else (*[None] * 6, fault)
    )
    assert rows_of(**good) == [expected]


def test_a_column_that_is_not_there_is_one_of_nulls() -> None:
    assert rows_of(user=pa.array(["a"])) == [(*[None] * 6, 'no time in the field "t"')]
    empty = MAPPING.records(pa.RecordBatch.from_pydict({"value": pa.array([], pa.binary())}))
    assert (empty.num_rows, empty.schema) == (0, MAPPING.schema)
    assert pickle.loads(pickle.dumps(MAPPING)) == MAPPING


def coded_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose texts are coded, with an unused text in each dictionary."""
    columns = [
        pa.concat_arrays([pa.array(["\n unused"]), column]).dictionary_encode().slice(1)
        if pa.types.is_string(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


records = st.fixed_dictionaries(
    {"t": st.integers(0, 10), "user": st.sampled_from(["a", "é", "a b"])},
    optional={
        "mentions": st.integers(-9, 9),
        "mood": st.floats(-5, 5),
        "name": st.text(max_size=4),
        "knows": st.sampled_from(["urn:a", "a"]),
    },
)


@settings(max_examples=40)
@given(st.lists(records, min_size=1, max_size=5))
def test_rows_mean_what_the_same_records_mean_as_json(rows: list[dict[str, object]]) -> None:
    import json

    lines = pa.record_batch([pa.array([json.dumps(row).encode() for row in rows])], ["value"])
    names = ("t", "user", "mentions", "mood", "name", "knows")
    batch = pa.RecordBatch.from_pydict({name: [row.get(name) for row in rows] for name in names})
    json_mapping = JsonMapping(MAPPING.subject, MAPPING.time, MAPPING.properties)
    expected = json_mapping.records(lines).to_pylist()
    assert MAPPING.records(batch).to_pylist() == expected
    assert MAPPING.records(coded_batch(batch)).to_pylist() == expected
