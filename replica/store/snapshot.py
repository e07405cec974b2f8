"""Snapshots: a store's state as versioned, compressed columns; reading one runs no code."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from replica.store.columns import AnyArray

_MAGIC = b"acquatop-replica\n"
_PARTS = b"acquatop-replica-parts\n"
_TYPES = ("<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "|u1", "<u2", "<u4", "<u8", "|b1")
_LEVEL = 1


class SnapshotError(ValueError):
    """Bytes that are not a valid snapshot of the reader's kind."""


@dataclass(frozen=True)
class State:
    """Plain settings, and columns by name."""

    settings: Mapping[str, Any]
    columns: Mapping[str, AnyArray]

    def part(self, name: str) -> dict[str, AnyArray]:
        """Return the columns of one part: those whose names begin with it.

        >>> list(State({}, {"keys.texts": np.arange(2), "other": np.arange(3)}).part("keys"))
        ['texts']
        """
        return {
            each[len(name) + 1 :]: cells
            for each, cells in self.columns.items()
            if each.startswith(f"{name}.")
        }


def named(part: str, columns: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return a part's columns under their full names, as ``State.part`` expects them."""
    return {f"{part}.{name}": cells for name, cells in columns.items()}


def pack(kind: str, version: int, state: State) -> bytes:
    """Return a state as bytes: a checksum, a line of JSON, then the columns' bytes.

    >>> packed = pack("store", 1, State({"limit": 3}, {"when": np.arange(3)}))
    >>> restored = unpack("store", 1, packed)
    >>> restored.settings["limit"], restored.columns["when"].tolist()
    (3, [0, 1, 2])
    """
    entries, bodies = [], []
    for name, cells in state.columns.items():
        plain = np.ascontiguousarray(cells, _plain_type(cells.dtype.newbyteorder("<").str))
        body = zlib.compress(plain.data, _LEVEL) if plain.size else b""
        entries.append(
            {"name": name, "type": plain.dtype.str, "shape": plain.shape, "size": len(body)}
        )
        bodies.append(body)
    header = {
        "kind": kind,
        "version": version,
        "settings": dict(state.settings),
        "columns": entries,
    }
    return _sealed(_MAGIC, b"".join([json.dumps(header).encode(), b"\n", *bodies]))


def unpack(kind: str, version: int, snapshot: bytes) -> State:
    """Return the packed state; raises :class:`SnapshotError` with what is wrong with the bytes."""
    content = _opened(_MAGIC, snapshot)
    with reading():
        line, body = _first_line(content)
        header = json.loads(line)
        found = header["kind"], header["version"]
        if found != (kind, version):
            raise SnapshotError(
                f"this is a snapshot of a {found[0]}, version {found[1]}, not {kind}, {version}"
            )
        return State(dict(header["settings"]), _columns(header["columns"], body))


def pack_parts(parts: Mapping[str, bytes]) -> bytes:
    """Return several snapshots as one: a checksum, a line of JSON with their sizes, their bytes.

    >>> unpack_parts(pack_parts({"first": b"some", "second": b""}))
    {'first': b'some', 'second': b''}
    """
    sizes = {name: len(part) for name, part in parts.items()}
    return _sealed(_PARTS, b"".join([json.dumps(sizes).encode(), b"\n", *parts.values()]))


def unpack_parts(snapshot: bytes) -> dict[str, bytes]:
    """Return the snapshots packed into one; raises :class:`SnapshotError` with what is wrong."""
    content = _opened(_PARTS, snapshot)
    with reading():
        line, body = _first_line(content)
        parts, start = {}, 0
        for name, size in json.loads(line).items():
            parts[name] = bytes(body[start : start + size])
            start += size
        if start != len(body):
            raise ValueError("its parts are not as long as they should be")
        return parts


@contextmanager
def reading() -> Iterator[None]:
    """Raise :class:`SnapshotError` for any invalid content of a snapshot."""
    try:
        yield
    except SnapshotError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        zlib.error,
    ) as error:
        raise damaged(error) from error


def damaged(error: Exception) -> SnapshotError:
    """Return the error to raise for an invalid snapshot."""
    return SnapshotError(f"the snapshot is damaged: {error}")


def _sealed(magic: bytes, content: bytes) -> bytes:
    return magic + b"%08x\n" % zlib.crc32(content) + content


def _opened(magic: bytes, snapshot: bytes) -> memoryview:
    """Return the sealed content."""
    if not snapshot.startswith(magic):
        raise SnapshotError("these bytes are not a snapshot of a replica")
    start = len(magic) + 9
    content = memoryview(snapshot)[start:]
    if snapshot[len(magic) : start] != b"%08x\n" % zlib.crc32(content):
        raise SnapshotError("the snapshot is damaged: its checksum does not match")
    return content


def _first_line(content: memoryview) -> tuple[bytes, memoryview]:
    whole = content.obj
    assert isinstance(whole, bytes)
    start = len(whole) - len(content)
    stop = whole.find(b"\n", start) + 1
    return whole[start:stop], content[stop - start :]


def _columns(entries: list[dict[str, Any]], body: memoryview) -> dict[str, AnyArray]:
    columns, start = {}, 0
    for entry in entries:
        stop = start + int(entry["size"])
        columns[str(entry["name"])] = _column(entry["type"], entry["shape"], body[start:stop])
        start = stop
    return columns


def _column(type_: str, shape: list[int], body: memoryview) -> AnyArray:
    dtype = _plain_type(type_)
    count = math.prod(shape)
    # Never unpack more than the announced size.
    data = zlib.decompressobj().decompress(body, count * dtype.itemsize) if count > 0 else b""
    return np.frombuffer(data, dtype, count).reshape(shape).astype(dtype.newbyteorder("="))


def _plain_type(name: str) -> np.dtype[Any]:
    if name not in _TYPES:
        raise ValueError(f"a column cannot be of type {name!r}")
    return np.dtype(name)
