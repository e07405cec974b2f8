"""Posts become records, whatever stands in their lines: compared with a mapping post by post."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.fields import ROW
from connectors.mapping import BAD, IRI, SUBJECT, TIME, Property, Template
from connectors.x_api.posts import PostsMapping

NS = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
USER = Template.parse(NS + "user/{}")
MENTIONS = PostsMapping(
    Template.parse(NS + "mention/{item}"),
    properties={
        NS + "of": Property("entities.mentions.id", IRI, USER),
        NS + "by": Property("author_id", IRI, USER),
        NS + "likes": Property("public_metrics.like_count", XSD + "integer"),
        NS + "called": Property("entities.mentions.username", XSD + "string"),
    },
)


def lines_of(*posts: object) -> list[bytes]:
    return [json.dumps(post).encode() for post in posts]


def decoded(mapping: PostsMapping, lines: list[bytes]) -> list[dict[str, Any]]:
    records = mapping.records(pa.record_batch([pa.array(lines, pa.binary())], ["value"]))
    assert records.schema == mapping.schema
    return records.to_pylist()


def post(id_: str = "20", **fields: Any) -> dict[str, Any]:
    return {"data": {"id": id_, "text": "…", "created_at": "1970-01-01T00:00:01.000Z", **fields}}


def mention(id_: str, username: str = "u") -> dict[str, Any]:
    return {"start": 0, "end": 3, "username": username, "id": id_}


ids = st.integers(20, 9_999_999_999_999_999_999).map(str)
metrics = st.none() | st.fixed_dictionaries(
    {"like_count": st.integers(0, 9), "reply_count": st.integers(0, 9)}
)
mentions = st.none() | st.lists(
    st.builds(mention, ids, st.text("ab_", min_size=1, max_size=3)), max_size=3
)
posts = st.builds(
    post,
    ids,
    author_id=st.none() | ids,
    created_at=st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(
        lambda at: at.replace(tzinfo=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    ),
    entities=st.none()
    | st.fixed_dictionaries({"mentions": mentions, "hashtags": st.just([{"tag": "x"}])}),
    public_metrics=metrics,
)
broken = st.sampled_from(
    [
        b"{",
        b"\xff{}",
        b"7",
        b"{}",
        b'{"data": 7}',
        b'{"data": {"id": 7, "entities": []}}',
        b'{"data": {"id": []}}',
    ]
)
lines = st.lists(
    posts.map(lambda each: json.dumps(each).encode()) | broken | st.sampled_from([b"", b" \r"]),
    max_size=8,
)


def expected(lines: list[bytes]) -> list[dict[str, Any] | None]:
    """Return the records in lines, None for what is bad."""
    found: list[dict[str, Any] | None] = []
    for line in filter(bytes.strip, lines):
        try:
            its = json.loads(line)["data"]
            made = datetime.fromisoformat(its["created_at"])
        except (ValueError, TypeError, KeyError):
            found.append(None)
            continue
        elements = (its.get("entities") or {}).get("mentions") or []
        for number, element in enumerate(elements or [None]):
            item = its["id"] if element is None else f"{its['id']}-{number}"
            of, called = (None, None) if element is None else (element["id"], element["username"])
            likes = (its["public_metrics"] or {}).get("like_count")
            by = its["author_id"]
            found.append(
                {
                    TIME: round(made.timestamp() * 1000),
                    SUBJECT: f"<{NS}mention/{item}>",
                    MENTIONS.column(NS + "of"): of and f"<{NS}user/{of}>",
                    MENTIONS.column(NS + "by"): by and f"<{NS}user/{by}>",
                    MENTIONS.column(NS + "likes"): likes,
                    MENTIONS.column(NS + "called"): called,
                }
            )
    return found


@given(lines)
def test_a_record_per_mention_as_post_by_post(lines: list[bytes]) -> None:
    found = decoded(MENTIONS, lines)
    wanted = expected(lines)
    assert len(found) == len(wanted)
    for record, want in zip(found, wanted, strict=True):
        assert (record[BAD] is not None) == (want is None)
        if want is not None:
            assert {name: record[name] for name in want} == want


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"\xff", "not UTF-8"),
        (b"{", "not JSON"),
        (b'{"data": {"id": NaN}}', "not JSON"),
        (b'[{"data": {}}]', "not a post"),
        (b'{"meta": 1}', "not a post"),
        (
            lines_of(post(entities={"mentions": 7}))[0],
            'the field "entities.mentions" is not a list',
        ),
        (lines_of(post(entities=7))[0], 'the field "entities" is not an object'),
        (
            lines_of(post(public_metrics={"like_count": "7"}))[0],
            'the field "public_metrics.like_count" is not a whole',
        ),
        (lines_of(post(created_at="yesterday"))[0], 'the field "created_at" is not'),
        (lines_of({"data": {"id": "20"}})[0], 'no time in the field "created_at"'),
        (lines_of(post(author_id="a b"))[0], 'the field "author_id" does not fit into an IRI'),
        (
            b'{"data": {"id": "20", "created_at": "\\ud800"}}',
            'the field "created_at" is not a string',
        ),
    ],
)
def test_what_is_wrong_is_said_and_costs_only_its_own_line(line: bytes, fault: str) -> None:
    (good,) = lines_of(post("21"))
    first, second, third = decoded(MENTIONS, [good, line, good])
    assert second[BAD].startswith(fault)
    assert second[SUBJECT] is None
    assert {**first, ROW: 2} == third
    assert first[BAD] is None


def test_many_lines_among_which_one_is_bad_are_all_there_in_their_order() -> None:
    lines = lines_of(*(post(str(20 + number)) for number in range(3000)))
    lines[1500] = b"{"
    found = decoded(MENTIONS, lines)
    assert [number for number, record in enumerate(found) if record[BAD]] == [1500]
    assert [record[SUBJECT] for record in found if record[SUBJECT]] == [
        f"<{NS}mention/{20 + number}>" for number in range(3000) if number != 1500
    ]


def test_the_mentioned_user_may_be_the_subject() -> None:
    mapping = PostsMapping(
        Template.parse(NS + "user/{entities.mentions.id}"),
        properties={NS + "mentionedIn": Property("id", IRI, Template.parse(NS + "post/{}"))},
    )
    nobody, one, two = decoded(
        mapping,
        lines_of(post("20"), post("21", entities={"mentions": [mention("7"), mention("8")]})),
    )
    column = mapping.column(NS + "mentionedIn")
    assert (one[SUBJECT], one[column]) == (f"<{NS}user/7>", f"<{NS}post/21>")
    assert (two[SUBJECT], two[column]) == (f"<{NS}user/8>", f"<{NS}post/21>")
    # It says nothing but that time goes on.
    assert (nobody[TIME], nobody[column], nobody[BAD]) == (1000, None, None)


def test_what_stands_beside_a_post_and_lists_of_texts_are_fields_too() -> None:
    tags = PostsMapping(
        Template.parse(NS + "post/{id}"),
        properties={NS + "tag": Property("matching_rules.tag", XSD + "string")},
    )
    line = {**post("20"), "matching_rules": [{"id": "1", "tag": "a"}, {"id": "2", "tag": "b"}]}
    assert [record[tags.column(NS + "tag")] for record in decoded(tags, lines_of(line))] == [
        "a",
        "b",
    ]
    edits = PostsMapping(
        Template.parse(NS + "post/{id}"),
        properties={NS + "edit": Property("edit_history_tweet_ids", XSD + "string")},
    )
    found = decoded(edits, lines_of(post("21", edit_history_tweet_ids=["20", "21"])))
    assert [record[edits.column(NS + "edit")] for record in found] == ["20", "21"]


@pytest.mark.parametrize(
    ("field", "datatype", "message"),
    [
        (
            "entities.hashtags.tag",
            "string",
            "fields of one list may be used, not of both entities.hashtags and",
        ),
        ("id", "integer", 'the field "id" cannot be read both as a text and as a number'),
    ],
)
def test_what_no_record_could_be_made_of_is_refused(
    field: str, datatype: str, message: str
) -> None:
    subject = Template.parse(NS + "user/{entities.mentions.id}")
    with pytest.raises(ValueError, match=message):
        PostsMapping(subject, properties={NS + "p": Property(field, XSD + datatype)})
