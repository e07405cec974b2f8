"""Identities of messages: a hash of what tells a repeated message from a new one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors import ConnectorError
from connectors.line_buffer import CUT

Hashes = npt.NDArray[np.uint64]
PAYLOAD, FIELD = "payload", "field:"
_HINT = f'write "{PAYLOAD}", or "{FIELD}NAME" with the name of a field of JSON, such as field:id'


class MessageIdentity:
    """Function from messages to hashes of 64 bits.

    ``payload`` takes a message's topic, if there is one, and its content. ``field:NAME`` takes a
    field of its JSON, with dots between levels; strings and numbers are different, and the topic
    does not count.
    """

    def __init__(self, written: str) -> None:
        if written != PAYLOAD and not written.removeprefix(FIELD).strip():
            raise ConnectorError(f"the option messageId names no field\n  hint: {_HINT}")
        if written != PAYLOAD and not written.startswith(FIELD):
            raise ConnectorError(f'the option messageId is not "{written}"\n  hint: {_HINT}')
        self._path = None if written == PAYLOAD else written.removeprefix(FIELD).split(".")

    def of(self, messages: pa.RecordBatch) -> tuple[Hashes, npt.NDArray[np.bool_]]:
        """Return the hash of each message, and if it has one.

        A message has none if its field is missing, or if it was too long to be kept as a whole.
        """
        named = self._names(messages)
        hashes = np.array([0 if each is None else _hash(each) for each in named], np.uint64)
        return hashes, np.array([each is not None for each in named], np.bool_)

    def _names(self, messages: pa.RecordBatch) -> Sequence[bytes | None]:
        values = messages.column("value").to_pylist()
        columns = messages.schema.names
        sizes = messages.column("size").to_pylist() if "size" in columns else [None] * len(values)
        whole: Sequence[bytes | None] = [
            None if _is_cut(value, size) else value
            for value, size in zip(values, sizes, strict=True)
        ]
        if self._path is not None:
            return [None if each is None else _field(each, self._path) for each in whole]
        if "topic" not in columns:
            return whole
        topics = messages.column("topic").to_pylist()
        return [
            None if each is None else topic.encode() + b"\0" + each
            for each, topic in zip(whole, topics, strict=True)
        ]


def _is_cut(value: bytes, size: int | None) -> bool:
    return value.endswith(CUT) if size is None else len(value) != size


def _hash(name: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")


def _field(value: bytes, path: Sequence[str]) -> bytes | None:
    try:
        found: Any = json.loads(value)
        for name in path:
            found = found[name]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return json.dumps(found).encode() if isinstance(found, str | int | float) else None
