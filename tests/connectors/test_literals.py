from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.instants import milliseconds
from connectors.literals import times_in, times_of, values_of
from connectors.mapping import DATATYPES, IRI

XSD = "http://www.w3.org/2001/XMLSchema#"
whole = st.integers(-(2**64), 2**64) | st.integers(-50, 50)


def values(terms: list[str], datatype: str) -> list[object]:
    found = values_of(pa.array(terms, pa.string()), datatype)
    assert found.type == DATATYPES[datatype]
    return list(found.to_pylist())


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "+", "-", "0", "-00"]), st.integers(0, 2**65)), max_size=4
    )
)
def test_whole_numbers_are_read_as_far_as_64_bits_hold_them(numbers: list[tuple[str, int]]) -> None:
    written = [f"{sign}{number}" for sign, number in numbers]
    expected = [int(each) if -(2**63) <= int(each) < 2**63 else None for each in written]
    assert values([f'"{each}"^^<{XSD}integer>' for each in written], XSD + "integer") == expected


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4))
def test_doubles_are_read_as_they_are_written(numbers: list[float]) -> None:
    assert values([f'"{each!r}"^^<{XSD}double>' for each in numbers], XSD + "double") == numbers


@given(st.lists(st.text(max_size=6), max_size=4))
def test_texts_lose_their_escapes_and_nothing_else(texts: list[str]) -> None:
    assert values([str(ox.Literal(each)) for each in texts], XSD + "string") == texts


@pytest.mark.parametrize(
    ("term", "datatype", "value"),
    [
        (f'"3"^^<{XSD}int>', XSD + "integer", 3),
        (f'"9223372036854775808"^^<{XSD}integer>', XSD + "integer", None),
        ('"' + "9" * 5000 + f'"^^<{XSD}integer>', XSD + "integer", None),
        (f'"3.0"^^<{XSD}decimal>', XSD + "integer", None),
        ('"3"', XSD + "integer", None),
        (f'" 3"^^<{XSD}integer>', XSD + "integer", None),
        ("<urn:a>", XSD + "integer", None),
        (f'"+.5"^^<{XSD}decimal>', XSD + "double", 0.5),
        (f'"5."^^<{XSD}float>', XSD + "double", 5.0),
        (f'"1e3"^^<{XSD}decimal>', XSD + "double", None),
        (f'"7"^^<{XSD}unsignedByte>', XSD + "double", 7.0),
        (f'"1e999"^^<{XSD}double>', XSD + "double", None),
        (f'"INF"^^<{XSD}double>', XSD + "double", None),
        (f'"NaN"^^<{XSD}double>', XSD + "double", None),
        (f'"a"^^<{XSD}string>', XSD + "string", "a"),
        ('"a"@en', XSD + "string", None),
        ('"a"^^<urn:b>', XSD + "string", None),
        ('""', XSD + "string", ""),
        (r'"\"\u0041\U0001F600\\n"', XSD + "string", '"A😀\\n'),
        ("<urn:a>", IRI, "<urn:a>"),
        ('"<urn:a>"', IRI, None),
        ("_:a", IRI, None),
    ],
)
def test_what_is_no_such_thing_is_null(term: str, datatype: str, value: object) -> None:
    assert values(["<urn:x>", term, "<urn:x>"], datatype)[1] == value
    assert values([term], datatype) == [value]


@given(st.datetimes(), st.integers(-840, 840), st.sampled_from(["dateTime", "dateTimeStamp"]))
def test_instants_are_read_with_their_zones(moment: datetime, minutes: int, datatype: str) -> None:
    there = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    since = (
        there.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC) - timedelta(minutes=minutes)
    )
    found = times_of(pa.array([f'"{there.isoformat()}"^^<{XSD}{datatype}>'])).to_pylist()
    if 1 < moment.year < 9999:
        assert found == [since // timedelta(milliseconds=1)]
    assert milliseconds(pa.array([moment.isoformat(), moment.isoformat() + "Z"])).null_count == 0


@pytest.mark.parametrize(
    "text",
    "2023-02-29T00:00:00Z 1900-02-29T00:00:00 2000-01-01T24:00:00Z 0000-01-01T00:00:00Z "
    "12000-01-01T00:00:00Z "
    "2000-01-01 2000-01-01T00:00:00z 2000-01-01T00:00:00. 2000-01-01T00:00:00+15:00 "
    "2000-04-31T00:00:00".split(),
)
def test_what_no_calendar_has_is_no_instant(text: str) -> None:
    assert milliseconds(pa.array([text, "2000-02-29T00:00:00Z"])).to_pylist() == [
        None,
        951_782_400_000,
    ]


def test_bare_texts_are_times_too() -> None:
    found = times_in(pa.array(["12", "1970-01-01T00:00:00.25+00:00", "x", None]))
    assert found.to_pylist() == [12, 250, None, None]
