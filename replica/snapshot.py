"""Snapshots: state as versioned, compressed columns with a checksum; reading one runs no code.

One codec for all state that is saved: replicas, spending, top-k structures, windows. Bytes that
earlier versions wrote for structures and for replicas are read too.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

AnyArray = npt.NDArray[Any]
Columns = Mapping[str, AnyArray]

MAGIC = b"acquatop-snapshot\n"
_PARTS = b"acquatop-parts\n"
_TABLE = b"acquatop-table\n"

_SMALL = 4096
"""Bytes up to which a table is not compressed: beginning to takes longer than writing it."""

_OLD_STRUCTURE = b"acquatop-topk\n"
"""Magic of earlier versions in front of structures; what follows is the same."""
_OLD_REPLICA = b"acquatop-replica\n"
"""Magic of earlier versions in front of replicas; columns of bytes follow."""
_OLD_REPLICA_PARTS = b"acquatop-replica-parts\n"
"""Magic of earlier versions in front of parts of replicas; what follows is the same."""
_OLD_TYPES = ("<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "|u1", "<u2", "<u4", "<u8", "|b1")
_BY_ROW = "rows"
"""Table of the columns that earlier versions wrote for a replica outside of any part."""


class SnapshotError(ValueError):
    """Bytes that are no snapshot of the object to be restored."""


@dataclass(frozen=True)
class State:
    """Plain settings, and tables of columns by name."""

    settings: Mapping[str, Any]
    tables: Mapping[str, Columns]


def pack(kind: str, version: int, state: State) -> bytes:
    """Return a state as bytes: checksum, line of JSON, an Arrow stream per table.

    A table whose columns differ in length has a stream for each length. Columns have one dimension
    and hold numbers; columns of objects must hold text, or tuples of text.

    >>> packed = pack("list", 1, State({"k": 3}, {"held": {"times": np.arange(3)}}))
    >>> restored = unpack("list", 1, packed)
    >>> restored.settings["k"], restored.tables["held"]["times"].tolist()
    (3, [0, 1, 2])
    """
    bodies = {
        name: [_write(columns) for columns in _by_length(table)]
        for name, table in state.tables.items()
    }
    header = {
        "kind": kind,
        "version": version,
        "settings": dict(state.settings),
        "tables": {name: list(map(len, streams)) for name, streams in bodies.items()},
    }
    streams = (stream for each in bodies.values() for stream in each)
    return _sealed(MAGIC, b"".join([json.dumps(header).encode(), b"\n", *streams]))


def unpack(kind: str, version: int, snapshot: bytes) -> State:
    """Return the state that was packed; raise :class:`SnapshotError` that says what is wrong."""
    magic, content = _opened((MAGIC, _OLD_STRUCTURE, _OLD_REPLICA), snapshot)
    with reading():
        line, body = _first_line(content)
        header = json.loads(line)
        found = header["kind"], header["version"]
        if found != (kind, version):
            raise SnapshotError(
                f"this is a snapshot of {found[0]} version {found[1]}, "
                f"not of {kind} version {version}"
            )
        tables = (
            _old_tables(header["columns"], body)
            if magic == _OLD_REPLICA
            else _tables(header["tables"], body)
        )
        return State(dict(header["settings"]), tables)


def kind_of(snapshot: bytes) -> str:
    """Return the kind of a packed state; raise :class:`SnapshotError` for other bytes."""
    _, content = _opened((MAGIC, _OLD_STRUCTURE, _OLD_REPLICA), snapshot)
    with reading():
        line, _ = _first_line(content)
        return str(json.loads(line)["kind"])


def pack_parts(parts: Mapping[str, bytes]) -> bytes:
    """Return several snapshots as one: checksum, a line of JSON with their lengths, their bytes.

    >>> unpack_parts(pack_parts({"first": b"some", "second": b""}))
    {'first': b'some', 'second': b''}
    """
    sizes = {name: len(part) for name, part in parts.items()}
    return _sealed(_PARTS, b"".join([json.dumps(sizes).encode(), b"\n", *parts.values()]))


def unpack_parts(snapshot: bytes) -> dict[str, bytes]:
    """Return the snapshots packed into one; raise :class:`SnapshotError` for other bytes."""
    _, content = _opened((_PARTS, _OLD_REPLICA_PARTS), snapshot)
    with reading():
        line, body = _first_line(content)
        sizes = json.loads(line)
        if sum(sizes.values()) != len(body):
            raise ValueError("its parts are not as long as they should be")
        return dict(zip(sizes, map(bytes, _split(body, sizes.values())), strict=True))


def pack_table(table: pa.Table) -> bytes:
    """Return a table of any columns as bytes: a checksum, then an Arrow stream.

    >>> unpack_table(pack_table(pa.table({"name": ["a", None]}))).to_pylist()
    [{'name': 'a'}, {'name': None}]
    """
    return _sealed(_TABLE, _stream(table))


def unpack_table(snapshot: bytes) -> pa.Table:
    """Return the table that was packed; raise :class:`SnapshotError` that says what is wrong."""
    _, content = _opened((_TABLE,), snapshot)
    with reading():
        return pa.ipc.open_stream(content).read_all()


@contextmanager
def reading() -> Iterator[None]:
    """Turn any error while reading a snapshot into :class:`SnapshotError`."""
    try:
        yield
    except SnapshotError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        AssertionError,
        ArithmeticError,
        RecursionError,
        OSError,
        zlib.error,
        pa.ArrowException,
    ) as error:
        raise SnapshotError(f"the snapshot is damaged: {error!r}") from error


def random_settings(random: np.random.Generator) -> dict[str, Any]:
    """Return the state of a random generator as plain settings.

    >>> source, other = np.random.default_rng(1), np.random.default_rng(2)
    >>> set_random(other, random_settings(source))
    >>> source.random() == other.random()
    True
    """
    settings = _plain(random.bit_generator.state)
    assert isinstance(settings, dict)
    return settings


def set_random(random: np.random.Generator, settings: Mapping[str, Any]) -> None:
    """Set a random generator's state; raise :class:`SnapshotError` for a state of another kind."""
    with reading():
        random.bit_generator.state = dict(settings)


def _sealed(magic: bytes, content: bytes) -> bytes:
    return magic + b"%08x\n" % zlib.crc32(content) + content


def _opened(magics: Iterable[bytes], snapshot: bytes) -> tuple[bytes, memoryview]:
    """Return which magic the bytes begin with, and the content after verifying its checksum."""
    magic = next((each for each in magics if snapshot.startswith(each)), None)
    if magic is None:
        raise SnapshotError("these bytes are not a snapshot of this kind")
    start = len(magic) + 9
    content = memoryview(snapshot)[start:]
    if snapshot[len(magic) : start] != b"%08x\n" % zlib.crc32(content):
        raise SnapshotError("the snapshot is damaged: its checksum does not match")
    return magic, content


def _first_line(content: memoryview) -> tuple[bytes, memoryview]:
    whole = content.obj
    assert isinstance(whole, bytes)
    start = len(whole) - len(content)
    stop = whole.find(b"\n", start) + 1
    return whole[start:stop], content[stop - start :]


def _split(body: memoryview, sizes: Iterable[int]) -> Iterator[memoryview]:
    start = 0
    for size in sizes:
        yield body[start : start + size]
        start += size


def _by_length(table: Columns) -> list[dict[str, AnyArray]]:
    lengths = dict.fromkeys(map(len, table.values())) or {0: None}
    return [
        {name: column for name, column in table.items() if len(column) == length}
        for length in lengths
    ]


def _write(columns: Columns) -> bytes:
    batch = pa.record_batch(
        {
            name: pa.array(column.tolist() if column.dtype == object else column)
            for name, column in columns.items()
        }
    )
    return _stream(pa.Table.from_batches([batch]))


def _stream(table: pa.Table) -> bytes:
    compression = "zstd" if table.nbytes > _SMALL else None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _tables(sizes: Mapping[str, Any], body: memoryview) -> dict[str, dict[str, AnyArray]]:
    # Earlier versions had one stream for each table.
    streams = {name: [each] if isinstance(each, int) else each for name, each in sizes.items()}
    bodies = _split(body, (size for each in streams.values() for size in each))
    tables: dict[str, dict[str, AnyArray]] = {}
    for name, each in streams.items():
        tables[name] = {}
        for _ in each:
            tables[name].update(_read(next(bodies)))
    return tables


def _read(body: memoryview) -> dict[str, AnyArray]:
    table = pa.ipc.open_stream(body).read_all()
    return {name: _column(table.column(name)) for name in table.column_names}


def _column(column: pa.ChunkedArray) -> AnyArray:
    if pa.types.is_primitive(column.type):
        return np.array(column.to_numpy())
    values = column.to_pylist()
    restored = np.empty(len(values), dtype=object)
    restored[:] = [tuple(each) if isinstance(each, list) else each for each in values]
    return restored


def _plain(state: Any) -> Any:
    if isinstance(state, Mapping):
        return {name: _plain(each) for name, each in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.generic) else state


# Replicas of earlier versions ---------------------------------------------------------------------


def _old_tables(entries: list[dict[str, Any]], body: memoryview) -> dict[str, dict[str, AnyArray]]:
    """Return columns named ``table.column``, each compressed by itself, as tables."""
    tables: dict[str, dict[str, AnyArray]] = {}
    bodies = _split(body, (int(entry["size"]) for entry in entries))
    for entry, each in zip(entries, bodies, strict=True):
        table, dot, name = str(entry["name"]).partition(".")
        cells = _old_column(entry["type"], entry["shape"], each)
        tables.setdefault(table if dot else _BY_ROW, {})[name if dot else table] = cells
    return tables


def _old_column(type_: str, shape: list[int], body: memoryview) -> AnyArray:
    if type_ not in _OLD_TYPES:
        raise ValueError(f"a column cannot be of type {type_!r}")
    dtype, count = np.dtype(type_), math.prod(shape)
    # Never unpack more than the announced size.
    data = zlib.decompressobj().decompress(body, count * dtype.itemsize) if count > 0 else b""
    return np.frombuffer(data, dtype, count).reshape(shape).astype(dtype.newbyteorder("="))
