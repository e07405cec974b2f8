from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.fields import ROW
from connectors.mapping import (
    ARRIVAL,
    BAD,
    IRI,
    TERM,
    XSD_DOUBLE,
    JsonMapping,
    Property,
    Template,
    TermProperty,
    count_faults,
)
from connectors.objects import LANG_STRING, Datatype, Objects, Terms

XSD = "http://www.w3.org/2001/XMLSchema#"
MAPPING = JsonMapping(
    Template.parse("http://example.org/user/{user}"),
    "t",
    {
        "urn:mentions": Property("mentions", XSD + "integer"),
        "urn:mood": Property("mood", XSD + "double"),
        "urn:name": Property("name", XSD + "string"),
    },
)

scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5)
)
right = st.fixed_dictionaries(
    {"t": st.integers(0, 10), "user": st.sampled_from(["a", "b", "é"])},
    optional={"mentions": st.integers(0, 9), "mood": st.floats(-5, 5), "name": st.text(max_size=4)},
)
odd = st.dictionaries(
    st.sampled_from(["t", "user", "mentions", "mood", "name", "x"]), scalars | st.lists(scalars)
)
lines = st.one_of(
    right.map(lambda each: json.dumps(each).encode()),
    right.map(lambda each: (" " + json.dumps(each, ensure_ascii=False) + "\r").encode()),
    odd.map(lambda each: json.dumps(each).encode()),
    st.lists(right, max_size=2).map(lambda each: " ".join(map(json.dumps, each)).encode()),
    st.binary(max_size=8),
    st.sampled_from(
        [
            b"",
            b"   ",
            b"\x1c",
            b"{",
            b"}{",
            b'{"t": 1',
            b'"user": "a"}',
            b"[]",
            b"null",
            b'{"t":1,"t":2,"user":"a"}',
        ]
    ),
)


def decoded(batch: list[bytes]) -> list[dict[str, object]]:
    return MAPPING.decode(pa.array(batch, pa.binary())).to_pylist()


@settings(max_examples=400)
@given(st.lists(lines, max_size=6))
def test_a_batch_is_decoded_as_its_lines_are_one_by_one(batch: list[bytes]) -> None:
    """The fast road, all lines at once, and the careful one, line by line, read the same."""
    one_by_one = [{**row, ROW: at} for at, line in enumerate(batch) for row in decoded([line])]
    assert decoded(batch) == one_by_one
    assert len(one_by_one) == len([line for line in batch if line.strip()])


@given(st.lists(right, min_size=1))
def test_good_records_come_out_as_they_went_in(batch: list[dict[str, object]]) -> None:
    assert decoded([json.dumps(each).encode() for each in batch]) == [
        {
            "time_ms": each["t"],
            "subject": f"<http://example.org/user/{each['user']}>",
            "p0": each.get("mentions"),
            "p1": each.get("mood"),
            "p2": each.get("name"),
            "bad": None,
            ROW: row,
        }
        for row, each in enumerate(batch)
    ]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"\xff", "not UTF-8"),
        (b"{", "not JSON"),
        (b'{"t": NaN, "user": "a"}', "not JSON"),
        (b'{"t": 1, "user": "a"} {}', "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"user": "a"}', 'no time in the field "t"'),
        (b'{"t": 1}', 'no subject in the field "user"'),
        (b'{"t": 1.5, "user": "a"}', 'the field "t" is not a whole number'),
        (b'{"t": 1, "user": 7.5}', 'the field "user" is not a string'),
        (b'{"t": 1, "user": true}', 'the field "user" is not a string'),
        (b'{"t": 1, "user": "\\ud83d"}', 'the field "user" is not a string'),
        (
            b'{"t": 1700000000000000000, "user": "a"}',
            'the time in the field "t" is not in the years 1 to 9999',
        ),
        (b'{"t": 1, "user": "a", "mood": NaN}', "not JSON"),
        (b'{"t": 1, "user": "a", "mood": 1e999}', 'the field "mood" is not a number'),
        (b'{"t": 1, "user": "a b"}', 'the field "user" does not fit into an IRI'),
        (b'{"t": 1, "user": "a> <urn:x"}', 'the field "user" does not fit into an IRI'),
        (b'{"t": 1, "user": "a", "mentions": "3"}', 'the field "mentions" is not a whole number'),
        (b'{"t": 1, "user": "a", "mood": true}', 'the field "mood" is not a number'),
        (b'{"t": 99999999999999999999, "user": "a"}', 'the field "t" is not a whole number'),
    ],
)
def test_faults_are_named_and_cost_only_their_own_line(line: bytes, fault: str) -> None:
    good = b'{"t": 1, "user": "a", "mentions": 3}'
    batch = MAPPING.decode(pa.array([good, line, good]))
    assert [row[BAD] for row in batch.to_pylist()] == [None, fault, None]
    assert count_faults([batch, batch]) == {fault: 2}


def test_a_whole_number_may_name_the_subject() -> None:
    lines = [b'{"t": 1, "user": 42}', b'{"t": 1, "user": 7}']
    names = ["<http://example.org/user/42>", "<http://example.org/user/7>"]
    assert [row["subject"] for row in decoded(lines)] == names
    assert [row["subject"] for row in decoded([*lines, b'{"t": 1, "user": "a"}'])] == [
        *names,
        "<http://example.org/user/a>",
    ]


def test_a_field_may_hold_the_whole_subject() -> None:
    mapping = JsonMapping(Template.parse("{user}"), "t", {})
    batch = mapping.decode(
        pa.array([b'{"t": 1, "user": "urn:a#b"}', b'{"t": 1, "user": "a"}', b'{"t": 1, "user": 3}'])
    )
    assert batch.column("subject").to_pylist() == ["<urn:a#b>", None, None]


def test_a_number_beyond_int64_is_a_double_also_beside_a_bad_line() -> None:
    lines = [b'{"t": 1, "user": "a", "mood": 100000000000000000000}', b"{"]
    assert [row["p1"] for row in decoded(lines)] == [1e20, None]


def rows_of(mapping: JsonMapping, *lines: bytes, **columns: object) -> list[tuple[object, ...]]:
    batch = pa.record_batch({"value": pa.array(lines, pa.binary()), **columns})
    return [tuple(row.values()) for row in mapping.records(batch).to_pylist()]


NESTED = JsonMapping(
    Template.parse("http://example.org/user/{by.id}"),
    "by.at",
    {
        "urn:n": Property("by.counts.n", XSD + "integer"),
        "urn:of": Property("of", IRI, Template.parse("http://example.org/thing/{}")),
    },
)
branches = st.none() | st.integers(0, 3) | st.lists(st.just({"n": 1}), max_size=1)
trees = st.fixed_dictionaries(
    {},
    optional={
        "by": branches
        | st.fixed_dictionaries(
            {"at": st.integers(0, 9), "id": st.sampled_from(["a", 7])},
            optional={
                "counts": branches
                | st.fixed_dictionaries({}, optional={"n": st.integers(0, 3), "m": scalars})
            },
        ),
        "of": st.sampled_from(["x", "a b", 3, 1.5, None]),
    },
)


@settings(max_examples=150)
@given(st.lists(trees, max_size=4))
def test_nested_fields_are_read_the_same_on_both_roads(records: list[object]) -> None:
    lines = [json.dumps(each).encode() for each in records]
    one_by_one = [
        (*row[:-1], at) for at, line in enumerate(lines) for row in rows_of(NESTED, b"{", line)[1:]
    ]
    assert rows_of(NESTED, *lines) == one_by_one


def test_a_path_leads_into_objects() -> None:
    line = b'{"by": {"id": 7, "at": 5, "counts": {"n": 3, "more": [{}]}}, "of": 12}'
    thing = "<http://example.org/thing/12>"
    assert rows_of(NESTED, line) == [(5, "<http://example.org/user/7>", 3, thing, None, 0)]
    without = b'{"by": {"id": "a", "at": 5, "counts": null}}'
    assert rows_of(NESTED, without) == [(5, "<http://example.org/user/a>", None, None, None, 0)]
    assert (
        rows_of(NESTED, line.replace(b"12", b'"a b"'))[0][4]
        == 'the field "of" does not fit into an IRI'
    )
    assert rows_of(NESTED, b'{"by": 3}')[0][4] == 'the field "by.counts.n" is not a whole number'


@pytest.mark.parametrize(
    ("time_as", "written", "expected"),
    [
        ("milliseconds", "1500", 1500),
        ("seconds", "1.5", 1500),
        ("seconds", "1700000000", 1_700_000_000_000),
        ("seconds", "1e300", 'the time in the field "t" is not in the years 1 to 9999'),
        ("seconds", "-62135596800.001", 'the time in the field "t" is not in the years 1 to 9999'),
        (
            "dateTime",
            '"0001-01-01T00:00:00+00:01"',
            'the time in the field "t" is not in the years 1 to 9999',
        ),
        ("dateTime", '"0001-01-01T00:00:00Z"', -62_135_596_800_000),
        ("dateTime", '"9999-12-31T23:59:59.999Z"', 253_402_300_799_999),
        ("dateTime", '"1970-01-01T01:00:01.5+01:00"', 1500),
        ("dateTime", '"yesterday"', 'the field "t" is not an xsd:dateTime'),
        ("dateTime", "7", 'the field "t" is not a string'),
    ],
)
def test_a_time_may_be_written_in_three_ways(time_as: str, written: str, expected: object) -> None:
    mapping = JsonMapping(Template.parse("urn:{u}"), "t", {}, time_as)
    ((time, _, fault, _),) = rows_of(mapping, f'{{"u": "a", "t": {written}}}'.encode())
    assert (time if fault is None else fault) == expected


def test_the_time_may_be_that_of_the_arrival() -> None:
    mapping = JsonMapping(Template.parse("urn:{u}"), ARRIVAL, {})
    received = pa.array([1_000, 2_000, 3_000], pa.timestamp("ms", "UTC"))
    rows = rows_of(mapping, b'{"u": "a"}', b" ", b"{", received=received)
    assert [(row[0], row[2]) for row in rows] == [(1_000, None), (None, "not JSON")]


def test_a_fresh_subject_is_a_record_s_place() -> None:
    mapping = JsonMapping(Template.parse("urn:event:{}:x"), "t", {})
    lines = [b'{"t": 1}'] * 3
    first, second, other = (
        row[1] for row in rows_of(mapping, *lines, file=["a", "a", "b"], position=[0, 9, 0])
    )
    assert len({first, second, other}) == 3
    assert rows_of(mapping, lines[1], file=["a"], position=[9])[0][1] == second
    assert rows_of(mapping, lines[0], position=[9])[0][1] == "<urn:event:9:x>"


def test_a_template_has_one_field() -> None:
    for text in ("http://example.org/", "http://example.org/{a}/{b}", "{", "{}"):
        with pytest.raises(ValueError, match=r"one \{field\}"):
            Template.parse(text)


topics = st.lists(st.sampled_from(["plant", "m7", "", "é"]), min_size=1, max_size=4).map("/".join)
LEVELS = ("first", "second", "third", "fourth")


def with_topics(whole: str, second: str, third: str) -> JsonMapping:
    properties = {
        "urn:whole": Property(whole, XSD + "string"),
        "urn:second": Property(second, IRI, Template.parse("urn:second:{}")),
    }
    return JsonMapping(
        Template.parse(f"urn:third:{{{third}}}"), "t", {**MAPPING.properties, **properties}
    )


@given(st.lists(st.tuples(topics, right | st.sampled_from([b"", b"{"])), max_size=6))
def test_a_topic_and_its_levels_are_read_as_if_they_were_in_the_message(
    messages: list[tuple[str, dict[str, object] | bytes]],
) -> None:
    plain, told = [], []
    for topic, said in messages:
        levels = dict(zip(LEVELS, topic.split("/"), strict=False))
        plain.append(said if isinstance(said, bytes) else json.dumps(said).encode())
        told.append(
            said
            if isinstance(said, bytes)
            else json.dumps({**said, "whole": topic, **levels}).encode()
        )
    rows = pa.record_batch(
        [pa.array(plain, pa.binary()), pa.array([topic for topic, _ in messages], pa.string())],
        ["value", "topic"],
    )
    found = with_topics("@topic", "@topic.1", "@topic.2").records(rows).to_pylist()
    expected = (
        with_topics("whole", "second", "third").decode(pa.array(told, pa.binary())).to_pylist()
    )
    for row in expected:
        row[BAD] = row[BAD] and row[BAD].replace('"third"', '"@topic.2"')
    assert found == expected


def test_what_came_by_no_topic_has_none() -> None:
    (row,) = (
        with_topics("@topic", "@topic.1", "user")
        .decode(pa.array([b'{"t": 1, "user": "a"}']))
        .to_pylist()
    )
    assert (row["subject"], row["p3"], row["p4"]) == ("<urn:third:a>", None, None)


SEVERAL = (
    TermProperty(
        "v", TERM, objects=Objects((Datatype(XSD + "integer"), Datatype(XSD + "decimal")))
    ),
    TermProperty("v", TERM, objects=Objects((Datatype(XSD + "integer"), Datatype(XSD_DOUBLE)))),
    TermProperty("v", TERM, objects=Objects((Datatype(XSD + "decimal"),))),
    TermProperty("v", TERM, objects=Objects((Datatype(XSD_DOUBLE), Datatype(XSD + "string")))),
    Property("v", IRI, Template("http://example.org/", "", "")),
    Property("v", XSD + "integer"),
    Property("v", XSD_DOUBLE),
)
NUMBERS = "1 1.0 1.50 -0 -0.0 0.12345678901234567890123 1e2 99999999999999999999 true null".split()


@given(
    st.lists(st.sampled_from(SEVERAL), min_size=1, max_size=2, unique=True),
    st.lists(st.sampled_from([*NUMBERS, '"1"', '"a"', "[1, 2.0]"]), min_size=1, max_size=4),
)
def test_a_value_is_the_same_whatever_stands_beside_it(
    uses: list[Property], values: list[str]
) -> None:
    properties = {f"urn:{at}": each for at, each in enumerate(uses)}
    mapping = JsonMapping(Template.parse("urn:{id}"), "t", properties, several=True)
    lines = [f'{{"id": "{at}", "t": 1, "v": {each}}}'.encode() for at, each in enumerate(values)]

    def said(batch: list[bytes]) -> list[dict[str, object]]:
        rows = mapping.decode(pa.array(batch, pa.binary())).to_pylist()
        return [{name: each for name, each in row.items() if name != ROW} for row in rows]

    assert said(lines) == [row for line in lines for row in said([line])]


def test_a_language_that_is_a_list_makes_its_record_bad() -> None:
    label = TermProperty("label", TERM, objects=Objects((Datatype(LANG_STRING),), "{lang}"))
    properties = {"urn:label": label, "urn:lang": Property("lang", XSD + "string")}
    mapping = JsonMapping(Template.parse("urn:{id}"), "t", properties, several=True)
    lines = [
        b'{"id": "1", "t": 1, "label": "a", "lang": ["en", "de"]}',
        b'{"id": "2", "t": 1, "label": "a", "lang": "en"}',
    ]
    bad, good = mapping.decode(pa.array(lines, pa.binary())).to_pylist()
    assert bad[BAD] == 'the field "lang" is not a single value'
    assert good["p0"] == '"a"@en'


@pytest.mark.parametrize(
    "escape", ["\\\\uD800", "\\\\u12", "\\\\U00110000", "\\\\U0000dfff", "\\\\q"]
)
def test_a_term_with_an_invalid_escape_makes_its_record_bad(escape: str) -> None:
    property_ = TermProperty("v", TERM, objects=Objects((Terms(),)))
    mapping = JsonMapping(Template.parse("urn:{id}"), "t", {"urn:v": property_})
    line = f'{{"id": "1", "t": 1, "v": "\\"{escape}\\""}}'.encode()
    good = rb'{"id": "1", "t": 1, "v": "\"\\u00e9\\U0001F600\""}'
    found = mapping.decode(pa.array([line, good], pa.binary())).to_pylist()
    assert [each["p0"] for each in found] == [None, '"é\U0001f600"']
    assert found[0][BAD] == 'the field "v" is not a term in N-Triples syntax'
