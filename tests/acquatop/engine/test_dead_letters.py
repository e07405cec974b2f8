"""Bad items are counted, kept aside up to a bound, and stop nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop import Answer, Engine
from acquatop.catalog.catalog import Catalog
from acquatop.engine.side_outputs.growing_file import SideOutputFile
from acquatop.errors import EnvironmentProblem
from acquatop.ingest.reduce.bad_items import LONGEST_ITEM, MOST_OF_PARTITION
from tests.support.disks import quick_folder

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "{connector}"
dead_letters = "bad.ndjson"
{more}
options = {{ path = "events" }}
[streams.":s".mapping]
format = "{format}"
{mapping}
"""
FIELDS = """
subject = ":user/{user}"
time = "t"
properties = { ":n" = { field = "n", datatype = "xsd:integer" } }
"""
STATEMENTS = """
time = ":t"
properties = { ":n" = { datatype = "xsd:integer" } }
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 10s]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 3"""
GOOD = b'{"t": 1, "user": "a", "n": 1}'


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as place:
        yield place


def answers_in(
    folder: Path, format_: str = "json", connector: str = "lines", more: str = ""
) -> list[Answer]:
    mapping = STATEMENTS if format_ in ("ntriples", "rdf") else FIELDS
    text = CATALOG.format(format=format_, connector=connector, mapping=mapping, more=more)
    catalog = Catalog.parse(text, file=folder / "catalog.toml", variables={})
    with Engine(catalog, runtime="local", until_end=True) as engine:
        return list(engine.register(QUERY))


def write(folder: Path, *lines: bytes) -> None:
    (folder / "events").write_bytes(b"".join(line + b"\n" for line in lines))


def letters(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "bad.ndjson").read_bytes().splitlines()]


def test_a_bad_line_is_kept_with_its_reason_and_place(folder: Path) -> None:
    write(folder, GOOD, b"{", b"", b'{"t": 2}', b"\xff", GOOD)
    (answer,) = answers_in(folder)
    assert answer.counts.events == 5
    stream = {"stream": "http://example.org/s"}
    no_subject = 'no subject in the field "user"'
    assert letters(folder) == [
        {**stream, "reason": "not JSON", "file": "events", "position": 30, "bytes": 1, "item": "{"},
        {
            **stream,
            "reason": no_subject,
            "file": "events",
            "position": 33,
            "bytes": 8,
            "item": '{"t": 2}',
        },
        {
            **stream,
            "reason": "not UTF-8",
            "file": "events",
            "position": 42,
            "bytes": 1,
            "base64": "/w==",
        },
    ]


def test_a_bad_record_of_several_lines_is_kept_whole(folder: Path) -> None:
    subject, n, t = "<urn:a>", "<http://example.org/n>", "<http://example.org/t>"
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    bad = [f'{subject} {n} "x" .', f"{subject} {t} {number.format(5)} ."]
    good = [f"<urn:b> {n} {number.format(3)} .", f"<urn:b> {t} {number.format(6)} ."]
    write(folder, *(line.encode() for line in [*good, *bad, "<urn:c>"]))
    (answer,) = answers_in(folder, "ntriples")
    assert [str(row.bindings["s"]) for row in answer.rows] == ["urn:b"]
    kept = letters(folder)
    assert [each["item"] for each in kept] == ["\n".join(bad), "<urn:c>"]
    assert kept[0]["reason"] == "the object of <http://example.org/n> is not a whole number"
    assert kept[0]["position"] == sum(len(line) + 1 for line in good)


def test_a_bad_row_in_columns_is_kept_as_an_object(folder: Path) -> None:
    table = pa.table({"t": [1, None], "user": ["a", "b"], "n": [1.0, float("nan")]})
    pq.write_table(table, folder / "events")
    answers_in(folder, "columns", "parquet")
    (kept,) = letters(folder)
    assert (kept["file"], kept["position"], kept["item"]) == (
        "events",
        1,
        {"t": None, "user": "b", "n": None},
    )


def test_a_bad_document_is_kept(folder: Path) -> None:
    (folder / "events").mkdir()
    (folder / "events" / "a.ttl").write_text(
        "<urn:a> <http://example.org/n> 3 ; <http://example.org/t> 5 ."
    )
    (folder / "events" / "b.ttl").write_text("<urn:a>")
    answers_in(folder, "rdf", "files")
    (kept,) = letters(folder)
    assert (kept["reason"], kept["file"], kept["item"]) == ("not Turtle", "b.ttl", "<urn:a>")


def test_of_a_payload_of_50_mb_the_beginning_is_kept(folder: Path) -> None:
    long = b'{"t": 3, "user": "a b' + "é".encode() * (25 << 20)
    write(folder, GOOD, long, long + b'"}', GOOD)
    (answer,) = answers_in(folder)
    assert sum(answer.counts.bad.values()) == 2
    for each in letters(folder):
        assert each["bytes"] >= 50 << 20
        assert long.startswith(each["item"].encode())
        assert LONGEST_ITEM - 3 < len(each["item"].encode()) <= LONGEST_ITEM


def test_what_is_kept_has_a_bound_in_the_file_and_in_memory(folder: Path) -> None:
    write(folder, GOOD, *[b"x" * 1000] * 2000)
    (answer,) = answers_in(folder)
    assert answer.counts.bad == {"not JSON": 2000}
    assert len(letters(folder)) < MOST_OF_PARTITION / 1000
    (folder / "bad.ndjson").unlink()
    answers_in(folder, more="dead_letters_bytes = 5000")
    assert 0 < (folder / "bad.ndjson").stat().st_size <= 5000


def test_the_file_is_as_long_as_the_state_knows(folder: Path) -> None:
    path = folder / "deep" / "bad"
    first = SideOutputFile(str(path), what="bad items", key="dead_letters", most_bytes=10)
    first.begin()
    first.append([b"four\n", b"too long\n", b"six\n"], durable=True)
    assert path.read_bytes() == b"four\nsix\n"
    state = first.state()
    first.append([b"\n"], durable=False)
    again = SideOutputFile(str(path), what="bad items", key="dead_letters", most_bytes=10)
    again.resume(state)
    again.begin()
    assert path.read_bytes() == b"four\nsix\n"
    with pytest.raises(
        EnvironmentProblem, match=r'bad items cannot be written(.|\n)*"dead_letters"'
    ):
        SideOutputFile(str(folder), what="bad items", key="dead_letters").begin()


def test_a_state_from_before_the_first_item_knows_the_length_too(folder: Path) -> None:
    path = folder / "bad"
    path.write_bytes(b"of others\n")
    first = SideOutputFile(str(path), what="bad items", key="dead_letters")
    state = first.state()
    first.begin()
    first.append([b"one\n"], durable=True)
    again = SideOutputFile(str(path), what="bad items", key="dead_letters")
    again.resume(state)
    again.begin()
    assert path.read_bytes() == b"of others\n"


scraps = st.one_of(
    st.binary(max_size=24).filter(lambda line: b"\n" not in line),
    st.text('{}[]",:1atn\\u ', max_size=20).map(str.encode),
    st.sampled_from(
        [GOOD, b"1,a,1", b"<urn:a> <http://example.org/t> 1 .", b'{"t": 1e400}', b'{"t": {"t": 1}}']
    ),
)


@settings(max_examples=60)
@given(st.lists(scraps, min_size=1, max_size=8), st.sampled_from(["json", "csv", "ntriples"]))
def test_random_bytes_stop_nothing_and_every_item_is_an_event_or_counted(
    lines: list[bytes], format_: str
) -> None:
    with quick_folder() as folder:
        header = b"t,user,n" if format_ == "csv" else b""
        write(folder, header, *lines)
        answers = answers_in(folder, format_)
        bad = sum(sum(answer.counts.bad.values()) for answer in answers)
        kept = letters(folder) if (folder / "bad.ndjson").exists() else []
        if answers:
            assert len(kept) == bad
        if format_ == "ntriples":
            return
        held = {each["position"] for each in kept}
        position = len(header) + 1
        for line in lines:
            if position in held:
                (each,) = (each for each in kept if each["position"] == position)
                assert line.rstrip(b"\r") == _bytes(each).rstrip(b"\r")
            position += len(line) + 1
        items = sum(1 for line in lines if line.strip())
        if answers:
            assert sum(answer.counts.events for answer in answers) == items


def _bytes(letter: dict[str, Any]) -> bytes:
    return base64.b64decode(letter["base64"]) if "base64" in letter else letter["item"].encode()
