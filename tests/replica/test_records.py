"""Records as RDF: keys there and back, values as terms of one text each, nested records."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica.remotes.json_lines import load_line
from replica.remotes.records import (
    MOST_SOLUTIONS,
    Field,
    KeyTemplate,
    RecordMapping,
    RecordReader,
    Star,
    values_at,
)
from replica.remotes.values import XSD, parsed, term_maker
from replica.terms import is_term, number_of

USER = KeyTemplate.parse("http://example.org/user/{id}")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
PATHS = st.lists(st.sampled_from(["a", "b", "0", "1", ""]) | st.text(max_size=2), max_size=4).map(
    ".".join
)


def lexical(datatype: str, value: object) -> str | None:
    term = term_maker(XSD + datatype)(value)
    if term is None:
        return None
    assert is_term(term)
    return term[1:].rpartition('"')[0]


# Keys ---------------------------------------------------------------------------------------------


@given(st.text())
def test_an_id_comes_back_from_its_key_and_no_two_have_the_same(text: str) -> None:
    key = USER.term(text)
    if key is not None:
        assert is_term(key)
        assert USER.value(key) == text


@given(st.text(st.characters(codec="ascii"), min_size=1))
def test_every_ascii_text_is_an_id(text: str) -> None:
    assert USER.value(str(USER.term(text))) == text


@given(st.text(st.sampled_from('<>/user%412ée "{}\\^`|#?&=.\x00\ud800'), max_size=8))
def test_a_key_that_is_not_spelt_as_its_id_would_be_is_no_key(rest: str) -> None:
    key = f"<http://example.org/user/{rest}>"
    value = USER.value(key)
    assert value is None or (is_term(key) and USER.term(value) == key)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("42", "42"),
        (42, "42"),
        (np.int64(42), "42"),
        (10**30, "1" + "0" * 30),
        ("a/b?c=d:e@f,g;h", "a/b?c=d:e@f,g;h"),
        ("a b#c%d", "a%20b%23c%25d"),
        ('<>"{}|\\^`', "%3C%3E%22%7B%7D%7C%5C%5E%60"),
        ("\n\x00\x7f", "%0A%00%7F"),
        ("Zoë", "Zoë"),
        ("", None),
        (True, None),
        (1.0, None),
        (None, None),
        (["1"], None),
        ("\ud800", None),
        ("\ue000", None),  # for private use: no IRI may hold it
    ],
)
def test_the_key_of_an_id(value: object, key: str | None) -> None:
    assert USER.term(value) == (None if key is None else f"<http://example.org/user/{key}>")


@pytest.mark.parametrize(
    "text",
    ["", "http://x/", "http://x/{a}/{b}", "http://x/{}", "http://x/{a", "no iri/{id}", "<{id}>"],
)
def test_a_template_that_makes_no_iris_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must have one|does not make"):
        KeyTemplate.parse(text)


def test_whole_iris_are_keys_as_they_are() -> None:
    whole = KeyTemplate.parse("{iri}")
    assert whole.term("http://example.org/a%20b") == "<http://example.org/a%20b>"
    assert whole.value("<http://example.org/a%20b>") == "http://example.org/a%20b"
    assert whole.term("no iri") is whole.term("urn:x> <urn:y") is whole.value('"x"') is None


def test_what_stands_behind_the_id_belongs_to_the_key() -> None:
    posts = KeyTemplate.parse("http://example.org/{user.id}/posts")
    assert posts.value("<http://example.org/7/posts>") == "7"
    assert (
        posts.value("<http://example.org/7>") is posts.value("<http://example.org//posts>") is None
    )
    assert posts.value("<http://example.org/posts>") is None


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("datatype", "value", "text"),
    [
        ("integer", 7, "7"),
        ("integer", -(10**40), "-1" + "0" * 40),
        ("integer", np.int32(7), "7"),
        ("integer", True, None),
        ("integer", 7.0, None),
        ("integer", Decimal(7), None),
        ("integer", "7", None),
        ("double", 7, "7.0"),
        ("double", 0.1, "0.1"),
        ("double", Decimal("1.10"), "1.1"),
        ("double", np.float32(0.5), "0.5"),
        ("double", -0.0, "0.0"),
        ("double", 1e300, "1e+300"),
        ("double", float("nan"), None),
        ("double", float("inf"), None),
        ("double", 10**400, None),
        ("double", Decimal("1e999999999"), None),
        ("double", True, None),
        ("decimal", Decimal("1.10"), "1.1"),
        ("decimal", Decimal("100"), "100"),
        ("decimal", Decimal("1e2"), "100"),
        ("decimal", Decimal("-0.0"), "0"),
        ("decimal", 0.1, "0.1"),
        ("decimal", 3, "3"),
        ("decimal", Decimal("1e999999999"), None),
        ("decimal", Decimal("1e-999999999"), None),
        ("decimal", Decimal("NaN"), None),
        ("decimal", float("inf"), None),
        ("decimal", False, None),
        ("boolean", True, "true"),
        ("boolean", np.bool_(False), "false"),
        ("boolean", 1, None),
        ("string", "Zoë", "Zoë"),
        ("string", "\ud800", None),
        ("string", 7, None),
        ("dateTime", "2021-01-06T18:40:40.000Z", "2021-01-06T18:40:40.000Z"),
        (
            "dateTime",
            datetime.datetime(2021, 1, 6, 18, tzinfo=datetime.UTC),
            "2021-01-06T18:00:00Z",
        ),
        ("dateTime", datetime.datetime(2021, 1, 6, 18), "2021-01-06T18:00:00"),
        ("dateTime", "2021-01-06", None),
        ("dateTime", "2021-13-06T18:40:40Z", None),
        ("dateTime", 1609958440, None),
        ("date", "2021-01-06Z", "2021-01-06Z"),
        ("date", datetime.date(2021, 1, 6), "2021-01-06"),
        ("date", datetime.datetime(2021, 1, 6), None),
        ("date", "2021-01-06T00:00:00", None),
        ("time", datetime.time(1, 2, 3), "01:02:03"),
        ("duration", "P1Y2M3DT4H5M6.7S", "P1Y2M3DT4H5M6.7S"),
        ("duration", "P", None),
        ("duration", "PT", None),
        ("duration", "P1DT", None),
        ("dayTimeDuration", "P1Y", None),
        ("yearMonthDuration", "-P1Y", "-P1Y"),
        ("byte", 127, "127"),
        ("byte", 128, None),
        ("unsignedLong", 2**64 - 1, str(2**64 - 1)),
        ("float", 0.1, "0.1"),
        ("float", 1e39, None),
        ("anyURI", "a b", None),
    ],
)
def test_a_value_has_one_text_or_is_of_another_type(
    datatype: str, value: object, text: str | None
) -> None:
    assert lexical(datatype, value) == text


def test_a_whole_number_with_more_digits_than_python_writes_is_none() -> None:
    assert (
        lexical("integer", 10**5000) is USER.term(10**5000) is lexical("decimal", 10**5000) is None
    )


@given(st.floats() | st.integers() | st.decimals())
def test_equal_numbers_have_equal_terms_that_mean_them(value: Any) -> None:
    make = term_maker(XSD + "double")
    term = make(value)
    if term is not None:
        assert number_of(term) == float(value)
        assert make(float(value)) == term


@given(st.decimals(-(10**20), 10**20, places=4))
def test_a_decimal_is_written_exactly(value: Decimal) -> None:
    text = lexical("decimal", value)
    assert text is not None
    assert Decimal(text) == value
    assert lexical("decimal", value.normalize()) == text


@pytest.mark.parametrize(
    ("datatype", "text", "value"),
    [
        ("integer", "007", 7),
        ("integer", "+7", 7),
        ("integer", "7.0", "7.0"),
        ("integer", "7" * 5000, "7" * 5000),
        ("integer", " 7", " 7"),
        ("integer", "７", "７"),
        ("double", "1e3", Decimal("1e3")),
        ("double", "NaN", "NaN"),
        ("double", "1e99999999999999999999", "1e99999999999999999999"),
        ("boolean", "true", True),
        ("boolean", "yes", "yes"),
        ("string", "7", "7"),
    ],
)
def test_values_that_are_written_are_read(datatype: str, text: str, value: object) -> None:
    assert parsed(text, XSD + datatype) == value


def test_iris_are_whole_or_made_of_a_value() -> None:
    assert term_maker("iri")("http://example.org/a") == "<http://example.org/a>"
    assert term_maker("iri")("> <urn:x") is term_maker("iri")(7) is None
    assert term_maker("iri")("urn:acquatop:blank:00112233445566778899aabbccddeeff") is None
    assert term_maker("http://example.org/{x}")("a b") == "<http://example.org/a%20b>"
    with pytest.raises(ValueError, match="not supported"):
        term_maker(XSD + "gYear")
    with pytest.raises(ValueError, match="not supported"):
        RecordMapping(USER, {"urn:p": Field("p", "urn:x")})


# Records ------------------------------------------------------------------------------------------


def reader(
    columns: dict[str, Field], constants: dict[str, tuple[Field, str]] | None = None
) -> RecordReader:
    fixed = constants or {}
    properties = {f"urn:{name}": field for name, field in columns.items()} | {
        f"urn:{name}": field for name, (field, _) in fixed.items()
    }
    star = Star(
        "k",
        {name: f"urn:{name}" for name in columns},
        {f"urn:{name}": term for name, (_, term) in fixed.items()},
    )
    return RecordReader(RecordMapping(USER, properties), star)


@given(JSON, PATHS)
def test_whatever_a_record_holds_reading_it_ends(value: object, path: str) -> None:
    for each in values_at(value, path):
        assert each is not None
    found = reader({"v": Field(path, XSD + "integer")}).solutions(
        [(value, None), ({"id": 1, "a": value}, None)], None
    )
    assert all(is_term(term) for solution in found for term in solution.values())


def test_lists_give_every_combination() -> None:
    both = reader({"a": Field("a"), "b": Field("b.c", XSD + "integer")})
    found = both.read({"id": 1, "a": ["x", "y", "x"], "b": [{"c": 1}, {"c": 2}, {}]}).solutions
    assert [(each["a"], number_of(each["b"])) for each in found] == [
        ('"x"', 1),
        ('"x"', 2),
        ('"y"', 1),
        ('"y"', 2),
    ]


def test_a_list_with_some_values_of_another_type_gives_the_others() -> None:
    found = reader({"a": Field("a", XSD + "integer")}).read({"id": 1, "a": ["x", 7, None, [8]]})
    assert [number_of(each["a"]) for each in found.solutions] == [7]


def test_a_record_cannot_have_more_solutions_than_are_sensible() -> None:
    many = reader({"a": Field("a", XSD + "integer"), "b": Field("b", XSD + "integer")})
    side = list(range(1 + int(MOST_SOLUTIONS**0.5)))
    assert many.solutions([({"id": 1, "a": side, "b": side}, None)], None) == []
    assert dict(many.rejected) == {"too many solutions": 1}
    assert (
        len(many.solutions([({"id": 1, "a": side[1:], "b": side[1:]}, None)], None))
        == MOST_SOLUTIONS
    )


@pytest.mark.parametrize(
    ("record", "key", "fault", "is_bad"),
    [
        ({"id": 1, "v": 7}, USER.term(1), None, False),
        ({"id": 1}, USER.term(1), 'no "v"', False),
        ({"id": 1, "v": None}, USER.term(1), 'no "v"', False),
        ({"id": 1, "v": "7"}, USER.term(1), '"v" is not xsd:integer', True),
        ({"v": 7}, None, 'no "id"', True),
        ({"id": None, "v": 7}, None, 'no "id"', True),
        ({"id": [1, 2], "v": 7}, None, 'no "id"', True),
        ({"id": "", "v": 7}, None, '"id" does not fit into an IRI', True),
        ({"id": {"x": 1}, "v": 7}, None, '"id" does not fit into an IRI', True),
        (7, None, "not an object", True),
        (None, None, "not an object", True),
        ([{"id": 1, "v": 7}], None, "not an object", True),
    ],
)
def test_a_reading_says_why_there_is_no_solution(
    record: object, key: str | None, fault: str | None, is_bad: bool
) -> None:
    reading = reader({"v": Field("v", XSD + "integer")}).read(record)
    assert (reading.key, reading.fault, reading.is_bad) == (key, fault, is_bad)
    assert bool(reading.solutions) == (fault is None)


def test_a_record_that_is_another_is_no_match_and_not_bad() -> None:
    bots = reader({"v": Field("v")}, {"kind": (Field("kind"), '"bot"')})
    assert bots.read({"id": 1, "v": "x", "kind": "bot"}).solutions == [
        {"k": USER.term(1), "v": '"x"'}
    ]
    assert not bots.read({"id": 1, "v": "x", "kind": "human"}).is_bad


def test_a_variable_that_is_the_key_must_be_the_key() -> None:
    itself = RecordReader(
        RecordMapping(USER, {"urn:knows": Field("friends", "http://example.org/user/{x}")}),
        Star("k", {"k": "urn:knows"}),
    )
    assert itself.read({"id": 1, "friends": [2, 1]}).solutions == [{"k": USER.term(1)}]
    assert itself.read({"id": 1, "friends": [2]}).solutions == ()


def test_reasons_are_as_few_as_the_mapping_has_fields() -> None:
    some = reader({"v": Field("v", XSD + "integer")})
    some.solutions((({"id": number, "v": str(number)}, None) for number in range(50)), None)
    assert dict(some.rejected) == {'"v" is not xsd:integer': 50}


def parse_all(lines: Iterable[bytes]) -> list[object]:
    found: list[object] = []
    for line in lines:
        try:
            found.append(load_line(line))
        except ValueError:
            found.append(None)
    return found


def test_a_line_is_json_or_nothing() -> None:
    lines = [
        b"{}",
        b"NaN",
        b'{"a": Infinity}',
        b"\xff",
        b"[" * 100_000,
        b"1e9999999999999999999999",
        b"{} {}",
        b"",
    ]
    assert parse_all(lines) == [{}, *[None] * 7]
    assert parse_all([b"9" * 5000, b"0.10"]) == [None, Decimal("0.10")]


@given(st.integers())
def test_whole_numbers_of_any_size_are_exact(value: int) -> None:
    assert lexical("integer", load_line(json.dumps(value).encode())) == str(value)


def test_texts_have_the_language_of_their_property() -> None:
    make = term_maker("@en-GB")
    assert make('a "b"') == '"a \\"b\\""@en-gb'
    assert make(7) is None
