"""Tables that are replayed: what holds at a time, in each format, and files that are not what they
should be.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from replica.remotes import RemoteError, table
from replica.remotes.records import Field, KeyTemplate, RecordMapping, Star
from replica.remotes.table import TableRemote
from replica.remotes.timeline import Timeline
from replica.remotes.values import XSD
from replica.store import Solution
from replica.terms import number_of
from tests.support.remote_contract import (
    MAPPING,
    TIMEOUT,
    MakeRemote,
    Record,
    RecordRemoteContract,
    integer,
    ordered,
)

USER = KeyTemplate.parse("urn:user:{id}")
VALUE = RecordMapping(
    USER, {"urn:value": Field("value", XSD + "integer"), "urn:name": Field("name")}
)
STAR = Star("u", {"v": "urn:value"})


class TestLines(RecordRemoteContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> MakeRemote:
        def make(records: Sequence[Record], star: Star) -> TableRemote:
            file = tmp_path / "users.jsonl"
            file.write_text("\n".join(map(json.dumps, records)), "utf-8")
            return TableRemote(file, mapping=MAPPING, star=star, now_ms=lambda: 0)

        return make


class Now:
    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms


Rows = list[dict[str, object]]


def write_csv(folder: Path, rows: Rows) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(names), *(",".join(str(row.get(name, "")) for name in names) for row in rows)]
    file = folder / "t.csv"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def write_lines(folder: Path, rows: Rows) -> Path:
    file = folder / "t.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def write_parquet(folder: Path, rows: Rows) -> Path:
    file = folder / "t.parquet"
    names = dict.fromkeys(name for row in rows for name in row)
    parquet.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), file)
    return file


@pytest.fixture(params=[write_csv, write_lines, write_parquet])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Rows], Path]:
    return lambda rows: request.param(tmp_path, rows)


def values(solutions: Sequence[Solution]) -> dict[str, float]:
    return {
        solution["u"].removeprefix("<urn:user:").removesuffix(">"): number_of(solution["v"])
        for solution in solutions
    }


def test_a_key_has_the_newest_value_that_has_come(write: Callable[[Rows], Path]) -> None:
    rows: Rows = [
        {"id": "b", "t": 20, "value": 5},
        {"id": "a", "t": 30, "value": 3},
        {"id": "a", "t": 10, "value": 1},
        {"id": "b", "t": 40},
    ]
    now = Now()
    remote = TableRemote(write(rows), mapping=VALUE, star=STAR, time="t", now_ms=now)
    keys = ["<urn:user:a>", "<urn:user:b>", "<urn:user:c>"]
    seen = []
    for now.ms in (9, 10, 20, 29, 30, 39, 40, 99):
        found = values(remote.fetch(keys, TIMEOUT))
        assert values([each for page in remote.load(TIMEOUT) for each in page]) == found
        seen.append(found)
    assert seen[:5] == [{}, {"a": 1}, {"a": 1, "b": 5}, {"a": 1, "b": 5}, {"a": 3, "b": 5}]
    assert seen[5:] == [{"a": 3, "b": 5}, {"a": 3}, {"a": 3}]


def test_records_of_one_key_and_time_hold_together(write: Callable[[Rows], Path]) -> None:
    rows: Rows = [{"id": "a", "value": value} for value in (1, 2, 1)]
    remote = TableRemote(write(rows), mapping=VALUE, star=STAR, now_ms=lambda: 0)
    assert [each["v"] for each in remote.fetch(["<urn:user:a>"], TIMEOUT)] == [
        integer(1),
        integer(2),
    ]


def test_records_without_a_time_or_an_id_are_left_out_and_counted(
    write: Callable[[Rows], Path],
) -> None:
    rows: Rows = [{"id": "a", "t": 1, "value": 1}, {"id": "a", "value": 2}, {"t": 1, "value": 3}]
    remote = TableRemote(write(rows), mapping=VALUE, star=STAR, time="t", now_ms=lambda: 5)
    assert values(remote.fetch(["<urn:user:a>"], TIMEOUT)) == {"a": 1}
    assert dict(remote.rejected) == {'no "id"': 1, '"t" is not in whole milliseconds': 1}


def test_pages_hold_all_of_a_key_once(
    write: Callable[[Rows], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "PAGE_SIZE", 3)
    rows: Rows = [{"id": str(number % 10), "value": number} for number in range(20)]
    remote = TableRemote(write(rows), mapping=VALUE, star=STAR, now_ms=lambda: 0)
    pages = list(remote.load(TIMEOUT))
    assert [len(page) for page in pages] == [6, 6, 6, 2]
    assert ordered(each for page in pages for each in page) == ordered(
        {"u": f"<urn:user:{number % 10}>", "v": integer(number)} for number in range(20)
    )


def test_an_empty_table_has_nothing(tmp_path: Path) -> None:
    for name, text in (("t.csv", "id,value\n"), ("t.jsonl", ""), ("u.jsonl", "\n\n")):
        (tmp_path / name).write_text(text)
        remote = TableRemote(tmp_path / name, mapping=VALUE, star=STAR, now_ms=lambda: 0)
        assert remote.fetch(["<urn:user:a>"], TIMEOUT) == []
        assert list(remote.load(TIMEOUT)) == []


def test_what_csv_writes_is_read_by_the_datatypes(tmp_path: Path) -> None:
    names = ["integer", "double", "decimal", "boolean", "string", "dateTime"]
    mapping = RecordMapping(USER, {f"urn:{name}": Field(f"x.{name}", XSD + name) for name in names})
    file = tmp_path / "t.csv"
    big = 10**30
    file.write_text(
        "\ufeffid," + ",".join(f"x.{name}" for name in names) + ",other\n"
        f'007,{big},1e3,1.50,true,"a ""b"",\nc",2021-01-06T18:40:40Z,\n',
        "utf-8",
    )
    remote = TableRemote(
        file,
        mapping=mapping,
        star=Star("u", {name: f"urn:{name}" for name in names}),
        now_ms=lambda: 0,
    )
    assert remote.fetch(["<urn:user:007>", "<urn:user:7>"], TIMEOUT) == [
        {
            "u": "<urn:user:007>",
            "integer": integer(big),
            "double": f'"1000.0"^^<{XSD}double>',
            "decimal": f'"1.5"^^<{XSD}decimal>',
            "boolean": f'"true"^^<{XSD}boolean>',
            "string": '"a \\"b\\",\\nc"',
            "dateTime": f'"2021-01-06T18:40:40Z"^^<{XSD}dateTime>',
        }
    ]


def test_rows_of_another_length_and_lines_that_are_no_json_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,value\na,1\nb,1,2\nc\nd,4\n")
    (tmp_path / "t.jsonl").write_bytes(
        b'{"id": "a", "value": 1}\n{"id"\n\xff\n{"id": "d", "value": 4}\n'
    )
    for name in ("t.csv", "t.jsonl"):
        remote = TableRemote(tmp_path / name, mapping=VALUE, star=STAR, now_ms=lambda: 0)
        assert values(remote.fetch([f"<urn:user:{id_}>" for id_ in "abcd"], TIMEOUT)) == {
            "a": 1,
            "d": 4,
        }
        assert remote.rejected["cannot be read"] == 2


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    when = datetime.datetime(2021, 1, 6, 18, tzinfo=datetime.UTC)
    columns = {
        "id": pa.array([7], pa.int32()),
        "t": pa.array([when], pa.timestamp("ns", "UTC")),
        "at": pa.array([when], pa.timestamp("ns", "UTC")),
        "nested": pa.array([{"list": [1, 2]}]),
        "decimal": pa.array([Decimal("1.50")]),
        "text": pa.array(["x"]).dictionary_encode(),
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    fields = {
        "at": Field("at", XSD + "dateTime"),
        "list": Field("nested.list.1", XSD + "integer"),
        "decimal": Field("decimal", XSD + "decimal"),
        "text": Field("text"),
    }
    mapping = RecordMapping(USER, {f"urn:{name}": each for name, each in fields.items()})
    star = Star("u", {name: f"urn:{name}" for name in fields})
    now = Now()
    remote = TableRemote(tmp_path / "t.parquet", mapping=mapping, star=star, time="t", now_ms=now)
    assert remote.fetch(["<urn:user:7>"], TIMEOUT) == []
    now.ms = round(when.timestamp() * 1000)
    assert remote.fetch(["<urn:user:7>"], TIMEOUT) == [
        {
            "u": "<urn:user:7>",
            "at": f'"2021-01-06T18:00:00Z"^^<{XSD}dateTime>',
            "list": integer(2),
            "decimal": f'"1.5"^^<{XSD}decimal>',
            "text": '"x"',
        }
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", b"", "does not end as tables do"),
        ("t.csv", b"", '0 columns "id"'),
        ("t.csv", b"key,value\na,1\n", '0 columns "id", not one: key, value'),
        ("t.csv", b"id,id\na,1\n", '2 columns "id"'),
        ("t.csv", b"id,value\n\xff,1\n", "cannot be read"),
        ("t.csv", b"id,value,value\na,1,2\n", "columns of the same name"),
        ("t.parquet", b"id,value\na,1\n", "cannot be read"),
        ("t.parquet", b"", "cannot be read"),
        ("t.jsonl", None, "cannot be read: No such file"),
        ("t.parquet", None, "cannot be read: "),
    ],
)
def test_a_file_that_is_no_such_table_is_refused(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RemoteError, match=message) as caught:
        TableRemote(tmp_path / name, mapping=VALUE, star=STAR, now_ms=lambda: 0)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [1.5], "t": [1]}, "neither text nor whole numbers"),
        ({"id": ["a"], "t": ["1"]}, "neither whole milliseconds nor timestamps"),
        ({"id": ["a"], "t": pa.array([2**64 - 1], pa.uint64())}, "cannot be read"),
    ],
)
def test_columns_of_other_types_are_refused(
    tmp_path: Path, columns: dict[str, object], message: str
) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(RemoteError, match=message):
        TableRemote(tmp_path / "t.parquet", mapping=VALUE, star=STAR, time="t", now_ms=lambda: 0)


@given(st.lists(st.tuples(st.text("abZé😀", max_size=2), st.integers(-3, 3))), st.integers(-4, 4))
def test_a_timeline_is_what_looking_through_all_rows_finds(
    rows: list[tuple[str, int]], now: int
) -> None:
    timeline = Timeline(
        pa.array([key for key, _ in rows], pa.string()),
        np.array([time for _, time in rows], np.int64),
    )
    expected = {}
    for key in {key for key, _ in rows}:
        newest = max((time for other, time in rows if other == key and time <= now), default=None)
        expected[key] = [place for place, row in enumerate(rows) if row == (key, newest)]
    for key, places in expected.items():
        assert timeline.holding([key], now).tolist() == places
    assert timeline.holding(["none"], now).tolist() == []
    pages = [page.tolist() for page in timeline.pages(now, size=2)]
    assert [place for page in pages for place in page] == [
        place for key in sorted(expected) for place in expected[key]
    ]
    assert len(timeline) == len(expected)
