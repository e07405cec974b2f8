"""Decoders of messages in the wire format of schema registries; each makes JSON of a message.

Such a message is a zero byte, the schema's number in four bytes, and the encoded record. In
Protobuf the place of the record's type in its file comes before it.
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any
from uuid import UUID

from connectors import ConnectorError
from connectors.kafka_client.registry import SchemaRegistry

_HEAD = 5
_BAD = (ArithmeticError, EOFError, LookupError, ValueError, struct.error)
"""Errors of readers for bytes that are not a record of the schema."""
Read = Callable[[bytes], Any]
"""Reader of an encoded record."""


class _Decoder(ABC):
    """Decoder that knows a reader for each schema's number."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._readers: dict[int, Read] = {}

    def __call__(self, content: bytes) -> bytes:
        """Return a message as JSON; as it is, which is a bad item, if it is not so encoded."""
        if len(content) < _HEAD or content[0]:
            return content
        number = int.from_bytes(content[1:_HEAD])
        if number not in self._readers:
            self._readers[number] = self._reader(self._registry.schema(number))
        try:
            record = self._readers[number](content[_HEAD:])
        except _BAD:
            return content
        return json.dumps(record, default=_plain).encode()

    @abstractmethod
    def _reader(self, said: Mapping[str, Any]) -> Read:
        """Return the reader for what the registry says of a schema."""


class _Avro(_Decoder):
    """Decoder of Avro."""

    def _reader(self, said: Mapping[str, Any]) -> Read:
        fastavro = _library("fastavro")
        named: dict[str, Any] = {}
        self._load(said, named)
        schema = fastavro.parse_schema(json.loads(said["schema"]), named)
        return lambda content: fastavro.schemaless_reader(io.BytesIO(content), schema, None)

    def _load(self, said: Mapping[str, Any], named: dict[str, Any]) -> None:
        """Add the schemas to which one refers."""
        for each in said.get("references", ()):
            other = self._registry.reference(each["subject"], each["version"])
            self._load(other, named)
            _library("fastavro").parse_schema(json.loads(other["schema"]), named)


class _JsonSchema(_Decoder):
    """Decoder of JSON behind a schema's number; the schema itself is not needed."""

    def _reader(self, said: Mapping[str, Any]) -> Read:
        return json.loads


class _Protobuf(_Decoder):
    """Decoder of Protobuf, from schemas in their compiled form."""

    def _reader(self, said: Mapping[str, Any]) -> Read:
        pool = _library("google.protobuf.descriptor_pool").DescriptorPool()
        factory = _library("google.protobuf.message_factory")
        for name in ("timestamp", "duration", "wrappers", "struct", "any", "empty"):
            module = _library(f"google.protobuf.{name}_pb2")
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
        file = self._add(pool, said, "")
        bad = _library("google.protobuf.message").DecodeError

        def read(content: bytes) -> Any:
            path, begin = _type_path(content)
            type_ = pool.FindMessageTypeByName(_type_name(file, path))
            message = factory.GetMessageClass(type_)()
            try:
                message.ParseFromString(content[begin:])
            except bad as error:
                raise ValueError(str(error)) from None
            return _record(message)

        return read

    def _add(self, pool: Any, said: Mapping[str, Any], name: str) -> Any:
        """Add a file, after those that it imports, to a pool, and return it."""
        for each in said.get("references", ()):
            other = self._registry.reference(each["subject"], each["version"])
            self._add(pool, other, each["name"])
        file = _library("google.protobuf.descriptor_pb2").FileDescriptorProto()
        file.ParseFromString(base64.b64decode(said["schema"]))
        file.name = name or "message.proto"
        pool.Add(file)
        return file


_DECODERS: Mapping[str, type[_Decoder]] = {
    "avro": _Avro,
    "protobuf": _Protobuf,
    "json-schema": _JsonSchema,
}


def decoder(encoding: str, registry: str) -> Callable[[bytes], bytes]:
    """Return the decoder of an encoding, with the registry at an address."""
    return _DECODERS[encoding](SchemaRegistry(registry))


def _type_name(file: Any, path: Sequence[int]) -> str:
    """Return the full name of a type that stands at a place of a file."""
    names, types = [file.package] if file.package else [], file.message_type
    for at in path:
        names.append(types[at].name)
        types = types[at].nested_type
    return ".".join(names)


def _type_path(content: bytes) -> tuple[list[int], int]:
    """Return the indices that lead to a record's type, and where the record begins.

    >>> _type_path(b"\\x00..."), _type_path(b"\\x04\\x02\\x00...")
    (([0], 1), ([1, 0], 3))
    """
    count, at = _varint(content, 0)
    if not count:
        return [0], at
    path = []
    for _ in range(count):
        index, at = _varint(content, at)
        path.append(index)
    return path, at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number in zigzag coding, and the place behind it."""
    found = shift = 0
    while True:
        byte = content[at]
        at += 1
        found |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at


def _record(message: Any) -> Any:
    """Return a message of Protobuf's as JSON has it; 64-bit integers stay numbers."""
    kind = message.DESCRIPTOR.full_name
    if kind == "google.protobuf.Timestamp":
        return message.ToMilliseconds()
    if kind.startswith("google.protobuf."):
        return _library("google.protobuf.json_format").MessageToDict(message)
    return {
        field.name: _field(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _field(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_values = field.message_type.fields_by_name["value"]
        return {str(key): _single(of_values, each) for key, each in value.items()}
    return [_single(field, each) for each in value] if field.is_repeated else _single(field, value)


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _record(value)
    if field.enum_type is not None:
        found = field.enum_type.values_by_number.get(value)
        return value if found is None else found.name
    return _finite(value)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """Return a value of Avro's as JSON has it: instants in milliseconds, bytes as Base64."""
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return float(value)  # a decimal


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise ConnectorError(
            f'this encoding needs {name.partition(".")[0]}\n  hint: pip install "acquatop[kafka]"'
        ) from None
