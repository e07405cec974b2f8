"""Messages in the wire format of schema registries, with a registry over HTTP."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from connectors import ConnectorError
from connectors.kafka_client.encodings import decoder
from tests.support.json_server import Answer, Asked, JsonServer, serving

PLACE = {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}
MENTION = {
    "type": "record",
    "name": "Mention",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "n", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "where", "type": ["null", "Place"]},
        {"name": "raw", "type": "bytes"},
    ],
}


def proto_files() -> tuple[descriptor_pb2.FileDescriptorProto, descriptor_pb2.FileDescriptorProto]:
    """Return a file with a place, and one with mentions of it."""
    kinds = descriptor_pb2.FieldDescriptorProto
    place = descriptor_pb2.FileDescriptorProto(name="place.proto", package="p", syntax="proto3")
    message = place.message_type.add(name="Place")
    message.field.add(name="city", number=1, type=kinds.TYPE_STRING, label=1)
    mention = descriptor_pb2.FileDescriptorProto(name="m.proto", package="p", syntax="proto3")
    mention.dependency.extend(["place.proto", "google/protobuf/timestamp.proto"])
    mention.message_type.add(name="Other")
    outer = mention.message_type.add(name="Outer")
    inner = outer.nested_type.add(name="Mention")
    inner.field.add(name="user", number=1, type=kinds.TYPE_STRING, label=1)
    inner.field.add(name="n", number=2, type=kinds.TYPE_INT64, label=1)
    stamp = {"type": kinds.TYPE_MESSAGE, "label": 1}
    inner.field.add(name="at", number=3, type_name=".google.protobuf.Timestamp", **stamp)
    inner.field.add(name="where", number=4, type_name=".p.Place", **stamp)
    inner.field.add(name="tags", number=5, type=kinds.TYPE_STRING, label=3)
    return place, mention


@pytest.fixture(scope="module")
def registry() -> Iterator[JsonServer]:
    place, mention = (base64.b64encode(each.SerializeToString()).decode() for each in proto_files())
    of_avro = {"subject": "a/place", "version": 1, "name": "Place"}
    of_proto = {"subject": "place", "version": 2, "name": "place.proto"}
    said = {
        "/schemas/ids/1": {"schema": json.dumps(MENTION), "references": [of_avro]},
        "/subjects/a%2Fplace/versions/1": {"schema": json.dumps(PLACE)},
        "/schemas/ids/2": {"schema": mention, "schemaType": "PROTOBUF", "references": [of_proto]},
        "/subjects/place/versions/2": {"schema": place},
        "/schemas/ids/3": {"schema": "{}", "schemaType": "JSON"},
    }

    def answer(asked: Asked) -> Answer:
        found = said.get(asked.path.partition("?")[0])
        return Answer.json({"error_code": 40403}, 404) if found is None else Answer.json(found)

    with serving(answer) as server:
        yield server


def framed(number: int, content: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + content


RECORDS = st.fixed_dictionaries(
    {
        "user": st.text(),
        "n": st.integers(-(2**63), 2**63 - 1),
        "at": st.integers(0, 4_000_000_000_000),
        "where": st.none() | st.fixed_dictionaries({"city": st.text()}),
    }
)


@given(RECORDS, st.binary())
def test_avro_becomes_json(registry: JsonServer, record: dict[str, Any], raw: bytes) -> None:
    written = io.BytesIO()
    named: dict[str, Any] = {}
    fastavro.parse_schema(PLACE, named)
    schema = fastavro.parse_schema(MENTION, named)
    at = datetime.fromtimestamp(record["at"] / 1000, UTC)
    fastavro.schemaless_writer(written, schema, {**record, "at": at, "raw": raw})
    found = json.loads(decoder("avro", url(registry))(framed(1, written.getvalue())))
    assert found == {**record, "raw": base64.b64encode(raw).decode()}


@given(RECORDS, st.lists(st.text(), max_size=3))
def test_protobuf_becomes_json(
    registry: JsonServer, record: dict[str, Any], tags: list[str]
) -> None:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for file in proto_files():
        pool.Add(file)
    mention = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Outer.Mention"))()
    mention.user, mention.n = record["user"], record["n"]
    mention.at.FromMilliseconds(record["at"])
    if record["where"] is not None:
        mention.where.city = record["where"]["city"]
    mention.tags.extend(tags)
    # The second type of the file, and the first one in it.
    content = b"\x04\x02\x00" + mention.SerializeToString()
    found = json.loads(decoder("protobuf", url(registry))(framed(2, content)))
    assert found == {
        **{name: value for name, value in record.items() if value is not None},
        "tags": tags,
    }


def test_json_loses_its_head_and_what_is_not_encoded_so_stays(registry: JsonServer) -> None:
    decode = decoder("json-schema", url(registry))
    assert json.loads(decode(framed(3, b'{"n": 1}'))) == {"n": 1}
    for bad in (b"", b'{"n": 1}', framed(3, b'{"n"')):
        assert decode(bad) == bad
    broken = framed(1, b"\x80")
    assert decoder("avro", url(registry))(broken) == broken
    broken = framed(2, b"\x00\x0a")
    assert decoder("protobuf", url(registry))(broken) == broken


def test_a_schema_is_asked_for_once_and_one_that_is_missing_is_an_error(
    registry: JsonServer,
) -> None:
    decode, before = decoder("json-schema", url(registry)), len(registry.asked)
    for _ in range(3):
        decode(framed(3, b"{}"))
    assert len(registry.asked) == before + 1
    with pytest.raises(ConnectorError, match="does not give schemas/ids/9"):
        decode(framed(9, b"{}"))


def url(registry: JsonServer) -> str:
    return registry.url
